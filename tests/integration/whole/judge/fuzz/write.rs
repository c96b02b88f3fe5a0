//! YAML as nobody writes it: each value in one of the ways in which the same can be said, or nearly the same.

use crate::support::{Random, base64};

/// A value.
#[derive(Debug, Clone)]
pub(super) enum Yaml {
    Text(String),
    List(Vec<Yaml>),
    Map(Vec<(String, Yaml)>),
}

pub(super) fn text(text: &str) -> Yaml {
    Yaml::Text(text.to_owned())
}

pub(super) fn list(items: impl IntoIterator<Item = Yaml>) -> Yaml {
    Yaml::List(items.into_iter().collect())
}

pub(super) fn map<'a>(pairs: impl IntoIterator<Item = (&'a str, Yaml)>) -> Yaml {
    let pairs = pairs.into_iter();
    Yaml::Map(pairs.map(|(key, value)| (key.to_owned(), value)).collect())
}

impl Yaml {
    /// Adds the pairs of another mapping; a list that both hold gets the items of both.
    pub(super) fn extend(&mut self, other: Yaml) {
        let (Yaml::Map(ours), Yaml::Map(theirs)) = (self, other) else {
            return;
        };
        for (key, value) in theirs {
            match (ours.iter_mut().find(|(known, _)| *known == key), value) {
                (Some((_, Yaml::List(items))), Yaml::List(more)) => items.extend(more),
                (_, value) => ours.push((key, value)),
            }
        }
    }
}

/// Writes values; without choices, each in the plainest way.
pub(super) struct Writer<'a> {
    random: Option<&'a mut Random>,
    /// One in so many values is written in an odd way.
    rarity: usize,
    /// Names of anchors that were given, with what they stand for.
    anchors: Vec<String>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(random: &'a mut Random) -> Writer<'a> {
        let rarity = [6, 12, 24][random.below(3)];
        Writer {
            random: Some(random),
            rarity,
            anchors: Vec::new(),
        }
    }

    pub(super) fn plain() -> Writer<'a> {
        Writer {
            random: None,
            rarity: 1,
            anchors: Vec::new(),
        }
    }

    /// Returns a document.
    pub(super) fn write(mut self, value: &Yaml) -> String {
        let is_flow = self.rarely(8);
        let mut written = self.value(value, 0, is_flow);
        if !written.ends_with('\n') {
            written.push('\n');
        }
        written.trim_start_matches([' ', '\n']).to_owned()
    }

    fn below(&mut self, end: usize) -> usize {
        self.random.as_mut().map_or(0, |random| random.below(end))
    }

    /// Says yes once in so many times, and never without choices.
    fn rarely(&mut self, times: usize) -> bool {
        self.random
            .as_mut()
            .is_some_and(|random| random.below(times) == 0)
    }

    fn is_odd(&mut self) -> bool {
        self.rarely(self.rarity)
    }

    /// Returns a value with what stands between it and the `:` or `-` before it.
    fn value(&mut self, value: &Yaml, indent: usize, is_flow: bool) -> String {
        let mut before = String::new();
        if self.is_odd() {
            let tags = [
                "!!str",
                "!!map",
                "!!seq",
                "!!binary",
                "!",
                "!x",
                "!<tag:yaml.org,2002:str>",
                "!!merge",
            ];
            before = format!(" {}", tags[self.below(tags.len())]);
        }
        if self.is_odd() {
            let name = format!("a{}", self.anchors.len());
            before.push_str(&format!(" &{name}"));
            self.anchors.push(name);
        } else if self.rarely(self.rarity * 4) && !self.anchors.is_empty() {
            let at = self.below(self.anchors.len());
            return format!(" *{} ", self.anchors[at]);
        }
        let is_flow = is_flow || self.rarely(6);
        let written = match value {
            Yaml::Text(text) => self.text(text, indent, is_flow),
            Yaml::List(items) if is_flow => {
                let items: Vec<String> = items
                    .iter()
                    .map(|item| self.value(item, indent, true))
                    .collect();
                let end = if self.is_odd() { "," } else { "" };
                format!(" [{}{end}]", items.join(","))
            }
            Yaml::List(items) => {
                let pad = " ".repeat(indent);
                let items = items.iter().map(|item| {
                    let written = self.value(item, indent + 2, false);
                    format!("\n{pad}-{}", same_line(&written, indent + 2))
                });
                items.collect()
            }
            Yaml::Map(pairs) => self.map(pairs, indent, is_flow),
        };
        before + &written
    }

    fn text(&mut self, text: &str, indent: usize, is_flow: bool) -> String {
        let is_plain = !text.is_empty()
            && text
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "./_-".contains(c))
            && !text.starts_with('-');
        let style = if self.is_odd() { self.below(6) } else { 0 };
        match style {
            1 if !text.contains('\n') => format!(" '{}'", text.replace('\'', "''")),
            2 => format!(" {}", escaped(text)),
            3 | 4 if !is_flow && !text.starts_with([' ', '\n']) && !text.contains('\r') => {
                let mark = if style == 3 { "|-" } else { ">-" };
                block(text.trim_end_matches('\n'), mark, indent)
            }
            5 => format!(" !!binary {}", base64(text.as_bytes())),
            _ if is_plain => format!(" {text}"),
            _ if text.contains('\n')
                && !is_flow
                && !text.starts_with([' ', '\n'])
                && !text.contains('\r') =>
            {
                block(text.trim_end_matches('\n'), "|", indent)
            }
            _ => format!(" {}", serde_json::Value::from(text)),
        }
    }

    fn map(&mut self, pairs: &[(String, Yaml)], indent: usize, is_flow: bool) -> String {
        let mut pairs = pairs.to_vec();
        if self.is_odd() && pairs.len() > 1 {
            let at = self.below(pairs.len());
            let pair = pairs.remove(at);
            let merged = match self.below(3) {
                0 => Yaml::List(vec![Yaml::Map(vec![pair])]),
                1 => Yaml::Map(vec![("<<".to_owned(), Yaml::Map(vec![pair]))]),
                _ => Yaml::Map(vec![pair]),
            };
            let at = self.below(pairs.len() + 1);
            pairs.insert(at, ("<<".to_owned(), merged));
        }
        if self.is_odd() && !pairs.is_empty() {
            let (mut key, _) = pairs[self.below(pairs.len())].clone();
            if self.rarely(2) {
                key = key.to_uppercase();
            }
            let at = self.below(pairs.len() + 1);
            let decoys = [text("x"), list([]), list([text("cm.yaml")]), map([])];
            pairs.insert(at, (key, decoys[self.below(decoys.len())].clone()));
        }
        let pairs = pairs.iter().map(|(key, value)| {
            let key = self.key(key, is_flow);
            let written = self.value(value, indent + 2, is_flow);
            (key, written)
        });
        let pairs: Vec<(String, String)> = pairs.collect();
        if is_flow {
            let pairs: Vec<String> = pairs
                .iter()
                .map(|(key, value)| format!("{key}:{value}"))
                .collect();
            return format!(" {{{}}}", pairs.join(", "));
        }
        let pad = " ".repeat(indent);
        let line = |(key, value): &(String, String)| match key.strip_prefix("? ") {
            Some(key) => format!("\n{pad}? {key}\n{pad}:{value}"),
            None => format!("\n{pad}{key}:{value}"),
        };
        pairs.iter().map(line).collect()
    }

    fn key(&mut self, key: &str, is_flow: bool) -> String {
        if !self.is_odd() {
            return key.to_owned();
        }
        match self.below(9) {
            0 => format!("\"{key}\""),
            1 => format!("'{key}'"),
            2 => escaped(key),
            3 => format!("!!str {key}"),
            4 => format!("&k {key} "),
            5 => key.to_uppercase(),
            6 => key.replacen('s', "\u{17f}", 1),
            7 => format!("!!binary {}", base64(key.as_bytes())),
            _ if is_flow => format!("? {key} "),
            _ => format!("? {key}"),
        }
    }
}

/// Lets a block begin behind the dash of its item.
fn same_line(written: &str, indent: usize) -> String {
    let pad = format!("\n{}", " ".repeat(indent));
    match written.strip_prefix(&pad) {
        Some(rest) if !rest.starts_with(' ') => format!(" {rest}"),
        _ => written.to_owned(),
    }
}

fn block(text: &str, mark: &str, indent: usize) -> String {
    let pad = " ".repeat(indent.max(2));
    let lines = text.split('\n').map(|line| match line {
        "" => "\n".to_owned(),
        line => format!("\n{pad}{line}"),
    });
    format!(" {mark}{}\n", lines.collect::<String>())
}

/// Returns a text in double quotes, with some characters by their numbers.
fn escaped(text: &str) -> String {
    let escape = |(at, one): (usize, char)| match one {
        '"' | '\\' => format!("\\{one}"),
        '\n' => "\\n".to_owned(),
        one if at % 3 == 0 && u32::from(one) < 256 => format!("\\x{:02x}", u32::from(one)),
        one => one.to_string(),
    };
    let escaped: String = text.chars().enumerate().map(escape).collect();
    format!("\"{escaped}\"")
}
