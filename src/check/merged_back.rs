//! `merged-back`: a localized branch that is merged into its source, or is about to be.

use std::rc::Rc;

use gix::Repository;

use crate::git::{LocalRepo, Snapshot, object_id};
use crate::message::failure::{Failure, Result, short};
use crate::message::finding::{Finding, Rule, Severity};
use crate::record::history::records::{self, RecordLookup};
use crate::record::{LOCK_NAME, Lock, history};
use crate::tree::git::GitTree;

/// Returns whether a lock lists localized files that `branch` made: only what we commit says that its message holds the
/// record, too. Files that were localized in the working tree were committed on purpose.
pub(super) fn is_made_by_branch(lock: &Lock) -> bool {
    !lock.files.is_empty() && lock.trailers && lock.target.is_none()
}

/// Finds that a tree with such files is a source. `before` is the lock of a base, where a change to that is judged: only
/// what brings them there is found, and an error by default.
pub(crate) fn find(here: &Rc<LocalRepo>, source: &Snapshot, before: Option<&Lock>) -> Result<Option<Finding>> {
    let (rev, last) = match source {
        Snapshot::Commit { rev, commit } => (rev.as_str(), commit.as_str()),
        Snapshot::Index | Snapshot::WorkingTree => ("HEAD", "HEAD"),
    };
    let is_meant = match before {
        Some(before) => !before.files.is_empty(),
        None => history::is_localized(here, rev)?,
    };
    if is_meant {
        return Ok(None);
    }
    let head = here.commit(last)?;
    let head = head.map(|head| Ok((GitTree::of_commit(here, &head)?, head.commit))).transpose()?;
    let has_files =
        |tree: &GitTree| Lock::at(tree, LOCK_NAME).is_ok_and(|lock| lock.is_some_and(|lock| is_made_by_branch(&lock)));
    let undo = match head {
        // What a server receives is not in its repository yet.
        Some((tree, commit)) if has_files(&tree) => undo(here, tree.repository(), &commit).ok().flatten(),
        _ => Some("git reset --merge".to_owned()),
    };
    let message = "the localized branch was merged into its source: local paths replaced its URLs";
    let mut help: Vec<String> = undo.map(|undo| format!("undo the merge: {undo}")).into_iter().collect();
    let mut found = Finding::new(Rule::MergedBack, LOCK_NAME, message.to_owned(), Vec::new());
    if before.is_some() {
        found.severity = Severity::Error;
        help.push("if this is the localized branch itself, deploy from it, and do not merge it".to_owned());
    }
    Ok(Some(Finding { help, ..found }))
}

/// Returns the command that takes back what brought the localized files that a commit has; none where its history does not
/// show that.
fn undo(here: &LocalRepo, repository: &Repository, head: &str) -> Result<Option<String>> {
    let locks = [LOCK_NAME.to_owned()];
    let commit = match records::newest(repository, head, &locks, |record| record.target.into.is_none())? {
        RecordLookup::Record(record) => Some(record.commit),
        // A squash, which holds all of the branch.
        _ => here.last_change(head, LOCK_NAME)?,
    };
    let Some(commit) = commit else { return Ok(None) };
    // Against its source: that is what localizing has changed.
    // Those that a shallow clone lacks count, too.
    let unread = |error| Failure::new(format!("commit {commit} cannot be read: {error}"));
    let found = repository.find_commit(object_id(&commit)?).map_err(|error| unread(error.to_string()))?;
    let mainline = if found.parent_ids().count() > 1 { "-m 2 " } else { "" };
    Ok(Some(format!("git revert --no-edit {mainline}{}", short(&commit))))
}
