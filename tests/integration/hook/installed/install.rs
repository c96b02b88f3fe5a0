//! Putting hooks in and taking them out, byte for byte.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::{LOCAL, REMOTE, ROOT, does, hook, install, refused, script, stage, work};
use crate::support::Repo;

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

/// Asserts that this fails with these words, and that no hook is another one then.
#[track_caller]
fn fails(work: &Repo, args: &[&str], said: &[&str]) {
    let before = hooks(work);
    let output = hook(work, args);
    output.fails(2);
    for text in said {
        output.stderr_has(text);
    }
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
    hook(&work, &["install"])
        .success()
        .stdout_has("installed .git/hooks/pre-commit\n")
        .stdout_has("installed .git/hooks/pre-merge-commit\n");
    assert_eq!(names(&directory), ["pre-commit", "pre-merge-commit"]);
    // It is the file that the source offers for copying.
    for name in names(&directory) {
        let (mode, bytes) = hooks(&work).remove(&name).unwrap();
        assert_eq!((mode & 0o777, bytes), (0o755, script(&name)));
    }
    let after = hooks(&work);
    does(&work, &["install"], "pre-commit runs the check already");
    assert_eq!(hooks(&work), after);
    does(&work, &["uninstall"], "removed .git/hooks/pre-commit\n");
    assert_eq!(hooks(&work), before);
    does(&work, &["uninstall"], "there is nothing to remove");
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
fn a_shell_hook_keeps_every_byte_and_runs_too() {
    let (_sandbox, work) = work();
    let directory = work.path().join(".git/hooks");
    for text in [
        // Lines after these would never run.
        "#!/bin/sh\necho old >> ran\nexit 0\n",
        "#!/bin/sh -e\nexec sh -c 'echo old >> ran'\n",
        "#!/usr/bin/env bash\nset -euo pipefail\necho old >> ran",
        "echo old >> ran\n",
    ] {
        existing(&work, "pre-commit", text);
        let mode = fs::Permissions::from_mode(0o700);
        fs::set_permissions(directory.join("pre-commit"), mode).unwrap();
        let before = hooks(&work);
        does(
            &work,
            &["install", "pre-commit"],
            "added the check to .git/hooks/pre-commit",
        );
        let _ = fs::remove_file(work.path().join("ran"));
        work.write(ROOT, REMOTE);
        refused(&work.try_git(&["commit", "-am", "remote"]));
        work.write(ROOT, LOCAL);
        work.git(&["commit", "--allow-empty", "-am", "local"]);
        assert_eq!(work.read("ran"), "old\n", "{text}");
        let after = hooks(&work);
        install(&work, &["pre-commit"]);
        assert_eq!(hooks(&work), after);
        does(
            &work,
            &["uninstall"],
            "took the check out of .git/hooks/pre-commit",
        );
        assert_eq!(hooks(&work), before, "{text}");
    }
}

#[test]
fn an_existing_hook_can_still_refuse() {
    let (_sandbox, work) = work();
    existing(&work, "pre-commit", "#!/bin/sh\necho mine >&2\nexit 7\n");
    install(&work, &[]);
    let output = work.try_git(&["commit", "--allow-empty", "-m", "empty"]);
    output.fails(1).stderr_has("mine");
}

#[test]
fn lines_of_another_version_are_brought_up_to_date() {
    let (_sandbox, work) = work();
    let old = "#!/bin/sh\n# >>> kustomize-localize\nexit 9\n# <<< kustomize-localize\necho mine\n";
    existing(&work, "pre-commit", old);
    does(
        &work,
        &["install", "pre-commit"],
        "brought .git/hooks/pre-commit up to date",
    );
    let text = work.read(".git/hooks/pre-commit");
    assert!(text.contains("hook run pre-commit") && !text.contains("exit 9"));
    hook(&work, &["uninstall"]).success();
    assert_eq!(work.read(".git/hooks/pre-commit"), "#!/bin/sh\necho mine\n");
    // A block without an end cannot be separated from the rest of the file.
    let endless = "#!/bin/sh\n# >>> kustomize-localize\nexit 9\n";
    existing(&work, "pre-commit", endless);
    for command in ["install", "uninstall"] {
        fails(
            &work,
            &[command],
            &[".git/hooks/pre-commit:2:", "have no end"],
        );
    }
}

#[test]
fn a_hook_that_is_not_a_shell_script_is_moved_aside_only_with_force() {
    let (_sandbox, work) = work();
    existing(&work, "pre-merge-commit", "#!/bin/sh\nexit 0\n");
    existing(
        &work,
        "pre-commit",
        "#!/usr/bin/env -S awk -f\nBEGIN { print \"old\" >> \"ran\" }\n",
    );
    let before = hooks(&work);
    // All or nothing: the other hook could have been added to.
    fails(
        &work,
        &["install"],
        &[
            "pre-commit` is not a shell script",
            "git kustomize-localize hook run pre-commit\n",
            "git kustomize-localize hook install --force pre-commit",
        ],
    );

    hook(&work, &["install", "--force"])
        .success()
        .stdout_has("now .git/hooks/pre-commit.before-kustomize-localize\n")
        .stdout_has("added the check to .git/hooks/pre-merge-commit");
    let installed = hooks(&work);
    install(&work, &["--force"]);
    install(&work, &[]);
    assert_eq!(hooks(&work), installed);
    work.write(ROOT, REMOTE);
    refused(&work.try_git(&["commit", "-am", "remote"]));
    assert!(!work.path().join("ran").exists());
    work.git(&["checkout", "--", "."]);
    work.git(&["commit", "--allow-empty", "-m", "local"]);
    assert_eq!(work.read("ran"), "old\n");

    does(
        &work,
        &["uninstall"],
        "put .git/hooks/pre-commit back as it was",
    );
    assert_eq!(hooks(&work), before);
}

#[test]
fn a_hook_that_was_moved_aside_is_never_overwritten() {
    let (_sandbox, work) = work();
    existing(&work, "pre-commit", "#!/usr/bin/awk -f\n");
    existing(&work, "pre-commit.before-kustomize-localize", "precious");
    let said = "pre-commit.before-kustomize-localize` is in the way";
    fails(&work, &["install", "--force"], &[said]);
}

#[test]
fn a_link_is_not_written_through() {
    let (_sandbox, work) = work();
    let text = "#!/bin/sh\necho old >> ran\n";
    work.write_executable("scripts/pre-commit", text);
    work.symlink(".git/hooks/pre-commit", "../../scripts/pre-commit");
    let before = hooks(&work);
    fails(&work, &["install"], &["is a symbolic link"]);
    install(&work, &["--force"]);
    assert_eq!(work.read("scripts/pre-commit"), text);
    work.git(&["commit", "--allow-empty", "-m", "local"]);
    assert_eq!(work.read("ran"), "old\n");
    hook(&work, &["uninstall"]).success();
    assert_eq!(hooks(&work), before);
}

#[test]
fn a_hook_that_is_switched_off_is_not_switched_on() {
    let (_sandbox, work) = work();
    work.write(".git/hooks/pre-commit", "#!/bin/sh\necho old >> ran\n");
    let before = hooks(&work);
    let said = "is not executable, so git does not run it";
    fails(&work, &["install"], &[said, "chmod +x "]);
    install(&work, &["--force"]);
    work.git(&["commit", "--allow-empty", "-m", "local"]);
    assert!(!work.path().join("ran").exists());
    hook(&work, &["uninstall"]).success();
    assert_eq!(hooks(&work), before);
}

#[test]
fn hooks_in_the_working_tree_are_for_every_clone_that_wants_them() {
    let (_sandbox, work) = work();
    work.git(&["config", "core.hooksPath", ".githooks"]);
    fs::create_dir(work.path().join("app/sub")).unwrap();
    let sub = Repo::new(&_sandbox, work.path().join("app/sub"));
    does(
        &sub,
        &["install"],
        "commit them, and every clone that sets `core.hooksPath` has them",
    );
    assert_eq!(
        names(&work.path().join(".githooks")),
        ["pre-commit", "pre-merge-commit"]
    );
    work.write(ROOT, REMOTE);
    refused(&work.try_git(&["commit", "-am", "remote"]));
    hook(&sub, &["uninstall"]).success();
    assert!(names(&work.path().join(".githooks")).is_empty());
}

#[test]
fn hooks_of_other_repositories_are_left_alone() {
    let (sandbox, work) = work();
    let shared = sandbox.path("shared");
    sandbox.configure("core.hooksPath", shared.to_str().unwrap());
    let own = work.path().join(".git/hooks");
    let own = ["config", "--local", "core.hooksPath", own.to_str().unwrap()];
    fails(
        &work,
        &["install"],
        &[
            "`core.hooksPath` (global)",
            "git kustomize-localize hook run pre-commit \"$@\"",
            &format!("git {}", own.join(" ")),
        ],
    );
    assert!(!shared.exists());
    // The command that it names helps.
    work.git(&own);
    install(&work, &[]);
    work.write(ROOT, REMOTE);
    refused(&work.try_git(&["commit", "-am", "remote"]));

    work.git(&["config", "core.hooksPath", ""]);
    let unset = "git config --local --unset-all core.hooksPath";
    let said = "`core.hooksPath` is set to nothing";
    fails(&work, &["install"], &[said, unset]);
}

#[test]
fn a_bare_repository_makes_no_commits() {
    let (sandbox, work) = work();
    work.git(&["clone", "--quiet", "--bare", ".", "../bare.git"]);
    let bare = sandbox.path("bare.git");
    let before = hooks_in(&bare.join("hooks"));
    for directory in [bare.clone(), work.path().join(".git")] {
        sandbox
            .run(&directory, &["hook", "install"])
            .fails(2)
            .stderr_has("this repository has no working tree")
            .stderr_has("hooks/pre-receive");
    }
    assert_eq!(hooks_in(&bare.join("hooks")), before);
    // Its working trees do.
    sandbox.git(&bare, &["worktree", "add", "--quiet", "../tree", "main"]);
    let tree = Repo::new(&sandbox, sandbox.path("tree"));
    install(&tree, &[]);
    tree.write(ROOT, REMOTE);
    refused(&tree.try_git(&["commit", "-am", "remote"]));
}
