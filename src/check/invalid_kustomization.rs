//! `invalid-kustomization`: a kustomization or plugin configuration that `kustomize build` refuses and, as warnings,
//! parts of it that kustomize ignores.
//!
//! A problem is reported once, in the file itself, however many references lead to it.

use super::Context;
use crate::kustomization::NoteKind;
use crate::message::failure::Failure;
use crate::message::finding::{Finding, Rule};

/// Finds the parts that kustomize ignores. The walk reports the parts that kustomize refuses.
pub(super) fn find(context: &Context<'_>) -> Vec<Finding> {
    let findings = context.graph.notes.iter().filter_map(|noted| {
        let failure = match noted.note.kind {
            NoteKind::ExtraDocument => Failure::new("kustomize reads only the first document, not this one")
                .hint("remove it, or put it into a kustomization of its own"),
            NoteKind::Replaced { line } => Failure::new(format!("kustomize ignores this key: line {line} repeats it"))
                .hint(format!("remove it, or merge it into line {line}")),
            _ => return None,
        };
        // A build succeeds, so that this cannot be an error.
        Some(context.at_note(Rule::InvalidKustomization, noted, failure).warning())
    });
    findings.collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Scene, flux as flux_to, source, under_caret};
    use super::*;

    const RULE: Rule = Rule::InvalidKustomization;
    use crate::message::finding::Severity;

    fn told(scene: Scene) -> Vec<(String, usize, String)> {
        let findings = scene.check().findings;
        assert!(findings.iter().all(|finding| finding.rule == RULE), "{findings:?}");
        findings.into_iter().map(|one| (one.path, one.span.map_or(0, |span| span.start.line), one.message)).collect()
    }

    #[track_caller]
    fn one(scene: Scene) -> Finding {
        let mut findings = scene.check().findings;
        assert_eq!(findings.len(), 1, "{findings:?}");
        let finding = findings.remove(0);
        assert_eq!(finding.rule, RULE);
        assert!(!finding.help.is_empty());
        finding
    }

    #[test]
    fn an_error_in_a_file_is_reported_at_its_place() {
        for (text, caret, message) in [
            ("# x\nresource: [x.yaml] # y\n", "resource: [x.yaml]", "unknown field `resource`"),
            ("resources:\n- 7 # y\n", "7", "expected a string, found a number"),
            ("kind: Deployment\nnamePrefix: a-\n", "Deployment", "expected `kind: Kustomization`, found `Deployment`"),
            (
                "apiVersion: v1\nnamePrefix: a-\n",
                "v1",
                "expected `apiVersion: kustomize.config.k8s.io/v1beta1`, found `v1`",
            ),
        ] {
            let finding = one(Scene::of(text));
            assert_eq!(under_caret(&finding), caret);
            assert_eq!(finding.message, message);
            assert!(finding.fails());
        }
        let hinted = one(Scene::of("resource: [x.yaml]\n"));
        assert_eq!(hinted.help, ["did you mean `resources`?"]);
        let broken = one(Scene::of("resources:\n- a\n b: [\n"));
        assert!(broken.message.starts_with("not valid YAML: "), "{broken:?}");
        assert!(broken.span.is_some());
        assert_eq!(broken.help, ["fix it: `kustomize build` refuses it"]);
        let template = one(Scene::of("resources:\n{{- range .all }}\n- {{ . }}\n{{- end }}\n"));
        assert_eq!(template.help, ["if it is a template, list its directory below `exclude:` in .kustomize-localize"]);
    }

    #[test]
    fn an_empty_file_is_meant_as_a_whole() {
        for text in ["", "# nothing\n", "kind: Kustomization\n", "{}\n"] {
            let finding = one(Scene::of(text));
            assert_eq!(finding.message, "kustomization.yaml is empty", "{text}");
            assert_eq!(finding.span, None);
        }
        assert_eq!(told(Scene::of("resources: []\n")), []);
    }

    #[test]
    fn a_file_is_reported_once_however_many_references_lead_to_it() {
        let scene = Scene::default()
            .file("a/kustomization.yaml", "resources: [../base]\n")
            .file("b/kustomization.yaml", "resources: [../base, ../two]\n")
            .file("c/kustomization.yaml", "components: [../base]\n")
            .file("base/kustomization.yaml", "resource: []\n")
            .file("two/kustomization.yaml", "namePrefix: a-\n")
            .file("two/Kustomization", "namePrefix: a-\n");
        assert_eq!(
            told(scene),
            [
                ("base/kustomization.yaml".into(), 1, "unknown field `resource`".into()),
                (
                    "two/kustomization.yaml".into(),
                    0,
                    "`two` contains several kustomizations: `kustomization.yaml`, `Kustomization`".into()
                ),
            ]
        );
    }

    #[test]
    fn a_directory_is_not_a_kustomization() {
        let scene = Scene::default()
            .file("a/kustomization.yaml", "resources: [../base]\n")
            .file("base/kustomization.yaml/x", "");
        assert_eq!(
            told(scene),
            [(
                "base/kustomization.yaml".into(),
                0,
                "`base/kustomization.yaml` is not a file in its directory: kustomize finds no kustomization".into()
            )]
        );
    }

    #[test]
    fn one_of_several_files_is_kept() {
        let scene = Scene::of("namePrefix: a-\n")
            .file("kustomization.yml", "namePrefix: a-\n")
            .file("Kustomization", "namePrefix: a-\n");
        assert_eq!(one(scene).help, ["keep only one: `kustomize build` refuses several"]);
        // Only reached by a reference.
        let mut part = Scene::default()
            .file("a/kustomization.yaml", "resources: [../b]\n")
            .file("b/kustomization.yaml", "namePrefix: a-\n")
            .file("b/kustomization.yml", "namePrefix: a-\n");
        part.paths = vec!["a".into()];
        assert_eq!(one(part).path, "b/kustomization.yaml");
    }

    #[test]
    fn an_error_in_a_reference_is_reported_at_its_place() {
        let scene = |text: &str| {
            Scene::default()
                .file("a/kustomization.yaml", text)
                .file("a/x.yaml", "")
                .file("a/dir/y.yaml", "")
                .file("base/kustomization.yaml", "namePrefix: a-\n")
                .file("component/kustomization.yaml", "kind: Component\nnamePrefix: a-\n")
        };
        for (text, caret) in [
            ("resources: [../component]", "../component"),
            ("components: [../base]", "../base"),
            ("components: [x.yaml]", "x.yaml"),
            ("patches: [{path: dir}]", "dir"),
            ("configMapGenerator: [{name: a, files: [dir]}]", "dir"),
        ] {
            let finding = one(scene(&format!("{text}\n")));
            assert_eq!(under_caret(&finding), caret, "{text}");
        }
        let valid = "resources: [x.yaml, ../base]\ncomponents: [../component]\n";
        assert_eq!(told(scene(valid)), []);
        let mut looped = scene("resources: [one.yaml]\n");
        looped.tree.link("a/one.yaml", "two.yaml");
        looped.tree.link("a/two.yaml", "one.yaml");
        assert_eq!(under_caret(&one(looped)), "one.yaml");
    }

    #[test]
    fn a_link_that_kustomize_does_not_follow() {
        for target in ["gone.yaml", "../other/k.yaml", "/etc/k.yaml", "dir"] {
            let mut scene = Scene::default()
                .file("a/kustomization.yaml", "resources: [../b]\n")
                .file("b/dir/x", "")
                .file("other/k.yaml", "namePrefix: a-\n");
            scene.tree.link("b/kustomization.yaml", target);
            let finding = one(scene);
            assert_eq!(finding.path, "b/kustomization.yaml");
            let message = "`b/kustomization.yaml` is not a file in its directory: kustomize finds no kustomization";
            assert_eq!(finding.message, message, "{target}");
        }
        let mut inside = Scene::default().file("b/k.yaml", "namePrefix: a-\n");
        inside.tree.link("b/kustomization.yaml", "k.yaml");
        assert_eq!(told(inside), []);
        let mut beside = Scene::default().file("b/kustomization.yml", "namePrefix: a-\n");
        beside.tree.link("b/kustomization.yaml", "gone.yaml");
        assert_eq!(told(beside), []);
    }

    #[test]
    fn an_object_of_flux_is_refused_where_a_root_is_meant() {
        let flux = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nspec: {path: ./x}\n";
        let scene = || Scene::default().file("flux/kustomization.yaml", flux);
        assert_eq!(told(scene()), []);
        let listed = scene().file("kustomization.yaml", "resources: [flux/kustomization.yaml]\n");
        assert_eq!(told(listed), []);
        let meant = scene().file("kustomization.yaml", "resources: [flux]\n");
        let findings = meant.check().findings;
        assert!(!findings.is_empty());
        assert!(findings.iter().all(|one| one.rule == RULE && one.path == "flux/kustomization.yaml"));
        assert!(findings.iter().any(|one| one.message.starts_with("expected `apiVersion: ")), "{findings:?}");
        for (path, expected) in [("./elsewhere", 0), ("./flux", 2)] {
            let deployed = scene().file("clusters/source.yaml", &source("")).file("clusters/sync.yaml", &flux_to(path));
            let found = deployed.find(RULE);
            assert_eq!(found.len(), expected, "{path}: {found:?}");
            assert!(found.iter().all(|finding| finding.path == "flux/kustomization.yaml"), "{found:?}");
        }
    }

    #[test]
    fn misleading_yaml_is_a_warning() {
        let second = one(Scene::of("namePrefix: a-\n---\nnamePrefix: b-\n"));
        assert_eq!(second.severity, Severity::Warning);
        assert_eq!(second.message, "kustomize reads only the first document, not this one");
    }
    #[test]
    fn a_key_twice_is_an_error_where_it_hides_a_reference() {
        let replaced = one(Scene::of("namePrefix: a-\nnamePrefix: b-\n"));
        assert_eq!((replaced.severity, replaced.unread), (Severity::Warning, false));
        assert_eq!(replaced.message, "kustomize ignores this key: line 2 repeats it");
        assert_eq!((&*replaced.field, under_caret(&replaced)), ("namePrefix", "namePrefix: a-".to_owned()));
        let hidden = one(Scene::of("resources: [x.yaml]\nresources: []\n"));
        assert!(hidden.fails() && hidden.unread);
        assert_eq!(hidden.message, "kustomize ignores this `resources`: line 2 repeats it");
        assert_eq!(hidden.help, ["merge it into line 2, or remove it"]);
    }
}
