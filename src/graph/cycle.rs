//! Roots that lead back to themselves. kustomize refuses a root that equals or contains one on its
//! own referrer chain (`fileloader.go`, `errIfArgEqualOrHigher`, `errIfRepoCycle`).

use std::collections::{HashMap, HashSet, VecDeque};

use super::nodes::{Graph, RootId, Target};
use super::trouble::{Trouble, TroubleKind};
use crate::message::failure::Failure;
use crate::message::redact;
use crate::tree::path;

/// How many steps are looked at for the chains of all cycles together. With cycles without end, such as thousands of
/// roots that all name each other, the later ones are reported without theirs.
const MOST_LOOKS: usize = 1_000_000;
/// How many roots of a chain are shown, at its begin and at its end.
const SHOWN: usize = 16;

/// One step from root to root.
#[derive(Clone, Copy)]
struct WalkResult {
    from: RootId,
    edge: usize,
    to: RootId,
    remote: bool,
}

/// Returns a trouble for every way in which the graph's roots lead back to themselves.
pub(super) fn find(graph: &Graph) -> Vec<Trouble> {
    let steps: Vec<Vec<WalkResult>> = graph
        .roots
        .iter()
        .enumerate()
        .map(|(from, root)| {
            root.edges
                .iter()
                .enumerate()
                .filter_map(|(edge, it)| match it.target {
                    Target::Root { id: to, remote } => Some(WalkResult { from, edge, to, remote }),
                    _ => None,
                })
                .collect()
        })
        .collect();
    let mut order: Vec<RootId> = (0..steps.len()).collect();
    order.sort_by_key(|id| {
        let root = &graph.roots[*id];
        (root.source, root.directory.as_str())
    });
    let knots = knots(&steps);
    let mut troubles = Vec::new();
    let mut looks = MOST_LOOKS;
    for closing in closing_steps(&steps, &order, &knots) {
        let along = |step: &WalkResult| {
            looks = looks.saturating_sub(1);
            looks > 0 && knots[step.to] == knots[closing.to]
        };
        let mut chain = chain(&steps, closing.to, closing.from, along).unwrap_or_default();
        chain.push(closing);
        troubles.push(trouble(graph, &chain, "leads back to itself"));
    }
    let is_none = troubles.is_empty();
    troubles.extend(containing(graph, &steps, &order, &knots));
    if is_none {
        troubles.extend(prefixes(graph, &steps));
    }
    troubles
}

/// Returns for each root a number that it shares with those that lead to it and that it leads to
/// (the strongly connected components, by Tarjan).
fn knots(steps: &[Vec<WalkResult>]) -> Vec<usize> {
    const NEW: usize = usize::MAX;
    let mut knots = vec![NEW; steps.len()];
    let mut met = vec![NEW; steps.len()];
    let mut lowest = vec![NEW; steps.len()];
    let mut open: Vec<RootId> = Vec::new();
    let (mut meetings, mut count) = (0, 0);
    for start in 0..steps.len() {
        if met[start] != NEW {
            continue;
        }
        let mut stack = vec![(start, 0)];
        while let Some((root, next)) = stack.pop() {
            if next == 0 {
                met[root] = meetings;
                lowest[root] = meetings;
                meetings += 1;
                open.push(root);
            } else {
                // The step before led somewhere that is done by now, or was met before.
                let to = steps[root][next - 1].to;
                if knots[to] == NEW {
                    lowest[root] = lowest[root].min(lowest[to]);
                }
            }
            if let Some(step) = steps[root].get(next) {
                stack.push((root, next + 1));
                if met[step.to] == NEW {
                    stack.push((step.to, 0));
                }
                continue;
            }
            if lowest[root] == met[root] {
                while let Some(one) = open.pop() {
                    knots[one] = count;
                    if one == root {
                        break;
                    }
                }
                count += 1;
            }
        }
    }
    knots
}

/// Returns the steps that close a cycle: those that lead to a root which is still being followed.
///
/// Only what lies on a cycle is followed, from the first root in `order`. So they do not depend on where
/// the walk came from.
fn closing_steps(steps: &[Vec<WalkResult>], order: &[RootId], knots: &[usize]) -> Vec<WalkResult> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Done,
    }
    let mut marks = vec![Mark::New; steps.len()];
    let mut closing = Vec::new();
    for &start in order {
        if marks[start] != Mark::New {
            continue;
        }
        marks[start] = Mark::Open;
        let mut stack = vec![(start, 0)];
        while let Some((root, next)) = stack.pop() {
            let Some(step) = steps[root].get(next) else {
                marks[root] = Mark::Done;
                continue;
            };
            stack.push((root, next + 1));
            if knots[step.to] != knots[root] {
                continue;
            }
            match marks[step.to] {
                Mark::New => {
                    marks[step.to] = Mark::Open;
                    stack.push((step.to, 0));
                }
                Mark::Open => closing.push(*step),
                Mark::Done => {}
            }
        }
    }
    closing
}

/// Returns the shortest chain of steps between two roots, over steps that `along` accepts.
fn chain(
    steps: &[Vec<WalkResult>],
    from: RootId,
    to: RootId,
    mut along: impl FnMut(&WalkResult) -> bool,
) -> Option<Vec<WalkResult>> {
    if from == to {
        return Some(Vec::new());
    }
    let mut came: HashMap<RootId, WalkResult> = HashMap::new();
    let mut queue = VecDeque::from([from]);
    while let Some(root) = queue.pop_front() {
        for step in steps[root].iter().filter(|step| along(step)) {
            if step.to == from || came.contains_key(&step.to) {
                continue;
            }
            came.insert(step.to, *step);
            if step.to == to {
                let mut chain = Vec::new();
                let mut at = to;
                while at != from {
                    let step = came.get(&at)?;
                    chain.push(*step);
                    at = step.from;
                }
                chain.reverse();
                return Some(chain);
            }
            queue.push_back(step.to);
        }
    }
    None
}

/// Finds roots that reach, by local references only, a directory that contains them. Each reference that leads there is
/// reported once; those on a cycle are reported as part of it.
fn containing(graph: &Graph, steps: &[Vec<WalkResult>], order: &[RootId], knots: &[usize]) -> Vec<Trouble> {
    let ids: HashMap<(usize, &str), RootId> =
        graph.roots.iter().enumerate().map(|(id, root)| ((root.source, root.directory.as_str()), id)).collect();
    let mut troubles = Vec::new();
    let mut told = HashSet::new();
    for &id in order {
        let root = &graph.roots[id];
        let mut directory = root.directory.as_str();
        while !directory.is_empty() {
            directory = path::parent(directory);
            let Some(above) = ids.get(&(root.source, directory)) else {
                continue;
            };
            if knots[id] == knots[*above] {
                continue;
            }
            if let Some(chain) = chain(steps, id, *above, |step| !step.remote)
                && let Some(last) = chain.last()
                && told.insert((last.from, last.edge))
            {
                troubles.push(trouble(graph, &chain, "leads to a directory that contains it"));
            }
        }
    }
    troubles
}

/// Finds remote references that kustomize takes for a cycle: on their referrer chain is a URL that
/// begins with theirs.
fn prefixes(graph: &Graph, steps: &[Vec<WalkResult>]) -> Vec<Trouble> {
    let remote: Vec<(WalkResult, &str)> = steps
        .iter()
        .flatten()
        .filter(|step| step.remote)
        .map(|step| (*step, graph.roots[step.from].edges[step.edge].reference.text.as_str()))
        .collect();
    let mut troubles = Vec::new();
    let mut seen = HashSet::new();
    for (first, text) in &remote {
        for (second, shorter) in &remote {
            if !text.starts_with(shorter) || !seen.insert((first.to, second.from, *shorter)) {
                continue;
            }
            if let Some(mut chain) = chain(steps, first.to, second.from, |_| true) {
                chain.insert(0, *first);
                chain.push(*second);
                troubles.push(trouble(
                    graph,
                    &chain,
                    "names a URL that begins like one on its chain, which `kustomize build` takes for a cycle",
                ));
            }
        }
    }
    troubles
}

fn trouble(graph: &Graph, chain: &[WalkResult], what: &str) -> Trouble {
    let cycle = |edge: Option<(RootId, usize)>, file, failure| Trouble {
        kind: TroubleKind::Cycle,
        edge,
        root: edge.map(|(root, _)| root),
        file,
        failure,
    };
    let (Some(first), Some(last)) = (chain.first(), chain.last()) else {
        return cycle(None, None, Failure::new("a kustomization root names itself"));
    };
    let mut shown = format!("`{}`", graph.root_label(first.from));
    for (at, step) in chain.iter().enumerate() {
        if at >= SHOWN && at + SHOWN < chain.len() {
            if at == SHOWN {
                shown.push_str(&format!(" -> {} more", chain.len() - 2 * SHOWN));
            }
            continue;
        }
        let text = &graph.roots[step.from].edges[step.edge].reference.text;
        shown.push_str(&format!(" -> `{}`", graph.root_label(step.to)));
        if step.remote {
            shown.push_str(&format!(" ({})", redact::url(text)));
        }
    }
    let edge = &graph.roots[last.from].edges[last.edge];
    let failure = Failure::new(format!("cycle: `{}` {what}: {shown}", graph.root_label(first.from)))
        .at(graph.location(edge.from, &edge.reference))
        .hint("`kustomize build` refuses this: let the reference name something else");
    cycle(Some((last.from, last.edge)), Some(edge.from), failure)
}
