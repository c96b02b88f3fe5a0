//! Hooks of git: installing and removing them, and what one that runs has to judge.
//!
//! The scripts are the files in `hooks/` of the source, so that a copied one and an installed one are the same.

mod directory;
mod file;
mod judged;

use crate::git::LocalRepo;
use crate::message::failure::{Failures, Result};

pub(crate) use directory::Directory;
pub(crate) use file::{Change, Done};
pub(crate) use judged::{Base, Framework, Judged, committed, framework, pushed, received};

/// The hooks that we have something to say in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, clap::ValueEnum)]
#[allow(clippy::enum_variant_names)]
pub(crate) enum Hook {
    /// Before a commit
    PreCommit,
    /// Before a merge without conflicts, where git runs no `pre-commit`
    PreMergeCommit,
    /// Before a push: also of what rebase, cherry-pick and revert made, which run no other hook
    PrePush,
}

impl Hook {
    /// All of them.
    pub(crate) const ALL: [Hook; 3] = [Hook::PreCommit, Hook::PreMergeCommit, Hook::PrePush];

    /// Returns the name that git has for it.
    pub(crate) fn name(self) -> &'static str {
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
pub(crate) enum Running {
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
pub(crate) fn install(here: &LocalRepo, hooks: &[Hook]) -> Result<Vec<Change>, Failures> {
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
pub(crate) fn uninstall(here: &LocalRepo, hooks: &[Hook]) -> Result<Vec<Change>, Failures> {
    let directory = Directory::find(here)?;
    let mut changes = Vec::new();
    for hook in Hook::ALL.iter().filter(|hook| hooks.contains(hook)) {
        changes.extend(file::to_uninstall(&directory, *hook)?.map(|change| (*hook, change)));
    }
    file::apply(&changes)?;
    Ok(changes.into_iter().map(|(_, change)| change).collect())
}
