//! `remote-reference`: a remote file or root that is neither localized nor locked.
//!
//! An entry of the lock at the top of the tree satisfies the rule, unless `branch` does not look at the root. The
//! references inside a locked upstream are judged by `unlocked_dependency`. The rule also applies below
//! `localized-files`: a build would fetch a URL there.

mod component;

use super::Context;
use super::remotes::RemoteUse;
use crate::graph::RootId;
use crate::message::failure::{Failure, command};
use crate::message::finding::{Finding, Rule};
use crate::record::{LOCK_NAME, stored};
use crate::reference::{self, Pin};
use crate::tree::{LOCK_COMMAND, path};

/// Finds the references that are neither localized nor locked, and the components and patches that objects add by URL.
pub(super) fn find(context: &Context<'_>) -> Vec<Finding> {
    // Each locked reference would look unlocked. The lock itself is a failure of the check.
    if context.broken_lock {
        return Vec::new();
    }
    context
        .remotes
        .iter()
        // An ambiguous one is reported by `unsafe-reference`: locking it is not the fix.
        .filter(|remote| remote.ambiguity.is_none())
        .filter_map(|remote| {
            let failure = match context.left_out(remote.root, &remote.shown()) {
                Some(failure) => failure,
                None => with_hints(context, remote, remote.wanted.not_locked_failure(context.lock())?),
            };
            Some(context.at_reference(Rule::RemoteReference, remote.edge, failure))
        })
        .chain(component::find(context))
        .collect()
}

/// Adds to the failure of an unlocked reference how to lock it or to bring it in.
fn with_hints(context: &Context<'_>, remote: &RemoteUse<'_>, mut failure: Failure) -> Failure {
    let (spec, text) = (remote.repository(), remote.wanted.text.exposed());
    // The failure says already what to write instead, and nothing can be locked before that.
    if spec.is_some_and(|spec| spec.query_dropped) || reference::web_page(text).is_some() {
        return failure;
    }
    // git cannot fetch a short commit id, so the reference cannot be locked as it is.
    if spec.is_none() || remote.pin() != Some(Pin::ShortCommit) {
        failure = failure.hint(format!("keep the URL, and lock it: {LOCK_COMMAND}"));
        if !context.is_owned(context.path(remote.edge.from)) {
            failure = failure.hint(format!("or {}", hint_vendor(context, remote.root)));
        }
    }
    let subgroup = spec.and_then(|_| reference::subgroup_hint(text));
    failure.hints(subgroup.map(|hint| format!("if the repository is in a subgroup, {hint}")))
}

/// The hint how to vendor the references of a root. For a root in localized files it names the root beside them.
pub(super) fn hint_vendor(context: &Context<'_>, root: RootId) -> String {
    let directory = &context.graph.roots[root].directory;
    let within = path::join(directory, LOCK_NAME);
    let directory = stored::localized_dir(&within).map_or(&**directory, path::parent);
    // The command must work in any directory: git runs a hook at the top, but the user may be in a subdirectory.
    format!("vendor it: {}", command("git kustomize-localize vendor", [format!(":/{directory}")]))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{COMMIT, Scene, under_caret};
    use super::*;
    use crate::message::finding::Severity;
    use crate::reference::PLAIN_QUERY;
    use crate::reference::Upstream;

    fn find(scene: Scene) -> Vec<Finding> {
        scene.find(Rule::RemoteReference)
    }

    /// The findings of one entry of `resources`.
    fn resource(text: &str) -> Vec<Finding> {
        find(Scene::of(&format!("resources:\n- {text}\n")))
    }

    const LOCK: &str =
        "keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock";
    const HERE: &str = "or vendor it: git kustomize-localize vendor :/";

    #[test]
    fn a_finding_has_a_message_a_place_and_help() {
        let findings = resource("https://github.com/o/r//base?ref=v1 # ours");
        let [finding] = findings.as_slice() else {
            panic!("{findings:?}");
        };
        assert_eq!(finding.message, "`https://github.com/o/r//base?ref=v1` is neither localized nor locked");
        assert_eq!(finding.help, [LOCK, HERE]);
        assert_eq!((finding.path.as_str(), finding.field.as_str()), ("kustomization.yaml", "resources[0]"));
        assert_eq!(finding.severity, Severity::Error);
        assert_eq!(under_caret(finding), "https://github.com/o/r//base?ref=v1");
        assert_eq!(finding.subject, Upstream::named("https://github.com/o/r//base?ref=v1").subject());
    }

    #[test]
    fn every_field_that_takes_a_remote_is_looked_at() {
        let url = "https://example.com/x.yaml";
        for text in [
            format!("resources: [{url}]"),
            format!("bases: [{url}]"),
            format!("components: ['{url}?ref=v1']").replace("x.yaml", "o/r"),
            format!("crds: [{url}]"),
            format!("configurations: [{url}]"),
            format!("openapi: {{path: {url}}}"),
            format!("patches: [{{path: {url}}}]"),
            format!("patchesStrategicMerge: [{url}]"),
            format!("patchesJson6902: [{{path: {url}, target: {{kind: A, name: b}}}}]"),
            format!("replacements: [{{path: {url}}}]"),
            format!("configMapGenerator: [{{name: a, files: [{url}]}}]"),
            format!("configMapGenerator: [{{name: a, files: [key={url}]}}]"),
            format!("secretGenerator: [{{name: a, envs: [{url}]}}]"),
            format!("secretGenerator: [{{name: a, env: {url}}}]"),
            format!("generators: [{url}]"),
            format!("transformers: [{url}]"),
            format!("validators: [{url}]"),
            format!("helmCharts: [{{name: a, valuesFile: {url}}}]"),
            format!("helmCharts: [{{name: a, additionalValuesFiles: [{url}]}}]"),
            format!(
                "transformers:\n- |\n  apiVersion: builtin\n  kind: PatchTransformer\n  metadata: {{name: a}}\n  path: {url}\n"
            ),
        ] {
            let findings = find(Scene::of(&format!("{text}\n")));
            assert_eq!(findings.len(), 1, "{text}: {findings:?}");
        }
    }

    #[test]
    fn texts_that_are_not_references_are_not_reported() {
        for text in [
            "configMapGenerator: [{name: a, literals: [x=https://example.com/x.yaml]}]",
            "# resources: [https://example.com/x.yaml]\nnamePrefix: a-",
            "commonAnnotations: {home: https://example.com/x.yaml}",
            "resources: [x.yaml, base]\n---\nresources: [https://example.com/x.yaml]",
            "patches: [{patch: 'https://example.com/x.yaml'}]",
        ] {
            let scene = Scene::of(&format!("{text}\n"))
                .file("x.yaml", "see: https://example.com/x.yaml\n")
                .file("base/kustomization.yaml", "namePrefix: b-\n");
            assert_eq!(find(scene), [], "{text}");
        }
    }

    #[test]
    fn messages_name_what_it_is() {
        for text in [
            "https://github.com/o/r",
            "git@github.com:o/r.git?ref=main",
            "ssh://git@host/o/r?ref=v1",
            "github.com/o/r/dir?ref=v1",
            "file:///srv/repo//x?ref=v1",
            "https://github.com/o/r?ref=v1;x",
            "https://example.com/a/b/x.yaml",
            "HTTP://example.com/x.yaml",
            "https://raw.githubusercontent.com/o/r/v1/x",
        ] {
            let findings = resource(text);
            assert_eq!(findings.len(), 1, "{text}");
            assert_eq!(findings[0].message, format!("`{text}` is neither localized nor locked"));
        }
    }

    #[test]
    fn help_fits_what_is_wrong() {
        let help = |text: &str| resource(text).remove(0).help;
        assert_eq!(help("https://github.com/o/r"), [LOCK, HERE]);
        assert_eq!(
            help("https://github.com/o/r?ref=abc1234"),
            ["write the commit id in full, 40 digits: git cannot fetch a short one"]
        );
        assert_eq!(help("https://github.com/o/r?ref=%zz"), [PLAIN_QUERY]);
        assert_eq!(
            help("https://github.com/o/r/blob/main/x.yaml"),
            ["this is a web page; write https://raw.githubusercontent.com/o/r/main/x.yaml"]
        );
        let gitlab = help("https://gitlab.com/g/r/dir?ref=v1");
        assert_eq!(gitlab[..2], [LOCK, HERE]);
        assert!(gitlab[2].starts_with("if the repository is in a subgroup, write `//` after"));
        assert_eq!(help("https://gitlab.com/g/r//dir?ref=v1"), [LOCK, HERE]);
        assert_eq!(help("https://example.com/x.yaml"), [LOCK, HERE]);
        assert_eq!(help("file:///srv/repo//x?ref=v1"), [LOCK, HERE]);
    }

    #[test]
    fn bringing_it_in_names_the_root() {
        let scene = Scene::default()
            .file("-a b/kustomization.yml", "resources: [../base, https://h/x.yaml]\n")
            .file("base/kustomization.yaml", "resources: [../local, https://h/y.yaml]\n")
            .file("local/kustomization.yaml", "generators: [gen.yaml]\n")
            .file(
                "local/gen.yaml",
                "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: a}\nfiles: [https://h/z]\n",
            );
        let findings = find(scene);
        let help: Vec<&str> = findings.iter().map(|one| one.help[1].as_str()).collect();
        let command = "or vendor it: git kustomize-localize vendor";
        let expected = ["':/-a b'", ":/base", ":/local"].map(|root| format!("{command} {root}"));
        assert_eq!(help, expected);
        assert_eq!(findings[2].path, "local/gen.yaml");
    }

    #[test]
    fn an_entry_of_the_lock_fulfils_it() {
        let text = "resources: ['https://github.com/o/r//a?ref=v1', 'https://u:p@example.com/x.yaml?token=abc']\npatches: [{path: https://example.com/p.yaml}]\n";
        let locked = |scene: Scene| {
            scene
                .git("https://github.com/o/r", Some("v1"))
                .http("https://example.com/x.yaml?token=REDACTED")
                .http("https://example.com/p.yaml")
        };
        assert_eq!(find(Scene::of(text)).len(), 3);
        assert_eq!(find(locked(Scene::of(text))), []);
        // The lock decides, until it is locked again: an exception changes nothing.
        let allow = "allow: [{url: github.com/o, refs: any, reason: r}, {url: example.com, refs: any, reason: r}]\n";
        let left = locked(Scene::of(text).config(allow)).check().findings;
        assert_eq!(left.iter().filter(|one| one.rule == Rule::RemoteReference).count(), 0, "{left:?}");
        assert!(left.iter().all(|one| one.rule != Rule::StaleAllow));
    }

    #[test]
    fn an_entry_for_something_else_does_not() {
        for text in [
            "https://github.com/o/r?ref=v2",
            "https://github.com/o/r",
            "https://github.com/o/other?ref=v1",
            "https://github.com/o/r?ref=v1&submodules=false",
        ] {
            let scene = Scene::of(&format!("resources: ['{text}']\n")).git("https://github.com/o/r", Some("v1"));
            assert_eq!(find(scene).len(), 1, "{text}");
        }
        // A file field takes no repository.
        let scene = Scene::of("patches: [{path: https://github.com/o/r}]\n").git("https://github.com/o/r", None);
        assert_eq!(find(scene).len(), 1);
        // Only the lock at the top counts.
        let elsewhere = format!("version: 1\nremotes:\n- {{url: https://github.com/o/r, ref: v1, commit: {COMMIT}}}\n");
        let scene = Scene::of("resources: ['https://github.com/o/r?ref=v1']\n")
            .file("copy/kustomize-localize.lock", &elsewhere);
        assert_eq!(find(scene).len(), 1);
    }

    #[test]
    fn another_directory_of_the_same_commit_was_never_looked_at() {
        let scene =
            Scene::of("resources: ['https://github.com/o/r//x?ref=v1']\n").git("https://github.com/o/r", Some("v1"));
        let findings = find(scene);
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert_eq!(findings[0].message, "`x` of `https://github.com/o/r//x?ref=v1` is not locked");
        assert_eq!(findings[0].help, [LOCK, HERE]);
    }

    #[test]
    fn a_lock_that_cannot_be_read_silences_it() {
        let scene = || {
            Scene::of("resources: ['https://github.com/o/r?ref=v1']\n")
                .file("kustomize-localize.lock", "version: 1\nremotes: x\n")
        };
        let checked = scene().check();
        assert_eq!((checked.findings.len(), checked.failures.len()), (0, 1));
        assert_eq!(checked.status(), 2);
    }

    #[test]
    fn localized_files_are_not_among_the_suggested_paths() {
        let scene = Scene::of("resources: [localized-files/a, https://h/y.yaml]\n")
            .stored("localized-files/a/kustomization.yaml", "resources: [https://h/x.yaml]\n");
        let findings = find(scene);
        assert_eq!(findings.len(), 2);
        assert_eq!(findings[0].help, [LOCK, HERE]);
        assert_eq!(findings[1].help, [LOCK]);
    }

    #[test]
    fn a_repository_of_plugins_is_remote_locked_or_not() {
        for field in ["generators", "transformers", "validators"] {
            for (text, url) in
                [("https://github.com/o/r//gen?ref=v1", "https://github.com/o/r"), ("git@h:o/r?ref=v1", "git@h:o/r")]
            {
                let scene = || Scene::of(&format!("{field}: ['{text}']\n"));
                let findings = find(scene());
                assert_eq!(findings.len(), 1, "{field} {text}");
                assert!(findings[0].message.ends_with("neither localized nor locked"));
                assert_eq!(findings[0].help, [LOCK, HERE]);
                assert_eq!(find(scene().git(url, Some("v1"))), [], "{field} {text}");
            }
        }
        let local = Scene::of("generators: [gen]\n")
            .file("gen/kustomization.yaml", "resources: [a.yaml]\n")
            .file("gen/a.yaml", "");
        assert_eq!(find(local), []);
    }
}
