//! A Flux target reaches a file that is not in the artifact of its source.

use crate::check::Context;
use crate::check::deployed::LocalTarget;
use crate::graph::FileId;
use crate::message::failure::Failure;
use crate::message::finding::{Finding, Rule};

/// Finds files that the build of a Flux target needs, and that the artifact of its source leaves out.
pub(super) fn find(context: &Context<'_>) -> Vec<Finding> {
    context.deployed.local.iter().flat_map(|local| of_target(context, local)).collect()
}

/// The findings for files that the artifact of a Flux target lacks: the kustomizations that Flux looks for, and the
/// files that they reference.
fn of_target(context: &Context<'_>, local: &LocalTarget<'_>) -> Vec<Finding> {
    let (target, graph, mut findings) = (local.target, context.graph, Vec::new());
    // A root whose kustomization is left out has one finding, not one for each reference.
    for root in target.walked(local.directory, graph) {
        if let Some((path, failure)) = left_out(context, local, graph.roots[root].file) {
            let finding = context.at_target(Rule::Engine, target, failure);
            findings.push(finding.about(format!("{} {path}", target.name())));
        }
    }
    for root in local.roots.iter().filter(|root| left_out(context, local, graph.roots[**root].file).is_none()) {
        for edge in &graph.roots[*root].edges {
            let reached = graph.resolved_file(edge).and_then(|file| left_out(context, local, file));
            findings.extend(reached.map(|(_, failure)| context.at_reference(Rule::Engine, edge, failure)));
        }
    }
    findings
}

/// The path of a file that is not in the artifact of a target, and why. `None` if the file is in it.
fn left_out<'a>(context: &Context<'a>, local: &LocalTarget<'_>, file: FileId) -> Option<(&'a str, Failure)> {
    let path = context.graph.user_path(file)?;
    let rule = local.directory.left_out(path)?;
    let by = local.target.by();
    let message = format!("{by} reaches `{path}`, which is not in its artifact: {}", rule.why());
    Some((path, Failure::new(message).hint(rule.help("it", &format!("/{path}")))))
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
