//! `update`: arguments to a request.

use std::process::ExitCode;

use clap::Args;

use super::args::{FetchArgs, OutputArgs};
use super::output::failures;
use super::tell::tell;
use crate::commands::update::{Outcome, Request, update};
use crate::commands::{Fetching, lock};
use crate::message::failure::Failures;

/// Arguments of `update`.
#[derive(Debug, Clone, Args)]
pub(super) struct UpdateArgs {
    /// What to resolve again: a URL of the lock with or without its ref, or the beginning of one
    /// [default: all]
    ///
    /// With `--to` also paths: the ref is written in and below them.
    pub(super) url: Vec<String>,

    /// Write this ref into the kustomizations that name the URL (all, or those below a PATH that is named as well), and
    /// lock what it is
    #[arg(long, value_name = "REF", requires = "url")]
    pub(super) to: Option<String>,

    #[command(flatten)]
    pub(super) fetch: FetchArgs,

    #[command(flatten)]
    pub(super) output: OutputArgs,
}

/// Runs `update` and prints its result.
pub(super) fn run(args: &UpdateArgs) -> ExitCode {
    let request = Request {
        urls: args.url.clone(),
        to: args.to.clone(),
        fetch: Fetching { quiet: args.output.quiet, ..Fetching::default() },
        dry_run: args.fetch.dry_run,
        strict: args.output.strict,
    };
    match update(&request) {
        Ok(Outcome::Locked(outcome)) => tell(&args.output, Ok(*outcome)),
        Ok(Outcome::Localized(outcome, kept)) => {
            let done = tell(&args.output, Ok(*outcome));
            if kept.is_empty() {
                return done;
            }
            failures(&Failures(kept));
            ExitCode::FAILURE
        }
        Err(failures) => tell::<lock::Outcome>(&args.output, Err(failures)),
    }
}
