//! What leads where: the one way in which work lists are followed.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::hash::Hash;

use super::{Edge, EdgeId, Graph, RootId, SourceId, Target};
use crate::os::limits::LOADS;

/// Returns these and all that they lead to, step by step.
pub(crate) fn reach<T: Ord + Clone, N: IntoIterator<Item = T>>(
    starts: impl IntoIterator<Item = T>,
    mut next: impl FnMut(&T) -> N,
) -> BTreeSet<T> {
    let mut reached = BTreeSet::new();
    let mut todo: Vec<T> = starts.into_iter().collect();
    while let Some(one) = todo.pop() {
        if reached.insert(one.clone()) {
            todo.extend(next(&one));
        }
    }
    reached
}

/// The last step of a shortest way to something, and where that begins; none of what the ways begin at.
pub(crate) type Ways<T, S> = HashMap<T, Option<(T, S)>>;

/// Returns the shortest ways from some of these to all that they lead to.
pub(crate) fn ways<T: Copy + Eq + Hash, S, N: IntoIterator<Item = (S, T)>>(
    starts: impl IntoIterator<Item = T>,
    mut next: impl FnMut(T) -> N,
) -> Ways<T, S> {
    let mut todo: VecDeque<T> = starts.into_iter().collect();
    let mut ways: Ways<T, S> = todo.iter().map(|start| (*start, None)).collect();
    while let Some(from) = todo.pop_front() {
        for (step, to) in next(from) {
            ways.entry(to).or_insert_with(|| {
                todo.push_back(to);
                Some((from, step))
            });
        }
    }
    ways
}

/// Returns the steps that lead to something; none where nothing leads there.
pub(crate) fn way<T: Copy + Eq + Hash, S: Copy>(ways: &Ways<T, S>, to: T) -> Option<Vec<S>> {
    let (mut way, mut last) = (Vec::new(), *ways.get(&to)?);
    while let Some((from, step)) = last {
        way.push(step);
        last = ways[&from];
    }
    way.reverse();
    Some(way)
}

impl Graph {
    /// Returns the roots that a root names, each with the reference that does.
    pub(crate) fn named(&self, root: RootId) -> impl Iterator<Item = (EdgeId, RootId)> {
        self.edges_of(root).filter_map(|(edge, Edge { target, .. })| match target {
            Target::Root { id, .. } => Some((edge, *id)),
            _ => None,
        })
    }

    /// Returns these roots and all that they lead to, over the references that `follows` takes.
    pub(crate) fn reach(
        &self,
        starts: impl IntoIterator<Item = RootId>,
        follows: impl Fn(EdgeId, &Edge) -> bool,
    ) -> BTreeSet<RootId> {
        let named = |root: &RootId| -> Vec<RootId> {
            let named = self.named(*root).filter(|(edge, _)| follows(*edge, &self[*edge]));
            named.map(|(_, id)| id).collect()
        };
        reach(starts, named)
    }

    /// Returns the roots that some of `starts` leads to, over nothing that stays remote.
    pub(crate) fn insisted(&self, starts: impl IntoIterator<Item = RootId>) -> BTreeSet<RootId> {
        self.reach(starts, |edge, _| !self.left.contains_key(&edge))
    }

    /// Returns of some roots those to which none of `others` leads but themselves, and one of each ring that is left.
    pub(crate) fn unnamed(&self, roots: &[RootId], others: impl IntoIterator<Item = RootId>) -> BTreeSet<RootId> {
        let named = |root: RootId| self.named(root).map(|(_, id)| id).filter(move |id| *id != root);
        let named: BTreeSet<RootId> = others.into_iter().flat_map(named).collect();
        let (below, above): (Vec<RootId>, Vec<RootId>) = roots.iter().partition(|root| named.contains(root));
        let mut reached = BTreeSet::new();
        let mut unnamed = BTreeSet::new();
        for root in above.into_iter().chain(below) {
            if !reached.contains(&root) {
                unnamed.insert(root);
                reached.extend(self.reach([root], |_, _| true));
            }
        }
        unnamed
    }

    /// Returns the user's roots that some of `failed` name, and to which nothing leads that is `built`: a build that failed,
    /// or was not run, may not have come to them.
    pub(crate) fn unseen(
        &self,
        built: impl IntoIterator<Item = RootId>,
        failed: impl IntoIterator<Item = RootId>,
    ) -> BTreeSet<RootId> {
        let seen = self.reach(built, |_, _| true);
        let named = failed.into_iter().flat_map(|root| self.named(root).map(|(_, named)| named));
        named.filter(|root| self.roots[*root].source == SourceId::FIRST && !seen.contains(root)).collect()
    }

    /// Returns the roots that name each root.
    pub(crate) fn users(&self) -> Vec<Vec<RootId>> {
        let mut users = vec![Vec::new(); self.roots.len()];
        for root in self.root_ids() {
            self.named(root).for_each(|(_, named)| users[named.0].push(root));
        }
        users
    }

    /// Returns these roots and all that lead to them.
    pub(crate) fn leading_to(&self, roots: impl IntoIterator<Item = RootId>) -> BTreeSet<RootId> {
        let users = self.users();
        reach(roots, |root| users[root.0].iter().copied())
    }

    /// Returns the roots whose builds load too many.
    pub(crate) fn overloaded(&self) -> BTreeSet<RootId> {
        let loads = self.loads();
        self.root_ids().filter(|root| loads[root.0] > LOADS.most as u64).collect()
    }

    /// Returns how many roots a build of each root loads, each as often as it is named.
    fn loads(&self) -> Vec<u64> {
        let mut loads: Vec<Option<u64>> = vec![None; self.roots.len()];
        for start in self.root_ids() {
            let mut todo = vec![(start, false)];
            while let Some((root, is_known)) = todo.pop() {
                if is_known {
                    let below = self.named(root).map(|(_, id)| loads[id.0].unwrap_or_default());
                    loads[root.0] = Some(below.fold(1, u64::saturating_add));
                } else if loads[root.0].is_none() {
                    // One that leads back to itself is not built.
                    loads[root.0] = Some(1);
                    todo.push((root, true));
                    todo.extend(self.named(root).map(|(_, id)| (id, false)));
                }
            }
        }
        loads.into_iter().map(Option::unwrap_or_default).collect()
    }

    /// Returns a shortest chain of local references from a root to another one.
    pub(super) fn way(&self, from: RootId, to: RootId) -> Option<Vec<EdgeId>> {
        let is_local = |target| matches!(target, Target::Root { remote: false, .. });
        let ways = ways([from], |root| self.named(root).filter(|(edge, _)| is_local(self[*edge].target)));
        way(&ways, to)
    }
}
