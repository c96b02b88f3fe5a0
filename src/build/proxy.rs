//! A proxy on this machine, the only way out for a build. It answers with the remote files that this run has fetched,
//! and refuses everything else. It notes what it refuses, except requests for the known URLs of repositories.
//!
//! It ends TLS itself, as an authority that lives as long as it does and that only the build trusts (through
//! `SSL_CERT_FILE`, which Go reads where the platform has no trust store of its own). Go asks no proxy for a host on
//! this machine: such files are requested again.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use percent_encoding::percent_decode_str;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use url::{Position, Url};

use super::program::PROXIES;
use crate::fetch::http::is_loopback;
use crate::message::failure::{Failure, Result};
use crate::message::redact;
use crate::os::interrupt::unusable;
use crate::os::parallel::locked;
use crate::os::sandbox::Request;
use crate::record::sha256_hex;

/// Whether programs written in Go trust the certificates in `SSL_CERT_FILE`; elsewhere the platform decides.
pub(super) const IS_TRUSTED: bool = cfg!(all(unix, not(target_vendor = "apple")));

/// How long a client may be silent.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long the head of a request may be, in bytes.
const HEAD: u64 = 64 << 10;
/// The user of the proxy.
const USER: &str = "build";
/// How many connections are answered at the same time.
const CONNECTIONS: usize = 64;

/// The responses for builds.
pub(super) struct Served {
    files: HashMap<String, Arc<[u8]>>,
    /// Known URLs without a content: repositories, and files that have two contents.
    without_content: HashSet<String>,
    authority: CertifiedIssuer<'static, KeyPair>,
    /// The password of the proxy, which only builds are told.
    password: String,
    /// The path of its certificate.
    certificate: PathBuf,
    /// How TLS begins as each host.
    hosts: Mutex<HashMap<String, Arc<ServerConfig>>>,
}

/// The identity of a file: its URL without userinfo, fragment and encoding.
fn file_key(url: &Url) -> Option<String> {
    // A client may encode more than necessary.
    let (scheme, host, port) = (url.scheme(), url.host_str()?, url.port_or_known_default()?);
    let path = percent_decode_str(&url[Position::BeforePath..Position::AfterQuery]).decode_utf8_lossy();
    Some(format!("{scheme}://{host}:{port}{path}"))
}

/// Whether a URL names a host on this machine, which Go asks directly.
pub(super) fn is_direct(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| is_loopback(&url))
}

fn not_started(error: impl std::fmt::Display) -> Failure {
    Failure::new(format!("cannot serve fetched files to the build: {error}"))
}

impl Served {
    /// Takes files by their URLs, and the URLs of repositories. The certificate to trust is put into `directory`; its
    /// key stays in memory.
    ///
    /// Fails when the certificate cannot be made or written.
    pub(super) fn new<'a>(
        files: impl IntoIterator<Item = (&'a str, &'a [u8])>,
        repositories: impl IntoIterator<Item = &'a str>,
        directory: &Path,
    ) -> Result<Served> {
        let mut contents: HashMap<String, Option<Arc<[u8]>>> = HashMap::new();
        for (text, bytes) in files {
            // Nobody can request a text that is not a URL.
            let Some(key) = key_of_text(text) else { continue };
            let known = contents.entry(key).or_insert_with(|| Some(bytes.into()));
            // Two URLs with one key differ in something that a request does not contain, such as a password. If their
            // contents differ, too, nobody can tell which is requested.
            known.take_if(|known| **known != *bytes);
        }
        // A request for a URL without content fails, but it is known, and so not reported.
        let mut without_content: HashSet<String> = repositories.into_iter().filter_map(key_of_text).collect();
        without_content.extend(contents.iter().filter(|(_, bytes)| bytes.is_none()).map(|(key, _)| key.clone()));
        let files = contents.into_iter().filter_map(|(key, bytes)| Some((key, bytes?))).collect();
        let mut parameters = CertificateParams::default();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = KeyPair::generate().and_then(|key| CertifiedIssuer::self_signed(parameters, key));
        let authority = authority.map_err(not_started)?;
        let certificate = directory.join("certificate.pem");
        std::fs::write(&certificate, authority.pem()).map_err(unusable)?;
        // Other users of the machine reach the proxy, too, so that it needs a password. It is a digest of the key,
        // because whoever knows the key may read everything anyway.
        let password = sha256_hex(&authority.key().serialize_der());
        Ok(Served { files, without_content, authority, password, certificate, hosts: Mutex::default() })
    }

    /// Whether builds may ask a host on this machine, for which Go uses no proxy.
    pub(super) fn is_asked_directly(&self) -> bool {
        self.files.keys().chain(&self.without_content).any(|key| is_direct(key))
    }

    /// Whether a file of a host on this machine is below a URL.
    pub(super) fn is_asked_directly_below(&self, url: &str) -> bool {
        // A build cannot get it through the proxy, so kustomize takes it for a part of a repository there.
        let Some(above) = Url::parse(url).ok().as_ref().and_then(file_key) else { return false };
        is_direct(url)
            && self
                .files
                .keys()
                .any(|file: &String| file.strip_prefix(&above).is_some_and(|rest| rest.starts_with('/')))
    }

    /// Whether a request is for a port of this machine in a known URL or in one of these calls.
    pub(super) fn is_at(&self, request: &Request, calls: &[String]) -> bool {
        // Go requests such a URL directly, before git is asked.
        let Request::Connection(Some(address)) = request else { return false };
        let known = self.files.keys().chain(&self.without_content).map(String::as_str);
        let called = calls.iter().flat_map(|call| call.split(' '));
        let mut urls = known.chain(called).filter(|url| address.ip().is_loopback() && is_direct(url));
        urls.any(|url| Url::parse(url).is_ok_and(|url| url.port_or_known_default() == Some(address.port())))
    }

    /// The digest of all that is served.
    pub(super) fn digest(&self) -> String {
        let files = self.files.iter().map(|(url, bytes)| format!("{url:?} {}\n", sha256_hex(bytes)));
        let all: BTreeSet<String> = files.chain(self.without_content.iter().map(|url| format!("{url:?}\n"))).collect();
        sha256_hex(all.into_iter().collect::<String>().as_bytes())
    }

    /// The TLS configuration that lets us answer as a host, with a certificate by our authority.
    fn tls(&self, host: &str) -> io::Result<Arc<ServerConfig>> {
        let mut hosts = locked(&self.hosts);
        if let Some(known) = hosts.get(host) {
            return Ok(known.clone());
        }
        // An address is written in brackets in a URL, and without them in a certificate.
        let name = host.trim_matches(['[', ']']).to_owned();
        let mut parameters = CertificateParams::new([name.clone()]).map_err(io::Error::other)?;
        // Otherwise its subject would be that of the authority, as if it had signed itself.
        parameters.distinguished_name.push(DnType::CommonName, name);
        let key = self.authority.key();
        let certificate = parameters.signed_by(key, &self.authority).map_err(io::Error::other)?;
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let tls = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .map_err(io::Error::other)?;
        Ok(hosts.entry(host.to_owned()).or_insert(Arc::new(tls)).clone())
    }
}

/// The [key](file_key) of a URL; `None` if the text is not one.
fn key_of_text(text: &str) -> Option<String> {
    Url::parse(text).ok().as_ref().and_then(file_key)
}

/// The proxy of one build, which runs until it is dropped.
pub(super) struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

struct Shared {
    served: Arc<Served>,
    refused: Mutex<BTreeSet<String>>,
    stop: AtomicBool,
}

impl Proxy {
    /// Starts a proxy, at a port that the system chooses.
    pub(super) fn start(served: &Arc<Served>) -> Result<Proxy> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(not_started)?;
        let address = listener.local_addr().map_err(not_started)?;
        let (served, refused) = (served.clone(), Mutex::default());
        let shared = Arc::new(Shared { served, refused, stop: AtomicBool::new(false) });
        let accepting = Arc::clone(&shared);
        let acceptor = std::thread::Builder::new().spawn(move || accept(&listener, &accepting));
        Ok(Proxy { address, shared, acceptor: Some(acceptor.map_err(not_started)?) })
    }

    /// The address of its listener.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends everything that `command` is going to request over http and https here.
    pub(super) fn serve(&self, command: &mut Command) {
        let proxy = format!("http://{USER}:{}@{}", self.shared.served.password, self.address);
        command.envs(PROXIES.map(|name| (name, &proxy)));
        let certificate = &self.shared.served.certificate;
        command.env("SSL_CERT_FILE", certificate).env_remove("NO_PROXY").env_remove("no_proxy");
    }

    /// All unanswered requests, without secrets.
    pub(super) fn refused(&self) -> BTreeSet<String> {
        locked(&self.shared.refused).clone()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        // Its thread waits for a connection, without which it would never end.
        if TcpStream::connect_timeout(&self.address, PATIENCE).is_ok() {
            self.acceptor.take().map(JoinHandle::join);
        }
    }
}

/// Serves each connection on a thread of its own, until the proxy stops.
fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.stop.load(Ordering::SeqCst) {
            return;
        }
        match stream {
            // Each open connection holds a reference.
            Ok(stream) if Arc::strong_count(shared) <= CONNECTIONS => {
                let worker = Arc::clone(shared);
                // An error ends the connection, which tells the client. Nobody else waits for the answer.
                std::thread::Builder::new().spawn(move || worker.serve_connection(stream).ok()).ok();
            }
            Ok(_) => shared.note("too many connections to answer".to_owned()),
            // Out of descriptors, or gone before it was accepted: the next one may do better.
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

/// The head of a request.
struct RequestHead {
    method: String,
    /// A URL; for CONNECT the host and the port, inside of a tunnel the path.
    uri: String,
    /// Whether it has the password of the build.
    is_trusted: bool,
}

/// Reads the head of a request, and compares its login with the password; `None` if it is not a request.
fn request(stream: &mut impl Read, password: &str) -> io::Result<Option<RequestHead>> {
    let login = format!("Basic {}", BASE64_STANDARD.encode(format!("{USER}:{password}")));
    let mut reader = BufReader::new(stream.take(HEAD));
    let mut first = String::new();
    reader.read_line(&mut first)?;
    // All headers are read: an answer before their end can break the connection.
    let (mut line, mut is_trusted) = (Vec::new(), false);
    loop {
        line.clear();
        let read = reader.read_until(b'\n', &mut line)?;
        match line.as_slice() {
            b"\r\n" | b"\n" => break,
            _ if read == 0 => return Ok(None),
            header => {
                let header = String::from_utf8_lossy(header);
                let (name, value) = header.split_once(':').unwrap_or_default();
                is_trusted |= name.eq_ignore_ascii_case("Proxy-Authorization") && value.trim() == login;
            }
        }
    }
    let mut words = first.split_ascii_whitespace();
    let (Some(method), Some(uri), Some(_version)) = (words.next(), words.next(), words.next()) else {
        return Ok(None);
    };
    Ok(Some(RequestHead { method: method.to_owned(), uri: uri.to_owned(), is_trusted }))
}

/// Writes an answer, after which the connection ends.
fn answer(stream: &mut impl Write, status: &str, body: &[u8]) -> io::Result<()> {
    answer_head(stream, status, body.len())?;
    stream.write_all(body)?;
    stream.flush()
}

/// Writes an answer without its body of `length` bytes, as a HEAD request gets it.
fn answer_head(stream: &mut impl Write, status: &str, length: usize) -> io::Result<()> {
    let head = "Content-Type: application/octet-stream\r\nConnection: close\r\nContent-Length";
    write!(stream, "HTTP/1.1 {status}\r\n{head}: {length}\r\n\r\n")
}

impl Shared {
    /// Answers the request of a connection, or the first in a tunnel.
    fn serve_connection(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let password = &self.served.password;
        let Some(request) = request(&mut stream, password)? else {
            self.note("a connection that is not HTTP".to_owned());
            return answer(&mut stream, "400 Bad Request", b"");
        };
        if request.method != "CONNECT" {
            let url = Url::parse(&request.uri).ok();
            return self.answer_request(&mut stream, &request, url);
        }
        // This request contains only host and port; the path follows after TLS has begun.
        let url = Url::parse(&format!("https://{}/", request.uri)).ok();
        // A client that would not trust our certificate, or has no password, gets no tunnel: its request is refused.
        let named = url.as_ref().and_then(|url| Some((url, url.host_str()?)));
        let Some((url, host)) = named.filter(|_| IS_TRUSTED && request.is_trusted) else {
            return self.answer_request(&mut stream, &request, url);
        };
        // The client takes us for the host: it sends the request that only the host should see.
        let tls = self.served.tls(host)?;
        stream.write_all(b"HTTP/1.1 200 Connection Established\r\n\r\n")?;
        let connection = ServerConnection::new(tls).map_err(io::Error::other)?;
        let mut stream = StreamOwned::new(connection, stream);
        match self::request(&mut stream, password) {
            Ok(Some(request)) => {
                // The password came before the tunnel.
                let request = RequestHead { is_trusted: true, ..request };
                // `join` would take `//host` for another host.
                let origin = url.as_str().trim_end_matches('/');
                let is_path = request.uri.starts_with('/');
                let url = Url::parse(&format!("{origin}{}", request.uri)).ok().filter(|_| is_path);
                self.answer_request(&mut stream, &request, url)?;
            }
            // A client that does not trust our certificate requests nothing.
            _ => self.note(url.to_string()),
        }
        stream.conn.send_close_notify();
        stream.flush()
    }

    /// Answers with a fetched file. Any other request is refused, and noted if it is not expected.
    fn answer_request(&self, stream: &mut impl Write, request: &RequestHead, url: Option<Url>) -> io::Result<()> {
        let key = url.as_ref().and_then(file_key).unwrap_or_default();
        let method = request.method.as_str();
        let file = self.served.files.get(&key).filter(|_| request.is_trusted);
        match (method, file) {
            ("HEAD", Some(file)) => return answer_head(stream, "200 OK", file.len()),
            ("GET", Some(file)) => return answer(stream, "200 OK", file),
            _ => {}
        }
        let known = &self.served.without_content;
        let is_expected = match method {
            // kustomize first tries the URL of a repository as a file.
            "GET" | "HEAD" => known.contains(&key),
            // If TLS cannot begin, only the host is known.
            "CONNECT" => !key.is_empty() && known.iter().any(|prefix| prefix.starts_with(&key)),
            _ => false,
        };
        if !is_expected {
            self.note(url.map_or_else(|| request.uri.clone(), |url| url.to_string()));
        }
        answer(stream, "403 Forbidden", b"this was not fetched\n")
    }

    /// Notes an unanswered request.
    fn note(&self, request: String) {
        locked(&self.refused).insert(redact::text(&request));
    }
}

#[cfg(test)]
mod tests;
