//! YAML as people write it: block and flow, every sort of quotes, comments, and JSON.

use serde_json::Value;

/// Returns the value as YAML in a style that the number chooses.
pub(super) fn emit(value: &Value, style: u64) -> String {
    if style.is_multiple_of(11) {
        return serde_json::to_string_pretty(value).unwrap() + "\n";
    }
    let mut out = String::new();
    if style.is_multiple_of(5) {
        out.push_str("# A comment.\n");
    }
    let mut emitter = Emitter { out, style };
    emitter.block(value, 0);
    let text = emitter.out;
    match style % 13 {
        0 => text.replace('\n', "\r\n"),
        _ => text,
    }
}

struct Emitter {
    out: String,
    style: u64,
}

impl Emitter {
    fn roll(&mut self) -> u64 {
        // Knuth's linear congruential generator.
        self.style = self
            .style
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.style >> 33
    }

    fn block(&mut self, value: &Value, indent: usize) {
        let pad = " ".repeat(indent);
        match value {
            Value::Object(map) => {
                for (key, value) in map {
                    self.out.push_str(&format!("{pad}{key}:"));
                    self.nested(value, indent);
                }
            }
            Value::Array(list) => {
                for item in list {
                    self.out.push_str(&format!("{pad}-"));
                    self.nested(item, indent);
                }
            }
            _ => {}
        }
    }

    /// Writes what follows a key or a dash.
    fn nested(&mut self, value: &Value, indent: usize) {
        match value {
            Value::String(text) if text.contains('\n') => {
                if text.ends_with('\n') && !text.contains('\r') {
                    let pad = " ".repeat(indent + 2);
                    self.out.push_str(" |\n");
                    for line in text.lines() {
                        self.out.push_str(&format!("{pad}{line}\n"));
                    }
                } else {
                    let text = serde_json::to_string(text).unwrap();
                    self.out.push_str(&format!(" {text}\n"));
                }
            }
            Value::Object(_) | Value::Array(_)
                if self.roll().is_multiple_of(3) && !has_lines(value) =>
            {
                self.out.push(' ');
                self.flow(value);
                self.out.push('\n');
            }
            Value::Object(_) | Value::Array(_) => {
                self.out.push('\n');
                let list_in_place = value.is_array() && self.roll().is_multiple_of(2);
                if list_in_place && !self.out.trim_end().ends_with('-') {
                    self.block(value, indent)
                } else {
                    self.block(value, indent + 2)
                }
            }
            value => {
                self.out.push(' ');
                self.scalar(value);
                if self.roll().is_multiple_of(9) {
                    self.out.push_str(" # kept");
                }
                self.out.push('\n');
            }
        }
    }

    fn flow(&mut self, value: &Value) {
        match value {
            Value::Object(map) => {
                self.out.push('{');
                for (number, (key, value)) in map.iter().enumerate() {
                    if number > 0 {
                        self.out.push_str(", ");
                    }
                    self.out.push_str(&format!("{key}: "));
                    self.flow(value);
                }
                self.out.push('}');
            }
            Value::Array(list) => {
                self.out.push('[');
                for (number, value) in list.iter().enumerate() {
                    if number > 0 {
                        self.out.push_str(", ");
                    }
                    self.flow(value);
                }
                self.out.push(']');
            }
            value => self.scalar(value),
        }
    }

    fn scalar(&mut self, value: &Value) {
        let Value::String(text) = value else {
            self.out.push_str(&value.to_string());
            return;
        };
        let is_plain = text.starts_with(|first: char| {
            first.is_ascii_alphanumeric() || first == '.' || first == '/'
        }) && text
            .chars()
            .all(|one| one.is_alphanumeric() || "./_-+=~@".contains(one))
            || text.starts_with("https://")
                && !text.contains(['#', ' ', ',', '?', '{', '}', '[', ']']);
        match self.roll() % 3 {
            0 if is_plain => self.out.push_str(text),
            1 => self
                .out
                .push_str(&format!("'{}'", text.replace('\'', "''"))),
            _ => self.out.push_str(&serde_json::to_string(text).unwrap()),
        }
    }
}

fn has_lines(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\n'),
        Value::Array(list) => list.iter().any(has_lines),
        Value::Object(map) => map.values().any(has_lines),
        _ => false,
    }
}
