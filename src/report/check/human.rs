//! The findings for people.

use std::collections::{BTreeSet, HashSet};

use console::Style;

use super::excerpt::{Excerpt, Passed};
use super::overview::Overview;
use super::{deployed, news, not_staged, summary, visible};
use crate::check::Checked;
use crate::message::finding::{Finding, Rule, Severity};

/// How much of a check is shown, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shown {
    /// Allowed findings, too.
    pub verbose: bool,
    /// Only what makes the check fail, and no summary.
    pub quiet: bool,
    /// With colour.
    pub color: bool,
    /// Of many findings an overview, and only the first of each: for a person at a terminal.
    pub overview: bool,
}

/// Returns the findings with their lines, and a summary as the last line. What could not be checked
/// is counted only: it belongs to standard error.
pub fn human(checked: &Checked, shown: Shown) -> String {
    let styles = Styles::new(shown.color);
    let mut out = String::new();
    let mut passed = Passed::default();
    let mut helped = Helped::default();
    let is_wanted = |finding: &&Finding| match (shown.quiet, &finding.allowed) {
        (true, _) => finding.fails(),
        (false, Some(_)) => shown.verbose,
        (false, None) => true,
    };
    let wanted: Vec<&Finding> = checked.findings.iter().filter(is_wanted).collect();
    let is_brief = shown.overview && !shown.verbose && !shown.quiet;
    let overview = Overview::of(&wanted).filter(|_| is_brief);
    if let Some(overview) = &overview {
        out.push_str(&overview.text());
    }
    for finding in overview.as_ref().map_or(&wanted, |one| &one.first) {
        let help = if shown.verbose { finding.help.iter().collect() } else { helped.not_given(finding) };
        write_finding(&mut out, finding, &help, &styles, &mut passed);
        out.push('\n');
    }
    if shown.quiet {
        return out;
    }
    if let Some(overview) = &overview {
        for line in overview.rest() {
            out.push_str(&format!("{line}\n"));
        }
        out.push_str(&format!("\n{}\n", styles.bold.apply_to("to begin:")));
        for line in overview.begin() {
            out.push_str(&format!("  {line}\n"));
        }
        out.push('\n');
    }
    if helped.is_shortened {
        let note = "same fix as above where none is shown: -v shows all";
        out.push_str(&format!("{} {note}\n", styles.help.apply_to("note:")));
    }
    if let Some(note) = not_staged(checked) {
        out.push_str(&format!("{} {note}\n", styles.help.apply_to("note:")));
    }
    let rules: BTreeSet<Rule> =
        wanted.iter().filter(|finding| finding.allowed.is_none()).map(|finding| finding.rule).collect();
    if !rules.is_empty() {
        let ids: Vec<&str> = rules.into_iter().map(Rule::id).collect();
        let mark = styles.help.apply_to("for more:");
        let ids = ids.join(" ");
        out.push_str(&format!("{mark} git kustomize-localize explain {ids}\n"));
    }
    for (what, lines) in news(checked) {
        for line in lines {
            let note = styles.help.apply_to(format!("{what}:"));
            out.push_str(&format!("{note} {line}\n"));
        }
    }
    out.push_str(&summary(checked));
    out.push('\n');
    out
}

/// The help that was given.
#[derive(Default)]
struct Helped<'a> {
    given: HashSet<&'a str>,
    /// Whether something was left out that was not printed in full elsewhere.
    is_shortened: bool,
}

impl<'a> Helped<'a> {
    /// Returns the help of a finding that was not given yet. Where its first line was given, the others may have been as
    /// well, for another place: they say what to do instead.
    fn not_given(&mut self, finding: &'a Finding) -> Vec<&'a String> {
        if finding.allowed.is_some() {
            return Vec::new();
        }
        let is_given = |line: &&String| self.given.contains(line.as_str());
        let is_known = |line: &String| self.given.contains(way(line));
        if finding.help.first().as_ref().is_some_and(is_given) && finding.help.iter().all(is_known) {
            self.is_shortened |= !finding.help.iter().all(|line| is_given(&line));
            return Vec::new();
        }
        let new: Vec<&String> = finding.help.iter().filter(|line| !is_given(line)).collect();
        let lines = new.iter().map(|line| line.as_str());
        self.given.extend(lines.flat_map(|line| [line, way(line)]));
        new
    }
}

/// Returns what a line of help says to do, without the command that does it for one place.
fn way(line: &str) -> &str {
    line.split_once(": ").map_or(line, |(way, _)| way)
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
fn write_finding(out: &mut String, finding: &Finding, help: &[&String], styles: &Styles, passed: &mut Passed) {
    let style = styles.of(finding);
    let level = match &finding.allowed {
        Some(_) => "allowed",
        None => finding.severity.name(),
    };
    let excerpt = Excerpt::of(finding, passed);
    let number = finding.span.map_or(String::new(), |span| span.line.to_string());
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
        "{}{} {place}\n",
        if gutter.is_empty() { " " } else { &gutter },
        styles.frame.apply_to("-->")
    ));
    if let Some(excerpt) = excerpt {
        let marks = format!("{} {field}", "^".repeat(excerpt.width));
        let marks = style.apply_to(marks.trim_end());
        out.push_str(&format!(
            "{gutter} {bar}\n{} {bar} {}\n{gutter} {bar} {}{}\n",
            styles.frame.apply_to(number),
            excerpt.line,
            " ".repeat(excerpt.indent),
            marks
        ));
    }
    if let Some(deployed) = deployed(finding) {
        let (mark, word) = (styles.frame.apply_to("="), styles.help.apply_to("note:"));
        out.push_str(&format!("{gutter} {mark} {word} {}\n", visible(&deployed)));
    }
    if let Some(allowed) = &finding.allowed {
        let note = format!("allowed by {}: {}", allowed.by(), allowed.reason);
        let (mark, word) = (styles.frame.apply_to("="), styles.help.apply_to("note:"));
        out.push_str(&format!("{gutter} {mark} {word} {}\n", visible(&note)));
        return;
    }
    for help in help {
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
