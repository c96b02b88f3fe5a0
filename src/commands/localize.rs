//! A copy, `branch` and `vendor`: their common arguments, and the text about localizing and locking.

mod builds;
mod report;

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::News;
use super::diff::Diff;
use super::output::Done;
use super::usage::unknown_word;
use crate::build::program::Programs;
use crate::build::rendered::ProgramOptions;
use crate::destination::BranchOptions;
use crate::localize::{LocalizeMode, LocalizeOutcome, LocalizeRequest, PreparedRun, rendered};
use crate::message::failure::Failure;

/// Which kustomize builds, and how.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub(super) struct KustomizeArgs {
    /// The kustomize that builds [default: the environment variable KUSTOMIZE, else `kustomize` on
    /// PATH, else `kubectl`]
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub kustomize: Option<PathBuf>,

    /// Pass an extra argument to `kustomize build`, for example `--build-arg=--enable-helm`; may be given several times
    #[arg(long, value_name = "ARG", allow_hyphen_values = true, hide_short_help = true)]
    pub build_arg: Vec<String>,
}

impl KustomizeArgs {
    /// The programs that build, with their extra arguments.
    pub(super) fn programs(&self) -> Programs<'_> {
        Programs { kustomize: self.kustomize.as_deref(), helm: None, arguments: &self.build_arg }
    }

    /// How builds are run: with these programs, and the switches of the command.
    pub(super) fn how(&self, offline: bool, quiet: bool) -> ProgramOptions<'_> {
        ProgramOptions { programs: self.programs(), offline, quiet }
    }
}

/// How to localize, wherever the result goes.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub(super) struct HowArgs {
    /// Discard manual edits to generated files
    #[arg(long, hide_short_help = true)]
    overwrite: bool,

    /// Use only what lock, branch and cache hold
    #[arg(long)]
    offline: bool,

    /// Do not build original and result to compare them
    #[arg(long, conflicts_with_all = ["kustomize", "build_arg"], hide_short_help = true)]
    no_verify: bool,

    #[command(flatten)]
    with: KustomizeArgs,

    /// Show what would be done; may fetch into the cache, writes nothing else
    #[arg(long)]
    dry_run: bool,
}

impl HowArgs {
    /// Localizes the commit `rev`, or HEAD if that is `None`, onto `branch`. If that is `None`, it localizes the files
    /// on disk: where they are, or as a copy in a directory.
    pub(super) fn localize(
        &self,
        mode: LocalizeMode,
        rev: Option<&str>,
        branch: Option<BranchOptions>,
        quiet: bool,
    ) -> Done {
        let HowArgs { overwrite, no_verify, dry_run, .. } = *self;
        let request = LocalizeRequest {
            mode,
            rev,
            branch,
            overwrite,
            no_verify,
            dry_run,
            how: self.with.how(self.offline, quiet),
        };
        let locking = Locking::default();
        // A rendered branch has no files of the source, so nothing is planned or compared.
        if request.branch.as_ref().is_some_and(|branch| branch.rendered) {
            return Ok(Box::new(LocalizeReport { localized: rendered::render(&request)?, locking }));
        }
        let prepared = PreparedRun::of(&request).map_err(|failures| match &request.mode {
            // The TARGET may be a misspelled command, which explains the failure best. But not with `--rev`, because
            // that commit may have the directory, and not if a failure names a file that is wrong.
            LocalizeMode::Copy { target, new_dir, .. }
                if rev.is_none() && failures.0.iter().all(|failure| failure.location.is_none()) =>
            {
                unknown_word(target, new_dir.as_slice()).map_or(failures, Into::into)
            }
            _ => failures,
        })?;
        Ok(Box::new(LocalizeReport { localized: prepared.localize()?, locking }))
    }
}

/// The outcome of localizing, or of locking.
#[derive(Debug, Serialize)]
pub(super) struct LocalizeReport {
    #[serde(flatten)]
    pub localized: LocalizeOutcome,
    #[serde(flatten)]
    pub locking: Locking,
}

/// The additional results of `lock` and `update`; empty for a copy, `branch` and `vendor`.
#[derive(Debug, Default, Serialize)]
pub(super) struct Locking {
    /// The news that an update brings.
    #[serde(skip_serializing_if = "News::is_empty")]
    pub news: News,
    /// The entries that keep their old version, and why: their upstream did not answer or is not signed, a version
    /// moved, or both sides of a conflict changed them. Also the failure of a hook whose lock is not staged.
    #[serde(rename = "kept")]
    pub unmoved: Vec<Failure>,
    /// The entries that keep their version, because the new one is too young; with `--to PATTERN` also because a newer
    /// release is not signed, or a registry does not list its versions.
    #[serde(rename = "held")]
    pub held: Vec<Failure>,
    /// Errors of the tree itself, which hide the references behind them; also images, and charts without `helm`, which
    /// are not locked.
    pub unread: Vec<Failure>,
    /// The references that could not be resolved.
    pub unresolved: Vec<Failure>,
    /// The effects of the update on deployments, for `update --diff`.
    #[serde(rename = "diff", skip_serializing_if = "Option::is_none")]
    pub effects: Option<Diff>,
    /// Whether the lock was in conflict, and its two sides were merged.
    pub merged: bool,
}
