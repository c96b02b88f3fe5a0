//! `lock`, `check` and localizing in place.

use super::Stage;

const TEXT: &str =
    "helmCharts:\n- name: nginx\n  repo: https://charts.example/stable\n  version: 1.2.3\n  releaseName: one\n";

#[test]
fn a_locked_chart_is_fulfilled() {
    let stage = Stage::of(TEXT);
    let work = &stage.work;
    work.run(&["check"]).fails(1).stdout_has("remote-chart");
    // Nothing is requested that was not asked for.
    work.run(&["lock"]).success();
    assert_eq!(stage.pulls(), [""; 0]);
    work.write(".kustomize-localize", "helm: true\n");
    work.run(&["lock"]).success().stdout_has("  added https://charts.example/stable#nginx@1.2.3 ");
    work.git(&["add", "--all"]);
    work.run(&["check"]).success();
    assert_eq!(stage.pulls().len(), 1);
    work.run(&["lock"]).success().stdout_has("nothing to do: kustomize-localize.lock has 1 remote reference");
    assert_eq!(stage.pulls().len(), 1);
    work.write(".kustomize-localize", "rules: {locked-reference: error}\nhelm: true\n");
    work.git(&["add", "--all"]);
    work.run(&["check"]).fails(1).stdout_has("locked-reference");
    work.write(".kustomize-localize", "helm: true\n");
    work.write("app/kustomization.yaml", "resources: []\n");
    work.git(&["add", "--all"]);
    work.run(&["check"]).stdout_has("nothing references `https://charts.example/stable#nginx@1.2.3`");
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
    work.run(&args).fails(1).stderr_has("error[remote-chart]");
    work.decide("helm: true\n");
    work.run(&args).success().stdout_has("git add -f -- :/app/charts/nginx-1.2.3/.gitattributes :/app/charts/nginx-1.2.3/nginx :/kustomize-localize.lock");
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
    work.run(&args).success().stdout_has("nothing to do");
    work.run(&["lock"]).success();
    assert_eq!(stage.lock(), lock);
    assert_eq!(stage.pulls().len(), 1);
    if let Some(built) = stage.build_alone(&work.path().join("app")) {
        built.success().stdout_has("kind: ConfigMap");
    }
}

#[test]
fn in_place_nothing_is_overwritten() {
    let stage = Stage::of(TEXT);
    let work = &stage.work;
    work.write("app/charts/nginx-1.2.3/nginx", "a file\n");
    work.commit("in the way");
    work.decide("helm: true\n");
    work.run(&["vendor", "--no-verify"]).fails(1).stderr_has("is not a directory, so it is not a chart");
    assert_eq!(work.read("app/charts/nginx-1.2.3/nginx"), "a file\n");
    assert_eq!(stage.pulls(), [""; 0]);
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
    for args in [&args[..], &["lock"]] {
        work.run(args).success().stdout_has("nothing to do");
        assert_eq!(stage.lock(), lock);
    }
    // An edit is reported, as of every localized file.
    work.write(&format!("{chart}/values.yaml"), "replicas: 9\n");
    work.git(&["add", "--all"]);
    work.run(&["check"]).fails(1).stdout_has("edited-copy");
}
