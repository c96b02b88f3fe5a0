//! Every promise of the client against a server on this machine.

mod redirects;
mod server;
mod tls;

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Instant;

use crate::fetch::Progress;
use crate::git::RemoteGit;
use crate::message::failure::FailureKind;

use super::*;
use server::{Reply, Server, ok, reply};

/// `u:p`, encoded.
const U_P: &str = "Basic dTpw";

/// Long enough for a busy machine, short enough to tell it from waiting for ever.
const SOON: Duration = Duration::from_secs(20);

fn bounds() -> FetchBounds {
    FetchBounds { deadline: Duration::from_secs(60), max_bytes: 1000 }
}

/// A client that asks nobody for a login.
fn client(bounds: FetchBounds) -> Client {
    asking(bounds, |url| panic!("asked for {url}"))
}

fn asking(bounds: FetchBounds, ask: impl Fn(&Url) -> Option<(String, String)> + Send + Sync + 'static) -> Client {
    let reach = Arc::new(NetworkPolicy::new(RemoteGit::default(), true));
    let patience = Patience::new(Arc::new(Progress::new("fetching", true)), 2, Duration::from_millis(2));
    Client { proxies: false, ..Client::new(bounds, patience, reach, Box::new(ask)) }
}

/// Gets a URL that the user names.
fn get_with(client: &Client, url: &str) -> Result<Vec<u8>> {
    client.reach.add_user_url(url);
    client.get(url)
}

fn get(url: &str) -> Result<Vec<u8>> {
    get_with(&client(bounds()), url)
}

fn said(result: Result<Vec<u8>>) -> String {
    result.unwrap_err().message
}

fn text(result: Result<Vec<u8>>) -> String {
    String::from_utf8(result.unwrap()).unwrap()
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
    assert_eq!(body, b"a: 1\n");
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
    let ask = || asking(bounds(), |_| Some(("u".to_owned(), "p".to_owned())));
    assert_eq!(text(get_with(&ask(), &server.url("/f"))), "secret\n");
    assert_eq!(server.requests().len(), 2);
    // Not for a host that only an upstream names.
    assert!(said(ask().get(&server.url("/f"))).ends_with("answered 401 Unauthorized"));
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn retries_end() {
    let server = Server::http(|_, _| reply("503 Service Unavailable", &[], "later"));
    let failure = get(&server.url("/f")).unwrap_err();
    assert!(failure.message.ends_with("answered 503 Service Unavailable"), "{failure:?}");
    assert_eq!(failure.kind, FailureKind::NoConnection);
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

/// Gives nothing to anybody without the login `u:p`, but asks for none, and nothing to other logins.
fn limiting(_: usize, request: &server::Request) -> Reply {
    match request.authorization() {
        Some(U_P) => ok("given\n"),
        Some(_) => reply("401 Unauthorized", &[], "no"),
        None => reply("429 Too Many Requests", &["Retry-After: 3600"], "slow down"),
    }
}

#[test]
fn a_wait_beyond_the_deadline_is_not_begun() {
    let server = Server::http(limiting);
    let start = Instant::now();
    let failure = get_with(&asking(bounds(), |_| None), &server.url("/f")).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Limited);
    let said = "is rate limiting: it answered 429 Too Many Requests; retry after 3600 s";
    assert!(failure.message.ends_with(said), "{failure:?}");
    assert!(start.elapsed() < SOON);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn the_helper_is_asked_where_waiting_does_not_help() {
    let server = Server::http(limiting);
    let with = |password: &'static str| asking(bounds(), move |_| Some(("u".to_owned(), password.to_owned())));
    let client = with("p");
    assert_eq!(text(get_with(&client, &server.url("/f"))), "given\n");
    assert_eq!(server.requests().len(), 2);
    // The next request to this host has it at once.
    assert_eq!(text(get_with(&client, &server.url("/g"))), "given\n");
    assert_eq!(server.requests().len(), 3);
    // A login that is refused says nothing about the file.
    assert_eq!(get_with(&with("wr0ng"), &server.url("/f")).unwrap_err().kind, FailureKind::Limited);
    // Nor is one sent where the user does not name the host, or where another host limits.
    assert_eq!(with("p").get(&server.url("/f")).unwrap_err().kind, FailureKind::Limited);
    let target = server.url("/f");
    let other = Server::http(move |_, _| server::redirect(&target));
    assert_eq!(get_with(&with("p"), &other.url("/f")).unwrap_err().kind, FailureKind::Limited);
    let sent = server.requests().iter().filter(|request| request.authorization().is_some()).count();
    assert_eq!((sent, server.requests().len()), (3, 7));
    assert_eq!(other.requests().len(), 1);
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
        assert_eq!(error.kind, FailureKind::NoConnection);
        assert!(error.message.contains("truncated or corrupt after 4 bytes"), "{error:?}");
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
        let client = client(FetchBounds { deadline, ..bounds() });
        let start = Instant::now();
        let failure = get_with(&client, &server.url("/f")).unwrap_err();
        assert!(failure.message.ends_with(": timed out after 0.3 s"), "{failure:?}");
        assert_eq!(failure.kind, FailureKind::NoAnswer);
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
        let failure = get(&server.url("/f")).unwrap_err();
        assert!(failure.message.ends_with("the file is too large: the limit is 1000 B"), "{failure:?}");
        assert_eq!(failure.kind, FailureKind::Unusable);
        assert_eq!(server.requests().len(), 1);
    }
    let exact = Server::http(|_, _| ok(&"x".repeat(1000)));
    assert_eq!(text(get(&exact.url("/f"))).len(), 1000);

    let large = client(FetchBounds { max_bytes: 40_000, ..bounds() });
    let body = get_with(&large, &bomb.url("/f"));
    assert_eq!(body.unwrap(), vec![0; 40_000]);
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
    let client = client(FetchBounds { max_bytes: 100_000, ..bounds() });
    let error = get_with(&client, &server.url("/f")).unwrap_err();
    assert_eq!(error.kind, FailureKind::NoConnection);
}

#[test]
fn a_refused_connection_is_tried_again_and_named() {
    let port = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let url = format!("http://u:hunter2@127.0.0.1:{port}/f?token=hunter3");
    let error = get(&url).unwrap_err();
    assert!(error.message.starts_with(&format!("cannot connect to 127.0.0.1:{port}: ")), "{error:?}");
    assert!(!format!("{error:?}").contains("hunter"), "{error:?}");
}

#[test]
fn an_unknown_host_is_named() {
    // A label of more than 63 characters: resolvers refuse it without asking anybody.
    let host = format!("{}.localhost", "x".repeat(64));
    let error = get(&format!("http://{host}/f")).unwrap_err();
    assert_eq!(error.kind, FailureKind::NoConnection);
    assert!(error.message.starts_with(&format!("could not resolve {host}: ")), "{error:?}");
}

#[test]
fn a_deadline_may_be_without_end() {
    let server = Server::http(|_, _| ok("a\n"));
    let endless = client(FetchBounds { deadline: Duration::MAX, ..bounds() });
    assert_eq!(text(get_with(&endless, &server.url("/f"))), "a\n");
}

#[test]
fn a_failure_names_the_url_without_its_secrets() {
    let server = Server::http(|_, _| reply("404 Not Found", &[], ""));
    let failure = get(&server.url_as("me:hunter2", "/a.yaml?token=hunter3")).unwrap_err();
    assert!(failure.message.starts_with("cannot fetch http://"), "{failure:?}");
    assert!(failure.message.contains("/a.yaml"), "{failure:?}");
    assert!(failure.message.ends_with("answered 404 Not Found"), "{failure:?}");
    assert_eq!(failure.kind, FailureKind::NoRepository);
    assert!(!format!("{failure:?}").contains("hunter"), "{failure:?}");
}

#[test]
fn the_login_of_a_url_is_sent_and_cleartext_asks_for_no_other() {
    let first = |url: &str| split_login(url).unwrap().1.map(|login| (login.user, login.password));
    let login = |user: &str, password: Option<&str>| Some((user.to_owned(), password.map(str::to_owned)));
    for (url, expected) in [
        ("https://u%40x:p%3a%2F@example.com/f", login("u@x", Some("p:/"))),
        ("https://token@example.com/f", login("token", None)),
        ("https://:p@example.com/f", login("", Some("p"))),
        ("http://u:p@example.com/f", login("u", Some("p"))),
        ("https://other.example/f", None),
    ] {
        assert_eq!(first(url), expected, "{url}");
    }
    let client = asking(bounds(), |url| {
        assert_eq!(url.query(), None);
        Some((url.username().to_owned(), "p".to_owned()))
    });
    let asked = |url: &str| {
        let (url, login) = split_login(url).unwrap();
        {
            client.reach.add_user_url(url.as_str());
            client.login(url.as_str(), &url, login.as_ref())
        }
        .map(|login| login.user)
    };
    assert_eq!(asked("https://example.com/f").as_deref(), Some(""));
    assert_eq!(asked("https://me@example.com/f?token=hunter2#x").as_deref(), Some("me"));
    assert!(asked("http://127.0.0.1/f").is_some());
    assert!(asked("http://[::1]:80/f").is_some());
    assert!(asked("http://LOCALHOST/f").is_some());
    assert!(asked("http://example.com/f").is_none());
    assert!(asked("http://localhost.example.com/f").is_none());
    assert!(asked("http://127.0.0.1.example.com/f").is_none());
    assert!(asked("https://u:p@example.com/f").is_none());
}

#[test]
fn only_http_urls_are_accepted() {
    for bad in [
        "",
        "file:///etc/passwd",
        "ftp://h/f",
        "https://",
        "https:///",
        "https://h/a\nb",
        "\thttps://h/",
        "github.com/o/r",
        "https://h:99999/",
    ] {
        assert!(split_login(bad).is_err(), "{bad:?}");
    }
    assert_eq!(split_login("HTTP://u:p@Example.COM:80/a?b=c#d").unwrap().0.as_str(), "http://example.com/a?b=c");
}
