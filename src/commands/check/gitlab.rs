//! The findings for GitLab: a report of code quality, which merge requests show at their lines.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::fingerprint;
use crate::check::Checked;
use crate::commands::json::render;
use crate::message::finding::Severity;
use crate::message::redact::visible;
use crate::record::sha256_hex;

/// Returns what was found as a report of code quality, with a final newline. What is allowed is left out; what could not
/// be checked is a blocker.
pub fn gitlab(checked: &Checked) -> String {
    let counting = checked.findings.iter().filter(|finding| finding.allowed.is_none());
    let findings = counting.map(|finding| {
        let severity = if finding.severity == Severity::Error { "major" } else { "minor" };
        let line = finding.span.map_or(1, |span| span.line);
        (fingerprint(finding), finding.rule.id(), severity, &finding.message, finding.path.as_str(), line)
    });
    let failures = checked.failures.iter().map(|failure| {
        let (path, line) = failure.location.as_ref().map_or((".", 1), |place| (&place.file, place.line));
        let fingerprint = sha256_hex(failure.to_string().as_bytes());
        (fingerprint, "not-checked", "blocker", &failure.message, path, line)
    });
    // GitLab takes entries with one fingerprint for one.
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let issues = findings.chain(failures).map(|(fingerprint, rule, severity, message, path, line)| {
        let count = seen.entry(fingerprint.clone()).or_default();
        *count += 1;
        json!({
            "description": visible(message),
            "check_name": rule,
            "fingerprint": match *count {
                1 => fingerprint,
                count => sha256_hex(format!("{fingerprint} {count}").as_bytes()),
            },
            "severity": severity,
            "location": { "path": visible(path), "lines": { "begin": line.max(1) } },
        })
    });
    render(&issues.collect::<Vec<Value>>())
}
