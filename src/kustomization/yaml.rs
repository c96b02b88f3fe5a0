//! YAML as values that know their bytes. A text is read by two parsers, which must agree.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ops::Range;

use granit_parser::{Event, Marker, Options, Parser, ScalarStyle, ScanError, Span, StrInput, StructureStyle, Tag};
use serde::Deserialize;
use serde::de::{Deserializer, EnumAccess, Error, IgnoredAny, MapAccess, SeqAccess, VariantAccess, Visitor};
use serde_json::Number;

use super::{Problem, ProblemKind};
use crate::message::position::Position;
use crate::os::limits::NODES;

/// As many bytes of a scalar count as a node.
const LONG: usize = 100;
/// Collections in one another.
const DEEPEST: usize = 100;

/// A value of a YAML document, aliases resolved.
#[derive(Debug, Clone)]
pub(crate) struct Value {
    /// The first character.
    pub start: Position,
    /// What it is.
    pub data: Data,
    /// After the last character of a scalar.
    pub(super) end: Position,
    /// The bytes of a scalar with its quotes, or of an alias with its `*`; of a block scalar, those of its content.
    /// Empty where it stands in a scalar that cannot be edited.
    pub(super) range: Range<usize>,
    pub(super) style: ScalarStyle,
    pub(super) in_flow: bool,
    pub(super) is_anchored: bool,
    /// Where the bytes of the value begin that this one shows; `None` unless it is an alias.
    pub(super) alias_of: Option<usize>,
    pub(super) tag: Option<String>,
    /// Where its key begins.
    pub(super) key: Position,
    /// What stands under the same key before it, which kustomize does not read.
    pub(super) replaced: Vec<Value>,
}

/// Two are equal where the text says the same in the same way, wherever that stands.
impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        let form = |value: &Value| (value.style, value.in_flow, value.is_anchored, value.alias_of.is_some());
        form(self) == form(other) && self.tag == other.tag && self.data == other.data && self.replaced == other.replaced
    }
}

/// What a [`Value`] is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Data {
    /// Nothing.
    Null,
    /// `true` or `false`.
    Flag(bool),
    /// A number, as written.
    Number(String),
    Text(String),
    List(Vec<Value>),
    /// A mapping, each key once; a merge key is the key `<<`.
    Mapping(Vec<(String, Value)>),
}

pub(super) fn wrong<T>(place: Position, message: impl Into<String>) -> Result<T, Problem> {
    Err(Problem::new(ProblemKind::Other, place, message, ""))
}

fn place_of(marker: &Marker) -> Position {
    Position::new(marker.line(), marker.col() + 1)
}

/// The documents of a text.
#[derive(Debug)]
pub(super) struct Stream<'t> {
    pub text: &'t str,
    pub documents: Vec<Value>,
    /// Where something begins that was not read, because as many documents as requested were.
    pub rest: Option<Position>,
    /// How many lines stand before the text in its file.
    pub before: usize,
    /// The first key that is there twice in its mapping.
    pub repeated: Option<Problem>,
}

/// Reads up to `limit` documents with both parsers. Nothing is read from outside in any other way.
pub(super) fn read(text: &str, limit: usize) -> Result<Stream<'_>, Problem> {
    let mut stream = read_repeated(text, limit)?;
    stream.repeated.take().map_or(Ok(stream), Err)
}

/// Does so where a key may be there twice: the last one counts.
pub(super) fn read_repeated(text: &str, limit: usize) -> Result<Stream<'_>, Problem> {
    // Of the indentation of a last line that has nothing else and no end, one parser makes a line of a block scalar.
    let bare = text.trim_end_matches(' ');
    let text = if bare.ends_with('\n') { bare } else { text };
    let mut options = Options::default();
    options.set_emit_comments(false);
    options.emit_anchor_events = true;
    let events = Parser::new_from_str_with_options(text, options);
    let (anchors, names, marks) = (HashMap::new(), HashSet::new(), Vec::new());
    let mut reader = Reader { text, events, anchors, names, marks, is_reused: false, size: 0, repeated: None };
    let stream = reader.stream(limit)?;
    agree(&stream, &reader.with_own_names())?;
    Ok(stream)
}

/// Reads all documents of a text that stands in a scalar of `file`. Their places are those in the file; where only the
/// parser knows them, that of the scalar.
pub(super) fn read_within<'v>(file: &str, scalar: &'v Value) -> Result<Stream<'v>, Problem> {
    let mut stream = read(scalar.text().unwrap_or_default(), usize::MAX)?;
    stream.before = scalar.start.line - 1;
    let lines = lines(file, scalar);
    let moved = &mut |value: &mut Value| {
        let Some(lines) = &lines else {
            (value.end, value.range, value.key) = (scalar.end, 0..0, scalar.start);
            return value.start = scalar.start;
        };
        let place = |at: Position| Position::new(scalar.start.line + at.line - 1, scalar.start.column + at.column - 1);
        let byte = |at: usize| {
            let line = lines.partition_point(|(start, _)| *start <= at).checked_sub(1);
            line.map_or(0, |line| lines[line].1 + at - lines[line].0)
        };
        (value.start, value.end, value.key) = (place(value.start), place(value.end), place(value.key));
        value.range = byte(value.range.start)..byte(value.range.end);
        value.alias_of = value.alias_of.map(byte);
    };
    stream.documents.iter_mut().for_each(|document| document.each(moved));
    Ok(stream)
}

/// Finds where each line of a literal block (`|`) begins, in its text and in the file. None where it is another scalar, or
/// they do not match one by one.
fn lines(file: &str, scalar: &Value) -> Option<Vec<(usize, usize)>> {
    if scalar.style != ScalarStyle::Literal || scalar.alias_of.is_some() || scalar.range.is_empty() {
        return None;
    }
    let indent = scalar.start.column - 1;
    let (mut at, mut start, mut lines) = (scalar.range.start.checked_sub(indent)?, 0, Vec::new());
    for line in scalar.text()?.split_inclusive('\n') {
        let source = file.get(at..)?.split_inclusive('\n').next()?;
        let content = line.trim_end_matches('\n');
        let begin = if content.is_empty() { 0 } else { indent };
        if source.get(begin..)?.trim_end_matches(['\n', '\r']) != content {
            return None;
        }
        lines.push((start, at + begin));
        (at, start) = (at + source.len(), start + line.len());
    }
    Some(lines)
}

impl Value {
    /// Returns a value that stands nowhere in particular.
    pub(crate) fn new(start: Position, data: Data) -> Self {
        Value {
            start,
            data,
            end: start,
            range: 0..0,
            style: ScalarStyle::Plain,
            in_flow: false,
            is_anchored: false,
            alias_of: None,
            tag: None,
            key: start,
            replaced: Vec::new(),
        }
    }

    /// Returns another one at its place.
    pub(crate) fn with(&self, data: Data) -> Self {
        Value::new(self.start, data)
    }
}

/// Makes values of the events of the first parser.
struct Reader<'t> {
    text: &'t str,
    events: Parser<'t, StrInput<'t>>,
    /// Each with its size, by number: of a name that is there twice, an alias means the last one before it.
    anchors: HashMap<usize, (Value, usize)>,
    /// The names of anchors.
    names: HashSet<String>,
    /// Where anchors and aliases stand, with those numbers.
    marks: Vec<(Range<usize>, usize)>,
    /// Whether two anchors have one name.
    is_reused: bool,
    /// How many nodes there are, with what anchors hold and aliases stand for.
    size: usize,
    repeated: Option<Problem>,
}

type Next<'t> = (Event<'t>, Span);

impl<'t> Reader<'t> {
    fn stream(&mut self, limit: usize) -> Result<Stream<'t>, Problem> {
        let mut stream = Stream { text: self.text, documents: Vec::new(), rest: None, before: 0, repeated: None };
        while let Some(next) = self.events.next_event() {
            let is_done = stream.documents.len() >= limit;
            match next {
                Err(error) if is_done => stream.rest = Some(place_of(error.marker())),
                Ok((Event::DocumentStart(..), span)) if is_done => stream.rest = Some(place_of(&span.start)),
                Ok((Event::DocumentStart(..), _)) => {
                    self.anchors.clear();
                    let next = self.next()?;
                    stream.documents.push(self.value(next, false, 0)?);
                    // Its end.
                    self.next()?;
                }
                next => drop(next.map_err(|error| syntax(&error))?),
            }
            if stream.rest.is_some() {
                break;
            }
        }
        stream.repeated = self.repeated.take();
        Ok(stream)
    }

    /// Returns the text with another name for each anchor, if two have one: the other parser (yaml_serde 0.10.7) mixes them up.
    fn with_own_names(mut self) -> Cow<'t, str> {
        if !self.is_reused {
            return self.text.into();
        }
        self.marks.sort_by_key(|(range, _)| range.start);
        let (mut text, mut end) = (String::new(), 0);
        for (range, number) in &self.marks {
            text += self.text.get(end..=range.start).unwrap_or_default();
            text += &format!("a{number}");
            end = range.end;
        }
        (text + self.text.get(end..).unwrap_or_default()).into()
    }

    fn next(&mut self) -> Result<Next<'t>, Problem> {
        match self.events.next_event() {
            Some(Ok((Event::Anchor(number, name), span))) => {
                self.marks.extend(span.byte_range().map(|range| (range, number)));
                self.is_reused |= !self.names.insert(name.into_owned());
                self.next()
            }
            Some(next) => next.map_err(|error| syntax(&error)),
            None => wrong(Position::new(1, 1), "unexpected end of file"),
        }
    }

    /// Reads the value that begins with an event.
    fn value(&mut self, (event, span): Next<'t>, in_flow: bool, depth: usize) -> Result<Value, Problem> {
        let range = span.byte_range().unwrap_or(0..0);
        let place = place_of(&span.start);
        if depth > DEEPEST {
            return wrong(place, "nested too deep");
        }
        let before = self.size;
        let mut value = Value { end: place_of(&span.end), range, in_flow, ..Value::new(place, Data::Null) };
        let (anchor, tag) = match event {
            Event::Scalar(word, style, anchor, tag) => {
                value.style = style;
                value.data = scalar(self.text, word.into_owned(), tag.is_some(), &mut value);
                (anchor, tag)
            }
            Event::SequenceStart(style, anchor, tag) => {
                value.data = Data::List(self.values(style, depth)?);
                (anchor, tag)
            }
            Event::MappingStart(style, anchor, tag) => {
                value.data = Data::Mapping(pairs(self.values(style, depth)?, &mut self.repeated)?);
                (anchor, tag)
            }
            Event::Alias(anchor) => {
                self.marks.push((value.range.clone(), anchor));
                let Some((target, size)) = self.anchors.get(&anchor) else {
                    return wrong(place, "this alias refers to a value that contains it");
                };
                // Before it is copied.
                count(&mut self.size, *size, place)?;
                (value.data, value.style) = (target.data.clone(), target.style);
                (value.tag, value.alias_of) = (target.tag.clone(), Some(target.range.start));
                return Ok(value);
            }
            _ => return wrong(place, "not a value"),
        };
        value.tag = tag.map(|tag: Cow<'_, Tag>| format!("{}{}", tag.handle(), tag.suffix()));
        count(&mut self.size, value.text().map_or(1, |text| 1 + text.len() / LONG), place)?;
        if anchor != 0 {
            value.is_anchored = true;
            let size = self.size - before;
            // A copy, too.
            count(&mut self.size, size, place)?;
            self.anchors.insert(anchor, (value.clone(), size));
        }
        Ok(value)
    }

    /// Reads what is in a collection, to its end.
    fn values(&mut self, style: StructureStyle, depth: usize) -> Result<Vec<Value>, Problem> {
        let mut values = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd | Event::MappingEnd, _) => return Ok(values),
                next => values.push(self.value(next, style == StructureStyle::Flow, depth + 1)?),
            }
        }
    }
}

/// Makes pairs of keys and values in turn.
fn pairs(values: Vec<Value>, repeated: &mut Option<Problem>) -> Result<Vec<(String, Value)>, Problem> {
    let (mut pairs, mut seen) = (Vec::<(String, Value)>::new(), HashMap::new());
    let mut values = values.into_iter();
    while let Some((at, value)) = values.next().zip(values.next()) {
        let is_word = at.alias_of.is_none() && !matches!(at.style, ScalarStyle::Literal | ScalarStyle::Folded);
        let Some(key) = at.scalar().filter(|_| is_word && at.tag.is_none()) else {
            return wrong(at.start, "expected a plain or quoted string as a key");
        };
        let mut value = Value { key: at.start, ..value };
        let is_text = at.text().is_some();
        let (index, was_text) = *seen.entry(key.clone()).or_insert((pairs.len(), is_text));
        let Some((_, before)) = pairs.get_mut(index) else {
            pairs.push((key, value));
            continue;
        };
        let problem = Problem::new(ProblemKind::Other, at.start, format!("the key `{key}` appears twice"), "");
        // Both count of a merge key, and any of keys of different types, as of `1` and `"1"`.
        if key == "<<" || !is_text || !was_text {
            return Err(problem);
        }
        repeated.get_or_insert(problem);
        value.replaced = std::mem::take(&mut before.replaced);
        let before = std::mem::replace(before, value);
        pairs[index].1.replaced.push(before);
    }
    Ok(pairs)
}

fn count(size: &mut usize, more: usize, place: Position) -> Result<(), Problem> {
    *size += more;
    if *size > NODES.most {
        return Err(Problem::new(ProblemKind::TooLarge, place, NODES.more(), NODES.hint));
    }
    Ok(())
}

/// Returns what a scalar is. The place of a block scalar is that of its content.
fn scalar(text: &str, mut word: String, is_tagged: bool, value: &mut Value) -> Data {
    match value.style {
        // The parser writes `~` for a value that is not there.
        ScalarStyle::Plain if value.range.is_empty() => word.clear(),
        ScalarStyle::Literal | ScalarStyle::Folded => {
            // libyaml adds no line break that the file does not have.
            if value.range.end >= text.len() && !text.ends_with(['\n', '\r']) && word.ends_with('\n') {
                word.pop();
            }
            value.end = value.start;
        }
        _ => {}
    }
    if value.style == ScalarStyle::Plain && !is_tagged { plain(word) } else { Data::Text(word) }
}

/// Returns what a word without quotes is, as go-yaml 3 takes it (`resolve.go`, measured on some 150 words).
pub(super) fn plain(word: String) -> Data {
    match word.as_str() {
        "" | "~" | "null" | "Null" | "NULL" => Data::Null,
        "true" | "True" | "TRUE" => Data::Flag(true),
        "false" | "False" | "FALSE" => Data::Flag(false),
        _ if is_number(&word) => Data::Number(word),
        _ => Data::Text(word),
    }
}

/// Whether a word is a boolean for YAML 1.1, which kustomizations are read by.
pub(super) fn is_old_flag(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    matches!(lower.as_str(), "y" | "yes" | "on" | "n" | "no" | "off")
}

fn is_number(word: &str) -> bool {
    if word.starts_with('_') {
        return false;
    }
    let digits = if word.starts_with('.') { word.to_owned() } else { word.replace('_', "") }.to_ascii_lowercase();
    let unsigned = digits.strip_prefix(['-', '+']).unwrap_or(&digits);
    let begins = |c: char| c.is_ascii_digit() || c == '.';
    let radix = |(prefix, radix)| {
        let rest = unsigned.strip_prefix(prefix).filter(|rest| !rest.starts_with('+'));
        rest.is_some_and(|rest| u64::from_str_radix(rest, radix).is_ok())
    };
    matches!(unsigned, ".inf" | ".nan")
        || [("0x", 16), ("0b", 2), ("0o", 8)].into_iter().any(radix)
        || unsigned.starts_with(begins) && unsigned.parse::<f64>().is_ok_and(f64::is_finite)
}

/// Returns the value of a [number](Data::Number) as go-yaml 3 takes it, in base 16, 8, 2 or 10; `None` of infinity and of
/// what is none.
pub(super) fn number(word: &str) -> Option<Number> {
    if let Ok(number) = word.parse() {
        return Some(number);
    }
    let digits = word.replace('_', "").to_ascii_lowercase();
    let (sign, unsigned) = match digits.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", digits.strip_prefix('+').unwrap_or(&digits)),
    };
    let based = [("0x", 16), ("0b", 2), ("0o", 8), ("0", 8)].into_iter().find_map(|(prefix, radix)| {
        let rest = unsigned.strip_prefix(prefix)?;
        u64::from_str_radix(rest, radix).ok()
    });
    match based {
        Some(number) => format!("{sign}{number}").parse().ok(),
        // Digits that are not octal are decimal.
        None => digits.parse().ok().and_then(|number: f64| match number as i64 {
            whole if whole as f64 == number => Some(whole.into()),
            _ => Number::from_f64(number),
        }),
    }
}

fn syntax(error: &ScanError) -> Problem {
    Problem::new(ProblemKind::Other, place_of(error.marker()), error.info(), "")
}

/// Checks that libyaml, the ancestor of the parser in kustomize, reads the same: where the two disagree, kustomize may see
/// a reference that we do not.
fn agree(stream: &Stream<'_>, text: &str) -> Result<(), Problem> {
    let bare = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut others = serde_yaml::Deserializer::from_str(bare);
    for document in &stream.documents {
        // An empty text has no document for the one reader and an empty one for the other.
        let other = match others.next().map_or(Ok(Other::Null), Other::deserialize) {
            Ok(other) => other,
            Err(error) => {
                let at = error.location().map_or(document.start, |at| Position::new(at.line(), at.column()));
                let message = error.to_string();
                return wrong(at, message.rsplit_once(" at line ").map_or(&*message, |(message, _)| message));
            }
        };
        same(document, &other).or_else(|place| wrong(place, "two YAML parsers disagree about this"))?;
    }
    Ok(())
}

/// What the other parser reads, with each key as often as it is there.
enum Other {
    Null,
    Flag(bool),
    Number,
    Text(String),
    List(Vec<Other>),
    Mapping(Vec<(Other, Other)>),
}

impl<'de> Deserialize<'de> for Other {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Other, D::Error> {
        from.deserialize_any(OtherReader)
    }
}

struct OtherReader;

impl<'de> Visitor<'de> for OtherReader {
    type Value = Other;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Other, E> {
        Ok(Other::Null)
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Other, E> {
        Ok(Other::Flag(flag))
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Other, E> {
        Ok(Other::Number)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Other, E> {
        Ok(Other::Number)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Other, E> {
        Ok(Other::Number)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Other, E> {
        Ok(Other::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Other, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Other::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut pairs: A) -> Result<Other, A::Error> {
        let mut mapping = Vec::new();
        while let Some(pair) = pairs.next_entry()? {
            mapping.push(pair);
        }
        Ok(Other::Mapping(mapping))
    }

    /// A value with a tag.
    fn visit_enum<A: EnumAccess<'de>>(self, tagged: A) -> Result<Other, A::Error> {
        let (IgnoredAny, value) = tagged.variant()?;
        value.newtype_variant()
    }
}

/// Compares a value with what the other parser read; the error is where they differ. The types of words are our own
/// business, but the words must be the same.
fn same(value: &Value, other: &Other) -> Result<(), Position> {
    let is_same = match (&value.data, other) {
        (Data::Null, other) => matches!(other, Other::Null),
        (Data::Flag(flag), Other::Flag(other)) => flag == other,
        (Data::Text(word) | Data::Number(word), other) => is_same_word(word, other),
        (Data::List(items), Other::List(others)) if items.len() == others.len() => {
            return items.iter().zip(others).try_for_each(|(item, other)| same(item, other));
        }
        (Data::Mapping(pairs), Other::Mapping(others)) => {
            let mut pairs: Vec<(&String, &Value)> = pairs.iter().map(|(key, value)| (key, value)).collect();
            for index in 0..pairs.len() {
                let (key, value) = pairs[index];
                pairs.extend(value.replaced.iter().map(|value| (key, value)));
            }
            pairs.sort_by_key(|(_, value)| value.key);
            if pairs.len() != others.len() {
                return Err(value.start);
            }
            return pairs.into_iter().zip(others).try_for_each(|((key, value), (name, other))| {
                if is_same_word(key, name) { same(value, other) } else { Err(value.key) }
            });
        }
        _ => false,
    };
    is_same.then_some(()).ok_or(value.start)
}

fn is_same_word(word: &str, other: &Other) -> bool {
    match other {
        Other::Text(other) => word == other,
        Other::Null => matches!(word, "" | "~" | "null" | "Null" | "NULL"),
        Other::Flag(_) | Other::Number => word.bytes().all(|b| b.is_ascii_graphic()),
        Other::List(_) | Other::Mapping(_) => false,
    }
}
