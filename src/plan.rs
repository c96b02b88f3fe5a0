//! What localizing changes: a copy of one target ([`copy`]), or the repository in place ([`in_place`]). Either way a graph is
//! walked, its nodes placed (`layout`, `placing`), references edited and files collected (`result`), and what keeps its
//! URLs is locked ([`lock`]); nothing is written here.

mod chart;
pub(crate) mod copy;
mod files;
mod hydrator;
pub(crate) mod in_place;
mod layout;
mod left;
mod license;
pub(crate) mod lock;
mod placing;
mod proof;
mod remotes;
mod result;
mod spelling;
mod troubles;
pub(crate) mod update;

use std::collections::{BTreeSet, HashSet};
use std::rc::Rc;

pub(crate) use files::{Changes, File, Rewritten, changed};
pub(crate) use left::among as left_among;
pub(crate) use remotes::remotes;
pub(crate) use spelling::is_remote;
pub(crate) use troubles::reached;

use crate::graph::{FileId, Graph, RootId, Survey};
use crate::message::failure::Result;
use crate::message::finding::Finding;
use crate::record::Lock;
use crate::targets::{self, Identity};
use crate::tree::path;
use crate::workspace::Workspace;

/// The `.gitattributes` of each `localized-files` directory: no checkout and no `git add` changes a byte below it.
pub(crate) const GITATTRIBUTES: &str = "* -text -filter -ident -working-tree-encoding\n";

/// How to localize, besides what the configuration says.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Options {
    /// Whether edits in localized files are discarded.
    pub overwrite: bool,
    /// Whether the message of a commit is going to hold the record.
    pub trailers: bool,
}

/// What localizing is going to change.
pub(crate) struct Plan {
    /// What is written and removed, the lock included; nothing when there is nothing to do.
    pub changes: Changes,
    /// The path of NEW_DIR, which then holds this and nothing else; none where the tree is localized where it stands.
    pub new_dir: Option<String>,
    /// The paths to hand to `git add`: edited kustomizations, `localized-files`, the lock.
    pub stage: Vec<String>,
    /// The lock that the result has.
    pub lock: Lock,
    /// The references that are rewritten.
    pub rewritten: Vec<Rewritten>,
    /// What works but should be known.
    pub findings: Vec<Finding>,
    /// The fetched files that stay executable, because the user trusts them.
    pub trusted: HashSet<FileId>,
    /// What was walked.
    pub before: Graph,
    /// What a walk is going to find afterwards: in the tree, or in NEW_DIR.
    pub after: Graph,
    /// What was walked for that; `None` of a copy.
    pub survey: Option<Rc<Survey>>,
    /// The roots to build: those that build to something else if anything went wrong, and for a branch all others.
    pub affected: Vec<Affected>,
}

/// A root whose builds before and after are compared; of one that stays as it is the build is watched.
#[derive(Debug, Clone)]
pub(crate) struct Affected {
    /// How records name it.
    pub name: String,
    /// The root, of the graph that was walked.
    pub root: RootId,
    /// The directory to build for the original, from the scope.
    pub original: String,
    /// The directory to build for the result, from where it begins.
    pub localized: String,
    /// Whether it is built from something else than before.
    pub is_changed: bool,
}

impl Affected {
    /// Takes a root of the user where it stands.
    pub(crate) fn own(graph: &Graph, root: RootId, is_changed: bool) -> Affected {
        let directory = &graph.roots[root].directory;
        let name = path::shown(directory).to_owned();
        Affected { name, root, original: directory.clone(), localized: directory.clone(), is_changed }
    }
}

/// Returns where a walk of the whole tree starts: as the configuration says, and at every root that is deployed although it
/// leaves that out.
fn starts(workspace: &Workspace) -> Result<Vec<String>> {
    let all = workspace.kustomizations()?;
    workspace.lock.as_ref().map_or(Ok(()), |lock| lock.refuse_without(all))?;
    let deployed = deployed(workspace)?.iter().cloned();
    workspace.config.starting_points(&*workspace.tree, &[], all, deployed)
}

fn deployed(workspace: &Workspace) -> Result<&BTreeSet<String>> {
    if let Some(deployed) = workspace.deployed.get() {
        return Ok(deployed);
    }
    let config = &workspace.config;
    let leaves_out = !(config.include.is_empty() && config.exclude.is_empty());
    let Some(repo) = workspace.repo().filter(|_| leaves_out && workspace.listing().is_some()) else {
        return Ok(workspace.deployed.get_or_init(BTreeSet::new));
    };
    let (survey, all) = (workspace.survey(), workspace.kustomizations()?);
    let found = targets::find_in(survey, &[], all, config, &|| Identity::of_any_clone(repo, config))?;
    Ok(workspace.deployed.get_or_init(|| found.as_written().roots()))
}

#[cfg(test)]
mod tests;
