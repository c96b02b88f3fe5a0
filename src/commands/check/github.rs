//! The findings for GitHub Actions: workflow commands, which become annotations, and a summary.
//!
//! Escaped as `@actions/core` does it (`command.ts`): whatever a file holds, it ends no command and
//! begins none.

use super::human::human;
use crate::check::Checked;
use crate::commands::messages::{self, counted};
use crate::commands::output::Shown;
use crate::message::failure::{Failure, Failures};
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
    let of = |severity| {
        let counts = move |finding: &&Finding| finding.allowed.is_none() && finding.severity == severity;
        checked.findings.iter().filter(counts).map(annotation)
    };
    let errors: Vec<String> = checked.failures.iter().map(failure).chain(of(Severity::Error)).collect();
    let mut left_out = Vec::new();
    for (commands, what) in [(errors, "error"), (of(Severity::Warning).collect(), "warning")] {
        out.extend(commands.iter().take(ANNOTATIONS).map(|command| format!("{command}\n")));
        if let count @ 1.. = commands.len().saturating_sub(ANNOTATIONS) {
            left_out.push(counted(count, what));
        }
    }
    if !left_out.is_empty() {
        let text = format!("{} more: all of them are in the log and in the summary", left_out.join(" and "));
        out += &format!("::notice title=git-kustomize-localize::{}\n", data(&text));
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
    let mut properties = vec![format!("file={}", property(&finding.path))];
    // Only the line where it begins: GitHub shows an annotation below the last line of its range.
    if let Some(span) = finding.span {
        properties.push(format!("line={}", span.line));
        properties.push(format!("col={}", span.column));
        if span.end_line == span.line {
            properties.push(format!("endColumn={}", span.end_column));
        }
    }
    properties.push(format!("title={}", property(finding.rule.id())));
    let lines = finding.help.iter().flat_map(|help| help.lines().map(visible));
    let text: Vec<String> = std::iter::once(visible(&finding.message)).chain(lines).collect();
    format!("::{} {}::{}", finding.severity.name(), properties.join(","), data(&text.join("\n")))
}

fn failure(failure: &Failure) -> String {
    let mut properties = Vec::new();
    if let Some(location) = &failure.location {
        properties.push(format!("file={}", property(&location.file)));
        if location.line > 0 {
            properties.push(format!("line={}", location.line));
        }
    }
    properties.push("title=could not be looked at".to_owned());
    let hints = failure.hints.iter().map(|hint| format!("\nhint: {}", visible(hint)));
    let text = visible(&failure.message) + &hints.collect::<String>();
    format!("::error {}::{}", properties.join(","), data(&text))
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
