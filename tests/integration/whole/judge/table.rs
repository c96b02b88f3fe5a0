//! The table of variants, by class.

mod attributes;
mod charts;
mod functions;
mod keys;
mod links;
mod odd;
mod reshaped;
mod urls;
mod yaml;

use serde_json::{Value, json};

use super::variant::Variant;

/// Returns all variants.
pub(super) fn variants() -> Vec<Variant> {
    let mut all = Vec::new();
    all.extend(urls::variants());
    all.extend(yaml::variants());
    all.extend(keys::variants());
    all.extend(reshaped::variants());
    all.extend(functions::variants());
    all.extend(charts::variants());
    all.extend(attributes::variants());
    all.extend(links::variants());
    all.extend(odd::variants());
    all
}

/// What a plugin configuration of a kind looks like.
fn plugin(kind: &str, fields: Value) -> Value {
    let mut object = json!({"apiVersion": "builtin", "kind": kind, "metadata": {"name": "a"}});
    extend(&mut object, fields);
    object
}

/// Adds the fields of one object to another.
fn extend(object: &mut Value, fields: Value) {
    let Value::Object(fields) = fields else {
        panic!("{fields} is no object");
    };
    object.as_object_mut().unwrap().extend(fields);
}

/// Returns a text as a scalar in double quotes.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// Indents every line.
fn indented(text: &str, by: usize) -> String {
    let pad = " ".repeat(by);
    let lines = text.lines().map(|line| format!("{pad}{line}\n"));
    lines.collect()
}
