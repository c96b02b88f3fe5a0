//! Ended right before each effect of a run, one after the other.

use std::fs;

use super::{Stage, next_version, project, with_worktree};
use crate::support::{OVERLAY, Project, full};

const STOP: &str = "KUSTOMIZE_LOCALIZE_STOP_AT";

/// Returns the effects to end at, each with its number: from the first of a name on, the first and the last of each
/// name; at night all of them.
fn ends<'a>(effects: &'a [String], first: Option<&str>) -> Vec<(usize, &'a str)> {
    let is_first = |name: &String| first.is_none_or(|first| name == first);
    let skipped = effects.iter().position(is_first).unwrap();
    (1..)
        .zip(effects)
        .skip(skipped)
        .filter(|(number, name)| {
            let (before, after) = (&effects[skipped..number - 1], &effects[*number..]);
            full() || !before.contains(name) || !after.contains(name)
        })
        .map(|(number, name)| (number, name.as_str()))
        .collect()
}

/// Ends a run at each effect, and asserts that nothing is broken and that the next run does all of it. Returns the
/// names of the effects of a whole run.
fn play(stage: &Stage) -> Vec<String> {
    play_from(stage, None)
}

/// Like [`play`], but for what comes before the first effect of a name and was ended in another test.
fn play_from(stage: &Stage, first: Option<&str>) -> Vec<String> {
    let effects = stage.undisturbed();
    for (number, name) in ends(&effects, first) {
        end_at(stage, number, name);
    }
    effects
}

/// Ends a run at an effect. Every other time, files that only that run could use look as if still in use, with other
/// contents.
fn end_at(stage: &Stage, number: usize, name: &str) {
    eprintln!("ended at effect {number}: {name}");
    stage.reset();
    stage.sandbox().set(STOP, number.to_string());
    stage.run().fails(-9);
    stage.sandbox().unset(STOP);
    stage.assert_sound();
    if number.is_multiple_of(2) {
        let (left, alive) = (stage.temporary(), stage.poison());
        stage.assert_next_run_succeeds();
        assert_eq!(stage.temporary(), left, "a living run's");
        drop(alive);
    } else {
        stage.assert_next_run_succeeds();
        let mut left = stage.temporary();
        // A run that makes nothing there leaves that for the next one that does.
        left.retain(|place| !place.starts_with("cache/") && !place.starts_with("tmp/"));
        assert_eq!(left, [""; 0]);
    }
}

/// Asserts that a run has these effects, in this order.
#[track_caller]
fn has(effects: &[String], expected: &[&str]) {
    let mut rest = effects.iter();
    for name in expected {
        assert!(rest.any(|effect| effect == name), "{name}: {effects:#?}");
    }
}

#[test]
fn a_copy_on_a_branch() {
    let stage = Stage::new(project(), &[&OVERLAY[..], &["--no-verify"]].concat());
    let effects = play(&stage);
    has(
        &effects,
        &[
            "make a directory of the cache",
            "make a temporary directory",
            "make a repository to fetch into",
            "fetch",
            "put a fetched repository into the cache",
            "write a blob",
            "write a tree",
            "write the commit",
            "move the ref",
        ],
    );
}

#[test]
fn a_copy_that_is_brought_up_to_date() {
    let project = project();
    project.overlay(&["--no-verify"]).success();
    next_version(&project);
    play(&Stage::new(
        project,
        &[&OVERLAY[..], &["--no-verify"]].concat(),
    ));
}

#[test]
fn the_repository_on_a_branch() {
    play(&Stage::new(project(), &["--in-place", "--no-verify"]));
}

#[test]
fn the_repository_on_a_branch_again() {
    let project = project();
    project.work.run(&["--in-place", "--no-verify"]).success();
    next_version(&project);
    play(&Stage::new(project, &["--in-place", "--no-verify"]));
}

#[test]
fn a_new_worktree() {
    let project = project();
    let args = with_worktree(&project);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let stage = Stage::new(project, &args);
    let effects = play_from(&stage, Some("write the commit"));
    has(
        &effects,
        &[
            "write the commit",
            "make the worktree",
            "move the ref",
            "check out the branch in the worktree",
            "finish the worktree",
        ],
    );
}

/// A stage whose worktree is to follow its source.
fn following_worktree() -> Stage {
    let project = project();
    let args = with_worktree(&project);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    project.work.run(&args).success();
    next_version(&project);
    Stage::new(project, &args)
}

#[test]
fn a_worktree_that_follows() {
    let effects = play_from(&following_worktree(), Some("write the commit"));
    has(
        &effects,
        &[
            "refresh the index of the worktree",
            "write the commit",
            "note what the worktree is going to hold",
            "check out the worktree",
            "move the ref",
            "forget what the worktree was going to hold",
        ],
    );
}

#[test]
fn a_worktree_whose_source_goes_on_meanwhile() {
    for stage in [following_worktree(), {
        let project = project();
        let args = with_worktree(&project);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        Stage::new(project, &args)
    }] {
        let effects = stage.undisturbed();
        for (number, name) in ends(&effects, Some("write the commit")) {
            eprintln!("ended at effect {number}: {name}");
            stage.reset();
            stage.sandbox().set(STOP, number.to_string());
            stage.run().fails(-9);
            stage.sandbox().unset(STOP);
            let work = &stage.project.work;
            work.write("more.yaml", "kind: More\n");
            work.commit("more");
            stage.run().success();
            let (_, status) = super::Facts::of(&stage.project).deployed.unwrap();
            let clean = status.lines().next().unwrap() == "## localized/main"
                && status.lines().nth(1).unwrap().starts_with("worktree ");
            assert!(clean && !status.contains("locked"), "{status}");
            let deployed = stage.sandbox().path("deployed/more.yaml");
            assert_eq!(fs::read_to_string(deployed).unwrap(), "kind: More\n");
            work.git(&["fsck", "--strict", "--no-dangling"]);
        }
    }
}

#[test]
fn a_failed_run_is_undone() {
    let new = {
        let project = project();
        let args = with_worktree(&project);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        Stage::new(project, &args)
    };
    for stage in [new, following_worktree()] {
        let list = stage.sandbox().path("effects");
        stage.undisturbed();
        // A ref with a lock file cannot be moved.
        let hold = || {
            stage.reset();
            stage
                .project
                .work
                .write(".git/refs/heads/localized/main.lock", "");
            stage.sandbox().set("KUSTOMIZE_LOCALIZE_FAILPOINTS", &list);
        };
        let release = || {
            stage
                .project
                .work
                .remove(".git/refs/heads/localized/main.lock");
            stage.sandbox().unset("KUSTOMIZE_LOCALIZE_FAILPOINTS");
        };
        fs::remove_file(&list).unwrap();
        hold();
        stage.run().fails(2).stderr_has("remove the lock");
        release();
        assert!(super::Facts::of(&stage.project).deployed == stage.before.deployed);
        let effects = fs::read_to_string(&list).unwrap();
        let effects: Vec<&str> = effects.lines().collect();
        let moves = effects.iter().position(|name| *name == "move the ref");
        assert!(effects.len() > moves.unwrap() + 1, "{effects:?}");
        for number in moves.unwrap() + 2..=effects.len() {
            eprintln!("ended at effect {number}: {}", effects[number - 1]);
            hold();
            stage.sandbox().set(STOP, number.to_string());
            stage.run().fails(-9);
            stage.sandbox().unset(STOP);
            release();
            stage.assert_sound();
            stage.assert_next_run_succeeds();
        }
    }
}

/// A stage whose run writes to the working tree.
fn writing(project: Project, args: &[&str]) -> Stage {
    Stage {
        writes: true,
        ..Stage::new(project, args)
    }
}

#[test]
fn the_working_tree() {
    let effects = play(&writing(
        project(),
        &["--in-place", "--no-commit", "--no-verify"],
    ));
    has(
        &effects,
        &[
            "let git ignore the temporary directory",
            "write a file for the working tree",
            "make a directory of the working tree",
            "put a file into the working tree",
            "keep an old file of the working tree",
            "remove a temporary directory",
        ],
    );
}

#[test]
fn the_working_tree_again() {
    let project = project();
    let args = ["--in-place", "--no-commit", "--no-verify"];
    project.work.run(&args).success();
    project.work.commit("localized");
    next_version(&project);
    let effects = play(&writing(project, &args));
    has(
        &effects,
        &[
            "remove a file of the working tree",
            "put a file into the working tree",
            "remove a directory of the working tree if it is empty",
        ],
    );
}

#[test]
fn a_directory_on_disk() {
    let args = [&OVERLAY[..], &["--no-commit", "--no-verify"]].concat();
    let effects = play(&writing(project(), &args));
    has(
        &effects,
        &[
            "make NEW_DIR beside its place",
            "write a file of NEW_DIR",
            "move NEW_DIR to its place",
        ],
    );
    let project = project();
    project.work.run(&args).success();
    next_version(&project);
    let effects = play(&writing(project, &args));
    has(&effects, &["let NEW_DIR change places with the old one"]);
}

#[test]
fn the_lock() {
    play(&writing(project(), &["lock"]));
    let project = project();
    project.work.run(&["lock"]).success();
    project.work.commit("locked");
    project.second_version();
    project.upstream.git(&["tag", "--force", "v1"]);
    play(&writing(project, &["update", "--accept-moved"]));
}

#[test]
fn builds() {
    let project = project();
    if project.sandbox.builds().is_none() {
        return;
    }
    let stage = Stage::new(project, &OVERLAY);
    let effects = stage.undisturbed();
    let temporary = |name: &str| name.ends_with("temporary directory");
    let builds = (1..)
        .zip(&effects)
        .filter(|(_, name)| temporary(name))
        .skip(1);
    assert!(builds.clone().count() >= 2, "{effects:?}");
    for (number, name) in builds {
        end_at(&stage, number, name);
    }
}
