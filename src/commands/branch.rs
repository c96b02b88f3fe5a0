//! `branch`: the repository, localized, on a branch.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::localize::HowArgs;
use super::output::{Done, OutputArgs};
use crate::destination::BranchOptions;
use crate::localize::LocalizeMode;

/// Which commit is localized, and how the result is committed.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub(super) struct CommitArgs {
    /// The branch to commit to [default: localized/SOURCE-BRANCH]
    ///
    /// It must be given when there is no source branch: a detached HEAD, `--rev` with an id.
    #[arg(long = "branch", value_name = "NAME")]
    name: Option<String>,

    /// Also have the branch checked out in a linked worktree at DIR
    ///
    /// It is a new one, or the one that is there, if it has no changes.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, hide_short_help = true)]
    worktree: Option<PathBuf>,

    /// The commit to localize [default: HEAD]
    ///
    /// Works in a bare repository.
    #[arg(long, value_name = "REV", hide_short_help = true)]
    pub rev: Option<String>,

    /// Subject and body of the commit, as in `git commit`; each further one is a paragraph
    ///
    /// The trailers come below.
    #[arg(short, long, value_name = "TEXT", hide_short_help = true)]
    message: Vec<String>,
}

impl CommitArgs {
    /// The options of the branch to commit to. `push` is what `--push` was given: `None` without it.
    pub(super) fn options(&self, push: Option<Option<String>>) -> BranchOptions {
        let CommitArgs { name, worktree, message, .. } = self.clone();
        BranchOptions { name, worktree, message, push, rendered: false }
    }
}

/// Arguments of `branch`.
#[derive(Debug, Clone, Args)]
pub(super) struct BranchArgs {
    #[command(flatten)]
    commit: CommitArgs,

    /// Commit what each target and topmost root is built to, a file each, to rendered/SOURCE-BRANCH
    ///
    /// These are the files of `build --output`. Secrets are refused unless `rendered-secrets` is set.
    #[arg(long, conflicts_with = "no_verify")]
    rendered: bool,

    /// Fetch the branch, commit, and push; again if somebody else pushed first [default: the remote of the branch, else
    /// `origin`]
    ///
    /// Never forces. Works in a shallow clone, too.
    #[arg(long, value_name = "REMOTE", num_args = 0..=1, conflicts_with_all = ["offline", "dry_run"])]
    push: Option<Option<String>>,

    #[command(flatten)]
    how: HowArgs,
}

impl BranchArgs {
    /// Localizes the whole repository, or with `--rendered` builds it, and commits the result to a branch.
    pub(super) fn run(&self, output: &OutputArgs) -> Done {
        let branch = BranchOptions { rendered: self.rendered, ..self.commit.options(self.push.clone()) };
        self.how.localize(LocalizeMode::InPlace(Vec::new()), self.commit.rev.as_deref(), Some(branch), output.quiet)
    }
}
