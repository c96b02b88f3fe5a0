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

use super::{forget, local, lock, naming, served, upstream};
use crate::support::{Reply, Repo, Sandbox, Transcript, config_map, rows};

/// Writes every start of git from now on into a file, and returns that file.
pub(super) fn count_git(sandbox: &Sandbox) -> PathBuf {
    let log = sandbox.path("git.log");
    let real = crate::support::tool("git").unwrap();
    let (to, real) = (log.display(), real.display());
    // Arguments may hold any byte.
    let script = format!("printf '%s\\n' \"$*\" | LC_ALL=C tr -cd '\\11\\12\\40-\\176' >>'{to}'\nexec {real} \"$@\"");
    sandbox.script("git", &script);
    log
}

/// Returns the starts of git that a log holds, of one sub-command, and empties it.
fn taken(log: &PathBuf, command: &str) -> Vec<String> {
    let text = fs::read_to_string(log).unwrap_or_default();
    fs::write(log, "").unwrap();
    let word = format!(" {command} ");
    text.lines().filter(|line| format!(" {line} ").contains(&word)).map(str::to_owned).collect()
}

#[track_caller]
fn lasts_at_most(started: Instant, seconds: u64) {
    let took = started.elapsed();
    assert!(took < Duration::from_secs(seconds), "it took {took:?}");
}

#[test]
fn a_ref_is_the_commit_that_git_fetches() {
    let (sandbox, _server, up, url) = served();
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
    let repo = naming(&sandbox, &references.map(|reference| format!("{url}//base?ref={reference}")));
    repo.run(&["app"]).success();
    let lock = lock(&repo).replace('"', "");
    sandbox.git(&sandbox.path(""), &["init", "-q", "--bare", "bare"]);
    let bare = sandbox.path("bare");
    for reference in references {
        sandbox.git(&bare, &["fetch", "-q", "--depth=1", &url, reference]);
        let id = sandbox.git(&bare, &["rev-parse", "FETCH_HEAD^{commit}"]);
        let line = format!("ref: {reference}\n");
        let mut entries = lock.split("  - url: ");
        let entry = entries.find(|entry| entry.contains(&line)).unwrap();
        assert!(entry.contains(&format!("commit: {id}\n")), "{reference} is not {id}\n{entry}");
    }
}

#[test]
fn the_same_holds_when_the_cache_knows_the_repository() {
    let (sandbox, up, url) = local();
    let first = up.id("HEAD");
    up.git(&["tag", "-a", "-m", "annotated", "annotated"]);
    up.git(&["branch", "both"]);
    up.git(&["branch", "x/v1"]);
    let repo = naming(&sandbox, &[format!("{url}//base?ref={first}")]);
    repo.run(&["app"]).success();
    up.write("base/cm.yaml", config_map("two"));
    let second = up.commit("two");
    up.git(&["tag", "both"]);

    let log = count_git(&sandbox);

    for (query, id) in [
        ("ref=v1", &first),
        ("ref=annotated", &first),
        ("ref=both", &second),
        ("ref=main", &second),
        ("ref=heads/both", &first),
        ("ref=HEAD", &second),
        // An alias; and the first one wins.
        ("version=v1", &first),
        ("ref=v1&ref=main", &first),
        ("version=v1&submodules=false", &first),
    ] {
        naming(&sandbox, &[format!("{url}//base?{query}")]);
        taken(&log, "fetch");
        repo.run(&["app", "--dry-run", "--format", "json"]).success().stdout_has(id);
    }

    // `both`, the tag, was the only new commit: one fetch, and then none.
    assert_eq!(taken(&log, "fetch"), crate::support::NONE);
}

#[test]
fn a_ref_that_is_not_there_is_named() {
    let (sandbox, _server, up, url) = served();
    let short = &up.id("HEAD")[..12];
    let gone = "0123456789012345678901234567890123456789";
    let cases = ["v9", short, gone];
    // Cold, then with a cache that knows the repository.
    let mut transcript = Transcript::default();
    for _ in 0..2 {
        for reference in cases {
            let repo = naming(&sandbox, &[format!("{url}//base?ref={reference}")]);
            transcript.add(repo.run_unchanged(&["app"]).fails(2));
        }
        let repo = naming(&sandbox, &[format!("{url}//base?ref=v1")]);
        repo.run(&["app", "--dry-run"]).success();
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize app --no-verify
        error: app/kustomization.yaml:2:3: resources[0]: http://127.0.0.1:…/git/acme/base.git has no ref `v9`
          hint: list its refs: git ls-remote http://127.0.0.1:…/git/acme/base.git
        hint: to leave it remote, run `git kustomize-localize init`, or add to `allow` in `.kustomize-localize`:
          - {url: 'http://127.0.0.1:…/git/acme/base.git//base?ref=v9', reason: 'TODO'}
        $ git kustomize-localize app --no-verify
        error: app/kustomization.yaml:2:3: resources[0]: http://127.0.0.1:…/git/acme/base.git has no ref `<0>`, and a short commit id cannot be fetched
          hint: write the commit id in full, 40 digits
        hint: to leave it remote, add to `allow` in `.kustomize-localize`:
          - {url: 'http://127.0.0.1:…/git/acme/base.git//base?ref=<0>', reason: 'TODO'}
        $ git kustomize-localize app --no-verify
        error: app/kustomization.yaml:2:3: resources[0]: http://127.0.0.1:…/git/acme/base.git does not have commit <0>
          hint: it may be gone: use a commit in a branch or tag of the repository
        hint: to leave it remote, run `git kustomize-localize init`, or add to `allow` in `.kustomize-localize`:
          - {url: 'http://127.0.0.1:…/git/acme/base.git//base?ref=<0>', reason: 'TODO'}
        $ git kustomize-localize app --no-verify
        error: app/kustomization.yaml:2:3: resources[0]: http://127.0.0.1:…/git/acme/base.git has no ref `v9`
          hint: list its refs: git ls-remote http://127.0.0.1:…/git/acme/base.git
        hint: to leave it remote, run `git kustomize-localize init`, or add to `allow` in `.kustomize-localize`:
          - {url: 'http://127.0.0.1:…/git/acme/base.git//base?ref=v9', reason: 'TODO'}
        $ git kustomize-localize app --no-verify
        error: app/kustomization.yaml:2:3: resources[0]: http://127.0.0.1:…/git/acme/base.git has no ref `<0>`, and a short commit id cannot be fetched
          hint: write the commit id in full, 40 digits
        hint: to leave it remote, add to `allow` in `.kustomize-localize`:
          - {url: 'http://127.0.0.1:…/git/acme/base.git//base?ref=<0>', reason: 'TODO'}
        $ git kustomize-localize app --no-verify
        error: app/kustomization.yaml:2:3: resources[0]: http://127.0.0.1:…/git/acme/base.git does not have commit <0>
          hint: it may be gone: use a commit in a branch or tag of the repository
        hint: to leave it remote, run `git kustomize-localize init`, or add to `allow` in `.kustomize-localize`:
          - {url: 'http://127.0.0.1:…/git/acme/base.git//base?ref=<0>', reason: 'TODO'}
    "#]]);
}

#[test]
fn without_a_ref_it_is_what_head_is() {
    let (sandbox, server, up, _) = served();
    let id = up.id("HEAD");
    server.serve_git("/", &sandbox.path("srv"));
    let url = format!("{}acme/base", server.url());
    let log = count_git(&sandbox);
    for text in [url.clone(), format!("{url}.git//base"), format!("{url}/base")] {
        let repo = naming(&sandbox, &[&text, &format!("{text}?timeout=9")]);
        taken(&log, "");
        repo.run(&["app"]).success();
        let asked = fs::read_to_string(&log).unwrap();
        let times = [" ls-remote ", " fetch "].map(|command| asked.matches(command).count());
        assert_eq!(times.iter().sum::<usize>(), 1, "HEAD, once: {asked}");
        assert!(lock(&repo).contains(&format!("commit: {id}\n")), "{text}");
    }
    let repo = naming(&sandbox, &[format!("{url}//base")]);
    repo.run(&["app"]).success();
    // Upstream renames its default branch and moves on: the lock keeps what was there.
    up.git(&["switch", "-q", "-c", "trunk"]);
    up.write("base/cm.yaml", config_map("two"));
    let new = up.commit("two");
    up.git(&["branch", "-q", "-D", "main"]);
    repo.run(&["app"]).success().says(expect![[r#"
        nothing to do: branch localized/main (<0>) already has app in localized-app
          not verified: --no-verify
    "#]]);
    repo.run(&["app", "--branch=again1"]).success();
    let lock = repo.show("again1", "localized-app/kustomize-localize.lock");
    assert!(lock.contains(&format!("commit: {new}\n")));
}

#[test]
fn a_query_that_kustomize_ignores_is_no_way_to_say_head() {
    let (sandbox, _up, url) = local();
    let dropped = format!("{url}?ref=v1;x");
    let repo = naming(&sandbox, &[&url, &dropped]);
    let mut transcript = Transcript::default();
    for command in ["branch", "app", "lock"] {
        let output = repo.run(&[command]);
        assert_ne!(output.status, 0);
        transcript.add(&output);
        if command != "branch" {
            output.stderr_has("write `?ref=TAG-OR-COMMIT` without `;`");
        }
        // The one beside it is not to blame.
        assert_eq!(output.stderr.matches(" resources[").count(), 1, "{output:?}");
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize branch --no-verify
        error[remote-reference]: `file:///home/me/up?ref=v1;x` is neither localized nor locked
         --> app/kustomization.yaml:3:3
          |
        3 | - "file:///home/me/up?ref=v1;x"
          |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[1]
          = help: write `?ref=TAG-OR-COMMIT` without `;`, and a `%` as `%25`

        error: <0> has 1 error (remote-reference 1): nothing was committed
          hint: for more: git kustomize-localize explain remote-reference
        $ git kustomize-localize app --no-verify
        error: app/kustomization.yaml:3:3: resources[1]: file:///home/me/up?ref=v1;x: the query cannot be parsed, so kustomize builds HEAD
          hint: write `?ref=TAG-OR-COMMIT` without `;`, and a `%` as `%25`
        hint: to leave it remote, add to `allow` in `.kustomize-localize`:
          - {url: 'file:///home/me/up', reason: 'TODO'}
        $ git kustomize-localize lock
        kustomize-localize.lock not changed: 1 remote reference
        error: app/kustomization.yaml:3:3: resources[1]: file:///home/me/up?ref=v1;x: the query cannot be parsed, so kustomize builds HEAD
          hint: write `?ref=TAG-OR-COMMIT` without `;`, and a `%` as `%25`
        hint: to leave it remote, add to `allow` in `.kustomize-localize`:
          - {url: 'file:///home/me/up', reason: 'TODO'}
        error: 1 reference could not be locked
    "#]]);
    // What the lock holds for HEAD is not what this one says.
    let repo = naming(&sandbox, &[&url]);
    repo.run(&["lock"]).success();
    naming(&sandbox, &[&url, &dropped]);
    let output = repo.run(&["check"]);
    output.fails(1).says(expect![[r#"
        error[remote-reference]: `file:///home/me/up?ref=v1;x` is neither localized nor locked
         --> app/kustomization.yaml:3:3
          |
        3 | - "file:///home/me/up?ref=v1;x"
          |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[1]
          = help: write `?ref=TAG-OR-COMMIT` without `;`, and a `%` as `%25`

        for more: git kustomize-localize explain remote-reference
        checked 1 kustomization with 2 references in the working tree: 1 error
    "#]]);
    assert_eq!(output.stdout.matches("error[").count(), 1, "{output:?}");
}

#[test]
fn texts_like_git_options_never_reach_git() {
    let sandbox = Sandbox::new();
    let log = count_git(&sandbox);
    let refused = [
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
        "git@git.example.com:-o/r\\a?ref=v1",
    ];
    let unreadable = ["git://h/o/r", "s3::https://h/o/r", "oci://h/o/r", "ftp://h/o/r", "ext::sh -c x"];
    for (references, said) in [
        (&refused[..], ["is refused: ", "control characters"]),
        (&unreadable, ["kustomize cannot read `", "kustomize does not read OCI yet"]),
    ] {
        for text in references {
            let text = format!("resources:\n- \"{text}\"\n");
            let repo = super::using(&sandbox, &text);
            fs::write(&log, "").unwrap();
            let output = repo.run(&["app"]);
            output.fails(2);
            let is_said = said.iter().any(|it| output.stderr.contains(it));
            assert!(is_said, "{text}\n{output:?}");
            let calls = fs::read_to_string(&log).unwrap();
            for command in [" fetch ", "ls-remote", "init "] {
                assert!(!calls.contains(command), "{calls}\n{output:?}");
            }
        }
    }
}

#[test]
fn a_remote_repository_may_not_name_paths_of_this_machine() {
    let (sandbox, _server, up, url) = served();
    let private = upstream(&sandbox, "private");
    let local = format!("file://{}//base?ref=v1", private.path().display());
    let names = format!("resources: [{local:?}]\n");
    up.write("overlay/kustomization.yaml", names);
    up.commit("local");
    let repo = naming(&sandbox, &[format!("{url}//overlay?ref=main")]);
    repo.run(&["app"])
        .fails(2)
        .says(expect![[r#"
            error: http://127.0.0.1:…/git/acme/base.git?ref=main: overlay/kustomization.yaml:1:13: resources[0]: `file:///home/me/private//base?ref=v1` is refused: an upstream may not reference a local path
              reached from app/kustomization.yaml:2:3
              hint: your local files would be published: use another ref or a fork
        "#]]);
    // The user may, and so may a repository that itself lies on this machine.
    let own = format!("file://{}//overlay?ref=main", up.path().display());
    naming(&sandbox, &[local, own]);
    repo.run(&["app"]).success();
}
