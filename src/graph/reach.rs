//! Reachability in graphs. Every work list of the program is followed by these functions.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::hash::Hash;

use super::{Edge, EdgeId, Graph, Resolution, RootId};
use crate::os::limits::LOADS;

/// All nodes of a graph that are reachable from `starts`, which are included. `next` gives the nodes to which one
/// leads.
pub(crate) fn reach<T: Ord + Clone, N: IntoIterator<Item = T>>(
    starts: impl IntoIterator<Item = T>,
    mut next: impl FnMut(&T) -> N,
) -> BTreeSet<T> {
    let mut reached = BTreeSet::new();
    let mut todo: Vec<T> = starts.into_iter().collect();
    while let Some(node) = todo.pop() {
        if reached.insert(node.clone()) {
            todo.extend(next(&node));
        }
    }
    reached
}

/// The predecessors in a breadth-first search: for each node the previous node and the step from it. `None` for a
/// start.
pub(crate) type Predecessors<T, S> = HashMap<T, Option<(T, S)>>;

/// Searches a graph breadth-first from `starts`, and returns for every reached node how a shortest path comes to it.
/// [`steps_to`] reads a path off the result. `next` gives the steps from a node, each with the node to which it leads.
pub(crate) fn predecessors<T: Copy + Eq + Hash, S, N: IntoIterator<Item = (S, T)>>(
    starts: impl IntoIterator<Item = T>,
    mut next: impl FnMut(T) -> N,
) -> Predecessors<T, S> {
    let mut todo: VecDeque<T> = starts.into_iter().collect();
    let mut predecessors: Predecessors<T, S> = todo.iter().map(|start| (*start, None)).collect();
    while let Some(from) = todo.pop_front() {
        for (step, to) in next(from) {
            predecessors.entry(to).or_insert_with(|| {
                todo.push_back(to);
                Some((from, step))
            });
        }
    }
    predecessors
}

/// The steps of a shortest path to a node. `None` if no path leads there.
pub(crate) fn steps_to<T: Copy + Eq + Hash, S: Copy>(predecessors: &Predecessors<T, S>, to: T) -> Option<Vec<S>> {
    let (mut steps, mut previous) = (Vec::new(), *predecessors.get(&to)?);
    while let Some((from, step)) = previous {
        steps.push(step);
        previous = predecessors[&from];
    }
    steps.reverse();
    Some(steps)
}

impl Graph {
    /// The roots that a root references, each with the reference.
    pub(crate) fn referenced_roots(&self, root: RootId) -> impl Iterator<Item = (EdgeId, RootId)> {
        self.edges_of(root).filter_map(|(edge, Edge { resolution: target, .. })| match target {
            Resolution::Root { id, .. } => Some((edge, *id)),
            _ => None,
        })
    }

    /// `starts` and all roots that are reachable from them over the references that `follows` accepts.
    pub(crate) fn reach(
        &self,
        starts: impl IntoIterator<Item = RootId>,
        follows: impl Fn(EdgeId, &Edge) -> bool,
    ) -> BTreeSet<RootId> {
        reach(starts, |root| {
            let references = self.referenced_roots(*root).filter(|(edge, _)| follows(*edge, &self[*edge]));
            references.map(|(_, id)| id).collect::<Vec<RootId>>()
        })
    }

    /// `starts` and all roots that are reachable from them.
    pub(crate) fn reachable(&self, starts: impl IntoIterator<Item = RootId>) -> BTreeSet<RootId> {
        self.reach(starts, |_, _| true)
    }

    /// `starts` and all roots that are reachable from them without a reference that stays remote.
    pub(crate) fn reach_localized(&self, starts: impl IntoIterator<Item = RootId>) -> BTreeSet<RootId> {
        self.reach(starts, |edge, _| !self.stays_remote.contains_key(&edge))
    }

    /// The members of `roots` that no other root in `others` references, and one of each cycle, so that the result
    /// reaches all of `roots`.
    pub(crate) fn top_roots(&self, roots: &[RootId], others: impl IntoIterator<Item = RootId>) -> BTreeSet<RootId> {
        let edges = others.into_iter().flat_map(|root| self.referenced_roots(root).map(move |(_, id)| (root, id)));
        let referenced: BTreeSet<RootId> = edges.filter(|(root, id)| root != id).map(|(_, id)| id).collect();
        let (below, above): (Vec<RootId>, Vec<RootId>) = roots.iter().partition(|root| referenced.contains(root));
        let mut reached = BTreeSet::new();
        let mut top_roots = BTreeSet::new();
        // A root that is referenced counts only if nothing before it reaches it: it is in a cycle.
        for root in above.into_iter().chain(below) {
            if !reached.contains(&root) {
                top_roots.insert(root);
                reached.extend(self.reachable([root]));
            }
        }
        top_roots
    }

    /// The user's roots that are still to be built alone after some builds failed: those that a root in `failed`
    /// references, unless a root in `built` reaches them, whose build has loaded them.
    pub(crate) fn unverified_roots(
        &self,
        built: impl IntoIterator<Item = RootId>,
        failed: impl IntoIterator<Item = RootId>,
    ) -> BTreeSet<RootId> {
        let reached = self.reachable(built);
        let named = failed.into_iter().flat_map(|root| self.referenced_roots(root).map(|(_, named)| named));
        named.filter(|root| self.is_user_root(*root) && !reached.contains(root)).collect()
    }

    /// For each root the roots that reference it, by the index of the root.
    pub(crate) fn referrers(&self) -> Vec<Vec<RootId>> {
        let mut referrers = vec![Vec::new(); self.roots.len()];
        for root in self.root_ids() {
            self.referenced_roots(root).for_each(|(_, named)| referrers[named.0].push(root));
        }
        referrers
    }

    /// `roots` and all roots that reach them.
    pub(crate) fn leading_to(&self, roots: impl IntoIterator<Item = RootId>) -> BTreeSet<RootId> {
        let referrers = self.referrers();
        reach(roots, |root| referrers[root.0].iter().copied())
    }

    /// The roots whose builds load too many roots.
    pub(crate) fn overloaded(&self) -> BTreeSet<RootId> {
        let loads = self.loads();
        self.root_ids().filter(|root| loads[root.0] > LOADS.most as u64).collect()
    }

    /// The number of roots that the build of each root loads, by the index of the root. A root that is referenced twice
    /// counts twice, with all that it loads, because kustomize loads it again.
    fn loads(&self) -> Vec<u64> {
        let mut loads: Vec<Option<u64>> = vec![None; self.roots.len()];
        for start in self.root_ids() {
            // Depth first. Each root is visited twice: to queue the roots that it references, and after these are
            // counted.
            let mut todo = vec![(start, false)];
            while let Some((root, are_others_counted)) = todo.pop() {
                if are_others_counted {
                    let below = self.referenced_roots(root).map(|(_, id)| loads[id.0].unwrap_or_default());
                    loads[root.0] = Some(below.fold(1, u64::saturating_add));
                } else if loads[root.0].is_none() {
                    // A root in a cycle is never built, so any number will do.
                    loads[root.0] = Some(1);
                    todo.push((root, true));
                    todo.extend(self.referenced_roots(root).map(|(_, id)| (id, false)));
                }
            }
        }
        loads.into_iter().map(Option::unwrap_or_default).collect()
    }

    /// A shortest chain of local references from one root to another. `None` if there is none.
    pub(super) fn local_chain(&self, from: RootId, to: RootId) -> Option<Vec<EdgeId>> {
        let predecessors = predecessors([from], |root| {
            self.referenced_roots(root)
                .filter(|(edge, _)| matches!(self[*edge].resolution, Resolution::Root { remote: false, .. }))
        });
        steps_to(&predecessors, to)
    }
}
