//! `out-of-scope`: a path that leaves its bounds. A file must be in its kustomization root, a root in the repository
//! and in its scope of the configuration, and a link in the repository. An absolute path is always out of scope: it
//! exists on one machine only.

use super::Context;
use crate::config::PLACEHOLDER;
use crate::graph::{Edge, RootId};
use crate::message::failure::Failure;
use crate::message::finding::{Finding, Rule};
use crate::tree::path;

/// Finds the references that are absolute, or lead out of their bounds.
pub(super) fn find(context: &Context<'_>) -> Vec<Finding> {
    let findings = context.graph.edges().filter_map(|(id, edge)| {
        let failure = absolute_path_failure(context, id.root, edge).or_else(|| beyond_scope(context, id.root, edge))?;
        Some(context.at_reference(Rule::OutOfScope, edge, failure))
    });
    findings.collect()
}

/// The failure of an absolute path into this checkout. The walk refuses other absolute paths, and absolute links.
fn absolute_path_failure(context: &Context<'_>, root: RootId, edge: &Edge) -> Option<Failure> {
    let (graph, text) = (context.graph, edge.reference.text.as_str());
    graph.real_path(edge).filter(|_| path::is_absolute(text)).map(|_| graph.absolute_path_failure(root, text))
}

/// The failure of a reference that leaves the scope of its root in the configuration.
fn beyond_scope(context: &Context<'_>, root: RootId, edge: &Edge) -> Option<Failure> {
    let scope = context.config.scope_of(&context.graph.roots[root].directory)?;
    let real = context.graph.real_path(edge).filter(|real| !path::is_in(real, &scope))?;
    let (text, real, scope) = (&edge.reference.text, path::shown(real), path::shown(&scope));
    let message = format!("`{text}` names `{real}`, outside of the scope `{scope}` that {} sets", context.config.file);
    let failure = Failure::new(message).hint(format!("move the file below `{scope}`"));
    Some(failure.hint(format!("or allow it: # kustomize-localize: allow[{}] {PLACEHOLDER}", Rule::OutOfScope)))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Scene, under_caret};
    use super::*;

    fn scene(text: &str) -> Scene {
        Scene::default()
            .file("app/kustomization.yaml", text)
            .file("shared/x.yaml", "")
            .file("base/kustomization.yaml", "namePrefix: b-\n")
            .file("base/y.yaml", "")
    }

    #[track_caller]
    fn one(scene: Scene) -> Finding {
        scene.one(Rule::OutOfScope)
    }

    #[test]
    fn a_file_outside_of_its_root() {
        let finding = one(scene("resources:\n- ../shared/x.yaml # ours\n"));
        assert_eq!(finding.message, "`../shared/x.yaml` is outside its kustomization root `app`");
        assert!(finding.help[1].ends_with("write `load-restrictor: none` into .kustomize-localize"));
        assert_eq!(under_caret(&finding), "../shared/x.yaml");
        assert_eq!((finding.field.as_str(), finding.span.unwrap().start.line), ("resources[0]", 2));
        assert!(finding.fails());
        // Whether it is there does not matter.
        one(scene("patches: [{path: ../base/gone.yaml}]\n"));
    }

    #[test]
    fn every_field_of_files_is_bounded() {
        for field in [
            "crds: [../shared/x.yaml]",
            "configurations: [../shared/x.yaml]",
            "openapi: {path: ../shared/x.yaml}",
            "patchesStrategicMerge: [../shared/x.yaml]",
            "replacements: [{path: ../shared/x.yaml}]",
            "configMapGenerator: [{name: a, files: [k=../shared/x.yaml]}]",
            "secretGenerator: [{name: a, envs: [../shared/x.yaml]}]",
            "helmCharts: [{name: a, repo: 'https://c.example', valuesFile: ../shared/x.yaml}]",
            "transformers: [../shared/x.yaml]",
        ] {
            let found = scene(&format!("{field}\n")).find(Rule::OutOfScope);
            assert_eq!(found.len(), 1, "{field}");
        }
    }

    #[test]
    fn the_configuration_may_let_files_lie_anywhere_in_the_repository() {
        let none = "load-restrictor: none\n";
        for text in ["../shared/x.yaml", "../base/y.yaml"] {
            let scene = scene(&format!("resources: [{text}]\n")).config(none);
            assert_eq!(scene.check().findings, [], "{text}");
        }
        let out = one(scene("resources: [../../x.yaml]\n").config(none));
        assert_eq!(out.message, "`../../x.yaml` leads out of the repository");
    }

    #[test]
    fn a_root_outside_of_the_repository() {
        for text in ["../../other", "../../app"] {
            let finding = one(scene(&format!("resources: [{text}]\n")));
            assert_eq!(finding.message, format!("`{text}` leads out of the repository"));
            assert_eq!(finding.help, ["copy its target into this repository, or reference it by URL"]);
        }
        one(scene("components: [../../other]\n"));
        for inside in ["../base", "../app/../base/"] {
            let text = format!("resources: [{inside}]\n");
            assert_eq!(scene(&text).check().findings, [], "{inside}");
        }
    }

    #[test]
    fn an_absolute_path() {
        for text in ["resources: [/srv/base]", "components: [/srv/base]", "patches: [{path: /srv/x.yaml}]"] {
            let finding = one(scene(&format!("{text}\n")));
            assert!(finding.message.ends_with("` is an absolute path, which does not exist in other checkouts"));
        }
    }

    #[test]
    fn a_link_that_leaves() {
        let mut link = scene("resources: [x.yaml]\n");
        link.tree.link("app/x.yaml", "../shared/x.yaml");
        let finding = one(link);
        assert_eq!(finding.message, "`x.yaml` is outside its kustomization root `app`");
        let mut out = scene("resources: [x.yaml]\n");
        out.tree.link("app/x.yaml", "/etc/x.yaml");
        let finding = one(out);
        assert_eq!(
            finding.message,
            "`x.yaml` goes through the link `app/x.yaml` to `/etc/x.yaml`, outside of the repository"
        );
        assert_eq!(finding.help, ["replace the link with a copy of its target"]);
        let mut inside = scene("resources: [x.yaml, b]\n");
        inside.tree.link("app/x.yaml", "y.yaml");
        inside.tree.link("app/b", "../base");
        assert_eq!(inside.file("app/y.yaml", "").check().findings, []);
    }

    #[test]
    fn the_scopes_of_the_configuration_apply_to_their_files() {
        let scopes = "scopes: [apps/*, clusters/*]\n";
        let scene = |text: &str| {
            Scene::default()
                .file("apps/web/prod/kustomization.yaml", text)
                .file("apps/web/base/kustomization.yaml", "namePrefix: b-\n")
                .file("apps/api/kustomization.yaml", "namePrefix: b-\n")
                .file("shared/kustomization.yaml", "resources: [../apps/api]\n")
                .config(scopes)
        };
        let finding = one(scene("resources: [../base, ../../api]\n"));
        assert_eq!(
            finding.message,
            "`../../api` names `apps/api`, outside of the scope `apps/web` that .kustomize-localize sets"
        );
        assert_eq!(under_caret(&finding), "../../api");
        one(scene("resources: [../../../shared]\n"));
        let files = "load-restrictor: none\nscopes: [apps/*]\n";
        let file = scene("resources: [../base/x.yaml, ../../api/x.yaml]\n")
            .file("apps/web/base/x.yaml", "")
            .file("apps/api/x.yaml", "")
            .config(files);
        assert_eq!(one(file).reference, "../../api/x.yaml");
    }
}
