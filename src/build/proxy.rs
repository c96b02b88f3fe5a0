//! A proxy on this machine that answers a build of the original with the remote files that this run has fetched.
//!
//! It ends TLS itself, with a certificate that lives as long as it does and that only the build trusts
//! (through `SSL_CERT_FILE`, which Go reads where the platform has no trust store of its own). Anything that was not
//! fetched is refused. Go asks no proxy for a host on this machine: such files are requested again.

use std::collections::{BTreeSet, HashMap};
use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::crypto::ring;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use url::{Position, Url};

use super::program::PROXIES;
use crate::fetch::http::is_loopback;
use crate::message::failure::{Failure, Result};
use crate::os::interrupt::unusable;

/// Whether programs written in Go believe what `SSL_CERT_FILE` holds: elsewhere the platform decides.
pub(super) const IS_TRUSTED: bool = cfg!(all(unix, not(target_vendor = "apple")));

/// How long a client may be silent.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long the head of a request may be, in bytes.
const HEAD: u64 = 64 << 10;
/// How many connections are answered at the same time.
const CONNECTIONS: usize = 64;
/// A proxy that runs until it is dropped.
pub(super) struct Proxy {
    address: SocketAddr,
    certificate: PathBuf,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

struct Shared {
    files: HashMap<String, Arc<[u8]>>,
    /// The hosts that a file is at.
    hosts: BTreeSet<String>,
    /// How TLS begins as one of them.
    tls: Arc<ServerConfig>,
    stop: AtomicBool,
}

/// Returns what identifies a file: its URL without userinfo and fragment, and with nothing encoded, as a client may encode
/// more than it has to.
fn key(url: &Url) -> Option<String> {
    let (scheme, host, port) = (url.scheme(), url.host_str()?, url.port_or_known_default()?);
    let path = percent_decode_str(&url[Position::BeforePath..Position::AfterQuery]).decode_utf8_lossy();
    Some(format!("{scheme}://{host}:{port}{path}"))
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
        let mut contents: HashMap<String, Option<Arc<[u8]>>> = HashMap::new();
        let mut hosts = BTreeSet::new();
        for (text, bytes) in files {
            let Ok(url) = Url::parse(text) else { continue };
            let (Some(key), Some(host)) = (key(&url), url.host_str()) else {
                continue;
            };
            hosts.insert(host.to_owned());
            let known = contents.entry(key).or_insert_with(|| Some(bytes.into()));
            // They differ in something that a request does not contain, such as a password.
            known.take_if(|known| **known != *bytes);
        }
        let files = contents.into_iter().filter_map(|(key, bytes)| Some((key, bytes?))).collect();
        let certificate = directory.join("certificate.pem");
        let (pem, tls) = identity(&hosts).map_err(not_started)?;
        std::fs::write(&certificate, pem).map_err(|error| unusable(&error))?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(not_started)?;
        let address = listener.local_addr().map_err(not_started)?;
        let shared = Arc::new(Shared { files, hosts, tls, stop: AtomicBool::new(false) });
        let accepting = Arc::clone(&shared);
        let acceptor = std::thread::Builder::new().spawn(move || accept(&listener, &accepting)).map_err(not_started)?;
        Ok(Proxy { address, certificate, shared, acceptor: Some(acceptor) })
    }

    /// Sends everything that `command` is going to request over http and https here.
    pub(super) fn serve(&self, command: &mut Command) {
        let proxy = format!("http://{}", self.address);
        command.envs(PROXIES.map(|name| (name, &proxy)));
        command.env("SSL_CERT_FILE", &self.certificate).env_remove("NO_PROXY").env_remove("no_proxy");
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        // The acceptor waits for a connection.
        if TcpStream::connect_timeout(&self.address, PATIENCE).is_ok() {
            self.acceptor.take().map(JoinHandle::join);
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.stop.load(Ordering::SeqCst) {
            return;
        }
        match stream {
            Ok(stream) if Arc::strong_count(shared) <= CONNECTIONS => {
                let worker = Arc::clone(shared);
                // An error can only be reported to the client.
                std::thread::Builder::new().spawn(move || worker.connection(stream).ok()).ok();
            }
            Ok(_) => {}
            // Out of descriptors, or gone before it was accepted: the next one may do better.
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
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
        let is_known = |url: &Url| url.host_str().is_some_and(|host| self.hosts.contains(host));
        let Some(url) = url.filter(is_known) else {
            return refuse(&mut stream);
        };
        stream.write_all(b"HTTP/1.1 200 Connection Established\r\n\r\n")?;
        let connection = ServerConnection::new(Arc::clone(&self.tls)).map_err(io::Error::other)?;
        let mut stream = StreamOwned::new(connection, stream);
        if let Some(request) = self::request(&mut stream)? {
            // `join` would take `//host` for another host.
            let origin = url.as_str().trim_end_matches('/');
            let is_path = request.target.starts_with('/');
            let url = Url::parse(&format!("{origin}{}", request.target)).ok().filter(|_| is_path);
            self.give(&mut stream, &request, url)?;
        }
        stream.conn.send_close_notify();
        stream.flush()
    }

    /// Answers with a file that was fetched.
    fn give(&self, stream: &mut impl Write, request: &Request, url: Option<Url>) -> io::Result<()> {
        let file = url.as_ref().and_then(key).and_then(|key| self.files.get(&key));
        match (file, request.method.as_str()) {
            (Some(file), "GET" | "HEAD") => answer(stream, "200 OK", file, request.method == "GET"),
            _ => refuse(stream),
        }
    }
}

fn refuse(stream: &mut impl Write) -> io::Result<()> {
    answer(stream, "403 Forbidden", b"this was not fetched\n", true)
}

/// Returns a certificate for all of these hosts, which signs itself, and how TLS begins with it.
fn identity(hosts: &BTreeSet<String>) -> io::Result<(String, Arc<ServerConfig>)> {
    // An address is written in brackets in a URL, and without them in a certificate.
    let names: Vec<String> = hosts.iter().map(|host| host.trim_matches(['[', ']']).to_owned()).collect();
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).map_err(io::Error::other)?;
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(signing_key.serialize_der()));
    let tls = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .map_err(io::Error::other)?;
    Ok((cert.pem(), Arc::new(tls)))
}

#[cfg(test)]
mod tests;
