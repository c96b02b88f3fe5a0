//! Charts that lie in the tree.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::super::Refused;
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
    assert_eq!(stage.pulls(), crate::support::NONE);
}

#[test]
fn chart_homes_keep_their_places() {
    for (home, place, scope) in
        [(".", "app/nginx", "app"), ("./deep/../near", "app/near/nginx", "app"), ("../shared", "shared/nginx", ".")]
    {
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
fn an_absolute_home_is_an_error() {
    let stage = Stage::new();
    let work = &stage.work;
    let home = work.path().join("app/home");
    write_chart(&home.join("nginx"), "nginx", "1.2.3");
    let home = home.display();
    let text = format!("helmGlobals: {{chartHome: '{home}'}}\nhelmCharts: [{{name: nginx, releaseName: one}}]\n");
    work.write("app/kustomization.yaml", text);
    work.run(&["app", "../copy", "--no-commit", "--no-verify"])
        .fails(2)
        .says(expect![[r#"
            error: app/kustomization.yaml:2:14: helmCharts[0]: the chart `nginx` is expected in `/home/me/work/app/home`, outside of the repository
              hint: name a directory of this repository in `chartHome`, and put the chart there
        "#]]);
}

#[test]
fn links_become_their_targets() {
    let stage = Stage::new();
    let work = &stage.work;
    write_chart(&work.path().join("app/real/nginx"), "nginx", "1.2.3");
    work.write("app/shared/_common.tpl", "common");
    work.write("app/shared/more/a.txt", "a");
    work.symlink("app/charts", "real");
    work.symlink("app/real/nginx/templates/_common.tpl", "../../../shared/_common.tpl");
    work.symlink("app/real/nginx/files/more", "../../../shared/more");
    work.write("app/kustomization.yaml", "helmCharts: [{name: nginx, releaseName: one}]\n");
    let copy = stage.same("app", &[]);
    let chart = copy.join("charts/nginx");
    for (path, text) in [("templates/_common.tpl", "common"), ("files/more/a.txt", "a")] {
        assert_eq!(read(&chart.join(path)), text);
        assert!(fs::symlink_metadata(chart.join(path)).unwrap().is_file());
    }
    assert!(!copy.join("real").exists());
}

#[test]
fn charts_that_cannot_come_along_are_refused() {
    let stage = Stage::new();
    let work = &stage.work;
    let top = work.path();
    let text = "helmCharts: [{name: nginx, releaseName: one}]\n";
    let mut all = Refused::new(work);
    for (name, target) in
        [("out", "../../../../../secret"), ("etc", "/etc/hostname"), ("nowhere", "nowhere"), ("loop", ".")]
    {
        all.add(name, text, "charts/nginx/link");
        let chart = format!("in/{name}/charts/nginx");
        write_chart(&top.join(&chart), "nginx", "1.2.3");
        work.symlink(&format!("{chart}/link"), target);
    }
    // Links that double with every level: 2 to the 20th files.
    for level in 1..20 {
        for name in ["a", "b"] {
            let link = format!("in/large/charts/nginx/{level:02}/{name}");
            work.symlink(&link, &format!("../{:02}", level - 1));
        }
    }
    work.write("in/large/charts/nginx/00/x", "x\n");
    all.add("large", text, "nginx` has more than 20000 files");
    all.add("missing", text, "there is no `in/missing/charts/nginx`");
    let outside = "helmGlobals: {chartHome: ../../charts}\nhelmCharts: [{name: nginx}]\n";
    all.add("outside", outside, "is outside the scope `in`");
    write_chart(&top.join("charts/nginx"), "nginx", "1.2.3");
    all.in_one_run(&["--no-verify"]);
    let disk = ["../copy", "--no-commit", "--no-verify"];
    all.in_one_run(&disk);
    assert!(!stage.sandbox.path("copy").exists());
    work.write(".kustomize-localize", "allow: [{path: in/missing/charts/nginx, reason: made by CI}]\n");
    work.run(&[&["in/missing"], &disk[1..]].concat()).success();
}
