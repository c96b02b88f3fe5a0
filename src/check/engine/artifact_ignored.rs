//! A Flux target reaches a file that is not in the artifact of its source.

use crate::check::Context;
use crate::check::deployed::LocalTarget;
use crate::graph::{FileId, Resolution};
use crate::message::finding::{Finding, Rule};
use crate::targets::Ignored;
use crate::targets::Target;

pub(super) fn find(context: &Context<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for local in &context.deployed.local {
        look_at_target(context, local, &mut findings);
    }
    findings
}

fn look_at_target(context: &Context<'_>, local: &LocalTarget<'_>, findings: &mut Vec<Finding>) {
    let target = local.target;
    let out = |file: FileId| -> Option<(&str, Ignored)> {
        let path = context.graph.user_path(file)?;
        Some((path, local.directory.left_out(path)?))
    };
    // A root whose kustomization is left out has one finding, not one for each reference.
    for root in target.walked(local.directory, context.graph) {
        if let Some((path, rule)) = out(context.graph.roots[root].file) {
            let finding = context.at_target(Rule::Engine, target, message(target, path, &rule), help(path, &rule));
            findings.push(Finding { about: format!("{} {path}", finding.about), ..finding });
        }
    }
    for root in local.roots.iter().filter(|root| out(context.graph.roots[**root].file).is_none()) {
        for edge in &context.graph.roots[*root].edges {
            let reached = match edge.target {
                Resolution::File(file) => out(file),
                Resolution::Root { id, .. } => out(context.graph.roots[id].file),
                _ => None,
            };
            let Some((path, rule)) = reached else {
                continue;
            };
            let message = message(target, path, &rule);
            findings.push(context.at_reference(Rule::Engine, edge, message, help(path, &rule)));
        }
    }
}

/// How the path gets into the artifact.
fn help(path: &str, rule: &Ignored) -> Vec<String> {
    vec![rule.help("it", &format!("/{path}"))]
}

/// The message about a path that a target lacks.
fn message(target: &Target, path: &str, rule: &Ignored) -> String {
    format!("{} reaches `{path}`, which is not in its artifact: {}", target.by(), rule.why())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::testing::{Scene, flux, source};

    fn found(ignore: &str, spec: &str) -> Vec<(String, String)> {
        let mut scene = Scene::default()
            .file("clusters/source.yaml", &source(spec))
            .file("clusters/apps.yaml", &flux("./apps"))
            .file(
                "apps/kustomization.yaml",
                "resources: [x.yaml, ../base]\nconfigMapGenerator: [{name: a, files: [logo.png]}]\n",
            )
            .file("apps/x.yaml", "")
            .file("apps/logo.png", "")
            .file("base/kustomization.yaml", "resources: [y.yaml]\n")
            .file("base/y.yaml", "");
        if !ignore.is_empty() {
            scene = scene.file(".sourceignore", ignore);
        }
        let findings = scene.find(Rule::Engine).into_iter();
        findings
            .map(|finding| {
                let (_, why) = finding.message.split_once("reaches ").unwrap();
                (finding.reference, why.to_owned())
            })
            .collect()
    }

    #[test]
    fn what_is_left_out_is_found_where_it_is_named() {
        let why = |path: &str, pattern: &str, place: &str| {
            format!("`{path}`, which is not in its artifact: `{pattern}` in {place} excludes it")
        };
        let sparse = "`base/kustomization.yaml`, which is not in its artifact: `spec.sparseCheckout` includes only `apps, clusters`";
        let source = "`spec.ignore` of GitRepository flux-system/flux-system (clusters/source.yaml:1)";
        for (ignore, spec, expected) in [
            ("", "", vec![("logo.png", why("apps/logo.png", "*.png", "the defaults of Flux"))]),
            ("*.md\n", "", vec![]),
            (
                "/*\n!/apps\n!/clusters\n",
                "",
                vec![("../base", why("base/kustomization.yaml", "/*", ".sourceignore:1"))],
            ),
            ("", "ignore: '/base/y.yaml'", vec![("y.yaml", why("base/y.yaml", "/base/y.yaml", source))]),
            ("/apps\n", "", vec![("", why("apps/kustomization.yaml", "/apps", ".sourceignore:1"))]),
            ("*.md\n", "sparseCheckout: [apps, clusters]", vec![("../base", sparse.to_owned())]),
        ] {
            let expected: Vec<(String, String)> =
                expected.into_iter().map(|(reference, why)| (reference.to_owned(), why)).collect();
            assert_eq!(found(ignore, spec), expected, "{ignore} {spec}");
        }
    }

    #[test]
    fn what_a_generator_does_not_copy_is_found() {
        let found = |copied: &str| {
            let generator = format!(
                "apiVersion: source.extensions.fluxcd.io/v1beta1
kind: ArtifactGenerator
metadata: {{name: made, namespace: flux-system}}
spec:
  sources: [{{alias: repo, kind: GitRepository, name: flux-system}}]
  artifacts: [{{name: apps, copy: [{{from: '@repo/{copied}**', to: '@artifact/{copied}'}}]}}]
"
            );
            let made = flux("./apps")
                .replace("{kind: GitRepository, name: flux-system}", "{kind: ExternalArtifact, name: apps}");
            let findings = Scene::default()
                .file("clusters/source.yaml", &source(""))
                .file("clusters/made.yaml", &generator)
                .file("clusters/apps.yaml", &made)
                .file("apps/kustomization.yaml", "resources: [../apps-base]\n")
                .file("apps-base/kustomization.yaml", "namePrefix: a-\n")
                .find(Rule::Engine);
            findings.into_iter().map(|finding| (finding.message, finding.help)).collect::<Vec<_>>()
        };
        assert_eq!(found(""), []);
        let [(message, help)] = &found("apps/")[..] else { panic!() };
        let why = "reaches `apps-base/kustomization.yaml`, which is not in its artifact: `copy` of its ArtifactGenerator includes only `apps`";
        assert!(message.ends_with(why), "{message}");
        assert_eq!(help, &["add a directory that contains it there"]);
    }
}
