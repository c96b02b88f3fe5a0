//! Remote roots: which commit a ref is, over which transport, and what happens when it cannot be had.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::support::{Output, Reply, Repo, Sandbox, Server};

fn config_map(name: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n")
}

/// Returns an upstream repository with a root at the top and one in `base`, and tag `v1`.
fn upstream(sandbox: &Sandbox, path: &str) -> Repo {
    let repo = sandbox.repo(path);
    repo.write("kustomization.yaml", "resources: [cm.yaml]\n");
    repo.write("cm.yaml", config_map("top"));
    repo.write("base/kustomization.yaml", "resources: [cm.yaml]\n");
    repo.write("base/cm.yaml", config_map("one"));
    repo.commit("one");
    repo.git(&["tag", "v1"]);
    repo
}

/// Returns a repository whose `app` names these references in `resources`.
fn naming(sandbox: &Sandbox, references: &[&str]) -> Repo {
    let repo = sandbox.repo("work");
    name(&repo, references);
    repo
}

fn name(repo: &Repo, references: &[&str]) {
    let list: Vec<String> = references.iter().map(|it| format!("- {it:?}\n")).collect();
    repo.write(
        "app/kustomization.yaml",
        format!("resources:\n{}", list.concat()),
    );
    repo.commit("source");
}

fn lock(repo: &Repo) -> String {
    repo.show("localized/main", "localized-app/kustomize-localize.lock")
}

/// Writes every start of git from now on into a file, and returns that file.
fn count_git(sandbox: &Sandbox) -> PathBuf {
    let log = sandbox.path("git.log");
    let real = sandbox
        .command("sh", &sandbox.path(""))
        .args(["-c", "command -v git"])
        .output();
    let real = String::from_utf8(real.unwrap().stdout).unwrap();
    sandbox.script(
        "git",
        &format!(
            "printf '%s\\n' \"$*\" >>'{}'\nexec {} \"$@\"",
            log.display(),
            real.trim()
        ),
    );
    log
}

/// Returns the starts of git that a log holds, of one sub-command, and empties it.
fn taken(log: &PathBuf, command: &str) -> Vec<String> {
    let text = fs::read_to_string(log).unwrap_or_default();
    fs::write(log, "").unwrap();
    let word = format!(" {command} ");
    text.lines()
        .filter(|line| format!(" {line} ").contains(&word))
        .map(str::to_owned)
        .collect()
}

#[track_caller]
fn lasts_at_most(started: Instant, seconds: u64) {
    let took = started.elapsed();
    assert!(took < Duration::from_secs(seconds), "it took {took:?}");
}

#[test]
fn a_ref_is_the_commit_that_git_fetches() {
    let sandbox = Sandbox::new();
    let server = Server::start();
    let up = upstream(&sandbox, "srv/acme/base");
    let first = up.id("HEAD");
    up.git(&["tag", "-a", "-m", "annotated", "annotated"]);
    up.git(&["branch", "feature/slash"]);
    up.git(&["update-ref", "refs/pull/7/head", &first]);
    up.write("base/cm.yaml", config_map("two"));
    let middle = up.commit("two");
    up.git(&["branch", "both"]);
    up.git(&["tag", "both", &first]);
    up.write("base/cm.yaml", config_map("three"));
    up.commit("three");
    server.serve_git("/git/", &sandbox.path("srv"));
    let url = format!("{}acme/base", server.git_url());

    let upper = first.to_uppercase();
    let references = [
        "v1",
        "annotated",
        "main",
        "feature/slash",
        "both",
        "HEAD",
        "refs/tags/v1",
        "refs/heads/both",
        "heads/both",
        "refs/pull/7/head",
        &first,
        &middle,
        &upper,
    ];
    let bare = sandbox.path("bare");
    sandbox.git(&sandbox.path(""), &["init", "-q", "--bare", "bare"]);
    let urls: Vec<String> = references
        .iter()
        .map(|reference| format!("{url}//base?ref={reference}"))
        .collect();
    let repo = naming(
        &sandbox,
        &urls.iter().map(String::as_str).collect::<Vec<_>>(),
    );
    repo.run(&["app"]).success();
    let lock = lock(&repo);
    for reference in references {
        sandbox.git(&bare, &["fetch", "-q", "--depth=1", &url, reference]);
        let id = sandbox.git(&bare, &["rev-parse", "FETCH_HEAD^{commit}"]);
        let entry = lock
            .split("  - url: ")
            .find(|entry| {
                let quoted = [
                    format!("ref: {reference}\n"),
                    format!("ref: \"{reference}\"\n"),
                ];
                quoted.iter().any(|line| entry.contains(line))
            })
            .unwrap_or_else(|| panic!("{reference} is not in the lock\n{lock}"));
        assert!(
            entry.contains(&format!("commit: {id}\n")),
            "{reference} is not {id}\n{entry}"
        );
    }
}

#[test]
fn the_same_holds_when_the_cache_knows_the_repository() {
    let sandbox = Sandbox::new();
    let up = upstream(&sandbox, "up");
    let first = up.id("HEAD");
    up.git(&["tag", "-a", "-m", "annotated", "annotated"]);
    up.git(&["branch", "both"]);
    up.git(&["branch", "x/v1"]);
    let url = format!("file://{}//base", up.path().display());
    let repo = naming(&sandbox, &[&format!("{url}?ref={first}")]);
    repo.run(&["app"]).success();
    up.write("base/cm.yaml", config_map("two"));
    let second = up.commit("two");
    up.git(&["tag", "both"]);

    let log = count_git(&sandbox);
    for (reference, id) in [
        ("v1", &first),
        ("annotated", &first),
        ("both", &second),
        ("main", &second),
        ("heads/both", &first),
        ("HEAD", &second),
    ] {
        name(&repo, &[&format!("{url}?ref={reference}")]);
        taken(&log, "fetch");
        repo.run(&["app", "--no-commit", "--overwrite"]).success();
        let lock = repo.read("localized-app/kustomize-localize.lock");
        assert!(
            lock.contains(&format!("commit: {id}\n")),
            "{reference}\n{lock}"
        );
        fs::remove_dir_all(repo.path().join("localized-app")).unwrap();
    }
    // `both`, the tag, was the only new commit: one fetch, and then none.
    assert_eq!(taken(&log, "fetch"), [""; 0]);
}

#[test]
fn version_is_an_alias_and_the_first_ref_wins() {
    let sandbox = Sandbox::new();
    let up = upstream(&sandbox, "up");
    let first = up.id("HEAD");
    up.write("base/cm.yaml", config_map("two"));
    up.commit("two");
    let url = format!("file://{}//base", up.path().display());
    for query in [
        "version=v1",
        "ref=v1&ref=main",
        "version=v1&submodules=false",
    ] {
        let repo = naming(&sandbox, &[&format!("{url}?{query}")]);
        repo.run(&["app", "--dry-run", "--format", "json"])
            .success()
            .stdout_has(&first);
    }
}

#[test]
fn a_ref_that_is_not_there_is_named() {
    let sandbox = Sandbox::new();
    let server = Server::start();
    let up = upstream(&sandbox, "srv/acme/base");
    let short = &up.id("HEAD")[..12];
    let gone = "0123456789012345678901234567890123456789";
    server.serve_git("/git/", &sandbox.path("srv"));
    let url = format!("{}acme/base", server.git_url());
    let cases = [
        (
            "v9",
            format!("{url} has no ref `v9`"),
            format!("git ls-remote {url}"),
        ),
        (
            short,
            format!("{url} has no ref `{short}`, and a short commit id cannot be fetched"),
            "write the commit id in full, 40 digits".to_owned(),
        ),
        (
            gone,
            format!("{url} gives no commit {gone}"),
            "it may be gone".to_owned(),
        ),
    ];
    // Cold, then with a cache that knows the repository.
    for _ in 0..2 {
        for (reference, message, hint) in &cases {
            let repo = naming(&sandbox, &[&format!("{url}//base?ref={reference}")]);
            let before = repo.state();
            let output = repo.run(&["app"]);
            output
                .fails(2)
                .stderr_has("app/kustomization.yaml:2:3: resources[0]: ");
            output
                .stderr_has(message)
                .stderr_has(hint)
                .lacks("as a file");
            before.assert_same(&repo.state());
        }
        naming(&sandbox, &[&format!("{url}//base?ref=v1")])
            .run(&["app", "--dry-run"])
            .success();
    }
}

#[test]
fn without_a_ref_the_hint_is_what_to_write() {
    let sandbox = Sandbox::new();
    let server = Server::start();
    let up = upstream(&sandbox, "srv/acme/base");
    let id = up.id("HEAD");
    server.serve_git("/", &sandbox.path("srv"));
    let url = format!("{}acme/base", server.url());
    let log = count_git(&sandbox);
    for text in [
        url.clone(),
        format!("{url}.git//base"),
        format!("{url}/base"),
    ] {
        let repo = naming(&sandbox, &[&text, &format!("{text}?timeout=9")]);
        taken(&log, "");
        let output = repo.run(&["app"]);
        output
            .fails(2)
            .stderr_has("is named without a ref")
            .stderr_has("--pin");
        output
            .stderr_has(&format!("add `?ref={id}`"))
            .lacks("HTML")
            .lacks("404");
        assert_eq!(taken(&log, "ls-remote").len(), 1, "HEAD is asked for once");
    }
    let file = format!("file://{}?ref=v1;x", up.path().display());
    let output = naming(&sandbox, &[&file]).run(&["app"]);
    output
        .fails(2)
        .stderr_has("the query cannot be parsed, so kustomize builds HEAD");
    output.stderr_has(&format!("add `?ref={id}`"));

    let repo = naming(&sandbox, &[&format!("{url}//base")]);
    repo.run(&["app", "--pin"]).success();
    assert!(lock(&repo).contains(&format!("commit: {id}\n")));
    // Upstream renames its default branch and moves on: the lock keeps what was pinned.
    up.git(&["switch", "-q", "-c", "trunk"]);
    up.write("base/cm.yaml", config_map("two"));
    let new = up.commit("two");
    up.git(&["branch", "-q", "-D", "main"]);
    repo.run(&["app", "--pin"])
        .success()
        .stdout_has("nothing to do");
    repo.run(&["app", "--pin", "--update"]).success();
    assert!(lock(&repo).contains(&format!("commit: {new}\n")));
}

#[test]
fn a_sha256_upstream_is_read() {
    let sandbox = Sandbox::new();
    let path = sandbox.path("up");
    fs::create_dir(&path).unwrap();
    sandbox.git(
        &path,
        &["init", "-q", "-b", "main", "--object-format=sha256"],
    );
    let up = Repo::new(&sandbox, path);
    up.write("kustomization.yaml", "resources: [cm.yaml]\n");
    up.write("cm.yaml", config_map("long"));
    let id = up.commit("one");
    assert_eq!(id.len(), 64);
    let url = format!("file://{}", up.path().display());
    for reference in ["main", &id] {
        let repo = naming(&sandbox, &[&format!("{url}?ref={reference}")]);
        repo.run(&["app", "--dry-run", "--format", "json"])
            .success()
            .stdout_has(&id);
    }
}

#[test]
fn ssh_is_the_users_own() {
    let sandbox = Sandbox::new();
    upstream(&sandbox, "srv/acme/base");
    // What sshd would do: run the command, in the directory of the repositories.
    let log = sandbox.path("ssh.log");
    sandbox.script(
        "fake-ssh",
        &format!(
            "printf '%s\\n' \"$*\" >>'{}'\nfor last; do :; done\ncd '{}' && eval \"$(echo \"$last\" | sed \"s,'/*,',\")\"",
            log.display(),
            sandbox.path("srv").display()
        ),
    );
    sandbox.set("GIT_SSH_COMMAND", "fake-ssh");
    sandbox.set("GIT_SSH_VARIANT", "ssh");
    let references = [
        "ssh://git@git.example.com/acme/base//base?ref=v1",
        "git@git.example.com:acme/base//base?ref=main",
        "ssh://git@git.example.com:2222/acme/base?ref=v1",
    ];
    let repo = naming(&sandbox, &references);
    repo.run(&["app"]).success();
    let calls = fs::read_to_string(log).unwrap();
    assert!(
        calls.contains("git@git.example.com git-upload-pack"),
        "{calls}"
    );
    assert!(calls.contains("-p 2222"), "{calls}");
    let lock = lock(&repo);
    for url in [
        "ssh://git@git.example.com/acme/base\n",
        "git@git.example.com:acme/base\n",
        "ssh://git@git.example.com:2222/acme/base\n",
    ] {
        assert!(lock.contains(url), "no {url}\n{lock}");
    }
}

#[test]
fn ssh_that_refuses_is_explained() {
    let sandbox = Sandbox::new();
    let repo = naming(&sandbox, &["git@git.example.com:acme/base?ref=v1"]);
    sandbox.set("GIT_SSH_COMMAND", "fake-ssh");
    for (said, hint) in [
        (
            "git@git.example.com: Permission denied (publickey).",
            "an ssh key",
        ),
        ("Host key verification failed.", "connect once with ssh"),
        (
            "ssh: Could not resolve hostname git.example.com: Name or service not known",
            "check the host's name",
        ),
    ] {
        sandbox.script("fake-ssh", &format!("echo '{said}' >&2; exit 255"));
        let output = repo.run(&["app"]);
        output
            .fails(2)
            .stderr_has(said.trim_end_matches('.'))
            .stderr_has(hint);
        output.stderr_has("git@git.example.com:acme/base");
    }
}

#[test]
fn instead_of_works_wherever_it_is_set() {
    let sandbox = Sandbox::new();
    let up = upstream(&sandbox, "srv/acme/base");
    let id = up.id("HEAD");
    let repo = naming(
        &sandbox,
        &["https://git.example.com/acme/base//base?ref=v1"],
    );
    let key = format!("url.file://{}/.insteadOf", sandbox.path("srv").display());
    let value = "https://git.example.com/";
    let run = |args: &[&str]| {
        let cache = sandbox.path("cache/git-kustomize-localize");
        let _ = fs::remove_dir_all(cache);
        repo.run(&[args, &["app", "--dry-run", "--format", "json"]].concat())
    };

    repo.git(&["config", &key, value]);
    run(&[]).success().stdout_has(&id);
    repo.git(&["config", "--unset", &key]);

    // `git -c`, as git hands it to its sub-commands.
    let cache = sandbox.path("cache/git-kustomize-localize");
    let _ = fs::remove_dir_all(&cache);
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_git-kustomize-localize"));
    sandbox.offer("git-kustomize-localize", program);
    let setting = format!("{key}={value}");
    let output = repo.try_git(&[
        "-c",
        &setting,
        "kustomize-localize",
        "app",
        "--dry-run",
        "--format",
        "json",
    ]);
    output.success().stdout_has(&id);

    sandbox.configure(&key, value);
    run(&[]).success().stdout_has(&id);
}

/// CI checkouts leave the job's token in the repository's own configuration.
#[test]
fn a_header_of_the_repository_is_sent_once() {
    let sandbox = Sandbox::new();
    let server = Server::start();
    let up = upstream(&sandbox, "srv/acme/base");
    server.serve_git("/git/", &sandbox.path("srv"));
    server.require_password("/git/", "x-access-token", "t0ken");
    let url = format!("{}acme/base", server.git_url());
    let repo = naming(&sandbox, &[&format!("{url}//base?ref=main")]);
    let key = format!("http.{}.extraheader", server.url());
    repo.git(&[
        "config",
        &key,
        "Authorization: Basic eC1hY2Nlc3MtdG9rZW46dDBrZW4=",
    ]);
    let log = count_git(&sandbox);
    repo.run(&["app"]).success();
    up.write("base/cm.yaml", config_map("two"));
    up.commit("two");
    // Now also `ls-remote`, which runs where the repository's configuration could be found.
    repo.run(&["app", "--update"]).success();
    for request in server
        .requests()
        .iter()
        .filter(|request| request.path.starts_with("/git/"))
    {
        if request.path.ends_with("/info/refs") || request.path.ends_with("upload-pack") {
            assert_eq!(request.headers("authorization"), 1, "{request:?}");
        }
    }
    let calls = fs::read_to_string(&log).unwrap();
    assert!(
        !calls.contains("eC1hY2"),
        "the header is an argument\n{calls}"
    );

    // What the caller sets wins over the repository's own settings, as always with git.
    sandbox.set("GIT_CONFIG_COUNT", "1");
    sandbox.set("GIT_CONFIG_KEY_0", &key);
    sandbox.set("GIT_CONFIG_VALUE_0", "");
    repo.run(&["app", "--update"])
        .fails(2)
        .stderr_has("wants credentials");
}

#[test]
fn credentials_come_from_the_helper_or_the_url() {
    let sandbox = Sandbox::new();
    let server = Server::start();
    let up = upstream(&sandbox, "srv/acme/base");
    let id = up.id("HEAD");
    server.serve_git("/git/", &sandbox.path("srv"));
    server.require_password("/git/", "me", "s3cr3t");
    let url = format!("{}acme/base.git", server.git_url());
    let repo = naming(&sandbox, &[&format!("{url}?ref=v1")]);

    let started = Instant::now();
    let before = repo.state();
    let output = repo.run(&["app"]);
    output
        .fails(2)
        .stderr_has(&format!("{url} wants credentials"));
    output.stderr_has("hint: make `git ls-remote` of that URL work: a credential helper");
    lasts_at_most(started, 20);
    before.assert_same(&repo.state());

    let asked = sandbox.path("asked");
    sandbox.configure(
        "credential.helper",
        &format!("!f() {{ echo \"$1\" >>'{}'; test \"$1\" = get && printf 'username=me\\npassword=s3cr3t\\n'; }}; f", asked.display()),
    );
    repo.run(&["app", "--dry-run", "--format", "json"])
        .success()
        .stdout_has(&id)
        .lacks("s3cr3t");
    assert!(fs::read_to_string(&asked).unwrap().starts_with("get\n"));
    sandbox.git(
        &sandbox.path(""),
        &["config", "--global", "--unset", "credential.helper"],
    );

    let repo = naming(
        &sandbox,
        &[&format!(
            "{}?ref=v1",
            url.replace("http://", "http://me:s3cr3t@")
        )],
    );
    repo.run(&["app"]).success().lacks("s3cr3t");
    let repo = naming(
        &sandbox,
        &[&format!(
            "{}?ref=v1",
            url.replace("http://", "http://me:wr0ng@")
        )],
    );
    repo.run(&["app", "--update"])
        .fails(2)
        .stderr_has("wants credentials")
        .lacks("wr0ng");
}

#[test]
fn each_repository_and_ref_is_fetched_once_and_side_by_side() {
    let sandbox = Sandbox::new();
    let server = Server::start();
    for name in ["a", "b", "c", "d"] {
        upstream(&sandbox, &format!("srv/acme/{name}"));
    }
    server.serve_git("/git/", &sandbox.path("srv"));
    let git = server.git_url();
    let mut references = Vec::new();
    for name in ["a", "b", "c", "d"] {
        references.push(format!("{git}acme/{name}.git?ref=v1"));
        references.push(format!("{git}acme/{name}.git/base?ref=v1"));
    }
    // Another spelling of the same: the repository, the ref and the timeout.
    references.push(format!("{git}acme/a.git/base?ref=v1&timeout=60"));
    let repo = naming(
        &sandbox,
        &references.iter().map(String::as_str).collect::<Vec<_>>(),
    );
    let log = count_git(&sandbox);
    repo.run(&["app", "--dry-run"]).success();
    let fetches = taken(&log, "fetch");
    assert_eq!(fetches.len(), 4, "{fetches:#?}");
    assert!(server.most_at_once() >= 2, "one after the other");
    let posts = server
        .log()
        .iter()
        .filter(|line| line.starts_with("GET /git/acme") && !line.contains("info/refs"))
        .count();
    assert_eq!(
        posts,
        0,
        "a marker says that no file is meant: {:#?}",
        server.log()
    );

    // A tag may have moved, so it is looked up; the commit is there.
    server.forget();
    repo.run(&["app", "--dry-run"]).success();
    let calls = fs::read_to_string(&log).unwrap();
    assert!(!calls.contains(" fetch "), "{calls}");
    assert_eq!(calls.matches(" ls-remote ").count(), 4, "{calls}");

    // A commit cannot move.
    let id = sandbox.git(&sandbox.path("srv/acme/a"), &["rev-parse", "v1"]);
    name(&repo, &[&format!("{git}acme/a.git?ref={id}")]);
    taken(&log, "");
    server.forget();
    repo.run(&["app", "--dry-run"]).success();
    assert_eq!(server.log(), [""; 0]);
    let calls = fs::read_to_string(&log).unwrap();
    assert!(
        !calls.contains(" init ") && !calls.contains(" ls-remote "),
        "{calls}"
    );
}

#[test]
fn the_cache_is_private_and_may_go_at_any_time() {
    let sandbox = Sandbox::new();
    let up = upstream(&sandbox, "up");
    let id = up.id("HEAD");
    let url = format!("file://{}//base?ref={id}", up.path().display());
    let repo = naming(&sandbox, &[&url]);
    let run = || repo.run(&["app", "--no-commit", "--overwrite"]);
    run().success();
    let cache = sandbox.path("cache/git-kustomize-localize");
    let mode = fs::metadata(&cache).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    fs::remove_dir_all(repo.path().join("localized-app")).unwrap();
    fs::remove_dir_all(&cache).unwrap();
    run().success();
    assert_eq!(sandbox.leftovers(), [""; 0]);

    let entry = || {
        let mut path = cache.join("git");
        while !path.ends_with(&id) {
            path = path.read_dir().unwrap().next().unwrap().unwrap().path();
        }
        path
    };
    let pack = |extension: &str| {
        let files = entry().join("objects/pack").read_dir().unwrap();
        let mut paths = files.map(|file| file.unwrap().path());
        paths
            .find(|path| path.extension().is_some_and(|it| it == extension))
            .unwrap()
    };
    let damages: [&dyn Fn(); 6] = [
        &|| fs::remove_file(entry().join("HEAD")).unwrap(),
        &|| fs::remove_dir_all(entry().join("objects")).unwrap(),
        &|| fs::remove_file(pack("pack")).unwrap(),
        &|| fs::remove_file(pack("idx")).unwrap(),
        &|| {
            let path = pack("pack");
            let bytes = fs::read(&path).unwrap();
            fs::remove_file(&path).unwrap();
            fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        },
        &|| {
            let path = pack("pack");
            fs::remove_file(&path).unwrap();
            fs::write(&path, "").unwrap();
        },
    ];
    for (number, damage) in damages.iter().enumerate() {
        damage();
        fs::remove_dir_all(repo.path().join("localized-app")).unwrap();
        eprintln!("damage {number}");
        run().success();
        assert!(pack("pack").metadata().unwrap().len() > 100);
    }
}

#[test]
fn what_a_killed_run_left_is_never_used() {
    let sandbox = Sandbox::new();
    let server = Server::start();
    let up = upstream(&sandbox, "srv/acme/base");
    let id = up.id("HEAD");
    server.serve_git("/git/", &sandbox.path("srv"));
    let path = "/git/acme/base.git/info/refs?service=git-upload-pack";
    server.route(path, Reply::ok("").delay(Duration::from_secs(30)));
    let repo = naming(
        &sandbox,
        &[&format!("{}acme/base.git?ref={id}", server.git_url())],
    );
    let running = repo.start(&["app"]);
    while server.log().is_empty() {
        std::thread::sleep(Duration::from_millis(5));
    }
    running.kill();
    running.wait().fails(-9);
    let directory = sandbox.path("cache/git-kustomize-localize/git");
    let of_url = directory
        .read_dir()
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let names = || -> Vec<String> {
        let entries = of_url.read_dir().unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    };
    let left = names();
    assert!(
        left.len() == 1 && left[0].starts_with("fetching-"),
        "{left:?}"
    );
    // Two days later.
    let old = std::time::SystemTime::now() - Duration::from_secs(2 * 24 * 60 * 60);
    fs::File::open(of_url.join(&left[0]))
        .unwrap()
        .set_modified(old)
        .unwrap();

    server.unroute(path);
    repo.run(&["app"]).success();
    assert_eq!(names(), [id]);
}

#[test]
fn two_runs_may_meet_in_a_cold_cache() {
    let sandbox = Sandbox::new();
    let up = upstream(&sandbox, "up");
    let url = format!("file://{}//base?ref=v1", up.path().display());
    let repo = naming(&sandbox, &[&url]);
    let runs: Vec<_> = (0..4)
        .map(|number| repo.start(&["app", &format!("out-{number}"), "--no-commit"]))
        .collect();
    for run in runs {
        run.wait().success();
    }
}

#[test]
fn a_cache_that_cannot_be_had_is_explained() {
    let sandbox = Sandbox::new();
    let up = upstream(&sandbox, "up");
    let url = format!("file://{}//base?ref=v1", up.path().display());
    let repo = naming(&sandbox, &[&url]);
    fs::write(sandbox.path("file"), "").unwrap();
    sandbox.set("XDG_CACHE_HOME", sandbox.path("file"));
    let output = repo.run(&["app"]);
    output
        .fails(2)
        .stderr_has("could not write the cache `")
        .stderr_has("hint: set XDG_CACHE_HOME");
    sandbox.unset("XDG_CACHE_HOME");
    sandbox.unset("HOME");
    let output = repo.run(&["app"]);
    output
        .fails(2)
        .stderr_has("there is no place for a cache")
        .stderr_has("hint: set HOME or XDG_CACHE_HOME");
    // Who brings in nothing needs no cache.
    repo.write("app/kustomization.yaml", "resources: [cm.yaml]\n");
    repo.write("app/cm.yaml", config_map("local"));
    repo.commit("local");
    repo.run(&["app"]).success();
}

/// The address of a server that accepts connections and says nothing.
fn silent() -> (std::net::TcpListener, String) {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}/acme/base.git", listener.local_addr().unwrap());
    (listener, url)
}

/// Returns the processes of the sandbox that still run.
fn alive(sandbox: &Sandbox) -> Vec<String> {
    let marker = format!("XDG_CACHE_HOME={}", sandbox.path("cache").display());
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        if String::from_utf8_lossy(&environment).contains(&marker) {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            found.push(String::from_utf8_lossy(&line).replace('\0', " "));
        }
    }
    found
}

#[test]
fn a_server_that_says_nothing_ends_at_the_deadline() {
    let sandbox = Sandbox::new();
    let (_listener, url) = silent();
    for (query, args) in [
        ("&timeout=1", [].as_slice()),
        ("&timeout=50", &["--timeout", "1"]),
    ] {
        let repo = naming(&sandbox, &[&format!("{url}?ref=v1{query}")]);
        let before = repo.state();
        let started = Instant::now();
        let output = repo.run(&[["app"].as_slice(), args].concat());
        output
            .fails(2)
            .stderr_has(&format!("{url} did not answer within 1 s"));
        output.stderr_has("hint: give it more time with `--timeout SECONDS`");
        lasts_at_most(started, 8);
        before.assert_same(&repo.state());
        assert_eq!(alive(&sandbox), [""; 0]);
        assert_eq!(half_repositories(&sandbox), [""; 0]);
    }
}

fn half_repositories(sandbox: &Sandbox) -> Vec<String> {
    let git = sandbox.path("cache/git-kustomize-localize/git");
    let urls = git.read_dir().into_iter().flatten().flatten();
    urls.flat_map(|url| url.path().read_dir().unwrap().flatten())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect()
}

#[test]
fn an_interrupt_ends_a_fetch_at_once() {
    let sandbox = Sandbox::new();
    let (listener, url) = silent();
    // More than are fetched side by side: none may be started when another is ended.
    let references: Vec<String> = (0..20)
        .map(|number| format!("{url}?ref=v{number}"))
        .collect();
    let repo = naming(
        &sandbox,
        &references.iter().map(String::as_str).collect::<Vec<_>>(),
    );
    let before = repo.state();
    let running = repo.start(&["app"]);
    let clients: Vec<_> = (0..3).map(|_| listener.accept().unwrap()).collect();
    let started = Instant::now();
    running.interrupt();
    let output = running.wait();
    output.fails(130);
    lasts_at_most(started, 5);
    drop(clients);
    before.assert_same(&repo.state());
    assert_eq!(half_repositories(&sandbox), [""; 0]);
    assert_eq!(sandbox.leftovers(), [""; 0]);
    assert_eq!(alive(&sandbox), [""; 0]);
}

/// A terminal of its own, on which a question can be answered.
#[track_caller]
fn on_a_terminal(
    sandbox: &Sandbox,
    repo: &Repo,
    args: &[&str],
    answers: &[(&str, &str)],
) -> Option<(i32, String)> {
    const DRIVER: &str = r#"
import os, pty, select, sys, time, signal
answers = [pair.split('=>') for pair in sys.argv[1].split('|')]
pid, fd = pty.fork()
if pid == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
seen, start = '', time.time()
unasked = seen
while time.time() - start < 60:
    ready, _, _ = select.select([fd], [], [], 0.2)
    if ready:
        try:
            data = os.read(fd, 4096)
        except OSError:
            break
        if not data:
            break
        seen += data.decode('utf-8', 'replace')
        unasked += data.decode('utf-8', 'replace')
        if answers and answers[0][0] in unasked:
            os.write(fd, (answers.pop(0)[1] + '\n').encode())
            unasked = ''
else:
    os.kill(pid, signal.SIGKILL)
_, status = os.waitpid(pid, 0)
sys.stdout.write(seen)
sys.exit(os.waitstatus_to_exitcode(status))
"#;
    let python = sandbox
        .command("python3", repo.path())
        .arg("--version")
        .output();
    if python.is_err() {
        eprintln!("skipped: no python3 to drive a terminal");
        return None;
    }
    let dialogue: Vec<String> = answers
        .iter()
        .map(|(question, answer)| format!("{question}=>{answer}"))
        .collect();
    let mut command = sandbox.command("python3", repo.path());
    command.args([
        "-c",
        DRIVER,
        &dialogue.join("|"),
        env!("CARGO_BIN_EXE_git-kustomize-localize"),
    ]);
    let output = crate::support::Running::start(command.args(args)).wait();
    Some((output.status, output.stdout))
}

#[test]
fn on_a_terminal_git_may_ask_for_a_password() {
    let sandbox = Sandbox::new();
    sandbox.unset("GIT_TERMINAL_PROMPT");
    let server = Server::start();
    upstream(&sandbox, "srv/acme/base");
    server.serve_git("/git/", &sandbox.path("srv"));
    server.require_password("/git/", "me", "s3cr3t");
    let repo = naming(
        &sandbox,
        &[&format!("{}acme/base.git?ref=v1", server.git_url())],
    );
    let dialogue = [("Username for", "me"), ("Password for", "s3cr3t")];
    let Some((status, text)) = on_a_terminal(&sandbox, &repo, &["app"], &dialogue) else {
        return;
    };
    assert_eq!(status, 0, "{text}");
    assert!(
        text.contains("Username for") && text.contains("Password for"),
        "{text}"
    );
    assert!(!text.contains("s3cr3t"), "{text}");
}

#[test]
fn submodules_are_checked_out_when_they_are_used() {
    let sandbox = Sandbox::new();
    let server = Server::start();
    upstream(&sandbox, "srv/acme/inner");
    let library = upstream(&sandbox, "srv/acme/library");
    let add = |repo: &Repo, url: &str, path: &str| {
        repo.git(&[
            "-c",
            "protocol.file.allow=always",
            "submodule",
            "--quiet",
            "add",
            url,
            path,
        ]);
    };
    server.serve_git("/git/", &sandbox.path("srv"));
    let git = server.git_url();
    add(&library, &format!("{git}acme/inner"), "vendor/inner");
    library.git(&[
        "config",
        "-f",
        ".gitmodules",
        "submodule.vendor/inner.url",
        "../inner",
    ]);
    library.commit("inner");
    let app = upstream(&sandbox, "srv/acme/app");
    add(&app, &format!("{git}acme/library"), "lib");
    add(&app, &format!("{git}acme/library"), "unused");
    app.git(&[
        "config",
        "-f",
        ".gitmodules",
        "submodule.lib.url",
        "./../library.git",
    ]);
    app.git(&[
        "config",
        "-f",
        ".gitmodules",
        "submodule.unused.url",
        "../nowhere.git",
    ]);
    app.write(
        "overlay/kustomization.yaml",
        "resources: [../lib/base, ../lib/vendor/inner/base]\n",
    );
    app.commit("submodules");
    server.forget();

    let repo = naming(&sandbox, &[&format!("{git}acme/app.git/overlay?ref=main")]);
    repo.run(&["app"]).success();
    let files = repo.files("localized/main").join("\n");
    assert!(files.contains("/lib/base/cm.yaml"), "{files}");
    assert!(files.contains("/lib/vendor/inner/base/cm.yaml"), "{files}");
    assert!(!server.log().iter().any(|line| line.contains("nowhere")));

    let repo = naming(
        &sandbox,
        &[&format!(
            "{git}acme/app.git/overlay?ref=main&submodules=false"
        )],
    );
    let output = repo.run(&["app", "--dry-run"]);
    output
        .fails(2)
        .stderr_has("`../lib/base` lies in the submodule");

    // A root that needs the missing one says which.
    app.write("broken/kustomization.yaml", "resources: [../unused/base]\n");
    app.commit("broken");
    let repo = naming(&sandbox, &[&format!("{git}acme/app.git/broken?ref=main")]);
    let output = repo.run(&["app", "--dry-run", "--update"]);
    output
        .fails(2)
        .stderr_has("submodule `")
        .stderr_has("unused")
        .stderr_has("acme/nowhere.git");
}

#[test]
fn submodules_of_the_file_system_are_refused_as_git_does() {
    let sandbox = Sandbox::new();
    let library = upstream(&sandbox, "library");
    let app = upstream(&sandbox, "app");
    let url = format!("file://{}", library.path().display());
    app.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        &url,
        "lib",
    ]);
    app.write("overlay/kustomization.yaml", "resources: [../lib/base]\n");
    app.commit("submodule");
    let repo = naming(
        &sandbox,
        &[&format!(
            "file://{}//overlay?ref=main",
            app.path().display()
        )],
    );
    repo.run(&["app"])
        .fails(2)
        .stderr_has("transport 'file' not allowed")
        .stderr_has("submodule `");
    sandbox.configure("protocol.file.allow", "always");
    repo.run(&["app"]).success();
}

#[test]
fn hostile_submodules_start_nothing() {
    let sandbox = Sandbox::new();
    let library = upstream(&sandbox, "library");
    let head = library.id("HEAD");
    let app = upstream(&sandbox, "app");
    app.write("overlay/kustomization.yaml", "resources: [../lib/base]\n");
    app.commit("overlay");
    let mark = sandbox.path("pwned");
    let log = count_git(&sandbox);
    for (url, why) in [
        (
            format!("ext::sh -c touch% {}", mark.display()),
            "transport is not supported",
        ),
        (
            format!("--upload-pack=touch {}", mark.display()),
            "git could take it for something else",
        ),
        (
            "../../../../../../../../../../../../x".to_owned(),
            "it climbs out of its server",
        ),
        (
            "ssh://-oProxyCommand=touch/x".to_owned(),
            "git could take it for something else",
        ),
        (
            "-oProxyCommand=touch:x".to_owned(),
            "git could take it for something else",
        ),
        ("git://h/x".to_owned(), "transport is not supported"),
    ] {
        app.write(
            ".gitmodules",
            format!("[submodule \"lib\"]\n\tpath = lib\n\turl = \"{url}\"\n"),
        );
        app.git(&[
            "update-index",
            "--add",
            "--cacheinfo",
            &format!("160000,{head},lib"),
        ]);
        app.git(&["add", ".gitmodules"]);
        app.git(&["commit", "-qm", "hostile"]);
        let id = app.id("HEAD");
        let repo = naming(
            &sandbox,
            &[&format!(
                "file://{}//overlay?ref={id}",
                app.path().display()
            )],
        );
        fs::write(&log, "").unwrap();
        let output = repo.run(&["app", "--update"]);
        output
            .fails(2)
            .stderr_has(why)
            .stderr_has("submodules=false");
        assert_eq!(
            taken(&log, "fetch").len(),
            1,
            "only the repository itself: {url}"
        );
        assert!(!mark.exists(), "{url}");
    }
    // A path that leaves the repository is nowhere in its tree.
    app.write(
        ".gitmodules",
        format!(
            "[submodule \"lib\"]\n\tpath = ../../lib\n\turl = file://{}\n",
            library.path().display()
        ),
    );
    app.git(&["add", ".gitmodules"]);
    app.git(&["commit", "-qm", "escape"]);
    let repo = naming(
        &sandbox,
        &[&format!(
            "file://{}//overlay?ref=main",
            app.path().display()
        )],
    );
    repo.run(&["app", "--update"])
        .fails(2)
        .stderr_has("`../lib/base` lies in the submodule");
}

#[test]
fn what_git_could_take_for_an_option_never_reaches_it() {
    let sandbox = Sandbox::new();
    let log = count_git(&sandbox);
    let repo = naming(&sandbox, &["."]);
    for text in [
        "https://git.example.com/o/r?ref=--upload-pack=x",
        "https://git.example.com/o/r.git?ref=-x",
        "ssh://-oProxyCommand=x/o/r?ref=v1",
        "ssh://git@-oProxyCommand=x/o/r?ref=v1",
        "git@-oProxyCommand=x:o/r?ref=v1",
        "https://git.example.com/o/r.git/-x?ref=v1",
        "https://git.example.com/o/r.git?ref=a%0ab",
        "https://git.example.com/o/r.git?ref=a%00b",
        "https://git.example.com/o/r.git?ref=a..b",
        "https://git.example.com/o/r.git?ref=%2Bmain",
        "https://git.example.com/o/r.git?ref=main:refs/heads/x",
        "https://git.example.com/o%0ax/r.git?ref=v1",
        "git@git.example.com:-o/r\u{7}?ref=v1",
    ] {
        repo.write(
            "app/kustomization.yaml",
            format!("resources:\n- {text:?}\n"),
        );
        let text = repo.read("app/kustomization.yaml").replace("\\u{7}", "\\a");
        repo.write("app/kustomization.yaml", &text);
        repo.commit("hostile");
        fs::write(&log, "").unwrap();
        let output = repo.run(&["app"]);
        output.fails(2);
        let refused = ["is refused: ", "control characters"];
        assert!(
            refused.iter().any(|it| output.stderr.contains(it)),
            "{text}\n{output:?}"
        );
        assert_nothing_fetched(&log, &output);
    }
    for text in [
        "git://h/o/r",
        "s3::https://h/o/r",
        "oci://h/o/r",
        "ftp://h/o/r",
        "ext::sh -c x",
    ] {
        name(&repo, &[text]);
        fs::write(&log, "").unwrap();
        let output = repo.run(&["app"]);
        output
            .fails(2)
            .stderr_has("kustomize cannot read `")
            .stderr_has("hint: use an https, ssh or file URL");
        assert_nothing_fetched(&log, &output);
    }
}

#[track_caller]
fn assert_nothing_fetched(log: &PathBuf, output: &Output) {
    let calls = fs::read_to_string(log).unwrap();
    for command in [" fetch ", "ls-remote", "init "] {
        assert!(!calls.contains(command), "{calls}\n{output:?}");
    }
}

#[test]
fn a_remote_repository_may_not_name_paths_of_this_machine() {
    let sandbox = Sandbox::new();
    let server = Server::start();
    let private = upstream(&sandbox, "private");
    let local = format!("file://{}//base?ref=v1", private.path().display());
    let app = upstream(&sandbox, "srv/acme/app");
    app.write(
        "overlay/kustomization.yaml",
        format!("resources: [{local:?}]\n"),
    );
    app.commit("local");
    server.serve_git("/git/", &sandbox.path("srv"));
    let repo = naming(
        &sandbox,
        &[&format!(
            "{}acme/app.git/overlay?ref=main",
            server.git_url()
        )],
    );
    let output = repo.run(&["app"]);
    output
        .fails(2)
        .stderr_has("overlay/kustomization.yaml:1:13: resources[0]: ");
    output.stderr_has("a remote repository may not name a path of this machine");
    // The user may, and so may a repository that itself lies on this machine.
    name(
        &repo,
        &[
            &local,
            &format!("file://{}//overlay?ref=main", app.path().display()),
        ],
    );
    repo.run(&["app"]).success();
}

#[test]
fn settings_of_the_user_do_not_get_in_the_way() {
    let sandbox = Sandbox::new();
    let up = upstream(&sandbox, "up");
    let repo = naming(
        &sandbox,
        &[&format!("file://{}//base?ref=v1", up.path().display())],
    );
    let hooks = sandbox.path("hooks");
    fs::create_dir(&hooks).unwrap();
    let hook = hooks.join("reference-transaction");
    fs::write(&hook, "#!/bin/sh\nexit 1\n").unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    for (key, value) in [
        ("init.defaultRefFormat", "reftable"),
        ("init.defaultObjectFormat", "sha256"),
        ("init.templateDir", "/nowhere"),
        ("safe.bareRepository", "explicit"),
        ("submodule.recurse", "true"),
        ("fetch.prune", "true"),
        ("fetch.all", "true"),
        ("fetch.writeCommitGraph", "true"),
        ("transfer.unpackLimit", "1000"),
        ("core.autocrlf", "true"),
        ("core.pager", "false"),
        ("color.ui", "always"),
    ] {
        sandbox.configure(key, value);
    }
    repo.git(&["config", "core.hooksPath", "/dev/null"]);
    sandbox.configure("core.hooksPath", hooks.to_str().unwrap());
    repo.run(&["app"]).success();
    repo.run(&["app", "--update", "--dry-run"]).success();
}

#[test]
fn a_host_that_is_not_there_is_asked_once() {
    let sandbox = Sandbox::new();
    let port = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = port.local_addr().unwrap();
    drop(port);
    let repo = naming(
        &sandbox,
        &[&format!("http://{address}/acme/base.git?ref=v1")],
    );
    let started = Instant::now();
    let output = repo.run(&["app"]);
    output
        .fails(2)
        .stderr_has(&format!("could not fetch http://{address}/acme/base.git: "));
    output
        .stderr_has("hint: check the host's name, the network and the proxy")
        .lacks("as a file");
    lasts_at_most(started, 3);
}

#[test]
fn a_certificate_that_is_not_trusted_is_explained() {
    let sandbox = Sandbox::new();
    let server = Server::start();
    upstream(&sandbox, "srv/acme/base");
    server.serve_git("/git/", &sandbox.path("srv"));
    let url = format!("{}git/acme/base.git", server.tls_url());
    let repo = naming(&sandbox, &[&format!("{url}?ref=v1")]);
    let output = repo.run(&["app"]);
    output
        .fails(2)
        .stderr_has("certificate")
        .stderr_has("`http.sslCAInfo`");
    sandbox.trust(&server);
    repo.run(&["app"]).success();
}
