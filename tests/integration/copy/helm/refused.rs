//! Charts that are left, and charts that are refused.

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
    assert_eq!(stage.pulls(), [""; 0]);
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
    let missing = "#nginx@^1.2.3: `helm` was not found on PATH\n";
    work.run(&["lock"]).fails(1).stderr_has(missing).stderr_has("without `helm: true`");
    // Nothing claims that charts are brought in from now on, nor why it stays remote.
    assert!(!work.path().join("kustomize-localize.lock").exists());
    work.run(&ARGS).fails(2).stderr_has(missing);
    work.run(&["branch"]).fails(1).stderr_has("error[remote-chart]: ");
    // The gate and the job agree.
    work.decide("helm: true\nrules: {remote-chart: warning}\n");
    work.run(&["check"]).success();
    work.run(&["branch"]).success().stderr_has("warning[remote-chart]: ");
    // It can be turned off again, and then the charts are remote again.
    work.write("kustomize-localize.lock", &locked);
    work.decide("helm: false\n");
    work.run(&["lock"]).success().stdout_has("  dropped https://charts.example/stable#nginx@^1.2.3 ");
    work.run(&["lock"]).success().stdout_has("nothing to do");
    // An exact version takes no helm.
    work.write("app/kustomization.yaml", CHART);
    work.decide("helm: true\n");
    work.run(&["lock"]).success().stdout_has(&format!("  added {LABEL} "));
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
    let refused =
        "helm fetches `https://h/s.json` when it renders the chart `nginx`, as `values.schema.json` in it says";
    work.run(&["lock"]).fails(1).stderr_has(refused).stderr_has("inline it below `$defs`");
    assert!(!work.path().join("kustomize-localize.lock").exists());
    for args in [&ARGS[..], &["vendor", "--no-verify"]] {
        work.run(args).fails(2).stderr_has(refused);
    }
    // One that was locked before.
    let sha256 = |lock: &str| lock.lines().find(|line| line.contains("sha256: ")).unwrap().to_owned();
    let allowed = "helm: true\nallow: [{url: 'https://h/s.json', reason: no value of ours gets there}]\n";
    work.decide(allowed);
    work.run(&["lock"]).success();
    assert_ne!(sha256(&stage.lock()), sha256(&locked));
    work.decide("helm: true\n");
    work.run(&["branch", "--no-verify"]).fails(2).stderr_has(refused);
    // What lies in the tree says so itself.
    work.decide(allowed);
    work.run(&["--no-commit", "--no-verify", "app", "here"]).success();
    let of_schema = " --> here/charts/nginx-1.2.3/nginx/values.schema.json:1:10\n";
    work.run(&["check", "here"]).success().stdout_has("1 allowed");
    work.decide("helm: true\n");
    work.run(&["check", "here"]).fails(1).stdout_has(of_schema);
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
    assert_eq!(stage.pulls(), [""; 0]);
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
    assert_eq!(stage.sandbox.leftovers(), [""; 0]);
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
        .fails(2)
        .stderr_has(&format!("{LABEL} has changed since it was locked: "));
    work.run_unchanged(&["update"])
        .fails(1)
        .stderr_has(&format!("{LABEL}: a version should never change, but this one did"))
        .stderr_has("hint: find out why; if it is intended: git kustomize-localize update ");
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
