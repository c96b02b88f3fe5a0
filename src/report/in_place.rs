//! What is said about localizing in place.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;

use super::build_check::{JsonBuildCheck, refusal, write_differences, write_proof};
use super::human::write_rewritten;
use super::json::{
    JsonFile, JsonLeft, JsonMessage, JsonRemote, JsonRewritten, TOOL, Tool, remote, render,
};
use super::left::{write_accepted, write_left};
use super::lock::{JsonChange, write_changes};
use super::{LockOutcome, Tell, by_id, counted, visible, write_warnings};
use crate::build_check::BuildCheck;
use crate::config::Strict;
use crate::failure::{Failure, pathspec, short};
use crate::localize::Rewritten;
use crate::record::{Change, Left, Remote};
use crate::walk::Warning;

/// What came of localizing in place.
#[derive(Debug, Clone)]
pub struct InPlaceReport {
    /// What happened to the working tree.
    pub outcome: LockOutcome,
    /// Whether what was localized was brought in again, and nothing else.
    pub updated: bool,
    /// The roots that were named; all when there are none.
    pub targets: Vec<String>,
    /// What the lock holds.
    pub remotes: Vec<Remote>,
    /// What stays remote.
    pub left: Vec<Left>,
    /// What is different about that.
    pub changes: Vec<Change>,
    /// The files that were written, with the number of their bytes, in their order.
    pub written: Vec<(String, u64)>,
    /// The files that were removed.
    pub removed: Vec<String>,
    /// The references that were changed.
    pub rewritten: Vec<Rewritten>,
    /// What `git add` has to be given, from the top.
    pub stage: Vec<String>,
    /// What works but should be known.
    pub warnings: Vec<Warning>,
    /// Which warnings are errors.
    pub strict: Strict,
    /// What came of building the affected roots; none where no root is affected.
    pub proof: Option<BuildCheck>,
    /// The branch that this is about; none for the working tree.
    pub branch: Option<OnBranch>,
}

/// Where the repository is committed, localized in place.
#[derive(Debug, Clone)]
pub struct OnBranch {
    /// The short name of the branch.
    pub name: String,
    /// Its tip, unless nothing was or is committed.
    pub commit: Option<String>,
    /// The source commit.
    pub source: String,
    /// The linked worktree that holds it as well, as it was named.
    pub worktree: Option<String>,
}

impl Tell for InPlaceReport {
    fn human(&self, verbose: bool) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut out, verbose);
        out
    }

    fn json(&self) -> String {
        render(&JsonInPlace {
            version: 1,
            tool: TOOL,
            outcome: if self.differs() {
                "differs"
            } else {
                self.outcome.name()
            },
            in_place: true,
            targets: &self.targets,
            branch: self.branch.as_ref().map(|branch| branch.name.as_str()),
            commit: self
                .branch
                .as_ref()
                .and_then(|branch| branch.commit.as_deref()),
            source: self.branch.as_ref().map(|branch| branch.source.as_str()),
            changes: self.changes.iter().map(JsonChange::from).collect(),
            remotes: self.remotes.iter().map(remote).collect(),
            left: self.left.iter().map(JsonLeft::from).collect(),
            files: self
                .written
                .iter()
                .map(|(path, size)| JsonFile { path, size: *size })
                .collect(),
            removed: &self.removed,
            rewritten: self.rewritten.iter().map(JsonRewritten::from).collect(),
            commands: self.commands(),
            warning_counts: by_id(&self.warnings),
            warnings: self.warnings.iter().map(JsonMessage::from).collect(),
            verified: self.proof.as_ref().map(JsonBuildCheck::from),
        })
    }

    fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    fn refused(&self) -> Option<&Strict> {
        (self.outcome == LockOutcome::Warned).then_some(&self.strict)
    }

    fn is_done(&self) -> bool {
        !self.differs() && self.outcome != LockOutcome::Warned
    }

    fn refusal(&self) -> Option<Failure> {
        self.proof.as_ref().and_then(refusal)
    }
}

impl InPlaceReport {
    /// Says whether some root would not build to what it builds to: then nothing was written.
    fn differs(&self) -> bool {
        self.proof.as_ref().is_some_and(BuildCheck::differs)
    }

    /// Returns the commands that lead to a commit: what is ignored would be left out without `-f`.
    fn commands(&self) -> Vec<String> {
        if self.stage.is_empty() {
            return Vec::new();
        }
        let paths: Vec<String> = self.stage.iter().map(|path| pathspec(path)).collect();
        vec![
            format!("git add -f -- {}", paths.join(" ")),
            "git commit".to_owned(),
        ]
    }

    fn write(&self, out: &mut String, verbose: bool) -> std::fmt::Result {
        if let Some(proof) = self.proof.as_ref().filter(|proof| proof.differs()) {
            return write_differences(out, proof);
        }
        if let (LockOutcome::Unchanged, Some(branch)) = (self.outcome, &self.branch) {
            writeln!(
                out,
                "nothing to do: branch {} ({}) holds {} localized already",
                visible(&branch.name),
                short(branch.commit.as_deref().unwrap_or_default()),
                short(&branch.source)
            )?;
            write_worktree(out, branch)?;
            if let Some(proof) = &self.proof {
                write_proof(out, proof)?;
            }
            write_accepted(out, &self.left)?;
            write_warnings(out, &self.warnings)?;
            return write_left(out, &self.left);
        }
        if self.outcome == LockOutcome::Unchanged {
            if self.updated {
                writeln!(out, "nothing to do: nothing has moved")?
            } else {
                writeln!(out, "nothing to do: nothing remote is referenced")?
            }
            write_accepted(out, &self.left)?;
            return write_warnings(out, &self.warnings);
        }
        let what = match (self.updated, self.targets.as_slice()) {
            (true, _) => "what is localized".to_owned(),
            (false, []) => "the repository in place".to_owned(),
            (false, targets) => format!("{} in place", visible(&targets.join(", "))),
        };
        let would = match (self.updated, self.outcome) {
            (_, LockOutcome::Warned) => "not done, because it comes with warnings:",
            (true, LockOutcome::DryRun) => "would update",
            (true, _) => "updated",
            (false, LockOutcome::DryRun) => "would localize",
            (false, _) => "localized",
        };
        let place = match &self.branch {
            None => String::new(),
            Some(branch) => {
                let commit = branch.commit.as_deref().map(short);
                let commit = commit.map_or(String::new(), |commit| format!(" ({commit})"));
                format!(" on branch {}{commit}", visible(&branch.name))
            }
        };
        let references = counted(self.rewritten.len(), "reference");
        let removed = self.removed.len();
        match &self.branch {
            // What is other than at the tip is told by the commit.
            Some(branch) => writeln!(
                out,
                "{would} {what}{place}: {references} rewritten, {} other than in {}",
                counted(self.written.len() + removed, "file"),
                short(&branch.source)
            )?,
            None => writeln!(
                out,
                "{would} {what}: {} written, {references} rewritten, {removed} removed",
                counted(self.written.len(), "file"),
            )?,
        }
        write_changes(out, &self.changes)?;
        if let Some(proof) = &self.proof {
            write_proof(out, proof)?;
        }
        write_accepted(out, &self.left)?;
        write_warnings(out, &self.warnings)?;
        if verbose || self.outcome == LockOutcome::DryRun {
            writeln!(out, "  files:")?;
            for (path, size) in &self.written {
                writeln!(out, "    {} ({size})", visible(path))?;
            }
            for path in &self.removed {
                writeln!(out, "    {} removed", visible(path))?;
            }
            write_rewritten(out, &self.rewritten)?;
        }
        if let (LockOutcome::Written, Some(branch)) = (self.outcome, &self.branch) {
            let commit = short(branch.commit.as_deref().unwrap_or_default());
            write_worktree(out, branch)?;
            writeln!(out, "  to look at it: git show --stat {commit}")?;
        } else if self.outcome == LockOutcome::Written {
            writeln!(out, "  to commit it:")?;
            for command in self.commands() {
                writeln!(out, "    {command}")?;
            }
        }
        match self.branch {
            Some(_) => write_left(out, &self.left),
            // What people commit is judged by `check`.
            None => Ok(()),
        }
    }
}

/// Says where the branch is checked out.
fn write_worktree(out: &mut String, branch: &OnBranch) -> std::fmt::Result {
    match &branch.worktree {
        Some(directory) => writeln!(out, "  checked out at {}", visible(directory)),
        None => Ok(()),
    }
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
