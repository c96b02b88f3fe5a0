//! Servers that limit how much they give: how that is recognized, and how long a run waits for them.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::Progress;
use super::http::Stop;
use super::reach::place;
use crate::git::{Exchange, Login};
use crate::message::failure::{Failure, FailureKind};

/// The most that one request waits in all.
const MOST_OF_REQUEST: Duration = Duration::from_secs(60);
/// The most that one run waits in all.
const MOST_OF_RUN: Duration = Duration::from_secs(300);

/// What git prints where a server says in a sentence that it limits us: GitHub does so over 200.
const SENTENCES: [&str; 4] = ["temporarily limiting", "too many requests", "rate limit", "returned error: 429"];

/// Returns how long a server that limits us asks to wait, zero where it does not say; none where it answered for another
/// reason.
pub(super) fn of_answer<'a>(status: u16, header: impl Fn(&'static str) -> Option<&'a str>) -> Option<Duration> {
    let wait = header("retry-after");
    let is_used_up = || ["x-ratelimit-remaining", "ratelimit-remaining"].iter().any(|name| header(name) == Some("0"));
    let limits = match status {
        429 => true,
        403 => wait.is_some() || is_used_up(),
        503 => wait.is_some(),
        _ => false,
    };
    // A date is not respected.
    limits.then(|| Duration::from_secs(wait.and_then(|wait| wait.parse().ok()).unwrap_or(0)))
}

/// Returns the same of what git said and heard. A server that lists the refs without a login, and then wants one, limits
/// us: the repository is not private.
pub(super) fn of_git(exchange: &Exchange) -> Option<Duration> {
    let says_so = || exchange.status == 401 && exchange.is_public || exchange.output.says(&SENTENCES);
    let failed = !exchange.output.status.success();
    let answered = || of_answer(exchange.status, |name| exchange.header(name));
    failed.then(|| answered().or_else(|| says_so().then_some(Duration::ZERO)))?
}

/// Makes what a server said the failure of one that limits us.
pub(super) fn explained(said: &str, host: &str, wait: Duration) -> Failure {
    let more = if wait.is_zero() { String::new() } else { format!("; retry after {} s", wait.as_secs()) };
    Failure::new(format!("{host} is rate limiting: {said}{more}"))
        .hint(format!(
            "try again later, or log in for a higher limit: store a login for {host} in git's credential helper, or set git's `http.https://{host}/.extraHeader`"
        ))
        .because(FailureKind::Limited)
}

/// How long a run waits for servers; shared by its threads.
pub(super) struct Patience {
    progress: Arc<Progress>,
    /// How often a request is tried again.
    retries: usize,
    /// The wait before the first retry where the server does not say; doubled before each further one.
    first: Duration,
    /// When the time of the run for waiting is over, once it has begun.
    end: OnceLock<Instant>,
    /// The hosts for which waiting did not help, and the user's login did.
    closed: Mutex<HashSet<String>>,
}

impl Patience {
    pub(super) fn new(progress: Arc<Progress>, retries: usize, first: Duration) -> Self {
        Patience { progress, retries, first, end: OnceLock::new(), closed: Mutex::default() }
    }

    /// Sends a request for `url` until it is answered: again after each wait, and at last with the login that `ask` has,
    /// which may be another one than was refused. `login` goes along from the beginning, and so does what `ask` has where
    /// that is `at_once`, unless the server refuses it.
    pub(super) fn persist<T>(
        &self,
        url: &str,
        mut login: Option<Login>,
        at_once: impl Fn() -> bool,
        ask: impl Fn(Option<&Login>) -> Option<Login>,
        send: impl Fn(Option<&Login>) -> Result<T, Stop>,
    ) -> Result<T, Stop> {
        let host = place(url).unwrap_or_default();
        let closed = || self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        let mut unasked = login.is_none() && (at_once() || closed().contains(&host));
        if unasked {
            login = ask(None);
            unasked = login.is_some();
        }
        let (mut waits, mut asked, mut limited) = (Vec::new(), unasked, None);
        loop {
            let stop = match send(login.as_ref()) {
                Ok(answer) => {
                    closed().extend(limited.map(|_: Stop| host));
                    return Ok(answer);
                }
                Err(stop) => stop,
            };
            if stop.again.is_some_and(|least| self.wait(&mut waits, &host, least)) {
                continue;
            }
            // What is public may be refused to a login that has expired.
            if stop.failure.kind == FailureKind::Login && std::mem::take(&mut unasked) {
                login = None;
                continue;
            }
            let found = if stop.wants_login && !asked { ask(login.as_ref()) } else { None };
            if found.is_none() {
                // That the login is no good says nothing about what it was to help with.
                return Err(limited.filter(|_| stop.failure.kind == FailureKind::Login).unwrap_or(stop));
            }
            (login, asked) = (found, true);
            limited = Some(stop).filter(|stop| stop.failure.kind == FailureKind::Limited);
        }
    }

    /// Waits before the next try, at least for as long as is asked, and returns whether it did. Waiting for a part of what
    /// is asked helps nobody.
    fn wait(&self, waits: &mut Vec<Duration>, host: &str, least: Duration) -> bool {
        let wait = least.max(self.first.saturating_mul(1 << waits.len().min(9)));
        let all = waits.iter().sum::<Duration>().saturating_add(wait);
        if waits.len() >= self.retries || all > MOST_OF_REQUEST {
            return false;
        }
        let now = Instant::now();
        if now + wait > *self.end.get_or_init(|| now + MOST_OF_RUN) {
            return false;
        }
        waits.push(wait);
        self.progress.pause(&format!("waiting {} s for {host}", wait.as_secs_f64()), wait);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_limits_is_told_from_one_that_refuses() {
        let asked = |status, headers: &[(&str, &'static str)]| {
            let headers = headers.to_vec();
            let found =
                of_answer(status, |name| headers.iter().find(|(known, _)| *known == name).map(|(_, value)| *value));
            found.map(|wait| wait.as_secs())
        };
        for (status, headers, expected) in [
            (429, &[][..], Some(0)),
            (429, &[("retry-after", "7")], Some(7)),
            (429, &[("retry-after", "Thu, 01 Jan 1970 00:00:00 GMT")], Some(0)),
            (429, &[("retry-after", "soon")], Some(0)),
            (503, &[("retry-after", "7")], Some(7)),
            (503, &[], None),
            (403, &[("x-ratelimit-remaining", "0")], Some(0)),
            (403, &[("ratelimit-remaining", "0")], Some(0)),
            (403, &[("retry-after", "7")], Some(7)),
            (403, &[("x-ratelimit-remaining", "41")], None),
            (403, &[], None),
            (401, &[("retry-after", "7")], None),
            (404, &[("x-ratelimit-remaining", "0")], None),
        ] {
            assert_eq!(asked(status, headers), expected, "{status} {headers:?}");
        }
    }

    #[test]
    fn a_wait_that_is_too_long_is_not_begun() {
        let patience = Patience::new(Arc::new(Progress::new("fetching", true)), 3, Duration::from_millis(1));
        let started = Instant::now();
        let waits =
            |before: u64, least| patience.wait(&mut vec![Duration::from_secs(before)], "h", Duration::from_secs(least));
        assert!(!waits(0, 61) && !waits(0, u64::MAX) && !waits(59, 2));
        let mut waited = Vec::new();
        while patience.wait(&mut waited, "h", Duration::ZERO) {}
        assert_eq!(waited, [1, 2, 4].map(Duration::from_millis));
        // The time of the run has begun, and ends.
        let end = OnceLock::from(Instant::now() + Duration::from_secs(5));
        let patience = Patience { end, ..patience };
        let waits = |least| patience.wait(&mut Vec::new(), "h", least);
        assert!(waits(Duration::from_millis(1)) && !waits(Duration::from_secs(6)));
        assert!(started.elapsed() < Duration::from_secs(5));
    }
}
