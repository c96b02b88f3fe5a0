//! Original and result are built, and compared, before anything is written.

use crate::support::{Project, base_of, config};

#[test]
fn the_same_output_is_recorded() {
    let project = Project::new();
    if project.sandbox.builds().is_none() {
        return;
    }
    let output = project.overlay(&[]);
    output
        .success()
        .stdout_has("  verified: it builds to the same ")
        .stdout_has("network closed");
    let message = project
        .work
        .git(&["log", "-1", "--format=%B", "localized/main"]);
    assert!(
        message.contains("\nKustomize-Localize-Verified: identical 1/1 kustomize/"),
        "{message}"
    );
    assert_eq!(project.sandbox.leftovers(), [""; 0]);
}

#[test]
fn upstream_may_be_gone_once_it_was_fetched() {
    let project = Project::new();
    if project.sandbox.builds().is_none() {
        return;
    }
    project.overlay(&["--no-verify"]).success();
    std::fs::rename(project.upstream.path(), project.sandbox.path("gone")).unwrap();
    project
        .work
        .write("example/base/config.yaml", config("another"));
    project.work.commit("another name");
    project
        .overlay(&[])
        .success()
        .stdout_has("  verified: it builds to the same ")
        .lacks("live upstream");
}

#[test]
fn nothing_is_built_where_nobody_asks_for_it_or_nobody_can() {
    let project = Project::new();
    project.overlay(&["--no-commit"]).success().stdout_has(
        "  not verified by a build: there is neither `kustomize` nor `kubectl` on PATH",
    );
    if project.sandbox.builds().is_none() {
        return;
    }
    project
        .overlay(&["--no-verify"])
        .success()
        .stdout_has("  not verified by a build: --no-verify");
    let message = project
        .work
        .git(&["log", "-1", "--format=%B", "localized/main"]);
    assert!(
        message.contains("\nKustomize-Localize-Verified: not built\n"),
        "{message}"
    );
}

#[test]
fn an_original_that_does_not_build_proves_nothing() {
    let project = Project::new();
    if project.sandbox.builds().is_none() {
        return;
    }
    // kustomize refuses what has no name.
    project.work.write(
        "example/base/config.yaml",
        "apiVersion: v1\nkind: ConfigMap\n",
    );
    project
        .work
        .write("example/base/kustomization.yaml", base_of("v1"));
    project.work.commit("nameless");
    project
        .overlay(&[])
        .success()
        .stdout_has("does not build the original: ")
        .stdout_has("missing metadata.name")
        .lacks("/tmp/");
    let message = project
        .work
        .git(&["log", "-1", "--format=%B", "localized/main"]);
    assert!(message.contains("-Verified: not built\n"), "{message}");
}
