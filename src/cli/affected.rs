//! `affected`: what a change touches.

use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::output;
use crate::commands::affected::{Request, affected};
use crate::report::affected as report;

/// Arguments of `affected`.
#[derive(Debug, Clone, Args)]
pub(super) struct AffectedArgs {
    /// The commit to compare with: its merge base with what is looked at
    #[arg(value_name = "BASE")]
    base: String,

    /// The commit to look at; uncommitted changes are ignored
    #[arg(long, value_name = "REV", default_value = "HEAD")]
    rev: String,

    /// How the result is written to standard output
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    format: Format,
}

/// How the result is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A line for each root, with one of the things that differ
    Text,
    /// For machines: one JSON object
    Json,
    /// The directories of the roots that there are, one a line, as for `xargs`
    Paths,
}

/// Shows what the arguments ask for.
pub(super) fn run(args: &AffectedArgs) -> ExitCode {
    let request = Request { base: args.base.clone(), rev: args.rev.clone() };
    match affected(&request) {
        Ok(outcome) => {
            match args.format {
                Format::Text => {
                    output::print(&report::text(&outcome));
                    output::say(&report::summary(&outcome));
                }
                Format::Json => output::print(&report::json(&outcome)),
                Format::Paths => output::print(&report::paths(&outcome)),
            }
            ExitCode::SUCCESS
        }
        Err(failures) => output::failed(&failures, args.format == Format::Json),
    }
}
