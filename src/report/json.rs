//! The parts of reports for machines. Fields are only ever added; `version` changes if one goes away.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::json;

use super::messages::leave;
use crate::graph::Warning;
use crate::message::failure::{Failure, Failures, Location};
use crate::message::redact::{self, is_hidden};
use crate::targets::{Target, Unread};

#[derive(Serialize)]
pub(super) struct Tool {
    name: &'static str,
    version: &'static str,
}

pub(super) const TOOL: Tool = Tool { name: env!("CARGO_PKG_NAME"), version: env!("CARGO_PKG_VERSION") };

/// The object of a target.
#[derive(Serialize)]
pub(super) struct JsonObject<'a> {
    engine: &'static str,
    kind: &'a str,
    namespace: &'a str,
    name: &'a str,
    file: &'a str,
    line: usize,
}

impl<'a> From<&'a Target> for JsonObject<'a> {
    fn from(target: &'a Target) -> Self {
        let object = &target.object;
        JsonObject {
            engine: target.engine.id(),
            kind: &object.kind,
            namespace: &object.namespace,
            name: &object.name,
            file: &object.file,
            line: object.line,
        }
    }
}

/// What could not be read, so that what it deploys is not known.
#[derive(Serialize)]
pub(super) struct JsonUnread<'a> {
    file: &'a str,
    line: Option<usize>,
    message: &'a str,
}

impl<'a> From<&'a Unread> for JsonUnread<'a> {
    fn from(unread: &'a Unread) -> Self {
        JsonUnread { file: &unread.file, line: (unread.line > 0).then_some(unread.line), message: &unread.message }
    }
}

#[derive(Serialize)]
pub(super) struct JsonMessage<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(flatten)]
    place: Option<&'a Location>,
    #[serde(skip_serializing_if = "<[Location]>::is_empty")]
    chain: &'a [Location],
    message: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    hints: Vec<String>,
}

impl<'a> From<&'a Warning> for JsonMessage<'a> {
    fn from(warning: &'a Warning) -> Self {
        JsonMessage {
            id: Some(warning.rule.id()),
            place: Some(&warning.location),
            chain: &[],
            message: &warning.message,
            hints: Vec::new(),
        }
    }
}

#[derive(Serialize)]
struct JsonFailures<'a> {
    outcome: &'static str,
    errors: Vec<JsonMessage<'a>>,
}

/// Returns what stopped the work as one JSON object, with a final newline.
pub(crate) fn failures_json(failures: &Failures) -> String {
    report(&JsonFailures { outcome: "failed", errors: failures.0.iter().map(JsonMessage::from).collect() })
}

impl<'a> From<&'a Failure> for JsonMessage<'a> {
    fn from(failure: &'a Failure) -> Self {
        let leave = failure.exception.as_deref().map(|one| {
            let lines = leave(&[one]);
            let lines: Vec<&str> = lines.iter().map(|line| line.trim()).collect();
            lines.join(" ")
        });
        JsonMessage {
            id: None,
            place: failure.location.as_deref(),
            chain: &failure.chain,
            message: &failure.message,
            hints: failure.hints.iter().cloned().chain(leave).collect(),
        }
    }
}

#[derive(Serialize)]
struct Report<'a, T> {
    version: u32,
    tool: Tool,
    #[serde(flatten)]
    content: &'a T,
}

/// Returns what a command prints with `--format json`: which tool says it in which version, and the content.
pub(super) fn report(content: &impl Serialize) -> String {
    render(&Report { version: 1, tool: TOOL, content })
}

/// Returns the value as indented JSON with a final newline, and without secrets. What could hide or fake a line of a
/// terminal or a command of GitHub Actions is written as `\uXXXX`, which means the same.
pub(super) fn render(value: &impl Serialize) -> String {
    // Only strings, numbers and lists: serializing these cannot fail.
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    let text = without_secrets(&text);
    let mut out = String::with_capacity(text.len() + 1);
    // All of these stand in strings: elsewhere JSON has none.
    for character in text.replace("##[", "#\\u0023[").chars() {
        if character != '\n' && is_hidden(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            out.push(character)
        }
    }
    out.push('\n');
    out
}

fn without_secrets(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    while let Some((before, _)) = rest.split_once('"') {
        out.push_str(before);
        rest = &rest[before.len()..];
        let mut strings = serde_json::Deserializer::from_str(rest).into_iter::<String>();
        let text = strings.next().and_then(|text| text.ok());
        let (string, after) = rest.split_at(strings.byte_offset().max(1));
        match text.as_deref().map(redact::message) {
            Some(Cow::Owned(shown)) => out.push_str(&json!(shown).to_string()),
            _ => out.push_str(string),
        }
        rest = after;
    }
    out + rest
}
