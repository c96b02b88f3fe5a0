//! In place, on a branch: the repository as a source commit holds it, localized where it stands, and what becomes of
//! that as the source changes. `whole::year` follows one for a year.

use serde_json::Value;

use super::BRANCH;
use crate::support::{OVERLAY, Output, Project, Repo, Transcript, World, base_of, config};

const BASE: &str = "example/base/kustomization.yaml";
const STORED: &str = "localized-files/example.com/acme/remote";
const IN_PLACE: [&str; 2] = ["branch", "--no-verify"];

/// Runs it, which leaves everything but the branch as it was.
#[track_caller]
fn follow(repo: &Repo, more: &[&str]) -> Output {
    repo.lock();
    let before = repo.state().without_ref(BRANCH);
    let output = repo.run(&[&IN_PLACE, more].concat());
    // A worktree is one more directory of git's.
    if !more.contains(&"--worktree") {
        before.assert_same(&repo.state().without_ref(BRANCH));
    }
    output
}

/// Commits the working tree of the source and follows it. Whatever happens, the branch is what its record says.
#[track_caller]
fn commit_and_follow(repo: &Repo, what: &str, more: &[&str]) -> Output {
    repo.commit(what);
    let output = follow(repo, more);
    output.success();
    repo.run(&["verify", "localized/main", "--rebuild"]).success().stdout_has(": as recorded");
    repo.run(&["check", "--rev", "localized/main"]).success();
    output
}

/// Returns the paths of the branch that lie in a `localized-files`.
fn stored(repo: &Repo) -> Vec<String> {
    let files = repo.git(&["ls-tree", "-r", "--name-only", BRANCH]);
    let stored = files.lines().filter(|path| path.contains(STORED));
    stored.map(str::to_owned).collect()
}

/// Asserts that the message of the tip has these parts.
#[track_caller]
fn message_has(repo: &Repo, parts: &[&str]) {
    let message = repo.message(BRANCH);
    for part in parts {
        assert!(message.contains(part), "no {part:?} in {message}");
    }
}

#[test]
fn the_whole_repository_is_committed_localized() {
    let project = Project::new();
    let work = &project.work;
    work.write("README.md", "Changed, not committed.\n");
    follow(work, &[]).success();
    assert_eq!(work.parents(BRANCH), [work.id("main")]);
    let mut expected = work.files("main");
    for path in
        [".gitattributes", "example.com/acme/remote/v1/kustomization.yaml", "example.com/acme/remote/v1/service.yaml"]
    {
        expected.push(format!("100644 example/base/localized-files/{path}"));
    }
    expected.sort_by(|one, other| one[7..].cmp(&other[7..]));
    assert_eq!(work.files(BRANCH), expected);
    assert_eq!(
        work.show(BRANCH, BASE),
        base_of("v1").replace("https://example.com/acme/remote.git?ref=v1", &format!("{STORED}/v1"))
    );
    work.run(&["verify", "localized/main"]).success();
    work.run(&["check", "--rev", "localized/main"]).success();
    // Again, and there is nothing to do.
    let tip = work.id(BRANCH);
    let output = follow(work, &["--format", "json"]);
    let report: Value = serde_json::from_str(&output.success().stdout).unwrap();
    assert_eq!(report["outcome"], "unchanged");
    assert_eq!(report["branch"], "localized/main");
    assert_eq!(report["commit"], tip);
}

#[test]
fn the_message_says_what_came_and_went() {
    let project = Project::new();
    let work = &project.work;
    project.second_version();
    commit_and_follow(work, "begin", &[]);
    // Added, with a remote of its own.
    work.write(
        "example/more/kustomization.yaml",
        "resources:\n- ../base\n- https://example.com/acme/remote.git?ref=v2\nnameSuffix: -more\n",
    );
    commit_and_follow(work, "added", &[]);
    message_has(work, &["Localize main\n", "Brought in:\n\n- https://example.com/acme/remote.git?ref=v2 at "]);
    // Renamed: the same content elsewhere, and nothing where it was.
    let before = stored(work);
    work.git(&["mv", "example/more", "example/prod"]);
    commit_and_follow(work, "renamed", &[]);
    let renamed = before.iter().map(|path| path.replace("/more/", "/prod/"));
    assert_eq!(stored(work), renamed.collect::<Vec<_>>());
    assert!(!work.message(BRANCH).contains("Brought in"));
    // Deleted, with what only it named.
    work.git(&["rm", "-r", "--quiet", "example/prod"]);
    commit_and_follow(work, "deleted", &[]);
    assert_eq!(stored(work), before[..2]);
    message_has(work, &["No longer referenced:\n\n- https://example.com/acme/remote.git?ref=v2\n"]);
    // Brought in by hand on main, where it then is: vendored, and the branch has it unchanged.
    let vendor = ["vendor", "--no-verify"];
    work.run(&vendor).success();
    commit_and_follow(work, "vendored", &[]);
    // But for the lock, which records that the message holds the record.
    assert_eq!(work.git(&["diff", "--name-only", "main", "localized/main"]), "kustomize-localize.lock");
    // Everything deleted: the branch holds what main holds.
    work.git(&["rm", "-r", "--quiet", "example", "other"]);
    work.remove("kustomize-localize.lock");
    commit_and_follow(work, "all", &[]);
    assert_eq!(work.id("localized/main^{tree}"), work.id("main^{tree}"));
}

#[test]
fn the_lock_of_main_decides() {
    let project = Project::new();
    let work = &project.work;
    work.write("floating/kustomization.yaml", "resources: ['https://example.com/acme/remote.git']\n");
    commit_and_follow(work, "floating", &[]);
    // Once it is recorded, what upstream does makes no difference.
    project.second_version();
    work.write("README.md", "More.\n");
    commit_and_follow(work, "more", &[]);
    let holds = |text: &str| {
        let stored = stored(work);
        let is_it = |path: &&String| path.starts_with("floating/") && path.ends_with("service.yaml");
        let path = stored.iter().find(is_it).unwrap();
        assert!(work.show(BRANCH, path).contains(text));
    };
    holds("one");
    work.run(&["update"]).success();
    commit_and_follow(work, "updated", &[]).says(expect![[r#"
        localized the repository on branch localized/main (<0>): 4 files written, 1 reference rewritten, 2 removed
          moved https://example.com/acme/remote.git <1> -> <2>
          not verified: --no-verify
          to look at it: git show --stat <0>
    "#]]);
    holds("two");
    message_has(work, &["Moved:\n\n- https://example.com/acme/remote.git from "]);
    // The lock of main decides, also back.
    let lock = work.show(BRANCH, "kustomize-localize.lock");
    let [one, two] = ["v1", "v2"].map(|tag| project.upstream.id(tag));
    let (remotes, _) = lock.split_once("files:\n").unwrap();
    work.write("kustomize-localize.lock", remotes.replace(&two, &one));
    commit_and_follow(work, "locked", &[]);
    holds("one");
    // A lock with conflicting changes is not used.
    let conflict = "<<<<<<< ours\nversion: 1\n=======\n>>>>>>> theirs\n";
    work.write("kustomize-localize.lock", conflict);
    work.commit("conflict");
    work.run_unchanged(&IN_PLACE).fails(2).says(expect![[r#"
        error: kustomize-localize.lock:1: contains a merge conflict
          hint: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
    "#]]);
}

#[test]
fn what_the_lock_lacks_is_what_check_finds() {
    let world = World::acme();
    let work = &world.work;
    world.commit(&[("app/kustomization.yaml", "resources: ['https://github.com/acme/lib//web?ref=v1']\n")]);
    work.run(&["check"]).fails(1).says(expect![[r#"
        error[remote-reference]: `https://github.com/acme/lib//web?ref=v1` is neither localized nor locked
         --> app/kustomization.yaml:1:13
          |
        1 | resources: ['https://github.com/acme/lib//web?ref=v1']
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
          = help: keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
          = help: or vendor it: git kustomize-localize vendor :/app

        for more: git kustomize-localize explain remote-reference
        checked 1 kustomization with 1 reference in the working tree: 1 error
    "#]]);
    let branch = ["branch", "--no-verify"];
    work.run_as_is(&branch).fails(1).says(expect![[r#"
        error[remote-reference]: `https://github.com/acme/lib//web?ref=v1` is neither localized nor locked
         --> app/kustomization.yaml:1:13
          |
        1 | resources: ['https://github.com/acme/lib//web?ref=v1']
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]

        error: <0> has 1 error (remote-reference 1): nothing was committed
          hint: for more: git kustomize-localize explain remote-reference
          hint: lock the remote references: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock && git commit
    "#]]);
    // One severity, here as there.
    world.commit(&[(".kustomize-localize", "rules: {remote-reference: warning}\n")]);
    work.run(&["check"]).success();
    work.run_as_is(&branch).success().says(expect![[r#"
        localized the repository on branch localized/main (<0>): 1 file written, 0 references rewritten, 0 removed
          not verified: --no-verify
          stays remote (allowed): https://github.com/acme/lib//web?ref=v1
          1 warning (remote-reference 1)
          to look at it: git show --stat <0>
        warning[remote-reference]: `https://github.com/acme/lib//web?ref=v1` is neither localized nor locked
         --> app/kustomization.yaml:1:13
          |
        1 | resources: ['https://github.com/acme/lib//web?ref=v1']
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
          = help: keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
          = help: or vendor it: git kustomize-localize vendor :/app
    "#]]);
}

/// Whatever became of the refs upstream, what the lock holds is what is brought in, and nobody is asked what a ref is.
#[test]
fn no_answer_about_a_ref_counts() {
    let world = World::acme();
    let (sandbox, work) = (&world.sandbox, &world.work);
    world.commit(&[(
        "app/kustomization.yaml",
        "resources:\n- https://github.com/acme/lib//web?ref=v1\n- https://github.com/acme/lib//other\n\
         - https://files.example.com/v1/app.yaml\n",
    )]);
    work.lock();
    work.run_as_is(&IN_PLACE).success();
    for name in ["acme/lib", "acme/deep"] {
        let upstream = Repo::new(sandbox, sandbox.path(&format!("upstream/{name}")));
        upstream.git(&["config", "uploadpack.allowAnySHA1InWant", "true"]);
        upstream.write("moved", "moved");
        upstream.commit("moved");
        upstream.git(&["tag", "-d", "v1"]);
        upstream.git(&["branch", "-m", "renamed"]);
    }
    std::fs::remove_dir_all(sandbox.path("cache")).unwrap();
    let trace = sandbox.path("trace");
    sandbox.set("GIT_TRACE_PACKET", trace.to_str().unwrap());
    work.run_as_is(&[&IN_PLACE[..], &["--branch", "anew"]].concat()).success();
    let trace = std::fs::read_to_string(trace).unwrap();
    assert!(trace.contains("command=fetch"), "{trace}");
    assert!(!trace.contains("command=ls-refs"), "{trace}");
    assert_eq!(work.id("anew^{tree}"), work.id("localized/main^{tree}"));
}

#[test]
fn nothing_is_committed_with_errors() {
    let project = Project::new();
    let work = &project.work;
    work.write("other/kustomization.yaml", "resources: [gone.yaml]\n");
    work.commit("gone");
    work.lock();
    let output = work.run_unchanged(&IN_PLACE);
    output.fails(1).says(expect![[r#"
        error[missing-path]: there is no `other/gone.yaml`
         --> other/kustomization.yaml:1:13
          |
        1 | resources: [gone.yaml]
          |             ^^^^^^^^^ resources[0]
          = help: add it, or remove the reference

        error: <0> has 1 error (missing-path 1): nothing was committed
          hint: for more: git kustomize-localize explain missing-path
    "#]]);
    let output = work.run_unchanged(&[&IN_PLACE[..], &["--format", "json"]].concat());
    let report: Value = serde_json::from_str(&output.fails(1).stdout).unwrap();
    assert_eq!(report["outcome"], "warned");
    assert_eq!(report["commit"], Value::Null);
    // With another severity it is shown.
    work.write(".kustomize-localize", "rules: {missing-path: warning}\n");
    work.commit("a warning");
    work.run(&IN_PLACE).success().says(expect![[r#"
        localized the repository on branch localized/main (<0>): 5 files written, 1 reference rewritten, 0 removed
          added https://example.com/acme/remote.git?ref=v1 <1>
          not verified: --no-verify
          1 warning (missing-path 1)
          to look at it: git show --stat <0>
        warning[missing-path]: there is no `other/gone.yaml`
         --> other/kustomization.yaml:1:13
          |
        1 | resources: [gone.yaml]
          |             ^^^^^^^^^ resources[0]
          = help: add it, or remove the reference
    "#]]);
    let tip = work.id(BRANCH);
    // An exception is neither.
    let entry = "allow: [{path: other/gone.yaml, reason: made elsewhere}]\n";
    work.write(".kustomize-localize", entry);
    work.commit("allowed");
    work.run(&IN_PLACE).success().says(expect![[r#"
        localized the repository on branch localized/main (<0>): 1 file written, 0 references rewritten, 0 removed
          not verified: --no-verify
          to look at it: git show --stat <0>
    "#]]);
    assert_ne!(work.id(BRANCH), tip);
}

#[test]
fn a_source_that_was_rewritten_is_followed() {
    let project = Project::new();
    let work = &project.work;
    commit_and_follow(work, "begin", &[]);
    let first = work.id(BRANCH);
    // Unrelated history.
    work.git(&["checkout", "--quiet", "--orphan", "fresh"]);
    work.write("README.md", "Fresh.\n");
    work.commit("fresh");
    work.git(&["branch", "--force", "--move", "fresh", "main"]);
    commit_and_follow(work, "more", &[]);
    assert_eq!(work.parents(BRANCH), [first.clone(), work.id("main")]);
    // Set back to what the branch contains already.
    let later = work.id(BRANCH);
    work.git(&["reset", "--quiet", "--hard", &format!("{first}^")]);
    work.run(&IN_PLACE).success();
    assert_eq!(work.parents(BRANCH), [later, work.id("main")]);
    let [then, now] = [&first, BRANCH].map(|rev| work.id(&format!("{rev}^{{tree}}")));
    assert_eq!(then, now);
}

#[test]
fn a_branch_that_came_back_to_main_is_begun_again() {
    let project = Project::new();
    let work = &project.work;
    commit_and_follow(work, "begin", &[]);
    for how in ["--ff-only", "--no-ff"] {
        work.git(&["merge", "--quiet", how, "localized/main"]);
        work.run(&IN_PLACE).success();
        assert_eq!(work.parents(BRANCH), [work.id("main")], "{how}");
        assert_eq!(work.id("localized/main^{tree}"), work.id("main^{tree}"));
        work.run(&["verify", "localized/main", "--rebuild"]).success();
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
    commit_and_follow(work, "odd", &["--worktree", place.to_str().unwrap()]);
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
        let [ours, theirs] = [BRANCH, "main"].map(|rev| work.id(&format!("{rev}:{link}")));
        assert_eq!(ours, theirs);
    }
    for args in [&["verify"][..], &["check"], &["check"]] {
        deployed.run(args).success();
    }
}

#[test]
fn submodules_and_sparse_checkouts_are_preserved() {
    let project = Project::new();
    let work = &project.work;
    work.lock();
    project.sandbox.configure("protocol.file.allow", "always");
    let upstream = project.upstream.path().to_str().unwrap();
    work.git(&["submodule", "--quiet", "add", upstream, "sub"]);
    work.commit("submodule");
    work.git(&["sparse-checkout", "set", "other"]);
    assert!(!work.path().join("example").exists());
    let place = project.sandbox.path("deployed");
    for text in ["one", "two"] {
        work.write("other/config.yaml", config(text));
        commit_and_follow(work, text, &["--worktree", place.to_str().unwrap()]);
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
    work.run_unchanged(&IN_PLACE).fails(2).says(expect![[r#"
        error: `lat�/kustomization.yaml` cannot be read: its path is not UTF-8
          hint: rename its directory
    "#]]);
}

#[test]
fn it_starts_where_check_and_lock_start() {
    let project = Project::new();
    let work = &project.work;
    // Neither can be localized: one cannot be fetched, one cannot be read.
    let template = "resources:\n- https://example.com/nowhere/none.git?ref=v1\n";
    let path = "templates/app/kustomization.yaml";
    work.write(path, template);
    work.write("old/kustomization.yaml", "resources: [\n");
    let mut transcript = Transcript::default();
    for config in [
        "exclude: [templates, old]\n",
        "include: [example]\n",
        "include: ['*/base', 'ex*/overlay']\nexclude: ['templates/**', example/base]\n",
    ] {
        work.write(".kustomize-localize", config);
        work.run(&["lock"]).success();
        commit_and_follow(work, "with a lock", &[]);
        work.run(&["check", "--rev", "HEAD"]).success();
        // Reached roots are localized, also excluded ones; the others do not change.
        assert!(work.show(BRANCH, BASE).contains("localized-files/"));
        assert_eq!(work.show(BRANCH, path), template);
        // The same on disk.
        transcript.add(work.run(&["vendor"]).success());
        assert_eq!(work.read(path), template);
        assert_eq!(work.read(BASE), work.show(BRANCH, BASE));
        work.git(&["reset", "--quiet", "--hard"]);
        work.git(&["clean", "--quiet", "-d", "--force"]);
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize vendor
        localized the working tree: 5 files written, 1 reference rewritten, 0 removed
          not verified: neither `kustomize` nor `kubectl` was found on PATH
          to stage it: git add -f -- :/example/base/kustomization.yaml :/example/base/localized-files :/kustomize-localize.lock
        $ git kustomize-localize vendor
        localized the working tree: 5 files written, 1 reference rewritten, 0 removed
          not verified: neither `kustomize` nor `kubectl` was found on PATH
          1 warning (stale-allow 1)
          to stage it: git add -f -- :/example/base/kustomization.yaml :/example/base/localized-files :/kustomize-localize.lock
        warning[stale-allow]: `exclude: example/base` has no effect on `example/base`: example/overlay/kustomization.yaml:2 references it
         --> .kustomize-localize:2:27
          |
        2 | exclude: ['templates/**', example/base]
          |                           ^^^^^^^^^^^^^
          = help: remove the pattern, or stop referencing the directory
    "#]]);
    work.write(".kustomize-localize", "include: [nowhere]\n");
    work.commit("nothing");
    let mut transcript = Transcript::default();
    for command in ["branch", "check", "lock", "vendor"] {
        let command: Vec<&str> = command.split(' ').collect();
        transcript.add(work.run(&command).fails(2));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize branch --no-verify
        $ git kustomize-localize check
        $ git kustomize-localize lock
        $ git kustomize-localize vendor
        error: `.kustomize-localize` excludes every kustomization
          hint: change `include` and `exclude` there
    "#]]);
}

#[test]
fn copies_and_the_repository_do_not_share_a_branch() {
    let project = Project::new();
    let work = &project.work;
    project.overlay(&[]).success();
    work.run_unchanged(&IN_PLACE).fails(2).says(expect![[r#"
        error: branch `localized/main` contains copies, for example `localized-overlay`
          hint: commit the repository to another branch: `--branch NAME`
          hint: or delete this one, if its copies are not in use: git branch -D localized/main
    "#]]);
    let other = ["--branch", "hermetic/main"];
    work.run(&[&IN_PLACE, &other[..]].concat()).success();
    work.run_unchanged(&[&OVERLAY, &other[..]].concat()).fails(2).says(expect![[r#"
            error: branch `hermetic/main` contains the localized repository, not copies
              hint: commit copies to another branch: `--branch NAME`
        "#]]);
}

#[test]
fn a_failed_run_changes_nothing() {
    let project = Project::new();
    let work = &project.work;
    let ends = |status: i32, args: &[&str], said: &str| {
        let before = work.state();
        work.run_as_is(&[&IN_PLACE, args].concat()).fails(status).stderr_has(said);
        before.assert_same(&work.state());
    };
    let refused = |args: &[&str], said: &str| ends(2, args, said);
    refused(&["example/overlay"], "unexpected argument");
    refused(&["--rev", "nothing"], "unknown revision `nothing`");
    let unlocked = "remote.git?ref=v1` is neither localized nor locked";
    ends(1, &[], unlocked);
    work.lock();
    work.write(BASE, base_of("v9"));
    let dirty = "files in use have uncommitted changes: `example/base/kustomization.yaml`";
    refused(&[], dirty);
    work.commit("missing");
    ends(1, &[], "v9");
    work.write(BASE, base_of("v1"));
    // Files of the user in the place of those that are brought in.
    let in_the_way = |path: &str, said: &str, hint: &str| {
        work.commit("in the way");
        refused(&[], said);
        refused(&[], hint);
        work.git(&["rm", "-r", "--quiet", path]);
    };
    let place = "example/base/localized-files";
    let said = "files that the lock does not list are in the way: ";
    work.write(&format!("{place}/mine.txt"), "mine\n");
    in_the_way(place, &format!("{said}`{place}/mine.txt`"), "hint: move them away");
    work.write(place, "mine\n");
    in_the_way(place, &format!("{said}`{place}`"), "hint: move them away");
    work.git(&["mv", "kustomize-localize.lock", "lock"]);
    work.symlink("kustomize-localize.lock", "other/config.yaml");
    in_the_way("kustomize-localize.lock", "kustomize-localize.lock", "");
}

/// Returns what differs between two commits: the files that are there, and those that are gone.
fn changed(work: &Repo, since: &str) -> [Vec<String>; 2] {
    let of = |filter| {
        let names = work.git(&["diff", "--name-only", "--no-renames", filter, since, BRANCH]);
        names.lines().map(str::to_owned).collect()
    };
    [of("--diff-filter=d"), of("--diff-filter=D")]
}

#[test]
fn it_says_what_the_commit_changes() {
    let project = Project::new();
    let work = &project.work;
    let report = |more: &[&str]| -> Value {
        let output = follow(work, &[&["--format=json"], more].concat());
        serde_json::from_str(&output.success().stdout).unwrap()
    };
    let names = |of: &Value| -> Vec<String> {
        let keys = || of.as_object().unwrap().keys().cloned().collect();
        of.as_array().map_or_else(keys, |all| all.iter().map(|one| one.as_str().unwrap().to_owned()).collect())
    };
    let first = report(&[]);
    let [written, removed] = changed(work, "main");
    assert_eq!([names(&first["files"]), names(&first["removed"])], [written, removed]);
    assert_eq!(first["rewritten"].as_array().unwrap().len(), 1);
    let tip = work.id(BRANCH);
    for gone in ["README.md", "other/config.yaml", "other/kustomization.yaml"] {
        work.remove(gone);
    }
    work.write("example/base/config.yaml", config("another"));
    work.write("example/overlay/kustomization.yaml", "resources:\n  - ../base\nnamePrefix: prod-\n");
    work.commit("less");
    follow(work, &["--dry-run"]).success().says(expect![[r#"
        would localize the repository on branch localized/main: 2 files written, 0 references rewritten, 3 removed
          not verified: --no-verify
          file example/base/config.yaml (57)
          file example/overlay/kustomization.yaml (41)
          removed README.md
          removed other/config.yaml
          removed other/kustomization.yaml
    "#]]);
    assert_eq!(work.id(BRANCH), tip);
    follow(work, &[]).success().says(expect![[r#"
        localized the repository on branch localized/main (<0>): 2 files written, 0 references rewritten, 3 removed
          not verified: --no-verify
          to look at it: git show --stat <0>
    "#]]);
    assert_eq!(changed(work, &tip).map(|all| all.len()), [2, 3]);
    assert_eq!(report(&[])["files"], serde_json::json!({}));
    // What is discarded is named, and is a change.
    let edit = work.linked("edit", &["localized/main"]);
    edit.write("example/base/config.yaml", config("by-hand"));
    let by = edit.commit("by hand");
    work.git(&["worktree", "remove", edit.path().to_str().unwrap()]);
    follow(work, &["--overwrite", "--dry-run"]).success().says(expect![[r#"
        would localize the repository on branch localized/main: 1 file written, 0 references rewritten, 0 removed
          would discard edits by hand by <0>: `example/base/config.yaml`
          not verified: --no-verify
          file example/base/config.yaml (57)
    "#]]);
    let json = report(&["--overwrite", "--dry-run"]);
    let expected = serde_json::json!({ "commits": [&by[..12]], "paths": ["example/base/config.yaml"] });
    assert_eq!(json["discarded"], expected);
    follow(work, &["--overwrite"]).success().says(expect![[r#"
        localized the repository on branch localized/main (<0>): 1 file written, 0 references rewritten, 0 removed
          discarded edits by hand by <1>: `example/base/config.yaml`
          not verified: --no-verify
          to look at it: git show --stat <0>
    "#]]);
    assert_eq!(names(&report(&["--overwrite"])["discarded"]["paths"]), crate::support::NONE);
}
