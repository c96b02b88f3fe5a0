//! Reads YAML of our own formats, the lock and the configuration, with `serde`: plain data only, and each key must have
//! a value that is not null.

use serde::de::DeserializeOwned;

use super::yaml::{self, Data, Value};
use crate::message::failure::{Failure, Location, Result, listed, nearest};
use crate::message::position::Position;
use crate::message::redact;
use crate::os::limits::Limit;

/// The longest message, in characters: it may quote the text.
const LONGEST: usize = 1000;

/// The message for conflict markers.
pub(crate) const CONFLICT: &str = "contains a merge conflict";

/// Decodes a file, and checks its size and that it has no conflict markers.
pub(crate) fn text<'a>(bytes: &'a [u8], file: &str, limit: Limit) -> Result<&'a str> {
    limit.check(bytes.len(), || file.to_owned())?;
    let text = std::str::from_utf8(bytes).map_err(|_| Failure::new("not UTF-8").at(at_line(file, 0)))?;
    match text.lines().position(|line| line.starts_with("<<<<<<<")) {
        Some(index) => Err(Failure::new(CONFLICT).at(at_line(file, index + 1))),
        None => Ok(text.strip_prefix('\u{feff}').unwrap_or(text)),
    }
}

/// The location of a line of a file; 0 means the whole file.
pub(crate) fn at_line(file: &str, line: usize) -> Location {
    Location { file: file.to_owned(), position: Position::new(line, 0), ..Location::default() }
}

/// Reads a text with one document; an empty text has no keys.
pub(crate) fn parse<T: DeserializeOwned>(text: &str, file: &str) -> Result<(T, Value)> {
    let stream = yaml::read_unique(text, 1)
        .map_err(|error| failure_at(file, error.position, &format!("not YAML: {}", error.message)))?;
    if let Some(second) = stream.rest {
        return Err(failure_at(file, second, "a second document"));
    }
    // `serde` would report a missing document for an empty text, which is a valid configuration.
    let root = stream.documents.into_iter().next().filter(|root| root.data != Data::Null);
    let text = if root.is_some() { text } else { "{}" };
    let root = root.unwrap_or_else(|| Value::new(Position::new(1, 1), Data::Mapping(Vec::new())));
    if let Some((position, message)) = root.find_map(&forbidden) {
        return Err(failure_at(file, position, message));
    }
    let value = serde_yaml::from_str(text).map_err(|error| {
        let whole: String = error.to_string().chars().take(LONGEST).collect();
        let message = whole.rsplit_once(" at line ").map_or(&*whole, |(message, _)| message);
        let position = error.location().map_or_else(Position::default, |at| Position::new(at.line(), at.column()));
        let message = readable(message);
        // The second line of an error, from a type of ours or from `readable`, is the hint.
        match message.split_once('\n') {
            Some((message, hint)) => failure_at(file, position, message).hint(hint),
            None => failure_at(file, position, &message),
        }
    })?;
    Ok((value, root))
}

/// A failure at a position of a file. Invisible characters of the message are shown.
fn failure_at(file: &str, position: Position, message: &str) -> Failure {
    Failure::new(redact::visible(message)).at(Location { position, ..at_line(file, 0) })
}

/// Why a value is refused in a lock or a configuration, with its position; `None` if it is plain data. `serde` would
/// accept anchors, aliases and tags, but a reviewer could overlook what they mean.
fn forbidden(value: &Value) -> Option<(Position, &'static str)> {
    let message = match value {
        Value { is_anchored: true, .. } => "an anchor",
        Value { alias_of: Some(_), .. } => "an alias",
        Value { tag: Some(_), .. } => "a tag",
        // In flow style, the text after a comma is the next key.
        Value { data: Data::Null, in_flow: true, .. } => "no value: quote a text that contains a comma",
        Value { data: Data::Null, .. } => "no value",
        _ => return None,
    };
    Some((value.start, message))
}

/// The message of `serde` for a file that does not fit its type, in the words of this program. A second line is a hint:
/// the known key or value that was probably meant, or all of them.
fn readable(message: &str) -> String {
    // For example "unknown field `ruls`, expected one of `allow`, `rules`".
    let unknown = ["field", "variant"].into_iter().find_map(|kind| {
        let (before, rest) = message.split_once(&format!("unknown {kind} `"))?;
        let (word, known) = rest.split_once('`')?;
        Some((before, if kind == "variant" { "value" } else { kind }, word, known))
    });
    if let Some((before, kind, word, known)) = unknown {
        let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
        let hint = match nearest(word, known.iter().copied()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("known are {}", listed(&known)),
        };
        return format!("{before}unknown {kind} `{word}`\n{hint}");
    }
    // For example "invalid type: sequence, expected a string".
    let types =
        message.split_once("invalid type: ").and_then(|(before, rest)| Some((before, rest.split_once(", expected ")?)));
    let Some((before, (actual, expected))) = types else { return message.replace("missing field", "there is no") };
    format!("{before}expected {}, not {}", readable_type(expected), readable_type(actual))
}

/// A type as users of YAML know it, from the message of `serde`, which names it in the words of Rust and may add a
/// value in quotes: `sequence`, ``boolean `true` `` or `string "a"`.
fn readable_type(text: &str) -> String {
    match text.split_once(['`', '"']) {
        Some((kind, value)) => {
            let kind = if kind == "string " { "the text " } else { "" };
            format!("{kind}`{}`", value.trim_end_matches(['`', '"']))
        }
        None => match text.trim_start_matches("a ") {
            "sequence" => "a list".to_owned(),
            "map" => "keys with values".to_owned(),
            "string" => "a text".to_owned(),
            "boolean" => "`true` or `false`".to_owned(),
            kind if kind.starts_with("struct ") => "keys with values".to_owned(),
            _ => text.to_owned(),
        },
    }
}

/// The positions of the items of a list, or of the value of a key.
pub(crate) fn positions(root: &Value, key: &str) -> Vec<Position> {
    let value = root.get(key);
    let list = value.and_then(Value::list).or(value.map(std::slice::from_ref));
    list.unwrap_or_default().iter().map(|value| value.start).collect()
}
