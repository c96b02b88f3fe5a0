//! What a `ResourceSet` makes, where its inputs stand in it.

use super::super::Unread;
use super::super::scan::Document;
use super::super::{Build, Engine, Place, Target};
use super::{made, wrong};
use crate::kustomization::{Data, Value, documents, read_object};

/// How many objects are made of one set.
const MOST: usize = 1000;
/// The longest template that is filled in, in bytes.
const LONGEST: usize = 100_000;

/// Adds the objects that a set makes; those that only the cluster can make become templated targets.
pub(super) fn expand(
    set: &Document,
    objects: &mut Vec<Document>,
    templated: &mut Vec<Target>,
    unread: &mut Vec<Unread>,
) {
    let Some(spec) = set.value.get("spec") else {
        return;
    };
    let steps = spec.get("steps").and_then(Value::list).unwrap_or_default();
    let inputs = inputs(set, spec, unread);
    let mut made = Made {
        set,
        inputs: inputs.as_deref(),
        count: 0,
        objects,
        templated,
        unread,
    };
    for part in std::iter::once(spec).chain(steps) {
        for resource in part
            .get("resources")
            .and_then(Value::list)
            .unwrap_or_default()
        {
            made.resource(resource);
        }
        if let Some(template) = part.get("resourcesTemplate") {
            match template.text() {
                Some(text) => made.template(text),
                None => wrong(
                    set,
                    template,
                    &["spec", "resourcesTemplate"],
                    "a text",
                    made.unread,
                ),
            }
        }
    }
}

/// Returns the inputs; none where not all of them stand in the set.
fn inputs(set: &Document, spec: &Value, unread: &mut Vec<Unread>) -> Option<Vec<Value>> {
    let strategy = spec.get("inputStrategy").and_then(|one| one.get("name"));
    let is_flat = strategy.is_none_or(|name| name.text() == Some("Flatten"));
    if spec.get("inputsFrom").is_some() || !is_flat {
        return None;
    }
    match spec.get("inputs") {
        None => Some(Vec::new()),
        Some(value) => match value.list() {
            Some(items) => Some(items.to_vec()),
            None => {
                wrong(set, value, &["spec", "inputs"], "a list", unread);
                None
            }
        },
    }
}

struct Made<'a> {
    set: &'a Document,
    /// None where they are not known.
    inputs: Option<&'a [Value]>,
    count: usize,
    objects: &'a mut Vec<Document>,
    templated: &'a mut Vec<Target>,
    unread: &'a mut Vec<Unread>,
}

impl Made<'_> {
    fn resource(&mut self, resource: &Value) {
        let is_fixed = !resource.json().to_string().contains("<<");
        let none = [Value {
            line: resource.line,
            column: resource.column,
            data: Data::Null,
        }];
        let inputs = match self.inputs {
            // The same for each.
            _ if is_fixed => &none[..],
            Some(inputs) => inputs,
            None => return self.unknown(resource, "its inputs come from the cluster"),
        };
        for input in inputs {
            let mut is_whole = true;
            let filled = resource.map_texts(&mut |text| {
                let filled = fill(text, input);
                is_whole &= filled.is_some();
                filled.unwrap_or_else(|| text.to_owned())
            });
            if !is_whole {
                return self.unknown(resource, "its template is more than `<< inputs.NAME >>`");
            }
            self.add(filled, resource.line);
        }
    }

    fn template(&mut self, text: &str) {
        let found = self.set;
        if !super::super::scan::may_matter(text.as_bytes()) {
            return;
        }
        let Some(inputs) = self.inputs else {
            return self.unknown(&found.value, "its inputs come from the cluster");
        };
        let none = [found.value.clone()];
        let inputs = if inputs.is_empty() { &none[..] } else { inputs };
        for input in inputs {
            let Some(filled) = fill(text, input).filter(|text| text.len() <= LONGEST) else {
                return self.unknown(
                    &found.value,
                    "its template is more than `<< inputs.NAME >>`",
                );
            };
            for (_, document) in documents(&filled) {
                match read_object(document, 0) {
                    Ok(Some(value)) => self.add(value, found.object.line),
                    Ok(None) => {}
                    Err((_, message)) => self.unread.push(Unread::wrong(
                        &found.object.file,
                        found.object.line,
                        format!(
                            "what ResourceSet {} makes is {message}",
                            found.object.full_name()
                        ),
                    )),
                }
            }
        }
    }

    fn add(&mut self, value: Value, line: usize) {
        self.count += 1;
        if self.count > MOST {
            if self.count == MOST + 1 {
                self.unread.push(Unread::too_much(
                    &self.set.object.file,
                    self.set.object.line,
                    format!(
                        "ResourceSet {} makes more than {MOST} objects: the rest is not read",
                        self.set.object.full_name()
                    ),
                ));
            }
            return;
        }
        let Some(mut found) = made(self.set, value) else {
            return;
        };
        found.object.line = line;
        if found.object.namespace.is_empty() {
            found
                .object
                .namespace
                .clone_from(&self.set.object.namespace);
        }
        self.objects.push(found);
    }

    /// Names something that only the cluster can make.
    fn unknown(&mut self, value: &Value, why: &str) {
        let is_target = value.get("kind").and_then(Value::text);
        if !matches!(
            is_target,
            Some(
                "Kustomization" | "FluxInstance" | "ResourceSet" | "Application" | "ApplicationSet"
            )
        ) {
            return;
        }
        let (spot, place) = ((value.line, value.column), Place::Templated(why.to_owned()));
        let mut target = self.set.target(Engine::Flux, spot, place, Build::default());
        target.object.line = value.line;
        self.templated.push(target);
    }
}

/// Replaces each `<< inputs.NAME >>` by what the input holds; none where there is any other template.
fn fill(text: &str, input: &Value) -> Option<String> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("<<") {
        let (inside, after) = after.split_once(">>")?;
        let keys = inside.trim().strip_prefix("inputs.")?;
        let is_name = |key: &str| {
            let mut bytes = key.bytes();
            !key.is_empty() && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        let keys: Vec<&str> = keys.split('.').collect();
        if !keys.iter().all(|key| is_name(key)) {
            return None;
        }
        filled.push_str(before);
        filled.push_str(&input.at(&keys)?.scalar()?);
        rest = after;
    }
    filled.push_str(rest);
    Some(filled)
}
