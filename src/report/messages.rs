//! Messages on standard error: failures with their hints, and warnings.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use console::Style;

use super::{counted_warnings, visible};
use crate::config::Strict;
use crate::failure::{Failure, Failures};
use crate::finding::WarningId;
use crate::walk::Warning;

/// Returns what stopped the work, each with what to do about it.
#[must_use]
pub fn failures(failures: &Failures) -> String {
    let mark = Style::new().for_stderr().red().bold();
    let hint = Style::new().for_stderr().cyan().bold();
    // Writing to a string cannot fail.
    let mut out = String::new();
    for (index, failure) in failures.0.iter().enumerate() {
        let _ = writeln!(
            out,
            "{} {}",
            mark.apply_to("error:"),
            visible(&failure.to_string())
        );
        if !failure.chain.is_empty() {
            let chain: Vec<String> = failure.chain.iter().map(ToString::to_string).collect();
            let _ = writeln!(out, "  reached from {}", visible(&chain.join(" -> ")));
        }
        // The same hint for several in a row is printed once, below them.
        let next = failures.0.get(index + 1);
        if next.is_some_and(|next| next.hints == failure.hints) {
            continue;
        }
        for text in &failure.hints {
            let _ = writeln!(out, "  {} {}", hint.apply_to("hint:"), visible(text));
        }
    }
    out
}

/// Returns the failure that warnings are errors.
#[must_use]
pub fn too_strict(strict: &Strict, warnings: &[Warning]) -> Failure {
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
    let failure = Failure::new(format!(
        "nothing was written, because of {}: {lets}",
        counted_warnings(&refused)
    ));
    let ids: BTreeSet<WarningId> = refused.iter().map(|warning| warning.id).collect();
    let meanings = ids.iter().map(|id| format!("`{id}`: {}", id.meaning()));
    meanings
        .fold(failure, Failure::hint)
        .hint(format!("to accept them, {accept}"))
}

/// Returns warnings, a line each.
#[must_use]
pub fn warnings(warnings: &[Warning]) -> String {
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
    out
}
