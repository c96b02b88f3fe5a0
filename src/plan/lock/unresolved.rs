//! Removes unresolved references from a walk, so that the others can be locked.

use std::collections::{BTreeSet, HashMap};

use super::super::troubles::is_remote;
use crate::graph::{At, EdgeId, Explored, FileId, Graph, Resolution, reach};
use crate::record::Lock;
use crate::reference::Upstream;

/// Removes every remote reference that could not be resolved, or that leads to an upstream with trouble, if it is the
/// user's or `old_lock` has it. If the lock has it, it counts as not followed, otherwise as broken. Returns the sources
/// that keep their old entries.
pub(super) fn take_out(explored: &mut Explored, old_lock: &Lock) -> BTreeSet<Upstream> {
    let failed = failed_references(explored, old_lock);
    let graph = &mut explored.graph;
    let mut kept_entries = BTreeSet::new();
    for id in failed {
        let edge = &mut graph[id];
        let locked = edge.remote.as_ref().and_then(|wanted| wanted.locked(old_lock));
        let is_locked = locked.as_ref().is_some_and(|upstream| old_lock.holds(upstream));
        kept_entries.extend(locked.map(|upstream| upstream.source()));
        edge.resolution = if is_locked { Resolution::Remote } else { Resolution::Broken };
    }
    kept_entries
}

/// Whether the failure of a reference ends at it, and does not spread to the references that lead to it: it is the
/// user's, or the lock has it.
fn failure_ends_at(graph: &Graph, edge: EdgeId, old_lock: &Lock) -> bool {
    let edge = &graph[edge];
    !graph.is_fetched(edge.from) || edge.remote.as_ref().is_some_and(|wanted| wanted.is_locked(old_lock))
}

/// The remote references that failed, or that lead to an upstream with trouble: the nearest above each trouble at which
/// the failure ends.
fn failed_references(explored: &Explored, old_lock: &Lock) -> BTreeSet<EdgeId> {
    let graph = &explored.graph;
    let (mut failed, mut broken) = (BTreeSet::new(), Vec::new());
    // A failure inside of an upstream is one of the reference to it, because only that can be left out of the lock.
    for trouble in &explored.troubles {
        if !is_remote(graph, trouble) {
            // A local trouble makes no reference unresolved. It is reported as unread.
            continue;
        }
        match trouble.at {
            At::Edge(edge) if graph[edge].remote.is_some() && failure_ends_at(graph, edge, old_lock) => {
                failed.insert(edge);
            }
            // Usually the trouble is inside of an upstream. The references that lead to it are found below.
            _ => broken.extend(graph.file_at(trouble.at)),
        }
    }
    // Failures spread to the references that lead to them.
    let mut above: HashMap<FileId, Vec<EdgeId>> = HashMap::new();
    for (id, edge) in graph.edges() {
        if let Some(file) = graph.resolved_file(edge) {
            above.entry(file).or_default().push(id);
        }
    }
    reach(broken, |file| {
        let mut next = Vec::new();
        for id in above.get(file).into_iter().flatten().copied() {
            let edge = &graph[id];
            if edge.remote.is_some() && failure_ends_at(graph, id, old_lock) {
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
