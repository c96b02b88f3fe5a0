//! Whether a localized branch was merged into its source.

use crate::failure::{Failure, Location, Result};
use crate::git::{Here, Which};
use crate::record::{LOCK_NAME, Lock, Trailers};
use crate::walk::Warning;

/// What the message of a commit of ours that is in place holds, as a basic regular expression.
const RECORD: &str = "Kustomize-Localize-Target: [.] in-place";

/// Warns when the source has its localized files from a branch of ours: nobody meant its URLs to go away. What was
/// localized in the working tree was committed by somebody who did.
///
/// # Errors
/// When git cannot read the history of the source.
pub fn warning(here: &Here, source: &str, lock: Option<&Lock>) -> Result<Option<Warning>> {
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
    let mainline = match here.commit(&format!("{commit}^2"))? {
        Some(_) => "-m 2 ",
        None => "",
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
