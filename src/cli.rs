//! The command line: one file per command, glue and no logic.

mod check;
mod hook;
mod localize;
mod lock;
mod output;
mod update;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::fetch::{self, Fetcher};
use crate::git::{Foreign, Here};
use crate::record::Lock;

pub use output::Color;

/// Exit status when the work could not be done: usage, git, network, unreadable input.
pub const FAILED: u8 = 2;

/// Make kustomize builds hermetic, with git as the ledger
#[derive(Debug, Parser)]
#[command(
    name = "git-kustomize-localize",
    bin_name = "git kustomize-localize",
    version,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Exit status: 0 done, also when there was nothing to do; 2 could not do the work."
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    localize: LocalizeArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Copy a kustomization with everything it references to NEW_DIR, and commit that on a branch
    Localize(LocalizeArgs),

    /// Find what a build without a network could not resolve
    Check(check::CheckArgs),

    /// Let git run the check: before a commit, a merge, a push
    #[command(subcommand)]
    Hook(hook::HookCommand),

    /// Add what the working tree references to kustomize-localize.lock, drop what it no longer does
    Lock(LockArgs),

    /// Resolve again what kustomize-localize.lock holds
    Update(UpdateArgs),
}

/// Arguments of `lock`.
#[derive(Debug, Clone, Args)]
struct LockArgs {
    #[command(flatten)]
    fetch: FetchArgs,

    /// Use only what lock and cache hold
    #[arg(long)]
    offline: bool,

    #[command(flatten)]
    output: OutputArgs,
}

/// Arguments of `update`.
#[derive(Debug, Clone, Args)]
struct UpdateArgs {
    /// What to resolve again: a URL of the lock with or without its ref, or the beginning of one
    /// [default: all]
    url: Vec<String>,

    /// Accept that a tag names another commit than before, and a file with a version in its URL
    /// other bytes
    #[arg(long)]
    accept_moved: bool,

    #[command(flatten)]
    fetch: FetchArgs,

    #[command(flatten)]
    output: OutputArgs,
}

/// How remote references are brought in.
#[derive(Debug, Clone, Args)]
struct FetchArgs {
    /// Accept a remote root without a ref: take what HEAD is now, and record it
    #[arg(long)]
    pin: bool,

    /// Give up on one repository or file after this time [default: what the URL says, else 300]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    timeout: Option<u64>,

    /// Say what would be done; may fetch into the cache, writes nothing else
    #[arg(long)]
    dry_run: bool,
}

/// Arguments of `localize`.
#[derive(Debug, Clone, Args)]
struct LocalizeArgs {
    /// The kustomization root to localize: a directory, or the URL of one in a git repository
    /// [default: .]; with `--in-place` there may be several [default: all]
    target: Option<String>,

    /// Where the copy goes, from here [default: localized-TARGET, for a URL localized-NAME-REF]
    new_dir: Option<PathBuf>,

    /// Further targets, with `--in-place`.
    #[arg(hide = true)]
    more: Vec<PathBuf>,

    /// Localize where the kustomizations stand: what is brought in goes to `localized-files` beside
    /// them; so far with `--no-commit` only
    #[arg(long, conflicts_with_all = ["scope", "branch", "rev", "message", "gpg_sign", "no_gpg_sign", "signoff", "update"])]
    in_place: bool,

    /// The directory that bounds what a local target may reach [default: the target]
    #[arg(long, value_name = "DIR")]
    scope: Option<String>,

    /// The branch to commit to [default: localized/SOURCE-BRANCH]
    #[arg(long, value_name = "NAME", conflicts_with = "no_commit")]
    branch: Option<String>,

    /// The commit to localize [default: HEAD]
    #[arg(long, value_name = "REV", conflicts_with = "no_commit")]
    rev: Option<String>,

    /// Write NEW_DIR to disk, from the files on disk, and commit nothing; needs no repository
    #[arg(long)]
    no_commit: bool,

    /// Discard edits that were made by hand in what this tool wrote
    #[arg(long)]
    overwrite: bool,

    /// Resolve refs again that only the lock of NEW_DIR holds; the lock at the top of the source
    /// still decides
    #[arg(long, conflicts_with_all = ["locked", "offline"])]
    update: bool,

    /// Fail if something would have to be resolved that no lock holds
    #[arg(long)]
    locked: bool,

    /// Use only what lock, branch and cache hold
    #[arg(long)]
    offline: bool,

    /// Leave references to local files that are not there as they are, where GLOB matches the
    /// path from the top of the repository; may be given several times
    #[arg(long, value_name = "GLOB")]
    leave_missing: Vec<String>,

    /// Where files that a kustomization names may lie
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = Restrictor::RootOnly)]
    load_restrictor: Restrictor,

    /// Do not compare builds: nothing is built yet, so this changes nothing
    #[arg(long)]
    no_verify: bool,

    #[command(flatten)]
    fetch: FetchArgs,

    /// Subject and body of the commit, as in `git commit`; each further one is a paragraph
    #[arg(short, long, value_name = "TEXT", conflicts_with = "no_commit")]
    message: Vec<String>,

    /// Sign the commit, as in `git commit`
    #[arg(short = 'S', long, value_name = "KEYID", num_args = 0..=1, require_equals = true, default_missing_value = "", conflicts_with = "no_commit", overrides_with = "no_gpg_sign")]
    gpg_sign: Option<String>,

    /// Do not sign the commit, whatever `commit.gpgSign` says
    #[arg(long, overrides_with = "gpg_sign")]
    no_gpg_sign: bool,

    /// Add a Signed-off-by trailer, as in `git commit`
    #[arg(short, long, conflicts_with = "no_commit")]
    signoff: bool,

    #[command(flatten)]
    output: OutputArgs,
}

impl LocalizeArgs {
    /// Returns the target: here, unless another one is given.
    fn target(&self) -> &str {
        self.target.as_deref().unwrap_or(".")
    }
}

impl FetchArgs {
    /// Returns what these arguments say about fetching.
    fn options(&self, output: &OutputArgs) -> fetch::Options {
        fetch::Options {
            timeout: self.timeout.map(Duration::from_secs),
            pin: self.pin,
            quiet: output.quiet,
            ..fetch::Options::default()
        }
    }
}

/// Sets up fetching with the connection settings of the repository at hand, if there is one. `locks`
/// decide in their order.
fn fetcher(
    here: Option<&Here>,
    options: fetch::Options,
    locks: Vec<Rc<Lock>>,
    previous: Option<fetch::Tip>,
) -> crate::failure::Result<Fetcher> {
    let settings = match here {
        Some(here) => here.connection_config()?,
        None => Vec::new(),
    };
    let cache = fetch::Cache::of_user();
    Fetcher::new(Foreign::new(settings), cache, options, locks, previous)
}

/// How results are shown.
#[derive(Debug, Clone, Args)]
struct OutputArgs {
    /// How the result is written to standard output
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Human)]
    format: Format,

    /// Say nothing but errors
    #[arg(short, long)]
    quiet: bool,

    /// Say more: every file and every rewritten reference
    #[arg(short, long)]
    verbose: bool,

    /// When to use colour
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Color::Auto)]
    color: Color,
}

/// How a result is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Human,
    /// For machines: one JSON object
    Json,
}

/// Where files that a kustomization names may lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Restrictor {
    /// In or below the root of that kustomization, as kustomize does by default
    #[value(alias = "LoadRestrictionsRootOnly")]
    RootOnly,
    /// Anywhere in the scope, as Flux builds
    #[value(alias = "LoadRestrictionsNone")]
    None,
}

/// Spells `-SKEYID` out. The key is optional, so that clap wants `=` before it, but git has none.
fn arguments(given: impl Iterator<Item = OsString>) -> impl Iterator<Item = OsString> {
    let mut options = true;
    given.map(move |argument| {
        options &= argument != "--";
        let key = argument
            .to_str()
            .and_then(|text| text.strip_prefix("-S"))
            .filter(|key| options && !key.is_empty() && !key.starts_with('='));
        match key {
            Some(key) => format!("--gpg-sign={key}").into(),
            None => argument,
        }
    })
}

/// Reads the arguments of the process and does what they say.
#[must_use]
pub fn run() -> ExitCode {
    let cli = match Cli::try_parse_from(arguments(std::env::args_os())) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are results; everything else is a usage error.
            let status = if error.use_stderr() { FAILED } else { 0 };
            let _ = error.print();
            return ExitCode::from(status);
        }
    };
    match cli.command {
        Some(Command::Check(args)) => check::run(&args),
        Some(Command::Hook(command)) => hook::run(&command),
        Some(Command::Localize(args)) => localize::run(&args),
        Some(Command::Lock(args)) => lock::run(&args),
        Some(Command::Update(args)) => update::run(&args),
        None => localize::run(&cli.localize),
    }
}
