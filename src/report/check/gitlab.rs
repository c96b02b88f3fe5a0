//! The findings for GitLab: a report of code quality, which merge requests show at their lines.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::fingerprint;
use crate::check::Checked;
use crate::message::failure::Failure;
use crate::message::finding::{Finding, Severity};
use crate::record::sha256_hex;
use crate::report::json::render;
use crate::report::visible;

/// Returns what was found as a report of code quality, with a final newline. What is allowed is left out; what could not
/// be checked is a blocker.
pub fn gitlab(checked: &Checked) -> String {
    // GitLab takes entries with one fingerprint for one.
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut unique = |fingerprint: String| {
        let count = seen.entry(fingerprint.clone()).or_default();
        *count += 1;
        match *count {
            1 => fingerprint,
            count => sha256_hex(format!("{fingerprint} {count}").as_bytes()),
        }
    };
    let found = checked.findings.iter();
    let counts = found.filter(|finding| finding.allowed.is_none());
    let mut issues: Vec<Value> = counts.map(|finding| issue(finding, &unique(fingerprint(finding)))).collect();
    issues.extend(checked.failures.iter().map(|failure| {
        let text = sha256_hex(failure.to_string().as_bytes());
        blocker(failure, &unique(text))
    }));
    render(&json!(issues))
}

fn issue(finding: &Finding, fingerprint: &str) -> Value {
    json!({
        "description": visible(&finding.message),
        "check_name": finding.rule.id(),
        "fingerprint": fingerprint,
        "severity": match finding.severity {
            Severity::Error => "major",
            Severity::Warning => "minor",
        },
        "location": {
            "path": visible(&finding.path),
            "lines": { "begin": finding.span.map_or(1, |span| span.line) },
        },
    })
}

fn blocker(failure: &Failure, fingerprint: &str) -> Value {
    let location = failure.location.as_deref();
    json!({
        "description": visible(&failure.message),
        "check_name": "not-checked",
        "fingerprint": fingerprint,
        "severity": "blocker",
        "location": {
            "path": location.map_or(".".to_owned(), |place| visible(&place.file)),
            "lines": { "begin": location.map_or(1, |place| place.line.max(1)) },
        },
    })
}
