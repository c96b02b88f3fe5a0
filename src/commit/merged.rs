//! Whether a localized branch was merged into its source.

use crate::failure::{Failure, Location, Result};
use crate::git::{Here, Which};
use crate::record::{LOCK_NAME, Lock, Trailers};
use crate::tree::objects::object_id;
use crate::walk::Warning;

/// What the message of a commit of ours that is in place holds, as a basic regular expression.
const RECORD: &str = "Kustomize-Localize-Target: [.] in-place";

/// Warns when the source has its localized files from a branch of ours: nobody meant its URLs to go away. What was
/// localized in the working tree was committed by somebody who did.
///
/// # Errors
/// When git cannot read the history of the source.
pub fn warning(
    here: &Here,
    repository: &gix::Repository,
    source: &str,
    lock: Option<&Lock>,
) -> Result<Option<Warning>> {
    if lock.is_none_or(|lock| lock.files.is_empty()) {
        return Ok(None);
    }
    let wrote = here.newest(source, Which::Wrote(LOCK_NAME))?;
    let is_ours = wrote.is_some_and(|(_, message)| {
        Trailers::parse(&message)
            .is_ok_and(|found| found.is_some_and(|trailers| trailers.target.in_place))
    });
    if !is_ours {
        return Ok(None);
    }
    let (commit, _) = here
        .newest(source, Which::Says(RECORD))?
        .ok_or_else(|| Failure::new("the history has changed meanwhile"))?;
    // Against its source: that is what localizing has changed.
    let mainline = match parents(repository, &commit)? {
        0 | 1 => "",
        _ => "-m 2 ",
    };
    let short = commit.get(..12).unwrap_or(&commit);
    Ok(Some(Warning {
        id: "merged-back",
        location: Location {
            file: LOCK_NAME.to_owned(),
            ..Location::default()
        },
        message: format!(
            "the localized branch was merged into its source, which has local paths now where it had URLs; \
             to take that back: git revert --no-edit {mainline}{short}"
        ),
    }))
}

/// Returns how many parents a commit names, those included that a shallow clone lacks.
fn parents(repository: &gix::Repository, commit: &str) -> Result<usize> {
    let unread = |error: &dyn std::fmt::Display| {
        Failure::new(format!("commit {commit} cannot be read: {error}"))
    };
    let object = repository
        .find_object(object_id(commit)?)
        .map_err(|error| unread(&error))?;
    let commit = object.try_into_commit().map_err(|error| unread(&error))?;
    Ok(commit.parent_ids().count())
}
