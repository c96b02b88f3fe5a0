//! Edits in the text of a file, and the proof that nothing else changed.
//!
//! Only the bytes of the named scalars change; comments, order, quotes, line ends and a byte order mark stay. The result is
//! read again, by both parsers: unless it is the old file with the new values, and every place that shows one of them by
//! an anchor was meant, it is thrown away.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use granit_parser::ScalarStyle;

use super::yaml::{self, Data, Place, Value, is_old_flag, plain};
use super::{Problem, ProblemKind, Spot};

/// One edit: the scalar at a spot gets another value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit<'a> {
    /// Where, as [`super::Reference::spot`] says.
    pub spot: &'a Spot,
    /// The whole new value, with `key=` where one is needed.
    pub value: String,
}

fn refused<T>(place: Place, message: impl Into<String>) -> Result<T, Problem> {
    Err(Problem::new(ProblemKind::Other, place, message, ""))
}

/// Gives scalars new values and changes nothing else in the file.
///
/// `bytes` must be what the spots were read from. Several edits of one scalar must agree.
///
/// Fails when a scalar cannot be edited where it stands, when another field shares it by an anchor, and when the result
/// could not be proven. Nothing is changed then.
pub fn edit(bytes: &[u8], edits: &[Edit<'_>]) -> Result<Vec<u8>, Problem> {
    let text = std::str::from_utf8(bytes).or_else(|_| refused((0, 0), "the file is not UTF-8"))?;
    let mut spots: HashSet<&Spot> = HashSet::new();
    let mut changes = Changes::new();
    for Edit { spot, value } in edits {
        let (range, value, place) = (spot.range.clone(), value.as_str(), (spot.line, spot.column));
        if range.is_empty() {
            return refused(place, "a configuration in a scalar is not edited: write it as a literal block, after `|`");
        }
        let new = Change { range: range.clone(), value, place, count: 0 };
        let change = changes.entry(range.start).or_insert(new);
        if (change.value, &change.range) != (value, &range) {
            return refused(place, "the fields that share this value need different ones");
        }
        change.count += usize::from(spots.insert(spot));
    }
    let read = |text: &str| {
        let stream = yaml::read(text, usize::MAX).map_err(|error| error.context("not valid YAML"))?;
        Ok(stream.documents)
    };
    let was = read(text)?;
    let mut editor = Editor { text, changes: &changes, splices: Vec::new(), shown: HashMap::new() };
    was.iter().try_for_each(|document| editor.splice(document))?;
    let after = editor.spliced()?;
    let unproven = "the edit could not be proven to change this value alone";
    let first = changes.values().next().map_or((0, 0), |change| change.place);
    let is = read(&after).or_else(|_| refused(first, unproven))?;
    let is_proven = was.len() == is.len() && was.iter().zip(&is).all(|(was, is)| editor.is_edited(was, is, &after));
    for change in changes.values() {
        match editor.shown.get(&change.range.start) {
            None if is_proven => return refused(change.place, "the file is not what the references were read from"),
            Some(shown) if *shown != change.count => {
                return refused(change.place, "another field shares this value by an anchor and would change with it");
            }
            _ => {}
        }
    }
    if is_proven { Ok(after.into_bytes()) } else { refused(first, unproven) }
}

/// What becomes of one scalar.
#[derive(Debug)]
struct Change<'a> {
    range: Range<usize>,
    value: &'a str,
    place: Place,
    /// How many places that show the scalar are to change.
    count: usize,
}

/// By the byte at which the scalar begins.
type Changes<'a> = BTreeMap<usize, Change<'a>>;

struct Editor<'a> {
    text: &'a str,
    changes: &'a Changes<'a>,
    /// The bytes that are replaced.
    splices: Vec<(Range<usize>, String)>,
    /// How often a scalar that changes is shown.
    shown: HashMap<usize, usize>,
}

impl<'a> Editor<'a> {
    fn change(&self, value: &Value) -> Option<&'a Change<'a>> {
        let change = self.changes.get(&value.range.start)?;
        (value.text().is_some() && change.range == value.range).then_some(change)
    }

    /// Returns whether a literal block holds YAML in which something changes.
    fn changes_within(&self, value: &Value) -> bool {
        let is_block = value.style == ScalarStyle::Literal && value.alias_of.is_none();
        is_block && self.changes.range(value.range.clone()).any(|(_, change)| change.range != value.range)
    }

    /// Returns what a scalar becomes: an alias of one that changes keeps its value.
    fn after<'v>(&'v self, value: &'v Value) -> Option<&'v str> {
        match (self.change(value), value.alias_of) {
            (Some(change), _) => Some(change.value),
            (None, Some(of)) if self.changes.contains_key(&of) => value.text(),
            _ => None,
        }
    }

    /// Adds what is replaced in a value.
    fn splice(&mut self, value: &Value) -> Result<(), Problem> {
        match &value.data {
            Data::List(items) => items.iter().try_for_each(|item| self.splice(item)),
            Data::Mapping(pairs) => pairs.iter().try_for_each(|(_, value)| self.splice(value)),
            Data::Text(_) if self.changes_within(value) => {
                let within = yaml::read_within(self.text, value).map_or_else(|_| Vec::new(), |stream| stream.documents);
                within.iter().try_for_each(|document| self.splice(document))
            }
            Data::Text(_) => self.splice_scalar(value),
            _ => Ok(()),
        }
    }

    fn splice_scalar(&mut self, value: &Value) -> Result<(), Problem> {
        let Some(after) = self.after(value) else {
            return Ok(());
        };
        if value.alias_of.is_none() && matches!(value.style, ScalarStyle::Literal | ScalarStyle::Folded) {
            return refused(value.place(), "a block scalar is not edited");
        }
        let of = value.alias_of.and_then(|start| Some(self.changes.get(&start)?.value));
        if of != Some(after) {
            let splice = (value.range.clone(), scalar(after, value));
            self.splices.push(splice);
        }
        Ok(())
    }

    fn spliced(&mut self) -> Result<String, Problem> {
        self.splices.sort_by_key(|(range, _)| range.start);
        self.splices.dedup();
        let (mut after, mut at) = (String::with_capacity(self.text.len()), 0);
        for (range, with) in &self.splices {
            let Some(before) = self.text.get(at..range.start) else {
                return refused((0, 0), "edits overlap");
            };
            after.push_str(before);
            after.push_str(with);
            at = range.end;
        }
        after.push_str(self.text.get(at..).unwrap_or_default());
        Ok(after)
    }

    /// Returns whether one value is the other with what was to change; `text` is the one that holds the other.
    fn is_edited(&mut self, was: &Value, is: &Value, text: &str) -> bool {
        if (was.is_anchored, was.in_flow) != (is.is_anchored, is.in_flow) {
            return false;
        }
        if self.change(was).is_some() {
            *self.shown.entry(was.range.start).or_default() += 1;
        }
        let is_alias = (was.alias_of.is_some(), is.alias_of.is_some());
        if let Some(after) = self.after(was) {
            return is_alias != (false, true) && is.tag.is_none() && is.text() == Some(after);
        }
        if is_alias.0 != is_alias.1 || (&was.tag, was.style) != (&is.tag, is.style) {
            return false;
        }
        match (&was.data, &is.data) {
            (Data::List(was), Data::List(is)) => self.are_edited(was, is, text),
            (Data::Mapping(was), Data::Mapping(is)) => {
                let mut both = was.iter().zip(is);
                was.len() == is.len() && both.all(|(was, is)| was.0 == is.0 && self.is_edited(&was.1, &is.1, text))
            }
            (Data::Text(_), Data::Text(_)) if self.changes_within(was) => {
                let within = (yaml::read_within(self.text, was), yaml::read_within(text, is));
                let (Ok(was), Ok(is)) = within else {
                    return false;
                };
                self.are_edited(&was.documents, &is.documents, text)
            }
            (was, is) => was == is,
        }
    }

    fn are_edited(&mut self, was: &[Value], is: &[Value], text: &str) -> bool {
        was.len() == is.len() && was.iter().zip(is).all(|(was, is)| self.is_edited(was, is, text))
    }
}

/// Writes a value in the style of what it replaces, as far as the value allows: plain, else single quotes, else double
/// quotes.
fn scalar(value: &str, old: &Value) -> String {
    let style = if old.alias_of.is_some() { ScalarStyle::Plain } else { old.style };
    if style == ScalarStyle::Plain && is_plain(value, old.in_flow) {
        return value.to_owned();
    }
    if style != ScalarStyle::DoubleQuoted && value.chars().all(is_printable) {
        return format!("'{}'", value.replace('\'', "''"));
    }
    let escape = |c: char| match c {
        '"' | '\\' => format!("\\{c}"),
        c if is_printable(c) => c.to_string(),
        c => format!("\\U{:08x}", u32::from(c)),
    };
    format!("\"{}\"", value.chars().map(escape).collect::<String>())
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
