//! One request and its answer, without redirects and retries, in bounded time and space.

use std::error::Error as StdError;
use std::io::{self, Read};
use std::net::{IpAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::blocking::{Client, ClientBuilder, Response};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{LOCATION, RETRY_AFTER};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use url::{Host, Url};

use super::super::reach::{Zone, innermost};
use super::Options;
use super::credentials::{Credentials, is_loopback};
use super::error::{HttpError, Kind};
use super::retry::Clock;

/// The longest wait for a connection (look-up, TCP and TLS), so that an address that swallows
/// packets leaves time for another try.
const CONNECT: Duration = Duration::from_secs(15);

const USER_AGENT: &str = concat!("git-kustomize-localize/", env!("CARGO_PKG_VERSION"));

/// What came back.
pub(super) enum Answer {
    /// A success, read to its end.
    Body(Vec<u8>),
    Redirect {
        /// What its `Location` says.
        location: Vec<u8>,
        /// The address that answered, which may be that of a proxy.
        at: Option<IpAddr>,
    },
    /// Any other status, and how long to wait before the next try.
    Status(u16, Option<Duration>),
}

/// The connections of one run, built at the first request.
pub(super) struct Transport {
    roots: Roots,
    proxies: bool,
    max_bytes: u64,
    connect: Duration,
    /// Uses the proxies of the environment, if they apply.
    proxied: OnceLock<Result<Client, String>>,
    /// Without a proxy. Always so for loopback hosts, as in Go's client: what is sent there is
    /// trusted not to leave this machine.
    direct: OnceLock<Result<Client, String>>,
}

impl Transport {
    pub(super) fn new(options: &Options, roots: Roots, proxies: bool) -> Self {
        Transport {
            roots,
            proxies,
            max_bytes: options.max_bytes,
            connect: CONNECT.min(options.deadline),
            proxied: OnceLock::new(),
            direct: OnceLock::new(),
        }
    }

    /// Returns a client for one request that leads no further inwards than `most`.
    fn bounded(&self, url: &Url, most: Zone) -> Result<Client, HttpError> {
        let host = url.host().map(|host| host.to_owned());
        // A name is resolved by the connection, whose addresses are those that count.
        if let Some(zone) = host
            .as_ref()
            .filter(|host| !matches!(host, Host::Domain(_)))
            .and_then(innermost)
            .filter(|zone| *zone > most)
        {
            return Err(HttpError::inwards(&self::host(url), zone));
        }
        let name = url.host_str().unwrap_or_default().to_owned();
        let resolver = Arc::new(Bounded { name, most });
        self.build(!self.proxies || is_loopback(url), Some(resolver)).map_err(|reason| HttpError::setup(&reason))
    }

    fn client(&self, url: &Url) -> Result<&Client, HttpError> {
        let (cell, direct) =
            if !self.proxies || is_loopback(url) { (&self.direct, true) } else { (&self.proxied, false) };
        cell.get_or_init(|| self.build(direct, None)).as_ref().map_err(|reason| HttpError::setup(reason))
    }

    fn build(&self, direct: bool, resolver: Option<Arc<Bounded>>) -> Result<Client, String> {
        // reqwest takes its cryptography from here. An error means that one is installed already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = || -> ClientBuilder {
            let builder = Client::builder()
                .user_agent(USER_AGENT)
                .redirect(reqwest::redirect::Policy::none())
                .referer(false)
                .connect_timeout(self.connect);
            let builder = match &resolver {
                Some(resolver) => builder.dns_resolver(resolver.clone()),
                None => builder,
            };
            if direct { builder.no_proxy() } else { builder }
        };
        builder()
            .tls_certs_merge(self.roots.load())
            .build()
            // A system without any CA certificate (a small container) can still fetch over http;
            // https then fails with its own message.
            .or_else(|_| builder().tls_certs_only([]).build())
            .map_err(|error| root_cause(&error.without_url()))
    }

    /// Sends one GET and reads the answer. With `most` it leads no further inwards.
    pub(super) fn send(
        &self,
        url: &Url,
        most: Option<Zone>,
        credentials: Option<&Credentials>,
        clock: &Clock,
    ) -> Result<Answer, HttpError> {
        let remaining = clock.remaining()?;
        let client = match most {
            Some(most) => self.bounded(url, most)?,
            None => self.client(url)?.clone(),
        };
        let mut request = client.get(url.clone()).timeout(remaining);
        if let Some(credentials) = credentials {
            request = request.basic_auth(&credentials.user, credentials.password.as_ref());
        }
        let response = request.send().map_err(|error| classify(&host(url), error, clock))?;
        let status = response.status();
        let header = |name| response.headers().get(name);
        if status.is_success() {
            return self.read(response, clock);
        }
        if matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
            && let Some(location) = header(LOCATION)
        {
            return Ok(Answer::Redirect {
                location: location.as_bytes().to_vec(),
                at: response.remote_addr().map(|address| address.ip()),
            });
        }
        // A date is not respected: then the wait is ours.
        let seconds = header(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
        Ok(Answer::Status(status.as_u16(), seconds.map(Duration::from_secs)))
    }

    fn read(&self, response: Response, clock: &Clock) -> Result<Answer, HttpError> {
        // Known only for a body that is not compressed.
        let is_announced = response.content_length().is_some_and(|length| length > self.max_bytes);
        let mut bytes = Vec::new();
        let read = if is_announced { Ok(0) } else { response.take(self.max_bytes + 1).read_to_end(&mut bytes) };
        match read {
            Err(error) if is_timeout(&error) => Err(HttpError::deadline(clock.total)),
            Err(error) => Err(HttpError::broken(format!(
                "the answer ended early or is damaged after {} bytes: {}",
                bytes.len(),
                root_cause(&error)
            ))),
            Ok(_) if is_announced || bytes.len() as u64 > self.max_bytes => Err(HttpError::too_large(self.max_bytes)),
            Ok(0) => Err(HttpError::empty()),
            Ok(_) => Ok(Answer::Body(bytes)),
        }
    }
}

fn classify(host: &str, error: reqwest::Error, clock: &Clock) -> HttpError {
    let error = error.without_url();
    let reason = root_cause(&error);
    let refused = chain(&error).find_map(|cause| cause.downcast_ref::<TooFarInwards>());
    if let Some(TooFarInwards(zone)) = refused {
        HttpError::inwards(host, *zone)
    } else if error.is_dns() {
        let message = format!("host {host} was not found: {reason}");
        HttpError::unreached(Kind::Dns, message, "check the spelling of the host and the network")
    } else if chain(&error).any(|cause| cause.is::<rustls::Error>()) {
        HttpError::tls(host, &reason)
    } else if error.is_connect() {
        let message = format!("cannot connect to {host}: {reason}");
        HttpError::unreached(Kind::Connection, message, "check that the host can be reached from here")
    } else if error.is_timeout() {
        HttpError::deadline(clock.total)
    } else if error.is_builder() {
        HttpError::setup(&reason)
    } else {
        HttpError::broken(format!("the connection to {host} failed: {reason}"))
    }
}

/// Resolves names as the system does, and refuses addresses of one of them.
struct Bounded {
    /// The name; others are those of proxies.
    name: String,
    /// The innermost zone that it may lie in.
    most: Zone,
}

/// A name has an address too far inwards.
#[derive(Debug, thiserror::Error)]
#[error("it has {}", .0.what())]
struct TooFarInwards(Zone);

impl Resolve for Bounded {
    fn resolve(&self, name: Name) -> Resolving {
        let most = (name.as_str() == self.name).then_some(self.most);
        let resolved = (name.as_str(), 0).to_socket_addrs();
        Box::pin(std::future::ready(resolved.map_err(Into::into).and_then(
            |addresses| -> Result<Addrs, Box<dyn StdError + Send + Sync>> {
                let addresses: Vec<_> = addresses.collect();
                let zones = addresses.iter().map(|address| Zone::of(address.ip()));
                match zones.max().filter(|zone| most.is_some_and(|most| *zone > most)) {
                    Some(zone) => Err(TooFarInwards(zone).into()),
                    None => Ok(Box::new(addresses.into_iter())),
                }
            },
        )))
    }
}

/// CA certificates that are trusted beside those of the system.
#[derive(Default)]
pub(super) struct Roots {
    pub(super) file: Option<PathBuf>,
    pub(super) directories: Vec<PathBuf>,
}

impl Roots {
    /// What `SSL_CERT_FILE` and `SSL_CERT_DIR` name, where the platform's verifier does not look
    /// at these variables. It does on Linux and the BSDs, where they replace the system's own.
    pub(super) fn from_environment() -> Self {
        if !cfg!(any(target_vendor = "apple", windows)) {
            return Roots::default();
        }
        Roots {
            file: std::env::var_os("SSL_CERT_FILE").map(PathBuf::from),
            directories: std::env::var_os("SSL_CERT_DIR")
                .map(|value| std::env::split_paths(&value).collect())
                .unwrap_or_default(),
        }
    }

    /// Reads the certificates (PEM). Anything that cannot be read or is not a CA certificate is skipped, as OpenSSL
    /// does: a host that needs it will not be trusted, which is reported.
    fn load(&self) -> Vec<reqwest::Certificate> {
        let listed = self
            .directories
            .iter()
            .filter_map(|directory| std::fs::read_dir(directory).ok())
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path()));
        let mut store = RootCertStore::empty();
        let mut certificates = Vec::new();
        for path in self.file.iter().cloned().chain(listed) {
            if !path.is_file() {
                continue;
            }
            let Ok(text) = std::fs::read(&path) else {
                continue;
            };
            for der in CertificateDer::pem_slice_iter(&text).flatten() {
                if let Ok(certificate) = reqwest::Certificate::from_der(&der)
                    && store.add(der).is_ok()
                {
                    certificates.push(certificate);
                }
            }
        }
        certificates
    }
}

/// Returns the host to name in messages, with the port where it is not the scheme's own.
pub(super) fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// The error and what is behind it. An `io::Error` hides the error it wraps from `source`.
fn chain<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |error| {
        let error: &'a (dyn StdError + 'static) = *error;
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        match wrapped {
            Some(inner) => Some(inner as &(dyn StdError + 'static)),
            None => error.source(),
        }
    })
}

fn is_timeout(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::TimedOut
        || chain(error).any(|cause| cause.downcast_ref::<reqwest::Error>().is_some_and(reqwest::Error::is_timeout))
}

/// The innermost error, as one line. The outer ones say little, and those of reqwest may say the
/// whole URL.
fn root_cause(error: &(dyn StdError + 'static)) -> String {
    let last = chain(error).filter(|cause| !cause.is::<reqwest::Error>()).last();
    last.map_or_else(|| "no more is known".to_owned(), ToString::to_string)
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(300)
        .collect()
}
