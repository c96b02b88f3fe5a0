//! Which branch is committed to, and what its tip is.

use super::worktree::Linked;
use crate::fetch::Published;
use crate::git::{self, LocalRepo};
use crate::message::failure::{Failure, Result, command};
use crate::record::history::{PREFIX, not_a_source};
use crate::tree::path;

/// A branch that may be committed to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Branch {
    /// Its short name, as `localized/main`.
    pub name: String,
    /// Where the local branch is; none if there is none yet.
    pub local: Option<String>,
    /// The commit to continue from: the local branch, else its remote-tracking ref.
    pub tip: Option<String>,
    /// The remote that does not have the local branch yet, as far as this clone knows; `None` if it has it, and without one.
    pub unseen_by: Option<String>,
}

/// Returns the name of the branch to commit to. `source` is the branch that the source commit was named by; none when it
/// was named otherwise or HEAD is detached. `is_here` says whether that is a branch of this repository, not of a remote.
pub(super) fn choose(asked: Option<&str>, source: Option<&str>, is_here: bool) -> Result<String> {
    if let Some(source) = source
        && source.starts_with(PREFIX)
    {
        return Err(not_a_source(source).hint("name the branch it was made from: `--rev BRANCH`"));
    }
    let asked = asked.map(|asked| asked.strip_prefix("refs/heads/").unwrap_or(asked));
    match (asked, source) {
        (Some(asked), _) if source == Some(asked) => {
            Err(Failure::new(format!("cannot commit to the source branch `{asked}`"))
                .hint(format!("commit to another one: {}", command("--branch", [format!("{PREFIX}{asked}")]))))
        }
        (Some(asked), _) => Ok(asked.to_owned()),
        (None, Some(source)) if is_here => Ok(format!("{PREFIX}{source}")),
        (None, _) => {
            Err(Failure::new("cannot derive the branch to commit to: the source commit is not named by a branch")
                .hint("name the branch: `--branch NAME`"))
        }
    }
}

/// Looks at the branch: whether it may be moved, and where it is. `worktree` may have the branch checked out; `published`
/// is where others see it, and if that `is_fetched`, the branch follows it.
pub(super) fn open(
    here: &LocalRepo,
    name: &str,
    worktree: Option<&Linked>,
    published: Option<&Published>,
    is_fetched: bool,
) -> Result<Branch> {
    if !git::is_branch_name(name) {
        return Err(Failure::new(format!("`{name}` is not a branch name")).hint("see `git help check-ref-format`"));
    }
    let full = format!("refs/heads/{name}");
    let tracking = published.map(Published::tracking).unwrap_or_default();
    let mut patterns: Vec<String> = path::and_above(name).map(|above| format!("refs/heads/{above}")).collect();
    patterns.extend(published.map(|_| tracking.clone()));
    // Each matches what lies below, too.
    let refs = here.refs(&patterns)?;
    // They would have to be a file and a directory.
    let is_in_the_way = |found: &&String| **found != full && (path::is_in(found, &full) || path::is_in(&full, found));
    if let Some(other) = refs.keys().find(is_in_the_way) {
        let other = other.trim_start_matches("refs/heads/");
        return Err(Failure::new(format!("branch `{other}` exists, so git cannot create a branch `{name}`"))
            .hint(format!("rename it: {}", command("git branch -m", [other, "NEW_NAME"])))
            .hint("or commit to another branch: `--branch NAME`"));
    }
    let found = refs.get(&full);
    if let Some(target) = found.and_then(|found| found.other_name.as_ref()) {
        return Err(Failure::new(format!("branch `{name}` is a symbolic ref to `{target}`"))
            .hint(command("git symbolic-ref --delete", [&full])));
    }
    // A branch that is not there yet may be the one that HEAD is on.
    refuse_checked_out(here, name, worktree)?;
    let local = found.map(|found| found.id.clone());
    let remote = refs.get(&tracking).map(|found| found.id.clone());
    if let (Some(local), Some(remote)) = (&local, &remote)
        && local != remote
        && !here.is_ancestor(remote, local)?
    {
        let short = tracking.trim_start_matches("refs/remotes/");
        if !here.is_ancestor(local, remote)? {
            return Err(Failure::new(format!("branch `{name}` and `{short}` have diverged"))
                .hint(format!("to discard the local commits: {}", command("git branch -f", [name, short]))));
        }
        if !is_fetched {
            return Err(Failure::new(format!("branch `{name}` is behind `{short}`"))
                .hint(command("git fetch .", [format!("{tracking}:{full}")])));
        }
        let (tip, local) = (Some(remote.clone()), Some(local.clone()));
        return Ok(Branch { name: name.to_owned(), tip, local, unseen_by: None });
    }
    let published = published.filter(|_| local.is_some() && local != remote);
    let unseen_by = published.map(|published| published.remote().to_owned());
    Ok(Branch { name: name.to_owned(), tip: local.clone().or(remote), local, unseen_by })
}

/// Refuses to move a branch whose files somewhere would not follow. `worktree` may have it checked out.
pub(super) fn refuse_checked_out(here: &LocalRepo, name: &str, worktree: Option<&Linked>) -> Result<()> {
    let full = format!("refs/heads/{name}");
    let worktrees = here.worktrees()?;
    let is_elsewhere = |directory: &str| worktree.is_none_or(|worktree| !worktree.is_at(directory));
    let found = worktrees.iter().position(|one| one.branch.as_ref() == Some(&full) && is_elsewhere(&one.directory));
    let Some(index) = found else { return Ok(()) };
    let listed = &worktrees[index];
    let directory = &listed.directory;
    let failure =
        Failure::new(format!("branch `{name}` is checked out at `{directory}`, whose files would not be updated"))
            .hint("check out another branch there, or commit to another one: `--branch NAME`");
    // The main one comes first, and its files are the user's.
    Err(match index {
        _ if listed.is_gone => failure.hint(format!(
            "that directory is gone; to remove its worktree, with staged changes: {}",
            command("git worktree remove -f -f", [directory])
        )),
        0 => failure,
        _ => failure.hint(format!("or update its files as well: {}", command("--worktree", [directory]))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_branch_is_named_after_the_source() {
        assert_eq!(choose(None, Some("main"), true).unwrap(), "localized/main");
        assert_eq!(choose(None, Some("a/b"), true).unwrap(), "localized/a/b");
        assert_eq!(choose(Some("x"), Some("main"), true).unwrap(), "x");
        assert_eq!(choose(Some("refs/heads/x"), None, false).unwrap(), "x");
    }

    #[test]
    fn a_source_that_cannot_name_a_branch_is_refused() {
        assert!(choose(None, None, false).is_err());
        assert!(choose(None, Some("main"), false).is_err());
        for is_here in [true, false] {
            assert!(choose(Some("x"), Some("localized/main"), is_here).is_err());
            assert!(choose(None, Some("localized/main"), is_here).is_err());
            for asked in ["main", "refs/heads/main"] {
                let failure = choose(Some(asked), Some("main"), is_here).unwrap_err();
                assert!(failure.to_string().contains("the source branch `main`"));
            }
        }
    }
}
