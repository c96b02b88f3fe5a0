//! Issues that forges show at the lines of a change: findings that count, and files that could not be checked.

use std::borrow::Cow;

use crate::check::Checked;
use crate::message::finding::Severity;
use crate::message::position::Position;
use crate::record::sha256_hex;

/// Something to be shown at a line.
pub(super) struct Issue<'a> {
    /// The rule; `None` for a file that could not be checked.
    pub rule: Option<&'static str>,
    pub severity: Severity,
    /// Its file; empty for a failure without a location.
    pub path: &'a str,
    /// The line and the column where it begins, if it is at one.
    pub position: Option<Position>,
    pub message: &'a str,
    /// Ways to fix it.
    pub help: Vec<Cow<'a, str>>,
    /// A text that stays the same if lines move.
    pub fingerprint: String,
}

/// The failures, then the findings that are not allowed, in the form in which GitHub and GitLab annotate lines.
pub(super) fn issues(checked: &Checked) -> impl Iterator<Item = Issue<'_>> {
    // Failures come first: a forge may cut the list, and they hide findings.
    let failures = checked.failures.iter().map(|failure| {
        let location = failure.location.as_deref();
        let path = location.map_or("", |location| &*location.file);
        // Line 0 stands for an unknown line, and column 0 for an unknown column: forges count both from 1.
        let position = location.map(|location| location.position).filter(|position| position.line > 0);
        Issue {
            rule: None,
            severity: Severity::Error,
            path,
            position: position.map(|position| Position { column: position.column.max(1), ..position }),
            message: &failure.message,
            help: failure.hints.iter().map(|hint| format!("hint: {hint}").into()).collect(),
            // Without the line, as for a finding.
            fingerprint: sha256_hex(format!("{path}\0{}", failure.message).as_bytes()),
        }
    });
    let findings = checked.findings.iter().filter(|finding| finding.allowed.is_none());
    failures.chain(findings.map(|finding| Issue {
        rule: Some(finding.rule.id()),
        severity: finding.severity,
        path: &finding.path,
        position: finding.span.map(|span| span.start),
        message: &finding.message,
        help: finding.help.iter().flat_map(|help| help.lines()).map(Cow::from).collect(),
        fingerprint: super::fingerprint(finding),
    }))
}
