//! Charts that are left, and charts that are refused.

use crate::support::Transcript;
use std::fs;

use super::super::Refused;
use super::{CHART, LABEL, REGISTRY, REPO, Stage, read, write_chart};

const ARGS: [&str; 4] = ["--no-commit", "--no-verify", "app", "../copy"];

fn chart(repo: &str, name: &str, version: &str) -> String {
    format!("helmCharts:\n- name: \"{name}\"\n  repo: \"{repo}\"\n  version: \"{version}\"\n  releaseName: one\n")
}

#[test]
fn without_helm_a_chart_is_left_remote_and_reported() {
    let stage = Stage::of(CHART);
    let copy = stage.sandbox.path("copy");
    stage.work.run(&ARGS).fails(1).says(expect![[r#"
        error[remote-chart]: https://charts.example/stable#nginx@1.2.3 is not localized
         --> app/kustomization.yaml:2:23: helmCharts[0]
          = help: write `helm: true` into .kustomize-localize

        error: nothing was written: 1 error (remote-chart 1)
          hint: for more: git kustomize-localize explain remote-chart
    "#]]);
    stage.work.decide("rules: {remote-chart: warning}\n");
    stage.work.run(&ARGS).success();
    assert_eq!(read(&copy.join("kustomization.yaml")), CHART);
    let lock = read(&copy.join("kustomize-localize.lock"));
    // No exception leaves it remote: `verify` reports it.
    assert!(!lock.contains("left:") && !lock.contains("remotes:"), "{lock}");
    assert!(!copy.join("charts").exists());
    assert_eq!(stage.pulls(), crate::support::NONE);
}

#[test]
fn helm_that_is_asked_for_must_be_there() {
    let range = CHART.replace("1.2.3", "^1.2.3");
    let stage = Stage::of(&range).with_helm();
    let work = &stage.work;
    work.run(&["lock"]).success();
    let locked = stage.lock();
    work.remove("kustomize-localize.lock");
    fs::remove_dir_all(stage.sandbox.path("cache")).unwrap();
    stage.without_helm();
    work.run(&["lock"]).fails(1).says(expect![[r#"
        nothing was written
        error: app/kustomization.yaml:2:23: helmCharts[0]: https://charts.example/stable#nginx@^1.2.3: `helm` was not found on PATH
          hint: put helm on PATH; or leave charts remote, without `helm: true` in .kustomize-localize
        hint: to leave it remote, add to `allow` in `.kustomize-localize`:
          - {chart: 'https://charts.example/stable#nginx@^1.2.3', reason: 'TODO'}
        error: 1 reference could not be locked
    "#]]);
    // Nothing claims that charts are brought in from now on, nor why it stays remote.
    assert!(!work.path().join("kustomize-localize.lock").exists());
    work.run(&ARGS).fails(2).says(expect![[r#"
        error: app/kustomization.yaml:2:23: helmCharts[0]: https://charts.example/stable#nginx@^1.2.3: `helm` was not found on PATH
          hint: put helm on PATH; or leave charts remote, without `helm: true` in .kustomize-localize
        hint: to leave it remote, add to `allow` in `.kustomize-localize`:
          - {chart: 'https://charts.example/stable#nginx@^1.2.3', reason: 'TODO'}
    "#]]);
    work.run(&["branch"]).fails(1).says(expect![[r#"
        error[remote-chart]: the chart `nginx` ^1.2.3 of https://charts.example/stable is not in the tree: helm downloads it to `app/charts/nginx-^1.2.3/nginx`
         --> app/kustomization.yaml:2:23
          |
        2 | - {name: nginx, repo: 'https://charts.example/stable', version: ^1.2.3, releaseName: one}
          |                       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ helmCharts[0]
          = help: lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock

        error: <0> has 1 error (remote-chart 1): nothing was committed
          hint: for more: git kustomize-localize explain remote-chart
    "#]]);
    // The gate and the job agree.
    work.decide("helm: true\nrules: {remote-chart: warning}\n");
    work.run(&["check"]).success();
    work.run(&["branch"]).success().says(expect![[r#"
        localized the repository on branch localized/main (<0>): 0 files written, 0 references rewritten, 0 removed
          not verified: --no-verify
          1 warning (remote-chart 1)
          to look at it: git show --stat <0>
        warning[remote-chart]: the chart `nginx` ^1.2.3 of https://charts.example/stable is not in the tree: helm downloads it to `app/charts/nginx-^1.2.3/nginx`
         --> app/kustomization.yaml:2:23
          |
        2 | - {name: nginx, repo: 'https://charts.example/stable', version: ^1.2.3, releaseName: one}
          |                       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ helmCharts[0]
          = help: lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
    "#]]);
    // It can be turned off again, and then the charts are remote again.
    work.write("kustomize-localize.lock", &locked);
    work.decide("helm: false\n");
    work.run(&["lock"]).success().says(expect![[r#"
        wrote kustomize-localize.lock: 0 remote references
          dropped https://charts.example/stable#nginx@^1.2.3 <0>
          1 reference not followed: see `git kustomize-localize check`
          to stage it: git add -f -- :/kustomize-localize.lock
    "#]]);
    work.run(&["lock"]).success().says(expect![[r#"
        nothing to do: kustomize-localize.lock has 0 remote references
          1 reference not followed: see `git kustomize-localize check`
    "#]]);
    // An exact version takes no helm.
    work.write("app/kustomization.yaml", CHART);
    work.decide("helm: true\n");
    work.run(&["lock"]).success().says(expect![[r#"
        wrote kustomize-localize.lock: 1 remote reference
          added https://charts.example/stable#nginx@1.2.3 <0>
          to stage it: git add -f -- :/kustomize-localize.lock
    "#]]);
}

#[test]
fn a_chart_that_helm_cannot_render_alone_is_not_brought_in() {
    let stage = Stage::of(CHART).with_helm();
    let work = &stage.work;
    work.run(&["lock"]).success();
    let locked = stage.lock();
    fs::write(stage.sandbox.path("made/nginx/values.schema.json"), "{\"$ref\": \"https://h/s.json\"}").unwrap();
    stage.pack(REPO, "nginx", "1.2.3");
    work.remove("kustomize-localize.lock");
    work.run(&["lock"]).fails(1).says(expect![[r#"
        nothing was written
        error: app/kustomization.yaml:2:23: helmCharts[0]: helm fetches `https://h/s.json` when it renders the chart `nginx`, as `values.schema.json` in it says
          hint: put the chart into this repository, and there inline it below `$defs`, or remove `values.schema.json`
        error: 1 reference could not be locked
    "#]]);
    assert!(!work.path().join("kustomize-localize.lock").exists());
    let mut transcript = Transcript::default();
    for args in [&ARGS[..], &["vendor", "--no-verify"]] {
        transcript.add(work.run(args).fails(2));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize --no-commit --no-verify app ../copy
        $ git kustomize-localize vendor --no-verify
        error: app/kustomization.yaml:2:23: helmCharts[0]: helm fetches `https://h/s.json` when it renders the chart `nginx`, as `values.schema.json` in it says
          hint: put the chart into this repository, and there inline it below `$defs`, or remove `values.schema.json`
    "#]]);
    // One that was locked before.
    let sha256 = |lock: &str| lock.lines().find(|line| line.contains("sha256: ")).unwrap().to_owned();
    let allowed = "helm: true\nallow: [{url: 'https://h/s.json', reason: no value of ours gets there}]\n";
    work.decide(allowed);
    work.run(&["lock"]).success();
    assert_ne!(sha256(&stage.lock()), sha256(&locked));
    work.decide("helm: true\n");
    work.run(&["branch", "--no-verify"]).fails(2).says(expect![[r#"
        error: app/kustomization.yaml:2:23: helmCharts[0]: helm fetches `https://h/s.json` when it renders the chart `nginx`, as `values.schema.json` in it says
          hint: put the chart into this repository, and there inline it below `$defs`, or remove `values.schema.json`
    "#]]);
    // What lies in the tree says so itself.
    work.decide(allowed);
    work.run(&["--no-commit", "--no-verify", "app", "here"]).success();
    work.run(&["check", "here"]).success().says(expect![[r#"
        not tracked by git: 10 files that `branch` does not see: here/charts/nginx-1.2.3/nginx/.helmignore, here/charts/nginx-1.2.3/nginx/Chart.yaml, here/charts/nginx-1.2.3/nginx/charts/sub-1.0.0.tgz, here/charts/nginx-1.2.3/nginx/files/odd name.txt, here/charts/nginx-1.2.3/nginx/templates/_helpers.tpl and 5 more
        hint: git add -- :/here && git commit
        checked 1 kustomization with 1 reference in the working tree: 1 allowed
    "#]]);
    work.decide("helm: true\n");
    work.run(&["check", "here"]).fails(1).says(expect![[r#"
        error[remote-chart]: helm fetches `https://h/s.json` when it renders the chart `nginx`
         --> here/charts/nginx-1.2.3/nginx/values.schema.json:1:10
          |
        1 | {"$ref": "https://h/s.json"}
          |          ^^^^^^^^^^^^^^^^^^
          = help: inline it below `$defs`, or remove `values.schema.json` from the vendored chart

        for more: git kustomize-localize explain remote-chart
        checked 1 kustomization with 1 reference in the working tree: 1 error
    "#]]);
}

#[test]
fn texts_like_helm_options_never_reach_helm() {
    let stage = Stage::new().with_helm();
    let mut all = Refused::new(&stage.work);
    let dash = "helm, or a path, could misread a part of it";
    for (number, (repo, name, version, said)) in [
        (REPO, "--help", "1.2.3", dash),
        (REPO, "nginx", "--devel", dash),
        ("--help", "nginx", "1.2.3", dash),
        (REPO, "../nginx", "1.2.3", dash),
        (REPO, "a/nginx", "1.2.3", dash),
        (REPO, "nginx", "1/../../2", dash),
        (REPO, "nginx", "1\\n2", dash),
        ("file:///srv/charts", "nginx", "1.2.3", "`repo: file:///srv/charts` is not an https"),
        ("/srv/charts", "nginx", "1.2.3", "`repo: /srv/charts` is not a URL"),
    ]
    .into_iter()
    .enumerate()
    {
        all.add(&number.to_string(), &chart(repo, name, version), said);
    }
    all.in_one_run(&["--no-verify"]);
    assert_eq!(stage.pulls(), crate::support::NONE);
}

#[test]
fn a_failing_helm_is_reported_with_its_output() {
    let stage = Stage::of(&chart(REGISTRY, "absent", "1.2.3")).with_helm();
    let work = &stage.work;
    work.run(&ARGS).fails(2).says(expect![[r#"
        error: app/kustomization.yaml:3:9: helmCharts[0]: oci://registry.example/charts#absent@1.2.3: helm could not pull it: chart "absent" version "1.2.3" not found in oci://registry.example/charts repository
          hint: to see what helm does: helm pull --version=1.2.3 -- oci://registry.example/charts/absent
        hint: to leave it remote, run `git kustomize-localize init`, or add to `allow` in `.kustomize-localize`:
          - {chart: 'oci://registry.example/charts#absent@1.2.3', reason: 'TODO'}
    "#]]);
    assert!(!stage.sandbox.path("copy").exists());
    assert_eq!(stage.sandbox.leftovers(), crate::support::NONE);
}

#[test]
fn another_archive_than_the_locked_one_is_refused() {
    let stage = Stage::of(CHART).with_helm();
    let work = &stage.work;
    work.run(&["lock"]).success();
    fs::remove_dir_all(stage.sandbox.path("cache")).unwrap();
    let made = stage.sandbox.path("made/nginx");
    fs::write(made.join("values.yaml"), "replicas: 666\n").unwrap();
    stage.pack(REPO, "nginx", "1.2.3");
    work.commit("lock");
    work.run_unchanged(&["app", "--no-verify"])
        .fails(2).says(expect![[r#"
            error: app/kustomization.yaml:2:23: helmCharts[0]: https://charts.example/stable#nginx@1.2.3 has changed since it was locked: expected sha256 <0>, found <1>
              hint: to lock its new content: `git kustomize-localize update`; if only the lock of NEW_DIR has it, remove NEW_DIR and copy again
        "#]]);
    work.run_unchanged(&["update"])
        .fails(1).says(expect![[r#"
            kustomize-localize.lock not changed: 1 remote reference
            error: https://charts.example/stable#nginx@1.2.3 moved: <0> -> <1>; the lock keeps <0>
              hint: find out why; if it is intended: git kustomize-localize update 'https://charts.example/stable#nginx@1.2.3'
            error: app/kustomization.yaml:2:23: helmCharts[0]: https://charts.example/stable#nginx@1.2.3 has changed since it was locked: expected sha256 <0>, found <1>
              hint: to lock its new content: `git kustomize-localize update`; if only the lock of NEW_DIR has it, remove NEW_DIR and copy again
            error: 1 reference could not be locked
        "#]]);
    work.run(&["update", LABEL]).success();
    work.commit("moved");
    work.run(&["app", "--no-verify"]).success();
}

#[test]
fn an_archive_that_is_something_else_is_refused() {
    let stage = Stage::of(CHART).with_helm();
    let made = stage.sandbox.path("made/nginx");
    let refused = |said: &str| {
        let archive = stage.pack(REPO, "nginx", "1.2.3");
        if said.ends_with("gzip") {
            fs::write(&archive, "<!doctype html>").unwrap();
        }
        stage.work.run(&ARGS).fails(2).stderr_has(said);
        assert!(!stage.sandbox.path("copy").exists());
    };
    write_chart(&made, "redis", "1.2.3");
    refused(&format!("{LABEL}: expected the chart `nginx`, found `redis`"));
    write_chart(&made, "nginx", "1.2.4");
    refused(&format!("{LABEL}: expected version `1.2.3`, found `1.2.4`"));
    write_chart(&made, "nginx", "1.2.3");
    std::os::unix::fs::symlink("/etc/passwd", made.join("link")).unwrap();
    refused("is refused: `nginx/link` is a link");
    fs::remove_file(made.join("link")).unwrap();
    fs::create_dir(made.join(".git")).unwrap();
    fs::write(made.join(".git/config"), "[core]\n").unwrap();
    refused("helmCharts[0]: `charts/nginx-1.2.3/nginx/.git/config` cannot be written: ");
    refused("is refused: it is not compressed with gzip");
}
