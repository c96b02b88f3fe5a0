//! The lines that differ, for a person to read: limited in length, and without secrets.

use std::fmt::Write;
use std::time::Duration;

use serde_yaml::{Mapping, Value};
use similar::TextDiff;

use super::objects::Object;

/// How many lines are shown at most.
const LINES: usize = 100;
/// How many characters of a line are shown at most.
const WIDTH: usize = 200;
/// How much text is compared line by line at most, in bytes: beyond that it takes too long.
const LARGE: usize = 1 << 19;
/// The fields of a Secret whose values are never shown.
const SECRET: [&str; 2] = ["data", "stringData"];
/// Where `kubectl apply` keeps all that it was given.
const APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// How long lines of one object are compared: after that the diff is right, and longer than it has to be.
const PATIENCE: Duration = Duration::from_millis(300);

/// Both texts of an object, as they can be shown.
pub(super) struct Masked {
    pub(super) before: String,
    pub(super) after: String,
}

/// Returns both texts of an object without what a Secret holds. Only whether a value is the same can be seen.
pub(super) fn masked(before: Option<&Object>, after: Option<&Object>) -> Masked {
    let unreadable = |object: Option<&Object>| object.is_some_and(|object| object.value.is_none());
    if unreadable(before) || unreadable(after) {
        let shown = |object: Option<&Object>, which: &str| match object {
            Some(_) => format!("(not shown, because it cannot be read: {which})\n"),
            None => String::new(),
        };
        return Masked {
            before: shown(before, "original"),
            after: shown(after, "localized"),
        };
    }
    let value = |object: Option<&Object>| object.and_then(|object| object.value.clone());
    let (mut one, mut other) = (value(before), value(after));
    let touched = mask(one.as_mut(), other.as_mut());
    let text = |object: Option<&Object>, value: Option<Value>| match (object, value) {
        (Some(object), Some(value)) if touched => {
            serde_yaml::to_string(&value).unwrap_or_else(|_| format!("{}\n", object.id))
        }
        (Some(object), _) => object.text.clone(),
        (None, _) => String::new(),
    };
    Masked {
        before: text(before, one),
        after: text(after, other),
    }
}

/// Masks the values of Secrets, at any depth (a list may hold them). Returns whether there was a Secret.
fn mask(one: Option<&mut Value>, other: Option<&mut Value>) -> bool {
    match (one.map(untagged), other.map(untagged)) {
        (Some(Value::Sequence(one)), Some(Value::Sequence(other))) => {
            let numbers = 0..one.len().max(other.len());
            numbers.fold(false, |touched, number| {
                mask(one.get_mut(number), other.get_mut(number)) | touched
            })
        }
        (Some(Value::Sequence(items)), None) | (None, Some(Value::Sequence(items))) => items
            .iter_mut()
            .fold(false, |touched, item| mask(Some(item), None) | touched),
        (Some(Value::Mapping(one)), Some(Value::Mapping(other))) => {
            mask_mappings(Some(one), Some(other))
        }
        (Some(Value::Mapping(one)), None) | (None, Some(Value::Mapping(one))) => {
            mask_mappings(Some(one), None)
        }
        (Some(one), Some(other)) if is_deep(one) || is_deep(other) => {
            mask(Some(one), None) | mask(None, Some(other))
        }
        _ => false,
    }
}

fn is_deep(value: &Value) -> bool {
    matches!(value, Value::Sequence(_) | Value::Mapping(_))
}

fn untagged(mut value: &mut Value) -> &mut Value {
    while let Value::Tagged(tagged) = value {
        value = &mut tagged.value;
    }
    value
}

fn mask_mappings(mut one: Option<&mut Mapping>, mut other: Option<&mut Mapping>) -> bool {
    let is_secret = |mapping: &Option<&mut Mapping>| {
        let kind = mapping.as_ref().and_then(|mapping| mapping.get("kind"));
        kind.and_then(Value::as_str) == Some("Secret")
    };
    if is_secret(&one) || is_secret(&other) {
        for field in SECRET {
            let one = one.as_mut().and_then(|mapping| mapping.get_mut(field));
            let other = other.as_mut().and_then(|mapping| mapping.get_mut(field));
            mask_values(one, other);
        }
        for mapping in [one, other].into_iter().flatten() {
            // It may repeat all of it.
            let metadata = mapping.get_mut("metadata").map(untagged);
            let annotations = metadata.and_then(|metadata| metadata.get_mut("annotations"));
            if let Some(Value::Mapping(annotations)) = annotations.map(untagged)
                && let Some(applied) = annotations.get_mut(APPLIED)
            {
                *applied = "***".into();
            }
        }
        return true;
    }
    let keys = |mapping: &Option<&mut Mapping>| -> Vec<Value> {
        let keys = mapping.iter().flat_map(|mapping| mapping.keys());
        keys.cloned().collect()
    };
    let mut all = keys(&other);
    if let Some(one) = &one {
        all.retain(|key| !one.contains_key(key));
    }
    all.extend(keys(&one));
    all.iter().fold(false, |touched, key| {
        let one = one.as_mut().and_then(|mapping| mapping.get_mut(key));
        let other = other.as_mut().and_then(|mapping| mapping.get_mut(key));
        mask(one, other) | touched
    })
}

/// Masks all values of a mapping, or what stands in its place: `***`, and where they differ which one it is.
fn mask_values(one: Option<&mut Value>, other: Option<&mut Value>) {
    let held = |value: &Option<&mut Value>| value.as_deref().cloned();
    let (before, after) = (held(&one), held(&other));
    for (value, others, name) in [(one, after, "original"), (other, before, "localized")] {
        let Some(value) = value else { continue };
        let hidden = |is_same: bool| {
            if is_same {
                Value::from("***")
            } else {
                Value::from(format!("*** (another one: {name})"))
            }
        };
        match untagged(value) {
            Value::Mapping(mapping) => {
                for (key, value) in mapping {
                    let other = others.as_ref().and_then(|others| others.get(&*key));
                    *value = hidden(other.is_none_or(|other| *other == *value));
                }
            }
            value => *value = hidden(others.is_none_or(|others| others == *value)),
        }
    }
}

/// A diff that grows up to its limit.
#[derive(Default)]
pub(super) struct Limited {
    text: String,
    lines: usize,
    lines_left_out: usize,
    texts_left_out: usize,
}

impl Limited {
    /// Adds what differs between two texts.
    pub(super) fn add(&mut self, what: &str, before: &str, after: &str) {
        if before == after {
            return;
        }
        if self.lines >= LINES {
            self.texts_left_out += 1;
            return;
        }
        if before.len() + after.len() > LARGE {
            self.line(&format!("--- {what}: too large to show"));
            return;
        }
        let diff = TextDiff::configure()
            .timeout(PATIENCE)
            .diff_lines(before, after);
        let mut unified = diff.unified_diff();
        let unified = unified
            .context_radius(2)
            .header(&format!("original: {what}"), &format!("localized: {what}"))
            .to_string();
        for line in unified.lines() {
            self.line(line);
        }
    }

    fn line(&mut self, line: &str) {
        if self.lines >= LINES {
            self.lines_left_out += 1;
            return;
        }
        self.lines += 1;
        let mut characters = line.chars();
        let shown: String = characters.by_ref().take(WIDTH).collect();
        let more = if characters.next().is_some() {
            "…"
        } else {
            ""
        };
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{shown}{more}");
    }

    /// Returns the text, which ends with how much was left out.
    pub(super) fn finish(mut self) -> String {
        let counted = |count: usize, what: &str| match count {
            0 => None,
            1 => Some(format!("1 {what}")),
            count => Some(format!("{count} {what}s")),
        };
        let more: Vec<String> = [
            counted(self.lines_left_out, "more line"),
            counted(self.texts_left_out, "more object"),
        ]
        .into_iter()
        .flatten()
        .collect();
        if !more.is_empty() {
            // Writing to a string cannot fail.
            let _ = writeln!(self.text, "({} not shown)", more.join(" and "));
        }
        self.text
    }
}
