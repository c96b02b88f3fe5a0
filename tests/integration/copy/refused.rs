//! Refusals: with file, line and field, a hint, and nothing changed.

use crate::support::{Kustomize, World, config_map};

/// Commits this text as the kustomization of `app`, beside a few files that are fine.
fn with(world: &World, text: &str) {
    world.commit(&[
        ("app/kustomization.yaml", text),
        ("app/map.yaml", &config_map("map")),
        ("app/base/kustomization.yaml", "resources: [map.yaml]\n"),
        ("app/base/map.yaml", &config_map("base")),
        (
            "app/component/kustomization.yaml",
            "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nnamePrefix: a-\n",
        ),
    ]);
}

/// Asserts that kustomize refuses `app` too, where there is a kustomize.
fn kustomize_refuses(world: &World) {
    if let Some(kustomize) = Kustomize::find() {
        kustomize
            .build(&world.sandbox, world.work.path(), "app")
            .fails(1);
    }
}

#[test]
fn kustomizations_that_kustomize_refuses() {
    let world = World::new();
    for (text, message) in [
        ("", "app/kustomization.yaml"),
        ("kind: Kustomization\n", "app/kustomization.yaml"),
        (
            "resources: [map.yaml]\nsuffix: x\n",
            "app/kustomization.yaml:2:1: suffix: ",
        ),
        (
            "resources: map.yaml\n",
            "app/kustomization.yaml:1:12: resources: ",
        ),
        (
            "resources:\n- map.yaml\n- {a: b}\n",
            "app/kustomization.yaml:3:3: resources[1]: ",
        ),
        (
            "kind: Deployment\nresources: [map.yaml]\n",
            "app/kustomization.yaml:1:7: kind: kind should be Kustomization or Component, not `Deployment`",
        ),
        (
            "apiVersion: v2\nresources: [map.yaml]\n",
            "app/kustomization.yaml:1:13: apiVersion: apiVersion for Kustomization should be kustomize.config.k8s.io/v1beta1",
        ),
        ("resources: [map.yaml\n", "app/kustomization.yaml:"),
        ("resources:\n\t- map.yaml\n", "app/kustomization.yaml:2:"),
        (
            "resources: [component]\n",
            "app/kustomization.yaml:1:13: resources[0]: `component` is a Component, which only `components` takes",
        ),
        (
            "resources: [map.yaml]\ncomponents: [base]\n",
            "app/kustomization.yaml:2:14: components[0]: `base` is a Kustomization, but `components` takes a Component",
        ),
        (
            "resources: [map.yaml]\ncomponents: [map.yaml]\n",
            "app/kustomization.yaml:2:14: components[0]: `map.yaml` is a file, not a directory",
        ),
        (
            "resources: [nowhere]\n",
            "app/kustomization.yaml:1:13: resources[0]: `nowhere` does not exist: there is no `app/nowhere`",
        ),
        (
            "resources: [map.yaml]\npatches:\n- path: base\n",
            "app/kustomization.yaml:3:9: patches[0].path: `base` is a directory, not a file",
        ),
        (
            "resources: [/nowhere]\n",
            "app/kustomization.yaml:1:13: resources[0]: `/nowhere` is an absolute path",
        ),
        (
            "resources: [map.yaml]\ncrds: [../../other.json]\n",
            "app/kustomization.yaml:2:8: crds[0]: ",
        ),
    ] {
        with(&world, text);
        world
            .says_no(&["app"])
            .stderr_has(&format!("error: {message}"));
        kustomize_refuses(&world);
    }
}

#[test]
fn a_root_without_a_kustomization_file_or_with_two() {
    let world = World::new();
    with(&world, "resources: [none, two]\n");
    world.commit(&[
        ("app/none/map.yaml", &config_map("map")),
        ("app/two/kustomization.yaml", "namePrefix: a-\n"),
        ("app/two/Kustomization", "namePrefix: a-\n"),
        ("app/none/kustomization.YAML", "namePrefix: a-\n"),
    ]);
    world
        .refused(&["app"])
        .stderr_has("app/kustomization.yaml:1:13: resources[0]: no kustomization file in `app/none`")
        .stderr_has("hint: a kustomization root holds one of `kustomization.yaml`, `kustomization.yml`, `Kustomization`")
        .stderr_has("app/kustomization.yaml:1:19: resources[1]: several kustomization files in `app/two`: kustomization.yaml, Kustomization")
        .stderr_has("hint: keep one of them");
    kustomize_refuses(&world);
    world
        .refused(&["app/none"])
        .stderr_has("error: no kustomization file in `app/none`");
    world
        .refused(&["app/two"])
        .stderr_has("error: several kustomization files in `app/two`");
    world
        .refused(&["nowhere"])
        .stderr_has("there is no directory `nowhere` for the target")
        .stderr_has("hint: name the directory that holds the kustomization, as seen from here");
    world
        .refused(&["app/map.yaml"])
        .stderr_has("the target `app/map.yaml` is a file")
        .stderr_has("hint: name the directory that holds the kustomization");
    world
        .refused(&["app", "--scope", "app/base"])
        .stderr_has("the scope `app/base` does not contain the target `app`")
        .stderr_has("hint: name a directory above the target");
}

#[test]
fn a_broken_component_is_reported_as_such() {
    let world = World::new();
    with(&world, "resources: [map.yaml]\ncomponents: [broken]\n");
    world.commit(&[(
        "app/broken/kustomization.yaml",
        "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nnonsense: 1\n",
    )]);
    world
        .refused(&["app"])
        .stderr_has("app/broken/kustomization.yaml:3:1: nonsense: ")
        .lacks("is a Kustomization");
}

#[test]
fn all_problems_are_reported_at_once() {
    let world = World::new();
    world.upstream_of(
        "acme/base",
        &[(
            "kustomization.yaml",
            "resources: [gone.yaml]\npatches:\n- path: lost.yaml\n",
        )],
    );
    with(
        &world,
        "resources:\n- one.yaml\n- base\n- https://github.com/acme/base?ref=v1\n- https://files.example.com/404.yaml\n- oci://example.com/x\ngenerators:\n- gen.yaml\nconfigMapGenerator:\n- name: a\n  files: [two.txt]\n",
    );
    world.commit(&[
        ("app/base/kustomization.yaml", "resources: [three.yaml]\nfour: 4\n"),
        ("app/gen.yaml", "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: g}\nfiles:\n- five.txt\n"),
        ("app/base/component/kustomization.yaml", "namePrefix: a-\n"),
    ]);
    let output = world.refused(&["app"]);
    output
        .stderr_has("app/kustomization.yaml:2:3: resources[0]: `one.yaml` does not exist: there is no `app/one.yaml`")
        .stderr_has("app/base/kustomization.yaml:2:1: four: ")
        .stderr_has("https://github.com/acme/base?ref=v1: kustomization.yaml:1:13: resources[0]: `gone.yaml` does not exist")
        .stderr_has("https://github.com/acme/base?ref=v1: kustomization.yaml:3:9: patches[0].path: `lost.yaml` does not exist")
        .stderr_has("app/kustomization.yaml:5:3: resources[3]: ")
        .stderr_has("https://files.example.com/404.yaml")
        .stderr_has("404")
        .stderr_has("app/kustomization.yaml:6:3: resources[4]: `oci://example.com/x`: kustomize cannot read `oci://`")
        .stderr_has("app/gen.yaml:5:3: generators[0] > ConfigMapGenerator.files[0]: `five.txt` does not exist")
        .stderr_has("app/kustomization.yaml:11:11: configMapGenerator[0].files[0]: `two.txt` does not exist");
    // Reported once each, in the order in which a person would read the files.
    let lines: Vec<&str> = output
        .stderr
        .lines()
        .filter(|line| line.starts_with("error: app/kustomization.yaml:"))
        .collect();
    let mut sorted = lines.clone();
    sorted.sort_by_key(|line| line.split(':').nth(2).unwrap().parse::<usize>().unwrap());
    assert_eq!(lines, sorted);
    assert_eq!(lines.len(), 4, "{output:?}");
}

#[test]
fn schemes_that_kustomize_cannot_read() {
    let world = World::new();
    for (url, scheme) in [
        ("git://github.com/acme/base", "git://"),
        ("s3::https://s3.amazonaws.com/bucket/x", "s3::"),
        ("oci://ghcr.io/acme/base:v1", "oci://"),
        ("gh:acme/base", "gh:"),
    ] {
        with(&world, &format!("resources: ['{url}']\n"));
        world
            .says_no(&["app"])
            .stderr_has(&format!("app/kustomization.yaml:1:13: resources[0]: `{url}`: kustomize cannot read `{scheme}`"))
            .stderr_has("hint: use an https, ssh or file URL of a git repository");
        with(
            &world,
            &format!("resources: [map.yaml]\ncomponents: ['{url}']\n"),
        );
        world.says_no(&["app"]).stderr_has(&format!(
            "components[0]: `{url}`: kustomize cannot read `{scheme}`"
        ));
        with(
            &world,
            &format!("resources: [map.yaml]\npatches:\n- path: '{url}'\n"),
        );
        world.says_no(&["app"]).stderr_has(&format!(
            "patches[0].path: `{url}`: kustomize cannot read `{scheme}`"
        ));
        world
            .says_no(&[url])
            .stderr_has(&format!("`{url}`: kustomize cannot read `{scheme}`"));
    }
    with(
        &world,
        "resources: [map.yaml]\npatches:\n- path: ssh://git@github.com/acme/base//x.yaml\n",
    );
    world
        .refused(&["app"])
        .stderr_has("patches[0].path: `ssh://git@github.com/acme/base//x.yaml` names a git repository, but this field takes a file")
        .stderr_has("hint: name the file by its raw https URL");
}

#[test]
fn web_pages_get_the_right_url_in_the_hint() {
    let world = World::new();
    world.upstream_of(
        "acme/base",
        &[("dir/kustomization.yaml", "namePrefix: a-\n")],
    );
    let page = "https://github.com/acme/base/blob/v1/dir/map.yaml";
    world.file(page, "<!DOCTYPE html><html></html>");
    with(&world, &format!("resources: ['{page}']\n"));
    world
        .refused(&["app"])
        .stderr_has("app/kustomization.yaml:1:13: resources[0]: ")
        .stderr_has("https://raw.githubusercontent.com/acme/base/v1/dir/map.yaml");
    let page = "https://github.com/acme/base/tree/v1/dir";
    world.file(page, "<!DOCTYPE html><html></html>");
    with(&world, &format!("resources: ['{page}']\n"));
    world
        .refused(&["app"])
        .stderr_has("https://github.com/acme/base//dir?ref=v1");
}

#[test]
fn remote_places_that_are_not_there() {
    let world = World::new();
    let upstream = world.upstream("acme/base");
    upstream.symlink("out", "../../secret");
    upstream.write("dir/map.yaml", config_map("map"));
    upstream.write("one/kustomization.yaml", "resources: [../out/x.yaml]\n");
    upstream.write("kustomization.yaml", "namePrefix: a-\n");
    upstream.commit("first");
    upstream.git(&["tag", "v1"]);
    let base = "https://github.com/acme/base";
    for (path, message) in [
        (
            "//nowhere",
            "there is no directory `nowhere` in https://github.com/acme/base at ",
        ),
        (
            "//dir/map.yaml",
            "names a file of a repository, not a directory",
        ),
        (
            "//dir",
            "no kustomization file in `https://github.com/acme/base?ref=v1: dir`",
        ),
        (
            "//out",
            "follows the link `out` to `../../secret`, out of its repository",
        ),
        (
            "//one",
            "follows the link `https://github.com/acme/base?ref=v1: out` to `../../secret`, out of the tree",
        ),
    ] {
        with(&world, &format!("resources: ['{base}{path}?ref=v1']\n"));
        world.says_no(&["app"]).stderr_has(message);
    }
    with(
        &world,
        &format!("resources: [map.yaml]\ncomponents: ['{base}?ref=v1']\n"),
    );
    world
        .refused(&["app"])
        .stderr_has("components[0]: `https://github.com/acme/base?ref=v1` is a Kustomization, but `components` takes a Component");
}

#[test]
fn links_that_leave_or_loop() {
    let world = World::new();
    std::fs::write(world.sandbox.path("secret.yaml"), config_map("secret")).unwrap();
    world.work.symlink("app/out.yaml", "../../secret.yaml");
    world.work.symlink("app/up.yaml", "../other/map.yaml");
    world.work.symlink("app/loop.yaml", "loop.yaml");
    world.work.symlink("app/etc", "/etc");
    world.work.symlink("app/dangling.yaml", "gone.yaml");
    world.work.write("other/map.yaml", config_map("other"));
    with(
        &world,
        "resources:\n- out.yaml\n- up.yaml\n- loop.yaml\n- etc\n- dangling.yaml\n",
    );
    world
        .refused(&["app", "--scope", "."])
        .stderr_has("resources[0]: `out.yaml` follows the link `app/out.yaml` to `../../secret.yaml`, out of the tree")
        .stderr_has("hint: replace the link by what it points to")
        .stderr_has("resources[1]: `up.yaml` lies outside its kustomization root `app`")
        .stderr_has("resources[2]: `loop.yaml`: the links at `app/loop.yaml` lead to each other")
        .stderr_has("resources[3]: `etc` follows the link `app/etc` to `/etc`, out of the tree")
        .stderr_has("resources[4]: `dangling.yaml` does not exist: there is no `app/gone.yaml`");
    kustomize_refuses(&world);
}

#[test]
fn a_kustomization_that_is_a_link_out_of_its_root_is_none() {
    let world = World::new();
    world
        .work
        .symlink("app/kustomization.yaml", "../other/kustomization.yaml");
    world.commit(&[("other/kustomization.yaml", "namePrefix: a-\n")]);
    world
        .refused(&["app", "--scope", "."])
        .stderr_has("no kustomization file in `app`");
    kustomize_refuses(&world);
}

#[test]
fn local_cycles() {
    let world = World::new();
    for (files, chain) in [
        (&[("app", "resources: [.]\n")][..], "`app` -> `app`"),
        (&[("app", "resources: [../app]\n")], "`app` -> `app`"),
        (
            &[
                ("app", "resources: [../b]\n"),
                ("b", "resources: [../app]\n"),
            ],
            "`app` -> `b` -> `app`",
        ),
        (
            &[
                ("app", "resources: [../b]\n"),
                ("b", "components: [../c]\n"),
                (
                    "c",
                    "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [../b]\n",
                ),
            ],
            "`b` -> `c` -> `b`",
        ),
        (
            &[("app", "resources: [..]\n"), ("", "namePrefix: a-\n")],
            "leads to a directory that contains it: `app` -> `.`",
        ),
        (
            &[
                ("app", "resources: [../b/c]\n"),
                ("b/c", "resources: [../../d]\n"),
                ("d", "resources: [../b]\n"),
                ("b", "namePrefix: a-\n"),
            ],
            "`b/c` leads to a directory that contains it: `b/c` -> `d` -> `b`",
        ),
    ] {
        for (directory, text) in files {
            let place = format!("{directory}/kustomization.yaml");
            world.work.write(place.trim_start_matches('/'), text);
        }
        world.work.commit("cycle");
        world
            .says_no(&["app", "out", "--scope", "."])
            .stderr_has("cycle: `")
            .stderr_has(chain)
            .stderr_has("hint: `kustomize build` refuses this");
        kustomize_refuses(&world);
        world.work.git(&["rm", "-rqf", "."]);
        std::fs::create_dir_all(world.work.path()).unwrap();
    }
}

#[test]
fn cycles_through_urls() {
    let world = World::new();
    world.upstream_of(
        "acme/self",
        &[(
            "kustomization.yaml",
            "resources: ['https://github.com/acme/self?ref=v1']\n",
        )],
    );
    world.upstream_of(
        "acme/up",
        &[
            (
                "dir/kustomization.yaml",
                "resources: ['https://github.com/acme/up?ref=v1']\n",
            ),
            ("kustomization.yaml", "resources: [dir]\n"),
        ],
    );
    world.upstream_of(
        "acme/ping",
        &[(
            "kustomization.yaml",
            "resources: ['https://github.com/acme/pong?ref=v1']\n",
        )],
    );
    world.upstream_of(
        "acme/pong",
        &[(
            "kustomization.yaml",
            "resources: ['https://github.com/acme/ping?ref=v1']\n",
        )],
    );
    for (name, chain) in [
        (
            "self",
            "`https://github.com/acme/self?ref=v1: .` -> `https://github.com/acme/self?ref=v1: .` (https://github.com/acme/self?ref=v1)",
        ),
        (
            "up",
            "`https://github.com/acme/up?ref=v1: dir` -> `https://github.com/acme/up?ref=v1: .` (https://github.com/acme/up?ref=v1)",
        ),
        (
            "ping",
            "-> `https://github.com/acme/pong?ref=v1: .` (https://github.com/acme/pong?ref=v1) -> `https://github.com/acme/ping?ref=v1: .` (https://github.com/acme/ping?ref=v1)",
        ),
    ] {
        world.commit(&[(
            "app/kustomization.yaml",
            &format!("resources: ['https://github.com/acme/{name}?ref=v1']\n"),
        )]);
        world
            .says_no(&["app"])
            .stderr_has("cycle: ")
            .stderr_has(chain);
    }
}

/// For kustomize, not for anybody else: the repository at `v` is another one than at `v1`.
#[test]
fn a_url_that_begins_one_on_its_chain() {
    let world = World::new();
    let upstream = world.upstream("acme/base");
    upstream.write("kustomization.yaml", "resources: [map.yaml]\n");
    upstream.write("map.yaml", config_map("map"));
    upstream.commit("first");
    upstream.git(&["tag", "v"]);
    upstream.write(
        "kustomization.yaml",
        "resources: ['https://github.com/acme/base?ref=v']\n",
    );
    upstream.commit("second");
    upstream.git(&["tag", "v1"]);
    world.commit(&[(
        "app/kustomization.yaml",
        "resources: ['https://github.com/acme/base?ref=v1']\n",
    )]);
    world.refused(&["app"]).stderr_has(
        "cycle: `app` names a URL that begins like one on its chain, which `kustomize build` takes for a cycle",
    );
    kustomize_refuses(&world);
    upstream.git(&["tag", "w", "v"]);
    upstream.write(
        "kustomization.yaml",
        "resources: ['https://github.com/acme/base?ref=w']\n",
    );
    upstream.commit("third");
    upstream.git(&["tag", "-f", "v1"]);
    let clone = world.localized(&["app"]);
    world.same_build("app", &clone, "localized-app");
}

const POINTER: &str = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n";

#[test]
fn lfs_pointers() {
    let world = World::new();
    world.upstream_of(
        "acme/base",
        &[
            (
                "kustomization.yaml",
                "configMapGenerator:\n- {name: a, files: [big.bin]}\n",
            ),
            ("big.bin", POINTER),
        ],
    );
    with(
        &world,
        "resources: ['https://github.com/acme/base?ref=v1']\nconfigMapGenerator:\n- {name: a, files: [big.bin]}\n",
    );
    world.commit(&[("app/big.bin", POINTER)]);
    world
        .refused(&["app"])
        .stderr_has("app/kustomization.yaml:3:21: configMapGenerator[0].files[0]: `app/big.bin` is a Git LFS pointer, not the file itself")
        .stderr_has("`https://github.com/acme/base?ref=v1: big.bin` is a Git LFS pointer")
        .stderr_has("hint: keep files that a build reads out of Git LFS");
}

#[test]
fn a_component_that_cannot_be_read_has_no_kind() {
    let component = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n";
    let large = format!("{component}{}", "# \n".repeat(3_400_000));
    for (text, problem) in [
        (POINTER, "`c/kustomization.yaml` is a Git LFS pointer"),
        (
            &large,
            "`c/kustomization.yaml` has more than 10000000 bytes",
        ),
    ] {
        let world = World::new();
        let user = "components: [../c]\n";
        world.commit(&[
            ("a/kustomization.yaml", user),
            ("b/kustomization.yaml", user),
            ("c/kustomization.yaml", text),
            ("top/kustomization.yaml", "resources: [../a, ../b, ../c]\n"),
        ]);
        for command in [
            &["check"][..],
            &["check", "top"],
            &["lock"],
            &["--in-place", "--dry-run", "--no-verify"],
            &["top", "--scope", "."],
        ] {
            let output = world.work.run(command);
            let said = format!("{}{}", output.stdout, output.stderr);
            assert_eq!(said.matches(problem).count(), 1, "{command:?}: {said}");
            for other in ["takes a Component", "is empty"] {
                assert!(!said.contains(other), "{command:?}: {said}");
            }
        }
        world
            .work
            .run(&["tree"])
            .success()
            .stdout_has("c (unreadable)");
    }
}

#[test]
fn a_directory_that_looks_like_a_git_url() {
    let world = World::new();
    with(&world, "resources: [app@v1/base/x]\n");
    world.commit(&[("app/app@v1/base/x/kustomization.yaml", "namePrefix: a-\n")]);
    // kustomize would take the path of the repository from here, too.
    let output = world.work.run(&["app"]);
    output
        .fails(2)
        .stderr_has("app/kustomization.yaml:1:13: resources[0]: ");
    with(&world, "resources: [./app@v1/base/x, map.yaml]\n");
    let clone = world.localized(&["app"]);
    world.same_build("app", &clone, "localized-app");
}

#[test]
fn texts_that_git_or_a_terminal_could_misread() {
    let world = World::new();
    world.sandbox.script(
        "git",
        "echo \"$@\" >> \"$HOME/log\"; exec env PATH=\"${PATH#*:}\" git \"$@\"",
    );
    with(
        &world,
        "resources:\n- \"a\\e[31mb\"\n- \"https://github.com/acme/base?ref=v1\\n\"\n- https://github.com/acme/base?ref=-x\n- https://github.com/acme/base?ref=--upload-pack=touch\n- ssh://-oProxyCommand=touch/acme/base?ref=v1\n- git@-oProxyCommand:acme/base?ref=v1\n- -x@host/acme/base\npatches:\n- path: \"https://files.example.com/a\\tb\"\n",
    );
    let output = world.refused(&["app"]);
    output
        .stderr_has("error: the reference holds control characters\n")
        .stderr_has("  at app/kustomization.yaml:2:3: resources[0]\n")
        .stderr_has("  at app/kustomization.yaml:3:3: resources[1]\n")
        .stderr_has("app/kustomization.yaml:4:3: resources[2]: `https://github.com/acme/base?ref=-x` is refused: ")
        .stderr_has("app/kustomization.yaml:5:3: resources[3]: ")
        .stderr_has("app/kustomization.yaml:6:3: resources[4]: ")
        .stderr_has("app/kustomization.yaml:7:3: resources[5]: ")
        .stderr_has("app/kustomization.yaml:8:3: resources[6]: ")
        .stderr_has("  at app/kustomization.yaml:10:9: patches[0].path\n")
        .lacks("\u{1b}[31m");
    assert_eq!(world.server.log(), [""; 0]);
    // Nothing was started for any of these.
    let log = std::fs::read_to_string(world.sandbox.path("home/log")).unwrap();
    assert!(log.contains("rev-parse"), "{log}");
    assert!(
        !log.contains("fetch") && !log.contains("ls-remote"),
        "{log}"
    );
}

#[test]
fn names_of_files_do_not_paint_the_terminal() {
    let world = World::new();
    let upstream = world.upstream("acme/base");
    upstream.write("dir\u{1b}[31m/kustomization.yaml", "nonsense: 1\n");
    upstream.symlink("link", "dir\u{1b}[31m");
    upstream.commit("first");
    upstream.git(&["tag", "v1"]);
    with(
        &world,
        "resources: ['https://github.com/acme/base//link?ref=v1']\n",
    );
    world
        .refused(&["app"])
        .stderr_has("nonsense")
        .lacks("\u{1b}[31m");
}

#[test]
fn a_linked_directory_out_of_the_scope() {
    let world = World::new();
    world.work.symlink("app/linked", "../other");
    with(&world, "resources: [map.yaml, linked]\n");
    world.commit(&[("other/kustomization.yaml", "namePrefix: a-\n")]);
    world
        .refused(&["app"])
        .stderr_has(
            "app/kustomization.yaml:1:23: resources[1]: `linked` lies outside the scope `app`",
        )
        .stderr_has("hint: name a directory that holds both: --scope ");
}

#[test]
fn files_of_a_submodule_are_not_in_the_repository() {
    let world = World::new();
    let other = world.upstream_of("acme/base", &[("kustomization.yaml", "namePrefix: a-\n")]);
    with(
        &world,
        "resources: [sub]\nconfigMapGenerator:\n- {name: g, files: [sub/kustomization.yaml]}\n",
    );
    let add = [
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
    ];
    let from = [other.path().to_str().unwrap(), "app/sub"];
    world.work.git(&[&add[..], &from].concat());
    world.work.commit("submodule");
    world
        .refused(&["app"])
        .stderr_has("resources[0]: `sub` lies in the submodule `app/sub`, whose files this repository does not hold")
        .stderr_has("configMapGenerator[0].files[0]: `sub/kustomization.yaml` lies in the submodule `app/sub`")
        .stderr_has("hint: name the submodule's repository by URL");
}

#[test]
fn urls_that_name_no_repository() {
    let world = World::new();
    for (url, reason) in [
        (
            "https://files.example.com/map.yaml",
            "it names no repository",
        ),
        ("file:////tmp//x", "it names no repository"),
        (
            "https://github.com/acme/base.git//a/../../b",
            "its directory leaves the repository",
        ),
    ] {
        with(
            &world,
            &format!("resources: [map.yaml]\ncomponents: ['{url}']\n"),
        );
        world
            .says_no(&["app"])
            .stderr_has(&format!("app/kustomization.yaml:2:14: components[0]: `{url}` is not the URL of a git repository: {reason}"))
            .stderr_has("hint: write it as https://HOST/ORG/REPO//DIRECTORY?ref=REF");
    }
}

#[test]
fn a_shared_list_that_would_have_to_become_two() {
    let world = World::new();
    world.file("https://files.example.com/a%20b.yaml", config_map("map"));
    with(
        &world,
        "resources: &all ['https://files.example.com/a%20b.yaml']\nconfigMapGenerator:\n- name: g\n  files: *all\n",
    );
    world
        .refused(&["app"])
        .stderr_has("app/kustomization.yaml:1:18: cannot be rewritten: the fields that share this value by an anchor need different values")
        .stderr_has("hint: write the value out where it is used");
}

#[test]
fn git_directories_are_not_copied() {
    let world = World::new();
    world.commit(&[(
        "kustomization.yaml",
        "configMapGenerator:\n- name: g\n  files: [.git/config, .git/HEAD]\n",
    )]);
    let output = world.refused(&[".", "../out", "--no-commit"]);
    output
        .stderr_has("kustomization.yaml:3:11: configMapGenerator[0].files[0]: `.git/config` cannot be written: ")
        .stderr_has("kustomization.yaml:3:24: configMapGenerator[0].files[1]: `.git/HEAD` cannot be written: ")
        .stderr_has("hint: git cannot store that name");
    assert!(!world.sandbox.path("out").exists());
    // A commit holds no such files.
    world.refused(&[".", "out"]).stderr_has("`.git/config` ");
}

#[test]
fn names_that_a_lock_cannot_hold() {
    let world = World::new();
    with(&world, "resources: ['a:b.yaml']\n");
    world.commit(&[("app/a:b.yaml", &config_map("map"))]);
    world
        .refused(&["app"])
        .stderr_has("cannot write kustomize-localize.lock: the path `a:b.yaml` begins like a drive of Windows")
        .stderr_has("hint: rename it: the lock must mean the same on every system");
    with(&world, "resources: ['a\\b.yaml']\n");
    world.commit(&[("app/a\\b.yaml", &config_map("map"))]);
    world
        .refused(&["app"])
        .stderr_has("the path `a\\b.yaml` holds a backslash");
}
