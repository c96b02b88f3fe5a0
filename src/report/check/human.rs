//! The findings for people.

use console::Style;

use super::excerpt::Excerpt;
use super::{not_staged, summary, visible};
use crate::check::Checked;
use crate::finding::{Finding, Severity};

/// How much of a check is shown, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shown {
    /// What is allowed, too.
    pub verbose: bool,
    /// Only what makes the check fail, and no summary.
    pub quiet: bool,
    /// With colour.
    pub color: bool,
}

/// Returns the findings with their lines, and a summary as the last line. What could not be looked at
/// is counted only: it belongs to standard error.
#[must_use]
pub fn human(checked: &Checked, shown: Shown) -> String {
    let styles = Styles::new(shown.color);
    let mut out = String::new();
    for finding in &checked.findings {
        let wanted = match (shown.quiet, &finding.allowed) {
            (true, _) => finding.fails(),
            (false, Some(_)) => shown.verbose,
            (false, None) => true,
        };
        if wanted {
            write_finding(&mut out, finding, &styles);
            out.push('\n');
        }
    }
    if shown.quiet {
        return out;
    }
    if let Some(note) = not_staged(checked) {
        out.push_str(&format!("{} {note}\n", styles.help.apply_to("note:")));
    }
    out.push_str(&summary(checked));
    out.push('\n');
    out
}

struct Styles {
    error: Style,
    warning: Style,
    allowed: Style,
    /// Line numbers, arrows and bars.
    frame: Style,
    help: Style,
    bold: Style,
}

impl Styles {
    fn new(color: bool) -> Self {
        let style = || Style::new().force_styling(color);
        Styles {
            error: style().red().bold(),
            warning: style().yellow().bold(),
            allowed: style().dim(),
            frame: style().blue().bold(),
            help: style().cyan().bold(),
            bold: style().bold(),
        }
    }

    fn of(&self, finding: &Finding) -> &Style {
        match (&finding.allowed, finding.severity) {
            (Some(_), _) => &self.allowed,
            (None, Severity::Error) => &self.error,
            (None, Severity::Warning) => &self.warning,
        }
    }
}

/// Adds one finding as lines, each with an end.
fn write_finding(out: &mut String, finding: &Finding, styles: &Styles) {
    let style = styles.of(finding);
    let level = match &finding.allowed {
        Some(_) => "allowed",
        None => finding.severity.name(),
    };
    let excerpt = Excerpt::of(finding);
    let number = finding
        .span
        .map_or(String::new(), |span| span.line.to_string());
    let gutter = " ".repeat(number.len());
    let bar = styles.frame.apply_to("|");
    out.push_str(&format!(
        "{}: {}\n",
        style.apply_to(format!("{level}[{}]", finding.rule)),
        styles.bold.apply_to(visible(&finding.message))
    ));
    let mut place = visible(&finding.path);
    if let Some(span) = finding.span {
        place.push_str(&format!(":{}:{}", span.line, span.column));
    }
    let field = visible(&finding.field);
    if excerpt.is_none() && !field.is_empty() {
        place.push_str(&format!(": {field}"));
    }
    out.push_str(&format!(
        "{gutter}{} {place}\n",
        styles.frame.apply_to("-->")
    ));
    if let Some(excerpt) = excerpt {
        let marks = style.apply_to(format!("{} {field}", "^".repeat(excerpt.width)));
        out.push_str(&format!(
            "{gutter} {bar}\n{} {bar} {}\n{gutter} {bar} {}{}\n",
            styles.frame.apply_to(number),
            excerpt.line,
            " ".repeat(excerpt.indent),
            marks
        ));
    }
    if let Some(allowed) = &finding.allowed {
        let note = format!("allowed by {}: {}", allowed.by, allowed.reason);
        let (mark, word) = (styles.frame.apply_to("="), styles.help.apply_to("note:"));
        out.push_str(&format!("{gutter} {mark} {word} {}\n", visible(&note)));
        return;
    }
    for help in &finding.help {
        let (mark, word) = (styles.frame.apply_to("="), styles.help.apply_to("help:"));
        let mut lines = help.lines();
        let first = visible(lines.next().unwrap_or_default());
        out.push_str(&format!("{gutter} {mark} {word} {first}\n"));
        for line in lines {
            // Only blanks before a command: it is copied as it stands.
            out.push_str(&format!("{gutter}         {}\n", visible(line)));
        }
    }
}
