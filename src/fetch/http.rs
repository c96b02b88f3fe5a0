//! Single files over HTTP: what `kustomize build` gets with a plain GET, with the bounds it lacks.
//!
//! kustomize's client (`api/internal/loader/fileloader.go`) has no deadline, no size limit, no retry and knows no login
//! but the URL's userinfo. Here every URL has a deadline that covers redirects, retries and waits, a limit for the
//! decoded size, and a login from the URL or the caller, which never goes to another scheme, host or port.

#[cfg(test)]
mod tests;
mod transport;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use percent_encoding::percent_decode_str;
use url::{Host, Url};

use self::transport::{Answer, Stop};
use super::reach::Reach;
use crate::message::failure::{Failure, FailureKind, Result};
use crate::message::redact;

/// How many redirects are followed, as many as Go's client follows.
const MAX_REDIRECTS: usize = 10;

/// Asks for the user name and password for a URL, as `git credential fill` does: at most once for each fetch, after a
/// 401, possibly from several threads at once. The URL has no password, no query and no fragment.
type AskLogin = dyn Fn(&Url) -> Option<(String, String)> + Send + Sync;

/// The bounds of each fetch.
#[derive(Debug, Clone)]
pub(super) struct Bounds {
    /// The longest time for one URL, with all redirects, retries and waits.
    pub deadline: Duration,
    /// The largest body in bytes, after decompression.
    pub max_bytes: u64,
    /// How often a fetch is tried again after an error that may pass.
    pub retries: u32,
    /// The wait before the first retry; doubled before each further one.
    pub first_delay: Duration,
}

/// What a URL holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Body {
    /// The decoded bytes, at least one.
    pub bytes: Vec<u8>,
    /// The URL that it was read from, after redirects.
    pub url: Url,
}

/// A user name, and a password if there is one. Has no `Debug`: it is a secret.
#[derive(Clone, PartialEq, Eq)]
struct Login(String, Option<String>);

/// Fetches URLs. Nothing is read, and no thread started, before the first fetch; connections are kept for the next.
pub(super) struct Client {
    bounds: Bounds,
    reach: Arc<Reach>,
    ask: Box<AskLogin>,
    /// Whether the proxy variables (and on macOS and Windows the system's settings) count.
    proxies: bool,
    /// What requests are made with: without a proxy or not, for anything or for one host that must be public.
    clients: Mutex<HashMap<(bool, Option<String>), reqwest::blocking::Client>>,
}

impl Client {
    pub(super) fn new(bounds: Bounds, reach: Arc<Reach>, ask: Box<AskLogin>) -> Client {
        Client { bounds, reach, ask, proxies: true, clients: Mutex::default() }
    }

    /// Returns what `text`, a URL, holds. May be called from several threads at once.
    ///
    /// Any 2xx status is a success, as in kustomize, but an empty body is not. Whether the body is what was wanted (and
    /// not a login page) is for the caller to find out.
    pub(super) fn get(&self, text: &str) -> Result<Body> {
        let (url, mut login) = parse(text)?;
        let start = Instant::now();
        let mut may_ask = self.reach.access(text).named;
        let mut tried = 0;
        loop {
            let stop = match self.follow(&url, login.as_ref(), start) {
                Ok(body) => return Ok(body),
                Err(stop) => stop,
            };
            if stop.failure.kind == FailureKind::Login && may_ask {
                may_ask = false;
                let found = self.login(&url, login.as_ref());
                if found.is_some() {
                    login = found;
                    continue;
                }
            }
            let own = self.bounds.first_delay.saturating_mul(2_u32.saturating_pow(tried));
            match stop.again.map(|least| least.max(own)) {
                // Waiting any longer than the deadline would only hide the cause behind it.
                Some(wait) if tried < self.bounds.retries && wait < self.left(start) => std::thread::sleep(wait),
                _ if stop.is_of_host => return Err(*stop.failure),
                _ => return Err(stop.failure.context(format_args!("cannot fetch {}", redact::url(text)))),
            }
            tried += 1;
        }
    }

    /// Returns the time that a fetch has left that began at `start`.
    fn left(&self, start: Instant) -> Duration {
        self.bounds.deadline.saturating_sub(start.elapsed())
    }

    /// Asks for another login than the one that was refused. Only over TLS, or without leaving this machine: a remote
    /// base may name any host with `http://`, and must not make us show the login for it to the whole network.
    fn login(&self, url: &Url, refused: Option<&Login>) -> Option<Login> {
        if refused.is_some_and(|Login(_, password)| password.is_some()) || url.scheme() != "https" && !is_loopback(url)
        {
            return None;
        }
        let mut url = url.clone();
        url.set_query(None);
        if let Some(Login(user, _)) = refused {
            url.set_username(user).ok()?;
        }
        let (user, password) = (self.ask)(&url)?;
        Some(Login(user, Some(password)))
    }

    /// Sends one request and follows its redirects. The login stays with the scheme, host and port that it was meant for,
    /// and does not come back once a redirect has led away: reqwest, which would follow as well, sends it to the second URL
    /// of another host.
    fn follow(&self, from: &Url, mut login: Option<&Login>, start: Instant) -> Result<Body, Stop> {
        let mut url = from.clone();
        for _ in 0..=MAX_REDIRECTS {
            match self.send(&url, login, self.left(start)) {
                Ok(Answer::Body(bytes)) => return Ok(Body { bytes, url }),
                Ok(Answer::Redirect(location)) => url = redirected(&url, &location)?,
                // No login would be sent there.
                Err(mut stop) if url.origin() != from.origin() && stop.failure.kind == FailureKind::Login => {
                    stop.failure.kind = FailureKind::Other;
                    return Err(stop);
                }
                Err(stop) => return Err(stop),
            }
            login = login.filter(|_| url.origin() == from.origin());
        }
        Err(refused(&format!("more than {MAX_REDIRECTS} times")))
    }
}

/// Takes the login out of a URL: what is sent with the first request, as kustomize does (Go's `http.Client`). A user name
/// alone is sent alone: some hosts take a token so. Control characters, which the URL standard would drop and Go refuses,
/// are refused.
fn parse(text: &str) -> Result<(Url, Option<Login>)> {
    let is_http = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
    let url = Url::parse(text).ok().filter(|_| !text.chars().any(char::is_control)).filter(is_http);
    let mut url = url.ok_or_else(|| {
        Failure::new(format!("{} is not an http or https URL with a host", redact::url(text)))
            .hint("write it as `https://HOST/PATH`, with special characters percent-encoded")
    })?;
    let decode = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let login = Login(decode(url.username()), url.password().map(decode));
    forget_userinfo(&mut url);
    Ok((url, Some(login).filter(|Login(user, password)| !user.is_empty() || password.is_some())))
}

/// Returns where a redirect leads. A login in it is the server's, not the user's, and is dropped.
fn redirected(from: &Url, location: &[u8]) -> Result<Url, Stop> {
    let url = std::str::from_utf8(location).ok().and_then(|location| from.join(location).ok());
    let mut url = url.ok_or_else(|| refused("to something that is not a URL"))?;
    match (from.scheme(), url.scheme()) {
        ("https", "http") => Err(refused("from https to http")),
        (_, "http" | "https") => {
            forget_userinfo(&mut url);
            Ok(url)
        }
        _ => Err(refused("to something other than http or https")),
    }
}

/// A redirect that is not followed.
fn refused(what: &str) -> Stop {
    Failure::new(format!("the server redirects {what}")).hint("use a URL that serves the file itself over https").into()
}

/// Removes userinfo and fragment.
fn forget_userinfo(url: &mut Url) {
    // Fails only where there is no host, and so no userinfo.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_fragment(None);
}

/// Whether the URL names this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.to_canonical().is_loopback(),
        None => false,
    }
}
