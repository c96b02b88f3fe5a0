//! What is deployed from trees in memory.

use super::*;
use crate::graph::testing::tree;

mod argo;
mod flux;
mod generated;

const HERE: &str = "https://github.com/acme/fleet";

fn identity(config: &Config) -> Identity {
    Identity::new([HERE.to_owned()], config, ["main".to_owned()])
}

fn find_in(files: &[(&str, &str)]) -> Targets {
    let config = Config::default();
    find(&tree(files), &config, &|| Ok(identity(&config))).unwrap()
}

/// Returns the name of what is found, as in JSON.
fn id(found: &Found) -> String {
    let json = serde_json::to_value(found).unwrap();
    json.as_object().unwrap().keys().next().unwrap().clone()
}

/// Returns a target in a line: what names it, and where it is.
fn line(target: &Target) -> String {
    let place = match &target.place {
        Place::Here(here) => {
            let revision = match &here.revision {
                Revision { name: None, is_this: true, .. } => String::new(),
                Revision { name, is_this, .. } => format!("@{name:?}{is_this}"),
            };
            format!("{}{revision} {}", here.path, id(&here.found))
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
    unread.iter().map(|one| format!("{}:{}: {}", one.file, one.line, one.message)).collect()
}

#[test]
fn a_tree_without_objects_has_no_targets() {
    let files = [
        ("apps/kustomization.yaml", "resources: [web.yaml]\n"),
        ("apps/web.yaml", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n"),
    ];
    assert_eq!(find_in(&files), Targets::default());
}

#[test]
fn what_the_configuration_declares_is_a_target() {
    let config = "targets:\n- {path: clusters/edge, engine: argo-cd}\n- path: .\n  engine: flux\n";
    let config = Config::parse(config.as_bytes(), ".kustomize-localize").unwrap();
    let roots = ["clusters/edge", "a", "a/b", "a-b", "clusters/edge/x"];
    let roots = roots.map(|root| (format!("{root}/kustomization.yml"), "resources: []\n"));
    let roots: Vec<(&str, &str)> = roots.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    let tree = tree(&roots);
    let found = find(&tree, &config, &|| Ok(identity(&config))).unwrap();
    let lines: Vec<String> = found.targets.iter().map(line).collect();
    assert_eq!(
        lines,
        [
            "target clusters/edge (.kustomize-localize:2) clusters/edge kustomization",
            "target . (.kustomize-localize:3)  directory",
        ]
    );
    let roots = found.roots();
    // Flux builds those of the top, and does not look into them.
    assert_eq!(roots, BTreeSet::from(["a", "a-b", "clusters/edge"].map(str::to_owned)));
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
        ("odd/fleet.yml", "name: odd\n"),
        ("plain/fleet.yml", "kustomize: {dir: not-read}\n"),
        ("odd/kustomization.yml", ""),
    ]);
    assert_eq!(
        lines,
        [
            "fleet.yaml built/overlays/prod (built/fleet.yaml:2) built/overlays/prod kustomization",
            "fleet.yaml built/overlays/test (built/fleet.yaml:5) built/overlays/test nothing",
            "fleet.yaml chart (chart/fleet.yaml:1) external: it is a chart",
            "fleet.yaml newer/dev (newer/fleet.yaml:1) newer/dev kustomization",
            "fleet.yaml odd (odd/fleet.yml:1) odd directory",
            "fleet.yaml older/dev (older/fleet.yaml:3) older/dev kustomization",
            "fleet.yaml older/prod (older/fleet.yaml:4) older/prod nothing",
            "fleet.yaml out (out/fleet.yaml:1) out nothing",
            "fleet.yaml plain (plain/fleet.yaml:1) plain directory",
        ]
    );
}

#[test]
fn each_path_of_a_git_repo_is_a_bundle() {
    let repo = |rest: &str| {
        format!(
            "apiVersion: fleet.cattle.io/v1alpha1
kind: GitRepo
metadata: {{name: all, namespace: fleet-default}}
spec: {{{rest}}}
"
        )
    };
    let here = format!("repo: '{HERE}/'");
    for (rest, expected) in [
        (
            format!("{here}, branch: main, paths: [/web, plain/]"),
            vec!["web@Some(\"main\")true kustomization", "plain@Some(\"main\")true directory"],
        ),
        (format!("{here}, revision: v1, branch: main, paths: [web]"), vec!["web@Some(\"v1\")false kustomization"]),
        (format!("{here}, paths: ['envs/*']"), vec!["templated: `envs/*` is a pattern"]),
        // Each is one bundle, however it is written, and however often.
        (
            format!("{here}, paths: [web, /web/, ./web, 'envs/..//web', envs/b]"),
            vec!["web kustomization", "envs/b directory"],
        ),
        (
            format!("{here}, paths: [., gone, ./gone, ../web, ../web, ../envs]"),
            vec![" directory", "gone nothing", " nothing"],
        ),
        // That of the file is one, and all YAML in it.
        (format!("{here}, paths: [bundle]"), vec![]),
        (format!("{here}, paths: [above]"), vec![]),
        (here.clone(), vec![" directory"]),
        (format!("{here}, paths: [gone]"), vec!["gone nothing"]),
        (
            "repo: 'https://github.com/acme/other', paths: [elsewhere]".to_owned(),
            vec!["external: it is in https://github.com/acme/other"],
        ),
        (format!("{here}, paths: ['${{x}}']"), vec!["templated: `${x}` is filled in elsewhere"]),
        ("paths: [web]".to_owned(), vec![]),
    ] {
        let found = lines(&[
            ("repo.yaml", &repo(&rest)),
            ("web/kustomization.yaml", ""),
            ("plain/x.yaml", ""),
            ("envs/a/kustomization.yaml", ""),
            ("envs/b/x.yaml", ""),
            ("envs/c/README.md", ""),
            ("envs/d/fleet.yml", "kustomize: {dir: gone}\n"),
            ("bundle/fleet.yaml", "kustomize: {dir: gone}\n"),
            ("above/bundle/fleet.yaml", "kustomize: {dir: gone}\n"),
        ]);
        let of_repo = found.iter().filter_map(|line| {
            let (object, place) = line.split_once(") ").unwrap();
            object.starts_with("GitRepo fleet-default/all").then_some(place)
        });
        let of_repo: Vec<&str> = of_repo.collect();
        assert_eq!(of_repo, expected, "{rest}");
    }
}

#[test]
fn what_is_excluded_is_no_target() {
    let config = Config::parse(b"exclude: ['**/testdata']\n", ".kustomize-localize").unwrap();
    let tree = tree(&[("testdata/app.yaml", flux::APPS), ("x/testdata/deep/fleet.yaml", "namespace: x\n")]);
    assert_eq!(find(&tree, &config, &|| Ok(identity(&config))).unwrap(), Targets::default());
}
