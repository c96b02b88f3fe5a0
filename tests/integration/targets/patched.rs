//! What a kustomization may write into an object of an engine is unknown without a build: kustomize itself is the
//! judge.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::support::{Repo, Sandbox, full};

const OBJECTS: &str = "apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: web, namespace: x, labels: {a: b}}
spec:
  interval: 1h
  path: ./one
  targetNamespace: x
  postBuild: {substitute: {path: x}}
  components: [../part]
  sourceRef: {kind: GitRepository, name: fleet}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: fleet, namespace: x, labels: {a: b}}
spec: {interval: 1h, path: ./one, url: 'https://github.com/acme/fleet', ref: {branch: main}}
---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: web, namespace: x, labels: {a: b}}
spec:
  interval: 1h
  path: x
  source: {path: one, repoURL: 'https://github.com/acme/fleet', kustomize: {images: [a]}}
";

const TREE: [(&str, &str); 4] = [
    (".kustomize-localize", "repository: [{url: 'https://github.com/acme/fleet'}]\n"),
    ("one/kustomization.yaml", "resources: []\n"),
    ("two/kustomization.yaml", "resources: []\n"),
    ("part/kustomization.yaml", "kind: Component\nnamePrefix: x-\n"),
];

/// What of them is written, as `KIND NAME VERSION FIELD…`.
const FIELDS: [&str; 3] = [
    "Kustomization web kustomize.toolkit.fluxcd.io/v1 spec spec.path spec.sourceRef.name spec.targetNamespace \
     spec.interval spec.postBuild.substitute.path metadata.name metadata.labels.a",
    "GitRepository fleet source.toolkit.fluxcd.io/v1 spec.url spec.ref.branch spec.path",
    "Application web argoproj.io/v1alpha1 spec.source.path spec.source.kustomize.images spec.path",
];

/// Returns kustomizations that write a field, each with a file that it names.
fn writers(field: &str) -> Vec<[String; 2]> {
    let names: Vec<&str> = field.split('.').collect();
    let (last, above) = names.split_last().unwrap();
    let merge = |value: &str| {
        let fields = above.iter().rev().fold(format!("{last}: {value}"), |inner, name| format!("{name}: {{{inner}}}"));
        format!("apiVersion: VERSION\nkind: KIND\nmetadata: {{name: NAME, namespace: x}}\n{fields}\n")
    };
    let is_named = names[0] == "metadata";
    let (pointer, slashes) = (format!("/{}", names.join("/")), names.join("/"));
    let target = "target: {kind: KIND}";
    let operation = |operation: &str| format!("- {{op: {operation}, path: {pointer}}}");
    let patch = |text: String| [format!("patches: [{{{target}, path: patch.yaml}}]"), text];
    let mut all = vec![
        patch(operation("remove")),
        patch(format!("- {{op: add, path: {pointer}, value: two}}")),
        patch(format!("[{{\"op\": \"add\", \"path\": \"x{pointer}\", \"value\": \"two\"}}]")),
        patch(format!("- {{op: move, from: {pointer}, path: /spec/other}}")),
        patch(format!("- {{op: copy, from: /spec/interval, path: {pointer}}}")),
        ["patchesJson6902: [{target: {name: .*, kind: 'KIND|X'}, path: patch.yaml}]".to_owned(), operation("remove")],
        [
            "replacements: [{path: patch.yaml}]".to_owned(),
            format!(
                "source: {{kind: KIND, fieldPath: spec.interval}}\ntargets: [{{select: {{kind: KIND}}, fieldPaths: [{field}], options: {{create: true}}}}]"
            ),
        ],
        [
            "namespace: x\nconfigurations: [patch.yaml]".to_owned(),
            format!("namespace: [{{path: {slashes}, kind: KIND, create: true}}]"),
        ],
        [
            "transformers: [patch.yaml]".to_owned(),
            format!(
                "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {{name: x}}\n{target}\npatch: '{}'",
                operation("remove")
            ),
        ],
        ["components: [component]".to_owned(), format!("patches: [{{{target}, patch: '{}'}}]", operation("remove"))],
    ];
    if !is_named {
        all.push([format!("patches: [{{{target}, path: patch.yaml}}]"), merge("two")]);
        all.push(["patches: [{path: patch.yaml}]".to_owned(), merge("~")]);
        all.push(["patchesStrategicMerge: [patch.yaml]".to_owned(), merge("{$patch: delete}")]);
    }
    all
}

/// Returns what each file deploys, whatever line of it says so, and however it is built.
fn deployed(repo: &Repo) -> BTreeMap<String, Vec<Value>> {
    let report: Value = serde_json::from_str(&repo.run(&["targets", "--format", "json"]).success().stdout).unwrap();
    let mut found: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for target in report["targets"].as_array().unwrap() {
        let mut target = target.clone();
        let file = target["file"].as_str().unwrap().to_owned();
        without_lines(&mut target);
        found.entry(file).or_default().push(target);
    }
    found.values_mut().for_each(|all| all.sort_by_key(Value::to_string));
    found
}

fn without_lines(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|key, _| !["line", "column", "reaches", "overrides"].contains(&key.as_str()));
            fields.values_mut().for_each(without_lines);
        }
        Value::Array(items) => items.iter_mut().for_each(without_lines),
        _ => {}
    }
}

#[test]
fn what_kustomize_changes_of_a_target_is_unknown_without_a_build() {
    let sandbox = Sandbox::new();
    let Some(kustomize) = sandbox.builds() else { return };
    let (read, written, built) = (sandbox.repo("read"), sandbox.repo("written"), sandbox.repo("built"));
    for repo in [&read, &written, &built] {
        repo.commit_files(&TREE);
    }
    let mut cases = BTreeMap::new();
    for all in FIELDS {
        let words: Vec<&str> = all.split_whitespace().collect();
        let [kind, name, version, fields @ ..] = &words[..] else { panic!("{all}") };
        let all = fields.iter().enumerate().flat_map(|(at, field)| {
            let all = writers(field).into_iter().enumerate();
            all.map(move |(number, texts)| (at + number, field, number, texts))
        });
        // By day every third way to write a field, and others to write the next one.
        for (_, field, number, texts) in all.filter(|(at, ..)| full() || at.is_multiple_of(3)) {
            let fill = |text: String| text.replace("KIND", kind).replace("VERSION", version).replace("NAME", name);
            cases.insert(format!("{kind}-{field}-{number}"), texts.map(fill));
        }
    }
    for (case, [kustomization, file]) in &cases {
        let directory = format!("clusters/{case}");
        read.write(&format!("{directory}/kustomization.yaml"), format!("resources: [objects.yaml]\n{kustomization}\n"));
        read.write(&format!("{directory}/patch.yaml"), file);
        read.write(&format!("{directory}/component/kustomization.yaml"), format!("kind: Component\n{file}\n"));
        read.write(&format!("{directory}/objects.yaml"), OBJECTS);
        let output = kustomize.build(&sandbox, read.path(), &directory);
        if output.status == 0 {
            written.write(&format!("{directory}/objects.yaml"), OBJECTS);
            built.write(&format!("{directory}/objects.yaml"), output.stdout);
        }
    }
    let (written, built) = (deployed(&written), deployed(&built));
    let report = read.run(&["check", "--format", "json"]);
    let report: Value = serde_json::from_str(&report.stdout).unwrap();
    let unknown = report["findings"].as_array().unwrap().iter().filter(|one| one["rule"] == "unknown-target");
    let unknown: BTreeSet<&str> = unknown.map(|one| one["path"].as_str().unwrap()).collect();
    let mut changed = 0;
    for (file, before) in &written {
        let is_same = built.get(file) == Some(before);
        let is_known = !unknown.contains(file.as_str());
        assert!(is_same || !is_known, "{file}: {:?}\n{before:#?}\n{:#?}", cases.get(file), built.get(file));
        changed += usize::from(!is_same);
    }
    assert!(changed > 20, "{changed}");
}
