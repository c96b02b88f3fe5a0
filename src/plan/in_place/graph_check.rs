//! The proof that a tree holds together after it was localized in place, before anything is written.

use std::collections::{BTreeSet, HashMap};

use crate::graph::{Edge, Graph, Origin, Root, Target};
use crate::kustomization::Accepts;
use crate::message::failure::{Failure, Failures};
use crate::message::redact;
use crate::plan::InPlace;
use crate::tree::path;

/// Compares the walk before (`before`) with the walk after the changes (`after`): in every file that is written, each
/// reference leads to something in the tree, except for those that led nowhere before, and, where only something is
/// localized `again`, those that did not change.
pub(super) fn assert_whole(
    before: &Graph,
    after: &Graph,
    in_place: &InPlace,
    again: &BTreeSet<String>,
) -> Result<(), Failures> {
    let old: HashMap<&str, &Root> =
        before.roots.iter().filter(|root| root.source == 0).map(|root| (root.directory.as_str(), root)).collect();
    let mut failures = Vec::new();
    for (id, root) in after.roots.iter().enumerate() {
        for (index, edge) in root.edges.iter().enumerate() {
            let Origin::Tree { path, .. } = &after.files[edge.from].origin else {
                continue;
            };
            let leads = !matches!(edge.target, Target::Remote | Target::Broken) || after.left.contains(&(id, index));
            if leads || !in_place.localized.files.contains_key(path) {
                continue;
            }
            let text = &edge.reference.text;
            let is_kept = edge.reference.accepts == Accepts::Plugin
                && path::resolve(&root.directory, text).is_some_and(|path| in_place.kept.contains(&path));
            let was_broken = old.get(root.directory.as_str()).is_some_and(|root| {
                let stays = |old: &Edge| old.target == Target::Broken || !again.is_empty();
                root.edges.iter().any(|old| is_same(old, edge) && stays(old))
            });
            if !is_kept && !was_broken {
                failures.push(
                    Failure::new(format!("the result does not hold together: `{}` leads nowhere", redact::url(text)))
                        .at(after.location(edge.from, &edge.reference))
                        .hint("this is a defect of git-kustomize-localize: please report it with the kustomization"),
                );
            }
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(Failures(failures)) }
}

fn is_same(old: &Edge, edge: &Edge) -> bool {
    old.reference.field == edge.reference.field && old.reference.text == edge.reference.text
}
