//! What the index of a repository names, and where that may lead.

use std::fs;

use git_kustomize_localize::seams::record::sha256_hex;
use serde_json::{Value, json};

use super::{CHART, REGISTRY, REPO, Stage};
use crate::support::{Output, Reply, Transcript};

/// Has the index name this as the archive of nginx 1.2.3, with this digest.
fn list(stage: &Stage, url: &str, digest: &str) {
    let entry = json!({"name": "nginx", "version": "1.2.3", "urls": [url], "digest": digest});
    index(stage, &json!({"apiVersion": "v1", "entries": {"nginx": [entry]}}));
}

fn index(stage: &Stage, index: &Value) {
    stage.server.route(&format!("{REPO}/index.yaml"), Reply::ok(index.to_string()));
}

/// Returns the archive that is served.
fn archive(stage: &Stage) -> Vec<u8> {
    fs::read(stage.sandbox.path("served/https___charts.example_stable/nginx-1.2.3.tgz")).unwrap()
}

/// Locks anew.
fn lock(stage: &Stage) -> Output {
    let _ = fs::remove_file(stage.work.path().join("kustomize-localize.lock"));
    stage.server.forget();
    stage.work.run(&["lock"])
}

#[test]
fn an_archive_may_lie_anywhere_that_is_public() {
    let stage = Stage::of(CHART).with_helm();
    let digest = sha256_hex(&archive(&stage));
    let mut transcript = Transcript::default();
    for (url, asked) in [
        ("nginx.tgz", "https://charts.example/stable/nginx.tgz"),
        ("./a/../charts/nginx.tgz", "https://charts.example/stable/charts/nginx.tgz"),
        ("../nginx.tgz", "https://charts.example/nginx.tgz"),
        ("/nginx.tgz?a=b", "https://charts.example/nginx.tgz"),
        ("//1.1.1.1/nginx.tgz", "https://1.1.1.1/nginx.tgz"),
        ("https://1.1.1.1/nginx.tgz?a=b", "https://1.1.1.1/nginx.tgz?a=b"),
        ("https://me:s3cr3t@1.1.1.1/nginx.tgz", "https://1.1.1.1/nginx.tgz"),
    ] {
        for digest in ["", &digest, &digest.to_uppercase(), &format!("sha256:{digest}")] {
            list(&stage, url, digest);
            stage.server.route(asked, Reply::ok(archive(&stage)));
            transcript.add(lock(&stage).success());
            let requests = stage.server.requests();
            assert!(requests.iter().all(|request| request.header("authorization").is_none()));
            let index = format!("GET {REPO}/index.yaml");
            assert_eq!(stage.server.log(), [index, format!("GET {asked}")], "{url}");
        }
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize lock
        wrote kustomize-localize.lock: 1 remote reference
          added https://charts.example/stable#nginx@1.2.3 <0>
          to stage it: git add -f -- :/kustomize-localize.lock
        kustomize, Flux and Argo CD do not read the lock: deploy the result of `git kustomize-localize branch`
    "#]]);
    assert_eq!(stage.calls(), crate::support::NONE, "an exact version takes no helm");
}

#[test]
fn an_index_leads_nowhere_else() {
    let stage = Stage::of(CHART).with_helm();
    let inside = stage.server.url();
    let private = "only an upstream or a redirect names it, and ";

    for (url, why) in [
        (&*format!("{}nginx.tgz", inside.replace("http:", "https:")), private),
        ("https://localhost/nginx.tgz", private),
        ("https://169.254.169.254/nginx.tgz", private),
        ("https://10.0.0.1/nginx.tgz", private),
        ("//10.0.0.1/nginx.tgz", private),
        ("oci://10.0.0.1/charts/nginx:1.2.3", private),
        (&format!("{inside}nginx.tgz"), "https is never downgraded to http"),
        ("http://1.1.1.1/nginx.tgz", "https is never downgraded to http"),
        ("file:///etc/passwd", "not an http, https or oci URL"),
        ("ext::sh -c id", "not an http, https or oci URL"),
        ("oci://registry.example/charts/..", "expected `oci://HOST/PATH:TAG`"),
        ("oci://registry.example/charts/--help", "expected `oci://HOST/PATH:TAG`"),
        ("oci://me:s3cr3t@registry.example/charts/:1", "expected `oci://HOST/PATH:TAG`"),
        ("https://[", "invalid"),
        ("", "its repository has no such version"),
    ] {
        list(&stage, url, "");
        lock(&stage).fails(1).stderr_has(why).lacks("s3cr3t");
        assert_eq!(stage.server.log(), [format!("GET {REPO}/index.yaml")], "{url}");
    }

    assert_eq!(stage.calls(), crate::support::NONE);
    // A redirect is judged as every other one.

    for from in ["index.yaml", "nginx.tgz"] {
        list(&stage, "nginx.tgz", "");
        let from = format!("{REPO}/{from}");
        for (to, why) in [
            ("https://169.254.169.254/x", private),
            (&*inside.replace("http:", "https:"), private),
            (&inside, "from https to http"),
            ("file:///etc/passwd", "to a URL that is not http or https"),
        ] {
            stage.server.route(&from, Reply::redirect(to));
            lock(&stage).fails(1).stderr_has(why);
            assert!(!stage.server.log().iter().any(|line| !line.contains(REPO)), "{:?}", stage.server.log());
        }
    }
}

#[test]
fn an_archive_is_what_its_index_says() {
    let stage = Stage::of(CHART).with_helm();
    list(&stage, "nginx-1.2.3.tgz", &sha256_hex(b"another one"));
    lock(&stage).fails(1).says(expect![[r#"
        nothing was written
        error: app/kustomization.yaml:2:23: helmCharts[0]: https://charts.example/stable#nginx@1.2.3: the index lists the archive nginx-1.2.3.tgz: its sha256 is <0>, and the index says <1>
          hint: report this to the owner of the chart repository
        hint: to leave it remote, add to `allow` in `.kustomize-localize`:
          - {chart: 'https://charts.example/stable#nginx@1.2.3', reason: 'TODO'}
        error: 1 reference could not be locked
    "#]]);
    let mut transcript = Transcript::default();
    for text in ["<!doctype html><p>Log in</p>", "entries: &a {nginx: *a}", "entries: {nginx: [}"] {
        stage.server.route(&format!("{REPO}/index.yaml"), Reply::ok(text));
        transcript.add(lock(&stage).fails(1));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize lock
        nothing was written
        error: app/kustomization.yaml:2:23: helmCharts[0]: cannot read the index of https://charts.example/stable: it has no `entries`
        hint: to leave it remote, add to `allow` in `.kustomize-localize`:
          - {chart: 'https://charts.example/stable#nginx@1.2.3', reason: 'TODO'}
        error: 1 reference could not be locked
        $ git kustomize-localize lock
        nothing was written
        error: app/kustomization.yaml:2:23: helmCharts[0]: cannot read the index of https://charts.example/stable: it has anchors
        hint: to leave it remote, add to `allow` in `.kustomize-localize`:
          - {chart: 'https://charts.example/stable#nginx@1.2.3', reason: 'TODO'}
        error: 1 reference could not be locked
        $ git kustomize-localize lock
        nothing was written
        error: app/kustomization.yaml:2:23: helmCharts[0]: cannot read the index of https://charts.example/stable: line 1: mismatched bracket '[' closed by '}'
        hint: to leave it remote, add to `allow` in `.kustomize-localize`:
          - {chart: 'https://charts.example/stable#nginx@1.2.3', reason: 'TODO'}
        error: 1 reference could not be locked
    "#]]);
    let mut transcript = Transcript::default();
    for entries in [json!({}), json!({"nginx": []}), json!({"nginx": [{}]}), json!({"redis": [{"version": "1.2.3"}]})] {
        index(&stage, &json!({"entries": entries}));
        transcript.add(lock(&stage).fails(1));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize lock
        nothing was written
        error: app/kustomization.yaml:2:23: helmCharts[0]: https://charts.example/stable#nginx@1.2.3: its repository has no such chart
          hint: to see what helm does: helm show chart --version=1.2.3 --repo=https://charts.example/stable -- nginx
        hint: to leave it remote, run `git kustomize-localize init`, or add to `allow` in `.kustomize-localize`:
          - {chart: 'https://charts.example/stable#nginx@1.2.3', reason: 'TODO'}
        error: 1 reference could not be locked
    "#]]);
}

#[test]
fn index_and_archive_have_the_limit_of_every_file() {
    let stage = Stage::of(CHART);
    let size = archive(&stage).len();
    let mut transcript = Transcript::default();
    for (limit, is_refused) in [(size - 1, true), (size, false)] {
        stage.work.decide(&format!("helm: true\nmax-file-size: {limit}\n"));
        for name in ["index.yaml", "nginx-1.2.3.tgz"] {
            stage.server.unroute(&format!("{REPO}/index.yaml"));
            list(&stage, "nginx-1.2.3.tgz", "");
            if name == "index.yaml" {
                let padding = "x".repeat(limit);
                index(&stage, &json!({"entries": {}, "generated": padding}));
                transcript.add(lock(&stage).fails(1));
            } else if is_refused {
                transcript.add(lock(&stage).fails(1));
            } else {
                lock(&stage).success();
            }
        }
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize lock
        nothing was written
        error: app/kustomization.yaml:2:23: helmCharts[0]: cannot fetch https://charts.example/stable/index.yaml: the file is too large: the limit is 570 B
          hint: check that the URL names one file of manifests, not an archive
          hint: to accept larger files, write `max-file-size: SIZE` in .kustomize-localize
        hint: to leave it remote, add to `allow` in `.kustomize-localize`:
          - {chart: 'https://charts.example/stable#nginx@1.2.3', reason: 'TODO'}
        error: 1 reference could not be locked
        $ git kustomize-localize lock
        nothing was written
        error: app/kustomization.yaml:2:23: helmCharts[0]: cannot fetch https://charts.example/stable/nginx-1.2.3.tgz: the file is too large: the limit is 570 B
          hint: check that the URL names one file of manifests, not an archive
          hint: to accept larger files, write `max-file-size: SIZE` in .kustomize-localize
        hint: to leave it remote, add to `allow` in `.kustomize-localize`:
          - {chart: 'https://charts.example/stable#nginx@1.2.3', reason: 'TODO'}
        error: 1 reference could not be locked
        $ git kustomize-localize lock
        nothing was written
        error: app/kustomization.yaml:2:23: helmCharts[0]: cannot fetch https://charts.example/stable/index.yaml: the file is too large: the limit is 571 B
          hint: check that the URL names one file of manifests, not an archive
          hint: to accept larger files, write `max-file-size: SIZE` in .kustomize-localize
        hint: to leave it remote, add to `allow` in `.kustomize-localize`:
          - {chart: 'https://charts.example/stable#nginx@1.2.3', reason: 'TODO'}
        error: 1 reference could not be locked
    "#]]);
}

#[test]
fn an_archive_of_a_registry_has_that_limit_too() {
    let stage = Stage::of(&CHART.replace(REPO, REGISTRY));
    stage.serve(REGISTRY, "nginx", "1.2.3");
    stage.work.decide("helm: true\nmax-file-size: 100\n");
    lock(&stage).fails(1).says(expect![[r#"
        nothing was written
        error: app/kustomization.yaml:2:23: helmCharts[0]: `oci://registry.example/charts#nginx@1.2.3` is too large: 571 B exceeds the limit of 100 B
          hint: to accept it, write `max-file-size: 571` in .kustomize-localize
        hint: to leave it remote, add to `allow` in `.kustomize-localize`:
          - {chart: 'oci://registry.example/charts#nginx@1.2.3', reason: 'TODO'}
        error: 1 reference could not be locked
    "#]]);
}

#[test]
fn an_index_may_name_the_artifact_of_a_registry() {
    let stage = Stage::of(CHART).with_helm();
    stage.serve("oci://registry.example/charts", "web", "1.2.3");
    list(&stage, "oci://registry.example/charts/web:1.2.3", &sha256_hex(b"of its manifest"));
    // It is still checked to be the chart.
    lock(&stage).fails(1).says(expect![[r#"
        nothing was written
        error: app/kustomization.yaml:2:23: helmCharts[0]: https://charts.example/stable#nginx@1.2.3: expected the chart `nginx`, found `web`
          hint: report this to the owner of the chart repository
        hint: to leave it remote, add to `allow` in `.kustomize-localize`:
          - {chart: 'https://charts.example/stable#nginx@1.2.3', reason: 'TODO'}
        error: 1 reference could not be locked
    "#]]);
    stage.serve("oci://registry.example/charts", "nginx", "1.2.3");
    list(&stage, "oci://registry.example/charts/nginx:1.2.3", "");
    lock(&stage).success();
    assert_eq!(
        stage.calls(),
        ["pull oci://registry.example/charts web 1.2.3", "pull oci://registry.example/charts nginx 1.2.3"]
    );
}

#[test]
fn the_login_for_a_repository_goes_to_its_host_alone() {
    let stage = Stage::of(CHART).with_helm();
    stage.server.require_password("https://charts.example/", "u", "p");
    list(&stage, "nginx-1.2.3.tgz", "");
    lock(&stage).fails(1).says(expect![[r#"
        nothing was written
        error: app/kustomization.yaml:2:23: helmCharts[0]: cannot fetch https://charts.example/stable/index.yaml: charts.example answered 401 Unauthorized
          hint: check the URL; if it needs a login, store one in git's credential helper: git credential approve; it is sent only to the host of the URL, and not over plain http
        hint: to leave it remote, add to `allow` in `.kustomize-localize`:
          - {chart: 'https://charts.example/stable#nginx@1.2.3', reason: 'TODO'}
        error: 1 reference could not be locked
    "#]]);
    stage.sandbox.script("git-credential-any", "test \"$1\" = get && printf 'username=u\\npassword=p\\n'");
    stage.sandbox.configure("credential.helper", "any");
    lock(&stage).success();
    let mirror = "https://1.1.1.1/nginx.tgz";
    list(&stage, mirror, "");
    stage.server.route(mirror, Reply::ok(archive(&stage)));
    lock(&stage).success();
    stage.server.require_password("https://1.1.1.1/", "u", "p");
    lock(&stage).fails(1).says(expect![[r#"
        nothing was written
        error: app/kustomization.yaml:2:23: helmCharts[0]: cannot fetch https://1.1.1.1/nginx.tgz: 1.1.1.1 answered 401 Unauthorized
          hint: check the URL; if it needs a login, store one in git's credential helper: git credential approve; it is sent only to the host of the URL, and not over plain http
        hint: to leave it remote, add to `allow` in `.kustomize-localize`:
          - {chart: 'https://charts.example/stable#nginx@1.2.3', reason: 'TODO'}
        error: 1 reference could not be locked
    "#]]);
    let requests = stage.server.requests();
    assert!(requests.iter().all(|it| !it.url().starts_with(mirror) || it.header("authorization").is_none()));
}

#[test]
fn helm_chooses_the_version_of_a_range_from_an_index_of_ours() {
    let stage = Stage::of(&CHART.replace("1.2.3", "^1.2")).with_helm();
    stage.serve(REPO, "nginx", "1.10.0");
    stage.serve(REPO, "other", "3.0.0");
    lock(&stage).success();
    assert!(stage.lock().contains("    version: \"^1.2\"\n    resolved: \"1.10.0\"\n"), "{}", stage.lock());
    assert_eq!(stage.calls(), ["search ^1.2"]);
    // What has no version is not the one that nobody has.
    index(&stage, &json!({"entries": {"nginx": [{"urls": ["nginx-1.2.3.tgz"]}, {"version": "0.1.0"}]}}));
    stage.sandbox.script("helm", "echo '[]'");
    lock(&stage).fails(1).says(expect![[r#"
        nothing was written
        error: app/kustomization.yaml:2:23: helmCharts[0]: https://charts.example/stable#nginx@^1.2: its repository has no such version
          hint: to see what helm does: helm show chart '--version=^1.2' --repo=https://charts.example/stable -- nginx
        hint: to leave it remote, run `git kustomize-localize init`, or add to `allow` in `.kustomize-localize`:
          - {chart: 'https://charts.example/stable#nginx@^1.2', reason: 'TODO'}
        error: 1 reference could not be locked
    "#]]);
    stage.server.unroute(&format!("{REPO}/index.yaml"));
    // It is told versions, and nothing else of what upstream says.
    let copy = "cp \"$HELM_REPOSITORY_CACHE/charts-index.yaml\" \"$STAND_IN_HELM/index\"";
    let mut transcript = Transcript::default();
    for does in [
        "echo '[]'",
        "echo '[{\"version\": \"6.6.6\"}]'",
        "echo no",
        "echo 'Error: improper constraint: x' >&2; exit 1",
    ] {
        stage.sandbox.script("helm", &format!("{copy}; {does}"));
        transcript.add(lock(&stage).fails(1));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize lock
        nothing was written
        error: app/kustomization.yaml:2:23: helmCharts[0]: https://charts.example/stable#nginx@^1.2: its repository has no such version
          hint: to see what helm does: helm show chart '--version=^1.2' --repo=https://charts.example/stable -- nginx
        hint: to leave it remote, run `git kustomize-localize init`, or add to `allow` in `.kustomize-localize`:
          - {chart: 'https://charts.example/stable#nginx@^1.2', reason: 'TODO'}
        error: 1 reference could not be locked
        $ git kustomize-localize lock
        nothing was written
        error: app/kustomization.yaml:2:23: helmCharts[0]: https://charts.example/stable#nginx@^1.2: cannot read the output of helm search repo: expected ident at line 1 column 2
        hint: to leave it remote, add to `allow` in `.kustomize-localize`:
          - {chart: 'https://charts.example/stable#nginx@^1.2', reason: 'TODO'}
        error: 1 reference could not be locked
        $ git kustomize-localize lock
        nothing was written
        error: app/kustomization.yaml:2:23: helmCharts[0]: https://charts.example/stable#nginx@^1.2: helm could not choose a version: improper constraint: x
        hint: to leave it remote, add to `allow` in `.kustomize-localize`:
          - {chart: 'https://charts.example/stable#nginx@^1.2', reason: 'TODO'}
        error: 1 reference could not be locked
    "#]]);
    let told: Value = serde_json::from_str(&super::read(&stage.sandbox.path("served/index"))).unwrap();
    let versions = told["entries"]["nginx"].as_array().unwrap();
    assert_eq!(versions.len(), 2);
    assert!(versions.iter().all(|version| version.as_object().unwrap().keys().eq(["name", "version"])), "{told}");
}
