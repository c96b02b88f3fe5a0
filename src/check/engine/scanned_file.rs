//! Flux generates a kustomization for a directory without one, and a file in the directory makes its build fail.

use crate::check::Context;
use crate::check::deployed::LocalTarget;
use crate::kustomization::{KustomizationKind, count_objects};
use crate::message::failure::{Failure, Result};
use crate::message::finding::{Finding, Rule};
use crate::targets::PathContent;
use crate::tree::path;

/// Finds files that Flux would list in a kustomization that it generates, and that make its build fail.
pub(super) fn find(context: &Context<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for local in context.deployed.local.iter().filter(|local| local.target.engine.generates()) {
        if let PathContent::Directory(directory) = &local.directory.content {
            findings.extend(context.value_or_failure(scan(context, local, directory)).into_iter().flatten());
        }
    }
    findings
}

/// The findings for a target whose `directory` has no kustomization: Components and files without objects in it, which
/// Flux would list as resources of the kustomization that it generates.
fn scan(context: &Context<'_>, local: &LocalTarget<'_>, directory: &str) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for root in local.target.walked(local.directory, context.graph) {
        let root = &context.graph.roots[root];
        // A Component outside of the directory is one that the object itself adds.
        if root.kind == Some(KustomizationKind::Component) && path::is_in(&root.directory, directory) {
            findings.push(finding(local, directory, context.path(root.file), "Component for a resource"));
        }
    }
    for file in local.directory.scanned.iter().filter(|file| !file.is_root) {
        // Flux accepts a file without any object.
        if let Err(why) = count_objects(&context.tree.read(&file.path)?) {
            findings.push(finding(local, directory, &file.path, &format!("file for an object: {why}")));
        }
    }
    Ok(findings)
}

/// The finding for a file that a target takes for something else.
fn finding(local: &LocalTarget<'_>, directory: &str, file: &str, taken: &str) -> Finding {
    let (by, directory) = (local.target.by(), path::shown(directory));
    let failure = Failure::new(format!("{by} generates a kustomization for `{directory}`, and takes this {taken}"))
        .hint("add a kustomization that names the files to build")
        .hint("or leave the file out of the artifact: a line in `.sourceignore`");
    Finding::new(Rule::Engine, file, failure).about(local.target.name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::testing::{Scene, flux, source};

    fn found(files: &[(&str, &str)]) -> Vec<(String, String)> {
        let mut scene = Scene::default()
            .file("clusters/source.yaml", &source(""))
            .file("clusters/apps.yaml", &flux("./apps"))
            .file("apps/pod.yaml", "kind: Pod\napiVersion: v1\nmetadata: {name: a}\n");
        for (path, text) in files {
            scene = scene.file(path, text);
        }
        let findings = scene.find(Rule::Engine).into_iter();
        findings
            .map(|finding| {
                let (_, why) = finding.message.split_once("`apps`, and takes this ").unwrap();
                (finding.path, why.to_owned())
            })
            .collect()
    }

    #[test]
    fn what_is_no_object_is_found_where_flux_generates() {
        for (file, text, expected) in [
            ("apps/values.yaml", "a: b\n", Some("file for an object: an object without `kind` (line 1)")),
            ("apps/deep/.hidden.yml", "- a\n", Some("file for an object: expected an object, found a list (line 1)")),
            (
                "apps/part/kustomization.yaml",
                "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nnamePrefix: a-\n",
                Some("Component for a resource"),
            ),
            // Flux reads these, and accepts them.
            ("apps/empty.yaml", "# nothing\n", None),
            ("apps/x.yaml", "kind: Pod\nmetadata: {name: b}\n---\n", None),
            // Flux does not read these.
            ("apps/x.json", "[]", None),
            ("apps/web/kustomization.yaml", "resources: [x.yaml]\n", None),
            ("other/values.yaml", "a: b\n", None),
            (".sourceignore", "*.md\n", None),
            ("apps/.sops.yaml", "creation_rules: []\n", None),
        ] {
            let found = found(&[(file, text)]);
            let expected: Vec<(String, String)> =
                expected.map(|why| (file.to_owned(), why.to_owned())).into_iter().collect();
            assert_eq!(found, expected, "{file}");
        }
        let inside = [
            ("apps/web/kustomization.yaml", "resources: [x.yaml]\n"),
            ("apps/web/x.yaml", "kind: Pod\nmetadata: {name: b}\n"),
            ("apps/web/localized-files/values.yaml", "a: b\n"),
        ];
        assert!(found(&inside).is_empty());
        let ignored = [(".sourceignore", "values.yaml\n"), ("apps/values.yaml", "a: b\n")];
        assert!(found(&ignored).is_empty());
        let own = [("apps/kustomization.yaml", "resources: [pod.yaml]\n"), ("apps/values.yaml", "a: b\n")];
        assert!(found(&own).is_empty());
    }

    #[test]
    fn the_head_of_a_file_allows_it_and_no_other_place() {
        let comment = |rule: &str| format!("# kustomize-localize: allow[{rule}] on trial\n");
        for (text, stale) in [
            (format!("{}a: b\n", comment("engine")), None),
            (format!("a: b\n{}", comment("engine")), Some(2)),
            (format!("{}a: b\n", comment("cycle")), Some(1)),
        ] {
            let scene = || {
                Scene::default()
                    .file("clusters/source.yaml", &source(""))
                    .file("clusters/apps.yaml", &flux("./apps"))
                    .file("apps/values.yaml", &text)
            };
            let found = scene().find(Rule::Engine);
            assert_eq!(found[0].fails(), stale.is_some(), "{text}");
            let told = scene().find(Rule::StaleAllow);
            let line = told.first().map(|one| one.span.unwrap().start.line);
            assert_eq!(line, stale, "{text}");
        }
    }
}
