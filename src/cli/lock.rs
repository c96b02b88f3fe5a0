//! `lock`: arguments to a request.

use std::process::ExitCode;

use clap::{Args, ValueHint};

use super::args::{FetchArgs, LeaveArgs, OutputArgs};
use super::tell::tell;
use crate::commands::Fetching;
use crate::commands::lock::{Request, lock};

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

    #[command(flatten)]
    pub(super) leave: LeaveArgs,

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
        leave_remote: args.leave.leave_remote.clone(),
        fetch: Fetching {
            offline: args.offline,
            ..args.fetch.fetching(&args.output)
        },
        dry_run: args.fetch.dry_run,
        strict: args.output.strict.clone(),
    };
    tell(&args.output, lock(&request))
}
