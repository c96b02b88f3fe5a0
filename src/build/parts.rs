//! Compares the parts of a failed build: the roots below it that build on their own, and the files with objects that it
//! lists, each as it stands.
//!
//! A part that only one side lists is empty on the other. The rest of a failed root, without its parts, is not built.
//! If that differs, too, a side may have objects that none of its parts has: then an object that only the parts of the
//! other side have is not proven to be added or removed.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::builds::{Builds, Wanted};
use super::choice::Choice;
use super::subject::BuildSpec;
use crate::graph::inputs::BuildInput;
use crate::graph::{Edge, Graph, RootId};
use crate::kustomization::{Accepts, FILE_NAMES, KustomizationKind};
use crate::message::failure::Result;
use crate::os::parallel::{processors, side_by_side};
use crate::targets::affected::changes::Changes;
use crate::targets::affected::{DiffStatus, Sides};
use crate::targets::generated::parsed;
use crate::tree::path;
use crate::workspace::Workspace;

/// How many levels below a failed root are tried.
const DEEPEST: usize = 10;

/// The fields of a kustomization whose entries can be parts.
const LISTS: [&str; 2] = ["resources", "bases"];

/// The parts of a failed build that can be built.
#[derive(Default)]
pub(crate) struct BuiltParts {
    /// Their outputs.
    pub(crate) outputs: Sides<String>,
    /// Whether a side has it, but no root or file of the tree from which it is built, so that this side has no parts.
    pub(crate) is_opaque: bool,
    /// Whether a side may have objects that none of its parts has, and that the other side lacks.
    is_incomplete: Sides<bool>,
    /// The parts of the next level: directories and files.
    todo: Sides<BTreeSet<String>>,
    /// The parts of all levels until then.
    seen: Sides<BTreeSet<String>>,
}

impl BuiltParts {
    /// Notes the sides that may have objects which no part has.
    fn mark_incomplete(&mut self, more: Sides<bool>) {
        self.is_incomplete = self.is_incomplete.zip(more).map(|(is_incomplete, more)| is_incomplete || more);
    }

    /// Whether an object that differs between the parts is known to differ between the whole builds.
    pub(crate) fn proves(&self, change: DiffStatus) -> bool {
        match change {
            DiffStatus::Added => !self.is_incomplete.old,
            DiffStatus::Removed => !self.is_incomplete.new,
            DiffStatus::Changed => true,
        }
    }
}

/// The outputs of parts by their paths; `None` if one does not build.
type Outputs = BTreeMap<String, Option<String>>;

/// The parts of some builds that failed, in their order, to compare those instead. `differing` has the directories of
/// the roots whose builds can differ: any other root is no part if both sides list it. `build` builds both sides.
pub(crate) fn parts(
    failed: &[&Choice],
    workspaces: Sides<&Workspace>,
    (differing, changes): (&BTreeSet<String>, &Changes),
    mut build: impl FnMut(Sides<Vec<Wanted>>) -> Result<Sides<Builds>>,
) -> Result<Vec<BuiltParts>> {
    let graphs =
        workspaces.try_map(|workspace| workspace.survey().explore_all_inputs())?.map(|explored| explored.graph);
    let overloaded = graphs.as_ref().map(Graph::overloaded);
    let tree = PartTree { graphs: &graphs, overloaded, differing, changes };
    let mut all = failed.iter().map(|choice| tree.begin(choice)).collect::<Result<Vec<_>>>()?;
    let mut known: Sides<Outputs> = Sides::default();
    // Level by level, from the top: a root that builds is not taken apart.
    for _ in 0..DEEPEST {
        // The failed builds may share parts, so the parts of all are built together.
        let mut level: Sides<BTreeSet<String>> = Sides::default();
        for BuiltParts { todo, .. } in &all {
            level.old.extend(todo.old.iter().cloned());
            level.new.extend(todo.new.iter().cloned());
        }
        if level.iter().all(BTreeSet::is_empty) {
            break;
        }
        level.old.retain(|part| !known.old.contains_key(part));
        level.new.retain(|part| !known.new.contains_key(part));
        if level.iter().any(|level| !level.is_empty()) {
            let builds = build(level.as_ref().zip(workspaces).map(|(level, workspace)| {
                level.iter().map(|part| Ok(Some(BuildSpec::part(workspace, part)?))).collect()
            }))?;
            known.old.extend(outputs(level.old, &builds.old));
            known.new.extend(outputs(level.new, &builds.new));
        }
        for parts in &mut all {
            tree.descend(parts, &known)?;
        }
    }
    // Parts below the deepest level are not built, so their objects are unknown.
    for parts in &mut all {
        parts.mark_incomplete(parts.todo.as_ref().map(|todo| !todo.is_empty()));
    }
    Ok(all)
}

/// The outputs of the builds of a level, in its order.
fn outputs(level: BTreeSet<String>, builds: &Builds) -> impl Iterator<Item = (String, Option<String>)> {
    let level: Vec<String> = level.into_iter().collect();
    let outputs = side_by_side(&level, processors(), |number, _| {
        let built = builds.build(number).ok()?;
        // The outputs of several parts are joined, so each begins a new document.
        Some(format!("---\n{}", String::from_utf8_lossy(&built.stdout)))
    });
    level.into_iter().zip(outputs)
}

/// The roots and files of the tree that the root in a directory lists as resources.
fn listed_parts(graph: &Graph, directory: &str) -> Vec<String> {
    let root = graph.user_root(directory);
    root.into_iter().flat_map(|root| resources(graph, root)).map(|(_, part)| part.to_owned()).collect()
}

/// The resources of a root that are in the tree, each with its path.
fn resources(graph: &Graph, root: RootId) -> impl Iterator<Item = (&Edge, &str)> {
    let edges = graph.edges_of(root).map(|(_, edge)| edge);
    edges
        .filter(|edge| edge.reference.accepts == Accepts::Either)
        .filter_map(|edge| Some((edge, graph.real_path(edge)?)))
}

/// The roots of the tree that a root references, by their directories.
fn named(graph: &Graph, root: RootId) -> impl Iterator<Item = (&Edge, &str)> {
    let own = graph.referenced_roots(root).filter(|(_, named)| graph.is_user_root(*named));
    own.map(|(edge, named)| (&graph[edge], graph.roots[named].directory.as_str()))
}

/// A kustomization without the parts that it lists.
struct Remainder {
    /// The fields that are not [`LISTS`].
    fields: Value,
    /// The other entries of the lists.
    entries: BTreeSet<String>,
}

/// The [`Remainder`] of a kustomization; `None` if it cannot be read.
fn remainder(graph: &Graph, root: RootId) -> Option<Remainder> {
    let parts: BTreeSet<&str> = resources(graph, root).map(|(edge, _)| edge.reference.text.as_str()).collect();
    let mut fields = parsed(&graph.bytes(graph.roots[root].file)).ok()??;
    let lists = LISTS.iter().filter_map(|name| fields.remove(*name)).collect::<Vec<_>>();
    let entries = lists.iter().filter_map(Value::as_array).flatten().filter_map(Value::as_str);
    let entries = entries.filter(|entry| !parts.contains(entry)).map(str::to_owned).collect();
    Some(Remainder { fields: Value::Object(fields), entries })
}

/// The roots of both sides, and how they differ.
struct PartTree<'a> {
    graphs: &'a Sides<Graph>,
    /// The roots whose builds load too many roots.
    overloaded: Sides<BTreeSet<RootId>>,
    /// The directories of the roots whose builds can differ.
    differing: &'a BTreeSet<String>,
    changes: &'a Changes,
}

impl PartTree<'_> {
    /// The parts of a failed build before any of them is built: its first level is to do.
    fn begin(&self, choice: &Choice) -> Result<BuiltParts> {
        let opaque = choice.without_parts();
        let mut parts = BuiltParts { is_opaque: opaque.old || opaque.new, ..BuiltParts::default() };
        parts.mark_incomplete(opaque);
        self.add(&mut parts, choice.outer_roots())?;
        // The top roots themselves have failed, so they are not built again. No output of them is known, so this adds
        // the parts below them.
        self.descend(&mut parts, &Sides::default())?;
        self.add(&mut parts, choice.scanned())?;
        // If the engine builds in another way, it may add objects to either side that no part has.
        let is_other = choice.is_built_otherwise();
        parts.mark_incomplete(Sides { old: is_other, new: is_other });
        Ok(parts)
    }

    /// Adds the outputs of a level to its parts, and goes on below those that do not build.
    fn descend(&self, parts: &mut BuiltParts, known: &Sides<Outputs>) -> Result<()> {
        let todo = std::mem::take(&mut parts.todo);
        for part in &todo.old | &todo.new {
            let is_on = todo.as_ref().map(|todo| todo.contains(&part));
            // A side without the part has no objects of it.
            let built = is_on.zip(known.as_ref()).map(|(is_on, known)| match known.get(&part) {
                Some(output) if is_on => output.as_deref(),
                None if is_on => None,
                _ => Some(""),
            });
            // An output without the other would show all of its objects as new or gone.
            if let Sides { old: Some(old), new: Some(new) } = built {
                parts.outputs.old += old;
                parts.outputs.new += new;
                continue;
            }
            // An overloaded root is not taken apart: its parts are many, and nearly as large.
            if self.is_overloaded(&part) {
                parts.mark_incomplete(is_on);
                continue;
            }
            // A failed part that only one side has may have any object there.
            parts.mark_incomplete(if is_on.old && is_on.new { self.incomplete_sides(&part)? } else { is_on });
            let below = is_on.zip(self.graphs.as_ref());
            self.add(parts, below.map(|(is_on, graph)| if is_on { listed_parts(graph, &part) } else { Vec::new() }))?;
        }
        Ok(())
    }

    /// Whether a build of the root in a directory would load too many roots, on one side or both.
    fn is_overloaded(&self, directory: &str) -> bool {
        let sides = self.graphs.as_ref().zip(self.overloaded.as_ref());
        let is_overloaded =
            sides.map(|(graph, overloaded)| graph.user_root(directory).is_some_and(|root| overloaded.contains(&root)));
        is_overloaded.old || is_overloaded.new
    }

    /// Adds parts to the next level, each once. A part that both sides list and that cannot differ is left out.
    fn add(&self, parts: &mut BuiltParts, more: Sides<Vec<String>>) -> Result<()> {
        let more = more.map(BTreeSet::from_iter);
        let on_both = &more.old & &more.new;
        let BuiltParts { todo, seen, .. } = parts;
        for (todo, seen, more) in [(&mut todo.old, &mut seen.old, more.old), (&mut todo.new, &mut seen.new, more.new)] {
            for part in more {
                if seen.insert(part.clone()) && (!on_both.contains(&part) || self.differs(&part)?) {
                    todo.insert(part);
                }
            }
        }
        Ok(())
    }

    /// Whether the build of a root, or the content of a file, can differ.
    fn differs(&self, part: &str) -> Result<bool> {
        let is_root = self.graphs.iter().any(|graph| graph.user_root(part).is_some());
        Ok(self.differing.contains(part) || !is_root && self.changes.at(part)?.is_some())
    }

    /// The sides on which a failed root, apart from its parts, may have objects that the other side lacks. Both, unless
    /// the inputs tell more.
    fn incomplete_sides(&self, part: &str) -> Result<Sides<bool>> {
        const BOTH: Sides<bool> = Sides { old: true, new: true };
        // A root that does not differ has the same objects on both sides, although it fails.
        if !self.differs(part)? {
            return Ok(Sides::default());
        }
        let remainders = self.graphs.as_ref().map(|graph| remainder(graph, graph.user_root(part)?));
        let Sides { old: Some(old), new: Some(new) } = remainders else { return Ok(BOTH) };
        let Some(root) = self.graphs.new.user_root(part) else { return Ok(BOTH) };
        // Other fields may change any object.
        if old.fields != new.fields || self.may_change_any_object(root) {
            return Ok(BOTH);
        }
        // An entry or a changed file that only one side has adds objects to that side; a file that both have may add
        // objects to both. The other fields are equal and name the same paths, so the inputs of one side suffice.
        let mut incomplete =
            Sides { old: !old.entries.is_subset(&new.entries), new: !new.entries.is_subset(&old.entries) };
        for input in &self.graphs.new.inputs(root)?.inputs {
            let has_change = match input {
                BuildInput::At(path) if self.is_compared(root, path) => continue,
                BuildInput::At(path) => self.sides_with_changed(path)?,
                // A difference in a directory, an upstream or a chart does not tell which side gets more objects.
                _ if self.changes.cause_in(std::slice::from_ref(input))?.is_some() => BOTH,
                _ => continue,
            };
            incomplete = incomplete.zip(has_change).map(|(known, has_change)| known || has_change);
        }
        Ok(incomplete)
    }

    /// Whether a root, with equal fields, may change other objects than its own: as a component, or by a component or a
    /// configuration of plugins that differs. No build of its own shows these changes.
    fn may_change_any_object(&self, root: RootId) -> bool {
        let graph = &self.graphs.new;
        let mut others = named(graph, root).filter(|(edge, _)| edge.reference.accepts != Accepts::Either);
        graph.roots[root].kind == Some(KustomizationKind::Component)
            || others.any(|(_, directory)| self.differing.contains(directory))
    }

    /// Whether a path is the kustomization of a root, or its part or on the way to one, so that it is compared on its
    /// own.
    fn is_compared(&self, root: RootId, path: &str) -> bool {
        let graph = &self.graphs.new;
        let is_in_root = path::parent(path) == graph.roots[root].directory;
        is_in_root && FILE_NAMES.contains(&path::name(path))
            || resources(graph, root).any(|(_, part)| path::is_in(part, path))
    }

    /// The sides that have something at a path, if it differs.
    fn sides_with_changed(&self, path: &str) -> Result<Sides<bool>> {
        if self.changes.at(path)?.is_none() {
            return Ok(Sides::default());
        }
        self.changes.trees.as_ref().try_map(|tree| Ok(tree.entry(path)?.is_some()))
    }
}
