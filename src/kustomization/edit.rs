//! Edits scalars in the text of a file, and proves that nothing else changed.
//!
//! Only the bytes of the named scalars change; comments, order, quotes, line ends and a byte order mark stay, and so
//! does an alias whose anchor gets the same value. Both parsers read the result again: it is rejected unless it is the
//! old file with the new values, and no other field shares one of them by an anchor.

use std::collections::{BTreeMap, HashSet};

use granit_parser::ScalarStyle;

use super::yaml::{self, Data, Value, is_yaml_1_1_flag, plain, wrong};
use super::{Problem, Spot};
use crate::message::position::Position;

/// One edit: the scalar at a spot gets another value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit<'a> {
    /// As in [`super::Reference::spot`].
    pub spot: &'a Spot,
    /// The whole new value, with `key=` if it is needed.
    pub value: String,
}

/// Gives scalars new values and changes nothing else in the file.
///
/// The spots must have been read from `bytes`. Several edits of one scalar must agree.
///
/// Fails if a scalar cannot be edited, if another field shares it by an anchor, or if the result could not be proven.
pub fn edit(bytes: &[u8], edits: &[Edit<'_>]) -> Result<Vec<u8>, Problem> {
    let text = std::str::from_utf8(bytes).or_else(|_| wrong(Position::default(), "the file is not UTF-8"))?;
    let wanted = by_offset(edits)?;
    let Some(first) = wanted.values().next().map(|edit| edit.spot.start) else {
        return Ok(bytes.to_vec());
    };
    // The expected values, computed from the old text. An alias stays an alias only if its anchor gets the same value.
    let by_old_offset: NewValues<'_> = wanted.iter().map(|(start, edit)| (*start, edit.value.as_str())).collect();
    let mut aliases = HashSet::new();
    let expected = values_and_edits(text, &by_old_offset, |value, new| {
        value.data = Data::Text(new.to_owned());
        let anchored = value.alias_of.and_then(|anchor| by_old_offset.get(&anchor));
        if anchored == Some(&new) {
            aliases.insert(value.range.start);
        } else {
            value.alias_of = None;
        }
    })
    .map_err(|error| error.context("not valid YAML"))?;
    // The new text is put together from the old bytes, never printed from values: comments and style must survive.
    let (mut after, mut at, mut by_new_offset) = (String::with_capacity(text.len()), 0, NewValues::new());
    for (start, Edit { spot, value }) in wanted {
        let Some((before, scalar)) = text.get(at..start).zip(text.get(spot.range.clone())) else {
            return wrong(spot.start, "the file changed after its references were read");
        };
        after.push_str(before);
        by_new_offset.insert(after.len(), value);
        if aliases.contains(&start) {
            after.push_str(scalar);
        } else {
            after.push_str(&styled_like(scalar, value, spot.in_flow));
        }
        at = spot.range.end;
    }
    after.push_str(&text[at..]);
    // More edited values than spots mean that an anchor carries an edit to a field that nobody asked to change.
    let spots: HashSet<&Spot> = edits.iter().map(|edit| edit.spot).collect();
    match values_and_edits(&after, &by_new_offset, |_, _| {}) {
        Ok(actual) if actual == expected && actual.1 == spots.len() => Ok(after.into_bytes()),
        _ => wrong(first, "the edit could not be proven to change only this value: an anchor may share it"),
    }
}

/// The edits by the offset of their scalars, because the new text is written from the first byte to the last. Fails if
/// a scalar cannot be edited, or if two edits of it differ.
fn by_offset<'e>(edits: &'e [Edit<'e>]) -> Result<BTreeMap<usize, &'e Edit<'e>>, Problem> {
    let mut wanted: BTreeMap<usize, &Edit<'_>> = BTreeMap::new();
    for edit in edits {
        if edit.spot.range.is_empty() {
            return wrong(edit.spot.start, "block scalars and quoted configurations are not edited");
        }
        let other = wanted.insert(edit.spot.range.start, edit);
        if other.is_some_and(|other| other.value != edit.value) {
            return wrong(edit.spot.start, "fields that share this value need different values");
        }
    }
    Ok(wanted)
}

/// New values, each by the offset of its scalar.
type NewValues<'a> = BTreeMap<usize, &'a str>;

/// Parses a text, and calls `change` with each value at an offset in `edited` and its new value. [`edit()`] compares
/// the results of the old and the new text: the documents, in which the quotes of edited values do not count, and the
/// number of fields that have an edited value, because an alias shows it in several.
fn values_and_edits(
    text: &str,
    edited: &NewValues<'_>,
    mut change: impl FnMut(&mut Value, &str),
) -> Result<(Vec<Value>, usize), Problem> {
    let mut documents = yaml::read(text, usize::MAX)?.documents;
    let mut count = 0;
    let visit = &mut |value: &mut Value| {
        if let Some(new) = edited.get(&value.range.start).filter(|_| value.text().is_some()) {
            change(value, new);
            // The quotes of an edited value may change.
            value.style = ScalarStyle::Plain;
            count += 1;
        // The edited value is in an inline configuration, a block scalar whose text is YAML itself. Its values are
        // compared instead of the text, because quotes do not count in it either.
        } else if value.text().is_some()
            && edited.range(value.range.start..).next().is_some_and(|(at, _)| *at < value.range.end)
            && let Ok(within) = yaml::read_within(text, value)
        {
            value.data = Data::List(within.documents);
        }
    };
    documents.iter_mut().for_each(|document| document.each(visit));
    Ok((documents, count))
}

/// The new `value` as YAML, in the style of the `old` scalar if it can be written so: without quotes, or else in single
/// quotes, or else in double quotes. `in_flow` tells whether the scalar is in `[]` or `{}`.
fn styled_like(old: &str, value: &str, in_flow: bool) -> String {
    // YAML reads a version with three numbers as a string, although it begins with a digit.
    let is_plain = is_plain(value, in_flow) || is_version(old) && is_version(value);
    // An alias is replaced by a quoted value: quotes fit any later value, so that a restored URL restores the text.
    if !old.starts_with(['"', '\'', '*']) && is_plain {
        return value.to_owned();
    }
    if !old.starts_with('"') && value.chars().all(is_printable) {
        return format!("'{}'", value.replace('\'', "''"));
    }
    format!("\"{}\"", value.chars().map(escape).collect::<String>())
}

/// A character between double quotes.
fn escape(c: char) -> String {
    match c {
        '"' | '\\' => format!("\\{c}"),
        c if is_printable(c) => c.to_string(),
        c => format!("\\U{:08x}", u32::from(c)),
    }
}

/// Whether a text is a version with three numbers.
fn is_version(text: &str) -> bool {
    let mut parts = text.split('.');
    parts.clone().count() == 3 && parts.all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether every YAML reader accepts a character unescaped in a scalar.
fn is_printable(c: char) -> bool {
    !c.is_control() && !matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') && u32::from(c) & 0xfffe != 0xfffe
}

/// Whether a value needs no quotes: every reader of YAML, also of YAML 1.1, takes it for the same string.
fn is_plain(value: &str, in_flow: bool) -> bool {
    // Values that people write without quotes get none, so that restoring a URL restores the bytes of the file.
    let is_path = value.contains('/');
    value.starts_with(|c: char| {
        c.is_alphabetic() || "_/$(".contains(c) || (is_path && (c.is_ascii_digit() || c == '.'))
    })
        // go-yaml takes `?` for an indicator there.
        && value.chars().all(|c| is_printable(c) && !(in_flow && ",[]{}?".contains(c)))
        && !value.ends_with([':', ' '])
        && ![": ", " #", "..."].iter().any(|mark| value.contains(mark))
        && !is_yaml_1_1_flag(value)
        && matches!(plain(value.to_owned()), Data::Text(_))
}

#[cfg(test)]
mod tests;
