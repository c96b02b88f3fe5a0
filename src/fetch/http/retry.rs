//! When to try again: the clock of one fetch, back-off with jitter, and what `Retry-After` says.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use super::error::HttpError;

/// How often a wait looks whether it should end.
const TICK: Duration = Duration::from_millis(20);

/// The longest wait that we choose ourselves. A server may ask for more.
const MAX_DELAY: Duration = Duration::from_secs(30);

/// The time that one fetch has left, and whether anybody still wants it.
pub(super) struct Clock<'a> {
    start: Instant,
    total: Duration,
    cancel: &'a AtomicBool,
}

impl<'a> Clock<'a> {
    pub(super) fn start(total: Duration, cancel: &'a AtomicBool) -> Self {
        Clock { start: Instant::now(), total, cancel }
    }

    /// The deadline as it was given.
    pub(super) fn total(&self) -> Duration {
        self.total
    }

    pub(super) fn remaining(&self) -> Duration {
        self.total.saturating_sub(self.start.elapsed())
    }

    /// Returns how long to wait before asking again.
    pub(super) fn tick(&self) -> Result<Duration, HttpError> {
        if self.cancel.load(Ordering::Relaxed) {
            return Err(HttpError::Cancelled);
        }
        match self.remaining() {
            Duration::ZERO => Err(HttpError::Deadline { after: self.total }),
            remaining => Ok(remaining.min(TICK)),
        }
    }

    /// Waits for `delay`, or until there is a reason not to.
    pub(super) fn sleep(&self, delay: Duration) -> Result<(), HttpError> {
        let start = Instant::now();
        loop {
            let tick = self.tick()?;
            match delay.saturating_sub(start.elapsed()) {
                Duration::ZERO => return Ok(()),
                rest => std::thread::sleep(rest.min(tick)),
            }
        }
    }
}

/// Returns how long to wait before try number `tried + 1`: `first`, doubled each time, of which a
/// random share of up to one half is left out so that many clients do not come back at once. What
/// the server asks for is a lower bound.
pub(super) fn delay(first: Duration, tried: u32, retry_after: Option<Duration>) -> Duration {
    let full = first.saturating_mul(2_u32.saturating_pow(tried)).min(MAX_DELAY);
    let own = full / 2 + (full / 2).mul_f64(random_share());
    own.max(retry_after.unwrap_or_default())
}

/// A number from 0 to 1. `RandomState` is seeded by the system; nothing secret depends on it.
fn random_share() -> f64 {
    let bits = RandomState::new().build_hasher().finish() >> 32;
    #[allow(clippy::cast_precision_loss, reason = "32 bits fit an f64")]
    let share = bits as f64 / f64::from(u32::MAX);
    share
}

/// Reads a `Retry-After` header: seconds, or a date (RFC 9110, 10.2.3) as seen from `now`.
///
/// A date that has passed means no wait. Returns `None` when it is neither.
pub fn retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than fit mean a wait that outlives every deadline.
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
    }
    let then = httpdate::parse_http_date(value).ok()?;
    Some(then.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    #[test]
    fn seconds_and_dates_are_read() {
        let now = UNIX_EPOCH + Duration::from_secs(784_111_777);
        let read = |value| retry_after(value, now).map(|wait| wait.as_secs());
        assert_eq!(read("120"), Some(120));
        assert_eq!(read(" 0 "), Some(0));
        assert_eq!(read("99999999999999999999999"), Some(u64::MAX));
        assert_eq!(read("Sun, 06 Nov 1994 08:49:37 GMT"), Some(0));
        assert_eq!(read("Sun, 06 Nov 1994 08:50:07 GMT"), Some(30));
        assert_eq!(read("Sun, 06 Nov 1994 08:00:00 GMT"), Some(0));
        assert_eq!(read("Sunday, 06-Nov-94 08:50:07 GMT"), Some(30));
        assert_eq!(read("Sun Nov  6 08:50:07 1994"), Some(30));
        for bad in [
            "",
            "-1",
            "soon",
            "1.5",
            "Sun, 06 Nov 1994",
            "Sun, 06 Foo 1994 08:49:37 GMT",
            "Sun, 99 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 CET",
            "Sun, 06 Nov 1994 24:00:00 GMT",
            "Sun, 06 Nov 1994 08:49:+7 GMT",
        ] {
            assert_eq!(read(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn the_wait_doubles_within_bounds_and_obeys_the_server() {
        let first = Duration::from_millis(100);
        for tried in 0..4 {
            let full = first * 2_u32.pow(tried);
            let wait = delay(first, tried, None);
            assert!(full / 2 <= wait && wait <= full, "{tried}: {wait:?}");
        }
        assert!(delay(first, u32::MAX, None) <= MAX_DELAY);
        let asked = Duration::from_secs(100);
        assert_eq!(delay(first, 0, Some(asked)), asked);
    }

    #[test]
    fn jitter_spreads() {
        let first = Duration::from_secs(1);
        let waits: std::collections::BTreeSet<_> = (0..20).map(|_| delay(first, 0, None)).collect();
        assert!(waits.len() > 1);
    }

    #[test]
    fn a_wait_ends_with_its_reason() {
        let cancel = AtomicBool::new(false);
        let clock = Clock::start(Duration::from_millis(30), &cancel);
        assert_eq!(clock.sleep(Duration::from_secs(60)), Err(HttpError::Deadline { after: Duration::from_millis(30) }));
        cancel.store(true, Ordering::Relaxed);
        let clock = Clock::start(Duration::from_secs(60), &cancel);
        assert_eq!(clock.sleep(Duration::from_secs(60)), Err(HttpError::Cancelled));
    }
}
