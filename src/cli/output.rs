//! Writing to the terminal: results to standard output, everything else to standard error.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::ValueEnum;

use super::FAILED;
use crate::message::failure::{Failure, Failures};
use crate::message::redact::inert;
use crate::report::messages;

/// How a result is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// For people
    Human,
    /// For machines: one JSON object
    Json,
}

/// When to use colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl Color {
    /// Makes the choice hold for the whole process.
    pub(super) fn apply(self) {
        let wanted = |terminal: bool| match self {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        };
        console::set_colors_enabled(wanted(std::io::stdout().is_terminal()));
        console::set_colors_enabled_stderr(wanted(std::io::stderr().is_terminal()));
    }
}

/// Whether a result could not be written: then the work was not done, whatever else came of it.
static IS_LOST: AtomicBool = AtomicBool::new(false);

/// Writes a result to standard output, in which no line is a command for GitHub Actions.
pub(super) fn print(text: &str) {
    print_verbatim(&inert(text));
}

/// Writes a result to standard output unchanged: commands for GitHub Actions, scripts. A reader that has gone away is
/// not an error.
pub(super) fn print_verbatim(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    if let Err(error) = written {
        lost(&error);
    }
}

/// Records and reports that a result could not be written.
pub(super) fn lost(error: &std::io::Error) {
    if error.kind() == std::io::ErrorKind::BrokenPipe || IS_LOST.swap(true, Ordering::Relaxed) {
        return;
    }
    let failure = Failure::new(format!("could not write to standard output: {error}"));
    failures(&failure.into());
}

/// Returns the exit status of a command that came to `status`, now that its result was written or not.
pub(super) fn ended(status: ExitCode) -> ExitCode {
    if IS_LOST.load(Ordering::Relaxed) { ExitCode::from(FAILED) } else { status }
}

/// Writes text to standard error, in which no line is a command for GitHub Actions.
pub(super) fn say(text: &str) {
    let _ = std::io::stderr().lock().write_all(inert(text).as_bytes());
}

/// Prints what stopped the work, to standard error and, for machines, to standard output; returns the exit status.
pub(super) fn failed(failures: &Failures, json: bool) -> ExitCode {
    if json {
        print(&crate::report::failures_json(failures));
    }
    self::failures(failures);
    ExitCode::from(FAILED)
}

/// Writes what stopped the work to standard error, each with what to do about it.
pub(super) fn failures(failures: &Failures) {
    say(&messages::failures(failures));
}
