//! Warnings are counted, and `--strict` makes them errors.

use serde_json::{Value, json};

use crate::support::{Project, World, config_map};

/// Three things that work but should be known, two of one sort.
const WARNED: &str = "resources: [base, config.yaml]\ngenerators: ['{apiVersion: x/v1, kind: Foo, metadata: {name: a}}']\n---\nresources: [other.yaml]\n";
const COUNTED: &str = "3 warnings (extra-document 2, legacy-plugin 1)";

fn warned() -> World {
    let world = World::new();
    world.commit(&[
        ("app/kustomization.yaml", WARNED),
        ("app/config.yaml", &config_map("app")),
        (
            "app/base/kustomization.yaml",
            "namePrefix: a-\n---\nnamePrefix: b-\n",
        ),
    ]);
    world
}

#[test]
fn warnings_are_counted() {
    let world = warned();
    let output = world.work.run(&["app"]);
    output.success().stdout_has(&format!("\n  {COUNTED}\n"));
    assert_eq!(output.stderr.matches("warning[").count(), 3, "{output:?}");
    let output = world.work.run(&["app", "--format", "json"]);
    let told: Value = serde_json::from_str(&output.success().stdout).unwrap();
    assert_eq!(
        told["warning_counts"],
        json!({"extra-document": 2, "legacy-plugin": 1})
    );
    assert_eq!(told["warnings"].as_array().unwrap().len(), 3);
}

#[test]
fn strict_commits_nothing() {
    let world = warned();
    let work = &world.work;
    for more in [&[][..], &["--dry-run"], &["--no-commit"], &["--quiet"]] {
        let before = work.state();
        let output = work.run(&[&["app", "--strict", "--no-verify"], more].concat());
        output
            .fails(1)
            .stderr_has("warning[extra-document]: app/kustomization.yaml:3:1")
            .stderr_has(&format!(
                "error: nothing was written, because of {COUNTED}: `--strict` lets none pass"
            ))
            .stderr_has("leave `--strict` out");
        assert_eq!(output.stderr.matches("warning[").count(), 3, "{output:?}");
        match more {
            ["--quiet"] => assert_eq!(output.stdout, ""),
            _ => drop(output.stdout_has("not localized: app into localized-app")),
        }
        before.assert_same(&work.state());
    }
}

#[test]
fn strict_wants_a_build() {
    let project = Project::new();
    let before = project.work.state();
    project
        .overlay(&["--strict"])
        .fails(1)
        .stderr_has("warning[not-built]: the result is not verified by a build: ")
        .stderr_has("1 warning (not-built 1)");
    before.assert_same(&project.work.state());
    project.overlay(&["--strict", "--no-verify"]).success();
}

#[test]
fn strict_in_place_and_for_the_lock() {
    let project = Project::new();
    let work = &project.work;
    work.write(
        "other/kustomization.yaml",
        "resources: [config.yaml, missing.yaml]\n",
    );
    work.commit("something is missing");
    let in_place = ["vendor", "--no-verify", "--strict"];
    for args in [&["lock", "--strict"][..], &in_place] {
        let before = work.state();
        work.run(args)
            .fails(1)
            .stderr_has("warning[missing-path]: other/kustomization.yaml:1:26: ")
            .stderr_has("because of 1 warning (missing-path 1)");
        before.assert_same(&work.state());
    }
    // `check` reports it: elsewhere it is counted, also where there is nothing to do.
    for _ in 0..2 {
        let output = work.run(&["lock"]);
        output
            .success()
            .stdout_has("\n  1 warning (missing-path 1): -v shows each\n");
        assert_eq!(output.stderr, "");
    }
    // Nothing is left to write, but the cause of the warning is still there.
    let before = work.state();
    for args in [&["lock", "--strict"][..], &["update", "--strict"]] {
        let output = work.run(&[args, &["--format", "json"]].concat());
        let told: Value = serde_json::from_str(&output.fails(1).stdout).unwrap();
        assert_eq!(told["outcome"], "warned", "{output:?}");
        assert_eq!(told["warning_counts"], json!({"missing-path": 1}));
    }
    before.assert_same(&work.state());
    work.write("other/kustomization.yaml", "resources: [config.yaml]\n");
    work.run(&["lock", "--strict"]).success();
    work.commit("nothing is missing");
    work.run(&in_place).success();
}

#[test]
fn only_the_warnings_that_are_named_are_errors() {
    let world = warned();
    let work = &world.work;
    let app = |more: &[&str]| work.run(&[&["app", "--no-verify", "--dry-run"], more].concat());
    app(&["--strict=not-built,floating-chart"]).success();
    let before = work.state();
    app(&["--strict=not-built,legacy-plugin"])
        .fails(1)
        .stderr_has("error: nothing was written, because of 1 warning (legacy-plugin 1): `strict` lets none of these pass\n")
        .stderr_has("warning[extra-document]");
    app(&["--strict=legacy-plugin", "--strict=extra-document"])
        .fails(1)
        .stderr_has(COUNTED);
    app(&["--strict=legacy-plugin", "--strict"])
        .fails(1)
        .stderr_has("`--strict` lets none pass");
    for wrong in [
        "--strict=legacy-plugins",
        "--strict=not-built,legacy-plugins",
        "--strict=",
    ] {
        app(&[wrong]).fails(2).stderr_has("legacy-plugin");
    }
    before.assert_same(&work.state());
    // Warnings that the configuration lists are errors without the option, too.
    work.write(".kustomize-localize", "strict: [extra-document]\n");
    work.commit("strict");
    app(&[])
        .fails(1)
        .stderr_has("2 warnings (extra-document 2)");
    app(&["--strict=legacy-plugin"])
        .fails(1)
        .stderr_has(COUNTED);
    work.write(".kustomize-localize", "strict: [extra-documents]\n");
    work.commit("wrong");
    app(&[])
        .fails(2)
        .stderr_has(".kustomize-localize:1:10: strict[0]: there is no warning `extra-documents`")
        .stderr_has("did you mean `extra-document`?");
}

#[test]
fn strict_warnings_of_the_configuration_apply_to_every_command() {
    let project = Project::new();
    let work = &project.work;
    work.write("other/kustomization.yaml", "resources: [missing.yaml]\n");
    work.lock();
    let in_place = ["branch", "--no-verify"];
    let on_disk = ["vendor", "--no-verify"];
    for (strict, status) in [("missing-path", 1), ("floating-chart", 0)] {
        work.write(".kustomize-localize", format!("strict: [{strict}]\n"));
        work.commit("strict");
        for args in [&["lock", "--dry-run"][..], &in_place, &on_disk] {
            let output = work.run(args);
            match status {
                0 => output.success(),
                _ => output.fails(1).stderr_has("(missing-path 1): `strict`"),
            };
        }
    }
}

#[test]
fn a_strict_job_passes_with_accepted_warnings() {
    let project = Project::new();
    let work = &project.work;
    if project.sandbox.builds().is_none() {
        return;
    }
    work.write(".gitignore", "secret.env\n");
    work.write(
        "other/kustomization.yaml",
        "resources: [../example/overlay]\nsecretGenerator:\n- name: s\n  envs: [secret.env]\n",
    );
    work.commit("a secret");
    work.lock();
    let before = work.state();
    for args in [
        &["lock", "--strict"][..],
        &["branch", "--strict"],
        &["other", "--strict"],
    ] {
        let output = work.run(args);
        assert_ne!(output.status, 0, "{output:?}");
    }
    before.assert_same(&work.state());
    let check = work.run(&["check"]);
    assert!(check.stdout.contains("ignored-path"), "{check:?}");

    work.write(
        ".kustomize-localize",
        "leave-missing:\n- path: '**/secret.env'\n  reason: made by each cluster\n",
    );
    work.commit("accepted");
    work.run(&["lock", "--strict"]).success().lacks("warning");
    work.commit("locked");
    for _ in 0..2 {
        work.run(&["branch", "--strict"]).success().lacks("warning");
    }
    // Whatever lacks the file cannot be built.
    for gate in [
        &["check", "--rev", "localized/main"][..],
        &["verify", "localized/main"],
        &["verify", "localized/main", "--rebuild"],
    ] {
        work.run(gate)
            .success()
            .lacks("warning")
            .lacks("ignored-path");
    }
    let copy = [
        "other", "copy", "--scope", ".", "--strict", "--branch", "copies",
    ];
    work.run(&copy).success().lacks("warning");
    let lock = work.git(&["show", "copies:copy/kustomize-localize.lock"]);
    assert!(!lock.contains("leave-missing"), "{lock}");
    work.run(&["verify", "copies", "--rebuild"]).success();
    work.run(&["vendor", "--strict"]).success().lacks("warning");
}
