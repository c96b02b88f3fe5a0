//! Ended right before each effect of a run, one after the other.

use std::fs;

use super::{COPY, DISK, Facts, IN_PLACE, Stage, WORKING_TREE, WORKTREE, project};
use crate::support::{OVERLAY, Transcript, full, rows};

/// What all commands that fetch have in common. By day it is ended in one test, at all of them at night.
const FETCHING: [&str; 5] = [
    "make a directory of the cache",
    "make a repository to fetch into",
    "fetch",
    "put files into a repository of the cache",
    "put a fetched repository into the cache",
];

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

/// Asserts that a run has these effects, in this order. Ends it at each of them, and asserts that nothing is broken and
/// that the next run does all of it. What comes before the first effect, if it is the commit, is ended in another test.
fn play(stage: &Stage, expected: &[&str]) {
    let effects = stage.undisturbed();
    let mut rest = effects.iter();
    for name in expected {
        assert!(rest.any(|effect| effect == name), "{name}: {effects:#?}");
    }
    let first = expected.contains(&COMMIT).then_some(COMMIT);
    let mut ends = ends(&effects, first.filter(|_| stage.args == WORKTREE));
    ends.retain(|(_, name)| full() || expected.contains(&"fetch") || !FETCHING.contains(name));
    for (turn, (number, name)) in rows(ends, 2).enumerate() {
        end_at(stage, number, name, turn % 2 == 1);
    }
}

const COMMIT: &str = "write the commit";

/// Ends a run at an effect. If it `seems_alive`, files that only that run could use look as if still in use, with other
/// contents.
fn end_at(stage: &Stage, number: usize, name: &str, seems_alive: bool) {
    stage.end_at(number, name);
    stage.assert_sound();
    if seems_alive {
        let (left, alive) = (stage.temporary(), stage.poison());
        stage.assert_next_run_succeeds();
        assert_eq!(stage.temporary(), left, "a living run's");
        drop(alive);
    } else {
        stage.assert_next_run_succeeds();
        let mut left = stage.temporary();
        // A run that makes nothing there leaves that for the next one that does.
        left.retain(|place| !place.starts_with("cache/") && !place.starts_with("tmp/"));
        assert_eq!(left, crate::support::NONE);
    }
}

#[test]
fn a_copy_on_a_branch() {
    play(
        &Stage::new(COPY),
        &[
            "make a directory of the cache",
            "make a temporary directory",
            "make a repository to fetch into",
            "fetch",
            "put a fetched repository into the cache",
            "write a blob",
            "write a tree",
            COMMIT,
            "move the ref",
        ],
    );
}

#[test]
fn a_copy_that_is_brought_up_to_date() {
    play(&Stage::again(COPY), &[]);
}

#[test]
fn the_repository_on_a_branch() {
    play(&Stage::new(IN_PLACE), &[]);
}

#[test]
fn the_repository_on_a_branch_again() {
    play(&Stage::again(IN_PLACE), &[]);
}

#[test]
fn a_new_worktree() {
    play(&Stage::new(WORKTREE), &[COMMIT, "move the ref", "make the worktree"]);
}

#[test]
fn a_worktree_that_follows() {
    play(
        &Stage::again(WORKTREE),
        &["refresh the index of the worktree", COMMIT, "move the ref", "check out the worktree"],
    );
}

#[test]
fn a_worktree_whose_source_goes_on_meanwhile() {
    for stage in [Stage::again(WORKTREE), Stage::new(WORKTREE)] {
        let effects = stage.undisturbed();
        for (number, name) in ends(&effects, Some(COMMIT)) {
            stage.end_at(number, name);
            let work = &stage.project.work;
            work.write("more.yaml", "kind: More\n");
            work.commit("more");
            stage.run().success();
            let (_, status) = Facts::of(&stage.project).deployed.unwrap();
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
fn a_failed_run_changes_nothing() {
    const HELD: &str = ".git/refs/heads/localized/main.lock";
    let mut transcript = Transcript::default();
    for stage in [Stage::new(WORKTREE), Stage::again(WORKTREE)] {
        // A ref with a lock file cannot be moved.
        stage.project.work.write(HELD, "");
        transcript.add(stage.run().fails(2));
        stage.project.work.remove(HELD);
        assert!(Facts::of(&stage.project) == stage.before);
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize branch --no-verify --worktree ../deployed
        error: git could not move `refs/heads/localized/main`: update_ref failed for ref 'refs/heads/localized/main': cannot lock ref 'refs/heads/localized/main': Unable to create '/home/me/work/.git/refs/heads/localized/main.lock': File exists.; Another git process seems to be running in this repository, e.g.; an editor opened by 'git commit'. Please make sure all processes; are terminated then try again. If it still fails, a git process; may have crashed in this repository earlier:; remove the file manually to continue.
          hint: if no git is running, remove the lock: rm /home/me/work/.git/refs/heads/localized/main.lock
    "#]]);
}

#[test]
fn the_working_tree() {
    play(
        &Stage::new(WORKING_TREE),
        &[
            "write a file for the working tree",
            "make a directory of the working tree",
            "put a file into the working tree",
            "remove a temporary directory",
        ],
    );
}

#[test]
fn the_working_tree_again() {
    play(
        &Stage::again(WORKING_TREE),
        &[
            "put a file into the working tree",
            "remove a file of the working tree",
            "remove a directory of the working tree if it is empty",
        ],
    );
}

#[test]
fn a_directory_on_disk() {
    play(&Stage::new(DISK), &["make NEW_DIR beside its place", "write a file", "move NEW_DIR to its place"]);
    let changes = "let NEW_DIR change places with the old one";
    play(&Stage::again(DISK), &[changes]);
}

#[test]
fn the_lock() {
    let unlocked = project();
    unlocked.work.remove("kustomize-localize.lock");
    play(&Stage::of(unlocked, &["lock"]), &[]);
    let project = project();
    project.second_version();
    project.upstream.git(&["tag", "--force", "v1"]);
    play(&Stage::of(project, &["update", "https://example.com"]), &[]);
}

#[test]
fn builds() {
    let project = project();
    let Some(_) = project.sandbox.builds() else { return };
    let stage = Stage::of(project, &OVERLAY);
    let effects = stage.undisturbed();
    let temporary = |name: &str| name.ends_with("temporary directory");
    let builds = (1..).zip(&effects).filter(|(_, name)| temporary(name)).skip(1);
    assert!(builds.clone().count() >= 2, "{effects:?}");
    for (number, name) in builds {
        end_at(&stage, number, name, number.is_multiple_of(2));
    }
}
