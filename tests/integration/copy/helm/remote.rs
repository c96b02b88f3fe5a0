//! Charts of repositories, brought in with `helm: true`.

use crate::support::Transcript;
use std::fs;

use super::{CHART, LABEL, REPO, STAND_IN, Stage, read};

#[test]
fn a_remote_chart_is_pulled_once_and_put_where_kustomize_looks() {
    let text = "# ours\nhelmCharts:\n  # the proxy\n  - name: nginx\n    repo: https://charts.example/stable # theirs\n    version: 1.2.3 # pinned\n    releaseName: one\n  - name: nginx\n    version: 1.2.3\n    repo: https://charts.example/stable\n    releaseName: two\n    valuesInline: {a: b}\n";
    let stage = Stage::of(text).with_helm();
    let copy = stage.same("app", &[]);
    assert_eq!(read(&copy.join("kustomization.yaml")), text);
    let made = stage.sandbox.path("made/nginx");
    for file in [
        "Chart.yaml",
        ".helmignore",
        "templates/deployment.yaml",
        "templates/_helpers.tpl",
        "charts/sub-1.0.0.tgz",
        "files/odd name.txt",
    ] {
        assert_eq!(
            fs::read(copy.join("charts/nginx-1.2.3/nginx").join(file)).unwrap(),
            fs::read(made.join(file)).unwrap(),
            "{file}"
        );
    }
    // Once for us, in homes of its own, and once for kustomize.
    assert_eq!(stage.pulls()[..1], ["GET https://charts.example/stable/nginx-1.2.3.tgz"]);
    assert!(!stage.calls().contains(&"not isolated".to_owned()));
    let lock = read(&copy.join("kustomize-localize.lock"));
    for part in [
        "\nremotes:\n",
        "    chart: nginx\n    version: \"1.2.3\"\n    sha256: ",
        &format!("    remote: \"{LABEL}\"\n    source: templates/_helpers.tpl\n"),
    ] {
        assert!(lock.contains(part), "no {part:?} in {lock}");
    }
    assert_eq!(stage.sandbox.leftovers(), crate::support::NONE);
}

#[test]
fn the_configuration_brings_charts_in() {
    let stage = Stage::of(CHART).with_helm();
    let work = &stage.work;
    let ways = [
        &["branch", "--no-verify", "--branch", "placed"][..],
        &["app", "copied", "--no-verify", "--branch", "copied"],
        &["lock"],
        &["update"],
    ];
    for way in ways {
        assert_eq!(work.run(way).success().stderr, "", "{way:?}");
    }
    for chart in ["placed:app/charts/nginx-1.2.3/nginx", "copied:copied/charts/nginx-1.2.3/nginx"] {
        work.git(&["cat-file", "-e", &format!("{chart}/Chart.yaml")]);
    }
    assert!(stage.lock().contains("    chart: nginx\n"));
    work.git(&["add", "--all"]);
    work.run(&["check"]).success();
    work.decide("helm: false\n");
    work.run(&["lock"]).success().says(expect![[r#"
        wrote kustomize-localize.lock: 0 remote references
          dropped https://charts.example/stable#nginx@1.2.3 <0>
          1 reference not followed: see `git kustomize-localize check`
          to stage it: git add -f -- :/kustomize-localize.lock
    "#]]);
}

#[test]
fn two_versions_of_one_chart_lie_beside_each_other() {
    let other = CHART.replace("1.2.3", "2.0.0").replace("one", "two");
    let text = format!("{CHART}{}", other.replace("helmCharts:\n", ""));
    let stage = Stage::of(&text).with_helm();
    stage.serve(REPO, "nginx", "2.0.0");
    let copy = stage.same("app", &[]);
    assert_eq!(read(&copy.join("kustomization.yaml")), text);
    for version in ["1.2.3", "2.0.0"] {
        let chart = format!("charts/nginx-{version}/nginx/Chart.yaml");
        assert!(read(&copy.join(chart)).contains(version));
    }
}

#[test]
fn the_old_field_and_both_kinds_of_plugins_find_their_charts() {
    let stage = Stage::new().with_helm();
    stage.serve(REPO, "nginx", "1.2.3");
    stage.serve("oci://registry.example/charts", "redis", "7.0.0");
    let plugin = |name: &str, more: &str| {
        format!(
            "apiVersion: builtin\nkind: HelmChartInflationGenerator\nmetadata: {{name: {name}}}\nname: redis\nreleaseName: {name}\nrepo: oci://registry.example/charts # here\nversion: 7.0.0\n{more}"
        )
    };
    stage.work.write("app/plugin.yaml", plugin("listed", "chartHome: own\n"));
    let inline = plugin("inline", "").trim_end().replace('\n', "\n  ");
    let old = "helmChartInflationGenerator:\n- chartRepoUrl: https://charts.example/stable\n  chartName: nginx\n  chartVersion: 1.2.3\n  releaseName: old\n";
    stage.work.write("app/kustomization.yaml", format!("{old}generators:\n- plugin.yaml\n- |-\n  {inline}\n"));
    let copy = stage.same("app", &[]);
    for chart in ["charts/nginx-1.2.3/nginx", "charts/redis-7.0.0/redis", "own/redis-7.0.0/redis"] {
        assert!(copy.join(chart).join("Chart.yaml").exists(), "{chart}");
    }
    let lock = read(&copy.join("kustomize-localize.lock"));
    assert!(lock.contains("  - url: oci://registry.example/charts\n    chart: redis\n"), "{lock}");
}

#[test]
fn a_floating_version_is_recorded() {
    let stage = Stage::of(&CHART.replace("version: 1", "version: ^1")).with_helm();
    let newest = CHART.replace("version: 1.2.3, ", "");
    stage.work.write("newest/kustomization.yaml", newest);
    let copy = stage.same("app", &[]);
    let lock = read(&copy.join("kustomize-localize.lock"));
    assert!(lock.contains("    version: \"^1.2.3\"\n    resolved: \"1.2.3\"\n"), "{lock}");
    let args = ["newest", "../newest", "--no-commit", "--no-verify"];
    stage.work.run(&args).success();
    let lock = read(&stage.sandbox.path("newest/kustomize-localize.lock"));
    assert!(lock.contains("    chart: nginx\n    resolved: \"1.2.3\"\n"), "{lock}");
}

#[test]
fn a_locked_chart_is_not_pulled_again() {
    let stage = Stage::of(CHART).with_helm();
    let work = &stage.work;
    let args = ["app", "--no-verify"];
    work.run(&args).success();
    assert_eq!(stage.pulls().len(), 1);
    let shown = |path: &str| work.git(&["show", &format!("localized/main:{path}")]);
    let message = work.git(&["log", "-1", "--format=%B", "localized/main"]);
    let lock = shown("localized-app/kustomize-localize.lock");
    let digest = lock.split("sha256: ").nth(1).unwrap()[..64].to_owned();
    assert!(message.contains(&format!("-Remote: {LABEL} sha256:{digest}\n")), "{message}");
    let chart = shown("localized-app/charts/nginx-1.2.3/nginx/Chart.yaml");
    assert!(chart.contains("version: 1.2.3"));

    // From the branch, without cache, network and helm.
    let archive = "served/https___charts.example_stable/nginx-1.2.3.tgz";
    fs::remove_file(stage.sandbox.path(archive)).unwrap();
    fs::remove_dir_all(stage.sandbox.path("cache")).unwrap();
    let changed = format!("namePrefix: a-\n{CHART}");
    work.write("app/kustomization.yaml", changed);
    work.commit("prefix");
    let offline = [&args[..], &["--offline"]].concat();
    work.run(&offline).success();
    assert_eq!(shown("localized-app/charts/nginx-1.2.3/nginx/Chart.yaml"), chart);
    let lock = shown("localized-app/kustomize-localize.lock");
    assert_eq!(lock.matches(&digest).count(), 1);
    assert_eq!(stage.pulls().len(), 1);

    // Charts that are not locked are not requested either.
    let elsewhere = ["app", "../elsewhere", "--no-commit", "--no-verify"];
    work.run(&[&elsewhere[..], &["--offline"]].concat()).fails(2).says(expect![[r#"
        error: app/kustomization.yaml:3:23: helmCharts[0]: https://charts.example/stable#nginx@1.2.3 is not in the cache
          hint: run once without `--offline`
    "#]]);
    assert_eq!(stage.pulls().len(), 1);
}

#[test]
fn a_chart_home_out_of_the_scope_is_an_error() {
    let stage = Stage::of(&format!("helmGlobals:\n  chartHome: ../../far # away\n{CHART}")).with_helm();
    stage.work.run(&["app", "../copy", "--no-commit", "--no-verify"]).fails(2).says(expect![[r#"
            error: app/kustomization.yaml:4:23: helmCharts[0]: cannot put a chart into `chartHome: ../../far`
              hint: write a relative path in the scope, in portable characters
        "#]]);
    assert!(!stage.sandbox.path("copy").exists());
}

#[test]
fn a_secret_in_a_url_is_never_an_argument_of_helm() {
    let mut transcript = Transcript::default();
    for with_login in ["https://me:s3cr3t@charts.example/stable", "https://charts.example/stable?token=s3cr3t-query"] {
        let stage = Stage::of(&CHART.replace(REPO, with_login)).with_helm();
        stage.serve(with_login, "nginx", "1.2.3");
        let output = stage.work.run(&["app", "--no-verify", "-v"]);
        transcript.add(output.fails(2));
        assert_eq!(stage.pulls(), crate::support::NONE);
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize app --no-verify -v
        error: app/kustomization.yaml:2:23: helmCharts[0]: https://charts.example/stable#nginx@1.2.3: the URL contains a secret, which helm's arguments would expose
          hint: remove it from the URL; store the login: `git credential approve`, for a registry `helm registry login`
        hint: to leave it remote, add to `allow` in `.kustomize-localize`:
          - {chart: 'https://charts.example/stable#nginx@1.2.3', reason: 'TODO'}
        $ git kustomize-localize app --no-verify -v
        error: app/kustomization.yaml:2:23: helmCharts[0]: https://charts.example/stable?token=REDACTED#nginx@1.2.3: the URL contains a secret, which helm's arguments would expose
          hint: remove it from the URL; store the login: `git credential approve`, for a registry `helm registry login`
          hint: to leave it remote, write above it: # kustomize-localize: allow[remote-chart] TODO
    "#]]);
}

#[test]
fn a_chart_of_a_remote_root_comes_with_it() {
    let stage = Stage::of_upstream(&[("kustomization.yaml", CHART)]).with_helm();
    let copy = stage.same("app", &[]);
    let root = copy.join("localized-files/example.com/acme/base/v1");
    assert_eq!(read(&root.join("kustomization.yaml")), CHART);
    assert!(root.join("charts/nginx-1.2.3/nginx/templates/_helpers.tpl").exists());
    let lock = read(&copy.join("kustomize-localize.lock"));
    assert!(lock.contains(&format!("        names:\n          - \"{LABEL}\"\n")), "{lock}");
}

#[test]
fn the_newest_version_may_be_in_development_only_where_devel_is_true() {
    let stage = Stage::of("").with_helm();
    let work = &stage.work;
    stage.sandbox.script("helm", &format!("[ \"$1\" = version ] || echo \"$*\" >>\"$STAND_IN_HELM/args\"\n{STAND_IN}"));
    let write = |value: &str| {
        let chart = format!("{{name: nginx, repo: '{REPO}', devel: {value}}}");
        work.write("app/kustomization.yaml", format!("helmCharts: [{chart}]\n"));
    };
    let log = stage.sandbox.path("served/args");
    // The booleans of YAML 1.1.
    for (value, is_devel) in
        [("true", true), ("On", true), ("y", true), ("false", false), ("N", false), ("null", false)]
    {
        write(value);
        let _ = fs::remove_file(work.path().join("kustomize-localize.lock"));
        work.run(&["lock"]).success();
        let searched = read(&log);
        let range = if is_devel { "--version=>0.0.0-0" } else { "--version=*" };
        assert_eq!(searched, format!("search repo --output=json {range}\n"), "{value}");
        // As the real one does.
        fs::remove_file(&log).unwrap();
        let app = work.path().join("app");
        if stage.build(&app).is_some() {
            let _ = fs::remove_dir_all(app.join("charts"));
            let pulled = read(&log);
            assert_eq!(pulled.contains("--devel"), is_devel, "{value}: {pulled}");
            fs::remove_file(&log).unwrap();
        }
    }
}
