//! Where redirects lead, and what does not go along.

use std::sync::{Arc, Mutex};

use super::server::{Server, ok, redirect, reply};
use super::*;

#[test]
fn redirects_are_followed_to_their_end() {
    let server = Server::http(|_, request| match request.path.as_str() {
        "/1" => reply("301 Moved", &["Location: /2"], ""),
        "/2" => redirect("3?x=y"),
        "/3?x=y" => reply("307 Temporary", &["Location: //127.0.0.1:PORT/4"], ""),
        _ => ok("end\n"),
    });
    // Relative to the root, then to the path; then an invalid port.
    assert!(said(get(&server.url("/1"))).ends_with("the server redirects to an invalid URL"));
    assert_eq!(server.requests().len(), 3);

    let port = Server::http(|_, _| ok("end\n"));
    let target = port.url("/4");
    let server = Server::http(move |_, request| match request.path.as_str() {
        "/1" => reply("308 Permanent", &["Location: /2"], ""),
        _ => redirect(&target),
    });
    assert_eq!(text(get(&server.url("/1"))), "end\n");
}

#[test]
fn a_redirect_loop_ends() {
    let server = Server::http(|_, _| redirect("/f"));
    assert!(said(get(&server.url("/f"))).ends_with("the server redirects more than 10 times"));
    assert_eq!(server.requests().len(), 11);

    let ten = Server::http(|number, _| match number {
        0..10 => redirect("/f"),
        _ => ok("end\n"),
    });
    assert_eq!(text(get(&ten.url("/f"))), "end\n");
}

#[test]
fn a_redirect_out_of_http_is_an_error() {
    for target in ["file:///etc/passwd", "ftp://127.0.0.1/f", "data:,x", "javascript:1"] {
        let server = Server::http(move |_, _| redirect(target));
        let said = said(get(&server.url("/f")));
        assert!(said.ends_with("the server redirects to a URL that is not http or https"), "{target}: {said}");
    }
}

#[test]
fn credentials_stay_where_they_were_meant_for() {
    let other = Server::http(|_, request| match request.path.as_str() {
        "/denied?sig=hunter2" => reply("401 Unauthorized", &[], "no"),
        _ => ok("end\n"),
    });
    let away = other.url("/f");
    let denied = other.url("/denied?sig=hunter2");
    let with_login = other.url_as("x:y", "/f");
    let server = Server::http(move |_, request| match request.path.as_str() {
        "/same" => redirect("/here"),
        "/away" => redirect(&away),
        "/denied" => redirect(&denied),
        "/login" => redirect(&with_login),
        _ => ok("here\n"),
    });
    let login = Some(U_P.to_owned());
    let client = client(bounds());

    assert_eq!(text(get_with(&client, &server.url_as("u:p", "/same"))), "here\n");
    assert_eq!(server.authorizations(), [login.clone(), login.clone()]);
    // Another port is another server: neither the URL's login nor the helper.
    for url in [server.url_as("u:p", "/away"), server.url_as("u:p", "/login")] {
        assert_eq!(text(get_with(&client, &url)), "end\n");
    }
    let url = server.url_as("u:p", "/denied");
    let error = get_with(&client, &url).unwrap_err();
    assert!(error.message.ends_with("answered 401 Unauthorized"), "{error:?}");
    assert!(!format!("{error:?}").contains("hunter"), "{error:?}");
    assert_eq!(other.authorizations(), [None, None, None]);
    assert!(server.authorizations().iter().all(|sent| *sent == login));
}

#[test]
fn credentials_do_not_come_back() {
    let back = Arc::new(Mutex::new(String::new()));
    let target = Arc::clone(&back);
    let other = Server::http(move |_, _| redirect(&target.lock().unwrap()));
    let away = other.url("/f");
    let server = Server::http(move |_, request| match request.path.as_str() {
        "/away" => redirect(&away),
        _ => ok("back\n"),
    });
    *back.lock().unwrap() = server.url("/back");
    assert_eq!(text(get(&server.url_as("u:p", "/away"))), "back\n");
    assert_eq!(server.authorizations(), [Some(U_P.to_owned()), None]);
}
