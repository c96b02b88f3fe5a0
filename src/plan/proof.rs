//! Proves that a result is complete before any of it is written.

use super::files::LocalizedRoots;
use crate::graph::{Edge, Explored, Graph, Resolution};
use crate::kustomization::{Accepts, Reference};
use crate::message::failure::{Failure, Failures};
use crate::message::redact;
use crate::tree::path;

/// Checks that each reference in a file of the result leads to something in the tree, unless it led to nothing in
/// `before` too. Without `before` no reference may lead to nothing, because a copy is complete.
pub(super) fn assert_whole(
    before: Option<&Graph>,
    after: &Explored,
    localized: &LocalizedRoots,
) -> Result<(), Failures> {
    let graph = &after.graph;
    let old_roots = before.map(Graph::user_roots).unwrap_or_default();
    // In place the troubles were there before, and are the user's.
    let troubles = after.troubles.iter().filter(|_| before.is_none());
    let mut failures: Vec<Failure> = troubles.map(|trouble| trouble.failure.clone()).collect();
    for (id, edge) in graph.edges() {
        let is_resolved =
            !matches!(edge.target, Resolution::Remote | Resolution::Broken) || graph.stays_remote.contains_key(&id);
        let is_ours = graph.user_path(edge.from).is_some_and(|path| localized.files.contains_key(path));
        if is_resolved || !is_ours {
            continue;
        }
        let (directory, Reference { text, field, accepts, .. }) = (&graph.roots[id.root].directory, &*edge.reference);
        // kustomize tries a plugin entry as an inline configuration first, so a missing path may be intended.
        let is_allowed = *accepts == Accepts::Plugin
            && path::resolve(directory, text).is_some_and(|path| localized.allowed_missing.contains(&path));
        // A root that did not build before need not build after: the user is told about it by `check`.
        let old_root = before.zip(old_roots.get(directory.as_str()));
        let mut old_edges = old_root.into_iter().flat_map(|(graph, id)| &graph.roots[*id].edges);
        let was_broken = old_edges.any(|old: &Edge| {
            old.target == Resolution::Broken && old.reference.field == *field && old.reference.text == *text
        });
        if !is_allowed && !was_broken {
            let failure = Failure::new(format!("`{}` leads nowhere", redact::url(text)));
            failures.push(failure.at(graph.location(edge)));
        }
    }
    // No input may lead here, so the user cannot mend it.
    let defects = failures.into_iter().map(|failure| {
        failure
            .context("the result is inconsistent")
            .hint("this is a defect of git-kustomize-localize: please report it with the kustomization")
    });
    Failures::if_any(defects.collect())
}
