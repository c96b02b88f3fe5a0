//! The kustomizations that engines build, and what Argo CD has to watch.

use serde_json::{Value, json};

use super::super::generated::{Generated, generated};
use super::*;

const SOURCE: &str = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: fleet}\nspec: {url: https://github.com/acme/fleet}\n---\n";

fn made(files: &[(&str, &str)]) -> Generated {
    let found = find_in(files);
    let (target, here) = found.local_targets().next().unwrap();
    generated(&tree(files), target, here).unwrap().unwrap()
}

fn flux(spec: &str, files: &[(&str, &str)]) -> Generated {
    let object = format!(
        "{SOURCE}apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{name: web}}\nspec: {{path: ./web, sourceRef: {{kind: GitRepository, name: fleet}}, {spec}}}\n"
    );
    made(&[files, &[("flux.yaml", &object)]].concat())
}

fn argo(kustomize: &str, files: &[(&str, &str)]) -> Generated {
    let object = format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: web}}\nspec:\n  source:\n    repoURL: {HERE}\n    path: web\n    kustomize: {kustomize}\n"
    );
    made(&[files, &[("argo.yaml", &object)]].concat())
}

fn value(made: &Generated) -> Value {
    serde_json::from_slice(&made.text).unwrap()
}

const ROOT: (&str, &str) = (
    "web/kustomization.yml",
    "# ours\nresources: [a.yaml]\nimages: [{name: nginx, newTag: '1'}, {name: redis, digest: sha256:a}]\npatches: [{path: p.yaml}]\nnamePrefix: old-\n",
);

#[test]
fn flux_merges_what_the_object_says() {
    let spec = "targetNamespace: ns, namePrefix: new-, patches: [{patch: x, target: {kind: A}}], images: [{name: redis, newTag: '2'}, {name: b, newName: c}], components: [../mixin]";
    let made = flux(spec, &[ROOT]);
    assert_eq!(made.file_name, "kustomization.yml");
    assert_eq!(
        value(&made),
        json!({
            "resources": ["a.yaml"],
            "namespace": "ns",
            "namePrefix": "new-",
            "patches": [{"path": "p.yaml"}, {"patch": "x", "target": {"kind": "A"}}],
            "images": [
                {"name": "nginx", "newTag": "1"},
                {"name": "redis", "newTag": "2"},
                {"name": "b", "newName": "c"}
            ],
            "components": ["../mixin"],
        })
    );
    let none = "--load-restrictor=LoadRestrictionsNone";
    assert_eq!(made.arguments, [none, "--reorder=none"]);
    // Nothing to merge: byte for byte what is there.
    let made = flux("interval: 1m", &[ROOT]);
    assert_eq!((made.is_changed, made.text), (false, ROOT.1.into()));
    let empty = flux("interval: 1m", &[("web/kustomization.yaml", "namePrefix: a-\n")]);
    assert_eq!(value(&empty)["buildMetadata"], json!(["originAnnotations"]));
    let missing = "ignoreMissingComponents: true, components: [../mixin, ../here]";
    let there = ("here/kustomization.yaml", "kind: Component\n");
    assert_eq!(value(&flux(missing, &[ROOT, there]))["components"], json!(["../here"]));
}

#[test]
fn flux_makes_a_kustomization_of_a_directory() {
    let made = flux(
        "nameSuffix: -x",
        &[
            ("web/b.yaml", "a: b"),
            ("web/.hidden/c.yml", "a: b"),
            ("web/inner/Kustomization", "resources: [d.yaml]"),
            ("web/inner/d.yaml", "a: b"),
            ("web/README.md", "a"),
        ],
    );
    let resources = json!(["./.hidden/c.yml", "./b.yaml", "./inner"]);
    assert_eq!(value(&made), json!({"resources": resources, "nameSuffix": "-x"}));
}

#[test]
fn argo_cd_edits_what_the_object_says() {
    let made = argo(
        "{namePrefix: n-, images: ['nginx=mirror/nginx:2@sha256:b', 'host:5000/app:v3'], replicas: [{name: a, count: 2}], commonLabels: {a: b}, labelWithoutSelector: true, commonAnnotations: {c: d}, patches: [{patch: y}]}",
        &[ROOT],
    );
    let found = value(&made);
    assert_eq!(found["namePrefix"], "old-");
    assert_eq!(found["patches"], json!([{"path": "p.yaml"}, {"patch": "y"}]));
    let edits: Vec<String> = made.edits.unwrap().iter().map(|words| words.join(" ")).collect();
    assert_eq!(
        edits,
        [
            "set nameprefix -- n-",
            "set image nginx=mirror/nginx:2@sha256:b host:5000/app:v3",
            "set replicas a=2",
            "add label --without-selector a:b",
            "add annotation c:d",
        ]
    );
    // Only the user can let code run.
    let options = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: argocd-cm}\ndata:\n  kustomize.buildOptions: --enable-exec --enable-alpha-plugins --load-restrictor LoadRestrictionsNone -o /tmp/x\n";
    let made = argo("{}", &[ROOT, ("cm.yaml", options)]);
    assert_eq!(made.arguments, ["--load-restrictor=LoadRestrictionsNone"]);
}

#[test]
fn what_cannot_be_edited_here_is_unknown_if_the_object_changes_it() {
    const TAGGED: (&str, &str) = ("web/kustomization.yaml", "resources: [a.yaml]\nnamePrefix: !!str a-\n");
    const MERGED: (&str, &str) = ("web/kustomization.yaml", "commonLabels: {<<: {a: b}}\n");
    let unknown = |line: usize, what: &str| {
        Err(format!("`web/kustomization.yaml:{line}` cannot be edited: not plain YAML: {what}"))
    };
    let (tag, key) = (unknown(2, "the tag `!!str`"), unknown(1, "the merge key `<<`"));
    for spec in ["targetNamespace: ns", "patches: [{patch: x}]", "images: [{name: a, newTag: b}]", "components: [../a]"]
    {
        let made = flux(spec, &[TAGGED]);
        assert_eq!((made.is_of_engine(), made.edits), (true, tag.clone()), "{spec}");
        assert_eq!(flux(spec, &[MERGED]).edits, key, "{spec}");
    }
    let made = argo("{patches: [{patch: y}], namePrefix: x-}", &[TAGGED]);
    assert_eq!(made.edits, tag);
    // Nothing is written into it here.
    let made = flux("interval: 1m", &[TAGGED]);
    assert_eq!((made.is_of_engine(), made.edits, made.text), (false, Ok(vec![]), TAGGED.1.into()));
    let made = argo("{namePrefix: x-, components: [../a]}", &[TAGGED]);
    let edits: Vec<String> = made.edits.clone().unwrap().iter().map(|words| words.join(" ")).collect();
    assert_eq!((made.is_of_engine(), edits), (true, vec!["set nameprefix -- x-".into(), "add component ../a".into()]));
}

#[test]
fn the_annotation_covers_what_the_build_reads() {
    let app = |path: &str, name: &str| {
        format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: {name}}}\nspec: {{source: {{repoURL: {HERE}, path: {path}, kustomize: {{components: [../../mixin]}}}}}}\n"
        )
    };
    let (prod, dir) = (app("apps/prod", "prod"), app("plain", "plain"));
    let files: &[(&str, &str)] = &[
        ("a.yaml", &prod),
        ("b.yaml", &dir),
        (
            "apps/prod/kustomization.yaml",
            "resources: [../base, own.yaml]\nhelmGlobals: {chartHome: ../../charts}\nhelmCharts: [{name: web, valuesFile: ../../shared/values.yaml}]\n",
        ),
        ("apps/prod/own.yaml", "a: b"),
        ("apps/base/kustomization.yaml", "resources: [deep/x.yaml, ../../lib]\n"),
        ("apps/base/deep/x.yaml", "a: b"),
        ("lib/kustomization.yaml", "resources: []\n"),
        ("mixin/kustomization.yaml", "kind: Component\n"),
        ("charts/web/Chart.yaml", "name: web"),
        ("shared/values.yaml", "a: b"),
        ("plain/x.yaml", "a: b"),
    ];
    let tree: Rc<dyn Tree> = Rc::new(tree(files));
    let explored = crate::graph::inputs::explore_all(tree).unwrap();
    let paths = generate_paths(&explored.graph, &find_in(files)).unwrap();
    let paths: Vec<(&str, &str)> = paths.iter().map(|(object, value)| (object.name.as_str(), value.as_str())).collect();
    assert_eq!(paths, [("prod", ".;/apps/base;/charts/web;/lib;/mixin;/shared/values.yaml"), ("plain", "."),]);
}
