//! What several commands say: failures with their hints, warnings, what stays remote, what a lock holds now.

use std::collections::{BTreeMap, HashMap};
use std::fmt::{Result, Write as _};

use console::Style;

use super::News;
use crate::config::{Config, FILE_NAME};
use crate::graph::{self, Warning};
use crate::message::failure::{Exception, Failure, Failures, short};
use crate::message::finding::Rule;
use crate::message::redact::visible;
use crate::record::{Change, Left, LeftWhat};
use crate::tree::LOCK_COMMAND;

/// How many of a kind are named before the rest is only counted.
const NAMED: usize = 5;

/// Returns `1 file`, `2 files`.
pub(super) fn counted(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    }
}

/// Returns the first of these, and how many more there are.
pub(super) fn listed(all: impl IntoIterator<Item = impl AsRef<str>>, most: usize) -> String {
    let all: Vec<String> = all.into_iter().map(|one| visible(one.as_ref())).collect();
    let text = all[..most.min(all.len())].join(", ");
    match all.len().saturating_sub(most) {
        0 => text,
        more => format!("{text} and {more} more"),
    }
}

/// Returns what stopped the work, each with what to do about it. What failed for one reason in several places is one.
pub(super) fn failures(failures: &Failures) -> String {
    let mark = Style::new().for_stderr().red().bold();
    let hint = Style::new().for_stderr().cyan().bold();
    // Writing to a string cannot fail.
    let mut out = String::new();
    let groups = by_reason(failures);
    for (index, group) in groups.iter().enumerate() {
        let failure = group[0];
        let is_one = group.len() == 1;
        let what = if is_one { failure.to_string() } else { failure.message.clone() };
        let _ = writeln!(out, "{} {}", mark.apply_to("error:"), visible(&what));
        for one in group.iter().take(NAMED).filter(|_| !is_one) {
            let _ = writeln!(out, "  at {}", visible(&one.place().unwrap_or_default()));
        }
        if let more @ 1.. = group.len().saturating_sub(NAMED) {
            let _ = writeln!(out, "  and in {}", counted(more, "more place"));
        }
        if !failure.chain.is_empty() {
            let chain: Vec<String> = failure.chain.iter().map(ToString::to_string).collect();
            let _ = writeln!(out, "  reached from {}", visible(&chain.join(" -> ")));
        }
        // The same hint for several in a row is printed once, below them.
        if groups.get(index + 1).is_some_and(|next| next[0].hints == failure.hints) {
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
fn leave(exceptions: &[&Exception]) -> Vec<String> {
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

/// Returns `2 warnings (function 1, remote-chart 1)`.
fn counted_by_rule<'a>(warnings: impl IntoIterator<Item = &'a Warning>, what: &str) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for warning in warnings {
        *counts.entry(warning.rule.id()).or_default() += 1;
    }
    let each: Vec<String> = counts.iter().map(|(id, count)| format!("{id} {count}")).collect();
    format!("{} ({})", counted(counts.values().sum(), what), each.join(", "))
}

/// Returns the warnings, a line each, without `verbose` a few of each rule; then, if some of them are errors, that
/// nothing was written.
pub(super) fn warnings(warnings: &[Warning], verbose: bool) -> String {
    let is_refused = warnings.iter().any(Warning::fails);
    let mut out = String::new();
    for warning in shown(warnings, verbose) {
        let mark = Style::new().for_stderr().bold();
        let mark = if warning.fails() { mark.red() } else { mark.yellow() };
        let place = warning.location.to_string();
        let parts = [place.as_str(), &warning.location.field, &warning.message];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        out += &format!(
            "{}{} {}\n",
            mark.apply_to(warning.severity.name()),
            mark.apply_to(format!("[{}]:", warning.rule)),
            visible(&parts.join(": "))
        );
    }
    if is_refused {
        let errors: Vec<&Warning> = warnings.iter().filter(|warning| warning.fails()).collect();
        let rules: std::collections::BTreeSet<&str> = errors.iter().map(|error| error.rule.id()).collect();
        let failure = Failure::new(format!("nothing was written: {}", counted_by_rule(errors, "error")));
        let ids = Vec::from_iter(rules).join(" ");
        let hint = format!("what that is, and what to do: git kustomize-localize explain {ids}");
        let mut failure = failure.hint(hint);
        let errors = || warnings.iter().filter(|warning| warning.fails()).map(|warning| warning.rule);
        if errors().any(|rule| rule == Rule::RemoteReference) {
            failure = failure.hint(format!("lock what is remote: {LOCK_COMMAND} && git commit"));
        }
        if errors().any(|rule| rule != Rule::RemoteReference && rule.can_be_allowed()) {
            failure = failure.hint("to let it stay, with a reason: git kustomize-localize check --add-allow");
        }
        out += &failures(&failure.into());
    }
    out
}

/// Returns the warnings that are shown: without `verbose` a few of each rule.
fn shown(warnings: &[Warning], verbose: bool) -> Vec<&Warning> {
    let mut counts: BTreeMap<Rule, usize> = BTreeMap::new();
    let mut is_shown = |warning: &&Warning| {
        let count = counts.entry(warning.rule).or_default();
        *count += 1;
        verbose || warning.fails() || *count <= NAMED
    };
    warnings.iter().filter(|warning| is_shown(warning)).collect()
}

/// Writes how many warnings there are, if there are any.
pub(super) fn write_warnings(out: &mut String, warnings: &[Warning], verbose: bool) -> Result {
    if warnings.is_empty() {
        return Ok(());
    }
    let more = if shown(warnings, verbose).len() < warnings.len() { ": -v shows each" } else { "" };
    writeln!(out, "  {}{more}", counted_by_rule(warnings, "warning"))
}

/// Writes what stays remote and is allowed, on one line.
pub(super) fn write_accepted(out: &mut String, left: &[Left]) -> Result {
    let accepted: Vec<&Left> = left.iter().filter(|left| left.accepted).collect();
    if accepted.is_empty() { Ok(()) } else { writeln!(out, "  stays remote (allowed): {}", labels(&accepted)) }
}

/// Writes what stays remote and is not allowed, how to bring it in or to allow it, and what happens otherwise: the last
/// line.
pub(super) fn write_left(out: &mut String, left: &[Left]) -> Result {
    let left: Vec<&Left> = left.iter().filter(|left| !left.accepted).collect();
    if left.is_empty() {
        return Ok(());
    }
    if left.iter().any(|left| matches!(left.what, LeftWhat::Chart { .. })) {
        writeln!(out, "  to bring charts in: write `helm: true` in {FILE_NAME}")?;
    }
    let exceptions = left.iter().filter_map(|left| {
        let rule = graph::rules(&left.what).first()?;
        Config::exception(*rule, &graph::subject(&left.what), "")
    });
    let exceptions: Vec<_> = exceptions.collect();
    for line in leave(&exceptions.iter().collect::<Vec<_>>()) {
        writeln!(out, "  {}", visible(&line))?;
    }
    let count = counted(left.len(), "thing");
    writeln!(out, "`git kustomize-localize verify` will fail: {count} left remote and not accepted: {}", labels(&left))
}

fn labels(left: &[&Left]) -> String {
    listed(left.iter().map(|left| left.what.label()), NAMED)
}

/// Writes what is different about the remotes, one line each, with what is new in each.
pub(super) fn write_changes(out: &mut String, changes: &[Change], news: &News) -> Result {
    for change in changes {
        let (label, what) = match change {
            Change::Added { label, digest } => (label, format!("added {} {}", visible(label), short(digest.hex()))),
            Change::Removed { label, digest } => (label, format!("dropped {} {}", visible(label), short(digest.hex()))),
            Change::Moved { label, old, new } => {
                (label, format!("moved {} {} -> {}", visible(label), short(old.hex()), short(new.hex())))
            }
            Change::Extended { label, paths } => {
                (label, format!("added {} of {}", visible(&paths.join(", ")), visible(label)))
            }
        };
        writeln!(out, "  {what}")?;
        for line in news.get(label).into_iter().flatten() {
            writeln!(out, "    {}", visible(line))?;
        }
    }
    Ok(())
}
