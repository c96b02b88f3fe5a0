//! What a localized branch holds: the records of its messages, and whether its files still match them.

pub(crate) mod records;
pub(crate) mod tip;
pub(crate) mod trees;

use crate::git::{LocalRepo, branch_of};
use crate::message::failure::{Failure, Result};

/// Below this name lie the branches that we make.
pub(crate) const PREFIX: &str = "localized/";

/// Returns whether a ref is a localized branch, local or remote-tracking, by its full name.
pub(crate) fn is_ours(name: &str) -> bool {
    branch_of(name).is_some_and(|branch| branch.starts_with(PREFIX))
}

/// Returns what to say where a localized branch, by its short name, would be the source.
pub(crate) fn not_a_source(branch: &str) -> Failure {
    Failure::new(format!("`{branch}` is a localized branch, not a source"))
}

/// Refuses to change what HEAD has checked out where that is a localized branch: the next run would find edits there.
pub(crate) fn refuse_checked_out(here: &LocalRepo) -> Result<()> {
    match here.head()? {
        Some(name) if is_ours(&name) => Err(instead(not_a_source(name.trim_start_matches("refs/heads/")))),
        Some(_) => Ok(()),
        None => match here.commit("HEAD")? {
            Some(head) => refuse_tip(here, &head.commit, "HEAD"),
            None => Ok(()),
        },
    }
}

/// Refuses a commit that no branch names but localized ones. `shown` is how messages name it.
pub(crate) fn refuse_tip(here: &LocalRepo, commit: &str, shown: &str) -> Result<()> {
    if !is_tip(here, commit)? {
        return Ok(());
    }
    Err(instead(Failure::new(format!("{shown} is a commit of a localized branch, not a source"))))
}

fn is_tip(here: &LocalRepo, commit: &str) -> Result<bool> {
    let mut refs = here.refs(&["refs/heads/", "refs/remotes/"])?;
    // One that was merged by moving a branch is a source again.
    refs.retain(|_, found| found.id == commit && found.other_name.is_none());
    Ok(!refs.is_empty() && refs.keys().all(|name| is_ours(name)))
}

/// Returns whether a revision is a localized branch, or a commit that no other branch names.
pub(crate) fn is_localized(here: &LocalRepo, rev: &str) -> Result<bool> {
    match here.named(rev)? {
        Some((_, Some(name))) => Ok(is_ours(&name)),
        Some((id, None)) => is_tip(here, &id.commit),
        None => Ok(false),
    }
}

fn instead(failure: Failure) -> Failure {
    failure.hint("run it on the source branch (git switch BRANCH), and localize that again")
}
