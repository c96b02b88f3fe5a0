//! The history of a localized branch: the records in its messages, and whether its files still match them.

pub(crate) mod records;
pub(crate) mod tip;
pub(crate) mod trees;

use std::collections::BTreeMap;

use crate::git::{LocalRepo, Ref, branch_of};
use crate::message::failure::{Failure, Result};

/// The prefix of the names of localized branches.
pub(crate) const PREFIX: &str = "localized/";

/// The prefix of the names of branches with what their source is built to.
pub(crate) const RENDERED: &str = "rendered/";

/// The refs of all branches.
const BRANCHES: [&str; 2] = ["refs/heads/", "refs/remotes/"];

/// The source that a localized or rendered branch is named after. `None` if it is neither.
pub(crate) fn named_source(branch: &str) -> Option<&str> {
    [PREFIX, RENDERED].into_iter().find_map(|prefix| branch.strip_prefix(prefix))
}

/// Whether a ref, by its full name, is a localized or rendered branch, local or remote-tracking.
pub(crate) fn is_localized_branch(name: &str) -> bool {
    branch_of(name).and_then(named_source).is_some()
}

/// The failure of a localized branch that is named as a source. `branch` is its short name.
pub(crate) fn not_a_source(branch: &str) -> Failure {
    let kind = if branch.starts_with(RENDERED) { "rendered" } else { "localized" };
    Failure::new(format!("`{branch}` is a {kind} branch, not a source"))
}

/// Refuses to change the working tree if HEAD is on a localized branch, or is detached at a commit that only localized
/// branches have as their tip: a commit of the changes would be an edit by hand, at which the next run stops.
pub(crate) fn refuse_localized_head(repo: &LocalRepo) -> Result<()> {
    match repo.head()? {
        Some(name) if is_localized_branch(&name) => {
            Err(on_source_branch(not_a_source(name.trim_start_matches("refs/heads/"))))
        }
        Some(_) => Ok(()),
        // A detached HEAD names no branch, so the branches at its commit decide.
        None => match repo.commit("HEAD")? {
            Some(head) => refuse_tip(repo, &head.commit, "HEAD"),
            None => Ok(()),
        },
    }
}

/// Refuses a commit that only localized branches have as their tip. `shown` is its name in messages.
pub(crate) fn refuse_tip(repo: &LocalRepo, commit: &str, shown: &str) -> Result<()> {
    if !is_tip(repo, commit)? {
        return Ok(());
    }
    Err(on_source_branch(Failure::new(format!("{shown} is a commit of a localized branch, not a source"))))
}

/// Whether a commit is the tip of localized branches, and of no other branch. Only tips count: an older commit in the
/// history of a localized branch may be one of the source.
fn is_tip(repo: &LocalRepo, commit: &str) -> Result<bool> {
    let mut refs = repo.refs(&BRANCHES)?;
    refs.retain(|_, tip| tip.id == commit);
    Ok(are_localized(refs))
}

/// Whether these are localized branches, at least one, and no other branch.
fn are_localized(mut refs: BTreeMap<String, Ref>) -> bool {
    // A commit that a branch was fast-forwarded to is a source again, so symbolic refs do not count.
    refs.retain(|_, tip| tip.other_name.is_none());
    !refs.is_empty() && refs.keys().all(|name| is_localized_branch(name))
}

/// Whether a revision with localized files is a localized branch, a tip of localized branches only, or a commit that
/// only they contain. For the name of a branch, the name alone decides. False for a revision that does not exist.
pub(crate) fn is_localized(repo: &LocalRepo, rev: &str) -> Result<bool> {
    match repo.resolve_rev(rev)? {
        Some((_, Some(name))) if branch_of(&name).is_some() => Ok(is_localized_branch(&name)),
        Some((id, _)) => {
            let contains = format!("--contains={}", id.commit);
            // A tip stays localized although its branch was merged into others.
            Ok(is_tip(repo, &id.commit)? || are_localized(repo.refs(&[&*contains, BRANCHES[0], BRANCHES[1]])?))
        }
        None => Ok(false),
    }
}

/// Adds the hint to run the command on the source branch.
fn on_source_branch(failure: Failure) -> Failure {
    failure.hint("run it on the source branch (git switch BRANCH), and localize that again")
}
