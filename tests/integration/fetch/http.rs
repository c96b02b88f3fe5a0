//! Remote files, and how a file is distinguished from a root.

use std::time::{Duration, Instant};

use super::{forget, naming, upstream, using};
use crate::support::{Kustomize, Output, Reply, Sandbox, Server, config_map};

#[test]
fn a_url_is_asked_for_once() {
    let sandbox = Sandbox::new();
    let server = Server::start();
    let [url, other] = ["cm", "other"].map(|name| {
        let path = format!("a/b/{name}.yaml");
        let reply = Reply::ok(config_map(name)).delay(Duration::from_millis(100));
        server.route(&format!("/{path}"), reply);
        format!("{}{path}", server.url())
    });
    let text = format!(
        "resources: [../x, ../y, '{url}', '{other}']\nconfigMapGenerator:\n- name: g\n  files: ['{url}', key={url}]\n"
    );
    let repo = using(&sandbox, &text);
    for name in ["x", "y"] {
        let text = format!("resources: ['{url}']\nnamePrefix: {name}-\n");
        repo.write(&format!("{name}/kustomization.yaml"), text);
    }
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
    let empty = "the server returned an empty body";
    let names_a_file = "check that the URL names a file";
    let cases = [
        ("empty", Reply::ok(""), empty, names_a_file),
        // Neighbours with the same hint would give it once.
        ("login", Reply::status(401), "answered 401 Unauthorized", "store one in git's credential helper"),
        ("page", Reply::ok(html), "is an HTML page, not a file", "use the URL of the raw file"),
        ("gone", Reply::status(404), "answered 404 Not Found", "check the URL"),
        ("none", Reply::status(204), empty, names_a_file),
        ("refused", Reply::status(403), "answered 403 Forbidden", "set a credential helper for its host"),
    ];
    let mut fields = String::new();
    for (name, reply, ..) in &cases {
        server.route(&format!("/a/b/{name}"), reply.clone());
        fields.push_str(&format!("- {}a/b/{name}\n", server.url()));
    }
    let repo = using(&sandbox, &format!("crds:\n{fields}"));
    let started = Instant::now();
    let output = repo.run_unchanged(&["app"]);
    assert!(started.elapsed() < Duration::from_secs(30));
    output.fails(2);
    for (index, (name, _, message, hint)) in cases.iter().enumerate() {
        let place = format!("app/kustomization.yaml:{}:3: crds[{index}]: ", index + 2);
        let said = failure(&output, &place);
        for part in [&format!("a/b/{name}"), *message, *hint] {
            assert!(said.contains(part), "no {part:?} in {said}");
        }
    }
    // None of these is tried again.
    assert_eq!(server.log().len(), cases.len());
    // A page is data where it is meant, by its own name or by that of its key.
    server.route("/a/b/index.html", Reply::ok(html));
    let files = |last: &str| {
        let url = format!("{}a/b", server.url());
        using(
            &sandbox,
            &format!("configMapGenerator:\n- name: a\n  files: ['{url}/index.html', 'x.htm={url}/page'{last}]\n"),
        )
    };
    files("").run(&["app"]).success();
    let last = format!(", 'index.txt={}a/b/page'", server.url());
    files(&last)
        .run(&["app", "--overwrite"])
        .fails(2)
        .says(expect![[r#"
            error: app/kustomization.yaml:3:93: configMapGenerator[0].files[2]: http://127.0.0.1:…/a/b/page is an HTML page, not a file that a build can read
              hint: use the URL of the raw file; if it is a login page, the server requires credentials
        "#]]);
}

#[test]
fn a_locked_page_changes_like_any_file_where_it_is_meant() {
    let (sandbox, server) = (Sandbox::new(), Server::start());
    let page = |text: &str| server.route("/page", Reply::ok(format!("<!DOCTYPE html>\n<html>{text}</html>\n")));
    page("one");
    let text = format!("configMapGenerator:\n- name: a\n  files: ['index.html={}page']\n", server.url());
    let repo = using(&sandbox, &text);
    repo.run(&["lock"]).success();
    repo.commit("lock");
    page("two");
    forget(&sandbox);
    repo.run_unchanged(&["app"]).fails(2).says(expect![[r#"
        error: app/kustomization.yaml:3:11: configMapGenerator[0].files[0]: http://127.0.0.1:…/page has changed since it was locked: expected sha256 <0>, found <1>
          hint: to lock its new content: `git kustomize-localize update`; if only the lock of NEW_DIR has it, remove NEW_DIR and copy again
    "#]]);
}

/// Returns the failure that names this place.
#[track_caller]
fn failure<'a>(output: &'a Output, place: &str) -> &'a str {
    let mut failures = output.stderr.split("error: ");
    let found = failures.find(|failure| failure.contains(place));
    found.unwrap_or_else(|| panic!("no {place}\n{output:?}"))
}

#[test]
fn a_file_that_moved_is_recorded_where_it_was_named() {
    let sandbox = Sandbox::new();
    let server = Server::start();
    server.route("/a/b/moved", Reply::redirect("/c/d/file?sig=x"));
    server.route("/c/d/file?sig=x", Reply::ok("{}\n"));
    let repo = using(&sandbox, &format!("crds: ['{}a/b/moved']\n", server.url()));
    repo.run(&["app"]).success().says(expect![[r#"
        localized app into localized-app on branch localized/main (<0>): 4 files written, 1 reference rewritten, 0 removed
          added http://127.0.0.1:…/a/b/moved <1>
          not verified: --no-verify
          to look at it: git show --stat <0>
    "#]]);
    let lock = super::lock(&repo);
    assert!(lock.contains("a/b/moved") && !lock.contains("c/d/file"));
}

/// Every row of what `kustomize build` does with a URL, next to what it really does.
#[test]
fn the_answer_decides_between_file_and_root_as_in_kustomize() {
    let sandbox = Sandbox::new();
    let server = Server::start();
    for name in ["repo", "paged", "both", "texted"] {
        upstream(&sandbox, &format!("srv/acme/{name}"));
    }
    server.serve_git("/", &sandbox.path("srv"));
    let file = || Reply::ok(config_map("file"));
    let many = format!("{}---\n{}", config_map("file"), config_map("second"));
    let html = "<!DOCTYPE html>\n<html></html>\n";
    for (path, reply) in [
        ("/a/b/file.yaml", file()),
        ("/a/b/api?ref=main", file()),
        ("/a/b/many.yaml", Reply::ok(many)),
        ("/acme/paged?ref=v1", Reply::ok(html)),
        ("/acme/texted?ref=v1", Reply::ok("just some text\n")),
        ("/acme/both?ref=v1", file()),
        ("/a/b/c//x.yaml?ref=v1", file()),
        ("/a/.github/x.yaml", file()),
        ("/acme/repo.git/raw/x.yaml?ref=v1", file()),
        ("/moved", Reply::redirect("/a/b/file.yaml")),
        ("/g/p/-/raw/v1/a.yaml", file()),
        ("/-/snippets/1/raw/main/a.yaml?ref=v1", file()),
    ] {
        server.route(path, reply);
    }
    let url = server.url();
    let url = url.trim_end_matches('/');
    // What the result holds, below roots whose prefix is the number of the row.
    let good = [
        ("/a/b/file.yaml", "file"),
        ("/a/b/api?ref=main", "file"),
        ("/a/b/many.yaml", "file"),
        ("/moved", "file"),
        ("/g/p/-/raw/v1/a.yaml", "file"),
        ("/-/snippets/1/raw/main/a.yaml?ref=v1", "file"),
        ("/acme/repo?ref=v1", "top"),
        ("/acme/repo/base?ref=v1", "one"),
        ("/acme/repo//base?ref=v1", "one"),
        ("/acme/repo.git?ref=v1", "top"),
        ("/acme/paged?ref=v1", "top"),
        ("/acme/texted?ref=v1", "top"),
        ("/acme/both?ref=v1", "file"),
        ("/a/b/c//x.yaml?ref=v1", "file"),
        ("/a/.github/x.yaml", "file"),
        ("/acme/repo.git/raw/x.yaml?ref=v1", "file"),
    ];
    let roots: String = (0..good.len()).map(|row| format!("- ../r{row}\n")).collect();
    let repo = using(&sandbox, &format!("resources:\n{roots}"));
    for (row, (path, _)) in good.iter().enumerate() {
        let text = format!("namePrefix: r{row}-\nresources: ['{url}{path}']\n");
        repo.write(&format!("r{row}/kustomization.yaml"), text);
    }
    repo.commit("roots");
    let copy = ["app", "copy", "--scope", ".", "--no-commit"];
    repo.run(&copy).success();
    for (row, (path, name)) in good.iter().enumerate() {
        let root = repo.path().join(format!("copy/r{row}"));
        let mut grep = sandbox.command("grep", &root);
        let found = grep.args(["-rl", &format!("name: {name}$"), "."]).output();
        assert!(found.unwrap().status.success(), "{path} is not {name}");
    }
    let kustomize = Kustomize::find();
    if let Some(kustomize) = &kustomize {
        let built = kustomize.build(&sandbox, repo.path(), "app");
        for (row, (path, name)) in good.iter().enumerate() {
            let line = format!("  name: r{row}-{name}\n");
            assert!(built.stdout.contains(&line), "{path}: {built:?}");
        }
    }
    // What is said where both ways fail, and what is not.
    let bad = [
        ("/acme/repo/nowhere?ref=v1", "there is no directory `nowhere` in", "404 Not Found"),
        ("/acme/repo?ref=v9", "acme/repo has no ref `v9`", "404 Not Found"),
        ("/a/missing?ref=v1", "answered 404 Not Found; as a git repository: could not fetch", "no ref"),
        ("/a/b/missing.yaml", "404 Not Found", "git repository"),
        ("/missing.yaml", "/missing.yaml: 127.0.0.1", "git repository"),
        ("/a/b/-c.yaml?ref=v1", "-c.yaml?ref=v1` is refused: its directory begins with `-`", "could not fetch"),
    ];
    let repo = naming(&sandbox, &bad.map(|(path, ..)| format!("{url}{path}")));
    let output = repo.run_unchanged(&["app", "--no-commit"]);
    output.fails(2);
    for (row, (path, said, unsaid)) in bad.iter().enumerate() {
        let failure = failure(&output, &format!("resources[{row}]: "));
        assert!(failure.contains(said), "{path}: {failure}");
        assert!(!failure.contains(unsaid), "{path}: {failure}");
        if let Some(kustomize) = &kustomize {
            naming(&sandbox, &[format!("{url}{path}")]);
            let built = kustomize.build(&sandbox, repo.path(), "app");
            assert_ne!(built.status, 0, "{path}: {built:?}");
        }
    }
}

#[test]
fn git_is_not_asked_where_the_file_is_there() {
    let sandbox = Sandbox::new();
    let server = Server::start();
    server.route("/a/b/raw?ref=main", Reply::ok(config_map("file")));
    server.route("/a/b/info/refs?service=git-upload-pack", Reply::status(404).delay(Duration::from_secs(30)));
    let repo = naming(&sandbox, &[format!("{}a/b/raw?ref=main", server.url())]);
    let started = Instant::now();
    repo.run(&["app"]).success();
    assert!(started.elapsed() < Duration::from_secs(25));
    let git = sandbox.path("cache/git-kustomize-localize/git");
    let urls = git.read_dir().into_iter().flatten().flatten();
    let mut left = urls.flat_map(|url| url.path().read_dir().unwrap());
    assert!(left.next().is_none());
}

#[test]
fn one_url_may_begin_a_file_and_a_root() {
    let (sandbox, server, ..) = super::served();
    server.serve_git("/", &sandbox.path("srv"));
    let url = format!("{}acme/base", server.url());
    server.route("/acme/base/raw?ref=v1", Reply::ok(config_map("file")));
    server.route("/acme/base/base?ref=v1", Reply::status(404).delay(Duration::from_millis(300)));
    let repo = naming(&sandbox, &["raw", "base"].map(|path| format!("{url}/{path}?ref=v1")));
    repo.run(&["app"]).success();
    let files = repo.files("localized/main").join("\n");
    for path in ["base/cm.yaml", "acme/base/raw"] {
        assert!(files.contains(path), "{files}");
    }
}

#[test]
fn everything_goes_through_the_proxy() {
    let sandbox = Sandbox::new();
    let server = Server::start();
    upstream(&sandbox, "srv/acme/repo");
    server.serve_git("https://github.com/", &sandbox.path("srv"));
    let file = "https://raw.example.com/o/r/cm.yaml";
    server.route(file, Reply::ok(config_map("file")));
    sandbox.send_through(&server);
    let repo = naming(&sandbox, &[file, "https://github.com/acme/repo//base?ref=v1"]);
    repo.run(&["app"]).success();
    let log = server.log().join("\n");
    assert!(log.contains(" https://github.com/acme/repo"), "{log}");
    // A proxy that is not there is named as the reason.
    for name in ["http_proxy", "https_proxy", "HTTPS_PROXY"] {
        sandbox.set(name, "http://127.0.0.1:9");
    }
    using(&sandbox, "crds: ['https://raw.example.com/o/r/crd.json']\n");
    repo.run(&["app"]).fails(2).says(expect![[r#"
        error: app/kustomization.yaml:1:8: crds[0]: cannot connect to the proxy (`https_proxy`): Connection refused (os error 111)
          hint: correct `https_proxy`, or exclude hosts with `no_proxy`
    "#]]);
}
