//! Recognizes servers that limit the number of requests, and decides how long a run waits for them.

use std::collections::HashSet;
use std::mem;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use super::Progress;
use super::http::RequestError;
use super::reach::authority;
use crate::git::{Exchange, Login};
use crate::message::failure::{Failure, FailureKind};
use crate::os::parallel::locked;

/// How often a request is sent again.
pub(super) const RETRIES: usize = 3;
/// The longest wait of one request, over all retries.
const MOST_OF_REQUEST: Duration = Duration::from_secs(60);
/// The longest wait of one run.
const MOST_OF_RUN: Duration = Duration::from_secs(300);

/// The messages of git if a server says in a sentence that it limits us. GitHub does so with status 200.
const SENTENCES: [&str; 4] = ["temporarily limiting", "too many requests", "rate limit", "returned error: 429"];

/// The wait that a server demands because it limits the rate of requests, by the status and the headers of its
/// response; zero if it does not say how long. `None` if it refuses the request for another reason, so that waiting
/// does not help.
pub(super) fn demanded_wait<'a>(status: u16, header: impl Fn(&'static str) -> Option<&'a str>) -> Option<Duration> {
    let wait = header("retry-after");
    let is_used_up = || ["x-ratelimit-remaining", "ratelimit-remaining"].iter().any(|name| header(name) == Some("0"));
    let limits = match status {
        429 => true,
        403 => wait.is_some() || is_used_up(),
        503 => wait.is_some(),
        _ => false,
    };
    // A date in `Retry-After` is ignored.
    limits.then(|| Duration::from_secs(wait.and_then(|wait| wait.parse().ok()).unwrap_or(0)))
}

/// The wait that a server demands, by the output of git and the headers of the response.
pub(super) fn demanded_wait_of_git(exchange: &Exchange) -> Option<Duration> {
    if exchange.output.status.success() {
        return None;
    }
    // A server that lists the refs without a login and then demands one limits us: the repository is public.
    let is_stated = exchange.status == 401 && exchange.is_public || exchange.output.says(&SENTENCES);
    let by_headers = demanded_wait(exchange.status, |name| exchange.header(name));
    by_headers.or_else(|| is_stated.then_some(Duration::ZERO))
}

/// The failure of a server that limits us. `reason` is its message.
pub(super) fn limit_failure(reason: &str, host: &str, wait: Duration) -> Failure {
    let more = if wait.is_zero() { String::new() } else { format!("; retry after {} s", wait.as_secs()) };
    Failure::new(format!("{host} is rate limiting: {reason}{more}"))
        .hint(format!(
            "try again later, or log in for a higher limit: store a login for {host} in git's credential helper, or set git's `http.https://{host}/.extraHeader`"
        ))
        .because(FailureKind::Limited)
}

/// Bounds how long a run waits for servers. Its threads share the bound.
pub(super) struct Patience {
    progress: Arc<Progress>,
    /// The most retries of one request.
    retries: usize,
    /// The wait before the first retry if the server does not say. It doubles with each retry.
    first: Duration,
    /// The time at which the run stops waiting. Set at the first wait.
    end: OnceLock<Instant>,
    /// The hosts at which waiting did not help, but the user's login did.
    login_hosts: Mutex<HashSet<String>>,
}

impl Patience {
    pub(super) fn new(progress: Arc<Progress>, retries: usize, first: Duration) -> Self {
        Patience { progress, retries, first, end: OnceLock::new(), login_hosts: Mutex::default() }
    }

    /// Repeats a request for `url` until it succeeds, or neither waiting nor a login can help. `login` is sent from the
    /// beginning. The user's login, which `ask` gets, is sent when waiting did not help or the server demands it, and
    /// from the beginning if `is_login_expected` or if it helped at this host before.
    pub(super) fn retry<T>(
        &self,
        url: &str,
        login: Option<Login>,
        is_login_expected: impl Fn() -> bool,
        ask: impl Fn(Option<&Login>) -> Option<Login>,
        send: impl Fn(Option<&Login>) -> Result<T, RequestError>,
    ) -> Result<T, RequestError> {
        let host = authority(url).unwrap_or_default();
        let is_early = login.is_none() && (is_login_expected() || locked(&self.login_hosts).contains(&host));
        let login = if is_early { ask(None) } else { login };
        let is_undemanded = is_early && login.is_some();
        let mut attempt = Attempt { login, is_undemanded, was_asked: is_early, limit_error: None };
        let mut waits = Vec::new();
        loop {
            let error = match send(attempt.login.as_ref()) {
                Ok(answer) => {
                    // If the login helped against the limit, it is sent to this host at once from now on.
                    locked(&self.login_hosts).extend(attempt.limit_error.map(|_| host));
                    return Ok(answer);
                }
                Err(error) => error,
            };
            // Waiting comes first, then an attempt without a login, then one with the user's login.
            let has_waited = error.retry_after.is_some_and(|least| self.wait(&mut waits, &host, least));
            if !has_waited && !attempt.drop_undemanded_login(&error) {
                attempt.log_in(error, &ask)?;
            }
        }
    }

    /// Waits before a retry: as long as the server demands (`least`), or longer with each retry. Returns `false` at
    /// once if the request or the run has waited enough. `waits` are the waits of this request so far.
    fn wait(&self, waits: &mut Vec<Duration>, host: &str, least: Duration) -> bool {
        // Each wait is twice as long as the one before. The exponent is bounded, so that it cannot overflow.
        let wait = least.max(self.first.saturating_mul(1 << waits.len().min(9)));
        // A shorter wait than the server demands would not help.
        let total = waits.iter().sum::<Duration>().saturating_add(wait);
        if waits.len() >= self.retries || total > MOST_OF_REQUEST {
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

/// Asks for the user's login, after the one that did not help.
type AskLogin<'a> = &'a dyn Fn(Option<&Login>) -> Option<Login>;

/// The login of the next attempt of a request.
struct Attempt {
    login: Option<Login>,
    /// Whether this is the user's login, and the server did not demand it.
    is_undemanded: bool,
    /// Whether the user's login was asked for.
    was_asked: bool,
    /// The error of a server that limits us, once the user's login is sent because of it.
    limit_error: Option<RequestError>,
}

impl Attempt {
    /// Drops a login that the server did not demand, and returns whether there was one: public content may be refused
    /// to a login that has expired.
    fn drop_undemanded_login(&mut self, error: &RequestError) -> bool {
        let is_dropped = error.failure.kind == FailureKind::Login && mem::take(&mut self.is_undemanded);
        if is_dropped {
            self.login = None;
        }
        is_dropped
    }

    /// Takes the user's login, once, if that may help. Otherwise it fails, with the error to report.
    fn log_in(&mut self, error: RequestError, ask: AskLogin<'_>) -> Result<(), RequestError> {
        let may_help = error.wants_login && !self.was_asked;
        let Some(login) = may_help.then(|| ask(self.login.as_ref())).flatten() else {
            // If the login is invalid, the error that it should have solved is reported.
            let is_invalid = error.failure.kind == FailureKind::Login;
            return Err(self.limit_error.take().filter(|_| is_invalid).unwrap_or(error));
        };
        (self.login, self.was_asked) = (Some(login), true);
        self.limit_error = Some(error).filter(|error| error.failure.kind == FailureKind::Limited);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_limits_is_told_from_one_that_refuses() {
        let asked = |status, headers: &[(&str, &'static str)]| {
            let headers = headers.to_vec();
            let wait =
                demanded_wait(status, |name| headers.iter().find(|(known, _)| *known == name).map(|(_, value)| *value));
            wait.map(|wait| wait.as_secs())
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
