//! In place, on a branch: what becomes of it as the source changes in every way.

use crate::support::{Output, Project, Repo, base_of, config};

const BRANCH: &str = "refs/heads/localized/main";
const BASE: &str = "example/base/kustomization.yaml";
const STORED: &str = "localized-files/example.com/acme/remote";

/// Commits the working tree of the source and follows it. Whatever happens, the branch is what its record says.
#[track_caller]
fn follow(repo: &Repo, what: &str, more: &[&str]) -> Output {
    repo.commit(what);
    let before = repo.state().without_ref(BRANCH);
    let output = repo.run(&[&["--in-place", "--no-verify"], more].concat());
    // A worktree is one more directory of git's.
    if !more.contains(&"--worktree") {
        before.assert_same(&repo.state().without_ref(BRANCH));
    }
    output.success();
    repo.run(&["verify", "localized/main", "--rebuild"])
        .success()
        .stdout_has(": as recorded");
    repo.run(&["check", "--rev", "localized/main"]).success();
    output
}

fn message(repo: &Repo) -> String {
    repo.git(&["log", "-1", "--format=%B", BRANCH])
}

/// Returns the paths of the branch that lie in a `localized-files`.
fn stored(repo: &Repo) -> Vec<String> {
    let files = repo.git(&["ls-tree", "-r", "--name-only", BRANCH]);
    let stored = files.lines().filter(|path| path.contains(STORED));
    stored.map(str::to_owned).collect()
}

#[test]
fn overlays_are_added_renamed_and_deleted() {
    let project = Project::new();
    let work = &project.work;
    project.second_version();
    follow(work, "begin", &[]);
    // Added, with a remote of its own.
    work.write(
        "example/more/kustomization.yaml",
        "resources:\n- ../base\n- https://example.com/acme/remote.git?ref=v2\nnameSuffix: -more\n",
    );
    follow(work, "added", &[]);
    let v1 = |directory: &str| {
        ["kustomization.yaml", "service.yaml"]
            .map(|name| format!("{directory}/{STORED}/v1/{name}"))
            .to_vec()
    };
    let v2 = |directory: &str| {
        let paths = v1(directory);
        paths
            .iter()
            .map(|path| path.replace("/v1/", "/v2/"))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        stored(work),
        [v1("example/base"), v2("example/more")].concat()
    );
    let text = message(work);
    for line in [
        "Brought in:\n\n- https://example.com/acme/remote.git?ref=v2 at ",
        "Kustomizations:\n\n- example/more/kustomization.yaml\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    // Renamed: the same content elsewhere, and nothing where it was.
    work.git(&["mv", "example/more", "example/prod"]);
    follow(work, "renamed", &[]);
    assert_eq!(
        stored(work),
        [v1("example/base"), v2("example/prod")].concat()
    );
    let text = message(work);
    assert!(
        text.contains("- example/more/kustomization.yaml\n- example/prod/kustomization.yaml\n"),
        "{text}"
    );
    assert!(!text.contains("Brought in"), "{text}");
    let blob = |path: &str| work.id(&format!("{BRANCH}:{path}"));
    assert_eq!(
        blob(&v2("example/prod")[1]),
        work.id(&format!("{BRANCH}~1:{}", v2("example/more")[1]))
    );
    // Renamed base: its references follow.
    work.git(&["mv", "example/base", "example/common"]);
    for path in ["example/overlay", "example/prod"] {
        let path = format!("{path}/kustomization.yaml");
        work.write(&path, work.read(&path).replace("../base", "../common"));
    }
    follow(work, "renamed base", &[]);
    assert_eq!(
        stored(work),
        [v1("example/common"), v2("example/prod")].concat()
    );
    // Deleted, with what only it named.
    work.git(&["rm", "-r", "--quiet", "example/prod"]);
    follow(work, "deleted", &[]);
    assert_eq!(stored(work), v1("example/common"));
    let text = message(work);
    assert!(
        text.contains("No longer referenced:\n\n- https://example.com/acme/remote.git?ref=v2\n"),
        "{text}"
    );
    // Everything deleted: the branch holds what main holds.
    work.git(&["rm", "-r", "--quiet", "example", "other"]);
    follow(work, "all", &[]);
    assert_eq!(work.id("localized/main^{tree}"), work.id("main^{tree}"));
}

#[test]
fn a_base_becomes_local_and_remote_again() {
    let project = Project::new();
    let work = &project.work;
    follow(work, "begin", &[]);
    let remote = stored(work);
    work.write(
        "example/base/kustomization.yaml",
        "resources: [config.yaml, ../ours]\n",
    );
    work.write(
        "example/ours/kustomization.yaml",
        "resources: [service.yaml]\n",
    );
    work.write("example/ours/service.yaml", config("ours"));
    follow(work, "local", &[]);
    assert_eq!(stored(work), [""; 0]);
    assert_eq!(work.id("localized/main^{tree}"), work.id("main^{tree}"));
    let text = message(work);
    for line in [
        "No longer referenced:\n\n- https://example.com/acme/remote.git?ref=v1\n",
        "- example/base/kustomization.yaml\n- example/ours/kustomization.yaml\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    work.git(&["rm", "-r", "--quiet", "example/ours"]);
    work.write(BASE, base_of("v1"));
    follow(work, "remote", &[]);
    assert_eq!(stored(work), remote);
    // Brought in by hand on main, where it then is: vendored, and the branch has it unchanged.
    work.run(&["--in-place", "--no-commit", "--no-verify"])
        .success();
    follow(work, "vendored", &[]);
    // But for the lock, which records that the message holds the record.
    assert_eq!(
        work.git(&["diff", "--name-only", "main", "localized/main"]),
        "kustomize-localize.lock"
    );
    assert_eq!(stored(work), remote);
}

#[test]
fn options_and_locks_change_between_runs() {
    let project = Project::new();
    let work = &project.work;
    work.write(
        "floating/kustomization.yaml",
        "resources: ['https://example.com/acme/remote.git']\n",
    );
    follow(work, "floating", &[]);
    // Once it is recorded, what upstream does makes no difference.
    project.second_version();
    let service = format!("floating/{STORED}");
    work.write("README.md", "More.\n");
    follow(work, "more", &["--locked"]);
    let held = |text: &str| {
        let found = stored(work)
            .into_iter()
            .find(|path| path.starts_with(&service) && path.ends_with("service.yaml"));
        assert!(work.show(BRANCH, &found.unwrap()).contains(text));
    };
    held("one");
    // References that only the tip holds are resolved again on request.
    let output = follow(work, "updated", &["--update"]);
    output.stdout_has("moved https://example.com/acme/remote.git ");
    held("two");
    let text = message(work);
    assert!(
        text.contains("Moved:\n\n- https://example.com/acme/remote.git from "),
        "{text}"
    );
    // The lock of main decides, also back.
    let one = project.upstream.id("v1");
    let lock = work.show(BRANCH, "kustomize-localize.lock");
    let two = project.upstream.id("v2");
    let (remotes, _) = lock.split_once("files:\n").unwrap();
    work.write("kustomize-localize.lock", remotes.replace(&two, &one));
    follow(work, "locked", &[]);
    held("one");
    // A lock with conflicting changes is not used.
    work.write(
        "kustomize-localize.lock",
        "<<<<<<< ours\nversion: 1\n=======\n>>>>>>> theirs\n",
    );
    work.commit("conflict");
    work.run_unchanged(&["--in-place", "--no-verify"])
        .fails(2)
        .stderr_has("kustomize-localize.lock:1: holds a merge conflict")
        .stderr_has("git kustomize-localize lock");
}

#[test]
fn strict_commits_nothing_with_warnings() {
    let project = Project::new();
    let work = &project.work;
    work.write("other/kustomization.yaml", "resources: [gone.yaml]\n");
    work.commit("gone");
    let strict = ["--in-place", "--no-verify", "--strict"];
    let output = work.run_unchanged(&strict);
    output
        .fails(1)
        .stdout_has("not done, because it comes with warnings: the repository in place on branch localized/main")
        .stderr_has("warning[missing-path]: other/kustomization.yaml:1:13")
        .stderr_has("`--strict` lets none pass");
    let output = work.run_unchanged(&[&strict[..], &["--format", "json"]].concat());
    let report: serde_json::Value = serde_json::from_str(&output.fails(1).stdout).unwrap();
    assert_eq!(report["outcome"], "warned");
    assert_eq!(report["commit"], serde_json::Value::Null);
    work.run(&["--in-place", "--no-verify"]).success();
    let tip = work.id(BRANCH);
    work.run_unchanged(&strict).fails(1);
    // Without a warning there is nothing that stops it.
    work.write("other/kustomization.yaml", "resources: [config.yaml]\n");
    work.commit("there");
    work.run(&strict).success();
    assert_ne!(work.id(BRANCH), tip);
}

#[test]
fn a_source_that_was_rewritten_is_followed() {
    let project = Project::new();
    let work = &project.work;
    follow(work, "begin", &[]);
    let first = work.id(BRANCH);
    // Unrelated history.
    work.git(&["checkout", "--quiet", "--orphan", "fresh"]);
    work.write("README.md", "Fresh.\n");
    work.commit("fresh");
    work.git(&["branch", "--force", "--move", "fresh", "main"]);
    follow(work, "more", &[]);
    let parents = work.git(&["log", "-1", "--format=%P", BRANCH]);
    assert_eq!(parents, format!("{first} {}", work.id("main")));
    // Set back to what the branch contains already.
    let later = work.id(BRANCH);
    work.git(&["reset", "--quiet", "--hard", &format!("{first}^")]);
    work.run(&["--in-place", "--no-verify"]).success();
    let parents = work.git(&["log", "-1", "--format=%P", BRANCH]);
    assert_eq!(parents, later);
    assert_eq!(
        work.id(&format!("{first}^{{tree}}")),
        work.id("localized/main^{tree}")
    );
}

#[test]
fn a_branch_that_came_back_to_main_is_begun_again() {
    let project = Project::new();
    let work = &project.work;
    follow(work, "begin", &[]);
    for how in ["--ff-only", "--no-ff"] {
        work.git(&["merge", "--quiet", how, "localized/main"]);
        let source = work.id("main");
        work.run(&["--in-place", "--no-verify"]).success();
        let parents = work.git(&["log", "-1", "--format=%P", BRANCH]);
        assert_eq!(parents, source, "{how}");
        assert_eq!(work.id("localized/main^{tree}"), work.id("main^{tree}"));
        work.run(&["verify", "localized/main", "--rebuild"])
            .success();
        work.run(&["verify", "main"]).success();
    }
}

#[test]
fn names_and_attributes_are_kept() {
    let project = Project::new();
    let work = &project.work;
    work.write(".gitattributes", "* text=auto eol=crlf\n");
    let names = ["ünï/cöde \"x\"", "sp ace", "'; touch x", "-dash", "[a]*?"];
    for name in names {
        work.write(&format!("{name}/kustomization.yaml"), base_of("v1"));
        work.write(&format!("{name}/config.yaml"), config("odd"));
    }
    work.symlink("linked", "sp ace");
    work.symlink("dangling", "../../outside");
    let place = project.sandbox.path("deployed");
    follow(work, "odd", &["--worktree", place.to_str().unwrap()]);
    let deployed = Repo::new(&project.sandbox, place);
    assert_eq!(deployed.git(&["status", "--porcelain"]), "");
    for name in names {
        let path = format!("{name}/{STORED}/v1/service.yaml");
        assert!(!deployed.read(&path).contains('\r'), "{path}");
        let path = format!("{name}/kustomization.yaml");
        assert!(deployed.read(&path).contains("\r\n"), "{path}");
        assert!(!work.show(BRANCH, &path).contains('\r'), "{path}");
    }
    for link in ["linked", "dangling"] {
        assert_eq!(
            work.id(&format!("{BRANCH}:{link}")),
            work.id(&format!("main:{link}"))
        );
    }
    deployed.run(&["verify"]).success();
    deployed.run(&["check", "--working-tree"]).success();
    deployed.run(&["check"]).success();
}

#[test]
fn submodules_and_sparse_checkouts_are_preserved() {
    let project = Project::new();
    let work = &project.work;
    project.sandbox.configure("protocol.file.allow", "always");
    let upstream = project.upstream.path().to_str().unwrap();
    work.git(&["submodule", "--quiet", "add", upstream, "sub"]);
    work.commit("submodule");
    work.git(&["sparse-checkout", "set", "other"]);
    assert!(!work.path().join("example").exists());
    let place = project.sandbox.path("deployed");
    for text in ["one", "two"] {
        work.write("other/config.yaml", config(text));
        follow(work, text, &["--worktree", place.to_str().unwrap()]);
        assert_eq!(stored(work).len(), 2);
        assert_eq!(work.id("localized/main:sub"), work.id("main:sub"));
        let deployed = Repo::new(&project.sandbox, place.clone());
        assert_eq!(deployed.git(&["status", "--porcelain"]), "");
    }
}

#[test]
fn a_kustomization_whose_path_is_not_utf8_is_reported() {
    use std::os::unix::ffi::OsStrExt as _;
    let project = Project::new();
    let work = &project.work;
    let directory = work.path().join(std::ffi::OsStr::from_bytes(b"lat\xe9"));
    if std::fs::create_dir(&directory).is_err() {
        // Some file systems take no such name.
        return;
    }
    std::fs::write(directory.join("kustomization.yaml"), base_of("v1")).unwrap();
    work.commit("odd");
    let output = work.run(&["--in-place", "--no-verify"]);
    output
        .success()
        .stderr_has("warning[not-followed]: `lat")
        .stderr_has("was not looked at: its path is not UTF-8");
    work.run_unchanged(&["--in-place", "--no-verify", "--strict"])
        .fails(1);
    work.run(&["verify", "localized/main"]).fails(2);
}

#[test]
fn obstacles_are_named() {
    let project = Project::new();
    let work = &project.work;
    let refused = |expected: &str, hint: &str| {
        work.commit("in the way");
        work.run_unchanged(&["--in-place", "--no-verify"])
            .fails(2)
            .stderr_has(expected)
            .stderr_has(hint);
    };
    work.write("example/base/localized-files/mine.txt", "mine\n");
    refused(
        "`example/base/localized-files` is needed",
        "git mv -- example/base/localized-files NEW_NAME",
    );
    work.git(&["rm", "-r", "--quiet", "example/base/localized-files"]);
    work.write("example/base/localized-files", "mine\n");
    refused("`example/base/localized-files` is needed", "git mv");
    work.git(&["rm", "--quiet", "example/base/localized-files"]);
    work.symlink("kustomize-localize.lock", "other/config.yaml");
    refused(
        "`kustomize-localize.lock` is not a regular file",
        "move it away",
    );
}
