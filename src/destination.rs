//! Where a plan goes: one commit on a branch, a directory, or the working tree.

mod branch;
mod directory;
mod earlier;
pub(crate) mod message;
pub(crate) mod objects;
mod on_branch;
pub(crate) mod working;
mod worktree;

pub(crate) use directory::NewDirectory;
pub(crate) use on_branch::{BranchOptions, OnBranch, State, commit, refuse_changed, uncommitted};

use std::collections::BTreeMap;

use serde::Serialize;

use crate::build::BuildCheck;
use crate::fetch::{Histories, Tip};
use crate::message::failure::Result;
use crate::plan::{Changes, Plan};
use crate::record::{LOCK_NAME, Lock, stored};
use crate::tree::path;
use crate::workspace::Workspace;

/// Where a plan goes.
pub(crate) enum Destination {
    /// Onto a branch, as one commit.
    Branch(Box<OnBranch>),
    /// Into a directory of its own, on disk.
    Directory(NewDirectory),
    /// Into the working tree.
    WorkingTree,
}

/// The result of a delivery.
#[derive(Default)]
pub(crate) struct Delivered {
    /// Whether anything was written; else everything was as it must be.
    pub is_new: bool,
    /// The tip of the branch; none on disk.
    pub commit: Option<String>,
    /// The tree of NEW_DIR there.
    pub tree: Option<String>,
    pub changed: ChangedFiles,
}

/// The files that a delivery changes: those of a branch relative to its tip, of a first commit to the source.
#[derive(Default)]
pub(crate) struct ChangedFiles {
    /// What is written, with the number of bytes: none for a submodule, and for what a partial clone lacks.
    pub files: BTreeMap<String, Option<u64>>,
    pub removed: Vec<String>,
}

impl ChangedFiles {
    pub(crate) fn of(changes: &Changes) -> ChangedFiles {
        let mut changed = ChangedFiles::default();
        for (path, file) in changes {
            match file {
                Some(file) => drop(changed.files.insert(path.clone(), Some(file.bytes.len() as u64))),
                None => changed.removed.push(path.clone()),
            }
        }
        changed
    }

    /// Returns what is in a directory, by its path from there.
    pub(crate) fn below(&self, top: &str) -> ChangedFiles {
        let below = |path: &String| path::below(path, top).map(str::to_owned);
        ChangedFiles {
            files: self.files.iter().filter_map(|(path, size)| Some((below(path)?, *size))).collect(),
            removed: self.removed.iter().filter_map(below).collect(),
        }
    }
}

/// The edits by hand that `--overwrite` discards.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Discarded {
    /// The commits (abbreviated) on the branch, newest first; none on disk, or if a localized commit was rewritten.
    pub commits: Vec<String>,
    /// From the top of a copy on disk, else of the repository.
    pub paths: Vec<String>,
}

impl Destination {
    /// Looks at where a result is to go: onto a branch, or to disk without one; as a copy that the user named `new_dir`,
    /// or as the repository where it stands.
    pub(crate) fn open(
        workspace: &Workspace,
        branch: Option<&BranchOptions>,
        new_dir: Option<&str>,
        overwrite: bool,
    ) -> Result<Destination> {
        Ok(match (branch, new_dir) {
            (Some(options), _) => {
                Destination::Branch(Box::new(OnBranch::open(workspace, new_dir, options, overwrite)?))
            }
            (None, Some(new_dir)) => Destination::Directory(NewDirectory::find(workspace, new_dir)?),
            (None, None) => Destination::WorkingTree,
        })
    }

    /// Returns the path of NEW_DIR in the tree of the workspace; empty for the repository where it stands.
    pub(crate) fn place(&self) -> &str {
        match self {
            Destination::Branch(branch) => branch.place(),
            Destination::Directory(directory) => &directory.into,
            Destination::WorkingTree => "",
        }
    }

    /// Returns NEW_DIR as messages name it.
    pub(crate) fn shown(&self) -> &str {
        match self {
            Destination::Directory(directory) => &directory.shown,
            Destination::Branch(_) | Destination::WorkingTree => self.place(),
        }
    }

    /// Returns the branch, if it is one.
    pub(crate) fn branch(&self) -> Option<&OnBranch> {
        match self {
            Destination::Branch(branch) => Some(branch),
            Destination::Directory(_) | Destination::WorkingTree => None,
        }
    }

    /// Returns what was localized there before.
    pub(crate) fn held(&self, workspace: &Workspace) -> Result<Option<Tip>> {
        let lock = match self {
            Destination::Branch(branch) => return branch.held(),
            Destination::Directory(directory) => Lock::at(&*workspace.tree, &path::join(&directory.into, LOCK_NAME))?,
            Destination::WorkingTree => workspace.lock.clone(),
        };
        Ok(lock.map(|lock| Tip {
            tree: workspace.tree.clone(),
            directory: self.place().to_owned(),
            lock,
            // What was not brought into the working tree with the rest comes with an update.
            has_licenses: matches!(self, Destination::WorkingTree),
        }))
    }

    /// Refuses a NEW_DIR that holds something else than this target.
    pub(crate) fn claim(&self, workspace: &Workspace, target: &str, overwrite: bool) -> Result<()> {
        match self {
            Destination::Branch(branch) => branch.claim(target, overwrite),
            Destination::Directory(directory) => directory.claim(&*workspace.tree, target, overwrite),
            Destination::WorkingTree => Ok(()),
        }
    }

    /// Writes what was planned. `before` is the lock that a message compares with, `histories` says what lies between the
    /// commits of each move of a repository. None where nothing is written, because the branch at the remote has moved since
    /// it was fetched.
    pub(crate) fn deliver(
        &self,
        workspace: &Workspace,
        plan: &Plan,
        builds: Option<&BuildCheck>,
        before: &Lock,
        histories: &Histories<'_>,
    ) -> Result<Option<Delivered>> {
        match self {
            Destination::Branch(branch) => return branch.commit(plan, before, builds, histories),
            Destination::Directory(directory) => directory.write(&plan.changes)?,
            Destination::WorkingTree => working::write(workspace, &plan.changes)?,
        }
        let changed = ChangedFiles::of(&plan.changes);
        Ok(Some(Delivered { is_new: !plan.changes.is_empty(), changed, ..Delivered::default() }))
    }

    /// Returns what a delivery would change.
    pub(crate) fn pending(&self, plan: &Plan) -> Result<Delivered> {
        let changed = match self {
            Destination::Branch(branch) => branch.changed(plan)?,
            Destination::Directory(_) | Destination::WorkingTree => ChangedFiles::of(&plan.changes),
        };
        Ok(Delivered { changed, ..Delivered::default() })
    }

    /// Returns the edits by hand that a delivery discards. `held` is what was localized there before.
    pub(crate) fn discarded(&self, held: Option<&Tip>, plan: &Plan) -> Result<Discarded> {
        if let Destination::Branch(branch) = self {
            return Ok(branch.discarded());
        }
        let Some(held) = held else {
            return Ok(Discarded::default());
        };
        let edited = stored::differences(&*held.tree, &held.directory, &held.lock)?;
        // A directory is written as a whole.
        let is_written = |place: &String| !matches!(self, Destination::WorkingTree) || plan.changes.contains_key(place);
        let edited = edited.into_iter().map(|(place, _)| place).filter(is_written);
        let paths = edited.filter_map(|place| Some(path::below(&place, &held.directory)?.to_owned())).collect();
        Ok(Discarded { commits: Vec::new(), paths })
    }
}
