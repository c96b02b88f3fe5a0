//! When to try again: the clock of one fetch, back-off with jitter.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{Duration, Instant};

use super::error::HttpError;

/// The longest wait that we choose ourselves. A server may ask for more.
const MAX_DELAY: Duration = Duration::from_secs(30);

/// The time that one fetch has left.
pub(super) struct Clock {
    start: Instant,
    /// The deadline as it was given.
    pub(super) total: Duration,
}

impl Clock {
    pub(super) fn start(total: Duration) -> Self {
        Clock { start: Instant::now(), total }
    }

    pub(super) fn remaining(&self) -> Result<Duration, HttpError> {
        let remaining = self.total.saturating_sub(self.start.elapsed());
        if remaining.is_zero() { Err(HttpError::deadline(self.total)) } else { Ok(remaining) }
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
