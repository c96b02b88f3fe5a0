//! `update`: arguments to a request.

use std::process::ExitCode;

use clap::Args;

use super::args::{FetchArgs, OutputArgs};
use super::tell::tell;
use crate::commands::lock;
use crate::commands::update::{Outcome, Request, update};

/// Arguments of `update`.
#[derive(Debug, Clone, Args)]
pub(super) struct UpdateArgs {
    /// What to resolve again: a URL of the lock with or without its ref, or the beginning of one
    /// [default: all]
    pub(super) url: Vec<String>,

    /// Accept moved tags, and changed files whose URL names a version
    ///
    /// Those should not change: first find out why.
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
    match update(&request) {
        Ok(Outcome::Locked(outcome)) => tell(&args.output, Ok(outcome)),
        Ok(Outcome::Localized(outcome)) => tell(&args.output, Ok(*outcome)),
        Err(failures) => tell::<lock::Outcome>(&args.output, Err(failures)),
    }
}
