//! The objects of an output: how they are compared, and how they are shown.

use std::collections::{BTreeMap, VecDeque};

use serde_yaml::Value;

use crate::record::sha256_hex;

/// The annotations of `buildMetadata`, which name paths of what is built.
const ABOUT_BUILD: [&str; 2] = ["config.kubernetes.io/origin", "alpha.config.kubernetes.io/transformations"];
/// The fields of a Secret whose values are never shown.
const SECRET: [&str; 2] = ["data", "stringData"];
/// Where `kubectl apply` keeps all that it was given.
const APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

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
            documents.last_mut().into_iter().for_each(|document| document.push_str(line))
        }
    }
    let is_filled = |document: &String| !document.trim().is_empty();
    let documents = documents.into_iter().filter(is_filled);
    documents
        .enumerate()
        .map(|(number, text)| {
            let value: Option<Value> = if is_too_deep(&text) { None } else { serde_yaml::from_str(&text).ok() };
            let id = value.as_ref().and_then(id);
            Object { id: id.unwrap_or_else(|| format!("document {}", number + 1)), text, value }
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
    /// Returns its lines without the annotations about the build. That values are the same is not enough: `on` and
    /// `"on"` are the same string to us, and not to everybody.
    pub(super) fn compared(&self) -> Vec<&str> {
        let mut kept: Vec<&str> = Vec::new();
        let mut path: [&str; 2] = [""; 2];
        let (mut dropping, mut dropped) = (false, false);
        for line in self.text.lines().chain(["..."]) {
            let indent = line.len() - line.trim_start_matches(' ').len();
            let is_deeper = line.trim().is_empty() || indent > 4;
            if dropping && is_deeper {
                continue;
            }
            let key = line.trim_start().split(':').next().unwrap_or_default();
            match indent {
                0 => path = [key, ""],
                2 => path[1] = key,
                _ => {}
            }
            let is_annotation = indent == 4 && path == ["metadata", "annotations"];
            dropping = is_annotation && ABOUT_BUILD.contains(&key);
            dropped |= dropping;
            if dropping {
                continue;
            }
            // Nothing is left of the annotations.
            if indent <= 2 && std::mem::take(&mut dropped) && kept.last() == Some(&"  annotations:") {
                kept.pop();
            }
            kept.push(line);
        }
        kept
    }

    /// Returns its text without what a Secret in it holds, at any depth: a list may hold one.
    pub(super) fn shown(&self) -> String {
        let Some(mut value) = self.value.clone() else {
            let digest = digest(self.text.as_bytes());
            return format!("(not shown, because it cannot be read: {digest})\n");
        };
        if mask(&mut value) {
            serde_yaml::to_string(&value).unwrap_or_else(|_| format!("{}\n", self.id))
        } else {
            self.text.clone()
        }
    }

    /// Returns what names it without the hash that a generator adds.
    fn stem(&self) -> &str {
        const HASH: usize = 10;
        let is_generated = self.id.contains(" ConfigMap ") || self.id.contains(" Secret ");
        match self.id.rsplit_once('-') {
            Some((stem, hash))
                if is_generated && hash.len() == HASH && hash.chars().all(|one| one.is_ascii_alphanumeric()) =>
            {
                stem
            }
            _ => &self.id,
        }
    }
}

/// Masks the values of Secrets, and returns whether there was one.
fn mask(value: &mut Value) -> bool {
    match untagged(value) {
        Value::Sequence(items) => items.iter_mut().fold(false, |any, item| mask(item) | any),
        Value::Mapping(object) if object.get("kind").and_then(Value::as_str) == Some("Secret") => {
            for field in SECRET {
                match object.get_mut(field).map(untagged) {
                    Some(Value::Mapping(values)) => values.values_mut().for_each(hide),
                    Some(value) => hide(value),
                    None => {}
                }
            }
            let metadata = object.get_mut("metadata").map(untagged);
            let annotations = metadata.and_then(|metadata| metadata.get_mut("annotations"));
            let applied = annotations.and_then(|annotations| untagged(annotations).get_mut(APPLIED));
            applied.into_iter().for_each(hide);
            true
        }
        Value::Mapping(object) => object.values_mut().fold(false, |any, value| mask(value) | any),
        _ => false,
    }
}

fn untagged(mut value: &mut Value) -> &mut Value {
    while let Value::Tagged(tagged) = value {
        value = &mut tagged.value;
    }
    value
}

fn hide(value: &mut Value) {
    let text = match &*value {
        Value::String(text) => text.clone(),
        other => serde_yaml::to_string(other).unwrap_or_default(),
    };
    *value = format!("… ({})", digest(text.as_bytes())).into();
}

/// Returns what two values can be told apart by, without what they are.
fn digest(bytes: &[u8]) -> String {
    const DIGITS: usize = 8;
    format!("{} bytes, sha256 {}…", bytes.len(), &sha256_hex(bytes)[..DIGITS])
}

/// Pairs the objects of the two outputs: by name, else by name without a generator's hash. In the order of the first,
/// then those that only the second has.
pub(super) fn pairs<'a>(before: &'a [Object], after: &'a [Object]) -> Vec<(Option<&'a Object>, Option<&'a Object>)> {
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
    first.chain(rest.map(|(object, _)| (None, Some(object)))).collect()
}
