//! What deploys a rendered branch, as the page has it.

use std::fs;
use std::path::Path;

use super::{page, pages, section};
use crate::support::{Kustomize, Repo, World, config_map};

/// Two builds that are listed for an engine, one with an upstream, and a chart that is deployed from elsewhere; with
/// `.unknown` and `hydrator.metadata`, their rendered branch has all kinds of files. `None` without kustomize.
fn rendered(engine: &str) -> Option<(World, Kustomize, Repo)> {
    let world = World::acme();
    let kustomize = world.sandbox.builds()?;
    let targets = ["web", "db"].map(|name| format!("{{path: apps/{name}, engine: {engine}}}")).join(", ");
    let chart = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: redis}\nspec: {source: {repoURL: 'https://charts.example.com', chart: redis}}\n";
    world.commit(&[
        (".kustomize-localize", &format!("hydrator-metadata: true\ntargets: [{targets}]\n")),
        ("apps/web/kustomization.yaml", "namePrefix: a-\nresources: ['https://github.com/acme/lib//web?ref=v1']\n"),
        ("apps/db/kustomization.yaml", "resources: [map.yaml, more.yaml]\n"),
        ("apps/db/map.yaml", &config_map("db")),
        ("apps/db/more.yaml", &config_map("more")),
        ("redis.yaml", chart),
    ]);
    world.work.run(&["lock"]).success();
    world.work.commit("Lock");
    world.work.run(&["branch", "--rendered"]).success();
    let clone = world.sandbox.clone_with(&world.work, "deployed", &["-b", "rendered/main"]);
    Some((world, kustomize, clone))
}

/// The parts of objects on the page, the first of the application, the second of the source of Flux.
fn specs() -> Vec<String> {
    let page = page().replace("OWNER/REPOSITORY", "acme/fleet");
    let specs = pages::blocks(section(&page, "## A rendered branch"), "yaml");
    assert_eq!(specs.len(), 2);
    specs
}

/// The objects of an output, sorted.
fn objects(output: &str) -> Vec<String> {
    let mut objects: Vec<String> = output.split("---\n").map(|object| object.trim().to_owned()).collect();
    objects.retain(|object| !object.is_empty());
    objects.sort();
    objects
}

/// The objects of what is built for a path on `main`, sorted.
fn built(world: &World, paths: &[&str]) -> Vec<String> {
    objects(
        &paths
            .iter()
            .map(|path| world.work.run(&["build", path]).success().stdout.clone() + "---\n")
            .collect::<String>(),
    )
}

/// Renders a change of one object, and brings it into the clone.
fn render_change(world: &World, clone: &Repo) {
    world.work.write("apps/db/map.yaml", config_map("db").replace("metadata:", "data: {new: value}\nmetadata:"));
    world.work.commit("Change");
    world.work.run(&["branch", "--rendered"]).success();
    clone.commit("Objects");
    clone.git(&["fetch", "--quiet", "origin", "rendered/main"]);
    clone.git(&["checkout", "--quiet", "FETCH_HEAD", "--", "."]);
    clone.commit("Rendered");
}

#[test]
fn argo_cd_deploys_a_plain_directory() {
    let Some((world, _, clone)) = rendered("argo-cd") else { return };
    let application = |name: &str, spec: &str| {
        format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: {name}, namespace: argocd}}\n{spec}---\n"
        )
    };
    let file = &specs()[0];
    let all = file.replace("path: argocd/apps", "path: argocd").replace("{include: web.yaml}", "{recurse: true}");
    clone.write("objects/argo.yaml", application("web", file) + &application("all", &all));
    clone.run(&["targets"]).success().says(expect![[r#"
        objects/argo.yaml:1: Argo CD Application argocd/web
          argocd/apps at rendered/main: a directory without a kustomization, localized
        objects/argo.yaml:11: Argo CD Application argocd/all
          argocd at rendered/main: a directory without a kustomization, localized

        2 targets: 2 here, 0 external, 0 templated
    "#]]);
    let deployed = |name: &str| objects(&clone.run(&["build", name]).success().stdout);
    assert_eq!(deployed("web"), built(&world, &["./apps/web"]));
    assert_eq!(deployed("all"), built(&world, &["./apps/web", "./apps/db"]));
    render_change(&world, &clone);
    clone.run(&["diff", "HEAD^"]).success().says(expect![[r#"
        Argo CD Application all (objects/argo.yaml:11): argocd/apps/db.yaml
        --- v1 ConfigMap db
        +++ v1 ConfigMap db
        @@ -1,4 +1,6 @@
         apiVersion: v1
        +data:
        +  new: value
         kind: ConfigMap
         metadata:
           name: db
        1 object (1 changed) in 1 of 1 affected build since <0>
    "#]]);
    // On `main` it is one that is built from another branch.
    world.work.write("argo.yaml", application("web", file));
    world.work.run(&["targets"]).success().says(expect![[r#"
        .kustomize-localize:2: Argo CD target apps/db
          apps/db: a kustomization, localized
        .kustomize-localize:2: Argo CD target apps/web
          apps/web: a kustomization
            reaches https://github.com/acme/lib//web?ref=v1: tag, locked <0>
        argo.yaml:1: Argo CD Application argocd/web
          external: it is in https://github.com/acme/fleet
        redis.yaml:1: Argo CD Application redis
          external: it is the chart `redis` of https://charts.example.com

        4 targets: 2 here, 2 external, 0 templated
        deployed from a localized branch: 0 of 2 targets; apps/db (.kustomize-localize:2) reads the default branch
    "#]]);
}

/// Builds a directory as Flux does without a kustomization in it.
fn autodetected(kustomize: &Kustomize, world: &World, directory: &Path) -> Vec<String> {
    kustomize.run(&world.sandbox, directory, &["create", "--autodetect", "--recursive"]).success();
    let output = kustomize.build(&world.sandbox, directory, ".");
    fs::remove_file(directory.join("kustomization.yaml")).unwrap();
    objects(&output.success().stdout)
}

#[test]
fn flux_deploys_a_kustomization_that_it_generates() {
    let Some((world, kustomize, clone)) = rendered("flux") else { return };
    // The real kustomize, on all of the branch, and on the files that the source keeps.
    let all = built(&world, &["./apps/web", "./apps/db"]);
    assert_eq!(autodetected(&kustomize, &world, clone.path()), all);
    fs::remove_file(clone.path().join("flux/apps/db.yaml")).unwrap();
    let web = built(&world, &["./apps/web"]);
    assert_eq!(autodetected(&kustomize, &world, &clone.path().join("flux/apps")), web);
    clone.git(&["checkout", "--quiet", "."]);

    let source = |name: &str, spec: &str| {
        format!(
            "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {{name: {name}, namespace: flux-system}}\n{spec}  url: https://github.com/acme/fleet\n---\n"
        )
    };
    let kustomization = |name: &str| {
        format!(
            "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{name: {name}, namespace: flux-system}}\nspec: {{path: ./flux/apps, prune: true, sourceRef: {{kind: GitRepository, name: {name}}}}}\n---\n"
        )
    };
    let spec = &specs()[1];
    let whole = spec.split_once("  ignore:").unwrap().0;
    let objects_of_flux = [source("web", spec), kustomization("web"), source("all", whole), kustomization("all")];
    clone.write("objects/flux.yaml", objects_of_flux.concat());
    clone.run(&["targets"]).success().says(expect![[r#"
        objects/flux.yaml:11: Flux Kustomization flux-system/web
          flux/apps at rendered/main: a directory without a kustomization, localized
        objects/flux.yaml:23: Flux Kustomization flux-system/all
          flux/apps at rendered/main: a directory without a kustomization, localized

        2 targets: 2 here, 0 external, 0 templated
    "#]]);
    let deployed = |name: &str| objects(&clone.run(&["build", name]).success().stdout);
    assert_eq!(deployed("web"), web);
    assert_eq!(deployed("all"), all);
    render_change(&world, &clone);
    clone.run(&["diff", "HEAD^"]).success().says(expect![[r#"
        Flux Kustomization all (objects/flux.yaml:23): flux/apps/db.yaml
        --- v1 ConfigMap db
        +++ v1 ConfigMap db
        @@ -1,4 +1,6 @@
         apiVersion: v1
        +data:
        +  new: value
         kind: ConfigMap
         metadata:
           name: db
        1 object (1 changed) in 1 of 1 affected build since <0>
    "#]]);
}
