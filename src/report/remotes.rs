//! The report about what was brought in or locked.

use std::fmt::Write;

use super::visible;
use crate::commands::News;
use crate::message::failure::short;
use crate::record::Change;

/// Writes what is different about the remotes, one line each, with what is new in each.
pub(super) fn write_changes(out: &mut String, changes: &[Change], news: &News) -> std::fmt::Result {
    for change in changes {
        match change {
            Change::Added { label, digest } => {
                writeln!(out, "  added {} {}", visible(label), short(digest.hex()))?;
            }
            Change::Removed { label, digest } => {
                writeln!(out, "  dropped {} {}", visible(label), short(digest.hex()))?;
            }
            Change::Moved { label, old, new } => {
                let (old, new) = (short(old.hex()), short(new.hex()));
                writeln!(out, "  moved {} {old} -> {new}", visible(label))?;
            }
            Change::Extended { label, paths } => {
                let paths = visible(&paths.join(", "));
                writeln!(out, "  added {paths} of {}", visible(label))?;
            }
        }
        if let Change::Added { label, .. } | Change::Moved { label, .. } = change {
            for line in news.get(label).into_iter().flatten() {
                writeln!(out, "    {}", visible(line))?;
            }
        }
    }
    Ok(())
}
