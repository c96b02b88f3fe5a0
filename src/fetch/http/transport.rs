//! One request and its response, without redirects and retries, in bounded time and space.

use std::error::Error as StdError;
use std::io::{self, Read};
use std::net::ToSocketAddrs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use indicatif::HumanBytes;
use reqwest::StatusCode;
use reqwest::blocking::{Client as Connection, ClientBuilder, Response as HttpResponse};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::LOCATION;
use url::Url;

use super::{Client, is_loopback};
use crate::fetch::reach::{authority, is_public};
use crate::fetch::{limit, traffic};
use crate::git::Login;
use crate::message::failure::{Failure, FailureKind};
use crate::os::parallel::locked;

/// The longest wait for a connection (look-up, TCP and TLS). An address that swallows packets must leave time for
/// another try.
const CONNECT: Duration = Duration::from_secs(15);

const USER_AGENT: &str = concat!("git-kustomize-localize/", env!("CARGO_PKG_VERSION"));

const UNTRUSTED: &str = "check the host name and the system clock; if the host uses a private CA, name its certificate in SSL_CERT_FILE; if this system has no CA certificates, install the package `ca-certificates`";

const CHECK_HOST: &str = "check the host name and the network";

const CHECK_HTTP: &str = "check the host name, the network, and the proxy in `http_proxy`";

/// The name of the host in messages if its proxy does not answer.
const PROXY: &str = "the proxy (`https_proxy`)";

/// The message of the library if it does not reach the proxy of an https URL.
const NO_PROXY: &str = "tunnel error: failed to create underlying connection";

const CHECK_PROXY: &str = "correct `https_proxy`, or exclude hosts with `no_proxy`";

const LOGIN: &str = "check the URL; if it needs a login, store one in git's credential helper: git credential approve; it is sent only to the host of the URL, and not over plain http";

/// The hint if the server did not ask for a login, so that only one for its host is sent.
const LOGIN_AT_ONCE: &str = "check the URL; if it needs a login, set a credential helper for its host, whose login is sent at once: git config --global credential.https://HOST.helper HELPER; it is sent only to hosts that your own files name, and not over plain http";

const HINT_TRY_AGAIN: &str = "try again: the server or the network failed";

/// The response to one request.
pub(super) enum Response {
    /// The body of a successful response, read to its end.
    Body(Vec<u8>),
    /// The target of a redirect, from its `Location` header.
    Redirect(String),
}

/// Why a request failed.
pub(in crate::fetch) struct RequestError {
    pub(in crate::fetch) failure: Box<Failure>,
    /// The shortest wait before a retry may succeed. `None` if a retry cannot help.
    pub(in crate::fetch) retry_after: Option<Duration>,
    /// Whether a login may help.
    pub(in crate::fetch) wants_login: bool,
    /// Whether every request to this host would fail in the same way.
    pub(in crate::fetch) is_of_host: bool,
}

impl From<Failure> for RequestError {
    fn from(failure: Failure) -> RequestError {
        RequestError { failure: Box::new(failure), retry_after: None, wants_login: false, is_of_host: false }
    }
}

impl Client {
    /// Sends one GET to a URL whose host it may reach, and reads the response. Neither follows a redirect nor retries:
    /// the error tells the caller whether to wait or to log in. `remaining` is the time that is left for all of it.
    pub(super) fn send(&self, url: &Url, login: Option<&Login>, remaining: Duration) -> Result<Response, RequestError> {
        if remaining.is_zero() {
            return Err(self.too_late());
        }
        self.reach.check_addresses(url.as_str())?;
        let mut request = self.connection(url)?.get(url.clone()).timeout(remaining);
        if let Some(Login { user, password }) = login {
            request = request.basic_auth(user, password.as_ref());
        }
        // Counted before the answer, because a request that fails has been sent as well.
        traffic::count(url.as_str(), 1, 0);
        let response = request.send().map_err(|error| self.explain_error(url, error))?;
        let status = response.status();
        match (status.as_u16(), response.headers().get(LOCATION)) {
            (200..=299, _) => self.read_body(url, response),
            (301 | 302 | 303 | 307 | 308, Some(location)) => {
                Ok(Response::Redirect(String::from_utf8_lossy(location.as_bytes()).into_owned()))
            }
            (code, _) => Err(status_error(
                url,
                status,
                limit::demanded_wait(code, |name| response.headers().get(name)?.to_str().ok()),
            )),
        }
    }

    /// Reads the body of a successful response. Fails if it is empty, or larger than one file may be: reading stops at
    /// the limit, because a server may send bytes without end.
    fn read_body(&self, url: &Url, response: HttpResponse) -> Result<Response, RequestError> {
        let most = self.bounds.max_bytes;
        // A body that announces too many bytes is not even begun. The length is known only if it is not compressed.
        let is_announced = response.content_length().is_some_and(|length| length > most);
        let mut bytes = Vec::new();
        let read = if is_announced { Ok(0) } else { response.take(most + 1).read_to_end(&mut bytes) };
        traffic::count(url.as_str(), 0, bytes.len() as u64);
        match read {
            Err(error) if is_timeout(&error) => Err(self.too_late()),
            Err(error) => Err(broken(format!(
                "the response is truncated or corrupt after {} bytes: {}",
                bytes.len(),
                root_cause(&error)
            ))),
            Ok(_) if is_announced || bytes.len() as u64 > most => unusable(
                Failure::new(format!("the file is too large: the limit is {}", HumanBytes(most)))
                    .hint("check that the URL names one file of manifests, not an archive")
                    .hint("to accept larger files, write `max-file-size: SIZE` in .kustomize-localize"),
            ),
            Ok(0) => {
                unusable(Failure::new("the server returned an empty body").hint("check that the URL names a file"))
            }
            Ok(_) => Ok(Response::Body(bytes)),
        }
    }

    /// The HTTP client for a request. Requests share one if both or neither use a proxy, and both may connect to any
    /// address or both must connect to public addresses of the same host.
    pub(super) fn connection(&self, url: &Url) -> Result<Connection, Failure> {
        // Loopback hosts are reached without a proxy, as in Go's client. A request to them must not leave this machine.
        let is_direct = !self.proxies || is_loopback(url);
        // Only a host that the user's files name may have any address.
        let public_host = url.host_str().filter(|_| !self.reach.access(url.as_str()).anywhere).map(str::to_owned);
        let mut clients = locked(&self.clients);
        let key = (is_direct, public_host);
        if let Some(client) = clients.get(&key) {
            return Ok(client.clone());
        }
        // reqwest takes its cryptography from here. It is an error if another one is installed already, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // The client is built a second time if the system has no CA certificates.
        let builder = || -> ClientBuilder {
            let mut builder = Connection::builder()
                .user_agent(USER_AGENT)
                .redirect(reqwest::redirect::Policy::none())
                .referer(false)
                .connect_timeout(CONNECT.min(self.bounds.deadline));
            // The addresses were checked before, but the name is resolved again for the connection.
            if let Some(host) = &key.1 {
                builder = builder.dns_resolver(Arc::new(PublicResolver(host.clone())));
            }
            if is_direct { builder.no_proxy() } else { builder }
        };
        // A system without any CA certificate (a small container) can still fetch over http. https then fails with its
        // own message.
        let built = builder().build().or_else(|_| builder().tls_certs_only([]).build());
        let client = built.map_err(|error| {
            Failure::new(format!("cannot set up the HTTP client: {}", root_cause(&error.without_url())))
        })?;
        clients.insert(key, client.clone());
        Ok(client)
    }

    /// The error of a request without a response, with a hint, and whether a retry may help. The message never shows
    /// the URL, which may have a secret.
    fn explain_error(&self, url: &Url, error: reqwest::Error) -> RequestError {
        let (error, host) = (error.without_url(), authority(url.as_str()).unwrap_or_default());
        let reason = root_cause(&error);
        let is_of_proxy = causes(&error).any(|cause| cause.to_string() == NO_PROXY);
        // Only an https URL tells that its proxy failed.
        let (host, hint) = match url.scheme() {
            _ if is_of_proxy => (PROXY.to_owned(), CHECK_PROXY),
            "http" if std::env::var_os("http_proxy").is_some() => (host, CHECK_HTTP),
            _ => (host, CHECK_HOST),
        };
        // A failed look-up or TLS handshake is a failed connection, too, so these are recognized first.
        if error.is_dns() {
            // The resolver has tried several times already.
            RequestError { retry_after: None, ..unreached(format!("could not resolve {host}: {reason}"), hint) }
        } else if causes(&error).any(|cause| cause.is::<rustls::Error>()) {
            let missing = std::env::var("SSL_CERT_FILE").ok().filter(|file| !Path::new(file).exists());
            let hint = missing.map(|file| format!("`SSL_CERT_FILE` names a file that does not exist: {file}"));
            Failure::new(format!("TLS connection to {host} failed: {reason}"))
                .hint(hint.unwrap_or_else(|| UNTRUSTED.to_owned()))
                .into()
        } else if error.is_connect() {
            unreached(format!("cannot connect to {host}: {reason}"), hint)
        } else if error.is_timeout() {
            self.too_late()
        } else {
            broken(format!("the connection to {host} failed: {reason}"))
        }
    }

    /// The error of a request that took longer than the time that is left.
    fn too_late(&self) -> RequestError {
        let message = format!("timed out after {} s", self.bounds.deadline.as_secs_f64());
        Failure::new(message).hint(HINT_TRY_AGAIN).because(FailureKind::NoAnswer).into()
    }
}

/// The error of a response that a retry would get again.
fn unusable<T>(failure: Failure) -> Result<T, RequestError> {
    Err(failure.because(FailureKind::Unusable).into())
}

/// The error of a connection that broke. A retry may succeed at once.
fn broken(message: String) -> RequestError {
    let failure = Failure::new(message).hint(HINT_TRY_AGAIN).because(FailureKind::NoConnection);
    RequestError { retry_after: Some(Duration::ZERO), ..failure.into() }
}

/// A connection could not be made: the host was not found, or did not answer.
fn unreached(message: String, hint: &str) -> RequestError {
    let failure = Failure::new(message).hint(hint).because(FailureKind::NoConnection);
    RequestError { retry_after: Some(Duration::ZERO), is_of_host: true, ..failure.into() }
}

/// The error of a response that is neither a success nor a redirect, with a hint, and whether a retry or a login may
/// help. `limit` is the wait that a server demands that limits the rate of requests.
fn status_error(url: &Url, status: StatusCode, limit: Option<Duration>) -> RequestError {
    let (code, host) = (status.as_u16(), authority(url.as_str()).unwrap_or_default());
    let answered = format!("answered {code} {}", status.canonical_reason().unwrap_or_default());
    let answered = answered.trim_end();
    if let Some(wait) = limit {
        // Servers have a higher limit for users who are logged in.
        let failure = limit::limit_failure(&format!("it {answered}"), &host, wait);
        return RequestError { retry_after: limit, wants_login: true, ..failure.into() };
    }
    // Only the host: the caller adds the URL.
    let failure = Failure::new(format!("{host} {answered}"));
    let failure = match code {
        401 => failure.hint(LOGIN).because(FailureKind::Login),
        403 => failure.hint(LOGIN_AT_ONCE).because(FailureKind::Login),
        // Servers hide private content in this way from those who are not logged in.
        404 | 410 => failure.hint(LOGIN_AT_ONCE).because(FailureKind::NoRepository),
        408 | 500..=599 => failure.hint("try again later").because(FailureKind::NoConnection),
        _ => failure,
    };
    let again = failure.kind.is_outage().then_some(Duration::ZERO);
    RequestError { retry_after: again, wants_login: code == 401, ..failure.into() }
}

/// Resolves the host that it has for a connection, and refuses it if any of its addresses is not public. The addresses
/// were checked before, but a hostile DNS server can give other ones each time.
struct PublicResolver(String);

impl Resolve for PublicResolver {
    /// The addresses of a name to connect to. Any other name than that of the host is the user's proxy, which may have
    /// any address.
    fn resolve(&self, name: Name) -> Resolving {
        let resolved = (name.as_str(), 0).to_socket_addrs().and_then(|addresses| -> io::Result<Addrs> {
            let addresses: Vec<_> = addresses.collect();
            if name.as_str() == self.0 && addresses.iter().any(|address| !is_public(address.ip())) {
                return Err(io::Error::other("it resolves to an address that is not public"));
            }
            Ok(Box::new(addresses.into_iter()))
        });
        Box::pin(std::future::ready(resolved.map_err(Into::into)))
    }
}

/// The error and its causes, the innermost last, by which the kind of a failed connection is recognized. The error in
/// an `io::Error` is included, which its `source` skips.
fn causes<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |error| {
        let error: &'a (dyn StdError + 'static) = *error;
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        match wrapped {
            Some(inner) => Some(inner as &(dyn StdError + 'static)),
            None => error.source(),
        }
    })
}

/// Whether reading a body failed because the time of the request was over.
fn is_timeout(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::TimedOut
        || causes(error).any(|cause| cause.downcast_ref::<reqwest::Error>().is_some_and(reqwest::Error::is_timeout))
}

/// The innermost error, as one line. The outer ones say little, and those of reqwest may show the whole URL.
fn root_cause(error: &(dyn StdError + 'static)) -> String {
    let last = causes(error).filter(|cause| !cause.is::<reqwest::Error>()).last();
    last.map_or_else(|| "unknown cause".to_owned(), ToString::to_string)
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(300)
        .collect()
}
