//! `self-reference`: what a localized branch deploys names this repository at a branch that is not localized.

use std::collections::HashMap;

use super::Context;
use super::deployed::One;
use super::rule::{Allow, Definition, Find};
use crate::finding::{Finding, Rule, Severity};
use crate::walk::{FileId, Target};

pub(super) const DEFINITION: Definition = Definition {
    id: "self-reference",
    severity: Severity::Error,
    is_off: false,
    summary: "an object of a localized branch that deploys what is not localized",
    explanation: r"
An Application or Kustomization that is deployed from a localized branch deploys another directory of this repository,
but at a branch that is not localized: that build reaches out as if there was no localized branch. Name the localized
branch there, too:

```yaml
source:
  repoURL: https://github.com/acme/fleet
  targetRevision: localized/main        # not main
```
",
    allow: Allow::Never,
    find: Find::Here(find),
};

/// What the names of localized branches begin with.
const LOCALIZED: &str = "localized/";

fn find(context: &Context<'_>) -> Vec<Finding> {
    // The files that are deployed from a localized branch, each with what deploys it.
    let mut files: HashMap<&str, String> = HashMap::new();
    for one in context.deployed.here().filter(is_localized) {
        let by = one.target.by();
        for root in one.roots {
            for edge in &context.graph.roots[*root].edges {
                if let Some(path) = context.graph.own_file(edge) {
                    files.entry(path).or_insert_with(|| by.clone());
                }
            }
        }
    }
    if files.is_empty() {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for one in context.deployed.here() {
        let target = one.target;
        let Some(parent) = files.get(target.object.file.as_str()) else {
            continue;
        };
        if is_localized(&one) || !reaches_out(context, &one) {
            continue;
        }
        let revision = one.here.revision.name.as_deref();
        let message = format!(
            "{} is deployed from a localized branch by {parent}, but deploys {} of this repository {}, which is not localized",
            target.by(),
            one.here.shown(),
            revision.map_or("at its default branch".to_owned(), |name| format!(
                "at `{name}`"
            )),
        );
        let branch = revision.filter(|name| *name != "HEAD").unwrap_or("main");
        let help = vec![format!("deploy `{LOCALIZED}{branch}` there, too")];
        let file = &target.object.file;
        findings.push(context.at_object(Rule::SelfReference, file, target.spot, message, help));
    }
    findings
}

fn is_localized(one: &One<'_>) -> bool {
    let revision = one.here.revision.name.as_deref();
    revision.is_some_and(|name| name.starts_with(LOCALIZED))
}

/// Returns whether its build names something remote, or does so where it is not localized: only then it matters which
/// branch it is.
fn reaches_out(context: &Context<'_>, one: &One<'_>) -> bool {
    // Where localized files stand on a localized branch, the branch that it was made from has URLs.
    let is_branch = context.lock().is_some_and(|lock| lock.trailers);
    let was_remote = |file: FileId| is_branch && context.is_owned(context.path(file));
    let mut edges = one
        .roots
        .iter()
        .flat_map(|root| &context.graph.roots[*root].edges);
    edges.any(|edge| match edge.target {
        Target::Remote => true,
        Target::Root { id, .. } => was_remote(context.graph.roots[id].file),
        Target::File(file) => was_remote(file),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Scene, argo};
    use super::*;

    fn found(parent: &str, child: &str, remote: &str) -> usize {
        let parent = argo(&format!("path: children, targetRevision: {parent}"));
        let child = argo(&format!("path: web, targetRevision: {child}"));
        let findings = Scene::default()
            .file("root.yaml", &parent)
            .file("children/kustomization.yaml", "resources: [web.yaml]\n")
            .file("children/web.yaml", &child)
            .file(
                "web/kustomization.yaml",
                &format!("resources: [{remote}]\n"),
            )
            .file("web/x.yaml", "")
            .find(Rule::SelfReference);
        findings.len()
    }

    #[test]
    fn a_child_at_another_branch_is_found() {
        let remote = "'https://github.com/acme/base?ref=v1'";
        for (parent, child, reference, expected) in [
            ("localized/main", "main", remote, 1),
            ("localized/main", "HEAD", remote, 1),
            ("localized/main", "localized/main", remote, 0),
            ("main", "main", remote, 0),
            ("localized/main", "main", "x.yaml", 0),
            ("localized/main", "v1.0.0", remote, 0),
        ] {
            assert_eq!(
                found(parent, child, reference),
                expected,
                "{parent} {child}"
            );
        }
    }

    #[test]
    fn what_has_no_path_is_the_top() {
        let flux = "apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: fleet}
spec: {url: 'https://github.com/acme/fleet', ref: {branch: main}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: web}
spec: {sourceRef: {kind: GitRepository, name: fleet}}
";
        let findings = Scene::default()
            .file(
                "root.yaml",
                &argo("path: apps, targetRevision: localized/main"),
            )
            .file("apps/kustomization.yaml", "resources: [web.yaml]\n")
            .file("apps/web.yaml", flux)
            .file(
                "kustomization.yaml",
                "resources: ['https://github.com/acme/base?ref=v1']\n",
            )
            .find(Rule::SelfReference);
        let message = &findings[0].message;
        assert!(
            message.contains("deploys the top of this repository at `main`"),
            "{message}"
        );
    }

    #[test]
    fn on_a_localized_branch_it_is_found_too() {
        let lock = |trailers: &str| {
            format!(
                "version: 1\n{trailers}remotes:\n  - url: https://example.com/x.yaml\n    sha256: {0}\n    size: 0\nfiles:\n  - path: web/localized-files/example.com/x.yaml\n    mode: \"100644\"\n    sha256: {0}\n    remote: https://example.com/x.yaml\n",
                "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
            )
        };
        let parent = argo("path: children, targetRevision: localized/main");
        let found = |child: &str, trailers: &str| {
            let child = argo(&format!("path: web, targetRevision: {child}"));
            let scene = Scene::default()
                .file("root.yaml", &parent)
                .file("children/kustomization.yaml", "resources: [web.yaml]\n")
                .file("children/web.yaml", &child)
                .file(
                    "web/kustomization.yaml",
                    "resources: [localized-files/example.com/x.yaml]\n",
                )
                .file("web/localized-files/example.com/x.yaml", "")
                .file("kustomize-localize.lock", &lock(trailers));
            scene.find(Rule::SelfReference).len()
        };
        assert_eq!(found("main", "trailers: true\n"), 1);
        assert_eq!(found("localized/main", "trailers: true\n"), 0);
        // There it is localized itself.
        assert_eq!(found("main", ""), 0);
    }
}
