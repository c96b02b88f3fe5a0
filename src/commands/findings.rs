//! Findings for people, in every command: each with its line and its fixes.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use console::{Style, measure_text_width};

use super::messages::{self, counted, named};
use super::output::Shown;
use crate::message::failure::{Failure, short};
use crate::message::finding::{Finding, Rule, Severity};
use crate::message::redact::{self, visible};
use crate::tree::LOCK_COMMAND;

/// The longest line that is shown, in bytes.
const LINE: usize = 160;

/// How many findings that stop nothing are shown before the rest is only counted.
const NAMED: usize = 5;

/// The number of findings in total and by rule, such as `2 warnings (function 1, remote-chart 1)`.
fn counted_by_rule<'a>(findings: impl IntoIterator<Item = &'a Finding>, what: &str) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for finding in findings {
        *counts.entry(finding.rule.id()).or_default() += 1;
    }
    let each: Vec<String> = counts.iter().map(|(id, count)| format!("{id} {count}")).collect();
    format!("{} ({})", counted(counts.values().sum(), what), each.join(", "))
}

/// The findings of a run that localizes or locks, without `verbose` only the errors and the first of all. If some are
/// errors, a last line says that nothing was written, or that nothing was committed from the commit `source`.
pub(super) fn of_localizing(findings: &[Finding], source: Option<&str>, verbose: bool) -> String {
    let color = console::colors_enabled_stderr();
    let shown = Shown { verbose, color, ..Shown::default() };
    // The command that locks is printed once, below them.
    let locks = findings.iter().any(is_lockable);
    let findings: &[Finding] = &findings.iter().cloned().map(without_lock_command).collect::<Vec<_>>();
    let mut out = findings_text(&wanted(findings, verbose), shown);
    let errors: Vec<&Finding> = findings.iter().filter(|finding| finding.fails()).collect();
    let rules: BTreeSet<Rule> = errors.iter().map(|error| error.rule).collect();
    if rules.is_empty() {
        // No line follows the last finding, so the empty line after it is dropped.
        out.truncate(out.trim_end().len() + usize::from(!out.is_empty()));
        return out;
    }
    let left_out = findings.len() - wanted(findings, verbose).len();
    if left_out > 0 {
        out +=
            &format!("{} {}: -v shows all\n", painted("note:", "cyan.bold", color), counted(left_out, "more warning"));
    }
    let count = counted_by_rule(errors, "error");
    let message = match source {
        Some(commit) => format!("{} has {count}: nothing was committed", short(commit)),
        None => format!("nothing was written: {count}"),
    };
    let mut failure = Failure::new(message).hint(format!("for more: {}", explain(rules.iter().copied())));
    if locks {
        failure = failure.hint(format!("lock the remote references: {LOCK_COMMAND} && git commit"));
    }
    out += &messages::failures(&[failure]);
    out
}

/// The finding without help, if one way is to lock the reference.
fn without_lock_command(mut finding: Finding) -> Finding {
    // How to lock is said once, below all findings.
    if is_lockable(&finding) {
        finding.help.clear();
    }
    finding
}

/// Whether a finding is an error that `lock` mends.
fn is_lockable(finding: &Finding) -> bool {
    let is_error = finding.fails() && finding.rule == Rule::RemoteReference;
    is_error && finding.help.iter().any(|help| help.contains(LOCK_COMMAND))
}

/// The command that explains these rules, for people who do not know their ids.
pub(super) fn explain(rules: impl IntoIterator<Item = Rule>) -> String {
    let ids: Vec<&str> = rules.into_iter().map(Rule::id).collect();
    format!("git kustomize-localize explain {}", ids.join(" "))
}

/// The findings that are shown: without `verbose` all errors, and of the first [`NAMED`] groups also the others.
fn wanted(findings: &[Finding], verbose: bool) -> Vec<&Finding> {
    let all: Vec<&Finding> = findings.iter().collect();
    let blocks = blocks(&all, verbose).into_iter().enumerate();
    blocks.filter(|(index, block)| verbose || block[0].fails() || *index < NAMED).flat_map(|(_, block)| block).collect()
}

/// Findings in groups that are printed as one, in the order of the first of each. Without `verbose`, warnings with a
/// common message for several targets share a group.
pub(super) fn blocks<'a>(findings: &[&'a Finding], verbose: bool) -> Vec<Vec<&'a Finding>> {
    let mut blocks: Vec<Vec<&Finding>> = Vec::new();
    let mut known: HashMap<(Rule, &str), usize> = HashMap::new();
    for finding in findings {
        let is_single = verbose || finding.allowed.is_some() || finding.severity == Severity::Error;
        let common = finding.common.as_ref().filter(|_| !is_single);
        let at = common.map(|common| *known.entry((finding.rule, common.all)).or_insert(blocks.len()));
        match at.and_then(|at| blocks.get_mut(at)) {
            Some(block) => block.push(finding),
            None => blocks.push(vec![finding]),
        }
    }
    blocks
}

/// The number of warnings of a run that no finding stopped, in a line of its report; `None` if there are none.
pub(super) fn warning_count(findings: &[Finding], verbose: bool) -> Option<String> {
    let shown = wanted(findings, verbose).len();
    let more = if shown < findings.len() { format!(", {shown} of them shown: -v shows all") } else { String::new() };
    (!findings.is_empty()).then(|| format!("  {}{more}", counted_by_rule(findings, "warning")))
}

/// The findings with their lines. Without `verbose`, a message about several lines of a file is printed once, and help
/// is not repeated.
pub(super) fn findings_text(findings: &[&Finding], shown: Shown) -> String {
    let mut lines: HashMap<MessageKey, BTreeSet<usize>> = HashMap::new();
    for (finding, span) in findings.iter().filter_map(|finding| Some((finding, finding.span?))) {
        lines.entry(message_key(finding)).or_default().insert(span.start.line);
    }
    // The same help for twenty findings would hide the findings.
    let (mut out, mut given, mut is_shortened) = (String::new(), HashSet::new(), false);
    for block in blocks(findings, shown.verbose) {
        let first = block[0];
        // Findings that differ only in their lines are shown as one: the first takes all lines, the others are skipped.
        let common = common_finding(&block).or_else(|| with_all_lines(first, &mut lines, shown.verbose));
        let Some((finding, notes)) = common else { continue };
        let is_repeated = !shown.verbose && first.allowed.is_none() && !given.insert(ways(first));
        is_shortened |= is_repeated && !first.help.is_empty();
        out += &finding_text(&finding, &notes, if is_repeated { &[] } else { &first.help }, shown.color);
    }
    // Without the note, a finding without help would look as if there were no help.
    if is_shortened && !shown.quiet {
        let mark = painted("note:", "cyan.bold", shown.color);
        out += &format!("{mark} repeated help is omitted: -v shows it\n");
    }
    out
}

/// The fixes of a finding. Help that differs only in a path or command is the same help, so only the words before the
/// first colon count.
fn ways(finding: &Finding) -> Vec<&str> {
    finding.help.iter().map(|line| line.split_once(": ").map_or(&**line, |(way, _)| way)).collect()
}

/// A finding with a note about its other lines, which are taken from `lines`; `None` if they were taken before. With
/// `verbose` each finding stands alone.
fn with_all_lines(
    finding: &Finding,
    lines: &mut HashMap<MessageKey, BTreeSet<usize>>,
    verbose: bool,
) -> Option<(Finding, Vec<String>)> {
    if verbose || finding.span.is_none() {
        return Some((finding.clone(), Vec::new()));
    }
    let lines = lines.remove(&message_key(finding))?;
    let others: Vec<String> = lines.iter().skip(1).map(usize::to_string).collect();
    let word = if others.len() == 1 { "line" } else { "lines" };
    let note = (!others.is_empty()).then(|| format!("and in {word} {}", named(&others, verbose)));
    Some((finding.clone(), Vec::from_iter(note)))
}

/// The parts in which findings are equal that are printed once with all their lines: rule, severity, file and message.
type MessageKey = (Rule, Severity, String, String);

/// The [`MessageKey`] of a finding.
fn message_key(finding: &Finding) -> MessageKey {
    (finding.rule, finding.severity, finding.path.clone(), finding.message.clone())
}

/// One finding with the common message of several, and notes with the first of their own parts; `None` for a single
/// finding.
fn common_finding(block: &[&Finding]) -> Option<(Finding, Vec<String>)> {
    let [first, _, ..] = block else { return None };
    let each = block.iter().filter_map(|finding| Some(finding.common.as_ref()?.each.clone()));
    let mut notes: Vec<String> = each.take(NAMED).collect();
    if let more @ 1.. = block.len() - notes.len() {
        notes.push(format!("and {more} more: -v shows each"));
    }
    let all = first.common.as_ref().map_or("", |common| common.all);
    let message = format!("{} targets {all}", block.len());
    // The line and the deployment of the first finding would stand for all of them, so they are omitted.
    Some((Finding { message, line_text: Arc::default(), deployed: Vec::new(), ..(*first).clone() }, notes))
}

/// One finding in the layout of rustc, which people know: the message with its location, the line of the file, `notes`
/// and `help`, then an empty line.
fn finding_text(finding: &Finding, notes: &[String], help: &[String], color: bool) -> String {
    let (style, level) = match (&finding.allowed, finding.severity) {
        (Some(_), _) => ("dim", "allowed"),
        (None, Severity::Error) => ("red.bold", "error"),
        (None, Severity::Warning | Severity::Off) => ("yellow.bold", "warning"),
    };
    let head = painted(&format!("{level}[{}]", finding.rule), style, color);
    let message = painted(&visible(&finding.message), "bold", color);
    let mut out = format!("{head}: {message}\n{}", location_text(finding, style, color));
    let mut remarks: Vec<(&str, String)> = notes.iter().map(|note| ("note:", note.clone())).collect();
    // One target shows that it matters; a base may have hundreds.
    if let Some((first, rest)) = finding.deployed.split_first() {
        let more = if rest.is_empty() { String::new() } else { format!(", and {} more", rest.len()) };
        remarks.push(("note:", format!("deployed by {first}{more}")));
    }
    match &finding.allowed {
        Some(allowed) => remarks.push(("note:", format!("allowed by {}: {}", allowed.by(), allowed.reason))),
        None => remarks.extend(help.iter().map(|help| ("help:", help.clone()))),
    }
    let gutter = " ".repeat(line_number(finding).len());
    let equals = painted("=", "blue.bold", color);
    for (mark, text) in remarks {
        // Only blanks before a command: it is copied as it stands.
        let lines: Vec<String> = text.lines().map(visible).collect();
        let lines = lines.join(&format!("\n{gutter}         "));
        out += &format!("{gutter} {equals} {} {lines}\n", painted(mark, "cyan.bold", color));
    }
    out + "\n"
}

/// The number of the line of a finding; empty if it has none.
fn line_number(finding: &Finding) -> String {
    finding.span.map_or(String::new(), |span| span.start.line.to_string())
}

/// The location of a finding, and the line of the file with marks below it, or else the field. Empty for a finding that
/// is about no file.
fn location_text(finding: &Finding, style: &str, color: bool) -> String {
    if finding.path.is_empty() {
        return String::new();
    }
    let (number, field) = (line_number(finding), visible(&finding.field));
    let gutter = " ".repeat(number.len());
    let begin = if gutter.is_empty() { " " } else { &gutter };
    let [number, arrow, bar] = [&*number, "-->", "|"].map(|mark| painted(mark, "blue.bold", color));
    let location = format!("{begin}{arrow} {}", visible(&finding.location().to_string()));
    match excerpt(finding) {
        Some((line, before, width)) => {
            let marks = painted(format!("{} {field}", "^".repeat(width)).trim_end(), style, color);
            let before = " ".repeat(before);
            format!("{location}\n{gutter} {bar}\n{number} {bar} {line}\n{gutter} {bar} {before}{marks}\n")
        }
        None if field.is_empty() => format!("{location}\n"),
        None => format!("{location}: {field}\n"),
    }
}

/// The line of a finding, and the columns before and below its span. `None` if the span has several lines, if the line
/// is long, or if it may contain a secret or characters that a terminal interprets.
fn excerpt(finding: &Finding) -> Option<(String, usize, usize)> {
    let span = finding.span.filter(|span| span.end.line <= span.start.line)?;
    let line = finding.line_text.trim_end_matches(['\r', '\n']);
    // An escaped text may be a URL that only a YAML parser sees.
    let is_plain = !line.is_empty()
        && line.len() <= LINE
        && !line.contains('\\')
        && !line.contains(|c| c != '\t' && redact::is_hidden(c));
    if !is_plain || redact::message(line) != line {
        return None;
    }
    let shown = |from: usize, to: usize| {
        let part = line.chars().take(to.saturating_sub(1)).skip(from.saturating_sub(1));
        part.collect::<String>().replace('\t', "    ")
    };
    let [before, below] = [shown(1, span.start.column), shown(span.start.column, span.end.column)];
    Some((shown(1, usize::MAX), measure_text_width(&before), measure_text_width(&below).max(1)))
}

/// A text in a style such as `cyan.bold`, if `color` is set.
pub(super) fn painted(text: &str, style: &str, color: bool) -> String {
    Style::from_dotted_str(style).force_styling(color).apply_to(text).to_string()
}
