//! The findings for people.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::check::{BaseFindings, BuildSummary, Checked};
use crate::commands::findings::{blocks, explain, findings_text, painted};
use crate::commands::messages::{commit_command, counted, first, named, present};
use crate::commands::output::Shown;
use crate::git::{Snapshot, is_object_id};
use crate::message::failure::{command, short};
use crate::message::finding::{Finding, Rule, Severity};
use crate::message::redact::{self, visible};
use crate::reference::Upstream;

/// The most findings that a terminal shows; of more it shows the counts.
const MANY: usize = 20;
/// The most lines of a list of counts.
const NAMED: usize = 10;

/// The findings with their lines, and a summary as the last line. Many findings on a terminal are only counted. With
/// `quiet`, only the findings that fail.
pub fn human(checked: &Checked, shown: Shown) -> String {
    // A check that could not start knows of no kustomization, so it must not report that none exists. The failures are
    // on stderr.
    if checked.kustomizations == 0 && checked.findings.is_empty() && !checked.failures.is_empty() {
        return String::new();
    }
    let wanted: Vec<&Finding> = checked.findings.iter().filter(|finding| is_shown(finding, shown)).collect();
    if shown.quiet {
        return findings_text(&wanted, shown);
    }
    // Hundreds of findings would scroll their own summary away from a terminal.
    let is_brief = shown.width.is_some() && !shown.verbose && blocks(&wanted, shown.verbose).len() > MANY;
    let mut out = if is_brief { overview(checked, &wanted, shown.color) } else { findings_text(&wanted, shown) };
    for (mark, text) in notes(checked, &wanted, shown.verbose) {
        out += &format!("{} {}\n", painted(mark, "cyan.bold", shown.color), visible(&text));
    }
    out + &summary(checked) + "\n"
}

/// Whether a finding is printed: with `quiet` if it fails, else if it is not allowed; with `verbose` also allowed ones.
fn is_shown(finding: &Finding, shown: Shown) -> bool {
    if shown.quiet { finding.fails() } else { shown.verbose || finding.allowed.is_none() }
}

/// The notes below the findings, each with its mark: how to learn more, and what the findings do not tell. They come
/// last, because they help only if somebody has read the findings.
fn notes(checked: &Checked, findings: &[&Finding], verbose: bool) -> Vec<(&'static str, String)> {
    // Allowed findings need no explanation: somebody wrote down a reason.
    let unexplained = findings.iter().filter(|finding| finding.allowed.is_none());
    let rules: BTreeSet<Rule> = unexplained.map(|finding| finding.rule).collect();
    let mut notes = Vec::new();
    if !rules.is_empty() {
        notes.push(("for more:", explain(rules)));
    }
    notes.extend(checked.new_config.iter().map(|line| ("new in the configuration:", redact::text(line))));
    if !checked.untracked.is_empty() {
        let count = counted(checked.untracked.len(), "file");
        let names = named(&checked.untracked, verbose);
        notes.push(("not tracked by git:", format!("{count} that `branch` does not see: {names}")));
        notes.push(("hint:", commit_command(&checked.untracked)));
    }
    // An unknown build is not a finding, but without it green would mean too much.
    let unknown = checked.builds.iter().flat_map(|builds| &builds.unknown).cloned();
    let most = if verbose { usize::MAX } else { NAMED };
    notes.extend(first(unknown, most).into_iter().map(|line| ("unknown:", line.trim_start().to_owned())));
    notes.extend(
        checked
            .new_locked
            .iter()
            .map(|new| ("new in the lock:", format!("{}:{}: {} {}", new.lock, new.line, new.remote, new.digest))),
    );
    notes
}

/// The line with the numbers of checked files and of findings.
fn summary(checked: &Checked) -> String {
    // Without the second part, people who mended a file and did not stage it would look for another mistake.
    let differing = match checked.differing {
        0 => String::new(),
        1 => " (1 differs in the working tree; fixes count after `git add`)".to_owned(),
        count => format!(" ({count} differ in the working tree; fixes count after `git add`)"),
    };
    let builds = checked.builds.as_ref().map_or(String::new(), build_counts);
    format!("{}{builds}{differing}: {}", checked_files(checked), finding_counts(checked))
}

/// The kustomizations and references that were checked, and in which snapshot.
fn checked_files(checked: &Checked) -> String {
    let source = match &checked.source {
        Snapshot::Index => "the index".to_owned(),
        Snapshot::WorkingTree => "the working tree".to_owned(),
        Snapshot::Commit { rev, commit } if commit.is_empty() => format!("commit {}", visible(rev)),
        Snapshot::Commit { rev, commit } if commit.starts_with(rev) => format!("commit {}", short(commit)),
        Snapshot::Commit { rev, commit } => format!("commit {} ({})", short(commit), visible(rev)),
    };
    match (checked.kustomizations, checked.unseen) {
        (0, 0) => format!("no kustomization in {source}"),
        (0, unseen) => format!("no kustomization in {source} ({unseen} untracked or ignored: git add -f them)"),
        (count, _) => {
            let (roots, references) = (counted(count, "kustomization"), counted(checked.references, "reference"));
            format!("checked {roots} with {references} in {source}")
        }
    }
}

/// The numbers of builds that ran, and of those that an exception covers.
fn build_counts(BuildSummary { built, left, by, stopped, .. }: &BuildSummary) -> String {
    if *stopped {
        return ", and built nothing".to_owned();
    }
    let by = if by.is_empty() { String::new() } else { format!(" ({by})") };
    let left =
        if *left > 0 { format!(", {left} not built (an exception covers what they reach)") } else { String::new() };
    format!(", {}{by}{left}", counted(*built, "build"))
}

/// The numbers of findings and failures, and of targets and builds about which nothing is known.
fn finding_counts(checked: &Checked) -> String {
    let [errors, all_warnings] = [Severity::Error, Severity::Warning].map(|severity| checked.count(severity));
    let allowed = checked.findings.len() - errors - all_warnings;
    // Warnings of these two rules are counted apart: they name things that nobody could look at, not mistakes.
    let [unknown, not_built] = [Rule::UnknownTarget, Rule::NotBuilt].map(|rule| warning_count(checked, rule));
    let warnings = all_warnings - unknown - not_built;
    // It is also shown if nothing is new, because that is not the same as no problems.
    let left_out = checked.base.as_ref().map_or(0, |base| base.left_out);
    let base = checked.base.as_ref().map(base_text).unwrap_or_default();
    // Failures are printed on stderr, so only their number is in the summary.
    let failed = checked.failures.len();
    let parts = present([
        (errors, counted(errors, "error")),
        (warnings, counted(warnings, "warning")),
        (allowed, format!("{allowed} allowed")),
        (left_out, format!("{} already in {base}", counted(left_out, "finding"))),
        (failed, format!("{failed} could not be checked")),
    ]);
    let counts = if parts.is_empty() { "no problems found".to_owned() } else { parts.join(", ") };
    let unknown_builds = checked.builds.as_ref().map_or(0, |builds| builds.unknown.len());
    let unknown = present([
        (unknown, format!("; {} unknown", counted(unknown, "target"))),
        (not_built, format!("; {not_built} not built")),
        (unknown_builds, format!("; {} unknown", counted(unknown_builds, "build"))),
    ]);
    format!("{counts}{}", unknown.concat())
}

/// The number of warnings of a rule that are not allowed.
fn warning_count(checked: &Checked, rule: Rule) -> usize {
    let findings = checked.findings.iter().filter(|finding| finding.rule == rule && finding.allowed.is_none());
    findings.filter(|finding| finding.severity == Severity::Warning).count()
}

/// The commit that a change was compared with, and the requested base, if that is another commit.
fn base_text(BaseFindings { rev, commit, .. }: &BaseFindings) -> String {
    let name = if is_object_id(rev) { short(rev).to_owned() } else { visible(rev) };
    match visible(short(commit)) {
        id if id.is_empty() => name,
        id if commit.starts_with(&**rev) => id,
        id => format!("{id}, the merge base with {name}"),
    }
}

/// The report instead of the findings if these are too many to read: their numbers by rule and by upstream, and how to
/// begin.
fn overview(checked: &Checked, findings: &[&Finding], color: bool) -> String {
    let head = |text: &str| painted(text, "bold", color) + "\n";
    let mut out = head("findings by rule:")
        + &counts(findings.iter().map(|finding: &&Finding| format!("{} ({})", finding.rule, finding.severity.name())));
    let upstreams = counts(
        findings.iter().filter_map(|finding: &&Finding| repository_or_host(finding.subject.upstream()?).map(visible)),
    );
    if !upstreams.is_empty() {
        out += &(head("findings by upstream:") + &upstreams);
    }
    out += &head("to begin:");
    out += &format!("  see each: {}\n", verbose_command(checked));
    if findings.iter().any(|finding| finding.rule == Rule::RemoteReference) {
        out += "  lock what can be locked, and list the rest: git kustomize-localize init\n";
    }
    out + "\n"
}

/// The command that checks the same, and prints each finding.
fn verbose_command(checked: &Checked) -> String {
    let mut words = vec!["-v".to_owned()];
    match &checked.source {
        Snapshot::WorkingTree => {}
        Snapshot::Index => words.push("--staged".to_owned()),
        Snapshot::Commit { rev, .. } => words.extend(["--rev".to_owned(), rev.clone()]),
    }
    // The base of a check without one, by a server, is empty.
    let base = checked.base.iter().filter(|base| !base.rev.is_empty());
    words.extend(base.flat_map(|base| ["--base".to_owned(), base.rev.clone()]));
    words.extend(checked.builds.iter().map(|_| "--build".to_owned()));
    words.extend(checked.paths.iter().map(|path| format!(":/{path}")));
    command("git kustomize-localize check", words)
}

/// The number of each of these texts, the most frequent first; empty if there are none.
fn counts(all: impl Iterator<Item = String>) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    all.for_each(|key| *counts.entry(key).or_default() += 1);
    let mut rows: Vec<(String, usize)> = counts.into_iter().collect();
    rows.sort_by_key(|(_, count)| Reverse(*count));
    let rest = rows.split_off(rows.len().min(NAMED));
    if !rest.is_empty() {
        rows.push((format!("in {} others", rest.len()), rest.iter().map(|(_, count)| count).sum()));
    }
    let end = if rows.is_empty() { "" } else { "\n" };
    let rows = rows.into_iter().map(|(what, count)| format!("  {count:>4}  {what}\n"));
    rows.collect::<String>() + end
}

/// The URL by which findings are counted: that of the repository, or of the host of a file; `None` for an image.
fn repository_or_host(upstream: &Upstream) -> Option<&str> {
    match upstream {
        Upstream::Git { url, .. } | Upstream::Chart { url, .. } => Some(url),
        Upstream::File { url } => {
            let host = url.find("://")? + "://".len();
            Some(url[host..].find('/').map_or(url, |end| &url[..host + end]))
        }
        // An image has no URL.
        Upstream::Image { .. } => None,
    }
}
