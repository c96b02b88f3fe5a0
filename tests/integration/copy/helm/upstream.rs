//! `verify --upstream`: what became of charts.

use std::fs;

use serde_json::Value;

use super::{REGISTRY, REPO, Stage};
use crate::support::{Output, Reply, Repo, Transcript};

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
    ask(work).success().says(expect![[r#"
        kustomize-localize.lock:4: ok: https://charts.example/stable#nginx is <0>
        kustomize-localize.lock:9: ok: https://charts.example/stable#nginx@1.2.3 is <0>
        kustomize-localize.lock:14: ok: https://charts.example/stable#nginx@^1.2 is <0>
        upstream of 3 remotes: 3 ok
        verified HEAD (<1>): as locked
    "#]]);
    assert_eq!(stage.pulls().len(), before + 3, "each once");
    // A newer one is what a range is for.
    remove(&stage, "1.2.3");
    stage.serve(REPO, "nginx", "1.10.0");
    ask(work).fails(1).says(expect![[r#"
        kustomize-localize.lock:4: updated: https://charts.example/stable#nginx was <0>, is <1>: it is now version 1.10.0, was 1.2.3
        kustomize-localize.lock:9: gone: https://charts.example/stable#nginx@1.2.3 was <0>: https://charts.example/stable#nginx@1.2.3: its repository has no such version
        kustomize-localize.lock:14: updated: https://charts.example/stable#nginx@^1.2 was <0>, is <1>: it is now version 1.10.0, was 1.2.3
        upstream of 3 remotes: 2 updated, 1 gone
          to update the lock: git kustomize-localize update
        NOT verified HEAD (<2>): 1 difference
    "#]]);
    // An older one is not.
    remove(&stage, "1.10.0");
    stage.serve(REPO, "nginx", "1.2.2");
    ask(work)
        .fails(1).says(expect![[r#"
            kustomize-localize.lock:4: moved: https://charts.example/stable#nginx was <0>, is <1>: it is now version 1.2.2, was 1.2.3
            kustomize-localize.lock:9: gone: https://charts.example/stable#nginx@1.2.3 was <0>: https://charts.example/stable#nginx@1.2.3: its repository has no such version
            kustomize-localize.lock:14: moved: https://charts.example/stable#nginx@^1.2 was <0>, is <1>: it is now version 1.2.2, was 1.2.3
            upstream of 3 remotes: 2 moved, 1 gone
              to update the lock: git kustomize-localize update
            NOT verified HEAD (<2>): 3 differences
        "#]]);
    // Nor is the same version with other bytes.
    remove(&stage, "1.2.2");
    stage.serve(REPO, "nginx", "1.2.3");
    fs::write(stage.sandbox.path("made/nginx/values.yaml"), "replicas: 2\n").unwrap();
    stage.pack(REPO, "nginx", "1.2.3");
    ask(work).fails(1).says(expect![[r#"
        kustomize-localize.lock:4: moved: https://charts.example/stable#nginx was <0>, is <1>: a different archive of the same version
        kustomize-localize.lock:9: moved: https://charts.example/stable#nginx@1.2.3 was <0>, is <1>: a different archive of the same version
        kustomize-localize.lock:14: moved: https://charts.example/stable#nginx@^1.2 was <0>, is <1>: a different archive of the same version
        upstream of 3 remotes: 3 moved
          to update the lock: git kustomize-localize update
          a moved version is only updated by name, once you know why it moved: git kustomize-localize update 'https://charts.example/stable#nginx@1.2.3'
        NOT verified HEAD (<2>): 3 differences
    "#]]);
    remove(&stage, "1.2.3");
    ask(work).fails(1).says(expect![[r#"
        kustomize-localize.lock:4: gone: https://charts.example/stable#nginx was <0>: https://charts.example/stable#nginx: its repository has no such chart
        kustomize-localize.lock:9: gone: https://charts.example/stable#nginx@1.2.3 was <0>: https://charts.example/stable#nginx@1.2.3: its repository has no such chart
        kustomize-localize.lock:14: gone: https://charts.example/stable#nginx@^1.2 was <0>: https://charts.example/stable#nginx@^1.2: its repository has no such chart
        upstream of 3 remotes: 3 gone
        NOT verified HEAD (<1>): 3 differences
    "#]]);
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
    let mut transcript = Transcript::default();
    for said in [
        "Error: looks like \"oci://registry.example/charts\" is not a valid chart repository or cannot be reached: Get \"oci://registry.example/charts/index.yaml\": dial tcp: lookup charts.example: no such host",
        "Error: failed to fetch oci://registry.example/charts/index.yaml : 500 Internal Server Error",
        "Error: failed to fetch oci://registry.example/charts/index.yaml : 401 Unauthorized",
    ] {
        stage.sandbox.script("helm", &format!("echo '{said}' >&2; exit 1"));
        transcript.add(ask(work).fails(2));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize verify --upstream
        kustomize-localize.lock:4: unreachable: oci://registry.example/charts#nginx@1.2.3 was <0>
        upstream of 1 remote: 1 unreachable
        NOT verified HEAD (<1>): not everything could be checked
        error: kustomize-localize.lock:4: oci://registry.example/charts#nginx@1.2.3: helm could not pull it: looks like "oci://registry.example/charts" is not a valid chart repository or cannot be reached: Get "oci://registry.example/charts/index.yaml": dial tcp: lookup charts.example: no such host
          hint: to see what helm does: helm pull --version=1.2.3 -- oci://registry.example/charts/nginx
        $ git kustomize-localize verify --upstream
        kustomize-localize.lock:4: unreachable: oci://registry.example/charts#nginx@1.2.3 was <0>
        upstream of 1 remote: 1 unreachable
        NOT verified HEAD (<1>): not everything could be checked
        error: kustomize-localize.lock:4: oci://registry.example/charts#nginx@1.2.3: helm could not pull it: failed to fetch oci://registry.example/charts/index.yaml : 500 Internal Server Error
          hint: to see what helm does: helm pull --version=1.2.3 -- oci://registry.example/charts/nginx
        $ git kustomize-localize verify --upstream
        kustomize-localize.lock:4: unreachable: oci://registry.example/charts#nginx@1.2.3 was <0>
        upstream of 1 remote: 1 unreachable
        NOT verified HEAD (<1>): not everything could be checked
        error: kustomize-localize.lock:4: oci://registry.example/charts#nginx@1.2.3: helm could not pull it: failed to fetch oci://registry.example/charts/index.yaml : 401 Unauthorized
          hint: to see what helm does: helm pull --version=1.2.3 -- oci://registry.example/charts/nginx
    "#]]);
    let mut transcript = Transcript::default();
    for said in [
        "Error: failed to fetch oci://registry.example/charts/index.yaml : 404 Not Found",
        "Error: failed to fetch oci://registry.example/charts/index.yaml : 410 Gone",
        "Error: chart \"nginx\" matching 1.2.3 not found in stable index. (try \"helm repo update\"): no chart version found for nginx-1.2.3",
    ] {
        stage.sandbox.script("helm", &format!("echo '{said}' >&2; exit 1"));
        transcript.add(ask(work).fails(1));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize verify --upstream
        kustomize-localize.lock:4: gone: oci://registry.example/charts#nginx@1.2.3 was <0>: oci://registry.example/charts#nginx@1.2.3: helm could not pull it: failed to fetch oci://registry.example/charts/index.yaml : 404 Not Found
        upstream of 1 remote: 1 gone
        NOT verified HEAD (<1>): 1 difference
        $ git kustomize-localize verify --upstream
        kustomize-localize.lock:4: gone: oci://registry.example/charts#nginx@1.2.3 was <0>: oci://registry.example/charts#nginx@1.2.3: helm could not pull it: failed to fetch oci://registry.example/charts/index.yaml : 410 Gone
        upstream of 1 remote: 1 gone
        NOT verified HEAD (<1>): 1 difference
        $ git kustomize-localize verify --upstream
        kustomize-localize.lock:4: gone: oci://registry.example/charts#nginx@1.2.3 was <0>: oci://registry.example/charts#nginx@1.2.3: helm could not pull it: chart "nginx" matching 1.2.3 not found in stable index. (try "helm repo update"): no chart version found for nginx-1.2.3
        upstream of 1 remote: 1 gone
        NOT verified HEAD (<1>): 1 difference
    "#]]);
    stage.without_helm();
    ask(work).fails(2).says(expect![[r#"
        kustomize-localize.lock:4: unreachable: oci://registry.example/charts#nginx@1.2.3 was <0>
        upstream of 1 remote: 1 unreachable
        NOT verified HEAD (<1>): not everything could be checked
        error: kustomize-localize.lock:4: oci://registry.example/charts#nginx@1.2.3: `helm` was not found on PATH
          hint: put helm on PATH; or leave charts remote, without `helm: true` in .kustomize-localize
    "#]]);
}

#[test]
fn a_repository_that_cannot_be_asked_is_unreachable() {
    let stage = locked(REPO, &["1.2.3"]);
    let index = format!("{REPO}/index.yaml");
    let mut transcript = Transcript::default();
    for (code, status) in [(503, 2), (401, 2), (404, 1), (410, 1)] {
        stage.server.route(&index, Reply::status(code));
        let output = ask(&stage.work);
        transcript.add(output.fails(status));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize verify --upstream
        kustomize-localize.lock:4: unreachable: https://charts.example/stable#nginx@1.2.3 was <0>
        upstream of 1 remote: 1 unreachable
        NOT verified HEAD (<1>): not everything could be checked
        error: kustomize-localize.lock:4: cannot fetch https://charts.example/stable/index.yaml: charts.example answered 503 Service Unavailable
          hint: try again later
        $ git kustomize-localize verify --upstream
        kustomize-localize.lock:4: unreachable: https://charts.example/stable#nginx@1.2.3 was <0>
        upstream of 1 remote: 1 unreachable
        NOT verified HEAD (<1>): not everything could be checked
        error: kustomize-localize.lock:4: cannot fetch https://charts.example/stable/index.yaml: charts.example answered 401 Unauthorized
          hint: check the URL; if it needs a login, store one in git's credential helper: git credential approve; it is sent only to the host of the URL, and not over plain http
        $ git kustomize-localize verify --upstream
        kustomize-localize.lock:4: gone: https://charts.example/stable#nginx@1.2.3 was <0>: cannot fetch https://charts.example/stable/index.yaml: charts.example answered 404 Not Found
        upstream of 1 remote: 1 gone
        NOT verified HEAD (<1>): 1 difference
        $ git kustomize-localize verify --upstream
        kustomize-localize.lock:4: gone: https://charts.example/stable#nginx@1.2.3 was <0>: cannot fetch https://charts.example/stable/index.yaml: charts.example answered 410 Gone
        upstream of 1 remote: 1 gone
        NOT verified HEAD (<1>): 1 difference
    "#]]);
}
