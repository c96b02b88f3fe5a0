//! What a change touches: the roots and the targets whose build can differ between two trees.
//!
//! A build is a function of what it asks the tree: what is at a path, and what that holds ([`inputs`]). Where no answer
//! is another one, the same questions follow, and the same output. So only one of the two trees is walked, and of the
//! other it is enough to know where it differs ([`changes`]).

pub(crate) mod changes;
mod deployed;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use serde::Serialize;

use super::{Target, Targets, Unread, flux_objects};
use crate::config::Config;
use crate::graph::inputs::{self, Inputs, RootInputs};
use crate::graph::{Explored, Graph, RootId};
use crate::message::failure::Result;
use crate::tree::path;

use changes::Changes;
use deployed::Deployed;

/// What can be built to something else.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Affected {
    /// The roots, sorted by their directory.
    pub roots: Vec<AffectedRoot>,
    /// How many roots there are now.
    pub total: usize,
    /// The targets.
    pub targets: Vec<AffectedTarget>,
    /// How many targets there are now.
    pub targets_total: usize,
    /// The targets of now of which it is not known what a build makes of their objects: looked at is what their files say.
    pub unbuilt: Vec<Target>,
    /// What could not be read, so that what it deploys is not known.
    pub unread: Vec<Unread>,
}

/// A target whose build can differ.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct AffectedTarget {
    /// The target; of one that is gone as it was.
    pub target: Target,
    /// How it differs.
    pub status: Status,
    /// One of the things that differ.
    #[serde(flatten)]
    pub cause: Cause,
}

/// A root whose build can differ.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct AffectedRoot {
    /// Its directory from the top of the repository.
    #[serde(serialize_with = "crate::tree::path::serialize")]
    pub directory: String,
    /// How it differs.
    pub status: Status,
    /// Whether another root names it.
    #[serde(skip)]
    pub is_named: bool,
    /// One of the things that differ; of a root that is gone its directory.
    #[serde(flatten)]
    pub cause: Cause,
}

/// How a root or a target differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Status {
    /// It is new.
    Added,
    /// Something that its build reads is different.
    Changed,
    /// It is gone.
    Removed,
}

/// What differs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Cause {
    /// What is at this path, from the top of the repository.
    Path(String),
    /// What the lock holds for the remote of this [label](crate::record::Remote::label).
    Remote(String),
}

/// Makes of what the files of a tree deploy what is deployed of it.
pub(crate) type Build<'a> = &'a dyn Fn(&Explored, Targets) -> Result<Targets>;

/// Returns what can be built to something else in `changes.new`, or is gone. `was` and `is` are what the files of the two
/// trees deploy, of which `build` makes what is deployed; it is not asked where nothing is.
pub(crate) fn affected(
    changes: &Changes,
    config: &Config,
    mut was: Targets,
    mut is: Targets,
    build: Build<'_>,
) -> Result<Affected> {
    let explored = inputs::explore_all(changes.new.clone())?;
    let graph = &explored.graph;
    let places = changes.new.kustomizations()?;
    let directories = config.starting_points(&*changes.new, &[], &places)?;
    let gone = changes.gone(&places.iter().map(|place| path::parent(place)).collect())?;
    let causes = causes(graph, changes)?;
    let mut affected = Affected::default();
    let is_deployed = !(was.targets.is_empty() && is.targets.is_empty());
    if is_deployed || !gone.is_empty() {
        let old = inputs::explore_all(changes.old.clone())?;
        affected.roots.extend(removed(&old, gone.iter().filter(|directory| config.starts(directory))));
        if is_deployed {
            was = build(&old, was)?;
            is = build(&explored, is)?;
        }
    }
    let own = graph.own_roots();
    let flux = flux_objects(&explored);
    let unnamed = unnamed(graph, &directories, &is);
    for directory in &directories {
        let root = own.get(directory.as_str()).copied();
        // An object of Flux may be named like a root.
        if root.is_some_and(|root| flux.contains(&graph.roots[root].file)) {
            continue;
        }
        affected.total += 1;
        let cause = match root {
            Some(root) => causes[root].clone(),
            // Several kustomizations, or one that cannot be read.
            None => changes.first_of(&inputs::of_no_root(&*changes.new, directory, &[])?)?,
        };
        if let Some(cause) = cause {
            affected.roots.push(AffectedRoot {
                directory: directory.clone(),
                status: if changes.was_root(directory)? { Status::Changed } else { Status::Added },
                is_named: root.is_some_and(|root| !unnamed.contains(&root)),
                cause,
            });
        }
    }
    affected.roots.sort();
    let deployed = Deployed { changes, config, graph, causes: &causes, roots: own };
    affected.targets = deployed.affected(&was, &is)?;
    affected.targets_total = is.targets.len();
    affected.unbuilt = is.targets;
    affected.unbuilt.retain(|target| target.changed_by.is_some());
    affected.unread = is.unread;
    Ok(affected)
}

/// Returns the roots that no other one names, among those that the configuration does not leave out, or that are
/// deployed.
fn unnamed(graph: &Graph, directories: &[String], targets: &Targets) -> BTreeSet<RootId> {
    let known = graph.own_roots();
    let deployed = targets.here().flat_map(|(target, here)| target.roots(here));
    let all = directories.iter().map(String::as_str).chain(deployed);
    let reached = graph.insisted(all.filter_map(|directory| known.get(directory).copied()));
    graph.unnamed(&(0..graph.roots.len()).collect::<Vec<_>>(), reached)
}

/// Returns the roots of what was in the directories that are `gone`.
fn removed<'a>(was: &Explored, gone: impl Iterator<Item = &'a String>) -> Vec<AffectedRoot> {
    let known = was.graph.own_roots();
    let flux = flux_objects(was);
    let users = was.graph.users();
    let gone = gone.map(|directory| (directory, known.get(directory.as_str()).copied()));
    let gone = gone.filter(|(_, root)| root.is_none_or(|root| !flux.contains(&was.graph.roots[root].file)));
    let gone = gone.map(|(directory, root)| AffectedRoot {
        directory: directory.clone(),
        status: Status::Removed,
        is_named: root.is_some_and(|root| users[root].iter().any(|user| *user != root)),
        cause: Cause::Path(directory.clone()),
    });
    gone.collect()
}

/// Returns one of the things that differ for each root; none for a root whose build is the same.
fn causes(graph: &Graph, changes: &Changes) -> Result<Vec<Option<Cause>>> {
    let inputs = Inputs::of(graph);
    let mut named_by = vec![Vec::new(); graph.roots.len()];
    let mut found = vec![None; graph.roots.len()];
    let mut todo = Vec::new();
    for (root, found) in found.iter_mut().enumerate() {
        let RootInputs { own, roots } = inputs.of_root(root)?;
        for below in roots {
            named_by[below].push(root);
        }
        *found = changes.first_of(&own)?;
        if found.is_some() {
            todo.push(root);
        }
    }
    while let Some(root) = todo.pop() {
        let cause = found[root].clone();
        for above in &named_by[root] {
            if found[*above].is_none() {
                found[*above].clone_from(&cause);
                todo.push(*above);
            }
        }
    }
    Ok(found)
}
