mod git;
mod http;
mod limited;
mod offline;
mod reach;

use crate::support::{Repo, Sandbox, Server, config_map};

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

/// Returns a sandbox with an upstream, and its URL.
fn local() -> (Sandbox, Repo, String) {
    let sandbox = Sandbox::new();
    let up = upstream(&sandbox, "up");
    let url = format!("file://{}", up.path().display());
    (sandbox, up, url)
}

/// Returns a sandbox with an upstream and the server that has it below `/git/`, and its URL there.
fn served() -> (Sandbox, Server, Repo, String) {
    let sandbox = Sandbox::new();
    let server = Server::start();
    let up = upstream(&sandbox, "srv/acme/base");
    server.serve_git("/git/", &sandbox.path("srv"));
    let url = format!("{}acme/base.git", server.git_url());
    (sandbox, server, up, url)
}

/// Returns a repository whose `app` has this kustomization.
fn using(sandbox: &Sandbox, text: &str) -> Repo {
    let repo = sandbox.repo("work");
    repo.write("app/kustomization.yaml", text);
    repo.commit("source");
    repo
}

/// Returns one that names these references in `resources`, each on a line of its own from the second on.
fn naming<T: AsRef<str>>(sandbox: &Sandbox, references: &[T]) -> Repo {
    let lines = references.iter().map(|it| format!("- {:?}\n", it.as_ref()));
    using(sandbox, &format!("resources:\n{}", lines.collect::<String>()))
}

/// Returns the lock of what `app` was localized to.
fn lock(repo: &Repo) -> String {
    repo.show("localized/main", "localized-app/kustomize-localize.lock")
}

/// Forgets everything that was fetched.
fn forget(sandbox: &Sandbox) {
    std::fs::remove_dir_all(sandbox.path("cache/git-kustomize-localize")).unwrap();
}
