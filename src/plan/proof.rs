//! The proof that a result holds together, before anything of it is written.

use super::files::Localized;
use crate::graph::{Edge, Explored, Graph, Target};
use crate::kustomization::Accepts;
use crate::message::failure::{Failure, Failures};
use crate::message::redact;
use crate::tree::path;

/// Compares the walk `before` with the one after: in every file of the result each reference leads to something in the
/// tree, except for those that led nowhere before. Without one, nothing did: a copy lacks nothing.
pub(super) fn assert_whole(before: Option<&Graph>, after: &Explored, localized: &Localized) -> Result<(), Failures> {
    let graph = &after.graph;
    let old = before.map(Graph::user_roots).unwrap_or_default();
    let troubles = after.troubles.iter().filter(|_| before.is_none());
    let mut failures: Vec<Failure> = troubles.map(|trouble| trouble.failure.clone()).collect();
    for (id, root) in graph.root_ids().zip(graph.roots.iter()) {
        for (id, edge) in graph.edges_of(id) {
            let leads = !matches!(edge.target, Target::Remote | Target::Broken) || graph.stays_remote.contains_key(&id);
            let is_ours = graph.user_path(edge.from).is_some_and(|path| localized.files.contains_key(path));
            if leads || !is_ours {
                continue;
            }
            let (text, field) = (&edge.reference.text, &edge.reference.field);
            let is_kept = edge.reference.accepts == Accepts::Plugin
                && path::resolve(&root.directory, text).is_some_and(|path| localized.kept.contains(&path));
            let was = |old: &Edge| {
                old.target == Target::Broken && old.reference.field == *field && old.reference.text == *text
            };
            let mut edges = before
                .zip(old.get(root.directory.as_str()))
                .into_iter()
                .flat_map(|(graph, id)| &graph.roots[*id].edges);
            if !is_kept && !edges.any(was) {
                let failure = Failure::new(format!("`{}` leads nowhere", redact::url(text)));
                failures.push(failure.at(graph.location(edge.from, &edge.reference)));
            }
        }
    }
    let defect = |failure: Failure| {
        failure
            .context("the result is inconsistent")
            .hint("this is a defect of git-kustomize-localize: please report it with the kustomization")
    };
    if failures.is_empty() { Ok(()) } else { Err(Failures(failures.into_iter().map(defect).collect())) }
}
