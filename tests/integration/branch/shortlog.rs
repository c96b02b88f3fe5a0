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
    work.run(&["branch"]).success();
    project
}

/// Makes a commit upstream.
fn change(project: &Project, what: &str, message: &str) -> String {
    project.upstream.write("service.yaml", service(what));
    project.upstream.commit(message)
}

/// Localizes again with everything resolved anew: the message has these parts.
#[track_caller]
fn updated(project: &Project, parts: &[&str]) -> String {
    project.work.run(&["update"]).success();
    project.work.commit("update");
    project.work.run(&["branch"]).success();
    let text = project.work.message(BRANCH);
    for part in parts {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
    text
}

fn moved(old: &str, new: &str) -> String {
    format!("Moved:\n\n- https://example.com/acme/remote.git?ref=main from {} to {}", &old[..12], &new[..12])
}

#[test]
fn a_branch_that_moved_forward_lists_its_commits() {
    let project = project();
    let upstream = &project.upstream;
    let old = upstream.id("main");
    let two = change(&project, "two", "Serve on port 80 (#12)\n\nA body.");
    // A merge has no news of its own.
    upstream.git(&["switch", "-q", "-c", "side"]);
    upstream.write("side.yaml", service("side"));
    let side = upstream.commit("Thank @ann for the side [skip ci]");
    upstream.git(&["switch", "-q", "main"]);
    // It is no record.
    let id = "0".repeat(40);
    let three = format!("Kustomize-Localize-Tree: gitTree:{id}");
    let three = change(&project, "three", &three);
    upstream.git(&["merge", "-q", "--no-ff", "--no-edit", "side"]);
    let line = moved(&old, &upstream.id("main"));
    let commit = |id: &str, subject: &str| format!("\n  {} {subject}\n", &id[..12]);
    let text = updated(
        &project,
        &[
            &format!("{line}: 3 commits\n"),
            &commit(&two, "Serve on port 80 (12)"),
            &commit(&side, "Thank ann for the side (skip ci)"),
            &commit(&three, "(subject omitted: it looks like a record)"),
        ],
    );
    assert!(!text.contains("Merge") && !text.contains(&id), "{text}");
    project.work.run(&["verify", BRANCH]).success();
}

#[test]
fn many_commits_are_counted() {
    let project = project();
    for number in 1..=14 {
        change(&project, &format!("n{number}"), &format!("Change {number}"));
    }
    let counted = [": 14 commits\n", " Change 14\n", " Change 5\n  and 4 more\n"];
    let text = updated(&project, &counted);
    assert!(!text.contains("Change 4\n"), "{text}");
}

#[test]
fn a_branch_that_was_rewritten_or_went_back_is_reported() {
    let project = project();
    let upstream = &project.upstream;
    let old = change(&project, "two", "Two");
    updated(&project, &[]);
    upstream.git(&["reset", "-q", "--hard", "v1"]);
    let new = change(&project, "other", "Another two");
    let rewritten = format!("{}: not a descendant\n", moved(&old, &new));
    updated(&project, &[&rewritten]);
    upstream.git(&["reset", "-q", "--hard", "v1"]);
    let first = upstream.id("v1");
    let back = format!("{}: not a descendant\n", moved(&new, &first));
    updated(&project, &[&back]);
    // Where the old commit is gone upstream, nothing is known of it.
    upstream.git(&["tag", "-d", "v1"]);
    upstream.git(&["checkout", "-q", "--orphan", "new"]);
    let new = change(&project, "new", "Begin again");
    upstream.git(&["branch", "-q", "-M", "main"]);
    upstream.git(&["reflog", "expire", "--expire=now", "--all"]);
    upstream.git(&["gc", "-q", "--prune=now"]);
    let gone = format!("{}: not a descendant\n", moved(&first, &new));
    updated(&project, &[&gone]);
}

#[test]
fn offline_and_without_an_upstream_only_the_move_is_listed() {
    let project = project();
    let work = &project.work;
    // A lock on main decides what the branch holds.
    work.run(&["lock"]).success();
    work.commit("lock");
    work.run(&["branch"]).success();
    let old = project.upstream.id("main");
    let new = change(&project, "two", "Two");
    work.run(&["update"]).success();
    work.commit("update");
    let tip = work.id(BRANCH);
    let says = |more: &[&str], text: &str| {
        work.git(&["update-ref", "refs/heads/localized/main", &tip]);
        work.run(&[&["branch"], more].concat()).success();
        let message = work.message(BRANCH);
        assert!(message.contains(text), "no {text:?} in\n{message}");
    };
    let line = moved(&old, &new);
    let alone = format!("{line}\n\n");
    says(&["--offline"], &alone);
    let [there, gone] = ["upstream", "gone"].map(|name| project.sandbox.path(name));
    fs::rename(&there, &gone).unwrap();
    says(&[], &alone);
    fs::rename(&gone, &there).unwrap();
    let listed = format!("{line}: 1 commit\n  {} Two\n", &new[..12]);
    says(&[], &listed);
}
