//! YAML of our own formats, the lock and the configuration, by `serde`.
//!
//! The text is untrusted. Nothing is kept but what the type asks for, and what it does not ask for ends the reading, so
//! that no input takes more than a few times its own size: there are no anchors and no aliases to expand, and no depth
//! beyond that of the formats. Other deserializers take `KEY:` for a value that was left out, and do not know the line.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Display;

use granit_parser::{Event, Marker, Parser, ScalarStyle, ScanError, StrInput};

use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor,
};

use crate::message::failure::{Failure, Location, Result, nearest, shown};
use crate::os::limits::Limit;

/// More levels than the formats have.
const MAX_DEPTH: usize = 8;

/// A place in the text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

impl From<Marker> for Mark {
    fn from(marker: Marker) -> Self {
        Mark { line: marker.line(), column: marker.col() + 1 }
    }
}

/// A scalar with its place.
struct Scalar<'a> {
    text: Cow<'a, str>,
    mark: Mark,
    is_plain: bool,
}

/// Reads one document, node by node.
struct Reader<'a> {
    parser: Parser<'a, StrInput<'a>>,
    file: &'a str,
    /// The keys that lead to the node that is being read.
    field: Vec<String>,
}

/// Returns the text of a file if it can be one of ours at all. `hint` says what to do about one that is not text.
pub(crate) fn text<'a>(bytes: &'a [u8], file: &str, limit: Limit, hint: &str) -> Result<&'a str> {
    limit.check(bytes.len(), || file.to_owned())?;
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        let failure = Failure::new("not UTF-8").at(at_line(file, line));
        failure.hint(hint)
    })?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// Returns a line of a file; 0 for the whole of it.
pub(crate) fn at_line(file: &str, line: usize) -> Location {
    Location { file: file.to_owned(), line, ..Location::default() }
}

/// Reads a text, which is one document.
pub(crate) fn parse<T: DeserializeOwned>(text: &str, file: &str) -> Result<T> {
    let mut reader = Reader::new(text, file);
    reader.expect("the start", |event| matches!(event, Event::StreamStart))?;
    reader.expect("content", |event| matches!(event, Event::DocumentStart(..)))?;
    let value = reader.value(std::marker::PhantomData)?;
    reader.expect("the end", |event| matches!(event, Event::DocumentEnd))?;
    reader.expect("one document", |event| matches!(event, Event::StreamEnd))?;
    Ok(value)
}

/// Returns where the items of a list begin that is the value of a key at the top, or the one of another
/// value; none of a text that cannot be read.
pub(crate) fn marks(text: &str, key: &str) -> Vec<Mark> {
    let mut reader = Reader::new(text, "");
    let (mut marks, mut depth, mut is_key, mut is_inside) = (Vec::new(), 0, true, false);
    while let Ok((event, mark)) = reader.next() {
        let is_list = matches!(event, Event::SequenceStart(..));
        let begins = is_list || matches!(event, Event::Scalar(..) | Event::MappingStart(..));
        match (depth, &event) {
            (_, Event::StreamEnd) => break,
            (1, Event::Scalar(text, ..)) if is_key => {
                is_inside = **text == *key;
                is_key = false;
            }
            (1, _) if begins => {
                is_key = true;
                marks.extend((is_inside && !is_list).then_some(mark));
            }
            (2, _) if begins && is_inside => marks.push(mark),
            _ => {}
        }
        match event {
            Event::SequenceStart(..) | Event::MappingStart(..) => depth += 1,
            Event::SequenceEnd | Event::MappingEnd => depth -= 1,
            _ => {}
        }
    }
    marks
}

impl de::Error for Failure {
    /// Below the message a hint may stand.
    fn custom<T: Display>(message: T) -> Self {
        let text = message.to_string();
        match text.split_once('\n') {
            Some((message, hint)) => Failure::new(message).hint(hint),
            None => Failure::new(text),
        }
    }

    fn invalid_type(found: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Failure::new(format!("expected {expected}, found {found}"))
    }

    fn unknown_field(key: &str, known: &'static [&'static str]) -> Self {
        unknown("key", key, known)
    }

    fn unknown_variant(value: &str, known: &'static [&'static str]) -> Self {
        unknown("value", value, known)
    }

    fn missing_field(key: &'static str) -> Self {
        Failure::new(format!("missing `{key}`"))
    }
}

/// Returns the failure for a word that is not known.
fn unknown(kind: &str, word: &str, known: &[&str]) -> Failure {
    let failure = Failure::new(format!("unknown {kind} `{}`", shown(word)));
    failure.hint(match nearest(word, known.iter().copied()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("known here: {}", known.join(", ")),
    })
}

/// The text is read as the type asks: one without quotes is a text where one is asked for, and nothing (`~`, or no
/// value) is nowhere right.
impl<'de> Deserializer<'de> for &mut Reader<'_> {
    type Error = Failure;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.parser.peek() {
            Some(Ok((Event::SequenceStart(..), _))) => self.deserialize_seq(visitor),
            Some(Ok((Event::MappingStart(..), _))) => self.deserialize_map(visitor),
            _ => visitor.visit_str(&self.text()?),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_bool(self.flag()?)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_u64(self.number()?)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        let text = self.text()?;
        visitor.visit_enum(IntoDeserializer::<Failure>::into_deserializer(&*text))
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_str(&self.text()?)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let (event, mark) = self.next()?;
        if !matches!(event, Event::SequenceStart(..)) {
            return Err(self.unexpected(&event, mark, "a list"));
        }
        visitor.visit_seq(Items { reader: self, index: 0 })
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let (event, mark) = self.next()?;
        if !matches!(event, Event::MappingStart(..)) {
            return Err(self.unexpected(&event, mark, "a mapping"));
        }
        visitor.visit_map(Entries { reader: self, seen: BTreeSet::new() })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        self.deserialize_map(visitor)
    }

    serde::forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u32 u128 f32 f64 char str bytes byte_buf unit unit_struct tuple tuple_struct identifier
        ignored_any
    }
}

/// The items of a list.
struct Items<'r, 'a> {
    reader: &'r mut Reader<'a>,
    index: usize,
}

impl<'de> SeqAccess<'de> for Items<'_, '_> {
    type Error = Failure;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>> {
        if matches!(self.reader.parser.peek(), Some(Ok((Event::SequenceEnd, _)))) {
            self.reader.next()?;
            return Ok(None);
        }
        self.reader.field.push(format!("[{}]", self.index));
        self.index += 1;
        let value = self.reader.value(seed)?;
        self.reader.field.pop();
        Ok(Some(value))
    }
}

/// The entries of a mapping, whose keys differ.
struct Entries<'r, 'a> {
    reader: &'r mut Reader<'a>,
    seen: BTreeSet<Cow<'a, str>>,
}

impl<'de> MapAccess<'de> for Entries<'_, '_> {
    type Error = Failure;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        let (event, mark) = self.reader.next()?;
        let key = match event {
            Event::MappingEnd => return Ok(None),
            Event::Scalar(text, ..) => text,
            _ => return Err(self.reader.unexpected(&event, mark, "a key")),
        };
        let separator = if self.reader.field.is_empty() { "" } else { "." };
        if !self.seen.insert(key.clone()) {
            let failure = Failure::new(format!("the key `{}` is there twice", shown(&key)));
            return Err(failure.at(self.reader.location(mark)));
        }
        let text = StrDeserializer::<Failure>::new(&key);
        let value = seed.deserialize(text).map_err(|failure| failure.at(self.reader.location(mark)))?;
        self.reader.field.push(format!("{separator}{}", shown(&key)));
        Ok(Some(value))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value> {
        let value = self.reader.value(seed)?;
        self.reader.field.pop();
        Ok(value)
    }
}

impl<'a> Reader<'a> {
    fn new(text: &'a str, file: &'a str) -> Self {
        let options = granit_parser::options! {
            disallow_directives: true,
            emit_unresolved_aliases: true,
            emit_comments: false,
            flow_nesting_limit: MAX_DEPTH,
            block_nesting_limit: MAX_DEPTH,
        };
        Reader { parser: Parser::new_from_str_with_options(text, options), file, field: Vec::new() }
    }

    /// Reads a value. What is wrong with it and has no place yet is wrong where it begins.
    fn value<'de, T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value> {
        let mark = match self.parser.peek() {
            Some(Ok((_, span))) => Mark::from(span.start),
            _ => Mark { line: 0, column: 0 },
        };
        seed.deserialize(&mut *self).map_err(|failure| failure.at(self.location(mark)))
    }

    /// Reads a text. One that stands without quotes is taken as it stands, whatever YAML makes of
    /// it (a formatter may have taken the quotes away), unless it is nothing.
    fn text(&mut self) -> Result<Cow<'a, str>> {
        let scalar = self.scalar("a string")?;
        if scalar.is_plain && matches!(&*scalar.text, "" | "~" | "null" | "Null" | "NULL") {
            return Err(self.failure(scalar.mark, "holds nothing"));
        }
        Ok(scalar.text)
    }

    /// Reads `true` or `false`.
    fn flag(&mut self) -> Result<bool> {
        let scalar = self.scalar("`true` or `false`")?;
        match &*scalar.text {
            "true" if scalar.is_plain => Ok(true),
            "false" if scalar.is_plain => Ok(false),
            _ => Err(self.failure(scalar.mark, "is not `true` or `false`")),
        }
    }

    /// Reads a whole number.
    fn number(&mut self) -> Result<u64> {
        let scalar = self.scalar("a number")?;
        let is_canonical = scalar.text.bytes().all(|byte| byte.is_ascii_digit())
            && (scalar.text.len() == 1 || !scalar.text.starts_with('0'));
        if !is_canonical || !scalar.is_plain {
            return Err(self.failure(scalar.mark, "is not a whole number"));
        }
        scalar.text.parse().map_err(|_| self.failure(scalar.mark, "is too large"))
    }

    /// Returns a failure at a place in the field that is being read.
    fn failure(&self, mark: Mark, message: impl Into<String>) -> Failure {
        Failure::new(message).at(self.location(mark))
    }

    /// Returns a place in the field that is being read.
    fn location(&self, mark: Mark) -> Location {
        Location { line: mark.line, column: mark.column, field: self.field.concat(), ..self.whole_file() }
    }

    fn scalar(&mut self, expected: &str) -> Result<Scalar<'a>> {
        match self.next()? {
            (Event::Scalar(text, style, ..), mark) => Ok(Scalar { text, mark, is_plain: style == ScalarStyle::Plain }),
            (event, mark) => Err(self.unexpected(&event, mark, expected)),
        }
    }

    fn expect(&mut self, expected: &str, is: impl Fn(&Event<'_>) -> bool) -> Result<()> {
        let (event, mark) = self.next()?;
        if is(&event) { Ok(()) } else { Err(self.unexpected(&event, mark, expected)) }
    }

    /// Returns the next event, which is nothing that YAML adds to plain data.
    fn next(&mut self) -> Result<(Event<'a>, Mark)> {
        let (event, span) = match self.parser.next_event() {
            Some(Ok(next)) => next,
            Some(Err(error)) => return Err(self.not_yaml(&error)),
            None => return Err(Failure::new("ends too early").at(self.whole_file())),
        };
        let mark = Mark::from(span.start);
        let (anchor, tag) = match &event {
            Event::Scalar(_, _, anchor, tag)
            | Event::SequenceStart(_, anchor, tag)
            | Event::MappingStart(_, anchor, tag) => (*anchor, tag.is_some()),
            Event::Alias(_) | Event::UnresolvedAlias(_) => (1, false),
            _ => (0, false),
        };
        if anchor != 0 {
            return Err(self.failure(mark, "anchors and aliases are not allowed here"));
        }
        if tag {
            return Err(self.failure(mark, "tags are not allowed here"));
        }
        Ok((event, mark))
    }

    fn unexpected(&self, event: &Event<'_>, mark: Mark, expected: &str) -> Failure {
        let found = match event {
            // The parser writes `~` for a value that is not there.
            Event::Scalar(text, ScalarStyle::Plain, ..) if matches!(&**text, "" | "~" | "null") => "nothing",
            Event::Scalar(..) => "a string",
            Event::SequenceStart(..) => "a list",
            Event::MappingStart(..) => "a mapping",
            Event::DocumentStart(..) => "a second document",
            _ => "the end",
        };
        self.failure(mark, format!("expected {expected}, found {found}"))
    }

    fn not_yaml(&self, error: &ScanError) -> Failure {
        // Without its feature `error_messages` the parser only gives the place.
        let info = error.info();
        let reason = match info.as_str() {
            "" => String::new(),
            info => format!(": {info}"),
        };
        let mark = Mark::from(*error.marker());
        Failure::new(format!("not YAML, or nested too deep{reason}")).at(Location {
            line: mark.line,
            column: mark.column,
            ..self.whole_file()
        })
    }

    fn whole_file(&self) -> Location {
        at_line(self.file, 0)
    }
}
