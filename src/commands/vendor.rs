//! `vendor`: the working tree, localized where it stands.

use clap::{Args, ValueHint};

use super::localize::HowArgs;
use super::output::{Done, OutputArgs};
use crate::localize::LocalizeMode;

/// Arguments of `vendor`.
#[derive(Debug, Clone, Args)]
pub(super) struct VendorArgs {
    /// Kustomization roots to begin at [default: all]
    ///
    /// Relative to the current directory or, as `:/apps/web`, to the top of the repository.
    #[arg(value_name = "PATH", value_hint = ValueHint::DirPath)]
    paths: Vec<String>,

    #[command(flatten)]
    how: HowArgs,
}

impl VendorArgs {
    /// Localizes roots in the working tree.
    pub(super) fn run(&self, output: &OutputArgs) -> Done {
        self.how.localize(LocalizeMode::InPlace(self.paths.clone()), None, None, output.quiet)
    }
}
