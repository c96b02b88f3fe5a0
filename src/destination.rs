//! The destination of a plan: one commit on a branch, a directory, or the working tree.

mod branch;
mod directory;
mod earlier;
pub(crate) mod message;
pub(crate) mod objects;
mod on_branch;
pub(crate) mod rendered;
pub(crate) mod working;
mod worktree;

pub(crate) use directory::NewDirectory;
pub(crate) use on_branch::{BranchOptions, OnBranch, State, commit_command, refuse_uncommitted, uncommitted};

use std::collections::BTreeMap;

use serde::Serialize;

use crate::build::BuildCheck;
use crate::fetch::{Histories, Tip};
use crate::message::failure::Result;
use crate::plan::{Changes, Plan};
use crate::record::history::trees::TreeEntry;
use crate::record::{LOCK_NAME, Lock, stored};
use crate::tree::path;
use crate::workspace::Workspace;

pub(crate) enum Destination {
    /// Onto a branch, as one commit.
    Branch(Box<OnBranch>),
    /// Into a separate directory on disk.
    Directory(NewDirectory),
    /// Into the working tree.
    WorkingTree,
}

/// The result of a delivery.
#[derive(Default)]
pub(crate) struct Delivered {
    /// Whether anything was written; false if everything was up to date. A directory is always written.
    pub is_written: bool,
    /// The tip of the branch; `None` on disk.
    pub commit: Option<String>,
    /// The tree of NEW_DIR in that commit.
    pub tree: Option<String>,
    pub changed: ChangedFiles,
}

/// The files that a delivery changes. On a branch they are compared with its tip, or with the source if it has none.
#[derive(Default)]
pub(crate) struct ChangedFiles {
    /// The written files with their number of bytes; `None` for a submodule, and if a partial clone lacks the blob.
    pub files: BTreeMap<String, Option<u64>>,
    pub removed: Vec<String>,
}

impl ChangedFiles {
    /// The changes of a plan on disk, for a report. In a working tree a plan has only files that differ; of a copy it
    /// has all files, because the directory is replaced as a whole.
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

    /// The changes between two trees, for a report. `changed` has each path that differs, with its new entry; `None` if
    /// the path was removed. The sizes of the files are read from `repository`.
    fn between(repository: &gix::Repository, changed: BTreeMap<String, Option<TreeEntry>>) -> ChangedFiles {
        let mut files = ChangedFiles::default();
        for (path, entry) in changed {
            match entry {
                Some((_, id)) => {
                    let size = repository.find_header(id).ok().map(|header| header.size());
                    files.files.insert(path, size);
                }
                None => files.removed.push(path),
            }
        }
        files
    }

    /// The changes in one directory, by paths from that directory.
    pub(crate) fn below(&self, top: &str) -> ChangedFiles {
        let files = self.files.iter();
        let removed = self.removed.iter().filter_map(|path| path::below(path, top));
        ChangedFiles {
            files: files.filter_map(|(path, size)| Some((path::below(path, top)?.to_owned(), *size))).collect(),
            removed: removed.map(str::to_owned).collect(),
        }
    }
}

/// The edits by hand that `--overwrite` discards.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Discarded {
    /// The abbreviated commits on the branch, newest first; empty on disk, or if a localized commit was rewritten.
    pub commits: Vec<String>,
    /// Paths from the top of a copy on disk, otherwise from the top of the repository.
    pub paths: Vec<String>,
}

impl Destination {
    /// Opens the destination that the arguments of a command name: a branch, or the disk if `branch` is `None`; for a
    /// copy into `new_dir`, as the user wrote it, or for the repository in place. Nothing is written yet; but a branch
    /// to push is fetched.
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

    /// The path of NEW_DIR in the tree of the workspace; empty for the repository in place.
    pub(crate) fn new_dir(&self) -> &str {
        match self {
            Destination::Branch(branch) => branch.new_dir(),
            Destination::Directory(directory) => &directory.tree_path,
            Destination::WorkingTree => "",
        }
    }

    /// NEW_DIR as messages name it.
    pub(crate) fn shown(&self) -> &str {
        match self {
            Destination::Directory(directory) => &directory.shown,
            Destination::Branch(_) | Destination::WorkingTree => self.new_dir(),
        }
    }

    /// The branch; `None` on disk.
    pub(crate) fn branch(&self) -> Option<&OnBranch> {
        match self {
            Destination::Branch(branch) => Some(branch),
            Destination::Directory(_) | Destination::WorkingTree => None,
        }
    }

    /// The result of the previous run at this destination, with its lock: what it has localized need not be fetched
    /// again. `None` if there is none.
    pub(crate) fn previous_tip(&self, workspace: &Workspace) -> Result<Option<Tip>> {
        let lock = match self {
            Destination::Branch(branch) => return branch.previous_tip(),
            Destination::Directory(directory) => {
                Lock::find(&*workspace.tree, &path::join(&directory.tree_path, LOCK_NAME))?
            }
            Destination::WorkingTree => workspace.lock.clone(),
        };
        Ok(lock.map(|lock| Tip {
            tree: workspace.tree.clone(),
            directory: self.new_dir().to_owned(),
            lock,
            // The working tree counts as complete: `update` adds the licenses that an earlier run did not.
            has_licenses: matches!(self, Destination::WorkingTree),
        }))
    }

    /// Refuses a NEW_DIR that holds anything but an earlier copy of this target; without `overwrite` also a copy with
    /// edits by hand. Those of a branch were refused when it was opened.
    pub(crate) fn claim(&self, workspace: &Workspace, target: &str, overwrite: bool) -> Result<()> {
        match self {
            Destination::Branch(branch) => branch.claim(target, overwrite),
            Destination::Directory(directory) => directory.claim(&*workspace.tree, target, overwrite),
            Destination::WorkingTree => Ok(()),
        }
    }

    /// Writes the plan. `before` is the lock that the message compares with, `histories` gives the upstream commits of
    /// each move. `None` if nothing was written because the branch at the remote has moved since it was fetched.
    pub(crate) fn deliver(
        &self,
        workspace: &Workspace,
        plan: &Plan,
        builds: Option<&BuildCheck>,
        before: &Lock,
        histories: &Histories<'_>,
    ) -> Result<Option<Delivered>> {
        match self {
            Destination::Branch(branch) => {
                return branch.commit(&branch.localized_content(plan, builds), || branch.text(plan, before, histories));
            }
            Destination::Directory(directory) => directory.write(&plan.changes)?,
            Destination::WorkingTree => working::write(workspace, &plan.changes)?,
        }
        let changed = ChangedFiles::of(&plan.changes);
        Ok(Some(Delivered { is_written: !plan.changes.is_empty(), changed, ..Delivered::default() }))
    }

    /// The changes that a delivery would make.
    pub(crate) fn pending(&self, plan: &Plan) -> Result<Delivered> {
        match self {
            Destination::Branch(branch) => branch.pending(&branch.localized_content(plan, None)),
            Destination::Directory(_) | Destination::WorkingTree => {
                Ok(Delivered { changed: ChangedFiles::of(&plan.changes), ..Delivered::default() })
            }
        }
    }

    /// The edits by hand that a delivery discards, so that the report can name them. `previous` is the result of the
    /// previous run ([`previous_tip`](Self::previous_tip)), with whose lock the files are compared.
    pub(crate) fn discarded(&self, previous: Option<&Tip>, plan: &Plan) -> Result<Discarded> {
        let paths = match (self, previous) {
            (Destination::Branch(branch), _) => return Ok(branch.discarded()),
            // It is replaced as a whole.
            (Destination::Directory(directory), _) => directory.edited().to_vec(),
            (Destination::WorkingTree, None) => Vec::new(),
            (Destination::WorkingTree, Some(Tip { tree, lock, .. })) => {
                let edited = stored::differences(&**tree, "", lock)?.into_iter().map(|(path, _)| path);
                edited.filter(|path| plan.changes.contains_key(path)).collect()
            }
        };
        Ok(Discarded { commits: Vec::new(), paths })
    }
}
