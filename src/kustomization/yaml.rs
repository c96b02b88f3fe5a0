//! YAML as values that know their bytes. A text is read by two parsers, which must agree.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use granit_parser::{Event, Options, Parser, ScalarStyle, ScanError, Span, StructureStyle};
use serde::Deserialize as _;
use serde_yaml::Value as Other;

use crate::os::limits::NODES;

/// As many bytes of a scalar count as a node.
const LONG: usize = 100;
/// Collections in one another.
const DEEPEST: usize = 100;

/// A value of a YAML document, aliases resolved.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Value {
    /// 1-based line.
    pub line: usize,
    /// 1-based column, in characters.
    pub column: usize,
    /// What it is.
    pub data: Data,
    /// Line and column after the last character of a scalar.
    pub(super) end: (usize, usize),
    /// The bytes of a scalar with its quotes, or of an alias with its `*`; of a block scalar, those of its content.
    pub(super) range: Range<usize>,
    pub(super) style: Style,
    pub(super) in_flow: bool,
    pub(super) is_anchored: bool,
    /// Where what an alias stands for begins.
    pub(super) alias_of: Option<usize>,
    pub(super) tag: Option<String>,
    /// Where its key begins: byte, line, column.
    pub(super) key: (usize, usize, usize),
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

/// How a scalar is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Single,
    Double,
    Literal,
    Folded,
}

/// Why a text is not YAML.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SyntaxError {
    pub line: usize,
    pub column: usize,
    pub message: String,
    pub is_too_large: bool,
}

fn wrong((line, column): (usize, usize), message: impl Into<String>) -> SyntaxError {
    SyntaxError { line, column, message: message.into(), is_too_large: false }
}

/// The documents of a text.
#[derive(Debug)]
pub(super) struct Stream<'t> {
    pub text: &'t str,
    pub documents: Vec<Value>,
    /// Where something begins that was not read, because as many documents as requested were.
    pub rest: Option<(usize, usize)>,
}

/// Reads up to `limit` documents with both parsers. Nothing is read from outside in any other way.
pub(super) fn read(text: &str, limit: usize) -> Result<Stream<'_>, SyntaxError> {
    // Of the indentation of a last line that has nothing else and no end, one parser makes a line of a block scalar.
    let bare = text.trim_end_matches(' ');
    let text = if bare.ends_with('\n') { bare } else { text };
    let stream = Builder::default().read(text, limit)?;
    agree(&stream)?;
    Ok(stream)
}

impl Value {
    /// Returns a value that stands nowhere in particular.
    pub(crate) fn new((line, column): (usize, usize), data: Data) -> Self {
        Value {
            line,
            column,
            data,
            end: (line, column),
            range: 0..0,
            style: Style::Plain,
            in_flow: false,
            is_anchored: false,
            alias_of: None,
            tag: None,
            key: (0, line, column),
        }
    }

    /// Returns another one at its place.
    pub(crate) fn with(&self, data: Data) -> Self {
        Value::new(self.place(), data)
    }

    pub(super) fn place(&self) -> (usize, usize) {
        (self.line, self.column)
    }

    /// Returns how many nodes it is.
    fn size(&self) -> usize {
        match &self.data {
            Data::Text(text) => 1 + text.len() / LONG,
            Data::List(items) => 1 + items.iter().map(Value::size).sum::<usize>(),
            Data::Mapping(pairs) => 1 + pairs.iter().map(|(_, value)| 1 + value.size()).sum::<usize>(),
            _ => 1,
        }
    }
}

/// A collection that is being filled.
struct Open {
    value: Value,
    is_flow: bool,
    anchor: usize,
    /// The key whose value comes next.
    key: Option<(String, (usize, usize, usize))>,
    seen: HashSet<String>,
}

#[derive(Default)]
struct Builder {
    documents: Vec<Value>,
    open: Vec<Open>,
    anchors: HashMap<usize, Value>,
    names: HashSet<String>,
    /// How many nodes there are, with what anchors hold and aliases stand for.
    size: usize,
    is_in_document: bool,
}

impl Builder {
    fn read(mut self, text: &str, limit: usize) -> Result<Stream<'_>, SyntaxError> {
        let mut options = Options::default();
        options.set_emit_comments(false);
        options.emit_anchor_events = true;
        let mut events = Parser::new_from_str_with_options(text, options);
        let mut rest = None;
        while let Some(next) = events.next_event() {
            let is_done = !self.is_in_document && self.documents.len() >= limit;
            let (event, span) = match next {
                Ok(next) => next,
                Err(error) => {
                    let place = (error.marker().line(), error.marker().col() + 1);
                    if is_done {
                        rest = Some(place);
                        break;
                    }
                    return Err(wrong(place, describe(&error)));
                }
            };
            let place = (span.start.line(), span.start.col() + 1);
            if is_done && matches!(event, Event::DocumentStart(..)) {
                rest = Some(place);
                break;
            }
            self.event(text, event, &span).map_err(|message| wrong(place, message))?;
            if self.size > NODES.most {
                return Err(SyntaxError { is_too_large: true, ..wrong(place, NODES.more()) });
            }
        }
        Ok(Stream { text, documents: self.documents, rest })
    }

    fn event(&mut self, text: &str, event: Event<'_>, span: &Span) -> Result<(), String> {
        match event {
            Event::DocumentStart(..) => {
                self.is_in_document = true;
                self.anchors.clear();
                self.names.clear();
            }
            Event::DocumentEnd => self.is_in_document = false,
            Event::Scalar(word, style, anchor, tag) => {
                let mut value = self.value(Data::Null, span);
                value.style = match style {
                    ScalarStyle::Plain => Style::Plain,
                    ScalarStyle::SingleQuoted => Style::Single,
                    ScalarStyle::DoubleQuoted => Style::Double,
                    ScalarStyle::Literal => Style::Literal,
                    ScalarStyle::Folded => Style::Folded,
                };
                value.tag = tag.map(|tag| format!("{}{}", tag.handle(), tag.suffix()));
                value.data = scalar(text, word.into_owned(), &mut value);
                return self.add(value, anchor);
            }
            Event::SequenceStart(style, anchor, ref tag) | Event::MappingStart(style, anchor, ref tag) => {
                if self.open.len() > DEEPEST {
                    return Err("nested too deep".to_owned());
                }
                let data = match event {
                    Event::MappingStart(..) => Data::Mapping(Vec::new()),
                    _ => Data::List(Vec::new()),
                };
                let tag = tag.as_ref().map(|tag| format!("{}{}", tag.handle(), tag.suffix()));
                let value = Value { tag, ..self.value(data, span) };
                let is_flow = style == StructureStyle::Flow;
                self.open.push(Open { value, is_flow, anchor, key: None, seen: HashSet::new() });
            }
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some(done) = self.open.pop() {
                    return self.add(done.value, done.anchor);
                }
            }
            Event::Alias(anchor) => {
                let target = self.anchors.get(&anchor).ok_or("this alias stands for a value that contains it")?;
                // Before it is copied.
                self.size += target.size();
                if self.size > NODES.most {
                    return Ok(());
                }
                let here = self.value(Data::Null, span);
                let (data, style, tag) = (target.data.clone(), target.style, target.tag.clone());
                let start = target.range.start;
                return self.add(Value { data, style, tag, alias_of: Some(start), ..here }, 0);
            }
            Event::Anchor(_, name) if !self.names.insert(name.to_string()) => {
                return Err(format!("the anchor `{name}` is there twice"));
            }
            _ => {}
        }
        Ok(())
    }

    fn value(&self, data: Data, span: &Span) -> Value {
        Value {
            end: (span.end.line(), span.end.col() + 1),
            range: span.byte_range().unwrap_or(0..0),
            in_flow: self.open.last().is_some_and(|open| open.is_flow),
            ..Value::new((span.start.line(), span.start.col() + 1), data)
        }
    }

    /// Adds a value to what it stands in.
    fn add(&mut self, mut value: Value, anchor: usize) -> Result<(), String> {
        self.size += match &value.data {
            Data::Text(text) => 1 + text.len() / LONG,
            _ => 1,
        };
        if anchor != 0 {
            value.is_anchored = true;
            // A copy, too.
            self.size += value.size();
            self.anchors.insert(anchor, value.clone());
        }
        let Some(parent) = self.open.last_mut() else {
            self.documents.push(value);
            return Ok(());
        };
        match &mut parent.value.data {
            Data::Mapping(pairs) => match parent.key.take() {
                Some((key, place)) => {
                    value.key = place;
                    pairs.push((key, value));
                }
                None => {
                    let key = key(&value)?;
                    if !parent.seen.insert(key.clone()) {
                        return Err(format!("the key `{key}` is there twice"));
                    }
                    parent.key = Some((key, (value.range.start, value.line, value.column)));
                }
            },
            Data::List(items) => items.push(value),
            _ => {}
        }
        Ok(())
    }
}

/// Returns the text of a key.
fn key(value: &Value) -> Result<String, String> {
    let is_word = matches!(value.style, Style::Plain | Style::Single | Style::Double) && value.alias_of.is_none();
    match &value.data {
        Data::Text(text) | Data::Number(text) if is_word && value.tag.is_none() => Ok(text.clone()),
        Data::Flag(flag) if is_word => Ok(flag.to_string()),
        _ => Err("a key that is not a plain or quoted string".to_owned()),
    }
}

fn scalar(text: &str, mut word: String, value: &mut Value) -> Data {
    match value.style {
        // The parser writes `~` for a value that is not there.
        Style::Plain if value.range.is_empty() => word.clear(),
        Style::Literal | Style::Folded => {
            // libyaml adds no line break that the file does not have.
            if value.range.end >= text.len() && !text.ends_with(['\n', '\r']) && word.ends_with('\n') {
                word.pop();
            }
            let content = text.get(value.range.clone()).unwrap_or_default().trim_end();
            value.end = match content.rsplit_once('\n') {
                None => (value.line, value.column + content.chars().count()),
                Some((above, last)) => (value.line + above.matches('\n').count() + 1, last.chars().count() + 1),
            };
        }
        _ => {}
    }
    if value.style == Style::Plain && value.tag.is_none() { plain(word) } else { Data::Text(word) }
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
    let begins = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.');
    if !word.starts_with(begins) {
        return false;
    }
    let digits = if word.starts_with('.') { word.to_owned() } else { word.replace('_', "") };
    let unsigned = digits.strip_prefix(['-', '+']).unwrap_or(&digits).to_ascii_lowercase();
    if matches!(unsigned.as_str(), ".inf" | ".nan") {
        return true;
    }
    for (prefix, radix) in [("0x", 16), ("0b", 2), ("0o", 8)] {
        if let Some(rest) = unsigned.strip_prefix(prefix) {
            return rest.chars().all(|c| c.is_digit(radix)) && u64::from_str_radix(rest, radix).is_ok();
        }
    }
    let of_float = |c: char| c.is_ascii_digit() || matches!(c, '.' | 'e' | '+' | '-');
    unsigned.chars().all(of_float) && unsigned.parse::<f64>().is_ok_and(f64::is_finite)
}

/// Puts an error of the parser into words, as ours begin.
fn describe(error: &ScanError) -> String {
    let info = error.info();
    let mut chars = info.chars();
    let first = chars.next().map(|c| c.to_ascii_lowercase());
    first.into_iter().chain(chars).collect()
}

/// Checks that libyaml, the ancestor of the parser in kustomize, reads the same: where the two disagree, kustomize may see
/// a reference that we do not.
fn agree(stream: &Stream<'_>) -> Result<(), SyntaxError> {
    let bare = stream.text.strip_prefix('\u{feff}').unwrap_or(stream.text);
    let mut others = serde_yaml::Deserializer::from_str(bare);
    for document in &stream.documents {
        // An empty text has no document for the one reader and an empty one for the other.
        let other = others.next().map_or(Ok(Other::Null), Other::deserialize).map_err(|error| {
            let at = error.location().map_or(document.place(), |at| (at.line(), at.column()));
            let message = error.to_string();
            wrong(at, message.rfind(" at line ").map_or(message.as_str(), |at| &message[..at]))
        })?;
        if let Err(place) = same(document, &other) {
            let odd_break = stream.text.find(['\u{85}', '\u{2028}', '\u{2029}']);
            let odd_line = odd_break.map(|at| (stream.text[..at].matches('\n').count() + 1, 1));
            let message = match odd_line {
                Some(_) => "a line break of YAML 1.1 (U+0085, U+2028 or U+2029) makes the text ambiguous",
                None => "two YAML parsers disagree about this",
            };
            return Err(wrong(odd_line.unwrap_or(place), message));
        }
    }
    Ok(())
}

/// Compares a value with what the other parser read; the error is where they differ.
fn same(value: &Value, other: &Other) -> Result<(), (usize, usize)> {
    let other = match other {
        Other::Tagged(tagged) => &tagged.value,
        other => other,
    };
    // The types of words are our own business, but the words must be the same.
    let is_same = match (&value.data, other) {
        (Data::Null, Other::Null) => true,
        (Data::Flag(flag), Other::Bool(other)) => flag == other,
        (Data::Text(word) | Data::Number(word), other) => is_same_word(word, other),
        (Data::List(items), Other::Sequence(others)) if items.len() == others.len() => {
            return items.iter().zip(others).try_for_each(|(item, other)| same(item, other));
        }
        (Data::Mapping(pairs), Other::Mapping(others)) if pairs.len() == others.len() => {
            for ((key, value), (name, other)) in pairs.iter().zip(others) {
                if !is_same_word(key, name) {
                    return Err((value.key.1, value.key.2));
                }
                same(value, other)?;
            }
            true
        }
        _ => false,
    };
    if is_same { Ok(()) } else { Err(value.place()) }
}

fn is_same_word(word: &str, other: &Other) -> bool {
    match other {
        Other::String(other) => word == other,
        Other::Null => matches!(word, "" | "~" | "null" | "Null" | "NULL"),
        Other::Bool(_) | Other::Number(_) => word.bytes().all(|b| b.is_ascii_graphic()),
        _ => false,
    }
}
