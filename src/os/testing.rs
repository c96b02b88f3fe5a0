//! A clock for tests of how long something takes.

use std::fs;
use std::time::Duration;

/// Measures how long this thread runs, whatever else runs on the machine.
pub(crate) struct ThreadClock(Option<Duration>);

impl ThreadClock {
    pub(crate) fn start() -> ThreadClock {
        ThreadClock(running())
    }

    /// The time since the start; `None` if the system does not tell.
    pub(crate) fn spent(&self) -> Option<Duration> {
        Some(running()? - self.0?)
    }

    /// Panics if the thread has run for so many seconds since the start.
    #[track_caller]
    pub(crate) fn stays_below(&self, seconds: u64, about: &str) {
        let spent = self.spent().unwrap_or_default();
        assert!(spent < Duration::from_secs(seconds), "{about}: {spent:?}");
    }
}

/// How long this thread has run; `None` if the system does not tell.
fn running() -> Option<Duration> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(text.split(' ').next()?.parse().ok()?))
}
