//! A loopback server for everything that comes over http(s): raw files, git repositories, a proxy.
//!
//! One port speaks plain HTTP, TLS, and `CONNECT`, distinguished by the client's first bytes. A client that uses the
//! port as its proxy reaches `https://any.host/…` here: the server ends the tunnel itself, with a certificate for that
//! host that [`Server::authority`] has signed.

mod git;
mod message;
mod tls;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

pub(crate) use message::{Reply, Request, base64};
use tls::Authority;

/// The first byte of a TLS handshake; no HTTP method starts with it.
const HANDSHAKE: u8 = 0x16;

/// A server on a port of its own; it stops when dropped.
pub(crate) struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    authority: &'static Authority,
    routes: Mutex<Vec<Route>>,
    mounts: Mutex<Vec<Mount>>,
    sites: Mutex<Vec<Site>>,
    limited: Mutex<Option<Limited>>,
    passwords: Mutex<Vec<Password>>,
    /// The only login that is not refused.
    login: Mutex<Option<String>>,
    requests: Mutex<Vec<Request>>,
    open: AtomicUsize,
    most_open: AtomicUsize,
    stop: AtomicBool,
}

struct Route {
    url: String,
    /// The last one is given again and again.
    replies: Vec<Reply>,
}

/// A prefix, and what answers below it.
type Site = (String, Box<dyn Fn(&str) -> Reply + Send>);

struct Mount {
    prefix: String,
    directory: PathBuf,
}

/// How a server limits requests without a login.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Limit {
    /// 429, and so many seconds in `Retry-After`.
    TooMany(Option<u32>),
    /// The error that GitHub sends to git in a response with status 200.
    Sentence,
    /// 401 where git asks for a pack, after it was given the refs.
    Pack,
}

struct Limited {
    prefix: String,
    how: Limit,
    /// Whether the request with this number is limited, counted from 0.
    which: Box<dyn Fn(usize) -> bool + Send>,
    number: usize,
}

struct Password {
    prefix: String,
    /// The whole value of the `Authorization` header.
    authorization: String,
}

impl Server {
    /// Starts a server that answers 404 to everything that a test does not set up.
    pub(crate) fn start() -> Server {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            authority: Authority::shared(),
            routes: Mutex::default(),
            mounts: Mutex::default(),
            sites: Mutex::default(),
            limited: Mutex::default(),
            passwords: Mutex::default(),
            login: Mutex::default(),
            requests: Mutex::default(),
            open: AtomicUsize::new(0),
            most_open: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
        });
        let worker = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if worker.stop.load(Ordering::SeqCst) {
                    break;
                }
                let shared = Arc::clone(&worker);
                thread::spawn(move || {
                    // A client may go away at any time.
                    shared.serve(stream).ok();
                });
            }
        });
        Server { address, shared }
    }

    /// Returns `http://127.0.0.1:PORT/`.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Returns `https://localhost:PORT/`, for clients that trust [`Server::authority`].
    pub(crate) fn tls_url(&self) -> String {
        format!("https://localhost:{}/", self.address.port())
    }

    /// Returns where [`Server::serve_git`] with the prefix `/git/` puts its repositories.
    pub(crate) fn git_url(&self) -> String {
        format!("{}git/", self.url())
    }

    /// Returns the URL of this server for use as an http and https proxy.
    pub(crate) fn as_https_proxy(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the certificate that signs those of all hosts, as PEM.
    pub(crate) fn authority(&self) -> &str {
        self.shared.authority.pem()
    }

    /// Answers `url` with `reply`.
    ///
    /// `url` is `/path?query` for a client that talks to the server itself (over http or TLS), and
    /// `https://host/path?query` for one that uses it as a proxy. The query is part of the route.
    pub(crate) fn route(&self, url: &str, reply: Reply) {
        self.route_in_turn(url, [reply]);
    }

    /// Answers `url` with one reply after the other, and then with the last one for good.
    pub(crate) fn route_in_turn(&self, url: &str, replies: impl IntoIterator<Item = Reply>) {
        let mut routes = self.shared.routes.lock().unwrap();
        routes.retain(|route| route.url != url);
        routes.push(Route { url: url.to_owned(), replies: replies.into_iter().collect() });
    }

    /// Answers `url` as if it had never had a route.
    pub(crate) fn unroute(&self, url: &str) {
        self.shared.routes.lock().unwrap().retain(|route| route.url != url);
    }

    /// Serves the repositories below `directory` to git clients.
    ///
    /// `prefix` is as for [`Server::route`] and ends with a slash: `/git/`, `https://github.com/`.
    /// `PREFIX/org/repo` is `DIRECTORY/org/repo`, or that with `.git` added or taken away.
    pub(crate) fn serve_git(&self, prefix: &str, directory: &Path) {
        assert!(prefix.ends_with('/'), "{prefix:?} does not end with a slash");
        self.shared.mounts.lock().unwrap().push(Mount { prefix: prefix.to_owned(), directory: directory.to_owned() });
    }

    /// Answers URLs that begin with `prefix` as `reply` does for the rest of them, except where there is a route.
    pub(crate) fn serve(&self, prefix: &str, reply: impl Fn(&str) -> Reply + Send + 'static) {
        self.shared.sites.lock().unwrap().push((prefix.to_owned(), Box::new(reply)));
    }

    /// Asks for this user and password (Basic) wherever the URL starts with `prefix`.
    pub(crate) fn require_password(&self, prefix: &str, user: &str, password: &str) {
        let credentials = base64(format!("{user}:{password}").as_bytes());
        self.shared
            .passwords
            .lock()
            .unwrap()
            .push(Password { prefix: prefix.to_owned(), authorization: format!("Basic {credentials}") });
    }

    /// Limits requests without a login where the URL starts with `prefix`: those with numbers, from 0, that `which`
    /// names.
    pub(crate) fn limit(&self, prefix: &str, how: Limit, which: impl Fn(usize) -> bool + Send + 'static) {
        let limited = Limited { prefix: prefix.to_owned(), how, which: Box::new(which), number: 0 };
        *self.shared.limited.lock().unwrap() = Some(limited);
    }

    /// Asks for no password any more.
    pub(crate) fn forget_passwords(&self) {
        self.shared.passwords.lock().unwrap().clear();
    }

    /// Refuses every login but this one.
    pub(crate) fn refuse_other_logins(&self, user: &str, password: &str) {
        let credentials = base64(format!("{user}:{password}").as_bytes());
        *self.shared.login.lock().unwrap() = Some(format!("Basic {credentials}"));
    }

    /// Returns all requests so far, in the order of their arrival, `CONNECT` among them.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// Returns `METHOD URL` of all requests so far but `CONNECT`, with URLs as in [`Server::route`].
    pub(crate) fn log(&self) -> Vec<String> {
        let requests = self.requests();
        let asked = requests.iter().filter(|request| request.method != "CONNECT");
        asked.map(|request| format!("{} {}", request.method, request.url())).collect()
    }

    /// Forgets all requests so far.
    pub(crate) fn forget(&self) {
        self.shared.requests.lock().unwrap().clear();
    }

    /// Returns how many requests were being answered at once when there were most.
    pub(crate) fn most_at_once(&self) -> usize {
        self.shared.most_open.load(Ordering::SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        // Wakes the thread that waits for clients.
        TcpStream::connect(self.address).ok();
    }
}

impl Shared {
    /// Serves one connection: one request, plain, over TLS, or in a tunnel. The URL of a request has a host only if it
    /// came through a proxy.
    fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        stream.set_nodelay(true)?;
        let mut first = [0];
        if stream.peek(&mut first)? == 0 {
            return Ok(());
        }
        if first[0] == HANDSHAKE {
            return self.serve_tls(stream, "localhost", "");
        }
        let request = Request::read(&mut stream, "")?;
        if request.method != "CONNECT" {
            return self.answer(stream, request);
        }
        let host = request.path.strip_suffix(":443").unwrap_or(&request.path).to_owned();
        // `answer` records every other request.
        self.requests.lock().unwrap().push(request);
        stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
        let name = host.rsplit_once(':').map_or(host.as_str(), |(name, _)| name);
        self.serve_tls(stream, name, &format!("https://{host}"))
    }

    fn serve_tls(&self, stream: TcpStream, name: &str, origin: &str) -> std::io::Result<()> {
        let mut stream = self.authority.accept(stream, name)?;
        let request = Request::read(&mut stream, origin)?;
        self.answer(stream, request)
    }

    fn answer(&self, mut stream: impl Read + Write, request: Request) -> std::io::Result<()> {
        let open = self.open.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_open.fetch_max(open, Ordering::SeqCst);
        self.requests.lock().unwrap().push(request.clone());
        let result = self.reply_to(&request).write(&mut stream, &request.method);
        self.open.fetch_sub(1, Ordering::SeqCst);
        result
    }

    /// The reply to a request: that of a limit first, then a demand for a login, and only then content.
    fn reply_to(&self, request: &Request) -> Reply {
        let url = request.url();
        let given = request.header("authorization");
        if let Some(limited) = self.limited.lock().unwrap().as_mut().filter(|it| url.starts_with(&it.prefix))
            && given.is_none()
            && let Some(reply) = limited.reply_to(request)
        {
            return reply;
        }
        let refused = self
            .passwords
            .lock()
            .unwrap()
            .iter()
            .any(|password| url.starts_with(&password.prefix) && given != Some(password.authorization.as_str()));
        let login = self.login.lock().unwrap();
        let is_wrong = login.is_some() && given.is_some() && given != login.as_deref();
        if refused || is_wrong {
            return Reply::status(401).header("WWW-Authenticate", "Basic realm=\"test\"");
        }
        if let Some(route) = self.routes.lock().unwrap().iter_mut().find(|route| route.url == url) {
            return if route.replies.len() > 1 { route.replies.remove(0) } else { route.replies[0].clone() };
        }
        let sites = self.sites.lock().unwrap();
        if let Some((rest, reply)) = sites.iter().find_map(|(prefix, reply)| Some((url.strip_prefix(prefix)?, reply))) {
            return reply(rest);
        }
        drop(sites);
        let repository = self.mounts.lock().unwrap().iter().find_map(|mount| {
            let path = url.split('?').next()?.strip_prefix(&mount.prefix)?;
            git::is_request(path).then(|| (mount.directory.clone(), path.to_owned()))
        });
        match repository {
            Some((directory, path)) => git::answer(&directory, &path, request),
            None => Reply::status(404).body("no such page\n"),
        }
    }
}

impl Limited {
    /// The reply to a request without a login, each of which is counted; `None` if this one is not limited, or if such
    /// a limit is not about it.
    fn reply_to(&mut self, request: &Request) -> Option<Reply> {
        self.number += 1;
        if !(self.which)(self.number - 1) {
            return None;
        }
        let wants_pack = String::from_utf8_lossy(&request.body).contains("command=fetch");
        match self.how {
            Limit::TooMany(None) => Some(Reply::status(429)),
            Limit::TooMany(Some(wait)) => Some(Reply::status(429).header("Retry-After", &wait.to_string())),
            Limit::Sentence => git::limited(request),
            Limit::Pack => wants_pack.then(|| Reply::status(401).header("WWW-Authenticate", "Basic realm=\"test\"")),
        }
    }
}
