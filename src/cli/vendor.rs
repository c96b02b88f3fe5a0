//! `vendor`: arguments to a request.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueHint};

use super::localize::{HowArgs, text};
use crate::commands::localize::{Request, What};
use crate::destination::To;
use crate::message::failure::Result;

/// Arguments of `vendor`.
#[derive(Debug, Clone, Args)]
pub(super) struct VendorArgs {
    /// Kustomization roots to begin at [default: all]
    ///
    /// Seen from here or, as `:/apps/web`, from the top of the repository.
    #[arg(value_name = "PATH", value_hint = ValueHint::DirPath)]
    paths: Vec<PathBuf>,

    #[command(flatten)]
    how: HowArgs,
}

/// Localizes the working tree, and prints the result.
pub(super) fn run(args: &VendorArgs) -> ExitCode {
    args.how.run(request(args))
}

fn request(args: &VendorArgs) -> Result<Request> {
    let paths = args.paths.iter().map(|given| text(given, "a path"));
    let what = What::InPlace { targets: paths.collect::<Result<Vec<String>>>()? };
    Ok(args.how.request(what, To::Disk))
}
