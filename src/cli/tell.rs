//! What came of a command that writes: its report, its warnings, its errors.

use std::fmt::Write as _;
use std::process::ExitCode;

use console::Style;

use super::args::{Format, OutputArgs};
use super::output::{failed, failures, print, say};
use crate::config::Strict;
use crate::failure::{Failure, Failures};
use crate::report::{Tell, counted_warnings, visible};
use crate::walk::Warning;

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
    say(&out);
}
