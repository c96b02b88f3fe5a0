//! `branch`: the repository, localized, on a branch.

use clap::Args;

use super::localize::{HowArgs, Request, What, localize};
use super::output::{Done, OutputArgs};
use crate::destination::BranchOptions;

/// Arguments of `branch`.
#[derive(Debug, Clone, Args)]
pub(super) struct BranchArgs {
    #[command(flatten)]
    branch: BranchOptions,

    /// Fetch the branch, commit, and push; start again if somebody else pushed first [default: the remote of the
    /// branch, else `origin`]
    ///
    /// Never forces. Works in a shallow clone, too.
    #[arg(long, value_name = "REMOTE", num_args = 0..=1, conflicts_with_all = ["offline", "dry_run"])]
    push: Option<Option<String>>,

    #[command(flatten)]
    how: HowArgs,
}

impl BranchArgs {
    pub(super) fn run(&self, output: &OutputArgs) -> Done {
        let branch = BranchOptions { push: self.push.clone(), ..self.branch.clone() };
        let what = What::InPlace(Vec::new());
        localize(&Request { what, branch: Some(&branch), how: &self.how, quiet: output.quiet })
    }
}
