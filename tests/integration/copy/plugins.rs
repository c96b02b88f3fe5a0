//! Roots in `generators`, `transformers` and `validators`: directories and repositories whose resources are plugin
//! configurations, which name files of the kustomization that lists them.

use super::Refused;
use crate::support::{Kustomize, World, config_map};

const FILES: &str = "https://files.example.com";
const GENS: &str = "https://github.com/acme/gens//gens?ref=v1";

fn generator(name: &str, files: &str) -> String {
    format!("apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata:\n  name: {name}\nfiles: [{files}]\n")
}

/// A world in which `app` lists a repository of generators and one of transformers. They name files of `app`, and a
/// remote one.
fn world() -> World {
    let world = World::new();
    world.file(&format!("{FILES}/far.txt"), "far\n");
    world.upstream_of(
        "acme/gens",
        &[
            ("gens/kustomization.yaml", "resources: [one.yaml, ../more]\nnamePrefix: p-\n"),
            ("gens/one.yaml", &generator("one", "files/near.txt")),
            // Not this one: kustomize looks beside the kustomization that lists it.
            ("gens/files/near.txt", "wrong\n"),
            ("more/kustomization.yaml", "resources: [two.yaml]\n"),
            ("more/two.yaml", &generator("two", &format!("key={FILES}/far.txt"))),
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
    world.sandbox.pretend("git@github.com:", &format!("file://{}/", upstream.display()));
    world
}

const BROUGHT: &str = "localized-files/github.com/acme/gens/v1";

#[test]
fn they_are_copied_locked_and_localized_in_place() {
    let world = world();
    let work = &world.work;
    world.verified(&["app"]);
    let copy = world.clone_of_branch();
    assert_eq!(
        copy.read("localized-app/kustomization.yaml"),
        format!(
            "resources: [map.yaml]\ngenerators:\n- {BROUGHT}/gens # theirs\ntransformers: ['localized-files/github.com/acme/changes/v1']\n"
        )
    );
    // Their path starts at the kustomization that lists them, and local parts stay.
    for (place, text) in [
        (&format!("{BROUGHT}/more/two.yaml"), generator("two", "key=localized-files/files.example.com/far.txt")),
        (&format!("{BROUGHT}/gens/one.yaml"), generator("one", "files/near.txt")),
    ] {
        assert_eq!(copy.read(&format!("localized-app/{place}")), text);
    }
    world.same_build("app", &copy, "localized-app");
    // Again, from what the branch holds.
    work.run(&["app", "--offline"]).success().says(expect![[r#"
        nothing to do: branch localized/main (<0>) already has app in localized-app
          verified: 1 build verified before, from the same inputs (kustomize/…)
    "#]]);
    copy.run(&["check", "localized-app"]).success();

    let check = work.run(&["check"]);
    check.fails(1).says(expect![[r#"
            error[remote-reference]: `https://github.com/acme/gens//gens?ref=v1` is neither localized nor locked
             --> app/kustomization.yaml:3:3
              |
            3 | - https://github.com/acme/gens//gens?ref=v1 # theirs
              |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ generators[0]
              = help: keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
              = help: or vendor it: git kustomize-localize vendor :/app

            error[remote-reference]: `git@github.com:acme/changes?ref=v1` is neither localized nor locked
             --> app/kustomization.yaml:4:16
              |
            4 | transformers: ['git@github.com:acme/changes?ref=v1']
              |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ transformers[0]

            note: repeated help is omitted: -v shows it
            for more: git kustomize-localize explain remote-reference
            checked 1 kustomization with 3 references in the working tree: 2 errors
        "#]]);
    work.run(&["lock"]).success();
    work.git(&["add", "--all"]);
    work.run(&["check"]).success().says(expect![[r#"
        checked 1 kustomization with 3 references in the working tree: no problems found
    "#]]);
    let lock = work.read("kustomize-localize.lock");
    for entry in ["acme/gens", "acme/changes", "far.txt"] {
        assert!(lock.contains(entry), "{lock}");
    }

    let kustomize = Kustomize::find();
    let built = || {
        let kustomize = kustomize.as_ref()?;
        let output = kustomize.build(&world.sandbox, work.path(), "app");
        Some(output.success().stdout.clone())
    };
    let before = built();
    let localize = ["vendor", "app"];
    work.run(&localize).success().says(expect![[r#"
        localized app: 10 files written, 3 references rewritten, 0 removed
          verified: builds are identical: 332 bytes (kustomize/…, network closed)
          to stage it: git add -f -- :/app/kustomization.yaml :/app/localized-files :/kustomize-localize.lock
    "#]]);
    work.git(&["add", "--all"]);
    assert_eq!(built(), before);
    work.run(&["check"]).success().says(expect![[r#"
        checked 4 kustomizations with 10 references in the working tree: no problems found
    "#]]);
    assert_eq!(
        work.read(&format!("app/{BROUGHT}/more/two.yaml")),
        generator("two", "key=localized-files/files.example.com/far.txt")
    );
    let state = work.state();
    work.run(&localize).success();
    state.assert_same(&work.state());
}

#[test]
fn a_newer_version_is_brought_in_by_update() {
    let world = world();
    let work = &world.work;
    work.run(&["vendor", "app"]).success();
    work.commit("localized");
    world.file(&format!("{FILES}/far.txt"), "further\n");
    work.run(&["update", &format!("{FILES}/far.txt")]).success();
    assert_eq!(work.read("app/localized-files/files.example.com/far.txt"), "further\n");
    work.git(&["add", "--all"]);
    work.run(&["check"]).success();
}

#[test]
fn roots_of_configurations_may_be_nested_across_repositories() {
    let world = World::new();
    world.file(&format!("{FILES}/three.yaml"), generator("three", "near.txt"));
    world.file(&format!("{FILES}/far.txt"), "far\n");
    world.upstream_of(
        "acme/inner",
        &[
            ("kustomization.yaml", &format!("resources: [two.yaml, {FILES}/three.yaml]\n")),
            ("two.yaml", &generator("two", "near.txt")),
        ],
    );
    world.upstream_of("acme/outer", &[("kustomization.yaml", "resources: ['https://github.com/acme/inner?ref=v1']\n")]);
    world.commit(&[
        ("app/kustomization.yaml", "generators: [../gens]\n"),
        ("app/near.txt", "near\n"),
        ("gens/kustomization.yaml", "resources: [one.yaml, ../more, 'https://github.com/acme/outer?ref=v1']\n"),
        ("gens/one.yaml", &generator("one", "./near.txt")),
        ("more/kustomization.yaml", "resources: [four.yaml]\n"),
        ("more/four.yaml", &generator("four", &format!("{FILES}/far.txt"))),
    ]);
    let copy = world.localized(&["app", "--scope", "."]);
    // Where kustomize looks for what they name: in the root that lists the directory.
    assert_eq!(
        copy.read("localized-app/more/four.yaml"),
        generator("four", "localized-files/files.example.com/far.txt")
    );
    let far = "localized-app/app/localized-files/files.example.com/far.txt";
    assert_eq!(copy.read(far), "far\n");
    world.same_build("app", &copy, "localized-app/app");
}

#[test]
fn one_directory_serves_several_kustomizations() {
    let world = World::new();
    world.commit(&[
        ("kustomization.yaml", "resources: [one, two]\n"),
        ("one/kustomization.yaml", "generators: [../gens]\nnamePrefix: one-\n"),
        ("two/kustomization.yaml", "generators: [../gens]\nnamePrefix: two-\n"),
        ("one/near.txt", "one\n"),
        ("two/near.txt", "two\n"),
        ("gens/kustomization.yaml", "resources: [one.yaml]\n"),
        ("gens/one.yaml", &generator("one", "near.txt")),
    ]);
    let copy = world.localized(&[".", "copy"]);
    world.same_build(".", &copy, "copy");
}

#[test]
fn configurations_that_cannot_be_followed_are_refused() {
    let world = World::new();
    let patch = "resources: [one.yaml]\npatches:\n- patch: '[{\"op\": \"replace\", \"path\": \"/files/0\", \"value\": \"b.txt\"}]'\n  target: {kind: ConfigMapGenerator}\n";
    let secret = world.sandbox.path("secret/x.txt").display().to_string();
    for (name, text, file) in [
        ("changed", patch, "map.yaml"),
        ("absolute", "resources: [one.yaml]\n", &*secret),
        ("up", "resources: [one.yaml]\n", "../../x.txt"),
        ("gone", "resources: [one.yaml]\n", "gone.txt"),
        ("file", "resources: ['file:///srv/x?ref=main']\n", ""),
        ("cycle", "generators: ['https://github.com/acme/cycle?ref=v1']\n", ""),
    ] {
        let files = [("kustomization.yaml", text), ("one.yaml", &generator("one", file))];
        world.upstream_of(&format!("acme/{name}"), &files);
    }
    let mut all = Refused::new(&world.work);
    for (name, said) in [
        ("changed", "v1: kustomization.yaml:2:1: patches: "),
        ("absolute", "/x.txt` is an absolute path"),
        ("up", "is outside its kustomization root"),
        ("gone", "there is no "),
        ("file", "may not reference a local path"),
        ("cycle", "leads back to itself"),
    ] {
        let text = format!("generators: ['https://github.com/acme/{name}?ref=v1']\n");
        all.add(name, &text, "");
        all.said.push((format!("/acme/{name}"), said.to_owned()));
    }
    let write = |path: &str, text: &str| world.work.write(&format!("in/{path}"), text);
    // A plugin without paths can become one with paths, by a patch of its `apiVersion`.
    let prefix = "apiVersion: builtin\nkind: PrefixTransformer\nmetadata: {name: p}\nprefix: a-\nfieldSpecs: [{path: metadata/name}]\n";
    let target = "ConfigMapGenerator";
    all.add("names", "transformers: [x]\n", "/x/kustomization.yaml:2:1: patches");
    write("names/x/kustomization.yaml", &patch.replace(target, "PrefixTransformer"));
    write("names/x/one.yaml", prefix);
    all.add("local", "generators: [x]\n", "/x/kustomization.yaml:2:1: patches");
    write("local/x/kustomization.yaml", patch);
    write("local/x/one.yaml", &generator("one", "map.yaml"));
    all.add("back", "generators: [x]\n", "leads back to itself");
    write("back/x/kustomization.yaml", "resources: [../y]\n");
    write("back/y/kustomization.yaml", "resources: [../x]\n");
    all.in_one_run(&[]);

    // Another spelling is not a change.
    world.commit(&[
        ("app/kustomization.yaml", "resources: [map.yaml]\ntransformers: [names]\n"),
        ("app/map.yaml", &config_map("map")),
        ("app/names/kustomization.yaml", "resources: [prefix.yaml]\nnamePrefix: b-\nnameSuffix: -c\n"),
        ("app/names/prefix.yaml", prefix),
    ]);
    let copy = world.localized(&["app"]);
    world.same_build("app", &copy, "localized-app");
}
