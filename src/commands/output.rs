//! The output of commands: results on stdout, everything else on stderr, and the exit status.

use std::collections::BTreeSet;
use std::io::{ErrorKind, Write};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use clap::builder::StyledStr;
use clap::{Args, ColorChoice, ValueEnum};
use serde::Serialize;

use super::{json, messages};
use crate::message::failure::{FAILED, Failure, Failures};
use crate::message::redact::inert;
use crate::os::interrupt::delay_interrupts;

/// How results are shown, by every command.
#[derive(Debug, Clone, Args)]
pub(super) struct OutputArgs {
    /// How the result is written to standard output
    #[arg(long, global = true, value_enum, value_name = "FORMAT", default_value_t = Format::Human, hide_short_help = true)]
    pub format: Format,

    /// Print only errors
    #[arg(short, long, global = true)]
    pub quiet: bool,

    /// Print each item that is otherwise only counted
    #[arg(short, long, global = true)]
    pub verbose: bool,

    /// When to use colour
    #[arg(long, global = true, value_name = "WHEN", default_value_t = ColorChoice::Auto, hide_short_help = true)]
    pub color: ColorChoice,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// For people
    Human,
    /// For machines: one JSON object
    Json,
    /// Of `check`, for code scanning: SARIF 2.1.0
    Sarif,
    /// Of `check`, for the log of GitHub Actions: annotations, and a summary
    Github,
    /// Of `check`, for merge requests of GitLab: a report of code quality
    Gitlab,
    /// Of `diff`, for a comment of a pull request: Markdown
    Markdown,
    /// Of `diff`, for reviewers: one page of HTML
    Html,
    /// Of `sbom`: CycloneDX 1.6
    Cyclonedx,
    /// Of `sbom`: SPDX 2.3
    Spdx,
    /// Of `sbom`: SLSA provenance in an in-toto statement, to be signed
    Slsa,
}

/// How a result is shown to people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shown {
    pub verbose: bool,
    pub quiet: bool,
    pub color: bool,
    /// The width of the terminal, where it is one.
    pub width: Option<usize>,
}

impl OutputArgs {
    /// Applies `--color` to the whole process, also to messages that are printed without these options. By default
    /// `console` decides, by the terminal and the environment.
    pub(super) fn apply(&self) {
        let enabled = match self.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => return,
        };
        console::set_colors_enabled(enabled);
        console::set_colors_enabled_stderr(enabled);
    }

    /// How the report for people is printed on this terminal.
    pub(super) fn shown(&self) -> Shown {
        let terminal = console::Term::stdout();
        Shown {
            verbose: self.verbose,
            quiet: self.quiet,
            color: console::colors_enabled(),
            width: terminal.size_checked().map(|(_, columns)| columns.into()),
        }
    }
}

/// A text of clap as it is printed.
pub(super) fn styled(text: &StyledStr, color: bool) -> String {
    if color { text.ansi().to_string() } else { text.to_string() }
}

/// An outcome that is one JSON object: everything that can be serialized.
pub(super) trait Json {
    fn json(&self) -> String;
}

impl<T: Serialize> Json for T {
    fn json(&self) -> String {
        json::json_report(self)
    }
}

/// The result of a command.
pub(super) trait Outcome: Json {
    /// The text for people on stdout.
    fn text(&self, shown: Shown) -> String;

    /// The text for stdout, in which no line is a command for GitHub Actions.
    fn report(&self, output: &OutputArgs) -> String {
        inert(&match output.format {
            Format::Json => self.json(),
            _ => self.text(output.shown()),
        })
    }

    /// The text for stderr.
    fn stderr(&self, _output: &OutputArgs) -> String {
        String::new()
    }

    /// The exit status: 0, or 1 for findings or differing builds; [`FAILED`] if the result has a part that could not be
    /// done.
    fn status(&self) -> u8 {
        0
    }

    /// The builds that were stopped early: then the command failed, whatever its other results.
    fn stopped(&self) -> Vec<Failure> {
        Vec::new()
    }

    /// The command that shows the report on a terminal; `None` if it is printed directly.
    fn pager(&self) -> Option<&str> {
        None
    }
}

/// A page, or anything else that is printed as it is: text of ours.
#[derive(Debug, Serialize)]
pub(super) struct Page {
    text: String,
}

impl Page {
    /// A page as the outcome of a command.
    pub(super) fn of(text: String) -> Done {
        Ok(Box::new(Page { text }))
    }
}

impl Outcome for Page {
    fn text(&self, _shown: Shown) -> String {
        self.text.clone()
    }

    fn report(&self, output: &OutputArgs) -> String {
        if output.format == Format::Json { self.json() } else { self.text.clone() }
    }
}

/// The outcome of a command.
pub(super) type Done = Result<Box<dyn Outcome>, Failures>;

/// Prints the outcome of a command, and returns the exit status.
pub(super) fn print_outcome(output: &OutputArgs, outcome: Done) -> ExitCode {
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(failures) => return print_failures(output, &failures),
    };
    // A build that was stopped may have hidden anything, so the command failed.
    let stopped: BTreeSet<Failure> = outcome.stopped().into_iter().collect();
    let status = if stopped.is_empty() { outcome.status() } else { FAILED };
    let is_wanted = status > 0 || !output.quiet;
    // `--quiet` is about text for people. A report for a program or a page is never cut down to nothing.
    if is_wanted || !matches!(output.format, Format::Human | Format::Github) {
        let report = outcome.report(output);
        let pager = outcome.pager().filter(|_| console::Term::stdout().is_term() && !report.is_empty());
        if !pager.is_some_and(|pager| show_in_pager(pager, report.as_bytes())) {
            print(report.as_bytes());
        }
    }
    // After a success stderr is for people only, so nothing is said beside JSON.
    if is_wanted && (status > 0 || output.format != Format::Json) {
        say(&outcome.stderr(output));
    }
    say(&messages::first_failures(&stopped.into_iter().collect::<Vec<_>>(), output.verbose));
    ended(status)
}

/// Prints the failures, for machines on stdout as well.
pub(super) fn print_failures(output: &OutputArgs, failures: &Failures) -> ExitCode {
    if output.format == Format::Json {
        print(inert(&json::failures(failures)).as_bytes());
    }
    say(&messages::failures(&failures.0));
    ended(FAILED)
}

/// Whether a result could not be written: then the exit status is 2, whatever the command returned.
static IS_LOST: AtomicBool = AtomicBool::new(false);

/// Writes to standard output as it is. A reader that has gone away is not an error.
pub(super) fn print(text: &[u8]) {
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(text).and_then(|()| stdout.flush());
    if let Err(error) = written
        && error.kind() != ErrorKind::BrokenPipe
    {
        // The command goes on, but must not end with success.
        IS_LOST.store(true, Ordering::Relaxed);
        let failure = Failure::new(format!("could not write to standard output: {error}"));
        say(&messages::failures(&[failure]));
    }
}

/// Shows text in a pager, as git does. Returns false if the pager could not be run, so that the caller prints the text.
fn show_in_pager(pager: &str, text: &[u8]) -> bool {
    let mut shell = Command::new("sh");
    shell.args(["-c", pager]).stdin(Stdio::piped());
    // git sets these variables as well, unless the user does.
    for (name, value) in [("LESS", "FRX"), ("LV", "-c")] {
        if std::env::var_os(name).is_none() {
            shell.env(name, value);
        }
    }
    // An interruption waits until the pager ends.
    let _held = delay_interrupts();
    let Ok(mut child) = shell.spawn() else { return false };
    // An error only means that the user has left the pager early.
    let _ = child.stdin.take().map(|mut stdin| stdin.write_all(text));
    // The exit statuses of a shell for a program that does not exist, or is not executable.
    const NOT_RUN: [i32; 2] = [126, 127];
    child.wait().is_ok_and(|status| !status.code().is_some_and(|code| NOT_RUN.contains(&code)))
}

/// The exit status of a command with this status, after its result was written.
pub(super) fn ended(status: u8) -> ExitCode {
    ExitCode::from(if IS_LOST.load(Ordering::Relaxed) { FAILED } else { status })
}

/// Writes text to standard error, in which no line is a command for GitHub Actions.
pub(super) fn say(text: &str) {
    let _ = std::io::stderr().lock().write_all(inert(text).as_bytes());
}
