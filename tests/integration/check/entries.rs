//! `check`: empty entries, and the built-in plugins. Each case is built by the real kustomize, too.

use super::kustomize::Is::{self, Clean, Found};
use super::kustomize::agree;

const INVALID: Is = Found("invalid-kustomization");

/// What kustomize needs of each built-in plugin to load it; whether it generates.
const BUILT_IN: [(&str, bool, &str); 18] = [
    ("AnnotationsTransformer", false, ""),
    ("ConfigMapGenerator", true, ""),
    ("HashTransformer", false, ""),
    ("HelmChartInflationGenerator", true, "name: c"),
    (
        "IAMPolicyGenerator",
        true,
        "cloud: gke\nkubernetesService: {namespace: a, name: b}\nserviceAccount: {name: c, projectId: d}",
    ),
    ("ImageTagTransformer", false, ""),
    ("LabelTransformer", false, ""),
    ("NamespaceTransformer", false, ""),
    (
        "PatchJson6902Transformer",
        false,
        "jsonOp: '[{\"op\": \"add\", \"path\": \"/metadata/labels\", \"value\": {}}]'\ntarget: {kind: ConfigMap, name: app}",
    ),
    ("PatchStrategicMergeTransformer", false, "paths: [patch.yaml]"),
    ("PatchTransformer", false, "path: patch.yaml"),
    ("PrefixSuffixTransformer", false, "prefix: a-\nsuffix: -b\nfieldSpecs: [{path: metadata/name}]"),
    ("PrefixTransformer", false, "prefix: a-\nfieldSpecs: [{path: metadata/name}]"),
    ("ReplacementTransformer", false, ""),
    (
        "ReplicaCountTransformer",
        false,
        "replica: {name: app, count: 1}\nfieldSpecs: [{path: spec/replicas, kind: ConfigMap, create: true}]",
    ),
    ("SecretGenerator", true, ""),
    ("SuffixTransformer", false, "suffix: -b\nfieldSpecs: [{path: metadata/name}]"),
    ("ValueAddTransformer", false, "value: a\ntargets: [{selector: {kind: ConfigMap}, fieldPath: data/a}]"),
];

/// A kustomization with this configuration inline.
fn inline(field: &str, kind: &str, more: &str) -> String {
    let plugin = format!("apiVersion: builtin\nkind: {kind}\nmetadata: {{name: x}}\n{more}");
    let plugin = plugin.replace('\n', "\n  ");
    format!("resources: [map.yaml]\n{field}:\n- |\n  {plugin}\n")
}

#[test]
fn built_in_plugins_are_those_that_kustomize_loads() {
    let mut cases = Vec::new();
    for (kind, generates, more) in BUILT_IN {
        let right = if generates { "generators" } else { "transformers" };
        // Without helm it is not built.
        if kind != "HelmChartInflationGenerator" {
            cases.push((inline(right, kind, more), Clean));
        }
    }
    // A later kustomize may know it, and a file that it names.
    cases.push((inline("transformers", "NothingTransformer", ""), INVALID));
    agree(&cases);
}

const MAP: &str = "resources: [map.yaml]\n";

#[test]
fn empty_entries_are_found_where_kustomize_refuses_them() {
    let mut cases = Vec::new();
    for empty in ["''", "~", ""] {
        for field in ["configurations", "crds"] {
            cases.push((format!("{MAP}{field}:\n- {empty}\n"), INVALID));
        }
        for field in ["files", "envs"] {
            for generator in ["configMapGenerator", "secretGenerator"] {
                cases.push((format!("{generator}:\n- name: a\n  {field}:\n  - {empty}\n"), INVALID));
            }
            let list = format!("{field}:\n- {empty}");
            cases.push((inline("generators", "ConfigMapGenerator", &list), INVALID));
        }
        let patch = "patches: '{apiVersion: v1, kind: ConfigMap, metadata: {name: app}}'";
        let more = format!("paths: [{empty}]\n{patch}");
        cases.push((inline("transformers", "PatchStrategicMergeTransformer", &more), Clean));
        let path = format!("path: {empty}");
        let patch = "patch: '{apiVersion: v1, kind: ConfigMap, metadata: {name: app}}'";
        cases.extend([
            // Optional fields may be empty.
            (format!("{MAP}patches:\n- {path}\n  {patch}\n"), Clean),
            (format!("{MAP}configMapGenerator:\n- name: a\n  env: {empty}\n"), Clean),
            (format!("{MAP}transformers:\n- {empty}\n"), Clean),
            (
                format!("{MAP}patchesStrategicMerge:\n- {empty}\n- patch.yaml\n"),
                Clean,
            ),
            (
                format!("{MAP}replacements:\n- {path}\n  sourceValue: a\n  targets: [{{select: {{kind: ConfigMap}}, fieldPaths: [metadata.name]}}]\n"),
                Clean,
            ),
        ]);
    }
    cases.push((format!("{MAP}openapi: {{}}\n"), Clean));
    agree(&cases);
}

#[test]
fn paths_that_a_generator_plugin_ignores_are_not_missing() {
    agree(&[
        (inline("generators", "ConfigMapGenerator", "env: gone"), Clean),
        (inline("generators", "SecretGenerator", "env: gone"), Clean),
        (inline("generators", "SecretGenerator", "envs: [gone]"), Found("missing-path")),
    ]);
}
