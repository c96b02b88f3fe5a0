//! `pre-push`: what is judged is what is pushed.

use super::{LOCAL, REMOTE, ROOT, commit, hook, install, refused, stage, work};
use crate::support::{Repo, Sandbox};

/// Returns a repository with the hook and a server that has its first commit.
fn pushing() -> (Sandbox, Repo) {
    let (sandbox, work) = work();
    work.git(&["init", "--quiet", "--bare", "-b", "main", "../server.git"]);
    work.git(&["remote", "add", "origin", "../server.git"]);
    install(&work, &["pre-push"]);
    work.git(&["push", "--quiet", "origin", "main"]);
    (sandbox, work)
}

#[test]
fn the_commit_that_is_pushed_is_judged_and_nothing_else() {
    let (_sandbox, work) = pushing();
    commit(&work, REMOTE);
    // The fix is on disk and staged: it is not pushed.
    stage(&work, ROOT, LOCAL);
    let before = work.state();
    let output = work.try_git(&["push", "origin", "main"]);
    refused(&output);
    output.says(expect![[r#"
        git kustomize-localize check: refs/heads/main:
        error[remote-reference]: `https://example.com/acme/app//deploy?ref=v1` is neither localized nor locked
         --> app/kustomization.yaml:2:5
          |
        2 |   - https://example.com/acme/app//deploy?ref=v1
          |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
          = help: keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
          = help: or vendor it: git kustomize-localize vendor :/app

        for more: git kustomize-localize explain remote-reference
        checked 1 kustomization with 1 reference in commit <0>: 1 error
        error: failed to push some refs to '../server.git'
    "#]]);
    before.assert_same(&work.state());
    work.git(&["commit", "--quiet", "-m", "mended"]);
    // Nor are commits below the tip: they are not built.
    work.write(ROOT, REMOTE);
    work.git(&["push", "--quiet", "origin", "main"]);
}

#[test]
fn every_ref_with_files_is_checked() {
    let (_sandbox, work) = pushing();
    work.git(&["branch", "good"]);
    work.git(&["switch", "--quiet", "-c", "bad"]);
    commit(&work, REMOTE);
    let bad = work.id("HEAD");
    work.git(&["tag", "-m", "annotated", "bad-tag"]);
    let blob = work.id("HEAD:app/config.yaml");
    work.git(&["tag", "blob", &blob]);
    work.git(&["tag", "tree", "HEAD^{tree}"]);
    work.git(&["tag", "-m", "annotated", "nested", "tree"]);
    // A name is not a command.
    work.git(&["branch", "$(touch${IFS}pwned)", "main"]);

    let output = work.try_git(&["push", "origin", "good", "bad", "bad-tag"]);
    refused(&output);
    // The same commit once.
    output.says(expect![[r#"
        git kustomize-localize check: refs/heads/bad, refs/tags/bad-tag:
        error[remote-reference]: `https://example.com/acme/app//deploy?ref=v1` is neither localized nor locked
         --> app/kustomization.yaml:2:5
          |
        2 |   - https://example.com/acme/app//deploy?ref=v1
          |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
          = help: keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
          = help: or vendor it: git kustomize-localize vendor :/app

        for more: git kustomize-localize explain remote-reference
        checked 1 kustomization with 1 reference in commit <0>: 1 error
        error: failed to push some refs to '../server.git'
    "#]]);
    refused(&work.try_git(&["push", "origin", &format!("{bad}:refs/heads/x")]));
    refused(&work.try_git(&["push", "origin", "HEAD@{0}:refs/heads/x"]));
    let fine = ["good", "blob", "tree", "nested", "$(touch${IFS}pwned)"];
    work.git(&[&["push", "--quiet", "origin"], &fine[..]].concat());
    assert!(!work.path().join("pwned").exists());
    // A deleted ref brings nothing.
    work.git(&["push", "--quiet", "--delete", "origin", "good", "blob"]);
    work.git(&["push", "--quiet", "origin", "main"]);
}

#[test]
fn malformed_push_lines_are_refused() {
    let (_sandbox, work) = pushing();
    // Tests give no standard input: nothing is pushed.
    hook(&work, &["run", "pre-push", "origin", "url"]).success();
    let script = |line: &str| format!("printf '%s\\n' '{line}' | git-kustomize-localize hook run pre-push origin url");
    let id = work.id("HEAD");
    let other = "1".repeat(40);
    for line in [
        "refs/heads/main".to_owned(),
        format!("refs/heads/main {id} refs/heads/main nonsense"),
        format!("refs/heads/main {other} refs/heads/main {id}"),
    ] {
        work.try_git(&["-c", &format!("alias.x=!{}", script(&line)), "x"]).fails(2);
    }
}
