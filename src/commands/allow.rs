//! `--add-allow`: an exception for everything that was found.

use super::output::say;
use crate::config::{Config, FILE_NAME};
use crate::destination::working;
use crate::message::failure::{Exception, Failure, Failures, stage};
use crate::plan::{Changes, File};
use crate::tree::Entry;
use crate::workspace::Workspace;

/// Writes entries for these into the configuration of the working tree, and returns how many.
pub(super) fn add_allow(exceptions: &[Exception]) -> Result<usize, Failures> {
    let entries = Config::entries(&exceptions.iter().collect::<Vec<_>>());
    if entries.is_empty() {
        return Ok(0);
    }
    let workspace = Workspace::of_working_tree(false)?;
    let refused = |why: &str| {
        let failure = Failure::new(format!("cannot add entries to `{FILE_NAME}`: {why}"));
        let failure = failure.hint("write them below `allow:` by hand:");
        let all = entries.iter().cloned();
        all.fold(failure, Failure::hint)
    };
    let text = match workspace.tree.entry(FILE_NAME)? {
        None => Vec::new(),
        Some(Entry::File { .. }) => workspace.tree.read(FILE_NAME)?,
        Some(_) => return Err(refused("it is not a regular file").into()),
    };
    let text = String::from_utf8_lossy(&text);
    let new = Config::append(&text, &entries)
        .ok_or_else(|| refused("its list `allow` is not written as one entry a line"))?;
    let changes = Changes::from([(FILE_NAME.to_owned(), Some(File::plain(new.into_bytes())))]);
    working::write(&workspace, &changes)?;
    Ok(entries.len())
}

/// Says that entries were written, and returns whether there were any.
pub(super) fn say_added(count: usize) -> bool {
    let what = if count == 1 { "1 entry".to_owned() } else { format!("{count} entries") };
    if count > 0 {
        say(&format!(
            "added {what} to `allow` in {FILE_NAME}: write the reason in place of `TODO`, then: {}\n",
            stage([FILE_NAME])
        ));
    }
    count > 0
}
