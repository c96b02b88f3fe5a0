//! `check`: opens the files to check, applies the rules to them, and reports the findings.

mod github;
mod gitlab;
mod human;
mod issue;
mod sarif;
#[cfg(test)]
mod tests;

use clap::{ArgGroup, Args, ValueHint};

use super::localize::KustomizeArgs;
use super::output::{Done, Format, Json as _, Outcome, OutputArgs, Shown};
use super::{json, messages};
use crate::check::Checked;
use crate::check::build::CheckBuildOptions;
use crate::check::gate::{Base, check};
use crate::git::Snapshot;
use crate::message::failure::{Failure, Result};
use crate::message::finding::Finding;
use crate::message::redact::inert;
use crate::record::sha256_hex;
use crate::workspace::repository_offline;

/// Arguments of `check`.
#[derive(Debug, Clone, Args)]
#[command(group = ArgGroup::new("source"))]
pub(super) struct CheckArgs {
    /// Check the index, as hooks do: what would be committed [default: the working tree]
    #[arg(long, group = "source")]
    staged: bool,

    /// Check a commit
    ///
    /// Works in a bare repository.
    #[arg(long, group = "source", value_name = "REV")]
    rev: Option<String>,

    /// Report only what is new since the merge base with REV, by the configuration of REV
    ///
    /// An exception that the change adds covers nothing new in it. What the change adds to the locks is shown as `new
    /// in the lock`, and what it does to the configuration as `new in the configuration`. For gates.
    #[arg(long, value_name = "REV")]
    base: Option<String>,

    /// Also build what is checked (with --base, what the change affects), and check the output
    ///
    /// Fetches what the lock holds and nothing else. Needs kustomize.
    #[arg(long, conflicts_with = "staged")]
    build: bool,

    /// With --build: use only what lock and cache hold
    #[arg(long, requires = "build")]
    offline: bool,

    #[command(flatten)]
    with: KustomizeArgs,

    /// Directories or kustomizations to begin at [default: all]
    ///
    /// Relative to the current directory or, as `:/apps/web`, to the top of the repository. Their references are
    /// followed. One without a kustomization is an error.
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    paths: Vec<String>,
}

impl CheckArgs {
    /// Checks the working tree, the index or a commit.
    pub(super) fn run(&self, output: &OutputArgs) -> Done {
        let snapshot = if self.staged { Snapshot::Index } else { Snapshot::of(self.rev.as_deref()) };
        let base = self.base.clone().map_or(Base::None, Base::Rev);
        let how = CheckBuildOptions { run: self.with.how(self.offline, output.quiet), compares_roots: false };
        // A failure before the check is reported in the requested format as well.
        let repo = repository_offline().map_err(Into::into);
        let checked = repo.and_then(|repo| check(&repo, &snapshot, &self.paths, &base, self.build.then_some(&how)));
        let mut checked = checked.unwrap_or_else(|failures| Checked::failed(snapshot, failures.0));
        if output.format == Format::Github {
            checked.failures.extend(summarize(&checked, output.verbose).err());
        }
        Ok(Box::new(checked))
    }
}

/// Adds the result to the summary of a step of GitHub Actions, which people see without opening the log. Does nothing
/// if the environment names no file for it.
fn summarize(checked: &Checked, verbose: bool) -> Result<()> {
    use std::io::Write;
    let Some(file) = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|file| !file.is_empty()) else {
        return Ok(());
    };
    std::fs::File::options()
        .append(true)
        .create(true)
        .open(&file)
        .and_then(|mut summary| summary.write_all(github::github_summary(checked, verbose).as_bytes()))
        .map_err(|error| Failure::new(format!("could not write the summary to `{}`: {error}", file.to_string_lossy())))
}

impl Outcome for Checked {
    fn text(&self, shown: Shown) -> String {
        human::human(self, shown)
    }

    /// The result in the requested format.
    fn report(&self, output: &OutputArgs) -> String {
        let text = match output.format {
            Format::Json => self.json(),
            Format::Sarif => sarif::sarif(self),
            Format::Gitlab => gitlab::gitlab(self),
            // Its lines are commands for GitHub Actions, which `inert` would take for text and disarm.
            Format::Github => return github::github(self, output.shown()),
            _ => self.text(output.shown()),
        };
        inert(&text)
    }

    fn stderr(&self, output: &OutputArgs) -> String {
        match output.format {
            // The log of a step is a single text, which already contains the failures.
            Format::Github => String::new(),
            _ => messages::failures(&self.failures),
        }
    }

    fn status(&self) -> u8 {
        Checked::status(self)
    }
}

/// How a check is written.
pub mod formats {
    pub use super::github::{github, github_summary};
    pub use super::gitlab::gitlab;
    pub use super::human::human;
    pub use super::sarif::sarif;
    pub use crate::commands::output::Shown;

    /// The result as one JSON object, with a final newline.
    pub fn json(checked: &crate::check::Checked) -> String {
        super::json::json_report(checked)
    }
}

/// An identity of a finding that stays the same if lines move, by which GitHub and GitLab track it.
fn fingerprint(finding: &Finding) -> String {
    let (rule, path, text) = finding.identity();
    sha256_hex(format!("{}\0{path}\0{text}", rule.id()).as_bytes())
}
