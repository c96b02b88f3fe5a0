//! `lock`: the lock at the top, brought up to date with the working tree.

use std::rc::Rc;

use super::check::{self, Base, What};
use super::fetching::{self, Fetching};
use super::{News, Status, add_allow};
use crate::destination::working;
use crate::graph::Warning;
use crate::message::failure::{self, Exception, Failure, Failures};
use crate::message::finding::Rule;
use crate::plan::lock::{Relocked, Unresolved, relock, up_to_date, without_charts};
use crate::plan::{Changes, File};
use crate::record::{self, LOCK_NAME, Left, Lock, Remote};
use crate::workspace::{Workspace, from_top, repository_offline};

/// What to lock.
#[derive(Debug, Clone, Default)]
pub(crate) struct Request {
    /// Directories or kustomizations to begin at, from the directory that we were started in; all when empty.
    pub paths: Vec<String>,
    /// How remote references are resolved.
    pub fetch: Fetching,
    /// Write nothing.
    pub dry_run: bool,
}

/// The result of `lock`, or of `update`.
#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    /// What happened to the lock.
    pub status: Status,
    /// What the lock holds.
    pub remotes: Vec<Remote>,
    /// What stays remote.
    pub left: Vec<Left>,
    /// The entries that were added, removed or changed.
    pub changes: Vec<record::Change>,
    /// What works but should be known.
    pub warnings: Vec<Warning>,
    /// What is wrong in the tree itself, so that what is behind it is not known.
    pub unread: Vec<Failure>,
    /// What could not be resolved.
    pub unresolved: Unresolved,
    /// Whether the lock was in conflict, and its two sides were brought together.
    pub merged: bool,
    /// What stays as it was: what both sides of a conflict changed, and not to the same; versions that moved.
    pub both: Vec<Failure>,
    /// What the authors of what moved wrote.
    pub news: News,
    /// The files beside the lock that were edited.
    pub edited: Vec<String>,
    /// Whether there was no lock before.
    pub is_first: bool,
}

/// Brings the lock up to date.
pub(crate) fn lock(request: &Request) -> Result<Outcome, Failures> {
    let workspace = Workspace::of_working_tree(true)?;
    let (Some(repo), config) = (workspace.repo(), &workspace.config) else {
        return Err(Failure::new("this is not a git repository").into());
    };
    let paths = request.paths.iter();
    let paths = paths.map(|text| from_top(repo, &*workspace.tree, text));
    let paths = paths.collect::<failure::Result<Vec<String>>>()?;
    let before = workspace.lock.clone().unwrap_or_default();
    let relocked = match up_to_date(&workspace, &paths)? {
        Some(relocked) => relocked,
        None => {
            let held = Rc::new(without_charts(&before, config.helm));
            let mut fetcher = fetching::fetcher(Some(repo), request.fetch.options(config), vec![held.clone()], None)?;
            relock(&workspace, &paths, &held, &mut fetcher)?
        }
    };
    finish(&workspace, request.dry_run, Vec::new(), &before, relocked, Changes::new())
}

/// Does that, and adds an exception for each error that can have one, and that no lock mends; returns how many.
pub(crate) fn lock_and_allow(request: &Request) -> Result<(Outcome, usize), Failures> {
    let outcome = lock(request)?;
    let failures = outcome.unresolved.failures.iter();
    let exceptions: Vec<Exception> = failures.filter_map(|one| one.exception.as_deref().cloned()).collect();
    let of_lock = add_allow(&exceptions)?;
    let request_of_check = check::Request { what: What::WorkingTree, paths: request.paths.clone(), base: Base::Own };
    let checked = check::check(&repository_offline()?, &request_of_check)?;
    let exceptions = match checked.failures.as_slice() {
        // What is not locked by now does not answer today.
        [] => checked.exceptions(|one| one.fails() && one.rule != Rule::RemoteReference),
        _ => Vec::new(),
    };
    match of_lock + add_allow(&exceptions)? {
        0 => Ok((outcome, 0)),
        count => Ok((lock(request)?, count)),
    }
}

/// Writes a lock if it is another one.
pub(super) fn finish(
    workspace: &Workspace,
    dry_run: bool,
    warnings: Vec<Warning>,
    before: &Rc<Lock>,
    mut relocked: Relocked,
    mut edits: Changes,
) -> Result<Outcome, Failures> {
    relocked.lock.written_after(before);
    let is_same = relocked.lock == **before && !workspace.is_in_conflict();
    let edited = edits.keys().cloned().collect();
    // A first lock that holds nothing tells nothing.
    let is_nothing =
        workspace.lock.is_none() && relocked.lock.remotes.is_empty() && !relocked.unresolved.failures.is_empty();
    let is_same = (is_same || is_nothing) && edits.is_empty();
    let is_refused = warnings.iter().any(Warning::fails);
    let status = match (is_same, dry_run) {
        _ if is_refused => Status::Warned,
        (true, true) => Status::Unchanged,
        (true, false) => {
            working::write(workspace, &Changes::new())?;
            Status::Unchanged
        }
        (false, true) => Status::DryRun,
        (false, false) => {
            edits.insert(LOCK_NAME.to_owned(), Some(File::plain(relocked.lock.render()?.into_bytes())));
            working::write(workspace, &edits)?;
            Status::Written
        }
    };
    Ok(Outcome {
        status,
        unread: relocked.unread,
        changes: Lock::changes(before, &relocked.lock),
        remotes: relocked.lock.remotes,
        unresolved: relocked.unresolved,
        left: relocked.lock.left,
        merged: workspace.is_in_conflict(),
        both: workspace.both.clone(),
        news: News::new(),
        edited,
        warnings,
        is_first: workspace.lock.is_none(),
    })
}
