//! `lock`: the lock at the top, brought up to date with the working tree.

use std::rc::Rc;

use clap::Args;

use super::localize::{LocalizeReport, Locking};
use super::output::{Done, OutputArgs};
use crate::destination::ChangedFiles;
use crate::localize::{LocalizeOutcome, NowRemote, ResultKind, write};
use crate::message::failure::{Failures, Result};
use crate::message::finding::Finding;
use crate::plan::lock::{Relocked, relock, up_to_date, without_charts};
use crate::plan::{Changes, ResultFile};
use crate::record::{LOCK_NAME, Lock};
use crate::workspace::{Workspace, fetch_options, fetcher};

/// Arguments of `lock`.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct LockArgs {
    /// Show what would be done; may fetch into the cache, writes nothing else
    #[arg(long)]
    dry_run: bool,

    /// Use only what lock and cache hold
    #[arg(long)]
    offline: bool,
}

impl LockArgs {
    pub(super) fn run(&self, output: &OutputArgs) -> Done {
        Ok(Box::new(self.update_lock(output)?))
    }

    /// Brings the lock up to date. It fetches only if the lock does not fit the tree: a reference is not locked yet, or
    /// a bot changed the commit of an entry.
    pub(super) fn update_lock(&self, output: &OutputArgs) -> Result<LocalizeReport, Failures> {
        let workspace = Workspace::of_merged_working_tree()?;
        let config = &workspace.config;
        let before = workspace.lock.clone().unwrap_or_default();
        let relocked = match up_to_date(&workspace)? {
            Some(relocked) => relocked,
            None => {
                let old_lock = Rc::new(without_charts(Some(&before), config.helm));
                let mut options = fetch_options(config);
                (options.offline, options.quiet) = (self.offline, output.quiet);
                let mut fetcher = fetcher(workspace.repo(), options, vec![old_lock.clone()], None)?;
                relock(&workspace, &old_lock, &mut fetcher)?
            }
        };
        write_lock(&workspace, self.dry_run, Vec::new(), &before, relocked, Changes::new())
    }
}

/// Writes the lock and other `changes`, unless a finding or `dry_run` prevents that, and returns the report.
/// [`changed_lock`] tells whether the lock is among what is written; `before` is the lock to compare with.
pub(super) fn write_lock(
    workspace: &Workspace,
    dry_run: bool,
    findings: Vec<Finding>,
    before: &Lock,
    mut relocked: Relocked,
    mut changes: Changes,
) -> Result<LocalizeReport, Failures> {
    // This also settles the trailers of the new lock, so it comes before the locks are compared for the report.
    if let Some(file) = changed_lock(workspace, before, &mut relocked)? {
        changes.insert(LOCK_NAME.to_owned(), Some(file));
    }
    let locking = Locking {
        unread: relocked.unread,
        unresolved: relocked.unresolved,
        merged: workspace.conflicts.is_some(),
        unmoved: workspace.conflicts.clone().unwrap_or_default(),
        ..Locking::default()
    };
    let localized = LocalizeOutcome {
        made: if workspace.lock.is_some() { ResultKind::Lock } else { ResultKind::FirstLock },
        files: ChangedFiles::of(&changes).files,
        stage: changes.keys().cloned().collect(),
        status: write(workspace, &changes, &findings, dry_run)?,
        changes: Lock::changes(before, &relocked.lock),
        now_remote: NowRemote::between(before, &relocked.lock, &workspace.config),
        remotes: relocked.lock.remotes,
        left: relocked.lock.left,
        findings,
        ..LocalizeOutcome::default()
    };
    Ok(LocalizeReport { localized, locking })
}

/// The lock to write; `None` if it equals `before`, or if it would be a first lock and nothing could be resolved. A
/// lock that git could not merge is always written. Also settles [`Lock::trailers`] of the new lock.
pub(super) fn changed_lock(
    workspace: &Workspace,
    before: &Lock,
    relocked: &mut Relocked,
) -> Result<Option<ResultFile>> {
    relocked.lock.written_after(before);
    let is_same = relocked.lock == *before && workspace.conflicts.is_none();
    // A first lock without `remotes` would only tell that every reference failed.
    let is_empty = workspace.lock.is_none() && relocked.lock.remotes.is_empty() && !relocked.unresolved.is_empty();
    (!is_same && !is_empty).then(|| ResultFile::of(&relocked.lock)).transpose()
}
