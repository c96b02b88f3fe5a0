//! Every promise of the client against a server on this machine.

mod redirects;
mod server;
mod tls;

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Instant;

use super::*;
use server::{Reply, Server, ok, reply};

/// `u:p`, encoded.
const U_P: &str = "Basic dTpw";

/// Long enough for a busy machine, short enough to tell it from waiting for ever.
const SOON: Duration = Duration::from_secs(20);

fn options() -> Options {
    Options { deadline: Duration::from_secs(60), max_bytes: 1000, retries: 2, first_delay: Duration::from_millis(2) }
}

fn nobody() -> Box<AskCredentials> {
    Box::new(|url| panic!("asked for {url}"))
}

fn client(options: Options) -> Client {
    Client::with(options, nobody(), Arc::default(), Surroundings::default())
}

fn get(url: &str) -> Result<Body, HttpError> {
    client(options()).get(url, Access::FREE)
}

fn text(result: Result<Body, HttpError>) -> String {
    String::from_utf8(result.unwrap().bytes).unwrap()
}

/// Accepts only `u:p`.
fn guarded(_: usize, request: &server::Request) -> Reply {
    match request.authorization() {
        Some(U_P) => ok("secret\n"),
        _ => reply("401 Unauthorized", &["WWW-Authenticate: Basic realm=x"], "no"),
    }
}

#[test]
fn a_file_is_fetched() {
    let server = Server::http(|_, _| ok("a: 1\n"));
    let body = get(&server.url("/a.yaml?x=1#fragment")).unwrap();
    assert_eq!(body.bytes, b"a: 1\n");
    let requests = server.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].path, "/a.yaml?x=1");
    assert_eq!(requests[0].authorization(), None);
    let agent = requests[0].header("user-agent").unwrap();
    assert_eq!(agent, concat!("git-kustomize-localize/", env!("CARGO_PKG_VERSION")));
}

#[test]
fn the_helper_is_asked_where_a_login_is_wanted() {
    let server = Server::http(guarded);
    let ask = Box::new(|_: &Url| Some(("u".to_owned(), "p".to_owned())));
    let client = Client::with(options(), ask, Arc::default(), Surroundings::default());
    assert_eq!(text(client.get(&server.url("/f"), Access::FREE)), "secret\n");
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn retries_end() {
    let server = Server::http(|_, _| reply("503 Service Unavailable", &[], "later"));
    assert_eq!(get(&server.url("/f")).unwrap_err().is_status(), Some(503));
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn retry_after_is_respected() {
    let server = Server::http(|number, _| match number {
        0 => reply("429 Too Many Requests", &["Retry-After: 1"], "slow down"),
        _ => ok("now\n"),
    });
    let start = Instant::now();
    assert_eq!(text(get(&server.url("/f"))), "now\n");
    assert!(start.elapsed() >= Duration::from_secs(1));
}

#[test]
fn a_wait_beyond_the_deadline_is_not_begun() {
    let server = Server::http(|_, _| reply("429 Too Many Requests", &["Retry-After: 3600"], "slow down"));
    let start = Instant::now();
    let retry_after = Some(Duration::from_secs(3600));
    let kind = get(&server.url("/f")).unwrap_err().kind;
    assert_eq!(kind, Kind::Status { code: 429, redirected: false, retry_after });
    assert!(start.elapsed() < SOON);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_truncated_body_is_tried_again_and_never_taken() {
    let length = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\nConnection: close\r\n\r\nhalf".to_vec();
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n\
                    4\r\nhalf\r\n"
        .to_vec();
    for broken in [length, chunked] {
        let server = Server::http(move |_, _| Reply::Raw(broken.clone()));
        let error = get(&server.url("/f")).unwrap_err();
        assert_eq!(error.kind, Kind::Connection);
        assert!(error.to_string().contains("ended early or is damaged after 4 bytes"), "{error:?}");
        assert_eq!(server.requests().len(), 3);
    }
    let server = Server::http(|number, _| match number {
        0 => Reply::Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf".to_vec()),
        1 => Reply::Raw(Vec::new()),
        _ => ok("whole\n"),
    });
    assert_eq!(text(get(&server.url("/f"))), "whole\n");
}

#[test]
fn a_server_that_drips_is_cut_at_the_deadline() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 900\r\n";
    for start in [format!("{head}\r\n"), format!("{head}X-Slow: ")] {
        let server = Server::http(move |_, _| Reply::Drip(start.clone().into_bytes()));
        let deadline = Duration::from_millis(300);
        let client = client(Options { deadline, ..options() });
        let start = Instant::now();
        let error = client.get(&server.url("/f"), Access::FREE);
        assert_eq!(error, Err(HttpError::deadline(deadline)));
        assert!(start.elapsed() >= deadline);
        assert!(start.elapsed() < Duration::from_secs(10));
    }
}

#[test]
fn the_size_is_counted_after_decompression() {
    let announced = Server::http(|_, _| ok(&"x".repeat(1001)));
    let endless = Server::http(|_, _| {
        let mut bytes = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n".to_vec();
        bytes.resize(100_000, b'x');
        Reply::Raw(bytes)
    });
    let bomb = Server::http(|_, request| {
        assert_eq!(request.header("accept-encoding"), Some("gzip"));
        reply("200 OK", &["Content-Encoding: gzip"], zeros())
    });
    for server in [&announced, &endless, &bomb] {
        assert_eq!(get(&server.url("/f")), Err(HttpError::too_large(1000)));
        assert_eq!(server.requests().len(), 1);
    }
    let exact = Server::http(|_, _| ok(&"x".repeat(1000)));
    assert_eq!(text(get(&exact.url("/f"))).len(), 1000);

    let large = client(Options { max_bytes: 40_000, ..options() });
    let body = large.get(&bomb.url("/f"), Access::FREE);
    assert_eq!(body.unwrap().bytes, vec![0; 40_000]);
}

/// 40,000 zero bytes, as gzip.
fn zeros() -> Vec<u8> {
    let mut bytes =
        vec![31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 237, 193, 49, 1, 0, 0, 0, 194, 160, 245, 79, 237, 101, 11, 160];
    bytes.resize(63, 0);
    bytes.extend([128, 27, 121, 68, 169, 230, 64, 156, 0, 0]);
    bytes
}

#[test]
fn damaged_compression_is_an_error() {
    let mut damaged = zeros();
    damaged.truncate(60);
    let server = Server::http(move |_, _| reply("200 OK", &["Content-Encoding: gzip"], &damaged));
    let client = client(Options { max_bytes: 100_000, ..options() });
    let error = client.get(&server.url("/f"), Access::FREE).unwrap_err();
    assert_eq!(error.kind, Kind::Connection);
}

#[test]
fn a_refused_connection_is_tried_again_and_named() {
    let port = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let url = format!("http://u:hunter2@127.0.0.1:{port}/f?token=hunter3");
    let error = get(&url).unwrap_err();
    assert!(error.to_string().starts_with(&format!("cannot connect to 127.0.0.1:{port}: ")), "{error:?}");
    let shown = format!("{error:?} {:?}", error.clone().into_failure(&url));
    assert!(!shown.contains("hunter"), "{shown}");
}

#[test]
fn an_unknown_host_is_named() {
    // A label of more than 63 characters: resolvers refuse it without asking anybody.
    let host = format!("{}.localhost", "x".repeat(64));
    let error = get(&format!("http://{host}/f")).unwrap_err();
    assert_eq!(error.kind, Kind::Dns);
    assert!(error.to_string().contains(&host), "{error:?}");
}

#[test]
fn options_must_leave_room() {
    let size = Options { max_bytes: 0, ..options() };
    assert!(Client::new(size, nobody(), Arc::default()).is_err());
    assert!(Client::new(Options::default(), nobody(), Arc::default()).is_ok());

    let server = Server::http(|_, _| ok("a\n"));
    let endless = client(Options { deadline: Duration::MAX, ..options() });
    let body = endless.get(&server.url("/f"), Access::FREE);
    assert_eq!(text(body), "a\n");
}
