//! The findings for GitHub Actions: workflow commands, which become annotations, and a summary.
//!
//! Escaped as `@actions/core` does it (`command.ts`): whatever a file holds, it ends no command and
//! begins none.

use super::human::human;
use super::issue::{Issue, issues};
use crate::check::Checked;
use crate::commands::messages::{self, html};
use crate::commands::output::Shown;
use crate::message::finding::Severity;
use crate::message::position::Position;
use crate::message::redact::{inert, visible};

/// GitHub shows so many annotations of a kind for a step, and drops the rest without a word.
const ANNOTATIONS: usize = 10;
/// A summary is shown up to 1 MiB; whoever else writes to it needs some of that.
const SUMMARY: usize = 1_000_000;

/// The text for the log: the findings, with no line that GitHub takes for a command, then the commands.
pub fn github(checked: &Checked, shown: Shown) -> String {
    // Without a width each finding is listed: a log is searched, so many findings do no harm.
    let mut out = inert(&text(checked, Shown { width: None, ..shown }));
    for severity in [Severity::Error, Severity::Warning] {
        let issues = issues(checked).filter(|issue| issue.severity == severity);
        out.extend(issues.take(ANNOTATIONS).map(annotation));
    }
    out
}

/// The report for people with the failures, which a terminal would get on stderr, without colors.
fn text(checked: &Checked, shown: Shown) -> String {
    let failures = messages::failures(&checked.failures);
    human(checked, shown) + &console::strip_ansi_codes(&failures)
}

/// The text for the file that `GITHUB_STEP_SUMMARY` names: as on a terminal, where many findings are only counted.
pub fn github_summary(checked: &Checked, verbose: bool) -> String {
    let mut lines = String::new();
    for line in text(checked, Shown { verbose, width: Some(0), ..Shown::default() }).lines() {
        if lines.len() > SUMMARY {
            lines += "… the rest is in the log";
            break;
        }
        // HTML ends at an empty line, so the text has none.
        lines += &format!("{}&#10;", html(line));
    }
    // Markdown means nothing in HTML, so that no text from a file can be markup, a link or a mention.
    // Other steps write to the file as well, so the text begins and ends with an empty line.
    format!("\n### git kustomize-localize check\n\n<pre>{lines}</pre>\n\n")
}

/// The command by which GitHub Actions shows an issue at its line of the change.
fn annotation(issue: Issue<'_>) -> String {
    let mut location = String::new();
    if !issue.path.is_empty() {
        location += &format!("file={},", property(issue.path));
    }
    if let Some(Position { line, column }) = issue.position {
        location += &format!("line={line},col={column},");
    }
    let title = issue.rule.unwrap_or("could not be checked");
    let help = issue.help.iter().map(|help| visible(help));
    let text: Vec<String> = [visible(issue.message)].into_iter().chain(help).collect();
    format!("::{} {location}title={title}::{}\n", issue.severity.name(), data(&text.join("\n")))
}

/// Escapes the message of a command (`escapeData`).
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes the value of a property (`escapeProperty`).
fn property(text: &str) -> String {
    data(&visible(text)).replace(':', "%3A").replace(',', "%2C")
}
