//! `branch`: arguments to a request.

use std::process::ExitCode;

use clap::Args;

use super::localize::{CommitArgs, HowArgs};
use crate::commands::localize::What;
use crate::destination::To;

/// Arguments of `branch`.
#[derive(Debug, Clone, Args)]
pub(super) struct BranchArgs {
    #[command(flatten)]
    commit: CommitArgs,

    /// Fetch the branch, commit, and push it; begin again where somebody else was faster [default: the remote of the
    /// branch, else `origin`]
    ///
    /// Never forces. Works in a shallow clone, too.
    #[arg(long, value_name = "REMOTE", num_args = 0..=1, conflicts_with_all = ["offline", "dry_run"])]
    push: Option<Option<String>>,

    #[command(flatten)]
    how: HowArgs,
}

/// Commits the repository, localized, and prints the result.
pub(super) fn run(args: &BranchArgs) -> ExitCode {
    let what = What::InPlace { targets: Vec::new() };
    let mut request = args.commit.request(&args.how, what);
    if let To::Branch(options) = &mut request.to {
        options.push.clone_from(&args.push);
    }
    args.how.run(Ok(request))
}
