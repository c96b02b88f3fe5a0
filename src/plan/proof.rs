//! The proof that a result holds together, before anything of it is written.

use super::files::Localized;
use crate::graph::{Edge, Explored, Graph, Target};
use crate::kustomization::Accepts;
use crate::message::failure::{Failure, Failures};
use crate::message::redact;
use crate::tree::path;

const DEFECT: &str = "this is a defect of git-kustomize-localize: please report it with the kustomization";

/// Compares the walk `before` with the one after: in every file of the result each reference leads to something in the
/// tree, except for those that led nowhere before.
pub(super) fn assert_whole(before: &Graph, after: &Explored, localized: &Localized) -> Result<(), Failures> {
    let graph = &after.graph;
    let old = before.own_roots();
    let mut failures = Vec::new();
    for (id, root) in graph.roots.iter().enumerate() {
        for (index, edge) in root.edges.iter().enumerate() {
            let leads = !matches!(edge.target, Target::Remote | Target::Broken) || graph.left.contains(&(id, index));
            let is_ours = graph.own_path(edge.from).is_some_and(|path| localized.files.contains_key(path));
            if leads || !is_ours {
                continue;
            }
            let text = &edge.reference.text;
            let is_kept = edge.reference.accepts == Accepts::Plugin
                && path::resolve(&root.directory, text).is_some_and(|path| localized.kept.contains(&path));
            let was = |old: &Edge| old.target == Target::Broken && is_same(old, edge);
            let was_broken = old.get(root.directory.as_str()).is_some_and(|id| before.roots[*id].edges.iter().any(was));
            if !is_kept && !was_broken {
                let message = format!("the result does not hold together: `{}` leads nowhere", redact::url(text));
                failures.push(Failure::new(message).at(graph.location(edge.from, &edge.reference)).hint(DEFECT));
            }
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(Failures(failures)) }
}

/// Asserts that a copy lacks nothing, which the walk before found complete.
pub(super) fn assert_complete(after: &Explored) -> Result<(), Failures> {
    let told = after.troubles.iter().map(|trouble| trouble.failure.clone());
    let told = told.map(|one| one.context("the result does not hold together").hint(DEFECT));
    let told: Vec<Failure> = told.collect();
    if told.is_empty() { Ok(()) } else { Err(Failures(told)) }
}

fn is_same(old: &Edge, edge: &Edge) -> bool {
    old.reference.field == edge.reference.field && old.reference.text == edge.reference.text
}
