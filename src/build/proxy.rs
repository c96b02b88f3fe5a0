//! A proxy on this machine that answers a build of the original with the remote files that this run has fetched.
//!
//! It ends TLS itself, with certificates of an authority that lives as long as it does and that only the build trusts
//! (through `SSL_CERT_FILE`, which Go reads where the platform has no trust store of its own). Anything that was not
//! fetched is refused, and remembered. Go asks no proxy for a host on this machine: such files are requested again.

use std::collections::{HashMap, HashSet};
use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};
use rustls::crypto::ring;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use url::Url;

use super::closed::PROXIES;
use crate::fetch::http::is_loopback;
use crate::message::failure::{Failure, Result};
use crate::message::redact;
use crate::os::interrupt::unusable;

/// Whether programs written in Go believe what `SSL_CERT_FILE` holds: elsewhere the platform decides.
pub(super) const IS_TRUSTED: bool = cfg!(all(unix, not(target_vendor = "apple")));

/// How long a client may be silent.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long the head of a request may be, in bytes.
const HEAD: u64 = 64 << 10;
/// How many connections are answered at the same time.
const CONNECTIONS: usize = 64;
/// How many refusals are remembered.
const REFUSALS: usize = 100;
/// What is encoded in a path before paths are compared: a client may encode more than it has to.
const ENCODED: &AsciiSet = &CONTROLS.add(b' ').add(b'%').add(b'/').add(b'?').add(b'#');

/// A proxy that runs until it is dropped.
pub(super) struct Proxy {
    address: SocketAddr,
    certificate: PathBuf,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

struct Shared {
    files: HashMap<Key, Arc<[u8]>>,
    /// How TLS begins as each host that a file is at.
    hosts: HashMap<String, Arc<ServerConfig>>,
    refused: Mutex<Vec<String>>,
    /// The connections that are open, by number.
    open: Mutex<HashMap<usize, TcpStream>>,
    stop: AtomicBool,
}

/// What identifies a file: its URL in one spelling, without userinfo and fragment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key(String);

impl Key {
    fn new(url: &Url) -> Option<Key> {
        let scheme = url.scheme();
        let (host, port) = (url.host_str()?, url.port_or_known_default()?);
        let one_spelling = |text: &str| {
            let segments = text.split('/').map(|segment| {
                let bytes: Vec<u8> = percent_decode_str(segment).collect();
                match String::from_utf8(bytes) {
                    Ok(text) => utf8_percent_encode(&text, ENCODED).to_string(),
                    Err(_) => segment.to_owned(),
                }
            });
            segments.collect::<Vec<_>>().join("/")
        };
        let path = one_spelling(url.path());
        let query = url.query().map_or(String::new(), |query| format!("?{}", one_spelling(query).replace('+', "%20")));
        Some(Key(format!("{scheme}://{host}:{port}{path}{query}")))
    }
}

/// Returns whether a URL names a host on this machine, which Go asks directly.
pub(super) fn is_direct(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| is_loopback(&url))
}

fn not_started(error: impl std::fmt::Display) -> Failure {
    Failure::new(format!("what was fetched cannot be served to the build: {error}"))
}

impl Proxy {
    /// Starts a proxy that serves files by their URLs. The certificate to trust is put into `directory`; its key
    /// stays in memory.
    ///
    /// Fails when no port can be listened at, or the certificate cannot be made or written.
    pub(super) fn start<'a>(files: impl IntoIterator<Item = (&'a str, &'a [u8])>, directory: &Path) -> Result<Proxy> {
        let authority = Authority::new().map_err(not_started)?;
        let mut by_key: HashMap<Key, Arc<[u8]>> = HashMap::new();
        let mut hosts = HashMap::new();
        let mut ambiguous = HashSet::new();
        for (text, bytes) in files {
            let Ok(url) = Url::parse(text) else { continue };
            let (Some(key), Some(host)) = (Key::new(&url), url.host_str()) else {
                continue;
            };
            if url.scheme() == "https" && !hosts.contains_key(host) {
                let configuration = authority.configuration(host).map_err(not_started)?;
                hosts.insert(host.to_owned(), configuration);
            }
            match by_key.get(&key) {
                // They differ in something that a request does not contain, such as a password.
                Some(known) if **known != *bytes => drop(ambiguous.insert(key)),
                Some(_) => {}
                None => drop(by_key.insert(key, bytes.into())),
            }
        }
        by_key.retain(|key, _| !ambiguous.contains(key));
        let certificate = directory.join("authority.pem");
        std::fs::write(&certificate, authority.issuer.pem()).map_err(|error| unusable(&error))?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(not_started)?;
        let address = listener.local_addr().map_err(not_started)?;
        let shared = Arc::new(Shared {
            files: by_key,
            hosts,
            refused: Mutex::default(),
            open: Mutex::default(),
            stop: AtomicBool::new(false),
        });
        let acceptor = {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new().spawn(move || accept(&listener, &shared)).map_err(not_started)?
        };
        Ok(Proxy { address, certificate, shared, acceptor: Some(acceptor) })
    }

    /// Sends everything that `command` is going to request over http and https here.
    pub(super) fn serve(&self, command: &mut Command) {
        command.envs(self.environment());
        command.env_remove("NO_PROXY").env_remove("no_proxy");
    }

    fn environment(&self) -> Vec<(&'static str, String)> {
        let proxy = format!("http://{}", self.address);
        let mut environment: Vec<_> = PROXIES.map(|name| (name, proxy.clone())).into();
        environment.push(("SSL_CERT_FILE", self.certificate.display().to_string()));
        environment
    }

    /// Returns the first thing, without secrets, that was requested and had not been fetched, if a build failed because
    /// of it: its message names the host and the refusal. kustomize also requests repositories before it runs git, and
    /// expects those requests to fail.
    pub(super) fn unknown(&self, said: &str) -> Option<String> {
        let is_named = |url: &String| {
            let url = Url::parse(url).ok();
            let host = url.as_ref().and_then(Url::host_str);
            host.is_some_and(|host| said.contains(host))
        };
        let refused = locked(&self.shared.refused);
        let url = refused.iter().find(|url| is_named(url));
        url.filter(|_| said.contains("Forbidden")).map(|url| format!("`{url}`: it was not fetched"))
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        // The acceptor waits for a connection.
        let woken = TcpStream::connect_timeout(&self.address, PATIENCE).is_ok();
        if let Some(acceptor) = self.acceptor.take()
            && woken
        {
            acceptor.join().ok();
        }
        for stream in locked(&self.shared.open).values() {
            stream.shutdown(Shutdown::Both).ok();
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for (number, stream) in listener.incoming().enumerate() {
        if shared.stop.load(Ordering::SeqCst) {
            return;
        }
        // Out of descriptors, or gone before it was accepted: the next one may do better.
        let Ok(stream) = stream else {
            std::thread::sleep(Duration::from_millis(10));
            continue;
        };
        let Ok(known) = stream.try_clone() else {
            continue;
        };
        {
            let mut open = locked(&shared.open);
            if open.len() >= CONNECTIONS {
                continue;
            }
            open.insert(number, known);
        }
        let worker = Arc::clone(shared);
        let spawned = std::thread::Builder::new().spawn(move || {
            // An error can only be reported to the client.
            worker.connection(stream).ok();
            locked(&worker.open).remove(&number);
        });
        if spawned.is_err() {
            locked(&shared.open).remove(&number);
        }
    }
}

/// The first line of a request.
struct Request {
    method: String,
    target: String,
}

/// Reads the head of a request; none when it is not one.
fn request(stream: &mut impl Read) -> io::Result<Option<Request>> {
    let mut reader = BufReader::new(stream.take(HEAD));
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = reader.read_until(b'\n', &mut line)?;
        match line.as_slice() {
            b"\r\n" | b"\n" => break,
            _ if read == 0 => return Ok(None),
            _ => {}
        }
    }
    let mut words = first.split_ascii_whitespace();
    let (Some(method), Some(target), Some(_)) = (words.next(), words.next(), words.next()) else {
        return Ok(None);
    };
    Ok(Some(Request { method: method.to_owned(), target: target.to_owned() }))
}

/// Writes an answer, after which the connection ends.
fn answer(stream: &mut impl Write, status: &str, body: &[u8], with_body: bool) -> io::Result<()> {
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: application/octet-stream\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    )?;
    if with_body {
        stream.write_all(body)?;
    }
    stream.flush()
}

impl Shared {
    fn connection(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let Some(request) = request(&mut stream)? else {
            return answer(&mut stream, "400 Bad Request", b"", true);
        };
        if request.method != "CONNECT" {
            let url = Url::parse(&request.target).ok();
            return self.give(&mut stream, &request, url);
        }
        // Only its host and port are said here. What is asked there comes when TLS has begun.
        let url = Url::parse(&format!("https://{}/", request.target)).ok();
        let host = url.as_ref().and_then(Url::host_str);
        let Some((url, configuration)) =
            host.and_then(|host| self.hosts.get(host)).and_then(|configuration| Some((url.clone()?, configuration)))
        else {
            return self.refuse(&mut stream, &format!("https://{}", request.target));
        };
        stream.write_all(b"HTTP/1.1 200 Connection Established\r\n\r\n")?;
        let connection = ServerConnection::new(Arc::clone(configuration)).map_err(io::Error::other)?;
        let mut stream = StreamOwned::new(connection, stream);
        if let Some(request) = self::request(&mut stream)? {
            // `join` would take `//host` for another host.
            let origin = url.as_str().trim_end_matches('/');
            let url = request
                .target
                .starts_with('/')
                .then(|| Url::parse(&format!("{origin}{}", request.target)).ok())
                .flatten();
            self.give(&mut stream, &request, url)?;
        }
        stream.conn.send_close_notify();
        stream.flush()
    }

    /// Answers with a file that was fetched.
    fn give(&self, stream: &mut impl Write, request: &Request, url: Option<Url>) -> io::Result<()> {
        let key = url.as_ref().and_then(Key::new);
        let file = key.and_then(|key| self.files.get(&key));
        match (file, request.method.as_str()) {
            (Some(file), "GET" | "HEAD") => answer(stream, "200 OK", file, request.method == "GET"),
            _ => self.refuse(stream, url.as_ref().map_or(request.target.as_str(), Url::as_str)),
        }
    }

    fn refuse(&self, stream: &mut impl Write, what: &str) -> io::Result<()> {
        {
            let mut refused = locked(&self.refused);
            if refused.len() < REFUSALS {
                refused.push(redact::url(what));
            }
        }
        answer(stream, "403 Forbidden", b"this was not fetched\n", true)
    }
}

/// Signs a certificate for each host; only the build trusts it.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Result<Authority, rcgen::Error> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        params.distinguished_name.push(DnType::CommonName, "git-kustomize-localize, for one run");
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        Ok(Authority { issuer })
    }

    /// Returns how TLS begins as `host`.
    fn configuration(&self, host: &str) -> io::Result<Arc<ServerConfig>> {
        let key = KeyPair::generate().map_err(io::Error::other)?;
        // An address is written in brackets in a URL, and without them in a certificate.
        let name = host.trim_start_matches('[').trim_end_matches(']');
        let mut params = CertificateParams::new(vec![name.to_owned()]).map_err(io::Error::other)?;
        params.distinguished_name.push(DnType::CommonName, "host");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let certificate = params.signed_by(&key, &self.issuer).map_err(io::Error::other)?;
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let configuration = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .map_err(io::Error::other)?;
        Ok(Arc::new(configuration))
    }
}

#[cfg(test)]
mod tests;
