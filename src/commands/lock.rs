//! `lock`: the lock at the top, brought up to date with the working tree.

use std::rc::Rc;

use clap::Args;

use super::allow::{add_allow, say_added};
use super::check::{Base, check};
use super::localize::{Localized, write};
use super::output::{Done, OutputArgs};
use super::{fetcher, fetching};
use crate::check::Checking;
use crate::graph::Warning;
use crate::message::failure::Failures;
use crate::message::finding::Rule;
use crate::plan::lock::{Relocked, relock, up_to_date, without_charts};
use crate::plan::{Changes, File};
use crate::record::{LOCK_NAME, Lock};
use crate::workspace::{Workspace, repository_offline};

/// Arguments of `lock`.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct LockArgs {
    /// Say what would be done; may fetch into the cache, writes nothing else
    #[arg(long)]
    dry_run: bool,

    /// Lock what can be, and write an entry of `allow` for all else that `check` finds
    ///
    /// Each with `reason: TODO`, which is a warning of `check` until somebody says why. None for what does not answer
    /// today.
    #[arg(long, conflicts_with = "dry_run")]
    add_allow: bool,

    /// Use only what lock and cache hold
    #[arg(long)]
    offline: bool,
}

impl LockArgs {
    pub(super) fn run(&self, output: &OutputArgs) -> Done {
        Ok(Box::new(self.locked(output)?))
    }

    /// Brings the lock up to date; again, once exceptions are written.
    pub(super) fn locked(&self, output: &OutputArgs) -> Result<Localized, Failures> {
        let locked = self.lock(output.quiet)?;
        if !self.add_allow {
            return Ok(locked);
        }
        let failures = locked.unresolved.iter();
        let of_lock = add_allow(&failures.filter_map(|one| one.exception.as_deref().cloned()).collect::<Vec<_>>())?;
        // No lock mends the rest. What is not locked by now does not answer today.
        let checked = check(&repository_offline()?, &Checking::WorkingTree, &[], &Base::Own)?;
        let exceptions = match checked.failures.as_slice() {
            [] => checked.exceptions(|one| one.fails() && one.rule != Rule::RemoteReference),
            _ => Vec::new(),
        };
        if say_added(of_lock + add_allow(&exceptions)?) { self.lock(output.quiet) } else { Ok(locked) }
    }

    fn lock(&self, quiet: bool) -> Result<Localized, Failures> {
        let workspace = Workspace::of_working_tree(true)?;
        let config = &workspace.config;
        let before = workspace.lock.clone().unwrap_or_default();
        let relocked = match up_to_date(&workspace)? {
            Some(relocked) => relocked,
            None => {
                let held = Rc::new(without_charts(&before, config.helm));
                let options = fetching(config, self.offline, quiet);
                let mut fetcher = fetcher(workspace.repo(), options, vec![held.clone()], None)?;
                relock(&workspace, &held, &mut fetcher)?
            }
        };
        finish(&workspace, self.dry_run, Vec::new(), &before, relocked, Changes::new())
    }
}

/// Writes a lock if it is another one.
pub(super) fn finish(
    workspace: &Workspace,
    dry_run: bool,
    warnings: Vec<Warning>,
    before: &Lock,
    mut relocked: Relocked,
    mut changes: Changes,
) -> Result<Localized, Failures> {
    relocked.lock.written_after(before);
    let is_first = workspace.lock.is_none();
    let is_same = relocked.lock == *before && workspace.merged.is_none();
    // A first lock that holds nothing tells nothing.
    let is_nothing = is_first && relocked.lock.remotes.is_empty() && !relocked.unresolved.is_empty();
    if !is_same && !is_nothing || !changes.is_empty() {
        changes.insert(LOCK_NAME.to_owned(), Some(File::plain(relocked.lock.render()?.into_bytes())));
    }
    let size = |(path, file): (&String, &Option<File>)| Some((path.clone(), file.as_ref()?.bytes.len() as u64));
    Ok(Localized {
        files: changes.iter().filter_map(size).collect(),
        stage: changes.keys().cloned().collect(),
        status: write(workspace, &changes, &warnings, dry_run)?,
        changes: Lock::changes(before, &relocked.lock),
        remotes: relocked.lock.remotes,
        left: relocked.lock.left,
        unread: relocked.unread,
        unresolved: relocked.unresolved,
        merged: workspace.merged.is_some(),
        kept: workspace.merged.clone().unwrap_or_default(),
        warnings,
        is_lock: true,
        is_first,
        ..Localized::default()
    })
}
