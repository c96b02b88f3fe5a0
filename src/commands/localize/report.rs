//! What people read of localizing.

use std::fmt::{Result, Write};

use super::builds::{write_differences, write_proof};
use super::{Branch, Localized};
use crate::commands::Status;
use crate::commands::messages::{counted, write_accepted, write_changes, write_left, write_warnings};
use crate::message::failure::{short, stage};
use crate::message::redact::visible;

impl Localized {
    pub(super) fn write(&self, out: &mut String, verbose: bool) -> Result {
        let would = match (self.status, &self.builds) {
            (Status::Differs, Some(builds)) => return write_differences(out, builds),
            (Status::Differs | Status::Warned, _) => return writeln!(out, "not localized: {}", self.what()),
            (Status::Unchanged, _) => return self.write_unchanged(out, verbose),
            (Status::DryRun, _) if self.updated => "would update",
            (Status::DryRun, _) => "would localize",
            (Status::Written, _) if self.updated => "updated",
            (Status::Written, _) => "localized",
        };
        write!(out, "{would} {}", self.what())?;
        if let Some(branch) = &self.branch {
            let tip = branch.commit.as_ref().map(|_| format!(" ({})", branch.short_tip())).unwrap_or_default();
            write!(out, " on branch {}{tip}", visible(&branch.name))?;
        }
        let references = counted(self.rewritten.len(), "reference");
        match &self.branch {
            // The commit lists what differs from the tip.
            Some(branch) if self.copy.is_none() => writeln!(
                out,
                ": {references} rewritten, {} different from {}",
                counted(self.files.len() + self.removed.len(), "file"),
                short(&branch.source)
            )?,
            _ => {
                let files = counted(self.files.len(), "file");
                writeln!(out, ": {files} written, {references} rewritten, {} removed", self.removed.len())?;
            }
        }
        write_changes(out, &self.changes, &self.news)?;
        self.write_notes(out, verbose)?;
        if verbose || self.status == Status::DryRun {
            self.write_files(out)?;
        }
        match &self.branch {
            Some(branch) => {
                if self.status == Status::Written {
                    branch.write(out)?;
                    writeln!(out, "  to look at it: git show --stat {}", branch.short_tip())?;
                }
                self.write_end(out, branch)
            }
            // `check` judges what people commit. What is ignored would be left out without `-f`.
            None if self.status == Status::Written && !self.stage.is_empty() => {
                writeln!(out, "  to commit it:\n    {}\n    git commit", stage(&self.stage))
            }
            None => Ok(()),
        }
    }

    fn what(&self) -> String {
        visible(&match (&self.copy, self.targets.as_slice(), &self.branch) {
            (Some(copy), _, _) => format!("{} into {}", copy.target, copy.new_directory),
            _ if self.updated => "what is localized".to_owned(),
            (None, [], Some(_)) => "the repository".to_owned(),
            (None, [], None) => "the working tree".to_owned(),
            (None, targets, _) => targets.join(", "),
        })
    }

    fn write_unchanged(&self, out: &mut String, verbose: bool) -> Result {
        let Some(branch) = &self.branch else {
            let what = if self.updated { "nothing has moved" } else { "nothing remote is referenced" };
            writeln!(out, "nothing to do: {what}")?;
            return self.write_notes(out, verbose);
        };
        let held = match &self.copy {
            Some(copy) => format!("{} in {}", copy.target, copy.new_directory),
            None => format!("{} localized", short(&branch.source)),
        };
        let (name, tip) = (visible(&branch.name), branch.short_tip());
        writeln!(out, "nothing to do: branch {name} ({tip}) holds {} already", visible(&held))?;
        branch.write(out)?;
        self.write_notes(out, verbose)?;
        self.write_end(out, branch)
    }

    /// Writes how it was built, what was accepted, and how many warnings there are.
    fn write_notes(&self, out: &mut String, verbose: bool) -> Result {
        if let Some(builds) = &self.builds {
            write_proof(out, builds, verbose)?;
        }
        write_accepted(out, &self.left)?;
        write_warnings(out, &self.warnings, verbose)
    }

    /// Writes every file, and every reference that was changed.
    fn write_files(&self, out: &mut String) -> Result {
        writeln!(out, "  files:")?;
        for (path, size) in &self.files {
            writeln!(out, "    {} ({size})", visible(path))?;
        }
        for path in &self.removed {
            writeln!(out, "    {} removed", visible(path))?;
        }
        if !self.rewritten.is_empty() {
            writeln!(out, "  rewritten:")?;
        }
        for one in &self.rewritten {
            let place = format!("{}: {}: {} -> {}", one.location, one.location.field, one.from, one.to);
            writeln!(out, "    {}", visible(&place))?;
        }
        Ok(())
    }

    /// Writes what stays remote and what is deployed from the branch.
    fn write_end(&self, out: &mut String, branch: &Branch) -> Result {
        write_left(out, &self.left)?;
        match &branch.deployed {
            Some(deployed) => writeln!(out, "{}", visible(deployed)),
            None => Ok(()),
        }
    }
}

impl Branch {
    /// Returns the abbreviated tip.
    fn short_tip(&self) -> &str {
        short(self.commit.as_deref().unwrap_or_default())
    }

    /// Writes where the branch is besides.
    fn write(&self, out: &mut String) -> Result {
        if let Some(directory) = &self.worktree {
            writeln!(out, "  checked out at {}", visible(directory))?;
        }
        match &self.pushed {
            Some(remote) => writeln!(out, "  pushed to {}", visible(remote)),
            None => Ok(()),
        }
    }
}
