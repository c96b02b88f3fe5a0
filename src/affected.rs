//! What a change touches: the roots and the targets whose build can differ between two trees.
//!
//! A build is a function of what it asks the tree: what is at a path, and what that holds ([`inputs`]). Where no answer
//! is another one, the same questions follow, and the same output. So only one of the two trees is walked, and of the
//! other it is enough to know where it differs ([`changes`]).

pub(crate) mod changes;
mod deployed;
#[cfg(test)]
mod tests;

use std::cell::OnceCell;
use std::collections::{BTreeSet, HashSet};
use std::rc::Rc;

use serde::Serialize;

use crate::check;
use crate::config::Config;
use crate::graph::inputs::{self, Inputs, RootInputs};
use crate::graph::{Graph, RootId};
use crate::message::failure::Result;
use crate::reference_tree::{self, Survey};
use crate::targets::{self, Target, Targets, Unread};
use crate::tree::Tree;

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
pub(crate) type Build<'a> = &'a dyn Fn(&Survey, Targets) -> Result<Targets>;

/// Returns what can be built to something else in `changes.new`, or is gone. `was` and `is` are what the files of the two
/// trees deploy, of which `build` makes what is deployed; it is not asked where nothing is.
pub(crate) fn affected(
    changes: &Changes,
    config: &Config,
    mut was: Targets,
    mut is: Targets,
    build: Build<'_>,
) -> Result<Affected> {
    let is_deployed = !(was.targets.is_empty() && is.targets.is_empty());
    let walked = Walked::of(&changes.new, config, is_deployed)?;
    let graph = walked.graph();
    let gone = changes.gone(&walked.survey.directories()?)?;
    let causes = Causes::of(graph, &Inputs::of(graph), changes)?;
    if is_deployed {
        let old = before(changes, graph, &causes, [&was, &is], &gone)?;
        was = build(&old, was)?;
        is = build(&walked.survey, is)?;
    }
    let unnamed = walked.unnamed(&is);
    let mut affected = Affected::default();
    for (directory, root) in walked.roots() {
        affected.total += 1;
        let cause = match root {
            Some(root) => causes.found[root].clone(),
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
    if !gone.is_empty() {
        affected.roots.extend(removed(&Walked::of(&changes.old, config, false)?, &gone));
    }
    affected.roots.sort();
    let deployed =
        Deployed { changes, config, graph, causes: &causes, roots: graph.own_roots(), read: OnceCell::new() };
    affected.targets = deployed.affected(&was, &is)?;
    affected.targets_total = is.targets.len();
    affected.unbuilt = is.targets;
    affected.unbuilt.retain(|target| target.changed_by.is_some());
    affected.unread = is.unread;
    Ok(affected)
}

/// Walks what was from every root that may have changed an object: each that is not what it is now, or `gone`, and each
/// that reads an object now.
fn before(
    changes: &Changes,
    graph: &Graph,
    causes: &Causes,
    found: [&Targets; 2],
    gone: &BTreeSet<String>,
) -> Result<Survey> {
    let files: HashSet<&str> = found.into_iter().flat_map(Targets::files).collect();
    let mut roots = targets::readers(graph, &|file| files.contains(file));
    roots.extend((0..graph.roots.len()).filter(|root| causes.found[*root].is_some()));
    let roots = roots.into_iter().map(|root| &graph.roots[root]);
    let own = roots.filter(|root| root.source == 0);
    let mut wanted = gone.clone();
    for root in own {
        if changes.was_root(&root.directory)? {
            wanted.insert(root.directory.clone());
        }
    }
    let wanted: Vec<String> = wanted.into_iter().collect();
    Ok(Survey::from(changes.old.clone(), &wanted))
}

/// Returns the roots of what was in the directories that are `gone`.
fn removed(was: &Walked, gone: &BTreeSet<String>) -> Vec<AffectedRoot> {
    let unnamed = was.unnamed(&Targets::default());
    let gone = was.roots().filter(|(directory, _)| gone.contains(*directory));
    let gone = gone.map(|(directory, root)| AffectedRoot {
        directory: directory.clone(),
        status: Status::Removed,
        is_named: root.is_some_and(|root| !unnamed.contains(&root)),
        cause: Cause::Path(directory.clone()),
    });
    gone.collect()
}

/// One of the trees, walked without a network.
struct Walked {
    /// Where the configuration says to begin.
    directories: Vec<String>,
    survey: Survey,
    /// What is named like a root, and is an object of Flux.
    flux: HashSet<RootId>,
}

impl Walked {
    /// Walks from where the configuration says, or from every root.
    fn of(tree: &Rc<dyn Tree>, config: &Config, is_whole: bool) -> Result<Walked> {
        let directories = config.starting_points(&**tree, &[], &tree.kustomizations()?)?;
        let survey = if is_whole { Survey::of(tree.clone())? } else { Survey::from(tree.clone(), &directories) };
        let explored = survey.explored();
        let files = check::flux_objects(explored);
        let roots = explored.graph.roots.iter().enumerate();
        let flux = roots.filter(|(_, root)| files.contains(&root.file));
        Ok(Walked { flux: flux.map(|(id, _)| id).collect(), directories, survey })
    }

    fn graph(&self) -> &Graph {
        &self.survey.explored().graph
    }

    /// Returns the roots that no other one names, among those that the configuration does not leave out, or that are
    /// deployed.
    fn unnamed(&self, targets: &Targets) -> HashSet<RootId> {
        let known = self.graph().own_roots();
        let here = targets.here();
        let deployed = here.flat_map(|(target, here)| target.roots(here));
        let all = self.directories.iter().map(String::as_str).chain(deployed);
        let starts = all.filter_map(|directory| known.get(directory).copied());
        let reached = self.graph().insisted(starts);
        let ids = 0..self.graph().roots.len();
        let unnamed = reference_tree::unnamed(self.graph(), ids.collect(), reached);
        unnamed.into_iter().collect()
    }

    /// Returns the roots that count, by their directories.
    fn roots(&self) -> impl Iterator<Item = (&String, Option<RootId>)> {
        let known = self.graph().own_roots();
        let directories = self.directories.iter();
        let roots = directories.map(move |one| (one, known.get(one.as_str()).copied()));
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
