//! The changes that localizing makes: a copy of one target ([`copy`]), or the repository in place ([`in_place`]). In
//! both ways a graph is walked, its nodes are laid out (`layout`, `placing`), references are edited and files collected
//! (`result`), and URLs that stay are locked ([`lock`]). Nothing is written here.

mod chart;
pub(crate) mod copy;
mod files;
pub(crate) mod hydrator;
pub(crate) mod in_place;
mod layout;
mod license;
pub(crate) mod lock;
mod missing_inputs;
mod placing;
mod proof;
mod remotes;
mod result;
mod spelling;
mod troubles;
pub(crate) mod update;

use std::collections::{BTreeSet, HashSet};
use std::rc::Rc;

pub(crate) use files::{Changes, ResultFile, Rewritten, changed};
pub(crate) use missing_inputs::first_missing;
pub(crate) use remotes::{remotes, user_upstreams};
pub(crate) use troubles::walk_for_build;

use crate::graph::{FileId, Graph, RootId, Survey};
use crate::message::failure::Result;
use crate::message::finding::Finding;
use crate::record::Lock;
use crate::targets;
use crate::tree::path;
use crate::workspace::Workspace;

/// The `.gitattributes` of each `localized-files` directory. With it no checkout and no `git add` changes a byte below.
pub(crate) const GITATTRIBUTES: &str = "* -text -filter -ident -working-tree-encoding\n";

/// The options of localizing that are not in the configuration.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PlanOptions {
    /// Whether edits in localized files are discarded.
    pub overwrite: bool,
    /// Whether a commit message will have the record.
    pub trailers: bool,
}

/// The changes that localizing makes.
pub(crate) struct Plan {
    /// The files to write and to remove, including the lock. Empty if there is nothing to do.
    pub changes: Changes,
    /// The path of NEW_DIR, which then has only these files. `None` if the tree is localized in place.
    pub new_dir: Option<String>,
    /// The paths for `git add`: edited kustomizations, `localized-files`, the lock.
    pub stage: Vec<String>,
    /// The lock of the result.
    pub lock: Lock,
    /// The rewritten references.
    pub rewritten: Vec<Rewritten>,
    /// Findings that do not stop the work.
    pub findings: Vec<Finding>,
    /// The fetched files that stay executable, because the configuration trusts them.
    pub trusted: HashSet<FileId>,
    /// The graph of the original.
    pub before: Graph,
    /// The graph of the result: of the tree, or of NEW_DIR.
    pub after: Graph,
    /// The survey of the result. `None` for a copy.
    pub survey: Option<Rc<Survey>>,
    /// The roots to build and compare: those that localizing could change, and for a branch all others.
    pub affected: Vec<ComparedRoot>,
}

/// A root whose builds before and after are compared. The build of an unchanged root is run to see whether it fetches
/// anything.
#[derive(Debug, Clone)]
pub(crate) struct ComparedRoot {
    /// Its name in records.
    pub name: String,
    /// The root, in the graph of the original.
    pub root: RootId,
    /// The directory to build for the original, from the scope.
    pub original: String,
    /// The directory to build for the result, from its top.
    pub localized: String,
    /// Whether any input of its build changes.
    pub is_changed: bool,
}

impl ComparedRoot {
    /// A root of the user that keeps its directory.
    pub(crate) fn unmoved(graph: &Graph, root: RootId, is_changed: bool) -> ComparedRoot {
        let directory = &graph.roots[root].directory;
        let name = path::shown(directory).to_owned();
        ComparedRoot { name, root, original: directory.clone(), localized: directory.clone(), is_changed }
    }
}

/// The directories in which a walk of the whole tree starts, by the configuration. Deployed roots are included although
/// the configuration excludes them.
fn starts(workspace: &Workspace) -> Result<Vec<String>> {
    let kustomizations = workspace.kustomizations()?;
    workspace.lock.as_ref().map_or(Ok(()), |lock| lock.require_kustomizations(kustomizations))?;
    let deployed = deployed_roots(workspace)?.iter().cloned();
    workspace.config.starting_points(&*workspace.tree, &[], kustomizations, deployed)
}

/// The directories of the roots that a target deploys. Empty outside of a repository, and if the configuration leaves
/// no root out: then each is a starting point anyway. They are found once for a workspace, because that reads every
/// object of the tree.
fn deployed_roots(workspace: &Workspace) -> Result<&BTreeSet<String>> {
    if let Some(deployed) = workspace.deployed.get() {
        return Ok(deployed);
    }
    let repo = workspace.repo().filter(|_| workspace.listing().is_some());
    let deployed = repo.map(|repo| targets::deployed_roots(repo, workspace.survey(), &workspace.config));
    let deployed = deployed.transpose()?.unwrap_or_default();
    Ok(workspace.deployed.get_or_init(|| deployed))
}

#[cfg(test)]
mod tests;
