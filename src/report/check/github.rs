//! The findings for GitHub Actions: workflow commands, which become annotations, and a summary.
//!
//! Escaped as `@actions/core` does it (`command.ts`): whatever a file holds, it ends no command and
//! begins none.

use std::fmt::Write;

use super::{Shown, human, summary};
use crate::check::Checked;
use crate::failure::Failure;
use crate::finding::{Finding, Severity};
use crate::report::visible;

/// GitHub shows so many annotations of a kind for a step, and drops the rest without a word.
const ANNOTATIONS: usize = 10;
/// A summary is shown up to 1 MiB; whoever else writes to it needs some of that.
const SUMMARY: usize = 1_000_000;

/// Returns what goes to the log: the findings as text, then the commands.
///
/// GitHub takes a line of the text for a command if it begins with blanks and `::`, or holds `##[`;
/// none does.
#[must_use]
pub fn github(checked: &Checked, shown: Shown) -> String {
    let mut out = String::new();
    for line in human(checked, shown).lines() {
        let blanks = line.len() - line.trim_start().len();
        let (blanks, rest) = line.split_at(blanks);
        out.push_str(blanks);
        match rest.strip_prefix("::") {
            Some(rest) => out.extend([": :", rest]),
            None => out.push_str(rest),
        }
        out.push('\n');
    }
    let mut errors: Vec<String> = checked.failures.iter().map(failure).collect();
    let of = |severity| {
        let counts =
            move |finding: &&Finding| finding.allowed.is_none() && finding.severity == severity;
        checked.findings.iter().filter(counts).map(annotation)
    };
    errors.extend(of(Severity::Error));
    let warnings: Vec<String> = of(Severity::Warning).collect();
    let mut left_out = Vec::new();
    for (commands, what) in [(errors, "error"), (warnings, "warning")] {
        for command in commands.iter().take(ANNOTATIONS) {
            out.push_str(command);
            out.push('\n');
        }
        if let count @ 1.. = commands.len().saturating_sub(ANNOTATIONS) {
            left_out.push(super::counted(count, what));
        }
    }
    if !left_out.is_empty() {
        let text = format!(
            "{} more: all of them are in the log and in the summary",
            left_out.join(" and ")
        );
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "::notice title=git-kustomize-localize::{}",
            data(&text)
        );
    }
    out.replace("##[", "## [")
}

/// Returns everything as Markdown, for the file that `GITHUB_STEP_SUMMARY` names.
#[must_use]
pub fn github_summary(checked: &Checked) -> String {
    let mut out = format!(
        "### git kustomize-localize check\n\n{}\n",
        cell(&summary(checked))
    );
    let mut rows = Vec::new();
    for failure in &checked.failures {
        let place = failure.location.as_ref().map(ToString::to_string);
        rows.push([
            "failure".to_owned(),
            String::new(),
            place.unwrap_or_default(),
            failure.message.clone(),
        ]);
    }
    let order = |finding: &&Finding| (finding.allowed.is_some(), finding.severity);
    let mut findings: Vec<&Finding> = checked.findings.iter().collect();
    findings.sort_by_key(order);
    for finding in findings {
        let level = match &finding.allowed {
            Some(allowed) => format!("allowed: {}", allowed.reason),
            None => finding.severity.name().to_owned(),
        };
        let place = match finding.span {
            Some(span) => format!("{}:{}:{}", finding.path, span.line, span.column),
            None => finding.path.clone(),
        };
        rows.push([
            level,
            finding.rule.id().to_owned(),
            place,
            finding.message.clone(),
        ]);
    }
    if rows.is_empty() {
        return out;
    }
    out.push_str("\n| | rule | where | what |\n|---|---|---|---|\n");
    let all = rows.len();
    for (index, row) in rows.iter().enumerate() {
        let row = row.each_ref().map(|text| cell(text)).join(" | ");
        if out.len() + row.len() > SUMMARY {
            let _ = writeln!(out, "\n{} more are in the log.", all - index);
            break;
        }
        let _ = writeln!(out, "| {row} |");
    }
    out
}

fn annotation(finding: &Finding) -> String {
    let mut properties = vec![format!("file={}", property(&finding.path))];
    // Only where it begins: GitHub shows an annotation below the last line of its range.
    if let Some(span) = finding.span {
        properties.push(format!("line={}", span.line));
        properties.push(format!("col={}", span.column));
    }
    properties.push(format!("title={}", property(finding.rule.id())));
    let mut text = visible(&finding.message);
    for help in &finding.help {
        text.push('\n');
        text.push_str(&help.lines().map(visible).collect::<Vec<_>>().join("\n"));
    }
    format!(
        "::{} {}::{}",
        finding.severity.name(),
        properties.join(","),
        data(&text)
    )
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
    let mut text = visible(&failure.message);
    for hint in &failure.hints {
        let _ = write!(text, "\nhint: {}", visible(hint));
    }
    format!("::error {}::{}", properties.join(","), data(&text))
}

/// Escapes the message of a command (`escapeData`).
fn data(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// Escapes the value of a property (`escapeProperty`).
fn property(text: &str) -> String {
    data(&visible(text)).replace(':', "%3A").replace(',', "%2C")
}

/// Returns a text as it stands in a cell of a Markdown table: no markup of its own, no end of line.
fn cell(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in visible(text).chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            // A mention, an issue, a link that Markdown makes by itself: all need these as they are.
            '@' => out.push_str("&#64;"),
            '#' => out.push_str("&#35;"),
            ':' => out.push_str("&#58;"),
            '`' | '*' | '_' | '[' | ']' | '(' | ')' | '|' | '\\' | '~' | '!' | '$' => {
                out.push('\\');
                out.push(character);
            }
            character => out.push(character),
        }
    }
    out
}
