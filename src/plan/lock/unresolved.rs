//! What could not be resolved, taken out of what was walked: the lock holds the rest.

use std::collections::{BTreeSet, HashMap};

use super::super::troubles::is_remote;
use crate::graph::{At, Explored, FileId, Graph, RootId, Target, reach};
use crate::plan;
use crate::record::Lock;
use crate::reference::Upstream;

/// A reference: a root and the index of its edge.
type Reference = (RootId, usize);

/// Takes out every remote reference of the user that could not be resolved. An upstream with trouble in itself, or behind
/// it, is of no use. What `held` holds all the same was not followed; all else is broken. Returns the sources of which
/// only `held` tells.
pub(super) fn take_out(explored: &mut Explored, held: &Lock) -> BTreeSet<Upstream> {
    let failed = failed(explored, held);
    let graph = &mut explored.graph;
    let mut as_held = BTreeSet::new();
    for (root, index) in failed {
        let edge = &mut graph.roots[root].edges[index];
        let locked = edge.remote.as_ref().and_then(|wanted| wanted.locked(held));
        let is_held = locked.as_ref().is_some_and(|upstream| held.holds(upstream));
        as_held.extend(locked.map(|upstream| upstream.source()));
        edge.target = if is_held { Target::Remote } else { Target::Broken };
    }
    as_held
}

/// Returns whether nothing that leads to a failed reference is of less use for it: it is the user's, or the lock holds it.
fn ends_here(graph: &Graph, (root, edge): Reference, held: &Lock) -> bool {
    let edge = &graph.roots[root].edges[edge];
    !graph.is_fetched(edge.from) || edge.remote.as_ref().is_some_and(|wanted| wanted.is_locked(held))
}

/// Returns the remote references that failed, or lead to an upstream with trouble.
fn failed(explored: &Explored, held: &Lock) -> BTreeSet<Reference> {
    let graph = &explored.graph;
    let (mut failed, mut broken) = (BTreeSet::new(), Vec::new());
    for trouble in &explored.troubles {
        if !is_remote(graph, trouble) {
            continue;
        }
        match trouble.at {
            At::Edge(root, edge)
                if plan::is_remote(&graph.roots[root].edges[edge].reference)
                    && ends_here(graph, (root, edge), held) =>
            {
                failed.insert((root, edge));
            }
            _ => broken.extend(graph.file_at(trouble.at)),
        }
    }
    let mut above: HashMap<FileId, Vec<Reference>> = HashMap::new();
    for (id, root) in graph.root_ids().zip(graph.roots.iter()) {
        for (index, edge) in root.edges.iter().enumerate() {
            if let Some(file) = graph.led_to(edge) {
                above.entry(file).or_default().push((id, index));
            }
        }
    }
    reach(broken, |file| {
        let mut next = Vec::new();
        for (root, index) in above.get(file).into_iter().flatten().copied() {
            let edge = &graph.roots[root].edges[index];
            if edge.remote.is_some() && ends_here(graph, (root, index), held) {
                failed.insert((root, index));
            } else {
                next.push(edge.from);
            }
        }
        next
    });
    failed
}

#[cfg(test)]
mod tests;
