//! `merged-back`: a localized branch that is merged into its source, or is about to be.

use std::rc::Rc;

use gix::Repository;

use crate::git::{LocalRepo, Snapshot, object_id};
use crate::message::failure::{Failure, Result, short};
use crate::message::finding::{Finding, Rule, Severity};
use crate::record::history::records::{self, RecordLookup};
use crate::record::{LOCK_NAME, Lock, history};
use crate::tree::git::GitTree;

/// Whether `branch` wrote a lock with localized files: only such a lock has trailers in its commit's message. Files
/// that `vendor` localized in the working tree are committed on purpose.
pub(super) fn is_made_by_branch(lock: &Lock) -> bool {
    !lock.files.is_empty() && lock.trailers && lock.target.is_none()
}

/// The finding for localized files of `branch` in a source branch. With `before`, the lock of the base, only a change
/// that brings them in has a finding, and that is an error by default.
pub(crate) fn find(repo: &Rc<LocalRepo>, source: &Snapshot, before: Option<&Lock>) -> Result<Option<Finding>> {
    // For files that no commit has yet, the history is that of HEAD.
    let (rev, last_commit) = match source {
        Snapshot::Commit { rev, commit } => (rev.as_str(), commit.as_str()),
        Snapshot::Index | Snapshot::WorkingTree => ("HEAD", "HEAD"),
    };
    // A base that has localized files, or a branch whose history made them, did not get them by a mistaken merge.
    let is_deliberate = match before {
        Some(before) => !before.files.is_empty(),
        None => history::is_localized(repo, rev)?,
    };
    if is_deliberate {
        return Ok(None);
    }
    // A merge that is committed is undone with another command than one in progress.
    let head = repo.commit(last_commit)?;
    let head = head.map(|head| Ok((GitTree::of_commit(repo, &head)?, head.commit))).transpose()?;
    let has_files = |tree: &GitTree| {
        Lock::find(tree, LOCK_NAME).is_ok_and(|lock| lock.is_some_and(|lock| is_made_by_branch(&lock)))
    };
    let undo = match head {
        // While a server receives a push, the commits are not in its repository yet.
        Some((tree, commit)) if has_files(&tree) => undo(repo, tree.repository(), &commit).ok().flatten(),
        _ => Some("git reset --merge".to_owned()),
    };
    let meant = "if this is the localized branch itself, deploy from it, and do not merge it";
    let failure = Failure::new("the localized branch was merged into its source: local paths replaced its URLs")
        .hints(undo.map(|undo| format!("undo the merge: {undo}")))
        .hints(before.map(|_| meant));
    let mut finding = Finding::new(Rule::MergedBack, LOCK_NAME, failure);
    if before.is_some() {
        finding.severity = Severity::Error;
    }
    Ok(Some(finding))
}

/// The command that reverts the commit which brought in the localized files of `head`. `None` if the history does not
/// show it.
fn undo(repo: &LocalRepo, repository: &Repository, head: &str) -> Result<Option<String>> {
    let locks = [LOCK_NAME.to_owned()];
    let record = records::newest(repository, head, &locks, |record| record.target.new_dir.is_none())?;
    // The parent that has no localized files: the source is the second one of a commit of the branch, and the first one
    // of a merge of it.
    let (commit, parent) = match record {
        RecordLookup::Record(record) => (Some(record.commit), 2),
        // A squash contains the whole branch, and a merge in which the lock was resolved has a lock of its own.
        RecordLookup::Unreadable { .. } | RecordLookup::Nothing => (repo.last_change(head, LOCK_NAME)?, 1),
    };
    let Some(commit) = commit else { return Ok(None) };
    let parents = match repository.find_commit(object_id(&commit)?) {
        Ok(commit) => commit.parent_ids().count(),
        Err(error) => return Err(Failure::new(format!("commit {commit} cannot be read: {error}"))),
    };
    let mainline = if parents > 1 { format!("-m {parent} ") } else { String::new() };
    Ok(Some(format!("git revert --no-edit {mainline}{}", short(&commit))))
}
