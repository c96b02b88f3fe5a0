//! Cycles of roots. kustomize refuses a root that equals or contains one on its own chain of referrers
//! (`fileloader.go`, `errIfArgEqualOrHigher`).

use std::collections::{HashMap, HashSet};

use super::nodes::{EdgeId, Graph, Resolution, RootId};
use super::trouble::{At, Trouble, TroubleKind};
use crate::message::redact;
use crate::tree::path;

/// The most cycles that are reported.
const MOST: usize = 100;
/// The most references of a chain that are shown.
const SHOWN: usize = 32;

/// A trouble for each reference that closes a cycle of roots, up to [`MOST`], and one for each root and directory above
/// it to which it leads, although several chains may lead there. A reference is reported once.
pub(super) fn cycle_troubles(graph: &Graph) -> Vec<Trouble> {
    let cycles = cycles(graph);
    let mut reported: HashSet<EdgeId> = cycles.iter().flatten().copied().collect();
    let mut troubles: Vec<Trouble> =
        cycles.iter().filter_map(|chain| trouble(graph, chain, "leads back to itself")).collect();
    // kustomize also refuses a root that reaches, by local references only, a directory that contains it.
    for id in graph.root_ids() {
        let root = &graph.roots[id];
        for above in path::and_above(&root.directory).map(path::parent) {
            if let Some(above) = graph.root_in(root.source, above)
                && let Some(chain) = graph.local_chain(id, above)
                && chain.last().is_some_and(|last| reported.insert(*last))
            {
                troubles.extend(trouble(graph, &chain, "leads to a directory that contains it"));
            }
        }
    }
    troubles
}

/// Cycles of the graph, each as its references: one for each reference back to a root on the path of the search, and at
/// most [`MOST`].
fn cycles(graph: &Graph) -> Vec<Vec<EdgeId>> {
    let mut starts: Vec<RootId> = graph.root_ids().collect();
    // The result must not depend on the order of the walk.
    starts.sort_by_key(|id| (graph.roots[*id].source, &graph.roots[*id].directory));
    let mut cycles = Vec::new();
    // The index on the current path of each root that was seen. `None` if the search is done with the root.
    let mut depths: HashMap<RootId, Option<usize>> = HashMap::new();
    // The search is depth-first, and follows every reference once.
    for start in starts {
        if depths.contains_key(&start) {
            continue;
        }
        // Each step of the path is a root, with the index of the reference to follow next.
        let mut path = vec![EdgeId { root: start, index: 0 }];
        depths.insert(start, Some(0));
        while let Some(EdgeId { root, index }) = path.last_mut() {
            let Some(edge) = graph.roots[*root].edges.get(*index) else {
                depths.insert(*root, None);
                path.pop();
                continue;
            };
            *index += 1;
            let Resolution::Root { id, .. } = edge.resolution else { continue };
            match depths.get(&id) {
                // A reference back to a root on the current path closes a cycle. Each step is already past its
                // reference.
                Some(Some(depth)) if cycles.len() < MOST => {
                    cycles.push(path[*depth..].iter().map(|step| EdgeId { index: step.index - 1, ..*step }).collect());
                }
                Some(_) => {}
                None => {
                    depths.insert(id, Some(path.len()));
                    path.push(EdgeId { root: id, index: 0 });
                }
            }
        }
    }
    cycles
}

/// The trouble of a chain of references that kustomize refuses as a cycle. Its message lists the roots on the chain,
/// and `problem` says where the chain leads; the last reference is the location. `None` if the chain is empty.
fn trouble(graph: &Graph, chain: &[EdgeId], problem: &str) -> Option<Trouble> {
    let (first, last) = (chain.first()?.root, *chain.last()?);
    let mut shown = vec![quoted(graph, first)];
    for edge in chain.iter().take(SHOWN).map(|edge| &graph[*edge]) {
        if let Resolution::Root { id, remote } = edge.resolution {
            let url = if remote { format!(" ({})", redact::url(&edge.reference.text)) } else { String::new() };
            shown.push(quoted(graph, id) + &url);
        }
    }
    shown.extend(chain.get(SHOWN).map(|_| "…".to_owned()));
    let message = format!("cycle: {} {problem}: {}", quoted(graph, first), shown.join(" -> "));
    let hint = "remove the reference, or move the shared part to a root of its own";
    Some(Trouble::new(TroubleKind::Cycle, message).hint(hint).at(graph, At::Edge(last)))
}

/// The name of a root in a message.
fn quoted(graph: &Graph, root: RootId) -> String {
    format!("`{}`", graph.root_label(root))
}
