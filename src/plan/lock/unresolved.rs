//! What could not be resolved, taken out of what was walked: the lock holds the rest.

use std::collections::{BTreeSet, HashMap};

use super::super::troubles::is_remote;
use crate::graph::{At, Edge, Explored, FileId, Graph, Origin, RootId, Target, Trouble, TroubleKind};
use crate::message::failure::Location;
use crate::plan;
use crate::record::{GitRemote, Lock, Remote};

/// A reference: a root and the index of its edge.
type Reference = (RootId, usize);

/// The state of the remote references of a tree.
pub(super) struct Asked {
    /// How many there are.
    pub(super) references: usize,
    /// How many of them could not be resolved.
    pub(super) unresolved: usize,
    /// How many of these the lock holds all the same.
    pub(super) kept: usize,
    /// The labels of the entries of the lock that could not be asked again.
    pub(super) not_asked: BTreeSet<String>,
}

/// Takes out every remote reference that could not be resolved, and what only such references lead to. An upstream with
/// trouble in itself is of no use: the reference to it counts as one that could not be resolved. What `held` holds all
/// the same is a leaf that was not followed; all else is broken.
pub(super) fn take_out(explored: &mut Explored, held: &Lock) -> Asked {
    let failed = failed(explored);
    let graph = &explored.graph;
    let mut unresolved: BTreeSet<Location> = failed.iter().map(|reference| location(graph, *reference)).collect();
    let is_own = |trouble: &&Trouble| {
        let is_start = graph.file_at(trouble.at).is_none_or(|file| graph.is_start(file));
        trouble.kind == TroubleKind::Chart || (is_start && remote_reference(graph, trouble).is_none())
    };
    let own = explored.troubles.iter().filter(|trouble| is_remote(graph, trouble));
    let own = own.filter(is_own);
    unresolved.extend(own.filter_map(|trouble| trouble.failure.location.as_deref().cloned()));
    let not_asked = failed
        .iter()
        .filter_map(|(root, edge)| {
            let wanted = graph.roots[*root].edges[*edge].remote.as_ref()?;
            Some(wanted.locked(held)?.label())
        })
        .collect();
    let mut kept = BTreeSet::new();
    for reference @ (root, index) in &failed {
        let edge = &explored.graph.roots[*root].edges[*index];
        let target = if is_held(edge, held) {
            kept.insert(location(&explored.graph, *reference));
            Target::Remote
        } else {
            Target::Broken
        };
        explored.graph.roots[*root].edges[*index].target = target;
    }
    forget_unreached(&mut explored.graph, explored.starts.iter().flatten().copied().collect());
    let mut references = resolved(&explored.graph);
    references.extend(unresolved.iter().cloned());
    Asked { references: references.len(), unresolved: unresolved.len(), kept: kept.len(), not_asked }
}

/// Returns whether a lock holds what a reference names, and the directory in it.
fn is_held(edge: &Edge, held: &Lock) -> bool {
    let Some(wanted) = &edge.remote else {
        return false;
    };
    match (wanted.locked(held), &wanted.spec) {
        (Some(Remote::Git(git)), Some(spec)) => git.paths.contains(&GitRemote::path(&spec.directory())),
        (entry, _) => entry.is_some(),
    }
}

fn location(graph: &Graph, (root, edge): Reference) -> Location {
    let edge = &graph.roots[root].edges[edge];
    graph.location(edge.from, &edge.reference)
}

/// Returns the remote reference that a trouble is about.
fn remote_reference(graph: &Graph, trouble: &Trouble) -> Option<Reference> {
    match trouble.at {
        At::Edge(root, edge) if plan::is_remote(&graph.roots[root].edges[edge].reference) => Some((root, edge)),
        _ => None,
    }
}

/// Returns whether a failed reference can be reported: it is the user's, or the lock can name it as left. Otherwise the
/// root that holds it is of no use.
fn can_be_told(graph: &Graph, (root, edge): Reference) -> bool {
    let edge = &graph.roots[root].edges[edge];
    !graph.is_fetched(edge.from) || plan::unresolved(edge).is_some()
}

/// Returns the remote references that failed, and those that lead to an upstream with trouble in itself.
fn failed(explored: &Explored) -> BTreeSet<Reference> {
    let graph = &explored.graph;
    let mut failed = BTreeSet::new();
    let mut broken = Vec::new();
    for trouble in &explored.troubles {
        if !is_remote(graph, trouble) || trouble.kind == TroubleKind::Chart {
            continue;
        }
        match remote_reference(graph, trouble) {
            Some(reference) if can_be_told(graph, reference) => {
                failed.insert(reference);
            }
            _ => broken.extend(graph.file_at(trouble.at)),
        }
    }
    let mut above: HashMap<FileId, Vec<Reference>> = HashMap::new();
    for (id, root) in graph.roots.iter().enumerate() {
        for (index, edge) in root.edges.iter().enumerate() {
            if let Some(file) = led_to(graph, edge.target) {
                above.entry(file).or_default().push((id, index));
            }
        }
    }
    let mut seen: BTreeSet<FileId> = broken.iter().copied().collect();
    while let Some(file) = broken.pop() {
        for (root, index) in above.get(&file).into_iter().flatten() {
            let edge = &graph.roots[*root].edges[*index];
            if is_to_remote(graph, edge.target) && can_be_told(graph, (*root, *index)) {
                failed.insert((*root, *index));
            } else if seen.insert(edge.from) {
                broken.push(edge.from);
            }
        }
    }
    failed
}

fn led_to(graph: &Graph, target: Target) -> Option<FileId> {
    match target {
        Target::Root { id, .. } => Some(graph.roots[id].file),
        Target::File(file) => Some(file),
        Target::Remote | Target::Kept | Target::Broken => None,
    }
}

/// Returns whether a reference was resolved over the network.
fn is_to_remote(graph: &Graph, target: Target) -> bool {
    match target {
        Target::Root { remote, .. } => remote,
        Target::File(file) => matches!(graph.files[file].origin, Origin::Remote(_)),
        Target::Remote | Target::Kept | Target::Broken => false,
    }
}

/// Takes the references out of roots that nothing leads to.
fn forget_unreached(graph: &mut Graph, starts: Vec<RootId>) {
    let reached = graph.reach(starts, |_, _, _| true);
    for (id, root) in graph.roots.iter_mut().enumerate() {
        if !reached.contains(&id) {
            root.edges.clear();
        }
    }
    graph.charts.retain(|chart| reached.contains(&chart.root));
}

/// Returns the places of everything remote that was brought in.
fn resolved(graph: &Graph) -> BTreeSet<Location> {
    let edges = graph.roots.iter().flat_map(|root| &root.edges);
    let references =
        edges.filter(|edge| is_to_remote(graph, edge.target)).map(|edge| graph.location(edge.from, &edge.reference));
    let charts = graph.charts.iter().filter(|chart| chart.archive.is_some());
    references.chain(charts.map(|chart| graph.note_location(chart.note))).collect()
}

#[cfg(test)]
mod tests;
