//! What is deployed from trees in memory.

use super::*;
use crate::graph::testing::tree;
use crate::kustomization::read_object;

mod argo;
mod chart;
mod flux;
mod generated;
mod generator;
mod plain;

const HERE: &str = "https://github.com/acme/fleet";

fn identity(config: &Config) -> Identity {
    Identity::new([HERE.to_owned()], config, ["main".to_owned()])
}

fn find_in(files: &[(&str, &str)]) -> Targets {
    let config = Config::default();
    find(&tree(files), &config, &|| Ok(identity(&config))).unwrap().0
}

/// Returns the name of what is found, as in JSON.
fn id(found: &PathContent) -> String {
    let json = serde_json::to_value(found).unwrap();
    json.as_object().unwrap().keys().next().unwrap().clone()
}

/// Returns a target in a line: what names it, and where it is.
fn line(target: &Target) -> String {
    let place = match &target.location {
        TargetLocation::Local(here) => {
            let revision = match &here.revision {
                Revision { name: None, is_this: true, .. } => String::new(),
                Revision { name, is_this, .. } => format!("@{name:?}{is_this}"),
            };
            format!("{}{revision} {}", here.path, id(&here.content))
        }
        TargetLocation::External(why) => format!("external: {why}"),
        TargetLocation::Templated(why) => format!("templated: {why}"),
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

/// Where no remote of a clone counts, as for `check`.
#[test]
fn the_tree_tells_which_url_is_its_own() {
    const OTHER: &str = "https://github.com/other/apps";
    let flux = |path: &str| {
        let source = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: f}\nspec: {url: 'ssh://git@github.com/acme/fleet', ref: {branch: main}}\n";
        let one = |name: &str, path: &str| {
            format!(
                "---\napiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{name: {name}}}\nspec: {{path: {path}, sourceRef: {{kind: GitRepository, name: f}}}}\n"
            )
        };
        [source.to_owned(), one("one", "./flux"), one("two", "./apps/a"), one("typo", path)].concat()
    };
    let ours = [("a", HERE, "apps/a"), ("b", HERE, "apps/b")];
    for (apps, url, more, is_missing) in [
        // A typing error, beside what is here.
        (vec![ours[0], ours[1], ("typo", HERE, "apps/aa")], "", "", true),
        (vec![ours[0], ours[1], ("typo", OTHER, "apps/x")], "", "", false),
        // Another repository that has a path of that name.
        (vec![ours[0], ours[1], ("typo", OTHER, "apps/a")], "", "", false),
        // Nothing tells that it is this one: none of it is here, or only the top.
        (vec![("typo", HERE, "apps/aa")], "", "", false),
        (vec![("top", HERE, "."), ("typo", HERE, "nowhere")], "", "", false),
        (vec![("typo", HERE, "apps/aa")], HERE, "", true),
        (vec![ours[0], ours[1], ("typo", HERE, "apps/aa")], OTHER, "", false),
        (vec![], "", "./apps/aa", true),
        (vec![], "", "./apps/b", false),
    ] {
        let declared = format!("repository: [{{url: '{url}'}}]\n");
        let declared = if url.is_empty() { "" } else { &declared };
        let config = Config::parse(declared.as_bytes(), ".kustomize-localize").unwrap();
        let object = |(name, url, path): &(&str, &str, &str)| {
            format!(
                "---\napiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: {name}}}\nspec: {{source: {{repoURL: '{url}', path: {path}}}}}\n"
            )
        };
        let argo: String = apps.iter().map(object).collect();
        let flux = if more.is_empty() { String::new() } else { flux(more) };
        let roots = [("apps/a/kustomization.yaml", ""), ("apps/b/kustomization.yaml", "")];
        let files = [&roots[..], &[("argo.yaml", &*argo), ("flux/all.yaml", &*flux)]].concat();
        let found = find(&tree(&files), &config, &|| Ok(Identity::new([], &config, ["main".to_owned()]))).unwrap().0;
        let missing = found
            .local_targets()
            .filter(|(_, here)| here.revision.is_this && matches!(here.content, PathContent::Nothing(_)));
        let missing: Vec<&str> = missing.map(|(target, _)| target.object.name.as_str()).collect();
        assert_eq!(missing == ["typo"], is_missing, "{apps:?} {url} {more}: {missing:?}");
        assert!(is_missing || missing.is_empty(), "{apps:?} {url} {more}: {missing:?}");
    }
}

#[test]
fn the_order_of_a_walk_changes_no_cause() {
    let application = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: web}\nspec: {source: {repoURL: 'https://h/o/r', path: web}}\n";
    let files = [
        ("base/web.yaml", application),
        ("base/kustomization.yaml", "resources: [web.yaml]\n"),
        ("a/kustomization.yaml", "resources: [../base]\nnamePrefix: a-\n"),
        ("b/kustomization.yaml", "resources: [../base]\nnamePrefix: b-\n"),
    ];
    let config = Config::default();
    let cause = |first: &str| {
        let survey = Survey::of(Rc::new(tree(&files)));
        drop(survey.walk(&[first.to_owned()]));
        let graph = survey.explore_all_inputs().unwrap().graph;
        let targets = find_from(&survey, &[], &config, &|| Ok(identity(&config))).unwrap().resolve_changers(&graph);
        targets.targets[0].changed_by.clone().unwrap().name
    };
    assert_eq!(["a", "b"].map(cause), ["a/kustomization.yaml"; 2]);
}

#[test]
fn what_the_configuration_declares_is_a_target() {
    let config = "targets:\n- {path: clusters/edge, engine: argo-cd}\n- path: .\n  engine: flux\n";
    let config = Config::parse(config.as_bytes(), ".kustomize-localize").unwrap();
    let roots = ["clusters/edge", "a", "a/b", "a-b", "clusters/edge/x"];
    let roots = roots.map(|root| (format!("{root}/kustomization.yml"), "resources: []\n"));
    let roots: Vec<(&str, &str)> = roots.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    let tree = tree(&roots);
    let found = find(&tree, &config, &|| Ok(identity(&config))).unwrap().0;
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
fn the_load_restrictor_of_the_configuration_holds_for_declared_targets() {
    let declared = "load-restrictor: none\ntargets: [{path: a, engine: argo-cd}, {path: a, engine: kustomize}]\n";
    let config = Config::parse(declared.as_bytes(), ".kustomize-localize").unwrap();
    let restrictors = |more: &[(&str, &str)]| {
        let tree = tree(&[&[("a/kustomization.yaml", "namePrefix: a-\n")], more].concat());
        let found = find(&tree, &config, &|| Ok(identity(&config))).unwrap().0;
        found.targets.iter().map(|target| (target.engine, target.build.load_restrictor)).collect::<Vec<_>>()
    };
    let (any, own) = (Some(LoadRestrictor::None), Some(LoadRestrictor::RootOnly));
    assert_eq!(restrictors(&[]), [(EngineName::ArgoCd, any), (EngineName::Kustomize, any)]);
    // Argo CD's own options win.
    let options = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: argocd-cm}\ndata: {}\n";
    assert_eq!(restrictors(&[("cm.yaml", options)]), [(EngineName::ArgoCd, own), (EngineName::Kustomize, any)]);
}

#[test]
fn an_excluded_file_that_is_deployed_is_read_with_its_errors() {
    let config = Config::parse(b"exclude: [prod/apps, lib]\n", ".kustomize-localize").unwrap();
    let broken = flux::APPS.replace("path: ./apps/prod", "path: [./x]");
    assert_ne!(broken, flux::APPS);
    let listed = "resources: [app.yaml]\n";
    let unread = |path: &str| {
        let target = flux::APPS.replace("path: ./apps/prod", &format!("path: {path}"));
        let tree = tree(&[
            ("s.yaml", flux::SOURCE),
            ("a.yaml", &target),
            ("prod/apps/app.yaml", &broken),
            ("lib/app.yaml", &broken),
            ("lib/kustomization.yaml", listed),
            ("lib/other.yaml", &broken),
        ]);
        let found = find(&tree, &config, &|| Ok(identity(&config))).unwrap().0;
        found.unread.iter().map(Unread::location_text).collect::<Vec<_>>()
    };
    assert_eq!(unread("./prod"), ["prod/apps/app.yaml:7"]);
    assert_eq!(unread("./lib"), ["lib/app.yaml:7"]);
    assert_eq!(unread("./elsewhere"), [""; 0]);
    // Only the files that the target applies count.
    let target = flux::APPS.replace("path: ./apps/prod", "path: ./prod");
    for more in [("prod/.sourceignore", "/apps/\n"), ("prod/apps/kustomization.yaml", "resources: []\n")] {
        let files = [("s.yaml", flux::SOURCE), ("a.yaml", &target), ("prod/apps/app.yaml", &broken), more];
        let found = find(&tree(&files), &config, &|| Ok(identity(&config))).unwrap().0;
        assert_eq!(found.unread.iter().map(Unread::location_text).collect::<Vec<_>>(), [""; 0], "{more:?}");
    }
}

#[test]
fn what_is_excluded_is_no_target() {
    let config = Config::parse(b"exclude: ['**/testdata']\n", ".kustomize-localize").unwrap();
    let tree = tree(&[("testdata/app.yaml", flux::APPS), ("x/testdata/deep/app.yaml", flux::APPS)]);
    assert_eq!(find(&tree, &config, &|| Ok(identity(&config))).unwrap().0, Targets::default());
}
