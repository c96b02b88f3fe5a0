//! Servers that limit requests without a login, as GitHub does since September 2026.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

use super::{naming, served};
use crate::support::{Limit, Reply, Repo, Sandbox, Server, Transcript, config_map, rows};

/// Every way to limit a git that has no login, the one first that takes no time.
const ALL: [Limit; 3] = [Limit::TooMany(Some(3600)), Limit::Sentence, Limit::Pack];

/// Returns a repository that locked a root and a file of a server, and committed that.
fn locked() -> (Sandbox, Server, Repo, Repo) {
    let (sandbox, server, up, url) = served();
    server.route("/files/cm.yaml", Reply::ok(config_map("file")));
    let work = naming(&sandbox, &[format!("{url}//base?ref=main"), format!("{}files/cm.yaml", server.url())]);
    work.run(&["lock"]).success();
    work.commit("locked");
    (sandbox, server, up, work)
}

/// Limits from now on, after everything that was fetched is forgotten.
fn limit(sandbox: &Sandbox, server: &Server, prefix: &str, how: Limit, which: impl Fn(usize) -> bool + Send + 'static) {
    let _ = fs::remove_dir_all(sandbox.path("cache"));
    server.forget();
    server.limit(prefix, how, which);
}

/// Names one more ref in the working tree, which the lock does not hold.
fn also(work: &Repo, server: &Server, reference: &str) {
    let text = work.read("app/kustomization.yaml");
    work.write("app/kustomization.yaml", format!("{text}- {}acme/base.git//base?ref={reference}\n", server.git_url()));
}

/// Lets git know a login for every host.
fn log_in(sandbox: &Sandbox, password: &str) {
    let answer = format!("test \"$1\" = get && printf 'username=me\\npassword={password}\\n'");
    sandbox.script("git-credential-any", &answer);
    sandbox.configure("credential.helper", "any");
}

#[test]
fn being_limited_is_an_outage_that_loses_nothing() {
    let (sandbox, server, up, work) = locked();
    up.write("base/cm.yaml", config_map("two"));
    up.commit("two");
    let lock = work.read("kustomize-localize.lock");
    also(&work, &server, "v1");
    for (number, how) in ALL.into_iter().enumerate() {
        // The others would say it again, and it takes its time where the server does not say for how long.
        let commands = [(&["lock"][..], 1), (&["update"], 1), (&["branch"], 2), (&["verify", "--upstream"], 2)];
        for (command, status) in commands.into_iter().take(if number == 0 { 4 } else { 1 }) {
            limit(&sandbox, &server, "/", how, |_| true);
            let output = work.run(command);
            output.fails(status);
            let all = format!("{}{}", output.stdout, output.stderr);
            assert!(all.contains("is rate limiting: "), "{how:?} {command:?}: {output:?}");
            for wrong in ["could not read Username", "is private", "gone", "allow:", "no ref"] {
                assert!(!all.contains(wrong), "{how:?} {command:?}: {wrong}: {output:?}");
            }
            assert_eq!(work.read("kustomize-localize.lock"), lock, "{how:?} {command:?}");
        }
    }
    // What one server gives is taken, and what another one keeps back is kept.
    limit(&sandbox, &server, "/files/", Limit::TooMany(Some(3600)), |_| true);
    work.run(&["update"]).fails(1).says(expect![[r#"
        wrote kustomize-localize.lock: 3 remote references
          moved http://127.0.0.1:…/git/acme/base.git?ref=main <0> -> <1>
            … days old
            <1> two
          added http://127.0.0.1:…/git/acme/base.git?ref=v1 <0>
            … days old
          to stage it: git add -f -- :/kustomize-localize.lock
        error: app/kustomization.yaml:3:3: resources[1]: cannot fetch http://127.0.0.1:…/files/cm.yaml: 127.0.0.1:… is rate limiting: it answered 429 Too Many Requests; retry after 3600 s
          hint: try again later, or log in for a higher limit: store a login for 127.0.0.1:… in git's credential helper, or set git's `http.https://127.0.0.1:…/.extraHeader`
        error: 1 reference could not be locked
    "#]]);
    let now = work.read("kustomize-localize.lock");
    assert!(now.contains(&up.id("HEAD")) && !lock.contains(&up.id("HEAD")), "{now}");
    let file = |lock: &str| lock.lines().find(|line| line.contains("sha256: ")).unwrap().to_owned();
    assert_eq!(file(&now), file(&lock));
}

#[test]
fn what_a_server_gives_after_a_while_is_waited_for() {
    for how in [Limit::TooMany(Some(1)), Limit::Sentence, Limit::Pack] {
        let (sandbox, server, _up, work) = locked();
        // Two starts of git, and the file once or twice.
        limit(&sandbox, &server, "/", how, |number| number < 4);
        let started = Instant::now();
        work.run(&["branch"]).success();
        if matches!(how, Limit::TooMany(Some(_))) {
            assert!(started.elapsed() >= Duration::from_secs(1));
        }
        let sent = |server: &Server| server.requests().iter().any(|it| it.header("authorization").is_some());
        assert!(!sent(&server), "there is no login");
    }
}

#[test]
fn the_users_login_is_sent_once_waiting_did_not_help() {
    let mut transcript = Transcript::default();
    for how in ALL {
        let (sandbox, server, _up, work) = locked();
        let calls = super::git::count_git(&sandbox);
        log_in(&sandbox, "s3cr3t");
        let commands = [&["branch"][..], &["update"], &["verify", "--upstream"]];
        // Each waits where the server does not say for how long.
        for command in rows(commands, if matches!(how, Limit::Sentence) { 3 } else { 1 }) {
            limit(&sandbox, &server, "/", how, |_| true);
            transcript.add(work.run(command).success());
            let requests = server.requests();
            assert!(requests[0].header("authorization").is_none(), "{how:?}");
            let is_limited = !matches!((how, command), (Limit::Pack, ["verify", ..]));
            let is_sent = requests.iter().any(|it| it.header("authorization").is_some());
            assert_eq!(is_sent, is_limited, "{how:?} {command:?}");
            assert!(requests.iter().all(|it| it.headers("authorization") < 2), "{how:?}");
        }
        let calls = fs::read_to_string(calls).unwrap();
        assert!(!calls.contains("s3cr3t") && !calls.contains("Authorization"), "{calls}");
        // A server that gives everything gets none.
        limit(&sandbox, &server, "/", how, |_| false);
        work.run(&["update"]).success();
        assert!(server.requests().iter().all(|it| it.header("authorization").is_none()), "{how:?}");
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize branch --no-verify
        localized the repository on branch localized/main (<0>): 6 files written, 2 references rewritten, 0 removed
          added http://127.0.0.1:…/files/cm.yaml <1>
          added http://127.0.0.1:…/git/acme/base.git?ref=main <2>
          not verified: --no-verify
          to look at it: git show --stat <0>
        $ git kustomize-localize update
        nothing to do: kustomize-localize.lock has 2 remote references
        $ git kustomize-localize verify --upstream
        kustomize-localize.lock:4: ok: http://127.0.0.1:…/files/cm.yaml is <0>
        kustomize-localize.lock:7: ok: http://127.0.0.1:…/git/acme/base.git?ref=main is <1>
        upstream of 2 remotes: 2 ok
        verified HEAD (<2>): as locked
        $ git kustomize-localize branch --no-verify
        localized the repository on branch localized/main (<0>): 6 files written, 2 references rewritten, 0 removed
          added http://127.0.0.1:…/files/cm.yaml <1>
          added http://127.0.0.1:…/git/acme/base.git?ref=main <2>
          not verified: --no-verify
          to look at it: git show --stat <0>
        $ git kustomize-localize update
        nothing to do: kustomize-localize.lock has 2 remote references
        $ git kustomize-localize verify --upstream
        kustomize-localize.lock:4: ok: http://127.0.0.1:…/files/cm.yaml is <0>
        kustomize-localize.lock:7: ok: http://127.0.0.1:…/git/acme/base.git?ref=main is <1>
        upstream of 2 remotes: 2 ok
        verified HEAD (<2>): as locked
    "#]]);
}

/// Returns what the requests for repositories (true) or files had for a login, each once.
fn sent(server: &Server, git: bool) -> BTreeSet<Option<String>> {
    let requests = server.requests().into_iter().filter(|it| it.url().starts_with("/git/") == git);
    requests.map(|it| it.header("authorization").map(str::to_owned)).collect()
}

#[test]
fn a_helper_for_a_host_is_asked_before_the_first_request() {
    let login = Some("Basic bWU6czNjcjN0".to_owned());
    let (sandbox, server, _up, work) = locked();
    let calls = super::git::count_git(&sandbox);
    let asked = sandbox.path("asked");
    let script = format!(
        "(cat; git config credential.interactive) >>'{}'\ntest \"$1\" = get && printf 'username=me\\npassword=s3cr3t\\n'",
        asked.display()
    );
    sandbox.script("git-credential-any", &script);
    let unconfigured = fs::read(sandbox.path("gitconfig")).unwrap();
    let [host, other] = [server.url(), server.url().replace("127.0.0.1", "localhost")];
    let base = format!("{}acme/base.git", server.git_url());
    let (none, own) = ([None].into(), [login].into());
    // The settings; what repositories and files get then.
    let mut transcript = Transcript::default();
    for (settings, git, file) in [
        (&[("helper", "any")][..], &none, &none),
        (&[(&*format!("{host}.helper"), "any")], &own, &own),
        // Of one repository.
        (&[(&*format!("{base}.helper"), "any")], &own, &none),
        (&[("helper", "any"), (&*format!("{host}.useHttpPath"), "true")], &own, &own),
        (&[("helper", "any"), (&*format!("{host}.useHttpPath"), "false")], &none, &none),
        (&[("helper", "any"), ("useHttpPath", "true")], &none, &none),
        // Taken back.
        (&[(&*format!("{host}.helper"), "any"), (&*format!("{host}.helper"), "")], &none, &none),
        // Of others.
        (&[(&*format!("{other}.helper"), "any")], &none, &none),
        (&[(&*format!("{base}x.helper"), "any")], &none, &none),
    ] {
        for (key, value) in settings {
            sandbox.configure(&format!("credential.{key}"), value);
        }
        limit(&sandbox, &server, "/", Limit::Sentence, |_| false);
        let _ = fs::remove_file(&asked);
        transcript.add(work.run(&["update"]).success());
        assert_eq!([&sent(&server, true), &sent(&server, false)], [git, file], "{settings:?}");
        assert!(server.requests().iter().all(|it| it.headers("authorization") < 2), "{settings:?}");
        let told = fs::read_to_string(&asked).unwrap_or_default();
        assert!(told.is_empty() || told.contains("\nfalse\n"), "it may ask nobody: {told}");
        let has_path = told.contains("path=git/acme/base.git\n") && told.contains("path=files/cm.yaml\n");
        assert_eq!(has_path, git == &own && settings[1..].iter().any(|it| it.1 == "true"), "{settings:?} {told}");
        fs::write(sandbox.path("gitconfig"), &unconfigured).unwrap();
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize update
        nothing to do: kustomize-localize.lock has 2 remote references
    "#]]);
    let calls = fs::read_to_string(calls).unwrap();
    assert!(!calls.contains("s3cr3t") && !calls.contains("bWU6"), "{calls}");
}

#[test]
fn a_redirect_takes_no_login_to_a_host_with_a_helper() {
    let (sandbox, server, _up, work) = locked();
    log_in(&sandbox, "s3cr3t");
    let other = server.url().replace("127.0.0.1", "localhost");
    for host in [&server.url(), &other] {
        sandbox.configure(&format!("credential.{host}.helper"), "any");
    }
    server.route("/files/cm.yaml", Reply::redirect(&format!("{other}moved.yaml")));
    server.route("/moved.yaml", Reply::ok(config_map("moved")));
    work.decide("allow-private: true\n");
    limit(&sandbox, &server, "/", Limit::Sentence, |_| false);
    work.run(&["update"]).success();
    let requests = server.requests();
    let logins = |path: &str| {
        requests.iter().filter(|it| it.path == path).map(|it| it.headers("authorization")).collect::<Vec<_>>()
    };
    assert_eq!((logins("/files/cm.yaml"), logins("/moved.yaml")), (vec![1], vec![0]));
}

#[test]
fn a_header_of_the_user_goes_before_a_helper() {
    let (sandbox, server, _up, work) = locked();
    log_in(&sandbox, "s3cr3t");
    sandbox.configure(&format!("credential.{}.helper", server.url()), "any");
    sandbox.configure(&format!("http.{}.extraHeader", server.url()), "Authorization: Basic b3duOm93bg==");
    limit(&sandbox, &server, "/", Limit::Sentence, |_| false);
    work.run(&["update"]).success();
    assert_eq!(sent(&server, true), [Some("Basic b3duOm93bg==".to_owned())].into());
    assert!(server.requests().iter().all(|it| it.headers("authorization") < 2));
}

#[test]
fn what_is_public_is_fetched_although_a_login_has_expired() {
    let (sandbox, server, up, work) = locked();
    server.refuse_other_logins("me", "s3cr3t");
    let asked = sandbox.path("asked");
    let script = format!("echo $1 >>'{}'; test $1 = get && printf 'username=me\\npassword=wr0ng\\n'", asked.display());
    sandbox.script("git-credential-any", &script);
    sandbox.configure(&format!("credential.{}.helper", server.url()), "any");
    up.write("base/cm.yaml", config_map("two"));
    up.commit("two");
    limit(&sandbox, &server, "/", Limit::Sentence, |_| false);
    work.run(&["update"]).success().says(expect![[r#"
        wrote kustomize-localize.lock: 2 remote references
          moved http://127.0.0.1:…/git/acme/base.git?ref=main <0> -> <1>
            … days old
            <1> two
          to stage it: git add -f -- :/kustomize-localize.lock
    "#]]);
    assert!(work.read("kustomize-localize.lock").contains(&up.id("HEAD")));
    assert!(server.requests().iter().any(|it| it.header("authorization").is_some()));
    let asked = fs::read_to_string(asked).unwrap();
    assert!(asked.lines().all(|line| line == "get"), "the login may be good for something else: {asked}");
    // It is refused once more where nothing is public.
    server.require_password("/", "me", "s3cr3t");
    work.run(&["update"])
        .fails(1)
        .says(expect![[r#"
            kustomize-localize.lock not changed: 2 remote references
            error: app/kustomization.yaml:2:3: resources[0]: could not fetch http://127.0.0.1:…/git/acme/base.git: Authentication failed for 'http://127.0.0.1:…/git/acme/base.git/'
              hint: the server rejected the credentials: make `git ls-remote` of that URL work, with a credential helper, an ssh key, or `url.<base>.insteadOf`
            error: app/kustomization.yaml:3:3: resources[1]: cannot fetch http://127.0.0.1:…/files/cm.yaml: 127.0.0.1:… answered 401 Unauthorized
              hint: check the URL; if it needs a login, store one in git's credential helper: git credential approve; it is sent only to the host of the URL, and not over plain http
            error: 2 references could not be locked
        "#]]);
}

#[test]
fn a_server_that_answers_every_second_request_gives_all_to_a_login() {
    let (sandbox, server, _up, work) = locked();
    limit(&sandbox, &server, "/git/", Limit::TooMany(None), |number| number % 2 == 1);
    // One fetch of git is three requests in a row.
    work.run(&["branch"])
        .fails(2)
        .says(expect![[r#"
            error: app/kustomization.yaml:2:3: resources[0]: could not fetch http://127.0.0.1:…/git/acme/base.git: 127.0.0.1:… is rate limiting: it answered 429
              hint: try again later, or log in for a higher limit: store a login for 127.0.0.1:… in git's credential helper, or set git's `http.https://127.0.0.1:…/.extraHeader`
        "#]]);
    log_in(&sandbox, "s3cr3t");
    work.run(&["branch"]).success();
}

#[test]
fn a_login_that_is_no_good_does_not_hide_why_it_was_sent() {
    let (sandbox, server, _up, work) = locked();
    server.refuse_other_logins("me", "s3cr3t");
    log_in(&sandbox, "wr0ng");
    let mut transcript = Transcript::default();
    for (how, count) in [(Limit::TooMany(Some(3600)), 2), (Limit::Pack, 1)] {
        limit(&sandbox, &server, "/", how, |_| true);
        let output = work.run(&["update"]);
        transcript.add(output.fails(1));
        assert_eq!(output.stderr.matches("is rate limiting: it ").count(), count, "{how:?} {output:?}");
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize update
        kustomize-localize.lock not changed: 2 remote references
        error: app/kustomization.yaml:2:3: resources[0]: could not fetch http://127.0.0.1:…/git/acme/base.git: 127.0.0.1:… is rate limiting: it answered 429; retry after 3600 s
        error: app/kustomization.yaml:3:3: resources[1]: cannot fetch http://127.0.0.1:…/files/cm.yaml: 127.0.0.1:… is rate limiting: it answered 429 Too Many Requests; retry after 3600 s
          hint: try again later, or log in for a higher limit: store a login for 127.0.0.1:… in git's credential helper, or set git's `http.https://127.0.0.1:…/.extraHeader`
        error: 2 references could not be locked
        $ git kustomize-localize update
        kustomize-localize.lock not changed: 2 remote references
        error: app/kustomization.yaml:2:3: resources[0]: could not fetch http://127.0.0.1:…/git/acme/base.git: 127.0.0.1:… is rate limiting: it requires a login for refs that it listed without one
          hint: try again later, or log in for a higher limit: store a login for 127.0.0.1:… in git's credential helper, or set git's `http.https://127.0.0.1:…/.extraHeader`
        error: 1 reference could not be locked
    "#]]);
}

#[test]
fn the_requests_of_a_run_are_few_and_can_be_seen() {
    let (sandbox, server, up, work) = locked();
    // More refs of one repository are no more requests.
    for name in ["one", "two", "three"] {
        up.git(&["branch", name]);
        also(&work, &server, name);
    }
    work.run(&["lock"]).success();
    work.commit("more refs");
    limit(&sandbox, &server, "/", Limit::Sentence, |_| false);
    let shown = |command: &[&str]| {
        server.forget();
        let output = work.run(&[command, &["-v"]].concat());
        let host = server.url().trim_start_matches("http://").trim_end_matches('/').to_owned();
        let from = format!("fetched from {host}: ");
        let line = output.success().stderr.lines().find_map(|line| line.strip_prefix(&from).map(str::to_owned));
        let count = server.log().len();
        assert!(line.as_ref().is_none_or(|line| line.starts_with(&format!("{count} request"))), "{line:?} {count}");
        assert_eq!(line.is_none(), count == 0, "{output:?}");
        count
    };
    let calls = super::git::count_git(&sandbox);
    // The file; what the server of the repository can do, and the commits.
    assert_eq!(shown(&["branch"]), 3);
    let calls = fs::read_to_string(calls).unwrap();
    assert!(
        !calls.contains("--get-url") && !calls.contains("credential fill"),
        "only where something went wrong: {calls}"
    );
    assert_eq!(shown(&["lock"]), 0);
    // The file; what the server can do, and its refs.
    assert_eq!(shown(&["verify", "--upstream"]), 3);
    assert_eq!(shown(&["branch", "--branch=again1"]), 0);
}
