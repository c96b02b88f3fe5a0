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
use crate::message::failure::Failure;
use crate::message::finding::{Finding, Rule};
use crate::tree::{Entry, path};

/// Finds what the engine of each target does not run, follow or accept.
pub(super) fn find(context: &Context<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    // kustomize itself runs plugins and follows links, so this is about targets of engines that do not.
    for local in context.deployed.local.iter().filter(|local| !local.target.engine.runs_plugins()) {
        findings.extend(plugins(context, local));
        for root in local.roots.iter().map(|root| &context.graph.roots[*root]) {
            findings.extend(root.edges.iter().filter_map(|edge| link(context, root, edge)));
        }
    }
    for find in [artifact_ignored::find, scanned_file::find, directory_app::find, links::find, unwatched::find] {
        findings.extend(find(context));
    }
    findings
}

/// Finds the charts, functions and plugins in the roots of a target whose engine does not run them.
fn plugins<'a>(context: &'a Context<'_>, local: &'a LocalTarget<'_>) -> impl Iterator<Item = Finding> + use<'a> {
    let engine = local.target.engine.name();
    // Only in the roots of this target: another target may have an engine that runs them.
    let notes = context.graph.notes.iter().filter(|noted| local.roots.contains(&noted.root));
    notes.filter_map(move |noted| {
        let (name, failure) = match &noted.note.kind {
            NoteKind::Chart { name, .. } => {
                let failure = Failure::new(format!("{engine} does not inflate charts, such as `{name}`"));
                (name, failure.hint("deploy it with a HelmRelease, or commit the output of `helm template`"))
            }
            NoteKind::Code { kind, .. } => {
                let failure = Failure::new(format!("{engine} does not run functions or plugins, such as `{kind}`"));
                (kind, failure.hint("run it yourself, and commit its output"))
            }
            NoteKind::ExtraDocument | NoteKind::Replaced { .. } => return None,
        };
        Some(context.at_note(Rule::Engine, noted, failure).about(name))
    })
}

/// The finding for a local reference that follows a link: Flux leaves links out of its artifact. `None` if it follows
/// none.
fn link(context: &Context<'_>, root: &Root, edge: &Edge) -> Option<Finding> {
    let text = &edge.reference.text;
    let written = path::resolve(&root.directory, text)?;
    context.graph.real_path(edge).filter(|real| **real != *written)?;
    // From the top, because a link decides what the rest of the path means.
    let above: Vec<&str> = path::and_above(&written).collect();
    let link = above.into_iter().rev().find(|path| context.tree.entry(path) == Ok(Some(Entry::Link)))?;
    let message = format!("`{text}` goes through the link `{link}`, which Flux leaves out of its artifact");
    let failure = Failure::new(message).hint("name the target of the link, or replace the link with a copy of it");
    Some(context.at_reference(Rule::Engine, edge, failure))
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
