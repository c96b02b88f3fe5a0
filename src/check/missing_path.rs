//! `missing-path`: a path that does not exist in the checked files, a directory without a kustomization, or a missing
//! chart.
//!
//! Most often the file is on disk, but was never added: the build works here and nowhere else.

use std::cell::LazyCell;

use super::Context;
use super::deployed::DeployedTargets;
use crate::graph::ChartLookup;
use crate::kustomization::NoteKind;
use crate::message::failure::Failure;
use crate::message::finding::{Finding, Rule};
use crate::record::LoadRestrictor;
use crate::tree::{self, Resolved, path};

/// Finds charts of the tree whose `values.yaml` kustomize cannot read, because it is missing (`missing-path`) or
/// outside of the root (`out-of-scope`). The walk reports the other missing paths.
pub(super) fn find(context: &Context<'_>) -> Vec<Finding> {
    // As in the walk, a target counts whatever the paths of the check are.
    let deployed = || DeployedTargets::new(context.deployed.targets, context.graph, &[]);
    let unrestricted = LazyCell::new(|| deployed().unrestricted());
    let charts = context.graph.charts.iter().filter_map(|chart| {
        let noted = &context.graph.notes[chart.note];
        let (ChartLookup::There(directory), name) = (&chart.lookup, &chart.name) else { return None };
        // kustomize reads the `values.yaml` of a chart only if the reference names no other file, and does not replace
        // the values.
        if let NoteKind::Chart { values_file: true, .. } = &noted.note.kind {
            return None;
        }
        let path = path::join(directory, "values.yaml");
        // kustomize applies the restrictor to the values of a chart like to any other file.
        let root = &context.graph.roots[chart.root].directory;
        let is_loaded = |real: &str| {
            path::is_in(path::parent(real), root)
                || context.config.load_restrictor == LoadRestrictor::None
                || unrestricted.contains(root)
        };
        // An error is dropped: the walk has listed the chart, so a tree that cannot be read is a failure already.
        let (rule, failure) = match tree::resolve(context.tree, &path).ok()? {
            Resolved::File { path: real, .. } if is_loaded(&real) => return None,
            Resolved::File { .. } | Resolved::Leaves { .. } => {
                let message =
                    format!("`{path}`, the values of the chart `{name}`, is outside of its kustomization root");
                (Rule::OutOfScope, Failure::new(message).hint("name a `valuesFile` below the kustomization root"))
            }
            _ => {
                let message = format!("`{path}` does not exist, but kustomize reads it for the chart `{name}`");
                let failure = Failure::new(message).hint("add it; it may be empty");
                (Rule::MissingPath, failure.hint("or name a `valuesFile` below the kustomization root"))
            }
        };
        Some(Finding { reference: name.clone(), ..context.at_note(rule, noted, failure) })
    });
    charts.collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Scene, under_caret};
    use super::*;

    fn scene(text: &str) -> Scene {
        Scene::default()
            .file("app/kustomization.yaml", text)
            .file("app/there.yaml", "")
            .file("base/kustomization.yaml", "namePrefix: b-\n")
            .file("files/x.yaml", "")
    }

    #[track_caller]
    fn one(scene: Scene) -> Finding {
        scene.one(Rule::MissingPath)
    }

    #[test]
    fn a_path_that_names_nothing() {
        let finding = one(scene("resources:\n- there.yaml\n- gone.yaml # why\n"));
        assert_eq!(finding.message, "there is no `app/gone.yaml`");
        assert_eq!(finding.help, ["add it, or remove the reference"]);
        assert_eq!(under_caret(&finding), "gone.yaml");
        assert_eq!(finding.field, "resources[1]");
        assert!(finding.fails());
    }

    #[test]
    fn what_kustomize_does_not_expand_is_said() {
        for (text, help) in [
            ("./*.yaml", "list each file: kustomize expands no pattern"),
            ("$HOME/x", "write the path: kustomize expands neither `~` nor variables"),
            ("~/x", "write the path: kustomize expands neither `~` nor variables"),
            (r"..\x", "separate names by `/`"),
            (
                "gitlab.com/o/r//d?ref=v1",
                "kustomize knows only github.com without a scheme: write https://gitlab.com/o/r//d?ref=v1",
            ),
        ] {
            assert_eq!(one(scene(&format!("resources: ['{text}']\n"))).help, [help]);
        }
    }

    #[test]
    fn every_field_is_looked_at() {
        for field in [
            "resources: [gone]",
            "bases: [../gone]",
            "components: [../gone]",
            "crds: [gone]",
            "configurations: [gone]",
            "openapi: {path: gone}",
            "patches: [{path: gone}]",
            "patchesStrategicMerge: [gone]",
            "patchesJson6902: [{path: gone, target: {kind: A, name: b}}]",
            "replacements: [{path: gone}]",
            "configMapGenerator: [{name: a, files: [gone]}]",
            "configMapGenerator: [{name: a, files: [key=gone]}]",
            "secretGenerator: [{name: a, envs: [gone]}]",
            "secretGenerator: [{name: a, env: gone}]",
            "generators: [gone]",
            "transformers: [gone]",
            "validators: [gone]",
            "transformers:\n- |\n  apiVersion: builtin\n  kind: PatchTransformer\n  metadata: {name: a}\n  path: gone",
        ] {
            let caret = under_caret(&one(scene(&format!("{field}\n"))));
            assert!(caret.contains("gone"), "{field}");
        }
    }

    #[test]
    fn paths_listed_in_the_configuration_may_be_missing() {
        let plugin =
            "transformers:\n- |\n  apiVersion: builtin\n  kind: PatchTransformer\n  metadata: {name: a}\n  path: gone";
        for field in [
            "resources: [gone]",
            "components: [../app/gone]",
            "secretGenerator: [{name: a, envs: [gone]}]",
            "helmGlobals: {chartHome: .}\nhelmCharts: [{name: gone}]",
            plugin,
        ] {
            let listed = |path: &str| {
                let config = format!("allow:\n- {{path: {path}, reason: r}}\n");
                scene(&format!("{field}\n")).file(".kustomize-localize", &config).config(&config)
            };
            for path in ["'*/gone'", "app/gone"] {
                let findings = listed(path).check().findings;
                assert_eq!(findings.len(), 1, "{field} {findings:?}");
                assert!(findings[0].allowed.is_some(), "{field}");
            }
            // An entry without a missing path is stale.
            let findings = listed("gone").check().findings;
            let rules: Vec<Rule> = findings.iter().map(|finding| finding.rule).collect();
            assert_eq!(rules, [Rule::StaleAllow, Rule::MissingPath], "{field}");
            assert_eq!(findings[0].message, "unused exception: `gone` matches no finding");
            assert_eq!(under_caret(&findings[0]), "{path: gone, reason: r}");
        }
    }

    #[test]
    fn a_missing_path_of_a_plugin_configuration_is_reported_once() {
        let plugin = "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: a}\npath: gone.yaml\n";
        let mut scene = Scene::default();
        // Both name the same file, which is relative to each of them.
        for root in ["one", "two"] {
            scene = scene.file(&format!("{root}/kustomization.yaml"), "transformers: [t]\n");
            scene.tree.link(&format!("{root}/t"), "t.yaml");
            scene = scene.file(&format!("{root}/t.yaml"), plugin);
        }
        let findings = scene.check().findings;
        let told: Vec<(&str, &str)> = findings.iter().map(|one| (one.path.as_str(), one.message.as_str())).collect();
        assert_eq!(
            told,
            [("one/t.yaml", "there is no `one/gone.yaml`"), ("two/t.yaml", "there is no `two/gone.yaml`")]
        );
    }

    #[test]
    fn a_directory_without_a_kustomization() {
        let finding = one(scene("resources: [../files]\n"));
        assert_eq!(finding.message, "no kustomization in `files`");
        assert_eq!(finding.help, ["add a `kustomization.yaml` to it, or name its files one by one"]);
        assert_eq!(one(scene("components: [..]\n")).message, "no kustomization in `.`");
    }

    #[test]
    fn a_similar_path_is_suggested() {
        for (text, meant) in [
            ("resources: [there.yml]", Some("there.yaml")),
            ("resources: [there]", None),
            ("patches: [{path: there.yml}]", Some("there.yaml")),
            ("resources: [base]", None),
            ("resources: [thre.yaml]", Some("there.yaml")),
            ("resources: [../app/thare.yaml]", Some("there.yaml")),
            ("patches: [{path: There.yaml}]", Some("there.yaml")),
            ("resources: [../bases/]", Some("../base")),
            ("components: [../bsae]", Some("../base")),
            ("resources: [../file]", Some("../files")),
            ("resources: [x/there.yaml]", None),
            ("resources: [../../app/../base]", None),
            ("resources: [../../base]", None),
            ("resources: [gone.yml]", None),
            ("components: [there]", None),
            ("resources: [../app.yaml]", None),
        ] {
            let findings = scene(&format!("{text}\n")).find(Rule::MissingPath);
            let help = findings.first().and_then(|one| one.help.first());
            let meant = meant.map(|meant| format!("did you mean `{meant}`?"));
            let said = help.filter(|help| help.starts_with("did"));
            assert_eq!(said, meant.as_ref(), "{text}");
        }
    }

    #[test]
    fn links_that_lead_nowhere() {
        let mut scene = scene("resources: [link.yaml, dir/x.yaml]\n");
        scene.tree.link("app/link.yaml", "gone.yaml");
        scene.tree.link("app/dir", "../gone");
        let told: Vec<String> = scene.find(Rule::MissingPath).into_iter().map(|one| one.message).collect();
        assert_eq!(told, ["there is no `app/gone.yaml`", "there is no `gone/x.yaml`"]);
    }

    #[test]
    fn existing_paths_and_non_paths_are_not_reported() {
        for text in [
            "resources: [there.yaml, ./there.yaml, ../base, ../base/]",
            "configMapGenerator: [{name: a, literals: [gone=gone.yaml]}]",
            "patches: [{patch: gone.yaml}]",
            "patchesStrategicMerge: ['{kind: A, apiVersion: b, metadata: {name: gone.yaml}}']",
            "resources: []\n---\nresources: [gone.yaml]",
        ] {
            assert_eq!(scene(&format!("{text}\n")).find(Rule::MissingPath), [], "{text}");
        }
    }
}
