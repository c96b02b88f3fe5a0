//! `verify --upstream`: what became of charts.

use std::fs;

use serde_json::Value;

use super::{REGISTRY, REPO, Stage};
use crate::support::{Output, Reply, Repo};

/// A repository whose lock holds a chart for each of these versions, none for an empty one.
fn locked(repo: &str, versions: &[&str]) -> Stage {
    let stage = Stage::new().with_helm();
    let work = &stage.work;
    for (index, version) in versions.iter().enumerate() {
        let version = match *version {
            "" => String::new(),
            version => format!("  version: '{version}'\n"),
        };
        work.write(
            &format!("app{index}/kustomization.yaml"),
            format!("helmCharts:\n- name: nginx\n  repo: {repo}\n{version}"),
        );
    }
    stage.serve(repo, "nginx", "1.2.3");
    work.run(&["lock"]).success();
    work.commit("locked");
    stage
}

fn ask(repo: &Repo) -> Output {
    repo.run_unchanged(&["verify", "--upstream"])
}

/// Removes what is served, so that something else can be.
fn remove(stage: &Stage, version: &str) {
    let directory = stage.sandbox.path("served/https___charts.example_stable");
    fs::remove_file(directory.join(format!("nginx-{version}.tgz"))).unwrap();
}

#[test]
fn every_chart_gets_its_verdict() {
    let stage = locked(REPO, &["1.2.3", "^1.2", ""]);
    let work = &stage.work;
    let before = stage.pulls().len();
    ask(work)
        .success()
        .stdout_has(&format!(": ok: {REPO}#nginx@1.2.3 is "))
        .stdout_has(&format!(": ok: {REPO}#nginx is "))
        .stdout_has("upstream of 3 remotes: 3 ok\n");
    assert_eq!(stage.pulls().len(), before + 3, "each once");
    // A newer one is what a range is for.
    remove(&stage, "1.2.3");
    stage.serve(REPO, "nginx", "1.10.0");
    let output = ask(work);
    output
        .fails(1)
        .stdout_has(&format!(": updated: {REPO}#nginx was "))
        .stdout_has(&format!(": updated: {REPO}#nginx@^1.2 was "))
        .stdout_has(": it is now version 1.10.0, was 1.2.3\n")
        .stdout_has(": https://charts.example/stable#nginx@1.2.3: its repository has no such chart\n")
        .stdout_has("upstream of 3 remotes: 2 updated, 1 gone\n");
    // An older one is not.
    remove(&stage, "1.10.0");
    stage.serve(REPO, "nginx", "1.2.2");
    ask(work)
        .fails(1)
        .stdout_has(&format!(": moved: {REPO}#nginx@^1.2 was "))
        .stdout_has(": it is now version 1.2.2, was 1.2.3\n");
    // Nor is the same version with other bytes.
    remove(&stage, "1.2.2");
    stage.serve(REPO, "nginx", "1.2.3");
    fs::write(stage.sandbox.path("made/nginx/values.yaml"), "replicas: 2\n").unwrap();
    stage.pack(REPO, "nginx", "1.2.3");
    ask(work)
        .fails(1)
        .stdout_has(&format!(": moved: {REPO}#nginx@1.2.3 was "))
        .stdout_has(": a different archive of the same version\n")
        .stdout_has("upstream of 3 remotes: 3 moved\n");
    remove(&stage, "1.2.3");
    ask(work)
        .fails(1)
        .stdout_has(&format!(": gone: {REPO}#nginx@1.2.3 was "))
        .stdout_has("its repository has no such chart")
        .stdout_has("upstream of 3 remotes: 3 gone\n");
    let json = work.run(&["verify", "--upstream", "--format", "json"]).fails(1).stdout.clone();
    let json: Value = serde_json::from_str(&json).unwrap();
    let one = &json["upstream"][1];
    assert_eq!(one["chart"], "nginx");
    assert_eq!(one["version"], "1.2.3");
    assert_eq!(one["ref"], Value::Null);
}

#[test]
fn a_registry_that_cannot_be_asked_is_unreachable() {
    let stage = locked(REGISTRY, &["1.2.3"]);
    let work = &stage.work;
    for said in [
        "Error: looks like \"oci://registry.example/charts\" is not a valid chart repository or cannot be reached: Get \"oci://registry.example/charts/index.yaml\": dial tcp: lookup charts.example: no such host",
        "Error: failed to fetch oci://registry.example/charts/index.yaml : 500 Internal Server Error",
        "Error: failed to fetch oci://registry.example/charts/index.yaml : 401 Unauthorized",
    ] {
        stage.sandbox.script("helm", &format!("echo '{said}' >&2; exit 1"));
        ask(work)
            .fails(2)
            .stdout_has(": unreachable: ")
            .stdout_has("upstream of 1 remote: 1 unreachable\n")
            .stderr_has(
                "hint: to see what helm does: helm pull --version=1.2.3 -- oci://registry.example/charts/nginx",
            );
    }
    for said in [
        "Error: failed to fetch oci://registry.example/charts/index.yaml : 404 Not Found",
        "Error: failed to fetch oci://registry.example/charts/index.yaml : 410 Gone",
        "Error: chart \"nginx\" matching 1.2.3 not found in stable index. (try \"helm repo update\"): no chart version found for nginx-1.2.3",
    ] {
        stage.sandbox.script("helm", &format!("echo '{said}' >&2; exit 1"));
        ask(work).fails(1).stdout_has(": gone: ");
    }
    stage.without_helm();
    ask(work).fails(2).stdout_has(": `helm` was not found on PATH\n").stderr_has("hint: put helm on PATH");
}

#[test]
fn a_repository_that_cannot_be_asked_is_unreachable() {
    let stage = locked(REPO, &["1.2.3"]);
    let index = format!("{REPO}/index.yaml");
    for (code, verdict, status) in
        [(503, "unreachable", 2), (401, "unreachable", 2), (404, "gone", 1), (410, "gone", 1)]
    {
        stage.server.route(&index, Reply::status(code));
        let output = ask(&stage.work);
        output.fails(status).stdout_has(&format!(": {verdict}: ")).stdout_has(&format!("cannot fetch {index}: "));
    }
}
