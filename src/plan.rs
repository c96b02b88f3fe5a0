//! What localizing changes: a copy of one target ([`copy`]), or the repository in place ([`in_place`]). Either
//! way every node of the graph is placed (`layout`, `placing`), the references are edited and the files collected
//! (`result`). What keeps its URLs is locked ([`lock`]), and what would harm what is deployed is refused ([`deployed`]).
//! Nothing is written here.

mod chart;
pub(crate) mod copy;
pub(crate) mod deployed;
mod files;
mod graph_check;
mod hydrator;
pub(crate) mod in_place;
mod layout;
mod left;
mod license;
pub(crate) mod lock;
mod options;
mod placing;
mod remotes;
mod result;
mod spelling;
mod troubles;
pub(crate) mod update;

use std::collections::{BTreeMap, BTreeSet, HashSet};

pub(crate) use files::{Change, Content, Localized, ResultFile, Rewritten};
pub(crate) use hydrator::NAME as HYDRATOR_METADATA;
pub(crate) use left::{UNRESOLVED, left, reached as reached_left, references, unresolved};
pub(crate) use options::Options;
pub(crate) use remotes::git as git_remote;
pub(crate) use remotes::remotes;
pub(crate) use result::{InPlace, Rules, localize, localize_in_place};
pub(crate) use spelling::{is_remote, value};

use crate::graph::{FileId, Graph, RootId, Warning};
use crate::record::{LoadRestrictor, Lock};

/// The `.gitattributes` of each `localized-files` directory: no checkout and no `git add` changes a byte below it.
pub(crate) const GITATTRIBUTES: &str = "* -text -filter -ident -working-tree-encoding\n";

/// What localizing is going to change.
pub(crate) struct Plan {
    /// What is written.
    pub writes: Writes,
    /// The lock that the result has.
    pub lock: Lock,
    /// The references that are rewritten.
    pub rewritten: Vec<Rewritten>,
    /// What works but should be known.
    pub warnings: Vec<Warning>,
    /// The fetched files that stay executable, because the user trusts them.
    pub trusted: HashSet<FileId>,
    /// What was walked.
    pub before: Graph,
    /// The files of the user (paths in the tree of the workspace) that the result depends on.
    pub used: BTreeSet<String>,
    /// Where files of a kustomization may lie.
    pub load_restrictor: LoadRestrictor,
    /// The roots that build to something else if anything went wrong.
    pub affected: Vec<Affected>,
}

/// What is written.
pub(crate) enum Writes {
    Copy {
        /// The path of NEW_DIR in the tree of the workspace.
        into: String,
        /// What NEW_DIR holds afterwards, the lock included, by path.
        files: BTreeMap<String, ResultFile>,
    },
    /// Files where they stand.
    InPlace {
        /// The changes, in their order; none when there is nothing to do.
        changes: Vec<Change>,
        /// What a walk is going to find afterwards.
        after: Box<Graph>,
        /// The paths to hand to `git add`: edited kustomizations, `localized-files`, the lock.
        stage: Vec<String>,
    },
}

/// A root whose builds before and after are compared.
#[derive(Debug, Clone)]
pub(crate) struct Affected {
    /// How records name it.
    pub name: String,
    /// The root, of the graph that was walked.
    pub root: RootId,
    /// What to build for the original.
    pub original: Original,
    /// The directory to build for the result, from where it begins.
    pub localized: String,
}

/// What is built for the original.
#[derive(Debug, Clone)]
pub(crate) enum Original {
    /// A directory, from the scope.
    Directory(String),
    /// A directory of a git repository.
    Url(String),
}

#[cfg(test)]
mod tests;
