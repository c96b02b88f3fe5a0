//! The helpers themselves: a helper that lies makes every test that uses it worthless.

use std::fs;
use std::io::Read as _;
use std::panic::{self, AssertUnwindSafe};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::{Kustomize, NO_MOUNT, Reply, Running, Sandbox, Server, skip};

const CONFIG_MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: remote\n";

/// An upstream with one commit `v1` in `upstream/acme/base`.
fn upstream(sandbox: &Sandbox) -> String {
    let repo = sandbox.repo("upstream/acme/base");
    repo.write("kustomization.yaml", "resources: [pod.yaml]\n");
    repo.write("pod.yaml", CONFIG_MAP.replace("remote", "cloned"));
    let id = repo.commit("first");
    repo.git(&["tag", "v1"]);
    id
}

#[test]
fn the_environment_is_that_of_the_sandbox_only() {
    let sandbox = Sandbox::new();
    let all = Running::start(&mut sandbox.command("env", &sandbox.path(""))).wait();
    let strangers = all.success().stdout.lines().filter(|line| {
        let name = line.split('=').next().unwrap();
        name.starts_with("GIT_") && !line.contains(sandbox.path("").to_str().unwrap())
    });
    let names: Vec<&str> = strangers
        .map(|line| line.split('=').next().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "GIT_AUTHOR_DATE",
            "GIT_AUTHOR_EMAIL",
            "GIT_AUTHOR_NAME",
            "GIT_COMMITTER_DATE",
            "GIT_COMMITTER_EMAIL",
            "GIT_COMMITTER_NAME",
            "GIT_CONFIG_NOSYSTEM",
            "GIT_TERMINAL_PROMPT",
        ]
    );
    all.lacks("proxy").lacks("PROXY");
    let configuration = || sandbox.git(&sandbox.path(""), &["config", "--list"]);
    assert_eq!(configuration(), "maintenance.auto=false");
    sandbox.configure("core.autocrlf", "true");
    assert_eq!(
        configuration(),
        "maintenance.auto=false\ncore.autocrlf=true"
    );
}

#[test]
fn ids_are_the_same_everywhere() {
    let sandbox = Sandbox::new();
    assert_eq!(
        upstream(&sandbox),
        "a3acfb21fb663531d40e67022f981402975a57e8"
    );
}

#[test]
fn a_failed_expectation_shows_everything() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    repo.write("dir/file.yaml", "");
    let output = repo.try_git(&["no-such-command", "two words"]);
    output
        .fails(1)
        .stderr_has("is not a git command")
        .lacks("usage:");
    let report = panic::catch_unwind(|| {
        output.success();
    });
    let report = *report.unwrap_err().downcast::<String>().unwrap();
    for part in [
        "git no-such-command \"two words\"",
        "/work",
        "dir/file.yaml",
        "not a git command",
    ] {
        assert!(report.contains(part), "no {part:?} in\n{report}");
    }
}

#[test]
fn a_sandbox_can_be_left_in_the_middle() {
    let sandbox = Sandbox::new();
    let started = Instant::now();
    let sleep = || Running::start(sandbox.command("sleep", &sandbox.path("")).arg("60"));
    let (killed, interrupted, _dropped) = (sleep(), sleep(), sleep());
    killed.kill();
    interrupted.interrupt();
    killed.wait().fails(-9);
    interrupted.wait().fails(-2);
    assert!(started.elapsed() < Duration::from_secs(30));
}

#[test]
fn a_program_that_hangs_is_a_failure_and_killed_with_its_group() {
    let sandbox = Sandbox::new();
    let fifo = sandbox.path("fifo");
    let mut make = sandbox.command("mkfifo", &sandbox.path(""));
    Running::start(make.arg(&fifo)).wait().success();
    for script in [
        "sleep 60",
        "sleep 60; :",
        // Without its output.
        "exec >&- 2>&-; sleep 60",
        // It has ended, and what it started holds its output.
        "sleep 60 &",
    ] {
        let mut shell = sandbox.command("sh", &sandbox.path(""));
        let running = Running::start(shell.args(["-c", &format!("exec 9>fifo; {script}")]));
        let mut alive = fs::File::open(&fifo).unwrap();
        let (sender, ended) = mpsc::channel();
        thread::spawn(move || sender.send(alive.read_to_end(&mut Vec::new()).unwrap()));
        let waiting = AssertUnwindSafe(|| running.wait_for(Duration::from_millis(50)));
        let report = panic::catch_unwind(waiting).map(drop).unwrap_err();
        let report = report.downcast::<String>().unwrap();
        assert!(
            report.starts_with("still running after 50ms: sh -c"),
            "{report}"
        );
        let ended = ended.recv_timeout(Duration::from_secs(30));
        assert_eq!(ended, Ok(0), "{script} is alive");
    }
}

#[test]
fn temporary_files_are_seen() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.leftovers(), [""; 0]);
    sandbox.script("leave", "mktemp -d -t leftover-XXXXXX; echo $MARK");
    let leave = || Running::start(&mut sandbox.command("leave", &sandbox.path(""))).wait();
    sandbox.set("MARK", "seen");
    leave().success().stdout_has("seen\n");
    sandbox.unset("MARK");
    leave().success().lacks("seen");
    assert_eq!(sandbox.leftovers().len(), 2);
    assert!(sandbox.leftovers()[0].starts_with("leftover-"));
}

#[test]
fn a_state_sees_every_change() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    repo.write("a", "a");
    repo.write("b", "b");
    repo.commit("first");
    let before = repo.state();
    before.assert_same(&repo.state());

    let blob = repo.id("HEAD:b");
    let object = format!(".git/objects/{}/{}", &blob[..2], &blob[2..]);
    let changes: [(&str, &dyn Fn()); 15] = [
        ("refs", &|| drop(repo.git(&["branch", "other"]))),
        ("HEAD", &|| drop(repo.git(&["switch", "--quiet", "other"]))),
        ("files", &|| repo.write("a", "changed")),
        ("files", &|| repo.write_executable("b", "b")),
        ("files", &|| repo.symlink("link", "a")),
        ("index", &|| drop(repo.git(&["add", "a"]))),
        ("refs", &|| drop(repo.git(&["stash"]))),
        ("configuration", &|| drop(repo.git(&["config", "a.b", "c"]))),
        ("git directory", &|| repo.write(".git/index.lock", "")),
        ("info", &|| repo.write(".git/info/exclude", "*.log\n")),
        ("modules", &|| {
            repo.write(".git/modules/a/objects/x", "");
            repo.write(".git/modules/a/HEAD", "0123\n");
        }),
        ("refs", &|| repo.write(".git/logs/refs/heads/main", "")),
        ("refs", &|| repo.write(".git/refs/heads/broken", "0123\n")),
        ("refs", &|| repo.remove(".git/refs/heads/broken")),
        ("fsck", &|| repo.remove(&object)),
    ];
    repo.git(&["pack-refs", "--all"]);
    let packed = repo.state();
    let unpacked = before.without("git directory");
    unpacked.assert_same(&packed.clone().without("git directory"));
    let mut last = packed;
    for (part, change) in changes {
        change();
        let next = repo.state();
        let report = panic::catch_unwind(|| last.assert_same(&next)).unwrap_err();
        let report = report.downcast::<String>().unwrap();
        assert!(
            report.contains(&format!("\n{part} before:")),
            "{part}: {report}"
        );
        last = next;
    }
}

#[test]
fn a_state_leaves_out_what_may_change() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    repo.commit("first");
    let before = repo.state();
    repo.git(&["branch", "localized/main"]);
    before.assert_same(&repo.state().without_ref("refs/heads/localized/main"));
    repo.git(&["branch", "localized/main2"]);
    assert_ne!(
        before,
        repo.state().without_ref("refs/heads/localized/main")
    );
    assert_eq!(before.without("refs"), repo.state().without("refs"));
}

#[test]
fn a_repository_reads_back_what_was_written() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    repo.write("dir/a", "text\n");
    repo.write_executable("run", "#!/bin/sh\n");
    repo.symlink("link", "dir/a");
    repo.write("gone", "");
    repo.remove("gone");
    let id = repo.commit("first");
    assert_eq!(
        repo.files(&id),
        ["100644 dir/a", "120000 link", "100755 run"]
    );
    assert_eq!(repo.show("HEAD", "dir/a"), repo.read("dir/a"));
    assert_eq!(sandbox.clone_of(&repo, "clone").id("origin/main"), id);
}

#[test]
fn git_clones_over_http_with_protocol_version_2() {
    let sandbox = Sandbox::new();
    let server = Server::start();
    let id = upstream(&sandbox);
    server.serve_git("/git/", &sandbox.path("upstream"));
    sandbox.pretend("https://github.com/", &server.git_url());
    let url = "https://github.com/acme/base.git";
    let clone = [
        "clone",
        "-q",
        "--depth=1",
        "--branch=v1",
        "-c",
        "advice.detachedHead=false",
        url,
    ];
    assert_eq!(sandbox.git(&sandbox.path(""), &clone), "");
    assert_eq!(
        sandbox.git(&sandbox.path("base"), &["rev-parse", "HEAD"]),
        id
    );

    let requests = server.requests();
    assert!(requests.len() >= 3, "{requests:?}");
    for request in &requests {
        assert_eq!(
            request.header("git-protocol"),
            Some("version=2"),
            "{request:?}"
        );
        assert!(
            request.path.starts_with("/git/acme/base.git/"),
            "{request:?}"
        );
    }
    assert_eq!(
        server.log()[0],
        "GET /git/acme/base.git/info/refs?service=git-upload-pack"
    );
    server.forget();
    assert!(server.requests().is_empty());
}

#[test]
fn git_sends_long_and_chunked_requests() {
    let sandbox = Sandbox::new();
    let server = Server::start();
    upstream(&sandbox);
    let bare = sandbox.path("upstream/acme/bare.git");
    sandbox.git(
        &sandbox.path("upstream/acme"),
        &["clone", "-q", "--bare", "base", "bare.git"],
    );
    sandbox.git(&bare, &["config", "http.receivepack", "true"]);
    server.serve_git("/git/", &sandbox.path("upstream"));
    let repo = sandbox.repo("work");
    // Random enough not to be deflated below the buffer, above which git sends chunks.
    let numbers: Vec<String> = (0_u64..40_000)
        .map(|n| format!("{:x}\n", n.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
        .collect();
    repo.write("numbers", numbers.concat());
    let id = repo.commit("numbers");
    let url = format!("{}acme/bare", server.git_url());
    repo.git(&[
        "-c",
        "http.postBuffer=65536",
        "push",
        "-q",
        &url,
        "main:numbers",
    ]);
    assert_eq!(sandbox.git(&bare, &["rev-parse", "numbers"]), id);
    let chunked = |request: &super::http::Request| request.header("transfer-encoding").is_some();
    assert!(server.requests().iter().any(chunked));
}

#[test]
fn a_password_is_asked_for() {
    let sandbox = Sandbox::new();
    let server = Server::start();
    upstream(&sandbox);
    server.serve_git("/git/", &sandbox.path("upstream"));
    server.require_password("/git/", "user", "pass word");
    let directory = sandbox.path("");
    let url = format!("{}acme/base", server.git_url());
    let refused = sandbox.try_git(&directory, &["ls-remote", &url]);
    refused.fails(128).stderr_has("could not read Username");
    let url = url.replace("http://", "http://user:pass%20word@");
    assert!(
        sandbox
            .git(&directory, &["ls-remote", &url])
            .contains("refs/tags/v1")
    );
}

#[test]
fn git_reaches_real_looking_hosts_through_the_proxy() {
    let sandbox = Sandbox::new();
    let server = Server::start();
    let id = upstream(&sandbox);
    server.serve_git("https://github.com/", &sandbox.path("upstream"));
    sandbox.send_through(&server);
    let listing = |url| sandbox.try_git(&sandbox.path(""), &["ls-remote", url, "v1"]);
    listing("https://github.com/acme/base")
        .success()
        .stdout_has(&id);
    listing("https://gitlab.com/acme/base")
        .fails(128)
        .stderr_has("not found");
    let connects: Vec<String> = server
        .requests()
        .into_iter()
        .map(|request| request.path)
        .collect();
    assert!(connects.contains(&"github.com:443".to_owned()));
    let log = server.log();
    assert!(
        log.iter().all(|line| line.contains(" https://git")),
        "{log:?}"
    );

    server.serve_git("/git/", &sandbox.path("upstream"));
    let direct = format!("{}git/acme/base", server.tls_url());
    listing(&direct).success().stdout_has(&id);
    sandbox.unset("GIT_SSL_CAINFO");
    listing("https://github.com/acme/base")
        .fails(128)
        .stderr_has("certificate");
}

/// What a Go program does in the environment of the sandbox.
#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "SSL_CERT_FILE is read on Linux")]
fn kustomize_reaches_real_looking_hosts_through_the_proxy() {
    let Some(kustomize) = Kustomize::find() else {
        return;
    };
    let sandbox = Sandbox::new();
    let server = Server::start();
    upstream(&sandbox);
    server.serve_git("https://github.com/", &sandbox.path("upstream"));
    let file = "https://raw.githubusercontent.com/acme/files/v1/map.yaml";
    server.route(file, Reply::ok(CONFIG_MAP));
    sandbox.send_through(&server);
    let repo = sandbox.repo("work");
    repo.write(
        "app/kustomization.yaml",
        format!("resources:\n- {file}\n- https://github.com/acme/base?ref=v1\n"),
    );

    let build = kustomize.build(&sandbox, repo.path(), "app");
    build
        .success()
        .stdout_has("name: remote")
        .stdout_has("name: cloned");
    let localized = kustomize.localize(&sandbox, repo.path(), &["app", "out"]);
    localized.success();
    let stored = "out/localized-files/raw.githubusercontent.com/acme/files/v1/map.yaml";
    assert_eq!(repo.read(stored), CONFIG_MAP);
    assert!(
        repo.read("out/localized-files/github.com/acme/base/v1/pod.yaml")
            .contains("cloned")
    );
    sandbox.offer("kustomize", kustomize.program());
    let version = sandbox
        .command("sh", repo.path())
        .args(["-c", "kustomize version"])
        .output();
    assert!(version.unwrap().status.success());
    kustomize
        .run(&sandbox, repo.path(), &["build", "nowhere"])
        .fails(1);
    assert!(server.log().contains(&format!("GET {file}")));
}

/// What the program's own HTTP client does in the environment of the sandbox.
///
/// The environment of a process cannot be changed safely beside other tests, so this runs the test
/// binary again, for [`get_in_child`] only.
#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "SSL_CERT_FILE is read on Linux")]
fn reqwest_reaches_real_looking_hosts_through_the_proxy() {
    let sandbox = Sandbox::new();
    let server = Server::start();
    let url = "https://raw.githubusercontent.com/acme/files/v1/map.yaml?token=x";
    server.route(url, Reply::ok(CONFIG_MAP));
    server.route("http://example.com/plain", Reply::ok("plain\n"));
    server.route("/direct", Reply::ok("direct\n"));
    sandbox.send_through(&server);
    let get = |url: &str| {
        sandbox.set("URL", url);
        let mut command = sandbox.command(std::env::current_exe().unwrap(), &sandbox.path(""));
        let test = "support::selftest::get_in_child";
        Running::start(command.args(["--ignored", "--exact", "--nocapture", test])).wait()
    };
    get(url).success().stdout_has(CONFIG_MAP);
    get("http://example.com/plain")
        .success()
        .stdout_has("plain\n");
    get(&format!("{}direct", server.url()))
        .success()
        .stdout_has("direct\n");
    get(&format!("{}direct", server.tls_url()))
        .success()
        .stdout_has("direct\n");
    get("https://example.com/").fails(101).lacks("direct");
    sandbox.unset("SSL_CERT_FILE");
    get(url).fails(101);
}

#[test]
#[ignore = "run by reqwest_reaches_real_looking_hosts_through_the_proxy"]
fn get_in_child() {
    rustls::crypto::ring::default_provider()
        .install_default()
        .unwrap();
    let client = reqwest::blocking::Client::new();
    let reply = client.get(std::env::var("URL").unwrap()).send().unwrap();
    println!("{}", reply.error_for_status().unwrap().text().unwrap());
}

/// Both variables are those of a process: this runs the test binary again, for [`skip_in_child`] only.
#[test]
fn a_skip_is_counted_and_must_be_by_design_where_tools_are_required() {
    let sandbox = Sandbox::new();
    let file = sandbox.path("skips");
    sandbox.set("KUSTOMIZE_LOCALIZE_SKIPS", &file);
    let run = |reason: &str| {
        sandbox.set("REASON", reason);
        let mut command = sandbox.command(std::env::current_exe().unwrap(), &sandbox.path(""));
        let test = "support::selftest::skip_in_child";
        Running::start(command.args(["--ignored", "--exact", "--nocapture", test])).wait()
    };
    let line = |reason: &str| format!("support::selftest::skip_in_child: {reason}\n");
    let mut expected = String::new();
    for (required, reason, passes) in [
        ("", "no tea", true),
        ("1", "no tea", false),
        ("1", "no fish on PATH", true),
        ("1", NO_MOUNT, true),
    ] {
        sandbox.set("KUSTOMIZE_LOCALIZE_REQUIRE_TOOLS", required);
        let output = run(reason);
        if passes {
            expected += &line(reason);
            output
                .success()
                .stderr_has(&format!("skipped: {}", line(reason)));
        } else {
            output
                .fails(101)
                .stderr_has(&format!("may not be skipped: {}", line(reason)));
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), expected);
    }
}

#[test]
#[ignore = "run by a_skip_is_counted_and_must_be_by_design_where_tools_are_required"]
fn skip_in_child() {
    skip(&std::env::var("REASON").unwrap());
}

#[test]
fn a_server_can_be_slow_wrong_and_absent() {
    use std::io::Write as _;
    let server = Server::start();
    let get = |path: &str| {
        let address = server.url().replace("http://", "").replace('/', "");
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text.rsplit_once("\r\n\r\n")
            .map_or(text.clone(), |(head, body)| {
                format!("{} {body}", head.split(' ').nth(1).unwrap())
            })
    };
    server.route("/cut", Reply::ok("whole").truncate(2));
    server.route("/moved", Reply::redirect("/cut?x"));
    server.route("/query?a=b", Reply::ok("query"));
    server.route("/nothing", Reply::hang_up());
    server.route_in_turn("/turn", [Reply::status(503), Reply::ok("now")]);
    assert_eq!(get("/cut"), "200 wh");
    assert_eq!(get("/moved"), "302 ");
    assert_eq!(
        (get("/query?a=b"), get("/query")),
        ("200 query".into(), "404 no such page\n".into())
    );
    assert_eq!(get("/nothing"), "");
    assert_eq!(
        [get("/turn"), get("/turn"), get("/turn")],
        ["503 ", "200 now", "200 now"]
    );

    let pause = Duration::from_millis(30);
    server.route("/slow", Reply::ok("abcd").delay(pause).drip(1, pause));
    let started = Instant::now();
    thread::scope(|scope| {
        scope.spawn(|| assert_eq!(get("/slow"), "200 abcd"));
        scope.spawn(|| assert_eq!(get("/slow"), "200 abcd"));
    });
    assert!(started.elapsed() >= 4 * pause);
    assert_eq!(server.most_at_once(), 2);
}

#[test]
fn the_program_runs_in_the_sandbox() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    let output = repo.run(&["--no-such-option"]);
    output.fails(2);
    assert_eq!(
        repo.start(&["--no-such-option"]).wait().status,
        output.status
    );
    fs::remove_dir_all(repo.path()).unwrap();
}
