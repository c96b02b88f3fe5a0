//! What a change touches: the roots and the targets whose build can differ between two trees.
//!
//! A build is a function of what it asks the tree: what is at a path, and what that holds ([`inputs`]). Where no answer
//! is another one, the same questions follow, and the same output. So only one of the two trees is walked, and of the
//! other it is enough to know where it differs ([`changes`]).

pub mod changes;
mod deployed;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashSet};
use std::rc::Rc;

use crate::check;
use crate::config::Config;
use crate::failure::Result;
use crate::reference_tree;
use crate::targets::{self, Targets};
use crate::tree::{Listing, path};
use crate::walk::inputs::{self, Inputs, RootInputs};
use crate::walk::{Explored, Graph, RootId};

use changes::Changes;
use deployed::Deployed;

/// What can be built to something else.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Affected {
    /// The roots, sorted by their directory.
    pub roots: Vec<AffectedRoot>,
    /// How many roots there are now.
    pub total: usize,
    /// The targets.
    pub targets: Vec<AffectedTarget>,
    /// How many targets there are now.
    pub targets_total: usize,
}

/// A target whose build can differ.
#[derive(Debug, Clone, PartialEq)]
pub struct AffectedTarget {
    /// The target; of one that is gone as it was.
    pub target: targets::Target,
    /// How it differs.
    pub status: Status,
    /// One of the things that differ.
    pub cause: Cause,
}

/// A root whose build can differ.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AffectedRoot {
    /// Its directory from the top of the repository.
    pub directory: String,
    /// How it differs.
    pub status: Status,
    /// Whether another root names it.
    pub is_named: bool,
    /// One of the things that differ; of a root that is gone its directory.
    pub cause: Cause,
}

/// How a root or a target differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// It is new.
    Added,
    /// Something that its build reads is different.
    Changed,
    /// It is gone.
    Removed,
}

/// What differs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// What is at this path, from the top of the repository.
    Path(String),
    /// What the lock holds for the remote of this [label](crate::record::Remote::label).
    Remote(String),
}

/// Returns what can be built to something else in `changes.new`, or is gone. `was` and `is` are what is deployed from the
/// two trees.
///
/// # Errors
/// When a tree cannot be read, or the configuration leaves out every kustomization.
pub fn affected(
    changes: &Changes,
    config: &Config,
    was: &Targets,
    is: &Targets,
) -> Result<Affected> {
    let walked = Walked::of(&changes.new, config, is)?;
    let graph = &walked.explored.graph;
    let causes = Causes::of(graph, &Inputs::of(&*changes.new, graph)?, changes)?;
    let mut affected = Affected::default();
    for (directory, root) in walked.roots() {
        affected.total += 1;
        let cause = match root {
            Some(root) => causes.found[root].clone(),
            // Several kustomizations, or one that cannot be read.
            None => changes.first_of(&inputs::of_no_root(&*changes.new, directory)?)?,
        };
        if let Some(cause) = cause {
            affected.roots.push(AffectedRoot {
                directory: directory.clone(),
                status: if changes.was_root(directory)? {
                    Status::Changed
                } else {
                    Status::Added
                },
                is_named: root.is_some_and(|root| !walked.unnamed.contains(&root)),
                cause,
            });
        }
    }
    affected.roots.extend(removed(changes, config)?);
    affected.roots.sort();
    let roots = graph.roots.iter().enumerate();
    let deployed = Deployed {
        changes,
        graph,
        causes: &causes,
        roots: roots
            .map(|(id, root)| (root.directory.as_str(), id))
            .collect(),
    };
    affected.targets = deployed.affected(was, is)?;
    affected.targets_total = is.targets.len();
    Ok(affected)
}

/// Returns the roots that are gone.
fn removed(changes: &Changes, config: &Config) -> Result<Vec<AffectedRoot>> {
    let here: BTreeSet<String> = directories(&*changes.new)?;
    if directories(&*changes.old)?.is_subset(&here) {
        return Ok(Vec::new());
    }
    let walked = Walked::of(&changes.old, config, &Targets::default())?;
    let gone = walked
        .roots()
        .filter(|(directory, _)| !here.contains(*directory));
    let gone = gone.map(|(directory, root)| AffectedRoot {
        directory: directory.clone(),
        status: Status::Removed,
        is_named: root.is_some_and(|root| !walked.unnamed.contains(&root)),
        cause: Cause::Path(directory.clone()),
    });
    Ok(gone.collect())
}

fn directories(tree: &dyn Listing) -> Result<BTreeSet<String>> {
    let places = tree.kustomizations()?;
    let directories = places.iter().map(|place| path::parent(place).to_owned());
    Ok(directories.collect())
}

/// One of the trees, walked without a network from every root.
struct Walked {
    /// Where the configuration says to begin.
    directories: Vec<String>,
    explored: Explored,
    /// Those that no other root names.
    unnamed: HashSet<RootId>,
    /// What is named like a root, and is an object of Flux.
    flux: HashSet<RootId>,
}

impl Walked {
    /// Walks from where the configuration says, and from what is deployed.
    fn of(tree: &Rc<dyn Listing>, config: &Config, targets: &Targets) -> Result<Walked> {
        let directories = config.starting_points(&**tree, &[], &tree.kustomizations()?)?;
        let known: BTreeSet<&str> = directories.iter().map(String::as_str).collect();
        let deployed: BTreeSet<String> = targets
            .here()
            .flat_map(|(target, here)| targets::roots(&**tree, target, here))
            .filter(|directory| !known.contains(directory.as_str()))
            .collect();
        let starts: Vec<String> = directories.iter().cloned().chain(deployed).collect();
        let explored = inputs::explore(tree.clone(), &starts);
        let files = check::flux_objects(&explored);
        let graph = &explored.graph;
        let ids = 0..graph.roots.len();
        let flux = ids
            .clone()
            .filter(|id| files.contains(&graph.roots[*id].file));
        Ok(Walked {
            unnamed: HashSet::from_iter(reference_tree::unnamed(graph, ids.collect())),
            flux: flux.collect(),
            directories,
            explored,
        })
    }

    fn roots(&self) -> impl Iterator<Item = (&String, Option<RootId>)> {
        let starts = self.explored.starts.iter().copied();
        let roots = self.directories.iter().zip(starts);
        roots.filter(|(_, root)| root.is_none_or(|root| !self.flux.contains(&root)))
    }
}

/// What differs for each root of a graph.
pub(crate) struct Causes {
    /// One of the things that differ; none for a root whose build is the same.
    pub(crate) found: Vec<Option<Cause>>,
}

impl Causes {
    pub(crate) fn of(graph: &Graph, inputs: &Inputs<'_>, changes: &Changes) -> Result<Causes> {
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
        Ok(Causes { found })
    }
}
