//! What leads to a finding: the roots and the targets from which its file is reached. A base knows a finding for those alone.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::Context;
use super::deployed::Deployed;
use crate::graph::{RootId, reach};
use crate::message::finding::{Finding, Starts};

/// Says of each finding what leads to its file; `deployed` is what is deployed as its objects are written: of a base nothing
/// is built.
pub(super) fn name(context: &Context<'_>, deployed: &Deployed<'_>, findings: &mut [Finding]) {
    let graph = context.graph;
    let mut roots: HashMap<&str, BTreeSet<RootId>> = HashMap::new();
    for (id, root) in graph.root_ids().zip(graph.roots.iter()) {
        let files = root.edges.iter().map(|edge| edge.from).chain([root.file]);
        for path in files.filter_map(|file| graph.user_path(file)) {
            roots.entry(path).or_default().insert(id);
        }
    }
    let users = graph.referrers();
    let mut known: HashMap<String, Arc<Starts>> = HashMap::new();
    for finding in findings {
        let Some(own) = roots.get(&*finding.path) else { continue };
        let made = known.entry(finding.path.clone()).or_insert_with(|| starts(context, deployed, &users, own).into());
        finding.starts = made.clone();
    }
}

fn starts(context: &Context<'_>, deployed: &Deployed<'_>, users: &[Vec<RootId>], own: &BTreeSet<RootId>) -> Starts {
    let above = reach(own.iter().copied(), |root| users[root.0].iter().copied());
    let directory = |root: &RootId| context.graph.roots[*root].directory.clone();
    // A root that names itself is not named by another one. In a ring, none is above the others.
    let is_top = |root: &&RootId| users[root.0].iter().all(|user| user == *root);
    let mut tops: BTreeSet<String> = above.iter().filter(is_top).map(directory).collect();
    if tops.is_empty() {
        tops = above.iter().map(directory).collect();
    }
    let mut targets: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for one in deployed.here.iter().filter(|one| !one.roots.is_disjoint(own)) {
        targets.entry(one.target.name()).or_default().push(one.target.title());
    }
    Starts { roots: above.iter().map(directory).collect(), tops, targets }
}
