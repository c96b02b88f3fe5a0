//! `check`: arguments to a request, and what was found to a report.

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::{ArgGroup, Args, ValueEnum, ValueHint};

use super::output::{self, Color};
use crate::check::Checked;
use crate::commands::add_allow;
use crate::commands::check::{Base, Request, What, check};
use crate::config::FILE_NAME;
use crate::message::failure::{Failure, Failures, Result, stage};
use crate::report::check as report;
use crate::workspace::repository_offline;

/// Arguments of `check`.
#[derive(Debug, Clone, Args)]
#[command(group = ArgGroup::new("source"))]
pub(super) struct CheckArgs {
    /// Check the index, as hooks do: what would be committed [default: the working tree]
    #[arg(long, group = "source")]
    staged: bool,

    /// Check a commit
    ///
    /// Works in a bare repository.
    #[arg(long, group = "source", value_name = "REV")]
    rev: Option<String>,

    /// Judge a change to REV: what is new since the merge base counts, by the configuration of REV
    ///
    /// An exception that the change adds covers nothing new in it. What the change adds to the locks is shown as `new in
    /// the lock`, and what it does to the configuration as `new in the configuration`. For gates.
    #[arg(long, value_name = "REV")]
    base: Option<String>,

    /// Write an entry of `allow` for each error that can have one, into the configuration of the working tree
    ///
    /// With `--strict` for each warning, too. Each with `reason: TODO`, which is a warning until somebody says why.
    #[arg(long, conflicts_with_all = ["rev", "base"])]
    add_allow: bool,

    /// Treat warnings as errors, and fail where it is not known what is deployed
    ///
    /// The last line counts the targets that only a build or the cluster knows.
    #[arg(long)]
    strict: bool,

    /// How the result is written to standard output
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Human)]
    format: Format,

    /// Show only what fails, and no summary
    #[arg(short, long)]
    quiet: bool,

    /// Also show what is allowed, the help of each finding, and every finding, even where there are many
    ///
    /// Without it, of more than 20 a terminal and the summary of `github` show how many there are by rule and by
    /// upstream, the first of each, and how to begin.
    #[arg(short, long)]
    verbose: bool,

    /// When to use colour
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Color::Auto, hide_short_help = true)]
    color: Color,

    /// Directories or kustomizations to begin at [default: all]
    ///
    /// Seen from here or, as `:/apps/web`, from the top of the repository. What they reference is followed. One that
    /// holds no kustomization is an error.
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
    /// For merge requests of GitLab: a report of code quality
    Gitlab,
}

/// Runs `check` and prints its result.
pub(super) fn run(args: &CheckArgs) -> ExitCode {
    args.color.apply();
    let done = checked(args);
    let mut checked = match done {
        Ok(checked) => checked,
        Err(failures) if args.format == Format::Human => return output::failed(&failures, false),
        // Reports for machines need one all the more.
        Err(failures) => Checked::failed(what(args).checking(), failures.0),
    };
    if args.strict {
        checked.strictly();
    }
    match print(&checked, args) {
        Ok(()) => ExitCode::from(checked.status()),
        Err(failure) => output::failed(&failure.into(), false),
    }
}

/// Checks what the arguments say; again, once exceptions are written.
fn checked(args: &CheckArgs) -> Result<Checked, Failures> {
    let (here, request) = (repository_offline()?, request(args));
    let checked = check(&here, &request)?;
    if !args.add_allow || !checked.failures.is_empty() {
        return Ok(checked);
    }
    match add_allow(&checked.exceptions(|one| args.strict || one.fails()))? {
        0 => Ok(checked),
        count => {
            output::say(&added(count));
            check(&here, &request)
        }
    }
}

/// Returns that entries were written.
pub(super) fn added(count: usize) -> String {
    format!(
        "added {} to `allow` in {FILE_NAME}: write the reason in place of `TODO`, then: {}\n",
        if count == 1 { "1 entry".to_owned() } else { format!("{count} entries") },
        stage([FILE_NAME])
    )
}

fn what(args: &CheckArgs) -> What {
    match (&args.rev, args.staged) {
        (Some(rev), _) => What::Commit(rev.clone()),
        (None, true) => What::Index,
        (None, false) => What::WorkingTree,
    }
}

fn request(args: &CheckArgs) -> Request {
    Request { what: what(args), paths: args.paths.clone(), base: args.base.clone().map_or(Base::Own, Base::Of) }
}

fn print(checked: &Checked, args: &CheckArgs) -> Result<()> {
    let shown = report::Shown {
        verbose: args.verbose,
        quiet: args.quiet,
        color: console::colors_enabled(),
        // A log is searched, not watched.
        overview: !args.verbose && args.format == Format::Human && std::io::stdout().is_terminal(),
    };
    match args.format {
        Format::Human => output::print(&report::human(checked, shown)),
        Format::Json => output::print(&report::json(checked)),
        Format::Sarif => output::print(&report::sarif(checked)),
        Format::Gitlab => output::print(&report::gitlab(checked)),
        Format::Github => output::print_verbatim(&report::github(checked, shown)),
    }
    match args.format {
        // The log of a step is one: what could not be looked at is in there.
        Format::Github => summarize(checked, args.verbose)?,
        _ => output::failures(&Failures(checked.failures.clone())),
    }
    Ok(())
}

/// Returns how a hook shows what was found: on standard error, because standard output of `git push` is for its own
/// report.
pub(super) fn shown_by_hook() -> report::Shown {
    report::Shown {
        verbose: false,
        quiet: false,
        color: console::colors_enabled_stderr(),
        overview: std::io::stderr().is_terminal(),
    }
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
        .map_err(|error| Failure::new(format!("could not write the summary to `{}`: {error}", file.to_string_lossy())))
}
