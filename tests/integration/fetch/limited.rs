//! Servers that limit requests without a login, as GitHub does since September 2026.

use std::fs;
use std::time::{Duration, Instant};

use super::{naming, served};
use crate::support::{Limit, Reply, Repo, Sandbox, Server, config_map};

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
            assert!(all.contains("limits requests: "), "{how:?} {command:?}: {output:?}");
            for wrong in ["could not read Username", "is private", "gone", "allow:", "no ref"] {
                assert!(!all.contains(wrong), "{how:?} {command:?}: {wrong}: {output:?}");
            }
            assert_eq!(work.read("kustomize-localize.lock"), lock, "{how:?} {command:?}");
        }
    }
    // What one server gives is taken, and what another one keeps back is kept.
    limit(&sandbox, &server, "/files/", Limit::TooMany(Some(3600)), |_| true);
    work.run(&["update"]).fails(1).stderr_has("files/cm.yaml").stderr_has("limits requests: ");
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
    for how in ALL {
        let (sandbox, server, _up, work) = locked();
        let calls = super::git::count_git(&sandbox);
        log_in(&sandbox, "s3cr3t");
        for command in [&["branch"][..], &["update"], &["verify", "--upstream"]] {
            limit(&sandbox, &server, "/", how, |_| true);
            work.run(command).success().lacks("s3cr3t");
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
}

#[test]
fn a_server_that_answers_every_second_request_gives_all_to_a_login() {
    let (sandbox, server, _up, work) = locked();
    limit(&sandbox, &server, "/git/", Limit::TooMany(None), |number| number % 2 == 1);
    // One fetch of git is three requests in a row.
    work.run(&["branch"]).fails(2).stderr_has("limits requests: it answered 429").lacks("files/cm.yaml");
    log_in(&sandbox, "s3cr3t");
    work.run(&["branch"]).success();
}

#[test]
fn a_login_that_is_no_good_does_not_hide_why_it_was_sent() {
    let (sandbox, server, _up, work) = locked();
    server.refuse_other_logins("me", "s3cr3t");
    log_in(&sandbox, "wr0ng");
    for (how, count) in [(Limit::TooMany(Some(3600)), 2), (Limit::Pack, 1)] {
        limit(&sandbox, &server, "/", how, |_| true);
        let output = work.run(&["update"]);
        output.fails(1).lacks("wr0ng").lacks("credentials");
        assert_eq!(output.stderr.matches("limits requests: it ").count(), count, "{how:?} {output:?}");
    }
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
    assert!(!calls.contains("--get-url") && !calls.contains("credential"), "only where something went wrong: {calls}");
    assert_eq!(shown(&["lock"]), 0);
    // The file; what the server can do, and its refs.
    assert_eq!(shown(&["verify", "--upstream"]), 3);
    assert_eq!(shown(&["branch", "--branch=again1"]), 0);
}
