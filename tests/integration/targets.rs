//! `targets`, and what depends on it, as people run it.

use std::collections::BTreeSet;

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

/// Returns an object of Flux in the namespace of bootstrapping.
fn of_flux(version: &str, kind: &str, name: &str, spec: &str) -> String {
    format!(
        "---\napiVersion: {version}\nkind: {kind}\nmetadata: {{name: '{name}', namespace: flux-system}}\nspec: {{{spec}}}\n"
    )
}

fn kustomization(name: &str, spec: &str) -> String {
    of_flux(
        "kustomize.toolkit.fluxcd.io/v1",
        "Kustomization",
        name,
        spec,
    )
}

/// Writes clusters as the example of Flux has them: an ArtifactGenerator copies out of `flux-system`, which is declared
/// nowhere before it is bootstrapped.
fn clusters_of_generators(repo: &Repo) {
    for cluster in ["production", "staging"] {
        let generator = format!(
            "sources: [{{alias: monorepo, kind: GitRepository, name: flux-system}}], artifacts: [{{name: apps, originRevision: '@monorepo', copy: [{{from: '@monorepo/apps/base/**', to: '@artifact/base/'}}, {{from: '@monorepo/apps/{cluster}/**', to: '@artifact/{cluster}/'}}]}}, {{name: infra, copy: [{{from: '@monorepo/infra/**', to: '@artifact/'}}]}}]"
        );
        let artifact = |name: &str, path: &str, more: &str| {
            let spec =
                format!("sourceRef: {{kind: ExternalArtifact, name: {name}}}, path: {path}{more}");
            kustomization(name, &spec)
        };
        let files = [
            (
                "flux-system/gotk-sync.yaml",
                "# flux bootstrap writes this file.\n".to_owned(),
            ),
            (
                "artifacts.yaml",
                of_flux(
                    "source.extensions.fluxcd.io/v1beta1",
                    "ArtifactGenerator",
                    "flux-system",
                    &generator,
                ),
            ),
            ("apps.yaml", artifact("apps", &format!("./{cluster}"), "")),
            (
                "infra.yaml",
                artifact(
                    "infra",
                    "./configs",
                    ", postBuild: {substitute: {team: acme}}",
                ),
            ),
        ];
        for (name, text) in files {
            repo.write(&format!("clusters/{cluster}/{name}"), text);
        }
        repo.write(
            &format!("apps/{cluster}/kustomization.yaml"),
            "resources: [../base/web]\n",
        );
    }
    repo.write(
        "apps/base/web/kustomization.yaml",
        "resources: [map.yaml]\n",
    );
    repo.write("apps/base/web/map.yaml", config("web"));
    let team = kustomization(
        "${team}",
        "path: './teams/${team}', sourceRef: {kind: GitRepository, name: flux-system}",
    );
    repo.write("infra/configs/team.yaml", team);
    repo.write("teams/acme/map.yaml", config("acme"));
}

/// Returns the names and directories of what is deployed, each once; that of another repository has none.
fn deployed(repo: &Repo) -> BTreeSet<(String, String)> {
    let output = repo.run(&["targets", "--format", "json"]);
    let json: Value = serde_json::from_str(&output.success().stdout).unwrap();
    let text = |one: &Value, key: &str| one[key].as_str().unwrap_or_default().to_owned();
    let targets = json["targets"].as_array().unwrap().iter();
    targets
        .map(|one| (text(one, "name"), text(one, "path")))
        .collect()
}

#[test]
fn what_bootstrapping_is_going_to_declare_is_this_repository() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    clusters_of_generators(&repo);
    repo.commit("Begin");
    let expected = [
        ("acme", "teams/acme"),
        ("apps", "apps/production"),
        ("apps", "apps/staging"),
        ("infra", "infra/configs"),
    ];
    let expected = expected.map(|(name, path)| (name.to_owned(), path.to_owned()));
    assert_eq!(deployed(&repo), expected.into());
    repo.write("apps/base/web/map.yaml", config("changed"));
    repo.write(
        "apps/staging/kustomization.yaml",
        "resources: [gone.yaml, ../base/web]\n",
    );
    repo.commit("Change");
    let affected = repo.run(&["affected", "--since", "HEAD^"]);
    let affected = affected.success().stdout.clone();
    for cluster in ["production", "staging"] {
        let name = format!("Flux Kustomization apps (clusters/{cluster}/apps.yaml:");
        assert!(affected.contains(&name), "{affected}");
    }
    let told = repo
        .run(&["check", "--targets-only"])
        .fails(1)
        .stdout
        .clone();
    assert!(
        told.contains("apps/staging/kustomization.yaml:1:"),
        "{told}"
    );
    // What is deployed from the top is here, too; where no path is, the source is another repository.
    for (path, is_here) in [("./", true), ("./nowhere", false)] {
        let repo = sandbox.repo(&format!("deploys-{is_here}"));
        let spec = format!("path: {path}, sourceRef: {{kind: GitRepository, name: flux-system}}");
        repo.write("cluster.yaml", kustomization("cluster", &spec));
        repo.commit("Begin");
        let output = repo.run(&["targets", "--format", "json"]);
        let json: Value = serde_json::from_str(&output.success().stdout).unwrap();
        assert_eq!(json["counts"]["here"], u64::from(is_here), "{json}");
    }
}
