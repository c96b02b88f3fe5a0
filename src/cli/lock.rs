//! `lock`: arguments to a request.

use std::process::ExitCode;

use clap::{Args, ValueHint};

use super::args::{FetchArgs, OutputArgs};
use super::check::added;
use super::output::say;
use super::tell::tell;
use crate::commands::Fetching;
use crate::commands::lock::{Request, lock, lock_and_allow};

/// Arguments of `lock`.
#[derive(Debug, Clone, Args)]
pub(super) struct LockArgs {
    /// Directories or kustomizations to begin at [default: all]
    ///
    /// Seen from here or, as `:/apps/web`, from the top of the repository.
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(super) paths: Vec<String>,

    #[command(flatten)]
    pub(super) fetch: FetchArgs,

    /// Lock what can be, and write an entry of `allow` for all else that `check` finds
    ///
    /// Each with `reason: TODO`, which is a warning of `check` until somebody says why. None for what does not answer
    /// today.
    #[arg(long, conflicts_with = "dry_run")]
    pub(super) add_allow: bool,

    /// Use only what lock and cache hold
    #[arg(long)]
    pub(super) offline: bool,

    #[command(flatten)]
    pub(super) output: OutputArgs,
}

/// Runs `lock` and prints its result.
pub(super) fn run(args: &LockArgs) -> ExitCode {
    let request = Request {
        paths: args.paths.clone(),
        fetch: Fetching { offline: args.offline, quiet: args.output.quiet },
        dry_run: args.fetch.dry_run,
    };
    let outcome = if args.add_allow {
        lock_and_allow(&request).map(|(outcome, count)| {
            if count > 0 {
                say(&added(count));
            }
            outcome
        })
    } else {
        lock(&request)
    };
    tell(&args.output, outcome)
}
