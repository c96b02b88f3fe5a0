//! `verify DIR`: what `--no-commit` wrote, against its own lock.

use std::fs;

use super::{parsed, verify};
use crate::support::{OVERLAY, Project, Repo, Transcript};

const COPY: &str = "localized-overlay";
const PLACE: &str = "base/localized-files/example.com/acme/remote/v1/service.yaml";

fn written() -> Project {
    let project = Project::new();
    let args = [&OVERLAY[..], &["--no-commit", "--no-verify"]].concat();
    project.work.run(&args).success();
    project
}

#[test]
fn a_directory_is_verified_wherever_it_lies() {
    let project = written();
    let work = &project.work;
    verify(work, &[COPY]).success().says(expect![[r#"
        . from example/overlay: 6 localized files, 1 upstream; recorded in the lock alone
        verified localized-overlay: as recorded
    "#]]);
    let report = parsed(verify(work, &["./localized-overlay/", "--format=json"]).success());
    assert!(report["commit"].is_null(), "{report}");
    assert_eq!(report["records"][0]["directory"], ".");
    // Outside of a repository, and from within.
    let outside = project.sandbox.path("handed/over");
    fs::create_dir_all(outside.parent().unwrap()).unwrap();
    fs::rename(work.path().join(COPY), &outside).unwrap();
    let over = Repo::new(&project.sandbox, outside.clone());
    let above = outside.parent().unwrap();
    let mut transcript = Transcript::default();
    for (from, name) in [(above, "over"), (above, outside.to_str().unwrap()), (&*outside, ".")] {
        let run = |args: &[&str]| project.sandbox.run(from, &[&["verify", name], args].concat());
        transcript.add(run(&[]).success());
        transcript.add(run(&["--upstream"]).success());
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize verify over
        . from example/overlay: 6 localized files, 1 upstream; recorded in the lock alone
        verified over: as recorded
        $ git kustomize-localize verify over --upstream
        . from example/overlay: 6 localized files, 1 upstream; recorded in the lock alone
        kustomize-localize.lock:6: ok: https://example.com/acme/remote.git?ref=v1 is <0>
        upstream of 1 remote: 1 ok
        verified over: as recorded
        $ git kustomize-localize verify /home/me/handed/over
        . from example/overlay: 6 localized files, 1 upstream; recorded in the lock alone
        verified /home/me/handed/over: as recorded
        $ git kustomize-localize verify /home/me/handed/over --upstream
        . from example/overlay: 6 localized files, 1 upstream; recorded in the lock alone
        kustomize-localize.lock:6: ok: https://example.com/acme/remote.git?ref=v1 is <0>
        upstream of 1 remote: 1 ok
        verified /home/me/handed/over: as recorded
        $ git kustomize-localize verify .
        . from example/overlay: 6 localized files, 1 upstream; recorded in the lock alone
        verified .: as recorded
        $ git kustomize-localize verify . --upstream
        . from example/overlay: 6 localized files, 1 upstream; recorded in the lock alone
        kustomize-localize.lock:6: ok: https://example.com/acme/remote.git?ref=v1 is <0>
        upstream of 1 remote: 1 ok
        verified .: as recorded
    "#]]);
    over.write(&format!("{PLACE}.orig"), "");
    over.remove("overlay/kustomization.yaml");
    over.symlink("overlay/kustomization.yaml", "../base/kustomization.yaml");
    over.write(PLACE, "edited: true\n");
    fs::rename(outside.join("base"), outside.join("moved")).unwrap();
    over.symlink("base", "moved");
    let output = project.sandbox.run(above, &["verify", "over"]);
    output
        .fails(1).says(expect![[r#"
            base: was added: the lock does not list it
            base/config.yaml: is missing, although the lock lists it
            base/kustomization.yaml: is missing, although the lock lists it
            base/localized-files/.gitattributes: is missing, although the lock lists it
            base/localized-files/example.com/acme/remote/v1/kustomization.yaml: is missing, although the lock lists it
            base/localized-files/example.com/acme/remote/v1/service.yaml: is missing, although the lock lists it
            moved/config.yaml: was added: the lock does not list it
            moved/kustomization.yaml: was added: the lock does not list it
            moved/localized-files/.gitattributes: was added: the lock does not list it
            moved/localized-files/example.com/acme/remote/v1/kustomization.yaml: was added: the lock does not list it
            moved/localized-files/example.com/acme/remote/v1/service.yaml: was added: the lock does not list it
            moved/localized-files/example.com/acme/remote/v1/service.yaml.orig: was added: the lock does not list it
            overlay/kustomization.yaml: is not a file, although the lock lists it as one
            overlay/kustomization.yaml: `overlay/kustomization.yaml` is not a file in its directory: kustomize finds no kustomization (invalid-kustomization)

            . from example/overlay: 6 localized files, 1 upstream; recorded in the lock alone
            NOT verified over: 14 differences
        "#]]);
    fs::remove_file(outside.join("base")).unwrap();
    fs::rename(outside.join("moved"), outside.join("base")).unwrap();
    project.sandbox.run(above, &["verify", "over"]).fails(1).says(expect![[r#"
        base/localized-files/example.com/acme/remote/v1/service.yaml: was changed: its sha256 <0> differs from the lock
        base/localized-files/example.com/acme/remote/v1/service.yaml.orig: was added: the lock does not list it
        overlay/kustomization.yaml: is not a file, although the lock lists it as one
        overlay/kustomization.yaml: `overlay/kustomization.yaml` is not a file in its directory: kustomize finds no kustomization (invalid-kustomization)

        . from example/overlay: 6 localized files, 1 upstream; recorded in the lock alone
        NOT verified over: 4 differences
    "#]]);
}

#[test]
fn remaining_remote_references_of_a_directory_are_named() {
    let project = written();
    let work = &project.work;
    let overlay = "localized-overlay/overlay/kustomization.yaml";
    let text = work.read(overlay);
    let before = git_kustomize_localize::seams::record::sha256_hex(text.as_bytes());
    let text = format!("{text}components: ['https://example.com/acme/remote.git?ref=v1']\n");
    let after = git_kustomize_localize::seams::record::sha256_hex(text.as_bytes());
    work.write(overlay, text);
    let lock = "localized-overlay/kustomize-localize.lock";
    work.write(lock, work.read(lock).replace(&before, &after));
    verify(work, &[COPY]).fails(1).says(expect![[r#"
        overlay/kustomization.yaml:4:14: `https://example.com/acme/remote.git?ref=v1` is still remote (components[0])

        . from example/overlay: 6 localized files, 1 upstream; recorded in the lock alone
        NOT verified localized-overlay: 1 difference
    "#]]);
}

#[test]
fn a_commit_and_a_directory_are_distinguished() {
    let project = written();
    let work = &project.work;
    // A revision wins, unless both could be meant.
    fs::create_dir_all(work.path().join("main")).unwrap();
    verify(work, &["main"]).fails(2).says(expect![[r#"
        error: `main` has no record: no `kustomize-localize.lock` in it lists localized files
          hint: commit the localized files: git kustomize-localize branch
    "#]]);
    work.git(&["branch", COPY]);
    let id = work.id(COPY);
    verify(work, &[COPY]).fails(2).stderr_has(&id).says(expect![[r#"
        error: `localized-overlay` names both a commit and a directory with a `kustomize-localize.lock`
          hint: name the directory: ./localized-overlay
          hint: name the commit: <0>
    "#]]);
    verify(work, &["./localized-overlay"]).success();
    verify(work, &[&id]).fails(2).says(expect![[r#"
        error: `<0>` has no record: no `kustomize-localize.lock` in it lists localized files
          hint: commit the localized files: git kustomize-localize branch
    "#]]);
    verify(work, &["./localized-overlay", "--rebuild"]).fails(2).says(expect![[r#"
        error: `--rebuild` needs a commit, but `./localized-overlay` is a directory
          hint: remove it, or name a commit
    "#]]);
    let mut transcript = Transcript::default();
    for name in ["example", "./example"] {
        transcript.add(verify(work, &[name]).fails(2));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize verify example
        error: `example` has no `kustomize-localize.lock` that lists localized files
          hint: name a directory that `--no-commit` wrote, or a commit
        $ git kustomize-localize verify ./example
        error: `./example` has no `kustomize-localize.lock` that lists localized files
          hint: name a directory that `--no-commit` wrote, or a commit
    "#]]);
}
