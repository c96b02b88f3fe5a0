//! Fetches single files over HTTP, as `kustomize build` does with a plain GET, with bounds that it lacks.
//!
//! kustomize's client (`api/internal/loader/fileloader.go`) has no deadline, no size limit, no retry, and no login but
//! the userinfo of the URL. Here every URL has a deadline that covers redirects, retries and waits, a limit for the
//! decoded size, and a login from the URL or the caller, which is never sent to another scheme, host or port.

#[cfg(test)]
mod tests;
mod transport;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use url::{Host, Url};

pub(super) use self::transport::RequestError;
use self::transport::Response;
use super::limit::Patience;
use super::reach::NetworkPolicy;
use crate::git::{Login, take_login};
use crate::message::failure::{Failure, Result};
use crate::message::redact;

/// The most redirects that are followed, as in Go's client.
const MAX_REDIRECTS: usize = 10;

/// Asks for the user name and password for a URL, as `git credential fill` does, possibly from several threads at once.
/// [`Patience::retry`] decides when. The URL has no password, query or fragment.
type AskLogin = dyn Fn(&Url) -> Option<(String, String)> + Send + Sync;

/// The bounds of each fetch.
#[derive(Debug, Clone)]
pub(super) struct FetchBounds {
    /// The longest time for one URL, with all redirects, retries and waits.
    pub deadline: Duration,
    /// The largest body in bytes, after decompression.
    pub max_bytes: u64,
}

/// Fetches URLs. Nothing is read, and no thread started, before the first fetch. Connections are kept for the next one.
pub(super) struct Client {
    bounds: FetchBounds,
    pub(super) patience: Patience,
    reach: Arc<NetworkPolicy>,
    ask: Box<AskLogin>,
    /// Whether the proxy variables count, and on macOS and Windows the system's settings.
    proxies: bool,
    /// The HTTP clients, by whether they use a proxy, and by the host that must be public, if any.
    clients: Mutex<HashMap<(bool, Option<String>), reqwest::blocking::Client>>,
}

impl Client {
    pub(super) fn new(
        bounds: FetchBounds,
        patience: Patience,
        reach: Arc<NetworkPolicy>,
        ask: Box<AskLogin>,
    ) -> Client {
        Client { bounds, patience, reach, ask, proxies: true, clients: Mutex::default() }
    }

    /// Fetches the content of `text`, a URL. Several threads may call it at once.
    ///
    /// Any 2xx status is a success, as in kustomize, but an empty body is a failure. The caller must check whether the
    /// body is what was expected, and not a login page.
    pub(super) fn get(&self, text: &str) -> Result<Vec<u8>> {
        let (url, login) = split_login(text)?;
        let start = Instant::now();
        let ask = |refused: Option<&Login>| self.login(text, &url, refused);
        let is_login_expected = || self.reach.sends_login(text, || url.to_string());
        // All attempts share the deadline, which begins at `start`.
        let result = self.patience.retry(text, login, is_login_expected, ask, |login| self.follow(&url, login, start));
        result.map_err(|error| match *error.failure {
            // The message already names the host, and the URL does not matter.
            failure if error.is_of_host => failure,
            failure => failure.context(format_args!("cannot fetch {}", redact::url(text))),
        })
    }

    /// The time that remains for a fetch that began at `start`.
    fn remaining(&self, start: Instant) -> Duration {
        self.bounds.deadline.saturating_sub(start.elapsed())
    }

    /// The login for a request of git that is sent to `rewritten`: the one in the URL, or the one of git's helpers, if
    /// the user's files name the host of `named`, the URL before `insteadOf`.
    pub(super) fn login_of_git(&self, named: &str, rewritten: &str) -> Option<Login> {
        let (url, login) = split_login(rewritten).ok()?;
        let from_url = login.as_ref().filter(|login| login.password.is_some()).cloned();
        from_url.or_else(|| self.login(named, &url, login.as_ref()))
    }

    /// Asks git's credential helpers for a login for `url`. `refused` is the login that did not help; if it is only a
    /// user name, the helpers are asked for its password. `None` if it had a password, or if the helpers know none;
    /// also unless the user's files name the host of `named`, and it is reached over TLS or on this machine: nobody
    /// else may learn a login.
    fn login(&self, named: &str, url: &Url, refused: Option<&Login>) -> Option<Login> {
        let is_final = refused.is_some_and(|login| login.password.is_some());
        // A remote base may name any host with `http://`, and must not make us show its login to the whole network.
        let is_exposed = url.scheme() != "https" && !is_loopback(url);
        if is_final || is_exposed || !self.reach.access(named).named {
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

    /// Sends one request and follows its redirects. The login stays with the scheme, host and port that it is for.
    fn follow(&self, from: &Url, mut login: Option<&Login>, start: Instant) -> Result<Vec<u8>, RequestError> {
        let mut url = from.clone();
        for _ in 0..=MAX_REDIRECTS {
            match self.send(&url, login, self.remaining(start)) {
                Ok(Response::Body(bytes)) => return Ok(bytes),
                Ok(Response::Redirect(location)) => url = redirected(&url, &location)?,
                // After a redirect to another origin a login cannot help, because it would not be sent there.
                Err(stop) => {
                    return Err(RequestError {
                        wants_login: stop.wants_login && url.origin() == from.origin(),
                        ..stop
                    });
                }
            }
            // The login is dropped when a redirect leaves the origin, because reqwest would send it to any URL.
            login = login.filter(|_| url.origin() == from.origin());
        }
        Err(refused_redirect(&format!("more than {MAX_REDIRECTS} times")).into())
    }
}

/// Parses an http or https URL, and splits the login off it, which must not appear in messages. kustomize sends such a
/// login with the first request (Go's `http.Client`), so we do.
fn split_login(text: &str) -> Result<(Url, Option<Login>)> {
    // The URL standard would drop control characters, and Go refuses them.
    let url = Url::parse(text).ok().filter(|_| !text.chars().any(char::is_control));
    let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let mut url = url.ok_or_else(|| {
        Failure::new(format!("{} is not an http or https URL with a host", redact::url(text)))
            .hint("write it as `https://HOST/PATH`, with special characters percent-encoded")
    })?;
    // A user name without a password is sent too, because some hosts take a token in this way.
    let login = take_login(&mut url);
    url.set_fragment(None);
    Ok((url, login))
}

/// The URL that a redirect leads to. Refuses a redirect from https to http, which would give up its protection. A login
/// in the URL is dropped: it comes from the server, not from the user.
pub(super) fn redirected(from: &Url, location: &str) -> Result<Url> {
    let mut url = from.join(location).map_err(|_| refused_redirect("to an invalid URL"))?;
    match (from.scheme(), url.scheme()) {
        ("https", "http") => Err(refused_redirect("from https to http")),
        (_, "http" | "https") => {
            forget_userinfo(&mut url);
            Ok(url)
        }
        _ => Err(refused_redirect("to a URL that is not http or https")),
    }
}

/// The failure of a redirect that is not followed.
fn refused_redirect(where_to: &str) -> Failure {
    Failure::new(format!("the server redirects {where_to}")).hint("use a URL that serves the file itself over https")
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
