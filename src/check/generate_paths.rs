//! `generate-paths`: the annotation `argocd.argoproj.io/manifest-generate-paths` does not cover what the build reads.
//!
//! Off by default: without a webhook or `--repo-server` settings of some sort the annotation has no effect.

use super::Context;
use super::deployed::One;
use super::rule::{Allow, Definition, Find};
use crate::finding::{Finding, Rule, Severity};
use crate::targets::{self, Found, GENERATE_PATHS};
use crate::tree::path;

pub(super) const DEFINITION: Definition = Definition {
    id: "generate-paths",
    severity: Severity::Error,
    is_off: true,
    summary: "an annotation of an Application that leaves out what its build reads",
    explanation: r"
`argocd.argoproj.io/manifest-generate-paths` tells Argo CD which changes matter to an Application. What the build reads
and is not in it, for example a shared base or a chart, can change without being deployed. The help has the value that
covers all that the build reads: `git kustomize-localize targets --manifest-generate-paths` prints it, too.

The rule is off unless the configuration gives it a severity:

```yaml
rules:
  generate-paths: error
```
",
    allow: Allow::Never,
    find: Find::Here(find),
};

fn find(context: &Context<'_>) -> Vec<Finding> {
    if !context.config.rules.contains_key(&Rule::GeneratePaths) {
        return Vec::new();
    }
    let values = match targets::generate_paths(context.shared_tree, context.deployed.targets) {
        Ok(values) => values,
        Err(failure) => {
            context.failures.borrow_mut().push(failure);
            return Vec::new();
        }
    };
    let here = context.deployed.here();
    here.filter_map(|one| uncovered(context, &one, values.get(&one.target.object)?))
        .collect()
}

fn uncovered(context: &Context<'_>, one: &One<'_>, value: &str) -> Option<Finding> {
    let (target, here) = (one.target, one.here);
    let annotation = target.build.generate_paths.as_ref()?;
    // What a glob covers is up to Argo CD's version; what is not there is another rule's.
    if annotation.contains(['*', '?', '[']) || matches!(here.found, Found::Nothing(_)) {
        return None;
    }
    let covered = places(annotation, &here.path);
    let is_covered = |place: &&String| covered.iter().any(|covered| path::is_in(place, covered));
    let read = places(value, &here.path);
    let first = read.iter().find(|place| !is_covered(place))?;
    let message = format!(
        "{} reads `{first}`, which `{GENERATE_PATHS}` leaves out",
        target.by()
    );
    let help = vec![format!("write: {GENERATE_PATHS}: {value}")];
    let (file, place) = (&target.object.file, (target.object.line, 1));
    Some(context.at_object(Rule::GeneratePaths, file, place, message, help))
}

/// Returns what the annotation of an application at `from` covers, from the top.
fn places(annotation: &str, from: &str) -> Vec<String> {
    let written = annotation.split(';').filter(|path| !path.is_empty());
    let places = written.filter_map(|path| match path.strip_prefix('/') {
        Some(from_top) => path::resolve("", from_top),
        None => path::resolve(from, path),
    });
    places.collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Scene, argo};
    use super::*;

    fn found(annotation: &str, config: &str) -> Vec<String> {
        let text = argo("path: apps/web").replace(
            "namespace: argocd",
            &format!("namespace: argocd, annotations: {{{GENERATE_PATHS}: '{annotation}'}}"),
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
                assert_eq!(help, format!("write: {GENERATE_PATHS}: .;/base"));
            }
        }
        assert!(found(".", "").is_empty());
    }
}
