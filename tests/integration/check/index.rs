//! `check` of every kind of index, compared with git's own view of it. What hooks make of a commit or a merge is in
//! `hook::installed`.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;

use super::{check, commands, fill, findings, found, marked, remote, repository, shell};
use crate::support::{Repo, Sandbox, Transcript, config, skip};

/// Everything that can be checked.
const SOURCES: [&[&str]; 3] = [&["--staged"], &[], &["--rev", "HEAD"]];

/// A chart that helm pulls unless it is there.
const CHART: &str = "helmCharts:\n- name: c\n  releaseName: a\n  repo: https://charts.example.com\n";

/// A deployed directory, and one behind a link.
const APPLICATIONS: &str = "apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: a, namespace: argocd}
spec: {source: {repoURL: 'https://github.com/acme/fleet', path: apps/real/deployed}}
---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: b, namespace: argocd}
spec: {source: {repoURL: 'https://github.com/acme/fleet', path: apps/deployed}}
";

/// The index that a check should see: a remote reference in one overlay, and nothing else wrong.
#[track_caller]
fn finds_the_remote_one(repo: &Repo) {
    check(repo, &["--staged"]).fails(1).says(expect![[r#"
        error[remote-reference]: `https://github.com/acme/app//base?ref=v1.0.0` is neither localized nor locked
         --> overlays/prod/kustomization.yaml:2:3
          |
        2 | - https://github.com/acme/app//base?ref=v1.0.0
          |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
          = help: keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
          = help: or vendor it: git kustomize-localize vendor :/overlays/prod

        for more: git kustomize-localize explain remote-reference
        checked 3 kustomizations with 3 references in the index: 1 error
    "#]]);
}

#[test]
fn every_format_of_the_index_is_read() {
    let (mut whole, mut removed) = (Transcript::default(), Transcript::default());
    for setup in [
        "update-index --index-version 2",
        "update-index --index-version 3",
        "update-index --index-version 4",
        "update-index --split-index",
        "update-index --index-version 4; update-index --split-index",
        "update-index --force-untracked-cache; status",
        "config index.threads 2; config feature.manyFiles true; status",
        "config index.skipHash true",
    ] {
        let sandbox = Sandbox::new();
        let repo = repository(&sandbox);
        for command in setup.split("; ") {
            repo.git(&command.split(' ').collect::<Vec<_>>());
        }
        whole.add(check(&repo, &["--staged"]).success());
        repo.write("overlays/prod/kustomization.yaml", remote());
        check(&repo, &["--staged"]).success();
        repo.git(&["add", "overlays"]);
        // A split index has replaced, added and removed entries now.
        repo.write("new.yaml", "");
        repo.git(&["add", "new.yaml"]);
        finds_the_remote_one(&repo);
        repo.git(&["rm", "-q", "-r", "--cached", "overlays/prod"]);
        removed.add(check(&repo, &["--staged"]).success());
    }
    whole.says(expect![[r#"
        $ git kustomize-localize check --staged
        checked 3 kustomizations with 3 references in the index: no problems found
    "#]]);
    removed.says(expect![[r#"
        $ git kustomize-localize check --staged
        checked 2 kustomizations with 2 references in the index: no problems found
    "#]]);
}

#[test]
fn an_index_that_only_git_can_read_is_read_by_git() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    repo.write("overlays/prod/kustomization.yaml", remote());
    repo.write("later.yaml", "");
    repo.git(&["add", "overlays"]);
    repo.git(&["add", "-N", "later.yaml"]);
    repo.write("base/empty.yaml", "");
    repo.write("base/kustomization.yaml", "resources:\n- config.yaml\n- empty.yaml\n- ../later.yaml\n");
    repo.git(&["add", "base"]);
    repo.git(&["update-index", "--split-index"]);
    // Elsewhere than its other half, which git looks for in its own directory.
    let moved = sandbox.path("index");
    fs::copy(repo.git_directory().join("index"), &moved).unwrap();
    let direct = repo.run(&["check", "--staged", "--format", "json"]);
    fs::remove_file(repo.git_directory().join("index")).unwrap();
    sandbox.set("GIT_INDEX_FILE", &moved);
    let by_git = repo.run(&["check", "--staged", "--format", "json"]);
    assert_eq!(direct.fails(1).stdout, by_git.fails(1).stdout);
    by_git.stdout_has("overlays/prod/kustomization.yaml");
}

#[test]
fn a_broken_index_is_not_an_empty_one() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    let index = repo.git_directory().join("index");
    let bytes = fs::read(&index).unwrap();
    fs::write(&index, &bytes[..bytes.len() / 2]).unwrap();
    let output = repo.run(&["check", "--staged"]);
    output.fails(2).says(expect![[r#"
        error: the index `/home/me/work/.git/index` is damaged
          hint: recreate it from HEAD: rm /home/me/work/.git/index && git reset
    "#]]);
    assert_eq!(output.stdout, "");
    fs::write(&index, b"").unwrap();
    repo.run(&["check", "--staged"]).fails(2);
}

#[test]
fn what_a_sparse_checkout_leaves_out_is_there() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    repo.write("overlays/prod/kustomization.yaml", remote());
    repo.commit("Name a remote root");
    let sparse = |args: &[&str]| repo.git(&[&["sparse-checkout", "set"], args].concat());
    sparse(&["--no-cone", "/base/kustomization.yaml"]);
    assert!(!repo.path().join("base/config.yaml").exists());
    finds_the_remote_one(&repo);
    let same = || assert_eq!(findings(&repo, &[]), findings(&repo, &["--staged"]));
    same();
    // A sparse index holds directories as trees.
    sparse(&["--cone", "--sparse-index", "base"]);
    let listed = repo.git(&["ls-files", "--sparse"]);
    assert!(listed.lines().any(|line| line == "overlays/"), "{listed}");
    assert!(!repo.path().join("overlays").exists());
    // Trees that only the index holds so far.
    repo.git(&["write-tree"]);
    finds_the_remote_one(&repo);
    same();
    // A reference out of what is there into what is not.
    repo.write("base/kustomization.yaml", "resources:\n- config.yaml\n- ../overlays/dev\n- ../overlays/none.yaml\n");
    repo.git(&["add", "base"]);
    repo.git(&["write-tree"]);
    check(&repo, &["--staged"]).fails(1).says(expect![[r#"
            error[missing-path]: there is no `overlays/none.yaml`
             --> base/kustomization.yaml:4:3
              |
            4 | - ../overlays/none.yaml
              |   ^^^^^^^^^^^^^^^^^^^^^ resources[2]
              = help: add it, or remove the reference

            error[invalid-kustomization]: cycle: `base` leads back to itself: `base` -> `overlays/dev` -> `base`
             --> overlays/dev/kustomization.yaml:2:3
              |
            2 | - ../../base
              |   ^^^^^^^^^^ resources[0]
              = help: remove the reference, or move the shared part to a root of its own

            error[remote-reference]: `https://github.com/acme/app//base?ref=v1.0.0` is neither localized nor locked
             --> overlays/prod/kustomization.yaml:2:3
              |
            2 | - https://github.com/acme/app//base?ref=v1.0.0
              |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
              = help: keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
              = help: or vendor it: git kustomize-localize vendor :/overlays/prod

            for more: git kustomize-localize explain remote-reference missing-path invalid-kustomization
            checked 3 kustomizations with 5 references in the index: 3 errors
        "#]]);
    same();
    // On disk all the same, and then that counts.
    fs::create_dir_all(repo.path().join("overlays/prod")).unwrap();
    repo.write("overlays/prod/kustomization.yaml", "resources: [../../base]\n");
    let cycle = "!invalid-kustomization overlays/dev/kustomization.yaml:2";
    assert_eq!(found(&repo, &[]), ["!missing-path base/kustomization.yaml:4", cycle]);
}

#[test]
fn what_git_ignores_is_in_no_clone() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    repo.write("app/kustomization.yaml", "resources:\n- ../out/base\n- localized-files/h/dist/x.yaml\nsecretGenerator: [{name: s, envs: [x.env]}]\nhelmCharts: [{name: c}]\n");
    repo.write("app/x.env", "A=1\n");
    repo.write("app/localized-files/h/dist/x.yaml", config("x"));
    repo.write("out/base/kustomization.yaml", "namePrefix: a-\n");
    repo.write("app/charts/c/Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\n");
    repo.write("app/charts/c/values.yaml", "");
    repo.list_localized();
    repo.git(&["reset", "-q"]);
    for ignored in ["*.env\napp/charts/\nout/\ndist/\n", "*.env\napp/charts/**\nbase\nx.yaml\n"] {
        repo.write(".gitignore", ignored);
        repo.git(&["add", "app/kustomization.yaml", "kustomize-localize.lock", ".gitignore"]);
        repo.git(&["commit", "-qm", "names what is ignored"]);
        let clone = sandbox.clone_of(&repo, "clone");
        let expected = [
            "untracked-path app/kustomization.yaml:2",
            "untracked-path app/kustomization.yaml:3",
            "untracked-path app/kustomization.yaml:4",
            "untracked-path app/kustomization.yaml:5",
            "!edited-copy app/localized-files/h/dist/x.yaml:0",
        ];
        for (repo, sources) in [(&repo, &SOURCES[..]), (&clone, &SOURCES)] {
            for source in sources {
                assert_eq!(found(repo, source), expected, "{source:?}");
            }
        }
        fs::remove_dir_all(clone.path()).unwrap();
    }
    check(&repo, &[]).fails(1).says(expect![[r#"
        warning[untracked-path]: `out/base` is not committed, and git ignores it (.gitignore:3)
         --> app/kustomization.yaml:2:3
          |
        2 | - ../out/base
          |   ^^^^^^^^^^^ resources[0]
          = help: if it contains no secret, commit it: git add -f -- :/out/base

        warning[untracked-path]: `app/localized-files/h/dist/x.yaml` is not committed, and git ignores it (.gitignore:4)
         --> app/kustomization.yaml:3:3
          |
        3 | - localized-files/h/dist/x.yaml
          |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[1]

        warning[untracked-path]: `app/x.env` is not committed, and git ignores it (.gitignore:1)
         --> app/kustomization.yaml:4:36
          |
        4 | secretGenerator: [{name: s, envs: [x.env]}]
          |                                    ^^^^^ secretGenerator[0].envs[0]

        warning[untracked-path]: `app/charts/c` is not committed, and git ignores it (.gitignore:2)
         --> app/kustomization.yaml:5:14
          |
        5 | helmCharts: [{name: c}]
          |              ^^^^^^^^^^ helmCharts[0]

        error[edited-copy]: `app/localized-files/h/dist/x.yaml` is missing, although the lock lists it
         --> app/localized-files/h/dist/x.yaml
         = help: git add -f -- :/app/localized-files/h/dist/x.yaml

        note: repeated help is omitted: -v shows it
        for more: git kustomize-localize explain untracked-path edited-copy
        checked 4 kustomizations with 7 references in the working tree: 1 error, 4 warnings
    "#]]);
    repo.run(&["status"]).success().says(expect![[r#"
        4 kustomizations, 0 remote references
        check: 1 error, 4 warnings
        branch localized/main: missing
        next: git kustomize-localize init
    "#]]);
    repo.run(&["targets"]).success();
    // What is said is what helps.
    for command in commands(&findings(&repo, &[])) {
        shell(&repo, ".", &command).success();
    }
    assert_eq!(found(&repo, &[]), crate::support::NONE);
}

#[test]
fn intent_to_add_entries_are_missing() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    repo.write("extra/kustomization.yaml", remote());
    repo.git(&["add", "-N", "extra/kustomization.yaml"]);
    // Unstaged changes are not part of a commit.
    check(&repo, &["--staged"]).success().says(expect![[r#"
        checked 3 kustomizations with 3 references in the index: no problems found
    "#]]);
    repo.git(&["add", "extra"]);
    check(&repo, &["--staged"]).fails(1).says(expect![[r#"
        error[remote-reference]: `https://github.com/acme/app//base?ref=v1.0.0` is neither localized nor locked
         --> extra/kustomization.yaml:2:3
          |
        2 | - https://github.com/acme/app//base?ref=v1.0.0
          |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
          = help: keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
          = help: or vendor it: git kustomize-localize vendor :/extra

        for more: git kustomize-localize explain remote-reference
        checked 4 kustomizations with 4 references in the index: 1 error
    "#]]);
}

#[test]
fn an_unmerged_kustomization_cannot_be_looked_at() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    repo.git(&["switch", "-q", "-c", "other"]);
    repo.write("base/kustomization.yaml", "resources:\n- config.yaml\nnamespace: other\n");
    repo.commit("Other");
    repo.git(&["switch", "-q", "main"]);
    repo.write("base/kustomization.yaml", "resources:\n- config.yaml\nnamespace: main\n");
    repo.write("overlays/prod/kustomization.yaml", remote());
    repo.commit("Main");
    assert_ne!(repo.try_git(&["merge", "other"]).status, 0);
    // Everything else is still reported.
    check(&repo, &["--staged"])
        .fails(2).says(expect![[r#"
            error[remote-reference]: `https://github.com/acme/app//base?ref=v1.0.0` is neither localized nor locked
             --> overlays/prod/kustomization.yaml:2:3
              |
            2 | - https://github.com/acme/app//base?ref=v1.0.0
              |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
              = help: keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
              = help: or vendor it: git kustomize-localize vendor :/overlays/prod

            for more: git kustomize-localize explain remote-reference
            checked 3 kustomizations with 2 references in the index (1 differs in the working tree; fixes count after `git add`): 1 error, 1 could not be checked
            error: `base/kustomization.yaml` is unmerged
              hint: resolve the conflict, then: git add -- :/base/kustomization.yaml
        "#]]);
    repo.write("base/kustomization.yaml", "resources:\n- config.yaml\n");
    repo.git(&["add", "base"]);
    finds_the_remote_one(&repo);
}

#[test]
fn a_sha256_repository_is_read() {
    let sandbox = Sandbox::new();
    let path = sandbox.path("work");
    fs::create_dir_all(&path).unwrap();
    sandbox.git(&path, &["init", "-q", "-b", "main", "--object-format=sha256"]);
    let repo = Repo::new(&sandbox, path);
    fill(&repo);
    let mut transcript = Transcript::default();
    for source in SOURCES {
        transcript.add(check(&repo, source).success());
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize check --staged
        checked 3 kustomizations with 3 references in the index: no problems found
        $ git kustomize-localize check
        checked 3 kustomizations with 3 references in the working tree: no problems found
        $ git kustomize-localize check --rev HEAD
        checked 3 kustomizations with 3 references in commit <0> (HEAD): no problems found
    "#]]);
    repo.write("overlays/prod/kustomization.yaml", remote());
    repo.git(&["add", "overlays"]);
    finds_the_remote_one(&repo);
}

#[test]
fn a_partial_clone_fetches_nothing() {
    let sandbox = Sandbox::new();
    let origin = repository(&sandbox);
    origin.git(&["config", "uploadpack.allowFilter", "true"]);
    origin.git(&["config", "uploadpack.allowAnySHA1InWant", "true"]);
    let url = format!("file://{}", origin.path().display());
    sandbox.git(&sandbox.path(""), &["clone", "-q", "--no-checkout", "--filter=blob:none", &url, "clone"]);
    let clone = Repo::new(&sandbox, sandbox.path("clone"));
    clone.git(&["read-tree", "HEAD"]);
    let id = clone.id("HEAD:base/kustomization.yaml");
    let before = clone.git(&["count-objects", "-v"]);
    let mut transcript = Transcript::default();
    for args in [&["check", "--staged"][..], &["check", "--rev", "HEAD"]] {
        transcript.add(clone.run(args).fails(2).stderr_has(&format!("git cat-file -e {id}")));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize check --staged
        checked 3 kustomizations with 0 references in the index (3 differ in the working tree; fixes count after `git add`): 4 could not be checked
        error: `base/kustomization.yaml` has not been fetched into this partial clone
          hint: fetch it: git cat-file -e <0>
        error: `overlays/dev/kustomization.yaml` has not been fetched into this partial clone
        error: `overlays/prod/kustomization.yaml` has not been fetched into this partial clone
          hint: fetch it: git cat-file -e <1>
        error: `base/config.yaml` has not been fetched into this partial clone
          hint: fetch it: git cat-file -e <2>
        $ git kustomize-localize check --rev HEAD
        checked 3 kustomizations with 0 references in commit <0> (HEAD): 4 could not be checked
        error: `base/kustomization.yaml` has not been fetched into this partial clone
          hint: fetch it: git cat-file -e <1>
        error: `overlays/dev/kustomization.yaml` has not been fetched into this partial clone
        error: `overlays/prod/kustomization.yaml` has not been fetched into this partial clone
          hint: fetch it: git cat-file -e <2>
        error: `base/config.yaml` has not been fetched into this partial clone
          hint: fetch it: git cat-file -e <3>
    "#]]);
    assert_eq!(clone.git(&["count-objects", "-v"]), before);
    // The commands that it gives, all of them.
    for path in ["base", "overlays/dev", "overlays/prod"] {
        let id = clone.id(&format!("HEAD:{path}/kustomization.yaml"));
        clone.git(&["cat-file", "-e", &id]);
    }
    // Any other YAML file may deploy something.
    let output = clone.run(&["check", "--staged"]);
    output.fails(2).says(expect![[r#"
        checked 3 kustomizations with 3 references in the index (3 differ in the working tree; fixes count after `git add`): 1 could not be checked
        error: `base/config.yaml` has not been fetched into this partial clone
          hint: fetch it: git cat-file -e <0>
    "#]]);
    let id = clone.id("HEAD:base/config.yaml");
    clone.git(&["cat-file", "-e", &id]);
    clone.run(&["check", "--staged"]).success();
}

#[test]
fn objects_in_a_quarantine_are_found() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    let quarantine = sandbox.path("quarantine");
    fs::create_dir_all(&quarantine).unwrap();
    let objects = repo.git_directory().join("objects");
    sandbox.set("GIT_OBJECT_DIRECTORY", &quarantine);
    sandbox.set("GIT_ALTERNATE_OBJECT_DIRECTORIES", &objects);
    repo.write("overlays/prod/kustomization.yaml", remote());
    let commit = repo.commit("Quarantined");
    finds_the_remote_one(&repo);
    check(&repo, &["--rev", &commit]).fails(1).says(expect![[r#"
        error[remote-reference]: `https://github.com/acme/app//base?ref=v1.0.0` is neither localized nor locked
         --> overlays/prod/kustomization.yaml:2:3
          |
        2 | - https://github.com/acme/app//base?ref=v1.0.0
          |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
          = help: keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
          = help: or vendor it: git kustomize-localize vendor :/overlays/prod

        for more: git kustomize-localize explain remote-reference
        checked 3 kustomizations with 3 references in commit <0>: 1 error
    "#]]);
    assert!(fs::read_dir(&quarantine).unwrap().next().is_some(), "nothing was quarantined");
}

#[test]
fn unstaged_kustomizations_are_counted() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);

    for (count, differ) in [(1, "differs"), (250, "differ")] {
        for number in 0..250 {
            repo.write(&format!("many [*]/{number}/kustomization.yaml"), remote());
        }
        repo.commit("Begin");
        for number in 0..count {
            repo.write(&format!("many [*]/{number}/kustomization.yaml"), "namespace: mended\n");
        }
        let told = format!("({count} {differ} in the working tree;");
        for directory in ["", "many [*]/7"] {
            sandbox.run(&repo.path().join(directory), &["check", "--staged"]).fails(1).stdout_has(&told);
        }
        repo.git(&["checkout", "-q", "--", "."]);
    }
}

#[test]
fn other_times_are_not_differences_but_a_deleted_file_is() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    repo.write("overlays/dev/kustomization.yaml", remote());
    repo.git(&["add", "--all"]);
    // Only the times are others.
    let path = repo.path().join("base/kustomization.yaml");
    let file = fs::File::options().write(true).open(path).unwrap();
    let before = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
    file.set_modified(before).unwrap();
    check(&repo, &["--staged"]).fails(1).says(expect![[r#"
        error[remote-reference]: `https://github.com/acme/app//base?ref=v1.0.0` is neither localized nor locked
         --> overlays/dev/kustomization.yaml:2:3
          |
        2 | - https://github.com/acme/app//base?ref=v1.0.0
          |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
          = help: keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
          = help: or vendor it: git kustomize-localize vendor :/overlays/dev

        for more: git kustomize-localize explain remote-reference
        checked 3 kustomizations with 3 references in the index: 1 error
    "#]]);
    // A deleted file is another matter.
    repo.remove("base/kustomization.yaml");
    check(&repo, &["--staged"]).fails(1).says(expect![[r#"
        error[remote-reference]: `https://github.com/acme/app//base?ref=v1.0.0` is neither localized nor locked
         --> overlays/dev/kustomization.yaml:2:3
          |
        2 | - https://github.com/acme/app//base?ref=v1.0.0
          |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
          = help: keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
          = help: or vendor it: git kustomize-localize vendor :/overlays/dev

        for more: git kustomize-localize explain remote-reference
        checked 3 kustomizations with 3 references in the index (1 differs in the working tree; fixes count after `git add`): 1 error
    "#]]);
}

#[test]
fn a_link_to_a_kustomization_is_read_where_it_leads() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    repo.write("linked/real.yaml", remote());
    repo.symlink("linked/kustomization.yaml", "real.yaml");
    repo.symlink("again", "linked");
    repo.git(&["add", "--all"]);
    let mut transcript = Transcript::default();
    for source in [&["--staged"][..], &[]] {
        transcript.add(check(&repo, source).fails(1));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize check --staged
        error[remote-reference]: `https://github.com/acme/app//base?ref=v1.0.0` is neither localized nor locked
         --> linked/real.yaml:2:3
          |
        2 | - https://github.com/acme/app//base?ref=v1.0.0
          |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
          = help: keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
          = help: or vendor it: git kustomize-localize vendor :/linked

        for more: git kustomize-localize explain remote-reference
        checked 4 kustomizations with 4 references in the index: 1 error
        $ git kustomize-localize check
        error[remote-reference]: `https://github.com/acme/app//base?ref=v1.0.0` is neither localized nor locked
         --> linked/real.yaml:2:3
          |
        2 | - https://github.com/acme/app//base?ref=v1.0.0
          |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
          = help: keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
          = help: or vendor it: git kustomize-localize vendor :/linked

        for more: git kustomize-localize explain remote-reference
        checked 4 kustomizations with 4 references in the working tree: 1 error
    "#]]);
}

#[test]
fn the_environment_of_a_hook_selects_the_index() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    let other = sandbox.path("other-index");
    fs::copy(repo.git_directory().join("index"), &other).unwrap();
    repo.write("overlays/prod/kustomization.yaml", remote());
    repo.git(&["add", "overlays"]);
    finds_the_remote_one(&repo);
    // Absolute, relative, and from another directory.
    sandbox.set("GIT_INDEX_FILE", &other);
    repo.run(&["check", "--staged"]).success();
    fs::copy(&other, repo.path().join("other-index")).unwrap();
    sandbox.set("GIT_INDEX_FILE", "other-index");
    repo.run(&["check", "--staged"]).success();
    sandbox.run(&repo.path().join("overlays"), &["check", "--staged"]).success();
    sandbox.unset("GIT_INDEX_FILE");
    sandbox.set("GIT_DIR", ".git");
    finds_the_remote_one(&repo);
    sandbox.set("GIT_DIR", repo.git_directory());
    sandbox.set("GIT_WORK_TREE", repo.path());
    sandbox.run(&sandbox.path(""), &["check", "--staged"]).fails(1).says(expect![[r#"
        error[remote-reference]: `https://github.com/acme/app//base?ref=v1.0.0` is neither localized nor locked
         --> overlays/prod/kustomization.yaml:2:3
          |
        2 | - https://github.com/acme/app//base?ref=v1.0.0
          |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
          = help: keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
          = help: or vendor it: git kustomize-localize vendor :/overlays/prod

        for more: git kustomize-localize explain remote-reference
        checked 3 kustomizations with 3 references in the index: 1 error
    "#]]);
}

#[test]
fn a_directory_whose_name_is_not_utf8_is_not_passed_over() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    repo.write("app/kustomization.yaml", "namePrefix: a-\n");
    let bytes = repo.path().join(OsStr::from_bytes(b"b\xff/deep"));
    if fs::create_dir_all(&bytes).is_err() {
        return skip("this file system takes no such name");
    }
    fs::write(bytes.join("kustomization.yaml"), remote()).unwrap();
    repo.commit("odd");
    let mut transcript = Transcript::default();
    for source in SOURCES {
        transcript.add(check(&repo, source).fails(2));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize check --staged
        $ git kustomize-localize check
        $ git kustomize-localize check --rev HEAD
        error: `b�/deep/kustomization.yaml` cannot be read: its path is not UTF-8
          hint: rename its directory
    "#]]);
    // A sparse index holds the directory as a tree.
    repo.git(&["sparse-checkout", "set", "--cone", "--sparse-index", "app"]);
    assert!(!bytes.exists());
    check(&repo, &["--staged"]).fails(2).says(expect![[r#"
        error: `b�/deep/kustomization.yaml` cannot be read: its path is not UTF-8
          hint: rename its directory
    "#]]);
}

#[test]
fn a_path_that_is_on_disk_only() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    let secrets = "secretGenerator:\n- {name: a, envs: [../secret.env]}\n- {name: b, envs: [../secret.env]}\n";
    let paths = "resources:\n- map.yaml\n- ../base\n- ../part\n- secret.env\n- ../build\n- build/map.yaml\n";
    repo.write("a/kustomization.yaml", paths);
    repo.write("part/map.yaml", config("part"));
    repo.write(".gitignore", "*.env\nbuild/\n");
    repo.git(&["add", "--all"]);
    repo.write("a/map.yaml", config("a"));
    repo.write("a/build/map.yaml", config("built"));
    repo.write("part/kustomization.yaml", "resources: [map.yaml]\n");
    repo.write("base/kustomization.yaml", "resources: [map.yaml]\n");
    repo.write("base/map.yaml", config("base"));
    let told = |args: &[&str]| -> Vec<String> {
        let findings = findings(&repo, args).into_iter();
        let told = findings.map(|one| {
            let message = one["message"].as_str().unwrap();
            format!("{} {}", marked(&one), message.replace('`', ""))
        });
        told.collect()
    };
    let place = "a/kustomization.yaml";
    let ignored = [
        format!("untracked-path {place}:5 a/secret.env does not exist, and git ignores it (.gitignore:1)"),
        format!("untracked-path {place}:6 build does not exist, and git ignores it (.gitignore:2)"),
        format!("untracked-path {place}:7 a/build/map.yaml is not committed, and git ignores it (.gitignore:2)"),
    ];
    let missing = |messages: [&str; 3]| -> Vec<String> {
        let lines = (2..).zip(messages);
        let told = lines.map(|(line, why)| format!("!missing-path {place}:{line} {why}"));
        told.chain(ignored.clone()).collect()
    };
    let unstaged = missing([
        "a/map.yaml is on disk, but not committed",
        "base is on disk, but not committed",
        "part/kustomization.yaml is on disk, but not committed",
    ]);
    assert_eq!(told(&["--staged"]), unstaged);
    // What git does not ignore is in the working tree.
    assert_eq!(told(&[]), ignored);
    repo.git(&["commit", "-q", "--no-verify", "-m", "lost"]);
    let mut gone = missing(["there is no a/map.yaml", "there is no base", "no kustomization in part"]);
    // What is on disk does not matter to a commit.
    gone[3] = format!("untracked-path {place}:5 a/secret.env is not committed, and git ignores it (.gitignore:1)");
    gone[4] = format!("untracked-path {place}:6 build is not committed, and git ignores it (.gitignore:2)");
    assert_eq!(told(&["--rev", "HEAD"]), gone);
    // Only the name of a file is staged.
    repo.git(&["add", "-N", "a/map.yaml"]);
    assert_eq!(told(&["--staged"]), unstaged);
    repo.git(&["add", "--all"]);
    // Ignored files warn and fail nothing.
    assert_eq!(told(&["--staged"]), ignored);
    let help = commands(&findings(&repo, &["--staged"])[2..]);
    assert_eq!(help, ["git add -f -- :/a/build/map.yaml"]);
    shell(&repo, "", &help[0]).success();
    assert_eq!(told(&["--staged"]), ignored[..2]);
    // Nobody is asked to add a secret because several kustomizations name it.
    repo.write("a/kustomization.yaml", secrets);
    repo.write("b/kustomization.yaml", secrets);
    repo.write(".kustomize-localize", "load-restrictor: none\n");
    repo.write("secret.env", "password=x\n");
    repo.git(&["add", "--all"]);
    let ignored = found(&repo, &["--staged"]);
    assert_eq!(ignored.len(), 4, "{ignored:?}");
    assert!(ignored.iter().all(|one| one.starts_with("untracked-path ")));
}

#[test]
fn a_directory_is_staged_without_the_files_that_git_ignores() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    repo.write("app/kustomization.yaml", "resources: [../base.v1]\nhelmCharts: [{name: my.chart, releaseName: my}]\n");
    repo.write(".gitignore", "secret*\n");
    repo.git(&["add", "--all"]);
    for directory in ["base.v1", "app/charts/my.chart"] {
        repo.write(&format!("{directory}/secret.yaml"), "password: x\n");
    }
    repo.write("base.v1/kustomization.yaml", "{namePrefix: a}\n");
    repo.write("app/charts/my.chart/Chart.yaml", "apiVersion: v2\nname: my.chart\nversion: 1.0.0\n");
    let help = commands(&findings(&repo, &["--staged"]));
    assert_eq!(help, ["git add -- :/base.v1", "git add -- :/app/charts/my.chart"]);
    for command in &help {
        shell(&repo, "", command).success();
    }
    let staged = repo.git(&["ls-files"]);
    let files =
        [".gitignore", "app/charts/my.chart/Chart.yaml", "app/kustomization.yaml", "base.v1/kustomization.yaml"];
    assert_eq!(staged.lines().collect::<Vec<_>>(), files);
}

#[test]
fn a_submodule_is_not_a_directory_of_this_repository() {
    let sandbox = Sandbox::new();
    sandbox.configure("protocol.file.allow", "always");
    let inner = sandbox.repo("inner");
    inner.write("kustomization.yaml", remote());
    inner.commit("Begin");
    let repo = repository(&sandbox);
    let url = inner.path().to_str().unwrap();
    repo.git(&["submodule", "--quiet", "add", url, "sub"]);
    repo.commit("submodule");
    // Its files are on disk, but they are not ours.
    let mut transcript = Transcript::default();
    for source in SOURCES {
        transcript.add(check(&repo, source).success());
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize check --staged
        checked 3 kustomizations with 3 references in the index: no problems found
        $ git kustomize-localize check
        checked 3 kustomizations with 3 references in the working tree: no problems found
        $ git kustomize-localize check --rev HEAD
        checked 3 kustomizations with 3 references in commit <0> (HEAD): no problems found
    "#]]);
    repo.symlink("a/x.yaml", "../sub/kustomization.yaml");
    repo.write("a/kustomization.yaml", "resources: [../sub]\npatches: [{path: x.yaml}]\n");
    repo.commit("what names it");
    let expected = [1, 2].map(|line| format!("untracked-path a/kustomization.yaml:{line}"));
    for source in SOURCES {
        assert_eq!(found(&repo, source), expected, "{source:?}");
    }
}

#[test]
fn an_absolute_link_names_nothing_in_another_checkout() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    repo.write("app/kustomization.yaml", "resources: [map.yaml, base, chain.yaml]\n");
    repo.write("app/more.yaml", config("more"));
    // Both lie in this very checkout.
    let place = |path: &str| repo.path().join(path).to_str().unwrap().to_owned();
    repo.symlink("app/map.yaml", &place("app/more.yaml"));
    repo.symlink("app/base", &place("base"));
    // One that leads to another one.
    repo.symlink("app/chain.yaml", "map.yaml");
    repo.commit("links");
    let why = "`, which does not exist in other checkouts";
    for source in SOURCES {
        let findings = findings(&repo, source);
        assert_eq!(findings.len(), 3, "{findings:?}");
        for (finding, name) in findings.iter().zip(["map.yaml", "base", "map.yaml"]) {
            assert_eq!(marked(finding), "!out-of-scope app/kustomization.yaml:1");
            let message = finding["message"].as_str().unwrap();
            let link = format!("goes through the link `app/{name}` to the absolute path `/");
            assert!(message.contains(&link) && message.ends_with(why), "{message}");
        }
    }
    // No build here tells what is pulled elsewhere.
    for link in ["charts", "own/c", "values.yaml", "plugin.yaml", "deployed"] {
        repo.symlink(&format!("apps/{link}"), &place(&format!("apps/real/{link}")));
    }
    repo.write("apps/home/kustomization.yaml", format!("helmGlobals: {{chartHome: ../charts}}\n{CHART}"));
    repo.write("apps/chart/kustomization.yaml", format!("helmGlobals: {{chartHome: ../own}}\n{CHART}"));
    repo.write(
        "apps/kustomization.yaml",
        format!(
            "generators: [plugin.yaml]\nhelmGlobals: {{chartHome: real/charts}}\n{CHART}  valuesFile: values.yaml\n"
        ),
    );
    repo.write(
        "apps/real/plugin.yaml",
        "apiVersion: builtin\nkind: PrefixTransformer\nmetadata: {name: p}\nprefix: a-\n",
    );
    for chart in ["charts/c", "own/c"] {
        repo.write(&format!("apps/real/{chart}/Chart.yaml"), "apiVersion: v2\nname: c\nversion: 1.0.0\n");
        repo.write(&format!("apps/real/{chart}/values.yaml"), "");
    }
    repo.write("apps/real/values.yaml", "");
    repo.write("apps/real/deployed/kustomization.yaml", "resources: [map.yaml]\n");
    repo.write("apps/real/deployed/map.yaml", config("deployed"));
    repo.git(&["remote", "add", "origin", "https://github.com/acme/fleet"]);
    repo.write("clusters/apps.yaml", APPLICATIONS);
    repo.commit("links of charts");
    for source in SOURCES {
        let found: Vec<_> = findings(&repo, source)
            .iter()
            .map(marked)
            .filter(|found| !found.contains(" app/") && !found.starts_with("!engine"))
            .collect();
        assert_eq!(
            found,
            [
                "!out-of-scope apps/chart/kustomization.yaml:5",
                "!out-of-scope apps/home/kustomization.yaml:5",
                "!out-of-scope apps/kustomization.yaml:1",
                "!out-of-scope apps/kustomization.yaml:7",
                "missing-target clusters/apps.yaml:9",
            ],
            "{source:?}"
        );
    }
    repo.run(&["targets"]).success().says(expect![[r#"
        clusters/apps.yaml:1: Argo CD Application argocd/a
          apps/real/deployed: a kustomization, localized
        clusters/apps.yaml:6: Argo CD Application argocd/b
          apps/deployed: missing: `apps/deployed` leads out of the repository

        2 targets: 2 here, 0 external, 0 templated; 1 missing
    "#]]);
    repo.git(&["rm", "-rfq", "apps", "clusters"]);
    // A relative link is not affected.
    repo.remove("app/map.yaml");
    repo.remove("app/base");
    repo.symlink("app/map.yaml", "more.yaml");
    repo.symlink("app/base", "../base");
    repo.git(&["add", "--all"]);
    assert_eq!(found(&repo, &["--staged"]), crate::support::NONE);
}

#[test]
fn a_blob_without_objects_of_engines_is_searched_once() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    for number in 0..2_000 {
        repo.write(&format!("files/{number}.yaml"), config(&number.to_string()));
    }
    repo.decide("repository: [{url: 'https://github.com/acme/fleet'}]\n");
    repo.commit("many");
    let passes = || {
        for source in [&["--staged"][..], &["--rev", "HEAD"]] {
            check(&repo, source).success();
        }
    };
    passes();
    // It is not missed: nothing else reads it.
    let id = repo.id(":files/7.yaml");
    let object = repo.path().join(".git/objects").join(&id[..2]).join(&id[2..]);
    fs::rename(&object, repo.path().join("../object")).unwrap();
    passes();
    // A new one is searched.
    repo.write("files/new.yaml", APPLICATIONS);
    repo.git(&["add", "files/new.yaml"]);
    check(&repo, &["--staged"]).fails(1).says(expect![[r#"
        error[missing-target]: Argo CD Application a (files/new.yaml:1) deploys `apps/real/deployed`: there is no `apps/real/deployed`
         --> files/new.yaml:4:65
          |
        4 | spec: {source: {repoURL: 'https://github.com/acme/fleet', path: apps/real/deployed}}
          |                                                                 ^^^^^^^^^^^^^^^^^^^^
          = help: correct the object, or remove it; if nothing deploys it, list its directory below `exclude:` in .kustomize-localize

        error[missing-target]: Argo CD Application b (files/new.yaml:6) deploys `apps/deployed`: there is no `apps/deployed`
         --> files/new.yaml:9:65
          |
        9 | spec: {source: {repoURL: 'https://github.com/acme/fleet', path: apps/deployed}}
          |                                                                 ^^^^^^^^^^^^^^^

        note: repeated help is omitted: -v shows it
        for more: git kustomize-localize explain missing-target
        no kustomization in the index: 2 errors
    "#]]);
    // So is everything, if what was remembered is damaged.
    let remembered = repo.path().join(".git/kustomize-localize/unmarked");
    let mut bytes = fs::read(&remembered).unwrap();
    bytes[64] ^= 1;
    fs::write(&remembered, bytes).unwrap();
    let damaged =
        format!("`files/7.yaml` is damaged: there is no object {id}\n  hint: list missing objects: git fsck\n");
    assert_eq!(check(&repo, &["--staged"]).fails(2).stderr, format!("error: {damaged}"));
}
