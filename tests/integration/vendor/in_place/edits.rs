//! Files that were edited, removed or added by hand among the localized files.

use git_kustomize_localize::seams::record::sha256_hex;

use super::{LIB, LOCK, follow, in_place, refused, world};
use crate::support::{Repo, Transcript, deployment, files};

/// A localized file.
const FILE: &str = "overlays/dev/localized-files/files.example.com/v1/app.yaml";

#[test]
fn edits_in_localized_files_are_not_lost() {
    let world = world();
    in_place(&world.work, &[]).success();
    world.work.commit("localized");
    world.work.write(FILE, "# edited\n");
    in_place(&world.work, &[]).fails(1).says(expect![[r#"
        error[edited-copy]: `overlays/dev/localized-files/files.example.com/v1/app.yaml` was changed: its sha256 <0> differs from the lock
         --> overlays/dev/localized-files/files.example.com/v1/app.yaml
         = help: git kustomize-localize vendor --overwrite :/overlays/dev
         = help: put your own changes upstream or in an overlay

        error: nothing was written: 1 error (edited-copy 1)
          hint: for more: git kustomize-localize explain edited-copy
    "#]]);
    assert_eq!(world.work.read(FILE), "# edited\n");
    in_place(&world.work, &["--overwrite"]).success().says(expect![[r#"
        localized the working tree: 1 file written, 0 references rewritten, 0 removed
          discarded edits by hand: `overlays/dev/localized-files/files.example.com/v1/app.yaml`
          not verified: neither `kustomize` nor `kubectl` was found on PATH
          to stage it: git add -f -- :/overlays/dev/localized-files
    "#]]);
    assert_eq!(world.work.read(FILE), deployment("app"));
    assert_eq!(world.work.git(&["status", "--porcelain"]), "");
    world.work.write(FILE, "# edited\n");

    // Written again, or not needed any more.
    world.work.write("overlays/dev/kustomization.yaml", "resources:\n- https://files.example.com/v1/app.yaml\n");
    world.work.git(&["add", "overlays/dev/kustomization.yaml"]);
    in_place(&world.work, &[]).fails(1);
    in_place(&world.work, &["--overwrite"]).success();
    assert_eq!(world.work.read(FILE), deployment("app"));

    world.work.write(FILE, "# edited\n");
    world.work.write("overlays/dev/kustomization.yaml", "namePrefix: a-\n");
    in_place(&world.work, &[]).fails(1);
    in_place(&world.work, &["--overwrite"]).success();
    assert!(!world.work.path().join(FILE).exists());
}

#[test]
fn an_edited_file_that_nothing_references_any_more_is_not_removed_whatever_the_rules_are() {
    let world = world();
    world.work.write(".kustomize-localize", "rules: {edited-copy: \"off\"}\n");
    in_place(&world.work, &[]).success();
    world.work.commit("localized");
    world.work.write(FILE, "# edited\n");
    world.work.write("overlays/dev/kustomization.yaml", "namePrefix: a-\n");
    world.work.git(&["add", "overlays/dev/kustomization.yaml"]);
    in_place(&world.work, &[]).fails(2).says(expect![[r#"
        error: localized files were edited by hand: `overlays/dev/localized-files/files.example.com/v1/app.yaml`
          hint: to discard the edits: git kustomize-localize vendor --overwrite :/overlays/dev
    "#]]);
    assert_eq!(world.work.read(FILE), "# edited\n");
}

#[test]
fn vendor_says_which_edits_it_does_not_discard() {
    let world = world();
    in_place(&world.work, &[]).success();
    world.work.run(&["--no-commit", "--scope", ".", "overlays/dev", "copy"]).success();
    world.work.commit("localized");
    let file = "copy/base/own.yaml";
    let added = FILE.replace("app.yaml", "new.yaml");
    for path in [FILE, file, &added] {
        world.work.write(path, "# edited\n");
    }
    in_place(&world.work, &["--overwrite"]).fails(1).says(expect![[r#"
        error[edited-copy]: `copy/base/own.yaml` was changed: its sha256 <0> differs from the lock
         --> copy/base/own.yaml
         = help: copy `overlays/dev` again with `--overwrite`, in the scope of `copy/kustomize-localize.lock`
         = help: put your own changes upstream or in an overlay

        error[edited-copy]: `overlays/dev/localized-files/files.example.com/v1/new.yaml` was added: the lock does not list it
         --> overlays/dev/localized-files/files.example.com/v1/new.yaml
         = help: move it to another directory, or remove it

        error: nothing was written: 2 errors (edited-copy 2)
          hint: for more: git kustomize-localize explain edited-copy
    "#]]);
    assert_eq!(world.work.read(FILE), "# edited\n");
}

#[test]
fn other_peoples_files_are_left_alone() {
    let world = world();
    world.work.write("base/localized-files/mine.yaml", "mine\n");
    refused(&world, &[]).says(expect![[r#"
        error: files that the lock does not list are in the way: `base/localized-files/mine.yaml`
          hint: move them away, then run the same command again
    "#]]);
    world.work.remove("base/localized-files/mine.yaml");
    in_place(&world.work, &[]).success();
    world.work.commit("localized");
    world.work.write("base/localized-files/mine.yaml", "mine\n");
    in_place(&world.work, &[]).fails(1).says(expect![[r#"
        error[edited-copy]: `base/localized-files/mine.yaml` was added: the lock does not list it
         --> base/localized-files/mine.yaml
         = help: move it to another directory, or remove it

        error: nothing was written: 1 error (edited-copy 1)
          hint: for more: git kustomize-localize explain edited-copy
    "#]]);
    world.work.remove("base/localized-files/mine.yaml");
    // A file in the place of one of ours.
    let place = format!("{LIB}/other/map.yaml");
    world.work.write(&place, "mine\n");
    world.work.write("base/kustomization.yaml", "resources:\n- https://github.com/acme/lib//other?ref=v1\n");
    world.work.git(&["add", "base/kustomization.yaml"]);
    in_place(&world.work, &[]).fails(1).says(expect![[r#"
        error[edited-copy]: `base/localized-files/github.com/acme/lib/v1/other/map.yaml` was added: the lock does not list it
         --> base/localized-files/github.com/acme/lib/v1/other/map.yaml
         = help: move it to another directory, or remove it

        error: nothing was written: 1 error (edited-copy 1)
          hint: for more: git kustomize-localize explain edited-copy
    "#]]);
}

#[test]
fn nothing_is_written_through_a_link() {
    let world = world();
    let elsewhere = world.sandbox.path("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    world.work.symlink("base/localized-files", elsewhere.to_str().unwrap());
    refused(&world, &[]).says(expect![[r#"
        error: files that the lock does not list are in the way: `base/localized-files`
          hint: move them away, then run the same command again
    "#]]);
    assert_eq!(elsewhere.read_dir().unwrap().count(), 0);
}

#[test]
fn committed_edits_are_undone_from_upstream() {
    let world = world();
    in_place(&world.work, &[]).success();
    world.work.commit("localized");
    let deep = format!("{LIB}/web/localized-files/github.com/acme/deep/v1/app/map.yaml");
    let rewritten = format!("{LIB}/web/kustomization.yaml");
    let attributes = "base/localized-files/.gitattributes";
    let paths = [&deep, FILE, &rewritten, attributes];
    let before = paths.map(|path| world.work.read(path));
    for path in [&deep, FILE, &rewritten] {
        world.work.write(path, "resources: []\n# edited\n");
    }
    world.work.remove(attributes);
    world.work.commit("edited");
    world.work.commit("again");
    let output = in_place(&world.work, &["--overwrite"]);
    output.success().says(expect![[r#"
        localized the working tree: 4 files written, 1 reference rewritten, 0 removed
          discarded edits by hand: `base/localized-files/.gitattributes`, `base/localized-files/github.com/acme/lib/v1/web/kustomization.yaml`, `base/localized-files/github.com/acme/lib/v1/web/localized-files/github.com/acme/deep/v1/app/map.yaml`, `overlays/dev/localized-files/files.example.com/v1/app.yaml`
          not verified: neither `kustomize` nor `kubectl` was found on PATH
          to stage it: git add -f -- :/base/localized-files :/overlays/dev/localized-files
    "#]]);
    assert_eq!(paths.map(|path| world.work.read(path)), before);
    follow(&world, &output);
    assert_eq!(world.work.git(&["diff", "HEAD~3", "HEAD"]), "");

    // Lost everywhere.
    world.work.write(FILE, "# edited\n");
    world.work.commit("edited");
    world.server.unroute("https://files.example.com/v1/app.yaml");
    std::fs::remove_dir_all(world.sandbox.path("cache")).unwrap();
    std::fs::create_dir(world.sandbox.path("cache")).unwrap();
    refused(&world, &["--overwrite"]).says(expect![[r#"
        error: overlays/dev/kustomization.yaml:3:3: resources[1]: cannot fetch https://files.example.com/v1/app.yaml: files.example.com answered 404 Not Found
          hint: check the URL; if it needs a login, set a credential helper for its host, whose login is sent at once: git config --global credential.https://HOST.helper HELPER; it is sent only to hosts that your own files name, and not over plain http
    "#]]);
}

#[test]
fn manually_removed_files_are_reported_and_restored() {
    let world = world();
    in_place(&world.work, &[]).success();
    world.work.commit("localized");
    std::fs::remove_dir_all(world.work.path().join("base/localized-files")).unwrap();
    let lock = world.work.read(LOCK);
    let output = in_place(&world.work, &[]);
    output
        .fails(1)
        .says(expect![[r#"
            error[missing-path]: there is no `base/localized-files/github.com/acme/lib/v1/web`
             --> base/kustomization.yaml:3:3
              |
            3 | - localized-files/github.com/acme/lib/v1/web # upstream
              |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
              = help: restore it: git restore --staged --worktree -- :/base/localized-files/github.com/acme/lib/v1/web

            error[edited-copy]: `base/localized-files/.gitattributes` is missing, although the lock lists it
             --> base/localized-files/.gitattributes
             = help: git kustomize-localize vendor --overwrite :/base

            error[edited-copy]: `base/localized-files/github.com/acme/lib/v1/web/kustomization.yaml` is missing, although the lock lists it
             --> base/localized-files/github.com/acme/lib/v1/web/kustomization.yaml

            error[edited-copy]: `base/localized-files/github.com/acme/lib/v1/web/localized-files/.gitattributes` is missing, although the lock lists it
             --> base/localized-files/github.com/acme/lib/v1/web/localized-files/.gitattributes

            error[edited-copy]: `base/localized-files/github.com/acme/lib/v1/web/localized-files/github.com/acme/deep/v1/app/kustomization.yaml` is missing, although the lock lists it
             --> base/localized-files/github.com/acme/lib/v1/web/localized-files/github.com/acme/deep/v1/app/kustomization.yaml

            error[edited-copy]: `base/localized-files/github.com/acme/lib/v1/web/localized-files/github.com/acme/deep/v1/app/map.yaml` is missing, although the lock lists it
             --> base/localized-files/github.com/acme/lib/v1/web/localized-files/github.com/acme/deep/v1/app/map.yaml

            error[edited-copy]: `base/localized-files/github.com/acme/lib/v1/web/map.yaml` is missing, although the lock lists it
             --> base/localized-files/github.com/acme/lib/v1/web/map.yaml

            note: repeated help is omitted: -v shows it
            error: nothing was written: 7 errors (edited-copy 6, missing-path 1)
              hint: for more: git kustomize-localize explain missing-path edited-copy
        "#]]);
    assert_eq!(world.work.read(LOCK), lock);
    in_place(&world.work, &["--overwrite"]).success();
    assert_eq!(world.work.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_lock_that_lists_other_files_makes_none_of_them_ours() {
    let world = world();
    in_place(&world.work, &[]).success();
    // As in a lock that was written by hand.
    let precious = "precious: true\n";
    world.work.write("precious.yaml", precious);
    let lock = world.work.read(LOCK);
    let entry = |path: &str, sha256: &str| format!("  - path: {path}\n    mode: \"100644\"\n    sha256: {sha256}\n");
    let digest = "4a1d3b2ed1d7eda4c6b0ae6a2fdfd3b58f7d6b4e5a1c9e7a40c6e0b5f3b7a111";
    let real = sha256_hex(precious.as_bytes());
    let listed = lock.clone() + &entry("precious.yaml", &real) + &entry("README.md", digest);
    world.work.write(LOCK, listed);
    world.work.git(&["add", "--all"]);
    in_place(&world.work, &["--overwrite"]).success().says(expect![[r#"
        localized the working tree: 1 file written, 0 references rewritten, 0 removed
          to stage it: git add -f -- :/kustomize-localize.lock
    "#]]);
    assert_eq!(world.work.read("precious.yaml"), precious);
    assert_eq!(world.work.read("README.md"), "ours\n");
    assert_eq!(world.work.read(LOCK), lock);
}

#[test]
fn a_link_in_the_place_of_a_localized_file_is_replaced_on_request() {
    let world = world();
    in_place(&world.work, &[]).success();
    world.work.commit("localized");
    world.work.remove(FILE);
    world.work.symlink(FILE, "../../../kustomization.yaml");
    let text = world.work.read("overlays/dev/kustomization.yaml");
    in_place(&world.work, &[]).fails(1);
    in_place(&world.work, &["--overwrite"]).success();
    assert_eq!(world.work.git(&["status", "--porcelain"]), "");
    assert_eq!(world.work.read("overlays/dev/kustomization.yaml"), text);
}

#[test]
fn a_run_that_was_undone_is_run_again() {
    let world = world();
    world.work.git(&["commit", "-q", "-m", "remote"]);
    in_place(&world.work, &[]).success();
    let after = files(world.work.path());
    // This leaves the new files, and no lock that lists them.
    world.work.git(&["restore", "."]);
    world.work.remove("kustomize-localize.lock");
    world.work.write(FILE, "# edited\n");
    refused(&world, &[]).says(expect![[r#"
        error: files that the lock does not list are in the way: `overlays/dev/localized-files/files.example.com/v1/app.yaml`
          hint: move them away, then run the same command again
    "#]]);
    world.work.write(FILE, deployment("app"));
    let output = in_place(&world.work, &[]);
    output.success();
    assert_eq!(files(world.work.path()), after);
    follow(&world, &output);
    world.work.run(&["check"]).success();
    assert_eq!(world.work.git(&["status", "--porcelain"]), "");
}

#[test]
fn targets_are_named_from_the_top_too() {
    let world = world();
    world.work.git(&["commit", "-q", "-m", "remote"]);
    let elsewhere = Repo::new(&world.sandbox, world.work.path().join("overlays/dev"));
    for (target, told) in [
        (":/base", "localized base: "),
        (":/overlays/../base/.", "localized base: "),
        ("../../base", "localized base: "),
        (":/", "no kustomization in `.`"),
        (":/../base", "is outside of the repository"),
        (":/nowhere", "the root `:/nowhere` does not exist"),
    ] {
        let output = in_place(&elsewhere, &["--dry-run", target]);
        let all = format!("{}{}", output.stdout, output.stderr);
        assert!(
            all.contains(told) || all.contains(&told.replacen("localized", "would localize", 1)),
            "{target}: {all}"
        );
    }
}

#[test]
fn a_kustomization_that_cannot_be_read_keeps_the_localized_files_it_may_use() {
    let world = world();
    in_place(&world.work, &[]).success();
    world.work.commit("localized");
    world.work.write("overlays/dev/kustomization.yaml", "namePrefix: a-\n");
    world.work.write("overlays/prod/kustomization.yaml", "resources: [\n");
    let mut transcript = Transcript::default();
    transcript.add(in_place(&world.work, &["overlays/dev"]).success());
    // An update writes stored files again, and cannot tell whether the other kustomization uses these.
    transcript.add(world.work.run(&["update"]).fails(2));
    assert_eq!(world.work.read(FILE), deployment("app"));
    world.work.write("overlays/prod/kustomization.yaml", "resources:\n- ../../base\n");
    transcript.add(world.work.run(&["update"]).success());
    assert!(!world.work.path().join(FILE).exists());
    transcript.says(expect![[r#"
        $ git kustomize-localize vendor overlays/dev
        nothing to do: kustomize-localize.lock has 3 remote references
        $ git kustomize-localize update
        error: these localized files cannot be refreshed: no locked URL leads to them: `overlays/dev/localized-files/.gitattributes`, `overlays/dev/localized-files/files.example.com/v1/app.yaml`
          hint: replace the reference that leads there with a URL, and fix the findings of `git kustomize-localize check`
        $ git kustomize-localize update
        localized the working tree: 1 file written, 0 references rewritten, 2 removed
          dropped https://files.example.com/v1/app.yaml <0>
          not verified: neither `kustomize` nor `kubectl` was found on PATH
          to stage it: git add -f -- :/kustomize-localize.lock :/overlays/dev/localized-files
    "#]]);
}

#[test]
fn a_kustomization_that_cannot_be_read_keeps_its_locked_upstreams_if_another_is_vendored() {
    let world = world();
    world.work.lock();
    world.work.commit("locked");
    world.work.write("overlays/dev/kustomization.yaml", "resources: [\n");
    in_place(&world.work, &["base"]).success().says(expect![[r#"
        localized base: 8 files written, 2 references rewritten, 0 removed
          not verified: neither `kustomize` nor `kubectl` was found on PATH
          to stage it: git add -f -- :/base/kustomization.yaml :/base/localized-files :/kustomize-localize.lock
    "#]]);
    let lock = world.work.read(LOCK);
    assert!(lock.contains("https://files.example.com/v1/app.yaml"), "{lock}");
}

#[test]
fn a_localized_file_that_an_excluded_root_uses_is_not_removed() {
    let world = world();
    in_place(&world.work, &[]).success();
    world.work.write(".kustomize-localize", "exclude: [.]\n");
    world
        .work
        .write("kustomization.yaml", format!("configMapGenerator:\n- {{name: app, files: [{LIB}/web/map.yaml]}}\n"));
    world.work.write("base/kustomization.yaml", "resources:\n- own.yaml\n");
    world.work.commit("localized");
    refused(&world, &[]).says(expect![[r#"
        error: these localized files cannot be refreshed: no locked URL leads to them: `base/localized-files/github.com/acme/lib/v1/web/map.yaml`
          hint: replace the reference that leads there with a URL, and fix the findings of `git kustomize-localize check`
    "#]]);
    assert!(world.work.path().join(LIB).exists());
}
