//! The arguments that commands share which reach the network.

use clap::Args;

use super::output::{Color, Format};

/// How remote references are brought in.
#[derive(Debug, Clone, Args)]
pub(super) struct FetchArgs {
    /// Say what would be done; may fetch into the cache, writes nothing else
    #[arg(long)]
    pub(super) dry_run: bool,
}

/// How results are shown, and what counts as one.
#[derive(Debug, Clone, Args)]
pub(super) struct OutputArgs {
    /// How the result is written to standard output
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Human, hide_short_help = true)]
    pub(super) format: Format,

    /// Treat warnings as errors: nothing is written, exit status 1
    #[arg(long, hide_short_help = true)]
    pub(super) strict: bool,

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
