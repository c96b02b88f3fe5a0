//! Hooks of git: installing and removing them, and what one that runs has to judge.
//!
//! The scripts are the files in `hooks/` of the source, so that a copied one and an installed one are the same.

mod directory;
mod file;
mod judged;

use crate::failure::{Failures, Result};
use crate::git::LocalRepo;

pub use directory::Directory;
pub use file::{Change, Done};
pub use judged::{Base, Framework, Judged, committed, framework, pushed, received};

/// The hooks that we have something to say in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, clap::ValueEnum)]
pub enum Hook {
    /// Before a commit
    PreCommit,
    /// Before a merge without conflicts, where git runs no `pre-commit`
    PreMergeCommit,
    /// Before a push: also of what rebase, cherry-pick and revert made, which run no other hook
    PrePush,
}

impl Hook {
    /// All of them.
    pub const ALL: [Hook; 3] = [Hook::PreCommit, Hook::PreMergeCommit, Hook::PrePush];

    /// Returns the name that git has for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Hook::PreCommit => "pre-commit",
            Hook::PreMergeCommit => "pre-merge-commit",
            Hook::PrePush => "pre-push",
        }
    }

    /// Returns the whole file of a hook that is ours alone.
    fn script(self) -> &'static str {
        match self {
            Hook::PreCommit => include_str!("../hooks/pre-commit"),
            Hook::PreMergeCommit => include_str!("../hooks/pre-merge-commit"),
            Hook::PrePush => include_str!("../hooks/pre-push"),
        }
    }
}

/// What can run us.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Running {
    /// Check what is staged
    PreCommit,
    /// Check what a merge makes
    PreMergeCommit,
    /// Check the commits that are pushed; reads their refs
    PrePush,
    /// On a server: check the commits that were pushed, by the configuration that it has already;
    /// reads their refs
    PreReceive,
    /// Check what the pre-commit framework runs for
    Framework,
    /// Lock what the files name; fails when that changed the lock
    Lock,
}

/// Puts `hooks` where git looks for them.
///
/// # Errors
/// When one of the hooks cannot be put in: then none is. A hook is in the way, or a directory that
/// others have a say in.
pub fn install(here: &LocalRepo, hooks: &[Hook]) -> Result<Vec<Change>, Failures> {
    let directory = Directory::find(here)?;
    directory.is_for_us(hooks)?;
    let mut failures = Vec::new();
    let mut changes = Vec::new();
    for hook in Hook::ALL.iter().filter(|hook| hooks.contains(hook)) {
        match file::to_install(&directory, *hook) {
            Ok(change) => changes.push((*hook, change)),
            Err(failure) => failures.push(failure),
        }
    }
    if !failures.is_empty() {
        return Err(Failures(failures));
    }
    file::apply(&changes)?;
    Ok(changes.into_iter().map(|(_, change)| change).collect())
}

/// Removes what [`install`] put in.
///
/// # Errors
/// When a file cannot be read or removed, or is not ours and runs us.
pub fn uninstall(here: &LocalRepo, hooks: &[Hook]) -> Result<Vec<Change>, Failures> {
    let directory = Directory::find(here)?;
    let mut changes = Vec::new();
    for hook in Hook::ALL.iter().filter(|hook| hooks.contains(hook)) {
        changes.extend(file::to_uninstall(&directory, *hook)?.map(|change| (*hook, change)));
    }
    file::apply(&changes)?;
    Ok(changes.into_iter().map(|(_, change)| change).collect())
}
