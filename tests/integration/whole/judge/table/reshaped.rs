//! Directories of plugin configurations in which something changes the configurations before they are used.

use super::indented;
use crate::whole::judge::variant::Variant;

const FUNCTION: &str = "{exec: {path: git}}";

/// The configurations, each in `p.yaml`.
const CONFIGURATIONS: [&str; 5] = [
    "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: a}\nfiles: [cm.yaml]\n",
    "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: a}\npath: cm.yaml\n",
    "apiVersion: builtin\nkind: HelmChartInflationGenerator\nmetadata: {name: a}\nname: web\n",
    "apiVersion: a/v1\nkind: Fn\nmetadata:\n  name: a\n  annotations:\n    config.kubernetes.io/function: 'exec: {path: ./fn.sh}'\n",
    "apiVersion: builtin\nkind: PrefixTransformer\nmetadata: {name: a}\nprefix: a-\n",
];

/// What changes any configuration into one that runs a program.
const CHANGES: [&str; 24] = [
    "patches:\n- target: {name: a}\n  patch: '[{op: replace, path: /apiVersion, value: a/v1}, {op: add, path: /metadata/annotations, value: {config.kubernetes.io/function: \"FN\"}}]'\n",
    "patches: [{path: change.yaml, target: {name: a}}]\n",
    "PATCHES: [{path: change.yaml, target: {name: a}}]\n",
    "<<: {patches: [{path: change.yaml, target: {name: a}}]}\n",
    "patchesJson6902:\n- target: {version: VERSION, kind: KIND, name: a}\n  path: change.yaml\n",
    "patchesStrategicMerge:\n- |\n  apiVersion: API\n  kind: KIND\n  metadata: {name: a, annotations: {config.kubernetes.io/function: \"FN\"}}\n  files: [\"https://h.example/x\"]\n  path: https://h.example/x\n  repo: https://h.example\n  name: other\n",
    "replacements:\n- sourceValue: https://h.example/x\n  targets: [{select: {name: a}, fieldPaths: [files.0, path, valuesFile], options: {create: true}}]\n",
    "replacements:\n- sourceValue: '{exec: {path: git}}'\n  targets: [{select: {name: a}, fieldPaths: ['metadata.annotations.[config.kubernetes.io/function]'], options: {create: true}}]\n",
    "replacements: [{path: r.yaml}]\n",
    "components: [c]\n",
    "transformers:\n- |\n  apiVersion: builtin\n  kind: PatchTransformer\n  metadata: {name: t}\n  path: change.yaml\n  target: {name: a}\n",
    "transformers: [t.yaml]\n",
    "commonAnnotations: {config.kubernetes.io/function: \"FN\"}\n",
    "commonAnnotations: {config.k8s.io/function: \"FN\"}\n",
    "labels:\n- pairs: {config.kubernetes.io/function: \"FN\"}\n  fields: [{path: metadata/annotations, create: true}]\n",
    "labels:\n- pairs: {path: \"https://h.example/x\", repo: \"https://h.example\", name: other}\n  fields: [{path: metadata/.., create: true}, {path: '', create: true}, {path: /, create: true}]\n",
    "configurations: [conf.yaml]\ncommonAnnotations: {u: 'https://h.example/x'}\n",
    "configurations: [conf.yaml]\nnamePrefix: https://h.example/\n",
    "configurations: [conf.yaml]\ncommonLabels: {config.kubernetes.io/function: \"FN\"}\n",
    "configurations: [conf.yaml]\nimages: [{name: cm.yaml, newName: https://h.example/x}]\n",
    "configurations: [conf.yaml]\nnamespace: https://h.example/x\n",
    "crds: [crd.json]\nnamePrefix: https://h.example/\n",
    "crds: [crd.json]\ncommonAnnotations: {path: 'https://h.example/x', repo: https://h.example}\n",
    "configurations: [conf.yaml]\nvars:\n- {name: V, objref: {apiVersion: API, kind: KIND, name: a}, fieldref: {fieldPath: metadata.name}}\n",
];

/// What makes a configuration of its own.
const MADE: [&str; 5] = [
    "configMapGenerator:\n- {name: b, options: {annotations: {config.kubernetes.io/function: \"FN\"}}}\n",
    "secretGenerator:\n- {name: b, options: {annotations: {config.kubernetes.io/function: \"FN\"}}}\n",
    "configMapGenerator: [{name: b}]\ngeneratorOptions: {annotations: {config.kubernetes.io/function: \"FN\"}}\n",
    "generators:\n- |\n  apiVersion: builtin\n  kind: ConfigMapGenerator\n  metadata: {name: b}\n  options: {annotations: {config.kubernetes.io/function: \"FN\"}}\n",
    "generators: [made.yaml]\n",
];

/// What changes the configurations of other configurations.
const FIELDS: &str = "namePrefix:\n- {path: path, kind: PatchTransformer}\n- {path: files, kind: ConfigMapGenerator}\n- {path: valuesFile, kind: HelmChartInflationGenerator, create: true}\n- {path: repo, kind: HelmChartInflationGenerator, create: true}\ncommonAnnotations:\n- {path: files, kind: ConfigMapGenerator}\ncommonLabels:\n- {path: metadata/annotations, create: true}\nimages:\n- {path: path, kind: PatchTransformer}\nnamespace:\n- {path: path, kind: PatchTransformer, create: true}\n- {path: valuesFile, kind: HelmChartInflationGenerator, create: true}\nvarReference:\n- {path: path, kind: PatchTransformer}\n";

pub(super) fn variants() -> Vec<Variant> {
    let mut all = Vec::new();
    for configuration in CONFIGURATIONS {
        for fields in CHANGES.iter().chain(&MADE) {
            all.push(variant(configuration, fields, false));
            // What is made is made wherever.
            if configuration.starts_with("apiVersion: a/v1") {
                all.push(variant(configuration, fields, true));
            }
        }
    }
    all
}

fn variant(configuration: &str, fields: &str, nested: bool) -> Variant {
    let (api, version) =
        if configuration.starts_with("apiVersion: a/v1") { ("a/v1", "v1") } else { ("builtin", "builtin") };
    let kind = configuration.lines().find_map(|line| line.strip_prefix("kind: ")).unwrap();
    let list = if kind.ends_with("Generator") { "generators" } else { "transformers" };
    let name = format!("{kind} {}{fields}", if nested { "below " } else { "" });
    let filled = |text: &str| {
        text.replace("\"FN\"", &super::quoted(FUNCTION))
            .replace("VERSION", version)
            .replace("API", api)
            .replace("KIND", kind)
    };
    // Within single quotes no double quotes are escaped.
    let fields = if fields.starts_with("patches:\n") { fields.replace("FN", FUNCTION) } else { filled(fields) };
    let change_text = filled(
        "- {op: replace, path: /apiVersion, value: a/v1}\n- {op: add, path: /metadata/annotations, value: {config.kubernetes.io/function: \"FN\"}}\n",
    );
    let component = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches: [{path: change.yaml, target: {name: a}}]\n";
    let transformer =
        "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: t}\npath: change.yaml\ntarget: {name: a}\n";
    let made = format!(
        "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {{name: b}}\noptions:\n  annotations:\n{}",
        indented(&filled("config.kubernetes.io/function: \"FN\""), 4)
    );
    let replacement = "sourceValue: https://h.example/x\ntargets: [{select: {name: a}, fieldPaths: [files.0, path], options: {create: true}}]\n";
    let home = if nested { "more" } else { "plugins" };
    let at = |name: &str| format!("{home}/{name}");
    let mut variant = Variant::new("reshaped", name, format!("resources: [cm.yaml]\n{list}: [plugins]\n"))
        .program("fn.sh", "#!/bin/sh\nexec /bin/cat\n")
        .chart("charts/web")
        .with(at("kustomization.yaml"), format!("resources: [p.yaml]\n{fields}"))
        .with(at("p.yaml"), configuration);
    if nested {
        variant = variant.with("plugins/kustomization.yaml", "resources: [../more]\n");
    }
    if fields.contains("change.yaml") {
        variant = variant.with(at("change.yaml"), &change_text);
    }
    if fields.contains("components") {
        variant = variant.with(at("c/kustomization.yaml"), component).with(at("c/change.yaml"), &change_text);
    }
    if fields.contains("[t.yaml]") {
        variant = variant.with(at("t.yaml"), transformer).with(at("change.yaml"), &change_text);
    }
    if fields.contains("r.yaml") {
        variant = variant.with(at("r.yaml"), replacement);
    }
    if fields.contains("made.yaml") {
        variant = variant.with(at("made.yaml"), made);
    }
    if fields.contains("conf.yaml") {
        variant = variant.with(at("conf.yaml"), FIELDS);
    }
    if fields.contains("crd.json") {
        variant = variant.with(at("crd.json"), crd(version, kind));
    }
    variant
}

/// Returns a definition in which the path of a configuration is its identity, and the whole of it annotations.
fn crd(version: &str, kind: &str) -> String {
    let property = |extension: &str| serde_json::json!({"type": "string", extension: ""});
    serde_json::json!({format!("x.{version}.{kind}"): {"Schema": {
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "path": property("x-kubernetes-identity"),
            "repo": property("x-kubernetes-identity"),
            "valuesFile": property("x-kubernetes-identity"),
            "files": property("x-kubernetes-annotation"),
        },
        "x-kubernetes-annotation": "",
    }}})
    .to_string()
}
