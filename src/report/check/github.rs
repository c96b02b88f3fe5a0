//! The findings for GitHub Actions: workflow commands, which become annotations, and a summary.
//!
//! Escaped as `@actions/core` does it (`command.ts`): whatever a file holds, it ends no command and
//! begins none.

use std::fmt::Write;

use super::overview::Overview;
use super::{Shown, human, summary};
use crate::check::Checked;
use crate::message::failure::Failure;
use crate::message::finding::{Finding, Severity};
use crate::message::redact::inert;
use crate::record::sha256_hex;
use crate::report::visible;

/// GitHub shows so many annotations of a kind for a step, and drops the rest without a word.
const ANNOTATIONS: usize = 10;
/// A summary is shown up to 1 MiB; whoever else writes to it needs some of that.
const SUMMARY: usize = 1_000_000;
/// How many lines that are new in a lock or the configuration a summary lists.
const NEW: usize = 500;

/// Returns what goes to the log: the findings as text, then the commands.
///
/// The runner takes a line of a log for a command if it begins with blanks and `::`, or holds `##[`, and compares
/// loosely. So commands are stopped for the text, until a word that is derived from the text and therefore cannot occur
/// in it.
pub fn github(checked: &Checked, shown: Shown) -> String {
    let mut text = human(checked, shown);
    for failure in &checked.failures {
        let _ = writeln!(text, "error: {}", visible(&failure.to_string()));
        for hint in &failure.hints {
            let _ = writeln!(text, "  hint: {}", visible(hint));
        }
    }
    let mut out = String::new();
    let text = inert(&text);
    if !text.is_empty() {
        let word = sha256_hex(text.as_bytes());
        // Writing to a string cannot fail.
        let _ = write!(out, "::stop-commands::{word}\n{text}::{word}::\n");
    }
    let mut errors: Vec<String> = checked.failures.iter().map(failure).collect();
    let of = |severity| {
        let counts = move |finding: &&Finding| finding.allowed.is_none() && finding.severity == severity;
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
        let text = format!("{} more: all of them are in the log and in the summary", left_out.join(" and "));
        let _ = writeln!(out, "::notice title=git-kustomize-localize::{}", data(&text));
    }
    out
}

/// Returns what goes to the file that `GITHUB_STEP_SUMMARY` names: everything, or of many findings an overview and the
/// first of each, unless `all` are wanted.
///
/// It is Markdown with a table in HTML: in there Markdown means nothing, so that no text from a file can
/// be markup, a link or a mention, and commands can be copied.
pub fn github_summary(checked: &Checked, all: bool) -> String {
    let mut out = format!(
        // Others write to the file as well, and HTML ends at an empty line.
        "\n### git kustomize-localize check\n\n<p>{}</p>\n",
        html(&summary(checked))
    );
    let order = |finding: &&Finding| (finding.allowed.is_some(), finding.severity);
    let mut findings: Vec<&Finding> = checked.findings.iter().collect();
    findings.sort_by_key(order);
    let counting: Vec<&Finding> = findings.iter().filter(|finding| finding.allowed.is_none()).copied().collect();
    let overview = Overview::of(&counting).filter(|_| !all);
    if let Some(overview) = &overview {
        findings.clone_from(&overview.first);
        for (name, rows) in overview.tables() {
            let _ = write!(out, "<table>\n<tr><th></th><th>{name}</th></tr>\n");
            for (count, what) in rows {
                let what = html(&what);
                let row = format!("<tr><td>{count}</td><td><code>{what}</code></td></tr>\n");
                out.push_str(&row);
            }
            out.push_str("</table>\n");
        }
    }
    let failures = checked.failures.iter().map(failure_row);
    let all = checked.failures.len() + findings.len();
    for (what, lines) in super::news(checked) {
        if lines.is_empty() {
            continue;
        }
        let _ = write!(out, "<p>{what}:</p>\n<ul>\n");
        let (shown, left_out) = lines.split_at(lines.len().min(NEW));
        for line in shown {
            let _ = writeln!(out, "<li><code>{}</code></li>", html(line));
        }
        out.push_str("</ul>\n");
        if !left_out.is_empty() {
            let _ = writeln!(out, "<p>{} more are in the log.</p>", left_out.len());
        }
    }
    if all == 0 {
        return out + "\n";
    }
    out.push_str("<table>\n<tr><th></th><th>rule</th><th>where</th><th>what</th></tr>\n");
    let mut left_out = None;
    for (index, row) in failures.chain(findings.into_iter().map(row)).enumerate() {
        if out.len() + row.len() > SUMMARY {
            left_out = Some(all - index);
            break;
        }
        out.push_str(&row);
    }
    out.push_str("</table>\n");
    if let Some(count) = left_out {
        let _ = writeln!(out, "<p>{count} more are in the log.</p>");
    }
    if let Some(overview) = &overview {
        for lines in [overview.rest(), overview.begin()] {
            let lines: Vec<String> = lines.iter().map(|line| html(line)).collect();
            let _ = writeln!(out, "<pre>{}</pre>", lines.join("&#10;"));
        }
    }
    out + "\n"
}

fn row(finding: &Finding) -> String {
    let level = match &finding.allowed {
        Some(_) => "allowed",
        None => finding.severity.name(),
    };
    let place = match finding.span {
        Some(span) => format!("{}:{}:{}", finding.path, span.line, span.column),
        None => finding.path.clone(),
    };
    let mut what = format!("<code>{}</code>", html(&finding.message));
    match &finding.allowed {
        Some(allowed) => {
            let text = format!("allowed by {}: {}", allowed.by(), allowed.reason);
            let _ = write!(what, "<br><code>{}</code>", html(&text));
        }
        None => {
            for help in &finding.help {
                // A line end of its own could end the table.
                let lines: Vec<String> = help.lines().map(html).collect();
                let _ = write!(what, "<pre>{}</pre>", lines.join("&#10;"));
            }
        }
    }
    table_row(level, finding.rule.id(), &place, &what)
}

fn failure_row(failure: &Failure) -> String {
    let place = failure.location.as_ref().map(ToString::to_string);
    let mut what = format!("<code>{}</code>", html(&failure.message));
    for hint in &failure.hints {
        let _ = write!(what, "<pre>{}</pre>", html(hint));
    }
    table_row("failure", "", &place.unwrap_or_default(), &what)
}

fn table_row(level: &str, rule: &str, place: &str, what: &str) -> String {
    format!("<tr><td>{level}</td><td>{rule}</td><td><code>{}</code></td><td>{what}</td></tr>\n", html(place))
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
    let mut text = visible(&finding.message);
    for help in &finding.help {
        text.push('\n');
        text.push_str(&help.lines().map(visible).collect::<Vec<_>>().join("\n"));
    }
    format!("::{} {}::{}", finding.severity.name(), properties.join(","), data(&text))
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
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes the value of a property (`escapeProperty`).
fn property(text: &str) -> String {
    data(&visible(text)).replace(':', "%3A").replace(',', "%2C")
}

/// Returns a text as it stands in HTML, in one line.
fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in visible(text).chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            character => out.push(character),
        }
    }
    out
}
