//! What could not be resolved, taken out of what was walked: the lock holds the rest.

use std::collections::{BTreeSet, HashMap};

use super::super::troubles::is_remote;
use super::is_locked;
use crate::graph::{At, Explored, FileId, Graph, Origin, RootId, Target, Trouble, reach};
use crate::message::failure::Location;
use crate::plan;
use crate::record::Lock;

/// A reference: a root and the index of its edge.
type Reference = (RootId, usize);

/// What could not be resolved.
pub(super) struct Asked {
    /// How many references.
    pub(super) unresolved: usize,
    /// The labels of the entries of the lock that could not be asked again.
    pub(super) not_asked: BTreeSet<String>,
}

/// Takes out every remote reference of the user that could not be resolved, and what only such references lead to. An
/// upstream with trouble in itself, or behind it, is of no use. What `held` holds all the same is a leaf that was not
/// followed; all else is broken.
pub(super) fn take_out(explored: &mut Explored, held: &Lock) -> Asked {
    let failed = failed(explored, held);
    let graph = &mut explored.graph;
    // Charts and what is unsafe are no references of the graph.
    let is_other = |trouble: &&Trouble| {
        let is_start = graph.file_at(trouble.at).is_none_or(|file| graph.is_start(file));
        is_remote(graph, trouble) && is_start && remote_reference(graph, trouble).is_none()
    };
    let others = explored.troubles.iter().filter(is_other);
    let mut unresolved: BTreeSet<Location> =
        others.filter_map(|trouble| trouble.failure.location.as_deref().cloned()).collect();
    let mut not_asked = BTreeSet::new();
    for (root, index) in failed {
        let edge = &graph.roots[root].edges[index];
        unresolved.insert(graph.location(edge.from, &edge.reference));
        let entry = edge.remote.as_ref().and_then(|wanted| wanted.locked(held));
        not_asked.extend(entry.map(|entry| entry.label()));
        let is_held = edge.remote.as_ref().is_some_and(|wanted| is_locked(wanted, held));
        graph.roots[root].edges[index].target = if is_held { Target::Remote } else { Target::Broken };
    }
    let reached = graph.reach(explored.starts.iter().flatten().copied(), |_, _, _| true);
    for (id, root) in graph.roots.iter_mut().enumerate() {
        if !reached.contains(&id) {
            root.edges.clear();
        }
    }
    graph.charts.retain(|chart| reached.contains(&chart.root));
    Asked { unresolved: unresolved.len(), not_asked }
}

/// Returns the remote reference that a trouble is about.
fn remote_reference(graph: &Graph, trouble: &Trouble) -> Option<Reference> {
    match trouble.at {
        At::Edge(root, edge) if plan::is_remote(&graph.roots[root].edges[edge].reference) => Some((root, edge)),
        _ => None,
    }
}

/// Returns whether nothing that leads to a failed reference is of less use for it: it is the user's, or the lock holds it.
fn ends_here(graph: &Graph, (root, edge): Reference, held: &Lock) -> bool {
    let edge = &graph.roots[root].edges[edge];
    !graph.is_fetched(edge.from) || edge.remote.as_ref().is_some_and(|wanted| is_locked(wanted, held))
}

/// Returns the remote references that failed, or lead to an upstream with trouble.
fn failed(explored: &Explored, held: &Lock) -> BTreeSet<Reference> {
    let graph = &explored.graph;
    let (mut failed, mut broken) = (BTreeSet::new(), Vec::new());
    for trouble in &explored.troubles {
        if !is_remote(graph, trouble) {
            continue;
        }
        match remote_reference(graph, trouble) {
            Some(reference) if ends_here(graph, reference, held) => {
                failed.insert(reference);
            }
            _ => broken.extend(graph.file_at(trouble.at)),
        }
    }
    let mut above: HashMap<FileId, Vec<Reference>> = HashMap::new();
    for (id, root) in graph.roots.iter().enumerate() {
        for (index, edge) in root.edges.iter().enumerate() {
            if let Some((file, _)) = led_to(graph, edge.target) {
                above.entry(file).or_default().push((id, index));
            }
        }
    }
    reach(broken, |file| {
        let mut next = Vec::new();
        for (root, index) in above.get(file).into_iter().flatten().copied() {
            let edge = &graph.roots[root].edges[index];
            let is_remote = led_to(graph, edge.target).is_some_and(|(_, is_remote)| is_remote);
            if is_remote && ends_here(graph, (root, index), held) {
                failed.insert((root, index));
            } else {
                next.push(edge.from);
            }
        }
        next
    });
    failed
}

/// Returns the file that a reference leads to, and whether that was resolved over the network.
fn led_to(graph: &Graph, target: Target) -> Option<(FileId, bool)> {
    match target {
        Target::Root { id, remote } => Some((graph.roots[id].file, remote)),
        Target::File(file) => Some((file, matches!(graph.files[file].origin, Origin::Remote(_)))),
        Target::Remote | Target::Kept | Target::Broken => None,
    }
}

#[cfg(test)]
mod tests;
