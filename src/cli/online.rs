//! What the commands that reach the network share: their arguments, fetching, and how they say what
//! came of it.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum, ValueHint};
use console::Style;

use super::output::{self, Color, failed, failures, print};
use crate::config::{Config, Strict};
use crate::failure::{Failure, Failures};
use crate::fetch::{self, Fetcher};
use crate::finding::WarningId;
use crate::git::{LocalRepo, RemoteGit};
use crate::record::Lock;
use crate::report::{Tell, counted_warnings, visible};
use crate::walk::Warning;

/// Arguments of `lock`.
#[derive(Debug, Clone, Args)]
pub(super) struct LockArgs {
    /// Directories or kustomizations to begin at [default: all]
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(super) paths: Vec<String>,

    #[command(flatten)]
    pub(super) fetch: FetchArgs,

    #[command(flatten)]
    pub(super) leave: LeaveArgs,

    /// Use only what lock and cache hold
    #[arg(long)]
    pub(super) offline: bool,

    #[command(flatten)]
    pub(super) output: OutputArgs,
}

/// Arguments of `update`.
#[derive(Debug, Clone, Args)]
pub(super) struct UpdateArgs {
    /// What to resolve again: a URL of the lock with or without its ref, or the beginning of one
    /// [default: all]
    pub(super) url: Vec<String>,

    /// Accept moved tags, and changed files whose URL names a version
    #[arg(long)]
    pub(super) accept_moved: bool,

    #[command(flatten)]
    pub(super) fetch: FetchArgs,

    #[command(flatten)]
    pub(super) output: OutputArgs,
}

/// What stays remote.
#[derive(Debug, Clone, Args)]
pub(super) struct LeaveArgs {
    /// Leave what is at URL, or below, remote, and do not insist on it, as an entry of `allow` with
    /// `leave: true` does; may be given several times
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url, hide_short_help = true)]
    pub(super) leave_remote: Vec<String>,
}

/// How remote references are brought in.
#[derive(Debug, Clone, Args)]
pub(super) struct FetchArgs {
    /// Accept a remote root without a ref: take what HEAD is now, and record it
    #[arg(long, hide_short_help = true)]
    pub(super) pin: bool,

    /// Bring in the Helm charts of repositories, with the `helm` on PATH
    #[arg(long, overrides_with = "no_helm")]
    pub(super) helm: bool,

    /// Leave the Helm charts of repositories remote, whatever a lock says
    #[arg(long, overrides_with = "helm", hide_short_help = true)]
    pub(super) no_helm: bool,

    /// Give up on one repository or file after this time [default: what the URL says, else 300]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..), hide_short_help = true)]
    pub(super) timeout: Option<u64>,

    /// Refuse files from elsewhere that are larger than this: bytes, or with k, m or g after the number [default: 64m]
    #[arg(long, value_name = "SIZE", value_parser = size, hide_short_help = true)]
    pub(super) max_file_size: Option<u64>,

    /// Say what would be done; may fetch into the cache, writes nothing else
    #[arg(long)]
    pub(super) dry_run: bool,
}

/// Arguments of `localize`.
#[derive(Debug, Clone, Args)]
pub(super) struct LocalizeArgs {
    /// The kustomization root to localize: a directory, or the URL of one in a git repository
    /// [default: .]; with `--in-place` there may be several [default: all]
    #[arg(value_hint = ValueHint::DirPath)]
    pub(super) target: Option<String>,

    /// Where the copy goes, from here [default: localized-TARGET, for a URL localized-NAME-REF]
    #[arg(value_hint = ValueHint::DirPath)]
    pub(super) new_dir: Option<PathBuf>,

    /// Further targets, with `--in-place`.
    #[arg(hide = true, value_hint = ValueHint::DirPath)]
    pub(super) more: Vec<PathBuf>,

    /// Localize all of the repository where it stands; with `--no-commit` on disk
    #[arg(long, conflicts_with = "scope")]
    pub(super) in_place: bool,

    /// The directory that bounds what a local target may reach [default: the target]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(super) scope: Option<String>,

    /// The branch to commit to [default: localized/SOURCE-BRANCH]
    #[arg(long, value_name = "NAME", conflicts_with = "no_commit")]
    pub(super) branch: Option<String>,

    /// Also have the branch checked out in a linked worktree at DIR
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "no_commit")]
    pub(super) worktree: Option<PathBuf>,

    /// The commit to localize [default: HEAD]
    #[arg(long, value_name = "REV", conflicts_with = "no_commit")]
    pub(super) rev: Option<String>,

    /// Write NEW_DIR to disk, from the files on disk, and commit nothing; needs no repository
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
    #[arg(long)]
    pub(super) locked: bool,

    /// Use only what lock, branch and cache hold
    #[arg(long)]
    pub(super) offline: bool,

    /// Leave the licences of remote repositories out: `LICENSE*`, `NOTICE*`, `COPYRIGHT*`, `COPYING*`
    #[arg(long, overrides_with = "licenses", hide_short_help = true)]
    pub(super) no_licenses: bool,

    /// In place: bring them along again, where the lock says that they are left out
    #[arg(long, overrides_with = "no_licenses", hide_short_help = true)]
    pub(super) licenses: bool,

    /// Leave references to local files that are not there as they are, where GLOB matches the
    /// path from the top of the repository; may be given several times
    #[arg(long, value_name = "GLOB", hide_short_help = true)]
    pub(super) leave_missing: Vec<String>,

    #[command(flatten)]
    pub(super) leave: LeaveArgs,

    /// Leave programs executable that come from elsewhere, where GLOB matches the path of the
    /// copy (in place: of the repository); may be given several times
    #[arg(long, value_name = "GLOB", hide_short_help = true)]
    pub(super) trust_exec: Vec<String>,

    /// Where files that a kustomization names may lie
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = Restrictor::RootOnly, hide_short_help = true)]
    pub(super) load_restrictor: Restrictor,

    #[command(flatten)]
    pub(super) verify: VerifyArgs,

    #[command(flatten)]
    pub(super) fetch: FetchArgs,

    /// Subject and body of the commit, as in `git commit`; each further one is a paragraph
    #[arg(
        short,
        long,
        value_name = "TEXT",
        conflicts_with = "no_commit",
        hide_short_help = true
    )]
    pub(super) message: Vec<String>,

    /// Sign the commit, as in `git commit`
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

/// How the result is held against the original.
#[derive(Debug, Clone, Args)]
pub(super) struct VerifyArgs {
    /// Do not build original and result to compare them
    #[arg(long, hide_short_help = true)]
    pub(super) no_verify: bool,

    /// Build everything, also what was verified before from the same inputs; WHAT is what the build of
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

    /// Another argument for both builds, as --enable-helm; may be given several times
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
    /// Returns the variables that builds see.
    pub(super) fn variables(&self) -> crate::failure::Result<Vec<String>> {
        if let Some(name) = self
            .build_env
            .iter()
            .find(|name| name.is_empty() || name.contains(['=', '\0']))
        {
            let name = name.split('=').next().unwrap_or_default();
            return Err(
                Failure::new(format!("`--build-env {name}=…`: only names can be given"))
                    .hint("set the variable in your environment, and give its name"),
            );
        }
        let mut variables = self.build_env.clone();
        variables.sort();
        variables.dedup();
        Ok(variables)
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

impl LocalizeArgs {
    /// Returns the target: here, unless another one is given.
    pub(super) fn target(&self) -> &str {
        self.target.as_deref().unwrap_or(".")
    }

    /// Says whether licences are left out, in place, where that was said before.
    pub(super) fn leaves_licenses<'a>(&self, mut held: impl Iterator<Item = &'a Rc<Lock>>) -> bool {
        self.no_licenses || (!self.licenses && held.any(|lock| lock.options.no_licenses))
    }
}

/// Reads a size as git writes it: a number, and k, m or g for powers of 1024.
fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|character: char| character.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        _ => return Err("write a number of bytes, or one with k, m or g, as in `64m`".to_owned()),
    };
    let number: u64 = digits.parse().map_err(|error| format!("{error}"))?;
    let size = number.checked_mul(1 << shift).filter(|size| *size > 0);
    size.ok_or_else(|| "write a size between 1 byte and 2^64 bytes".to_owned())
}

impl FetchArgs {
    /// Says whether charts are brought in, where a lock says whether they were so far.
    pub(super) fn helm(&self, so_far: bool) -> bool {
        self.helm || (so_far && !self.no_helm)
    }

    /// Returns what these arguments say about fetching.
    pub(super) fn options(&self, output: &OutputArgs) -> fetch::Options {
        fetch::Options {
            timeout: self.timeout.map(Duration::from_secs),
            pin: self.pin,
            helm: self.helm,
            max_file_size: self.max_file_size,
            no_helm: self.no_helm,
            quiet: output.quiet,
            ..fetch::Options::default()
        }
    }
}

/// Sets up fetching with the connection settings of the repository at hand, if there is one. `locks`
/// decide in their order.
pub(super) fn fetcher(
    here: Option<&LocalRepo>,
    options: fetch::Options,
    locks: Vec<Rc<Lock>>,
    previous: Option<fetch::Tip>,
) -> crate::failure::Result<Fetcher> {
    let settings = match here {
        Some(here) => here.connection_config()?,
        None => Vec::new(),
    };
    let cache = fetch::Cache::of_user();
    Fetcher::new(RemoteGit::new(settings), cache, options, locks, previous)
}

/// How results are shown, and what counts as one.
#[derive(Debug, Clone, Args)]
pub(super) struct OutputArgs {
    /// How the result is written to standard output
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Human, hide_short_help = true)]
    pub(super) format: Format,

    /// Take warnings for errors: nothing is written, exit status 1. All of them, or those with these
    /// ids, besides those that `strict` in the configuration names; may be given several times
    #[arg(long, value_name = "ID,…", value_parser = strict_ids(), value_delimiter = ',', num_args = 0..=1, require_equals = true, default_missing_value = Strict::ALL, hide_possible_values = true, hide_short_help = true)]
    pub(super) strict: Vec<String>,

    /// Say nothing but errors
    #[arg(short, long)]
    pub(super) quiet: bool,

    /// Say more: every file and every rewritten reference
    #[arg(short, long)]
    pub(super) verbose: bool,

    /// When to use colour
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Color::Auto, hide_short_help = true)]
    pub(super) color: Color,
}

impl OutputArgs {
    /// Returns which warnings are errors: as the configuration says, and these arguments.
    pub(super) fn strict(&self, config: &Config) -> Strict {
        config.strict.and(&self.strict)
    }
}

/// Returns what `--strict` takes.
fn strict_ids() -> PossibleValuesParser {
    let ids = WarningId::ALL.iter().map(|warning| warning.id());
    PossibleValuesParser::new(ids.chain([Strict::ALL]))
}

/// How a result is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// For people
    Human,
    /// For machines: one JSON object
    Json,
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

/// Says what came of a command, and returns the exit status.
pub(super) fn tell<T: Tell>(args: &OutputArgs, outcome: Result<T, Failures>) -> ExitCode {
    args.color.apply();
    let json = args.format == Format::Json;
    let report = match outcome {
        Ok(report) => report,
        Err(failures) => return failed(&failures, json),
    };
    let differs = report.refusal();
    let refused = report.refused();
    if json {
        print(&report.json());
    } else {
        if !args.quiet {
            print(&report.human(args.verbose));
        }
        if !args.quiet || refused.is_some() {
            warnings(report.warnings());
        }
    }
    failures(&report.failures());
    if let Some(strict) = refused {
        failures(&too_strict(strict, report.warnings()).into());
    }
    if let Some(differs) = differs {
        failures(&differs.into());
    }
    if report.is_done() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Says that warnings are errors.
fn too_strict(strict: &Strict, warnings: &[Warning]) -> Failure {
    let refused: Vec<Warning> = warnings
        .iter()
        .filter(|warning| strict.takes(warning.id))
        .cloned()
        .collect();
    let (lets, accept) = match strict {
        Strict::All => (
            "`--strict` lets none pass",
            "leave `--strict` out, or name those that are errors: --strict=ID,…",
        ),
        Strict::Some(_) => (
            "`strict` lets none of these pass",
            "leave their ids out of `--strict` and `strict` of the configuration",
        ),
    };
    Failure::new(format!(
        "nothing was written, because of {}: {lets}",
        counted_warnings(&refused)
    ))
    .hint(format!(
        "what each means is in the README under \"Warnings\"; to accept them, {accept}"
    ))
}

/// Writes warnings to standard error.
fn warnings(warnings: &[Warning]) {
    let mark = Style::new().for_stderr().yellow().bold();
    // Writing to a string cannot fail.
    let mut out = String::new();
    for warning in warnings {
        let place = match warning.location.to_string().as_str() {
            "" => String::new(),
            _ => format!("{}: ", warning.location),
        };
        let field = match warning.location.field.as_str() {
            "" => String::new(),
            field => format!("{field}: "),
        };
        let _ = writeln!(
            out,
            "{}{} {}{}{}",
            mark.apply_to("warning"),
            mark.apply_to(format!("[{}]:", warning.id)),
            visible(&place),
            visible(&field),
            visible(&warning.message)
        );
    }
    output::say(&out);
}
