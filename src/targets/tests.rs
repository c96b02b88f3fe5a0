//! What is deployed from trees in memory.

use super::*;
use crate::tree::memory::MemoryTree;

mod argo;
mod flux;
mod generated;
mod variables;

const HERE: &str = "https://github.com/acme/fleet";

/// A tree of files, with the objects in it.
fn tree(files: &[(&str, &str)]) -> MemoryTree {
    let mut tree = MemoryTree::default();
    for (path, text) in files {
        tree.file(path, text.as_bytes(), false);
    }
    tree
}

fn identity(config: &Config) -> Identity {
    Identity::new([HERE.to_owned()], config, ["main".to_owned()])
}

fn find_in(files: &[(&str, &str)]) -> Targets {
    let config = Config::default();
    find(&tree(files), &config, || Ok(identity(&config))).unwrap()
}

/// Returns a target in a line: what names it, and where it is.
fn line(target: &Target) -> String {
    let place = match &target.place {
        Place::Here(here) => {
            let revision = match &here.revision {
                Revision {
                    name: None,
                    is_this: true,
                } => String::new(),
                Revision { name, is_this } => format!("@{name:?}{is_this}"),
            };
            format!("{}{revision} {}", here.path, here.found.id())
        }
        Place::External(why) => format!("external: {why}"),
        Place::Templated(why) => format!("templated: {why}"),
    };
    format!("{} {place}", target.object)
}

fn lines(files: &[(&str, &str)]) -> Vec<String> {
    find_in(files).targets.iter().map(line).collect()
}

fn unread(files: &[(&str, &str)]) -> Vec<String> {
    let unread = find_in(files).unread;
    unread
        .iter()
        .map(|one| format!("{}:{}: {}", one.file, one.line, one.message))
        .collect()
}

#[test]
fn a_tree_without_objects_has_no_targets() {
    let files = [
        ("apps/kustomization.yaml", "resources: [web.yaml]\n"),
        (
            "apps/web.yaml",
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n",
        ),
    ];
    assert_eq!(find_in(&files), Targets::default());
}

#[test]
fn what_the_configuration_declares_is_a_target() {
    let config = "targets:\n- {path: clusters/edge, engine: argo-cd}\n- path: .\n  engine: flux\n";
    let config = Config::parse(config.as_bytes(), ".kustomize-localize").unwrap();
    let tree = tree(&[("clusters/edge/kustomization.yml", "resources: []\n")]);
    let found = find(&tree, &config, || Ok(identity(&config))).unwrap();
    let lines: Vec<String> = found.targets.iter().map(line).collect();
    assert_eq!(
        lines,
        [
            "target clusters/edge (.kustomize-localize:2) clusters/edge kustomization",
            "target  (.kustomize-localize:3)  directory",
        ]
    );
    let all = BTreeSet::from(["clusters/edge", "a", "a/b", "a-b", "clusters/edge/x"]);
    let roots = found.roots(&all);
    // Flux builds those of the top, and does not look into them.
    assert_eq!(
        roots,
        BTreeSet::from(["a", "a-b", "clusters/edge"].map(str::to_owned))
    );
}

#[test]
fn fleet_bundles_are_targets_if_the_file_is_one_of_fleet() {
    let lines = lines(&[
        ("plain/fleet.yaml", "namespace: x\n"),
        ("plain/pod.yaml", ""),
        (
            "built/fleet.yaml",
            "kustomize:\n  dir: overlays/prod\ntargetCustomizations:\n- name: t\n  kustomize: {dir: ./overlays/test}\n",
        ),
        ("built/overlays/prod/kustomization.yaml", ""),
        (
            "older/fleet.yaml",
            "namespace: x\ntargets:\n- {name: dev, kustomize: {dir: dev}}\n- {name: prod, kustomize: {dir: prod}}\n",
        ),
        ("older/dev/kustomization.yaml", ""),
        ("newer/fleet.yaml", "kustomize: {dir: dev}\nunheardOf: 1\n"),
        ("newer/dev/kustomization.yaml", ""),
        ("out/fleet.yaml", "kustomize: {dir: ../plain}\n"),
        ("chart/fleet.yaml", "helm: {chart: web}\n"),
        ("other/fleet.yaml", "agents: [a]\n"),
        ("odd/fleet.yaml", "name: odd\n"),
        ("odd/kustomization.yml", ""),
    ]);
    assert_eq!(
        lines,
        [
            "fleet.yaml built/overlays/prod (built/fleet.yaml:2) built/overlays/prod kustomization",
            "fleet.yaml built/overlays/test (built/fleet.yaml:5) built/overlays/test nothing",
            "fleet.yaml chart (chart/fleet.yaml:1) external: it is a chart",
            "fleet.yaml newer/dev (newer/fleet.yaml:1) newer/dev kustomization",
            "fleet.yaml odd (odd/fleet.yaml:1) odd directory",
            "fleet.yaml older/dev (older/fleet.yaml:3) older/dev kustomization",
            "fleet.yaml older/prod (older/fleet.yaml:4) older/prod nothing",
            "fleet.yaml out (out/fleet.yaml:1) out nothing",
            "fleet.yaml plain (plain/fleet.yaml:1) plain directory",
        ]
    );
}

#[test]
fn what_is_excluded_is_no_target() {
    let config = Config::parse(b"exclude: ['**/testdata']\n", ".kustomize-localize").unwrap();
    let tree = tree(&[
        ("testdata/app.yaml", flux::APPS),
        ("x/testdata/deep/fleet.yaml", "namespace: x\n"),
    ]);
    assert_eq!(
        find(&tree, &config, || Ok(identity(&config))).unwrap(),
        Targets::default()
    );
}
