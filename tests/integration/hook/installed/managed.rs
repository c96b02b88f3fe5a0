//! Hooks that other programs write: they are left alone, and the error names the page that says how they run ours.

use super::{LOCAL, REMOTE, ROOT, hook, refused, script, stage, work};
use crate::support::{Running, tool};

#[test]
fn a_hook_of_husky_runs_ours() {
    let (_sandbox, work) = work();
    // A repository as husky 9 sets it up.
    work.git(&["config", "core.hooksPath", ".husky/_"]);
    work.write_executable(".husky/_/pre-commit", "#!/usr/bin/env sh\n. \"${0%/*}/h\"");
    work.write(
        ".husky/_/h",
        "#!/usr/bin/env sh\nn=$(basename \"$0\")\ns=$(dirname \"$(dirname \"$0\")\")/$n\n[ ! -f \"$s\" ] && exit 0\nsh -e \"$s\" \"$@\"\n",
    );
    let before = work.state();
    let output = hook(&work, &["install", "pre-commit"]);
    let line = "git kustomize-localize hook run pre-commit";
    output.fails(2).says(expect![[r#"
        error: not overwriting the existing hook `/home/me/work/.husky/_/pre-commit`
          hint: to run both, add to it: git kustomize-localize hook run pre-commit "$@" || exit $?
          hint: for a hook of husky, lefthook, pre-commit or prek: git kustomize-localize help hook
    "#]]);
    before.assert_same(&work.state());
    work.write(".husky/pre-commit", format!("{line}\n"));
    work.write(ROOT, REMOTE);
    refused(&work.try_git(&["commit", "-am", "remote"]));
    work.write(ROOT, LOCAL);
    work.git(&["commit", "--allow-empty", "-am", "local"]);
}

#[test]
fn lefthook_runs_what_the_example_says() {
    let Some(_) = tool("lefthook") else { return };
    let (sandbox, work) = work();
    work.write("lefthook.yml", script("lefthook.yml"));
    work.commit("lefthook");
    let lefthook = |args: &[&str]| {
        let mut command = sandbox.command("lefthook", work.path());
        Running::start(command.args(args)).wait()
    };
    lefthook(&["install"]).success();
    hook(&work, &["install", "pre-commit"]).fails(2).says(expect![[r#"
            error: not overwriting the existing hook `/home/me/work/.git/hooks/pre-commit`
              hint: to run both, add to it: git kustomize-localize hook run pre-commit "$@" || exit $?
              hint: for a hook of husky, lefthook, pre-commit or prek: git kustomize-localize help hook
        "#]]);
    work.git(&["init", "--quiet", "--bare", "../server.git"]);
    stage(&work, "note", "x");
    work.git(&["commit", "-m", "note"]);
    work.git(&["push", "../server.git", "main"]);
    work.write(ROOT, REMOTE);
    refused(&work.try_git(&["commit", "-am", "remote"]));
    work.git(&["commit", "--quiet", "--no-verify", "-am", "remote"]);
    refused(&work.try_git(&["push", "../server.git", "main"]));
}
