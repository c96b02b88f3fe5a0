//! `lock`, `check` and localizing in place.

use crate::support::Transcript;
use std::fs;

use expect_test::expect;

use super::{REPO, Stage};

const TEXT: &str =
    "helmCharts:\n- name: nginx\n  repo: https://charts.example/stable\n  version: 1.2.3\n  releaseName: one\n";

#[test]
fn a_locked_chart_is_fulfilled() {
    let stage = Stage::of(TEXT);
    let work = &stage.work;
    work.run(&["check"]).fails(1).says(expect![[r#"
        error[remote-chart]: the chart `nginx` 1.2.3 of https://charts.example/stable is not in the tree: helm downloads it to `app/charts/nginx-1.2.3/nginx`
         --> app/kustomization.yaml:3:9
          |
        3 |   repo: https://charts.example/stable
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ helmCharts[0]
          = help: write `helm: true` into .kustomize-localize, and lock it: git kustomize-localize lock && git add -f -- :/.kustomize-localize :/kustomize-localize.lock

        for more: git kustomize-localize explain remote-chart
        checked 1 kustomization with 1 reference in the working tree: 1 error
    "#]]);
    // Nothing is requested that was not asked for.
    work.run(&["lock"]).success();
    assert_eq!(stage.pulls(), crate::support::NONE);
    work.write(".kustomize-localize", "helm: true\n");
    work.run(&["lock"]).success().says(expect![[r#"
        wrote kustomize-localize.lock: 1 remote reference
          added https://charts.example/stable#nginx@1.2.3 <0>
          to stage it: git add -f -- :/kustomize-localize.lock
        kustomize, Flux and Argo CD do not read the lock: deploy the result of `git kustomize-localize branch`
    "#]]);
    work.git(&["add", "--all"]);
    work.run(&["check"]).success();
    assert_eq!(stage.pulls().len(), 1);
    work.run(&["lock"]).success().says(expect![[r#"
        nothing to do: kustomize-localize.lock has 1 remote reference
    "#]]);
    assert_eq!(stage.pulls().len(), 1);
    work.write(".kustomize-localize", "rules: {locked-reference: error}\nhelm: true\n");
    work.git(&["add", "--all"]);
    work.run(&["check"]).fails(1).says(expect![[r#"
        error[locked-reference]: the chart `nginx` 1.2.3 of https://charts.example/stable is not in the tree: helm downloads it to `app/charts/nginx-1.2.3/nginx`
         --> app/kustomization.yaml:3:9
          |
        3 |   repo: https://charts.example/stable
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ helmCharts[0]
          = help: vendor it: git kustomize-localize vendor :/app

        for more: git kustomize-localize explain locked-reference
        checked 1 kustomization with 1 reference in the working tree: 1 error
    "#]]);
    work.write(".kustomize-localize", "helm: true\n");
    work.write("app/kustomization.yaml", "resources: []\n");
    work.git(&["add", "--all"]);
    work.run(&["check"]).says(expect![[r#"
        warning[stale-lock]: nothing references `https://charts.example/stable#nginx@1.2.3`
         --> kustomize-localize.lock:4:5
          |
        4 |   - url: https://charts.example/stable
          |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ remotes
          = help: drop it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock

        for more: git kustomize-localize explain stale-lock
        checked 1 kustomization with 0 references in the working tree: 1 warning
    "#]]);
    work.run(&["lock"]).success();
    assert!(!stage.lock().contains("nginx"));
}

#[test]
fn in_place_a_chart_goes_where_kustomize_would_put_it() {
    let stage = Stage::of(TEXT);
    let work = &stage.work;
    work.write(".gitignore", "charts/\n");
    work.commit("ignore");
    let args = ["vendor", "--no-verify"];
    work.run(&args).fails(1).says(expect![[r#"
        error[remote-chart]: the chart `nginx` 1.2.3 of https://charts.example/stable is not in the tree: helm downloads it to `app/charts/nginx-1.2.3/nginx`
         --> app/kustomization.yaml:3:9
          |
        3 |   repo: https://charts.example/stable
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ helmCharts[0]
          = help: write `helm: true` into .kustomize-localize, and lock it: git kustomize-localize lock && git add -f -- :/.kustomize-localize :/kustomize-localize.lock

        error: nothing was written: 1 error (remote-chart 1)
          hint: for more: git kustomize-localize explain remote-chart
    "#]]);
    work.decide("helm: true\n");
    work.run(&args).success().says(expect![[r#"
        localized the working tree: 9 files written, 0 references rewritten, 0 removed
          added https://charts.example/stable#nginx@1.2.3 <0>
          not verified: --no-verify
          to stage it: git add -f -- :/app/charts/nginx-1.2.3/.gitattributes :/app/charts/nginx-1.2.3/nginx :/kustomize-localize.lock
    "#]]);
    assert_eq!(work.read("app/kustomization.yaml"), TEXT);
    let chart = "app/charts/nginx-1.2.3/nginx";
    assert!(work.read(&format!("{chart}/templates/_helpers.tpl")).starts_with("{{-"));
    let lock = stage.lock();
    assert!(lock.contains("    chart: nginx\n"), "{lock}");
    assert!(!lock.contains("files:"), "{lock}");
    work.git(&["add", "-f", "app/charts", "kustomize-localize.lock"]);
    work.run(&["check"]).success();
    // It is the user's now: nothing is done about it again, whatever is in it.
    work.write(&format!("{chart}/values.yaml"), "replicas: 9\n");
    work.git(&["add", "-f", chart]);
    work.run(&args).success().says(expect![[r#"
        nothing to do: kustomize-localize.lock has 1 remote reference
    "#]]);
    work.run(&["lock"]).success();
    assert_eq!(stage.lock(), lock);
    assert_eq!(stage.pulls().len(), 1);
    if let Some(built) = stage.build_alone(&work.path().join("app")) {
        built.success().says(expect![[r#"
            apiVersion: v1
            data:
              .helmignore: 2313327292 7
              Chart.yaml: 2841092595 42
              charts_sub-1.0.0.tgz: 408076700 85
              files_odd-name.txt: 260980373 5
              templates__helpers.tpl: 1100275390 18
              templates_deployment.yaml: 2100652662 24
              values.yaml: 963064547 12
              values1: 963064547 12
            kind: ConfigMap
            metadata:
              name: one
        "#]]);
    }
}

#[test]
fn in_place_nothing_is_overwritten() {
    let stage = Stage::of(TEXT);
    let work = &stage.work;
    work.write("app/charts/nginx-1.2.3/nginx", "a file\n");
    work.commit("in the way");
    work.decide("helm: true\n");
    work.run(&["vendor", "--no-verify"]).fails(1).says(expect![[r#"
        error[missing-path]: `app/charts/nginx-1.2.3/nginx` is not a directory, so it is not a chart
         --> app/kustomization.yaml:3:9
          |
        3 |   repo: https://charts.example/stable
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ helmCharts[0]
          = help: unpack the chart there

        error: nothing was written: 1 error (missing-path 1)
          hint: for more: git kustomize-localize explain missing-path
    "#]]);
    assert_eq!(work.read("app/charts/nginx-1.2.3/nginx"), "a file\n");
    assert_eq!(stage.pulls(), crate::support::NONE);
}

#[test]
fn a_branch_with_charts_follows_its_source() {
    let stage = Stage::of(TEXT).with_helm();
    let work = &stage.work;
    let args = ["branch", "--no-verify"];
    work.run(&args).success();
    let show = |path: &str| work.git(&["show", &format!("localized/main:{path}")]);
    assert!(show("app/charts/nginx-1.2.3/nginx/Chart.yaml").contains("1.2.3"));
    work.run(&args).success();
    work.write("other/kustomization.yaml", "resources: []\n");
    work.commit("other");
    work.run(&args).success();
    assert!(show("app/charts/nginx-1.2.3/nginx/Chart.yaml").contains("1.2.3"));
    assert_eq!(show("other/kustomization.yaml"), "resources: []");
    assert_eq!(stage.pulls().len(), 1);
}

#[test]
fn in_place_a_chart_of_a_remote_root_is_localized_with_it() {
    let stage = Stage::of_upstream(&[("kustomization.yaml", TEXT)]).with_helm();
    let work = &stage.work;
    let args = ["vendor", "--no-verify"];
    work.run(&args).success();
    let root = "app/localized-files/example.com/acme/base/v1";
    assert_eq!(work.read(&format!("{root}/kustomization.yaml")), TEXT);
    let chart = format!("{root}/charts/nginx-1.2.3/nginx");
    assert!(work.read(&format!("{chart}/Chart.yaml")).contains("nginx"));
    let lock = stage.lock();
    assert!(lock.contains(&format!("  - path: {chart}/templates/_helpers.tpl\n")), "{lock}");
    work.commit("localized");
    work.run(&["check"]).success();
    // All of it is in use, and nothing is brought in again.
    let mut transcript = Transcript::default();
    for args in [&args[..], &["lock"]] {
        transcript.add(work.run(args).success());
        assert_eq!(stage.lock(), lock);
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize vendor --no-verify
        $ git kustomize-localize lock
        nothing to do: kustomize-localize.lock has 2 remote references
    "#]]);
    // An edit is reported, as of every localized file.
    work.write(&format!("{chart}/values.yaml"), "replicas: 9\n");
    work.git(&["add", "--all"]);
    work.run(&["check"]).fails(1).says(expect![[r#"
        error[edited-copy]: `app/localized-files/example.com/acme/base/v1/charts/nginx-1.2.3/nginx/values.yaml` was changed: its sha256 <0> differs from the lock
         --> app/localized-files/example.com/acme/base/v1/charts/nginx-1.2.3/nginx/values.yaml
         = help: git kustomize-localize vendor --overwrite :/app
         = help: put your own changes upstream or in an overlay

        for more: git kustomize-localize explain edited-copy
        checked 2 kustomizations with 2 references in the working tree: 1 error
    "#]]);
}

#[test]
fn another_version_is_written_and_locked() {
    let stage = Stage::of(TEXT).with_helm();
    let work = &stage.work;
    work.write("range/kustomization.yaml", TEXT.replace("1.2.3", "'*'"));
    work.commit("a range");
    work.run(&["lock"]).success();
    work.commit("lock");
    work.run(&["check"]).success().says(expect![[r#"
        checked 2 kustomizations with 2 references in the working tree: no problems found
    "#]]);
    stage.serve(REPO, "nginx", "1.10.0");
    stage.serve(REPO, "nginx", "2.0.0-rc.1");
    // What a range means stays as it is locked.
    fs::remove_dir_all(stage.sandbox.path("cache")).unwrap();
    work.run(&["vendor", "--no-verify", "--dry-run"]).success();
    let url = format!("{REPO}#nginx");
    work.run(&["update", &url, "--to", "1.2.4", "app"]).fails(2).says(expect![[r#"
        error: app/kustomization.yaml:3:9: helmCharts[0]: https://charts.example/stable#nginx@1.2.4: its repository has no such version
          hint: to see what helm does: helm show chart --version=1.2.4 --repo=https://charts.example/stable -- nginx
    "#]]);
    assert_eq!(work.read("app/kustomization.yaml"), TEXT);
    for to in ["*", "1.10.0"] {
        let paths: &[&str] = if to == "*" { &[] } else { &["app"] };
        work.run(&[&["update", "--to", to, &url], paths].concat()).success().says(expect![[r#"
            wrote kustomize-localize.lock: 2 remote references
              added https://charts.example/stable#nginx@1.10.0 <0>
              dropped https://charts.example/stable#nginx@1.2.3 <1>
              to stage it: git add -f -- :/app/kustomization.yaml :/kustomize-localize.lock
        "#]]);
        assert_eq!(work.read("app/kustomization.yaml"), TEXT.replace("1.2.3", "1.10.0"));
        assert_eq!(work.read("range/kustomization.yaml"), TEXT.replace("1.2.3", "'*'"));
        work.git(&["checkout", "--", "."]);
    }
    work.write("app/kustomization.yaml", TEXT.replace("  version: 1.2.3\n", ""));
    work.run(&["update", "--to", "1.10.0", &url, "app"])
        .fails(2)
        .says(expect![[r#"
            error: app/kustomization.yaml:3:9: helmCharts[0]: https://charts.example/stable#nginx has no version to write another one over
              hint: write `version: 1.10.0` there
        "#]]);
}

#[test]
fn a_chart_that_is_not_locked_is_edited_without_touching_the_lock() {
    let stage = Stage::of(TEXT).with_helm();
    let work = &stage.work;
    work.run(&["lock"]).success();
    work.decide("helm: false\n");
    work.run(&["lock"]).success();
    work.commit("lock");
    stage.serve(REPO, "nginx", "1.10.0");
    let lock = stage.lock();
    work.run_unchanged(&["update", "--to", "*", "--dry-run"]).success().says(expect![[r#"
        would write 1 file; kustomize-localize.lock is not changed
          1 reference not followed: see `git kustomize-localize check`
          not followed: https://charts.example/stable#nginx@1.10.0 is not locked
          file app/kustomization.yaml (101)
    "#]]);
    work.run(&["update", "--to", "*"]).success().says(expect![[r#"
        wrote 1 file; kustomize-localize.lock is not changed
          1 reference not followed: see `git kustomize-localize check`
          to stage it: git add -f -- :/app/kustomization.yaml
    "#]]);
    assert_eq!((work.read("app/kustomization.yaml"), stage.lock()), (TEXT.replace("1.2.3", "1.10.0"), lock));
}
