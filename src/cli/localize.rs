//! `localize`: arguments to a request.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum, ValueHint};

use super::args::{FetchArgs, LeaveArgs, OutputArgs};
use super::tell::tell;
use crate::commands::localize::{Request, What, localize};
use crate::commands::{Again, Builds, Fetching};
use crate::destination::{BranchOptions, CommitOptions, Sign, To};
use crate::failure::{Failure, Failures, Result};
use crate::record::LoadRestrictor;
use crate::redact;

/// Arguments of `localize`.
#[derive(Debug, Clone, Args)]
pub(super) struct LocalizeArgs {
    /// The kustomization root to localize: a directory, or a URL [default: .]
    ///
    /// The URL is that of a root in a git repository. With `--in-place` there may be several [default: all]. A directory is seen from here or, as `:/apps/web`, from the top of the repository.
    #[arg(value_hint = ValueHint::DirPath)]
    pub(super) target: Option<String>,

    /// Where the copy goes [default: localized-TARGET]
    ///
    /// For a URL the default is localized-NAME-REF.
    /// As `:/out` it is seen from the top of the repository. What is not safe in every path is replaced in the default,
    /// with a digest at the end. It must be given for the top of the repository and for a URL without a ref.
    #[arg(value_hint = ValueHint::DirPath)]
    pub(super) new_dir: Option<PathBuf>,

    /// Further targets, with `--in-place`.
    #[arg(hide = true, value_hint = ValueHint::DirPath)]
    pub(super) more: Vec<PathBuf>,

    /// Localize the whole repository where it stands
    ///
    /// What was brought in lies beside the kustomizations that name it. Without `--no-commit` the whole repository is
    /// committed on the branch.
    #[arg(long, conflicts_with = "scope")]
    pub(super) in_place: bool,

    /// What a local target may reach: a directory [default: the target]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(super) scope: Option<String>,

    /// The branch to commit to [default: localized/SOURCE-BRANCH]
    ///
    /// It must be given when there is no source branch: a detached HEAD, `--rev` with an id.
    #[arg(long, value_name = "NAME", conflicts_with = "no_commit")]
    pub(super) branch: Option<String>,

    /// Also have the branch checked out in a linked worktree at DIR
    ///
    /// It is a new one, or the one that is there, if it has no changes. Branch and worktree change together or not at
    /// all.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "no_commit", hide_short_help = true)]
    pub(super) worktree: Option<PathBuf>,

    /// The commit to localize [default: HEAD]
    ///
    /// Works in a bare repository.
    #[arg(
        long,
        value_name = "REV",
        conflicts_with = "no_commit",
        hide_short_help = true
    )]
    pub(super) rev: Option<String>,

    /// Write to disk, from the files on disk, and commit nothing
    ///
    /// As `kustomize localize` does; needs no repository.
    #[arg(long)]
    pub(super) no_commit: bool,

    /// Discard manual edits to generated files
    #[arg(long, hide_short_help = true)]
    pub(super) overwrite: bool,

    /// Resolve refs again that only the lock of NEW_DIR (in place: of the branch) holds; the lock at
    /// the top of the source still decides
    #[arg(long, conflicts_with_all = ["locked", "offline"], hide_short_help = true)]
    pub(super) update: bool,

    /// Fail if something would have to be resolved that no lock holds
    #[arg(long, hide_short_help = true)]
    pub(super) locked: bool,

    /// Use only what lock, branch and cache hold
    #[arg(long)]
    pub(super) offline: bool,

    /// Leave the licences of remote repositories out: `LICENSE*`, `NOTICE*`, `COPYRIGHT*`, `COPYING*`
    ///
    /// Kept in the lock.
    #[arg(long, overrides_with = "licenses", hide_short_help = true)]
    pub(super) no_licenses: bool,

    /// In place: bring them along again, where the lock says that they are left out
    #[arg(long, overrides_with = "no_licenses", hide_short_help = true)]
    pub(super) licenses: bool,

    /// In place, on a branch: write `hydrator.metadata` at the top, by which GitOps Promoter knows the source commit
    ///
    /// See <https://gitops-promoter.readthedocs.io/en/latest/advanced-usage/custom-hydrator/>. Kept in the lock.
    #[arg(
        long,
        requires = "in_place",
        conflicts_with = "no_commit",
        overrides_with = "no_hydrator_metadata",
        hide_short_help = true
    )]
    pub(super) hydrator_metadata: bool,

    /// Do not write it any more, where the lock says that it is written
    #[arg(
        long,
        requires = "in_place",
        conflicts_with = "no_commit",
        overrides_with = "hydrator_metadata",
        hide_short_help = true
    )]
    pub(super) no_hydrator_metadata: bool,

    /// Leave references to local files that are not there as they are, where GLOB matches the
    /// path from the top of the repository; may be given several times
    ///
    /// As `apps/*/secret.env` or `**/secret.env`, for files that are kept out of git on purpose; `leave-missing` in the
    /// configuration keeps it.
    #[arg(long, value_name = "GLOB", hide_short_help = true)]
    pub(super) leave_missing: Vec<String>,

    #[command(flatten)]
    pub(super) leave: LeaveArgs,

    /// Leave programs executable that come from elsewhere, where GLOB matches the path of the
    /// copy (in place: of the repository); may be given several times
    ///
    /// Without it they lose their execute bit. Kept in the lock.
    #[arg(long, value_name = "GLOB", hide_short_help = true)]
    pub(super) trust_exec: Vec<String>,

    /// Where files that a kustomization names may lie [default: as the configuration says, else root-only]
    #[arg(long, value_enum, value_name = "WHICH", hide_short_help = true)]
    pub(super) load_restrictor: Option<Restrictor>,

    #[command(flatten)]
    pub(super) verify: VerifyArgs,

    #[command(flatten)]
    pub(super) fetch: FetchArgs,

    /// Subject and body of the commit, as in `git commit`; each further one is a paragraph
    ///
    /// The trailers come below.
    #[arg(
        short,
        long,
        value_name = "TEXT",
        conflicts_with = "no_commit",
        hide_short_help = true
    )]
    pub(super) message: Vec<String>,

    /// Sign the commit, as in `git commit`
    ///
    /// Without it `commit.gpgSign` decides.
    #[arg(short = 'S', long, value_name = "KEYID", num_args = 0..=1, require_equals = true, default_missing_value = "", conflicts_with = "no_commit", overrides_with = "no_gpg_sign", hide_short_help = true)]
    pub(super) gpg_sign: Option<String>,

    /// Do not sign the commit, whatever `commit.gpgSign` says
    #[arg(long, overrides_with = "gpg_sign", hide_short_help = true)]
    pub(super) no_gpg_sign: bool,

    /// Add a Signed-off-by trailer, as in `git commit`
    #[arg(short, long, conflicts_with = "no_commit", hide_short_help = true)]
    pub(super) signoff: bool,

    #[command(flatten)]
    pub(super) output: OutputArgs,
}

/// How the result is compared with the original.
#[derive(Debug, Clone, Args)]
pub(super) struct VerifyArgs {
    /// Do not build original and result to compare them
    #[arg(long, hide_short_help = true)]
    pub(super) no_verify: bool,

    /// Build everything, even what was verified before from the same inputs; WHAT is what the build of
    /// the original reads from upstream [default: fetched]
    #[arg(long, value_enum, value_name = "WHAT", num_args = 0..=1, require_equals = true, default_missing_value = "fetched", conflicts_with = "no_verify", hide_short_help = true)]
    pub(super) verify: Option<Verify>,

    /// The kustomize that builds [default: the environment variable KUSTOMIZE, else `kustomize` on
    /// PATH, else `kubectl`]
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "no_verify",
        hide_short_help = true
    )]
    pub(super) kustomize: Option<PathBuf>,

    /// Another argument for both builds, as `--build-arg=--enable-helm`; may be given several times
    #[arg(
        long,
        value_name = "ARG",
        allow_hyphen_values = true,
        conflicts_with = "no_verify",
        hide_short_help = true
    )]
    pub(super) build_arg: Vec<String>,

    /// Another variable of your environment that both builds see; may be given several times
    #[arg(
        long,
        value_name = "NAME",
        conflicts_with = "no_verify",
        hide_short_help = true
    )]
    pub(super) build_env: Vec<String>,
}

impl VerifyArgs {
    fn builds(&self) -> Builds {
        Builds {
            skip: self.no_verify,
            again: self.verify.map(|verify| match verify {
                Verify::Fetched => Again::Fetched,
                Verify::Full => Again::Full,
            }),
            program: self.kustomize.clone(),
            arguments: self.build_arg.clone(),
            variables: self.build_env.clone(),
        }
    }
}

/// What the build of the original reads from upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Verify {
    /// What this run has fetched
    Fetched,
    /// What is there now, with your git
    Full,
}

/// Where files that a kustomization names may lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Restrictor {
    /// In or below the root of that kustomization, as kustomize does by default
    #[value(alias = "LoadRestrictionsRootOnly")]
    RootOnly,
    /// Anywhere in the scope, as Flux builds
    #[value(alias = "LoadRestrictionsNone")]
    None,
}

/// Runs `localize` and prints its result.
pub(super) fn run(args: &LocalizeArgs) -> ExitCode {
    let outcome = request(args).map_err(Into::into);
    let outcome = outcome.and_then(|request| localize(&request));
    tell(&args.output, outcome.map_err(|error| dashless(args, error)))
}

/// Adds to the failure of a TARGET that is not there that it is the name of an option.
fn dashless(args: &LocalizeArgs, mut failures: Failures) -> Failures {
    if let Some(target) = &args.target
        && !Path::new(target).exists()
        && let Some(first) = failures.0.first_mut()
        && first
            .message
            .starts_with(&format!("there is no directory `{target}` "))
        && let Some(option) = option_like(target)
    {
        first.hints.push(format!(
            "if the option is meant: git kustomize-localize {option}"
        ));
    }
    failures
}

/// Returns the option of that name, as it is given: `--scope DIR`.
fn option_like(name: &str) -> Option<String> {
    let letters = |text: &str| text.replace(['-', '_'], "");
    let mut command = LocalizeArgs::augment_args(clap::Command::new(""));
    command.build();
    command.get_arguments().find_map(|option| {
        let long = option
            .get_long()
            .filter(|long| letters(long) == letters(name))?;
        let is_required = option.get_num_args().is_some_and(|n| n.min_values() > 0);
        Some(match option.get_value_names() {
            Some([value, ..]) if is_required => format!("--{long} {value}"),
            _ => format!("--{long}"),
        })
    })
}

fn request(args: &LocalizeArgs) -> Result<Request> {
    Ok(Request {
        what: what(args)?,
        to: if args.no_commit {
            To::Disk
        } else {
            To::Branch(branch(args))
        },
        rev: args.rev.clone(),
        load_restrictor: args.load_restrictor.map(|which| match which {
            Restrictor::RootOnly => LoadRestrictor::RootOnly,
            Restrictor::None => LoadRestrictor::None,
        }),
        leave_missing: args.leave_missing.clone(),
        leave_remote: args.leave.leave_remote.clone(),
        trust_exec: args.trust_exec.clone(),
        licenses: given(args.licenses, args.no_licenses),
        hydrator_metadata: given(args.hydrator_metadata, args.no_hydrator_metadata),
        overwrite: args.overwrite,
        update: args.update,
        dry_run: args.fetch.dry_run,
        fetch: Fetching {
            locked: args.locked,
            offline: args.offline,
            ..args.fetch.fetching(&args.output)
        },
        builds: args.verify.builds(),
        strict: args.output.strict.clone(),
        arguments: std::env::args_os()
            .skip(1)
            .map(|given| redact::url(&given.to_string_lossy()))
            .collect(),
    })
}

/// Returns what one of two opposite options says; none without either.
fn given(yes: bool, no: bool) -> Option<bool> {
    (yes || no).then_some(yes)
}

fn what(args: &LocalizeArgs) -> Result<What> {
    if args.in_place {
        let target = args.target.iter().map(Path::new);
        let given = target
            .chain(args.new_dir.iter().map(AsRef::as_ref))
            .chain(args.more.iter().map(AsRef::as_ref));
        let targets = given.map(|given| text(given, "a target"));
        return Ok(What::InPlace {
            targets: targets.collect::<Result<Vec<String>>>()?,
        });
    }
    if let Some(more) = args.more.first() {
        return Err(Failure::new(format!(
            "`{}` is one argument too many",
            crate::redact::text(&more.display().to_string())
        ))
        .hint("name one TARGET and one NEW_DIR; several targets are for `--in-place`"));
    }
    let new_dir = args.new_dir.as_deref();
    Ok(What::Copy {
        target: args.target.clone(),
        new_dir: new_dir.map(|given| text(given, "NEW_DIR")).transpose()?,
        scope: args.scope.clone(),
    })
}

fn text(given: &Path, what: &str) -> Result<String> {
    let text = given.to_str().map(str::to_owned);
    text.ok_or_else(|| {
        Failure::new(format!(
            "{what} is not UTF-8, so no reference could name it"
        ))
    })
}

fn branch(args: &LocalizeArgs) -> BranchOptions {
    BranchOptions {
        name: args.branch.clone(),
        worktree: args.worktree.clone(),
        commit: CommitOptions {
            message: args.message.clone(),
            sign: match &args.gpg_sign {
                _ if args.no_gpg_sign => Sign::Never,
                Some(key) => Sign::With(key.clone()),
                None => Sign::AsConfigured,
            },
            signoff: args.signoff,
        },
    }
}
