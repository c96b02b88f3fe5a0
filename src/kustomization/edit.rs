//! Edits in the text of a file, and the proof that nothing else changed.
//!
//! Only the bytes of the named scalars change; comments, order, quotes, line ends and a byte order mark stay, and so does an
//! alias whose anchor gets the same value. The result is read again, by both parsers: unless it is the old file with the
//! new values, and nothing else shows one of them by an anchor, it is thrown away.

use std::collections::{BTreeMap, HashSet};

use granit_parser::ScalarStyle;

use super::yaml::{self, Data, Value, is_old_flag, plain, wrong};
use super::{Problem, Spot};
use crate::message::position::Position;

/// One edit: the scalar at a spot gets another value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit<'a> {
    /// Where, as [`super::Reference::spot`] says.
    pub spot: &'a Spot,
    /// The whole new value, with `key=` where one is needed.
    pub value: String,
}

/// Gives scalars new values and changes nothing else in the file.
///
/// `bytes` must be what the spots were read from. Several edits of one scalar must agree.
///
/// Fails when a scalar cannot be edited where it stands, when another field shares it by an anchor, and when the result
/// could not be proven. Nothing is changed then.
pub fn edit(bytes: &[u8], edits: &[Edit<'_>]) -> Result<Vec<u8>, Problem> {
    let text = std::str::from_utf8(bytes).or_else(|_| wrong(Position::default(), "the file is not UTF-8"))?;
    let (mut wanted, mut spots) = (BTreeMap::new(), HashSet::new());
    for edit in edits {
        if edit.spot.range.is_empty() {
            return wrong(edit.spot.start, "block scalars and quoted configurations are not edited");
        }
        spots.insert(edit.spot);
        let other = wanted.insert(edit.spot.range.start, edit);
        if other.is_some_and(|other| other.value != edit.value) {
            return wrong(edit.spot.start, "fields that share this value need different values");
        }
    }
    let Some(first) = wanted.values().next().map(|edit| edit.spot.start) else {
        return Ok(bytes.to_vec());
    };
    let old: Edited<'_> = wanted.iter().map(|(start, edit)| (*start, edit.value.as_str())).collect();
    let mut aliases = HashSet::new();
    let was = meant(text, &old, |value, new| {
        value.data = Data::Text(new.to_owned());
        let anchored = value.alias_of.and_then(|anchor| old.get(&anchor));
        if anchored == Some(&new) {
            aliases.insert(value.range.start);
        } else {
            value.alias_of = None;
        }
    })
    .map_err(|error| error.context("not valid YAML"))?;
    let (mut after, mut at, mut new) = (String::with_capacity(text.len()), 0, Edited::new());
    for (start, Edit { spot, value }) in wanted {
        let Some((before, scalar)) = text.get(at..start).zip(text.get(spot.range.clone())) else {
            return wrong(spot.start, "the file changed after its references were read");
        };
        after.push_str(before);
        new.insert(after.len(), value);
        if aliases.contains(&start) {
            after.push_str(scalar);
        } else {
            after.push_str(&written(value, scalar, spot.in_flow));
        }
        at = spot.range.end;
    }
    after.push_str(&text[at..]);
    match meant(&after, &new, |_, _| {}) {
        Ok(is) if is == was && is.1 == spots.len() => Ok(after.into_bytes()),
        _ => wrong(first, "the edit could not be proven to change only this value: an anchor may share it"),
    }
}

/// New values, each by the byte at which its scalar begins.
type Edited<'a> = BTreeMap<usize, &'a str>;

/// Returns what a text says, with what is to become of the values that are edited, and how many places show those. How they are
/// quoted does not matter.
fn meant(
    text: &str,
    edited: &Edited<'_>,
    mut change: impl FnMut(&mut Value, &str),
) -> Result<(Vec<Value>, usize), Problem> {
    let mut documents = yaml::read_repeated(text, usize::MAX)?.documents;
    let mut count = 0;
    let visit = &mut |value: &mut Value| {
        if let Some(new) = edited.get(&value.range.start).filter(|_| value.text().is_some()) {
            change(value, new);
            value.style = ScalarStyle::Plain;
            count += 1;
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

/// Writes a value in the style of what it replaces, as far as the value allows: plain, else single quotes, else double
/// quotes. Quotes replace an alias, as they stay whatever value comes next: the same text follows from a URL that comes back.
fn written(value: &str, old: &str, in_flow: bool) -> String {
    let is_plain = is_plain(value, in_flow) || is_version(old) && is_version(value);
    if !old.starts_with(['"', '\'', '*']) && is_plain {
        return value.to_owned();
    }
    if !old.starts_with('"') && value.chars().all(is_printable) {
        return format!("'{}'", value.replace('\'', "''"));
    }
    let escape = |c: char| match c {
        '"' | '\\' => format!("\\{c}"),
        c if is_printable(c) => c.to_string(),
        c => format!("\\U{:08x}", u32::from(c)),
    };
    format!("\"{}\"", value.chars().map(escape).collect::<String>())
}

/// Whether a text is a version as most people write it: a string, although it begins with a digit.
fn is_version(text: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    text.split('.').count() == 3 && text.split('.').all(is_number)
}

/// Whether a character can stand unescaped in a scalar, for every YAML reader.
fn is_printable(c: char) -> bool {
    !c.is_control() && !matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') && u32::from(c) & 0xfffe != 0xfffe
}

/// Whether a value is a string without quotes, for every YAML reader. What people write so is written so: what was
/// localized is turned back into the bytes that it was.
fn is_plain(value: &str, in_flow: bool) -> bool {
    let is_path = value.contains('/');
    let begins = |c: char| c.is_alphabetic() || "_/$(".contains(c) || (is_path && (c.is_ascii_digit() || c == '.'));
    // go-yaml takes `?` for an indicator there.
    let may_hold = |c: char| is_printable(c) && !(in_flow && ",[]{}?".contains(c));
    value.starts_with(begins)
        && value.chars().all(may_hold)
        && !value.ends_with([':', ' '])
        && ![": ", " #", "..."].iter().any(|what| value.contains(what))
        && !is_old_flag(value)
        && matches!(plain(value.to_owned()), Data::Text(_))
}

#[cfg(test)]
mod tests;
