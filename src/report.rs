//! What is said about a run: for people, and as JSON for machines. What `check` found has a room of its
//! own, [`mod@check`].

pub(crate) mod affected;
mod build_check;
pub mod check;
pub(crate) mod completion;
pub(crate) mod hook;
mod json;
mod left;
mod localize;
mod lock;
pub(crate) mod messages;
pub(crate) mod reference_tree;
mod remotes;
pub(crate) mod targets;
pub(crate) mod verify;

pub(crate) use json::failures_json;

use std::collections::BTreeMap;

use crate::graph::Warning;
use crate::message::failure::{Failure, Failures};
pub(crate) use crate::message::redact::visible;

/// The result of a run, ready to be printed.
pub(crate) trait Tell {
    /// Returns the summary for people.
    fn human(&self, verbose: bool) -> String;

    /// Returns the report as one JSON object, with a final newline.
    fn json(&self) -> String;

    /// Returns what works but should be known.
    fn warnings(&self) -> &[Warning];

    /// Returns what could not be done beside all that was, and last what that comes to.
    fn failures(&self, _verbose: bool) -> Failures {
        Failures(Vec::new())
    }

    /// Returns whether the command did everything that was asked. If not, the report says what is missing.
    fn is_done(&self) -> bool {
        true
    }

    /// Returns whether nothing was written because of a finding.
    fn is_refused(&self) -> bool;

    /// Returns the error that ends a command which found out that it must not do what it was asked to.
    fn refusal(&self) -> Option<Failure> {
        None
    }
}

/// Counts warnings by their ids.
fn by_id(warnings: &[Warning]) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for warning in warnings {
        *counts.entry(warning.rule.id()).or_default() += 1;
    }
    counts
}

/// Returns `2 warnings (function 1, remote-chart 1)`.
pub(crate) fn counted_warnings(warnings: &[Warning]) -> String {
    let each: Vec<String> = by_id(warnings).iter().map(|(id, count)| format!("{id} {count}")).collect();
    format!("{} ({})", counted(warnings.len(), "warning"), each.join(", "))
}

/// Writes how many warnings there are, if there are any.
fn write_warnings(out: &mut String, warnings: &[Warning], verbose: bool) -> std::fmt::Result {
    use std::fmt::Write;

    if warnings.is_empty() {
        return Ok(());
    }
    let all = counted_warnings(warnings);
    if messages::shown(warnings, verbose).len() < warnings.len() {
        writeln!(out, "  {all}: -v shows each")
    } else {
        writeln!(out, "  {all}")
    }
}

/// Returns `1 file`, `2 files`.
fn counted(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    }
}
