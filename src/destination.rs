//! Where a plan goes: one commit on a branch, a directory, or the working tree. All of it or nothing.

mod branch;
mod commit;
mod directory;
mod earlier;
mod merged;
pub(crate) mod message;
pub(crate) mod objects;
mod on_branch;
pub(crate) mod working;
mod worktree;

pub(crate) use directory::NewDirectory;
pub(crate) use on_branch::{BranchOptions, Committed, OnBranch};

use std::collections::BTreeSet;
use std::rc::Rc;

use crate::build::{BuildCheck, Earlier};
use crate::fetch::{History, Move, Tip};
use crate::git::Status;
use crate::graph::Warning;
use crate::message::failure::{Failure, Result};
use crate::plan::{Plan, Writes};
use crate::record::{LOCK_NAME, Lock};
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

/// What a destination holds already.
#[derive(Default)]
pub(crate) struct Held {
    /// The lock of what was localized there before.
    pub lock: Option<Rc<Lock>>,
    /// The files of that; none where the lock does not list them.
    pub files: Option<Tip>,
}

/// The kind of destination, as requested.
#[derive(Debug, Clone)]
pub(crate) enum To {
    Branch(BranchOptions),
    /// Files on disk.
    Disk,
}

/// A delivery: what to write, and where it comes from.
pub(crate) struct Delivery<'a> {
    /// What it was made from.
    pub workspace: &'a Workspace,
    /// What is written.
    pub plan: &'a Plan,
    /// The result of the builds; none if no build is affected.
    pub builds: Option<&'a BuildCheck>,
    /// The lock that a message compares with.
    pub before: &'a Lock,
    /// Returns what lies between the commits of each move of a repository.
    pub histories: &'a dyn Fn(&[Move]) -> Vec<Option<History>>,
}

/// The result of a delivery.
pub(crate) enum Delivered {
    /// A branch holds the result.
    Committed(Committed),
    /// Nothing is written: the branch at the remote has moved since it was fetched.
    Outrun,
    /// Files were written.
    Written,
    /// Everything was as it must be.
    Unchanged,
}

impl Destination {
    /// Looks at where a result is to go: a copy that the user named `new_dir`, or the repository where it stands.
    pub(crate) fn open(workspace: &Workspace, to: &To, new_dir: Option<&str>, overwrite: bool) -> Result<Destination> {
        Ok(match (to, new_dir) {
            (To::Branch(options), new_dir) => {
                let branch = OnBranch::open(workspace, new_dir, options, overwrite)?;
                Destination::Branch(Box::new(branch))
            }
            (To::Disk, Some(new_dir)) => Destination::Directory(NewDirectory::find(workspace, new_dir)?),
            (To::Disk, None) => Destination::WorkingTree,
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
            Destination::Branch(branch) => branch.place(),
            Destination::Directory(directory) => &directory.shown,
            Destination::WorkingTree => "",
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
    pub(crate) fn held(&self, workspace: &Workspace) -> Result<Held> {
        let lock = match self {
            Destination::Branch(branch) => return branch.held(),
            Destination::Directory(directory) => {
                let place = path::join(&directory.into, LOCK_NAME);
                Lock::at(&*workspace.tree, &place)?
            }
            Destination::WorkingTree => workspace.lock.clone(),
        };
        let files = lock.clone().map(|lock| Tip {
            tree: workspace.tree.clone(),
            directory: self.place().to_owned(),
            lock,
            // The configuration on disk may be a new one.
            has_licenses: false,
        });
        Ok(Held { lock, files })
    }

    /// Refuses a NEW_DIR that holds something else than this target.
    pub(crate) fn claim(&mut self, target: &str, overwrite: bool) -> Result<()> {
        match self {
            Destination::Branch(branch) => branch.claim(target, overwrite),
            Destination::Directory(directory) => directory.claim(target, overwrite),
            Destination::WorkingTree => Ok(()),
        }
    }

    /// Begins to look whether files in use have changes that are not committed, where that matters.
    pub(crate) fn begin_status(&self, workspace: &Workspace, used: &BTreeSet<String>) -> Option<Status> {
        self.branch()?.begin_status(workspace, used)
    }

    /// Refuses a result of a commit that is not what people see on disk. `begun` may have found that out.
    pub(crate) fn refuse_changed(&self, workspace: &Workspace, plan: &Plan, begun: Option<Status>) -> Result<()> {
        match self.branch() {
            Some(branch) => branch.refuse_changed(workspace, plan, begun),
            None => Ok(()),
        }
    }

    /// Returns what is known of builds of the same inputs. `held` is the lock from [`Destination::held`].
    pub(crate) fn earlier(&self, workspace: &Workspace, plan: &Plan, held: Option<&Lock>) -> Result<Option<Earlier>> {
        match self.branch() {
            Some(branch) => branch.earlier(workspace, plan, held),
            None => Ok(None),
        }
    }

    /// Returns what should be known before something goes there.
    pub(crate) fn warning(&self, workspace: &Workspace) -> Result<Option<Warning>> {
        match self.branch() {
            Some(branch) => branch.warning(workspace),
            None => Ok(None),
        }
    }

    /// Writes what was planned: all of it or nothing.
    pub(crate) fn deliver(&self, delivery: &Delivery<'_>) -> Result<Delivered> {
        let plan = delivery.plan;
        match (self, &plan.writes) {
            (Destination::Branch(branch), _) => {
                let (builds, histories) = (delivery.builds, delivery.histories);
                let committed = branch.commit(plan, delivery.before, builds, histories)?;
                Ok(committed.map_or(Delivered::Outrun, Delivered::Committed))
            }
            (Destination::Directory(directory), Writes::Copy { files, .. }) => {
                directory.write(files)?;
                Ok(Delivered::Written)
            }
            (Destination::WorkingTree, Writes::InPlace { changes, .. }) => {
                working::write(delivery.workspace, changes)?;
                Ok(if changes.is_empty() { Delivered::Unchanged } else { Delivered::Written })
            }
            (Destination::Directory(_), Writes::InPlace { .. }) | (Destination::WorkingTree, Writes::Copy { .. }) => {
                Err(Failure::new("a copy goes into a directory of its own, and nothing else does"))
            }
        }
    }
}
