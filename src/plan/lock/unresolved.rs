//! What could not be resolved, taken out of what was walked: the lock holds the rest.

use std::collections::{BTreeSet, HashMap};

use super::super::troubles::is_remote;
use crate::graph::{At, EdgeId, Explored, FileId, Graph, Target, reach};
use crate::plan;
use crate::record::Lock;
use crate::reference::Upstream;

/// Takes out every remote reference of the user that could not be resolved. An upstream with trouble in itself, or behind
/// it, is of no use. What `held` holds all the same was not followed; all else is broken. Returns the sources of which
/// only `held` tells.
pub(super) fn take_out(explored: &mut Explored, held: &Lock) -> BTreeSet<Upstream> {
    let failed = failed(explored, held);
    let graph = &mut explored.graph;
    let mut as_held = BTreeSet::new();
    for id in failed {
        let edge = &mut graph[id];
        let locked = edge.remote.as_ref().and_then(|wanted| wanted.locked(held));
        let is_held = locked.as_ref().is_some_and(|upstream| held.holds(upstream));
        as_held.extend(locked.map(|upstream| upstream.source()));
        edge.target = if is_held { Target::Remote } else { Target::Broken };
    }
    as_held
}

/// Returns whether nothing that leads to a failed reference is of less use for it: it is the user's, or the lock holds it.
fn ends_here(graph: &Graph, edge: EdgeId, held: &Lock) -> bool {
    let edge = &graph[edge];
    !graph.is_fetched(edge.from) || edge.remote.as_ref().is_some_and(|wanted| wanted.is_locked(held))
}

/// Returns the remote references that failed, or lead to an upstream with trouble.
fn failed(explored: &Explored, held: &Lock) -> BTreeSet<EdgeId> {
    let graph = &explored.graph;
    let (mut failed, mut broken) = (BTreeSet::new(), Vec::new());
    for trouble in &explored.troubles {
        if !is_remote(graph, trouble) {
            continue;
        }
        match trouble.at {
            At::Edge(edge) if plan::is_remote(&graph[edge].reference) && ends_here(graph, edge, held) => {
                failed.insert(edge);
            }
            _ => broken.extend(graph.file_at(trouble.at)),
        }
    }
    let mut above: HashMap<FileId, Vec<EdgeId>> = HashMap::new();
    for (id, edge) in graph.edges() {
        if let Some(file) = graph.target_file(edge) {
            above.entry(file).or_default().push(id);
        }
    }
    reach(broken, |file| {
        let mut next = Vec::new();
        for id in above.get(file).into_iter().flatten().copied() {
            let edge = &graph[id];
            if edge.remote.is_some() && ends_here(graph, id, held) {
                failed.insert(id);
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
