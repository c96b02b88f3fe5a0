//! Repositories of every kind, hooks, and storage that cannot be written.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use super::BRANCH;
use crate::support::{NO_MOUNT, OVERLAY, Project, Repo, Running, Sandbox, skip};

/// Asserts that the branch holds the overlay, made from `source`.
#[track_caller]
fn assert_committed(repo: &Repo, source: &str) {
    assert_eq!(repo.id("localized/main^"), repo.id(source));
    let lock = repo.show(
        "localized/main",
        "localized-overlay/kustomize-localize.lock",
    );
    assert!(lock.contains("https://example.com/acme/remote"), "{lock}");
    repo.git(&["fsck", "--strict", "--no-dangling"]);
}

#[test]
fn a_bare_repository_will_do() {
    let project = Project::new();
    let bare = project.sandbox.path("bare.git");
    project
        .work
        .git(&["clone", "--quiet", "--bare", ".", bare.to_str().unwrap()]);
    let bare = Repo::new(&project.sandbox, bare);
    let before = bare.state().without("files").without("git directory");
    for args in [&["--rev", "main"][..], &[]] {
        bare.run(&[&OVERLAY, args].concat()).success();
        assert_committed(&bare, "main");
        bare.git(&["update-ref", "-d", BRANCH]);
    }
    before.assert_same(&bare.state().without("files").without("git directory"));
    let output = bare.run(&["example/none", "--rev", "main"]);
    output
        .fails(2)
        .stderr_has("there is no directory `example/none` for the target");
}

#[test]
fn other_object_and_ref_formats_will_do() {
    for format in ["--object-format=sha256", "--ref-format=reftable"] {
        let sandbox = Sandbox::new();
        let path = sandbox.path("work");
        fs::create_dir(&path).unwrap();
        let made = sandbox.try_git(&path, &["init", "--quiet", "-b", "main", format]);
        if made.status != 0 {
            skip(&format!("this git has no {format}"));
            continue;
        }
        let work = Repo::new(&sandbox, path);
        let project = Project::in_repo(sandbox, work);
        let before = project.work.state();
        project.overlay(&[]).success();
        assert_committed(&project.work, "main");
        project.overlay(&[]).success().stdout_has("nothing to do");
        before.assert_same(&project.work.state().without_ref(BRANCH));
    }
}

#[test]
fn a_shallow_clone_is_enough() {
    let project = Project::new();
    project.work.commit("second");
    let url = format!("file://{}", project.work.path().display());
    let clone = project.sandbox.path("clone");
    project.work.git(&[
        "clone",
        "--quiet",
        "--depth=1",
        &url,
        clone.to_str().unwrap(),
    ]);
    let clone = Repo::new(&project.sandbox, clone);
    let before = clone.state();
    clone.run(&OVERLAY).success();
    assert_committed(&clone, "main");
    clone.run(&OVERLAY).success().stdout_has("nothing to do");
    before.assert_same(&clone.state().without_ref(BRANCH));
}

#[test]
fn a_partial_clone_will_do() {
    let project = Project::new();
    project
        .work
        .git(&["config", "uploadpack.allowFilter", "true"]);
    project
        .work
        .git(&["config", "uploadpack.allowAnySHA1InWant", "true"]);
    let url = format!("file://{}", project.work.path().display());
    for filter in ["blob:none", "tree:0"] {
        let clone = project.sandbox.path(filter);
        project.work.git(&[
            "clone",
            "--quiet",
            "--no-checkout",
            &format!("--filter={filter}"),
            &url,
            clone.to_str().unwrap(),
        ]);
        let clone = Repo::new(&project.sandbox, clone);
        // `--offline` holds for what the clone lacks, too.
        let args = ["example/overlay", "--scope=example", "--rev=main"];
        let output = clone.run(&[&args[..], &["--offline"]].concat());
        output.fails(2);
        if filter == "blob:none" {
            output.stderr_has("is not here: this is a partial clone");
        }
        for new_dir in ["localized-overlay", "other/copy"] {
            // The disk does not matter here: the files were never checked out.
            let args = ["example/overlay", new_dir, "--scope=example", "--rev=main"];
            clone.run(&args).success();
            clone.run(&args).success().stdout_has("nothing to do");
        }
        assert_eq!(clone.id("localized/main~2"), clone.id("main"));
        let missing = clone.git(&["rev-list", "--objects", "--missing=print", "main"]);
        assert!(missing.contains('?'), "everything was fetched after all");
        assert_eq!(clone.git(&["remote"]), "origin");
    }
}

#[test]
fn borrowed_objects_are_found() {
    let project = Project::new();
    let shared = project.sandbox.path("shared");
    project.work.git(&[
        "clone",
        "--quiet",
        "--shared",
        ".",
        shared.to_str().unwrap(),
    ]);
    let shared = Repo::new(&project.sandbox, shared);
    shared.run(&OVERLAY).success();
    assert_committed(&shared, "main");
}

/// Lets the hook `name` of a repository localize.
fn hook(work: &Repo, name: &str, args: &str) {
    let program = env!("CARGO_BIN_EXE_git-kustomize-localize");
    let script =
        format!("#!/bin/sh\nenv | grep ^GIT_ >\"$TMPDIR/seen\"\nexec {program} {args} --quiet\n");
    let hook = work.git_directory().join("hooks").join(name);
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, script).unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn in_a_hook_the_index_and_head_stay() {
    let project = Project::new();
    let work = &project.work;
    let linked = project.sandbox.path("linked");
    work.git(&[
        "worktree",
        "add",
        "--quiet",
        "-b",
        "feature",
        linked.to_str().unwrap(),
    ]);
    let linked = Repo::new(&project.sandbox, linked);
    hook(work, "post-commit", &OVERLAY.join(" "));
    for (repo, branch) in [(work, "main"), (&linked, "feature")] {
        repo.write("README.md", branch);
        repo.write("staged.txt", "staged, but not part of the commit");
        repo.git(&["add", "staged.txt"]);
        let output = repo.try_git(&["commit", "--quiet", "-m", "by path", "README.md"]);
        output.success();
        assert_eq!(output.stderr, "", "the hook has something to say");
        let seen = fs::read_to_string(project.sandbox.path("tmp/seen")).unwrap();
        assert!(seen.contains("GIT_INDEX_FILE="), "{seen}");
        assert_eq!(repo.git(&["status", "--porcelain"]), "A  staged.txt");
        assert_eq!(
            repo.git(&["symbolic-ref", "HEAD"]),
            format!("refs/heads/{branch}")
        );
        assert_eq!(
            repo.id(&format!("localized/{branch}^")),
            repo.id(branch),
            "localized what was committed"
        );
        assert_eq!(repo.git(&["log", "-1", "--format=%s"]), "by path");
        repo.git(&["fsck", "--strict", "--no-dangling"]);
        fs::remove_file(project.sandbox.path("tmp/seen")).unwrap();
    }
    // The second time, parents are tip and source.
    work.git(&["commit", "--quiet", "--allow-empty", "-m", "next"]);
    assert_eq!(work.id("localized/main^2"), work.id("main"));
    assert!(!work.git_directory().join("FETCH_HEAD").exists());
}

#[test]
fn a_server_may_localize_what_it_received() {
    let project = Project::new();
    let bare = project.sandbox.path("bare.git");
    project.work.git(&[
        "init",
        "--quiet",
        "--bare",
        "-b",
        "main",
        bare.to_str().unwrap(),
    ]);
    let bare = Repo::new(&project.sandbox, bare);
    let args = [&OVERLAY[..], &["--rev", "main"]].concat();
    hook(&bare, "post-receive", &args.join(" "));
    let url = bare.path().to_str().unwrap();
    for message in ["first", "second"] {
        project.work.commit(message);
        let pushed = project.work.try_git(&["push", "--quiet", url, "main"]);
        pushed.success();
        assert_eq!(pushed.stderr, "", "the hook has something to say");
        let parents = bare.git(&["log", "-1", "--format=%P", "localized/main"]);
        assert!(parents.ends_with(&project.work.id("main")), "{parents}");
    }
    bare.git(&["fsck", "--strict", "--no-dangling"]);
}

#[test]
fn objects_that_cannot_be_written_are_reported() {
    let project = Project::new();
    let objects = project.work.git_directory().join("objects");
    // Permissions do not bind root; a file where a directory is needed binds everybody.
    for byte in 0..=255_u8 {
        let directory = objects.join(format!("{byte:02x}"));
        if !directory.exists() {
            fs::write(directory, "").unwrap();
        }
    }
    let before = project.work.state().without("fsck");
    project
        .overlay(&[])
        .fails(2)
        .stderr_has("could not write to the object database")
        .stderr_has("hint: check that the repository can be written and that the disk has room");
    before.assert_same(&project.work.state().without("fsck"));
    assert_eq!(temporary(&objects), Vec::<String>::new());
}

/// Returns what an interrupted write would leave.
fn temporary(objects: &Path) -> Vec<String> {
    fs::read_dir(objects)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| name.len() != 2 && name != "info" && name != "pack")
        .collect()
}

#[test]
fn a_full_disk_is_reported_and_leaves_nothing() {
    let project = Project::new();
    let program = env!("CARGO_BIN_EXE_git-kustomize-localize");
    let script = format!(
        r#"mkdir -p "$1" && mount -t tmpfs -o size=256k tmpfs "$1" || exit 77
        git clone --quiet --bare work "$1/bare" && cd "$1/bare" || exit 78
        before=$(git for-each-ref)
        dd if=/dev/zero of="$1/fill" bs=1k 2>/dev/null
        {program} example/overlay --scope example
        status=$?
        rm "$1/fill"
        [ "$before" = "$(git for-each-ref)" ] || echo changed
        find objects -type f -name 'tmp*' -o -type f -name '.tmp*'
        git fsck --strict --no-dangling || echo broken
        exit $status"#
    );
    let can_mount = Command::new("unshare")
        .args(["-rm", "true"])
        .stderr(Stdio::null())
        .status();
    if !can_mount.is_ok_and(|status| status.success()) {
        return skip(NO_MOUNT);
    }
    let mut command = project
        .sandbox
        .command("unshare", &project.sandbox.path(""));
    command
        .args(["-rm", "sh", "-c", &script, "sh"])
        .arg(project.sandbox.path("small"));
    let output = Running::start(&mut command).wait();
    if output.status == 77 {
        return skip(NO_MOUNT);
    }
    output
        .fails(2)
        .stderr_has("No space left on device")
        .stderr_has("hint: check that the repository can be written and that the disk has room");
    assert_eq!(output.stdout, "");
}
