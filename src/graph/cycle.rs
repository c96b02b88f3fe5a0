//! Roots that lead back to themselves. kustomize refuses a root that equals or contains one on its
//! own referrer chain (`fileloader.go`, `errIfArgEqualOrHigher`).

use std::collections::{BTreeSet, HashMap, HashSet};

use super::nodes::{Graph, RootId, Target};
use super::reach;
use super::trouble::{At, Trouble, TroubleKind};
use crate::message::redact;
use crate::tree::path;

/// How many knots are reported.
const MOST: usize = 100;
/// How many references of a chain are shown.
const SHOWN: usize = 32;

/// One reference from root to root: the root, and the index of its edge.
type Step = (RootId, usize);

/// Returns a trouble for every knot of roots that lead back to themselves, and for other references that kustomize takes
/// for a cycle.
pub(super) fn find(graph: &Graph) -> Vec<Trouble> {
    let mut troubles = Vec::new();
    let mut knots: Vec<BTreeSet<RootId>> = Vec::new();
    while knots.len() < MOST
        && let Some(root) = closing(graph, &knots)
    {
        let above = graph.leading_to([root]);
        let knot: BTreeSet<RootId> = graph.reach([root], |_, _, _| true).intersection(&above).copied().collect();
        // Seen from its first root, it does not depend on where the walk began.
        let first = knot.iter().copied().min_by_key(|id| (graph.roots[*id].source, &graph.roots[*id].directory));
        let first = first.unwrap_or(root);
        let chain = graph.way(first, first, |_| true).unwrap_or_default();
        troubles.extend(trouble(graph, &chain, "leads back to itself"));
        knots.push(knot);
    }
    troubles.extend(containing(graph, &knots));
    troubles
}

/// Returns a root that leads back to itself, and is in none of these knots.
fn closing(graph: &Graph, knots: &[BTreeSet<RootId>]) -> Option<RootId> {
    let all = 0..graph.roots.len();
    let users = graph.users();
    let mut open: Vec<usize> = graph.roots.iter().map(|root| root.named().count()).collect();
    let is_known = |id: &RootId| open[*id] == 0 || knots.iter().any(|knot| knot.contains(id));
    let ends: Vec<RootId> = all.clone().filter(is_known).collect();
    // Those that lead to ends alone.
    let ended = reach(ends, |id| {
        let mut users = users[*id].clone();
        users.retain(|user| {
            open[*user] -= 1;
            open[*user] == 0
        });
        users
    });
    // Each of the others names one of them.
    let mut at = all.clone().find(|id| !ended.contains(id))?;
    let mut seen = BTreeSet::new();
    while seen.insert(at) {
        at = graph.roots[at].named().map(|(.., id)| id).find(|id| !ended.contains(id))?;
    }
    Some(at)
}

/// Finds roots that reach, by local references only, a directory that contains them. Each reference that leads there is
/// reported once; those in a knot are reported as part of it.
fn containing(graph: &Graph, knots: &[BTreeSet<RootId>]) -> Vec<Trouble> {
    let roots = graph.roots.iter().enumerate();
    let ids: HashMap<(usize, &str), RootId> =
        roots.clone().map(|(id, root)| ((root.source, root.directory.as_str()), id)).collect();
    let mut troubles = Vec::new();
    let mut told = HashSet::new();
    for (id, root) in roots {
        for above in path::and_above(&root.directory).map(path::parent) {
            let Some(&above) = ids.get(&(root.source, above)) else {
                continue;
            };
            let is_told = knots.iter().any(|knot| knot.contains(&id) && knot.contains(&above));
            let is_local = |target| matches!(target, Target::Root { remote: false, .. });
            if !is_told
                && let Some(chain) = graph.way(id, above, is_local)
                && told.insert(chain.last().copied())
            {
                troubles.extend(trouble(graph, &chain, "leads to a directory that contains it"));
            }
        }
    }
    troubles
}

fn trouble(graph: &Graph, chain: &[Step], what: &str) -> Option<Trouble> {
    let ((first, _), last) = (*chain.first()?, *chain.last()?);
    let label = |root: RootId| format!("`{}`", graph.root_label(root));
    let mut shown = vec![label(first)];
    for (root, edge) in chain.iter().take(SHOWN) {
        let edge = &graph.roots[*root].edges[*edge];
        if let Target::Root { id, remote } = edge.target {
            let url = if remote { format!(" ({})", redact::url(&edge.reference.text)) } else { String::new() };
            shown.push(label(id) + &url);
        }
    }
    shown.extend(chain.get(SHOWN).map(|_| "…".to_owned()));
    let message = format!("cycle: {} {what}: {}", label(first), shown.join(" -> "));
    let hint = "take the reference out, or let it name something else: what both need belongs in a root of its own";
    Some(Trouble::new(TroubleKind::Cycle, message).hint(hint).at(graph, At::Edge(last.0, last.1)))
}
