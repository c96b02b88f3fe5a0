//! `generate-paths`: the annotation `argocd.argoproj.io/manifest-generate-paths` does not cover what the build reads.
//!
//! Off by default: without a webhook or `--repo-server` settings of some sort the annotation has no effect.

use std::collections::BTreeSet;

use super::Context;
use super::deployed::One;
use super::rule::{Allow, Definition, Find};
use crate::finding::{Finding, Rule, Severity};
use crate::targets::Engine;
use crate::tree::path;

pub(super) const DEFINITION: Definition = Definition {
    id: "generate-paths",
    severity: Severity::Error,
    is_off: true,
    summary: "an annotation of an Application that leaves out what its build reads",
    explanation: r"
`argocd.argoproj.io/manifest-generate-paths` tells Argo CD which changes matter to an Application. A directory that the
build reads and that is not in it, as a shared base, can change without being deployed. The help has the value that
covers all that the build reads.

The rule is off unless the configuration gives it a severity:

```yaml
rules:
  generate-paths: error
```
",
    allow: Allow::Never,
    in_localized_files: false,
    find: Find::Here(find),
};

/// The annotation.
const ANNOTATION: &str = "argocd.argoproj.io/manifest-generate-paths";

fn find(context: &Context<'_>) -> Vec<Finding> {
    if !context.config.rules.contains_key(&Rule::GeneratePaths) {
        return Vec::new();
    }
    let here = context.deployed.here();
    here.filter_map(|one| uncovered(context, &one)).collect()
}

fn uncovered(context: &Context<'_>, one: &One<'_>) -> Option<Finding> {
    let annotation = one.target.build.generate_paths.as_ref()?;
    if one.target.engine != Engine::ArgoCd || one.starts.is_empty() {
        return None;
    }
    let written: Vec<&str> = annotation
        .split(';')
        .filter(|path| !path.is_empty())
        .collect();
    // What a glob covers is up to Argo CD's version.
    if written.iter().any(|path| path.contains(['*', '?', '['])) {
        return None;
    }
    let covered: Vec<String> = written
        .iter()
        .filter_map(|path| match path.strip_prefix('/') {
            Some(from_top) => path::resolve("", from_top),
            None => path::resolve(&one.here.path, path),
        })
        .collect();
    let read = directories(context, one);
    let is_covered = |place: &&String| covered.iter().any(|covered| path::is_in(place, covered));
    let first = read.iter().find(|place| !is_covered(place))?;
    let message = format!(
        "{} reads `{first}`, which `{ANNOTATION}` leaves out",
        one.target.by()
    );
    let help = vec![format!(
        "write: {ANNOTATION}: {}",
        value(&one.here.path, &read)
    )];
    let file = &one.target.object.file;
    let place = (one.target.object.line, 1);
    Some(context.at_object(Rule::GeneratePaths, file, place, message, help))
}

/// Returns the directories that a build reads files of, without those in others of them.
fn directories(context: &Context<'_>, one: &One<'_>) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for root in one.roots {
        let root = &context.graph.roots[*root];
        all.insert(root.directory.clone());
        for edge in &root.edges {
            if let Some(path) = context.graph.own_file(edge) {
                all.insert(path::parent(path).to_owned());
            }
        }
    }
    let is_inside = |place: &String| {
        let mut above = path::and_above(path::parent(place));
        !place.is_empty() && (all.contains("") || above.any(|above| all.contains(above)))
    };
    all.iter()
        .filter(|place| !is_inside(place))
        .cloned()
        .collect()
}

/// Returns the value that covers directories, relative to the path of an application.
fn value(from: &str, directories: &BTreeSet<String>) -> String {
    let paths = directories.iter().map(|place| path::relative(from, place));
    paths.collect::<Vec<_>>().join(";")
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Scene, argo};
    use super::*;

    fn found(annotation: &str, config: &str) -> Vec<String> {
        let text = argo("path: apps/web").replace(
            "namespace: argocd",
            &format!("namespace: argocd, annotations: {{{ANNOTATION}: '{annotation}'}}"),
        );
        let findings = Scene::default()
            .file("a.yaml", &text)
            .file(
                "apps/web/kustomization.yaml",
                "resources: [x.yaml, ../../base]\n",
            )
            .file("apps/web/x.yaml", "")
            .file("base/kustomization.yaml", "resources: [sub/y.yaml]\n")
            .file("base/sub/y.yaml", "")
            .config(config)
            .find(Rule::GeneratePaths);
        findings
            .into_iter()
            .map(|finding| finding.help[0].clone())
            .collect()
    }

    #[test]
    fn what_is_not_covered_is_found_if_it_is_asked_for() {
        let on = "rules: {generate-paths: error}\n";
        for (annotation, expected) in [
            (".", 1),
            (".;../../base", 0),
            ("/apps/web;/base", 0),
            ("/", 0),
            (".;/base/sub", 1),
            ("/apps/*;/base", 0),
        ] {
            let found = found(annotation, on);
            assert_eq!(found.len(), expected, "{annotation}");
            for help in found {
                assert_eq!(help, format!("write: {ANNOTATION}: .;../../base"));
            }
        }
        assert!(found(".", "").is_empty());
    }
}
