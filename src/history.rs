//! What a localized branch holds: the records of its messages, and whether its files still match them.

pub mod records;
pub mod tip;
pub mod trees;

use crate::failure::{Failure, Result};
use crate::git::LocalRepo;

/// Below this name lie the branches that we make.
pub const PREFIX: &str = "localized/";

/// Returns whether a ref is a localized branch, local or remote-tracking, by its full name.
#[must_use]
pub fn is_ours(name: &str) -> bool {
    let of_remote = |name: &str| {
        Some(
            name.strip_prefix("refs/remotes/")?
                .split_once('/')?
                .1
                .to_owned(),
        )
    };
    let branch = match name.strip_prefix("refs/heads/") {
        Some(branch) => Some(branch.to_owned()),
        None => of_remote(name),
    };
    branch.is_some_and(|branch| branch.starts_with(PREFIX))
}

/// Returns what to say where a localized branch, by its short name, would be the source.
#[must_use]
pub fn not_a_source(branch: &str) -> Failure {
    Failure::new(format!("`{branch}` is a localized branch, not a source"))
}

/// Refuses to change what HEAD has checked out where that is a localized branch: the next run would find edits there.
///
/// # Errors
/// When it is one by its name or, where HEAD is detached, if no branch but such ones is there.
pub fn refuse_checked_out(here: &LocalRepo) -> Result<()> {
    let failure = match here.ref_of("HEAD")? {
        Some(name) if is_ours(&name) => not_a_source(name.trim_start_matches("refs/heads/")),
        Some(_) => return Ok(()),
        None => {
            let Some(head) = here.commit("HEAD")? else {
                return Ok(());
            };
            let mut refs = here.refs(&["refs/heads/", "refs/remotes/"])?;
            // One that was merged by moving a branch is a source again.
            refs.retain(|_, found| found.id == head.commit && found.other_name.is_none());
            if refs.is_empty() || !refs.keys().all(|name| is_ours(name)) {
                return Ok(());
            }
            Failure::new("HEAD is a commit of a localized branch, not a source")
        }
    };
    Err(failure.hint(
        "run it on the branch that it was made from (git switch BRANCH), and localize that again",
    ))
}
