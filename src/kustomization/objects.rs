//! Kubernetes objects as values with places: for those who look for a few fields in objects of others.

use granit_parser::ScalarStyle;
use serde_json::Value as Json;

use super::plugin;
use super::read::is_same_key;
use super::yaml::{self, Data, Value, is_old_flag, number};
use crate::message::position::Position;

impl Value {
    /// Returns the value of a key; none where there is none, or nothing behind it.
    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        let (_, value) = self.mapping()?.iter().find(|(name, _)| name == key)?;
        Some(value).filter(|value| value.data != Data::Null)
    }

    /// Returns the value that these keys lead to.
    pub(crate) fn at(&self, keys: &[&str]) -> Option<&Value> {
        keys.iter().try_fold(self, |value, key| value.get(key))
    }

    /// Returns the value of a key in any case, as Go takes it; none where there is nothing behind it.
    pub(super) fn folded_field(&self, name: &str) -> Option<&Value> {
        let mut pairs = self.mapping()?.iter();
        pairs.find(|(key, value)| is_same_key(name, key) && value.data != Data::Null).map(|(_, value)| value)
    }

    /// Returns the text, if it is one for YAML 1.1 too, which kustomizations are read by.
    pub(super) fn string(&self) -> Option<&str> {
        let is_string = |text: &&str| self.style != ScalarStyle::Plain || !is_old_flag(text);
        self.text().filter(is_string)
    }

    /// Returns whether it may be true: it is not false, for YAML 1.1.
    pub(super) fn is_on(&self) -> bool {
        let word = self.scalar().unwrap_or_default().to_ascii_lowercase();
        !matches!(word.as_str(), "false" | "n" | "no" | "off")
    }

    /// Returns the text, if it is one.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.data {
            Data::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns a scalar as text.
    pub(crate) fn scalar(&self) -> Option<String> {
        match &self.data {
            Data::Text(text) | Data::Number(text) => Some(text.clone()),
            Data::Flag(flag) => Some(flag.to_string()),
            Data::Null | Data::List(_) | Data::Mapping(_) => None,
        }
    }

    /// Returns the items, if it is a list.
    pub(crate) fn list(&self) -> Option<&[Value]> {
        match &self.data {
            Data::List(items) => Some(items),
            _ => None,
        }
    }

    /// Returns the pairs, if it is a mapping.
    pub(crate) fn mapping(&self) -> Option<&[(String, Value)]> {
        match &self.data {
            Data::Mapping(pairs) => Some(pairs),
            _ => None,
        }
    }

    /// Returns what it is, in a word or two.
    pub(crate) fn kind(&self) -> &'static str {
        match &self.data {
            Data::Null => "nothing",
            Data::Flag(_) => "a boolean",
            Data::Number(_) => "a number",
            Data::Text(_) => "a string",
            Data::List(_) => "a list",
            Data::Mapping(_) => "a mapping",
        }
    }

    /// Returns it without places.
    pub(crate) fn json(&self) -> Json {
        match &self.data {
            Data::Null => Json::Null,
            Data::Flag(flag) => Json::Bool(*flag),
            Data::Number(text) => number(text).map_or_else(|| Json::String(text.clone()), Json::Number),
            Data::Text(text) => Json::String(text.clone()),
            Data::List(items) => items.iter().map(Value::json).collect(),
            Data::Mapping(pairs) => pairs.iter().map(|(key, value)| (key.clone(), value.json())).collect(),
        }
    }

    /// Returns it with each text replaced by what `change` returns for it.
    pub(crate) fn map_texts(&self, change: &mut dyn FnMut(&str) -> String) -> Value {
        let mut new = self.clone();
        new.each(&mut |value| match &mut value.data {
            Data::Text(text) => *text = change(text),
            Data::Mapping(pairs) => pairs.iter_mut().for_each(|(key, _)| *key = change(key)),
            _ => {}
        });
        new
    }

    /// Moves it to the place of another value: its lines are not those of a file.
    pub(crate) fn place_at(&mut self, start: Position) {
        self.each(&mut |value| value.start = start);
    }

    /// Moves it to the place of a value that it was made of: each field to that of the same name, each item to that of its
    /// number, and what is new to what it stands in.
    pub(crate) fn place_as(&mut self, other: &Value) {
        self.start = other.start;
        let place = |value: &mut Value, source: Option<&Value>| match source {
            Some(source) => value.place_as(source),
            None => value.place_at(other.start),
        };
        match &mut self.data {
            Data::List(items) => {
                let sources = other.list().unwrap_or_default();
                items.iter_mut().enumerate().for_each(|(at, item)| place(item, sources.get(at)));
            }
            Data::Mapping(pairs) => pairs.iter_mut().for_each(|(key, value)| place(value, other.get(key))),
            _ => {}
        }
    }

    /// Returns the first answer for it, or for what is in it.
    pub(super) fn find_map<T>(&self, find: &dyn Fn(&Value) -> Option<T>) -> Option<T> {
        find(self).or_else(|| match &self.data {
            Data::List(items) => items.iter().find_map(|item| item.find_map(find)),
            Data::Mapping(pairs) => pairs.iter().find_map(|(_, value)| value.find_map(find)),
            _ => None,
        })
    }

    pub(super) fn each(&mut self, change: &mut dyn FnMut(&mut Value)) {
        change(self);
        match &mut self.data {
            Data::List(items) => items.iter_mut().for_each(|item| item.each(change)),
            Data::Mapping(pairs) => pairs.iter_mut().for_each(|(_, value)| value.each(change)),
            _ => {}
        }
    }
}

/// Splits a text at the lines that separate documents. Returns the line before the first of each, and its text.
///
/// Nothing in a document begins at the start of a line with `---`, so that no document has to be read to find the next.
pub(crate) fn documents(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (mut starts, mut at) = (vec![(0, 0)], 0);
    for (before, line) in text.split_inclusive('\n').enumerate() {
        let after = line.strip_prefix("---");
        if before > 0 && after.is_some_and(|after| after.is_empty() || after.starts_with([' ', '\t', '\r', '\n'])) {
            starts.push((before, at));
        }
        at += line.len();
    }
    let ends: Vec<usize> = starts[1..].iter().map(|(_, at)| *at).chain([at]).collect();
    starts.into_iter().zip(ends).map(|((before, at), end)| (before, &text[at..end]))
}

/// What ends a line, for some reader of YAML.
const BREAKS: [char; 5] = ['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}'];

/// Returns the text with the escapes of double quotes resolved that stand for a character that can be seen, or for none.
pub(crate) fn unescaped(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = match part.chars().next() {
            Some('x') => 2,
            Some('u') => 4,
            Some('U') => 8,
            _ => 0,
        };
        let number = part.get(1..1 + digits).and_then(|digits| u32::from_str_radix(digits, 16).ok());
        match number.and_then(char::from_u32) {
            Some(character) => {
                out.push(character);
                out.push_str(&part[1 + digits..]);
            }
            // A line that goes on.
            None => match part.strip_prefix("\r\n").or_else(|| part.strip_prefix(BREAKS)) {
                Some(next) => out.push_str(next.trim_start_matches([' ', '\t'])),
                None => out.push_str(part),
            },
        }
    }
    out
}

/// Reads one document that begins after `before` lines; none where it is empty.
pub(crate) fn read_object(text: &str, before: usize) -> Result<Option<Value>, (usize, String)> {
    let stream =
        yaml::read(text, 1).map_err(|error| (before + error.position.line, format!("not YAML: {}", error.message)))?;
    if let Some((at, what, _)) = plugin::not_plain(&stream) {
        return Err((before + at.line, format!("not plain YAML: {what}")));
    }
    if let Some(rest) = stream.rest {
        return Err((before + rest.line, "a second object, without `---` before it".to_owned()));
    }
    let mut found = stream.documents.into_iter().next().filter(|value| value.data != Data::Null);
    found.iter_mut().for_each(|value| value.each(&mut |value| value.start.line += before));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Value {
        read_object(text, 0).unwrap().unwrap()
    }

    #[test]
    fn numbers_are_those_of_yaml_1_1() {
        let words = "0644 -0644 0o10 0xFF 0b11 1_000 +12 089 .5 08.5 12 1.5 .inf";
        let text = format!("a: [{}]\n", words.replace(' ', ", "));
        let numbers = read_object(&text, 0).unwrap().unwrap().json()["a"].to_string();
        assert_eq!(numbers, "[420,-420,8,255,3,1000,12,89,0.5,8.5,12,1.5,\".inf\"]");
    }

    #[test]
    fn a_value_has_its_place_and_type() {
        let value = read("a:\n  b: [x, 1, true, ~]\n  c: \"1\"\n");
        let list = value.at(&["a", "b"]).unwrap();
        assert_eq!(list.start, Position::new(2, 6));
        assert_eq!(list.json(), serde_json::json!(["x", 1, true, null]));
        assert_eq!(value.at(&["a", "c"]).unwrap().text(), Some("1"));
        assert_eq!(value.at(&["a", "d"]), None);
        assert_eq!(value.at(&["a", "b", "c"]), None);
    }

    #[test]
    fn aliases_are_resolved_but_do_not_explode() {
        let value = read("x: &x {a: 1, b: 2}\nz: *x\n");
        assert_eq!(value.json(), serde_json::json!({"x": {"a": 1, "b": 2}, "z": {"a": 1, "b": 2}}));
        let mut text = "a: &a0 [x, x, x, x]\n".to_owned();
        for i in 1..40 {
            let last = i - 1;
            text += &format!("b{i}: &a{i} [*a{last}, *a{last}]\n");
        }
        assert!(read_object(&text, 0).is_err());
    }

    #[test]
    fn documents_are_split_without_reading_them() {
        let text = "\u{feff}# one\na: 1\n---\nb: |\n  ---\n--- # three\nc: [\n---x: 1\n---\n";
        let found: Vec<(usize, &str)> = documents(text).collect();
        let expected =
            [(0, "# one\na: 1\n"), (2, "---\nb: |\n  ---\n"), (5, "--- # three\nc: [\n---x: 1\n"), (8, "---\n")];
        assert_eq!(found, expected);
        assert_eq!(read_object(found[3].1, 8), Ok(None));
        assert_eq!(documents("").collect::<Vec<_>>(), [(0, "")]);
        let (line, _) = read_object("a: [\n", 7).unwrap_err();
        assert!(line >= 8);
    }
}
