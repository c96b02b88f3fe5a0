//! What came of a command that writes: its report, its warnings, its errors.

use std::process::ExitCode;

use super::args::OutputArgs;
use super::output::{Format, failed, failures, print, say};
use crate::message::failure::Failures;
use crate::report::{Tell, messages};

/// Prints the result of a command, and returns the exit status.
pub(super) fn tell<T: Tell>(args: &OutputArgs, outcome: Result<T, Failures>) -> ExitCode {
    args.color.apply();
    let json = args.format == Format::Json;
    let report = match outcome {
        Ok(report) => report,
        Err(failures) => return failed(&failures, json),
    };
    let differs = report.refusal();
    let refused = report.is_refused();
    if json {
        print(&report.json());
    } else {
        if !args.quiet {
            print(&report.human(args.verbose));
        }
        if !args.quiet || refused {
            say(&messages::warnings(report.warnings(), args.verbose));
        }
    }
    failures(&report.failures(args.verbose));
    if refused {
        failures(&messages::refused(report.warnings()).into());
    }
    if let Some(differs) = differs {
        failures(&differs.into());
    }
    if report.is_done() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
