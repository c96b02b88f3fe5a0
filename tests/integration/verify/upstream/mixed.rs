//! Beside what else `verify` does: records, paths, localizing again, signatures.

use std::fs;

use super::*;
use crate::support::{Project, Reply, Server};

#[test]
fn a_branch_is_verified_and_its_remotes_are_asked() {
    for in_place in [false, true] {
        let project = Project::new();
        let work = &project.work;
        if in_place {
            work.run(&["branch", "--no-verify"]).success();
        } else {
            project.overlay(&["--no-verify"]).success();
        }
        let lock = if in_place { "kustomize-localize.lock" } else { "localized-overlay/kustomize-localize.lock" };
        let label = "https://example.com/acme/remote.git?ref=v1";
        ask(work, &["localized/main"])
            .success()
            .stdout_has(&format!("{lock}:"))
            .stdout_has(&format!(": ok: {label} is "))
            .stdout_has("recorded in the lock and in the message of")
            .stdout_has("): as recorded\n");
        // Also in a bare repository.
        let bare = project.sandbox.path("bare");
        let to = bare.to_str().unwrap();
        work.git(&["clone", "--quiet", "--bare", ".", to]);
        let inside = project.sandbox.run(&bare, &["verify", "--upstream", "localized/main"]);
        inside.success().stdout_has("upstream of 1 remote: 1 ok\n");
        fs::remove_dir_all(&bare).unwrap();
        // Everything at once, with one thing of each that differs.
        project.second_version();
        project.upstream.git(&["tag", "--force", "v1"]);
        work.git(&["switch", "--quiet", "localized/main"]);
        let place = work.git(&["ls-files", "*service.yaml"]);
        work.write(&place, "edited: by hand\n");
        work.commit("by hand");
        let args = ["--rebuild"];
        ask(work, &args)
            .fails(1)
            .stdout_has(&format!("{place}: was changed"))
            .stdout_has(&format!("moved: {label} was "))
            .stdout_has("the tag `v1` points to another commit")
            .stdout_has("upstream of 1 remote: 1 moved\n");
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
        ask(work, &["--rebuild"])
            .fails(2)
            .stdout_has(&format!("gone: {label} was "))
            .stderr_has("cannot be localized again");
        // No server is asked without `--upstream`.
        let offline = work.run_unchanged(&["verify", "--format", "json"]);
        assert_eq!(parsed(offline.success())["upstream"], Value::Null);
    }
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
    ask(&repo, &[])
        .fails(1)
        .stdout_has("copy/kustomize-localize.lock:6: moved: ")
        .stdout_has("\nkustomize-localize.lock:")
        .stdout_has("2 ok, 2 moved\n");
}
