//! How upstreams are reached: ssh, settings of the user, credentials, certificates.

use super::*;

#[test]
fn ssh_is_the_users_own() {
    let sandbox = Sandbox::new();
    upstream(&sandbox, "srv/acme/base");
    // A fake sshd: run the command, in the directory of the repositories.
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
    sandbox.offer_itself();
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

    // Settings of the caller win over those of the repository, as always with git.
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
    // It drives the terminal.
    crate::support::tool("python3")?;
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
    lasts_at_most(started, 20);
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

#[test]
fn the_name_of_a_repository_explains_nothing() {
    for name in ["certificates", "certificate", "filter-plugin", "filter"] {
        let sandbox = Sandbox::new();
        let server = Server::start();
        let path = format!("srv/acme/{name}");
        upstream(&sandbox, &path);
        server.serve_git("/git/", &sandbox.path("srv"));
        let url = format!("{}acme/{name}.git", server.git_url());
        let repo = naming(&sandbox, &[&format!("{url}?ref=main")]);
        repo.run(&["lock"]).success();
        repo.commit("locked");
        fs::remove_dir_all(sandbox.path(&path)).unwrap();
        fs::remove_dir_all(sandbox.path("cache")).unwrap();
        let log = count_git(&sandbox);
        fs::rename(
            repo.path().join("kustomize-localize.lock"),
            sandbox.path("lock"),
        )
        .unwrap();
        let output = repo.run(&["lock"]);
        output.fails(1).lacks("http.sslCAInfo");
        output.stderr_has("hint: check the URL");
        let fetches = taken(&log, "fetch");
        assert!(fetches.len() < 2, "{fetches:?}");
        fs::rename(
            sandbox.path("lock"),
            repo.path().join("kustomize-localize.lock"),
        )
        .unwrap();
        repo.run(&["verify", "--upstream"])
            .fails(1)
            .stdout_has(": gone: ");
    }
}

#[test]
fn what_is_said_about_a_repository_is_told_from_its_name() {
    let sandbox = Sandbox::new();
    sandbox.set("GIT_SSH_COMMAND", "fake-ssh");
    let url = "git@git.example.com:acme/base";
    let repo = naming(&sandbox, &[&format!("{url}?ref=main")]);
    repo.write(
        "kustomize-localize.lock",
        format!(
            "version: 1\nremotes:\n- url: {url}\n  ref: main\n  commit: {}\n  paths: [.]\n",
            "1".repeat(40)
        ),
    );
    repo.commit("locked");
    // Azure DevOps names a repository without quotes.
    for (said, status) in [
        (
            "remote: TF401019: The Git repository with name or identifier certificate does not exist",
            1,
        ),
        (
            "fatal: \"/srv/permission denied (x)\" does not appear to be a git repository",
            1,
        ),
        ("ERROR: Repository not found.", 1),
        (
            "fatal: unable to access \"https://h/does not exist\": it is too slow",
            2,
        ),
        (
            "fatal: unable to access \"https://h/o/r\": SSL certificate problem: not found",
            2,
        ),
    ] {
        let said = said.replace('"', "'\\''");
        sandbox.script(
            "fake-ssh",
            &format!("printf '%s\\n' '{said}' >&2; exit 255"),
        );
        repo.run(&["verify", "--upstream"]).fails(status);
    }
}
