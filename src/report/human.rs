//! The summary for people.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::build_check::{refusal, write_differences, write_proof};
use super::left::{write_accepted, write_left};
use super::{Outcome, Report, Tell, counted, visible, write_warnings};
use crate::config::Strict;
use crate::failure::{Failure, short};
use crate::localize::Rewritten;
use crate::record::{Change, Remote};
use crate::walk::Warning;

impl Tell for Report {
    /// What was done, what was brought in, how to look at it.
    fn human(&self, verbose: bool) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut out, verbose);
        out
    }

    fn json(&self) -> String {
        self.to_json()
    }

    fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    fn refused(&self) -> Option<&Strict> {
        (self.outcome == Outcome::Warned).then_some(&self.strict)
    }

    fn is_done(&self) -> bool {
        !matches!(self.outcome, Outcome::Differs | Outcome::Warned)
    }

    fn refusal(&self) -> Option<Failure> {
        refusal(&self.proof)
    }
}

impl Report {
    fn write(&self, out: &mut String, verbose: bool) -> std::fmt::Result {
        let target = visible(&self.target);
        let new_dir = visible(&self.new_dir);
        match &self.outcome {
            Outcome::Committed { branch, commit, .. } => {
                writeln!(
                    out,
                    "localized {target} into {new_dir} on branch {branch} ({})",
                    short(commit)
                )?;
            }
            Outcome::Unchanged { branch, commit, .. } => {
                writeln!(
                    out,
                    "nothing to do: branch {branch} ({}) holds {target} in {new_dir} already",
                    short(commit)
                )?;
            }
            Outcome::Written => writeln!(out, "localized {target} into {new_dir}")?,
            Outcome::Differs => return write_differences(out, &self.proof),
            Outcome::Warned => writeln!(
                out,
                "not localized: {target} into {new_dir} comes with warnings"
            )?,
            Outcome::DryRun {
                branch: Some(branch),
            } => {
                writeln!(
                    out,
                    "would localize {target} into {new_dir} on branch {branch}"
                )?;
            }
            Outcome::DryRun { branch: None } => {
                writeln!(out, "would localize {target} into {new_dir}")?
            }
        }
        let bytes: u64 = self.files.values().sum();
        writeln!(
            out,
            "  {}, {bytes} bytes; {} rewritten",
            counted(self.files.len(), "file"),
            counted(self.rewritten.len(), "reference")
        )?;
        self.write_remotes(out)?;
        write_proof(out, &self.proof)?;
        write_accepted(out, &self.left)?;
        write_warnings(out, &self.warnings)?;
        if verbose || matches!(self.outcome, Outcome::DryRun { .. }) {
            self.write_details(out)?;
        }
        if let Outcome::Committed { commit, .. } = &self.outcome {
            writeln!(out, "  to look at it: git show --stat {}", short(commit))?;
        }
        match &self.outcome {
            Outcome::Committed { .. } | Outcome::Unchanged { .. } => write_left(out, &self.left),
            Outcome::Written | Outcome::Differs | Outcome::Warned | Outcome::DryRun { .. } => {
                Ok(())
            }
        }
    }

    fn write_remotes(&self, out: &mut String) -> std::fmt::Result {
        if self.remotes.is_empty() {
            return writeln!(out, "  nothing was brought in");
        }
        let mut hosts: BTreeMap<String, usize> = BTreeMap::new();
        for remote in &self.remotes {
            *hosts.entry(host(&remote.label())).or_default() += 1;
        }
        let hosts: Vec<String> = hosts
            .iter()
            .map(|(host, count)| format!("{host} ({count})"))
            .collect();
        writeln!(out, "  brought in from {}:", visible(&hosts.join(", ")))?;
        for remote in &self.remotes {
            let label = visible(&remote.label());
            match remote {
                Remote::Git(git) => writeln!(out, "    {label} at {}", short(&git.commit))?,
                Remote::File(file) => writeln!(out, "    {label} sha256 {}", short(&file.sha256))?,
                Remote::Chart(chart) => {
                    let resolved = match &chart.resolved {
                        Some(version) => format!(" is {}", visible(version)),
                        None => String::new(),
                    };
                    writeln!(out, "    {label}{resolved} sha256 {}", short(&chart.sha256))?;
                }
            }
        }
        for change in &self.changes {
            if let Change::Moved { label, old, new } = change {
                writeln!(
                    out,
                    "    moved: {} {} -> {}",
                    visible(label),
                    short(old.hex()),
                    short(new.hex())
                )?;
            }
        }
        Ok(())
    }

    fn write_details(&self, out: &mut String) -> std::fmt::Result {
        writeln!(out, "  files:")?;
        for (path, size) in &self.files {
            writeln!(out, "    {} ({size})", visible(path))?;
        }
        write_rewritten(out, &self.rewritten)
    }
}

/// Names every reference that was changed.
pub(super) fn write_rewritten(out: &mut String, rewritten: &[Rewritten]) -> std::fmt::Result {
    if !rewritten.is_empty() {
        writeln!(out, "  rewritten:")?;
    }
    for one in rewritten {
        writeln!(
            out,
            "    {}: {}: {} -> {}",
            visible(&one.location.to_string()),
            visible(&one.location.field),
            visible(&one.from),
            visible(&one.to)
        )?;
    }
    Ok(())
}

/// The host that a label names.
fn host(label: &str) -> String {
    let rest = label.split_once("://").map_or(label, |(_, rest)| rest);
    let authority = rest.split(['/', '#', '?']).next().unwrap_or(rest);
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    if label.starts_with("file://") {
        "this machine".to_owned()
    } else {
        host.split(':').next().unwrap_or(host).to_owned()
    }
}
