//! Messages on standard error: failures with their hints, and warnings.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use console::Style;

use super::{by_id, counted, visible};
use crate::config::{Config, FILE_NAME};
use crate::graph::Warning;
use crate::message::failure::{Exception, Failure, Failures};
use crate::message::finding::Rule;
use crate::tree::LOCK_COMMAND;

/// How many places of one failure, or warnings of one id, are named before the rest is only counted.
const NAMED: usize = 5;

/// Returns what stopped the work, each with what to do about it. What failed for one reason in several places is one.
pub(crate) fn failures(failures: &Failures) -> String {
    let mark = Style::new().for_stderr().red().bold();
    let hint = Style::new().for_stderr().cyan().bold();
    // Writing to a string cannot fail.
    let mut out = String::new();
    let groups = by_reason(failures);
    for (index, group) in groups.iter().enumerate() {
        let Some((failure, others)) = group.split_first() else {
            continue;
        };
        let what = match others {
            [] => failure.to_string(),
            _ => failure.message.clone(),
        };
        let _ = writeln!(out, "{} {}", mark.apply_to("error:"), visible(&what));
        if !others.is_empty() {
            for one in group.iter().take(NAMED) {
                let place = one.place().unwrap_or_default();
                let _ = writeln!(out, "  at {}", visible(&place));
            }
            if let more @ 1.. = group.len().saturating_sub(NAMED) {
                let _ = writeln!(out, "  and in {}", counted(more, "more place"));
            }
        }
        if !failure.chain.is_empty() {
            let chain: Vec<String> = failure.chain.iter().map(ToString::to_string).collect();
            let _ = writeln!(out, "  reached from {}", visible(&chain.join(" -> ")));
        }
        // The same hint for several in a row is printed once, below them.
        let next = groups.get(index + 1).and_then(|next| next.first());
        if next.is_some_and(|next| next.hints == failure.hints) {
            continue;
        }
        for text in &failure.hints {
            let _ = writeln!(out, "  {} {}", hint.apply_to("hint:"), visible(text));
        }
    }
    let exceptions = failures.0.iter().filter_map(|one| one.exception.as_deref());
    let leave = leave(&exceptions.collect::<Vec<_>>());
    if !leave.is_empty() {
        let _ = write!(out, "{} ", hint.apply_to("hint:"));
    }
    for line in leave {
        let _ = writeln!(out, "{}", visible(&line));
    }
    out
}

/// Returns how these are left remote: a line that says what to do, then the entries; nothing where there are none.
pub(super) fn leave(exceptions: &[&Exception]) -> Vec<String> {
    let entries = Config::entries(exceptions);
    let what = match entries.len() {
        0 => return Vec::new(),
        1 => "it",
        _ => "them",
    };
    let hint = format!(
        "to leave {what} remote, run `git kustomize-localize lock --add-allow`, or add to `allow` in `{FILE_NAME}`:"
    );
    let entries = entries.into_iter().map(|entry| format!("  {entry}"));
    std::iter::once(hint).chain(entries).collect()
}

/// Returns the failures, those that differ in their places alone together, in the order of the first of each.
fn by_reason(failures: &Failures) -> Vec<Vec<&Failure>> {
    let mut groups: Vec<Vec<&Failure>> = Vec::new();
    let mut known = HashMap::new();
    for failure in &failures.0 {
        if failure.location.is_none() {
            groups.push(vec![failure]);
            continue;
        }
        let reason = (&failure.message, &failure.hints, &failure.chain);
        let at = *known.entry(reason).or_insert_with(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        groups[at].push(failure);
    }
    groups
}

/// Returns the failure that nothing was written because of these.
pub(crate) fn refused(warnings: &[Warning]) -> Failure {
    let refused = warnings.iter().filter(|warning| warning.fails());
    let refused: Vec<Warning> = refused.cloned().collect();
    let counts = by_id(&refused);
    let each: Vec<String> = counts.iter().map(|(id, count)| format!("{id} {count}")).collect();
    let failure =
        Failure::new(format!("nothing was written: {} ({})", counted(refused.len(), "error"), each.join(", ")));
    let ids: Vec<&str> = counts.into_keys().collect();
    let mut failure =
        failure.hint(format!("what that is, and what to do: git kustomize-localize explain {}", ids.join(" ")));
    let (remote, other): (Vec<Rule>, Vec<Rule>) =
        refused.iter().map(|warning| warning.rule).partition(|rule| *rule == Rule::RemoteReference);
    if !remote.is_empty() {
        failure = failure.hint(format!("lock what is remote: {LOCK_COMMAND} && git commit"));
    }
    if other.iter().any(|rule| rule.can_be_allowed()) {
        failure = failure.hint("to let it stay, with a reason: git kustomize-localize check --add-allow");
    }
    failure
}

/// Returns the warnings that are shown: without `verbose` a few of each id, and all that are errors.
pub(super) fn shown(warnings: &[Warning], verbose: bool) -> Vec<&Warning> {
    let mut counts: BTreeMap<Rule, usize> = BTreeMap::new();
    let mut is_shown = |warning: &&Warning| {
        let count = counts.entry(warning.rule).or_default();
        *count += 1;
        verbose || warning.fails() || *count <= NAMED
    };
    warnings.iter().filter(|warning| is_shown(warning)).collect()
}

/// Returns those warnings that are [`shown`], a line each.
pub(crate) fn warnings(warnings: &[Warning], verbose: bool) -> String {
    // Writing to a string cannot fail.
    let mut out = String::new();
    for warning in shown(warnings, verbose) {
        let mark = Style::new().for_stderr().bold();
        let mark = if warning.fails() { mark.red() } else { mark.yellow() };
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
            mark.apply_to(warning.severity.name()),
            mark.apply_to(format!("[{}]:", warning.rule)),
            visible(&place),
            visible(&field),
            visible(&warning.message)
        );
    }
    out
}
