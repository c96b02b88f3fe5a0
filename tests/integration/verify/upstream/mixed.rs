//! Beside what else `verify` does: records, paths, localizing again, signatures.

use std::fs;

use super::*;
use crate::support::{Project, Reply, Server, Transcript};

#[test]
fn a_branch_is_verified_and_its_remotes_are_asked() {
    let mut transcript = Transcript::default();
    for in_place in [false, true] {
        let project = Project::new();
        let work = &project.work;
        if in_place {
            work.run(&["branch", "--no-verify"]).success();
        } else {
            project.overlay(&["--no-verify"]).success();
        }
        transcript.add(ask(work, &["localized/main"]).success());
        // Also in a bare repository.
        let bare = project.sandbox.path("bare");
        let to = bare.to_str().unwrap();
        work.git(&["clone", "--quiet", "--bare", ".", to]);
        let inside = project.sandbox.run(&bare, &["verify", "--upstream", "localized/main"]);
        transcript.add(inside.success());
        fs::remove_dir_all(&bare).unwrap();
        // Everything at once, with one thing of each that differs.
        project.second_version();
        project.upstream.git(&["tag", "--force", "v1"]);
        work.git(&["switch", "--quiet", "localized/main"]);
        let place = work.git(&["ls-files", "*service.yaml"]);
        work.write(&place, "edited: by hand\n");
        work.commit("by hand");
        let args = ["--rebuild"];
        transcript.add(ask(work, &args).fails(1));
        let kinds: Vec<String> = report(work, &args, 1)["differences"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["kind"].as_str().unwrap().to_owned())
            .collect();
        for kind in ["file", "upstream"] {
            assert!(kinds.iter().any(|one| one == kind), "no {kind} in {kinds:?}");
        }
        // If it cannot be localized again, the rest is reported all the same.
        work.git(&["switch", "--quiet", "--detach", "HEAD^"]);
        fs::remove_dir_all(project.sandbox.path("upstream")).unwrap();
        fs::remove_dir_all(project.sandbox.path("cache")).unwrap();
        transcript.add(ask(work, &["--rebuild"]).fails(2));
        // No server is asked without `--upstream`.
        let offline = work.run_unchanged(&["verify", "--format", "json"]);
        assert_eq!(parsed(offline.success())["upstream"], Value::Null);
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize verify --upstream localized/main
        localized-overlay from example/overlay: 6 localized files, 1 upstream; recorded in the lock and in the message of <0>
        localized-overlay/kustomize-localize.lock:7: ok: https://example.com/acme/remote.git?ref=v1 is <1>
        upstream of 1 remote: 1 ok
        verified localized/main (<0>): as recorded
        $ git kustomize-localize verify --upstream --rebuild
        localized-overlay/base/localized-files/example.com/acme/remote/v1/service.yaml: was changed: its sha256 <0> differs from the lock
        localized-overlay/base/localized-files/example.com/acme/remote/v1/service.yaml: differs when localized again

        localized-overlay from example/overlay: 6 localized files, 1 upstream; recorded in the lock and in the message of <1>
        localized-overlay/kustomize-localize.lock:7: moved: https://example.com/acme/remote.git?ref=v1 was <2>, is <3>: the tag `v1` points to another commit
        upstream of 1 remote: 1 moved
          to update a copy: update the lock of its source, or, where that has none, remove it and copy again
        NOT verified HEAD (<4>): 3 differences
        $ git kustomize-localize verify --upstream --rebuild
        localized-overlay from example/overlay: 6 localized files, 1 upstream; recorded in the lock and in the message of <0>
        localized-overlay/kustomize-localize.lock:7: gone: https://example.com/acme/remote.git?ref=v1 was <1>: could not fetch https://example.com/acme/remote.git: '/home/me/upstream/acme/remote.git' does not appear to be a git repository
        upstream of 1 remote: 1 gone
        NOT verified HEAD (<0>): 1 difference
        error: example/base/kustomization.yaml:3:5: resources[1]: `localized-overlay` cannot be localized again: could not fetch https://example.com/acme/remote.git: '/home/me/upstream/acme/remote.git' does not appear to be a git repository
          hint: check the URL (kustomize splits it after two segments, at `.git`, or at `//`); if the repository moved or is private, ask its owner
        $ git kustomize-localize verify --upstream localized/main
        .: 3 localized files, 1 upstream; recorded in the lock and in the message of <0>
        kustomize-localize.lock:5: ok: https://example.com/acme/remote.git?ref=v1 is <1>
        upstream of 1 remote: 1 ok
        verified localized/main (<0>): as recorded
        $ git kustomize-localize verify --upstream --rebuild
        example/base/localized-files/example.com/acme/remote/v1/service.yaml: was changed: its sha256 <0> differs from the lock

        .: 3 localized files, 1 upstream; recorded in the lock and in the message of <1>
        kustomize-localize.lock:5: moved: https://example.com/acme/remote.git?ref=v1 was <2>, is <3>: the tag `v1` points to another commit
        upstream of 1 remote: 1 moved
          a moved version is only updated by name, once you know why it moved: git kustomize-localize update 'https://example.com/acme/remote.git?ref=v1'
        NOT verified HEAD (<4>): 2 differences
        $ git kustomize-localize verify --upstream --rebuild
        .: 3 localized files, 1 upstream; recorded in the lock and in the message of <0>
        kustomize-localize.lock:5: gone: https://example.com/acme/remote.git?ref=v1 was <1>: could not fetch https://example.com/acme/remote.git: '/home/me/upstream/acme/remote.git' does not appear to be a git repository
        upstream of 1 remote: 1 gone
        NOT verified HEAD (<0>): 1 difference
        error: example/base/kustomization.yaml:3:5: resources[1]: `.` cannot be localized again: could not fetch https://example.com/acme/remote.git: '/home/me/upstream/acme/remote.git' does not appear to be a git repository
          hint: check the URL (kustomize splits it after two segments, at `.git`, or at `//`); if the repository moved or is private, ask its owner
    "#]]);
}

#[test]
fn a_lock_at_the_top_is_enough_to_ask_upstream() {
    let project = Project::new();
    let work = &project.work;
    work.run(&["lock"]).success();
    work.commit("locked");
    ask(work, &[]).success().says(expect![[r#"
        kustomize-localize.lock:4: ok: https://example.com/acme/remote.git?ref=v1 is <0>
        upstream of 1 remote: 1 ok
        verified HEAD (<1>): as locked
    "#]]);
    ask(work, &["--rebuild"]).fails(2).says(expect![[r#"
        kustomize-localize.lock:4: ok: https://example.com/acme/remote.git?ref=v1 is <0>
        upstream of 1 remote: 1 ok
        NOT verified HEAD (<1>): not everything could be checked
        error: `HEAD` cannot be localized again: it has no localized files
          hint: commit the localized files: git kustomize-localize branch
    "#]]);
    // Without it, that is still no record.
    work.run_unchanged(&["verify"]).fails(2).says(expect![[r#"
        error: `HEAD` has no record: no `kustomize-localize.lock` in it lists localized files
          hint: commit the localized files: git kustomize-localize branch
    "#]]);
}

#[test]
fn there_must_be_a_lock() {
    let project = Project::new();
    let work = &project.work;
    ask(work, &[]).fails(2).says(expect![[r#"
        error: `HEAD` has no record: no `kustomize-localize.lock` in it lists localized files
          hint: if it references something remote, lock that: git kustomize-localize lock
    "#]]);
    assert_eq!(parsed(ask(work, &["--format", "json"]).fails(2))["outcome"], "failed");
    // One that lists nothing is enough: the last remote may be gone.
    work.write("kustomize-localize.lock", "version: 1\n");
    work.commit("nothing");
    ask(work, &[]).success().says(expect![[r#"
        upstream of 0 remotes: nothing to check
        verified HEAD (<0>): as locked
    "#]]);
    work.write("kustomize-localize.lock", "<<<<<<< HEAD\n");
    work.commit("conflict");
    ask(work, &[]).fails(2).says(expect![[r#"
        error: kustomize-localize.lock:1: contains a merge conflict
          hint: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
    "#]]);
}

#[test]
fn a_branch_with_nothing_remote_is_as_recorded() {
    let sandbox = Sandbox::new();
    let work = sandbox.repo("work");
    work.write("app/kustomization.yaml", "resources: [cm.yaml]\n");
    work.write("app/cm.yaml", config("app"));
    work.commit("app");
    work.run(&["branch", "--no-verify"]).success();
    ask(&work, &["localized/main"]).success().says(expect![[r#"
        .: 0 localized files, 0 upstreams; recorded in the lock and in the message of <0>
        upstream of 0 remotes: nothing to check
        verified localized/main (<0>): as recorded
    "#]]);
    let told = report(&work, &["localized/main"], 0);
    assert_eq!(told["upstream"], Value::Array(Vec::new()));
}

/// A repository in which two apps and a base that one of them uses name a file each.
fn apps(sandbox: &Sandbox, server: &Server) -> Repo {
    let repo = sandbox.repo("work");
    for name in ["a", "b", "base"] {
        server.route(&format!("/{name}.yaml"), Reply::ok(config(name)));
        let url = format!("{}{name}.yaml", server.url());
        repo.write(
            &format!("{name}/kustomization.yaml"),
            match name {
                "a" => format!("resources: ['{url}', ../base]\n"),
                _ => format!("resources: ['{url}']\n"),
            },
        );
    }
    repo.commit("apps");
    repo
}

/// Returns the names of the files that were requested.
fn asked(server: &Server) -> Vec<String> {
    let mut names: Vec<String> = server
        .log()
        .iter()
        .filter_map(|line| line.strip_prefix("GET /")?.strip_suffix(".yaml"))
        .map(str::to_owned)
        .collect();
    names.sort();
    server.forget();
    names
}

#[test]
fn settings_of_the_repository_hold_for_the_connection() {
    let project = Project::new();
    let work = &project.work;
    work.run(&["lock"]).success();
    work.commit("locked");
    fs::write(project.sandbox.path("gitconfig"), "").unwrap();
    let upstream = project.sandbox.path("upstream");
    let base = format!("url.file://{}/.insteadOf", upstream.display());
    work.git(&["config", &base, "https://example.com/"]);
    ask(work, &[]).success().says(expect![[r#"
        kustomize-localize.lock:4: ok: https://example.com/acme/remote.git?ref=v1 is <0>
        upstream of 1 remote: 1 ok
        verified HEAD (<1>): as locked
    "#]]);
}

#[test]
fn two_locks_ask_for_the_same_once() {
    let sandbox = Sandbox::new();
    let server = Server::start();
    let repo = apps(&sandbox, &server);
    repo.run(&["lock"]).success();
    repo.commit("locked");
    repo.run(&["b", "copy", "--no-verify"]).success();
    repo.git(&["merge", "--quiet", "--squash", "localized/main"]);
    repo.git(&["commit", "--quiet", "--no-edit"]);
    asked(&server);
    let both = report(&repo, &[], 0);
    assert_eq!(both["upstream"].as_array().unwrap().len(), 4);
    assert_eq!(asked(&server), ["a", "b", "base"]);
    server.route("/b.yaml", Reply::ok(config("changed")));
    ask(&repo, &[]).fails(1).says(expect![[r#"
            copy from b: 3 localized files, 1 upstream; recorded in the lock alone
            copy/kustomize-localize.lock:6: moved: http://127.0.0.1:…/b.yaml was <0>, is <1>: its content differs
            kustomize-localize.lock:4: ok: http://127.0.0.1:…/a.yaml is <2>
            kustomize-localize.lock:7: moved: http://127.0.0.1:…/b.yaml was <0>, is <1>: its content differs
            kustomize-localize.lock:10: ok: http://127.0.0.1:…/base.yaml is <3>
            upstream of 4 remotes: 2 ok, 2 moved
              to update the lock: git kustomize-localize update
              to update a copy: update the lock of its source, or, where that has none, remove it and copy again
            NOT verified HEAD (<4>): 2 differences
        "#]]);
}
