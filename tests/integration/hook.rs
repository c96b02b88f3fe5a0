mod action;
mod installed;
mod played;
mod pre_commit;
mod recipes;

use std::path::Path;

use crate::support::{Output, Repo, Running, Sandbox};

/// Where a repository has its one kustomization, and its configuration.
const ROOT: &str = "app/kustomization.yaml";
const CONFIG: &str = ".kustomize-localize";
/// A kustomization that needs the network, and one that does not.
const REMOTE: &str = "resources:\n  - https://example.com/acme/app//deploy?ref=v1\n";
const LOCAL: &str = "resources:\n  - config.yaml\n";
/// A configuration that finds nothing remote.
const OFF: &str = "rules:\n  remote-reference: off\n  floating-ref: off\n";

/// Commits a kustomization that needs no network.
fn clean(repo: &Repo) {
    repo.write(ROOT, LOCAL);
    repo.write("app/config.yaml", crate::support::config("app"));
    repo.commit("clean");
}

/// Writes a file and stages everything.
fn stage(repo: &Repo, path: &str, text: &str) {
    repo.write(path, text);
    repo.git(&["add", "."]);
}

/// Runs a step of a job as a runner does, with these variables.
fn step(
    sandbox: &Sandbox,
    directory: &Path,
    script: &str,
    variables: impl IntoIterator<Item = (String, String)>,
) -> Output {
    let mut bash = sandbox.command("bash", directory);
    bash.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", script]);
    Running::start(bash.envs(variables)).wait()
}
