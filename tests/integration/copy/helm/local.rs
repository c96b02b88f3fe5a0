//! Charts that lie in the tree.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::{Stage, read, write_chart};

#[test]
fn local_charts_and_values_come_along() {
    let stage = Stage::new();
    let work = &stage.work;
    let app = work.path().join("app");
    write_chart(&app.join("charts/nginx"), "nginx", "1.2.3");
    write_chart(&app.join("charts/unused"), "unused", "1.0.0");
    work.write_executable("app/charts/nginx/tool.sh", "#!/bin/sh\n");
    work.write("app/values/prod.yaml", "replicas: 3\n");
    work.write("app/values/more.yaml", "replicas: 4\n");
    work.write("app/values/unused.yaml", "");
    work.write(
        "app/kustomization.yaml",
        "helmCharts:\n- name: nginx\n  releaseName: one\n  valuesFile: values/prod.yaml\n  additionalValuesFiles: [values/more.yaml]\n",
    );
    work.commit("chart");
    let copy = stage.same("app", &[]);
    assert!(copy.join("charts/nginx/charts/sub-1.0.0.tgz").exists());
    assert!(!copy.join("charts/unused").exists());
    assert!(!copy.join("values/unused.yaml").exists());
    let mode = |path: &str| fs::metadata(copy.join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("charts/nginx/tool.sh") & 0o111, 0o111);
    assert_eq!(mode("charts/nginx/Chart.yaml") & 0o111, 0);
    assert_eq!(stage.pulls(), [""; 0]);
}

#[test]
fn chart_homes_keep_their_places() {
    for (home, place, scope) in [
        (".", "app/nginx", "app"),
        ("./deep/../near", "app/near/nginx", "app"),
        ("../shared", "shared/nginx", "."),
    ] {
        let stage = Stage::new();
        let work = &stage.work;
        write_chart(&work.path().join(place), "nginx", "1.2.3");
        work.write("app/values.yaml", "replicas: 2\n");
        work.write(
            "app/kustomization.yaml",
            format!("helmGlobals: {{chartHome: {home}}}\nhelmCharts: [{{name: nginx, releaseName: one, valuesFile: values.yaml}}]\n"),
        );
        let copy = stage.same("app", &["--scope", scope]);
        let inside = match scope {
            "." => place,
            _ => place.strip_prefix("app/").unwrap(),
        };
        assert!(copy.join(inside).join("templates/_helpers.tpl").exists());
    }
}

#[test]
fn an_absolute_home_becomes_a_relative_one() {
    let stage = Stage::new();
    let work = &stage.work;
    let home = work.path().join("app/home");
    write_chart(&home.join("nginx"), "nginx", "1.2.3");
    let text = |home: &str| {
        format!(
            "helmGlobals: {{chartHome: '{home}'}} # here\nhelmCharts: [{{name: nginx, releaseName: one}}]\n"
        )
    };
    work.write("app/kustomization.yaml", text(home.to_str().unwrap()));
    let copy = stage.same("app", &[]);
    assert_eq!(read(&copy.join("kustomization.yaml")), text("home"));
    if stage.sandbox.builds().is_none() {
        return;
    }
    let helm = format!(
        "--helm-command={}",
        stage.sandbox.path("bin/helm").display()
    );
    let args = [
        "app",
        "../proven",
        "--no-commit",
        "--build-arg=--enable-helm",
        "--build-arg",
    ];
    work.run(&[&args[..], &[helm.as_str()]].concat())
        .success()
        .stdout_has("verified: builds are identical: ");
}

#[test]
fn links_become_their_targets() {
    let stage = Stage::new();
    let work = &stage.work;
    write_chart(&work.path().join("app/real/nginx"), "nginx", "1.2.3");
    work.write("app/shared/_common.tpl", "common");
    work.write("app/shared/more/a.txt", "a");
    work.symlink("app/charts", "real");
    work.symlink(
        "app/real/nginx/templates/_common.tpl",
        "../../../shared/_common.tpl",
    );
    work.symlink("app/real/nginx/files/more", "../../../shared/more");
    work.write(
        "app/kustomization.yaml",
        "helmCharts: [{name: nginx, releaseName: one}]\n",
    );
    let args = ["--no-commit", "--no-verify", "app", "../copy"];
    work.run(&args).success();
    let chart = stage.sandbox.path("copy/charts/nginx");
    for (path, text) in [
        ("templates/_common.tpl", "common"),
        ("files/more/a.txt", "a"),
    ] {
        assert_eq!(read(&chart.join(path)), text);
        assert!(fs::symlink_metadata(chart.join(path)).unwrap().is_file());
    }
    assert!(!stage.sandbox.path("copy/real").exists());
    stage.same("app", &[]);
}

#[test]
fn links_that_leave_are_refused() {
    let stage = Stage::new();
    let work = &stage.work;
    write_chart(&work.path().join("app/charts/nginx"), "nginx", "1.2.3");
    work.write("secret", "s");
    work.write(
        "app/kustomization.yaml",
        "helmCharts: [{name: nginx, releaseName: one}]\n",
    );
    for target in ["../../../secret", "/etc/hostname", "nowhere", "."] {
        work.symlink("app/charts/nginx/link", target);
        work.run(&["--no-commit", "--no-verify", "app", "../copy"])
            .fails(2)
            .stderr_has("error: app/kustomization.yaml:1:14: helmCharts[0]: ")
            .stderr_has("charts/nginx/link")
            .stderr_has("hint: ");
        assert!(!stage.sandbox.path("copy").exists());
        work.remove("app/charts/nginx/link");
    }
}

#[test]
fn a_chart_that_is_nowhere_is_an_error_unless_it_may_be() {
    let stage = Stage::new();
    let work = &stage.work;
    work.write(
        "app/kustomization.yaml",
        "resources: [map.yaml]\nhelmCharts: [{name: nginx, releaseName: one}]\n",
    );
    work.write("app/map.yaml", crate::support::config("map"));
    let args = ["--no-commit", "--no-verify", "app", "../copy"];
    work
        .run(&args)
        .fails(2)
        .stderr_has("error: app/kustomization.yaml:2:14: helmCharts[0]: there is no `app/charts/nginx`, and the chart `nginx` names no repository to get it from")
        .stderr_has("hint: put the chart there, or name its `repo`");
    assert!(!stage.sandbox.path("copy").exists());
    let missing = ["--leave-missing", "app/charts/nginx"];
    work
        .run(&[&args[..], &missing].concat())
        .success()
        .stderr_has("warning[left-missing]: app/kustomization.yaml:2:14: helmCharts[0]: the chart `nginx` is left as it is");
    let outside = "helmGlobals: {chartHome: ../charts}\nhelmCharts: [{name: nginx}]\n";
    work.write("app/kustomization.yaml", outside);
    write_chart(&work.path().join("charts/nginx"), "nginx", "1.2.3");
    work.run(&["--no-commit", "--no-verify", "app", "../other"])
        .fails(2)
        .stderr_has("the chart `charts/nginx` lies outside the scope `app`")
        .stderr_has("hint: name a directory that holds both: --scope .\n");
}

/// It may hold logins, and what of it a build reads depends on helm.
#[test]
fn a_configuration_of_helm_is_refused() {
    let stage = Stage::new();
    for text in [
        "helmGlobals: {ConfigHome: helm}\n",
        "helmChartInflationGenerator: [{chartName: a, helmHome: helm}]\n",
        "generators:\n- |-\n  {apiVersion: builtin, kind: HelmChartInflationGenerator, metadata: {name: a}, configHome: helm}\n",
    ] {
        stage.work.write("app/kustomization.yaml", text);
        stage
            .work
            .run(&["--no-commit", "--no-verify", "app", "../copy"])
            .fails(2)
            .stderr_has("Home: this field is not supported\n")
            .stderr_has("hint: leave it out: configure helm where it runs\n");
    }
}

#[test]
fn a_chart_that_is_too_large_is_refused() {
    let stage = Stage::new();
    let work = &stage.work;
    // Links that double with every level: 2 to the 20th files.
    for level in 1..20 {
        for name in ["a", "b"] {
            let link = format!("app/charts/nginx/{level:02}/{name}");
            let target = format!("../{:02}", level - 1);
            work.symlink(&link, &target);
        }
    }
    work.write("app/charts/nginx/00/x", "x\n");
    let text = "helmCharts: [{name: nginx, releaseName: one}]\n";
    work.write("app/kustomization.yaml", text);
    work.run(&["--no-commit", "--no-verify", "app", "../copy"])
        .fails(2)
        .stderr_has("`app/charts/nginx` has more than 20000 files")
        .stderr_has("hint: name a directory with only the files that are needed");
}
