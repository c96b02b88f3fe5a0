//! What localizing refuses because of what is deployed.

use std::rc::Rc;

use super::whole::{copied, repository, upstream};
use crate::message::failure::Failures;
use crate::plan::deployed::refuse_harm;
use crate::plan::{Options, Plan, in_place};
use crate::targets::{self, Identity};
use crate::tree::Listing;
use crate::tree::overlay::OverlayTree;
use crate::workspace::Workspace;

const APP: &str = "resources:\n- https://h/map.yaml\n- own.yaml\n";

const SOURCE: &str = "apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: flux-system}
spec: {url: 'https://github.com/acme/fleet'}
";

fn flux(path: &str) -> String {
    format!(
        "apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {{name: apps}}
spec: {{path: '{path}', sourceRef: {{kind: GitRepository, name: flux-system}}}}
"
    )
}

fn set(patterns: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {{name: apps}}
spec:
  generators:
  - git: {{repoURL: 'https://github.com/acme/fleet', directories: [{patterns}]}}
  template: {{metadata: {{name: x}}, spec: {{source: {{repoURL: 'https://github.com/acme/fleet', path: '{{{{path}}}}'}}}}}}
"
    )
}

/// Returns what stands against the plan for a tree.
fn refused(tree: &OverlayTree, plan: &Plan) -> Vec<String> {
    let shared: Rc<dyn Listing> = Rc::new(tree.clone());
    let workspace = Workspace::of_tree(shared).unwrap();
    let identity = || {
        let remotes = ["https://github.com/acme/fleet".to_owned()];
        Ok(Identity::new(remotes, &workspace.config, []))
    };
    let targets = targets::find(tree, &workspace.config, identity).unwrap();
    match refuse_harm(plan, &targets, tree, "") {
        Ok(()) => Vec::new(),
        Err(Failures(failures)) => failures.into_iter().map(|one| one.message).collect(),
    }
}

fn in_place(files: &[(&str, &str)]) -> Vec<String> {
    let mut tree = repository(APP);
    for (path, text) in files {
        tree.file(path, text.as_bytes(), false);
    }
    let workspace = Workspace::of_tree(Rc::new(tree.clone())).unwrap();
    let request = in_place::Request::default();
    let plan = in_place::plan(&workspace, request, &Options::default(), &mut upstream()).unwrap();
    refused(&tree, &plan)
}

#[test]
fn no_application_set_may_take_what_is_added() {
    for (patterns, expected) in [
        ("{path: '*'}", None),
        ("{path: '*/*'}", Some("`app/localized-files`")),
        ("{path: '*/*'}, {path: '*/localized-files', exclude: true}", None),
        ("{path: 'other/*'}", None),
    ] {
        let found = in_place(&[("argo/set.yaml", &set(patterns))]);
        let expected: Vec<String> = expected
            .map(|place| {
                format!(
                    "ApplicationSet apps (argo/set.yaml:1) would make an application of {place}, which localizing adds"
                )
            })
            .into_iter()
            .collect();
        assert_eq!(found, expected, "{patterns}");
    }
}

#[test]
fn flux_may_not_build_what_nothing_names() {
    let clusters = flux("./");
    let objects = [("clusters/source.yaml", SOURCE), ("clusters/apps.yaml", &clusters)];
    // It lies beside a kustomization, which Flux does not look into.
    assert_eq!(in_place(&objects), [""; 0]);
    let mut tree = repository(APP);
    for (path, text) in objects {
        tree.file(path, text.as_bytes(), false);
    }
    let plan = copied(tree.clone(), &Options::default(), &mut upstream()).unwrap();
    assert_eq!(
        refused(&tree, &plan),
        [
            "Flux Kustomization apps (clusters/apps.yaml:1) makes the kustomization of `.`, and would build `localized-app/kustomization.yaml`, which localizing adds"
        ]
    );
    tree.file(".sourceignore", b"/localized-app\n", false);
    assert_eq!(refused(&tree, &plan), [""; 0]);
    tree.file(".sourceignore", b"# nothing\n", false);
    tree.file("kustomization.yaml", b"resources: [app]\n", false);
    assert_eq!(refused(&tree, &plan), [""; 0]);
}

#[test]
fn what_is_built_may_not_be_left_out_of_the_artifact() {
    for (ignore, path, expected) in [
        ("*.md\n", "./app", 0),
        ("localized-files/\n", "./app", 1),
        ("localized-files/\n", "./other", 0),
        ("localized-files/\n!localized-files/\n", "./app", 0),
        ("/*\n!/app\n", "./app", 0),
    ] {
        let found = in_place(&[
            ("clusters/source.yaml", SOURCE),
            ("clusters/apps.yaml", &flux(path)),
            ("other/kustomization.yaml", "resources: [x.yaml]\n"),
            ("other/x.yaml", ""),
            (".sourceignore", ignore),
        ]);
        assert_eq!(found.len(), expected, "{ignore} {found:?}");
    }
}
