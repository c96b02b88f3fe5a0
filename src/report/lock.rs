//! The report of `lock` and `update`.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;

use super::json::{JsonMessage, report};
use super::left::write_accepted;
use super::remotes::write_changes;
use super::{Tell, by_id, counted, messages, visible, write_warnings};
use crate::commands::Status;
use crate::commands::lock::Outcome;
use crate::graph::Warning;
use crate::message::failure::{Failure, Failures, short, stage};
use crate::plan::lock::Unresolved;
use crate::record::{Change, LOCK_NAME, Left, Remote};

/// How many lines of errors are shown as they are.
const SCREEN: usize = 30;
/// How many upstreams with errors, and how many changes, are shown otherwise: with the rest they fit on a screen.
const MOST_UPSTREAMS: usize = 4;
const MOST_CHANGES: usize = 10;

impl Tell for Outcome {
    fn human(&self, verbose: bool) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut out, verbose);
        out
    }

    fn json(&self) -> String {
        report(&JsonLock {
            outcome: self.status,
            lock: LOCK_NAME,
            changes: &self.changes,
            remotes: &self.remotes,
            left: &self.left,
            warning_counts: by_id(&self.warnings),
            warnings: self.warnings.iter().map(JsonMessage::from).collect(),
            unresolved: self.unresolved.count,
            errors: self.both.iter().chain(&self.unresolved.failures).map(JsonMessage::from).collect(),
        })
    }

    fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    fn failures(&self, verbose: bool) -> Failures {
        let mut failures = self.both.clone();
        let all = Failures(self.unresolved.failures.clone());
        let fits = || messages::failures(&all).lines().count() <= SCREEN;
        let (unresolved, hidden) = if verbose || fits() { (all.0, 0) } else { by_upstream(&all.0) };
        failures.extend(unresolved);
        let Unresolved { count, kept, of, .. } = self.unresolved;
        if !self.unresolved.failures.is_empty() {
            let as_before = match kept {
                0 => String::new(),
                1 if count == 1 => "; the lock keeps it as it was".to_owned(),
                _ if kept == count => "; the lock keeps them as they were".to_owned(),
                _ => format!("; the lock keeps {kept} of them"),
            };
            let failure = Failure::new(format!(
                "{count} of {} could not be resolved{as_before}",
                counted(of, "remote reference"),
            ));
            failures.push(match hidden {
                0 => failure,
                hidden => failure.hint(format!("{} not shown: `-v` shows all", counted(hidden, "error"))),
            });
        }
        Failures(failures)
    }

    fn is_refused(&self) -> bool {
        self.status == Status::Warned
    }

    fn is_done(&self) -> bool {
        self.status != Status::Warned && self.unresolved.failures.is_empty() && self.both.is_empty()
    }
}

impl Outcome {
    /// Writes how many references were not followed, because something in the tree itself is wrong.
    fn write_unread(&self, out: &mut String, verbose: bool) -> std::fmt::Result {
        if !self.unread.is_empty() {
            let count = counted(self.unread.len(), "reference");
            writeln!(out, "  {count} not followed, which `git kustomize-localize check` explains")?;
        }
        for failure in self.unread.iter().filter(|_| verbose) {
            writeln!(out, "    {}", visible(&failure.to_string()))?;
        }
        Ok(())
    }

    fn write(&self, out: &mut String, verbose: bool) -> std::fmt::Result {
        let count = counted(self.remotes.len(), "remote reference");
        match self.status {
            Status::Unchanged if !self.unresolved.failures.is_empty() && self.is_first => {
                writeln!(out, "{LOCK_NAME} not written: nothing could be resolved")?;
            }
            Status::Unchanged if !self.unresolved.failures.is_empty() => {
                writeln!(out, "{LOCK_NAME} not changed: it holds {count}")?;
            }
            Status::Unchanged if self.remotes.is_empty() => {
                writeln!(out, "nothing to do: nothing remote is referenced")?;
                self.write_unread(out, verbose)?;
                return write_warnings(out, &self.warnings, verbose);
            }
            Status::Unchanged => writeln!(out, "nothing to do: {LOCK_NAME} holds {count}")?,
            Status::Written => writeln!(out, "wrote {LOCK_NAME}: it holds {count}")?,
            Status::DryRun => writeln!(out, "would write {LOCK_NAME}: it would hold {count}")?,
            Status::Warned | Status::Differs => {
                writeln!(out, "{LOCK_NAME} not written")?;
            }
        }
        for path in &self.edited {
            writeln!(out, "  edited {}", visible(path))?;
        }
        if self.merged {
            writeln!(out, "  merged both sides of the conflict")?;
        }
        let most = if verbose { usize::MAX } else { MOST_CHANGES };
        let (changes, more) = self.changes.split_at(most.min(self.changes.len()));
        write_changes(out, changes, &self.news)?;
        if !more.is_empty() {
            let more = counted(more.len(), "more change");
            writeln!(out, "  and {more}: `-v` shows all")?;
        }
        write_accepted(out, &self.left)?;
        write_warnings(out, &self.warnings, verbose)?;
        self.write_unread(out, verbose)?;
        if verbose {
            for remote in &self.remotes {
                let digest = remote.digest();
                writeln!(out, "  holds {} {}", visible(&remote.label()), short(digest.hex()))?;
            }
        }
        if self.status == Status::Written {
            let paths = self.edited.iter().map(String::as_str);
            writeln!(out, "  to stage it: {}", stage(paths.chain([LOCK_NAME])))?;
            if self.is_first {
                writeln!(
                    out,
                    "kustomize, Flux and Argo CD do not read the lock: deploy what `git kustomize-localize branch` makes of it"
                )?;
            }
        }
        Ok(())
    }
}

/// Returns one error for each upstream, at all places of its errors, and how many errors are not shown.
fn by_upstream(failures: &[Failure]) -> (Vec<Failure>, usize) {
    let mut groups: Vec<Vec<&Failure>> = Vec::new();
    for failure in failures {
        let is_same = |group: &&mut Vec<&Failure>| {
            let first = group[0];
            match &*failure.upstream {
                "" => (&first.message, &first.hints) == (&failure.message, &failure.hints),
                upstream => *first.upstream == *upstream,
            }
        };
        match groups.iter_mut().find(is_same) {
            Some(group) => group.push(failure),
            None => groups.push(vec![failure]),
        }
    }
    let shown = groups.len().min(MOST_UPSTREAMS);
    let mut hidden: usize = groups[shown..].iter().map(Vec::len).sum();
    let mut told = Vec::new();
    for group in &groups[..shown] {
        for failure in group {
            hidden += usize::from(failure.message != group[0].message);
            told.push(Failure {
                location: failure.location.clone(),
                exception: failure.exception.clone(),
                ..group[0].clone()
            });
        }
    }
    (told, hidden)
}

#[derive(Serialize)]
struct JsonLock<'a> {
    outcome: Status,
    lock: &'static str,
    changes: &'a [Change],
    remotes: &'a [Remote],
    left: &'a [Left],
    warning_counts: BTreeMap<&'static str, usize>,
    warnings: Vec<JsonMessage<'a>>,
    unresolved: usize,
    errors: Vec<JsonMessage<'a>>,
}
