//! Whether a localized branch was merged into its source.

use super::OnBranch;
use crate::check::merged_back;
use crate::graph::Warning;
use crate::message::failure::{Location, Result};
use crate::message::finding::Rule;
use crate::record::{LOCK_NAME, Lock};

impl OnBranch {
    /// Warns when the source got its localized files from a localized branch: its URLs were probably removed by accident.
    pub(crate) fn warning(&self, lock: Option<&Lock>) -> Result<Option<Warning>> {
        if self.into.is_some() || !lock.is_some_and(merged_back::is_made_by_branch) {
            return Ok(None);
        }
        let undo = merged_back::undo(&self.repo, &self.repository, &self.source.commit)?;
        let location = Location { file: LOCK_NAME.to_owned(), ..Location::default() };
        Ok(undo.map(|undo| Warning::new(Rule::MergedBack, location, merged_back::message(Some(&undo)))))
    }
}
