//! What is said about a run of `lock` or `update`.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;

use super::json::{JsonLeft, JsonMessage, JsonRemote, TOOL, Tool, remote, render};
use super::left::write_accepted;
use super::{Tell, by_id, counted, visible, write_warnings};
use crate::config::Strict;
use crate::failure::{Failure, Failures, pathspec, short};
use crate::mend::lock::Unresolved;
use crate::record::{Change, LOCK_NAME, Left, Remote};
use crate::walk::Warning;

/// What came of a run of `lock` or `update`.
#[derive(Debug, Clone)]
pub struct LockReport {
    /// What happened to the lock.
    pub outcome: LockOutcome,
    /// What the lock holds.
    pub remotes: Vec<Remote>,
    /// What stays remote.
    pub left: Vec<Left>,
    /// What it held before and does not any more, did not hold before, or is something else now.
    pub changes: Vec<Change>,
    /// What works but should be known.
    pub warnings: Vec<Warning>,
    /// Which warnings are errors.
    pub strict: Strict,
    /// What could not be resolved.
    pub unresolved: Unresolved,
    /// Whether the lock was in conflict, and its two sides were brought together.
    pub merged: bool,
    /// What both sides changed, and not to the same.
    pub both: Vec<Failure>,
}

/// What happened to the lock, or to the working tree as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockOutcome {
    /// It was written.
    Written,
    /// It was as it must be.
    Unchanged,
    /// It would have been written: `--dry-run`.
    DryRun,
    /// It was left as it was: there are warnings that are errors.
    Warned,
}

impl LockOutcome {
    /// Returns its name, as in JSON.
    pub(super) fn name(self) -> &'static str {
        match self {
            LockOutcome::Written => "written",
            LockOutcome::Unchanged => "unchanged",
            LockOutcome::DryRun => "dry-run",
            LockOutcome::Warned => "warned",
        }
    }
}

impl Tell for LockReport {
    fn human(&self, verbose: bool) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut out, verbose);
        out
    }

    fn json(&self) -> String {
        render(&JsonLock {
            version: 1,
            tool: TOOL,
            outcome: self.outcome.name(),
            lock: LOCK_NAME,
            changes: self.changes.iter().map(JsonChange::from).collect(),
            remotes: self.remotes.iter().map(remote).collect(),
            left: self.left.iter().map(JsonLeft::from).collect(),
            warning_counts: by_id(&self.warnings),
            warnings: self.warnings.iter().map(JsonMessage::from).collect(),
            unresolved: self.unresolved.count,
            errors: self
                .both
                .iter()
                .chain(&self.unresolved.failures)
                .map(JsonMessage::from)
                .collect(),
        })
    }

    fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    fn failures(&self) -> Failures {
        let mut failures = self.both.clone();
        failures.extend(self.unresolved.failures.iter().cloned());
        let Unresolved { count, of, .. } = self.unresolved;
        if !self.unresolved.failures.is_empty() {
            let locked = match self.outcome {
                LockOutcome::Written | LockOutcome::Unchanged => "locked",
                LockOutcome::DryRun | LockOutcome::Warned => "could lock",
            };
            failures.push(Failure::new(format!(
                "{locked} {} of {}; {count} could not be resolved",
                of.saturating_sub(count),
                counted(of, "remote reference"),
            )));
        }
        Failures(failures)
    }

    fn refused(&self) -> Option<&Strict> {
        (self.outcome == LockOutcome::Warned).then_some(&self.strict)
    }

    fn is_done(&self) -> bool {
        self.outcome != LockOutcome::Warned
            && self.unresolved.failures.is_empty()
            && self.both.is_empty()
    }
}

impl LockReport {
    fn write(&self, out: &mut String, verbose: bool) -> std::fmt::Result {
        let count = counted(self.remotes.len(), "remote reference");
        match self.outcome {
            LockOutcome::Unchanged if !self.unresolved.failures.is_empty() => {
                writeln!(out, "{LOCK_NAME} stays as it was: it holds {count}")?;
            }
            LockOutcome::Unchanged if self.remotes.is_empty() => {
                writeln!(out, "nothing to do: nothing remote is referenced")?;
                return write_warnings(out, &self.warnings);
            }
            LockOutcome::Unchanged => writeln!(out, "nothing to do: {LOCK_NAME} holds {count}")?,
            LockOutcome::Written => writeln!(out, "wrote {LOCK_NAME}: it holds {count}")?,
            LockOutcome::DryRun => writeln!(out, "would write {LOCK_NAME}: it would hold {count}")?,
            LockOutcome::Warned => {
                writeln!(out, "not written: {LOCK_NAME} comes with warnings")?;
            }
        }
        if self.merged {
            writeln!(out, "  brought together from both sides of a conflict")?;
        }
        write_changes(out, &self.changes)?;
        write_accepted(out, &self.left)?;
        write_warnings(out, &self.warnings)?;
        if verbose {
            for remote in &self.remotes {
                let digest = remote.digest();
                writeln!(
                    out,
                    "  holds {} {}",
                    visible(&remote.label()),
                    short(digest.hex())
                )?;
            }
        }
        if self.outcome == LockOutcome::Written {
            writeln!(out, "  to stage it: git add -f -- {}", pathspec(LOCK_NAME))?;
        }
        Ok(())
    }
}

/// Says what is different about the remotes, one line each.
pub(super) fn write_changes(out: &mut String, changes: &[Change]) -> std::fmt::Result {
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
    }
    Ok(())
}

#[derive(Serialize)]
struct JsonLock<'a> {
    version: u32,
    tool: Tool,
    outcome: &'static str,
    lock: &'static str,
    changes: Vec<JsonChange<'a>>,
    remotes: Vec<JsonRemote>,
    left: Vec<JsonLeft<'a>>,
    warning_counts: BTreeMap<&'static str, usize>,
    warnings: Vec<JsonMessage<'a>>,
    unresolved: usize,
    errors: Vec<JsonMessage<'a>>,
}

/// What is different about one remote.
#[derive(Serialize)]
pub(super) struct JsonChange<'a> {
    change: &'static str,
    url: &'a str,
    old: Option<String>,
    new: Option<String>,
    /// The directories that were added to an entry.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    paths: &'a [String],
}

impl<'a> From<&'a Change> for JsonChange<'a> {
    fn from(change: &'a Change) -> Self {
        let (change, url, old, new, paths) = match change {
            Change::Added { label, digest } => ("added", label, None, Some(digest), &[][..]),
            Change::Removed { label, digest } => ("dropped", label, Some(digest), None, &[][..]),
            Change::Moved { label, old, new } => ("moved", label, Some(old), Some(new), &[][..]),
            Change::Extended { label, paths } => ("extended", label, None, None, &paths[..]),
        };
        JsonChange {
            change,
            url,
            old: old.map(ToString::to_string),
            new: new.map(ToString::to_string),
            paths,
        }
    }
}
