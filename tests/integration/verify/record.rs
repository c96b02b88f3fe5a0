//! `verify`: a localized commit against its lock and trailers.

mod directory;

use git_kustomize_localize::seams::record::sha256_hex;
use serde_json::Value;

use crate::branch::commits::signed::key;
use crate::support::{OVERLAY, Output, Project, Repo, Sandbox, Transcript};
use crate::verify::upstream::parsed;

const PLACE: &str = "localized-overlay/base/localized-files/example.com/acme/remote/v1/service.yaml";
const LOCK: &str = "localized-overlay/kustomize-localize.lock";

/// Returns a repository whose working tree is the localized branch.
fn localized() -> Project {
    let project = Project::new();
    project.overlay(&["--no-verify"]).success();
    project.work.git(&["switch", "--quiet", "localized/main"]);
    project
}

/// Verifies, which changes nothing.
#[track_caller]
fn verify(repo: &Repo, args: &[&str]) -> Output {
    repo.run_unchanged(&[&["verify"], args].concat())
}

/// Commits what is on disk by hand.
fn tamper(repo: &Repo) {
    repo.git(&["add", "--all"]);
    repo.git(&["commit", "--quiet", "--message", "By hand"]);
}

#[test]
fn a_fresh_result_verifies() {
    let project = localized();
    let work = &project.work;
    let commit = work.id("HEAD");
    let mut transcript = Transcript::default();
    for args in [&[][..], &["HEAD"], &["localized/main"]] {
        transcript.add(verify(work, args).success().stdout_has(&commit[..12]));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize verify
        $ git kustomize-localize verify HEAD
        localized-overlay from example/overlay: 6 localized files, 1 upstream; recorded in the lock and in the message of <0>
        verified HEAD (<0>): as recorded
        $ git kustomize-localize verify localized/main
        localized-overlay from example/overlay: 6 localized files, 1 upstream; recorded in the lock and in the message of <0>
        verified localized/main (<0>): as recorded
    "#]]);
    assert_eq!(verify(work, &["--quiet"]).success().stdout, "");
    let report = parsed(verify(work, &["--format", "json"]).success());
    assert_eq!(report["version"], 1);
    assert_eq!(report["commit"], commit);
    assert_eq!(report["records"][0]["directory"], "localized-overlay");
    assert_eq!(report["records"][0]["recorded_by"], commit);
    assert_eq!(report["differences"], Value::Array(vec![]));
    // From elsewhere, and later.
    work.git(&["switch", "--quiet", "main"]);
    work.git(&["merge", "--quiet", "--squash", "localized/main"]);
    work.git(&["commit", "--quiet", "--no-edit"]);
    verify(work, &[]).success().says(expect![[r#"
        localized-overlay from example/overlay: 6 localized files, 1 upstream; recorded in the lock alone
        verified HEAD (<0>): as recorded
    "#]]);
    // Where nothing says that it is another branch, a record is expected.
    work.git(&["switch", "--quiet", "--detach"]);
    verify(work, &[]).fails(1).says(expect![[r#"
        localized-overlay/kustomize-localize.lock: no commit message has its record

        localized-overlay from example/overlay: 6 localized files, 1 upstream; recorded in the lock alone
        NOT verified HEAD (<0>): 1 difference
    "#]]);
}

/// What a lock becomes; nothing if it goes.
type Edit = fn(&str) -> Option<String>;

/// What becomes of files is in [`super::tampering`].
#[test]
fn every_change_of_the_lock_is_named() {
    let changes: [Edit; 3] = [
        |lock| {
            let (head, rest) = lock.split_once("commit: ").unwrap();
            let changed = if rest.starts_with('0') { "1" } else { "0" };
            Some(format!("{head}commit: {changed}{}", &rest[1..]))
        },
        |lock| Some(lock.replace("target: example/overlay", "target: example/base")),
        |_| None,
    ];
    let mut transcript = Transcript::default();
    for change in changes {
        let project = localized();
        let work = &project.work;
        match change(&work.read(LOCK)) {
            Some(lock) => work.write(LOCK, lock),
            None => work.remove(LOCK),
        }
        work.write(PLACE, "a: changed\n");
        tamper(work);
        let output = verify(work, &[]);
        transcript.add(output.fails(1));
        let report = parsed(verify(work, &["--format", "json"]).fails(1));
        assert!(!report["differences"].as_array().unwrap().is_empty());
        // The commit before is as it was.
        verify(work, &["HEAD^"]).success();
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize verify
        localized-overlay/base/localized-files/example.com/acme/remote/v1/service.yaml: was changed: its sha256 <0> differs from the lock
        localized-overlay/kustomize-localize.lock: lists https://example.com/acme/remote.git?ref=v1 at gitCommit:<1>, but the message of <2> does not
        localized-overlay/kustomize-localize.lock: does not list https://example.com/acme/remote.git?ref=v1 at gitCommit:<3>, but the message of <2> does

        localized-overlay from example/overlay: 6 localized files, 1 upstream; recorded in the lock and in the message of <2>
        NOT verified HEAD (<4>): 3 differences
        $ git kustomize-localize verify
        localized-overlay/base/localized-files/example.com/acme/remote/v1/service.yaml: was changed: its sha256 <0> differs from the lock
        localized-overlay/kustomize-localize.lock: has the target `example/base`, but the message of <1> records `example/overlay`, or another scope

        localized-overlay from example/base: 6 localized files, 1 upstream; recorded in the lock and in the message of <1>
        NOT verified HEAD (<2>): 2 differences
        $ git kustomize-localize verify
        localized-overlay/base/localized-files/example.com/acme/remote/v1/service.yaml: differs from the localized commit <0>
        localized-overlay/kustomize-localize.lock: is gone, or no longer lists files

        NOT verified HEAD (<1>): 2 differences
    "#]]);
}

#[test]
fn files_and_lock_that_were_changed_together_disagree_with_the_message_only() {
    let project = localized();
    let work = &project.work;
    let before = work.read(PLACE);
    let after = before.replace("one", "two");
    work.write(PLACE, &after);
    let lock = work.read(LOCK);
    assert!(lock.contains(&sha256_hex(before.as_bytes())));
    work.write(LOCK, lock.replace(&sha256_hex(before.as_bytes()), &sha256_hex(after.as_bytes())));
    tamper(work);
    let output = verify(work, &[]);
    output.fails(1).says(expect![[r#"
        localized-overlay/base/localized-files/example.com/acme/remote/v1/service.yaml: differs from the tree recorded in the message of <0>
        localized-overlay/kustomize-localize.lock: differs from the tree recorded in the message of <0>

        localized-overlay from example/overlay: 6 localized files, 1 upstream; recorded in the lock and in the message of <0>
        NOT verified HEAD (<1>): 2 differences
    "#]]);
    assert!(!output.stdout.contains("was changed"), "{output:?}");
    // Without the message, nothing offline reveals it: the page says so.
    let tree = work.git(&["write-tree"]);
    let rewritten = work.git(&["commit-tree", "-m", "Rewritten", &tree]);
    verify(work, &[&rewritten]).fails(1).says(expect![[r#"
        localized-overlay/kustomize-localize.lock: no commit message has its record

        localized-overlay from example/overlay: 6 localized files, 1 upstream; recorded in the lock alone
        NOT verified <0>: 1 difference
    "#]]);
}

#[test]
fn remaining_remote_references_are_named() {
    let project = Project::new();
    let work = &project.work;
    work.write(".kustomize-localize", "rules: {remote-reference: off}\n");
    work.commit("allowed");
    work.run(&["vendor", "example/base"]).success();
    work.write(
        "other/kustomization.yaml",
        "resources:\n# kustomize-localize: allow[remote-reference] ours\n- https://example.com/acme/remote.git?ref=v2\n",
    );
    tamper(work);
    work.run(&["check"]).success();
    // Only the lock can excuse it, and only from being remote.
    verify(work, &[]).fails(1).says(expect![[r#"
        other/kustomization.yaml:3:3: `https://example.com/acme/remote.git?ref=v2` is still remote (resources[0])

        .: 3 localized files, 1 upstream; recorded in the lock alone
        NOT verified HEAD (<0>): 1 difference
    "#]]);
    work.run(&["lock"]).success();
    tamper(work);
    verify(work, &[]).success().says(expect![[r#"
        .: 3 localized files, 1 upstream; recorded in the lock alone
        stays remote (allowed): https://example.com/acme/remote.git?ref=v2: ours
        verified HEAD (<0>): as recorded
    "#]]);
    work.write(
        "other/kustomization.yaml",
        "resources:\n# kustomize-localize: allow[remote-reference] ours\n- https://me:pw123456@example.com/acme/remote.git?ref=v2\n",
    );
    tamper(work);
    verify(work, &[]).fails(1).says(expect![[r#"
        other/kustomization.yaml:3:3: `https://example.com/acme/remote.git?ref=v2` contains a login or a token (unsafe-reference)

        .: 3 localized files, 1 upstream; recorded in the lock alone
        stays remote (allowed): https://example.com/acme/remote.git?ref=v2: ours
        NOT verified HEAD (<0>): 1 difference
    "#]]);
    work.write("other/kustomization.yaml", "resources:\n- https://example.com/acme/remote.git?ref=v1\n");
    tamper(work);
    verify(work, &[]).fails(1).says(expect![[r#"
        other/kustomization.yaml:2:3: `https://example.com/acme/remote.git?ref=v1` is still remote (resources[0])

        .: 3 localized files, 1 upstream; recorded in the lock alone
        stays remote (allowed): https://example.com/acme/remote.git?ref=v2: ours
        NOT verified HEAD (<0>): 1 difference
    "#]]);
}

#[test]
fn a_commit_without_a_record_is_an_error() {
    let project = Project::new();
    let work = &project.work;
    verify(work, &[]).fails(2).says(expect![[r#"
        error: `HEAD` has no record: no `kustomize-localize.lock` in it lists localized files
          hint: commit the localized files: git kustomize-localize branch
    "#]]);
    // The branch that is named is there, and git takes a tag of its name for it.
    work.git(&["branch", "localized/main"]);
    work.git(&["tag", "localized/main"]);
    verify(work, &["localized/main"]).fails(2).says(expect![[r#"
        error: `localized/main` has no record: no `kustomize-localize.lock` in it lists localized files
          hint: it is a tag; the branch of this name is git kustomize-localize verify refs/heads/localized/main
    "#]]);
    work.git(&["tag", "--delete", "localized/main"]);
    work.git(&["branch", "--quiet", "-D", "localized/main"]);
    // A lock of URLs is none.
    work.run(&["lock"]).success();
    work.commit("locked");
    project.overlay(&[]).success();
    let mut transcript = Transcript::default();
    for args in [&[][..], &["nothing"]] {
        transcript.add(verify(work, args).fails(2));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize verify
        error: `HEAD` has no record: no `kustomize-localize.lock` in it lists localized files
          hint: name the branch with the localized files: git kustomize-localize verify localized/main
        $ git kustomize-localize verify nothing
        error: unknown revision `nothing`
          hint: fetch it first, or name another one
    "#]]);
    let output = verify(work, &["nothing", "--format", "json"]);
    let report = parsed(output.fails(2));
    assert!(report.to_string().contains("unknown revision"), "{report}");
    work.git(&["switch", "--quiet", "localized/main"]);
    work.write(LOCK, "<<<<<<< HEAD\n");
    tamper(work);
    verify(work, &[]).fails(2).says(expect![[r#"
        error: localized-overlay/kustomize-localize.lock:1: contains a merge conflict
          hint: the lock is generated: restore it from git instead of editing it, or upgrade this program if a newer one wrote it
    "#]]);
    let empty = Sandbox::new();
    empty.run(&empty.path(""), &["verify"]).fails(2).says(expect![[r#"
        error: this is not a git repository
          hint: run it in a repository
    "#]]);
}

#[test]
fn gits_configuration_signs() {
    let project = Project::new();
    let key = key(&project);
    let work = &project.work;
    project.sandbox.configure("user.signingKey", &key);
    let signing = ["-c", "commit.gpgSign=true", "kustomize-localize"];
    project.sandbox.offer_itself();
    work.git(&[&signing[..], &OVERLAY, &["--no-verify"]].concat());
    work.git(&["verify-commit", "localized/main"]);
    verify(work, &["localized/main"]).success();
    // Where everything that can be looked at without a network agrees, the signature is what tells, as the page says.
    work.git(&["switch", "--quiet", "localized/main"]);
    forge(work, PLACE, LOCK, "localized-overlay");
    verify(work, &[]).success();
    let page = include_str!("../../../src/commands/verify.md");
    assert!(page.contains("Without a network, it cannot tell"));
}

/// Changes a file of the tip, its lock, and the message: everything that a check without a network looks at.
fn forge(repo: &Repo, place: &str, lock: &str, directory: &str) {
    let before = repo.read(place);
    let after = before.replace("one", "two");
    assert_ne!(before, after);
    repo.write(place, &after);
    let [old, new] = [&before, &after].map(|text| sha256_hex(text.as_bytes()));
    repo.write(lock, repo.read(lock).replace(&old, &new));
    repo.git(&["add", "--all"]);
    let tree = repo.git(&["write-tree"]);
    let message = repo.git(&["log", "-1", "--format=%B"]);
    let [old, new] = ["HEAD", &tree].map(|tree| repo.id(&format!("{tree}:{directory}")));
    let message = message.replace(&old, &new);
    let amend = ["commit", "-q", "--amend", "--no-gpg-sign", "-m", &message];
    repo.git(&amend);
}

#[test]
fn localizing_again_finds_consistent_tampering() {
    let mut transcript = Transcript::default();
    for in_place in [false, true] {
        let project = Project::new();
        let work = &project.work;
        let home = if in_place { "example" } else { "localized-overlay" };
        let directory = if in_place { "" } else { home };
        let place = PLACE.replace("localized-overlay", home);
        let lock = LOCK.replace("localized-overlay/", if in_place { "" } else { "localized-overlay/" });
        if in_place {
            work.run(&["branch", "--no-verify"]).success();
        } else {
            project.overlay(&["--no-verify"]).success();
        }
        transcript.add(verify(work, &["localized/main", "--rebuild"]).success());
        work.git(&["switch", "--quiet", "localized/main"]);
        forge(work, &place, &lock, directory);
        verify(work, &[]).success();
        // What a copy was made from is as it was.
        let check = work.run(&["check"]);
        assert_eq!(check.status == 0, in_place, "{check:?}");
        transcript.add(verify(work, &["--rebuild"]).fails(1));
        // Not only the branch itself: what upstream held is still there, or is not.
        std::fs::remove_dir_all(project.sandbox.path("upstream")).unwrap();
        verify(work, &["--rebuild"]).fails(1);
        std::fs::remove_dir_all(project.sandbox.path("cache")).unwrap();
        transcript.add(verify(work, &["--rebuild"]).fails(2));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize verify localized/main --rebuild
        localized-overlay from example/overlay: 6 localized files, 1 upstream; recorded in the lock and in the message of <0>
        verified localized/main (<0>): as recorded, the same when localized again
        $ git kustomize-localize verify --rebuild
        localized-overlay/base/localized-files/example.com/acme/remote/v1/service.yaml: differs when localized again
        localized-overlay/kustomize-localize.lock: differs when localized again

        localized-overlay from example/overlay: 6 localized files, 1 upstream; recorded in the lock and in the message of <0>
        NOT verified HEAD (<0>): 2 differences
        $ git kustomize-localize verify --rebuild
        localized-overlay from example/overlay: 6 localized files, 1 upstream; recorded in the lock and in the message of <0>
        NOT verified HEAD (<0>): not everything could be checked
        error: example/base/kustomization.yaml:3:5: resources[1]: `localized-overlay` cannot be localized again: could not fetch https://example.com/acme/remote.git: '/home/me/upstream/acme/remote.git' does not appear to be a git repository
          hint: check the URL (kustomize splits it after two segments, at `.git`, or at `//`); if the repository moved or is private, ask its owner
        $ git kustomize-localize verify localized/main --rebuild
        .: 3 localized files, 1 upstream; recorded in the lock and in the message of <0>
        verified localized/main (<0>): as recorded, the same when localized again
        $ git kustomize-localize verify --rebuild
        example/base/localized-files/example.com/acme/remote/v1/service.yaml: differs when localized again
        kustomize-localize.lock: differs when localized again

        .: 3 localized files, 1 upstream; recorded in the lock and in the message of <0>
        NOT verified HEAD (<0>): 2 differences
        $ git kustomize-localize verify --rebuild
        .: 3 localized files, 1 upstream; recorded in the lock and in the message of <0>
        NOT verified HEAD (<0>): not everything could be checked
        error: example/base/kustomization.yaml:3:5: resources[1]: `.` cannot be localized again: could not fetch https://example.com/acme/remote.git: '/home/me/upstream/acme/remote.git' does not appear to be a git repository
          hint: check the URL (kustomize splits it after two segments, at `.git`, or at `//`); if the repository moved or is private, ask its owner
    "#]]);
}

#[test]
fn localizing_again_needs_the_source_commit() {
    let project = localized();
    let work = &project.work;
    work.git(&["commit", "--quiet", "--amend", "--message", "Nothing is told here"]);
    verify(work, &["--rebuild"]).fails(2).says(expect![[r#"
            localized-overlay/kustomize-localize.lock: no commit message has its record

            localized-overlay from example/overlay: 6 localized files, 1 upstream; recorded in the lock alone
            NOT verified HEAD (<0>): 1 difference
            error: `localized-overlay` cannot be localized again: no commit message names the source commit
              hint: verify the branch itself, for example: git kustomize-localize verify localized/main
        "#]]);
}
