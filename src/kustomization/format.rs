//! YAML of our own formats, the lock and the configuration, by `serde`: plain data only, and nothing (`~`, or no value) is
//! nowhere right.

use serde::de::DeserializeOwned;

use super::yaml::{self, Data, Value};
use crate::message::failure::{Failure, Location, Result};
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
        match message.split_once('\n') {
            Some((message, hint)) => failure(place, message).hint(hint),
            None => failure(place, message),
        }
    })?;
    Ok((value, root))
}

/// Returns where the value of a key begins; of a list, its items.
pub(crate) fn places(root: &Value, key: &str) -> Vec<Position> {
    let value = root.get(key);
    let list = value.and_then(Value::list).or(value.map(std::slice::from_ref));
    list.unwrap_or_default().iter().map(|value| value.start).collect()
}
