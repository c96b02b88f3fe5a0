//! Makes one commit, and moves the branch to it.

use super::branch::{self, Branch};
use super::worktree::Linked;
use crate::fetch::Published;
use crate::git::{CommitId, LocalRepo};
use crate::message::failure::{Failure, Result};
use crate::record::history::tip::TipState;
use crate::record::{Trailers, render_message};

/// What goes into a commit on a localized branch.
pub(super) struct Entry<'a> {
    /// The source commit.
    pub(super) source: &'a CommitId,
    /// The tip to continue from.
    pub(super) tip: Option<&'a TipState>,
    /// The tree of the commit.
    pub(super) tree: gix::ObjectId,
    /// Writes the message if the user gives none.
    pub(super) text: Box<dyn FnOnce() -> Result<String> + 'a>,
    /// The record.
    pub(super) trailers: Trailers,
}

/// Commits to the branch, unless its tip holds just this. `message` are the paragraphs that the user gives. With `pushed`
/// the remote gets it first, so that nothing has changed here where that fails. Returns the commit, and whether it is a
/// new one; none where the remote has moved meanwhile.
pub(super) fn commit(
    message: &[String],
    here: &LocalRepo,
    branch: &Branch,
    worktree: Option<&Linked>,
    pushed: Option<&Published>,
    entry: Entry<'_>,
) -> Result<Option<(String, bool)>> {
    let push = |commit: &str| pushed.map_or(Ok(true), |pushed| pushed.push(commit));
    let is_contained = match entry.tip {
        Some(tip) => contains(here, tip, &entry.source.commit)?,
        None => false,
    };
    if let Some(tip) = entry.tip
        && tip.is_told
        && tip.tree == entry.tree
        && is_contained
    {
        let tip = tip.commit.as_str();
        if !push(tip)? {
            return Ok(None);
        }
        if branch.local.as_deref() != Some(tip) {
            // So that what comes next, as a push, finds the branch whether or not there was news.
            let reason = "kustomize-localize: reset to the remote branch";
            move_branch(here, branch, worktree, tip, Some(reason))?;
        } else if worktree.is_some() {
            move_branch(here, branch, worktree, tip, None)?;
        }
        return Ok(Some((tip.to_owned(), false)));
    }
    let text = if message.is_empty() { (entry.text)()? } else { message.join("\n\n") };
    let message = render_message(&text, &entry.trailers)?;
    let source = entry.source.commit.clone();
    let parents = match entry.tip {
        None => vec![source],
        Some(tip) if is_contained => vec![tip.commit.clone()],
        Some(tip) => vec![tip.commit.clone(), source],
    };
    let tree = entry.tree.to_string();
    let commit = here.commit_tree(&tree, &parents, &message)?;
    if !push(&commit)? {
        return Ok(None);
    }
    let reason = format!("kustomize-localize: {}", message.lines().next().unwrap_or_default());
    move_branch(here, branch, worktree, &commit, Some(&reason))?;
    Ok(Some((commit, true)))
}

/// Returns whether a tip contains its source. In a shallow clone the commits do not show that: the record does.
fn contains(here: &LocalRepo, tip: &TipState, source: &str) -> Result<bool> {
    if here.is_ancestor(source, &tip.commit)? {
        return Ok(true);
    }
    let is_recorded = tip.made.source.as_ref().is_some_and(|recorded| recorded.hex() == source);
    Ok(is_recorded && here.is_shallow()?)
}

/// Moves the branch, if there is a reason to, and its worktree with it.
fn move_branch(
    here: &LocalRepo,
    branch: &Branch,
    worktree: Option<&Linked>,
    commit: &str,
    reason: Option<&str>,
) -> Result<()> {
    let name = branch.full_name();
    let moved = || match reason {
        Some(reason) => here.update_ref(&name, commit, branch.local.as_deref(), reason),
        None => Ok(()),
    };
    // Another run may have it checked out somewhere by now.
    let _alone = here.alone()?;
    let Some(worktree) = worktree else {
        branch::refuse_checked_out(here, &branch.name, None)?;
        return moved();
    };
    // Before a file of the worktree changes.
    here.refuse_moved(&name, commit, branch.local.as_deref())?;
    let worktree = worktree.again(here, &name)?;
    branch::refuse_checked_out(here, &branch.name, Some(&worktree))?;
    let before = worktree.put_out(here, commit)?;
    let take_back = |_: &Failure| worktree.take_back(here, &before, commit);
    moved().inspect_err(take_back)?;
    worktree.settle(here, &before, &name)
}

/// What wrote the commit, as its record says.
pub(super) fn tool() -> String {
    concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION")).to_owned()
}
