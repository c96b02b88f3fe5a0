//! `check`: opens what is to be checked, and says what was found.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;

use clap::{ArgGroup, Args, ValueEnum, ValueHint};

use super::output::{self, Color};
use crate::check::{self, Checked, Checking, Input, Renames};
use crate::config::Comments;
use crate::config::Config;
use crate::failure::{Failure, Failures, Result};
use crate::git::{LocalRepo, Side};
use crate::record::added;
use crate::report::check as report;
use crate::tree::absence::Absences;
use crate::tree::checkout::CheckedOut;
use crate::tree::index::IndexTree;
use crate::tree::objects::{ObjectTree, object_id};
use crate::tree::working::WorkingTree;
use crate::tree::{self, Listing};

/// Arguments of `check`.
#[derive(Debug, Clone, Args)]
#[command(group = ArgGroup::new("source"))]
pub(super) struct CheckArgs {
    /// Check the index: what would be committed (the default)
    #[arg(long, group = "source")]
    staged: bool,

    /// Check the working tree
    #[arg(long, group = "source")]
    working_tree: bool,

    /// Check a commit
    #[arg(long, group = "source", value_name = "REV")]
    rev: Option<String>,

    /// Take the configuration from FILE, not from what is checked
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Judge a change to BASE: its configuration counts, not that of the change, and where that says
    /// `new-only`, what BASE has too is left out
    #[arg(long, value_name = "BASE", conflicts_with = "config")]
    base: Option<String>,

    /// Show what is allowed by comments and by the configuration as well
    #[arg(long)]
    no_allow: bool,

    /// Leave out what BASE has too
    #[arg(long, value_name = "BASE", require_equals = true, num_args = 0..=1, default_missing_value = "")]
    new_only: Option<String>,

    /// Show everything, also where the configuration says `new-only`
    #[arg(long, conflicts_with = "new_only")]
    no_new_only: bool,

    /// How the result is written to standard output
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Human)]
    format: Format,

    /// Show every finding, also on a terminal and in a summary where there are many
    #[arg(long)]
    all: bool,

    /// Say nothing where nothing fails
    #[arg(short, long)]
    quiet: bool,

    /// Say more: what is allowed, too, and the help of each finding
    #[arg(short, long)]
    verbose: bool,

    /// When to use colour
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Color::Auto)]
    color: Color,

    /// Directories or kustomizations to begin at [default: all]
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    paths: Vec<String>,
}

/// How a check is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Human,
    /// For machines: one JSON object
    Json,
    /// For code scanning: SARIF 2.1.0
    Sarif,
    /// For the log of GitHub Actions: annotations, and a summary
    Github,
}

/// What is to be checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum What {
    /// The index.
    Index,
    /// The working tree.
    WorkingTree,
    /// A commit.
    Commit(String),
}

/// Against what findings are new.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Base {
    /// All findings count, whatever the configuration says.
    Nothing,
    /// Nobody said; the configuration must not ask for it. With what to say then.
    NotGiven(&'static [&'static str]),
    /// These revisions; a finding that one of them has is not new.
    Revisions(Vec<String>),
    /// These revisions, if the configuration asks for it: in a hook.
    IfConfigured(Vec<String>),
}

/// Where the configuration comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Policy {
    /// What is checked.
    Checked,
    /// A file on disk.
    File(PathBuf),
    /// A commit, for a gate that does not trust the change that it judges.
    Commit(String),
    /// Nowhere: as without a configuration.
    Default,
}

/// A check to do.
pub(super) struct Request {
    pub(super) what: What,
    /// Paths as given, from the directory that we were started in.
    pub(super) paths: Vec<String>,
    pub(super) config: Policy,
    pub(super) no_allow: bool,
    pub(super) base: Base,
    /// What a change is judged against: what the change itself accepts does not count.
    pub(super) since: Option<String>,
}

/// Checks what the arguments say, and says what was found.
pub(super) fn run(args: &CheckArgs) -> ExitCode {
    args.color.apply();
    let done = request(args).and_then(|request| checked(&here()?, &request));
    let checked = match done {
        Ok(checked) => checked,
        Err(failures) if args.format == Format::Human => return output::failed(&failures, false),
        // What reads a report for machines wants one all the more.
        Err(failures) => Checked::failed(checking(args), failures.0),
    };
    match print(&checked, args) {
        Ok(()) => ExitCode::from(checked.status()),
        Err(failure) => output::failed(&failure.into(), false),
    }
}

/// Returns what was to be checked.
fn checking(args: &CheckArgs) -> Checking {
    match (&args.rev, args.working_tree) {
        (Some(rev), _) => Checking::Commit {
            rev: rev.clone(),
            commit: String::new(),
        },
        (None, true) => Checking::WorkingTree,
        (None, false) => Checking::Index,
    }
}

fn request(args: &CheckArgs) -> Result<Request, Failures> {
    Ok(Request {
        what: match (&args.rev, args.working_tree) {
            (Some(rev), _) => What::Commit(rev.clone()),
            (None, true) => What::WorkingTree,
            (None, false) => What::Index,
        },
        paths: args.paths.clone(),
        config: match (&args.config, &args.base) {
            (Some(file), _) => Policy::File(file.clone()),
            (None, Some(base)) => Policy::Commit(base.clone()),
            (None, None) => Policy::Checked,
        },
        no_allow: args.no_allow,
        since: args.base.clone(),
        base: match (&args.new_only, args.no_new_only) {
            (Some(base), _) if base.is_empty() => return Err(no_base(SAY_BASE).into()),
            (Some(base), _) => Base::Revisions(vec![base.clone()]),
            (None, true) => Base::Nothing,
            (None, false) => match &args.base {
                Some(base) => Base::IfConfigured(vec![base.clone()]),
                None => Base::NotGiven(SAY_BASE),
            },
        },
    })
}

fn print(checked: &Checked, args: &CheckArgs) -> Result<()> {
    let shown = report::Shown {
        verbose: args.verbose,
        quiet: args.quiet,
        color: console::colors_enabled(),
        // A log is searched, and nobody waits for its end.
        overview: !args.all && args.format == Format::Human && std::io::stdout().is_terminal(),
    };
    match args.format {
        Format::Human => output::print(&report::human(checked, shown)),
        Format::Json => output::print(&report::json(checked)),
        Format::Sarif => output::print(&report::sarif(checked)),
        Format::Github => output::print_verbatim(&report::github(checked, shown)),
    }
    match args.format {
        // The log of a step is one: what could not be looked at is in there.
        Format::Github => summarize(checked, args.all)?,
        _ => output::failures(&Failures(checked.failures.clone())),
    }
    Ok(())
}

/// Returns what was found for a person, as a hook says it: on standard error, because standard output
/// of `git push` is for its own report.
pub(super) fn for_hook(checked: &Checked) -> String {
    report::human(
        checked,
        report::Shown {
            verbose: false,
            quiet: false,
            color: console::colors_enabled_stderr(),
            overview: std::io::stderr().is_terminal(),
        },
    )
}

/// Adds to the summary of the step, where GitHub Actions gives us one.
fn summarize(checked: &Checked, all: bool) -> Result<()> {
    use std::io::Write;
    let Some(file) = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|file| !file.is_empty()) else {
        return Ok(());
    };
    std::fs::File::options()
        .append(true)
        .create(true)
        .open(&file)
        .and_then(|mut summary| summary.write_all(report::github_summary(checked, all).as_bytes()))
        .map_err(|error| {
            Failure::new(format!(
                "could not write the summary to `{}`: {error}",
                file.to_string_lossy()
            ))
        })
}

/// Finds the repository, for work that must not reach the network.
///
/// # Errors
/// When there is none.
pub(super) fn here() -> Result<Rc<LocalRepo>> {
    match LocalRepo::discover_offline()? {
        Some(here) => Ok(Rc::new(here)),
        None => Err(Failure::new("this is not a git repository").hint("run it in a repository")),
    }
}

/// How a check of ours is told what is old.
const SAY_BASE: &[&str] = &[
    "name a revision to compare with: --new-only=BASE, `--new-only=HEAD` for what is to be committed",
    "or show everything: --no-new-only",
];

fn no_base(hints: &[&str]) -> Failure {
    let failure = Failure::new("`new-only` needs to know what is old");
    hints
        .iter()
        .fold(failure, |failure, hint| failure.hint(*hint))
}

/// Checks what is asked for.
///
/// # Errors
/// When nothing could be checked: a source that cannot be opened, a revision that names nothing, a
/// configuration that cannot be read, a path without a kustomization.
pub(super) fn checked(here: &Rc<LocalRepo>, request: &Request) -> Result<Checked, Failures> {
    let opened = open(here, &request.what)?;
    let config = configuration(here, &request.config, &*opened.tree)?;
    let paths = request
        .paths
        .iter()
        .map(|text| from_top(here, &*opened.tree, text))
        .collect::<Result<Vec<String>>>()?;
    let mut checked = look(&opened, &paths, &config, request.no_allow)?;
    if let Some(index) = &opened.index {
        checked.differing = here.not_staged(&index.touched(&index.kustomizations()?))?;
    }
    if let Some(since) = &request.since {
        compare(here, &opened, &mut checked, &config, since)?;
    }
    let revisions = match &request.base {
        Base::Nothing => return Ok(checked),
        Base::NotGiven(hints) if config.new_only => return Err(no_base(hints).into()),
        Base::IfConfigured(_) if !config.new_only => return Ok(checked),
        // Everything is new where there is nothing yet.
        Base::IfConfigured(revisions) if revisions.is_empty() => return Ok(checked),
        Base::NotGiven(_) => return Ok(checked),
        Base::Revisions(revisions) | Base::IfConfigured(revisions) => revisions,
    };
    let mut old = Vec::new();
    for revision in revisions {
        let base = open(here, &What::Commit(revision.clone()))
            .map_err(|failure| failure.context("cannot tell what is new"))?;
        let Checking::Commit { commit, .. } = &base.checking else {
            continue;
        };
        if checked.findings.is_empty() {
            continue;
        }
        let renames = Renames::new(here.renames(commit, opened.side())?);
        // Rules and scopes are those of today on both sides, so that a stricter configuration can be
        // adopted; but what the base allowed was never accepted as it is.
        let mut config = config.clone();
        if request.config == Policy::Checked
            && let Ok(own) = Config::of(&*base.tree, "")
        {
            config.allow = own.allow;
        }
        // A path that the base does not have holds nothing old.
        let base = look(&base, &[], &config, request.no_allow)?;
        if let Some(failure) = base.failures.into_iter().next() {
            return Err(failure
                .context(format_args!("cannot tell what is new since {revision}"))
                .into());
        }
        old.extend(renames.apply(base.findings));
    }
    checked.leave_out(&old, &revisions.join(" and "));
    Ok(checked)
}

/// Takes back what the change accepts itself, and finds what is new in its locks.
fn compare(
    here: &Rc<LocalRepo>,
    opened: &Opened,
    checked: &mut Checked,
    config: &Config,
    since: &str,
) -> Result<(), Failures> {
    let base = open(here, &What::Commit(since.to_owned()))
        .map_err(|failure| failure.context("cannot read the base"))?;
    if config.comments == Comments::Base && checked.has_comments() {
        // What cannot be looked at there accepts nothing.
        let old = look(&base, &[], config, false).map_or(Vec::new(), |base| base.findings);
        checked.take_back(&old, config, since);
    }
    for place in opened.tree.locks()? {
        // One that cannot be read is a failure of the check already.
        checked
            .new_locked
            .extend(added(&*opened.tree, &*base.tree, &place).unwrap_or_default());
    }
    Ok(())
}

fn look(opened: &Opened, paths: &[String], config: &Config, no_allow: bool) -> Result<Checked> {
    check::check(Input {
        checking: opened.checking.clone(),
        tree: opened.tree.clone(),
        paths,
        config,
        no_allow,
        absences: Some(&opened.absences),
    })
}

/// What is checked, opened.
pub(super) struct Opened {
    checking: Checking,
    pub(super) tree: Rc<dyn Listing>,
    absences: Absences,
    /// The same tree, where the index is checked.
    index: Option<Rc<IndexTree>>,
}

impl Opened {
    /// Returns what git compares a base with.
    fn side(&self) -> Side<'_> {
        match &self.checking {
            Checking::Index => Side::Index,
            Checking::WorkingTree => Side::WorkingTree,
            Checking::Commit { commit, .. } => Side::Commit(commit),
        }
    }
}

/// Opens what is to be looked at.
///
/// # Errors
/// When it is not there.
pub(super) fn open(here: &Rc<LocalRepo>, what: &What) -> Result<Opened> {
    // What is built is what git checks out.
    let opened = |checking, tree: Rc<dyn Listing>, on_disk, index| Opened {
        checking,
        absences: Absences::new(here.clone(), tree.clone(), on_disk),
        tree,
        index,
    };
    Ok(match what {
        // No index is what an empty repository has, too.
        What::Index if here.top.is_none() && !here.index.exists() => {
            return Err(
                Failure::new("this repository has no working tree, and no index to check")
                    .hint("check a commit instead: --rev REV"),
            );
        }
        What::Index => {
            let index = Rc::new(IndexTree::open(here.clone())?);
            let tree = Rc::new(CheckedOut::new(index.clone(), index.hash()));
            opened(Checking::Index, tree, true, Some(index))
        }
        What::WorkingTree => {
            let tree = Rc::new(WorkingTree::open(here.clone())?);
            opened(Checking::WorkingTree, tree, false, None)
        }
        What::Commit(rev) => {
            let id = here.commit(rev)?.ok_or_else(|| {
                Failure::new(format!("`{rev}` names no commit")).hint(
                    "see what there is: git log --oneline --all; what is not here must be fetched",
                )
            })?;
            let tree = Rc::new(ObjectTree::of_here(here.clone(), object_id(&id.tree)?)?);
            let hash = tree.hash();
            let checking = Checking::Commit {
                rev: rev.clone(),
                commit: id.commit,
            };
            opened(checking, Rc::new(CheckedOut::new(tree, hash)), false, None)
        }
    })
}

/// Reads the configuration, from where it is to come from.
fn configuration(
    here: &Rc<LocalRepo>,
    policy: &Policy,
    checked: &dyn tree::Tree,
) -> Result<Config, Failures> {
    match policy {
        Policy::Default => Ok(Config::default()),
        Policy::Checked => Config::of(checked, ""),
        Policy::Commit(rev) => {
            // A change that breaks it would stop every change after it.
            Config::of(checked, "")?;
            let base = open(here, &What::Commit(rev.clone()))
                .map_err(|failure| failure.context("cannot read the configuration of the base"))?;
            Config::of(&*base.tree, "")
        }
        Policy::File(file) => {
            let shown = file.display().to_string();
            let bytes = std::fs::read(file).map_err(|error| {
                Failure::new(format!(
                    "could not read the configuration `{shown}`: {error}"
                ))
            })?;
            Config::parse(&bytes, &shown)
        }
    }
}

/// Returns a path that was given on the command line as a path from the top.
pub(super) fn from_top(here: &LocalRepo, tree: &dyn tree::Tree, text: &str) -> Result<String> {
    // A variable that is not set would otherwise narrow the check, or widen it.
    if text.is_empty() {
        return Err(Failure::new("a PATH is empty")
            .hint("name a directory of this repository, or leave PATH out to check all"));
    }
    tree::named(tree, Some(""), &here.prefix, text).ok_or_else(|| {
        Failure::new(format!("`{text}` lies outside of the repository"))
            .hint("name a directory of this repository")
    })
}
