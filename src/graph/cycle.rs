//! Roots that lead back to themselves. kustomize refuses a root that equals or contains one on its
//! own referrer chain (`fileloader.go`, `errIfArgEqualOrHigher`).

use std::collections::{HashMap, HashSet};

use super::nodes::{EdgeId, Graph, RootId, Target};
use super::trouble::{At, Trouble, TroubleKind};
use crate::message::redact;
use crate::tree::path;

/// How many rings are reported.
const MOST: usize = 100;
/// How many references of a chain are shown.
const SHOWN: usize = 32;

/// Returns a trouble for every ring of roots, and for other references that kustomize takes for a cycle.
pub(super) fn find(graph: &Graph) -> Vec<Trouble> {
    let rings = rings(graph);
    let mut told: HashSet<EdgeId> = rings.iter().flatten().copied().collect();
    let mut troubles: Vec<Trouble> =
        rings.iter().filter_map(|chain| trouble(graph, chain, "leads back to itself")).collect();
    // Roots that reach, by local references only, a directory that contains them.
    for (id, root) in graph.root_ids().zip(graph.roots.iter()) {
        for above in path::and_above(&root.directory).map(path::parent) {
            if let Some(above) = graph.root_in(root.source, above)
                && above != id
                && let Some(chain) = graph.way(id, above)
                && chain.last().is_some_and(|last| told.insert(*last))
            {
                troubles.extend(trouble(graph, &chain, "leads to a directory that contains it"));
            }
        }
    }
    troubles
}

/// Follows every reference once, and returns those that lead back to where the way to them passed, each with that way from
/// there on.
fn rings(graph: &Graph) -> Vec<Vec<EdgeId>> {
    let mut starts: Vec<RootId> = graph.root_ids().collect();
    // It does not depend on where the walk began.
    starts.sort_by_key(|id| (graph.roots[*id].source, &graph.roots[*id].directory));
    let mut rings = Vec::new();
    // The index of a root on the way; none of one that was left.
    let mut known: HashMap<RootId, Option<usize>> = HashMap::new();
    for start in starts {
        if known.contains_key(&start) {
            continue;
        }
        // Each with the index of the edge to follow next.
        let mut way = vec![EdgeId { root: start, index: 0 }];
        known.insert(start, Some(0));
        while let Some(EdgeId { root, index }) = way.last_mut() {
            let Some(edge) = graph.roots[*root].edges.get(*index) else {
                known.insert(*root, None);
                way.pop();
                continue;
            };
            *index += 1;
            let Target::Root { id, .. } = edge.target else { continue };
            match known.get(&id) {
                Some(Some(at)) if rings.len() < MOST => {
                    rings.push(way[*at..].iter().map(|step| EdgeId { index: step.index - 1, ..*step }).collect());
                }
                Some(_) => {}
                None => {
                    known.insert(id, Some(way.len()));
                    way.push(EdgeId { root: id, index: 0 });
                }
            }
        }
    }
    rings
}

fn trouble(graph: &Graph, chain: &[EdgeId], what: &str) -> Option<Trouble> {
    let (first, last) = (chain.first()?.root, *chain.last()?);
    let label = |root: RootId| format!("`{}`", graph.root_label(root));
    let mut shown = vec![label(first)];
    for edge in chain.iter().take(SHOWN).map(|edge| &graph[*edge]) {
        if let Target::Root { id, remote } = edge.target {
            let url = if remote { format!(" ({})", redact::url(&edge.reference.text)) } else { String::new() };
            shown.push(label(id) + &url);
        }
    }
    shown.extend(chain.get(SHOWN).map(|_| "…".to_owned()));
    let message = format!("cycle: {} {what}: {}", label(first), shown.join(" -> "));
    let hint = "remove the reference, or move the shared part to a root of its own";
    Some(Trouble::new(TroubleKind::Cycle, message).hint(hint).at(graph, At::Edge(last)))
}
