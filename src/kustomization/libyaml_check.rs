//! The second opinion: the same text, read by a port of libyaml.
//!
//! kustomize reads YAML with a descendant of libyaml. Where our parser of positions and libyaml disagree (YAML
//! 1.2 has fewer line breaks and other escapes, for example), kustomize may see a reference that we do not, so
//! such a text is refused. The values also prove that an edit changed what it should and nothing else.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, EnumAccess, MapAccess, SeqAccess, VariantAccess};

use super::yaml::{Document, Node, NodeId, NodeKind, Stream, Style, SyntaxError};

/// A value with its aliases resolved. Equal keys and merge keys are kept.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Null,
    Bool(bool),
    /// A number, by its bits: only equality matters.
    Number(u64),
    Text(String),
    Sequence(Vec<Value>),
    Mapping(Vec<(Value, Value)>),
    Tagged(String, Box<Value>),
}

impl Value {
    /// Returns the value that a path of pair and item indexes leads to.
    pub(super) fn descend(&mut self, path: &[usize]) -> Option<&mut Value> {
        let Some((step, rest)) = path.split_first() else {
            return Some(self);
        };
        match self {
            Value::Sequence(items) => items.get_mut(*step)?.descend(rest),
            Value::Mapping(pairs) => pairs.get_mut(*step)?.1.descend(rest),
            Value::Tagged(_, value) => value.descend(path),
            _ => None,
        }
    }

    /// Takes the pair out to which a path leads; says whether there was one.
    pub(super) fn remove(&mut self, path: &[usize]) -> bool {
        let Some((last, above)) = path.split_last() else {
            return false;
        };
        let mut value = self.descend(above);
        while let Some(Value::Tagged(_, inner)) = value {
            value = Some(inner);
        }
        match value {
            Some(Value::Mapping(pairs)) if *last < pairs.len() => {
                pairs.remove(*last);
                true
            }
            _ => false,
        }
    }

    /// Returns the string in a value, without its tag.
    pub(super) fn text(&mut self) -> Option<&mut String> {
        match self {
            Value::Text(text) => Some(text),
            Value::Tagged(_, value) => value.text(),
            _ => None,
        }
    }
}

/// Reads the first `count` documents.
pub(super) fn values(text: &str, count: usize) -> Result<Vec<Value>, SyntaxError> {
    let bare = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut values = Vec::new();
    for document in serde_yaml::Deserializer::from_str(bare).take(count) {
        let value = Value::deserialize(document).map_err(|error| {
            let (line, column) = error
                .location()
                .map_or((0, 0), |at| (at.line(), at.column()));
            let mut message = error.to_string();
            if let Some(at) = message.rfind(" at line ") {
                message.truncate(at);
            }
            SyntaxError::new((line, column), message)
        })?;
        values.push(value);
    }
    Ok(values)
}

/// Reads up to `limit` documents, twice unless it cannot matter. Nothing is read from outside in any other way: the
/// second reader also bounds how deep aliases nest, on which the walks through a document rely.
pub(super) fn read(text: &str, limit: usize) -> Result<Stream<'_>, SyntaxError> {
    match Stream::simple(text) {
        Some(stream) => Ok(stream),
        None => read_twice(text, limit),
    }
}

/// Reads up to `limit` documents with both readers.
pub(super) fn read_twice(text: &str, limit: usize) -> Result<Stream<'_>, SyntaxError> {
    let stream = Stream::parse(text, limit)?;
    let Err(error) = agree(&stream) else {
        return Ok(stream);
    };
    // Of the indentation of a last line that has nothing else and no end, the other parser makes a line of a block
    // scalar.
    let end = text.trim_end_matches(' ').len();
    if end == text.len() || !text[..end].ends_with('\n') {
        return Err(error);
    }
    let stream = Stream::parse_until(text, end, limit)?;
    agree(&stream).map_err(|_| error)?;
    Ok(stream)
}

/// Checks that libyaml reads the documents of a stream as they were read.
fn agree(stream: &Stream<'_>) -> Result<(), SyntaxError> {
    for node in stream.documents.iter().flat_map(Document::nodes) {
        if let Some(why) = only_here(stream, node) {
            let start = stream.position(node.range.start);
            return Err(SyntaxError::new(start, why));
        }
    }
    let values = values(stream.text, stream.documents.len())?;
    // serde_yaml mixes up aliases once an anchor name was used twice, so its values are worth nothing then.
    let comparable = !stream.repeated_anchor;
    let odd_break = stream.text.find(['\u{85}', '\u{2028}', '\u{2029}']);
    let disagreement = |at: usize| {
        let start = stream.position(odd_break.unwrap_or(at));
        let message = match odd_break {
            Some(_) => {
                "a line break of YAML 1.1 (U+0085, U+2028 or U+2029) makes the text ambiguous"
            }
            None => "two YAML parsers disagree about this",
        };
        SyntaxError::new(start, message)
    };
    if !comparable {
        return match odd_break {
            Some(at) => Err(disagreement(at)),
            None => Ok(()),
        };
    }
    let mut values = values.iter();
    for document in &stream.documents {
        // An empty text has no document for the one reader and an empty one for the other.
        let value = values.next().unwrap_or(&Value::Null);
        let Some(root) = document.root() else {
            continue;
        };
        if let Err(node) = same(document, root, value) {
            return Err(disagreement(document.node(node).range.start));
        }
    }
    Ok(())
}

/// Returns what the YAML reader of kustomize refuses in a scalar although newer ones, libyaml included, accept it.
fn only_here(stream: &Stream<'_>, node: &Node) -> Option<&'static str> {
    let NodeKind::Scalar { value, style } = &node.kind else {
        return None;
    };
    match style {
        Style::Plain if node.in_flow && !plain_in_flow(value) => {
            Some("kustomize needs quotes around a value with `?` inside `[]` or `{}`")
        }
        Style::Double => {
            let raw = stream.text.get(node.range.clone())?;
            let slash = raw.split("\\\\").any(|part| part.contains("\\/"));
            slash.then_some("kustomize does not know the escape `\\/`")
        }
        _ => None,
    }
}

/// Whether go-yaml takes a value without quotes inside `[]` and `{}`, where `?` is an indicator for it.
pub(super) fn plain_in_flow(value: &str) -> bool {
    !value.contains('?') && !value.starts_with(':')
}

/// Compares a node with a value; the error is the node that differs.
fn same(document: &Document, id: NodeId, value: &Value) -> Result<(), NodeId> {
    let value = match value {
        Value::Tagged(_, value) => value,
        value => value,
    };
    match (&document.resolved(id).kind, value) {
        (NodeKind::Scalar { value: ours, .. }, Value::Text(theirs)) if ours == theirs => Ok(()),
        // The types of words are our own business, but the words must be the same.
        (NodeKind::Scalar { value: ours, .. }, Value::Null)
            if matches!(ours.as_str(), "" | "~" | "null" | "Null" | "NULL") =>
        {
            Ok(())
        }
        (NodeKind::Scalar { value: ours, .. }, Value::Bool(_) | Value::Number(_))
            if ours.bytes().all(|b| b.is_ascii_graphic()) =>
        {
            Ok(())
        }
        (NodeKind::Sequence(ours), Value::Sequence(theirs)) if ours.len() == theirs.len() => ours
            .iter()
            .zip(theirs)
            .try_for_each(|(id, value)| same(document, *id, value)),
        (NodeKind::Mapping(ours), Value::Mapping(theirs)) if ours.len() == theirs.len() => ours
            .iter()
            .zip(theirs)
            .try_for_each(|((key, id), (name, value))| {
                same(document, *key, name)?;
                same(document, *id, value)
            }),
        _ => Err(id),
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Visitor)
    }
}

struct Visitor;

impl<'de> de::Visitor<'de> for Visitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any YAML value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.cast_unsigned()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value))
    }

    fn visit_i128<E>(self, value: i128) -> Result<Value, E> {
        Ok(Value::Text(value.to_string()))
    }

    fn visit_u128<E>(self, value: u128) -> Result<Value, E> {
        Ok(Value::Text(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Number(value.to_bits()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Value::Sequence(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = access.next_entry()? {
            pairs.push(pair);
        }
        Ok(Value::Mapping(pairs))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, access: A) -> Result<Value, A::Error> {
        let (tag, content) = access.variant::<String>()?;
        Ok(Value::Tagged(tag, Box::new(content.newtype_variant()?)))
    }
}
