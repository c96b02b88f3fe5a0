//! How upstreams are reached: ssh, settings of the user, credentials, certificates.

use super::*;
use crate::support::{Running, Transcript, program, tool};

#[test]
fn ssh_is_the_users_own() {
    let sandbox = Sandbox::new();
    upstream(&sandbox, "srv/acme/base");
    // A fake sshd: run the command, in the directory of the repositories.
    let log = sandbox.path("ssh.log");
    let (to, srv) = (log.display(), sandbox.path("srv"));
    let body = format!(
        "printf '%s\\n' \"$*\" >>'{to}'\nfor last; do :; done\ncd '{}' && eval \"$(echo \"$last\" | sed \"s,'/*,',\")\"",
        srv.display()
    );
    sandbox.script("fake-ssh", &body);
    sandbox.set("GIT_SSH_COMMAND", "fake-ssh");
    sandbox.set("GIT_SSH_VARIANT", "ssh");
    let urls = [
        "ssh://git@git.example.com/acme/base",
        "git@git.example.com:acme/base",
        "ssh://git@git.example.com:2222/acme/base",
    ];
    let repo = naming(&sandbox, &urls.map(|url| format!("{url}//base?ref=v1")));
    repo.run(&["app"]).success();
    let calls = fs::read_to_string(log).unwrap();
    for part in ["git@git.example.com git-upload-pack", "-p 2222"] {
        assert!(calls.contains(part), "{calls}");
    }
    let lock = lock(&repo);
    for url in urls {
        assert!(lock.contains(&format!("{url}\n")), "no {url}\n{lock}");
    }
}

#[test]
fn ssh_that_refuses_is_explained() {
    let sandbox = Sandbox::new();
    let repo = naming(&sandbox, &["git@git.example.com:acme/base?ref=v1"]);
    sandbox.set("GIT_SSH_COMMAND", "fake-ssh");
    let mut transcript = Transcript::default();
    for said in [
        "git@git.example.com: Permission denied (publickey)",
        "Host key verification failed",
        "ssh: Could not resolve hostname git.example.com: Name or service not known",
    ] {
        sandbox.script("fake-ssh", &format!("echo '{said}' >&2; exit 255"));
        transcript.add(repo.run(&["app"]).fails(2));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize app --no-verify
        error: app/kustomization.yaml:2:3: resources[0]: could not fetch git@git.example.com:acme/base: git@git.example.com: Permission denied (publickey)
          hint: the server rejected the credentials: make `git ls-remote` of that URL work, with a credential helper, an ssh key, or `url.<base>.insteadOf`
        hint: to leave it remote, add to `allow` in `.kustomize-localize`:
          - {url: 'git@git.example.com:acme/base?ref=v1', reason: 'TODO'}
        $ git kustomize-localize app --no-verify
        error: app/kustomization.yaml:2:3: resources[0]: could not fetch git@git.example.com:acme/base: Host key verification failed
          hint: connect once with ssh to accept the host's key
        hint: to leave it remote, add to `allow` in `.kustomize-localize`:
          - {url: 'git@git.example.com:acme/base?ref=v1', reason: 'TODO'}
        $ git kustomize-localize app --no-verify
        error: app/kustomization.yaml:2:3: resources[0]: could not fetch git@git.example.com:acme/base: ssh: Could not resolve hostname git.example.com: Name or service not known
          hint: check the host's name, the network and the proxy (`https_proxy`)
    "#]]);
}

#[test]
fn instead_of_works_wherever_it_is_set() {
    let (sandbox, up, _) = local();
    let id = up.id("HEAD");
    let repo = naming(&sandbox, &["https://git.example.com/up//base?ref=v1"]);
    let key = format!("url.file://{}.insteadOf", sandbox.path("").display());
    let value = "https://git.example.com/";
    sandbox.offer_itself();
    let finds_it = |options: &[&str]| {
        let command = ["kustomize-localize", "app", "--no-verify", "--dry-run", "--format", "json"];
        repo.try_git(&[options, &command].concat()).success().stdout_has(&id);
        forget(&sandbox);
    };
    repo.git(&["config", &key, value]);
    finds_it(&[]);
    repo.git(&["config", "--unset", &key]);
    // As git hands it to its sub-commands.
    finds_it(&["-c", &format!("{key}={value}")]);
    sandbox.configure(&key, value);
    finds_it(&[]);
}

/// CI checkouts leave the job's token in the repository's own configuration.
#[test]
fn a_header_of_the_repository_is_sent_once() {
    let (sandbox, server, up, url) = served();
    server.require_password("/git/", "x-access-token", "t0ken");
    let repo = naming(&sandbox, &[format!("{url}//base?ref=main")]);
    let key = format!("http.{}.extraheader", server.url());
    let header = "Authorization: Basic eC1hY2Nlc3MtdG9rZW46dDBrZW4=";
    repo.git(&["config", &key, header]);
    let log = count_git(&sandbox);
    repo.run(&["app"]).success();
    up.write("base/cm.yaml", config_map("two"));
    up.commit("two");
    // Now also `ls-remote`, which runs where the repository's configuration could be found.
    repo.run(&["app", "--branch=again1"]).success();
    let requests = server.requests();
    let of_git = |path: &str| path.ends_with("/info/refs") || path.ends_with("upload-pack");
    let of_git: Vec<_> = requests.iter().filter(|it| of_git(&it.path)).collect();
    assert!(!of_git.is_empty());
    for request in of_git {
        assert_eq!(request.headers("authorization"), 1, "{request:?}");
    }
    let calls = fs::read_to_string(&log).unwrap();
    assert!(!calls.contains("eC1hY2"), "it is an argument\n{calls}");
    // Settings of the caller win over those of the repository, as always with git.
    for (name, value) in [("COUNT", "1"), ("KEY_0", &key), ("VALUE_0", "")] {
        sandbox.set(&format!("GIT_CONFIG_{name}"), value);
    }
    repo.run(&["app", "--branch=again2"])
        .fails(2)
        .says(expect![[r#"
            error: app/kustomization.yaml:2:3: resources[0]: could not fetch http://127.0.0.1:…/git/acme/base.git: could not read Username for 'http://127.0.0.1:…': terminal prompts disabled
              hint: it is private, or does not exist: make `git ls-remote` of that URL work, with a credential helper or `url.<base>.insteadOf`
            hint: to leave it remote, add to `allow` in `.kustomize-localize`:
              - {url: 'http://127.0.0.1:…/git/acme/base.git//base?ref=main', reason: 'TODO'}
        "#]]);
}

#[test]
fn credentials_come_from_the_helper_or_the_url() {
    let (sandbox, server, up, url) = served();
    let id = up.id("HEAD");
    server.require_password("/git/", "me", "s3cr3t");
    let repo = naming(&sandbox, &[format!("{url}?ref=v1")]);
    let started = Instant::now();
    repo.run_unchanged(&["app"])
        .fails(2)
        .says(expect![[r#"
            error: app/kustomization.yaml:2:3: resources[0]: could not fetch http://127.0.0.1:…/git/acme/base.git: could not read Username for 'http://127.0.0.1:…': terminal prompts disabled
              hint: it is private, or does not exist: make `git ls-remote` of that URL work, with a credential helper or `url.<base>.insteadOf`
            hint: to leave it remote, add to `allow` in `.kustomize-localize`:
              - {url: 'http://127.0.0.1:…/git/acme/base.git?ref=v1', reason: 'TODO'}
        "#]]);
    lasts_at_most(started, 20);

    sandbox.script(
        "git-credential-any",
        "echo \"$1\" >>\"$HOME/asked\"; test \"$1\" = get && printf 'username=me\\npassword=s3cr3t\\n'",
    );
    repo.git(&["config", "credential.helper", "any"]);
    repo.run(&["app", "--dry-run", "--format", "json"]).success().stdout_has(&id).lacks("s3cr3t");
    let asked = fs::read_to_string(sandbox.path("home/asked")).unwrap();
    assert!(asked.starts_with("get\n"), "{asked}");
    repo.git(&["config", "--unset", "credential.helper"]);

    let with = |login: &str| url.replace("http://", &format!("http://{login}@"));
    naming(&sandbox, &[format!("{}?ref=v1", with("me:s3cr3t"))]);
    repo.run(&["app"]).success().says(expect![[r#"
        localized app into localized-app on branch localized/main (<0>): 5 files written, 1 reference rewritten, 0 removed
          added http://127.0.0.1:…/git/acme/base.git?ref=v1 <1>
          not verified: --no-verify
          to look at it: git show --stat <0>
    "#]]);
    naming(&sandbox, &[format!("{}?ref=v1", with("me:wr0ng"))]);
    repo.run(&["app", "--branch=again3"])
        .fails(2)
        .says(expect![[r#"
            error: app/kustomization.yaml:2:3: resources[0]: could not fetch http://127.0.0.1:…/git/acme/base.git: Authentication failed for 'http://127.0.0.1:…/git/acme/base.git/'
              hint: the server rejected the credentials: make `git ls-remote` of that URL work, with a credential helper, an ssh key, or `url.<base>.insteadOf`
            hint: to leave it remote, add to `allow` in `.kustomize-localize`:
              - {url: 'http://127.0.0.1:…/git/acme/base.git?ref=v1', reason: 'TODO'}
        "#]]);
}

/// Answers questions on a terminal of its own.
const DRIVER: &str = r#"
import os, pty, sys
answers = [('Username for', 'me'), ('Password for', 's3cr3t')]
pid, fd = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
seen = unasked = ''
while True:
    try:
        data = os.read(fd, 4096).decode('utf-8', 'replace')
    except OSError:
        data = ''
    if not data:
        break
    seen += data
    unasked += data
    if answers and answers[0][0] in unasked:
        os.write(fd, (answers.pop(0)[1] + '\n').encode())
        unasked = ''
_, status = os.waitpid(pid, 0)
sys.stdout.write(seen)
sys.exit(os.waitstatus_to_exitcode(status))
"#;

#[test]
fn on_a_terminal_git_may_ask_for_a_password() {
    let Some(python) = tool("python3") else { return };
    let (sandbox, server, _up, url) = served();
    sandbox.unset("GIT_TERMINAL_PROMPT");
    server.require_password("/git/", "me", "s3cr3t");
    let repo = naming(&sandbox, &[format!("{url}?ref=v1")]);
    let mut command = sandbox.command(python, repo.path());
    command.args(["-c", DRIVER]).arg(program()).args(["app", "--no-verify"]);
    Running::start(&mut command).wait().success().stdout_has("Username for").stdout_has("Password for").lacks("s3cr3t");
}

#[test]
fn settings_of_the_user_do_not_get_in_the_way() {
    let (sandbox, _up, url) = local();
    let repo = naming(&sandbox, &[format!("{url}//base?ref=v1")]);
    // A hook that refuses every ref.
    sandbox.script("reference-transaction", "exit 1");
    let mut settings = String::new();
    for (section, name, value) in [
        ("init", "defaultRefFormat", "reftable"),
        ("init", "defaultObjectFormat", "sha256"),
        ("init", "templateDir", "/nowhere"),
        ("safe", "bareRepository", "explicit"),
        ("submodule", "recurse", "true"),
        ("fetch", "prune", "true"),
        ("fetch", "all", "true"),
        ("fetch", "writeCommitGraph", "true"),
        ("transfer", "unpackLimit", "1000"),
        ("core", "autocrlf", "true"),
        ("core", "pager", "false"),
        ("core", "hooksPath", sandbox.path("bin").to_str().unwrap()),
        ("color", "ui", "always"),
    ] {
        settings += &format!("[{section}]\n\t{name} = {value}\n");
    }
    fs::write(sandbox.path("gitconfig"), settings).unwrap();
    repo.git(&["config", "core.hooksPath", "/dev/null"]);
    repo.run(&["app"]).success();
    repo.run(&["app", "--branch=again4", "--dry-run"]).success();
}

#[test]
fn a_host_that_is_not_there_is_asked_once() {
    let sandbox = Sandbox::new();
    let port = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}/acme/base.git", port.local_addr().unwrap());
    drop(port);
    let repo = naming(&sandbox, &[format!("{url}?ref=v1")]);
    let started = Instant::now();
    repo.run(&["app"])
        .fails(2)
        .stderr_has(&format!("could not fetch {url}: "))
        .stderr_has("hint: check the host's name, the network and the proxy")
        .lacks("as a file");
    lasts_at_most(started, 20);
}

#[test]
fn a_certificate_that_is_not_trusted_is_explained() {
    let (sandbox, server, _up, _) = served();
    let url = format!("{}git/acme/base.git", server.tls_url());
    let repo = naming(&sandbox, &[format!("{url}?ref=v1")]);
    repo.run(&["app"]).fails(2).stderr_has("certificate").stderr_has("`http.sslCAInfo`");
    sandbox.trust(&server);
    repo.run(&["app"]).success();
}

#[test]
fn a_proxy_or_a_certificate_that_is_not_there_is_named() {
    let (sandbox, server, _up, _) = served();
    let there = format!("{}git/acme/base.git?ref=v1", server.tls_url());
    let file = "https://raw.example.com/cm.yaml".to_owned();
    for (set, url, said) in [
        ("https_proxy=http://proxy.invalid:3128", "https://git.example.com/acme/base.git?ref=v1", "`https_proxy`"),
        ("https_proxy=http://127.0.0.1:9", "https://git.example.com/acme/base.git?ref=v1", "`https_proxy`"),
        ("https_proxy=http://proxy.invalid:3128", &file, "could not resolve the proxy (`https_proxy`)"),
        ("https_proxy=http://127.0.0.1:9", &file, "cannot connect to the proxy (`https_proxy`)"),
        ("no_proxy=*", "https://127.0.0.1:1/cm.yaml", "hint: check the host name and the network\n"),
        ("GIT_SSL_CAINFO=/no/such.pem", &there, "`GIT_SSL_CAINFO` names a file that does not exist: /no/such.pem"),
        ("GIT_SSL_CERT=/no/such.pem", &there, "`GIT_SSL_CERT` names a file that does not exist: /no/such.pem"),
    ] {
        let (name, value) = set.split_once('=').unwrap();
        sandbox.set(name, value);
        naming(&sandbox, &[url]).run(&["app"]).fails(2).stderr_has(said).lacks("allow:").lacks("`http_proxy`");
        sandbox.unset(name);
    }
    sandbox.configure("http.sslCAInfo", "/no/such.pem");
    naming(&sandbox, &[&there]).run(&["app"]).fails(2).stderr_has("`http.sslCAInfo` names a file that does not exist");
    let file = format!("{}cm.yaml", server.tls_url());
    sandbox.set("SSL_CERT_FILE", "/no/such.pem");
    naming(&sandbox, &[file]).run(&["app"]).fails(2).stderr_has("`SSL_CERT_FILE` names a file that does not exist");
}

#[test]
fn a_missing_repository_is_told_from_one_that_a_login_may_not_read() {
    let (sandbox, server, _up, url) = served();
    let missing = format!("{}?ref=v1", url.replace("base", "nowhere"));
    naming(&sandbox, &[&missing])
        .run(&["app"])
        .fails(2)
        .says(expect![[r#"
            error: app/kustomization.yaml:2:3: resources[0]: could not fetch http://127.0.0.1:…/git/acme/nowhere.git: repository 'http://127.0.0.1:…/git/acme/nowhere.git/' not found
              hint: check the URL (kustomize splits it after two segments, at `.git`, or at `//`); if the repository moved or is private, ask its owner
            hint: to leave it remote, run `git kustomize-localize init`, or add to `allow` in `.kustomize-localize`:
              - {url: 'http://127.0.0.1:…/git/acme/nowhere.git?ref=v1', reason: 'TODO'}
        "#]]);
    server.require_password("/git/", "me", "s3cr3t");
    sandbox.script("git-credential-any", "test \"$1\" = get && printf 'username=me\\npassword=s3cr3t\\n'");
    sandbox.configure("credential.helper", "any");
    naming(&sandbox, &[&missing]).run(&["app"]).fails(2).says(expect![[r#"
        error: app/kustomization.yaml:2:3: resources[0]: could not fetch http://127.0.0.1:…/git/acme/nowhere.git: repository 'http://127.0.0.1:…/git/acme/nowhere.git/' not found
          hint: it does not exist, or your login cannot read it: check both
        hint: to leave it remote, run `git kustomize-localize init`, or add to `allow` in `.kustomize-localize`:
          - {url: 'http://127.0.0.1:…/git/acme/nowhere.git?ref=v1', reason: 'TODO'}
    "#]]);
}

#[test]
fn the_name_of_a_repository_explains_nothing() {
    let (sandbox, server, _up, _) = served();
    let names = ["certificates", "certificate", "filter-plugin", "filter"];
    for name in names {
        upstream(&sandbox, &format!("srv/acme/{name}"));
    }
    let git = server.git_url();
    let repo = naming(&sandbox, &names.map(|name| format!("{git}acme/{name}.git?ref=main")));
    repo.run(&["lock"]).success();
    repo.commit("locked");
    fs::remove_dir_all(sandbox.path("srv")).unwrap();
    forget(&sandbox);
    let gone = repo.run(&["verify", "--upstream"]).fails(1).stdout.clone();
    assert_eq!(gone.matches(": gone: ").count(), names.len(), "{gone}");
    let log = count_git(&sandbox);
    repo.remove("kustomize-localize.lock");
    let output = repo.run(&["lock"]);
    output.fails(1).says(expect![[r#"
        nothing was written
        error: app/kustomization.yaml:2:3: resources[0]: could not fetch http://127.0.0.1:…/git/acme/certificates.git: repository 'http://127.0.0.1:…/git/acme/certificates.git/' not found
        error: app/kustomization.yaml:3:3: resources[1]: could not fetch http://127.0.0.1:…/git/acme/certificate.git: repository 'http://127.0.0.1:…/git/acme/certificate.git/' not found
        error: app/kustomization.yaml:4:3: resources[2]: could not fetch http://127.0.0.1:…/git/acme/filter-plugin.git: repository 'http://127.0.0.1:…/git/acme/filter-plugin.git/' not found
        error: app/kustomization.yaml:5:3: resources[3]: could not fetch http://127.0.0.1:…/git/acme/filter.git: repository 'http://127.0.0.1:…/git/acme/filter.git/' not found
          hint: check the URL (kustomize splits it after two segments, at `.git`, or at `//`); if the repository moved or is private, ask its owner
        hint: to leave it remote, run `git kustomize-localize init`, or add to `allow` in `.kustomize-localize`:
          - {url: 'http://127.0.0.1:…/git/acme/certificate.git?ref=main', reason: 'TODO'}
          - {url: 'http://127.0.0.1:…/git/acme/certificates.git?ref=main', reason: 'TODO'}
          - {url: 'http://127.0.0.1:…/git/acme/filter-plugin.git?ref=main', reason: 'TODO'}
          - {url: 'http://127.0.0.1:…/git/acme/filter.git?ref=main', reason: 'TODO'}
        error: 4 references could not be locked
    "#]]);
    let fetches = taken(&log, "fetch");
    assert!(fetches.len() <= names.len(), "{fetches:?}");
}

#[test]
fn what_is_said_about_a_repository_is_told_from_its_name() {
    let sandbox = Sandbox::new();
    sandbox.set("GIT_SSH_COMMAND", "fake-ssh");
    let url = "git@git.example.com:acme/base";
    let repo = naming(&sandbox, &[format!("{url}?ref=main")]);
    let commit = "1".repeat(40);
    repo.write(
        "kustomize-localize.lock",
        format!("version: 1\nremotes:\n- url: {url}\n  ref: main\n  commit: {commit}\n  paths: {{.: {{}}}}\n"),
    );
    repo.commit("locked");
    for (status, said) in [
        // Azure DevOps names a repository without quotes.
        (1, "remote: TF401019: The Git repository with name or identifier certificate does not exist"),
        (1, "fatal: \"/srv/permission denied (x)\" does not appear to be a git repository"),
        (1, "ERROR: Repository not found."),
        (2, "fatal: unable to access \"https://h/does not exist\": it is too slow"),
        (2, "fatal: unable to access \"https://h/o/r\": SSL certificate problem: not found"),
    ] {
        let said = said.replace('"', "'\\''");
        sandbox.script("fake-ssh", &format!("echo '{said}' >&2; exit 255"));
        repo.run(&["verify", "--upstream"]).fails(status);
    }
}
