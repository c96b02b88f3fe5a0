//! A message that was damaged, and commits on top of the one with the record: however the commit is named.

use serde_json::Value;

use super::{Branch, config};
use crate::support::{Output, Project, Repo, Transcript, full};

/// Returns a commit with the tree and the parents of `tip`, and another message.
fn with_message(repo: &Repo, tip: &str, message: &str) -> String {
    let parents = repo.git(&["log", "-1", "--format=%P", tip]);
    let tree = repo.id(&format!("{tip}^{{tree}}"));
    let mut args = vec!["commit-tree", &tree];
    for parent in parents.split(' ') {
        args.extend(["-p", parent]);
    }
    args.extend(["-m", message]);
    repo.git(&args)
}

/// Returns the kinds of the differences that `verify` finds.
fn kinds(repo: &Repo, rev: &str) -> Vec<String> {
    let output = repo.run(&["verify", rev, "--format=json"]);
    let report: Value = serde_json::from_str(&output.stdout).unwrap();
    let differences = report["differences"].as_array().unwrap().iter();
    let kinds: Vec<String> = differences.map(|difference| difference["kind"].as_str().unwrap().to_owned()).collect();
    assert_eq!(output.status, i32::from(!kinds.is_empty()), "{output:?}");
    kinds
}

/// Returns a value that could stand there, and is another one.
fn other(value: &str) -> String {
    let last = value.chars().last().unwrap();
    let other = if last == '0' { '1' } else { '0' };
    format!("{}{other}", &value[..value.len() - last.len_utf8()])
}

fn every_trailer_counts(is_in_place: bool) {
    let branch = Branch::new(is_in_place);
    let (repo, tip) = (&branch.repo, &branch.tip);
    assert_eq!(kinds(repo, tip), crate::support::NONE);
    let message = repo.git(&["log", "-1", "--format=%B", tip]);
    let lines: Vec<&str> = message.lines().collect();
    let is_ours = |line: &&&str| line.starts_with("Kustomize-Localize-");
    let count = lines.iter().filter(is_ours).count();
    assert_eq!(count, 5 + 3, "{message}");
    let first = lines.len() - count;
    for (index, line) in lines.iter().enumerate().skip(first) {
        let (key, value) = line.split_once(": ").unwrap();
        let with = |new: &[&str]| {
            let mut lines = lines.clone();
            lines.splice(index..=index, new.iter().copied());
            lines.join("\n")
        };
        let mut swapped = lines.clone();
        let next = if index + 1 < lines.len() { index + 1 } else { index - 1 };
        swapped.swap(index, next);
        for (at, (what, text)) in [
            ("removed", with(&[])),
            ("doubled", with(&[line, line])),
            ("changed", with(&[&format!("{key}: {}", other(value))])),
            ("emptied", with(&[&format!("{key}:")])),
            ("malformed", with(&[&format!("{key} {value}")])),
            ("unknown", with(&[line, &format!("{key}-More: {value}")])),
            ("reordered", swapped.join("\n")),
            ("other key case", with(&[&format!("{}: {value}", key.to_lowercase())])),
        ]
        .into_iter()
        .enumerate()
        {
            // Which key is how malformed has nothing to do with what was localized. By day each is so in every other
            // way.
            let is_today = full() || (index + at).is_multiple_of(2);
            if what != "changed" && !(is_in_place && is_today) {
                continue;
            }
            let kinds = kinds(repo, &with_message(repo, tip, &text));
            match (what, key) {
                // What nothing else holds is protected by the signature alone.
                ("changed", "Kustomize-Localize-Tool") => assert_eq!(kinds, crate::support::NONE, "{text}"),
                ("changed", "Kustomize-Localize-Tree") => assert_eq!(kinds, ["tree"], "{text}"),
                // Then what it names lies beside what was made.
                ("changed", "Kustomize-Localize-Target") if !is_in_place => {
                    assert_eq!(kinds, ["tree", "trailers"], "{text}");
                }
                _ => assert!(
                    !kinds.is_empty() && kinds.iter().all(|kind| kind == "trailers"),
                    "{key} {what}: {kinds:?}\n{text}"
                ),
            }
        }
    }
    // None at all, and no commit that could be the source.
    let none = with_message(repo, tip, "Localize");
    assert_eq!(kinds(repo, &none), ["trailers"]);
    let source = repo.id(&format!("{tip}^"));
    let tree = repo.id(&format!("{source}^{{tree}}"));
    let elsewhere = repo.git(&["commit-tree", &tree, "-m", "Elsewhere"]);
    let message = message.replace(&source, &elsewhere);
    let named = with_message(repo, tip, &message);
    assert_eq!(kinds(repo, &named), ["trailers"]);
    repo.run(&["verify", &named]).fails(1).stdout_has(&format!("names the source commit {elsewhere}, which "));
}

#[test]
fn every_trailer_of_a_copy_counts() {
    every_trailer_counts(false);
}

#[test]
fn every_trailer_in_place_counts() {
    every_trailer_counts(true);
}

#[test]
fn the_next_run_refuses_what_a_gate_refuses() {
    let project = Project::new();
    let work = &project.work;
    work.run(&["branch", "--no-verify"]).success();
    let tip = work.id("localized/main");
    let message = work.git(&["log", "-1", "--format=%B", &tip]);
    work.write("README.md", "More.\n");
    work.commit("more");
    for damaged in [
        message.replace("Kustomize-Localize-Tool:", "Kustomize-Localize-Tools:"),
        message.replace("Kustomize-Localize-Tree:", "Kustomize-Localize-Tree"),
        "Localize main".to_owned(),
    ] {
        let damaged = with_message(work, &tip, &damaged);
        work.git(&["update-ref", "refs/heads/localized/main", &damaged]);
        assert_eq!(kinds(work, "localized/main"), ["trailers"]);
        work.run_unchanged(&["branch", "--no-verify"]).fails(2);
    }
}

/// Returns what is found of a commit under each of its names.
fn by_each_name(repo: &Repo, commit: &str, more: &[&str], is_it: impl Fn(&Output)) {
    repo.git(&["branch", "--quiet", "--force", "team", commit]);
    repo.git(&["tag", "--force", "released", commit]);
    for name in ["localized/main", "import/localized/main"] {
        let name = format!("refs/{name}");
        repo.git(&["update-ref", &name, commit]);
    }
    repo.git(&["update-ref", "refs/heads/localized/team", commit]);
    repo.git(&["checkout", "--quiet", "--detach", commit]);
    for rev in [
        "HEAD",
        commit,
        "team",
        "released",
        "localized/team",
        "refs/heads/localized/team",
        "refs/import/localized/main",
        "HEAD^{commit}",
    ] {
        is_it(&repo.run_unchanged(&[&["verify", rev], more].concat()));
    }
}

/// The message of the tip is read without git, the others with it: `git replace` counts for neither.
#[test]
fn a_replaced_commit_is_read_as_it_is() {
    let branch = Branch::new(true);
    let repo = &branch.repo;
    let tip = repo.id("HEAD");
    let linked = repo.path().with_extension("linked");
    repo.git(&["worktree", "add", "--quiet", "--detach", linked.to_str().unwrap(), &tip]);
    let linked = Repo::new(&branch._world.sandbox, linked);
    repo.git(&["replace", &tip, &with_message(repo, &tip, "Nothing.")]);
    for repo in [repo, &linked] {
        repo.run(&["verify"]).success();
    }
}

#[test]
fn a_commit_on_top_is_a_difference_however_it_is_named() {
    let mut transcript = Transcript::default();
    for is_in_place in [false, true] {
        let branch = Branch::new(is_in_place);
        let repo = &branch.repo;
        by_each_name(repo, &branch.tip, &[], |output| {
            output.success().stdout_has(": as recorded\n");
        });
        repo.write("base/cm.yaml", config("edited"));
        branch.commit();
        let commit = repo.id("HEAD");
        by_each_name(repo, &commit, &[], |output| {
            output.fails(1).stdout_has("base/cm.yaml: differs from the ").stdout_has(": 1 difference\n");
        });
        let place = branch.listed().remove(0);
        repo.write(&place, "edited: true\n");
        branch.commit();
        transcript.add(repo.run(&["verify"]).fails(1));
        // Into the commit with the record itself.
        repo.git(&["reset", "--quiet", "--hard", &branch.tip]);
        repo.write("base/cm.yaml", config("edited"));
        repo.git(&["commit", "--quiet", "--all", "--amend", "--no-edit"]);
        transcript.add(repo.run(&["verify"]).fails(1));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize verify
        base/cm.yaml: differs from the localized commit <0>
        out/app/kustomization.yaml: was changed: its sha256 <1> differs from the lock
        out/app/kustomization.yaml:1:1: unknown field `edited` (invalid-kustomization)

        out from app: 13 localized files, 3 upstreams; recorded in the lock and in the message of <0>
        NOT verified HEAD (<2>): 3 differences
        $ git kustomize-localize verify
        base/cm.yaml: differs from the source commit that the message of <0> records

        out from app: 13 localized files, 3 upstreams; recorded in the lock and in the message of <0>
        NOT verified HEAD (<0>): 1 difference
        $ git kustomize-localize verify
        base/cm.yaml: differs from the tree recorded in the message of <0>
        base/localized-files/.gitattributes: was changed: its sha256 <1> differs from the lock

        .: 10 localized files, 3 upstreams; recorded in the lock and in the message of <0>
        NOT verified HEAD (<2>): 2 differences
        $ git kustomize-localize verify
        base/cm.yaml: differs from the tree recorded in the message of <0>

        .: 10 localized files, 3 upstreams; recorded in the lock and in the message of <0>
        NOT verified HEAD (<0>): 1 difference
    "#]]);
}

#[test]
fn a_merge_into_main_is_followed_to_the_record() {
    let mut transcript = Transcript::default();
    for is_in_place in [false, true] {
        let branch = Branch::new(is_in_place);
        let repo = &branch.repo;
        repo.git(&["switch", "--quiet", "--create", "main", &format!("{}^", branch.tip)]);
        repo.git(&["merge", "--quiet", "--no-ff", "--message", "Merge", &branch.tip]);
        transcript.add(repo.run(&["verify"]).success().stdout_has(&branch.tip[..12]));
        // With something of its own in between.
        repo.git(&["reset", "--quiet", "--hard", &format!("{}^", branch.tip)]);
        repo.write("README.md", "More.\n");
        branch.commit();
        repo.git(&["merge", "--quiet", "--no-ff", "--message", "Merge", &branch.tip]);
        repo.write("README.md", "More again.\n");
        branch.commit();
        transcript.add(repo.run(&["verify"]).fails(1));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize verify
        out from app: 13 localized files, 3 upstreams; recorded in the lock and in the message of <0>
        verified HEAD (<1>): as recorded
        $ git kustomize-localize verify
        README.md: differs from the localized commit <0>

        out from app: 13 localized files, 3 upstreams; recorded in the lock and in the message of <0>
        NOT verified HEAD (<1>): 1 difference
        $ git kustomize-localize verify
        .: 10 localized files, 3 upstreams; recorded in the lock and in the message of <0>
        verified HEAD (<1>): as recorded
        $ git kustomize-localize verify
        README.md: differs from the tree recorded in the message of <0>

        .: 10 localized files, 3 upstreams; recorded in the lock and in the message of <0>
        NOT verified HEAD (<1>): 1 difference
    "#]]);
}

#[test]
fn commits_by_people_have_no_record() {
    let mut transcript = Transcript::default();
    for args in [&["vendor"][..], &["example/overlay", "--scope", "example", "--no-commit"]] {
        let project = Project::new();
        let work = &project.work;
        work.run(args).success();
        work.commit("Vendor");
        for _ in 0..2 {
            transcript.add(work.run(&["verify"]).success());
            work.write("README.md", "More.\n");
            work.git(&["commit", "--quiet", "--allow-empty", "--all", "--message", "More"]);
        }
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize verify
        .: 3 localized files, 1 upstream; recorded in the lock alone
        verified HEAD (<0>): as recorded
        $ git kustomize-localize verify
        localized-overlay from example/overlay: 6 localized files, 1 upstream; recorded in the lock alone
        verified HEAD (<0>): as recorded
    "#]]);
    // If it is localized again by hand, an earlier message does not count any more.
    let project = Project::new();
    let work = &project.work;
    work.run(&["branch", "--no-verify"]).success();
    work.git(&["merge", "--quiet", "localized/main"]);
    assert!(work.read("kustomize-localize.lock").contains("\ntrailers: true\n"));
    work.run(&["lock"]).success().says(expect![[r#"
        nothing to do: kustomize-localize.lock has 1 remote reference
    "#]]);
    work.write("other/kustomization.yaml", "resources: ['https://example.com/acme/remote.git?ref=v1']\n");
    work.commit("Name it");
    work.run(&["vendor"]).success();
    work.commit("Vendor");
    assert!(!work.read("kustomize-localize.lock").contains("trailers:"));
}
