//! `targets`, and what depends on it, as people run it.

use serde_json::Value;

use crate::support::{Repo, Sandbox, World, config, config_map};

const OBJECTS: &str = "apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: fleet, namespace: flux-system}
spec: {url: 'https://github.com/acme/fleet', ref: {branch: main}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: apps, namespace: flux-system}
spec:
  path: ./apps/web
  sourceRef: {kind: GitRepository, name: fleet}
";

/// Returns a repository from which Flux deploys one of two applications.
fn fleet(sandbox: &Sandbox) -> Repo {
    let repo = sandbox.repo("work");
    repo.git(&["remote", "add", "origin", "git@github.com:acme/fleet.git"]);
    repo.write("clusters/prod/apps.yaml", OBJECTS);
    repo.write("apps/web/kustomization.yaml", "resources: [map.yaml]\n");
    repo.write("apps/web/map.yaml", config("web"));
    repo.write("apps/db/kustomization.yaml", "resources: [none.yaml]\n");
    repo.commit("Begin");
    repo
}

#[test]
fn targets_are_shown_for_people_and_machines() {
    let sandbox = Sandbox::new();
    let repo = fleet(&sandbox);
    let text = "clusters/prod/apps.yaml:6: Flux Kustomization flux-system/apps\n  apps/web at main: a kustomization, hermetic\n\n1 target: 1 here, 0 external, 0 templated\n";
    for from in [
        &[][..],
        &["--staged"],
        &["--working-tree"],
        &["--rev", "HEAD"],
    ] {
        let shown = repo
            .run(&[&["targets"], from].concat())
            .success()
            .stdout
            .clone();
        assert_eq!(shown, text, "{from:?}");
    }
    let json = repo
        .run(&["targets", "--format", "json"])
        .success()
        .stdout
        .clone();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["targets"][0]["path"], "apps/web");
    assert_eq!(json["counts"]["here"], 1);
    // Another repository is not this one.
    repo.git(&[
        "remote",
        "set-url",
        "origin",
        "https://github.com/acme/other",
    ]);
    let shown = repo.run(&["targets"]).success().stdout.clone();
    assert!(
        shown.contains("external: it is in https://github.com/acme/fleet"),
        "{shown}"
    );
}

#[test]
fn the_gate_looks_at_what_is_deployed() {
    let sandbox = Sandbox::new();
    let repo = fleet(&sandbox);
    repo.run(&["check"]).fails(1);
    repo.run(&["check", "--targets-only"]).success();
    repo.write(
        "clusters/prod/apps.yaml",
        OBJECTS.replace("apps/web", "apps/weeb"),
    );
    repo.git(&["add", "--all"]);
    let told = repo
        .run(&["check", "--targets-only"])
        .fails(1)
        .stdout
        .clone();
    assert!(
        told.contains("error[missing-target]: Flux Kustomization apps"),
        "{told}"
    );
    assert!(told.contains("help: did you mean `apps/web`?"), "{told}");
    repo.git(&["rm", "-qf", "clusters/prod/apps.yaml"]);
    repo.run(&["check", "--targets-only"])
        .fails(2)
        .stderr_has("no target is deployed from here");
}

#[test]
fn a_result_that_changes_what_is_deployed_is_refused() {
    let world = World::acme();
    let work = &world.work;
    work.git(&["remote", "add", "origin", "https://github.com/acme/fleet"]);
    let set = "apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: apps, namespace: argocd}
spec:
  generators:
  - git:
      repoURL: https://github.com/acme/fleet
      revision: main
      directories:
      - path: apps/*/*
  template:
    metadata: {name: '{{path.basename}}'}
    spec:
      source: {repoURL: 'https://github.com/acme/fleet', path: '{{path}}', targetRevision: main}
";
    work.write("sets/apps.yaml", set);
    work.write(
        "apps/web/kustomization.yaml",
        "resources:\n- https://github.com/acme/lib//web?ref=v1\n- map.yaml\n",
    );
    work.write("apps/web/map.yaml", config_map("web"));
    work.write("apps/team/db/kustomization.yaml", "resources: [map.yaml]\n");
    work.write("apps/team/db/map.yaml", config_map("db"));
    work.commit("Begin");
    for arguments in [
        &["--in-place"][..],
        &["--in-place", "--no-commit"],
        &["apps/web", "apps/team/copy"],
        &["apps/web", "apps/team/copy", "--no-commit"],
    ] {
        let before = work.state();
        work.run(&[arguments, &["--no-verify"]].concat())
            .fails(2)
            .stderr_has("sets/apps.yaml:1: ")
            .stderr_has("ApplicationSet argocd/apps")
            .stderr_has("hint: ");
        work.state().assert_same(&before);
    }
    // What the hint says helps.
    let excluded =
        "      - path: apps/*/*\n      - {path: apps/*/localized-files, exclude: true}\n";
    work.write(
        "sets/apps.yaml",
        set.replace("      - path: apps/*/*\n", excluded),
    );
    work.commit("Exclude");
    work.run(&["--in-place", "--no-verify"]).success();
}
