//! Whether a localized branch was merged into its source.

use super::OnBranch;
use crate::graph::Warning;
use crate::message::failure::{Failure, Location, Result, short};
use crate::message::finding::Rule;
use crate::record::history::records::{self, Found};
use crate::record::{LOCK_NAME, Lock};
use crate::tree::git::object_id;

impl OnBranch {
    /// Warns when the source got its localized files from a localized branch: its URLs were probably removed by accident.
    /// Files that were localized in the working tree were committed on purpose.
    pub(crate) fn warning(&self, lock: Option<&Lock>) -> Result<Option<Warning>> {
        // Only what we commit says that its message holds the record, too.
        if self.into.is_some() || lock.is_none_or(|lock| lock.files.is_empty() || !lock.trailers) {
            return Ok(None);
        }
        let source = &self.source.commit;
        let locks = [LOCK_NAME.to_owned()];
        let found = records::newest(&self.repository, source, &locks, |record| record.target.in_place)?;
        let commit = match found {
            Found::Record(record) => Some(record.commit),
            // A squash, which holds all of the branch.
            _ => self.repo.last_change(source, LOCK_NAME)?,
        };
        commit.map(|commit| merged(&self.repository, &commit)).transpose()
    }
}

/// Returns what to say of the commit that brought the localized files.
fn merged(repository: &gix::Repository, commit: &str) -> Result<Warning> {
    // Against its source: that is what localizing has changed.
    // Those that a shallow clone lacks count, too.
    let unread = |error| Failure::new(format!("commit {commit} cannot be read: {error}"));
    let found = repository.find_commit(object_id(commit)?).map_err(|error| unread(error.to_string()))?;
    let mainline = if found.parent_ids().count() > 1 { "-m 2 " } else { "" };
    let short = short(commit);
    let location = Location { file: LOCK_NAME.to_owned(), ..Location::default() };
    let message = format!(
        "the localized branch was merged into its source, which has local paths now where it had URLs; \
         to take that back: git revert --no-edit {mainline}{short}"
    );
    Ok(Warning::new(Rule::MergedBack, location, message))
}
