//! Whether a localized branch was merged into its source.

use super::OnBranch;
use crate::check::merged_back;
use crate::message::failure::Result;
use crate::message::finding::Finding;
use crate::record::Lock;

impl OnBranch {
    /// Finds that the source got its localized files from a localized branch: its URLs were probably removed by accident.
    pub(crate) fn merged_back(&self, lock: Option<&Lock>) -> Result<Option<Finding>> {
        if self.into.is_some() || !lock.is_some_and(merged_back::is_made_by_branch) {
            return Ok(None);
        }
        let undo = merged_back::undo(&self.repo, &self.repository, &self.source.commit)?;
        Ok(undo.map(|undo| merged_back::finding(Some(undo))))
    }
}
