//! The objects of an output.

use std::collections::{BTreeMap, VecDeque};

use serde_yaml::Value;

/// One document of an output.
#[derive(Debug, Clone)]
pub(super) struct Object {
    /// What names it: `apps/v1 Deployment NAMESPACE/NAME`, or its place where it is none.
    pub(super) id: String,
    /// The document as it was written.
    pub(super) text: String,
    /// What it says; none if that cannot be read.
    pub(super) value: Option<Value>,
}

/// Splits what kustomize wrote into its documents.
pub(super) fn split(text: &str) -> Vec<Object> {
    let mut documents = vec![String::new()];
    for line in text.split_inclusive('\n') {
        // Nothing in an object stands at the beginning of a line like this: it would be indented or quoted.
        if line.trim_end() == "---" {
            documents.push(String::new())
        } else {
            documents
                .last_mut()
                .into_iter()
                .for_each(|document| document.push_str(line))
        }
    }
    let is_filled = |document: &String| !document.trim().is_empty();
    let documents = documents.into_iter().filter(is_filled);
    documents
        .enumerate()
        .map(|(number, text)| {
            let value: Option<Value> = if is_too_deep(&text) {
                None
            } else {
                serde_yaml::from_str(&text).ok()
            };
            let id = value.as_ref().and_then(id);
            Object {
                id: id.unwrap_or_else(|| format!("document {}", number + 1)),
                text,
                value,
            }
        })
        .collect()
}

/// Returns whether brackets are nested so deep that reading them takes too long, to be refused at last.
fn is_too_deep(text: &str) -> bool {
    const DEPTH: usize = 1_000;
    let mut depth = 0_usize;
    text.bytes().any(|byte| {
        depth = match byte {
            b'[' | b'{' => depth + 1,
            b']' | b'}' => depth.saturating_sub(1),
            _ => depth,
        };
        depth > DEPTH
    })
}

fn id(value: &Value) -> Option<String> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let kind = text(value.get("kind"))?;
    let version = text(value.get("apiVersion")).unwrap_or_default();
    let metadata = value.get("metadata");
    let name = text(metadata.and_then(|metadata| metadata.get("name"))).unwrap_or_default();
    let namespace = text(metadata.and_then(|metadata| metadata.get("namespace")));
    let namespace = namespace.map_or(String::new(), |namespace| format!("{namespace}/"));
    Some(format!("{version} {kind} {namespace}{name}"))
}

impl Object {
    /// Returns its text without these annotations; none if it cannot be read.
    pub(super) fn without(&self, names: &[&str]) -> Option<Value> {
        let mut value = self.value.clone()?;
        if names.is_empty() {
            return Some(value);
        }
        if let Some(Value::Mapping(metadata)) = value.get_mut("metadata")
            && let Some(Value::Mapping(annotations)) = metadata.get_mut("annotations")
        {
            for name in names {
                annotations.remove(*name);
            }
            if annotations.is_empty() {
                metadata.remove("annotations");
            }
        }
        Some(value)
    }

    /// Returns its text without these annotations as kustomize writes them. That values are the same is not enough:
    /// `on` and `"on"` are the same string to us, and not to everybody.
    pub(super) fn text_without(&self, names: &[&str]) -> Vec<&str> {
        let mut kept: Vec<&str> = Vec::new();
        let mut path: [&str; 2] = [""; 2];
        let mut dropping = false;
        for line in self.text.lines() {
            let indent = line.len() - line.trim_start_matches(' ').len();
            let is_deeper = line.trim().is_empty() || indent > 4;
            if dropping && is_deeper {
                continue;
            }
            dropping = false;
            let key = line.trim_start().split(':').next().unwrap_or_default();
            match indent {
                0 => path = [key, ""],
                2 => path[1] = key,
                _ => {}
            }
            let is_annotation = indent == 4 && path == ["metadata", "annotations"];
            if is_annotation && names.contains(&key) {
                dropping = true;
                continue;
            }
            if indent <= 2 {
                drop_empty(&mut kept);
            }
            kept.push(line);
        }
        drop_empty(&mut kept);
        kept
    }

    /// Returns what names it without the hash that a generator adds.
    fn stem(&self) -> &str {
        const HASH: usize = 10;
        let is_generated = self.id.contains(" ConfigMap ") || self.id.contains(" Secret ");
        match self.id.rsplit_once('-') {
            Some((stem, hash))
                if is_generated
                    && hash.len() == HASH
                    && hash.chars().all(|one| one.is_ascii_alphanumeric()) =>
            {
                stem
            }
            _ => &self.id,
        }
    }
}

/// Drops a map of annotations that nothing is left of.
fn drop_empty(lines: &mut Vec<&str>) {
    if lines.last() == Some(&"  annotations:") {
        lines.pop();
    }
}

/// Pairs the objects of the two outputs: by name, else by name without a generator's hash. In the order of the first,
/// then those that only the second has.
pub(super) fn pairs<'a>(
    before: &'a [Object],
    after: &'a [Object],
) -> Vec<(Option<&'a Object>, Option<&'a Object>)> {
    let mut partners: Vec<Option<usize>> = vec![None; before.len()];
    let mut taken = vec![false; after.len()];
    let names: [fn(&Object) -> &str; 2] = [|object| &object.id, Object::stem];
    for name in names {
        let mut free: BTreeMap<&str, VecDeque<usize>> = BTreeMap::new();
        for (number, object) in after.iter().enumerate() {
            if !taken[number] {
                free.entry(name(object)).or_default().push_back(number);
            }
        }
        for (number, object) in before.iter().enumerate() {
            if partners[number].is_none()
                && let Some(partner) = free.get_mut(name(object)).and_then(VecDeque::pop_front)
            {
                partners[number] = Some(partner);
                taken[partner] = true;
            }
        }
    }
    let first = before.iter().zip(&partners);
    let first = first.map(|(object, partner)| (Some(object), partner.map(|other| &after[other])));
    let rest = after.iter().zip(&taken).filter(|(_, taken)| !**taken);
    first
        .chain(rest.map(|(object, _)| (None, Some(object))))
        .collect()
}
