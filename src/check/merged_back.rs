//! `merged-back`: a localized branch that is merged into its source, or is about to be.

use std::rc::Rc;

use gix::Repository;

use crate::config::Config;
use crate::git::LocalRepo;
use crate::git::object_id;
use crate::message::failure::{Failure, Result, short};
use crate::message::finding::{Finding, Rule, Severity};
use crate::record::history::records::{self, Found};
use crate::record::{LOCK_NAME, Lock};
use crate::tree::Tree;
use crate::tree::git::GitTree;

/// Makes a finding about the lock, with the command that takes the merge back.
pub(crate) fn finding(undo: Option<String>) -> Finding {
    let message = "the localized branch was merged into its source, which has local paths now where it had URLs";
    let help = undo.map(|undo| format!("take that back: {undo}")).into_iter().collect();
    Finding::new(Rule::MergedBack, LOCK_NAME, message.to_owned(), help)
}

/// Returns whether a lock lists localized files that `branch` made: only what we commit says that its message holds the
/// record, too. Files that were localized in the working tree were committed on purpose.
pub(crate) fn is_made_by_branch(lock: &Lock) -> bool {
    !lock.files.is_empty() && lock.trailers && lock.target.is_none()
}

/// Finds a change that brings such files where there were none. `rev` is the last commit of it, which may lack what is on
/// disk or staged.
pub(crate) fn find(
    here: &Rc<LocalRepo>,
    (before, after): (&dyn Tree, &dyn Tree),
    config: &Config,
    rev: &str,
) -> Result<Option<Finding>> {
    // One that cannot be read is a failure of the check already.
    let lock = |tree: &dyn Tree| Lock::parse(&tree.read(LOCK_NAME).ok()?, LOCK_NAME).ok();
    let has_files = |tree: &dyn Tree| lock(tree).is_some_and(|lock| is_made_by_branch(&lock));
    let is_new = has_files(after) && lock(before).is_none_or(|lock| lock.files.is_empty());
    let severity = config.level(Rule::MergedBack, Severity::Error);
    let Some(severity) = severity.filter(|_| is_new) else {
        return Ok(None);
    };
    let head = here.commit(rev)?;
    let head = head.map(|head| Ok((GitTree::of_commit(here, &head)?, head.commit))).transpose()?;
    let undo = match head {
        // What a server receives is not in its repository yet.
        Some((tree, commit)) if has_files(&tree) => undo(here, tree.repository(), &commit).ok().flatten(),
        _ => Some("git reset --merge".to_owned()),
    };
    let help = "if this is the localized branch itself: deploy from it, and do not merge it".to_owned();
    let mut found = finding(undo);
    found.help.push(help);
    Ok(Some(Finding { severity, ..found }))
}

/// Returns the command that takes back what brought the localized files that a commit has; none where its history does not
/// show that.
pub(crate) fn undo(here: &LocalRepo, repository: &Repository, head: &str) -> Result<Option<String>> {
    let locks = [LOCK_NAME.to_owned()];
    let commit = match records::newest(repository, head, &locks, |record| record.target.in_place)? {
        Found::Record(record) => Some(record.commit),
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
