//! The findings for people.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use console::Style;

use super::excerpt::{Excerpt, Passed};
use crate::check::{Checked, Checking};
use crate::commands::messages::counted;
use crate::commands::output::Shown;
use crate::message::failure::short;
use crate::message::finding::{Finding, Rule, Severity, Subject};
use crate::message::redact::{self, visible};
use crate::record::Added;

/// So many findings are shown one by one on a terminal.
const MANY: usize = 20;
/// How many upstreams are named there.
const NAMED: usize = 10;

/// Returns the findings with their lines, and a summary as the last line; of many findings on a terminal only how many
/// there are of what. What could not be checked is counted only: it belongs to standard error.
pub fn human(checked: &Checked, shown: Shown) -> String {
    let styles = Styles::new(shown.color);
    let mut out = String::new();
    let is_wanted = |finding: &&Finding| match (shown.quiet, &finding.allowed) {
        (true, _) => finding.fails(),
        (false, Some(_)) => shown.verbose,
        (false, None) => true,
    };
    let wanted: Vec<&Finding> = checked.findings.iter().filter(is_wanted).collect();
    // The ways that were given. What leads to them for one place is not repeated for another.
    let mut given: HashSet<Vec<&str>> = HashSet::new();
    let mut is_shortened = false;
    if wanted.len() > MANY && shown.width.is_some() && !shown.verbose && !shown.quiet {
        write_overview(&mut out, &wanted, &styles);
    } else {
        let mut passed = Passed::default();
        for finding in &wanted {
            let is_given =
                finding.allowed.is_none() && !given.insert(finding.help.iter().map(|line| way(line)).collect());
            let help: &[String] = if is_given && !shown.verbose { &[] } else { &finding.help };
            is_shortened |= help.len() < finding.help.len();
            write_finding(&mut out, finding, help, &styles, &mut passed);
            out.push('\n');
        }
    }
    if shown.quiet {
        return out;
    }
    let mut note = |mark: &str, text: String| out += &format!("{} {text}\n", styles.help.apply_to(mark));
    if is_shortened {
        note("note:", "same fix as above where none is shown: -v shows all".to_owned());
    }
    let not_allowed: BTreeSet<Rule> =
        wanted.iter().filter(|finding| finding.allowed.is_none()).map(|finding| finding.rule).collect();
    if checked.differing > 0 && !not_allowed.is_empty() {
        let (count, have) =
            (counted(checked.differing, "kustomization"), if checked.differing == 1 { "has" } else { "have" });
        note("note:", format!("{count} {have} changes that are not staged: fixes count after `git add`"));
    }
    if !not_allowed.is_empty() {
        let ids: Vec<&str> = not_allowed.into_iter().map(Rule::id).collect();
        note("for more:", format!("git kustomize-localize explain {}", ids.join(" ")));
    }
    for line in &checked.new_config {
        note("new in the configuration:", visible(&redact::text(line)));
    }
    for Added { lock, line, remote, digest } in &checked.new_locked {
        note("new in the lock:", format!("{}:{line}: {} {digest}", visible(lock), visible(remote)));
    }
    out + &summary(checked) + "\n"
}

/// Returns the line that sums up what was checked and what was found.
pub(super) fn summary(checked: &Checked) -> String {
    let source = described(&checked.source);
    let mut line = match (checked.kustomizations, checked.unseen) {
        (0, 0) => format!("no kustomization in {source}"),
        (0, unseen) => format!("no kustomization in {source} ({unseen} untracked or ignored: git add them)"),
        (count, _) => format!(
            "checked {} with {} in {source}",
            counted(count, "kustomization"),
            counted(checked.references, "reference"),
        ),
    };
    match checked.differing {
        0 => {}
        1 => line.push_str(" (1 differs in the working tree)"),
        count => line.push_str(&format!(" ({count} differ in the working tree)")),
    }
    let [errors, warnings] = [Severity::Error, Severity::Warning].map(|severity| checked.count(severity));
    let allowed = checked.findings.len() - errors - warnings;
    let (left_out, base) = checked.known.as_ref().map_or((0, ""), |known| (known.left_out, &known.rev));
    let failed = checked.failures.len();
    let parts = [
        (errors, counted(errors, "error")),
        (warnings, counted(warnings, "warning")),
        (allowed, format!("{allowed} allowed")),
        (left_out, format!("{left_out} left out that {} has too", visible(base))),
        (failed, format!("{failed} could not be looked at")),
    ];
    let parts: Vec<String> = parts.into_iter().filter(|(count, _)| *count > 0).map(|(_, text)| text).collect();
    let found = if parts.is_empty() { "nothing found".to_owned() } else { parts.join(", ") };
    let unbuilt = match checked.untold.len() {
        0 => String::new(),
        count => format!("; not looked at: {} that only a build or the cluster knows", counted(count, "target")),
    };
    format!("{line}: {found}{unbuilt}")
}

/// Returns what a person calls what is checked.
fn described(source: &Checking) -> String {
    match source {
        Checking::Index => "the index".to_owned(),
        Checking::WorkingTree => "the working tree".to_owned(),
        Checking::Commit { rev, commit } => match commit.starts_with(rev.as_str()) {
            _ if commit.is_empty() => format!("commit {}", visible(rev)),
            true => format!("commit {}", short(commit)),
            false => format!("commit {} ({})", short(commit), visible(rev)),
        },
    }
}

/// Writes how many findings there are by rule and by upstream, and how to begin.
fn write_overview(out: &mut String, findings: &[&Finding], styles: &Styles) {
    let (mut rules, mut upstreams) = (BTreeMap::new(), BTreeMap::new());
    for finding in findings {
        *rules.entry(format!("{} ({})", finding.rule, finding.severity.name())).or_insert(0) += 1;
        if let Some(upstream) = upstream(&finding.subject) {
            *upstreams.entry(visible(upstream)).or_insert(0) += 1;
        }
    }
    for (name, counts) in [("findings by rule:", rules), ("findings by upstream:", upstreams)] {
        let mut rows: Vec<(String, usize)> = counts.into_iter().collect();
        rows.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let rest = rows.split_off(rows.len().min(NAMED));
        if !rest.is_empty() {
            rows.push((format!("in {} more", rest.len()), rest.iter().map(|(_, count)| count).sum()));
        }
        if let Some((_, most)) = rows.first() {
            let width = most.to_string().len();
            *out += &format!("{}\n", styles.bold.apply_to(name));
            for (what, count) in &rows {
                *out += &format!("  {count:>width$}  {what}\n");
            }
            out.push('\n');
        }
    }
    *out += &format!("{}\n  see each of them: git kustomize-localize check -v\n", styles.bold.apply_to("to begin:"));
    if findings.iter().any(|finding| finding.rule == Rule::RemoteReference) {
        *out += "  keep the URLs, and lock what they are now: git kustomize-localize lock\n";
    }
    *out += "  let everything stay as it is: git kustomize-localize check --add-allow\n\n";
}

/// Returns the repository, or the host of a file, that a finding is about.
fn upstream(subject: &Subject) -> Option<&str> {
    match subject {
        Subject::Git { url, .. } | Subject::Helm { url, .. } => Some(url),
        Subject::Http { url } => {
            let host = url.find("://")? + "://".len();
            Some(url[host..].find('/').map_or(url, |end| &url[..host + end]))
        }
        // An image has no URL.
        Subject::Local | Subject::Path { .. } | Subject::Program { .. } | Subject::Image { .. } => None,
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
}

/// Adds one finding as lines, each with an end.
fn write_finding(out: &mut String, finding: &Finding, help: &[String], styles: &Styles, passed: &mut Passed) {
    let (style, level) = match (&finding.allowed, finding.severity) {
        (Some(_), _) => (&styles.allowed, "allowed"),
        (None, Severity::Error) => (&styles.error, "error"),
        (None, Severity::Warning) => (&styles.warning, "warning"),
    };
    let excerpt = Excerpt::of(finding, passed);
    let number = finding.span.map_or(String::new(), |span| span.line.to_string());
    let gutter = " ".repeat(number.len());
    let [arrow, bar, equals] = ["-->", "|", "="].map(|mark| styles.frame.apply_to(mark));
    let field = visible(&finding.field);
    let mut place = visible(&finding.place());
    if excerpt.is_none() && !field.is_empty() {
        place.push_str(&format!(": {field}"));
    }
    *out += &format!(
        "{}: {}\n{}{arrow} {place}\n",
        style.apply_to(format!("{level}[{}]", finding.rule)),
        styles.bold.apply_to(visible(&finding.message)),
        if gutter.is_empty() { " " } else { &gutter },
    );
    if let Some(excerpt) = excerpt {
        let marks = format!("{} {field}", "^".repeat(excerpt.width));
        *out += &format!(
            "{gutter} {bar}\n{} {bar} {}\n{gutter} {bar} {}{}\n",
            styles.frame.apply_to(number),
            excerpt.line,
            " ".repeat(excerpt.indent),
            style.apply_to(marks.trim_end())
        );
    }
    let mut add = |mark: &str, text: &str| {
        let mut lines = text.lines().map(visible);
        let first = lines.next().unwrap_or_default();
        *out += &format!("{gutter} {equals} {} {first}\n", styles.help.apply_to(mark));
        for line in lines {
            // Only blanks before a command: it is copied as it stands.
            *out += &format!("{gutter}         {line}\n");
        }
    };
    if let Some((first, rest)) = finding.deployed.split_first() {
        let more = if rest.is_empty() { String::new() } else { format!(", and {} more", rest.len()) };
        add("note:", &visible(&format!("deployed by {first}{more}")));
    }
    match &finding.allowed {
        Some(allowed) => add("note:", &visible(&format!("allowed by {}: {}", allowed.by(), allowed.reason))),
        None => help.iter().for_each(|help| add("help:", help)),
    }
}
