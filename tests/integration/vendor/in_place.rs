//! `vendor`: localizing in the working tree.

mod edits;
mod git;

use crate::support::{Kustomize, Output, Reply, Repo, Running, Transcript, World, config_map, files};

const LOCK: &str = "kustomize-localize.lock";
const IN_PLACE: [&str; 1] = ["vendor"];
const LIB: &str = "base/localized-files/github.com/acme/lib/v1";

/// A user's repository with two overlays of one base, all staged. The base names a remote root,
/// which names another one; one overlay names a file.
fn world() -> World {
    let world = World::acme();
    world.work.write(
        "base/kustomization.yaml",
        "# the base\nresources:\n- https://github.com/acme/lib//web?ref=v1 # upstream\n- own.yaml\n",
    );
    world.work.write("base/own.yaml", config_map("own"));
    world.work.write(
        "overlays/dev/kustomization.yaml",
        "resources:\r\n- ../../base\r\n- 'https://files.example.com/v1/app.yaml'\r\n",
    );
    world.work.write("overlays/prod/kustomization.yaml", "resources:\n- ../../base\nnamePrefix: prod-\n");
    world.work.write("README.md", "ours\n");
    world.work.git(&["add", "--all"]);
    world
}

fn in_place(repo: &Repo, more: &[&str]) -> Output {
    repo.run(&[&IN_PLACE, more].concat())
}

fn refused(world: &World, more: &[&str]) -> Output {
    world.refused(&[&IN_PLACE, more].concat())
}

/// The output of `kustomize build` for a target; with the network closed, if requested.
fn build(world: &World, target: &str, closed: bool) -> Option<String> {
    let kustomize = Kustomize::find()?;
    let output = world.build(&kustomize, world.work.path(), target, &[], closed);
    Some(output.success().stdout.clone())
}

/// Runs the commands that a report names, as they stand there, in a shell.
#[track_caller]
fn follow(world: &World, output: &Output) {
    let mut lines = output.success().stdout.lines();
    let stage = lines.find_map(|line| line.strip_prefix("  to stage it: ")).unwrap();
    shell(world, stage);
    world.work.git(&["commit", "-q", "-m", "mended"]);
}

#[track_caller]
fn shell(world: &World, command: &str) {
    let mut shell = world.sandbox.command("sh", world.work.path());
    Running::start(shell.args(["-c", command])).wait().success();
}

#[test]
fn the_hint_of_check_commits_all_that_was_vendored() {
    let world = world();
    world.work.lock();
    world.work.commit("locked");
    in_place(&world.work, &[]).success();
    let check = world.work.run_unchanged(&["check"]);
    let hint = check.success().stdout.lines().find_map(|line| line.strip_prefix("hint: ")).unwrap();
    assert!(hint.ends_with(" && git commit -a"), "{hint}");
    shell(&world, &format!("{hint} -q -m vendored"));
    assert_eq!(world.work.git(&["status", "--porcelain"]), "");
    world.work.run_unchanged(&["check", "--rev", "HEAD"]).success().says(expect![[r#"
        checked 5 kustomizations with 8 references in commit <0> (HEAD): no problems found
    "#]]);
    world.work.run_unchanged(&["verify", "HEAD"]).success();
}

/// A copy has a lock of its own.
#[test]
fn the_hint_of_check_commits_a_copy_with_its_lock() {
    let world = world();
    world.work.lock();
    world.work.commit("locked");
    world.work.run(&["overlays/dev", "copy", "--scope", ".", "--no-commit"]).success();
    let check = world.work.run_unchanged(&["check"]);
    let hint = check.success().stdout.lines().find_map(|line| line.strip_prefix("hint: ")).unwrap();
    shell(&world, &format!("{hint} -q -m copied"));
    assert_eq!(world.work.git(&["status", "--porcelain"]), "");
}

#[test]
fn remote_files_go_beside_the_kustomization_that_names_them() {
    let world = world();
    let targets = ["overlays/dev", "overlays/prod", "base"];
    let before: Vec<_> = targets.iter().map(|one| build(&world, one, false)).collect();
    let index = world.work.git(&["ls-files", "-s"]);
    let output = in_place(&world.work, &[]);
    output.success().says(expect![[r#"
        localized the working tree: 11 files written, 3 references rewritten, 0 removed
          added https://files.example.com/v1/app.yaml <0>
          added https://github.com/acme/deep?ref=v1 <1>
          added https://github.com/acme/lib?ref=v1 <2>
          not verified: neither `kustomize` nor `kubectl` was found on PATH
          to stage it: git add -f -- :/base/kustomization.yaml :/base/localized-files :/kustomize-localize.lock :/overlays/dev/kustomization.yaml :/overlays/dev/localized-files
    "#]]);
    let written = files(world.work.path()).into_keys();
    let written: Vec<String> = written.filter(|name| !name.ends_with('/')).collect();
    assert_eq!(
        written,
        [
            "README.md",
            "base/kustomization.yaml",
            "base/localized-files/.gitattributes",
            &format!("{LIB}/web/kustomization.yaml"),
            &format!("{LIB}/web/localized-files/.gitattributes"),
            &format!("{LIB}/web/localized-files/github.com/acme/deep/v1/app/kustomization.yaml"),
            &format!("{LIB}/web/localized-files/github.com/acme/deep/v1/app/map.yaml"),
            &format!("{LIB}/web/map.yaml"),
            "base/own.yaml",
            LOCK,
            "overlays/dev/kustomization.yaml",
            "overlays/dev/localized-files/.gitattributes",
            "overlays/dev/localized-files/files.example.com/v1/app.yaml",
            "overlays/prod/kustomization.yaml",
        ]
    );
    // Only the references are others.
    assert_eq!(
        world.work.read("base/kustomization.yaml"),
        "# the base\nresources:\n- localized-files/github.com/acme/lib/v1/web # upstream\n- own.yaml\n"
    );
    assert_eq!(
        world.work.read("overlays/dev/kustomization.yaml"),
        "resources:\r\n- ../../base\r\n- 'localized-files/files.example.com/v1/app.yaml'\r\n"
    );
    let lock = world.work.read(LOCK);
    for part in [
        "  - url: https://github.com/acme/lib\n    ref: v1\n",
        "      web:\n        names:\n          - https://github.com/acme/deep//app?ref=v1\n",
        "  - path: overlays/dev/localized-files/files.example.com/v1/app.yaml\n    mode: \"100644\"\n",
        &format!("  - path: {LIB}/web/kustomization.yaml\n"),
        "    rewritten:\n      localized-files/github.com/acme/deep/v1/app: https://github.com/acme/deep//app?ref=v1\n",
    ] {
        assert!(lock.contains(part), "no {part:?} in\n{lock}");
    }
    assert!(!lock.contains("target:"), "{lock}");
    assert_eq!(world.work.git(&["ls-files", "-s"]), index);

    for (target, before) in targets.iter().zip(before) {
        assert_eq!(build(&world, target, true), before, "{target}");
    }
    let state = world.work.state();
    in_place(&world.work, &[]).success().says(expect![[r#"
        nothing to do: kustomize-localize.lock has 3 remote references
    "#]]);
    state.assert_same(&world.work.state());

    follow(&world, &output);
    assert_eq!(world.work.git(&["status", "--porcelain", "--ignored"]), "");
}

#[test]
fn a_single_target_is_localized_with_all_it_reaches() {
    let world = world();
    in_place(&world.work, &["overlays/prod"]).success().says(expect![[r#"
        localized overlays/prod: 8 files written, 2 references rewritten, 0 removed
          added https://github.com/acme/deep?ref=v1 <0>
          added https://github.com/acme/lib?ref=v1 <1>
          not verified: neither `kustomize` nor `kubectl` was found on PATH
          to stage it: git add -f -- :/base/kustomization.yaml :/base/localized-files :/kustomize-localize.lock
    "#]]);
    assert!(world.work.read("base/kustomization.yaml").contains("- localized-files/"));
    let dev = world.work.read("overlays/dev/kustomization.yaml");
    assert!(dev.contains("https://files.example.com"), "{dev}");
    let lock = world.work.read(LOCK);
    assert!(!lock.contains("files.example.com"), "{lock}");
    // Several, from somewhere else; what was localized before stays.
    let inside = world.work.path().join("overlays");
    let args = [&IN_PLACE[..], &["dev", "prod", "../base"]].concat();
    let output = world.sandbox.run(&inside, &args);
    output.success().says(expect![[r#"
        localized base, overlays/dev, overlays/prod: 4 files written, 1 reference rewritten, 0 removed
          added https://files.example.com/v1/app.yaml <0>
          not verified: neither `kustomize` nor `kubectl` was found on PATH
          to stage it: git add -f -- :/base/localized-files :/kustomize-localize.lock :/overlays/dev/kustomization.yaml :/overlays/dev/localized-files
    "#]]);
    let lock = world.work.read(LOCK);
    assert!(lock.contains("files.example.com"), "{lock}");
    assert!(lock.contains("acme/deep"), "{lock}");
}

#[test]
fn entries_of_other_roots_stay_locked() {
    let world = world();
    world.work.run(&["lock"]).success();
    in_place(&world.work, &["base"]).success();
    let lock = world.work.read(LOCK);
    assert!(lock.contains("files.example.com"), "{lock}");
    world.work.run(&["lock"]).success().says(expect![[r#"
        nothing to do: kustomize-localize.lock has 3 remote references
    "#]]);
}

#[test]
fn files_that_differ_from_the_index_are_not_edited() {
    let world = world();
    let more = "# not staged\n";
    let text = world.work.read("base/kustomization.yaml") + more;
    world.work.write("base/kustomization.yaml", &text);
    world.work.write("new/kustomization.yaml", "resources:\n- https://github.com/acme/lib//web?ref=v1\n");
    refused(&world, &[]).says(expect![[r#"
        error: files to edit differ from the index: `base/kustomization.yaml`, `new/kustomization.yaml`
          hint: git add -f -- :/base/kustomization.yaml :/new/kustomization.yaml
    "#]]);
    // Staged files may be edited: HEAD does not matter.
    world.work.git(&["add", "--all"]);
    in_place(&world.work, &[]).success();
    assert!(world.work.read("base/kustomization.yaml").ends_with(more));
}

#[test]
fn localized_files_follow_the_references() {
    let world = world();
    in_place(&world.work, &[]).success();
    world.work.commit("localized");
    // Another directory of the same repository, and the file is not named any more.
    world.work.write(
        "base/kustomization.yaml",
        "resources:\n- localized-files/github.com/acme/lib/v1/web\n- https://github.com/acme/lib//other?ref=v1\n",
    );
    world.work.write("overlays/dev/kustomization.yaml", "resources: [../../base]\n");
    world.work.git(&["add", "--all"]);
    let before = build(&world, "overlays/dev", false);
    let output = in_place(&world.work, &[]);
    output.success().says(expect![[r#"
        localized the working tree: 4 files written, 1 reference rewritten, 2 removed
          dropped https://files.example.com/v1/app.yaml <0>
          added other of https://github.com/acme/lib?ref=v1
          not verified: neither `kustomize` nor `kubectl` was found on PATH
          to stage it: git add -f -- :/base/kustomization.yaml :/base/localized-files :/kustomize-localize.lock :/overlays/dev/localized-files
    "#]]);
    let place = world.work.path().join("overlays/dev/localized-files");
    assert!(!place.exists());
    assert!(world.work.path().join(LIB).join("other/map.yaml").exists());
    assert!(world.work.path().join(LIB).join("web/map.yaml").exists());
    assert_eq!(build(&world, "overlays/dev", true), before);
    follow(&world, &output);
    assert_eq!(world.work.git(&["status", "--porcelain"]), "");

    // Another version takes the place of the old one.
    let upstream = Repo::new(&world.sandbox, world.sandbox.path("upstream/acme/lib"));
    upstream.write("web/map.yaml", config_map("newer"));
    upstream.commit("newer");
    upstream.git(&["tag", "v2"]);
    world.work.write("base/kustomization.yaml", "resources:\n- https://github.com/acme/lib//web?ref=v2\n");
    world.work.git(&["add", "--all"]);
    let output = in_place(&world.work, &["base"]);
    output.success();
    assert!(!world.work.path().join(LIB).exists());
    let lock = world.work.read(LOCK);
    assert!(!lock.contains("/v1/web/"), "{lock}");
    assert!(lock.contains("ref: v2"), "{lock}");
    follow(&world, &output);
    assert_eq!(world.work.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_remote_that_fails_leaves_everything_as_it_was() {
    let world = world();
    world.server.route("https://files.example.com/v1/app.yaml", Reply::status(404));
    refused(&world, &[]).says(expect![[r#"
        error: overlays/dev/kustomization.yaml:3:3: resources[1]: cannot fetch https://files.example.com/v1/app.yaml: files.example.com answered 404 Not Found
          hint: check the URL; if it needs a login, set a credential helper for its host, whose login is sent at once: git config --global credential.https://HOST.helper HELPER; it is sent only to hosts that your own files name, and not over plain http
        hint: to leave it remote, run `git kustomize-localize init`, or add to `allow` in `.kustomize-localize`:
          - {url: 'https://files.example.com/v1/app.yaml', reason: 'TODO'}
    "#]]);
    // A target that does not need it can be localized.
    in_place(&world.work, &["base"]).success();
}

#[test]
fn trouble_in_the_tree_is_an_error_unless_the_team_says_otherwise() {
    let world = world();
    world.work.write(
        "overlays/prod/kustomization.yaml",
        "resources:\n- ../../base\n- missing.yaml\n- https://files.example.com/v1/app.yaml\n",
    );
    world.work.git(&["add", "--all"]);
    let mut transcript = Transcript::default();
    for paths in [&[][..], &["overlays/prod"]] {
        transcript
            .add(world.work.run_unchanged(&[&["vendor"], paths].concat()).fails(1).stderr_has("error[missing-path]: "));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize vendor
        $ git kustomize-localize vendor overlays/prod
        error[missing-path]: there is no `overlays/prod/missing.yaml`
         --> overlays/prod/kustomization.yaml:3:3
          |
        3 | - missing.yaml
          |   ^^^^^^^^^^^^ resources[1]
          = help: add it, or remove the reference

        error: nothing was written: 1 error (missing-path 1)
          hint: for more: git kustomize-localize explain missing-path
    "#]]);
    world.work.decide("rules: {missing-path: warning}\n");
    let output = in_place(&world.work, &[]);
    output.success().says(expect![[r#"
        localized the working tree: 14 files written, 4 references rewritten, 0 removed
          added https://files.example.com/v1/app.yaml <0>
          added https://github.com/acme/deep?ref=v1 <1>
          added https://github.com/acme/lib?ref=v1 <2>
          not verified: neither `kustomize` nor `kubectl` was found on PATH
          1 warning (missing-path 1)
          to stage it: git add -f -- :/base/kustomization.yaml :/base/localized-files :/kustomize-localize.lock :/overlays/dev/kustomization.yaml :/overlays/dev/localized-files :/overlays/prod/kustomization.yaml :/overlays/prod/localized-files
        warning[missing-path]: there is no `overlays/prod/missing.yaml`
         --> overlays/prod/kustomization.yaml:3:3
          |
        3 | - missing.yaml
          |   ^^^^^^^^^^^^ resources[1]
          = help: add it, or remove the reference
    "#]]);
    assert_eq!(
        world.work.read("overlays/prod/kustomization.yaml"),
        "resources:\n- ../../base\n- missing.yaml\n- localized-files/files.example.com/v1/app.yaml\n"
    );
}

#[test]
fn offline_names_what_is_missing() {
    let world = world();
    refused(&world, &["--offline"]).says(expect![[r#"
        error: base/kustomization.yaml:3:3: resources[0]: https://github.com/acme/lib?ref=v1 is not in the cache
        error: overlays/dev/kustomization.yaml:3:3: resources[1]: https://files.example.com/v1/app.yaml is not in the cache
          hint: run once without `--offline`
    "#]]);
    world.work.run(&["lock"]).success();
    let lock = world.work.read(LOCK);
    in_place(&world.work, &["--offline"]).success();
    // No bot may raise what is stored.
    let remotes = |lock: &str| lock.split("files:").next().unwrap().to_owned();
    let lock: String = lock.split_inclusive('\n').filter(|line| !line.contains("paths-of: ")).collect();
    assert_eq!(remotes(&world.work.read(LOCK)), lock);

    // Stored files need neither cache nor network.
    std::fs::remove_dir_all(world.sandbox.path("cache")).unwrap();
    std::fs::create_dir(world.sandbox.path("cache")).unwrap();
    world.work.write("new/kustomization.yaml", "resources:\n- https://files.example.com/v1/app.yaml\n");
    world.work.git(&["add", "--all"]);
    in_place(&world.work, &["--offline", "new"]).success();
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let world = world();
    in_place(&world.work, &["overlays/dev"]).success();
    let inside = format!("{LIB}/web");

    for (more, says) in [
        (&["--scope", "."][..], "unexpected argument"),
        (&["--branch", "x"], "unexpected argument"),
        (&["--rev", "HEAD"], "unexpected argument"),
        (&["-m", "x"], "unexpected argument"),
        (&["--update"], "unexpected argument"),
        (&["https://github.com/acme/lib//web?ref=v1"], "does not exist"),
        (&["base/own.yaml"], "the root `base/own.yaml` is not a directory"),
        (&["../elsewhere"], "is outside of the repository"),
        (&["nowhere"], "the root `nowhere` does not exist"),
        (&["overlays"], "no kustomization in `overlays`"),
        (&[&inside], "is inside localized files"),
    ] {
        refused(&world, more).stderr_has(says);
    }

    world.refused(&["base", "a", "b", "--no-commit"]).says(expect![[r#"
        error: the subcommand 'b' cannot be used with:
          [TARGET]
          [NEW_DIR]

        Usage: git kustomize-localize [OPTIONS] <TARGET> [NEW_DIR]
               git kustomize-localize <COMMAND>

        For more information, try '-h'.
    "#]]);
}

#[test]
fn a_dry_run_lists_what_would_be_written() {
    let world = world();
    let before = world.work.state();
    in_place(&world.work, &["--dry-run"])
        .success().says(expect![[r#"
            would localize the working tree: 11 files written, 3 references rewritten, 0 removed
              added https://files.example.com/v1/app.yaml <0>
              added https://github.com/acme/deep?ref=v1 <1>
              added https://github.com/acme/lib?ref=v1 <2>
              not verified: neither `kustomize` nor `kubectl` was found on PATH
              file base/kustomization.yaml (89)
              file base/localized-files/.gitattributes (46)
              file base/localized-files/github.com/acme/lib/v1/web/kustomization.yaml (69)
              file base/localized-files/github.com/acme/lib/v1/web/localized-files/.gitattributes (46)
              file base/localized-files/github.com/acme/lib/v1/web/localized-files/github.com/acme/deep/v1/app/kustomization.yaml (22)
              file base/localized-files/github.com/acme/lib/v1/web/localized-files/github.com/acme/deep/v1/app/map.yaml (54)
              file base/localized-files/github.com/acme/lib/v1/web/map.yaml (53)
              file kustomize-localize.lock (…)
              file overlays/dev/kustomization.yaml (77)
              file overlays/dev/localized-files/.gitattributes (46)
              file overlays/dev/localized-files/files.example.com/v1/app.yaml (159)
              rewritten base/kustomization.yaml:3:3: resources[0]: https://github.com/acme/lib//web?ref=v1 -> localized-files/github.com/acme/lib/v1/web
              rewritten https://github.com/acme/lib?ref=v1: web/kustomization.yaml:1:23: resources[1]: https://github.com/acme/deep//app?ref=v1 -> localized-files/github.com/acme/deep/v1/app
              rewritten overlays/dev/kustomization.yaml:3:3: resources[1]: https://files.example.com/v1/app.yaml -> localized-files/files.example.com/v1/app.yaml
        "#]]);
    before.assert_same(&world.work.state());
}

#[test]
fn json_lists_what_was_done() {
    let world = world();
    let output = in_place(&world.work, &["--format", "json"]);
    let json: serde_yaml::Value = serde_yaml::from_str(&output.success().stdout).unwrap();
    assert_eq!(json["outcome"], "written");
    assert!(json["files"][LOCK].is_u64());
    assert_eq!(json["rewritten"][0]["path"], "base/kustomization.yaml");
    assert_eq!(json["stage"][2], "kustomize-localize.lock");
    in_place(&world.work, &["--format", "json"]).success().stdout_has("\"outcome\": \"unchanged\"");
}

#[test]
fn links_to_roots_and_kustomizations_stay() {
    let world = world();
    world.work.symlink("app", "overlays/dev");
    world.work.symlink("shared/one/kustomization.yaml", "real.yaml");
    world.work.write("shared/one/real.yaml", "resources:\n- https://files.example.com/v1/app.yaml\n- map.yaml\n");
    world.work.symlink("shared/one/map.yaml", "other/map.yaml");
    world.work.write("shared/one/other/map.yaml", config_map("one"));
    world.work.write("by-link/kustomization.yaml", "resources:\n- ../app/../../base\n- ../app\n");
    world.work.git(&["add", "--all"]);
    let before = build(&world, "shared/one", false);
    let by_link = world.work.read("by-link/kustomization.yaml");
    in_place(&world.work, &["app", "shared/one"]).success();
    for link in ["shared/one/kustomization.yaml", "app"] {
        assert!(world.work.path().join(link).is_symlink(), "{link}");
    }
    assert_eq!(
        world.work.read("shared/one/real.yaml"),
        "resources:\n- localized-files/files.example.com/v1/app.yaml\n- map.yaml\n"
    );
    let place = world.work.path().join("overlays/dev/localized-files");
    assert!(place.is_dir());
    assert_eq!(world.work.read("by-link/kustomization.yaml"), by_link);
    assert_eq!(build(&world, "shared/one", true), before);
}

#[test]
fn ignored_directories_are_not_left_out_of_the_commit() {
    let world = world();
    world.work.write(".gitignore", "build/\nvendor\n.gitattributes\n");
    world.work.write("build/app/kustomization.yaml", "resources:\n- https://github.com/acme/lib//web?ref=v1\n");
    world.work.git(&["add", "-f", "build/app/kustomization.yaml", ".gitignore"]);
    let output = in_place(&world.work, &[]);
    output.success();
    follow(&world, &output);
    let clone = world.sandbox.clone_of(&world.work, "clone");
    let files = clone.files("HEAD");
    for file in
        ["build/app/localized-files/.gitattributes", "build/app/localized-files/github.com/acme/lib/v1/web/map.yaml"]
    {
        assert!(files.contains(&format!("100644 {file}")), "{files:?}");
    }
    world.same_build("build/app", &clone, "build/app");
}

#[test]
fn a_localized_tree_is_clean_locked_and_copied_as_any_other() {
    let world = world();
    world.work.run(&["lock"]).success();
    world.work.commit("locked");
    let output = in_place(&world.work, &[]);
    follow(&world, &output);
    world.work.run(&["check", "--staged"]).success().says(expect![[r#"
        checked 5 kustomizations with 8 references in the index: no problems found
    "#]]);
    let lock = world.work.read(LOCK);
    world.work.run(&["lock"]).success().says(expect![[r#"
        nothing to do: kustomize-localize.lock has 3 remote references
    "#]]);
    assert_eq!(world.work.read(LOCK), lock);
    assert_eq!(world.work.git(&["status", "--porcelain"]), "");
    let clone = world.localized(&["overlays/dev", "--scope", ".", "--offline"]);
    world.same_build("overlays/dev", &clone, "localized-dev/overlays/dev");
}
