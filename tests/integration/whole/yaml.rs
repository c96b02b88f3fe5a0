//! YAML as people write it, and as nobody does: each value in one of the ways in which the same can be said, or nearly
//! the same.

use serde_json::{Value, json};

use crate::support::{Random, base64};

/// Returns fields of a kustomization, or those of the plugin that `field` begins with: one with this text in it, and
/// what has to stand beside it. `object` is what a patch is for, `made` what a generator makes.
pub(super) fn nested(field: &str, text: &str, object: &str, made: &str) -> Value {
    let (first, rest) = match field.split_once('.') {
        Some((first, rest)) => (first, Some(rest)),
        None => (field, None),
    };
    let mut value = match rest {
        Some(rest) => nested(rest, text, object, made),
        None => Value::from(text),
    };
    let name = first.trim_end_matches("[]");
    if rest.is_some() {
        let beside = match name {
            "configMapGenerator" | "secretGenerator" => json!({"name": made}),
            "helmCharts" | "HelmChartInflationGenerator" => json!({"name": "web"}),
            "helmChartInflationGenerator" => json!({"chartName": "web"}),
            "patches" | "patchesJson6902" | "PatchTransformer" | "PatchJson6902Transformer" => {
                json!({"target": {"version": "v1", "kind": "ConfigMap", "name": object}})
            }
            "ValueAddTransformer" => json!({"value": "added"}),
            _ => json!({}),
        };
        extend(&mut value, beside);
    }
    if first.ends_with("[]") {
        value = json!([value]);
    }
    if first.starts_with(|letter: char| letter.is_ascii_uppercase()) {
        return value;
    }
    let mut object = json!({name: value});
    if name == "helmGlobals" {
        extend(&mut object, json!({"helmCharts": [{"name": "web"}]}));
    }
    object
}

/// Returns what a plugin configuration looks like.
pub(super) fn plugin(kind: &str, name: &str, fields: Value) -> Value {
    let mut object = json!({"apiVersion": "builtin", "kind": kind, "metadata": {"name": name}});
    extend(&mut object, fields);
    object
}

/// Adds the fields of one object to another. A list that both have gets the items of both.
pub(super) fn extend(object: &mut Value, fields: Value) {
    let Value::Object(fields) = fields else {
        panic!("{fields} is no object");
    };
    let object = object.as_object_mut().unwrap();
    for (key, value) in fields {
        match (object.get_mut(&key), value) {
            (Some(Value::Array(items)), Value::Array(more)) => items.extend(more),
            (_, value) => drop(object.insert(key, value)),
        }
    }
}

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Yaml {
    Text(String),
    List(Vec<Yaml>),
    Map(Vec<(String, Yaml)>),
}

impl From<&Value> for Yaml {
    fn from(value: &Value) -> Yaml {
        let pair = |(key, value): (&String, &Value)| (key.clone(), value.into());
        match value {
            Value::Array(items) => Yaml::List(items.iter().map(Yaml::from).collect()),
            Value::Object(pairs) => Yaml::Map(pairs.iter().map(pair).collect()),
            value => Yaml::Text(value.as_str().unwrap().to_owned()),
        }
    }
}

impl Yaml {
    pub(super) fn has_lines(&self) -> bool {
        match self {
            Yaml::Text(text) => text.contains('\n'),
            Yaml::List(items) => items.iter().any(Yaml::has_lines),
            Yaml::Map(pairs) => pairs.iter().any(|(_, value)| value.has_lines()),
        }
    }
}

/// Writes values; without choices, each in the plainest way.
pub(super) struct Writer<'a> {
    random: Option<&'a mut Random>,
    /// One in so many values is written in an odd way; with 0, all are written as people do, and none is another.
    rarity: usize,
    /// Names of anchors that were given, with the values that they stand for, once these are written.
    anchors: Vec<(String, Option<Yaml>)>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(random: &'a mut Random) -> Writer<'a> {
        let rarity = [6, 12, 24][random.below(3)];
        Writer { random: Some(random), rarity, anchors: Vec::new() }
    }

    pub(super) fn usual(random: &'a mut Random) -> Writer<'a> {
        Writer { random: Some(random), rarity: 0, anchors: Vec::new() }
    }

    pub(super) fn plain() -> Writer<'a> {
        Writer { random: None, rarity: 1, anchors: Vec::new() }
    }

    /// Returns a document.
    pub(super) fn write(mut self, value: &Yaml) -> String {
        let is_flow = self.rarely(8) && !self.keeps_lines(value);
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
        let random = self.random.as_mut().filter(|_| times > 0);
        random.is_some_and(|random| random.below(times) == 0)
    }

    fn is_odd(&mut self) -> bool {
        self.rarely(self.rarity)
    }

    /// Returns a value with what stands between it and the `:` or `-` before it.
    fn value(&mut self, value: &Yaml, indent: usize, is_flow: bool) -> String {
        let mut before = String::new();
        if self.is_odd() {
            let tags = ["!!str", "!!map", "!!seq", "!!binary", "!", "!x", "!<tag:yaml.org,2002:str>", "!!merge"];
            before = format!(" {}", tags[self.below(tags.len())]);
        }
        if let Some(alias) = self.alias(value) {
            return alias;
        }
        let is_anchored = self.is_odd() || self.rarity == 0 && !value.has_lines() && self.rarely(4);
        let anchor = self.anchors.len();
        if is_anchored {
            before.push_str(&format!(" &a{anchor}"));
            self.anchors.push((format!("a{anchor}"), None));
        }
        let is_flow = is_flow || self.rarely(6) && !self.keeps_lines(value);
        let written = match value {
            Yaml::Text(text) => {
                let written = self.text(text, indent, is_flow);
                let is_line = self.rarity == 0 && !is_flow && !written.contains('\n');
                let is_noted = is_line && self.rarely(9);
                written + if is_noted { " # kept" } else { "" }
            }
            Yaml::List(items) if is_flow => {
                let items: Vec<String> = items.iter().map(|item| self.value(item, indent, true)).collect();
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
        if is_anchored {
            self.anchors[anchor].1 = Some(value.clone());
        }
        before + &written
    }

    /// Returns an alias: of the same value if it has an anchor and people write it, else of any.
    fn alias(&mut self, value: &Yaml) -> Option<String> {
        let same = self.anchors.iter().find(|(_, known)| known.as_ref() == Some(value));
        let same = same.filter(|_| self.rarity == 0).map(|(name, _)| format!(" *{name}"));
        if same.is_some() {
            return same.filter(|_| !self.rarely(4));
        }
        if self.rarely(self.rarity * 4) && !self.anchors.is_empty() {
            let at = self.below(self.anchors.len());
            return Some(format!(" *{} ", self.anchors[at].0));
        }
        None
    }

    /// Whether a value holds lines that are a literal block as people write them: a configuration elsewhere is not
    /// edited.
    fn keeps_lines(&self, value: &Yaml) -> bool {
        self.rarity == 0 && value.has_lines()
    }

    fn text(&mut self, text: &str, indent: usize, is_flow: bool) -> String {
        let is_usual = self.rarity == 0;
        let marks = if is_usual { "./_-+=~@" } else { "./_-" };
        let path = text.strip_prefix("https://").filter(|_| is_usual);
        let is_plain = !text.is_empty()
            && path.unwrap_or(text).chars().all(|c| c.is_ascii_alphanumeric() || marks.contains(c))
            && !text.starts_with(['-', '=', '~', '@']);
        let style = if is_usual {
            self.below(2)
        } else if self.is_odd() {
            self.below(6)
        } else {
            0
        };
        match style {
            1 if !text.contains('\n') => format!(" '{}'", text.replace('\'', "''")),
            2 => format!(" {}", escaped(text)),
            3 | 4 if !is_flow && !text.starts_with([' ', '\n']) && !text.contains('\r') => {
                let mark = if style == 3 { "|-" } else { ">-" };
                block(text.trim_end_matches('\n'), mark, indent)
            }
            5 => format!(" !!binary {}", base64(text.as_bytes())),
            _ if is_plain => format!(" {text}"),
            _ if text.contains('\n') && !is_flow && !text.starts_with([' ', '\n']) && !text.contains('\r') => {
                block(text.trim_end_matches('\n'), "|", indent)
            }
            _ => format!(" {}", Value::from(text)),
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
            let decoys = [json!("x"), json!([]), json!(["cm.yaml"]), json!({})];
            pairs.insert(at, (key, (&decoys[self.below(decoys.len())]).into()));
        }
        let pairs = pairs.iter().map(|(key, value)| {
            let key = self.key(key, is_flow);
            // A list may stand right below its key.
            let is_list = self.rarity == 0 && matches!(value, Yaml::List(_));
            let deeper = if is_list && self.rarely(2) { 0 } else { 2 };
            (key, self.value(value, indent + deeper, is_flow))
        });
        let pairs: Vec<(String, String)> = pairs.collect();
        if is_flow {
            let pairs: Vec<String> = pairs.iter().map(|(key, value)| format!("{key}:{value}")).collect();
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
