//! The starts of a finding: the roots and targets from which its file is reached. A finding of the base counts as known
//! only for these.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::Context;
use super::deployed::DeployedTargets;
use crate::graph::{RootId, reach};
use crate::message::finding::{Finding, Starts};

/// Fills in the starts of each finding: the roots and targets that lead to its file, by which a finding is compared
/// with those of a base. `deployed` has the objects as they are written, since nothing of a base is built.
pub(super) fn fill_in(context: &Context<'_>, deployed: &DeployedTargets<'_>, findings: &mut [Finding]) {
    let graph = context.graph;
    let mut roots: HashMap<&str, BTreeSet<RootId>> = HashMap::new();
    for id in graph.root_ids() {
        for path in graph.roots[id].files().filter_map(|file| graph.user_path(file)) {
            roots.entry(path).or_default().insert(id);
        }
    }
    // Many findings are in one file, so each file is looked up once.
    let users = graph.referrers();
    let mut known: HashMap<String, Arc<Starts>> = HashMap::new();
    for finding in findings {
        // No root reads a lock or the configuration, for example: such a finding has no starts.
        let Some(readers) = roots.get(&*finding.path) else { continue };
        let starts_of_file =
            known.entry(finding.path.clone()).or_insert_with(|| starts(context, deployed, &users, readers).into());
        finding.starts = starts_of_file.clone();
    }
}

/// The starts of a file that the roots `readers` read. `users` has for each root those that reference it.
fn starts(
    context: &Context<'_>,
    deployed: &DeployedTargets<'_>,
    users: &[Vec<RootId>],
    readers: &BTreeSet<RootId>,
) -> Starts {
    let above = reach(readers.iter().copied(), |root| users[root.0].iter().copied());
    let directory = |root: &RootId| context.graph.roots[*root].directory.clone();
    // A root that lists itself is still a top root. In a cycle no root is above the others, so all of them are.
    let roots: BTreeSet<String> = above.iter().map(directory).collect();
    let is_top = |root: &&RootId| users[root.0].iter().all(|user| user == *root);
    let tops: BTreeSet<String> = above.iter().filter(is_top).map(directory).collect();
    let tops = if tops.is_empty() { roots.clone() } else { tops };
    let mut targets: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for local in deployed.local.iter().filter(|local| !local.roots.is_disjoint(readers)) {
        targets.entry(local.target.name()).or_default().push(local.target.title());
    }
    Starts { roots, tops, targets }
}
