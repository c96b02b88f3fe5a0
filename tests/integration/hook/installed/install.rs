//! Putting hooks in and taking them out, byte for byte.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::{REMOTE, ROOT, does, hook, install, refused, script, stage, work};
use crate::support::{NO_MOUNT, Repo, Running, Transcript, skip};

/// Returns every file of the hooks directory with its mode, links as what they say.
fn hooks(work: &Repo) -> BTreeMap<String, (u32, Vec<u8>)> {
    hooks_in(&work.path().join(".git/hooks"))
}

fn hooks_in(directory: &Path) -> BTreeMap<String, (u32, Vec<u8>)> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    let files = entries.map(|entry| {
        let path = entry.unwrap().path();
        let metadata = fs::symlink_metadata(&path).unwrap();
        let bytes = match fs::read_link(&path) {
            Ok(target) => target.into_os_string().into_encoded_bytes(),
            Err(_) => fs::read(&path).unwrap(),
        };
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (name, (metadata.permissions().mode(), bytes))
    });
    files.collect()
}

fn names(directory: &Path) -> Vec<String> {
    let names = hooks_in(directory).into_keys();
    names.filter(|name| !name.ends_with(".sample")).collect()
}

/// Asserts that this fails, and that no hook is another one then.
#[track_caller]
fn fails(refusals: &mut Transcript, work: &Repo, args: &[&str]) {
    let before = hooks(work);
    refusals.add(hook(work, args).fails(2));
    assert_eq!(hooks(work), before);
}

fn existing(work: &Repo, name: &str, text: &str) {
    work.write_executable(&format!(".git/hooks/{name}"), text);
}

#[test]
fn installed_hooks_can_be_uninstalled() {
    let (_sandbox, work) = work();
    let directory = work.path().join(".git/hooks");
    let before = hooks(&work);
    hook(&work, &["install"]).success().says(expect![[r#"
        installed .git/hooks/pre-commit
        installed .git/hooks/pre-merge-commit
    "#]]);
    assert_eq!(names(&directory), ["pre-commit", "pre-merge-commit"]);
    // It is the file that the source offers for copying.
    for name in names(&directory) {
        let (mode, bytes) = hooks(&work).remove(&name).unwrap();
        assert_eq!((mode & 0o777, bytes), (0o755, script(&name)));
    }
    let after = hooks(&work);
    does(&work, &["install"], "installed .git/hooks/pre-commit\n");
    assert_eq!(hooks(&work), after);
    does(&work, &["uninstall"], "removed .git/hooks/pre-commit\n");
    assert_eq!(hooks(&work), before);
    does(&work, &["uninstall"], "nothing to remove");
    assert_eq!(hooks(&work), before);
}

#[test]
fn only_named_hooks_are_installed_and_uninstalled() {
    let (_sandbox, work) = work();
    let directory = work.path().join(".git/hooks");
    install(&work, &["pre-push", "pre-push"]);
    assert_eq!(names(&directory), ["pre-push"]);
    install(&work, &[]);
    hook(&work, &["uninstall", "pre-push", "-q"]).success();
    assert_eq!(names(&directory), ["pre-commit", "pre-merge-commit"]);
}

#[test]
fn a_repository_without_a_hooks_directory_gets_one() {
    let (_sandbox, work) = work();
    fs::remove_dir_all(work.path().join(".git/hooks")).unwrap();
    install(&work, &[]);
    stage(&work, ROOT, REMOTE);
    let output = work.try_git(&["commit", "-m", "remote"]);
    output.fails(1);
    // What it says begins with the name of the program.
    let begin = "git kustomize-localize check:\nerror[remote-reference]: ";
    assert!(output.stderr.starts_with(begin), "{output:?}");
}

#[test]
fn hooks_of_others_are_left_alone_and_the_line_to_add_is_named() {
    let mut refusals = Transcript::default();
    let (_sandbox, work) = work();
    work.write_executable("scripts/pre-commit", "#!/bin/sh\nexit 0\n");
    let line = "git kustomize-localize hook run pre-commit \"$@\" || exit $?\n";
    for text in ["#!/bin/sh\nexit 7\n", "#!/usr/bin/awk -f\n", "echo mine\n", ""] {
        existing(&work, "pre-commit", text);
        // All or nothing: the other one could have been written.
        fails(&mut refusals, &work, &["install"]);
        does(&work, &["uninstall"], "nothing to remove");
        assert_eq!(work.read(".git/hooks/pre-commit"), text);
        work.remove(".git/hooks/pre-commit");
    }
    for target in ["../../scripts/pre-commit", "nowhere"] {
        work.symlink(".git/hooks/pre-commit", target);
        fails(&mut refusals, &work, &["install"]);
        work.remove(".git/hooks/pre-commit");
    }
    // The line does what it says, and is not ours to remove.
    existing(&work, "pre-commit", &format!("#!/bin/sh\n{line}echo mine >> ran\n"));
    work.write(ROOT, REMOTE);
    refused(&work.try_git(&["commit", "-am", "remote"]));
    work.git(&["checkout", "--", "."]);
    work.git(&["commit", "--allow-empty", "-m", "local"]);
    assert_eq!(work.read("ran"), "mine\n");
    install(&work, &["pre-push"]);
    hook(&work, &["uninstall"]).success();
    assert!(work.read(".git/hooks/pre-commit").contains(line));
    refusals.says(expect![[r#"
        $ git kustomize-localize hook install
        error: not overwriting the existing hook `/home/me/work/.git/hooks/pre-commit`
          hint: to run both, add to it: git kustomize-localize hook run pre-commit "$@" || exit $?
          hint: for a hook of husky, lefthook, pre-commit or prek: git kustomize-localize help hook
    "#]]);
}

#[test]
fn a_hook_of_ours_is_written_again() {
    let (_sandbox, work) = work();
    let old = "#!/bin/sh\n# Made by git kustomize-localize.\nexit 9\n";
    let now = String::from_utf8(script("pre-commit")).unwrap();
    for text in [old, &now] {
        work.write(".git/hooks/pre-commit", text);
        does(&work, &["install", "pre-commit"], "installed .git/hooks/pre-commit\n");
        assert_eq!(work.read(".git/hooks/pre-commit"), now);
        work.write(ROOT, REMOTE);
        refused(&work.try_git(&["commit", "-am", "remote"]));
        does(&work, &["uninstall"], "removed .git/hooks/pre-commit\n");
    }
}

#[test]
fn hooks_in_the_working_tree_are_for_every_clone_that_wants_them() {
    let (_sandbox, work) = work();
    work.git(&["config", "core.hooksPath", ".githooks"]);
    fs::create_dir(work.path().join("app/sub")).unwrap();
    let sub = Repo::new(&_sandbox, work.path().join("app/sub"));
    does(&sub, &["install"], "installed ");
    assert_eq!(names(&work.path().join(".githooks")), ["pre-commit", "pre-merge-commit"]);
    work.write(ROOT, REMOTE);
    refused(&work.try_git(&["commit", "-am", "remote"]));
    hook(&sub, &["uninstall"]).success();
    assert!(names(&work.path().join(".githooks")).is_empty());
}

#[test]
fn hooks_of_other_repositories_are_left_alone() {
    let mut refusals = Transcript::default();
    let (sandbox, work) = work();
    let shared = sandbox.path("shared");
    sandbox.configure("core.hooksPath", shared.to_str().unwrap());
    let own = work.path().join(".git/hooks");
    let own = ["config", "--local", "core.hooksPath", own.to_str().unwrap()];
    fails(&mut refusals, &work, &["install"]);
    assert!(!shared.exists());
    // The command that it names helps.
    work.git(&own);
    install(&work, &[]);
    work.write(ROOT, REMOTE);
    refused(&work.try_git(&["commit", "-am", "remote"]));

    work.git(&["config", "core.hooksPath", ""]);
    fails(&mut refusals, &work, &["install"]);
    refusals.says(expect![[r#"
        $ git kustomize-localize hook install
        error: git reads hooks from `/home/me/shared`, outside of this repository: a hook there would run in other repositories too
          hint: to use hooks of this repository only: git config --local core.hooksPath /home/me/work/.git/hooks
          hint: to run it in all of them, add to it: git kustomize-localize hook run pre-commit "$@" || exit $?
          hint: to run it in all of them, add to it: git kustomize-localize hook run pre-merge-commit "$@" || exit $?
        $ git kustomize-localize hook install
        error: `core.hooksPath` is empty, so git finds no hooks
          hint: unset it: git config --unset-all core.hooksPath
    "#]]);
}

#[test]
fn a_bare_repository_makes_no_commits() {
    let (sandbox, work) = work();
    work.git(&["clone", "--quiet", "--bare", ".", "../bare.git"]);
    let bare = sandbox.path("bare.git");
    let before = hooks_in(&bare.join("hooks"));
    let mut transcript = Transcript::default();
    for directory in [bare.clone(), work.path().join(".git")] {
        transcript.add(sandbox.run(&directory, &["hook", "install"]).fails(2));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize hook install
        error: this repository has no working tree, so no commits are made here
          hint: for a repository that is pushed to, see `hooks/pre-receive` in the source of this program
    "#]]);
    assert_eq!(hooks_in(&bare.join("hooks")), before);
    // Its working trees do.
    sandbox.git(&bare, &["worktree", "add", "--quiet", "../tree", "main"]);
    let tree = Repo::new(&sandbox, sandbox.path("tree"));
    install(&tree, &[]);
    tree.write(ROOT, REMOTE);
    refused(&tree.try_git(&["commit", "-am", "remote"]));
}

/// Only one file more fits there.
#[test]
fn all_hooks_are_installed_or_none() {
    let (sandbox, work) = work();
    let program = env!("CARGO_BIN_EXE_git-kustomize-localize");
    let script = format!(
        "mkdir -p .git/hooks && mount -t tmpfs -o nr_inodes=2 tmpfs .git/hooks || exit 77
        {program} hook install
        status=$?
        ls -A .git/hooks
        exit $status"
    );
    let mut command = sandbox.command("unshare", work.path());
    let output = Running::start(command.args(["-rm", "sh", "-c", &script])).wait();
    if output.status == 77 || output.stderr.contains("unshare") {
        return skip(NO_MOUNT);
    }
    output.fails(2).stderr_has("could not write");
    assert_eq!(output.stdout, "");
}
