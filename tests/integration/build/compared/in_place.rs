//! In place every affected root that no other names is built.

use super::altering;
use crate::support::{Project, config};

const IN_PLACE: [&str; 2] = ["--in-place", "--no-commit"];

#[test]
fn every_affected_root_that_no_other_names_is_built() {
    let project = Project::new();
    if project.sandbox.builds().is_none() {
        return;
    }
    let work = &project.work;
    let again = "resources: [../base]\nnamePrefix: prod-\n";
    work.write("example/production/kustomization.yaml", again);
    work.commit("production");
    work.run(&IN_PLACE)
        .success()
        .stdout_has("  verified: 2 builds identical");
    // Nothing changed: nothing is built.
    work.run(&IN_PLACE).success().lacks("verified");
}

#[test]
fn a_root_that_never_built_is_reported_and_blocks_nothing() {
    let project = Project::new();
    if project.sandbox.builds().is_none() {
        return;
    }
    let work = &project.work;
    let twice = "bases: [../base]\nresources: [config.yaml]\n";
    work.write("example/twice/kustomization.yaml", twice);
    work.write("example/twice/config.yaml", config("base"));
    work.commit("the same name twice");
    work.run(&IN_PLACE)
        .success()
        .stdout_has("  verified: 1 build identical, 1 root did not build before either")
        .stdout_has("  did not build: example/twice: ")
        .stdout_has("may not add resource with an already registered id")
        // kustomize says before it that `bases` is.
        .lacks("deprecated");
    assert!(work.path().join("example/base/localized-files").is_dir());
}

#[test]
fn a_root_that_differs_keeps_everything_back() {
    let project = Project::new();
    let work = &project.work;
    let Some(kustomize) = project.sandbox.builds() else {
        return;
    };
    altering(&project.sandbox, &kustomize, "echo '# one more line'");
    let before = work.state();
    work.run(&IN_PLACE)
        .fails(1)
        .stdout_has("not localized: the localized build differs from the original\n")
        .stdout_has("  both outputs: ")
        .stderr_has("error: nothing was written: the localized build differs from the original\n");
    before.assert_same(&work.state());
    let json = [&IN_PLACE[..], &["--format=json"]].concat();
    let json = work.run(&json);
    json.fails(1).stdout_has("\"outcome\": \"differs\"");
}

#[test]
fn files_edited_during_the_build_are_not_overwritten() {
    let project = Project::new();
    let Some(kustomize) = project.sandbox.builds() else {
        return;
    };
    let work = &project.work;
    let edited = work.path().join("example/base/kustomization.yaml");
    project.sandbox.script(
        "kustomize",
        &format!(
            "case \"$1\" in build) echo '# mine' >>'{}';; esac; exec '{}' \"$@\"",
            edited.display(),
            kustomize.program().display()
        ),
    );
    let program = project.sandbox.path("bin/kustomize");
    project.sandbox.set("KUSTOMIZE", program);
    work.run(&IN_PLACE)
        .fails(2)
        .stderr_has("error: `example/base/kustomization.yaml` was edited meanwhile\n")
        .stderr_has("hint: run the same command again\n");
    assert!(
        work.read("example/base/kustomization.yaml")
            .ends_with("# mine\n")
    );
    assert!(!work.path().join("kustomize-localize.lock").exists());
    assert!(!work.path().join("example/base/localized-files").exists());
}

#[test]
fn differing_builds_show_the_difference_and_no_files() {
    let project = Project::new();
    let Some(kustomize) = project.sandbox.builds() else {
        return;
    };
    let again = "resources: [../base]\nnamePrefix: prod-\n";
    let work = &project.work;
    work.write("example/production/kustomization.yaml", again);
    work.commit("production");
    let script = "case \"$*\" in *overlay*) echo '# one more line';; esac";
    altering(&project.sandbox, &kustomize, script);
    for mode in [
        &IN_PLACE as &[&str],
        &["--in-place"],
        &["--in-place", "--dry-run"],
    ] {
        let output = work.run(mode);
        output.fails(1);
        let lines: Vec<&str> = output.stdout.lines().collect();
        assert_eq!(
            lines[0],
            "not localized: the localized build differs from the original, in 1 of 2 builds"
        );
        assert!(lines[1].starts_with("  example/overlay: "), "{lines:?}");
        let last = lines.last().unwrap();
        let kept = last.strip_prefix("  both outputs: ").unwrap();
        let kept = std::path::Path::new(kept).join("example/overlay/localized.yaml");
        assert!(kept.is_file(), "{output:?}");
        for said in [
            "files:",
            "rewritten",
            "localized-files",
            "example/production",
        ] {
            output.lacks(said);
        }
        let errors = output
            .stderr
            .lines()
            .filter(|line| line.starts_with("error: "));
        assert_eq!(errors.count(), 1, "{output:?}");
    }
}
