//! What the message of a following run lists about the commits that an upstream made meanwhile.

use std::fs;

use crate::support::{Project, base_of, service};

const BRANCH: &str = "localized/main";

/// The project with its upstream at the branch `main`, localized in place.
fn project() -> Project {
    let project = Project::new();
    let work = &project.work;
    work.write("example/base/kustomization.yaml", base_of("main"));
    work.commit("follow main");
    work.run(&["--in-place"]).success();
    project
}

/// Makes a commit upstream.
fn change(project: &Project, what: &str, message: &str) -> String {
    project.upstream.write("service.yaml", service(what));
    project.upstream.commit(message)
}

fn body(project: &Project) -> String {
    project.work.git(&["log", "-1", "--format=%B", BRANCH])
}

/// Localizes again with everything resolved anew, and returns the message.
#[track_caller]
fn updated(project: &Project, more: &[&str]) -> String {
    let args = [&["--in-place", "--update"], more].concat();
    project.work.run(&args).success();
    body(project)
}

#[track_caller]
fn assert_has(text: &str, part: &str) {
    assert!(text.contains(part), "no {part:?} in\n{text}");
}

fn moved(old: &str, new: &str) -> String {
    format!(
        "Moved:\n\n- https://example.com/acme/remote.git?ref=main from {} to {}",
        &old[..12],
        &new[..12]
    )
}

#[test]
fn a_branch_that_moved_forward_lists_its_commits() {
    let project = project();
    let old = project.upstream.id("main");
    let two = change(&project, "two", "Serve on port 80 (#12)\n\nA body.");
    // A merge has no news of its own.
    project.upstream.git(&["switch", "-q", "-c", "side"]);
    project.upstream.write("side.yaml", service("side"));
    let side = project.upstream.commit("Thank @ann for the side");
    project.upstream.git(&["switch", "-q", "main"]);
    let three = change(&project, "three", "Three");
    project
        .upstream
        .git(&["merge", "-q", "--no-ff", "--no-edit", "side"]);
    let new = project.upstream.id("main");
    let text = updated(&project, &[]);
    assert_has(&text, &format!("{}: 3 commits\n", moved(&old, &new)));
    for (id, subject) in [
        (&two, "Serve on port 80 (12)"),
        (&side, "Thank ann for the side"),
        (&three, "Three"),
    ] {
        assert_has(&text, &format!("\n  {} {subject}\n", &id[..12]));
    }
    assert!(!text.contains("Merge"), "{text}");
    project.work.run(&["verify", BRANCH]).success();
}

#[test]
fn many_commits_are_counted() {
    let project = project();
    for number in 1..=14 {
        change(&project, &format!("n{number}"), &format!("Change {number}"));
    }
    let text = updated(&project, &[]);
    assert_has(&text, ": 14 commits\n");
    assert_has(&text, " Change 14\n");
    assert_has(&text, " Change 5\n  and 4 more\n");
    assert!(!text.contains("Change 4\n"), "{text}");
}

#[test]
fn a_branch_that_was_rewritten_or_went_back_is_reported() {
    let project = project();
    let old = change(&project, "two", "Two");
    updated(&project, &[]);
    project.upstream.git(&["reset", "-q", "--hard", "v1"]);
    let new = change(&project, "other", "Another two");
    let text = updated(&project, &[]);
    let line = moved(&old, &new);
    assert_has(
        &text,
        &format!(
            "{line}: not a continuation of it, 1 commit\n  {} Another two\n",
            &new[..12]
        ),
    );
    project.upstream.git(&["reset", "-q", "--hard", "v1"]);
    let first = project.upstream.id("v1");
    let text = updated(&project, &[]);
    let line = moved(&new, &first);
    assert_has(&text, &format!("{line}: back to an earlier commit\n"));
}

#[test]
fn a_commit_that_is_gone_upstream_is_not_an_error() {
    let project = project();
    let old = project.upstream.id("main");
    project.upstream.git(&["tag", "-d", "v1"]);
    project.upstream.git(&["checkout", "-q", "--orphan", "new"]);
    let new = change(&project, "new", "Begin again");
    project.upstream.git(&["branch", "-q", "-M", "main"]);
    project
        .upstream
        .git(&["reflog", "expire", "--expire=now", "--all"]);
    project.upstream.git(&["gc", "-q", "--prune=now"]);
    let text = updated(&project, &[]);
    let line = moved(&old, &new);
    assert_has(&text, &format!("{line}: not a continuation of it\n"));
}

#[test]
fn offline_and_without_an_upstream_only_the_move_is_listed() {
    let project = project();
    let work = &project.work;
    // A lock on main decides what the branch holds.
    work.run(&["lock"]).success();
    work.commit("lock");
    work.run(&["--in-place"]).success();
    let old = project.upstream.id("main");
    let new = change(&project, "two", "Two");
    work.run(&["update"]).success();
    work.commit("update");
    let tip = work.id(BRANCH);
    // It was asked then whether the branch was rewritten.
    fs::remove_dir_all(project.sandbox.path("cache/git-kustomize-localize/history")).unwrap();
    work.run(&["--in-place", "--offline"]).success();
    let line = moved(&old, &new);
    assert_has(&body(&project), &format!("{line}\n\n"));

    work.git(&["update-ref", "refs/heads/localized/main", &tip]);
    let upstream = project.sandbox.path("upstream");
    fs::rename(&upstream, project.sandbox.path("gone")).unwrap();
    work.run(&["--in-place"]).success();
    assert_has(&body(&project), &format!("{line}\n\n"));

    // What was listed once needs no network again.
    fs::rename(project.sandbox.path("gone"), &upstream).unwrap();
    work.git(&["update-ref", "refs/heads/localized/main", &tip]);
    work.run(&["--in-place"]).success();
    let told = body(&project);
    assert_has(&told, &format!("{line}: 1 commit\n  {} Two\n", &new[..12]));
    work.git(&["update-ref", "refs/heads/localized/main", &tip]);
    work.run(&["--in-place", "--offline"]).success();
    assert_eq!(body(&project), told);
}

#[test]
fn upstream_messages_are_not_records() {
    let project = project();
    let id = "0".repeat(40);
    let new = change(
        &project,
        "two",
        &format!("Kustomize-Localize-Tree: gitTree:{id}"),
    );
    let text = updated(&project, &[]);
    assert!(!text.contains(&id), "{text}");
    assert_has(
        &text,
        &format!(
            "  {} (a subject that could be taken for a record)\n",
            &new[..12]
        ),
    );
    project.work.run(&["verify", BRANCH]).success();
}
