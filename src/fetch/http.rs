//! Single files over HTTP: what `kustomize build` gets with a plain GET, with the bounds it lacks.
//!
//! kustomize's client (`api/internal/loader/fileloader.go`) has no deadline, no size limit, no retry
//! and knows no login but the URL's userinfo. Here every URL has a deadline that covers redirects,
//! retries and waits, a limit for the decoded size, and a login from the URL, the netrc file or the
//! caller, which never goes to another scheme, host or port than it was meant for.

mod credentials;
mod error;
mod retry;
#[cfg(test)]
mod tests;
mod transport;

use std::sync::Arc;
use std::time::Duration;

use url::Url;

use super::reach::{Access, Reach};
use crate::message::failure::{Failure, Result};

pub(crate) use self::credentials::is_loopback;
use self::credentials::{Credentials, Target, forget_userinfo};
pub(crate) use self::error::{HttpError, Kind};
use self::retry::Clock;
use self::transport::{Answer, Roots, Transport, host};

/// How many redirects are followed, as many as Go's client follows.
const MAX_REDIRECTS: usize = 10;

/// Asks for the user name and password for a URL, as `git credential fill` does.
///
/// Called at most once for each fetch, after a 401, possibly from several threads at once; to
/// remember answers is up to the closure. The URL has no password, no query and no fragment; a user
/// name that the user wrote into it is kept.
pub(crate) type AskCredentials = dyn Fn(&Url) -> Option<(String, String)> + Send + Sync;

/// The bounds of each fetch.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    /// The longest time for one URL, with all redirects, retries and waits.
    pub deadline: Duration,
    /// The largest body in bytes, after decompression.
    pub max_bytes: u64,
    /// How often a fetch is tried again after an error that may pass.
    pub retries: u32,
    /// The wait before the first retry; doubled before each further one.
    pub first_delay: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            deadline: Duration::from_secs(60),
            max_bytes: 64 << 20,
            retries: 3,
            first_delay: Duration::from_millis(500),
        }
    }
}

/// What a URL holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Body {
    /// The decoded bytes, at least one.
    pub bytes: Vec<u8>,
    /// The URL that it was read from, after redirects.
    pub url: Url,
}

/// Fetches URLs. Meant to live as long as the run: connections are kept, and certificates of the user are read once, when
/// the first URL needs them.
pub(crate) struct Client {
    options: Options,
    reach: Arc<Reach>,
    ask: Box<AskCredentials>,
    transport: Transport,
}

/// What a client takes from its surroundings; by default nothing.
#[derive(Default)]
struct Surroundings {
    roots: Roots,
    /// Whether the proxy variables (and on macOS and Windows the system's settings) count.
    proxies: bool,
}

impl Surroundings {
    fn of_the_user() -> Self {
        Surroundings { roots: Roots::from_environment(), proxies: true }
    }
}

impl Client {
    /// Returns a client. Cheap: nothing is read, and no thread started, before the first fetch.
    pub(super) fn new(options: Options, ask: Box<AskCredentials>, reach: Arc<Reach>) -> Result<Client, Failure> {
        if options.max_bytes == 0 {
            return Err(Failure::new("a size limit of zero leaves no room to fetch"));
        }
        let surroundings = Surroundings::of_the_user();
        Ok(Self::with(options, ask, reach, surroundings))
    }

    fn with(options: Options, ask: Box<AskCredentials>, reach: Arc<Reach>, surroundings: Surroundings) -> Client {
        let Surroundings { roots, proxies } = surroundings;
        let transport = Transport::new(&options, roots, proxies);
        Client { options, reach, ask, transport }
    }

    /// Returns what `url` holds. May be called from several threads at once. A redirect leads no further inwards than
    /// what answers with it lies.
    ///
    /// Any 2xx status is a success, as in kustomize, but an empty body is not. Whether the body is
    /// what was wanted (and not a login page) is for the caller to find out.
    pub(crate) fn get(&self, url: &str, access: Access) -> Result<Body, HttpError> {
        let target = Target::parse(url)?;
        let clock = Clock::start(self.options.deadline);
        let mut credentials = target.credentials();
        let mut asked = false;
        let mut tried = 0;
        loop {
            let error = match self.follow(&target.url, access, credentials.as_ref(), &clock) {
                Ok(body) => return Ok(body),
                Err(error) => error,
            };
            let mut wait = None;
            if let Kind::Status { code, redirected, retry_after } = error.kind {
                wait = retry_after;
                if code == 401 && !redirected && !asked && access.named {
                    asked = true;
                    if let Some(found) = target.ask(&*self.ask, credentials.as_ref()) {
                        credentials = Some(found);
                        continue;
                    }
                }
            }
            let delay = retry::delay(self.options.first_delay, tried, wait);
            // Waiting any longer than the deadline would only hide the cause behind it.
            let is_last = tried >= self.options.retries || delay >= clock.remaining().unwrap_or_default();
            if !error.is_transient() || is_last {
                return Err(error);
            }
            std::thread::sleep(delay);
            tried += 1;
        }
    }

    /// Sends one request and follows its redirects. The credentials stay with the scheme, host and
    /// port they were meant for, and do not come back once a redirect has led away.
    fn follow(
        &self,
        start: &Url,
        mut access: Access,
        mut credentials: Option<&Credentials>,
        clock: &Clock,
    ) -> Result<Body, HttpError> {
        let mut url = start.clone();
        let mut redirected = false;
        for _ in 0..=MAX_REDIRECTS {
            match self.transport.send(&url, access.most, credentials, clock)? {
                Answer::Body(bytes) => return Ok(Body { bytes, url }),
                Answer::Status(code, retry_after) => {
                    let sent = credentials.map(|credentials| credentials.source);
                    return Err(HttpError::status(code, &host(&url), redirected, sent, retry_after));
                }
                Answer::Redirect { location, at } => {
                    let to = redirect(&url, &location)?;
                    access = self.reach.redirected(&url, at, &to);
                    url = to;
                    if url.origin() != start.origin() {
                        redirected = true;
                        credentials = None;
                    }
                }
            }
        }
        Err(HttpError::redirect(&format!("more than {MAX_REDIRECTS} times")))
    }
}

/// Returns where a redirect leads. A login in it is the server's, not the user's, and is dropped.
fn redirect(from: &Url, location: &[u8]) -> Result<Url, HttpError> {
    let url = std::str::from_utf8(location).ok().and_then(|location| from.join(location).ok());
    let mut url = url.ok_or_else(|| HttpError::redirect("to something that is not a URL"))?;
    match (from.scheme(), url.scheme()) {
        ("https", "http") => {
            return Err(HttpError::redirect(&format!("from https to http, to host {}", host(&url))));
        }
        (_, "http" | "https") => {}
        _ => return Err(HttpError::redirect("to something other than http or https")),
    }
    forget_userinfo(&mut url);
    Ok(url)
}
