//! Results for machines. Fields are only ever added; `version` changes if one goes away.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Value, json};

use crate::message::failure::Failures;
use crate::message::redact::{self, is_hidden};

#[derive(Serialize)]
struct JsonReport<'a, T: ?Sized> {
    version: u32,
    tool: Value,
    #[serde(flatten)]
    content: &'a T,
}

/// The failures as one JSON object, with a final newline.
pub(super) fn failures(failures: &Failures) -> String {
    json_report(&json!({ "outcome": "failed", "errors": failures.0 }))
}

/// The JSON of a command: the tool, its version, and the content.
pub(super) fn json_report(content: &(impl Serialize + ?Sized)) -> String {
    let tool = json!({ "name": env!("CARGO_PKG_NAME"), "version": env!("CARGO_PKG_VERSION") });
    json_text(&JsonReport { version: 1, tool, content })
}

/// The value as indented JSON with a final newline, and without secrets.
pub(super) fn json_text(value: &impl Serialize) -> String {
    // Only strings, numbers and lists: serializing these cannot fail.
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    let text = without_secrets(&text);
    let mut out = String::with_capacity(text.len() + 1);
    // JSON has these characters only in strings, so each can be replaced.
    for character in text.replace("##[", "#\\u0023[").chars() {
        // Such a character could hide or fake a line of a terminal, or a command of GitHub Actions.
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

/// Hides the secrets in the strings of a JSON text. Each string is decoded first, because an escape can hide a secret.
fn without_secrets(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find('"') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let mut strings = serde_json::Deserializer::from_str(rest).into_iter::<String>();
        let text = strings.next().and_then(|text| text.ok()).unwrap_or_default();
        // The offset is above 0 in valid JSON; `max` makes sure that the loop ends.
        let (string, after) = rest.split_at(strings.byte_offset().max(1));
        match redact::message(&text) {
            Cow::Owned(shown) => out.push_str(&json!(shown).to_string()),
            Cow::Borrowed(_) => out.push_str(string),
        }
        rest = after;
    }
    out + rest
}
