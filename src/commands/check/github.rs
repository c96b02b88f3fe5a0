//! The findings for GitHub Actions: workflow commands, which become annotations, and a summary.
//!
//! Escaped as `@actions/core` does it (`command.ts`): whatever a file holds, it ends no command and
//! begins none.

use super::human::human;
use crate::check::Checked;
use crate::commands::messages;
use crate::commands::output::Shown;
use crate::message::failure::{Failure, Failures, Location};
use crate::message::finding::{Finding, Severity};
use crate::message::redact::{inert, visible};
use crate::record::sha256_hex;

/// GitHub shows so many annotations of a kind for a step, and drops the rest without a word.
const ANNOTATIONS: usize = 10;
/// A summary is shown up to 1 MiB; whoever else writes to it needs some of that.
const SUMMARY: usize = 1_000_000;

/// Returns what goes to the log: the findings as text, then the commands.
///
/// The runner takes a line of a log for a command if it begins with blanks and `::`, or holds `##[`, and compares
/// loosely. So commands are stopped for the text, until a word that is derived from the text and therefore cannot occur
/// in it.
pub fn github(checked: &Checked, shown: Shown) -> String {
    // A log is searched, not watched.
    let text = text(checked, Shown { width: None, ..shown });
    let text = inert(&text);
    let mut out = String::new();
    if !text.is_empty() {
        let word = sha256_hex(text.as_bytes());
        out = format!("::stop-commands::{word}\n{text}::{word}::\n");
    }
    for severity in [Severity::Error, Severity::Warning] {
        let counts = |finding: &&Finding| finding.allowed.is_none() && finding.severity == severity;
        let failures = checked.failures.iter().filter(|_| severity == Severity::Error).map(failure);
        let commands = failures.chain(checked.findings.iter().filter(counts).map(annotation));
        out.extend(commands.take(ANNOTATIONS));
    }
    out
}

fn text(checked: &Checked, shown: Shown) -> String {
    let failures = messages::failures(&Failures(checked.failures.clone()));
    human(checked, shown) + &console::strip_ansi_codes(&failures)
}

/// Returns what goes to the file that `GITHUB_STEP_SUMMARY` names: what a terminal shows.
///
/// It is Markdown with text in HTML: in there Markdown means nothing, so that no text from a file can be markup, a link
/// or a mention, and commands can be copied. HTML ends at an empty line, so the text has none.
pub fn github_summary(checked: &Checked, verbose: bool) -> String {
    let mut lines = String::new();
    for line in text(checked, Shown { verbose, width: Some(0), ..Shown::default() }).lines() {
        if lines.len() > SUMMARY {
            lines += "… the rest is in the log";
            break;
        }
        lines += &format!("{}&#10;", html(line));
    }
    // Others write to the file as well.
    format!("\n### git kustomize-localize check\n\n<pre>{lines}</pre>\n\n")
}

fn annotation(finding: &Finding) -> String {
    let mut place = format!("file={}", property(&finding.path));
    // Only the line where it begins: GitHub shows an annotation below the last line of its range.
    if let Some(span) = finding.span {
        place += &format!(",line={},col={}", span.line, span.column);
        if span.end_line == span.line {
            place += &format!(",endColumn={}", span.end_column);
        }
    }
    let help = finding.help.iter().flat_map(|help| help.lines());
    command(finding.severity, &place, finding.rule.id(), &finding.message, help)
}

fn failure(failure: &Failure) -> String {
    let place = match failure.location.as_deref() {
        Some(Location { file, line: 0, .. }) => format!("file={}", property(file)),
        Some(Location { file, line, .. }) => format!("file={},line={line}", property(file)),
        None => String::new(),
    };
    let hints: Vec<String> = failure.hints.iter().map(|hint| format!("hint: {hint}")).collect();
    let hints = hints.iter().map(String::as_str);
    command(Severity::Error, &place, "could not be looked at", &failure.message, hints)
}

/// Returns a command that annotates a place.
fn command<'a>(
    severity: Severity,
    place: &str,
    title: &str,
    message: &'a str,
    more: impl Iterator<Item = &'a str>,
) -> String {
    let text: Vec<String> = std::iter::once(message).chain(more).map(visible).collect();
    let comma = if place.is_empty() { "" } else { "," };
    format!("::{} {place}{comma}title={title}::{}\n", severity.name(), data(&text.join("\n")))
}

/// Escapes the message of a command (`escapeData`).
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes the value of a property (`escapeProperty`).
fn property(text: &str) -> String {
    data(&visible(text)).replace(':', "%3A").replace(',', "%2C")
}

/// Returns a line of text as it stands in HTML.
fn html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
