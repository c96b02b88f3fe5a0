//! `verify`: a localized commit against its lock and trailers.

use std::process::ExitCode;

use clap::Args;

use super::output::{self, Color, Format};
use crate::commands::verify::{Request, verify};
use crate::failure::Failures;
use crate::report::verify as report;

/// Arguments of `verify`.
#[derive(Debug, Clone, Args)]
#[command(group(clap::ArgGroup::new("network").args(["upstream", "rebuild"]).multiple(true)))]
pub(super) struct VerifyArgs {
    /// The commit, or a directory that `--no-commit` wrote [default: HEAD]
    rev: Option<String>,

    /// Only what lies in or below these [default: every record]
    #[arg(value_name = "PATH", last = true)]
    paths: Vec<String>,

    /// Accept changes to your own files since the record was made
    ///
    /// As on a branch that took the localized one in by a merge, a squash or a pick: what was localized must be what it
    /// was.
    #[arg(long)]
    own_changes: bool,

    /// Require a good signature of the commit, as `git verify-commit` says
    #[arg(long)]
    require_signature: bool,

    /// Ask each remote of the locks what it is now: ok, updated, moved, gone or unreachable
    ///
    /// Also for a lock at the top that only says what URLs are locked to, as on `main`.
    #[arg(long)]
    upstream: bool,

    /// Ask only for what is new since BASE, and verify nothing else
    ///
    /// New is what the locks of BASE do not list, or list otherwise. For gates.
    #[arg(long, value_name = "BASE", requires = "upstream", conflicts_with_all = ["rebuild", "require_signature", "own_changes"])]
    since: Option<String>,

    /// Localize again from the source commit and the lock, and compare
    ///
    /// Bytes come from the cache or from upstream: this needs the network, or a warm cache.
    #[arg(long)]
    rebuild: bool,

    /// Give up on one repository or file after this time [default: 300]
    #[arg(long, value_name = "SECONDS", value_parser = super::args::seconds, requires = "network", hide_short_help = true)]
    timeout: Option<u64>,

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
        own_changes: args.own_changes,
        require_signature: args.require_signature,
        upstream: args.upstream,
        since: args.since.clone(),
        rebuild: args.rebuild,
        timeout: args.timeout.map(std::time::Duration::from_secs),
        quiet: args.quiet,
    }
}
