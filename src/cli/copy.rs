//! A copy: arguments to a request.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueHint};

use super::localize::{CommitArgs, HowArgs, text};
use crate::commands::localize::{Request, What};
use crate::destination::To;
use crate::git::LocalRepo;
use crate::message::failure::{Failure, Result};
use crate::message::redact;

/// Arguments of a copy.
#[derive(Debug, Clone, Args)]
pub(super) struct CopyArgs {
    /// The kustomization root to copy: a directory, or the URL of one in a git repository
    ///
    /// A directory is seen from here or, as `:/apps/web`, from the top of the repository. One that is called as a command
    /// is written `./vendor`.
    #[arg(value_hint = ValueHint::DirPath)]
    target: Option<String>,

    /// Where the copy goes [default: localized-TARGET]
    ///
    /// For a URL the default is localized-NAME-REF.
    /// As `:/out` it is seen from the top of the repository. What is not safe in every path is replaced in the default,
    /// with a digest at the end. It must be given for the top of the repository and for a URL without a ref.
    #[arg(value_hint = ValueHint::DirPath)]
    new_dir: Option<PathBuf>,

    /// What is too much: clap would take it for a command.
    #[arg(hide = true)]
    more: Vec<String>,

    /// What a local target may reach: a directory [default: the target]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    scope: Option<String>,

    /// Write to disk, from the files on disk, and commit nothing
    ///
    /// As `kustomize localize` does; needs no repository.
    #[arg(long, conflicts_with_all = ["branch", "worktree", "rev", "message"])]
    no_commit: bool,

    #[command(flatten)]
    commit: CommitArgs,

    #[command(flatten)]
    how: HowArgs,
}

/// Copies, and prints the result.
pub(super) fn run(args: &CopyArgs) -> ExitCode {
    args.how.run(request(args))
}

fn request(args: &CopyArgs) -> Result<Request> {
    if let Some(more) = args.more.first() {
        let more = format!("`{}` is one argument too many", redact::text(more));
        return Err(Failure::new(more).hint("name one TARGET and one NEW_DIR"));
    }
    let new_dir = args.new_dir.as_deref();
    let what = What::Copy {
        target: args.target.clone().ok_or_else(nothing_named)?,
        new_dir: new_dir.map(|given| text(given, "NEW_DIR")).transpose()?,
        scope: args.scope.clone(),
    };
    let mut request = args.commit.request(&args.how, what);
    if args.no_commit {
        request.to = To::Disk;
    }
    Ok(request)
}

/// Refuses to guess what to do, and says what there is to do here.
fn nothing_named() -> Failure {
    const ALL: &str = "see all commands and options: git kustomize-localize -h";
    let failure = Failure::new("no command and no TARGET is given");
    if matches!(LocalRepo::discover_offline(), Ok(None)) {
        return failure
            .hint("this is not a git repository: run it in one")
            .hint("copy a kustomization with all it needs, here: git kustomize-localize TARGET --no-commit")
            .hint(ALL);
    }
    failure
        .hint("list remote references, and change nothing: git kustomize-localize check")
        .hint("keep the URLs, and lock what they mean now: git kustomize-localize lock")
        .hint("commit the repository without URLs, on a branch: git kustomize-localize branch")
        .hint("vendor remote references in the working tree: git kustomize-localize vendor")
        .hint("copy one kustomization with all it needs, on a branch: git kustomize-localize TARGET")
        .hint(ALL)
}
