//! Each way in which outputs differ.

use super::{project, recorded, stand_in};
use crate::support::{Output, Project};

/// Runs the program with a kustomize that pipes what a result builds to through `filter`.
fn filtered(project: &Project, filter: &str) -> Output {
    let script = format!("case \"$*\" in */localized/*) REAL \"$@\" | {filter};; *) exec REAL \"$@\";; esac");
    stand_in(&project.sandbox, &script);
    project.overlay(&[])
}

#[test]
fn annotations_about_the_build_may_differ() {
    let Some(project) = project() else { return };
    let work = &project.work;
    work.write(
        "example/overlay/kustomization.yaml",
        "resources:\n  - ../base\nbuildMetadata: [originAnnotations, transformerAnnotations]\nnamePrefix: dev-\n",
    );
    work.commit("with origins");
    project.overlay(&[]).success().says(expect![[r#"
        localized example/overlay into localized-overlay on branch localized/main (<0>): 7 files written, 1 reference rewritten, 0 removed
          added https://example.com/acme/remote.git?ref=v1 <1>
          verified: builds are identical: 700 bytes (kustomize/…, network closed)
          to look at it: git show --stat <0>
    "#]]);
    let trailer = recorded(&project.work);
    assert!(trailer.starts_with("identical 1/1 kustomize/"), "{trailer}");
    project.overlay(&["--no-commit", "plain", "--format=json"]).success();
}

#[test]
fn missing_build_inputs_are_explained() {
    let Some(project) = project() else { return };
    let work = &project.work;
    work.write("example/base/charts/c/Chart.yaml", "name: c\n");
    work.write("example/base/charts/c/values.yaml", "");
    for text in [
        "helmCharts:\n- name: c\n  releaseName: r\n",
        "transformers:\n- |-\n  apiVersion: example.com/v1\n  kind: Mine\n  metadata:\n    name: m\n    annotations:\n      config.kubernetes.io/function: |\n        exec: {path: ./fn.sh}\n",
    ] {
        work.write("example/base/fn.sh", "#!/bin/sh\ncat\n");
        work.write("example/base/kustomization.yaml", text);
        work.commit("needs a flag");
        project.overlay(&["--no-commit", "plain", "--overwrite"]).success();
    }
}

#[test]
fn functions_that_are_left_out_are_no_success() {
    let Some(project) = project() else { return };
    let work = &project.work;
    work.write(
        "example/base/kustomization.yaml",
        "resources: [config.yaml]\ntransformers:\n- |-\n  apiVersion: example.com/v1\n  kind: Mine\n  metadata:\n    name: m\n    annotations:\n      config.kubernetes.io/function: |\n        exec: {path: ./fn.sh}\n",
    );
    work.write("example/base/fn.sh", "#!/bin/sh\ncat\n");
    work.commit("a function");
    project.overlay(&["--build-arg=--enable-alpha-plugins"]).success().says(expect![[r#"
        localized example/overlay into localized-overlay on branch localized/main (<0>): 5 files written, 0 references rewritten, 0 removed
          not verified: 1 root not built (kustomize/…)
          not built: example/overlay: kustomize silently skips exec functions; to run them (this runs their code): --build-arg=--enable-exec, with kustomize
          to look at it: git show --stat <0>
    "#]]);
    let trailer = recorded(&project.work);
    assert!(trailer.starts_with("identical 0/1 "), "{trailer}");
}

#[test]
fn every_way_to_differ_keeps_the_branch_where_it_is() {
    let more = r"{ cat; printf -- '---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: more\nstringData:\n  password: hunter2\n'; }";
    let less = "sed '/^---$/,$d'";
    let order =
        "awk 'BEGIN{RS=\"---\\n\"} {a[NR]=$0} END{for(i=NR;i>0;i--){if(i<NR)print \"---\"; printf \"%s\",a[i]}}'";
    let other = "sed s/dev-base/dev-other/";

    for (filter, said) in [
        (more, "    added v1 Secret more\n"),
        (less, "    removed v1 Service dev-one\n"),
        (other, "    -  name: dev-base\n"),
        (order, "the same objects in another order"),
    ] {
        let Some(project) = project() else { return };
        let before = project.work.state();
        let output = filtered(&project, filter);
        output.fails(1).stdout_has(said).lacks("hunter2");
        assert!(super::kept(&output.stdout).join("localized.yaml").exists());
        let output = project.overlay(&["--format=json"]);
        output.fails(1).lacks("hunter2");
        output.stdout_has("\"verdict\": \"differs\"");
        before.assert_same(&project.work.state());
    }
}
