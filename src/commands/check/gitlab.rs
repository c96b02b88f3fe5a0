//! The findings for GitLab: a report of code quality, which merge requests show at their lines.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::issue::issues;
use crate::check::Checked;
use crate::commands::json::json_text;
use crate::message::finding::Severity;
use crate::message::redact::visible;
use crate::record::sha256_hex;

/// The result as a code quality report, with a final newline. Files that could not be checked are blockers.
pub fn gitlab(checked: &Checked) -> String {
    // GitLab takes entries with one fingerprint for one.
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let issues = issues(checked).map(|issue| {
        let count = seen.entry(issue.fingerprint.clone()).or_default();
        *count += 1;
        json!({
            "description": visible(issue.message),
            "check_name": issue.rule.unwrap_or("not-checked"),
            "fingerprint": match *count {
                1 => issue.fingerprint,
                count => sha256_hex(format!("{} {count}", issue.fingerprint).as_bytes()),
            },
            "severity": match (issue.rule, issue.severity) {
                (None, _) => "blocker",
                (_, Severity::Error) => "major",
                _ => "minor",
            },
            // GitLab requires a path and a line, also for a failure that has neither.
            "location": {
                "path": if issue.path.is_empty() { ".".to_owned() } else { visible(issue.path) },
                "lines": { "begin": issue.position.map_or(1, |position| position.line) },
            },
        })
    });
    json_text(&issues.collect::<Vec<Value>>())
}
