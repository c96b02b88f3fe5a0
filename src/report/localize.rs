//! The report of `localize`.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;

use super::build_check::{JsonBuildCheck, refusal, write_differences, write_proof};
use super::json::{JsonLeft, JsonMessage, JsonPlace, TOOL, Tool, render};
use super::left::{write_accepted, write_left};
use super::lock::name;
use super::remotes::{JsonChange, JsonRemote, remote, write_changes};
use super::{Tell, by_id, counted, visible, write_warnings};
use crate::commands::Status;
use crate::commands::localize::{BranchOutcome, CopyOutcome, InPlaceOutcome, Localized, Outcome};
use crate::failure::{Failure, short, stage};
use crate::plan::Rewritten;
use crate::record::{Change, Remote};
use crate::walk::Warning;

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
        match &self.result {
            Localized::Copy(copied) => render(&self.json_copy(copied)),
            Localized::InPlace(changed) => render(&self.json_in_place(changed)),
        }
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
    fn write_copy(
        &self,
        out: &mut String,
        copied: &CopyOutcome,
        verbose: bool,
    ) -> std::fmt::Result {
        let CopyOutcome {
            target,
            new_dir,
            files,
        } = copied;
        let (target, new_dir) = (visible(target), visible(new_dir));
        let (branch, commit) = match &self.branch {
            Some(branch) => (format!(" on branch {}", branch.name), branch.short_tip()),
            None => (String::new(), String::new()),
        };
        match (self.status, &self.branch) {
            (Status::Written, Some(_)) => {
                writeln!(out, "localized {target} into {new_dir}{branch} ({commit})")?;
            }
            (Status::Unchanged, Some(branch)) => writeln!(
                out,
                "nothing to do: branch {} ({commit}) holds {target} in {new_dir} already",
                branch.name
            )?,
            (Status::Written | Status::Unchanged, None) => {
                writeln!(out, "localized {target} into {new_dir}")?;
            }
            (Status::Warned | Status::Differs, _) => writeln!(
                out,
                "not localized: {target} into {new_dir} comes with warnings"
            )?,
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

    fn json_copy<'a>(&'a self, copied: &'a CopyOutcome) -> JsonCopy<'a> {
        let CopyOutcome {
            target,
            new_dir,
            files,
        } = copied;
        let branch = self.branch.as_ref();
        let outcome = match (self.status, branch) {
            (Status::Written, Some(_)) => "committed",
            (status, _) => name(status),
        };
        let tip = branch.and_then(|branch| branch.tip.as_ref());
        let is_told = !matches!(self.status, Status::Differs | Status::Warned);
        JsonCopy {
            version: 1,
            tool: TOOL,
            outcome,
            target,
            new_directory: new_dir,
            branch: branch
                .filter(|_| is_told)
                .map(|branch| branch.name.as_str()),
            commit: tip.map(|(commit, _)| commit.as_str()),
            tree: tip.map(|(_, tree)| tree.as_str()),
            source: branch
                .filter(|_| tip.is_some())
                .map(|branch| branch.source.as_str()),
            remotes: self.remotes.iter().map(remote).collect(),
            left: self.left.iter().map(JsonLeft::from).collect(),
            files: files
                .iter()
                .map(|(path, size)| JsonFile { path, size: *size })
                .collect(),
            rewritten: self.rewritten.iter().map(JsonRewritten::from).collect(),
            warning_counts: by_id(&self.warnings),
            warnings: self.warnings.iter().map(JsonMessage::from).collect(),
            verified: self.builds.as_ref().map(JsonBuildCheck::from),
        }
    }
}

/// The report about localizing in place.
impl Outcome {
    fn write_in_place(
        &self,
        out: &mut String,
        changed: &InPlaceOutcome,
        verbose: bool,
    ) -> std::fmt::Result {
        let InPlaceOutcome {
            updated,
            written,
            removed,
            ..
        } = changed;
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
            writeln!(
                out,
                "  to look at it: git show --stat {}",
                branch.short_tip()
            )?;
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
        let InPlaceOutcome {
            targets,
            updated,
            written,
            removed,
            ..
        } = changed;
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
                let commit = match &branch.tip {
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

    fn json_in_place<'a>(&'a self, changed: &'a InPlaceOutcome) -> JsonInPlace<'a> {
        let InPlaceOutcome {
            targets,
            written,
            removed,
            ..
        } = changed;
        let branch = self.branch.as_ref();
        let tip = branch.and_then(|branch| branch.tip.as_ref());
        JsonInPlace {
            version: 1,
            tool: TOOL,
            outcome: name(self.status),
            in_place: true,
            targets,
            branch: branch.map(|branch| branch.name.as_str()),
            commit: tip.map(|(commit, _)| commit.as_str()),
            source: branch.map(|branch| branch.source.as_str()),
            pushed: branch.and_then(|branch| branch.pushed.as_deref()),
            changes: self.changes.iter().map(JsonChange::from).collect(),
            remotes: self.remotes.iter().map(remote).collect(),
            left: self.left.iter().map(JsonLeft::from).collect(),
            files: written
                .iter()
                .map(|(path, size)| JsonFile { path, size: *size })
                .collect(),
            removed,
            rewritten: self.rewritten.iter().map(JsonRewritten::from).collect(),
            commands: changed.commands(),
            warning_counts: by_id(&self.warnings),
            warnings: self.warnings.iter().map(JsonMessage::from).collect(),
            verified: self.builds.as_ref().map(JsonBuildCheck::from),
        }
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
        let tip = self.tip.as_ref();
        tip.map_or_else(String::new, |(commit, _)| short(commit).to_owned())
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
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    if label.starts_with("file://") {
        "this machine".to_owned()
    } else {
        host.split(':').next().unwrap_or(host).to_owned()
    }
}

#[derive(Serialize)]
struct JsonCopy<'a> {
    version: u32,
    tool: Tool,
    outcome: &'static str,
    target: &'a str,
    new_directory: &'a str,
    branch: Option<&'a str>,
    commit: Option<&'a str>,
    tree: Option<&'a str>,
    source: Option<&'a str>,
    remotes: Vec<JsonRemote>,
    left: Vec<JsonLeft<'a>>,
    files: Vec<JsonFile<'a>>,
    rewritten: Vec<JsonRewritten<'a>>,
    warning_counts: BTreeMap<&'static str, usize>,
    warnings: Vec<JsonMessage<'a>>,
    verified: Option<JsonBuildCheck<'a>>,
}

#[derive(Serialize)]
struct JsonInPlace<'a> {
    version: u32,
    tool: Tool,
    outcome: &'static str,
    in_place: bool,
    targets: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pushed: Option<&'a str>,
    changes: Vec<JsonChange<'a>>,
    remotes: Vec<JsonRemote>,
    left: Vec<JsonLeft<'a>>,
    files: Vec<JsonFile<'a>>,
    removed: &'a [String],
    rewritten: Vec<JsonRewritten<'a>>,
    commands: Vec<String>,
    warning_counts: BTreeMap<&'static str, usize>,
    warnings: Vec<JsonMessage<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verified: Option<JsonBuildCheck<'a>>,
}

#[derive(Serialize)]
struct JsonFile<'a> {
    path: &'a str,
    size: u64,
}

#[derive(Serialize)]
struct JsonRewritten<'a> {
    /// The file in NEW_DIR.
    path: &'a str,
    #[serde(flatten)]
    place: JsonPlace<'a>,
    from: &'a str,
    to: &'a str,
}

impl<'a> From<&'a Rewritten> for JsonRewritten<'a> {
    fn from(one: &'a Rewritten) -> Self {
        JsonRewritten {
            path: &one.path,
            place: (&one.location).into(),
            from: &one.from,
            to: &one.to,
        }
    }
}
