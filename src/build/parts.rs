//! Compares the parts of a failed build: the roots below it that build on their own.

use std::collections::{BTreeMap, BTreeSet};

use super::builds::{Builds, Wanted};
use super::choice::Choice;
use super::compare;
use super::subject::BuildSpec;
use crate::graph::Graph;
use crate::kustomization::KustomizationKind;
use crate::message::failure::Result;
use crate::os::parallel::{processors, side_by_side};
use crate::targets::affected::Sides;
use crate::targets::affected::changes::Changes;
use crate::workspace::Workspace;

/// How many levels below a failed root are tried.
const DEEPEST: usize = 10;

/// The roots below a failed build that both sides can build.
pub(crate) struct BuiltParts {
    /// The differing documents of these roots.
    pub(crate) outputs: Sides<String>,
    /// Whether these are all that may differ.
    pub(crate) are_all: bool,
}

/// The parts of some builds that failed, among the roots that differ. `build` builds both sides.
pub(crate) fn parts(
    failed: &[&Choice],
    workspaces: Sides<&Workspace>,
    (differing, changes): (&BTreeSet<String>, &Changes),
    mut build: impl FnMut(Sides<Vec<Wanted>>) -> Result<Sides<Builds>>,
) -> Result<Vec<BuiltParts>> {
    let graphs = workspaces.try_map(|workspace| workspace.survey().read_all())?.map(|explored| explored.graph);
    let mut all = Vec::new();
    for choice in failed {
        let tops = choice.tops();
        let differs = tops.iter().map(|top| own_differs(&graphs.new, top, changes)).collect::<Result<Vec<_>>>()?;
        all.push(BuiltParts { outputs: Sides::default(), are_all: !tops.is_empty() && !differs.contains(&true) });
    }
    let differs =
        |directories: Vec<String>| directories.into_iter().filter(|directory| differing.contains(directory)).collect();
    let mut todo: Vec<BTreeSet<String>> = failed.iter().map(|choice| differs(choice.below(&graphs.new))).collect();
    let mut known: BTreeMap<String, Option<Sides<String>>> = BTreeMap::new();
    // Level by level, from the tops: a root that builds is not taken apart.
    for _ in 0..DEEPEST {
        let next: BTreeSet<String> =
            todo.iter().flatten().filter(|directory: &&String| !known.contains_key(*directory)).cloned().collect();
        let (next, other): (Vec<String>, Vec<String>) =
            next.into_iter().partition(|directory| is_built_alone(&graphs, directory));
        known.extend(other.into_iter().map(|directory| (directory, None)));
        if !next.is_empty() {
            let subjects = workspaces.map(|workspace| -> Vec<Wanted> {
                next.iter().map(|directory| Ok(Some(BuildSpec::part(workspace, directory)))).collect()
            });
            let builds = build(subjects)?;
            let outputs = side_by_side(&next, processors(), |number, _| {
                let built = builds.as_ref().try_map(|side| side.build(number)).ok()?;
                Some(compare::differing(built.as_ref().map(|build| &*build.stdout)))
            });
            known.extend(next.into_iter().zip(outputs));
        }
        for (parts, todo) in all.iter_mut().zip(&mut todo) {
            for directory in std::mem::take(todo) {
                match known.get(&directory).and_then(Option::as_ref) {
                    Some(outputs) => {
                        parts.outputs.old += &outputs.old;
                        parts.outputs.new += &outputs.new;
                    }
                    None => {
                        // A file of a root that fails may change what no part shows.
                        parts.are_all &= !own_differs(&graphs.new, &directory, changes)?;
                        todo.extend(differs(named(&graphs.new, &directory)));
                    }
                }
            }
        }
        if todo.iter().all(BTreeSet::is_empty) {
            break;
        }
    }
    Ok(all)
}

/// Whether the root in a directory reads a differing file itself, or may.
fn own_differs(graph: &Graph, directory: &str, changes: &Changes) -> Result<bool> {
    let Some(root) = graph.user_root(directory) else { return Ok(true) };
    // No build of its own shows the changes of a component.
    Ok(graph.roots[root].kind == Some(KustomizationKind::Component)
        || changes.first_of(&graph.inputs(root)?.own)?.is_some())
}

/// The directories of the roots of the tree that the root in one names.
pub(super) fn named(graph: &Graph, directory: &str) -> Vec<String> {
    let named = graph.user_root(directory).into_iter().flat_map(|root| graph.named(root));
    let own = named.filter(|(_, root)| graph.user_path(graph.roots[*root].file).is_some());
    own.map(|(_, root)| graph.roots[root].directory.clone()).collect()
}

/// Whether both sides have a root in a directory that builds without the root that adds it.
fn is_built_alone(graphs: &Sides<Graph>, directory: &str) -> bool {
    graphs.iter().all(|graph: &Graph| {
        // A component builds only as a part of the root that adds it.
        let root = graph.user_root(directory);
        root.is_some_and(|root| graph.roots[root].kind != Some(KustomizationKind::Component))
    })
}
