//! YAML of our own formats, the lock and the configuration, by `serde`: plain data only, and nothing (`~`, or no value) is
//! nowhere right.

use serde::de::DeserializeOwned;

use super::yaml::{self, Data, Value};
use crate::message::failure::{Failure, Location, Result, listed, nearest};
use crate::message::position::Position;
use crate::message::redact;
use crate::os::limits::Limit;

/// Of a message, which may quote the text.
const LONGEST: usize = 1000;

/// What a file is that two sides of a merge wrote.
pub(crate) const CONFLICT: &str = "contains a merge conflict";

/// Returns the text of a file if it can be one of ours at all.
pub(crate) fn text<'a>(bytes: &'a [u8], file: &str, limit: Limit) -> Result<&'a str> {
    limit.check(bytes.len(), || file.to_owned())?;
    let text = std::str::from_utf8(bytes).map_err(|_| Failure::new("not UTF-8").at(at_line(file, 0)))?;
    match text.lines().position(|line| line.starts_with("<<<<<<<")) {
        Some(index) => Err(Failure::new(CONFLICT).at(at_line(file, index + 1))),
        None => Ok(text.strip_prefix('\u{feff}').unwrap_or(text)),
    }
}

/// Returns a line of a file; 0 for the whole of it.
pub(crate) fn at_line(file: &str, line: usize) -> Location {
    Location { file: file.to_owned(), position: Position::new(line, 0), ..Location::default() }
}

/// Reads a text, which is one document; an empty one has no keys. In the message of a type of ours, a hint may stand on a
/// line of its own.
pub(crate) fn parse<T: DeserializeOwned>(text: &str, file: &str) -> Result<(T, Value)> {
    let failure = |position: Position, message: &str| {
        Failure::new(redact::visible(message)).at(Location { position, ..at_line(file, 0) })
    };
    let stream =
        yaml::read(text, 1).map_err(|error| failure(error.position, &format!("not YAML: {}", error.message)))?;
    if let Some(second) = stream.rest {
        return Err(failure(second, "a second document"));
    }
    let root = stream.documents.into_iter().next().filter(|root| root.data != Data::Null);
    let text = if root.is_some() { text } else { "{}" };
    let root = root.unwrap_or_else(|| Value::new(Position::new(1, 1), Data::Mapping(Vec::new())));
    let odd = |value: &Value| {
        let message = match value {
            Value { is_anchored: true, .. } => "an anchor",
            Value { alias_of: Some(_), .. } => "an alias",
            Value { tag: Some(_), .. } => "a tag",
            // What stands behind a comma is a key of its own.
            Value { data: Data::Null, in_flow: true, .. } => "no value: quote a text that contains a comma",
            Value { data: Data::Null, .. } => "no value",
            _ => return None,
        };
        Some(failure(value.start, message))
    };
    if let Some(failure) = root.find_map(&odd) {
        return Err(failure);
    }
    let value = serde_yaml::from_str(text).map_err(|error| {
        let whole: String = error.to_string().chars().take(LONGEST).collect();
        let message = whole.rsplit_once(" at line ").map_or(&*whole, |(message, _)| message);
        let place = error.location().map_or_else(Position::default, |at| Position::new(at.line(), at.column()));
        let said = said(message);
        match said.split_once('\n') {
            Some((message, hint)) => failure(place, message).hint(hint),
            None => failure(place, &said),
        }
    })?;
    Ok((value, root))
}

/// Returns what `serde` has against a text as people read it: with what was probably meant, or what there is, below.
fn said(message: &str) -> String {
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
    let types =
        message.split_once("invalid type: ").and_then(|(before, rest)| Some((before, rest.split_once(", expected ")?)));
    let Some((before, (found, expected))) = types else { return message.replace("missing field", "there is no") };
    let named = |text: &str| match text.split_once(['`', '"']) {
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
    };
    format!("{before}expected {}, not {}", named(expected), named(found))
}

/// Returns where the value of a key begins; of a list, its items.
pub(crate) fn positions(root: &Value, key: &str) -> Vec<Position> {
    let value = root.get(key);
    let list = value.and_then(Value::list).or(value.map(std::slice::from_ref));
    list.unwrap_or_default().iter().map(|value| value.start).collect()
}
