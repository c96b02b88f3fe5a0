//! The licenses of what is brought in come along, and go with it.

use crate::support::{Repo, Transcript, World, config_map};

const BASE: &str = "https://github.com/acme/base//deploy/app?ref=v1";
const COPY: &str = "localized-app/localized-files/github.com/acme/base/v1";
const HERE: &str = "app/localized-files/github.com/acme/base/v1";

fn upstream(world: &World) -> Repo {
    let base = world.upstream("acme/base");
    for (path, text) in [
        ("LICENSE", "the terms\n"),
        ("LICENSES/MIT.txt", "MIT\n"),
        ("LICENSES/data.yaml", "a: b\n"),
        ("other/LICENSE", "of something else\n"),
        ("notices/x", "a directory of another kind\n"),
        ("license-secret.yaml", "kind: Secret\n"),
        ("deploy/Copyright.md", "who\n"),
        ("deploy/app/notice.txt", "what\n"),
        ("deploy/app/License", "used\n"),
        ("deploy/app/map.yaml", &config_map("map")),
        (
            "deploy/app/kustomization.yaml",
            "resources: [map.yaml, ../inner]\nconfigMapGenerator:\n- {name: g, files: [License]}\n",
        ),
        ("deploy/inner/kustomization.yaml", "resources: [map.yaml]\n"),
        ("deploy/inner/map.yaml", &config_map("inner")),
        ("deploy/inner/NOTICE.md", "inner\n"),
    ] {
        base.write(path, text);
    }
    base.symlink("COPYING", "other/LICENSE");
    base.commit("first");
    base.git(&["tag", "v1"]);
    base
}

fn world() -> World {
    let world = World::new();
    upstream(&world);
    world.commit(&[("app/kustomization.yaml", &format!("resources: ['{BASE}']\n"))]);
    world
}

/// Returns the paths of the license files that a revision holds below `directory`.
fn licenses(repo: &Repo, revision: &str, directory: &str) -> Vec<String> {
    let files = repo.files(revision);
    let paths = files.iter().filter_map(|line| {
        let path = line.split_once(' ')?.1.strip_prefix(directory)?;
        let path = path.trim_start_matches('/');
        let words = ["license", "licence", "notice", "copy"];
        let lower = path.to_lowercase();
        words.iter().any(|word| lower.contains(word)).then(|| path.to_owned())
    });
    paths.collect()
}

/// What comes along, from the top and from beside the roots; one of them is in use as well.
const ALL: [&str; 6] =
    ["COPYING", "LICENSE", "LICENSES/MIT.txt", "deploy/app/License", "deploy/app/notice.txt", "deploy/inner/NOTICE.md"];

#[test]
fn they_come_along_in_a_copy_and_in_place_and_are_in_the_lock() {
    let mut transcript = Transcript::default();
    for (args, place, lock) in [
        (&["app"][..], COPY, "localized-app/kustomize-localize.lock"),
        (&["branch"], HERE, "kustomize-localize.lock"),
        (&[BASE, "localized-app"], "localized-app", "localized-app/kustomize-localize.lock"),
    ] {
        let world = world();
        let work = &world.work;
        world.verified(args);
        let clone = world.clone_of_branch();
        assert_eq!(licenses(&clone, "HEAD", place), ALL, "{args:?}");
        assert_eq!(clone.read(&format!("{place}/COPYING")), "of something else\n");
        let text = clone.read(lock);
        assert!(text.contains("source: COPYING\n"), "{text}");
        clone.run(&["verify"]).success();
        work.run(&["verify", "localized/main", "--rebuild"]).success();
        // From the branch alone, and the same again.
        std::fs::remove_dir_all(world.sandbox.path("cache")).unwrap();
        transcript.add(work.run(&[args, &["--offline"]].concat()).success());
        work.decide("licenses: false\n");
        work.run(args).success();
        let used = ["deploy/app/License"];
        assert_eq!(licenses(work, "localized/main", place), used, "{args:?}");
        work.run(&["verify", "localized/main"]).success();
        work.decide("");
        work.run(args).success();
        assert_eq!(licenses(work, "localized/main", place), ALL, "{args:?}");
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize app --offline
        nothing to do: branch localized/main (<0>) already has app in localized-app
          verified: 1 build verified before, from the same inputs (kustomize/…)
        $ git kustomize-localize branch --offline
        nothing to do: branch localized/main (<0>) already has <1> localized
        $ git kustomize-localize https://github.com/acme/base//deploy/app?ref=v1 localized-app --offline
        nothing to do: branch localized/main (<0>) already has https://github.com/acme/base//deploy/app?ref=v1 in localized-app
          verified: 1 build verified before, from the same inputs (kustomize/…)
    "#]]);
}

#[test]
fn in_the_working_tree_they_go_with_their_files() {
    let world = world();
    let work = &world.work;
    let in_place = ["vendor"];
    let on_disk = || {
        work.git(&["add", "-f", "-A"]);
        let tree = work.git(&["write-tree"]);
        licenses(work, &tree, HERE)
    };
    world.verified(&in_place);
    assert_eq!(on_disk(), ALL);
    work.git(&["commit", "-q", "-m", "localized"]);
    work.run(&["check"]).success();
    // Local by now, and all the same in use.
    work.run(&in_place).success().says(expect![[r#"
        nothing to do: kustomize-localize.lock has 1 remote reference
    "#]]);
    work.write(&format!("{HERE}/LICENSE"), "other terms\n");
    work.run(&["check"]).fails(1).says(expect![[r#"
        error[edited-copy]: `app/localized-files/github.com/acme/base/v1/LICENSE` was changed: its sha256 <0> differs from the lock
         --> app/localized-files/github.com/acme/base/v1/LICENSE
         = help: git kustomize-localize vendor --overwrite :/app
         = help: put your own changes upstream or in an overlay

        for more: git kustomize-localize explain edited-copy
        checked 3 kustomizations with 5 references in the working tree: 1 error
    "#]]);
    work.run(&[&in_place[..], &["--overwrite"]].concat()).success();
    assert_eq!(work.read(&format!("{HERE}/LICENSE")), "the terms\n");
    std::fs::remove_file(work.path().join(HERE).join("COPYING")).unwrap();
    work.run(&[&in_place[..], &["--overwrite"]].concat()).success();
    assert_eq!(work.read(&format!("{HERE}/COPYING")), "of something else\n");
    work.decide("licenses: false\n");
    work.run(&in_place).success();
    assert_eq!(on_disk(), ["deploy/app/License"]);
    // They come with an update.
    work.decide("");
    work.run(&["update"]).success();
    assert_eq!(on_disk(), ALL);
    // Nothing references any of it any more.
    work.write("app/kustomization.yaml", "namePrefix: a-\n");
    work.git(&["add", "-A"]);
    work.run(&in_place).success();
    assert_eq!(on_disk(), crate::support::NONE);
    assert!(!work.path().join("app/localized-files").exists());
}

#[test]
fn what_is_in_use_stays_and_unusable_ones_are_warnings() {
    let world = World::new();
    world.sandbox.builds();
    let work = &world.work;
    let base = world.upstream("acme/base");
    base.write("LICENSE", "ours\n");
    base.write("license", "in use\n");
    base.symlink("NOTICE", "../outside");
    base.write("COPYING", "x".repeat(5 << 20));
    base.write("kustomization.yaml", "configMapGenerator:\n- {name: g, files: [license]}\n");
    base.commit("first");
    base.git(&["tag", "v1"]);
    world.commit(&[("app/kustomization.yaml", "resources: ['https://github.com/acme/base?ref=v1']\n")]);
    work.run(&["app"])
        .success().says(expect![[r#"
            localized app into localized-app on branch localized/main (<0>): 6 files written, 1 reference rewritten, 0 removed
              added https://github.com/acme/base?ref=v1 <1>
              verified: builds are identical: 92 bytes (kustomize/…, network closed)
              2 warnings (left-license 2)
              to look at it: git show --stat <0>
            warning[left-license]: this license is not vendored: it is larger than 4 MiB
             --> https://github.com/acme/base?ref=v1: COPYING

            warning[left-license]: this license is not vendored: the link to `../outside` leads out of its repository
             --> https://github.com/acme/base?ref=v1: NOTICE
        "#]]);
    let clone = world.clone_of_branch();
    assert_eq!(licenses(&clone, "HEAD", COPY), ["LICENSE", "license"]);
    assert_eq!(clone.read(&format!("{COPY}/license")), "in use\n");
    assert_eq!(clone.read(&format!("{COPY}/LICENSE")), "ours\n");
    work.decide("rules: {'*': error}\n");
    work.run(&["app", "--branch", "b"]).fails(1).says(expect![[r#"
        error[left-license]: this license is not vendored: it is larger than 4 MiB
         --> https://github.com/acme/base?ref=v1: COPYING

        error[left-license]: this license is not vendored: the link to `../outside` leads out of its repository
         --> https://github.com/acme/base?ref=v1: NOTICE

        error: <0> has 2 errors (left-license 2): nothing was committed
          hint: for more: git kustomize-localize explain left-license
    "#]]);
    work.decide("licenses: false\nrules: {'*': error}\n");
    work.run(&["app", "--branch", "b"]).success();
}
