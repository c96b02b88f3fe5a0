//! Files over HTTP, and servers that do not answer.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use super::*;
use crate::support::{Reply, Server};

#[test]
fn every_file_gets_its_verdict() {
    let sandbox = Sandbox::new();
    let server = Server::start();
    let names = ["same", "changed", "page", "empty", "missing", "gone", "huge", "login", "refused", "elsewhere"];
    let mut references = Vec::new();
    for name in names {
        server.route(&format!("/{name}.yaml"), Reply::ok(config(name)));
        references.push(format!("{}{name}.yaml", server.url()));
    }
    let released = "/released.yaml?ref=v1.2.0";
    server.route(released, Reply::ok(config("released")));
    references.push(format!("{}{}", server.url(), &released[1..]));
    let repo = locked(&sandbox, &references);
    assert!(told(&report(&repo, &[], 0)).iter().all(|one| one.starts_with("ok ")));

    let route = |name: &str, reply: Reply| server.route(&format!("/{name}.yaml"), reply);
    route("changed", Reply::ok(config("two")));
    server.route(released, Reply::ok(config("two")));
    route("page", Reply::ok("<!DOCTYPE html>\n<html>Sign in</html>\n"));
    route("empty", Reply::status(204));
    route("missing", Reply::status(404));
    route("gone", Reply::status(410));
    route("huge", Reply::ok(vec![b'#'; (64 << 20) + 1]));
    route("login", Reply::status(401));
    route("refused", Reply::status(403));
    route("elsewhere", Reply::redirect("/changed.yaml"));
    server.forget();
    let report = report(&repo, &[], 2);
    assert_eq!(server.log().len(), references.len() + 1, "each once, and a redirect");
    let host = server.url();
    let host = host.trim_start_matches("http://").trim_end_matches('/');
    let url = server.url();
    let mut expected = vec![
        "ok same.yaml".to_owned(),
        "moved changed.yaml: its content differs".to_owned(),
        "moved elsewhere.yaml: its content differs".to_owned(),
        "moved released.yaml?ref=v1.2.0: `v1.2.0` should never change, but its content differs".to_owned(),
        "moved page.yaml: it is a web page, possibly a login".to_owned(),
        format!("moved empty.yaml: cannot fetch {url}empty.yaml: the server returned an empty body"),
        format!("moved huge.yaml: cannot fetch {url}huge.yaml: the file is too large: the limit is 64.00 MiB"),
        format!("gone missing.yaml: cannot fetch {url}missing.yaml: {host} answered 404 Not Found"),
        format!("gone gone.yaml: cannot fetch {url}gone.yaml: {host} answered 410 Gone"),
        format!("unreachable login.yaml: cannot fetch {url}login.yaml: {host} answered 401 Unauthorized"),
        format!("unreachable refused.yaml: cannot fetch {url}refused.yaml: {host} answered 403 Forbidden"),
    ];
    expected.sort();
    assert_eq!(told(&report), expected);
    agrees_with_update(&repo, &report);
    let changed = &report["upstream"][0];
    let new = changed["new"].as_str().unwrap();
    assert_ne!(new.strip_prefix("sha256:"), changed["sha256"].as_str(), "{changed:#}");
    assert!(new.starts_with("sha256:"), "{changed:#}");
    assert_eq!(report["failures"].as_array().unwrap().len(), 2);
    ask(&repo, &[])
        .fails(2)
        .says(expect![[r#"
            kustomize-localize.lock:4: moved: http://127.0.0.1:…/changed.yaml was <0>, is <1>: its content differs
            kustomize-localize.lock:7: moved: http://127.0.0.1:…/elsewhere.yaml was <2>, is <1>: its content differs
            kustomize-localize.lock:10: moved: http://127.0.0.1:…/empty.yaml was <3>: cannot fetch http://127.0.0.1:…/empty.yaml: the server returned an empty body
            kustomize-localize.lock:13: gone: http://127.0.0.1:…/gone.yaml was <4>: cannot fetch http://127.0.0.1:…/gone.yaml: 127.0.0.1:… answered 410 Gone
            kustomize-localize.lock:16: moved: http://127.0.0.1:…/huge.yaml was <5>: cannot fetch http://127.0.0.1:…/huge.yaml: the file is too large: the limit is 64.00 MiB
            kustomize-localize.lock:19: unreachable: http://127.0.0.1:…/login.yaml was <6>
            kustomize-localize.lock:22: gone: http://127.0.0.1:…/missing.yaml was <7>: cannot fetch http://127.0.0.1:…/missing.yaml: 127.0.0.1:… answered 404 Not Found
            kustomize-localize.lock:25: moved: http://127.0.0.1:…/page.yaml was <8>, is <9>: it is a web page, possibly a login
            kustomize-localize.lock:28: unreachable: http://127.0.0.1:…/refused.yaml was <10>
            kustomize-localize.lock:31: moved: http://127.0.0.1:…/released.yaml?ref=v1.2.0 was <11>, is <1>: `v1.2.0` should never change, but its content differs
            kustomize-localize.lock:34: ok: http://127.0.0.1:…/same.yaml is <12>
            upstream of 11 remotes: 1 ok, 6 moved, 2 gone, 2 unreachable
              to update the lock: git kustomize-localize update
              a moved version is only updated by name, once you know why it moved: git kustomize-localize update 'http://127.0.0.1:…/released.yaml?ref=v1.2.0'
            NOT verified HEAD (<13>): 8 differences
            error: kustomize-localize.lock:19: cannot fetch http://127.0.0.1:…/login.yaml: 127.0.0.1:… answered 401 Unauthorized
              hint: check the URL; if it needs a login, store one in git's credential helper: git credential approve; it is sent only to the host of the URL, and not over plain http
            error: kustomize-localize.lock:28: cannot fetch http://127.0.0.1:…/refused.yaml: 127.0.0.1:… answered 403 Forbidden
              hint: check the URL; if it needs a login, set a credential helper for its host, whose login is sent at once: git config --global credential.https://HOST.helper HELPER; it is sent only to hosts that your own files name, and not over plain http
        "#]]);
}

#[test]
fn the_configuration_limits_files_as_for_lock() {
    let sandbox = Sandbox::new();
    let server = Server::start();
    server.route("/a.yaml", Reply::ok(config("a") + &"#".repeat(2000)));
    let repo = locked(&sandbox, &[format!("{}a.yaml", server.url())]);
    repo.decide("max-file-size: 1k\n");
    ask(&repo, &[]).fails(1).says(expect![[r#"
        kustomize-localize.lock:4: moved: http://127.0.0.1:…/a.yaml was <0>: cannot fetch http://127.0.0.1:…/a.yaml: the file is too large: the limit is 1.00 KiB
        upstream of 1 remote: 1 moved
        NOT verified HEAD (<1>): 1 difference
    "#]]);
    repo.run(&["update"]).fails(1).stderr_has("the limit is 1.00 KiB");
}

/// Returns a server that accepts connections and never answers.
fn silent() -> (TcpListener, String) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    (listener, url)
}

#[test]
fn what_cannot_be_asked_is_unreachable() {
    let sandbox = Sandbox::new();
    let server = Server::start();
    let up = upstream(&sandbox, "srv/acme/base");
    server.serve_git("/git/", &sandbox.path("srv"));
    for name in ["closed", "broken", "same"] {
        server.route(&format!("/{name}.yaml"), Reply::ok(config(name)));
    }
    let [files, git] = [server.url(), server.git_url()];
    let pin = up.id("HEAD");
    let repo = locked(
        &sandbox,
        &[
            format!("{files}closed.yaml"),
            format!("{files}broken.yaml"),
            format!("{files}same.yaml"),
            format!("{git}acme/base//?ref=main"),
            format!("{git}acme/base//?ref={pin}"),
        ],
    );
    let (listener, closed) = silent();
    drop(listener);
    server.route("/broken.yaml", Reply::status(500));
    let lock =
        repo.read("kustomize-localize.lock").replace(&format!("{files}closed.yaml"), &format!("{closed}closed.yaml"));
    repo.write("kustomize-localize.lock", lock);
    repo.commit("elsewhere");
    let output = ask(&repo, &["--format", "json"]);
    let report = parsed(output.fails(2));
    let told = told(&report);
    assert_eq!(told.len(), 5);
    assert!(told[..3].iter().all(|one| one.starts_with("ok ")), "{told:?}");
    for (index, begin) in [
        format!("unreachable broken.yaml: cannot fetch {files}broken.yaml: "),
        "unreachable closed.yaml: cannot connect to 127.0.0.1:".to_owned(),
    ]
    .iter()
    .enumerate()
    {
        assert!(told[index + 3].starts_with(begin), "no {begin}\n{told:?}");
    }
}

#[test]
fn an_interrupt_ends_it_at_once() {
    let sandbox = Sandbox::new();
    let server = Server::start();
    let up = upstream(&sandbox, "srv/acme/base");
    server.serve_git("/git/", &sandbox.path("srv"));
    server.route("/cm.yaml", Reply::ok(config("file")));
    let repo = locked(
        &sandbox,
        &[
            format!("{}cm.yaml", server.url()),
            format!("{}acme/base//?ref=main", server.git_url()),
            format!("{}acme/base//?ref={}", server.git_url(), up.id("HEAD")),
        ],
    );
    let (listener, slow) = silent();
    let lock = repo.read("kustomize-localize.lock");
    repo.write("kustomize-localize.lock", lock.replace(&server.url(), &slow));
    repo.commit("elsewhere");
    let before = repo.state();
    let running = repo.start(&["verify", "--upstream"]);
    let clients: Vec<_> = (0..2).map(|_| listener.accept().unwrap()).collect();
    let started = Instant::now();
    running.interrupt();
    running.wait().fails(130);
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    drop(clients);
    before.assert_same(&repo.state());
    assert_eq!(leftovers(&repo), crate::support::NONE);
}

#[test]
fn no_update_takes_a_page() {
    let sandbox = Sandbox::new();
    let server = Server::start();
    server.route("/a.yaml", Reply::ok(config("a")));
    let repo = locked(&sandbox, &[format!("{}a.yaml", server.url())]);
    server.route("/a.yaml", Reply::ok("<!DOCTYPE html>\n<html>Sign in</html>\n"));
    ask(&repo, &[]).fails(1).says(expect![[r#"
        kustomize-localize.lock:4: moved: http://127.0.0.1:…/a.yaml was <0>, is <1>: it is a web page, possibly a login
        upstream of 1 remote: 1 moved
        NOT verified HEAD (<2>): 1 difference
    "#]]);
    repo.run_unchanged(&["update"]).says(expect![[r#"
        kustomize-localize.lock not changed: 1 remote reference
        error: app/kustomization.yaml:2:3: resources[0]: http://127.0.0.1:…/a.yaml is an HTML page, not a file that a build can read
          hint: use the URL of the raw file; if it is a login page, the server requires credentials
        error: 1 reference could not be locked
    "#]]);
    server.route("/a.yaml", Reply::ok(config("b")));
    ask(&repo, &[]).fails(1).says(expect![[r#"
        kustomize-localize.lock:4: moved: http://127.0.0.1:…/a.yaml was <0>, is <1>: its content differs
        upstream of 1 remote: 1 moved
          to update the lock: git kustomize-localize update
        NOT verified HEAD (<2>): 1 difference
    "#]]);
}
