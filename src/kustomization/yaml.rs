//! YAML as values that know their bytes. Two parsers read each text, and must agree.

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

/// The bytes of a scalar that count as one node.
const LONG: usize = 100;
/// The deepest nesting of collections.
const DEEPEST: usize = 100;

/// A value of a YAML document, aliases resolved.
#[derive(Debug, Clone)]
pub(crate) struct Value {
    /// The position of the first character.
    pub start: Position,
    pub data: Data,
    /// The position after the last character of a scalar.
    pub(super) end: Position,
    /// The bytes of a scalar with its quotes, of an alias with its `*`, or of the content of a block scalar. Empty for
    /// a value in a scalar that cannot be edited.
    pub(super) range: Range<usize>,
    pub(super) style: ScalarStyle,
    pub(super) in_flow: bool,
    pub(super) is_anchored: bool,
    /// The offset of the anchored value; `None` unless this value is an alias.
    pub(super) alias_of: Option<usize>,
    pub(super) tag: Option<String>,
    /// The position of its key.
    pub(super) key: Position,
    /// Earlier values of the same key, which kustomize does not read.
    pub(super) replaced: Vec<Value>,
}

/// Two values are equal if their data is equal and written in the same way: style, tags, anchors, aliases and repeated
/// keys. Positions do not count, nor which anchor an alias names.
impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        self.style == other.style
            && self.in_flow == other.in_flow
            && self.is_anchored == other.is_anchored
            && self.alias_of.is_some() == other.alias_of.is_some()
            && self.tag == other.tag
            && self.data == other.data
            && self.replaced == other.replaced
    }
}

/// The data of a [`Value`].
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Data {
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

/// Fails with a problem at a position.
pub(super) fn wrong<T>(position: Position, message: impl Into<String>) -> Result<T, Problem> {
    Err(Problem::new(ProblemKind::Other, position, message, ""))
}

/// The position of a marker of the parser, whose columns begin with 0.
fn position_of(marker: &Marker) -> Position {
    Position::new(marker.line(), marker.col() + 1)
}

/// The documents of a text.
#[derive(Debug)]
pub(super) struct Stream<'t> {
    pub text: &'t str,
    pub documents: Vec<Value>,
    /// The position of the first document after the requested number; `None` if all were read.
    pub rest: Option<Position>,
    /// The number of lines before the text in its file.
    pub before: usize,
    /// The first key that is repeated in its mapping.
    pub repeated: Option<Problem>,
}

/// Reads up to `limit` documents with both parsers. Fails if a key is repeated, because not every reader takes the same
/// value.
pub(super) fn read_unique(text: &str, limit: usize) -> Result<Stream<'_>, Problem> {
    let mut stream = read(text, limit)?;
    stream.repeated.take().map_or(Ok(stream), Err)
}

/// Reads up to `limit` documents of a kustomization with both parsers. Its keys may be repeated: the last value counts
/// for kustomize, and the others are in [`Value::replaced`].
pub(super) fn read(text: &str, limit: usize) -> Result<Stream<'_>, Problem> {
    // If the last line has only spaces and no line break, one parser makes an extra line of a block scalar from it.
    let bare = text.trim_end_matches(' ');
    let text = if bare.ends_with('\n') { bare } else { text };
    let mut options = Options::default();
    options.set_emit_comments(false);
    options.emit_anchor_events = true;
    let events = Parser::new_from_str_with_options(text, options);
    let (anchors, names, marks) = (HashMap::new(), HashSet::new(), Vec::new());
    let mut reader = YamlReader { text, events, anchors, names, marks, is_reused: false, size: 0, repeated: None };
    let stream = reader.read_stream(limit)?;
    check_agreement(&stream, &reader.with_unique_anchors())?;
    Ok(stream)
}

/// Reads all documents of the text in a scalar of `file`, such as an inline configuration. Their positions are those in
/// the file, so that they can be reported and edited. If they cannot be mapped to the file, all are that of the scalar.
pub(super) fn read_within<'v>(file: &str, scalar: &'v Value) -> Result<Stream<'v>, Problem> {
    let mut stream = read_unique(scalar.text().unwrap_or_default(), usize::MAX)?;
    stream.before = scalar.start.line - 1;
    let block = Block::of(file, scalar);
    let relocate = &mut |value: &mut Value| match &block {
        Some(block) => {
            (value.start, value.end) = (block.position(value.start), block.position(value.end));
            value.key = block.position(value.key);
            value.range = block.offset(value.range.start)..block.offset(value.range.end);
            value.alias_of = value.alias_of.map(|offset| block.offset(offset));
        }
        None => {
            (value.start, value.end, value.range) = (scalar.start, scalar.end, 0..0);
            value.key = scalar.start;
        }
    };
    stream.documents.iter_mut().for_each(|document| document.each(relocate));
    Ok(stream)
}

/// A literal block (`|`), whose lines in the file differ from those of its text by the indentation only.
struct Block {
    start: Position,
    /// The offset of each line in the text, and in the file.
    lines: Vec<(usize, usize)>,
}

impl Block {
    /// `None` if the scalar is not a literal block, or its lines cannot be matched with those of the file.
    fn of(file: &str, scalar: &Value) -> Option<Block> {
        Some(Block { start: scalar.start, lines: block_lines(file, scalar)? })
    }

    /// The position in the file of a position in the text.
    fn position(&self, at: Position) -> Position {
        Position::new(self.start.line + at.line - 1, self.start.column + at.column - 1)
    }

    /// The offset in the file of an offset in the text.
    fn offset(&self, at: usize) -> usize {
        let line = self.lines.partition_point(|(start, _)| *start <= at).checked_sub(1);
        line.map_or(0, |line| self.lines[line].1 + at - self.lines[line].0)
    }
}

/// For each line of the text of a literal block, its offset in the text, and the offset in the file at which it stands
/// behind its indentation. `None` if the scalar is not a literal block, or a line differs from the file.
fn block_lines(file: &str, scalar: &Value) -> Option<Vec<(usize, usize)>> {
    if scalar.style != ScalarStyle::Literal || scalar.alias_of.is_some() || scalar.range.is_empty() {
        return None;
    }
    let indent = scalar.start.column - 1;
    let (mut at, mut start, mut lines) = (scalar.range.start.checked_sub(indent)?, 0, Vec::new());
    for line in scalar.text()?.split_inclusive('\n') {
        let source = file.get(at..)?.split_inclusive('\n').next()?;
        let content = line.trim_end_matches('\n');
        // An empty line may lack the indentation.
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
    /// A plain value without a range in the text.
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

    /// A value with other data at the same position.
    pub(crate) fn with(&self, data: Data) -> Self {
        Value::new(self.start, data)
    }
}

/// Makes values from the events of the first parser.
struct YamlReader<'t> {
    text: &'t str,
    events: Parser<'t, StrInput<'t>>,
    /// The anchored values with their sizes, by the number of the anchor: if a name is repeated, an alias means the
    /// last anchor before it.
    anchors: HashMap<usize, (Value, usize)>,
    /// The names of anchors.
    names: HashSet<String>,
    /// The ranges of anchors and aliases, with these numbers.
    marks: Vec<(Range<usize>, usize)>,
    /// Whether two anchors have the same name.
    is_reused: bool,
    /// The number of nodes, with the copies for anchors and aliases.
    size: usize,
    repeated: Option<Problem>,
}

type Next<'t> = (Event<'t>, Span);

impl<'t> YamlReader<'t> {
    /// Reads up to `limit` documents. Of the document after them only the position is read, also if it is not valid
    /// YAML.
    fn read_stream(&mut self, limit: usize) -> Result<Stream<'t>, Problem> {
        let mut stream = Stream { text: self.text, documents: Vec::new(), rest: None, before: 0, repeated: None };
        while let Some(next) = self.events.next_event() {
            let is_done = stream.documents.len() >= limit;
            match next {
                Err(error) if is_done => stream.rest = Some(position_of(error.marker())),
                Ok((Event::DocumentStart(..), span)) if is_done => stream.rest = Some(position_of(&span.start)),
                Ok((Event::DocumentStart(..), _)) => {
                    self.anchors.clear();
                    let first = self.next()?;
                    stream.documents.push(self.value(first, 0)?);
                    // The event for the end of the document must not be taken for the start of a value.
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

    /// The text in which each anchor has a name of its own, for the other parser (yaml_serde 0.10.7), which confuses
    /// anchors with the same name.
    fn with_unique_anchors(mut self) -> Cow<'t, str> {
        if !self.is_reused {
            return self.text.into();
        }
        self.marks.sort_by_key(|(range, _)| range.start);
        let (mut text, mut end) = (String::new(), 0);
        for (range, number) in &self.marks {
            // The mark itself, `&` or `*`, stays.
            text += self.text.get(end..=range.start).unwrap_or_default();
            text += &format!("a{number}");
            end = range.end;
        }
        (text + self.text.get(end..).unwrap_or_default()).into()
    }

    /// The next event of the parser that belongs to a value. Events of anchors are recorded for
    /// [`YamlReader::with_unique_anchors`], and skipped.
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

    /// Reads the value that begins with an event. `depth` is the number of collections around it.
    fn value(&mut self, (event, span): Next<'t>, depth: usize) -> Result<Value, Problem> {
        let range = span.byte_range().unwrap_or(0..0);
        let position = position_of(&span.start);
        if depth > DEEPEST {
            return wrong(position, "nested too deep");
        }
        // A value is refused as soon as the limit is exceeded, before it is copied: a few nested aliases can stand for
        // billions of nodes.
        let before = self.size;
        let mut value = Value { end: position_of(&span.end), range, ..Value::new(position, Data::Null) };
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
            // The value is a copy of the anchored value, and knows where that is, because an edit must change it there.
            Event::Alias(anchor) => {
                self.marks.push((value.range.clone(), anchor));
                let Some((anchored, size)) = self.anchors.get(&anchor) else {
                    return wrong(position, "this alias refers to a value that contains it");
                };
                count(&mut self.size, *size, position)?;
                (value.data, value.style) = (anchored.data.clone(), anchored.style);
                (value.tag, value.alias_of) = (anchored.tag.clone(), Some(anchored.range.start));
                return Ok(value);
            }
            // The parser reports these only outside of documents.
            _ => return wrong(position, "not a value"),
        };
        value.tag = tag.map(|tag: Cow<'_, Tag>| format!("{}{}", tag.handle(), tag.suffix()));
        count(&mut self.size, value.text().map_or(1, |text| 1 + text.len() / LONG), position)?;
        if anchor != 0 {
            value.is_anchored = true;
            let size = self.size - before;
            // The map of anchors keeps a copy, which also takes memory.
            count(&mut self.size, size, position)?;
            self.anchors.insert(anchor, (value.clone(), size));
        }
        Ok(value)
    }

    /// Reads the values in a collection, to its end.
    fn values(&mut self, style: StructureStyle, depth: usize) -> Result<Vec<Value>, Problem> {
        let mut values = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd | Event::MappingEnd, _) => return Ok(values),
                next => {
                    let value = self.value(next, depth + 1)?;
                    values.push(Value { in_flow: style == StructureStyle::Flow, ..value });
                }
            }
        }
    }
}

/// Makes pairs from alternating keys and values.
fn pairs(values: Vec<Value>, repeated: &mut Option<Problem>) -> Result<Vec<(String, Value)>, Problem> {
    let (mut pairs, mut seen) = (Vec::<(String, Value)>::new(), HashMap::new());
    let mut values = values.into_iter();
    while let Some((name, value)) = values.next().zip(values.next()) {
        let is_word = name.alias_of.is_none() && !matches!(name.style, ScalarStyle::Literal | ScalarStyle::Folded);
        let Some(key) = name.scalar().filter(|_| is_word && name.tag.is_none()) else {
            return wrong(name.start, "expected a plain or quoted string as a key");
        };
        let mut value = Value { key: name.start, ..value };
        let is_text = name.text().is_some();
        // A repeated key keeps its place in the mapping, with the last value.
        let (index, was_text) = *seen.entry(key.clone()).or_insert((pairs.len(), is_text));
        let Some((_, before)) = pairs.get_mut(index) else {
            pairs.push((key, value));
            continue;
        };
        let problem = Problem::new(ProblemKind::Other, name.start, format!("the key `{key}` appears twice"), "");
        // Two merge keys both count, and readers treat keys of different types, such as `1` and `"1"`, differently.
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

/// Adds `more` nodes to a size. Fails if a file may not have so many.
fn count(size: &mut usize, more: usize, position: Position) -> Result<(), Problem> {
    *size += more;
    if *size > NODES.most {
        return Err(Problem::new(ProblemKind::TooLarge, position, NODES.more(), NODES.hint));
    }
    Ok(())
}

/// Refuses a text in which aliases stand for more nodes than a file may have. A text that is not YAML is not refused.
pub(crate) fn refuse_expansion(text: &str) -> Result<(), Problem> {
    // Almost no text has aliases, and the others need not be parsed.
    if !has_aliases(text) {
        return Ok(());
    }
    // The size of an anchored value is known at its end. An alias adds that size once more.
    let (mut anchored_sizes, mut open_collections) = (HashMap::new(), Vec::new());
    let (mut size, mut copied) = (0, 0);
    for event in Parser::new_from_str(text) {
        let Ok((event, span)) = event else { break };
        match event {
            Event::Alias(anchor) => {
                // kustomize copies the anchored value for each alias.
                let more = anchored_sizes.get(&anchor).copied().unwrap_or_default();
                size += more;
                let counted = count(&mut copied, more, position_of(&span.start));
                counted
                    .map_err(|problem| Problem { message: format!("aliases stand for {}", NODES.more()), ..problem })?;
            }
            Event::Scalar(word, _, anchor, _) => {
                let more = 1 + word.len() / LONG;
                size += more;
                anchored_sizes.insert(anchor, more);
            }
            Event::SequenceStart(_, anchor, _) | Event::MappingStart(_, anchor, _) => {
                open_collections.push((anchor, size));
                size += 1;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                anchored_sizes.extend(open_collections.pop().map(|(anchor, before)| (anchor, size - before)));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether a text may have an alias, as far as that is seen without a parser.
fn has_aliases(text: &str) -> bool {
    let anchors: HashSet<&str> = marked_names(text, '&').collect();
    !anchors.is_empty() && marked_names(text, '*').any(|name| anchors.contains(name))
}

/// The names after a mark, which is that of an anchor or of an alias.
fn marked_names(text: &str, mark: char) -> impl Iterator<Item = &str> {
    text.match_indices(mark).filter_map(|(at, _)| {
        // A mark counts only where a value may begin.
        let is_start = text[..at].chars().next_back().is_none_or(|last| last.is_whitespace() || "[{,:".contains(last));
        let rest = &text[at + 1..];
        let length = rest.find(|next: char| !next.is_ascii_alphanumeric() && !"-_".contains(next));
        Some(&rest[..length.unwrap_or(rest.len())]).filter(|name| is_start && !name.is_empty())
    })
}

/// The data of a scalar that the parser read as `word`, as kustomize's parser would read it. For a block scalar, whose
/// end the parser does not tell exactly, it also sets the end of `value` to its start.
fn scalar(text: &str, mut word: String, is_tagged: bool, value: &mut Value) -> Data {
    match value.style {
        // The parser gives `~` for a missing value.
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

/// The data of a word without quotes, as go-yaml 3 reads it (`resolve.go`, measured on some 150 words).
pub(super) fn plain(word: String) -> Data {
    match word.as_str() {
        "" | "~" | "null" | "Null" | "NULL" => Data::Null,
        "true" | "True" | "TRUE" => Data::Flag(true),
        "false" | "False" | "FALSE" => Data::Flag(false),
        _ if is_number(&word) => Data::Number(word),
        _ => Data::Text(word),
    }
}

/// Whether a word is a boolean in YAML 1.1, which kustomize reads, but not in YAML 1.2.
pub(super) fn is_yaml_1_1_flag(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    matches!(lower.as_str(), "y" | "yes" | "on" | "n" | "no" | "off")
}

/// Whether go-yaml 3 reads a plain word as a number: decimal, with `_` between digits, or in base 16, 8 or 2.
fn is_number(word: &str) -> bool {
    if word.starts_with('_') {
        return false;
    }
    let digits = if word.starts_with('.') { word.to_owned() } else { word.replace('_', "") }.to_ascii_lowercase();
    let unsigned = digits.strip_prefix(['-', '+']).unwrap_or(&digits);
    let is_based = [("0x", 16), ("0b", 2), ("0o", 8)].into_iter().any(|(prefix, radix)| {
        let rest = unsigned.strip_prefix(prefix).filter(|rest| !rest.starts_with('+'));
        rest.is_some_and(|rest| u64::from_str_radix(rest, radix).is_ok())
    });
    let is_decimal = unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    matches!(unsigned, ".inf" | ".nan") || is_based || is_decimal && unsigned.parse::<f64>().is_ok_and(f64::is_finite)
}

/// The value of a word that is a [number](Data::Number), as go-yaml 3 reads it, in base 16, 8, 2 or 10; `None` for
/// infinity, and for words that are not numbers.
pub(super) fn number(word: &str) -> Option<Number> {
    if let Ok(number) = word.parse() {
        return Some(number);
    }
    let digits = word.replace('_', "").to_ascii_lowercase();
    if let Some(number) = based_number(&digits) {
        return Some(number);
    }
    // As in go-yaml, any other number (with `_`, `+`, or a leading zero that is not octal) is whole if it fits, else a
    // float.
    if let Ok(whole) = digits.parse::<i64>() {
        return Some(whole.into());
    }
    let number: f64 = digits.parse().ok()?;
    let whole = number as i64;
    if whole as f64 == number { Some(whole.into()) } else { Number::from_f64(number) }
}

/// The value of lower-case digits in base 16, 8 or 2. `None` if they are in another base.
fn based_number(digits: &str) -> Option<Number> {
    let sign = if digits.starts_with('-') { "-" } else { "" };
    let unsigned = digits.strip_prefix(['-', '+']).unwrap_or(digits);
    let value = [("0x", 16), ("0b", 2), ("0o", 8), ("0", 8)]
        .into_iter()
        .find_map(|(prefix, radix)| u64::from_str_radix(unsigned.strip_prefix(prefix)?, radix).ok())?;
    format!("{sign}{value}").parse().ok()
}

/// The problem of an error of the parser.
fn syntax(error: &ScanError) -> Problem {
    Problem::new(ProblemKind::Other, position_of(error.marker()), error.info(), "")
}

/// Checks that libyaml, from which the parser in kustomize descends, reads the same values.
fn check_agreement(stream: &Stream<'_>, text: &str) -> Result<(), Problem> {
    // This parser would count a byte order mark as a column.
    let bare = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut others = serde_yaml::Deserializer::from_str(bare);
    for document in &stream.documents {
        // An empty text has no document for one parser, and an empty document for the other.
        let other = match others.next().map_or(Ok(Other::Null), Other::deserialize) {
            Ok(other) => other,
            Err(error) => {
                let at = error.location().map_or(document.start, |at| Position::new(at.line(), at.column()));
                let message = error.to_string();
                return wrong(at, message.rsplit_once(" at line ").map_or(&*message, |(message, _)| message));
            }
        };
        // If the two disagree, kustomize may see a reference that this program does not.
        same(document, &other).or_else(|position| wrong(position, "two YAML parsers disagree about this"))?;
    }
    Ok(())
}

/// A value of the other parser, with repeated keys.
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

/// Compares a value with that of the other parser; the error is the position of the first difference.
fn same(value: &Value, other: &Other) -> Result<(), Position> {
    let is_same = match (&value.data, other) {
        (Data::Null, other) => matches!(other, Other::Null),
        (Data::Flag(flag), Other::Flag(other)) => flag == other,
        // The words must be equal, but not their types, which are decided here as in go-yaml.
        (Data::Text(word) | Data::Number(word), other) => is_same_word(word, other),
        (Data::List(items), Other::List(others)) if items.len() == others.len() => {
            return items.iter().zip(others).try_for_each(|(item, other)| same(item, other));
        }
        (Data::Mapping(pairs), Other::Mapping(others)) => {
            // The other parser keeps all values of a repeated key, in the order of the text.
            let pairs = pairs.iter().flat_map(|(key, value)| {
                std::iter::once((key, value)).chain(value.replaced.iter().map(move |value| (key, value)))
            });
            let mut pairs: Vec<(&String, &Value)> = pairs.collect();
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

/// Whether a word can be a value of the other parser, which tells numbers and booleans from texts by its own rules.
fn is_same_word(word: &str, other: &Other) -> bool {
    match other {
        Other::Text(other) => word == other,
        Other::Null => matches!(word, "" | "~" | "null" | "Null" | "NULL"),
        Other::Flag(_) | Other::Number => word.bytes().all(|b| b.is_ascii_graphic()),
        Other::List(_) | Other::Mapping(_) => false,
    }
}
