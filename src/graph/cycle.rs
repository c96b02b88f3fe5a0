//! Roots that lead back to themselves. kustomize refuses a root that equals or contains one on its
//! own referrer chain (`fileloader.go`, `errIfArgEqualOrHigher`, `errIfRepoCycle`).

use std::collections::{BTreeSet, HashMap, HashSet};

use super::nodes::{Graph, RootId, Target};
use super::trouble::{At, Trouble, TroubleKind, WalkError};
use crate::message::redact;
use crate::tree::path;

/// How many knots are reported.
const MOST: usize = 100;
/// How many roots of a chain are shown, at its begin and at its end.
const SHOWN: usize = 16;

/// One reference from root to root: the root, and the index of its edge.
type Step = (RootId, usize);

/// Returns a trouble for every knot of roots that lead back to themselves, and for other references that kustomize takes
/// for a cycle.
pub(super) fn find(graph: &Graph) -> Vec<Trouble> {
    let mut troubles = Vec::new();
    let mut knots: Vec<BTreeSet<RootId>> = Vec::new();
    for root in closing(graph) {
        if knots.len() == MOST || knots.iter().any(|knot| knot.contains(&root)) {
            continue;
        }
        let above = graph.leading_to([root]);
        let knot: BTreeSet<RootId> = graph.reach([root], |_, _, _| true).intersection(&above).copied().collect();
        // Seen from its first root, it does not depend on where the walk began.
        let first = knot.iter().copied().min_by_key(|id| (graph.roots[*id].source, &graph.roots[*id].directory));
        let first = first.unwrap_or(root);
        let chain = graph.way(first, first, |_| true).unwrap_or_default();
        troubles.extend(trouble(graph, &chain, "leads back to itself"));
        knots.push(knot);
    }
    let is_none = troubles.is_empty();
    troubles.extend(containing(graph, &knots));
    if is_none {
        troubles.extend(prefixes(graph));
    }
    troubles
}

/// Returns roots of which each cycle has one: those to which a reference leads back while they are still being followed.
fn closing(graph: &Graph) -> Vec<RootId> {
    #[derive(Clone, Copy)]
    enum Mark {
        New,
        Open,
        Done,
    }
    let mut marks = vec![Mark::New; graph.roots.len()];
    let mut closing = Vec::new();
    for start in 0..graph.roots.len() {
        let mut stack = if let Mark::New = marks[start] { vec![(start, 0)] } else { Vec::new() };
        while let Some((root, next)) = stack.pop() {
            let Some(edge) = graph.roots[root].edges.get(next) else {
                marks[root] = Mark::Done;
                continue;
            };
            marks[root] = Mark::Open;
            stack.push((root, next + 1));
            if let Target::Root { id, .. } = edge.target {
                match marks[id] {
                    Mark::New => stack.push((id, 0)),
                    Mark::Open => closing.push(id),
                    Mark::Done => {}
                }
            }
        }
    }
    closing
}

/// Finds roots that reach, by local references only, a directory that contains them. Each reference that leads there is
/// reported once; those in a knot are reported as part of it.
fn containing(graph: &Graph, knots: &[BTreeSet<RootId>]) -> Vec<Trouble> {
    let roots = graph.roots.iter().enumerate();
    let ids: HashMap<(usize, &str), RootId> =
        roots.clone().map(|(id, root)| ((root.source, root.directory.as_str()), id)).collect();
    let mut order: Vec<_> = roots.map(|(id, root)| (root.source, root.directory.as_str(), id)).collect();
    order.sort_unstable();
    let mut troubles = Vec::new();
    let mut told = HashSet::new();
    for (source, directory, id) in order {
        for above in path::and_above(directory).map(path::parent) {
            let Some(&above) = ids.get(&(source, above)) else {
                continue;
            };
            if knots.iter().any(|knot| knot.contains(&id) && knot.contains(&above)) {
                continue;
            }
            if let Some(chain) = graph.way(id, above, |target| matches!(target, Target::Root { remote: false, .. }))
                && told.insert(chain.last().copied())
            {
                troubles.extend(trouble(graph, &chain, "leads to a directory that contains it"));
            }
        }
    }
    troubles
}

/// Finds remote references that kustomize takes for a cycle: on their referrer chain is a URL that
/// begins with theirs.
fn prefixes(graph: &Graph) -> Vec<Trouble> {
    let mut remote: Vec<(Step, RootId, &str)> = Vec::new();
    for (root, node) in graph.roots.iter().enumerate() {
        for (index, edge) in node.edges.iter().enumerate() {
            if let Target::Root { id, remote: true } = edge.target {
                remote.push(((root, index), id, &edge.reference.text));
            }
        }
    }
    let mut troubles = Vec::new();
    let mut seen = HashSet::new();
    for (first, to, text) in &remote {
        for (second, _, shorter) in &remote {
            if !text.starts_with(shorter) || !seen.insert((*to, second.0, *shorter)) {
                continue;
            }
            let between = if *to == second.0 { Some(Vec::new()) } else { graph.way(*to, second.0, |_| true) };
            if let Some(between) = between {
                let chain: Vec<Step> = [*first].into_iter().chain(between).chain([*second]).collect();
                let what = "names a URL that begins like one on its chain, which `kustomize build` takes for a cycle";
                troubles.extend(trouble(graph, &chain, what));
            }
        }
    }
    troubles
}

fn trouble(graph: &Graph, chain: &[Step], what: &str) -> Option<Trouble> {
    let ((first, _), last) = (*chain.first()?, *chain.last()?);
    let mut shown = format!("`{}`", graph.root_label(first));
    for (at, (root, edge)) in chain.iter().enumerate() {
        if at >= SHOWN && at + SHOWN < chain.len() {
            if at == SHOWN {
                shown.push_str(&format!(" -> {} more", chain.len() - 2 * SHOWN));
            }
            continue;
        }
        let edge = &graph.roots[*root].edges[*edge];
        if let Target::Root { id, remote } = edge.target {
            shown.push_str(&format!(" -> `{}`", graph.root_label(id)));
            if remote {
                shown.push_str(&format!(" ({})", redact::url(&edge.reference.text)));
            }
        }
    }
    let stop = WalkError::new(TroubleKind::Cycle, format!("cycle: `{}` {what}: {shown}", graph.root_label(first)));
    let hint = "take the reference out, or let it name something else: what both need belongs in a root of its own";
    Some(stop.hint(hint).at(graph, At::Edge(last.0, last.1)))
}
