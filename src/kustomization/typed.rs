//! Deserializes values with `serde`, so that an error knows the position of the value with the wrong type. Keys that a
//! type does not name are ignored.

use std::fmt;
use std::slice::Iter;

use serde::de::value::StrDeserializer;
use serde::de::{DeserializeOwned, DeserializeSeed, Error, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, forward_to_deserialize_any};
use serde_json::Value as Json;

use super::yaml::{Data, Value};
use crate::message::position::Position;

/// A value with its position. It can be deserialized from a [`Value`] only.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct Located<T> {
    line: usize,
    column: usize,
    pub value: T,
}

impl<T> Located<T> {
    pub(crate) fn start(&self) -> Position {
        Position::new(self.line, self.column)
    }
}

/// A string, number or boolean, as it is written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Scalar(#[serde(deserialize_with = "scalar")] pub String);

impl Scalar {
    /// The text; `None` if it is missing or empty.
    pub(crate) fn given(text: Option<&Scalar>) -> Option<&str> {
        text.map(|text| text.0.as_str()).filter(|text| !text.is_empty())
    }
}

fn scalar<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(match Json::deserialize(deserializer)? {
        Json::String(text) => text,
        other => other.to_string(),
    })
}

/// The error for a value whose type is not the expected one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mistyped {
    /// The keys that lead to the value, such as `spec.components[]`.
    keys: String,
    /// The position of the value; the default until it is known.
    pub start: Position,
    message: String,
}

impl fmt::Display for Mistyped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.keys.is_empty() { f.write_str(&self.message) } else { write!(f, "`{}`: {}", self.keys, self.message) }
    }
}

impl std::error::Error for Mistyped {}

impl Error for Mistyped {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Mistyped { keys: String::new(), start: Position::default(), message: message.to_string() }
    }
}

impl Mistyped {
    /// Adds the key of a value that contains the wrong one.
    fn below(mut self, key: &str, value: &Value) -> Mistyped {
        let dot = if self.keys.is_empty() || self.keys.starts_with('[') { "" } else { "." };
        self.keys = format!("{key}{dot}{}", self.keys);
        if self.start == Position::default() {
            self.start = value.start;
        }
        self
    }
}

impl Value {
    /// Deserializes the value.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, Mistyped> {
        T::deserialize(self)
    }

    /// Fails because the value has another type than `expected`.
    fn mistyped<T>(&self, expected: &str) -> Result<T, Mistyped> {
        let message = format!("expected {expected}, found {}", self.kind());
        Err(Mistyped { keys: String::new(), start: self.start, message })
    }
}

impl<'de> Deserializer<'de> for &'de Value {
    type Error = Mistyped;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistyped> {
        self.json().deserialize_any(visitor).map_err(Mistyped::custom)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistyped> {
        match &self.data {
            Data::Flag(flag) => visitor.visit_bool(*flag),
            // A template or variable: its value is unknown here, and counts as false.
            Data::Text(text) if text.contains("{{") || text.contains("${") => visitor.visit_bool(false),
            _ => self.mistyped("a boolean"),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistyped> {
        self.text().map_or_else(|| self.mistyped("a string"), |text| visitor.visit_borrowed_str(text))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistyped> {
        if self.data == Data::Null { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistyped> {
        self.list().map_or_else(|| self.mistyped("a list"), |items| visitor.visit_seq(Items(items.iter())))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistyped> {
        let Some(pairs) = self.mapping() else { return self.mistyped("a mapping") };
        visitor.visit_map(Pairs { rest: pairs.iter(), current: None })
    }

    /// Reads a mapping as a struct. A [`Located`] stands for the value itself with its position, of any type.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mistyped> {
        // The derived code of [`Located`] passes the name of the type, and nothing else tells it from other structs.
        if name == "Located" {
            visitor.visit_seq(Parts { value: self, given: 0 })
        } else {
            self.deserialize_map(visitor)
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, Mistyped> {
        if name != "Scalar" {
            return visitor.visit_newtype_struct(self);
        }
        let text = self.scalar().map_or_else(|| self.mistyped("a string"), Ok)?;
        visitor.visit_newtype_struct(text.into_deserializer())
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistyped> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str bytes byte_buf unit unit_struct tuple tuple_struct enum
        identifier
    }
}

/// The items of a list.
struct Items<'de>(Iter<'de, Value>);

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Mistyped;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Mistyped> {
        // A null item is skipped, as a null field is.
        let item = self.0.by_ref().find(|item| item.data != Data::Null);
        item.map(|item| seed.deserialize(item).map_err(|wrong| wrong.below("[]", item))).transpose()
    }
}

/// The pairs of a mapping.
struct Pairs<'de> {
    rest: Iter<'de, (String, Value)>,
    current: Option<&'de (String, Value)>,
}

impl<'de> MapAccess<'de> for Pairs<'de> {
    type Error = Mistyped;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Mistyped> {
        // A null (`~`) is like a missing key.
        self.current = self.rest.by_ref().find(|(_, value)| value.data != Data::Null);
        let key = self.current.map(|(key, _)| StrDeserializer::new(key));
        key.map(|key| seed.deserialize(key)).transpose()
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Mistyped> {
        let (key, value) = self.current.ok_or_else(|| Mistyped::custom("no key"))?;
        seed.deserialize(value).map_err(|wrong| wrong.below(key, value))
    }
}

/// The line, the column and the value of a [`Located`].
struct Parts<'de> {
    value: &'de Value,
    given: usize,
}

impl<'de> SeqAccess<'de> for Parts<'de> {
    type Error = Mistyped;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Mistyped> {
        self.given += 1;
        match self.given {
            1 => seed.deserialize(self.value.start.line.into_deserializer()).map(Some),
            2 => seed.deserialize(self.value.start.column.into_deserializer()).map(Some),
            _ => seed.deserialize(self.value).map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::read_object;
    use super::*;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct Kind {
        spec: Spec,
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct Spec {
        path: Option<Located<String>>,
        tag: Option<Scalar>,
        is_on: bool,
        parts: Vec<Located<String>>,
        any: Option<serde_json::Value>,
    }

    #[test]
    fn a_type_is_read_with_its_places() {
        let read = |text: &str| read_object(text).unwrap().unwrap().read::<Kind>();
        let text =
            "spec:\n  path: a\n  tag: 1.10\n  isOn: true\n  parts: [b, ~]\n  any: {n: ~, x: 0644}\n  more: [1]\n";
        let placed = |value: &str, line, column| Located { line, column, value: value.to_owned() };
        let spec = Spec {
            path: Some(placed("a", 2, 9)),
            tag: Some(Scalar("1.10".to_owned())),
            is_on: true,
            parts: vec![placed("b", 5, 11)],
            any: Some(json!({"n": null, "x": 420})),
        };
        assert_eq!(read(text), Ok(Kind { spec }));
        // Nothing is nowhere, and what something else fills in is not on.
        assert_eq!(read("spec: {path: ~, isOn: '${A}', parts: ~}\nkind: x\n"), Ok(Kind::default()));
        for (text, expected) in [
            ("spec: {path: 7}", "1:14 `spec.path`: expected a string, found a number"),
            ("spec: {parts: [{}]}", "1:16 `spec.parts[]`: expected a string, found a mapping"),
            ("spec: {isOn: 'true'}", "1:14 `spec.isOn`: expected a boolean, found a string"),
            ("spec: {tag: []}", "1:13 `spec.tag`: expected a string, found a list"),
            ("spec: []", "1:7 `spec`: expected a mapping, found a list"),
            ("[]", "1:1 expected a mapping, found a list"),
        ] {
            let wrong = read(text).unwrap_err();
            assert_eq!(format!("{}:{} {wrong}", wrong.start.line, wrong.start.column), expected);
        }
    }
}
