//! The findings for code scanning, as SARIF 2.1.0 (OASIS standard, 27 March 2020).

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use super::fingerprint;
use crate::check::Checked;
use crate::commands::json::json_text;
use crate::commands::manual;
use crate::message::failure::{Failure, Location};
use crate::message::finding::{Finding, Rule, Severity};
use crate::message::position::Position;
use crate::message::redact::visible;

/// Paths are relative to the top of the repository, which viewers know by this name.
const TOP: &str = "%SRCROOT%";

/// The result as SARIF, with a final newline.
///
/// An allowed finding is a result with a suppression. A file that could not be checked is a notification, and then the
/// invocation was not successful.
pub fn sarif(checked: &Checked) -> String {
    // The rules are listed in full, so that viewers can explain a finding without this program.
    let run = json!({
        "tool": { "driver": {
            "name": env!("CARGO_PKG_NAME"),
            "version": env!("CARGO_PKG_VERSION"),
            "semanticVersion": env!("CARGO_PKG_VERSION"),
            "rules": Rule::ALL.iter().map(|rule| descriptor(*rule)).collect::<Vec<_>>(),
        }},
        "invocations": [{
            "executionSuccessful": checked.failures.is_empty(),
            "toolExecutionNotifications":
                checked.failures.iter().map(notification).collect::<Vec<_>>(),
        }],
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {
            TOP: { "description": { "text": "The top of the repository." } },
        },
        "results": checked.findings.iter().map(result).collect::<Vec<_>>(),
    });
    json_text(&json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [run],
    }))
}

/// The description of a rule, which viewers show beside its findings.
fn descriptor(rule: Rule) -> Value {
    // Viewers do not have the pages that the links in a page lead to.
    let help = manual::unlinked(&manual::rule(rule));
    json!({
        "id": rule.id(),
        "shortDescription": { "text": rule.summary() },
        "fullDescription": { "text": rule.summary() },
        "help": { "text": help, "markdown": help },
        "defaultConfiguration": {
            "enabled": rule.default_level() != Severity::Off,
            "level": rule.default_severity().name(),
        },
    })
}

/// A finding as a result of SARIF. An allowed one is suppressed.
fn result(finding: &Finding) -> Value {
    let deployed = finding.deployed.iter().map(|by| plain_line(&format!("deployed by {by}")));
    let help = finding.help.iter().flat_map(|help| help.lines().map(plain_line));
    // Viewers of SARIF show one text, so that the help is a part of it.
    let text: Vec<String> = std::iter::once(plain_line(&finding.message)).chain(deployed).chain(help).collect();
    let region = finding.span.map(|span| {
        json!({
            "startLine": span.start.line,
            "startColumn": span.start.column,
            "endLine": span.end.line,
            "endColumn": span.end.column,
        })
    });
    let mut result = json!({
        "ruleId": finding.rule.id(),
        "ruleIndex": Rule::ALL.iter().position(|rule| *rule == finding.rule),
        "level": finding.severity.name(),
        "message": { "text": text.join("\n") },
        "locations": [location(&finding.path, region)],
        "partialFingerprints": { "ruleAndReference/v1": fingerprint(finding) },
    });
    // A suppressed result is shown as closed; without it a viewer would call the finding fixed.
    if let Some(allowed) = &finding.allowed {
        result["suppressions"] = json!([{
            // A comment is in the file of its finding, an entry of `allow` in the configuration.
            "kind": match allowed.by().rsplit_once(':') {
                Some((file, _)) if file == finding.path => "inSource",
                _ => "external",
            },
            "status": "accepted",
            "justification": visible(&format!("{} ({})", allowed.reason, allowed.by())),
        }]);
    }
    result
}

/// A line of a message without links.
fn plain_line(line: &str) -> String {
    // A plain text may contain `[text](destination)` (SARIF 3.11.6), and viewers do not agree on how to escape it.
    visible(line).replace("](", "] (")
}

/// A location in a file, whose path becomes a relative URI.
fn location(path: &str, region: Option<Value>) -> Value {
    // The characters that RFC 3986 allows in a segment, without the colon, which could end a scheme.
    const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
        .remove(b'/')
        .remove(b'-')
        .remove(b'.')
        .remove(b'_')
        .remove(b'~')
        .remove(b'+')
        .remove(b'=')
        .remove(b'@');
    let uri = utf8_percent_encode(path, ESCAPED).to_string();
    let mut physical = json!({ "artifactLocation": { "uri": uri, "uriBaseId": TOP } });
    if let Some(region) = region {
        physical["region"] = region;
    }
    json!({ "physicalLocation": physical })
}

/// A failure of the check. It is not a result, because it is not about the code.
fn notification(failure: &Failure) -> Value {
    let hints = failure.hints.iter().map(|hint| format!("\nhint: {}", plain_line(hint)));
    let text = plain_line(&failure.message) + &hints.collect::<String>();
    let mut notification = json!({ "level": Severity::Error.name(), "message": { "text": text } });
    if let Some(Location { file, position: Position { line, column }, .. }) = failure.location.as_deref() {
        let region = (*line > 0).then(|| json!({ "startLine": line, "startColumn": (*column).max(1) }));
        notification["locations"] = json!([location(file, region)]);
    }
    notification
}
