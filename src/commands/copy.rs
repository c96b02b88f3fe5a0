//! A copy of one kustomization with everything that it reaches.

use clap::{Args, ValueHint};

use super::branch::CommitArgs;
use super::localize::HowArgs;
use super::output::{Done, OutputArgs};
use crate::localize::LocalizeMode;
use crate::message::failure::Failure;

/// Arguments of a copy.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub(super) struct CopyArgs {
    /// The kustomization root to copy: a directory, or the URL of one in a git repository
    ///
    /// A directory is relative to the current one or, as `:/apps/web`, to the top of the repository. Write `./vendor`
    /// for one with the name of a command.
    #[arg(value_hint = ValueHint::DirPath)]
    target: Option<String>,

    /// Where the copy goes [default: localized-TARGET]
    ///
    /// For a URL the default is localized-NAME-REF.
    /// As `:/out` it is seen from the top of the repository. What is not safe in every path is replaced in the default,
    /// with a digest at the end. It must be given for the top of the repository and for a URL without a ref.
    #[arg(value_hint = ValueHint::DirPath)]
    new_dir: Option<String>,

    /// The directory that a local target may reach [default: the target]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    scope: Option<String>,

    /// Copy the files on disk to a directory, without a commit
    ///
    /// As `kustomize localize` does; needs no repository.
    #[arg(long, conflicts_with_all = ["name", "worktree", "rev", "message"])]
    no_commit: bool,

    #[command(flatten)]
    commit: CommitArgs,

    #[command(flatten)]
    how: HowArgs,
}

impl CopyArgs {
    /// Copies the target into a directory: on a branch, or on disk with `--no-commit`.
    pub(super) fn run(&self, output: &OutputArgs) -> Done {
        let mode = LocalizeMode::Copy {
            target: self.target.clone().ok_or_else(no_target)?,
            new_dir: self.new_dir.clone(),
            scope: self.scope.clone(),
        };
        let branch = (!self.no_commit).then(|| self.commit.options(None));
        self.how.localize(mode, self.commit.rev.as_deref(), branch, output.quiet)
    }
}

fn no_target() -> Failure {
    Failure::new("missing TARGET").hint("see all commands and options: git kustomize-localize -h")
}
