//! `tree`: the reference graph.

use std::process::ExitCode;

use clap::{Args, ValueEnum, ValueHint};

use super::output::{self, Color};
use crate::commands::check::What;
use crate::commands::tree::{Request, tree};
use crate::report::reference_tree as report;

/// Arguments of `tree`.
#[derive(Debug, Clone, Args)]
pub(super) struct TreeArgs {
    /// The directories to begin at [default: all roots that no other names]
    #[arg(value_name = "TARGET", value_hint = ValueHint::DirPath)]
    targets: Vec<String>,

    /// Show a commit [default: the working tree]
    #[arg(long, value_name = "REV")]
    rev: Option<String>,

    /// Show only remote and localized nodes, and the paths to them
    #[arg(long)]
    remote: bool,

    /// Show who names this: a URL with or without its ref, or the beginning of one
    ///
    /// Also through other remotes, as far as the lock tells.
    #[arg(long, value_name = "URL", conflicts_with = "remote")]
    invert: Option<String>,

    /// How the graph is written to standard output
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    format: Format,

    /// When to use colour
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Color::Auto, hide_short_help = true)]
    color: Color,
}

/// How the graph is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// As a tree; `(*)` marks what was shown before
    Text,
    /// For machines: one JSON object
    Json,
    /// For Markdown on GitHub and GitLab: a picture
    Mermaid,
}

/// Shows what the arguments say.
pub(super) fn run(args: &TreeArgs) -> ExitCode {
    args.color.apply();
    let request = Request {
        what: What::of(args.rev.as_deref()),
        targets: args.targets.clone(),
        remote: args.remote,
        invert: args.invert.clone(),
    };
    match tree(&request) {
        Ok(reference_tree) => {
            if reference_tree.nodes.is_empty() && args.format == Format::Text {
                output::say(if args.remote {
                    "nothing remote is referenced, and nothing was brought in\n"
                } else {
                    "there is no kustomization\n"
                });
            }
            output::print(&match args.format {
                Format::Text => report::text(&reference_tree, look()),
                Format::Json => report::json(&reference_tree),
                Format::Mermaid => report::mermaid(&reference_tree),
            });
            ExitCode::SUCCESS
        }
        Err(failures) => output::failed(&failures, args.format == Format::Json),
    }
}

/// Returns how the tree is shown. What is read on is not cut.
fn look() -> report::Look {
    let terminal = console::Term::stdout();
    report::Look { color: console::colors_enabled(), width: terminal.size_checked().map(|(_, columns)| columns.into()) }
}
