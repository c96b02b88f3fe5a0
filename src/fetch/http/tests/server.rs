//! A loopback server that answers as a test says.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// A request of a client.
#[derive(Debug, Clone)]
pub(super) struct Request {
    /// Path and query.
    pub(super) path: String,
    /// Lower-case names.
    headers: Vec<(String, String)>,
}

impl Request {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(super) fn authorization(&self) -> Option<&str> {
        self.header("authorization")
    }
}

/// What a server does with a request. The connection is closed afterwards.
pub(super) enum Reply {
    /// These bytes.
    Raw(Vec<u8>),
    /// These bytes, then one `x` every 20 ms for as long as the client listens.
    Drip(Vec<u8>),
}

/// A whole answer: a status line's code and phrase, further header lines, a body with its length.
pub(super) fn reply(status: &str, headers: &[&str], body: impl AsRef<[u8]>) -> Reply {
    let body = body.as_ref();
    let mut head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n", body.len());
    for header in headers {
        head.push_str(header);
        head.push_str("\r\n");
    }
    head.push_str("\r\n");
    Reply::Raw([head.as_bytes(), body].concat())
}

pub(super) fn ok(body: &str) -> Reply {
    reply("200 OK", &["Content-Type: text/plain"], body)
}

pub(super) fn redirect(to: &str) -> Reply {
    reply("302 Found", &[&format!("Location: {to}")], "")
}

type Handler = dyn Fn(usize, &Request) -> Reply + Send + Sync;

/// Runs until it is dropped.
pub(super) struct Server {
    scheme: &'static str,
    port: u16,
    requests: Arc<Mutex<Vec<Request>>>,
    stop: Arc<AtomicBool>,
}

impl Server {
    /// Answers each request with what `handler` returns for its number (from 0) and content.
    pub(super) fn http(handler: impl Fn(usize, &Request) -> Reply + Send + Sync + 'static) -> Server {
        Self::start("http", None, Arc::new(handler))
    }

    /// The same over TLS.
    pub(super) fn https(
        config: rustls::ServerConfig,
        handler: impl Fn(usize, &Request) -> Reply + Send + Sync + 'static,
    ) -> Server {
        Self::start("https", Some(Arc::new(config)), Arc::new(handler))
    }

    fn start(scheme: &'static str, tls: Option<Arc<rustls::ServerConfig>>, handler: Arc<Handler>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Server {
            scheme,
            port: listener.local_addr().unwrap().port(),
            requests: Arc::default(),
            stop: Arc::default(),
        };
        let requests = Arc::clone(&server.requests);
        let stop = Arc::clone(&server.stop);
        thread::spawn(move || {
            for stream in listener.incoming() {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                let (handler, requests) = (Arc::clone(&handler), Arc::clone(&requests));
                let (tls, stop) = (tls.clone(), Arc::clone(&stop));
                thread::spawn(move || match tls {
                    None => serve(stream, &*handler, &requests, &stop),
                    Some(config) => {
                        let session = rustls::ServerConnection::new(config).unwrap();
                        let mut stream = rustls::StreamOwned::new(session, stream);
                        serve(&mut stream, &*handler, &requests, &stop);
                        stream.conn.send_close_notify();
                        let _ = stream.flush();
                    }
                });
            }
        });
        server
    }

    /// The URL of a path that starts with `/`.
    pub(super) fn url(&self, path: &str) -> String {
        format!("{}://127.0.0.1:{}{path}", self.scheme, self.port)
    }

    /// The same with a login.
    pub(super) fn url_as(&self, userinfo: &str, path: &str) -> String {
        format!("{}://{userinfo}@127.0.0.1:{}{path}", self.scheme, self.port)
    }

    pub(super) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// The `Authorization` of each request so far.
    pub(super) fn authorizations(&self) -> Vec<Option<String>> {
        self.requests().iter().map(|request| request.authorization().map(str::to_owned)).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Wakes the loop that accepts connections.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

fn serve(mut stream: impl Read + Write, handler: &Handler, requests: &Mutex<Vec<Request>>, stop: &AtomicBool) {
    let Some(request) = read_request(&mut stream) else {
        return;
    };
    let number = {
        let mut requests = requests.lock().unwrap();
        requests.push(request.clone());
        requests.len() - 1
    };
    // The client may be gone before all is written: that is what some tests are about.
    match handler(number, &request) {
        Reply::Raw(bytes) => {
            let _ = stream.write_all(&bytes);
        }
        Reply::Drip(bytes) => {
            let mut alive = stream.write_all(&bytes).is_ok();
            while alive && !stop.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(20));
                alive = stream.write_all(b"x").and_then(|()| stream.flush()).is_ok();
            }
        }
    }
    let _ = stream.flush();
}

fn read_request(stream: &mut impl Read) -> Option<Request> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next()?.ok()?;
    let path = first.split(' ').nth(1)?.to_owned();
    let mut headers = Vec::new();
    for line in lines {
        let line = line.ok()?;
        if line.is_empty() {
            return Some(Request { path, headers });
        }
        let (name, value) = line.split_once(':')?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    None
}
