//! `targets`, and what depends on it, as people run it.

use serde_json::Value;

use crate::support::{Repo, Sandbox, Transcript, World, config, config_map};

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

const OURS: &str = "repository: [{url: 'https://github.com/acme/fleet'}]\n";

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

fn json(repo: &Repo) -> Value {
    let output = repo.run(&["targets", "--format", "json"]);
    serde_json::from_str(&output.success().stdout).unwrap()
}

#[test]
fn targets_are_shown_for_people_and_machines() {
    let sandbox = Sandbox::new();
    let repo = fleet(&sandbox);
    let text = "clusters/prod/apps.yaml:6: Flux Kustomization flux-system/apps\n  apps/web at main: a kustomization, localized\n\n1 target: 1 here, 0 external, 0 templated\n";
    for from in [&[][..], &["--rev", "HEAD"]] {
        assert_eq!(repo.run(&[&["targets"], from].concat()).success().stdout, text, "{from:?}");
    }
    assert_eq!(json(&repo)["targets"][0]["here"]["path"], "apps/web");
    // The tree tells which one it is, whatever the clone is of. What is declared goes first.
    let other = "https://github.com/acme/other";
    repo.git(&["remote", "set-url", "origin", other]);
    assert_eq!(repo.run(&["targets"]).success().stdout, text);
    repo.write(".kustomize-localize", format!("repository: [{{url: '{other}'}}]\n"));
    repo.run(&["targets"]).success().says(expect![[r#"
        clusters/prod/apps.yaml:6: Flux Kustomization flux-system/apps
          external: it is in https://github.com/acme/fleet at main

        note: nothing is deployed from here: if the cluster knows this repository by another URL, add that to `repository` in .kustomize-localize; or list the deployed paths under `targets` there
        1 target: 0 here, 1 external, 0 templated
    "#]]);
}

#[test]
fn the_engines_that_the_tree_installs_are_named() {
    let sandbox = Sandbox::new();
    let repo = fleet(&sandbox);
    assert!(!repo.run_as_is(&["status"]).success().stdout.contains("engines:"));
    let instance = "apiVersion: fluxcd.controlplane.io/v1\nkind: FluxInstance\nmetadata: {name: flux}\nspec: {distribution: {version: 2.6.x}}\n";
    repo.write("d/flux.yaml", instance);
    repo.write("e/flux.yaml", instance.replace("2.6", "2.7"));
    repo.commit("engines");
    repo.run(&["targets"]).success().says(expect![[r#"
        clusters/prod/apps.yaml:6: Flux Kustomization flux-system/apps
          apps/web at main: a kustomization, localized
        d/flux.yaml:1: Flux 2.6.x
        e/flux.yaml:1: Flux 2.7.x

        1 target: 1 here, 0 external, 0 templated
    "#]]);
    repo.run_as_is(&["status"]).success().says(expect![[r#"
        2 kustomizations, 0 remote references
        check: 1 error, 0 warnings
        1 target: 1 localized, 0 remote, 0 unknown
          localized  clusters/prod/apps.yaml:6: Flux Kustomization flux-system/apps
        engines: Flux 2.6.x, Flux 2.7.x
        branch localized/main: missing
        next: git kustomize-localize init
    "#]]);
    let status = repo.run_as_is(&["status", "--format", "json"]);
    let status: Value = serde_json::from_str(&status.success().stdout).unwrap();
    assert_eq!(status["engines"], json(&repo)["engines"]);
    assert_eq!(status["engines"][1]["version"], "2.7.x");
}

#[test]
fn files_of_rancher_fleet_are_counted_and_nothing_else() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    repo.commit_files(&[
        (".kustomize-localize", "exclude: [old]\n"),
        ("web/kustomization.yaml", "resources: []\n"),
        ("web/fleet.yaml", "kustomize: {dir: gone}\n"),
        ("db/fleet.yml", "kustomize: [\n"),
        ("old/fleet.yaml", ""),
    ]);
    repo.run(&["targets"]).success().says(expect![[r#"
        no targets: no object of Flux or Argo CD was found
        2 fleet.yaml: what Rancher Fleet deploys is unknown
    "#]]);
    assert_eq!(json(&repo)["fleet_files"], 2);
    let mut transcript = Transcript::default();
    for command in ["check", "status"] {
        transcript.add(&repo.run_as_is(&[command]));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize check
        checked 1 kustomization with 0 references in the working tree: no problems found
        $ git kustomize-localize status
        1 kustomization, 0 remote references
        branch localized/main: missing
        nothing to do
    "#]]);
    repo.write(".kustomize-localize", "targets: [{path: web, engine: fleet}]\n");
    repo.run(&["check"]).fails(2).says(expect![[r#"
        error: .kustomize-localize:1:31: targets[0].engine: unknown value `fleet`
          hint: known are `flux`, `argo-cd`, `kustomize`
    "#]]);
}

#[test]
fn what_only_a_localized_branch_has_is_looked_for_there() {
    let sandbox = Sandbox::new();
    let repo = fleet(&sandbox);
    let objects = OBJECTS.replace("apps/web", "web").replace("main", "localized/main");
    repo.write("clusters/prod/apps.yaml", objects);
    repo.write("apps/db/kustomization.yaml", "resources: []\n");
    repo.write(".kustomize-localize", OURS);
    repo.commit("Deploy a copy");
    let missing = "error[missing-target]: Flux Kustomization apps";
    repo.run(&["check"]).fails(1).says(expect![[r#"
        error[missing-target]: Flux Kustomization apps (clusters/prod/apps.yaml:6) deploys `./web`: there is no `web`
          --> clusters/prod/apps.yaml:10:9
           |
        10 |   path: ./web
           |         ^^^^^
           = help: correct the object, or remove it; if nothing deploys it, list its directory below `exclude:` in .kustomize-localize

        for more: git kustomize-localize explain missing-target
        checked 2 kustomizations with 1 reference in the working tree: 1 error
    "#]]);
    for new_dir in ["other", "web"] {
        repo.run(&["apps/web", new_dir, "--no-verify"]).success();
        assert_eq!(repo.run(&["check"]).stdout.contains(missing), new_dir == "other");
    }
    // Others fetch the branch, and have none of that name.
    let clone = sandbox.clone_of(&repo, "clone");
    clone.run(&["check"]).success();
    repo.git(&["branch", "-D", "localized/main"]);
    repo.run(&["check"]).fails(1).says(expect![[r#"
        error[missing-target]: Flux Kustomization apps (clusters/prod/apps.yaml:6) deploys `./web`: there is no `web`
          --> clusters/prod/apps.yaml:10:9
           |
        10 |   path: ./web
           |         ^^^^^
           = help: correct the object, or remove it; if nothing deploys it, list its directory below `exclude:` in .kustomize-localize

        for more: git kustomize-localize explain missing-target
        checked 2 kustomizations with 1 reference in the working tree: 1 error
    "#]]);
}

#[test]
fn what_is_deployed_from_a_localized_branch_is_what_that_holds() {
    let world = World::acme();
    let work = &world.work;
    work.git(&["remote", "add", "origin", "https://github.com/acme/fleet"]);
    work.write("clusters/apps.yaml", OBJECTS);
    let localized = OBJECTS.replace("main", "localized/main").replace("name: apps", "name: other");
    work.write("clusters/other.yaml", localized.replace("name: fleet", "name: localized"));
    work.write("apps/web/kustomization.yaml", "resources: ['https://github.com/acme/lib//other?ref=v1']\n");
    work.commit("Begin");
    work.lock();
    // It is not there yet.
    work.run(&["targets"]).success().says(expect![[r#"
        clusters/apps.yaml:6: Flux Kustomization flux-system/apps
          apps/web at main: a kustomization
            reaches https://github.com/acme/lib//other?ref=v1: tag, locked <0>
        clusters/other.yaml:6: Flux Kustomization flux-system/other
          apps/web at localized/main: a kustomization
            reaches https://github.com/acme/lib//other?ref=v1: tag, locked <0>

        2 targets: 2 here, 0 external, 0 templated
        deployed from a localized branch: 1 of 2 targets; flux-system/apps (clusters/apps.yaml:6) reads `main`
    "#]]);
    work.run(&["branch", "--no-verify"]).success().says(expect![[r#"
            localized the repository on branch localized/main (<0>): 5 files written, 1 reference rewritten, 0 removed
              added https://github.com/acme/lib?ref=v1 <1>
              not verified: --no-verify
              to look at it: git show --stat <0>
            deployed from localized/main: 1 of 2 targets; flux-system/apps (clusters/apps.yaml:6) reads `main`
        "#]]);
    let after = work.run(&["targets"]);
    after.success().says(expect![[r#"
        clusters/apps.yaml:6: Flux Kustomization flux-system/apps
          apps/web at main: a kustomization
            reaches https://github.com/acme/lib//other?ref=v1: tag, locked <0>
        clusters/other.yaml:6: Flux Kustomization flux-system/other
          apps/web at localized/main: a kustomization, localized

        2 targets: 2 here, 0 external, 0 templated
        deployed from a localized branch: 1 of 2 targets; flux-system/apps (clusters/apps.yaml:6) reads `main`
    "#]]);
    work.remove("clusters/other.yaml");
    work.run(&["targets"]).says(expect![[r#"
        clusters/apps.yaml:6: Flux Kustomization flux-system/apps
          apps/web at main: a kustomization
            reaches https://github.com/acme/lib//other?ref=v1: tag, locked <0>

        1 target: 1 here, 0 external, 0 templated
        deployed from a localized branch: 0 of 1 target; flux-system/apps (clusters/apps.yaml:6) reads `main`
    "#]]);
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
    work.write("apps/web/kustomization.yaml", "resources:\n- https://github.com/acme/lib//web?ref=v1\n- map.yaml\n");
    work.write("apps/web/map.yaml", config_map("web"));
    work.write("apps/team/db/kustomization.yaml", "resources: [map.yaml]\n");
    work.write("apps/team/db/map.yaml", config_map("db"));
    work.commit("Begin");
    work.lock();
    let mut transcript = Transcript::default();
    for command in ["branch", "vendor"] {
        let before = work.state();
        transcript.add(work.run(&[command, "--no-verify"]).fails(1));
        work.state().assert_same(&before);
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize branch --no-verify
        error[engine]: Argo CD ApplicationSet argocd/apps (sets/apps.yaml:1) makes an application of the localized `apps/web/localized-files`
         --> sets/apps.yaml:1:1
          |
        1 | apiVersion: argoproj.io/v1alpha1
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
          = help: exclude it in `git.directories`: {path: '*/*/localized-files', exclude: true}

        error: <0> has 1 error (engine 1): nothing was committed
          hint: for more: git kustomize-localize explain engine
        $ git kustomize-localize vendor --no-verify
        error[engine]: Argo CD ApplicationSet argocd/apps (sets/apps.yaml:1) makes an application of the localized `apps/web/localized-files`
         --> sets/apps.yaml:1:1
          |
        1 | apiVersion: argoproj.io/v1alpha1
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
          = help: exclude it in `git.directories`: {path: '*/*/localized-files', exclude: true}

        error: nothing was written: 1 error (engine 1)
          hint: for more: git kustomize-localize explain engine
    "#]]);
    // What the hint says helps.
    let excluded = "      - path: apps/*/*\n      - {path: apps/*/localized-files, exclude: true}\n";
    work.write("sets/apps.yaml", set.replace("      - path: apps/*/*\n", excluded));
    work.commit("Exclude");
    work.run(&["branch", "--no-verify"]).success();
}
