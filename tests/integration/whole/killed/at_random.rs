//! Ended at random moments.

use std::thread;
use std::time::Instant;

use super::{COPY, IN_PLACE, PROGRAM, Stage, WORKTREE};
use crate::support::{Random, Running, full};

/// Ends some runs at a random moment each, with everything in their process group.
///
/// A run that is done before its moment shortens the time from which the next moments are taken, and does not count:
/// how long one takes depends on what else the machine does.
fn play(stage: &Stage, seed: &str) {
    stage.undisturbed();
    stage.reset();
    let start = Instant::now();
    stage.run().success();
    let mut duration = start.elapsed();
    let mut random = Random::of(seed);
    let turns = if full() { 30 } else { 2 };
    let (mut ended, mut done) = (0_u32, 0);
    while ended < turns {
        assert!(done < 10 * turns, "{done} runs were done before their moment");
        stage.reset();
        // Whatever it starts holds its output open: it is waited for, and has done what it can.
        let mut command = stage.sandbox().command("sh", stage.project.work.path());
        command.args(["-c", "exec \"$0\" \"$@\" 3>&1", PROGRAM]).args(stage.args);
        let start = Instant::now();
        let running = Running::start(&mut command);
        let delay = duration.mul_f64(random.fraction());
        thread::sleep(delay.saturating_sub(start.elapsed()));
        running.kill_group();
        let output = running.wait();
        eprintln!("turn {ended}: after {delay:?}: {output:?}");
        match output.status {
            -9 => ended += 1,
            _ => {
                output.success();
                done += 1;
                duration = delay;
            }
        }
        stage.assert_sound();
        let alive = stage.poison();
        if ended.is_multiple_of(2) {
            drop(alive);
        }
        stage.assert_next_run_succeeds();
    }
}

#[test]
fn a_copy_on_a_branch() {
    play(&Stage::new(COPY), "a copy on a branch");
}

#[test]
fn the_repository_on_a_branch() {
    play(&Stage::again(IN_PLACE), "the repository on a branch");
}

#[test]
fn a_worktree_that_follows() {
    play(&Stage::again(WORKTREE), "a worktree that follows");
}
