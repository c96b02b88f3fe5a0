//! The layouts that Flux and Argo CD document, from `main` to a branch that deploys without a network.

use serde_json::Value;

use crate::support::{Repo, World, config_map};

const HERE: &str = "https://github.com/acme/fleet";
const WEB: &str = "resources: [map.yaml, 'https://github.com/acme/lib//web?ref=v1']\n";
const OTHER: &str = "resources: ['https://github.com/acme/lib//other?ref=v1']\n";

/// Returns the source of Flux, as `flux bootstrap` writes it, and what it deploys first.
fn bootstrap(path: &str) -> String {
    format!(
        "apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {{name: flux-system, namespace: flux-system}}
spec:
  interval: 1m0s
  ref: {{branch: localized/main}}
  url: ssh://git@github.com/acme/fleet
---
{}",
        flux("flux-system", path, "")
    )
}

fn flux(name: &str, path: &str, more: &str) -> String {
    format!(
        "apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: {name}
  namespace: flux-system
spec:
  interval: 10m0s
  path: {path}
  prune: true
  sourceRef: {{kind: GitRepository, name: flux-system}}
{more}"
    )
}

fn application(name: &str, path: &str, more: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {{name: {name}, namespace: argocd}}
spec:
  project: default
  destination: {{server: 'https://kubernetes.default.svc', namespace: {name}}}
  source:
    repoURL: {HERE}
    targetRevision: localized/main
    path: {path}
{more}"
    )
}

/// Returns the targets at a revision, as JSON.
fn targets(work: &Repo, revision: &str) -> Vec<Value> {
    let output = work.run(&["targets", "--rev", revision, "--format", "json"]);
    let shown = output.success().stdout.clone();
    let mut shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["unread"], serde_json::json!([]));
    shown["targets"].as_array_mut().unwrap().split_off(0)
}

fn is_hermetic(target: &Value) -> bool {
    target["reaches"] == serde_json::json!([])
}

/// Localizes the repository where it stands, and holds the branch against `main`: what engines deploy is hermetic there
/// and not here, and builds to the same. `named` are the targets.
fn deploys_from_the_branch(world: &World, named: &[&str]) {
    let work = &world.work;
    work.commit("Deploy");
    work.git(&["remote", "add", "origin", HERE]);
    let of_main = targets(work, "main");
    let names: Vec<&str> = of_main.iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, named);
    assert!(of_main.iter().any(|one| !is_hermetic(one)));
    let check = |revision: &str| work.run(&["check", "--rev", revision]);
    check("main").fails(1);

    let output = work.run(&["branch", "--format", "json"]);
    let report: Value = serde_json::from_str(&output.success().stdout).unwrap();
    for one in report["verified"]["targets"].as_array().unwrap() {
        assert!(one["verdict"] == "identical" || one["verdict"] == "unchanged", "{one}");
    }

    let of_branch = targets(work, "localized/main");
    assert_eq!(of_main.len(), of_branch.len());
    let mut mended = 0;
    for (one, other) in of_main.iter().zip(&of_branch) {
        for key in ["/name", "/here/path", "/here/content", "/built_by"] {
            assert_eq!(one.pointer(key), other.pointer(key), "{one}\n{other}");
        }
        let is = |found: &str| other["here"]["content"].get(found).is_some();
        assert!(is_hermetic(other) || !(is("kustomization") || is("directory")), "{other}");
        let is_built = is("kustomization") || (is("directory") && other["engine"] == "flux");
        if is_built && !is_hermetic(one) {
            mended += 1;
        }
    }
    assert!(mended > 0);
    check("localized/main").success();
    work.run(&["verify", "localized/main"]).success();
}

/// Returns the world of these tests; none without a kustomize.
fn world() -> Option<World> {
    let world = World::acme();
    world.sandbox.builds()?;
    Some(world)
}

/// Writes what `flux bootstrap` does for a cluster.
fn cluster(work: &Repo, name: &str) {
    let directory = format!("clusters/{name}/flux-system");
    let sync = bootstrap(&format!("./clusters/{name}"));
    work.write(&format!("{directory}/gotk-sync.yaml"), sync);
    let root = "resources: [gotk-sync.yaml]\n";
    work.write(&format!("{directory}/kustomization.yaml"), root);
}

/// Writes a root that names something remote, and the file beside it.
fn web(work: &Repo, directory: &str) {
    work.write(&format!("{directory}/kustomization.yaml"), WEB);
    let name = directory.rsplit('/').next().unwrap();
    work.write(&format!("{directory}/map.yaml"), config_map(name));
}

#[test]
fn flux_with_base_and_overlays() {
    let Some(world) = world() else { return };
    let work = &world.work;
    for name in ["production", "staging"] {
        cluster(work, name);
        let values = format!("  postBuild: {{substitute: {{cluster: {name}}}}}\n");
        let apps = flux(&format!("{name}-apps"), &format!("./apps/{name}"), &values);
        work.write(&format!("clusters/{name}/apps.yaml"), apps);
        let root = format!("resources: [../base/web]\nnameSuffix: -{name}\n");
        work.write(&format!("apps/{name}/kustomization.yaml"), root);
    }
    web(work, "apps/base/web");
    work.write("infrastructure/kustomization.yaml", OTHER);
    let namespace = "  targetNamespace: infra\n";
    let infrastructure = flux("infrastructure", "./infrastructure", namespace);
    work.write("clusters/production/infrastructure.yaml", infrastructure);
    deploys_from_the_branch(
        &world,
        &["production-apps", "flux-system", "infrastructure", "staging-apps", "flux-system"],
    );
}

#[test]
fn flux_with_a_generated_directory() {
    let Some(world) = world() else { return };
    let work = &world.work;
    cluster(work, "prod");
    work.write("clusters/prod/all.yaml", flux("all", "./manifests", ""));
    work.write("manifests/map.yaml", config_map("plain"));
    work.write("manifests/deep/er/map.yaml", config_map("deeper"));
    web(work, "manifests/web");
    deploys_from_the_branch(&world, &["all", "flux-system"]);
}

#[test]
fn argo_cd_with_an_app_of_apps() {
    let Some(world) = world() else { return };
    let work = &world.work;
    work.write("root.yaml", application("root", "argo/apps", ""));
    let more = "    kustomize: {namePrefix: prod-, images: ['nginx:1.27']}\n";
    work.write("argo/apps/web.yaml", application("web", "apps/web/overlays/prod", more));
    work.write("argo/apps/db.yaml", application("db", "apps/db", ""));
    web(work, "apps/web/base");
    let overlay = "resources: [../../base]\ncommonAnnotations: {stage: prod}\n";
    work.write("apps/web/overlays/prod/kustomization.yaml", overlay);
    work.write("apps/db/kustomization.yaml", OTHER);
    deploys_from_the_branch(&world, &["db", "web", "root"]);
}

#[test]
fn argo_cd_with_an_overlay_for_an_app_of_apps() {
    let Some(world) = world() else { return };
    let work = &world.work;
    work.write("argo/base/web.yaml", application("web", "apps/web", ""));
    work.write("argo/base/kustomization.yaml", "resources: [web.yaml]\n");
    for name in ["one", "two"] {
        work.write(
            &format!("argo/{name}/kustomization.yaml"),
            format!(
                "resources: [../base]
nameSuffix: -{name}
patches:
- target: {{kind: Application}}
  patch: |-
    - {{op: replace, path: /spec/source/path, value: apps/{name}}}
"
            ),
        );
        web(work, &format!("apps/{name}"));
    }
    deploys_from_the_branch(&world, &["web-one", "web-two"]);
}

#[test]
fn argo_cd_with_a_set_of_directories() {
    let Some(world) = world() else { return };
    let work = &world.work;
    work.write(
        "sets/apps.yaml",
        format!(
            "apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {{name: apps, namespace: argocd}}
spec:
  goTemplate: true
  generators:
  - git:
      repoURL: {HERE}
      revision: localized/main
      directories:
      - path: apps/*
  template:
    metadata: {{name: '{{{{.path.basename}}}}'}}
    spec:
      project: default
      source:
        repoURL: {HERE}
        targetRevision: localized/main
        path: '{{{{.path.path}}}}'
        kustomize: {{nameSuffix: '-{{{{.path.basename}}}}'}}
"
        ),
    );
    for name in ["db", "web"] {
        web(work, &format!("apps/{name}"));
    }
    deploys_from_the_branch(&world, &["db", "web"]);
}

#[test]
fn what_an_engine_would_do_to_what_is_added_is_an_error() {
    let world = World::new();
    let work = &world.work;
    let set = |directories: &str| {
        let source = format!("repoURL: {HERE}, targetRevision: localized/main, path: '{{{{.path.path}}}}'");
        work.write(
            "sets/apps.yaml",
            format!(
                "apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {{name: apps, namespace: argocd}}
spec:
  goTemplate: true
  generators:
  - git: {{repoURL: {HERE}, revision: localized/main, directories: [{directories}]}}
  template:
    metadata: {{name: '{{{{.path.basename}}}}'}}
    spec: {{project: default, source: {{{source}}}}}
"
            ),
        );
        work.commit("set");
        work.run(&["branch", "--no-verify"])
    };
    work.decide(&format!("repository: [{{url: '{HERE}'}}]\n"));
    world.file("https://files.example.com/map.yaml", config_map("map"));
    work.write("apps/web/kustomization.yaml", "resources: ['https://files.example.com/map.yaml']\n");
    work.run(&["lock"]).success();
    set("{path: 'apps/*/*'}").fails(1).says(expect![[r#"
        error[engine]: Argo CD ApplicationSet argocd/apps (sets/apps.yaml:1) makes an application of the localized `apps/web/localized-files`
         --> sets/apps.yaml:1:1
          |
        1 | apiVersion: argoproj.io/v1alpha1
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
          = help: exclude it in `git.directories`: {path: '*/*/localized-files', exclude: true}

        error: <0> has 1 error (engine 1): nothing was committed
          hint: for more: git kustomize-localize explain engine
    "#]]);
    set("{path: 'apps/*/*'}, {path: '*/*/localized-files', exclude: true}").success();
}
