//! What is being fetched and how far it is: on a terminal, and nowhere else.

use std::sync::Mutex;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// One line on standard error that says what is being waited for.
pub struct Progress {
    bar: ProgressBar,
    waiting: Mutex<Vec<String>>,
}

impl Progress {
    /// Makes a line that is drawn only if standard error is a terminal and `quiet` is not set.
    #[must_use]
    pub fn new(quiet: bool) -> Self {
        let bar = ProgressBar::with_draw_target(
            Some(0),
            match quiet {
                true => ProgressDrawTarget::hidden(),
                false => ProgressDrawTarget::stderr(),
            },
        );
        if let Ok(style) = ProgressStyle::with_template("{spinner} fetching {pos}/{len} {wide_msg}")
        {
            bar.set_style(style);
        }
        Progress {
            bar,
            waiting: Mutex::default(),
        }
    }

    /// Says that `count` more things are going to be fetched.
    pub fn expect(&self, count: usize) {
        self.bar.inc_length(count as u64);
        if count > 0 {
            self.bar.enable_steady_tick(Duration::from_millis(100));
        }
    }

    /// Says that fetching `what` (without secrets) has begun.
    pub fn begin(&self, what: &str) {
        self.update(|waiting| waiting.push(what.to_owned()));
    }

    /// Says that `what` is there, or has failed.
    pub fn end(&self, what: &str) {
        self.update(|waiting| {
            if let Some(at) = waiting.iter().position(|one| one == what) {
                waiting.remove(at);
            }
        });
        self.bar.inc(1);
    }

    /// Clears the line while something else talks to the person at the terminal.
    pub fn suspend<T>(&self, work: impl FnOnce() -> T) -> T {
        self.bar.suspend(work)
    }

    /// Removes the line.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }

    fn update(&self, change: impl FnOnce(&mut Vec<String>)) {
        let mut waiting = self
            .waiting
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        change(&mut waiting);
        self.bar
            .set_message(waiting.first().cloned().unwrap_or_default());
    }
}
