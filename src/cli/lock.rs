//! `lock`: arguments to a request.

use std::process::ExitCode;

use clap::{Args, ValueHint};

use super::args::{FetchArgs, OutputArgs};
use super::check::added;
use super::output::say;
use super::tell::tell;
use crate::commands::Fetching;
use crate::commands::add_allow;
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

    /// Write an entry of `allow` for each reference that cannot be resolved, and lock the rest
    ///
    /// Each with `reason: TODO`, which is a warning of `check` until somebody says why.
    #[arg(long)]
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
    let outcome = lock(&request).and_then(|outcome| {
        let failures = outcome.unresolved.failures.iter();
        let exceptions = failures.filter_map(|one| one.exception.as_deref().cloned());
        let exceptions = exceptions.filter(|_| args.add_allow);
        match add_allow(&exceptions.collect::<Vec<_>>())? {
            0 => Ok(outcome),
            count => {
                say(&added(count));
                lock(&request)
            }
        }
    });
    tell(&args.output, outcome)
}
