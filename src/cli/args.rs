//! The arguments that commands share which reach the network.

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueHint};

use super::output::{Color, Format};
use crate::commands::Fetching;
use crate::config::Strict;
use crate::finding::WarningId;

/// What stays remote.
#[derive(Debug, Clone, Args)]
pub(super) struct LeaveArgs {
    /// Leave what is at URL, or below, remote, and do not insist on it, as an entry of `allow` with
    /// `leave: true` does; may be given several times
    ///
    /// Whatever its version. Kept in the lock.
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url, hide_short_help = true)]
    pub(super) leave_remote: Vec<String>,
}

/// How remote references are brought in.
#[derive(Debug, Clone, Args)]
pub(super) struct FetchArgs {
    /// Say what would be done; may fetch into the cache, writes nothing else
    #[arg(long)]
    pub(super) dry_run: bool,
}

impl FetchArgs {
    /// Returns what these arguments say about fetching.
    pub(super) fn fetching(&self, output: &OutputArgs) -> Fetching {
        Fetching {
            quiet: output.quiet,
            ..Fetching::default()
        }
    }
}

/// How results are shown, and what counts as one.
#[derive(Debug, Clone, Args)]
pub(super) struct OutputArgs {
    /// How the result is written to standard output
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Human, hide_short_help = true)]
    pub(super) format: Format,

    /// Take warnings for errors: nothing is written, exit status 1. All of them, or those with these
    /// ids, besides those that `strict` in the configuration names; may be given several times
    #[arg(long, value_name = "ID,…", value_parser = strict_ids(), value_delimiter = ',', num_args = 0..=1, require_equals = true, default_missing_value = Strict::ALL, hide_possible_values = true, hide_short_help = true)]
    pub(super) strict: Vec<String>,

    /// Say nothing but errors
    #[arg(short, long)]
    pub(super) quiet: bool,

    /// Say more: every file and every rewritten reference
    #[arg(short, long)]
    pub(super) verbose: bool,

    /// When to use colour
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Color::Auto, hide_short_help = true)]
    pub(super) color: Color,
}

/// Returns what `--strict` takes.
fn strict_ids() -> PossibleValuesParser {
    let ids = WarningId::ALL.iter().map(|warning| warning.id());
    PossibleValuesParser::new(ids.chain([Strict::ALL]))
}
