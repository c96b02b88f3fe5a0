//! Roots that lead back to themselves. kustomize refuses a root that equals or contains one on its
//! own referrer chain (`fileloader.go`, `errIfArgEqualOrHigher`, `errIfRepoCycle`).

use std::collections::{HashMap, HashSet, VecDeque};

use super::graph::{Graph, RootId, Target};
use super::trouble::{Trouble, TroubleKind};
use crate::failure::Failure;
use crate::redact;
use crate::tree::path;

/// One step from root to root.
#[derive(Clone, Copy)]
struct Step {
    from: RootId,
    edge: usize,
    to: RootId,
    remote: bool,
}

/// Returns a trouble for every way in which the graph's roots lead back to themselves.
pub(super) fn find(graph: &Graph) -> Vec<Trouble> {
    let steps: Vec<Vec<Step>> = graph
        .roots
        .iter()
        .enumerate()
        .map(|(from, root)| {
            root.edges
                .iter()
                .enumerate()
                .filter_map(|(edge, it)| match it.target {
                    Target::Root { id: to, remote } => Some(Step {
                        from,
                        edge,
                        to,
                        remote,
                    }),
                    _ => None,
                })
                .collect()
        })
        .collect();
    let mut troubles = Vec::new();
    for closing in closing_steps(&steps) {
        let mut chain = chain(&steps, closing.to, closing.from, |_| true).unwrap_or_default();
        chain.push(closing);
        troubles.push(trouble(graph, &chain, "leads back to itself"));
    }
    if troubles.is_empty() {
        troubles.extend(containing(graph, &steps));
        troubles.extend(prefixes(graph, &steps));
    }
    troubles
}

/// Returns the steps that close a cycle: those that lead to a root which is still being followed.
fn closing_steps(steps: &[Vec<Step>]) -> Vec<Step> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Done,
    }
    let mut marks = vec![Mark::New; steps.len()];
    let mut closing = Vec::new();
    for start in 0..steps.len() {
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
    steps: &[Vec<Step>],
    from: RootId,
    to: RootId,
    along: impl Fn(&Step) -> bool,
) -> Option<Vec<Step>> {
    if from == to {
        return Some(Vec::new());
    }
    let mut came: HashMap<RootId, Step> = HashMap::new();
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

/// Finds roots that reach, by local references only, a directory that contains them.
fn containing(graph: &Graph, steps: &[Vec<Step>]) -> Vec<Trouble> {
    let ids: HashMap<(usize, &str), RootId> = graph
        .roots
        .iter()
        .enumerate()
        .map(|(id, root)| ((root.source, root.directory.as_str()), id))
        .collect();
    let mut troubles = Vec::new();
    for (id, root) in graph.roots.iter().enumerate() {
        let mut directory = root.directory.as_str();
        while !directory.is_empty() {
            directory = path::parent(directory);
            let Some(above) = ids.get(&(root.source, directory)) else {
                continue;
            };
            if let Some(chain) = chain(steps, id, *above, |step| !step.remote) {
                troubles.push(trouble(
                    graph,
                    &chain,
                    "leads to a directory that contains it",
                ));
            }
        }
    }
    troubles
}

/// Finds remote references that kustomize takes for a cycle: on their referrer chain is a URL that
/// begins with theirs.
fn prefixes(graph: &Graph, steps: &[Vec<Step>]) -> Vec<Trouble> {
    let remote: Vec<(Step, &str)> = steps
        .iter()
        .flatten()
        .filter(|step| step.remote)
        .map(|step| {
            (
                *step,
                graph.roots[step.from].edges[step.edge]
                    .reference
                    .text
                    .as_str(),
            )
        })
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

fn trouble(graph: &Graph, chain: &[Step], what: &str) -> Trouble {
    let cycle = |edge, file, failure| Trouble {
        kind: TroubleKind::Cycle,
        edge,
        file,
        failure,
    };
    let (Some(first), Some(last)) = (chain.first(), chain.last()) else {
        return cycle(
            None,
            None,
            Failure::new("a kustomization root names itself"),
        );
    };
    let mut shown = format!("`{}`", graph.root_label(first.from));
    for step in chain {
        let text = &graph.roots[step.from].edges[step.edge].reference.text;
        shown.push_str(&format!(" -> `{}`", graph.root_label(step.to)));
        if step.remote {
            shown.push_str(&format!(" ({})", redact::url(text)));
        }
    }
    let edge = &graph.roots[last.from].edges[last.edge];
    let failure = Failure::new(format!(
        "cycle: `{}` {what}: {shown}",
        graph.root_label(first.from)
    ))
    .at(graph.location(edge.from, &edge.reference))
    .hint("`kustomize build` refuses this: let the reference name something else");
    cycle(Some((last.from, last.edge)), Some(edge.from), failure)
}
