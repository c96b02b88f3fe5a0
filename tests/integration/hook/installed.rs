//! `hook`: how hooks are installed and uninstalled, and real commits, merges and pushes that they refuse or accept.

mod install;
mod managed;
mod push;
mod server;

use std::path::Path;

use crate::support::{Output, Repo, Sandbox};

/// A kustomization that needs the network, and one that does not.
const REMOTE: &str = "resources:\n  - https://example.com/acme/app//deploy?ref=v1\n";
const LOCAL: &str = "resources:\n  - config.yaml\n";

/// Returns a repository `work` with a clean commit, and the program on `PATH`.
fn work() -> (Sandbox, Repo) {
    let sandbox = Sandbox::new();
    sandbox.offer_itself();
    let work = sandbox.repo("work");
    work.write("app/kustomization.yaml", LOCAL);
    work.write("app/config.yaml", crate::support::config("app"));
    work.commit("clean");
    (sandbox, work)
}

/// Installs the hooks, as a user does.
#[track_caller]
fn install(repo: &Repo, args: &[&str]) -> Output {
    let output = hook(repo, &[&["install"], args].concat());
    output.success();
    output
}

fn hook(repo: &Repo, args: &[&str]) -> Output {
    repo.run(&[&["hook"], args].concat())
}

/// Asserts that a check has refused this.
#[track_caller]
fn refused(output: &Output) {
    output.fails(1);
    let said = format!("{}{}", output.stdout, output.stderr);
    assert!(said.contains("remote-reference"), "{output:?}");
}

#[test]
fn a_commit_that_needs_the_network_is_refused() {
    let (_sandbox, work) = work();
    install(&work, &[]);
    let before = work.id("HEAD");
    work.write("app/kustomization.yaml", REMOTE);
    work.git(&["add", "."]);
    let state = work.state();
    hook(&work, &["run", "pre-commit"]).fails(1);
    state.assert_same(&work.state());
    refused(&work.try_git(&["commit", "-m", "remote"]));
    // git itself has refreshed the index.
    let state = state.without("index");
    state.assert_same(&work.state().without("index"));
    // Nor by the other ways to name what is committed, each of which gives the hook another index.
    work.git(&["reset", "--quiet"]);
    refused(&work.try_git(&["commit", "-a", "-m", "remote"]));
    refused(&work.try_git(&["commit", "-m", "remote", "--", "app"]));
    refused(&work.try_git(&["commit", "-a", "--amend", "--no-edit"]));
    assert_eq!(work.id("HEAD"), before);
    // Unstaged changes do not concern the hook.
    work.write("note", "x");
    work.git(&["add", "note"]);
    let output = work.try_git(&["commit", "--quiet", "-m", "note"]);
    output.success();
    assert_eq!((&*output.stdout, &*output.stderr), ("", ""));
}

#[test]
fn a_commit_in_a_linked_worktree_is_checked_too() {
    let (sandbox, work) = work();
    let directory = sandbox.path("linked");
    work.git(&["worktree", "add", "-q", "-b", "linked", "../linked"]);
    let linked = Repo::new(&sandbox, directory);
    let output = hook(&linked, &["install"]);
    output.success().stdout_has("all working trees");
    assert!(work.path().join(".git/hooks/pre-commit").is_file());
    let before = work.state();
    linked.write("app/kustomization.yaml", REMOTE);
    refused(&linked.try_git(&["commit", "-am", "remote"]));
    refused(&linked.try_git(&["commit", "-m", "remote", "app/kustomization.yaml"]));
    linked.write("app/kustomization.yaml", LOCAL);
    linked.write("note", "x");
    linked.git(&["add", "note"]);
    linked.try_git(&["commit", "-qm", "note"]).success();
    before
        .without("refs")
        .assert_same(&work.state().without("refs"));
}

#[test]
fn a_merge_is_checked_where_git_runs_no_pre_commit() {
    let (_sandbox, work) = work();
    work.git(&["switch", "--quiet", "-c", "other"]);
    work.write("b/kustomization.yaml", REMOTE);
    work.commit("remote");
    work.git(&["switch", "--quiet", "main"]);
    work.write("note", "x");
    work.commit("note");
    install(&work, &[]);
    let before = work.id("HEAD");
    refused(&work.try_git(&["merge", "-m", "merge", "other"]));
    assert_eq!(work.id("HEAD"), before);
    // The merge is left to be completed, which runs pre-commit.
    refused(&work.try_git(&["commit", "-m", "merge"]));
    work.git(&["merge", "--abort"]);
}

#[test]
fn findings_of_the_merged_side_are_not_new() {
    let (_sandbox, work) = work();
    work.write(".kustomize-localize", "new-only: true\n");
    work.commit("new only");
    work.git(&["switch", "--quiet", "-c", "other"]);
    work.write("b/kustomization.yaml", REMOTE);
    work.commit("remote");
    work.git(&["switch", "--quiet", "main"]);
    work.write("note", "x");
    work.commit("note");
    install(&work, &[]);
    // Without conflicts git names what is merged in the environment only.
    work.try_git(&["merge", "-m", "merge", "other"]).success();
    work.git(&["reset", "--quiet", "--hard", "HEAD^"]);
    // With one, in a file.
    work.git(&["switch", "--quiet", "other"]);
    work.write("note", "y");
    work.git(&["add", "."]);
    work.git(&["commit", "--quiet", "--no-verify", "-m", "conflict"]);
    work.git(&["switch", "--quiet", "main"]);
    work.try_git(&["merge", "-m", "merge", "other"]).fails(1);
    work.write("note", "z");
    work.git(&["add", "."]);
    work.try_git(&["commit", "-m", "merge"]).success();
    // But what neither side has is.
    work.write("c/kustomization.yaml", REMOTE);
    work.git(&["add", "."]);
    refused(&work.try_git(&["commit", "-m", "new"]));
}

#[test]
fn new_only_in_a_commit_compares_with_head() {
    let (_sandbox, work) = work();
    work.write("old/kustomization.yaml", REMOTE);
    work.commit("old");
    install(&work, &[]);
    work.write("note", "x");
    work.git(&["add", "."]);
    refused(&work.try_git(&["commit", "-m", "note"]));
    work.write(".kustomize-localize", "new-only: true\n");
    work.git(&["add", "."]);
    work.try_git(&["commit", "-m", "note"]).success();
    work.write("new/kustomization.yaml", REMOTE);
    work.git(&["add", "."]);
    refused(&work.try_git(&["commit", "-m", "new"]));
    // By hand, in a clean checkout, nothing could be new: that must not pass for a check.
    work.git(&["reset", "--quiet", "--hard"]);
    hook(&work, &["run", "pre-commit"])
        .fails(2)
        .stderr_has("--new-only=BASE");
}

#[test]
fn the_first_commit_is_all_new() {
    let (sandbox, _work) = work();
    let fresh = sandbox.repo("fresh");
    fresh.write(".kustomize-localize", "new-only: true\n");
    fresh.write("kustomization.yaml", REMOTE);
    fresh.git(&["add", "."]);
    install(&fresh, &[]);
    refused(&fresh.try_git(&["commit", "-m", "first"]));
    fresh.write("kustomization.yaml", "resources: []\nnamePrefix: a-\n");
    fresh.git(&["add", "."]);
    fresh.try_git(&["commit", "-m", "first"]).success();
}

#[test]
fn one_setting_switches_the_hooks_off() {
    let (_sandbox, work) = work();
    install(&work, &[]);
    work.write("app/kustomization.yaml", REMOTE);
    work.git(&["add", "."]);
    for off in ["false", "no", "0"] {
        work.git(&["config", "kustomize-localize.hook", off]);
        hook(&work, &["run", "pre-commit"]).success();
    }
    hook(&work, &["install"])
        .success()
        .stdout_has("`kustomize-localize.hook` is false");
    work.git(&["config", "kustomize-localize.hook", "true"]);
    refused(&work.try_git(&["commit", "-m", "remote"]));
    work.git(&["config", "kustomize-localize.hook", "perhaps"]);
    hook(&work, &["run", "pre-commit"])
        .fails(2)
        .stderr_has("perhaps");
    work.git(&["config", "kustomize-localize.hook", "false"]);
    work.try_git(&["commit", "-m", "remote"]).success();
}

#[test]
fn a_hook_without_the_program_says_so_and_passes() {
    let (sandbox, work) = work();
    install(&work, &["pre-commit", "pre-merge-commit", "pre-push"]);
    std::fs::remove_file(sandbox.path("bin/git-kustomize-localize")).unwrap();
    work.write("app/kustomization.yaml", REMOTE);
    work.git(&["add", "."]);
    let output = work.try_git(&["commit", "--quiet", "-m", "remote"]);
    output.success();
    assert_eq!(
        output.stderr,
        "git-kustomize-localize is not on PATH: this commit was not checked\n"
    );
    let server = sandbox.path("server.git");
    work.git(&["init", "--quiet", "--bare", server.to_str().unwrap()]);
    let output = work.try_git(&["push", "--quiet", server.to_str().unwrap(), "main"]);
    output.success();
    assert_eq!(
        output.stderr,
        "git-kustomize-localize is not on PATH: this push was not checked\n"
    );
    // After it is switched off, it is silent.
    work.git(&["config", "kustomize-localize.hook", "false"]);
    let output = work.try_git(&["commit", "--quiet", "--allow-empty", "-m", "again"]);
    output.success();
    assert_eq!(output.stderr, "");
}

#[test]
fn an_unknown_hook_is_a_usage_error() {
    let (sandbox, work) = work();
    hook(&work, &["install", "post-commit"])
        .fails(2)
        .stderr_has("post-commit");
    hook(&work, &["run"]).fails(2);
    hook(&work, &[]).fails(2);
    sandbox
        .run(&sandbox.path("home"), &["hook", "install"])
        .fails(2)
        .stderr_has("not a git repository");
}

#[test]
fn the_scripts_can_be_used_as_they_are() {
    let (_sandbox, work) = work();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("hooks");
    for name in ["pre-commit", "pre-merge-commit", "pre-push"] {
        let script = std::fs::read(source.join(name)).unwrap();
        work.write_executable(&format!(".githooks/{name}"), script);
    }
    work.git(&["config", "core.hooksPath", ".githooks"]);
    work.git(&["add", "."]);
    work.try_git(&["commit", "-m", "hooks"]).success();
    hook(&work, &["install"])
        .success()
        .stdout_has("runs the check already");
    work.write("app/kustomization.yaml", REMOTE);
    refused(&work.try_git(&["commit", "-am", "remote"]));
}

#[test]
fn object_ids_may_be_long_and_refs_stored_in_another_way() {
    for options in [&["--object-format=sha256"][..], &["--ref-format=reftable"]] {
        let (sandbox, _) = work();
        let directory = sandbox.path("other");
        std::fs::create_dir(&directory).unwrap();
        let init = [&["init", "--quiet", "-b", "main"], options].concat();
        sandbox.git(&directory, &init);
        let other = Repo::new(&sandbox, directory);
        other.write(".kustomize-localize", "new-only: true\n");
        other.write("old/kustomization.yaml", REMOTE);
        other.commit("old");
        other.git(&[&init[..], &["--bare", "../server.git"]].concat());
        other.git(&["remote", "add", "origin", "../server.git"]);
        other.git(&["push", "--quiet", "origin", "main"]);
        install(&other, &["pre-commit", "pre-push"]);
        other.write("new/kustomization.yaml", REMOTE);
        other.git(&["add", "."]);
        let output = other.try_git(&["commit", "-m", "new"]);
        refused(&output);
        output.lacks("old/kustomization.yaml");
        other.git(&["commit", "--quiet", "--no-verify", "-m", "new"]);
        let output = other.try_git(&["push", "origin", "main"]);
        refused(&output);
        output.lacks("old/kustomization.yaml");
        let server = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("hooks/pre-receive"));
        other.write_executable("../server.git/hooks/pre-receive", server.unwrap());
        let output = other.try_git(&["push", "--no-verify", "origin", "main", "main:topic"]);
        output
            .fails(1)
            .stderr_has("remote: git kustomize-localize check: refs/heads/main, refs/heads/topic:")
            .stderr_has("new/kustomization.yaml")
            .lacks("old/kustomization.yaml");
    }
}

#[test]
fn a_submodule_has_hooks_of_its_own() {
    let (sandbox, work) = work();
    let outer = sandbox.repo("outer");
    outer.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        work.path().to_str().unwrap(),
        "inner",
    ]);
    let inner = Repo::new(&sandbox, outer.path().join("inner"));
    install(&inner, &[]);
    assert!(
        outer
            .path()
            .join(".git/modules/inner/hooks/pre-commit")
            .is_file()
    );
    assert!(!outer.path().join(".git/hooks/pre-commit").exists());
    inner.write("app/kustomization.yaml", REMOTE);
    refused(&inner.try_git(&["commit", "-am", "remote"]));
    outer.try_git(&["commit", "-am", "outer"]).success();
}

#[test]
fn odd_indexes_are_read_as_git_reads_them() {
    for set_up in [
        &["update-index", "--split-index"][..],
        &["update-index", "--index-version", "4"],
        &["update-index", "--force-untracked-cache"],
        &["sparse-checkout", "set", "--cone", "--sparse-index", "note"],
    ] {
        let (_sandbox, work) = work();
        work.write("note/x", "x");
        work.write("far/kustomization.yaml", LOCAL);
        work.write("far/config.yaml", crate::support::config("far"));
        work.commit("more");
        install(&work, &[]);
        work.git(set_up);
        work.write("note/x", "y");
        work.try_git(&["commit", "-am", "note"]).success();
        work.write("note/kustomization.yaml", REMOTE);
        work.git(&["add", "--sparse", "."]);
        refused(&work.try_git(&["commit", "-m", "remote"]));
        // Announced is not staged.
        work.git(&["reset", "--quiet"]);
        work.git(&["add", "--intent-to-add", "note/kustomization.yaml"]);
        work.try_git(&["commit", "--allow-empty", "-m", "empty"])
            .success();
        refused(&work.try_git(&["commit", "-am", "remote"]));
    }
}
