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
    let text = "clusters/prod/apps.yaml:6: Flux Kustomization flux-system/apps\n  apps/web at main: a kustomization, hermetic\n\n1 target: 1 here, 0 external, 0 templated\n";
    for from in [&[][..], &["--rev", "HEAD"]] {
        assert_eq!(repo.run(&[&["targets"], from].concat()).success().stdout, text, "{from:?}");
    }
    assert_eq!(json(&repo)["targets"][0]["here"]["path"], "apps/web");
    // The tree tells which one it is, whatever the clone is of. What is declared goes first.
    let other = "https://github.com/acme/other";
    repo.git(&["remote", "set-url", "origin", other]);
    assert_eq!(repo.run(&["targets"]).success().stdout, text);
    repo.write(".kustomize-localize", format!("repository: [{{url: '{other}'}}]\n"));
    repo.run(&["targets"]).success().stdout_has("external: it is in https://github.com/acme/fleet");
}

/// Returns a workload as those who install an engine have it.
fn workload(name: &str, labels: &str, image: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {name}\n  labels: {{{labels}}}\nspec: {{template: {{spec: {{containers: [{{name: side, image: 'other:v9'}}, {{name: main, image: {image}}}]}}}}}}\n"
    )
}

#[test]
fn the_engines_that_the_tree_installs_are_named() {
    let sandbox = Sandbox::new();
    let repo = fleet(&sandbox);
    let none = repo.run(&["targets"]).success().stdout.clone();
    assert!(!repo.run_as_is(&["status"]).success().stdout.contains("engines:"));
    let flux =
        |labels, tag| workload("kustomize-controller", labels, &format!("'ghcr.io/fluxcd/kustomize-controller{tag}'"));
    let argo = |name, tag| {
        workload(name, "app.kubernetes.io/component: repo-server", &format!("'example.com:5000/argoproj/argocd{tag}'"))
    };
    let other =
        workload("source-controller", "app.kubernetes.io/version: v9.9.9", "'ghcr.io/fluxcd/source-controller:v9'");
    let instance = "apiVersion: fluxcd.controlplane.io/v1\nkind: FluxInstance\nmetadata: {name: flux}\nspec: {distribution: {version: 2.6.x}}\n";
    let label = "app.kubernetes.io/part-of: flux, app.kubernetes.io/version: v2.6.4";
    repo.write(
        "a/gotk-components.yaml",
        format!("---\n# Flux Version: v0.0.1\n{other}---\n{}", flux(label, ":v1.6.1")),
    );
    repo.write("b/gotk-components.yaml", flux(label, ":v1.6.1"));
    repo.write("c/gotk-components.yaml", flux("", ":v1.6.1@sha256:0000"));
    repo.write("d/flux.yaml", instance);
    repo.write("e/install.yaml", argo("argocd-repo-server", ":v3.1.0"));
    repo.write("f/install.yaml", argo("cd-argocd-repo-server", ":v3.1.0"));
    // What says no version, or is none.
    repo.write("n/digest-install.yaml", argo("argocd-repo-server", "@sha256:0000"));
    repo.write("n/server-install.yaml", argo("argocd-server", ":v1"));
    repo.write("n/named-install.yaml", workload("argocd-repo-server", "", "'example.com/not-argocd:v1'"));
    repo.write("n/template-install.yaml", argo("argocd-repo-server", ":{{ .Values.tag }}"));
    repo.write("n/substituted-install.yaml", flux("app.kubernetes.io/version: '${VERSION}'", ":v1"));
    repo.write("n/broken-install.yaml", format!("{}}}", flux(label, ":v1")));
    repo.write("n/odd-install.yaml", "kind: Deployment\nmetadata: [kustomize-controller]\nspec: {template: x}\n");
    repo.write("n/other-install.yaml", flux(label, ":v1").replace("Deployment", "Widget"));
    repo.write("excluded/install.yaml", flux(label, ":v1"));
    repo.write(".kustomize-localize", format!("{OURS}exclude: [excluded]\n"));
    let expected = [
        ("a/gotk-components.yaml", 10, "flux", "Flux", "v2.6.4"),
        ("b/gotk-components.yaml", 1, "flux", "Flux", "v2.6.4"),
        ("c/gotk-components.yaml", 1, "flux", "Flux", "kustomize-controller v1.6.1"),
        ("d/flux.yaml", 1, "flux", "Flux", "2.6.x"),
        ("e/install.yaml", 1, "argo-cd", "Argo CD", "v3.1.0"),
        ("f/install.yaml", 1, "argo-cd", "Argo CD", "v3.1.0"),
    ];
    let lines = expected.map(|(file, line, _, name, version)| format!("{file}:{line}: {name} {version}\n")).concat();
    let (before, after) = none.split_at(none.find("\n1 target").unwrap());
    assert_eq!(repo.run(&["targets"]).success().stdout, format!("{before}{lines}{after}"));
    let found = expected.map(|(file, line, engine, _, version)| serde_json::json!({"engine": engine, "version": version, "file": file, "line": line}));
    assert_eq!(json(&repo)["engines"], Value::from(found.to_vec()));
    repo.commit("engines");
    let listed = "engines: Argo CD v3.1.0, Flux 2.6.x, Flux kustomize-controller v1.6.1, Flux v2.6.4\n";
    repo.run_as_is(&["status"]).success().stdout_has(listed);
    let status = repo.run_as_is(&["status", "--format", "json"]);
    let status: Value = serde_json::from_str(&status.success().stdout).unwrap();
    assert_eq!(status["engines"], json(&repo)["engines"]);
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
    repo.run(&["check"]).fails(1).stdout_has(missing);
    for new_dir in ["other", "web"] {
        repo.run(&["apps/web", new_dir, "--no-verify"]).success();
        assert_eq!(repo.run(&["check"]).stdout.contains(missing), new_dir == "other");
    }
    // Others fetch the branch, and have none of that name.
    let clone = sandbox.clone_of(&repo, "clone");
    clone.run(&["check"]).success();
    repo.git(&["branch", "-D", "localized/main"]);
    repo.run(&["check"]).fails(1).stdout_has(missing);
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
    let reads = "flux-system/apps (clusters/apps.yaml:6) reads `main`\n";
    let reaches = "  apps/web at main: a kustomization\n    reaches https://github.com/acme/lib//other?ref=v1: ";
    // It is not there yet.
    work.run(&["targets"]).success().stdout_has(reaches).stdout_has(&reaches.replace("main", "localized/main"));
    work.run(&["branch", "--no-verify"])
        .success()
        .stdout_has(&format!("deployed from localized/main: 1 of 2 targets; {reads}"));
    let after = work.run(&["targets"]);
    after.success().says(expect![[r#"
        clusters/apps.yaml:6: Flux Kustomization flux-system/apps
          apps/web at main: a kustomization
            reaches https://github.com/acme/lib//other?ref=v1: tag, locked <0>
        clusters/other.yaml:6: Flux Kustomization flux-system/other
          apps/web at localized/main: a kustomization, hermetic

        2 targets: 2 here, 0 external, 0 templated
        deployed from a localized branch: 1 of 2 targets; flux-system/apps (clusters/apps.yaml:6) reads `main`
    "#]]);
    work.remove("clusters/other.yaml");
    work.run(&["targets"]).stdout_has(&format!("deployed from a localized branch: 0 of 1 target; {reads}"));
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
    for command in ["branch", "vendor"] {
        let before = work.state();
        work.run(&[command, "--no-verify"])
            .fails(1)
            .stderr_has(" --> sets/apps.yaml:1:1\n")
            .stderr_has("ApplicationSet argocd/apps")
            .stderr_has("hint: ");
        work.state().assert_same(&before);
    }
    // What the hint says helps.
    let excluded = "      - path: apps/*/*\n      - {path: apps/*/localized-files, exclude: true}\n";
    work.write("sets/apps.yaml", set.replace("      - path: apps/*/*\n", excluded));
    work.commit("Exclude");
    work.run(&["branch", "--no-verify"]).success();
}

#[test]
fn a_target_has_the_namespace_that_what_deploys_it_gives() {
    let sandbox = Sandbox::new();
    let repo = fleet(&sandbox);
    let without = |text: &str| text.replace(", namespace: flux-system", "");
    let named = |name: &str| without(OBJECTS).replace("name: apps", &format!("name: {name}"));
    let object = |name: &str| named(name).split("---\n").nth(1).unwrap().to_owned();
    repo.write(
        "clusters/prod/apps.yaml",
        OBJECTS.replace("apps/web", "more").replace("spec:\n", "spec:\n  targetNamespace: given\n"),
    );
    repo.write("more/kustomization.yaml", "namespace: hidden\nresources: [one.yaml]\n");
    repo.write("more/one.yaml", object("one"));
    // Nobody deploys these: one kustomization gives a namespace, or several do.
    repo.write("two/kustomization.yaml", "Namespace: own\nresources: [two.yaml]\n");
    repo.write("two/two.yaml", object("two"));
    repo.write("base/kustomization.yaml", "resources: [three.yaml]\n");
    repo.write("base/three.yaml", object("three"));
    repo.write("a/kustomization.yaml", "namespace: a\nresources: [../base]\n");
    repo.write("b/kustomization.yaml", "namespace: b\nresources: [../base]\n");
    repo.write(
        "set.yaml",
        "apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: all, namespace: argocd}
spec:
  generators: [{list: {elements: [{name: web}]}}]
  template:
    metadata: {name: 'app-{{name}}'}
    spec: {source: {repoURL: 'https://github.com/acme/fleet', path: 'apps/{{name}}'}}
",
    );
    repo.write(".kustomize-localize", OURS);
    let shown = repo.run(&["targets"]).success().stdout.clone();
    for line in [
        "more/one.yaml:1: Flux Kustomization given/one\n",
        "two/two.yaml:1: Flux Kustomization own/two\n",
        "base/three.yaml:1: Flux Kustomization three\n",
        "set.yaml:1: Argo CD Application argocd/app-web\n  apps/web: a kustomization, of ApplicationSet argocd/all, hermetic\n",
    ] {
        assert!(shown.contains(line), "{line}\n{shown}");
    }
    if sandbox.builds().is_some() {
        for name in ["given/one", "own/two", "argocd/app-web"] {
            repo.run(&["build", name]).success().stdout_has("name: web");
        }
        repo.run(&["build", "a/three"]).fails(2);
    }
}
