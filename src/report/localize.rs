//! The report of `localize`.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;

use super::build_check::{refusal, write_differences, write_proof};
use super::json::{JsonMessage, report};
use super::left::{write_accepted, write_left};
use super::remotes::write_changes;
use super::{Tell, by_id, counted, visible, write_warnings};
use crate::build::BuildCheck;
use crate::commands::Status;
use crate::commands::localize::{BranchOutcome, CopyOutcome, InPlaceOutcome, Localized, Outcome};
use crate::graph::Warning;
use crate::message::failure::{Failure, short, stage};
use crate::plan::Rewritten;
use crate::record::{Change, Left, Remote};

impl Tell for Outcome {
    fn human(&self, verbose: bool) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = match (self.status, &self.builds, &self.result) {
            (Status::Differs, Some(builds), _) => write_differences(&mut out, builds),
            (_, _, Localized::Copy(copied)) => self.write_copy(&mut out, copied, verbose),
            (_, _, Localized::InPlace(changed)) => self.write_in_place(&mut out, changed, verbose),
        };
        out
    }

    fn json(&self) -> String {
        report(&JsonOutcome {
            outcome: self.status,
            result: &self.result,
            branch: self.branch.as_ref(),
            changes: &self.changes,
            remotes: &self.remotes,
            left: &self.left,
            rewritten: &self.rewritten,
            warning_counts: by_id(&self.warnings),
            warnings: self.warnings.iter().map(JsonMessage::from).collect(),
            verified: self.builds.as_ref(),
        })
    }

    fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    fn is_refused(&self) -> bool {
        self.status == Status::Warned
    }

    fn is_done(&self) -> bool {
        !matches!(self.status, Status::Differs | Status::Warned)
    }

    fn refusal(&self) -> Option<Failure> {
        self.builds.as_ref().and_then(refusal)
    }
}

/// The report about a copy.
impl Outcome {
    fn write_copy(&self, out: &mut String, copied: &CopyOutcome, verbose: bool) -> std::fmt::Result {
        let CopyOutcome { target, new_dir, files } = copied;
        let (target, new_dir) = (visible(target), visible(new_dir));
        let (branch, commit) = match &self.branch {
            Some(branch) => (format!(" on branch {}", branch.name), branch.short_tip()),
            None => (String::new(), String::new()),
        };
        match (self.status, &self.branch) {
            (Status::Written, Some(_)) => {
                writeln!(out, "localized {target} into {new_dir}{branch} ({commit})")?;
            }
            (Status::Unchanged, Some(branch)) => {
                writeln!(out, "nothing to do: branch {} ({commit}) holds {target} in {new_dir} already", branch.name)?
            }
            (Status::Written | Status::Unchanged, None) => {
                writeln!(out, "localized {target} into {new_dir}")?;
            }
            (Status::Warned | Status::Differs, _) => writeln!(out, "not localized: {target} into {new_dir}")?,
            (Status::DryRun, _) => {
                writeln!(out, "would localize {target} into {new_dir}{branch}")?;
            }
        }
        let bytes: u64 = files.values().sum();
        writeln!(
            out,
            "  {}, {bytes} bytes; {} rewritten",
            counted(files.len(), "file"),
            counted(self.rewritten.len(), "reference")
        )?;
        self.write_remotes(out)?;
        self.write_notes(out, verbose)?;
        if verbose || self.status == Status::DryRun {
            writeln!(out, "  files:")?;
            for (path, size) in files {
                writeln!(out, "    {} ({size})", visible(path))?;
            }
            write_rewritten(out, &self.rewritten)?;
        }
        if self.status == Status::Written && self.branch.is_some() {
            writeln!(out, "  to look at it: git show --stat {commit}")?;
        }
        match (self.status, &self.branch) {
            (Status::Written | Status::Unchanged, Some(_)) => write_left(out, &self.left),
            _ => Ok(()),
        }
    }

    /// Writes how it was built, what was accepted, and how many warnings there are.
    fn write_notes(&self, out: &mut String, verbose: bool) -> std::fmt::Result {
        if let Some(builds) = &self.builds {
            write_proof(out, builds, verbose)?;
        }
        write_accepted(out, &self.left)?;
        write_warnings(out, &self.warnings, verbose)
    }

    fn write_remotes(&self, out: &mut String) -> std::fmt::Result {
        if self.remotes.is_empty() {
            return writeln!(out, "  nothing was brought in");
        }
        let mut hosts: BTreeMap<String, usize> = BTreeMap::new();
        for remote in &self.remotes {
            *hosts.entry(host(&remote.label())).or_default() += 1;
        }
        let hosts: Vec<String> = hosts.iter().map(|(host, count)| format!("{host} ({count})")).collect();
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
                writeln!(out, "    moved: {} {} -> {}", visible(label), short(old.hex()), short(new.hex()))?;
            }
        }
        Ok(())
    }
}

/// The report about localizing in place.
impl Outcome {
    fn write_in_place(&self, out: &mut String, changed: &InPlaceOutcome, verbose: bool) -> std::fmt::Result {
        let InPlaceOutcome { updated, written, removed, .. } = changed;
        // What was found says it all.
        if self.status == Status::Warned {
            return Ok(());
        }
        if self.status == Status::Unchanged {
            return self.write_unchanged(out, *updated, verbose);
        }
        self.write_headline(out, changed)?;
        write_changes(out, &self.changes, &self.news)?;
        self.write_notes(out, verbose)?;
        if verbose || self.status == Status::DryRun {
            writeln!(out, "  files:")?;
            for (path, size) in written {
                writeln!(out, "    {} ({size})", visible(path))?;
            }
            for path in removed {
                writeln!(out, "    {} removed", visible(path))?;
            }
            write_rewritten(out, &self.rewritten)?;
        }
        if let (Status::Written, Some(branch)) = (self.status, &self.branch) {
            write_worktree(out, branch)?;
            writeln!(out, "  to look at it: git show --stat {}", branch.short_tip())?;
        } else if self.status == Status::Written {
            writeln!(out, "  to commit it:")?;
            for command in changed.commands() {
                writeln!(out, "    {command}")?;
            }
        }
        match &self.branch {
            Some(branch) => {
                write_left(out, &self.left)?;
                write_deployed(out, branch)
            }
            // `check` judges what people commit.
            None => Ok(()),
        }
    }

    fn write_unchanged(&self, out: &mut String, updated: bool, verbose: bool) -> std::fmt::Result {
        if let Some(branch) = &self.branch {
            writeln!(
                out,
                "nothing to do: branch {} ({}) holds {} localized already",
                visible(&branch.name),
                branch.short_tip(),
                short(&branch.source)
            )?;
            write_worktree(out, branch)?;
            self.write_notes(out, verbose)?;
            write_left(out, &self.left)?;
            return write_deployed(out, branch);
        }
        if updated {
            writeln!(out, "nothing to do: nothing has moved")?
        } else {
            writeln!(out, "nothing to do: nothing remote is referenced")?
        }
        write_accepted(out, &self.left)?;
        write_warnings(out, &self.warnings, verbose)
    }

    fn write_headline(&self, out: &mut String, changed: &InPlaceOutcome) -> std::fmt::Result {
        let InPlaceOutcome { targets, updated, written, removed, .. } = changed;
        let what = match (*updated, targets.as_slice(), &self.branch) {
            (true, _, _) => "what is localized".to_owned(),
            (false, [], Some(_)) => "the repository".to_owned(),
            (false, [], None) => "the working tree".to_owned(),
            (false, targets, _) => visible(&targets.join(", ")),
        };
        let would = match (*updated, self.status) {
            (true, Status::DryRun) => "would update",
            (true, _) => "updated",
            (false, Status::DryRun) => "would localize",
            (false, _) => "localized",
        };
        let place = match &self.branch {
            None => String::new(),
            Some(branch) => {
                let commit = match &branch.commit {
                    Some(_) => format!(" ({})", branch.short_tip()),
                    None => String::new(),
                };
                format!(" on branch {}{commit}", visible(&branch.name))
            }
        };
        let references = counted(self.rewritten.len(), "reference");
        let gone = removed.len();
        match &self.branch {
            // The commit lists what differs from the tip.
            Some(branch) => writeln!(
                out,
                "{would} {what}{place}: {references} rewritten, {} different from {}",
                counted(written.len() + gone, "file"),
                short(&branch.source)
            )?,
            None => writeln!(
                out,
                "{would} {what}: {} written, {references} rewritten, {gone} removed",
                counted(written.len(), "file"),
            )?,
        }
        Ok(())
    }
}

impl InPlaceOutcome {
    /// Returns the commands that lead to a commit: what is ignored would be left out without `-f`.
    fn commands(&self) -> Vec<String> {
        if self.stage.is_empty() {
            return Vec::new();
        }
        vec![stage(&self.stage), "git commit".to_owned()]
    }
}

impl BranchOutcome {
    /// Returns the abbreviated tip.
    fn short_tip(&self) -> String {
        short(self.commit.as_deref().unwrap_or_default()).to_owned()
    }
}

/// Writes where the branch is besides.
fn write_worktree(out: &mut String, branch: &BranchOutcome) -> std::fmt::Result {
    if let Some(directory) = &branch.worktree {
        writeln!(out, "  checked out at {}", visible(directory))?;
    }
    match &branch.pushed {
        Some(remote) => writeln!(out, "  pushed to {}", visible(remote)),
        None => Ok(()),
    }
}

/// Writes what is deployed from the branch.
fn write_deployed(out: &mut String, branch: &BranchOutcome) -> std::fmt::Result {
    match &branch.deployed {
        Some(deployed) => writeln!(out, "{}", visible(deployed)),
        None => Ok(()),
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
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    if label.starts_with("file://") {
        "this machine".to_owned()
    } else {
        host.split(':').next().unwrap_or(host).to_owned()
    }
}

#[derive(Serialize)]
struct JsonOutcome<'a> {
    outcome: Status,
    #[serde(flatten)]
    result: &'a Localized,
    #[serde(flatten)]
    branch: Option<&'a BranchOutcome>,
    changes: &'a [Change],
    remotes: &'a [Remote],
    left: &'a [Left],
    rewritten: &'a [Rewritten],
    warning_counts: BTreeMap<&'static str, usize>,
    warnings: Vec<JsonMessage<'a>>,
    verified: Option<&'a BuildCheck>,
}
