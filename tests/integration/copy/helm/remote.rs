//! Charts of repositories, brought in with `--helm`.

use std::fs;

use super::{REPO, STAND_IN, Stage, read};

#[test]
fn a_remote_chart_is_pulled_once_and_built_without_its_repository() {
    let stage = Stage::new();
    stage.serve(REPO, "nginx", "1.2.3");
    stage.work.write(
        "app/kustomization.yaml",
        "# ours\nhelmCharts:\n  # the proxy\n  - name: nginx\n    repo: https://charts.example/stable # theirs\n    version: 1.2.3 # pinned\n    releaseName: one\n  - name: nginx\n    version: 1.2.3\n    repo: https://charts.example/stable\n    releaseName: two\n    valuesInline: {a: b}\n",
    );
    stage.work.commit("chart");
    let copy = stage.same("app", &["--helm"]);
    assert_eq!(
        read(&copy.join("kustomization.yaml")),
        "# ours\nhelmCharts:\n  # the proxy\n  - name: nginx\n    version: 1.2.3 # pinned\n    releaseName: one\n  - name: nginx\n    version: 1.2.3\n    releaseName: two\n    valuesInline: {a: b}\n"
    );
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
            fs::read(copy.join("charts/nginx").join(file)).unwrap(),
            fs::read(made.join(file)).unwrap(),
            "{file}"
        );
    }
    // Once for us, in homes of its own, and once for kustomize.
    assert_eq!(
        stage.pulls()[..1],
        ["pull https://charts.example/stable nginx 1.2.3"]
    );
    assert!(!stage.pulls().contains(&"not isolated".to_owned()));
    let lock = read(&copy.join("kustomize-localize.lock"));
    assert!(
        lock.contains("options:\n  helm: true\nremotes:\n  - url: https://charts.example/stable\n    chart: nginx\n    version: \"1.2.3\"\n    sha256: "),
        "{lock}"
    );
    assert!(
        lock.contains("    remote: \"https://charts.example/stable#nginx@1.2.3\"\n    source: templates/_helpers.tpl\n"),
        "{lock}"
    );
    assert_eq!(stage.sandbox.leftovers(), [""; 0]);
}

#[test]
fn the_configuration_brings_charts_in() {
    let stage = Stage::new();
    let work = &stage.work;
    stage.serve(REPO, "nginx", "1.2.3");
    let chart = format!("helmCharts:\n- {{name: nginx, repo: '{REPO}', version: 1.2.3}}\n");
    work.write("app/kustomization.yaml", chart);
    work.write(".kustomize-localize", "helm: true\n");
    work.commit("chart");
    let ways = [
        &["--in-place", "--no-verify", "--branch", "placed"][..],
        &["app", "copied", "--no-verify", "--branch", "copied"],
        &["lock"],
        &["update"],
    ];
    for way in ways {
        let output = work.run(way);
        assert_eq!(output.success().stderr, "", "{way:?}");
    }
    for chart in [
        "placed:app/charts/nginx-1.2.3/nginx",
        "copied:copied/charts/nginx",
    ] {
        work.git(&["cat-file", "-e", &format!("{chart}/Chart.yaml")]);
    }
    let lock = read(&work.path().join("kustomize-localize.lock"));
    assert!(
        lock.contains(&format!("url: {REPO}\n    chart: nginx\n")),
        "{lock}"
    );
    work.git(&["add", "--all"]);
    work.run(&["check"]).success();
    // An option is for one run.
    work.run(&["lock", "--no-helm"])
        .success()
        .stdout_has("dropped");
}

#[test]
fn two_versions_of_one_chart_keep_their_repository() {
    let stage = Stage::new();
    stage.serve(REPO, "nginx", "1.2.3");
    stage.serve(REPO, "nginx", "2.0.0");
    let text = "helmCharts:\n- {name: nginx, repo: 'https://charts.example/stable', version: 1.2.3, releaseName: one}\n- {name: nginx, repo: 'https://charts.example/stable', version: 2.0.0, releaseName: two}\n";
    stage.work.write("app/kustomization.yaml", text);
    stage.work.commit("charts");
    let copy = stage.same("app", &["--helm"]);
    assert_eq!(read(&copy.join("kustomization.yaml")), text);
    for version in ["1.2.3", "2.0.0"] {
        let chart = format!("charts/nginx-{version}/nginx/Chart.yaml");
        assert!(read(&copy.join(chart)).contains(version));
    }
}

#[test]
fn the_old_field_and_both_kinds_of_plugins_lose_their_repository() {
    let stage = Stage::new();
    stage.serve(REPO, "nginx", "1.2.3");
    stage.serve("oci://registry.example/charts", "redis", "7.0.0");
    let plugin = |name: &str, more: &str| {
        format!(
            "apiVersion: builtin\nkind: HelmChartInflationGenerator\nmetadata: {{name: {name}}}\nname: redis\nreleaseName: {name}\nrepo: oci://registry.example/charts # here\nversion: 7.0.0\n{more}"
        )
    };
    stage
        .work
        .write("app/plugin.yaml", plugin("listed", "chartHome: own\n"));
    let inline = plugin("inline", "").trim_end().replace('\n', "\n  ");
    let old = "helmChartInflationGenerator:\n- chartRepoUrl: https://charts.example/stable\n  chartName: nginx\n  chartVersion: 1.2.3\n  releaseName: old\n";
    stage.work.write(
        "app/kustomization.yaml",
        format!("{old}generators:\n- plugin.yaml\n- |-\n  {inline}\n"),
    );
    let copy = stage.same("app", &["--helm"]);
    let gone = "repo: oci://registry.example/charts # here\n";
    assert_eq!(
        read(&copy.join("plugin.yaml")),
        plugin("listed", "chartHome: own\n").replace(gone, "")
    );
    assert_eq!(
        read(&copy.join("kustomization.yaml")),
        format!(
            "helmChartInflationGenerator:\n- chartName: nginx\n  chartVersion: 1.2.3\n  releaseName: old\ngenerators:\n- plugin.yaml\n- |-\n  {}\n",
            inline.replace(&format!("{gone}  "), "")
        )
    );
    for chart in ["charts/nginx", "charts/redis", "own/redis"] {
        assert!(copy.join(chart).join("Chart.yaml").exists(), "{chart}");
    }
    let lock = read(&copy.join("kustomize-localize.lock"));
    assert!(
        lock.contains("  - url: oci://registry.example/charts\n    chart: redis\n"),
        "{lock}"
    );
}

#[test]
fn a_floating_version_is_recorded_and_reported() {
    let stage = Stage::new();
    let work = &stage.work;
    stage.serve(REPO, "nginx", "1.2.3");
    work.write(
        "app/kustomization.yaml",
        "helmCharts:\n- {name: nginx, repo: 'https://charts.example/stable', version: ^1.2, releaseName: one}\n",
    );
    work.write(
        "newest/kustomization.yaml",
        "helmCharts:\n- {name: nginx, repo: 'https://charts.example/stable', releaseName: one}\n",
    );
    let copy = stage.same("app", &["--helm"]);
    let lock = read(&copy.join("kustomize-localize.lock"));
    assert!(
        lock.contains("    version: \"^1.2\"\n    resolved: \"1.2.3\"\n"),
        "{lock}"
    );
    let args = [
        "newest",
        "../newest",
        "--no-commit",
        "--no-verify",
        "--helm",
    ];
    work
        .run(&args)
        .success()
        .stderr_has("warning[floating-chart]: newest/kustomization.yaml:2:23: helmCharts[0]: https://charts.example/stable#nginx names no single version: taken as 1.2.3, which the lock holds");
    let lock = read(&stage.sandbox.path("newest/kustomize-localize.lock"));
    assert!(
        lock.contains("    chart: nginx\n    resolved: \"1.2.3\"\n"),
        "{lock}"
    );
}

#[test]
fn a_locked_chart_is_not_pulled_again() {
    let stage = Stage::new();
    let work = &stage.work;
    let archive = stage.serve(REPO, "nginx", "1.2.3");
    work.write(
        "app/kustomization.yaml",
        "helmCharts:\n- {name: nginx, repo: 'https://charts.example/stable', version: 1.2.3}\n",
    );
    work.commit("chart");
    let args = ["app", "--helm", "--no-verify"];
    work.run(&args).success();
    assert_eq!(stage.pulls().len(), 1);
    let shown = |path: &str| work.git(&["show", &format!("localized/main:{path}")]);
    let message = work.git(&["log", "-1", "--format=%B", "localized/main"]);
    let lock = shown("localized-app/kustomize-localize.lock");
    let digest = lock.split("sha256: ").nth(1).unwrap()[..64].to_owned();
    assert!(
        message.contains(&format!(
            "Kustomize-Localize-Remote: https://charts.example/stable#nginx@1.2.3 sha256:{digest}\n"
        )),
        "{message}"
    );
    let chart = shown("localized-app/charts/nginx/Chart.yaml");
    assert!(chart.contains("version: 1.2.3"));

    // From the branch, without cache, network and helm.
    fs::remove_file(&archive).unwrap();
    fs::remove_dir_all(stage.sandbox.path("cache")).unwrap();
    work.write("app/more.yaml", "");
    work.write(
        "app/kustomization.yaml",
        "namePrefix: a-\nhelmCharts:\n- {name: nginx, repo: 'https://charts.example/stable', version: 1.2.3}\n",
    );
    work.commit("prefix");
    let offline = [&args[..], &["--offline", "--locked"]].concat();
    work.run(&offline).success();
    assert_eq!(shown("localized-app/charts/nginx/Chart.yaml"), chart);
    assert_eq!(
        shown("localized-app/kustomize-localize.lock")
            .matches(&digest)
            .count(),
        1
    );
    assert_eq!(stage.pulls().len(), 1);

    // Charts that are not locked are not requested either.
    let elsewhere = |more: &str| {
        work.run(&[
            "app",
            "../elsewhere",
            "--no-commit",
            "--no-verify",
            "--helm",
            more,
        ])
    };
    elsewhere("--offline")
        .fails(2)
        .stderr_has("https://charts.example/stable#nginx@1.2.3 is not in the cache")
        .stderr_has("hint: run once without `--offline`");
    elsewhere("--locked")
        .fails(2)
        .stderr_has("https://charts.example/stable#nginx@1.2.3 is not in the lock");
    assert_eq!(stage.pulls().len(), 1);
}

#[test]
fn a_chart_of_a_remote_root_comes_with_it() {
    let stage = Stage::new();
    stage.serve(REPO, "nginx", "1.2.3");
    let upstream = stage.sandbox.repo("upstream/acme/base.git");
    upstream.write(
        "web/kustomization.yaml",
        "helmCharts:\n- name: nginx\n  repo: https://charts.example/stable\n  version: 1.2.3\n  releaseName: one\n",
    );
    upstream.commit("one");
    upstream.git(&["tag", "v1"]);
    let base = format!("file://{}/", stage.sandbox.path("upstream").display());
    stage.sandbox.pretend("https://example.com/", &base);
    stage.work.write(
        "app/kustomization.yaml",
        "resources: ['https://example.com/acme/base.git//web?ref=v1']\n",
    );
    let copy = stage.same("app", &["--helm"]);
    let root = copy.join("localized-files/example.com/acme/base/v1/web");
    assert!(!read(&root.join("kustomization.yaml")).contains("repo"));
    assert!(root.join("charts/nginx/templates/_helpers.tpl").exists());
    let lock = read(&copy.join("kustomize-localize.lock"));
    assert!(
        lock.contains("    through: [\"https://example.com/acme/base.git?ref=v1\"]\n"),
        "{lock}"
    );
    // A file without what it was taken from is fetched again, so that the second run gives the same.
    stage.same("app", &["--helm"]);
}

#[test]
fn a_chart_home_out_of_the_scope_becomes_one_below_the_root() {
    let stage = Stage::new();
    stage.serve(REPO, "nginx", "1.2.3");
    stage.work.write("app/values.yaml", "replicas: 2\n");
    stage.work.write(
        "app/kustomization.yaml",
        "helmGlobals:\n  chartHome: ../../far # away\nhelmCharts:\n- name: nginx\n  repo: https://charts.example/stable\n  version: 1.2.3\n  releaseName: one\n  valuesFile: values.yaml\n",
    );
    let copy = stage.same("app", &["--helm"]);
    assert!(
        read(&copy.join("kustomization.yaml"))
            .starts_with("helmGlobals:\n  chartHome: charts # away\n")
    );
    assert!(copy.join("charts/nginx/Chart.yaml").exists());
}

#[test]
fn both_builds_see_the_same_archive() {
    let stage = Stage::new();
    let work = &stage.work;
    stage.serve(REPO, "nginx", "1.2.3");
    work.write(
        "app/kustomization.yaml",
        "helmCharts:\n- {name: nginx, repo: 'https://charts.example/stable', version: 1.2.3, releaseName: one}\n",
    );
    work.commit("chart");
    if stage.sandbox.builds().is_none() {
        return;
    }
    let helm = format!(
        "--helm-command={}",
        stage.sandbox.path("bin/helm").display()
    );
    let output = work.run(&[
        "app",
        "--helm",
        "--build-arg=--enable-helm",
        "--build-arg",
        &helm,
    ]);
    output.success();
    let message = work.git(&["log", "-1", "--format=%B", "localized/main"]);
    assert!(
        message.contains("Kustomize-Localize-Verified: identical 1/1 kustomize/"),
        "{message}{output:?}"
    );
    // kustomize had no chart to pull.
    assert_eq!(stage.pulls().len(), 1);
}

#[test]
fn helm_gets_the_login_of_a_url_and_nobody_else_does() {
    let stage = Stage::new();
    let work = &stage.work;
    let with_login = "https://me:s3cr3t@charts.example/stable?token=s3cr3t-query";
    stage.serve(with_login, "nginx", "1.2.3");
    work.write(
        "app/kustomization.yaml",
        format!("helmCharts:\n- {{name: nginx, repo: '{with_login}', version: 1.2.3, releaseName: one}}\n"),
    );
    work.commit("chart");
    let args = ["app", "--helm", "--no-verify", "-v"];
    let output = work.run(&args);
    output.success().lacks("s3cr3t");
    assert_eq!(stage.pulls(), [format!("pull {with_login} nginx 1.2.3")]);
    let branch = "localized/main";
    for file in work.files(branch) {
        let path = file.split_once(' ').unwrap().1;
        let text = work.show(branch, path);
        assert!(
            path == "app/kustomization.yaml" || !text.contains("s3cr3t"),
            "{path}\n{text}"
        );
    }
}

#[test]
fn the_newest_version_may_be_in_development_only_where_devel_is_true() {
    // The booleans of YAML 1.1, and no strings.
    let values = [
        ("true", true),
        ("yes", true),
        ("On", true),
        ("y", true),
        ("false", false),
        ("no", false),
        ("off", false),
        ("N", false),
        ("null", false),
    ];
    let stage = Stage::new();
    let work = &stage.work;
    stage.serve(REPO, "nginx", "1.2.3");
    stage.sandbox.script(
        "helm",
        &format!("[ \"$1\" != pull ] || echo \"$*\" >>\"$STAND_IN_HELM/args\"\n{STAND_IN}"),
    );
    for (value, is_devel) in values {
        let chart = format!("{{name: nginx, repo: '{REPO}', devel: {value}}}");
        let text = format!("helmCharts:\n- {chart}\n");
        work.write("app/kustomization.yaml", text);
        let log = stage.sandbox.path("served/args");
        let _ = fs::remove_file(&log);
        let _ = fs::remove_file(work.path().join("kustomize-localize.lock"));
        work.run(&["lock", "--helm"]).success();
        assert_eq!(
            read(&log).contains("--devel"),
            is_devel,
            "{value}: {}",
            read(&log)
        );
        // As the real one does.
        fs::remove_file(&log).unwrap();
        let app = work.path().join("app");
        if stage.build(&app).is_some() {
            let _ = fs::remove_dir_all(app.join("charts"));
            assert_eq!(
                read(&log).contains("--devel"),
                is_devel,
                "{value}: {}",
                read(&log)
            );
        }
    }
    for value in ["'no'", "\"true\"", "0"] {
        let chart = format!("{{name: nginx, repo: '{REPO}', devel: {value}}}");
        let text = format!("helmCharts:\n- {chart}\n");
        work.write("app/kustomization.yaml", text);
        work.git(&["add", "--all"]);
        work.run(&["check"]).fails(1).stdout_has("devel");
    }
}
