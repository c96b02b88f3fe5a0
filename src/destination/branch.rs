//! Which branch is committed to, and what its tip is.

use std::collections::BTreeMap;

use super::worktree::Linked;
use crate::fetch::Published;
use crate::git::{self, LocalRepo, Ref};
use crate::message::failure::{Failure, Result, command};
use crate::record::history::{PREFIX, not_a_source};

/// A branch that may be committed to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Branch {
    /// Its short name, as `localized/main`.
    pub name: String,
    /// Where the local branch is; none if there is none yet.
    pub local: Option<String>,
    /// The commit to continue from: the local branch, else its remote-tracking ref.
    pub tip: Option<String>,
}

impl Branch {
    /// The full name of the ref.
    pub(super) fn full_name(&self) -> String {
        format!("refs/heads/{}", self.name)
    }
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
            Err(Failure::new(format!("`{asked}` is the source, and cannot be the branch to commit to"))
                .hint(format!("commit to another one: {}", command("--branch", [format!("{PREFIX}{asked}")]))))
        }
        (Some(asked), _) => Ok(asked.to_owned()),
        (None, Some(source)) if is_here => Ok(format!("{PREFIX}{source}")),
        (None, _) => {
            Err(Failure::new("the source commit is not named by a branch, so the branch to commit to has no name")
                .hint("say where to commit: `--branch NAME`"))
        }
    }
}

/// Looks at the branch: whether it may be moved, and where it is. `source` is the full name of the ref that the source
/// commit was named by; `worktree` may have the branch checked out; `pushed` is where it was fetched from, if it is going
/// to be pushed there.
pub(super) fn open(
    here: &LocalRepo,
    name: &str,
    source: Option<&str>,
    worktree: Option<&Linked>,
    pushed: Option<&Published>,
) -> Result<Branch> {
    if !git::is_branch_name(name) {
        return Err(Failure::new(format!("`{name}` is not a branch name")).hint("see `git help check-ref-format`"));
    }
    let full = format!("refs/heads/{name}");
    let refs = related(here, name)?;
    in_the_way(&refs, name)?;
    let found = refs.get(&full);
    if let Some(target) = found.and_then(|found| found.other_name.as_ref()) {
        return Err(Failure::new(format!("branch `{name}` is another name of `{target}`"))
            .hint(command("git symbolic-ref --delete", [&full])));
    }
    // A branch that is not there yet may be the one that HEAD is on.
    refuse_checked_out(here, name, worktree)?;
    let local = found.map(|found| found.id.clone());
    let tracked = match pushed {
        Some(pushed) => at(here, pushed.tracking())?,
        None => tracking(here, &refs, name, source)?,
    };
    let (tracking, remote) = tracked.unzip();
    let mut tip = local.as_ref().or(remote.as_ref());
    if let (Some(local), Some(remote), Some(tracking)) = (&local, &remote, &tracking)
        && local != remote
        && !here.is_ancestor(remote, local)?
    {
        let short = tracking.trim_start_matches("refs/remotes/");
        match (here.is_ancestor(local, remote)?, pushed) {
            (true, Some(_)) => tip = Some(remote),
            (true, None) => {
                return Err(Failure::new(format!("branch `{name}` is behind `{short}`"))
                    .hint(command("git fetch .", [format!("{tracking}:{full}")])));
            }
            (false, _) => {
                return Err(Failure::new(format!("branch `{name}` and `{short}` have diverged"))
                    .hint(format!("to give up the local commits: {}", command("git branch -f", [name, short]))));
            }
        }
    }
    Ok(Branch { name: name.to_owned(), tip: tip.cloned(), local })
}

/// Refuses to move a branch whose files somewhere would not follow. `worktree` may have it checked out.
pub(super) fn refuse_checked_out(here: &LocalRepo, name: &str, worktree: Option<&Linked>) -> Result<()> {
    let full = format!("refs/heads/{name}");
    let mut worktrees = here.worktrees()?.into_iter().enumerate();
    let checked_out = worktrees.find(|(_, listed)| {
        let is_ours = worktree.is_some_and(|worktree| worktree.is_at(&listed.directory));
        listed.branch.as_ref() == Some(&full) && !is_ours
    });
    let Some((index, checked_out)) = checked_out else {
        return Ok(());
    };
    let directory = checked_out.directory;
    if checked_out.is_gone {
        return Err(Failure::new(format!("branch `{name}` is checked out in a worktree that is gone: `{directory}`"))
            .hint(format!("to let git forget it: {}", command("git worktree remove -f -f", [&directory]))));
    }
    let failure =
        Failure::new(format!("branch `{name}` is checked out at `{directory}`, whose files would not follow"))
            .hint("check out another branch there, or commit to another one: `--branch NAME`");
    // The main one comes first, and its files are the user's.
    Err(match index {
        0 => failure,
        _ => failure.hint(format!("or bring its files up to date as well: {}", command("--worktree", [&directory]))),
    })
}

/// Returns every ref that has to do with a branch: itself, what could be in its way, the ones of that
/// name at remotes.
fn related(here: &LocalRepo, name: &str) -> Result<BTreeMap<String, Ref>> {
    // The first matches what lies below, too.
    let mut patterns = vec![format!("refs/remotes/*/{name}"), format!("refs/heads/{name}")];
    patterns.extend(above(name).map(|above| format!("refs/heads/{above}")));
    here.refs(&patterns)
}

/// Returns the names of the branches above: of `a/b/c` `a/b` and `a`.
fn above(name: &str) -> impl Iterator<Item = &str> {
    name.rmatch_indices('/').filter_map(|(end, _)| name.get(..end))
}

/// Refuses a name that cannot exist beside a branch that is there: `localized` and
/// `localized/main` would have to be a file and a directory.
fn in_the_way(refs: &BTreeMap<String, Ref>, name: &str) -> Result<()> {
    if let Some(above) = above(name).find(|above| refs.contains_key(&format!("refs/heads/{above}"))) {
        return Err(Failure::new(format!("branch `{above}` is there, so git cannot have a branch `{name}`"))
            .hint(format!("rename it: {}", command("git branch -m", [above, "NEW_NAME"])))
            .hint("or commit to another branch: `--branch NAME`"));
    }
    let below = format!("refs/heads/{name}/");
    match refs.keys().find(|found| found.starts_with(&below)) {
        Some(below) => Err(Failure::new(format!(
            "branch `{}` is there, so git cannot have a branch `{name}`",
            below.trim_start_matches("refs/heads/")
        ))
        .hint("commit to another branch: `--branch NAME`")),
        None => Ok(()),
    }
}

/// Returns a remote-tracking ref with its commit, if it is there.
fn at(here: &LocalRepo, tracking: String) -> Result<Option<(String, String)>> {
    let found = here.refs(&[&tracking])?.remove(&tracking);
    Ok(found.map(|found| (tracking, found.id)))
}

/// Returns the remote-tracking ref of the branch with its commit: the configured upstream, else the
/// one of that name at the source branch's remote, at `origin`, or at the only remote that has one.
fn tracking(
    here: &LocalRepo,
    refs: &BTreeMap<String, Ref>,
    name: &str,
    source: Option<&str>,
) -> Result<Option<(String, String)>> {
    let remote = here.config(&format!("branch.{name}.remote"))?;
    let merge = here.config(&format!("branch.{name}.merge"))?;
    if let (Some(remote), Some(merge)) = (remote, merge)
        && let Some(branch) = merge.strip_prefix("refs/heads/")
    {
        // It may have another name there, so that it need not be among `refs`.
        if let Some(found) = at(here, format!("refs/remotes/{remote}/{branch}"))? {
            return Ok(Some(found));
        }
    }
    let of = |remote: &str| {
        let tracking = format!("refs/remotes/{remote}/{name}");
        let id = refs.get(&tracking)?.id.clone();
        Some((tracking, id))
    };
    let source = source.and_then(|name| name.strip_prefix("refs/heads/"));
    let preferred = match source {
        Some(source) => here.config(&format!("branch.{source}.remote"))?,
        None => None,
    };
    if let Some(tracking) = preferred.as_deref().and_then(of).or_else(|| of("origin")) {
        return Ok(Some(tracking));
    }
    let candidates: Vec<(&String, &Ref)> =
        refs.iter().filter(|(found, _)| found.starts_with("refs/remotes/")).collect();
    match candidates.as_slice() {
        [] => Ok(None),
        [(name, one)] => Ok(Some(((*name).clone(), one.id.clone()))),
        several => {
            let names: Vec<&str> = several.iter().map(|(name, _)| name.as_str()).collect();
            Err(Failure::new(format!("several remotes have a branch `{name}`: {}", names.join(", "))).hint(format!(
                "say which one to follow: {}",
                command("git branch --track", [name, &format!("REMOTE/{name}")])
            )))
        }
    }
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
                assert!(failure.to_string().contains("`main` is the source"));
            }
        }
    }
}
