//! An object adds a component or a patch by URL, which no kustomization contains.

use crate::check::Context;
use crate::message::failure::Failure;
use crate::message::finding::{Finding, Rule};
use crate::message::redact;
use crate::reference::{Upstream, is_remote_file, is_url};
use crate::targets::{LocatedText, Target};
use crate::tree::path;

/// Finds the URLs of components and patches in the objects of all targets.
pub(super) fn find(context: &Context<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    // All targets, wherever they are deployed from: the object that adds the URL is in this repository.
    for target in context.deployed.all() {
        for component in target.build.components() {
            // It counts even if a file has that name, because the engine passes the text to kustomize, which reads a
            // URL.
            let component = &component.text;
            let is_pattern = target.engine.takes_patterns() && may_match_url(&component.text);
            if is_url(&component.text) || is_pattern {
                findings.push(finding(context, target, component, "component"));
            }
        }
        let patches = target.build.patches.iter().filter(|patch| is_remote_file(&patch.text));
        findings.extend(patches.map(|patch| finding(context, target, patch, "patch")));
    }
    findings
}

/// Whether a pattern of Argo CD may match a name that kustomize reads as a URL. Such a name begins with a host or a
/// user, so the part of the pattern before its first wildcard decides.
fn may_match_url(pattern: &str) -> bool {
    const WILDCARDS: [char; 4] = ['*', '?', '[', '\\'];
    // Argo CD cleans the matches; one that leaves the directory stays a path.
    let Some(cleaned) = path::resolve("", pattern).filter(|_| pattern.contains(WILDCARDS)) else {
        return false;
    };
    let first = cleaned.split('/').next().unwrap_or_default();
    first.contains(WILDCARDS) || first.contains(['@', ':']) || first.eq_ignore_ascii_case("github.com")
}

/// The finding for a component or a patch (`kind`) that an object adds by its URL, or by a pattern that may match one.
fn finding(context: &Context<'_>, target: &Target, added: &LocatedText, kind: &str) -> Finding {
    let LocatedText { text, file, position } = added;
    let shown = redact::url(text);
    let is_pattern = kind == "component" && !is_url(text);
    let why = match target.engine {
        _ if is_pattern => "a pattern: kustomize takes some names for URLs",
        // Flux adds it to a kustomization that it generates, which may contain only local components.
        engine if engine.generates() => "which Flux refuses: it must be local and relative",
        _ => "which each build fetches again",
    };
    // Localizing does not edit objects of engines, so the fix is to move it to the kustomization.
    let hint = match kind {
        _ if is_pattern => "begin it with a directory name, or name each component",
        "patch" => "move it to `patches` of the kustomization, where it is localized and locked",
        _ => "move it to `components` of the kustomization, where it is localized and locked",
    };
    let failure = Failure::new(format!("{} adds the {kind} `{shown}`, {why}", target.by())).hint(hint);
    let subject = Upstream::named(&shown).subject();
    Finding { reference: shown, subject, ..context.at_position(Rule::RemoteReference, file, *position, failure) }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::check::testing::{Scene, argo, flux, source, under_caret};

    #[test]
    fn a_component_by_its_url_is_found() {
        let url = "https://user:secret@github.com/acme/parts//tls?ref=v1";
        for (file, engine) in [
            (argo(&format!("path: apps, kustomize: {{components: ['{url}']}}")), "each build"),
            (format!("{}  components:\n  - {url}\n", flux("apps")), "Flux refuses"),
        ] {
            let findings = Scene::default()
                .file("clusters/source.yaml", &source(""))
                .file("clusters/apps.yaml", &file)
                .file("apps/kustomization.yaml", "resources: [x.yaml]\n")
                .file("apps/x.yaml", "")
                .find(Rule::RemoteReference);
            let [finding] = &findings[..] else { panic!("{findings:?}") };
            assert!(finding.message.contains(engine), "{}", finding.message);
            assert!(!format!("{:?}{}", finding.help, finding.message).contains("secret"));
            assert!(under_caret(finding).contains("github.com"), "{finding:?}");
        }
        // Argo CD looks for a directory of that name, and leaves it out.
        let missing = argo(&format!("path: apps, kustomize: {{ignoreMissingComponents: true, components: ['{url}']}}"));
        let scene = Scene::default().file("app.yaml", &missing).file("apps/kustomization.yaml", "namePrefix: a-\n");
        assert_eq!(scene.find(Rule::RemoteReference), []);
    }

    /// The messages and hints about what this object adds to `apps`.
    fn report(object: &str) -> String {
        let findings = Scene::default()
            .file("clusters/source.yaml", &source(""))
            .file("clusters/apps.yaml", object)
            .file("apps/kustomization.yaml", "resources: [x.yaml]\n")
            .file("apps/x.yaml", "")
            .find(Rule::RemoteReference);
        findings.iter().map(|finding| format!("{}\n{}\n", finding.message, finding.help.join("\n"))).collect()
    }

    #[test]
    fn argo_cd_is_told_where_to_move_a_url() {
        expect![[r#"
            Argo CD Application web (clusters/apps.yaml:1) adds the component `https://h.example/o/r?ref=v1`, which each build fetches again
            move it to `components` of the kustomization, where it is localized and locked
        "#]].assert_eq(&report(&argo("path: apps, kustomize: {components: ['https://h.example/o/r?ref=v1']}")));
    }

    #[test]
    fn argo_cd_is_told_that_a_pattern_may_match_a_url() {
        expect![[r#"
            Argo CD Application web (clusters/apps.yaml:1) adds the component `*/o/r`, a pattern: kustomize takes some names for URLs
            begin it with a directory name, or name each component
        "#]].assert_eq(&report(&argo("path: apps, kustomize: {components: ['*/o/r']}")));
    }

    #[test]
    fn flux_is_told_that_it_refuses_a_url() {
        expect![[r#"
            Flux Kustomization apps (clusters/apps.yaml:1) adds the component `https://h.example/o/r?ref=v1`, which Flux refuses: it must be local and relative
            move it to `components` of the kustomization, where it is localized and locked
        "#]].assert_eq(&report(&format!("{}  components: ['https://h.example/o/r?ref=v1']\n", flux("apps"))));
    }

    #[test]
    fn a_patch_by_its_url_moves_to_the_patches() {
        let patch = "path: apps, kustomize: {patches: [{path: 'https://h.example/x.yaml'}]}";
        expect![[r#"
            Argo CD Application web (clusters/apps.yaml:1) adds the patch `https://h.example/x.yaml`, which each build fetches again
            move it to `patches` of the kustomization, where it is localized and locked
        "#]].assert_eq(&report(&argo(patch)));
    }

    #[test]
    fn nothing_else_in_the_object_or_beside_it_hides_it() {
        let added = "path: apps, kustomize: {components: ['https://h.example/o/r?ref=v1']}";
        let patch = "  - {op: add, path: /spec/source/kustomize/namePrefix, value: x}";
        let patched =
            format!("resources: [a.yaml]\npatches:\n- target: {{kind: Application}}\n  patch: |-\n  {patch}\n");
        let once = argo("path: apps")
            + &format!("operation: {{sync: {{source: {{repoURL: 'https://github.com/acme/fleet', {added}}}}}}}\n");
        for (kustomization, object) in
            [("resources: [a.yaml]\n", argo(added)), (&patched, argo(added)), ("resources: [a.yaml]\n", once)]
        {
            let found = Scene::default()
                .file("clusters/source.yaml", &source(""))
                .file("c/kustomization.yaml", kustomization)
                .file("c/a.yaml", &object)
                .file("apps/kustomization.yaml", "resources: [x.yaml]\n")
                .file("apps/x.yaml", "")
                .find(Rule::RemoteReference);
            assert_eq!(found.len(), 1, "{kustomization}\n{object}\n{found:?}");
        }
    }

    #[test]
    fn a_directory_of_that_name_does_not_hide_it() {
        let text = "[github.com/o/r, 'git@h:o/r', '*/*/*', './g?thub.com/o/r', '[g]it@h:o/*', './github.com/o/*', 'x/../github.com/*/r', './/git*/o/r', 'git@h:o/*']";
        for object in [
            argo(&format!("path: apps, kustomize: {{components: {text}}}")),
            format!("{}  components: {text}\n", flux("apps")),
        ] {
            let mut scene = Scene::default()
                .file("clusters/source.yaml", &source(""))
                .file("clusters/apps.yaml", &object)
                .file("apps/kustomization.yaml", "resources: [x.yaml]\n")
                .file("apps/x.yaml", "");
            for directory in ["github.com/o/r", "git@h:o/r"] {
                let part = "kind: Component\nnamePrefix: a-\n";
                scene = scene.file(&format!("apps/{directory}/kustomization.yaml"), part);
            }
            let found = scene.find(Rule::RemoteReference);
            // Flux knows no patterns.
            let count = if object.contains("argoproj") { 9 } else { 3 };
            assert_eq!(found.len(), count, "{found:?}");
        }
    }

    #[test]
    fn what_only_an_application_elsewhere_reads_is_found_once() {
        let url = "https://h.example/o/r?ref=v1";
        let added = format!("kustomize:\n  components:\n  - {url}\n  patches: [{{path: {url}}}, {{path: x.yaml}}]\n");
        let app = argo("path: apps");
        for (file, object, count) in [
            ("apps/.argocd-source.yaml", None, 2),
            ("apps/.argocd-source-other.yaml", None, 2),
            ("apps/.argocd-source-other.yaml", Some(&app), 2),
            ("apps/.argocd-source-apps.yaml", Some(&app), 2),
            ("apps/.argocd-source.yaml", Some(&app), 2),
            ("apps/.argocd-sources.txt", None, 0),
        ] {
            let mut scene = Scene::default().file(file, &added);
            if let Some(object) = object {
                scene = scene.file("clusters/source.yaml", &source("")).file("clusters/apps.yaml", object);
            }
            scene = scene.file("apps/kustomization.yaml", "resources: [x.yaml]\n").file("apps/x.yaml", "");
            let found = scene.find(Rule::RemoteReference);
            assert_eq!(found.len(), count, "{file}: {found:?}");
        }
        let respelled = Scene::default().file("apps/.argocd-source.yaml", &added.replace("components", "Components"));
        assert_eq!(respelled.find(Rule::InvalidTarget).len(), 1);
    }

    #[test]
    fn a_path_is_none() {
        let text = argo("path: apps, kustomize: {components: [../parts/tls, '../parts/*', 'parts/*', parts]}");
        let findings = Scene::default()
            .file("a.yaml", &text)
            .file("apps/kustomization.yaml", "resources: [x.yaml]\n")
            .file("apps/x.yaml", "")
            .find(Rule::RemoteReference);
        assert!(findings.is_empty(), "{findings:?}");
    }
}
