//! `--update`: refs that only the lock of NEW_DIR holds are resolved again.

use crate::support::{Repo, Sandbox};

/// An upstream whose branch `main` moves, and a repository that follows it.
fn following(sandbox: &Sandbox) -> (Repo, Repo) {
    let upstream = sandbox.repo("upstream");
    upstream.write("base/kustomization.yaml", "resources: [cm.yaml]\n");
    upstream.write("base/cm.yaml", config_map("one"));
    upstream.commit("one");
    let repo = sandbox.repo("repo");
    repo.write(
        "app/kustomization.yaml",
        format!(
            "resources:\n- file://{}//base?ref=main\n",
            upstream.path().display()
        ),
    );
    repo.commit("source");
    (upstream, repo)
}

fn config_map(name: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n")
}

fn stored(repo: &Repo) -> String {
    let files = repo.files("localized/main");
    let file = files
        .iter()
        .find(|file| file.ends_with("base/cm.yaml"))
        .unwrap();
    let (_, path) = file.split_once(' ').unwrap();
    repo.show("localized/main", path)
}

#[test]
fn a_ref_stays_where_it_was_until_it_is_updated() {
    let sandbox = Sandbox::new();
    let (upstream, repo) = following(&sandbox);
    repo.run(&["app"]).success();
    let old = upstream.id("HEAD");
    upstream.write("base/cm.yaml", config_map("two"));
    let new = upstream.commit("two");

    repo.run(&["app"]).success().stdout_has("nothing to do");
    assert_eq!(stored(&repo), config_map("one"));

    repo.run(&["app", "--update"])
        .success()
        .stdout_has("moved:");
    assert_eq!(stored(&repo), config_map("two"));
    let message = repo.git(&["log", "-1", "--format=%B", "localized/main"]);
    assert!(
        message.contains(&format!("from {} to {}", &old[..12], &new[..12])),
        "{message}"
    );
}

#[test]
fn the_lock_of_the_source_decides_also_then() {
    let sandbox = Sandbox::new();
    let (upstream, repo) = following(&sandbox);
    repo.run(&["app"]).success();
    let lock = repo.show("localized/main", "localized-app/kustomize-localize.lock");
    // The lock at the top holds what was meant and what it was, and nothing that is stored.
    let remotes = lock
        .split("files:")
        .next()
        .unwrap()
        .replace("target: app\n", "");
    repo.write("kustomize-localize.lock", remotes);
    repo.commit("lock");
    upstream.write("base/cm.yaml", config_map("two"));
    upstream.commit("two");

    repo.run(&["app", "--update"]).success();
    assert_eq!(stored(&repo), config_map("one"));
}

#[test]
fn it_contradicts_locked_and_offline() {
    let sandbox = Sandbox::new();
    let (_, repo) = following(&sandbox);
    let before = repo.state();
    for other in ["--locked", "--offline"] {
        repo.run(&["app", "--update", other])
            .fails(2)
            .stderr_has("cannot be used with");
    }
    before.assert_same(&repo.state());
}
