//! Remote roots: which commit a ref is, over which transport, and what happens when it cannot be had.

mod cached;
mod connection;
mod deadline;
mod parts;
mod submodules;

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
fn without_a_ref_it_is_what_head_is() {
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
        repo.run(&["app"]).success();
        let asked = fs::read_to_string(&log).unwrap();
        let times = [" ls-remote ", " fetch "].map(|command| asked.matches(command).count());
        assert_eq!(
            times.iter().sum::<usize>(),
            1,
            "HEAD is asked for once: {asked}"
        );
        assert!(lock(&repo).contains(&format!("commit: {id}\n")), "{text}");
    }

    let repo = naming(&sandbox, &[&format!("{url}//base")]);
    repo.run(&["app"]).success();
    // Upstream renames its default branch and moves on: the lock keeps what was there.
    up.git(&["switch", "-q", "-c", "trunk"]);
    up.write("base/cm.yaml", config_map("two"));
    let new = up.commit("two");
    up.git(&["branch", "-q", "-D", "main"]);
    repo.run(&["app"]).success().stdout_has("nothing to do");
    repo.run(&["app", "--update"]).success();
    assert!(lock(&repo).contains(&format!("commit: {new}\n")));
}

#[test]
fn a_query_that_kustomize_ignores_is_no_way_to_say_head() {
    let sandbox = Sandbox::new();
    let up = upstream(&sandbox, "srv/acme/base");
    let url = format!("file://{}", up.path().display());
    let dropped = format!("{url}?ref=v1;x");
    let said = "the query cannot be parsed, so kustomize builds HEAD";
    let hint = "write `?ref=TAG-OR-COMMIT` without `;`";
    let repo = naming(&sandbox, &[&url, &dropped]);
    for command in [&["app"][..], &["--in-place"], &["lock"]] {
        let output = repo.run(command);
        assert_ne!(output.status, 0);
        output.stderr_has(said).stderr_has(hint);
        // The one beside it is not to blame.
        assert_eq!(
            output.stderr.matches(": resources[").count(),
            1,
            "{output:?}"
        );
    }
    // What the lock holds for HEAD is not what this one says.
    let repo = naming(&sandbox, &[&url]);
    repo.run(&["lock"]).success();
    repo.write(
        "app/kustomization.yaml",
        format!("resources: ['{url}', '{dropped}']\n"),
    );
    repo.git(&["add", "--all"]);
    let output = repo.run(&["check"]);
    output
        .fails(1)
        .stdout_has("with a query that kustomize ignores");
    assert_eq!(output.stdout.matches("error[").count(), 1, "{output:?}");
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
fn texts_like_git_options_never_reach_git() {
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
