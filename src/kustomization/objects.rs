//! Kubernetes objects as values with positions, for code that reads a few fields of them.

use granit_parser::ScalarStyle;
use serde_json::Value as Json;

use super::plugin;
use super::read::is_same_key;
use super::yaml::{self, Data, Value, is_yaml_1_1_flag, number};
use crate::message::position::Position;

impl Value {
    /// The value of a key; `None` if the key is missing, or its value is null.
    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        let (_, value) = self.mapping()?.iter().find(|(name, _)| name == key)?;
        Some(value).filter(|value| value.data != Data::Null)
    }

    /// The value at a path of keys; `None` if it is missing or null.
    pub(crate) fn at(&self, keys: &[&str]) -> Option<&Value> {
        keys.iter().try_fold(self, |value, key| value.get(key))
    }

    /// The value of a key, compared without case as Go does; `None` if the key is missing, or its value is null.
    pub(super) fn folded_field(&self, name: &str) -> Option<&Value> {
        let mut pairs = self.mapping()?.iter();
        pairs.find(|(key, value)| is_same_key(name, key) && value.data != Data::Null).map(|(_, value)| value)
    }

    /// The text, if it is a string in YAML 1.1 too, which kustomize reads.
    pub(super) fn string(&self) -> Option<&str> {
        self.text().filter(|text| self.style != ScalarStyle::Plain || !is_yaml_1_1_flag(text))
    }

    /// Whether the value may be true: YAML 1.1 does not read it as false.
    pub(super) fn is_on(&self) -> bool {
        let word = self.scalar().unwrap_or_default().to_ascii_lowercase();
        !matches!(word.as_str(), "false" | "n" | "no" | "off")
    }

    /// The text; `None` if it is not a string.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.data {
            Data::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A string, number or boolean as text; `None` for other values.
    pub(crate) fn scalar(&self) -> Option<String> {
        match &self.data {
            Data::Text(text) | Data::Number(text) => Some(text.clone()),
            Data::Flag(flag) => Some(flag.to_string()),
            Data::Null | Data::List(_) | Data::Mapping(_) => None,
        }
    }

    /// The items; `None` if it is not a list.
    pub(crate) fn list(&self) -> Option<&[Value]> {
        match &self.data {
            Data::List(items) => Some(items),
            _ => None,
        }
    }

    /// The pairs; `None` if it is not a mapping.
    pub(crate) fn mapping(&self) -> Option<&[(String, Value)]> {
        match &self.data {
            Data::Mapping(pairs) => Some(pairs),
            _ => None,
        }
    }

    /// The type for messages, with its article.
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

    /// The value as JSON, for code that needs no positions. `.inf` and `.nan`, which JSON lacks, become strings.
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

    /// A copy in which `change` has replaced each text, keys included.
    pub(crate) fn map_texts(&self, change: &mut dyn FnMut(&str) -> String) -> Value {
        let mut new = self.clone();
        new.each(&mut |value| match &mut value.data {
            Data::Text(text) => *text = change(text),
            Data::Mapping(pairs) => pairs.iter_mut().for_each(|(key, _)| *key = change(key)),
            _ => {}
        });
        new
    }

    /// Gives all values in it the same position, because they are not in a file.
    pub(crate) fn set_position(&mut self, start: Position) {
        self.each(&mut |value| value.start = start);
    }

    /// Gives this value the positions of `source`, from which a build has made it, so that messages can name the line
    /// of a file. Fields are matched by name, and items by number.
    pub(crate) fn copy_positions(&mut self, source: &Value) {
        self.start = source.start;
        match &mut self.data {
            Data::List(items) => {
                let sources = source.list().unwrap_or_default();
                for (index, item) in items.iter_mut().enumerate() {
                    item.copy_positions_or(sources.get(index), source.start);
                }
            }
            Data::Mapping(pairs) => {
                pairs.iter_mut().for_each(|(key, value)| value.copy_positions_or(source.get(key), source.start));
            }
            _ => {}
        }
    }

    /// Gives this value the positions of `source`, or `default` if it has no source.
    fn copy_positions_or(&mut self, source: Option<&Value>, default: Position) {
        match source {
            Some(source) => self.copy_positions(source),
            // A value that is new gets the position of the value around it.
            None => self.set_position(default),
        }
    }

    /// The first result of `find` for the value itself, then for the values in it.
    pub(super) fn find_map<T>(&self, find: &dyn Fn(&Value) -> Option<T>) -> Option<T> {
        find(self).or_else(|| match &self.data {
            Data::List(items) => items.iter().find_map(|item| item.find_map(find)),
            Data::Mapping(pairs) => pairs.iter().find_map(|(_, value)| value.find_map(find)),
            _ => None,
        })
    }

    /// Calls `change` with the value itself, then with every value in it.
    pub(super) fn each(&mut self, change: &mut dyn FnMut(&mut Value)) {
        change(self);
        match &mut self.data {
            Data::List(items) => items.iter_mut().for_each(|item| item.each(change)),
            Data::Mapping(pairs) => pairs.iter_mut().for_each(|(_, value)| value.each(change)),
            _ => {}
        }
    }
}

/// Splits a text at the lines `---` without parsing it, so that a document with an error does not hide the others.
pub(crate) fn documents(text: &str) -> impl Iterator<Item = FileDocument<'_>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (mut starts, mut at) = (vec![(0, 0)], 0);
    for (before, line) in text.split_inclusive('\n').enumerate() {
        // Inside of a document no line can begin with `---`, so it need not be parsed to find the next one.
        let after = line.strip_prefix("---");
        if before > 0 && after.is_some_and(|after| after.is_empty() || after.starts_with([' ', '\t', '\r', '\n'])) {
            starts.push((before, at));
        }
        at += line.len();
    }
    let ends: Vec<usize> = starts[1..].iter().map(|(_, at)| *at).chain([at]).collect();
    starts.into_iter().zip(ends).map(|((before, at), end)| FileDocument { before, text: &text[at..end] })
}

/// One document of a file, as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileDocument<'a> {
    /// The number of lines before it.
    pub before: usize,
    pub text: &'a str,
}

/// All of a file as one document.
impl<'a> From<&'a str> for FileDocument<'a> {
    fn from(text: &'a str) -> Self {
        FileDocument { before: 0, text }
    }
}

/// Why an object cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ObjectError {
    /// The line of the file; 0 for the whole file.
    pub line: usize,
    pub message: String,
}

/// The characters that end a line for at least one reader of YAML.
const BREAKS: [char; 5] = ['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}'];

/// A text in which the escapes of double quotes are resolved that could hide a word from a search: characters by their
/// number, such as `\x41`, and line breaks. All other backslashes are dropped, so the text only serves to search it.
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
            // A line break that is escaped joins two lines.
            None => match part.strip_prefix("\r\n").or_else(|| part.strip_prefix(BREAKS)) {
                Some(next) => out.push_str(next.trim_start_matches([' ', '\t'])),
                None => out.push_str(part),
            },
        }
    }
    out
}

/// Reads the object in one document, with positions in its file; `None` if the document is empty. Fails if readers of
/// YAML could understand it differently.
pub(crate) fn read_object<'a>(document: impl Into<FileDocument<'a>>) -> Result<Option<Value>, ObjectError> {
    let FileDocument { before, text } = document.into();
    let wrong = |line: usize, message: String| ObjectError { line: before + line, message };
    let stream = yaml::read_unique(text, 1)
        .map_err(|error: super::Problem| wrong(error.position.line, format!("not YAML: {}", error.message)))?;
    if let Some(odd) = plugin::not_plain(&stream) {
        return Err(wrong(odd.position.line, format!("not plain YAML: {}", odd.message)));
    }
    if let Some(rest) = stream.rest {
        return Err(wrong(rest.line, "a second object, without `---` before it".to_owned()));
    }
    let mut document = stream.documents.into_iter().next().filter(|value| value.data != Data::Null);
    document.iter_mut().for_each(|document| document.each(&mut |value| value.start.line += before));
    Ok(document)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Value {
        read_object(text).unwrap().unwrap()
    }

    #[test]
    fn numbers_are_those_of_yaml_1_1() {
        let words = "0644 -0644 0o10 0xFF 0b11 1_000 +12 089 9_007_199_254_740_993 .5 08.5 12 1.5 .inf";
        let text = format!("a: [{}]\n", words.replace(' ', ", "));
        let numbers = read_object(&*text).unwrap().unwrap().json()["a"].to_string();
        assert_eq!(numbers, "[420,-420,8,255,3,1000,12,89,9007199254740993,0.5,8.5,12,1.5,\".inf\"]");
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
        assert!(read_object(&*text).is_err());
    }

    #[test]
    fn documents_are_split_without_reading_them() {
        let text = "\u{feff}# one\na: 1\n---\nb: |\n  ---\n--- # three\nc: [\n---x: 1\n---\n";
        let found: Vec<FileDocument<'_>> = documents(text).collect();
        let expected =
            [(0, "# one\na: 1\n"), (2, "---\nb: |\n  ---\n"), (5, "--- # three\nc: [\n---x: 1\n"), (8, "---\n")];
        assert_eq!(found, expected.map(|(before, text)| FileDocument { before, text }));
        assert_eq!(read_object(found[3]), Ok(None));
        assert_eq!(documents("").collect::<Vec<_>>(), [FileDocument::from("")]);
        let error = read_object(FileDocument { before: 7, text: "a: [\n" }).unwrap_err();
        assert!(error.line >= 8);
    }
}
