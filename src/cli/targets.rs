//! `targets`: what Flux, Argo CD and Fleet deploy from the repository.

use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::output;
use crate::commands::check::What;
use crate::commands::targets::build;
use crate::commands::targets::{Request, generate_paths, targets};
use crate::report::targets as report;

/// Arguments of `targets`.
#[derive(Debug, Clone, Args)]
pub(super) struct TargetsArgs {
    /// Look at a commit [default: the working tree]
    #[arg(long, value_name = "REV")]
    rev: Option<String>,

    /// Print the annotation that Argo CD needs for each application to notice every change
    #[arg(long, conflicts_with = "format")]
    manifest_generate_paths: bool,

    /// Build the target of this name as its engine does, and print the result
    #[arg(long, value_name = "NAME", conflicts_with_all = ["format", "manifest_generate_paths"])]
    build: Option<String>,

    /// How the targets are written to standard output
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    format: Format,
}

/// How the targets are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// For machines: one JSON object
    Json,
}

/// Shows what the arguments say.
pub(super) fn run(args: &TargetsArgs) -> ExitCode {
    let request = Request { what: What::of(args.rev.as_deref()) };
    if args.manifest_generate_paths {
        return match generate_paths(&request) {
            Ok(paths) => {
                output::print(&report::generate_paths(&paths));
                ExitCode::SUCCESS
            }
            Err(failures) => output::failed(&failures, false),
        };
    }
    if let Some(name) = &args.build {
        return match build(&request, name) {
            Ok(built) => {
                output::print(&String::from_utf8_lossy(&built));
                ExitCode::SUCCESS
            }
            Err(failures) => output::failed(&failures, false),
        };
    }
    match targets(&request) {
        Ok(targets) => {
            output::print(&match args.format {
                Format::Text => report::text(&targets),
                Format::Json => report::json(&targets),
            });
            ExitCode::SUCCESS
        }
        Err(failures) => output::failed(&failures, args.format == Format::Json),
    }
}
