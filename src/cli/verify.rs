//! `verify`: a localized commit against its lock and trailers.

use std::process::ExitCode;

use clap::Args;

use super::output::{self, Color, Format};
use crate::commands::verify::{Request, verify};
use crate::message::failure::Failures;
use crate::report::verify as report;

/// Arguments of `verify`.
#[derive(Debug, Clone, Args)]
pub(super) struct VerifyArgs {
    /// The commit, or a directory that `--no-commit` wrote [default: HEAD]
    rev: Option<String>,

    /// Only what lies in or below these [default: every record]
    #[arg(value_name = "PATH", last = true)]
    paths: Vec<String>,

    /// Ask each remote of the locks what it is now: ok, updated, moved, gone or unreachable
    ///
    /// Also for a lock at the top that only says what URLs are locked to, as on `main`.
    #[arg(long)]
    upstream: bool,

    /// Localize again from the source commit and the lock, and compare
    ///
    /// Bytes come from the cache or from upstream: this needs the network, or a warm cache.
    #[arg(long)]
    rebuild: bool,

    /// How the result is written to standard output
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Human)]
    format: Format,

    /// Say nothing but errors
    #[arg(short, long)]
    quiet: bool,

    /// When to use colour
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Color::Auto, hide_short_help = true)]
    color: Color,
}

/// Runs `verify` and prints its result.
pub(super) fn run(args: &VerifyArgs) -> ExitCode {
    args.color.apply();
    let json = args.format == Format::Json;
    let verified = match verify(&request(args)) {
        Ok(verified) => verified,
        Err(failures) => return output::failed(&failures, json),
    };
    let is_quiet = args.quiet && verified.status() == 0;
    match args.format {
        Format::Json => output::print(&report::json(&verified)),
        Format::Human if is_quiet => {}
        Format::Human => output::print(&report::human(&verified)),
    }
    output::failures(&Failures(verified.failures.clone()));
    ExitCode::from(verified.status())
}

fn request(args: &VerifyArgs) -> Request {
    Request {
        rev: args.rev.clone(),
        paths: args.paths.clone(),
        upstream: args.upstream,
        rebuild: args.rebuild,
        quiet: args.quiet,
    }
}
