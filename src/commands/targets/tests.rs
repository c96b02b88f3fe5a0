//! The reports, of targets in a tree in memory.

use super::*;
use crate::commands::json::{self, json_report};
use crate::commands::tests::assert_valid;
use crate::config::Config;
use crate::targets::{self, Identity, UnresolvedTargets};
use crate::tree::overlay::OverlayTree;

const SCHEMA: &str = include_str!("schema.json");

fn survey(found: UnresolvedTargets) -> TargetSurvey {
    let found = found.as_written().clone();
    TargetSurvey { reaches: vec![None; found.targets.len()], targets: found, ..TargetSurvey::default() }
}

fn found() -> TargetSurvey {
    let config = "targets: [{path: edge, engine: kustomize}]\n";
    let config = Config::parse(config.as_bytes(), ".kustomize-localize").unwrap();
    let app = |path: &str, repository: &str| {
        // Argo CD takes its options for a kustomization only.
        let kustomize = if path == "apps/web" { "{namePrefix: a-, components: [../c]}" } else { "{}" };
        format!(
            "apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {{name: web, namespace: argocd}}
spec:
  source:
    repoURL: https://user:secret@github.com/acme/{repository}
    path: {path}
    targetRevision: HEAD
    kustomize: {kustomize}
"
        )
    };
    let mut tree = OverlayTree::default();
    tree.add_file("apps/web/kustomization.yaml", b"");
    tree.add_file("apps/plain/x.yaml", b"");
    tree.add_file("apps/made/main.jsonnet", b"{}");
    for (file, text) in [
        ("1.yaml", app("apps/web", "fleet")),
        ("2.yaml", app("apps/plain", "fleet")),
        ("3.yaml", app("apps/none", "fleet")),
        ("4.yaml", app("x", "other")),
        ("5.yaml", app("'{{x}}'", "fleet")),
        ("6.yaml", app("[x]", "fleet")),
        ("7.yaml", app("\"a\\e[31m\"", "fleet")),
        ("8.yaml", app("apps/made", "fleet")),
    ] {
        tree.add_file(file, text.as_bytes());
    }
    tree.add_file("cm.yaml", b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: argocd-cm}\ndata: {kustomize.buildOptions: --enable-helm}\n");
    let remotes = ["https://github.com/acme/fleet".to_owned()];
    let identity = || Ok(Identity::new(remotes.clone(), &config, ["main".to_owned()]));
    survey(targets::find(&tree, &config, &identity).unwrap())
}

#[test]
fn where_paths_of_another_repository_are_here_it_says_how_this_one_is_known() {
    let note = "\nnote: nothing is deployed from here: if the cluster knows this repository by another URL, add that to `repository` in .kustomize-localize; or list the deployed paths under `targets` there\n";
    assert!(!found().text(Shown::default()).contains(note));
    let config = "repository: [{url: 'https://github.com/acme/fleet'}]\n";
    let config = Config::parse(config.as_bytes(), ".kustomize-localize").unwrap();
    let source = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\nmetadata: {name: x}\nspec: {url: 'oci://ghcr.io/acme/fleet'}\n---\napiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: x}\nspec: {path: ./web, sourceRef: {kind: OCIRepository, name: x}}\n";
    let application = |source: &str| {
        format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: x}}\nspec: {{source: {{repoURL: 'https://example.com/x', {source}}}}}\n"
        )
    };
    for (object, is_said) in [
        (application("path: web"), true),
        (source.to_owned(), true),
        (application("path: other"), false),
        (application("path: ."), false),
        (application("chart: web"), false),
        (application("path: web").replace("example.com/x", "github.com/acme/fleet"), false),
        (String::new(), false),
    ] {
        let mut tree = OverlayTree::default();
        tree.add_file("x.yaml", object.as_bytes());
        tree.add_file("web/kustomization.yaml", b"");
        let identity = || Ok(Identity::new([], &config, ["main".to_owned()]));
        let found = survey(targets::find(&tree, &config, &identity).unwrap());
        assert_eq!(found.text(Shown::default()).contains(note), is_said, "{object}");
    }
}

#[test]
fn a_target_of_another_revision_is_shown_as_not_read() {
    let mut found = found();
    for target in &mut found.targets.targets {
        if let TargetLocation::Local(here) = &mut target.location {
            here.revision.is_this = false;
        }
    }
    let text = found.text(Shown::default());
    assert!(text.contains("  apps/web at HEAD: another revision, not read\n"));
    assert!(text.contains("  apps/none at HEAD: another revision, not read\n"));
}

#[test]
fn each_target_is_named_and_counted() {
    assert_eq!(
        found().text(Shown::default()),
        r".kustomize-localize:1: kustomize target edge
  edge: missing: there is no `edge`
1.yaml:1: Argo CD Application argocd/web
  apps/web at HEAD: a kustomization
2.yaml:1: Argo CD Application argocd/web
  apps/plain at HEAD: a directory without a kustomization
3.yaml:1: Argo CD Application argocd/web
  apps/none at HEAD: missing: there is no `apps/none`
4.yaml:1: Argo CD Application argocd/web
  external: it is in https://github.com/acme/other
5.yaml:1: Argo CD Application argocd/web
  templated: `{{x}}` is substituted elsewhere
7.yaml:1: Argo CD Application argocd/web
  a\u{1b}[31m at HEAD: missing: there is no `a\u{1b}[31m`
8.yaml:1: Argo CD Application argocd/web
  apps/made at HEAD: a directory without a kustomization
  unknown: Argo CD generates its objects from Jsonnet: `main.jsonnet`
6.yaml:7
  unknown: Application argocd/web: `path`: expected a string, found a list

8 targets: 6 here, 1 external, 1 templated; 3 missing; 3 unknown
"
    );
    assert_eq!(TargetSurvey::default().text(Shown::default()), "no targets: no object of Flux or Argo CD was found\n");
}

#[test]
fn the_json_is_what_its_schema_says() {
    let failures = crate::message::failure::Failure::new("x").into();
    for json in [json_report(&found()), json_report(&TargetSurvey::default()), json::failures(&failures)] {
        assert_valid(SCHEMA, &json);
        assert!(!json.contains("secret"));
    }
}
