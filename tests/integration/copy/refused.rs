//! Refusals: with file, line and field, and nothing changed.

use super::Refused;
use crate::support::{Kustomize, Transcript, World, config_map, rows};

const COMPONENT: &str = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n";

fn add_absolute_paths(all: &mut Refused<'_>) {
    let top = all.work.path().display();
    let (gone, base) = (format!("{top}/in/abs/gone/x"), format!("{top}/in/good/base"));
    let component = format!("{top}/in/good/component");
    for (name, field, path, said) in [
        ("etc", "crds", "/etc/hostname", "is an absolute path"),
        ("out", "crds", &format!("{top}/x.json"), "is outside its"),
        ("gone", "crds", &gone, "there is no "),
        ("root", "resources", &base, ":1:13: "),
        ("part", "components", &component, ":1:14: "),
    ] {
        let text = format!("{field}: [{path}]\n");
        all.add(&format!("abs/{name}"), &text, said);
    }
}

fn add_links(all: &mut Refused<'_>) {
    let secret = all.work.path().join("../secret.yaml");
    std::fs::write(secret, config_map("secret")).unwrap();
    let out = "../../../../secret.yaml";
    for (name, link, said) in [
        ("out", out, "to `../../../../secret.yaml`, outside of"),
        ("up", "../out/map.yaml", "is outside its kustom"),
        ("loop", "x", "form a loop"),
        ("etc", "/etc", "to `/etc`, outside of the repository"),
        ("dangling", "gone.yaml", "no `in/link/dangling/gone.yaml`"),
    ] {
        all.work.symlink(&format!("in/link/{name}/x"), link);
        all.add(&format!("link/{name}"), "resources: [x]\n", said);
    }
    // A kustomization file that is a link out of its root is none.
    let kustomization = "in/link/root/x/kustomization.yaml";
    all.work.symlink(kustomization, "../../out/map.yaml");
    all.add("link/root", "resources: [x]\n", "`in/link/root/x/kustomization.yaml` is not a file");
}

fn add_cycles(all: &mut Refused<'_>) {
    for (name, next) in [
        ("b", "resources: [../a]\n"),
        ("d", &format!("{COMPONENT}resources: [../c]\n")),
        ("up", "namePrefix: a-\n"),
        ("far/c", "resources: [../a]\n"),
        ("far/a", "namePrefix: a-\n"),
    ] {
        let place = format!("in/cycle/{name}/kustomization.yaml");
        all.work.write(&place, next);
    }
    for (name, next, chain) in [
        ("dot", "resources: [.]\n", &["dot", "dot"][..]),
        ("name", "resources: [../name]\n", &["name", "name"]),
        ("a", "resources: [../b]\n", &["a", "b", "a"]),
        ("c", "components: [../d]\n", &["c", "d", "c"]),
        ("up/app", "resources: [..]\n", &["up/app", "up"]),
        ("far/a/b", "resources: [../../c]\n", &["far/a/b", "far/c", "far/a"]),
    ] {
        let chain: Vec<String> = chain.iter().map(|at| format!("`in/cycle/{at}`")).collect();
        all.add(&format!("cycle/{name}"), next, &chain.join(" -> "));
    }
}

#[test]
fn local_roots_that_kustomize_refuses_too() {
    let world = World::new();
    let work = &world.work;
    let write = |path: &str, text: &str| work.write(&format!("in/{path}"), text);
    let mut all = Refused::new(work);
    for (number, (text, said)) in [
        ("", "/kustomization.yaml:1:1"),
        ("kind: Kustomization\n", "/kustomization.yaml:1:1"),
        ("resources: [map.yaml]\nsuffix: x\n", ":2:1: suffix: "),
        ("resources: map.yaml\n", ":1:12: resources: "),
        ("resources:\n- map.yaml\n- {a: b}\n", ":3:3: resources[1]: "),
        ("kind: Deployment\nresources: [map.yaml]\n", ":1:7: kind: "),
        ("apiVersion: v2\nresources: [map.yaml]\n", ":1:13: apiV"),
        ("resources: [map.yaml\n", ":1:12: not valid YAML"),
        ("resources:\n\t- map.yaml\n", ":2:2: not valid YAML"),
        ("resources: [../good/component]\n", "is a Component"),
        ("components: [../good/base]\n", "is a Kustomization"),
        ("components: [map.yaml]\n", ":1:14: components[0]: `map"),
        ("patches:\n- path: ../good/base\n", "is a directory"),
        ("resources: [nowhere]\n", "there is no "),
        ("resources: [/nowhere]\n", "is an absolute path"),
        ("crds: [../../other.json]\n", ":1:8: crds[0]: `../.."),
    ]
    .into_iter()
    .enumerate()
    {
        all.add(&format!("row-{number}"), text, said);
    }
    all.add("none", "resources: [x]\n", "no kustomization in `in/none/x`");
    write("none/x/kustomization.YAML", "namePrefix: a-\n");
    all.add("two", "resources: [x]\n", "`in/two/x` contains several");
    write("two/x/kustomization.yaml", "namePrefix: a-\n");
    write("two/x/Kustomization", "namePrefix: a-\n");
    all.add("broken", "components: [x]\n", "/x/kustomization.yaml:3:1");
    write("broken/x/kustomization.yaml", &format!("{COMPONENT}x: 1\n"));

    add_absolute_paths(&mut all);
    add_links(&mut all);
    add_cycles(&mut all);
    let output = all.in_one_run(&[]);
    let mut lines = output.stderr.lines();
    let is_taken_for_a_root = |line: &str| line.contains("in/broken") && line.contains("is a Kustomization");
    assert!(!lines.any(is_taken_for_a_root), "{output:?}");
    if let Some(kustomize) = Kustomize::find() {
        for root in &all.roots {
            kustomize.build(&world.sandbox, work.path(), root).fails(1);
        }
    }
}

#[test]
fn targets_and_scopes_that_do_not_fit() {
    let world = World::new();
    let work = &world.work;
    work.symlink("alias", "app");
    work.symlink("away", "/etc");
    world.commit(&[
        ("app/kustomization.yaml", "resources: [map.yaml]\n"),
        ("app/map.yaml", &config_map("map")),
        ("none/map.yaml", &config_map("map")),
        ("two/kustomization.yaml", "namePrefix: a-\n"),
        ("two/Kustomization", "namePrefix: a-\n"),
    ]);
    let before = work.state();
    for args in [
        &["none"][..],
        &["two"],
        &["app/map.yaml"],
        &[""],
        &["app", "--scope", ""],
        &["app", "--scope", "none"],
        &["app", "--scope", "x"],
        &["https://github.com/acme/shop?ref=v1", "--scope", "."],
        &["https://github.com/acme/shop"],
    ] {
        for more in [&[][..], &["--no-commit"]] {
            world.says_no(&[args, more].concat());
        }
    }
    for option in ["--branch=x", "--rev=main", "-mx"] {
        let args = ["app", "--no-commit", option];
        world.says_no(&args);
    }
    // On disk any directory may be a target.
    world.says_no(&["away"]).says(expect![[r#"
        error: the target `away` is outside of the repository
          hint: name a directory of the repository, or copy the directory without it: `--no-commit`
    "#]]);
    before.assert_same(&work.state());
    work.run(&["alias"]).success().says(expect![[r#"
        localized app into localized-app on branch localized/main (<0>): 3 files written, 0 references rewritten, 0 removed
          not verified: --no-verify
          to look at it: git show --stat <0>
    "#]]);
}

const POINTER: &str = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n";

/// Repositories and pages that no kustomization should name.
fn hostile_upstreams(world: &World) {
    let upstream = world.upstream("acme/base");
    upstream.symlink("out", "../../secret");
    upstream.symlink("painted", "dir\u{1b}[31m");
    for (path, text) in [
        ("kustomization.yaml", "namePrefix: a-\n"),
        ("dir/map.yaml", &config_map("map")),
        ("one/kustomization.yaml", "resources: [../out/x.yaml]\n"),
        ("app/kustomization.yaml", "resources: [../dir/map.yaml]\n"),
        ("up/kustomization.yaml", "resources: [../../other]\n"),
        ("etc/kustomization.yaml", "resources: [/etc/hostname]\n"),
        ("gone/kustomization.yaml", "resources: [gone.yaml]\n"),
        ("big/kustomization.yaml", "crds: [big.bin]\n"),
        ("big/big.bin", POINTER),
        ("dir\u{1b}[31m/kustomization.yaml", "nonsense: 1\n"),
    ] {
        upstream.write(path, text);
    }
    let of = |name: &str| format!("resources: ['https://github.com/acme/{name}?ref=v1']\n");
    let next = of("up");
    world.upstream("acme/up").write("dir/kustomization.yaml", next);
    for (name, next) in
        [("self", of("self")), ("up", "resources: [dir]\n".to_owned()), ("ping", of("pong")), ("pong", of("ping"))]
    {
        let upstream = world.upstream(&format!("acme/{name}"));
        upstream.write("kustomization.yaml", next);
    }
    for name in ["base", "self", "up", "ping", "pong"] {
        let upstream = world.upstream(&format!("acme/{name}"));
        upstream.commit("first");
        upstream.git(&["tag", "v1"]);
    }
    for page in ["blob/v1/dir/map.yaml", "tree/v1/dir"] {
        let page = format!("https://github.com/acme/base/{page}");
        world.file(&page, "<!DOCTYPE html><html></html>");
    }
}

/// What is said of URLs of a scheme that kustomize does not know.
const UNREADABLE: &str = "kustomize cannot read `";
const NO_OCI: &str = "kustomize does not read OCI yet";

fn base(path: &str) -> String {
    format!("https://github.com/acme/base{path}?ref=v1")
}

/// Adds references that lead to nothing that could be brought in.
fn add_references(all: &mut Refused<'_>) {
    let (git, oci) = (UNREADABLE, NO_OCI);
    all.list(
        "remote",
        "resources",
        "",
        &[
            (&base("//nowhere"), "no directory `nowhere` in"),
            (&base("//dir/map.yaml"), "a file of a repository"),
            (&base("//dir"), "no kustomization in `"),
            (&base("//out"), "to `../../secret`, outside of the repository"),
            ("https://github.com/acme/base/blob/v1/dir/map.yaml", ""),
            ("https://github.com/acme/base/tree/v1/dir", ""),
            ("https://files.example.com/404.yaml", "404"),
            ("row@v1/base/x", ""),
            ("git://github.com/acme/base", git),
            ("s3::https://s3.amazonaws.com/bucket/x", git),
            ("oci://ghcr.io/acme/base:v1", oci),
            ("gh:acme/base", git),
        ],
    );
    let no_repository = "is not the URL of a git repository: it ";
    all.list(
        "component",
        "components",
        "",
        &[
            (&base(""), "is a Kustomization, which"),
            ("https://files.example.com/map.yaml", no_repository),
            ("file:////tmp//x", no_repository),
            ("https://github.com/acme/base.git//a/../../b", "its directory is outside"),
            ("oci://ghcr.io/acme/x:v1", oci),
        ],
    );
    all.list(
        "patch",
        "patches",
        "path: ",
        &[("oci://ghcr.io/acme/y:v1", oci), ("ssh://git@github.com/acme/base//x.yaml", "takes a file")],
    );
}

/// Adds upstreams in which something is wrong: it is reported there.
fn add_upstreams(all: &mut Refused<'_>) {
    for (directory, said) in [
        ("one", "the link `"),
        ("app", "is outside its kustomization root"),
        ("up", "`../../other` leads out of the repository"),
        ("etc", "`/etc/hostname` is an absolute path"),
        ("gone", "there is no "),
        ("painted", "nonsense"),
    ] {
        let text = format!("resources: ['{}']\n", base(&format!("//{directory}")));
        all.add(&format!("in-{directory}"), &text, "");
        all.said.push((base(""), said.to_owned()));
    }
    for (name, said) in [
        ("self", "self?ref=v1: .` -> `https://github.com/acme/self"),
        ("up//dir", "up?ref=v1: dir` -> `https://github.com/acme/up"),
        ("ping", "pong?ref=v1) -> `https://github.com/acme/ping"),
    ] {
        let text = format!("resources: ['https://github.com/acme/{name}?ref=v1']\n");
        all.add(&format!("cycle-{}", &name[..2]), &text, "");
        all.said.push(("cycle: ".to_owned(), said.to_owned()));
    }
}

/// Adds what is here, but not for a copy.
fn add_local_files(world: &World, all: &mut Refused<'_>) {
    all.work.symlink("in/linked/x", "../../other");
    all.work.write("other/kustomization.yaml", "namePrefix: a-\n");
    all.add("linked", "resources: [x]\n", "outside the scope `in`");
    let from = world.sandbox.path("upstream/acme/base");
    let from = from.to_str().unwrap();
    let add = ["submodule", "--quiet", "add", from, "in/sub/x"];
    let allow = ["-c", "protocol.file.allow=always"];
    all.work.git(&[&allow, &add[..]].concat());
    all.add("sub", "resources: [x]\n", "in the submodule `in/sub/x`");

    all.add(
        "key",
        "configMapGenerator: [{files: ['https://files.example.com/data.txt?a=b']}]\n",
        ":1:31: configMapGenerator[0].files[0]: expected a path, or `key=path` with one `=`",
    );
}

/// What a file holds is looked at where all of them are known.
#[test]
fn a_pointer_of_git_lfs_is_not_a_file() {
    let world = World::new();
    hostile_upstreams(&world);
    world.commit(&[("app/kustomization.yaml", "crds: [big.bin]\n"), ("app/big.bin", POINTER)]);
    world.refused(&["app"]).says(expect![[r#"
        error: `app/big.bin` is a Git LFS pointer, not the file itself
          hint: keep files that a build reads out of Git LFS (`git lfs migrate export`): a clone may contain only the pointers
    "#]]);
    world.commit(&[("app/kustomization.yaml", &format!("resources: ['{}']\n", base("//big")))]);
    world.refused(&["app"]).says(expect![[r#"
        error: `https://github.com/acme/base?ref=v1: big/big.bin` is a Git LFS pointer, not the file itself
          reached from app/kustomization.yaml:1:13 -> https://github.com/acme/base?ref=v1: big/kustomization.yaml:1:8
          hint: keep files that a build reads out of Git LFS (`git lfs migrate export`): a clone may contain only the pointers
    "#]]);
}

/// Everything is reported in one run, and without the load restrictor, which is not lifted for what is fetched.
#[test]
fn references_that_cannot_be_followed() {
    let world = World::new();
    let work = &world.work;
    hostile_upstreams(&world);
    let mut all = Refused::new(work);
    add_references(&mut all);
    add_upstreams(&mut all);
    add_local_files(&world, &mut all);
    work.decide("load-restrictor: none\n");
    let output = all.in_one_run(&[]);
    output
        .stderr_has("https://raw.githubusercontent.com/acme/base/v1/dir/map.yaml")
        .stderr_has("https://github.com/acme/base//dir?ref=v1")
        .lacks("\u{1b}[31m");
    assert_eq!(world.sandbox.leftovers(), crate::support::NONE);
    if let Some(kustomize) = Kustomize::find() {
        let none = "--load-restrictor=LoadRestrictionsNone";
        let args = ["build", "in/in-app", none];
        kustomize.run(&world.sandbox, work.path(), &args).fails(1).stderr_has("is not in or below");
    }
    // Reported once each, in the order in which a person would read the files.
    let start = "error: in/remote/kustomization.yaml:";
    let lines = output.stderr.lines();
    let numbers = lines.filter_map(|line| line.strip_prefix(start)?.split(':').next());
    let numbers: Vec<usize> = numbers.map(|number| number.parse().unwrap()).collect();
    assert_eq!(numbers, (2..14).collect::<Vec<_>>(), "{output:?}");
    for url in ["git://github.com/acme/base", "oci://ghcr.io/acme/base:v1"] {
        world.says_no(&[url]);
    }
    world.says_no(&["in/sub/x"]).says(expect![[r#"
        error: the target `in/sub/x` is in a submodule
          hint: run it in the submodule, or name its repository by URL
    "#]]);
}

/// For kustomize, not for anybody else: the repository at `v` is another one than at `v1`.
#[test]
fn a_url_that_begins_one_on_its_chain() {
    let world = World::new();
    world.sandbox.builds();
    let upstream = world.upstream_of(
        "acme/base",
        &[("kustomization.yaml", "resources: [map.yaml]\n"), ("map.yaml", &config_map("map"))],
    );
    upstream.git(&["tag", "v"]);
    upstream.git(&["tag", "w"]);
    world.commit(&[("app/kustomization.yaml", "resources: ['https://github.com/acme/base?ref=v1']\n")]);
    let names = |reference: &str| {
        let text = format!("resources: ['https://github.com/acme/base?ref={reference}']\n");
        upstream.write("kustomization.yaml", text);
        upstream.commit(reference);
        upstream.git(&["tag", "-f", "v1"]);
    };
    names("v");
    let output = world.work.run(&["app"]);
    output.success();
    if let Some(kustomize) = Kustomize::find() {
        output.says(expect![[r#"
            localized app into localized-app on branch localized/main (<0>): 7 files written, 2 references rewritten, 0 removed
              added https://github.com/acme/base?ref=v <1>
              added https://github.com/acme/base?ref=v1 <2>
              not verified: 1 root not built (kustomize/…, network closed)
              not built: app: in `tmp/…`: accumulating resources: accumulation err='accumulating resources from 'https://github.com/acme/base?ref=v': URL is a git repository': cycle detected: URI 'https://github.com/acme/base?ref=v' referenced by previous URI 'https://github.com/acme/base?ref=v1'
              to look at it: git show --stat <0>
        "#]]);
        kustomize.build(&world.sandbox, world.work.path(), "app").fails(1);
    }
    names("w");
    let clone = world.localized(&["app"]);
    world.same_build("app", &clone, "localized-app");
}

#[test]
fn a_component_that_cannot_be_read_has_no_kind() {
    let large = format!("{COMPONENT}{}", "# \n".repeat(3_400_000));
    let world = World::new();
    let user = "components: [../c, ../d]\n";
    world.commit(&[
        ("a/kustomization.yaml", user),
        ("b/kustomization.yaml", user),
        ("c/kustomization.yaml", POINTER),
        ("d/kustomization.yaml", &large),
        ("top/kustomization.yaml", "resources: [../a, ../b, ../c, ../d]\n"),
    ]);
    let commands = [
        &["check"][..],
        &["check", "top"],
        &["lock", "-v"],
        &["branch", "--dry-run", "--no-verify"],
        &["top", "--scope", "."],
    ];
    let mut transcript = Transcript::default();
    for command in rows(commands, 2) {
        let output = world.work.run(command);
        let said = format!("{}{}", output.stdout, output.stderr);
        for problem in
            ["`c/kustomization.yaml` is a Git LFS pointer", "`d/kustomization.yaml` has more than 10000000 bytes"]
        {
            assert_eq!(said.matches(problem).count(), 1, "{command:?}: {said}");
        }
        transcript.add(&output);
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize check
        checked 5 kustomizations with 8 references in the working tree: 2 could not be checked
        error: `c/kustomization.yaml` is a Git LFS pointer, not the file itself
          hint: keep files that a build reads out of Git LFS (`git lfs migrate export`): a clone may contain only the pointers
        error: `d/kustomization.yaml` has more than 10000000 bytes
          hint: split it
        $ git kustomize-localize lock -v
        nothing was written
          2 references not followed: see `git kustomize-localize check`
          not followed: `c/kustomization.yaml` is a Git LFS pointer, not the file itself
          not followed: `d/kustomization.yaml` has more than 10000000 bytes
        $ git kustomize-localize top --scope . --no-verify
        error: `c/kustomization.yaml` is a Git LFS pointer, not the file itself
          hint: keep files that a build reads out of Git LFS (`git lfs migrate export`): a clone may contain only the pointers
        error: `d/kustomization.yaml` has more than 10000000 bytes
          hint: split it
    "#]]);
    world.work.run(&["tree"]).says(expect![[r#"
        top
        ├── a
        │   ├── c (invalid)
        │   └── d (invalid)
        ├── b
        │   ├── c (invalid)
        │   └── d (invalid)
        ├── c (invalid)
        └── d (invalid)
    "#]]);
}

#[test]
fn texts_that_git_or_a_terminal_could_misread() {
    let world = World::new();
    world.sandbox.script("git", "echo \"$@\" >> \"$HOME/log\"; exec env PATH=\"${PATH#*:}\" git \"$@\"");
    let mut all = Refused::new(&world.work);
    all.list(
        "options",
        "resources",
        "",
        &[
            ("https://github.com/acme/base?ref=-x", "is refused: "),
            ("https://github.com/acme/base?ref=--upload-pack=x", ""),
            ("ssh://-oProxyCommand=touch/acme/base?ref=v1", ""),
            ("git@-oProxyCommand:acme/base?ref=v1", ""),
            ("-x@host/acme/base", ""),
        ],
    );
    let escape = "resources: [\"a\\e[31mb\"]\n";
    all.add("escape", escape, "/kustomization.yaml:1:13: resources[0]");
    let line = "resources: [\"https://github.com/acme/base?ref=v1\\n\"]\n";
    all.add("line", line, "/kustomization.yaml:1:13: resources[0]");
    let tab = "crds: [\"https://files.example.com/a\\tb\"]\n";
    all.add("tab", tab, "/kustomization.yaml:1:8: crds[0]");
    all.in_one_run(&[]).says(expect![[r#"
        error: the reference contains control characters
          at in/escape/kustomization.yaml:1:13: resources[0]
          at in/line/kustomization.yaml:1:13: resources[0]
          at in/tab/kustomization.yaml:1:8: crds[0]
        error: in/options/kustomization.yaml:2:3: resources[0]: `https://github.com/acme/base?ref=-x` is refused: its ref begins with `-`
        error: in/options/kustomization.yaml:3:3: resources[1]: `https://github.com/acme/base?ref=--upload-pack=x` is refused: its ref begins with `-`
        error: in/options/kustomization.yaml:4:3: resources[2]: `ssh://-oProxyCommand=touch/acme/base?ref=v1` is refused: its host begins with `-`
        error: in/options/kustomization.yaml:5:3: resources[3]: `git@-oProxyCommand:acme/base?ref=v1` is refused: its host begins with `-`
          hint: rewrite it, and check where it came from: text that git could misread is never passed on
        error: in/options/kustomization.yaml:6:3: resources[4]: there is no `in/options/-x@host/acme/base`
          hint: add it, or remove the reference
    "#]]);
    assert_eq!(world.server.log(), crate::support::NONE);
    // Nothing was started for any of these.
    let log = std::fs::read_to_string(world.sandbox.path("home/log")).unwrap();
    assert!(log.contains("rev-parse"), "{log}");
    assert!(!log.contains("fetch"), "{log}");
    assert!(!log.contains("ls-remote"), "{log}");
}

/// What can be read, and not be written as it would have to be.
#[test]
fn results_that_cannot_be_written() {
    let world = World::new();
    let work = &world.work;
    let files = "https://files.example.com";
    for path in ["map.yaml", "a%20b.yaml", "data.txt?a=b", "data.txt", "DATA.txt"] {
        world.file(&format!("{files}/{path}"), config_map("map"));
    }
    let mut all = Refused::new(work);
    all.add(
        "anchor",
        &format!("resources: &all ['{files}/a%20b.yaml']\nconfigMapGenerator: [{{files: *all}}]\n"),
        ":1:18: cannot be rewritten: ",
    );
    // The same text would have to become two.
    let generator = "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: p}\n";
    work.write("in/gen.yaml", format!("{generator}files: ['{files}/data.txt']\n"));
    all.add("shared", "generators: [../gen.yaml]\n", "");
    all.add("too", &format!("generators: [../gen.yaml]\npatches: [{{path: '{files}/DATA.txt'}}]\n"), "");
    all.said.push((String::new(), "several kustomizations list `in/gen.yaml`".to_owned()));
    work.decide("load-restrictor: none\n");
    all.in_one_run(&[]);
    all.in_one_run(&["../out", "--no-commit"]);
    assert!(!world.sandbox.path("out").exists());
    assert_eq!(world.sandbox.leftovers(), crate::support::NONE);
}

#[test]
fn names_that_cannot_be_stored() {
    let world = World::new();
    world.commit(&[
        ("a/kustomization.yaml", "resources: ['a:b.yaml']\n"),
        ("a/a:b.yaml", &config_map("map")),
        ("b/kustomization.yaml", "resources: ['a\\b.yaml']\n"),
        ("b/a\\b.yaml", &config_map("map")),
        ("c/kustomization.yaml", "crds: [kustomize-localize.lock]\n"),
        ("c/kustomize-localize.lock", "{}\n"),
        ("kustomization.yaml", "crds: [.git/config]\n"),
    ]);
    let mut transcript = Transcript::default();
    for (target, said) in [
        ("a", "the path `a:b.yaml` begins like a Windows drive"),
        ("b", "the path `a\\b.yaml` contains a backslash"),
        ("c", "contains its own file `kustomize-localize.lock`"),
        (".", "crds[0]: `.git/config` "),
    ] {
        transcript.add(&world.refused(&[target, "out"]));
        let on_disk = [target, "../out", "--no-commit"];
        world.refused(&on_disk).stderr_has(said);
        assert!(!world.sandbox.path("out").exists());
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize a out --no-verify
        error: cannot write kustomize-localize.lock: the path `a:b.yaml` begins like a Windows drive
          hint: rename that path: the lock must mean the same on every system
        $ git kustomize-localize b out --no-verify
        error: cannot write kustomize-localize.lock: the path `a\b.yaml` contains a backslash
          hint: rename that path: the lock must mean the same on every system
        $ git kustomize-localize c out --no-verify
        error: the target contains its own file `kustomize-localize.lock`
          hint: choose a scope above the target: `--scope DIR`
        $ git kustomize-localize . out --no-verify
        error: kustomization.yaml:1:8: crds[0]: `.git/config` is on disk, but not committed
          hint: git add -f -- :/.git/config
    "#]]);
    let clone = world.localized(&["c", "--scope", "."]);
    let lock = clone.read("localized-c/c/kustomize-localize.lock");
    assert_eq!(lock, "{}\n");
}
