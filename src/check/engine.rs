//! `engine`: the build of a target needs something that its engine does not do.

mod artifact_ignored;
mod directory_app;
mod links;
mod scanned_file;
mod unwatched;

use super::Context;
use super::deployed::LocalTarget;
use crate::graph::{Edge, Root};
use crate::kustomization::NoteKind;
use crate::message::finding::{Finding, Rule};

pub(super) fn find(context: &Context<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for local in &context.deployed.local {
        let engine = local.target.engine;
        // The user allows programs for kustomize by hand; only engines refuse some.
        if engine.runs_plugins() {
            continue;
        }
        plugins(context, local, &mut findings);
        for root in local.roots.iter().map(|root| &context.graph.roots[*root]) {
            for edge in &root.edges {
                let told = link(context, root, edge);
                findings.extend(
                    told.map(|(message, help)| {
                        context.at_reference(Rule::Engine, edge, message, vec![help.to_owned()])
                    }),
                );
            }
        }
    }
    findings.extend(artifact_ignored::find(context));
    findings.extend(scanned_file::find(context));
    findings.extend(directory_app::find(context));
    findings.extend(links::find(context));
    findings.extend(unwatched::find(context));
    findings
}

/// Finds charts, functions and plugins, which the engine does not run.
fn plugins(context: &Context<'_>, local: &LocalTarget<'_>, findings: &mut Vec<Finding>) {
    let engine = local.target.engine.name();
    for noted in context.graph.notes.iter() {
        // Another target may have an engine that runs them.
        if !local.roots.contains(&noted.root) {
            continue;
        }
        let (name, message, help) = match &noted.note.kind {
            NoteKind::Chart { name, .. } => (
                name,
                format!("{engine} does not inflate charts, such as `{name}`"),
                "deploy it with a HelmRelease, or commit the output of `helm template`",
            ),
            NoteKind::Code { kind, .. } => (
                kind,
                format!("{engine} does not run functions or plugins, such as `{kind}`"),
                "run it yourself, and commit its output",
            ),
            NoteKind::ExtraDocument | NoteKind::Replaced { .. } => continue,
        };
        let finding = context.at_note(Rule::Engine, noted, message, vec![help.to_owned()]);
        findings.push(Finding { about: name.clone(), ..finding });
    }
}

/// The message and help for a reference that follows a link: Flux leaves links out of its artifact. `None` if it follows none.
fn link(context: &Context<'_>, root: &Root, edge: &Edge) -> Option<(String, &'static str)> {
    let (link, _) = context.links(root, edge).into_iter().next()?;
    let text = &edge.reference.text;
    let message = format!("`{text}` goes through the link `{link}`, which Flux leaves out of its artifact");
    Some((message, "name the target of the link, or replace the link with a copy of it"))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Scene, argo, flux, source};
    use super::*;

    const CHART: &str = "helmCharts: [{name: web, repo: https://charts.example.com, version: 1.0.0}]\n";

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let mut scene = Scene::default().file("clusters/source.yaml", &source("")).file("apps/x.yaml", "");
        for (path, text) in files {
            scene = scene.file(path, text);
        }
        let findings = scene.find(Rule::Engine).into_iter();
        findings.map(|finding| finding.message).collect()
    }

    #[test]
    fn what_the_engine_does_not_do_is_found() {
        let flux = flux("apps");
        let argo = argo("path: apps");
        let git = "resources: ['https://github.com/acme/base//x?ref=v1', 'https://example.com/x.yaml']\n";
        for (object, text, expected) in [
            (("a.yaml", flux.as_str()), CHART, Some("Flux does not inflate charts, such as `web`")),
            (("a.yaml", argo.as_str()), CHART, None),
            (("a.yaml", flux.as_str()), git, None),
        ] {
            let found = found(&[object, ("apps/kustomization.yaml", text)]);
            let expected: Vec<String> = expected.map(str::to_owned).into_iter().collect();
            assert_eq!(found, expected, "{object:?} {text}");
        }
    }

    #[test]
    fn a_link_is_not_in_the_artifact() {
        let text = "resources: [linked.yaml, x.yaml, ../also/base]\n";
        let mut scene = Scene::default()
            .file("clusters/source.yaml", &source(""))
            .file("clusters/apps.yaml", &flux("apps"))
            .file("apps/kustomization.yaml", text)
            .file("apps/x.yaml", "")
            .file("real/base/kustomization.yaml", "resources: [y.yaml]\n")
            .file("real/base/y.yaml", "");
        scene.tree.link("apps/linked.yaml", "x.yaml");
        scene.tree.link("also", "real");
        let findings = scene.find(Rule::Engine);
        let found: Vec<&str> = findings.iter().map(|finding| finding.message.as_str()).collect();
        assert_eq!(
            found,
            [
                "`linked.yaml` goes through the link `apps/linked.yaml`, which Flux leaves out of its artifact",
                "`../also/base` goes through the link `also`, which Flux leaves out of its artifact",
            ]
        );
    }
}
