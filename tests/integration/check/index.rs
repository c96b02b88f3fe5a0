//! `check` of every kind of index, compared with git's own view of it, and from the hooks that `git commit` and `git
//! merge` run.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::support::{Output, Repo, Sandbox, config};

const REMOTE: &str = "https://github.com/acme/app//base?ref=v1.0.0";

fn remote() -> String {
    format!("resources:\n- {REMOTE}\n")
}

/// A repository with a base and two overlays, all of it local and committed.
fn repository(sandbox: &Sandbox) -> Repo {
    let repo = sandbox.repo("work");
    fill(&repo);
    repo
}

fn fill(repo: &Repo) {
    repo.write("base/config.yaml", config("base"));
    repo.write("base/kustomization.yaml", "resources:\n- config.yaml\n");
    for overlay in ["dev", "prod"] {
        let text = "resources:\n- ../../base\n";
        repo.write(&format!("overlays/{overlay}/kustomization.yaml"), text);
    }
    repo.commit("Begin");
}

/// Runs a check that must change nothing.
#[track_caller]
fn check(repo: &Repo, args: &[&str]) -> Output {
    repo.run_unchanged(&[&["check"], args].concat())
}

/// The index that a check should see: a remote reference in one overlay, and nothing else wrong.
#[track_caller]
fn finds_the_remote_one(repo: &Repo) {
    check(repo, &[])
        .fails(1)
        .stdout_has("overlays/prod/kustomization.yaml:2:3")
        .stdout_has("checked 3 kustomizations with 3 references in the index");
}

/// Makes `check` the hook of commits and merges.
fn hook(repo: &Repo, directory: &Path) {
    for name in ["pre-commit", "pre-merge-commit"] {
        let path = directory.join("hooks").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let program = env!("CARGO_BIN_EXE_git-kustomize-localize");
        fs::write(&path, format!("#!/bin/sh\nexec '{program}' check\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    repo.git(&[
        "config",
        "core.hooksPath",
        directory.join("hooks").to_str().unwrap(),
    ]);
}

#[test]
fn every_format_of_the_index_is_read() {
    for (name, setup) in [
        (
            "version 2",
            &[&["update-index", "--index-version", "2"][..]][..],
        ),
        ("version 3", &[&["update-index", "--index-version", "3"]]),
        ("version 4", &[&["update-index", "--index-version", "4"]]),
        ("split", &[&["update-index", "--split-index"]]),
        (
            "split, version 4",
            &[
                &["update-index", "--index-version", "4"],
                &["update-index", "--split-index"],
            ],
        ),
        (
            "untracked cache",
            &[&["update-index", "--force-untracked-cache"], &["status"]],
        ),
        (
            "many extensions",
            &[
                &["config", "index.threads", "2"],
                &["config", "feature.manyFiles", "true"],
                &["status"],
            ],
        ),
        ("no checksum", &[&["config", "index.skipHash", "true"]]),
    ] {
        let sandbox = Sandbox::new();
        let repo = repository(&sandbox);
        for args in setup {
            repo.git(args);
        }
        check(&repo, &[])
            .success()
            .stdout_has("3 kustomizations with 3 references");
        repo.write("overlays/prod/kustomization.yaml", remote());
        check(&repo, &[]).success();
        repo.git(&["add", "overlays"]);
        // A split index has replaced, added and removed entries now.
        repo.write("new.yaml", "");
        repo.git(&["add", "new.yaml"]);
        finds_the_remote_one(&repo);
        repo.git(&["rm", "-q", "-r", "--cached", "overlays/prod"]);
        let output = check(&repo, &[]);
        assert!(
            output
                .success()
                .stdout
                .contains("2 kustomizations with 2 references"),
            "{name}: {}",
            output.stdout
        );
    }
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
    repo.write(
        "base/kustomization.yaml",
        "resources:\n- config.yaml\n- empty.yaml\n- ../later.yaml\n",
    );
    repo.git(&["add", "base"]);
    repo.git(&["update-index", "--split-index"]);
    // Elsewhere than its other half, which git looks for in its own directory.
    let moved = sandbox.path("index");
    fs::copy(repo.git_directory().join("index"), &moved).unwrap();
    let direct = repo.run(&["check", "--format", "json"]);
    fs::remove_file(repo.git_directory().join("index")).unwrap();
    sandbox.set("GIT_INDEX_FILE", &moved);
    let by_git = repo.run(&["check", "--format", "json"]);
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
    let output = repo.run(&["check"]);
    output
        .fails(2)
        .stderr_has("index` is damaged")
        .stderr_has("git reset");
    assert_eq!(output.stdout, "");
    fs::write(&index, b"").unwrap();
    repo.run(&["check"]).fails(2);
}

#[test]
fn directories_of_a_sparse_index_are_read_too() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    repo.write("overlays/prod/kustomization.yaml", remote());
    repo.commit("Name a remote root");
    repo.git(&["sparse-checkout", "set", "--cone", "--sparse-index", "base"]);
    let listed = repo.git(&["ls-files", "--sparse"]);
    assert!(
        listed.contains("overlays/\n") || listed.ends_with("overlays/"),
        "{listed}"
    );
    assert!(!repo.path().join("overlays").exists());
    // Trees that only the index holds so far.
    repo.git(&["write-tree"]);
    finds_the_remote_one(&repo);
    // A reference out of what is there into what is not.
    repo.write(
        "base/kustomization.yaml",
        "resources:\n- config.yaml\n- ../overlays/dev\n- ../overlays/none.yaml\n",
    );
    repo.git(&["add", "base"]);
    repo.git(&["write-tree"]);
    check(&repo, &[])
        .fails(1)
        .stdout_has("overlays/prod/kustomization.yaml:2:3")
        .lacks("../overlays/dev");
}

#[test]
fn files_that_a_sparse_checkout_leaves_out_are_there() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    repo.write("overlays/prod/kustomization.yaml", remote());
    repo.commit("Name a remote root");
    repo.git(&[
        "sparse-checkout",
        "set",
        "--no-cone",
        "/base/kustomization.yaml",
    ]);
    assert!(!repo.path().join("base/config.yaml").exists());
    finds_the_remote_one(&repo);
}

#[test]
fn intent_to_add_entries_are_missing() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    repo.write("extra/kustomization.yaml", remote());
    repo.git(&["add", "-N", "extra/kustomization.yaml"]);
    // Unstaged changes are not part of a commit.
    check(&repo, &[])
        .success()
        .stdout_has("checked 3 kustomizations with 3 references");
    repo.git(&["add", "extra"]);
    check(&repo, &[])
        .fails(1)
        .stdout_has("extra/kustomization.yaml:2:3");
}

#[test]
fn an_unmerged_kustomization_cannot_be_looked_at() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    repo.git(&["switch", "-q", "-c", "other"]);
    repo.write(
        "base/kustomization.yaml",
        "resources:\n- config.yaml\nnamespace: other\n",
    );
    repo.commit("Other");
    repo.git(&["switch", "-q", "main"]);
    repo.write(
        "base/kustomization.yaml",
        "resources:\n- config.yaml\nnamespace: main\n",
    );
    repo.write("overlays/prod/kustomization.yaml", remote());
    repo.commit("Main");
    assert_ne!(repo.try_git(&["merge", "other"]).status, 0);
    // Everything else is still reported.
    check(&repo, &[])
        .fails(2)
        .stdout_has("overlays/prod/kustomization.yaml:2:3")
        .stderr_has("`base/kustomization.yaml` is not merged yet")
        .stderr_has("git add -- :/base/kustomization.yaml");
    repo.write("base/kustomization.yaml", "resources:\n- config.yaml\n");
    repo.git(&["add", "base"]);
    finds_the_remote_one(&repo);
}

#[test]
fn a_submodule_is_not_a_directory_of_this_repository() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    let inner = sandbox.repo("inner");
    inner.write("kustomization.yaml", remote());
    inner.commit("Begin");
    sandbox.configure("protocol.file.allow", "always");
    repo.git(&[
        "submodule",
        "--quiet",
        "add",
        inner.path().to_str().unwrap(),
        "vendor",
    ]);
    // Its files are on disk, but they are not ours.
    for source in ["--staged", "--working-tree"] {
        check(&repo, &[source])
            .success()
            .stdout_has("checked 3 kustomizations with 3 references");
    }
}

#[test]
fn an_empty_repository_has_nothing_wrong() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    assert!(!repo.git_directory().join("index").exists());
    check(&repo, &[])
        .success()
        .stdout_has("checked 0 kustomizations");
    // The first commit is checked like any other.
    repo.write("overlays/prod/kustomization.yaml", remote());
    repo.git(&["add", "--all"]);
    repo.run(&["check"])
        .fails(1)
        .stdout_has("overlays/prod/kustomization.yaml:2:3");
}

#[test]
fn a_sha256_repository_is_read() {
    let sandbox = Sandbox::new();
    let path = sandbox.path("work");
    fs::create_dir_all(&path).unwrap();
    sandbox.git(
        &path,
        &["init", "-q", "-b", "main", "--object-format=sha256"],
    );
    let repo = Repo::new(&sandbox, path);
    fill(&repo);
    for args in [&[][..], &["--working-tree"], &["--rev", "HEAD"]] {
        check(&repo, args)
            .success()
            .stdout_has("3 kustomizations with 3 references");
    }
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
    sandbox.git(
        &sandbox.path(""),
        &[
            "clone",
            "-q",
            "--no-checkout",
            "--filter=blob:none",
            &url,
            "clone",
        ],
    );
    let clone = Repo::new(&sandbox, sandbox.path("clone"));
    clone.git(&["read-tree", "HEAD"]);
    let id = clone.id("HEAD:base/kustomization.yaml");
    let before = clone.git(&["count-objects", "-v"]);
    for args in [&["check"][..], &["check", "--rev", "HEAD"]] {
        clone
            .run(args)
            .fails(2)
            .stderr_has("`base/kustomization.yaml` is not here: this is a partial clone")
            .stderr_has(&format!("git cat-file -e {id}"));
    }
    assert_eq!(clone.git(&["count-objects", "-v"]), before);
    // The commands that it gives, all of them.
    for path in ["base", "overlays/dev", "overlays/prod"] {
        let id = clone.id(&format!("HEAD:{path}/kustomization.yaml"));
        clone.git(&["cat-file", "-e", &id]);
    }
    clone
        .run(&["check"])
        .success()
        .stdout_has("3 kustomizations with 3 references");
    // Where something is deployed, any other YAML file may say more.
    clone.write(
        ".kustomize-localize",
        "targets: [{path: base, engine: argo-cd}]\n",
    );
    clone.git(&["add", ".kustomize-localize"]);
    let output = clone.run(&["check"]);
    output
        .fails(2)
        .stdout_has("3 kustomizations with 3 references")
        .stderr_has("`base/config.yaml` is not here: this is a partial clone");
    let id = clone.id("HEAD:base/config.yaml");
    output.stderr_has(&format!("git cat-file -e {id}"));
    clone.git(&["cat-file", "-e", &id]);
    clone.run(&["check"]).success();
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
    check(&repo, &["--rev", &commit])
        .fails(1)
        .stdout_has("overlays/prod/kustomization.yaml:2:3");
    assert!(
        fs::read_dir(&quarantine).unwrap().next().is_some(),
        "nothing was quarantined"
    );
}

#[test]
fn unstaged_kustomizations_are_counted() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    for count in [1, 250] {
        for number in 0..250 {
            repo.write(&format!("many [*]/{number}/kustomization.yaml"), remote());
        }
        repo.commit("Begin");
        for number in 0..count {
            repo.write(
                &format!("many [*]/{number}/kustomization.yaml"),
                "namespace: mended\n",
            );
        }
        let told = match count {
            1 => "(1 differs in the working tree)".to_owned(),
            _ => format!("({count} differ in the working tree)"),
        };
        for directory in ["", "many [*]/7"] {
            let output = sandbox.run(&repo.path().join(directory), &["check"]);
            output.fails(1).stdout_has(&told);
        }
        repo.git(&["checkout", "-q", "--", "."]);
    }
}

#[test]
fn a_copied_repository_differs_in_nothing() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    // Only the times are others.
    let path = repo.path().join("base/kustomization.yaml");
    let file = fs::File::options().write(true).open(path).unwrap();
    let before = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
    file.set_modified(before).unwrap();
    check(&repo, &[])
        .success()
        .stdout_has("checked 3 kustomizations with 3 references in the index: nothing found");
    // A deleted file is another matter.
    repo.remove("base/kustomization.yaml");
    check(&repo, &[])
        .success()
        .stdout_has("(1 differs in the working tree)");
}

#[test]
fn the_help_explains_the_exit_status() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    for flag in ["-h", "--help"] {
        check(&repo, &[flag]).success().stdout_has(
            "Exit status: 0 nothing that fails; 1 findings that are errors; 2 something could not be looked at.",
        );
    }
}

#[test]
fn a_path_that_is_checked_may_be_named_from_the_top() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    for (path, status, told) in [
        (":/overlays/dev", 0, "checked 2 kustomizations"),
        (":/", 0, "checked 3 kustomizations"),
        (":/dev", 2, "there is no `dev` here"),
        (":/..", 2, "`:/..` lies outside of the repository"),
        ("", 2, "a PATH is empty"),
    ] {
        let output = sandbox.run(&repo.path().join("overlays"), &["check", path]);
        match status {
            0 => output.success().stdout_has(told),
            status => output.fails(status).stderr_has(told),
        };
    }
}

#[test]
fn kustomizations_whose_names_are_not_utf8_are_reported() {
    use std::os::unix::ffi::OsStrExt as _;
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    let odd = repo.path().join(std::ffi::OsStr::from_bytes(b"odd-\xff"));
    fs::create_dir(&odd).unwrap();
    fs::write(odd.join("kustomization.yaml"), remote()).unwrap();
    repo.commit("Begin");
    for args in [&["--staged"][..], &["--working-tree"], &["--rev", "HEAD"]] {
        check(&repo, args)
            .fails(2)
            .stdout_has("checked 3 kustomizations with 3 references")
            .stderr_has("its path is not UTF-8");
    }
}

#[test]
fn a_link_to_a_kustomization_is_read_where_it_leads() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    repo.write("linked/real.yaml", remote());
    repo.symlink("linked/kustomization.yaml", "real.yaml");
    repo.symlink("again", "linked");
    repo.git(&["add", "--all"]);
    for source in ["--staged", "--working-tree"] {
        check(&repo, &[source])
            .fails(1)
            .stdout_has("linked/real.yaml:2:3")
            .stdout_has("checked 4 kustomizations");
    }
}

#[test]
fn commits_of_every_kind_are_blocked() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    let (main, linked) = (sandbox.path("hooks-of-all"), sandbox.path("linked"));
    hook(&repo, &main);
    repo.git(&[
        "worktree",
        "add",
        "-q",
        "-b",
        "linked",
        linked.to_str().unwrap(),
    ]);
    let linked = Repo::new(&sandbox, linked);
    for repo in [&repo, &linked] {
        let head = repo.id("HEAD");
        let blocked = |args: &[&str]| {
            let output = repo.try_git(args);
            output.fails(1);
            let said = format!("{}{}", output.stdout, output.stderr);
            assert!(
                said.contains("overlays/prod/kustomization.yaml:2:3"),
                "{args:?}: {said}"
            );
            assert_eq!(repo.id("HEAD"), head, "{args:?}");
        };
        repo.write("overlays/prod/kustomization.yaml", remote());
        repo.write("note.txt", "a");
        repo.git(&["add", "note.txt"]);
        // Not staged, so not committed.
        blocked(&["commit", "-q", "-a", "-m", "x"]);
        blocked(&[
            "commit",
            "-q",
            "-m",
            "x",
            "--",
            "overlays/prod/kustomization.yaml",
        ]);
        blocked(&["commit", "-q", "-m", "x", "--include", "overlays"]);
        repo.git(&["commit", "-q", "--amend", "-m", "Begin", "--", "note.txt"]);
        repo.git(&["reset", "-q", "--soft", &head]);
        repo.git(&["add", "overlays"]);
        blocked(&["commit", "-q", "-m", "x"]);
        blocked(&["commit", "-q", "--amend", "-m", "x"]);
        // The real index holds the remote one; this commit does not.
        repo.write("other.txt", "b");
        repo.git(&["add", "other.txt"]);
        repo.git(&["commit", "-q", "-m", "Other", "--", "other.txt"]);
        repo.git(&["reset", "-q", "--hard", &head]);
    }
}

#[test]
fn a_merge_that_brings_a_remote_reference_is_blocked() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    repo.git(&["switch", "-q", "-c", "other"]);
    repo.write("overlays/prod/kustomization.yaml", remote());
    repo.commit("Name a remote root");
    repo.git(&["switch", "-q", "main"]);
    repo.write("note.txt", "a");
    let head = repo.commit("Main");
    hook(&repo, &sandbox.path("hooks-of-all"));
    let output = repo.try_git(&["merge", "-q", "-m", "Merge", "other"]);
    assert_ne!(output.status, 0);
    assert!(
        output
            .stdout
            .contains("overlays/prod/kustomization.yaml:2:3")
            || output
                .stderr
                .contains("overlays/prod/kustomization.yaml:2:3")
    );
    assert_eq!(repo.id("HEAD"), head);
    repo.git(&["checkout", "-q", "main", "--", "overlays"]);
    repo.git(&["commit", "-q", "-m", "Merge without it"]);
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
    repo.run(&["check"]).success();
    fs::copy(&other, repo.path().join("other-index")).unwrap();
    sandbox.set("GIT_INDEX_FILE", "other-index");
    repo.run(&["check"]).success();
    sandbox
        .run(&repo.path().join("overlays"), &["check"])
        .success();
    sandbox.unset("GIT_INDEX_FILE");
    sandbox.set("GIT_DIR", ".git");
    finds_the_remote_one(&repo);
    sandbox.set("GIT_DIR", repo.git_directory());
    sandbox.set("GIT_WORK_TREE", repo.path());
    sandbox
        .run(&sandbox.path(""), &["check"])
        .fails(1)
        .stdout_has("overlays/prod/kustomization.yaml:2:3");
}
