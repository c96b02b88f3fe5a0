//! Edits in the text of a file, and the proof that nothing else changed.
//!
//! Only the bytes of the named scalars change; comments, order, quotes, line ends and a byte order mark stay. The result is
//! read again, by both parsers: unless it is the old file with the new values, and every place that shows one of them by
//! an anchor was meant, it is thrown away.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::ops::Range;

use super::Spot;
use super::within::Lines;
use super::yaml::{self, Data, Style, Value, is_old_flag, plain};

/// One edit: the scalar at a spot gets another value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit<'a> {
    /// Where, as [`super::Reference::spot`] says.
    pub spot: &'a Spot,
    /// The whole new value, with `key=` where one is needed; none: its field goes. Comments stay, but for one that ends
    /// the last line of that field.
    pub value: Option<String>,
}

/// Why a file was not edited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditError {
    /// 1-based line, 0 if the whole file is meant.
    pub line: usize,
    /// 1-based column in characters, 0 if the whole file is meant.
    pub column: usize,
    /// A lower-case phrase.
    pub message: String,
}

impl fmt::Display for EditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

fn refused<T>((line, column): (usize, usize), message: &str) -> Result<T, EditError> {
    Err(EditError { line, column, message: message.to_owned() })
}

/// Gives scalars new values and changes nothing else in the file.
///
/// `bytes` must be what the spots were read from. Several edits of one scalar must agree.
///
/// Fails when a scalar cannot be edited where it stands, when another field shares it by an anchor, and when the result
/// could not be proven. Nothing is changed then.
pub fn edit(bytes: &[u8], edits: &[Edit<'_>]) -> Result<Vec<u8>, EditError> {
    let text = std::str::from_utf8(bytes).or_else(|_| refused((0, 0), "the file is not UTF-8"))?;
    let mut spots: HashSet<&Spot> = HashSet::new();
    let mut changes = Changes::new();
    for Edit { spot, value } in edits {
        let place = (spot.line, spot.column);
        let count = usize::from(spots.insert(spot));
        let agrees = add(&mut changes, &spot.ranges, value.as_deref(), place, count);
        if !agrees {
            return refused(place, "the fields that share this value need different ones");
        }
    }
    Ok(rewrite(text, &changes)?.text.into_bytes())
}

/// Adds one edit; says whether it agrees with those before it.
fn add<'a>(
    changes: &mut Changes<'a>,
    ranges: &[Range<usize>],
    value: Option<&'a str>,
    place: (usize, usize),
    count: usize,
) -> bool {
    let Some((range, deeper)) = ranges.split_first() else {
        return false;
    };
    let is_new = !changes.contains_key(&range.start);
    let change = changes.entry(range.start).or_insert_with(|| Change {
        range: range.clone(),
        value,
        inside: Changes::new(),
        place,
        count: 0,
    });
    if deeper.is_empty() {
        change.count += count;
        return change.value == value && change.range == *range && change.inside.is_empty();
    }
    change.count = 1;
    (is_new || !change.inside.is_empty()) && add(&mut change.inside, deeper, value, place, count)
}

/// What becomes of one scalar.
#[derive(Debug)]
struct Change<'a> {
    range: Range<usize>,
    value: Option<&'a str>,
    /// What changes in its text, which is YAML.
    inside: Changes<'a>,
    place: (usize, usize),
    /// How many places that show the scalar are to change.
    count: usize,
}

impl Change<'_> {
    /// Returns whether its field goes.
    fn goes(&self) -> bool {
        self.value.is_none() && self.inside.is_empty()
    }
}

/// By the byte at which the scalar begins.
type Changes<'a> = BTreeMap<usize, Change<'a>>;
/// Bytes that are replaced.
type Splice = (Range<usize>, String);

/// A text after its edits.
struct Rewritten {
    text: String,
    splices: Vec<Splice>,
}

fn rewrite(text: &str, changes: &Changes<'_>) -> Result<Rewritten, EditError> {
    let read = |text: &str| {
        yaml::read(text, usize::MAX).map(|stream| stream.documents).map_err(|error| EditError {
            line: error.line,
            column: error.column,
            message: format!("not valid YAML: {}", error.message),
        })
    };
    let was = read(text)?;
    let mut rewriter = Rewriter { text, changes, splices: Vec::new(), texts: HashMap::new(), shown: HashMap::new() };
    for document in &was {
        rewriter.splice(document)?;
    }
    let mut splices = std::mem::take(&mut rewriter.splices);
    splices.sort_by_key(|(range, _)| range.start);
    splices.dedup();
    let mut after = String::with_capacity(text.len());
    let mut at = 0;
    for (range, with) in &splices {
        let Some(before) = text.get(at..range.start) else {
            return refused((0, 0), "edits overlap");
        };
        after.push_str(before);
        after.push_str(with);
        at = range.end;
    }
    after.push_str(text.get(at..).unwrap_or_default());
    let unproven = "the edit could not be proven to change this value alone";
    let first = changes.values().next().map_or((0, 0), |change| change.place);
    let Ok(is) = read(&after) else {
        return refused(first, unproven);
    };
    let is_proven = was.len() == is.len() && was.iter().zip(&is).all(|(was, is)| rewriter.is_edited(was, is));
    for change in changes.values() {
        match rewriter.shown.get(&change.range.start) {
            None if is_proven => {
                return refused(change.place, "the file is not what the references were read from");
            }
            Some(shown) if *shown != change.count => {
                return refused(change.place, "another field shares this value by an anchor and would change with it");
            }
            _ => {}
        }
    }
    if is_proven { Ok(Rewritten { text: after, splices }) } else { refused(first, unproven) }
}

struct Rewriter<'a> {
    text: &'a str,
    changes: &'a Changes<'a>,
    splices: Vec<Splice>,
    /// The new texts of scalars that change, by where they begin.
    texts: HashMap<usize, String>,
    /// How often a scalar that changes is shown.
    shown: HashMap<usize, usize>,
}

impl<'a> Rewriter<'a> {
    fn change(&self, value: &Value) -> Option<&'a Change<'a>> {
        let change = self.changes.get(&value.range.start)?;
        (value.text().is_some() && change.range == value.range).then_some(change)
    }

    /// Returns what a scalar becomes: an alias of one that changes keeps its value.
    fn after<'v>(&'v self, value: &'v Value) -> Option<&'v str> {
        match (self.change(value), value.alias_of) {
            (Some(change), _) => self.texts.get(&change.range.start).map(String::as_str),
            (None, Some(of)) if self.changes.contains_key(&of) => value.text(),
            _ => None,
        }
    }

    /// Adds what is replaced in a value.
    fn splice(&mut self, value: &Value) -> Result<(), EditError> {
        match &value.data {
            Data::List(items) => items.iter().try_for_each(|item| self.splice(item)),
            Data::Mapping(pairs) => {
                for (i, (_, value)) in pairs.iter().enumerate() {
                    if let Some(change) = self.change(value).filter(|change| change.goes()) {
                        let range =
                            if value.in_flow { in_flow(self.text, pairs, i) } else { in_block(self.text, value) };
                        let Some(range) = range else {
                            return refused(change.place, "this field cannot be removed without changing other fields");
                        };
                        self.splices.push((range, String::new()));
                    } else {
                        self.splice(value)?;
                    }
                }
                Ok(())
            }
            Data::Text(text) => self.splice_scalar(value, text),
            _ => Ok(()),
        }
    }

    fn splice_scalar(&mut self, value: &Value, text: &str) -> Result<(), EditError> {
        if let Some(change) = self.change(value) {
            let mut after = change.value.unwrap_or_default().to_owned();
            if !change.inside.is_empty() {
                let done = rewrite(text, &change.inside)?;
                if let Some(lines) = Lines::find(self.text, value) {
                    let splices = done.splices.into_iter();
                    let outside = |(range, with)| Some((lines.outer(&range)?, with));
                    self.splices.extend(splices.filter_map(outside));
                    self.texts.insert(value.range.start, done.text);
                    return Ok(());
                }
                after = done.text;
            }
            if value.alias_of.is_none() && matches!(value.style, Style::Literal | Style::Folded) {
                return refused(change.place, "a block scalar is not edited");
            }
            self.texts.insert(value.range.start, after);
        }
        let Some(after) = self.after(value) else {
            return Ok(());
        };
        let of = value.alias_of.and_then(|start| self.texts.get(&start));
        if of.is_none_or(|of| of != after) {
            let splice = (value.range.clone(), scalar(after, value));
            self.splices.push(splice);
        }
        Ok(())
    }

    /// Returns whether one value is the other with what was to change.
    fn is_edited(&mut self, was: &Value, is: &Value) -> bool {
        let is_similar = (was.is_anchored, was.in_flow) == (is.is_anchored, is.in_flow);
        if self.change(was).is_some() {
            *self.shown.entry(was.range.start).or_default() += 1;
        }
        let is_alias = (was.alias_of.is_some(), is.alias_of.is_some());
        if let Some(after) = self.after(was) {
            return is_similar && is_alias != (false, true) && is.tag.is_none() && is.text() == Some(after);
        }
        if !is_similar || is_alias.0 != is_alias.1 || (&was.tag, was.style) != (&is.tag, is.style) {
            return false;
        }
        match (&was.data, &is.data) {
            (Data::List(was), Data::List(is)) => {
                was.len() == is.len() && was.iter().zip(is).all(|(was, is)| self.is_edited(was, is))
            }
            (Data::Mapping(was), Data::Mapping(is)) => {
                let mut is = is.iter();
                for (key, value) in was {
                    if self.change(value).is_some_and(Change::goes) {
                        *self.shown.entry(value.range.start).or_default() += 1;
                    } else if !is.next().is_some_and(|(to, is)| key == to && self.is_edited(value, is)) {
                        return false;
                    }
                }
                is.next().is_none()
            }
            (was, is) => was == is,
        }
    }
}

/// Between braces: up to the next field, or from the comma before it.
fn in_flow(text: &str, pairs: &[(String, Value)], index: usize) -> Option<Range<usize>> {
    let (_, value) = pairs.get(index)?;
    let (start, ..) = value.key;
    if let Some((_, next)) = pairs.get(index + 1) {
        return Some(start..next.key.0);
    }
    let before = text.get(..start)?.trim_end();
    let from = if index == 0 { start } else { before.strip_suffix(',')?.len() };
    Some(from..value.range.end)
}

/// On lines of its own: these lines. After the `-` of a list: up to what comes next.
fn in_block(text: &str, value: &Value) -> Option<Range<usize>> {
    let (start, ..) = value.key;
    let end = value.range.start + text.get(value.range.clone())?.trim_end().len();
    let bom = if text.starts_with('\u{feff}') { 3 } else { 0 };
    let line = text.get(..start)?.rfind('\n').map_or(bom, |at| at + 1);
    let line_end = text.get(end..)?.find('\n').map_or(text.len(), |at| end + at + 1);
    if text.get(line..start)?.trim().is_empty() {
        return Some(line..line_end);
    }
    let after = text.get(line_end..)?;
    Some(start..line_end + (after.len() - after.trim_start().len()))
}

/// Writes a value in the style of what it replaces, as far as the value allows: plain, else single quotes, else double
/// quotes.
fn scalar(value: &str, old: &Value) -> String {
    let style = if old.alias_of.is_some() { Style::Plain } else { old.style };
    if style == Style::Plain && is_plain(value, old.in_flow) {
        return value.to_owned();
    }
    if style != Style::Double && value.chars().all(is_printable) {
        return format!("'{}'", value.replace('\'', "''"));
    }
    let escape = |c: char| match c {
        '"' | '\\' => format!("\\{c}"),
        '\n' => "\\n".to_owned(),
        '\t' => "\\t".to_owned(),
        '\r' => "\\r".to_owned(),
        c if is_printable(c) => c.to_string(),
        c => format!("\\U{:08x}", u32::from(c)),
    };
    format!("\"{}\"", value.chars().map(escape).collect::<String>())
}

/// Whether a character can stand unescaped in a scalar, for every YAML reader.
fn is_printable(c: char) -> bool {
    !c.is_control() && !matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') && u32::from(c) & 0xfffe != 0xfffe
}

/// Whether a value is a string without quotes, for every YAML reader.
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
