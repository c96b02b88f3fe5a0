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

use url::{Host, Url};

use self::transport::Answer;
pub(super) use self::transport::Stop;
use super::limit::Patience;
use super::reach::Reach;
use crate::git::{Login, take_login};
use crate::message::failure::{Failure, Result};
use crate::message::redact;

/// How many redirects are followed, as many as Go's client follows.
const MAX_REDIRECTS: usize = 10;

/// Asks for the user name and password for a URL, as `git credential fill` does: at most once for each fetch, after a
/// server wanted a login, possibly from several threads at once. The URL has no password, no query and no fragment.
type AskLogin = dyn Fn(&Url) -> Option<(String, String)> + Send + Sync;

/// The bounds of each fetch.
#[derive(Debug, Clone)]
pub(super) struct Bounds {
    /// The longest time for one URL, with all redirects, retries and waits.
    pub deadline: Duration,
    /// The largest body in bytes, after decompression.
    pub max_bytes: u64,
}

/// Fetches URLs. Nothing is read, and no thread started, before the first fetch; connections are kept for the next.
pub(super) struct Client {
    bounds: Bounds,
    pub(super) patience: Patience,
    reach: Arc<Reach>,
    ask: Box<AskLogin>,
    /// Whether the proxy variables (and on macOS and Windows the system's settings) count.
    proxies: bool,
    /// What requests are made with: without a proxy or not, for anything or for one host that must be public.
    clients: Mutex<HashMap<(bool, Option<String>), reqwest::blocking::Client>>,
}

impl Client {
    pub(super) fn new(bounds: Bounds, patience: Patience, reach: Arc<Reach>, ask: Box<AskLogin>) -> Client {
        Client { bounds, patience, reach, ask, proxies: true, clients: Mutex::default() }
    }

    /// Returns what `text`, a URL, holds. May be called from several threads at once.
    ///
    /// Any 2xx status is a success, as in kustomize, but an empty body is not. Whether the body is what was wanted (and
    /// not a login page) is for the caller to find out.
    pub(super) fn get(&self, text: &str) -> Result<Vec<u8>> {
        let (url, login) = parse(text)?;
        let start = Instant::now();
        let ask = |refused: Option<&Login>| self.login(text, &url, refused);
        let at_once = || self.reach.sends_login(text, || url.to_string());
        let got = self.patience.persist(text, login, at_once, ask, |login| self.follow(&url, login, start));
        got.map_err(|stop| match *stop.failure {
            failure if stop.is_of_host => failure,
            failure => failure.context(format_args!("cannot fetch {}", redact::url(text))),
        })
    }

    /// Returns the time that a fetch has left that began at `start`.
    fn left(&self, start: Instant) -> Duration {
        self.bounds.deadline.saturating_sub(start.elapsed())
    }

    /// Returns the login for a request of git that is sent to `rewritten`: that of the URL, or what git's helpers have.
    pub(super) fn login_of_git(&self, named: &str, rewritten: &str) -> Option<Login> {
        let (url, login) = parse(rewritten).ok()?;
        let own = login.as_ref().filter(|login| login.password.is_some()).cloned();
        own.or_else(|| self.login(named, &url, login.as_ref()))
    }

    /// Asks for another login than the one that was refused, if the user's files name `named`, as the URL is written
    /// there. Only over TLS, or without leaving this machine: a remote base may name any host with `http://`, and must not
    /// make us show the login for it to the whole network.
    fn login(&self, named: &str, url: &Url, refused: Option<&Login>) -> Option<Login> {
        let is_final = refused.is_some_and(|login| login.password.is_some());
        let is_seen = url.scheme() != "https" && !is_loopback(url);
        if is_final || is_seen || !self.reach.access(named).named {
            return None;
        }
        let mut url = url.clone();
        url.set_query(None);
        if let Some(Login { user, .. }) = refused {
            url.set_username(user).ok()?;
        }
        let (user, password) = (self.ask)(&url)?;
        Some(Login { user, password: Some(password) })
    }

    /// Sends one request and follows its redirects. The login stays with the scheme, host and port that it was meant for,
    /// and does not come back once a redirect has led away: reqwest, which would follow as well, sends it to the second URL
    /// of another host.
    fn follow(&self, from: &Url, mut login: Option<&Login>, start: Instant) -> Result<Vec<u8>, Stop> {
        let mut url = from.clone();
        for _ in 0..=MAX_REDIRECTS {
            match self.send(&url, login, self.left(start)) {
                Ok(Answer::Body(bytes)) => return Ok(bytes),
                Ok(Answer::Redirect(location)) => url = redirected(&url, &location)?,
                // No login would be sent elsewhere.
                Err(stop) => {
                    return Err(Stop { wants_login: stop.wants_login && url.origin() == from.origin(), ..stop });
                }
            }
            login = login.filter(|_| url.origin() == from.origin());
        }
        Err(refused(&format!("more than {MAX_REDIRECTS} times")).into())
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
    let login = take_login(&mut url);
    url.set_fragment(None);
    Ok((url, login))
}

/// Returns where a redirect leads. A login in it is the server's, not the user's, and is dropped.
pub(super) fn redirected(from: &Url, location: &str) -> Result<Url> {
    let mut url = from.join(location).map_err(|_| refused("to an invalid URL"))?;
    match (from.scheme(), url.scheme()) {
        ("https", "http") => Err(refused("from https to http")),
        (_, "http" | "https") => {
            forget_userinfo(&mut url);
            Ok(url)
        }
        _ => Err(refused("to a URL that is not http or https")),
    }
}

/// A redirect that is not followed.
fn refused(what: &str) -> Failure {
    Failure::new(format!("the server redirects {what}")).hint("use a URL that serves the file itself over https")
}

/// Removes userinfo and fragment.
pub(super) fn forget_userinfo(url: &mut Url) {
    drop(take_login(url));
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
