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
        let missing = found.here().filter(|(_, here)| here.revision.is_this && matches!(here.found, Found::Nothing(_)));
        let missing: Vec<&str> = missing.map(|(target, _)| target.object.name.as_str()).collect();
        assert_eq!(missing == ["typo"], is_missing, "{apps:?} {url} {more}: {missing:?}");
        assert!(is_missing || missing.is_empty(), "{apps:?} {url} {more}: {missing:?}");
    }
}

#[test]
fn a_target_has_the_namespace_that_what_deploys_it_gives() {
    let source = flux::SOURCE.replace("namespace: flux-system", "labels: {}");
    let object = |name: &str, path: &str, more: &str| {
        format!(
            "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{name: {name}}}\nspec: {{path: {path}, sourceRef: {{kind: GitRepository, name: flux-system}}{more}}}\n"
        )
    };
    let [apps, one, two, three] = [
        object("apps", "./more", ", targetNamespace: given"),
        object("one", "./web", ""),
        object("two", "./web", ""),
        object("three", "./web", ""),
    ];
    let set = format!(
        "apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {{name: all, namespace: argocd}}
spec:
  generators: [{{list: {{elements: [{{name: web}}]}}}}]
  template:
    metadata: {{name: 'app-{{{{name}}}}'}}
    spec: {{source: {{repoURL: '{HERE}', path: '{{{{name}}}}'}}}}
"
    );
    let tree = tree(&[
        ("apps.yaml", &apps),
        ("source.yaml", &source),
        ("web/kustomization.yaml", "resources: []\n"),
        ("more/kustomization.yaml", "namespace: hidden\nresources: [one.yaml]\n"),
        ("more/one.yaml", &one),
        // Nobody deploys these: one kustomization gives a namespace, or several do.
        ("two/kustomization.yaml", "Namespace: own\nresources: [two.yaml]\n"),
        ("two/two.yaml", &two),
        ("base/kustomization.yaml", "resources: [three.yaml]\n"),
        ("base/three.yaml", &three),
        ("a/kustomization.yaml", "namespace: a\nresources: [../base]\n"),
        ("b/kustomization.yaml", "namespace: b\nresources: [../base]\n"),
        ("set.yaml", &set),
    ]);
    let config = Config::default();
    let found = find(&tree, &config, &|| Ok(identity(&config))).unwrap();
    let explored = crate::graph::inputs::explore_all(std::rc::Rc::new(tree)).unwrap();
    let found = found.settle(&explored.graph);
    let named: Vec<String> = found.targets.iter().map(|one| one.object.full_name()).collect();
    assert_eq!(named, ["apps", "three", "given/one", "argocd/app-web", "own/two"]);
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
fn what_is_excluded_is_no_target() {
    let config = Config::parse(b"exclude: ['**/testdata']\n", ".kustomize-localize").unwrap();
    let tree = tree(&[("testdata/app.yaml", flux::APPS), ("x/testdata/deep/app.yaml", flux::APPS)]);
    assert_eq!(find(&tree, &config, &|| Ok(identity(&config))).unwrap().0, Targets::default());
}

/// One object of each kind that says what is deployed, with every field that is read.
const ALL: &str = r#"{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: apps, namespace: x, labels: {a: b}},
  spec: {path: ./a, sourceRef: {kind: GitRepository, name: fleet, namespace: x}, components: [../part], ignoreMissingComponents: true,
    targetNamespace: x, namePrefix: a-, nameSuffix: -a, patches: [{patch: x}], images: [{name: x}], buildMetadata: [x],
    patchesStrategicMerge: [{kind: X}], patchesJson6902: [{patch: []}],
    interval: 1h, prune: true, suspend: true, postBuild: {substitute: {a: b}, substituteFrom: [{kind: ConfigMap, name: settings}]}, decryption: {provider: sops}, dependsOn: [{name: x}]}}
---
{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: made, namespace: x},
  spec: {path: ./b, sourceRef: {kind: ExternalArtifact, name: made}}}
---
{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: fleet, namespace: x, labels: {a: b}},
  spec: {url: HERE, ref: {branch: main}, ignore: /x, sparseCheckout: [a], include: [{toPath: b}], interval: 1h, recurseSubmodules: true}}
---
{apiVersion: source.extensions.fluxcd.io/v1beta1, kind: ArtifactGenerator, metadata: {name: g, namespace: x, annotations: {source.extensions.fluxcd.io/reconcile: enabled}},
  spec: {sources: [{alias: a, kind: GitRepository, name: fleet}], artifacts: [{name: made, copy: [{from: '@a/b', to: '@artifact/'}]}]}}
---
{apiVersion: fluxcd.controlplane.io/v1, kind: FluxInstance, metadata: {name: flux, namespace: x},
  spec: {sync: {kind: GitRepository, name: other, url: HERE, ref: refs/heads/main, path: a, pullSecret: x}, distribution: {version: 2.x}}}
---
{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: release, namespace: x},
  spec: {chart: {spec: {chart: a, sourceRef: {kind: GitRepository, name: fleet}}}, values: {a: b}, valuesFrom: [], postRenderers: [],
    releaseName: r, targetNamespace: x, install: {crds: Skip}, interval: 1h, dependsOn: [{name: x}]}}
---
{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: web, namespace: x},
  spec: {project: x, destination: {name: x}, syncPolicy: {automated: {}}, source: {repoURL: HERE, path: b, targetRevision: main, kustomize: {namePrefix: a-}}}}
---
{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: two, namespace: x},
  spec: {sources: [{repoURL: HERE, path: b}], sourceHydrator: {drySource: {repoURL: HERE, path: a, targetRevision: main}}},
  operation: {sync: {revision: x, sources: [{repoURL: HERE, path: b}]}}}
---
{apiVersion: argoproj.io/v1alpha1, kind: ApplicationSet, metadata: {name: set, namespace: x},
  spec: {goTemplate: true, generators: [{list: {elements: [{a: b}]}}], syncPolicy: {preserveResourcesOnDeletion: true},
    templatePatch: '{spec: {source: {targetRevision: main}}}',
    template: {metadata: {name: '{{.a}}', labels: {a: b}}, spec: {project: x, syncPolicy: {automated: {}}, source: {repoURL: HERE, path: '{{.a}}'}}}}}
---
{apiVersion: argoproj.io/v1alpha1, kind: ApplicationSet, metadata: {name: more, namespace: x},
  spec: {generators: [{list: {elements: [{a: b}]}}], strategy: {type: AllAtOnce}, template: {metadata: {name: more},
    spec: {sources: [{repoURL: HERE, path: b}], sourceHydrator: {drySource: {repoURL: HERE, path: b}}},
    operation: {sync: {source: {repoURL: HERE, path: b}}}}}}
"#;

/// Returns a value without the fields for which that is said.
fn without(value: &Json, path: &str, is_out: &dyn Fn(&str) -> bool) -> Json {
    let Json::Object(fields) = value else { return value.clone() };
    let fields = fields.iter().filter_map(|(key, value)| {
        let path = format!("{path}{key}");
        let inner = || (key.clone(), without(value, &format!("{path}."), is_out));
        (!is_out(&path)).then(inner)
    });
    Json::Object(fields.collect())
}

#[test]
fn only_fields_that_are_said_to_be_read_make_a_difference() {
    let objects: Vec<Json> = crate::kustomization::documents(ALL)
        .map(|(before, text)| read_object(&text.replace("HERE", HERE), before).unwrap().unwrap().json())
        .collect();
    let found = |objects: &[Json]| -> Vec<String> {
        let texts = objects.iter().enumerate().map(|(at, object)| (format!("{at}.yaml"), object.to_string()));
        let texts: Vec<(String, String)> = texts.collect();
        let mut files: Vec<(&str, &str)> = texts.iter().map(|(file, text)| (file.as_str(), text.as_str())).collect();
        files.extend([("a/kustomization.yaml", "resources: []\n"), ("b/x.yaml", "kind: X\n")]);
        let mut targets = find_in(&files).targets;
        // Where in a file something stands is another thing.
        let texts = targets.iter_mut().flat_map(|one| one.build.components.iter_mut());
        texts.for_each(|one| one.text.column = 0);
        let packed = |target: &Target| target.here().and_then(|here| Some(here.artifact.as_ref()?.said()));
        let said =
            |target: &Target| format!("{} {:?} {:?} {:?}", line(target), packed(target), target.build, target.sources);
        targets.iter().map(said).collect()
    };
    let all = found(&objects);
    assert_eq!(all.len(), 12, "{all:#?}");
    let mut less = objects.clone();
    for object in &mut less {
        let kind = object["kind"].as_str().unwrap().to_owned();
        let is_in =
            |one: &str, other: &str| one == other || one.strip_prefix(other).is_some_and(|rest| rest.starts_with('.'));
        let is_out = |path: &str| !scan::deciding(&kind).any(|field| is_in(path, field) || is_in(field, path));
        *object = without(object, "", &is_out);
        // Each that is said to be read is there.
        let kinds = || objects.iter().filter(|one| one["kind"] == kind);
        for field in scan::deciding(&kind) {
            let pointer = format!("/{}", field.replace('.', "/"));
            assert!(
                kinds().any(|one| one.pointer(&pointer).is_some()) || field == "spec.pathPattern",
                "{kind} {field}"
            );
        }
    }
    assert_eq!(found(&less), all);
    assert!(serde_json::to_string(&less).unwrap().len() + 400 < serde_json::to_string(&objects).unwrap().len());
}
