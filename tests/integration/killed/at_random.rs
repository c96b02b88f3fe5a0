//! Ended at random moments.

use std::env;
use std::os::unix::process::CommandExt as _;
use std::thread;
use std::time::Instant;

use super::{PROGRAM, Stage, next_version, project, with_worktree};
use crate::support::{OVERLAY, Random, Running};

/// How many runs are ended, in all tests together.
fn kills() -> u32 {
    let asked = env::var("KUSTOMIZE_LOCALIZE_KILLS").ok();
    asked.map_or(30, |asked| asked.parse().unwrap())
}

/// Ends every third of the runs at a random moment each, with everything in its process group.
fn play(stage: &Stage, seed: &str) {
    stage.undisturbed();
    stage.reset();
    let start = Instant::now();
    stage.run().success();
    let duration = start.elapsed();
    let mut random = Random::of(seed);
    let turns = kills() / 3;
    let mut ended = 0;
    for turn in 0..turns {
        stage.reset();
        // Whatever it starts holds its output open: it is waited for, and has done what it can.
        let mut command = stage.sandbox().command("sh", stage.project.work.path());
        command
            .args(["-c", "exec \"$0\" \"$@\" 3>&1", PROGRAM])
            .args(&stage.args)
            .process_group(0);
        let start = Instant::now();
        let running = Running::start(&mut command);
        let delay = duration.mul_f64(random.fraction() * 1.1);
        thread::sleep(delay.saturating_sub(start.elapsed()));
        running.kill_group();
        let status = running.wait().status;
        eprintln!("turn {turn}: after {delay:?} of {duration:?}: {status}");
        assert!(status == -9 || status == 0);
        ended += u32::from(status == -9);
        stage.assert_sound();
        let alive = stage.poison();
        if turn.is_multiple_of(2) {
            drop(alive);
        }
        stage.assert_next_run_succeeds();
    }
    assert!(
        ended >= turns.min(3),
        "only {ended} of {turns} were ended before they were done"
    );
}

#[test]
fn a_copy_on_a_branch() {
    play(
        &Stage::new(project(), &[&OVERLAY[..], &["--no-verify"]].concat()),
        "a copy on a branch",
    );
}

#[test]
fn the_repository_on_a_branch() {
    let project = project();
    project.work.run(&["--in-place", "--no-verify"]).success();
    next_version(&project);
    let stage = Stage::new(project, &["--in-place", "--no-verify"]);
    play(&stage, "the repository on a branch");
}

#[test]
fn a_worktree_that_follows() {
    let project = project();
    let args = with_worktree(&project);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    project.work.run(&args).success();
    next_version(&project);
    play(&Stage::new(project, &args), "a worktree that follows");
}
