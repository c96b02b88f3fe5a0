//! Repositories of every kind, hooks, and storage that cannot be written.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::BRANCH;
use crate::support::{NO_MOUNT, OVERLAY, Project, Repo, Running, Sandbox, State, Transcript, skip};

/// Localizes the overlay, twice, and asserts that the branch holds it and nothing else has changed.
#[track_caller]
fn localizes(repo: &Repo) {
    let is_bare = !repo.path().join(".git").exists();
    let own = |state: State| {
        // In a bare one, all of git's files are those of the repository.
        if is_bare {
            return state.without("files").without("git directory");
        }
        state
    };
    let before = own(repo.state());
    repo.run(&OVERLAY).success();
    assert_eq!(repo.id("localized/main^"), repo.id("main"));
    let lock = repo.show(BRANCH, "localized-overlay/kustomize-localize.lock");
    assert!(lock.contains("https://example.com/acme/remote"), "{lock}");
    repo.git(&["fsck", "--strict", "--no-dangling"]);
    repo.run(&OVERLAY).success().says(expect![[r#"
        nothing to do: branch localized/main (<0>) already has example/overlay in localized-overlay
          not verified: --no-verify
    "#]]);
    before.assert_same(&own(repo.state().without_ref(BRANCH)));
}

#[test]
fn every_clone_is_enough() {
    let project = Project::new();
    project.work.commit("second");
    let mut transcript = Transcript::default();
    for (name, options) in
        [("bare.git", &["--bare"][..]), ("shallow", &["--no-local", "--depth=1"]), ("borrowing", &["--shared"])]
    {
        let clone = project.sandbox.clone_with(&project.work, name, options);
        localizes(&clone);
        if name == "bare.git" {
            clone.git(&["update-ref", "-d", BRANCH]);
            let args = [&OVERLAY[..], &["--rev", "main"]].concat();
            clone.run(&args).success();
            transcript.add(clone.run(&["example/none", "--rev", "main"]).fails(2));
        }
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize example/none --rev main --no-verify
        error: the target `example/none` does not exist
          hint: did you mean `:/example/base`?
    "#]]);
}

#[test]
fn other_object_and_ref_formats_will_do() {
    let mut transcript = Transcript::default();
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
        localizes(&project.work);
        // In place, with a worktree, from one commit to the next.
        let work = &project.work;
        let place = project.sandbox.path("deployed");
        let follow = ["branch", "--branch=here", "--worktree"];
        let follow = [&follow[..], &[place.to_str().unwrap()]].concat();
        work.lock();
        for text in ["one", "two"] {
            work.write("README.md", text);
            let source = work.commit(text);
            work.run(&follow).success();
            assert_eq!(work.parents("here").last(), Some(&source), "{format}");
            let tip = work.id("here");
            transcript.add(work.run(&follow).success());
            assert_eq!(work.id("here"), tip, "{format}");
        }
        work.run(&["verify", "here", "--rebuild"]).success();
        work.git(&["fsck", "--strict", "--no-dangling"]);
        let deployed = Repo::new(&project.sandbox, place);
        assert_eq!(deployed.git(&["status", "--porcelain"]), "", "{format}");
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize branch --branch=here --worktree /home/me/deployed --no-verify
        nothing to do: branch here (<0>) already has <1> localized
          not verified: --no-verify
          checked out at /home/me/deployed
    "#]]);
}

#[test]
fn a_partial_clone_will_do() {
    let project = Project::new();
    project.work.git(&["config", "uploadpack.allowAnySHA1InWant", "true"]);
    let mut transcript = Transcript::default();
    for filter in ["blob:none", "tree:0"] {
        let filtered = format!("--filter={filter}");
        let options = ["--no-local", "--no-checkout", &filtered];
        let clone = project.sandbox.clone_with(&project.work, filter, &options);
        // `--offline` holds for what the clone lacks, too.
        let args = ["example/overlay", "--scope=example", "--rev=main"];
        let output = clone.run(&[&args[..], &["--offline"]].concat());
        output.fails(2);
        if filter == "blob:none" {
            transcript.add(&output);
            // Where it may be fetched, git says why it was not.
            let url = clone.git(&["remote", "get-url", "origin"]);
            clone.git(&["remote", "set-url", "origin", "file:///nowhere"]);
            transcript.add(clone.run(&args).fails(2));
            clone.git(&["remote", "set-url", "origin", url.trim()]);
        }
        for new_dir in ["localized-overlay", "other/copy"] {
            // The disk does not matter here: the files were never checked out.
            let args = ["example/overlay", new_dir, "--scope=example", "--rev=main"];
            clone.run(&args).success();
            transcript.add(clone.run(&args).success());
        }
        assert_eq!(clone.id("localized/main~2"), clone.id("main"));
        let missing = clone.git(&["rev-list", "--objects", "--missing=print", "main"]);
        assert!(missing.contains('?'), "everything was fetched after all");
        assert_eq!(clone.git(&["remote"]), "origin");
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize example/overlay --scope=example --rev=main --offline --no-verify
        error: `example/overlay/kustomization.yaml` has not been fetched into this partial clone
          hint: fetch it: git cat-file -e <0>
        $ git kustomize-localize example/overlay --scope=example --rev=main --no-verify
        error: git cannot read object <0>: '/nowhere' does not appear to be a git repository; could not fetch <0> from promisor remote
        $ git kustomize-localize example/overlay localized-overlay --scope=example --rev=main --no-verify
        nothing to do: branch localized/main (<0>) already has example/overlay in localized-overlay
          not verified: --no-verify
        $ git kustomize-localize example/overlay other/copy --scope=example --rev=main --no-verify
        nothing to do: branch localized/main (<0>) already has example/overlay in other/copy
          not verified: --no-verify
        $ git kustomize-localize example/overlay localized-overlay --scope=example --rev=main --no-verify
        nothing to do: branch localized/main (<0>) already has example/overlay in localized-overlay
          not verified: --no-verify
        $ git kustomize-localize example/overlay other/copy --scope=example --rev=main --no-verify
        nothing to do: branch localized/main (<0>) already has example/overlay in other/copy
          not verified: --no-verify
    "#]]);
}

/// Lets the hook `name` of a repository localize.
fn hook(work: &Repo, name: &str, args: &str) {
    let program = env!("CARGO_BIN_EXE_git-kustomize-localize");
    let script = format!("#!/bin/sh\nenv | grep ^GIT_ >\"$TMPDIR/seen\"\nexec {program} {args} --no-verify --quiet\n");
    work.hook(name, &script);
}

#[test]
fn in_a_hook_the_index_and_head_stay() {
    let project = Project::new();
    let work = &project.work;
    let linked = work.linked("linked", &["-b", "feature"]);
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
        assert_eq!(repo.git(&["status", "--porcelain", "--branch"]), format!("## {branch}\nA  staged.txt"));
        // What was committed is localized.
        let localized = format!("localized/{branch}");
        assert_eq!(repo.parents(&localized), [repo.id(branch)]);
        assert_eq!(repo.message("HEAD"), "by path");
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
    let bare = ["--bare"];
    let bare = project.sandbox.clone_with(&project.work, "bare.git", &bare);
    let args = [&OVERLAY[..], &["--rev", "main"]].concat();
    hook(&bare, "post-receive", &args.join(" "));
    let url = bare.path().to_str().unwrap();
    for message in ["first", "second"] {
        let source = project.work.commit(message);
        let pushed = project.work.try_git(&["push", "--quiet", url, "main"]);
        pushed.success();
        assert_eq!(pushed.stderr, "", "the hook has something to say");
        assert_eq!(bare.parents("localized/main").last(), Some(&source));
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
        {program} example/overlay --scope example --no-verify
        status=$?
        rm "$1/fill"
        [ "$before" = "$(git for-each-ref)" ] || echo changed
        find objects -type f -name 'tmp*' -o -type f -name '.tmp*'
        git fsck --strict --no-dangling || echo broken
        exit $status"#
    );
    let can_mount = Command::new("unshare").args(["-rm", "true"]).stderr(Stdio::null()).status();
    if !can_mount.is_ok_and(|status| status.success()) {
        return skip(NO_MOUNT);
    }
    let mut command = project.sandbox.command("unshare", &project.sandbox.path(""));
    command.args(["-rm", "sh", "-c", &script, "sh"]).arg(project.sandbox.path("small"));
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
