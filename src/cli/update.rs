//! `update`: arguments to a request.

use std::process::ExitCode;

use clap::Args;

use super::args::{FetchArgs, OutputArgs};
use super::tell::tell;
use crate::commands::update::{Request, update};

/// Arguments of `update`.
#[derive(Debug, Clone, Args)]
pub(super) struct UpdateArgs {
    /// What to resolve again: a URL of the lock with or without its ref, or the beginning of one
    /// [default: all]
    pub(super) url: Vec<String>,

    /// Accept moved tags, and changed files whose URL names a version
    #[arg(long)]
    pub(super) accept_moved: bool,

    #[command(flatten)]
    pub(super) fetch: FetchArgs,

    #[command(flatten)]
    pub(super) output: OutputArgs,
}

/// Runs `update` and prints its result.
pub(super) fn run(args: &UpdateArgs) -> ExitCode {
    let request = Request {
        urls: args.url.clone(),
        accept_moved: args.accept_moved,
        fetch: args.fetch.fetching(&args.output),
        dry_run: args.fetch.dry_run,
        strict: args.output.strict.clone(),
    };
    tell(&args.output, update(&request))
}
