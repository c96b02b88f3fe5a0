//! The arguments that commands share which localize.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueHint};

use super::args::{FetchArgs, OutputArgs};
use super::tell::tell;
use crate::commands::localize::{Request, What, localize};
use crate::commands::{Builds, Fetching};
use crate::destination::{BranchOptions, To};
use crate::message::failure::{Failure, Result};

/// How to localize, wherever the result goes.
#[derive(Debug, Clone, Args)]
pub(super) struct HowArgs {
    /// Discard manual edits to generated files
    #[arg(long, hide_short_help = true)]
    overwrite: bool,

    /// Use only what lock, branch and cache hold
    #[arg(long)]
    offline: bool,

    #[command(flatten)]
    verify: VerifyArgs,

    #[command(flatten)]
    fetch: FetchArgs,

    #[command(flatten)]
    output: OutputArgs,
}

/// What is committed, and where.
#[derive(Debug, Clone, Args)]
pub(super) struct CommitArgs {
    /// The branch to commit to [default: localized/SOURCE-BRANCH]
    ///
    /// It must be given when there is no source branch: a detached HEAD, `--rev` with an id.
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,

    /// Also have the branch checked out in a linked worktree at DIR
    ///
    /// It is a new one, or the one that is there, if it has no changes.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, hide_short_help = true)]
    worktree: Option<PathBuf>,

    /// The commit to localize [default: HEAD]
    ///
    /// Works in a bare repository.
    #[arg(long, value_name = "REV", hide_short_help = true)]
    rev: Option<String>,

    /// Subject and body of the commit, as in `git commit`; each further one is a paragraph
    ///
    /// The trailers come below.
    #[arg(short, long, value_name = "TEXT", hide_short_help = true)]
    message: Vec<String>,
}

/// How the result is compared with the original.
#[derive(Debug, Clone, Args)]
struct VerifyArgs {
    /// Do not build original and result to compare them
    #[arg(long, hide_short_help = true)]
    no_verify: bool,

    /// The kustomize that builds [default: the environment variable KUSTOMIZE, else `kustomize` on
    /// PATH, else `kubectl`]
    #[arg(long, value_name = "FILE", conflicts_with = "no_verify", hide_short_help = true)]
    kustomize: Option<PathBuf>,

    /// Pass an extra argument to both builds, for example `--build-arg=--enable-helm`; may be given several times
    #[arg(long, value_name = "ARG", allow_hyphen_values = true, conflicts_with = "no_verify", hide_short_help = true)]
    build_arg: Vec<String>,
}

impl VerifyArgs {
    fn builds(&self) -> Builds {
        Builds { skip: self.no_verify, program: self.kustomize.clone(), arguments: self.build_arg.clone() }
    }
}

impl HowArgs {
    /// Localizes, and prints the result.
    pub(super) fn run(&self, request: Result<Request>) -> ExitCode {
        let outcome = request.map_err(Into::into);
        tell(&self.output, outcome.and_then(|request| localize(&request)))
    }

    /// Returns the request for this.
    pub(super) fn request(&self, what: What, to: To) -> Request {
        Request {
            what,
            to,
            rev: None,
            overwrite: self.overwrite,
            dry_run: self.fetch.dry_run,
            fetch: Fetching { offline: self.offline, quiet: self.output.quiet },
            builds: self.verify.builds(),
            strict: self.output.strict,
        }
    }
}

impl CommitArgs {
    /// Returns the request to commit this.
    pub(super) fn request(&self, how: &HowArgs, what: What) -> Request {
        let to = To::Branch(BranchOptions {
            name: self.branch.clone(),
            worktree: self.worktree.clone(),
            message: self.message.clone(),
            push: None,
        });
        Request { rev: self.rev.clone(), ..how.request(what, to) }
    }
}

/// Returns a path of the command line as text.
pub(super) fn text(given: &Path, what: &str) -> Result<String> {
    let text = given.to_str().map(str::to_owned);
    text.ok_or_else(|| Failure::new(format!("{what} is not UTF-8, so no reference could name it")))
}
