//! Each way in which outputs differ.

use super::altering;
use crate::support::{Output, Project};

/// Runs the program with a kustomize that pipes what a result builds to through `filter`.
fn filtered(project: &Project, filter: &str, more: &[&str]) -> Option<Output> {
    let kustomize = project.sandbox.builds()?;
    let real = kustomize.program().display();
    project.sandbox.script(
        "kustomize",
        &format!(
            "case \"$*\" in */localized/*) {real} \"$@\" | {filter};; *) exec {real} \"$@\";; esac"
        ),
    );
    let script = project.sandbox.path("bin/kustomize");
    project.sandbox.set("KUSTOMIZE", script);
    Some(project.overlay(more))
}

#[test]
fn an_object_that_was_changed_is_shown_with_its_lines() {
    let project = Project::new();
    let Some(output) = filtered(&project, "sed s/dev-base/dev-other/", &[]) else {
        return;
    };
    output
        .fails(1)
        .stdout_has("  the outputs differ (kustomize/")
        .stdout_has("    removed v1 ConfigMap dev-base\n")
        .stdout_has("    added v1 ConfigMap dev-other\n")
        .stdout_has("    --- original: v1 ConfigMap dev-base\n")
        .stdout_has("    -  name: dev-base\n")
        .stderr_has("hint: to accept the difference: --no-verify\n");
    let json = project.overlay(&["--format=json"]);
    json.fails(1)
        .stdout_has("\"verdict\": \"differs\"")
        .stdout_has("\"kind\": \"content\"")
        .stdout_has("\"id\": \"v1 ConfigMap dev-other\"")
        .stdout_has("\"outputs\": \"");
}

#[test]
fn another_order_is_a_difference() {
    let project = Project::new();
    let swap = "awk 'BEGIN{RS=\"---\\n\"} {a[NR]=$0} END{for(i=NR;i>0;i--){if(i<NR)print \"---\"; printf \"%s\",a[i]}}'";
    let Some(output) = filtered(&project, swap, &[]) else {
        return;
    };
    output
        .fails(1)
        .stdout_has("  the same objects in another order (kustomize/");
}

#[test]
fn origins_may_differ_where_the_kustomization_asks_for_them() {
    let project = Project::new();
    let work = &project.work;
    if project.sandbox.builds().is_none() {
        return;
    }
    work.write(
        "example/overlay/kustomization.yaml",
        "resources:\n  - ../base\nbuildMetadata: [originAnnotations, transformerAnnotations]\nnamePrefix: dev-\n",
    );
    work.commit("with origins");
    project
        .overlay(&[])
        .success()
        .stdout_has("but for the annotations that name paths (kustomize/");
    let format = "--format=%(trailers:key=Kustomize-Localize-Verified,valueonly)";
    let trailer = work.git(&["log", "-1", format, "localized/main"]);
    assert!(trailer.starts_with("identical 1/1 kustomize/"), "{trailer}");
    project
        .overlay(&["--no-commit", "plain", "--format=json"])
        .success()
        .stdout_has("\"verdict\": \"annotations-only\"");
}

#[test]
fn values_of_a_secret_are_not_shown() {
    let project = Project::new();
    project.work.write(
        "example/base/config.yaml",
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\nstringData:\n  password: hunter2\n",
    );
    project.work.commit("a secret");
    let Some(output) = filtered(&project, "sed s/hunter2/hunter3/", &[]) else {
        return;
    };
    output
        .fails(1)
        .stdout_has("    changed v1 Secret dev-s\n")
        .stdout_has("+  password: '*** (another one: localized)'\n")
        .lacks("hunter");
}

#[test]
fn missing_build_inputs_are_explained() {
    let project = Project::new();
    if project.sandbox.builds().is_none() {
        return;
    }
    let work = &project.work;
    work.write("example/base/charts/c/Chart.yaml", "name: c\n");
    work.write("example/base/charts/c/values.yaml", "");
    for (text, step) in [
        (
            "helmCharts:\n- name: c\n  releaseName: r\n",
            "  to build it with helm: --build-arg=--enable-helm\n",
        ),
        (
            "transformers:\n- |-\n  apiVersion: example.com/v1\n  kind: Mine\n  metadata:\n    name: m\n    annotations:\n      config.kubernetes.io/function: |\n        exec: {path: ./fn.sh}\n",
            "--build-arg=--enable-alpha-plugins",
        ),
    ] {
        work.write("example/base/fn.sh", "#!/bin/sh\ncat\n");
        work.write("example/base/kustomization.yaml", text);
        work.commit("needs a flag");
        project
            .overlay(&["--no-commit", "plain", "--overwrite"])
            .success()
            .stdout_has("1 root did not build before either")
            .stdout_has("did not build: ")
            .stdout_has(step);
    }
}

#[test]
fn functions_that_are_left_out_are_no_success() {
    let project = Project::new();
    if project.sandbox.builds().is_none() {
        return;
    }
    let work = &project.work;
    work.write(
        "example/base/kustomization.yaml",
        "resources: [config.yaml]\ntransformers:\n- |-\n  apiVersion: example.com/v1\n  kind: Mine\n  metadata:\n    name: m\n    annotations:\n      config.kubernetes.io/function: |\n        exec: {path: ./fn.sh}\n",
    );
    work.write("example/base/fn.sh", "#!/bin/sh\ncat\n");
    work.commit("a function");
    project
        .overlay(&["--build-arg=--enable-alpha-plugins"])
        .success()
        .stdout_has("functions that are programs are left out silently")
        .stdout_has("--build-arg=--enable-exec");
    let format = "--format=%(trailers:key=Kustomize-Localize-Verified,valueonly)";
    let trailer = work.git(&["log", "-1", format, "localized/main"]);
    assert!(
        trailer.starts_with("identical 0/1, not built 1 "),
        "{trailer}"
    );
}

/// It says nothing about what is built, so that no record may hold it.
#[test]
fn an_original_that_takes_too_long_is_no_root_that_did_not_build() {
    let project = Project::new();
    let work = &project.work;
    if project.sandbox.builds().is_none() {
        return;
    }
    let script = "[ $1 = version ] && { echo v9.9.9; exit; }; sleep 30";
    project.sandbox.script("kustomize", script);
    let slow = project.sandbox.path("bin/kustomize");
    project.sandbox.set("KUSTOMIZE", slow);
    let before = work.state();
    work.run(&["--in-place", "--timeout=1"])
        .fails(2)
        .stderr_has("did not finish within 1 s")
        .stderr_has("--timeout SECONDS");
    before.assert_same(&work.state());
}

#[test]
fn a_build_that_takes_too_long_is_ended() {
    let project = Project::new();
    let Some(kustomize) = project.sandbox.builds() else {
        return;
    };
    altering(&project.sandbox, &kustomize, "sleep 30");
    project
        .overlay(&["--timeout=1"])
        .fails(1)
        .stdout_has("the result does not: `")
        .stdout_has("did not finish within 1 s")
        .stderr_has("hint: give it more time: --timeout SECONDS\n");
}

#[test]
fn every_way_to_differ_keeps_the_branch_where_it_is() {
    let annotate =
        r"sed 's/^metadata:/metadata:\n  annotations:\n    config.kubernetes.io\/origin: x/'";
    let more = r"{ cat; printf -- '---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: more\nstringData:\n  password: hunter2\n'; }";
    let less = "sed '/^---$/,$d'";
    for (filter, kind, said) in [
        (
            annotate,
            "annotations",
            "annotations about the build differ, which the kustomization does not ask for",
        ),
        (more, "content", "    added v1 Secret more\n"),
        (less, "content", "    removed v1 Service dev-one\n"),
    ] {
        let project = Project::new();
        let before = project.work.state();
        let Some(output) = filtered(&project, filter, &[]) else {
            return;
        };
        output
            .fails(1)
            .stdout_has(said)
            .stderr_has("hint: to accept the difference: --no-verify\n")
            .lacks("hunter2");
        assert!(super::kept(&output.stdout).join("localized.yaml").exists());
        before.assert_same(&project.work.state());
        project
            .overlay(&["--format=json"])
            .fails(1)
            .stdout_has(&format!("\"kind\": \"{kind}\""))
            .lacks("hunter2");
    }
}
