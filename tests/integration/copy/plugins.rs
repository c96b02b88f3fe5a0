//! Roots in `generators`, `transformers` and `validators`: directories and repositories whose resources are plugin
//! configurations, which name files of the kustomization that lists them.

use crate::support::{Repo, World, config_map};

const FILES: &str = "https://files.example.com";
const GENS: &str = "https://github.com/acme/gens//gens?ref=v1";

fn generator(name: &str, files: &str) -> String {
    format!(
        "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata:\n  name: {name}\nfiles: [{files}]\n"
    )
}

/// A world in which `app` lists a repository of generators and one of transformers. They name files of `app`, and a
/// remote one.
fn world() -> World {
    let world = World::new();
    world.file(&format!("{FILES}/far.txt"), "far\n");
    world.upstream_of(
        "acme/gens",
        &[
            (
                "gens/kustomization.yaml",
                "resources: [one.yaml, ../more]\nnamePrefix: p-\n",
            ),
            ("gens/one.yaml", &generator("one", "files/near.txt")),
            // Not this one: kustomize looks beside the kustomization that lists it.
            ("gens/files/near.txt", "wrong\n"),
            ("more/kustomization.yaml", "resources: [two.yaml]\n"),
            (
                "more/two.yaml",
                &generator("two", &format!("key={FILES}/far.txt")),
            ),
        ],
    );
    world.upstream_of(
        "acme/changes",
        &[
            ("kustomization.yaml", "resources: [patch.yaml]\n"),
            (
                "patch.yaml",
                "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: p}\npath: patch.json\ntarget: {kind: ConfigMap}\n",
            ),
        ],
    );
    world.commit(&[
        (
            "app/kustomization.yaml",
            &format!("resources: [map.yaml]\ngenerators:\n- {GENS} # theirs\ntransformers: ['git@github.com:acme/changes?ref=v1']\n"),
        ),
        ("app/map.yaml", &config_map("map")),
        ("app/files/near.txt", "near\n"),
        (
            "app/patch.json",
            "[{\"op\": \"add\", \"path\": \"/metadata/labels\", \"value\": {\"patched\": \"yes\"}}]",
        ),
    ]);
    let upstream = world.sandbox.path("upstream");
    world.sandbox.pretend(
        "git@github.com:",
        &format!("file://{}/", upstream.display()),
    );
    world
}

const BROUGHT: &str = "localized-files/github.com/acme/gens/v1";

#[test]
fn repositories_of_configurations_come_along() {
    let world = world();
    let output = world.work.run(&["app"]);
    output
        .success()
        .lacks("warning")
        .stdout_has("verified: builds are identical: ");
    let copy = world.clone_of_branch();
    assert_eq!(
        copy.read("localized-app/kustomization.yaml"),
        format!(
            "resources: [map.yaml]\ngenerators:\n- {BROUGHT}/gens # theirs\ntransformers: ['localized-files/github.com/acme/changes/v1']\n"
        )
    );
    // Their path starts at the kustomization that lists them, and local parts stay.
    assert_eq!(
        copy.read(&format!("localized-app/{BROUGHT}/more/two.yaml")),
        generator("two", "key=localized-files/files.example.com/far.txt")
    );
    assert_eq!(
        copy.read(&format!("localized-app/{BROUGHT}/gens/one.yaml")),
        generator("one", "files/near.txt")
    );
    assert_eq!(
        copy.read("localized-app/localized-files/files.example.com/far.txt"),
        "far\n"
    );
    world.same_build("app", &copy, "localized-app");
    // Again, from what the branch holds.
    world
        .work
        .run(&["app", "--offline"])
        .success()
        .stdout_has("nothing to do");
    copy.run(&["check", "localized-app"]).success();
}

#[test]
fn they_are_locked_and_localized_in_place() {
    let world = world();
    let check = world.work.run(&["check"]);
    check
        .fails(1)
        .stdout_has("app/kustomization.yaml:3:3")
        .stdout_has("neither localized nor locked")
        .lacks("cannot be localized");
    world.work.run(&["lock"]).success();
    world.work.git(&["add", "--all"]);
    world.work.run(&["check"]).success().lacks("warning");
    let lock = world.work.read("kustomize-localize.lock");
    for entry in ["acme/gens", "acme/changes", "far.txt"] {
        assert!(lock.contains(entry), "{lock}");
    }

    let before = built(&world, &world.work, "app");
    let localize = ["--in-place", "--no-commit", "app"];
    world.work.run(&localize).success().lacks("warning");
    world.work.git(&["add", "--all"]);
    assert_eq!(built(&world, &world.work, "app"), before);
    world.work.run(&["check"]).success().lacks("warning");
    assert_eq!(
        world.work.read(&format!("app/{BROUGHT}/more/two.yaml")),
        generator("two", "key=localized-files/files.example.com/far.txt")
    );
    let state = world.work.state();
    world.work.run(&localize).success();
    state.assert_same(&world.work.state());
}

#[test]
fn missing_local_plugin_files_stop_nothing() {
    let of_url = format!("generators: ['{FILES}/gen.yaml']\n");
    let gone = generator("gone", "gone.txt");
    let chart = "apiVersion: builtin\nkind: HelmChartInflationGenerator\nmetadata: {name: c}\nname: web\nreleaseName: web\n";
    for (fields, configuration) in [
        ("generators: [gen.yaml]\n", &gone[..]),
        (
            "generators: ['https://github.com/acme/gone?ref=v1']\n",
            &gone,
        ),
        (&of_url, &gone),
        (&of_url, &generator("beyond", "../beyond.txt")),
        (&of_url, chart),
        (
            "helmCharts: [{name: web, repo: ../base, version: '1'}]\n",
            "",
        ),
        ("helmCharts: [{name: web}]\n", ""),
    ] {
        for more in [&[][..], &["--no-commit"]] {
            let world = World::new();
            world.file(&format!("{FILES}/app.yaml"), config_map("app"));
            world.file(&format!("{FILES}/gen.yaml"), configuration);
            world.upstream_of(
                "acme/gone",
                &[
                    ("kustomization.yaml", "resources: [gen.yaml]\n"),
                    ("gen.yaml", configuration),
                ],
            );
            let text = format!("resources: ['{FILES}/app.yaml']\n{fields}");
            world.commit(&[
                ("app/kustomization.yaml", &text),
                ("app/gen.yaml", configuration),
            ]);
            let run = |args: &[&str]| world.work.run(&[args, more].concat());
            run(&["--in-place", "--no-verify", "-v"])
                .success()
                .stderr_has("warning[");
            let place = "app/localized-files/files.example.com/app.yaml";
            match more {
                [] => world
                    .work
                    .git(&["show", &format!("localized/main:{place}")]),
                _ => world.work.read(place),
            };
            // A copy has to be whole.
            world.work.run(&["app", "copy", "--no-commit"]).fails(2);
        }
    }
}

/// Returns what kustomize builds, if there is one.
fn built(world: &World, repo: &Repo, target: &str) -> Option<String> {
    let kustomize = crate::support::Kustomize::find()?;
    let output = kustomize.build(&world.sandbox, repo.path(), target);
    Some(output.success().stdout.clone())
}

#[test]
fn a_newer_version_is_brought_in_by_update() {
    let world = world();
    world
        .work
        .run(&["--in-place", "--no-commit", "app"])
        .success();
    world.work.commit("localized");
    world.file(&format!("{FILES}/far.txt"), "further\n");
    world
        .work
        .run(&["update", &format!("{FILES}/far.txt")])
        .success();
    assert_eq!(
        world
            .work
            .read("app/localized-files/files.example.com/far.txt"),
        "further\n"
    );
    world.work.git(&["add", "--all"]);
    world.work.run(&["check"]).success();
}

#[test]
fn roots_of_configurations_may_be_nested_across_repositories() {
    let world = World::new();
    world.file(
        &format!("{FILES}/three.yaml"),
        generator("three", "near.txt"),
    );
    world.upstream_of(
        "acme/inner",
        &[
            (
                "kustomization.yaml",
                &format!("resources: [two.yaml, {FILES}/three.yaml]\n"),
            ),
            ("two.yaml", &generator("two", "near.txt")),
        ],
    );
    world.upstream_of(
        "acme/outer",
        &[(
            "kustomization.yaml",
            "resources: ['https://github.com/acme/inner?ref=v1']\n",
        )],
    );
    world.commit(&[
        ("app/kustomization.yaml", "generators: [../gens]\n"),
        ("app/near.txt", "near\n"),
        (
            "gens/kustomization.yaml",
            "resources: [one.yaml, 'https://github.com/acme/outer?ref=v1']\n",
        ),
        ("gens/one.yaml", &generator("one", "./near.txt")),
    ]);
    let copy = world.localized(&["app", "--scope", "."]);
    world.same_build("app", &copy, "localized-app/app");
}

#[test]
fn one_directory_serves_several_kustomizations() {
    let world = World::new();
    world.commit(&[
        ("kustomization.yaml", "resources: [one, two]\n"),
        (
            "one/kustomization.yaml",
            "generators: [../gens]\nnamePrefix: one-\n",
        ),
        (
            "two/kustomization.yaml",
            "generators: [../gens]\nnamePrefix: two-\n",
        ),
        ("one/near.txt", "one\n"),
        ("two/near.txt", "two\n"),
        ("gens/kustomization.yaml", "resources: [one.yaml]\n"),
        ("gens/one.yaml", &generator("one", "near.txt")),
    ]);
    let copy = world.localized(&[".", "copy"]);
    world.same_build(".", &copy, "copy");
}

#[test]
fn configurations_that_are_changed_before_use_are_refused() {
    let world = World::new();
    let patch = "resources: [one.yaml]\npatches:\n- patch: '[{\"op\": \"replace\", \"path\": \"/files/0\", \"value\": \"b.txt\"}]'\n  target: {kind: ConfigMapGenerator}\n";
    world.commit(&[
        ("app/kustomization.yaml", "generators: [gens]\n"),
        ("app/a.txt", "a\n"),
        ("app/b.txt", "b\n"),
        ("app/gens/kustomization.yaml", patch),
        ("app/gens/one.yaml", &generator("one", "a.txt")),
    ]);
    world
        .refused(&["app"])
        .stderr_has("app/gens/kustomization.yaml:2:1: patches: `app/gens` is listed for its plugin configurations, and `patches` changes them before they are used")
        .stderr_has("hint: build it once, and list what comes out as a file: kustomize build DIRECTORY > plugins.yaml");
    world
        .work
        .run(&["check"])
        .fails(1)
        .stdout_has("error[function]")
        .stdout_has("app/gens/kustomization.yaml:2:1");

    // A repository of others, too.
    world.upstream_of(
        "acme/gens",
        &[
            ("kustomization.yaml", patch),
            ("one.yaml", &generator("one", "a.txt")),
        ],
    );
    world.commit(&[(
        "app/kustomization.yaml",
        "generators: ['https://github.com/acme/gens?ref=v1']\n",
    )]);
    world
        .refused(&["app"])
        .stderr_has("https://github.com/acme/gens?ref=v1: kustomization.yaml:2:1: patches: ");

    // A plugin without paths can become one with paths, by a patch of its `apiVersion`.
    world.commit(&[
        (
            "app/kustomization.yaml",
            "resources: [map.yaml]\ntransformers: [names]\n",
        ),
        ("app/map.yaml", &config_map("map")),
        (
            "app/names/kustomization.yaml",
            "resources: [prefix.yaml]\npatches:\n- patch: '[{\"op\": \"replace\", \"path\": \"/prefix\", \"value\": \"b-\"}]'\n  target: {kind: PrefixTransformer}\n",
        ),
        (
            "app/names/prefix.yaml",
            "apiVersion: builtin\nkind: PrefixTransformer\nmetadata: {name: p}\nprefix: a-\nfieldSpecs: [{path: metadata/name}]\n",
        ),
    ]);
    world
        .refused(&["app"])
        .stderr_has("app/names/kustomization.yaml:2:1: patches: ");

    // Another spelling is not a change.
    world.work.write(
        "app/names/kustomization.yaml",
        "resources: [prefix.yaml]\nnamePrefix: b-\ncommonAnnotations: {a: b}\n",
    );
    world.commit(&[]);
    let copy = world.localized(&["app"]);
    world.same_build("app", &copy, "localized-app");
}

#[test]
fn roots_of_configurations_that_lead_back_are_refused() {
    let world = World::new();
    let cycle = "leads back to itself";
    world.commit(&[
        ("app/kustomization.yaml", "generators: [gens]\n"),
        ("app/gens/kustomization.yaml", "resources: [../../more]\n"),
        ("more/kustomization.yaml", "resources: [../app/gens]\n"),
    ]);
    world
        .refused(&["app", "--scope", "."])
        .stderr_has("cycle")
        .stderr_has(cycle);
    world.upstream_of(
        "acme/self",
        &[(
            "kustomization.yaml",
            "generators: ['https://github.com/acme/self?ref=v1']\n",
        )],
    );
    world.commit(&[(
        "app/kustomization.yaml",
        "generators: ['https://github.com/acme/self?ref=v1']\n",
    )]);
    world.refused(&["app"]).stderr_has(cycle);
}

#[test]
fn configurations_of_others_reach_no_further_than_ours() {
    let world = World::new();
    let secret = world.sandbox.path("secret");
    std::fs::create_dir_all(&secret).unwrap();
    std::fs::write(secret.join("x.txt"), "secret\n").unwrap();
    world.commit(&[(
        "app/kustomization.yaml",
        "generators: ['https://github.com/acme/gens?ref=v1']\n",
    )]);
    let gens = world.upstream("acme/gens");
    gens.write("kustomization.yaml", "resources: [one.yaml]\n");
    for (file, message) in [
        (
            format!("{}/x.txt", secret.display()),
            "is an absolute path, which leads to nothing in this repository",
        ),
        (
            "../../x.txt".to_owned(),
            "lies outside its kustomization root",
        ),
        ("gone.txt".to_owned(), "does not exist"),
    ] {
        gens.write("one.yaml", generator("one", &file));
        gens.commit("hostile");
        gens.git(&["tag", "-f", "v1"]);
        world
            .says_no(&["app"])
            .stderr_has("one.yaml:5:9: generators[0] > ConfigMapGenerator.files[0]: ")
            .stderr_has(message);
    }
    // A configuration that was downloaded names no repository of this machine.
    gens.write(
        "kustomization.yaml",
        format!("resources: ['file://{}?ref=main']\n", secret.display()),
    );
    gens.commit("hostile");
    gens.git(&["tag", "-f", "v1"]);
    world
        .says_no(&["app"])
        .stderr_has("a remote repository may not name a path of this machine");
}
