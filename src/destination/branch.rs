//! Chooses the branch to commit to, and finds its tip.

use super::worktree::LinkedWorktree;
use crate::fetch::Published;
use crate::git::{self, LocalRepo, branch_of};
use crate::message::failure::{Failure, Result, command};
use crate::record::history::{named_source, not_a_source};
use crate::tree::path;

/// A branch that may be committed to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Branch {
    /// Its short name, for example `localized/main`.
    pub name: String,
    /// The commit of the local branch; `None` if it does not exist yet.
    pub local: Option<String>,
    /// The commit to continue from: the local branch, otherwise its remote-tracking ref.
    pub tip: Option<String>,
    /// The remote that does not have the local branch yet, as far as this clone knows; `None` if it has it, or if there
    /// is no remote or no local branch.
    pub unpushed_to: Option<String>,
}

/// Chooses the short name of the branch to commit to: the one that the user `asked` for, or else `prefix` and the name
/// of the source branch, so that two source branches do not share one. `source_ref` is the full name of the ref that
/// named the source commit; `None` if HEAD is detached, or the commit was named otherwise.
pub(super) fn choose_name(asked: Option<&str>, source_ref: Option<&str>, prefix: &str) -> Result<String> {
    let source = source_ref.and_then(branch_of);
    // A localized branch of a localized branch would lose what the first one remembers of its source.
    if let Some(source) = source
        && named_source(source).is_some()
    {
        return Err(not_a_source(source).hint("name the branch it was made from: `--rev BRANCH`"));
    }
    let asked = asked.map(|asked| asked.strip_prefix("refs/heads/").unwrap_or(asked));
    match (asked, source) {
        (Some(asked), _) if source == Some(asked) => {
            Err(Failure::new(format!("cannot commit to the source branch `{asked}`"))
                .hint(format!("commit to another one: {}", command("--branch", [format!("{prefix}{asked}")]))))
        }
        (Some(asked), _) => Ok(asked.to_owned()),
        // A remote-tracking branch may have any name here, so only a local branch names another one.
        (None, Some(source)) if source_ref.is_some_and(|full| full.starts_with("refs/heads/")) => {
            Ok(format!("{prefix}{source}"))
        }
        (None, _) => {
            Err(Failure::new("cannot derive the branch to commit to: the source commit is not named by a local branch")
                .hint("name the branch: `--branch NAME`"))
        }
    }
}

/// Finds the branch, and fails if it must not be moved. `worktree` may have the branch checked out. `published` is the
/// branch at the remote. It `is_fetched` for a push, which must continue from it: then the local branch may be behind.
pub(super) fn open(
    repo: &LocalRepo,
    name: &str,
    worktree: Option<&LinkedWorktree>,
    published: Option<&Published>,
    is_fetched: bool,
) -> Result<Branch> {
    if !git::is_branch_name(name) {
        return Err(Failure::new(format!("`{name}` is not a branch name")).hint("see `git help check-ref-format`"));
    }
    let full = format!("refs/heads/{name}");
    let tracking = published.map(Published::tracking);
    // A branch cannot be created if another one is named like a directory of its name, or below its name; each pattern
    // also matches the names below it.
    let patterns = path::and_above(name).map(|above| format!("refs/heads/{above}")).chain(tracking.clone());
    let refs = repo.refs(&patterns.collect::<Vec<_>>())?;
    let mut others = refs.keys().filter(|other| **other != full);
    if let Some(other) = others.find(|other| path::is_in(other, &full) || path::is_in(&full, other)) {
        let other = other.trim_start_matches("refs/heads/");
        return Err(Failure::new(format!("branch `{other}` exists, so git cannot create a branch `{name}`"))
            .hint(format!("rename it: {}", command("git branch -m", [other, "NEW_NAME"])))
            .hint("or commit to another branch: `--branch NAME`"));
    }
    let existing = refs.get(&full);
    if let Some(pointee) = existing.and_then(|branch| branch.other_name.as_ref()) {
        return Err(Failure::new(format!("branch `{name}` is a symbolic ref to `{pointee}`"))
            .hint(command("git symbolic-ref --delete", [&full])));
    }
    // Also for a branch that does not exist yet: HEAD may be on it.
    refuse_checked_out(repo, name, worktree)?;
    let local = existing.map(|branch| branch.id.clone());
    let remote = tracking.as_ref().and_then(|tracking| refs.get(tracking)).map(|branch| branch.id.clone());
    if let (Some(local_id), Some(remote_id), Some(tracking)) = (&local, &remote, &tracking)
        && !repo.is_ancestor(remote_id, local_id)?
    {
        // The local branch must not lose commits of the remote branch: the new commit continues from that one.
        if !repo.is_ancestor(local_id, remote_id)? {
            return Err(diverged(name, tracking, worktree));
        }
        if !is_fetched {
            return Err(behind(name, tracking, worktree));
        }
        return Ok(Branch { name: name.to_owned(), tip: remote.clone(), local: local.clone(), unpushed_to: None });
    }
    // This is judged by the remote-tracking ref, that is, by the last fetch.
    let published = published.filter(|_| local.is_some() && local != remote);
    let unpushed_to = published.map(|published| published.remote().to_owned());
    Ok(Branch { name: name.to_owned(), tip: local.clone().or(remote), local, unpushed_to })
}

/// The failure of a branch if it and its remote-tracking ref have commits that the other one lacks.
fn diverged(name: &str, tracking: &str, worktree: Option<&LinkedWorktree>) -> Failure {
    let short = tracking.trim_start_matches("refs/remotes/");
    let reset = in_worktree(worktree, ["reset", "--keep", short]);
    let reset = reset.unwrap_or_else(|| command("git branch -f", [name, short]));
    Failure::new(format!("branch `{name}` and `{short}` have diverged"))
        .hint(format!("to discard the local commits: {reset}"))
}

/// The failure of a branch that lacks commits of its remote-tracking ref.
fn behind(name: &str, tracking: &str, worktree: Option<&LinkedWorktree>) -> Failure {
    let short = tracking.trim_start_matches("refs/remotes/");
    let forward = in_worktree(worktree, ["merge", "--ff-only", short]);
    let forward = forward.unwrap_or_else(|| command("git fetch .", [format!("{tracking}:refs/heads/{name}")]));
    Failure::new(format!("branch `{name}` is behind `{short}`")).hint(forward)
}

/// A command in the worktree that has a branch checked out, because git moves such a branch only there; `None` without
/// such a worktree.
fn in_worktree(worktree: Option<&LinkedWorktree>, [verb, option, commit]: [&str; 3]) -> Option<String> {
    let directory = worktree.and_then(LinkedWorktree::existing)?;
    Some(command("git -C", [&directory, verb, option, commit]))
}

/// Refuses to move a branch that is checked out in a worktree other than `worktree`: its files would not be updated,
/// and the next commit there would undo the move.
pub(super) fn refuse_checked_out(repo: &LocalRepo, name: &str, worktree: Option<&LinkedWorktree>) -> Result<()> {
    let full = format!("refs/heads/{name}");
    let worktrees = repo.worktrees()?;
    let index = worktrees.iter().position(|listed| {
        listed.branch.as_ref() == Some(&full) && worktree.is_none_or(|worktree| !worktree.is_at(&listed.directory))
    });
    let Some(index) = index else { return Ok(()) };
    let listed = &worktrees[index];
    let directory = &listed.directory;
    let failure =
        Failure::new(format!("branch `{name}` is checked out at `{directory}`, whose files would not be updated"))
            .hint("check out another branch there, or commit to another one: `--branch NAME`");
    Err(match index {
        _ if listed.is_gone => failure
            .hint(format!("that directory is gone; to remove its worktree, with staged changes: {}", listed.removal())),
        // git lists the main worktree first. It cannot be passed to `--worktree`.
        0 => failure,
        _ => failure.hint(format!("or update its files as well: {}", command("--worktree", [directory]))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_branch_is_named_after_the_source() {
        assert_eq!(choose_name(None, Some("refs/heads/main"), "localized/").unwrap(), "localized/main");
        assert_eq!(choose_name(None, Some("refs/heads/a/b"), "localized/").unwrap(), "localized/a/b");
        assert_eq!(choose_name(Some("x"), Some("refs/heads/main"), "localized/").unwrap(), "x");
        assert_eq!(choose_name(Some("refs/heads/x"), None, "localized/").unwrap(), "x");
    }

    #[test]
    fn only_a_local_branch_names_another_one() {
        for source in [None, Some("refs/remotes/origin/main"), Some("refs/tags/main")] {
            assert_eq!(
                refusal(None, source),
                "cannot derive the branch to commit to: the source commit is not named by a local branch"
            );
        }
    }

    #[test]
    fn a_localized_branch_is_no_source_and_a_source_is_not_written_to() {
        for namespace in ["refs/heads", "refs/remotes/origin"] {
            for asked in [Some("x"), None] {
                assert_eq!(refusal(asked, Some(&format!("{namespace}/localized/main"))), NO_SOURCE);
            }
            for asked in ["main", "refs/heads/main"] {
                let source = format!("{namespace}/main");
                assert_eq!(refusal(Some(asked), Some(&source)), "cannot commit to the source branch `main`");
            }
        }
    }

    const NO_SOURCE: &str = "`localized/main` is a localized branch, not a source";

    fn refusal(asked: Option<&str>, source_ref: Option<&str>) -> String {
        choose_name(asked, source_ref, "localized/").unwrap_err().message
    }
}
