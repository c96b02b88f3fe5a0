//! Ended at random moments.

use std::env;
use std::os::unix::process::CommandExt as _;
use std::thread;
use std::time::Instant;

use super::{PROGRAM, Stage, next_version, project, with_worktree};
use crate::support::{OVERLAY, Running};

/// How many runs are ended, in all tests together.
fn kills() -> u32 {
    let asked = env::var("KUSTOMIZE_LOCALIZE_KILLS").ok();
    asked.map_or(30, |asked| asked.parse().unwrap())
}

/// Random numbers, the same in every run of the tests.
struct Random(u64);

impl Random {
    /// Returns a number from 0 to 1.
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Ends every third of the runs at a random moment each, with everything in its process group.
fn play(stage: &Stage, seed: u64) {
    stage.undisturbed();
    stage.reset();
    let start = Instant::now();
    stage.run().success();
    let duration = start.elapsed();
    let mut random = Random(seed);
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
        let delay = duration.mul_f64(random.next() * 1.1);
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
        0x6b69_6c6c_6564,
    );
}

#[test]
fn the_repository_on_a_branch() {
    let project = project();
    project.work.run(&["--in-place", "--no-verify"]).success();
    next_version(&project);
    let stage = Stage::new(project, &["--in-place", "--no-verify"]);
    play(&stage, 0x7261_6e64_6f6d);
}

#[test]
fn a_worktree_that_follows() {
    let project = project();
    let args = with_worktree(&project);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    project.work.run(&args).success();
    next_version(&project);
    play(&Stage::new(project, &args), 0x6d6f_6d65_6e74);
}
