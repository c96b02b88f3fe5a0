//! `--since`: what a change adds to the lock, and nothing else.

use super::*;
use crate::support::{Reply, Server};

#[test]
fn additions_to_the_lock_must_match_upstream() {
    let sandbox = Sandbox::new();
    let server = Server::start();
    server.route("/old.yaml", Reply::ok(config("old")));
    server.route("/new.yaml", Reply::ok(config("new")));
    let (old, new) = (
        format!("{}old.yaml", server.url()),
        format!("{}new.yaml", server.url()),
    );
    let repo = locked(&sandbox, std::slice::from_ref(&old));
    repo.write(
        "app/kustomization.yaml",
        format!("resources: ['{old}', '{new}']\n"),
    );
    repo.run(&["lock"]).success();
    repo.commit("more");
    // Entries that were there before are not requested.
    server.route("/old.yaml", Reply::ok(config("other")));
    server.forget();
    ask(&repo, &["--since", "HEAD^"])
        .success()
        .stdout_has(": ok: ")
        .stdout_has("upstream of 1 remote: 1 ok\n");
    assert_eq!(server.log().len(), 1);
    ask(&repo, &["--since", "HEAD"])
        .success()
        .stdout_has("there is nothing to ask for");
    // An invented digest.
    let lock = repo.read("kustomize-localize.lock");
    let digest = git_kustomize_localize::record::sha256_hex(config("new").as_bytes());
    assert!(lock.contains(&digest));
    repo.write(
        "kustomize-localize.lock",
        lock.replace(&digest, &"0".repeat(64)),
    );
    repo.commit("invented");
    ask(&repo, &["--since", "HEAD^"])
        .fails(1)
        .stdout_has(": moved: ")
        .stdout_has("upstream of 1 remote: 1 moved\n");
}
