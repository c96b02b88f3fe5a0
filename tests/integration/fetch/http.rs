//! Remote files, and how a file is distinguished from a root.

use std::fs;
use std::time::{Duration, Instant};

use crate::support::{Kustomize, Reply, Repo, Sandbox, Server};

fn config_map(name: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n")
}

/// Returns a repository whose `app` has this kustomization.
fn using(sandbox: &Sandbox, text: &str) -> Repo {
    let repo = sandbox.repo("work");
    repo.write("app/kustomization.yaml", text);
    repo.commit("source");
    repo
}

/// Returns an upstream with tag `v1`, a root at the top and one in `base`.
fn upstream(sandbox: &Sandbox, path: &str) -> Repo {
    let repo = sandbox.repo(path);
    repo.write("kustomization.yaml", "resources: [cm.yaml]\n");
    repo.write("cm.yaml", config_map("cloned"));
    repo.write("base/kustomization.yaml", "resources: [cm.yaml]\n");
    repo.write("base/cm.yaml", config_map("base"));
    repo.commit("one");
    repo.git(&["tag", "v1"]);
    repo
}

#[test]
fn a_url_is_asked_for_once() {
    let sandbox = Sandbox::new();
    let server = Server::start();
    let url = format!("{}a/b/cm.yaml", server.url());
    server.route(
        "/a/b/cm.yaml",
        Reply::ok(config_map("file")).delay(Duration::from_millis(100)),
    );
    server.route(
        "/a/b/other.yaml",
        Reply::ok(config_map("other")).delay(Duration::from_millis(100)),
    );
    let other = format!("{}a/b/other.yaml", server.url());
    let repo = using(
        &sandbox,
        &format!(
            "resources: [../x, ../y, '{url}', '{other}']\nconfigMapGenerator:\n- name: g\n  files: ['{url}', key={url}]\n"
        ),
    );
    repo.write(
        "x/kustomization.yaml",
        format!("resources: ['{url}']\nnamePrefix: x-\n"),
    );
    repo.write(
        "y/kustomization.yaml",
        format!("resources: ['{url}']\nnamePrefix: y-\n"),
    );
    repo.commit("more");
    repo.run(&["app", "--scope", "."]).success();
    let mut log = server.log();
    log.sort();
    assert_eq!(log, ["GET /a/b/cm.yaml", "GET /a/b/other.yaml"]);
    assert_eq!(server.most_at_once(), 2, "one after the other");
}

#[test]
fn a_url_without_a_file_is_an_error_that_names_url_and_field() {
    let sandbox = Sandbox::new();
    let server = Server::start();
    let html = "<!DOCTYPE html>\n<html><body>Sign in</body></html>\n";
    let cases = [
        (
            "empty",
            Reply::ok(""),
            "the server answered with an empty body",
            "check that the URL names a file",
        ),
        // Neighbours with the same hint would give it once.
        (
            "page",
            Reply::ok(html),
            "is an HTML page, not a file",
            "use the URL of the raw file",
        ),
        (
            "none",
            Reply::status(204),
            "the server answered with an empty body",
            "check that the URL names a file",
        ),
        (
            "login",
            Reply::status(401),
            "answered 401 Unauthorized",
            "to ~/.netrc or store one in git's credential helper",
        ),
        (
            "gone",
            Reply::status(404),
            "answered 404 Not Found",
            "check the URL",
        ),
        (
            "refused",
            Reply::status(403),
            "answered 403 Forbidden",
            "to ~/.netrc",
        ),
    ];
    let mut fields = String::new();
    for (name, reply, ..) in &cases {
        server.route(&format!("/a/b/{name}"), reply.clone());
        fields.push_str(&format!("- {}a/b/{name}\n", server.url()));
    }
    let repo = using(&sandbox, &format!("crds:\n{fields}"));
    let before = repo.state();
    let output = repo.run(&["app"]);
    output.fails(2);
    for (index, (name, _, message, hint)) in cases.iter().enumerate() {
        let place = format!("app/kustomization.yaml:{}:3: crds[{index}]: ", index + 2);
        let from = output
            .stderr
            .find(&place)
            .unwrap_or_else(|| panic!("no {place}\n{output:?}"));
        let said = output.stderr[from..].split("\nerror: ").next().unwrap();
        assert!(said.contains(&format!("a/b/{name}")), "{said}");
        assert!(
            said.contains(message) && said.contains(hint),
            "{message}: {said}"
        );
    }
    before.assert_same(&repo.state());
    assert_eq!(
        server.log().len(),
        cases.len(),
        "none of these is tried again"
    );
}

#[test]
fn transient_errors_are_retried() {
    let sandbox = Sandbox::new();
    let server = Server::start();
    let good = || Reply::ok("{}\n");
    for (path, bad) in [
        ("/a/b/busy", Reply::status(503)),
        ("/a/b/limit", Reply::status(429).header("Retry-After", "0")),
        ("/a/b/cut", good().truncate(1)),
        ("/a/b/lost", Reply::hang_up()),
    ] {
        server.route_in_turn(path, [bad, good()]);
    }
    let url = server.url();
    let repo = using(
        &sandbox,
        &format!("crds: [{url}a/b/busy, {url}a/b/limit, {url}a/b/cut, {url}a/b/lost]\n"),
    );
    repo.run(&["app"]).success();
    assert_eq!(server.log().len(), 8);
}

#[test]
fn redirects_are_followed_but_not_out_of_tls() {
    let sandbox = Sandbox::new();
    let server = Server::start();
    sandbox.trust(&server);
    server.route("/a/b/moved", Reply::redirect("/c/d/file?sig=x"));
    server.route("/c/d/file?sig=x", Reply::ok("{}\n"));
    let repo = using(&sandbox, &format!("crds: ['{}a/b/moved']\n", server.url()));
    repo.run(&["app"]).success();
    let lock = repo.show("localized/main", "localized-app/kustomize-localize.lock");
    assert!(
        lock.contains("a/b/moved") && !lock.contains("c/d/file"),
        "{lock}"
    );

    let target = format!("{}c/d/file?sig=x", server.url());
    server.route("/a/b/down", Reply::redirect(&target));
    server.forget();
    let repo = using(
        &sandbox,
        &format!("crds: ['{}a/b/down']\n", server.tls_url()),
    );
    let output = repo.run(&["app"]);
    output
        .fails(2)
        .stderr_has("redirects from https to http")
        .stderr_has("over https")
        .lacks("sig=x");
    assert_eq!(server.log(), ["GET /a/b/down"]);
}

#[test]
fn a_file_may_be_large_but_not_huge() {
    let sandbox = Sandbox::new();
    let server = Server::start();
    server.route("/a/b/large", Reply::ok(vec![b'#'; 8 << 20]));
    // Announced, and so refused before it is read.
    server.route("/a/b/huge", Reply::ok(vec![b'#'; (64 << 20) + 1]));
    let generator = "configMapGenerator:\n- name: x\n  files: [";
    let repo = using(
        &sandbox,
        &format!("{generator}{}a/b/large]\n", server.url()),
    );
    repo.run(&["app", "--dry-run"]).success();
    let repo = using(&sandbox, &format!("{generator}{}a/b/huge]\n", server.url()));
    let output = repo.run(&["app", "--dry-run"]);
    output
        .fails(2)
        .stderr_has("a/b/huge: the file is too large: the limit is 64 MiB")
        .stderr_has("not an archive");
}

#[test]
fn logins_come_from_netrc_and_the_helper() {
    let sandbox = Sandbox::new();
    let server = Server::start();
    server.route("/a/b/private", Reply::ok("{}\n"));
    server.route("/a/b/open", Reply::ok("{}\n"));
    server.require_password("/a/b/private", "me", "s3cr3t");
    let url = server.url();
    let repo = using(
        &sandbox,
        &format!("crds: ['{url}a/b/private', '{url}a/b/open']\n"),
    );
    let asked = sandbox.path("asked");
    sandbox.configure(
        "credential.helper",
        &format!(
            "!f() {{ echo \"$1\" >>'{}'; printf 'username=me\\npassword=s3cr3t\\n'; }}; f",
            asked.display()
        ),
    );
    repo.run(&["app", "--dry-run"]).success();
    // Only the refused request asks, and once.
    assert_eq!(fs::read_to_string(&asked).unwrap(), "get\n");
    sandbox.git(
        &sandbox.path(""),
        &["config", "--global", "--unset", "credential.helper"],
    );

    fs::write(
        sandbox.path("home/.netrc"),
        "machine 127.0.0.1 login me password s3cr3t\n",
    )
    .unwrap();
    server.forget();
    repo.run(&["app", "--dry-run"]).success();
    assert_eq!(server.log().len(), 2, "the login was known beforehand");
    fs::write(
        sandbox.path("home/.netrc"),
        "machine 127.0.0.1 login me password wr0ng\n",
    )
    .unwrap();
    let output = repo.run(&["app", "--dry-run"]);
    output
        .fails(2)
        .stderr_has("answered 401")
        .stderr_has("check the entry for 127.0.0.1 in the netrc file")
        .lacks("wr0ng");

    fs::remove_file(sandbox.path("home/.netrc")).unwrap();
    let private = format!("{}a/b/private", url.replace("http://", "http://me:s3cr3t@"));
    let repo = using(&sandbox, &format!("crds: ['{private}']\n"));
    repo.run(&["app", "--dry-run"]).success().lacks("s3cr3t");
}

#[test]
fn a_dripping_server_ends_at_the_deadline() {
    let sandbox = Sandbox::new();
    let server = Server::start();
    let slow = Reply::ok(vec![b'#'; 1000]).drip(1, Duration::from_millis(50));
    server.route("/a/b/slow", slow);
    let repo = using(&sandbox, &format!("crds: [{}a/b/slow]\n", server.url()));
    let started = Instant::now();
    let output = repo.run(&["app", "--timeout", "1"]);
    output
        .fails(2)
        .stderr_has("a/b/slow: it took longer than 1 s")
        .stderr_has("hint: give it more time with `--timeout`");
    assert!(started.elapsed() < Duration::from_secs(30));
}

/// Every row of what `kustomize build` does with a URL, next to what it really does.
#[test]
fn the_answer_decides_between_file_and_root_as_in_kustomize() {
    let sandbox = Sandbox::new();
    let server = Server::start();
    let html = Reply::ok("<!DOCTYPE html>\n<html></html>\n");
    upstream(&sandbox, "srv/acme/repo");
    upstream(&sandbox, "srv/acme/paged");
    upstream(&sandbox, "srv/acme/both");
    upstream(&sandbox, "srv/acme/texted");
    server.serve_git("/", &sandbox.path("srv"));
    for (path, reply) in [
        ("/a/b/file.yaml", Reply::ok(config_map("file"))),
        ("/a/b/api?ref=main", Reply::ok(config_map("file"))),
        (
            "/a/b/many.yaml",
            Reply::ok(format!(
                "{}---\n{}",
                config_map("file"),
                config_map("second")
            )),
        ),
        ("/acme/paged?ref=v1", html),
        ("/acme/texted?ref=v1", Reply::ok("just some text\n")),
        ("/acme/both?ref=v1", Reply::ok(config_map("file"))),
        ("/a/b/c//x.yaml?ref=v1", Reply::ok(config_map("file"))),
        ("/a/.github/x.yaml", Reply::ok(config_map("file"))),
        (
            "/acme/repo.git/raw/x.yaml?ref=v1",
            Reply::ok(config_map("file")),
        ),
        ("/moved", Reply::redirect("/a/b/file.yaml")),
    ] {
        server.route(path, reply);
    }
    let kustomize = Kustomize::find();
    let url = server.url();
    let url = url.trim_end_matches('/');
    // What the result holds; an empty text is an error.
    for (path, name) in [
        ("/a/b/file.yaml", "file"),
        ("/a/b/api?ref=main", "file"),
        ("/a/b/many.yaml", "file"),
        ("/moved", "file"),
        ("/acme/repo?ref=v1", "cloned"),
        ("/acme/repo/base?ref=v1", "base"),
        ("/acme/repo//base?ref=v1", "base"),
        ("/acme/repo.git?ref=v1", "cloned"),
        ("/acme/paged?ref=v1", "cloned"),
        ("/acme/texted?ref=v1", "cloned"),
        ("/acme/both?ref=v1", "file"),
        ("/a/b/c//x.yaml?ref=v1", "file"),
        ("/a/.github/x.yaml", "file"),
        ("/acme/repo.git/raw/x.yaml?ref=v1", "file"),
        ("/acme/repo/nowhere?ref=v1", ""),
        ("/acme/repo?ref=v9", ""),
        ("/a/missing?ref=v1", ""),
        ("/a/b/missing.yaml", ""),
        ("/missing.yaml", ""),
    ] {
        let repo = using(&sandbox, &format!("resources: ['{url}{path}']\n"));
        let output = repo.run(&["app", "--no-commit"]);
        if let Some(kustomize) = &kustomize {
            let built = kustomize.build(&sandbox, repo.path(), "app");
            assert_eq!(built.status == 0, !name.is_empty(), "{path}: {built:?}");
            assert!(built.stdout.contains(name), "{path}: {built:?}");
        }
        if name.is_empty() {
            output.fails(2);
            continue;
        }
        output.success();
        let copy = repo.path().join("localized-app");
        let found = sandbox
            .command("grep", &copy)
            .args(["-rl", &format!("name: {name}$"), "."])
            .output();
        assert!(found.unwrap().status.success(), "{path} is not {name}");
        fs::remove_dir_all(copy).unwrap();
    }
    // And what is said where both ways fail.
    let said = |path: &str| {
        let repo = using(&sandbox, &format!("resources: ['{url}{path}']\n"));
        repo.run(&["app", "--no-commit"])
    };
    let both = said("/a/missing?ref=v1");
    both.stderr_has("answered 404 Not Found; as a git repository: could not fetch");
    said("/acme/repo?ref=v9")
        .stderr_has("acme/repo has no ref `v9`")
        .lacks("404");
    said("/acme/repo/nowhere?ref=v1")
        .stderr_has("there is no directory `nowhere` in")
        .lacks("404");
    said("/missing.yaml")
        .stderr_has("/missing.yaml: 127.0.0.1")
        .stderr_has("404")
        .lacks("git repository");
    said("/a/b/missing.yaml")
        .stderr_has("404")
        .lacks("git repository");
}

#[test]
fn a_guess_is_given_up_once_the_file_is_there() {
    let sandbox = Sandbox::new();
    let server = Server::start();
    server.route("/a/b/raw?ref=main", Reply::ok(config_map("file")));
    server.route(
        "/a/b/info/refs?service=git-upload-pack",
        Reply::status(404).delay(Duration::from_secs(30)),
    );
    let repo = using(
        &sandbox,
        &format!("resources: ['{}a/b/raw?ref=main']\n", server.url()),
    );
    let started = Instant::now();
    repo.run(&["app"]).success();
    assert!(started.elapsed() < Duration::from_secs(25));
    let git = sandbox.path("cache/git-kustomize-localize/git");
    let left: Vec<_> = git
        .read_dir()
        .into_iter()
        .flatten()
        .flatten()
        .flat_map(|url| url.path().read_dir().unwrap())
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

/// The repository of a guess that was given up for one reference is still there for another.
#[test]
fn a_guess_that_was_given_up_can_be_wanted_elsewhere() {
    let sandbox = Sandbox::new();
    let server = Server::start();
    upstream(&sandbox, "srv/acme/repo");
    server.serve_git("/", &sandbox.path("srv"));
    server.route("/acme/repo/raw?ref=v1", Reply::ok(config_map("file")));
    server.route(
        "/acme/repo/base?ref=v1",
        Reply::status(404).delay(Duration::from_millis(300)),
    );
    let url = server.url();
    let repo = using(
        &sandbox,
        &format!("resources: ['{url}acme/repo/raw?ref=v1', '{url}acme/repo/base?ref=v1']\n"),
    );
    repo.run(&["app"]).success();
    let files = repo.files("localized/main").join("\n");
    assert!(
        files.contains("base/cm.yaml") && files.contains("acme/repo/raw"),
        "{files}"
    );
}

#[test]
fn everything_goes_through_the_proxy() {
    let sandbox = Sandbox::new();
    let server = Server::start();
    upstream(&sandbox, "srv/acme/repo");
    server.serve_git("https://github.com/", &sandbox.path("srv"));
    server.route(
        "https://raw.example.com/o/r/cm.yaml",
        Reply::ok(config_map("file")),
    );
    sandbox.send_through(&server);
    let repo = using(
        &sandbox,
        "resources: ['https://raw.example.com/o/r/cm.yaml', 'https://github.com/acme/repo//base?ref=v1']\n",
    );
    repo.run(&["app"]).success();
    let log = server.log();
    assert!(
        log.iter()
            .any(|line| line.contains("https://github.com/acme/repo")),
        "{log:#?}"
    );
    // A proxy that is not there is named as the reason.
    for name in ["http_proxy", "https_proxy", "HTTPS_PROXY"] {
        sandbox.set(name, "http://127.0.0.1:9");
    }
    let repo = using(&sandbox, "crds: ['https://raw.example.com/o/r/crd.json']\n");
    repo.run(&["app", "--timeout", "1"])
        .fails(2)
        .stderr_has("check the proxy that");
}
