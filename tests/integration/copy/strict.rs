//! Warnings are counted, and `--strict` makes them errors.

use serde_json::Value;

use crate::support::{Project, World, config_map};

/// Two things that work but should be known.
const WARNED: &str = "resources: [config.yaml]\ngenerators:\n- '{apiVersion: x/v1, kind: Foo, metadata: {name: a}}'\n- '{apiVersion: x/v1, kind: Bar, metadata: {name: a}}'\n";
const COUNTED: &str = "2 warnings (function 2)";

fn warned() -> World {
    let world = World::new();
    world.commit(&[
        ("app/kustomization.yaml", WARNED),
        ("app/config.yaml", &config_map("app")),
        (".kustomize-localize", "rules: {function: warning}\n"),
    ]);
    world
}

#[test]
fn one_severity_holds_in_every_command() {
    let world = warned();
    let work = &world.work;
    let output = work.run(&["app", "--no-verify", "--format", "json", "--dry-run"]);
    let told: Value = serde_json::from_str(&output.success().stdout).unwrap();
    let rules = told["warnings"].as_array().unwrap().iter().map(|one| &one["rule"]);
    assert_eq!(Vec::from_iter(rules), ["function"; 2]);
    work.run(&["check"]).success();
    let commands = [&["app", "--no-verify", "--branch=copies"][..], &["branch", "--no-verify"], &["vendor"]];
    for command in commands {
        let before = work.state();
        let strict = work.run(&[command, &["--strict"]].concat());
        strict
            .fails(1)
            .stderr_has("error[function]: app/kustomization.yaml:3:")
            .stderr_has("error: nothing was written: 2 errors (function 2)");
        before.assert_same(&work.state());
    }
    let output = work.run(&[commands[0], &["--dry-run"]].concat());
    output.success().stdout_has(&format!("\n  {COUNTED}\n"));
    work.write(".kustomize-localize", "");
    work.commit("errors");
    for command in commands {
        let before = work.state();
        work.run(command).fails(1).stderr_has("error[function]: ");
        before.assert_same(&work.state());
    }
    let entry = "allow:\n- {program: '{Foo,Bar}', rules: [function], reason: ours}\n";
    work.write(".kustomize-localize", entry);
    work.commit("allowed");
    work.run(&["check", "--strict"]).success();
    for command in commands {
        let allowed = work.run(&[command, &["--strict"]].concat());
        allowed.success().lacks("function");
    }
}

#[test]
fn strict_wants_a_build() {
    let project = Project::new();
    let before = project.work.state();
    project
        .overlay(&["--strict"])
        .fails(1)
        .stderr_has("error[not-built]: not verified: ")
        .stderr_has("1 error (not-built 1)");
    before.assert_same(&project.work.state());
    project.overlay(&["--strict", "--no-verify"]).success();
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
    for args in [&["branch", "--strict"], &["other", "--strict"]] {
        let output = work.run(args);
        assert_ne!(output.status, 0, "{output:?}");
    }
    before.assert_same(&work.state());
    let check = work.run(&["check"]);
    assert!(check.stdout.contains("untracked-path"), "{check:?}");

    work.write(".kustomize-localize", "allow:\n- path: '**/secret.env'\n  reason: made by each cluster\n");
    work.commit("accepted");
    work.run(&["lock"]).success().lacks("warning");
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
        work.run(gate).success().lacks("warning").lacks("untracked-path");
    }
    let copy = ["other", "copy", "--scope", ".", "--strict", "--branch", "copies"];
    work.run(&copy).success().lacks("warning");
    work.run(&["verify", "copies", "--rebuild"]).success();
    work.run(&["vendor", "--strict"]).success().lacks("warning");
}
