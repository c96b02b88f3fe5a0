//! What two outputs have in common, and where they differ.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use serde::Serialize;
use serde_yaml::Value;
use similar::TextDiff;

/// What comparing says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub(crate) enum Verdict {
    /// The same bytes, but for the annotations of `buildMetadata`: they name the paths of what was built.
    Identical,
    /// It was the same when an earlier run built it from the same inputs.
    VerifiedBefore,
    /// Not the same.
    Differs(Difference),
    /// Not the same, but the original is not even the same as itself.
    Unsteady(Difference),
    /// The original builds, and the result does not.
    Broken {
        /// What was said.
        reason: String,
    },
    /// The original does not build, or not as a whole.
    NotBuilt {
        /// Why.
        reason: String,
    },
    /// It was not built: something that it needs stays remote, or may be missing.
    Skipped {
        /// What that is.
        reason: String,
    },
}

impl Verdict {
    /// Returns whether the result is as good as the original.
    pub(crate) fn is_same(&self) -> bool {
        matches!(self, Verdict::Identical | Verdict::VerifiedBefore)
    }

    /// Returns whether the result must not be used.
    pub(crate) fn differs(&self) -> bool {
        matches!(self, Verdict::Differs(_) | Verdict::Unsteady(_) | Verdict::Broken { .. })
    }
}

/// How two outputs differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Difference {
    /// The objects that are not the same, in the order of the outputs; none where only the order differs.
    pub objects: Vec<ObjectChange>,
    /// The changed lines, limited in length. Of Secrets only the keys that differ are named.
    pub diff: String,
}

/// One object that is not the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct ObjectChange {
    /// What names it: `apps/v1 Deployment NAMESPACE/NAME`.
    pub id: String,
    /// What happened to it: `added`, `removed` or `changed`.
    pub change: &'static str,
}

/// Compares what the original and the result build to.
pub(crate) fn compare(original: &[u8], localized: &[u8]) -> Verdict {
    if original == localized {
        return Verdict::Identical;
    }
    let is_text = str::from_utf8(original).is_ok() && str::from_utf8(localized).is_ok();
    let (before, after) = (split(original), split(localized));
    if is_text && before.iter().map(|one| &one.text).eq(after.iter().map(|one| &one.text)) {
        return Verdict::Identical;
    }
    let (removed, added) = (without(&before, &after), without(&after, &before));
    let names = |objects: &[&Object]| objects.iter().map(|one| one.stem().to_owned()).collect::<BTreeSet<_>>();
    let (gone, new) = (names(&removed), names(&added));
    let change = |one: &Object, change| ObjectChange { id: one.id.clone(), change };
    let is_new = |one: &&&Object| !gone.contains(one.stem());
    let mut objects: Vec<ObjectChange> =
        removed.iter().map(|one| change(one, if new.contains(one.stem()) { "changed" } else { "removed" })).collect();
    objects.extend(added.iter().filter(is_new).map(|one| change(one, "added")));
    let diff = if objects.is_empty() {
        let ids = |objects: &[Object]| objects.iter().map(|one| format!("{}\n", one.id)).collect::<String>();
        diff(&ids(&before), &ids(&after), "")
    } else {
        let text = |objects: &[&Object]| {
            let shown = objects.iter().filter(|one| !one.may_hold_secret());
            shown.map(|one| one.text.as_str()).collect::<Vec<_>>().join("---\n")
        };
        diff(&text(&removed), &text(&added), &secrets(&removed, &added))
    };
    Verdict::Differs(Difference { objects, diff })
}

/// Returns a line for each object that may hold a Secret, with the keys that differ.
fn secrets(removed: &[&Object], added: &[&Object]) -> String {
    let mut keys: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (objects, others) in [(removed, added), (added, removed)] {
        for one in objects.iter().filter(|one| one.may_hold_secret()) {
            let other = others.iter().find(|other| other.stem() == one.stem());
            let other = other.map(|other| other.secret_values()).unwrap_or_default();
            let values = one.secret_values().into_iter();
            let differing = values.filter(|(key, value)| other.get(key) != Some(value));
            keys.entry(one.stem()).or_default().extend(differing.map(|(key, _)| key));
        }
    }
    let line = |(name, keys): (&str, BTreeSet<String>)| {
        let keys = Vec::from_iter(keys).join(", ");
        format!("{name}: not shown, as it may hold a Secret; differs in: {keys}\n")
    };
    keys.into_iter().map(line).collect()
}

/// Returns the objects that are not among others, each as often as it is there more often.
fn without<'a>(objects: &'a [Object], others: &[Object]) -> Vec<&'a Object> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for other in others {
        *counts.entry(&other.text).or_default() += 1;
    }
    let is_other = |one: &&Object| match counts.get_mut(one.text.as_str()) {
        Some(count @ 1..) => {
            *count -= 1;
            false
        }
        _ => true,
    };
    objects.iter().filter(is_other).collect()
}

/// Returns the lines that differ, for a person to read, and `more`.
fn diff(before: &str, after: &str, more: &str) -> String {
    /// How many lines are shown at most.
    const LINES: usize = 100;
    /// How many characters of a line are shown at most.
    const WIDTH: usize = 200;
    /// How much text is compared line by line at most, in bytes: beyond that it takes too long.
    const LARGE: usize = 1 << 20;
    /// How long lines are compared: after that the diff is right, and longer than it has to be.
    const PATIENCE: Duration = Duration::from_millis(500);
    let lines = if before.len() + after.len() > LARGE {
        "too large to show\n".to_owned()
    } else {
        let diff = TextDiff::configure().timeout(PATIENCE).diff_lines(before, after);
        diff.unified_diff().context_radius(3).header("original", "localized").to_string()
    };
    let text = lines + more;
    let cut = |line: &str| match line.char_indices().nth(WIDTH) {
        Some((end, _)) => format!("{}…\n", &line[..end]),
        None => format!("{line}\n"),
    };
    let shown: String = text.lines().take(LINES).map(cut).collect();
    match text.lines().count().saturating_sub(LINES) {
        0 => shown,
        1 => format!("{shown}(1 more line not shown)\n"),
        more => format!("{shown}({more} more lines not shown)\n"),
    }
}

/// One document of an output.
struct Object {
    /// What names it: `apps/v1 Deployment NAMESPACE/NAME`, or its place where it is none.
    id: String,
    /// The document as it was written, without the annotations of `buildMetadata`.
    text: String,
    /// What it says; none if that cannot be read.
    value: Option<Value>,
}

/// Splits what kustomize wrote into its documents.
fn split(output: &[u8]) -> Vec<Object> {
    let output = String::from_utf8_lossy(output);
    let mut documents = vec![String::new()];
    for line in output.split_inclusive('\n') {
        // Nothing in an object stands at the beginning of a line like this: it would be indented or quoted.
        if line.trim_end() == "---" {
            documents.push(String::new())
        } else {
            documents.last_mut().into_iter().for_each(|document| document.push_str(line))
        }
    }
    documents.retain(|document| !document.trim().is_empty());
    documents.iter().enumerate().map(|(number, document)| Object::read(number, document)).collect()
}

impl Object {
    fn read(number: usize, document: &str) -> Object {
        let text = without_build_metadata(document);
        let value: Option<Value> = serde_yaml::from_str(&text).ok();
        let id = value.as_ref().and_then(id);
        Object { id: id.unwrap_or_else(|| format!("document {}", number + 1)), text, value }
    }

    fn may_hold_secret(&self) -> bool {
        self.value.as_ref().is_none_or(holds_secret)
    }

    /// Returns the values of a Secret by their keys.
    fn secret_values(&self) -> BTreeMap<String, Value> {
        let value = self.value.iter();
        let fields = value.flat_map(|value| ["data", "stringData"].map(|field| (field, value.get(field))));
        let values = fields.flat_map(|(field, values)| {
            let values = values.and_then(Value::as_mapping).into_iter().flatten();
            values.filter_map(move |(key, value)| Some((format!("{field}.{}", key.as_str()?), value.clone())))
        });
        values.collect()
    }

    /// Returns what names it without the hash that a generator adds.
    fn stem(&self) -> &str {
        const HASH: usize = 10;
        let is_generated = self.id.contains(" ConfigMap ") || self.id.contains(" Secret ");
        let is_hash = |text: &str| text.len() == HASH && text.chars().all(|one| one.is_ascii_alphanumeric());
        match self.id.rsplit_once('-') {
            Some((stem, hash)) if is_generated && is_hash(hash) => stem,
            _ => &self.id,
        }
    }
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

/// Returns whether something is a Secret, or holds one at any depth, as a list may.
fn holds_secret(value: &Value) -> bool {
    match value {
        Value::Sequence(items) => items.iter().any(holds_secret),
        Value::Mapping(object) => {
            object.get("kind").and_then(Value::as_str) == Some("Secret") || object.values().any(holds_secret)
        }
        Value::Tagged(tagged) => holds_secret(&tagged.value),
        _ => false,
    }
}

/// Returns an object without the annotations of `buildMetadata`, which name paths of what is built. By its lines: that
/// values are the same is not enough, `on` and `"on"` are the same string to us, and not to everybody.
fn without_build_metadata(document: &str) -> String {
    const ABOUT_BUILD: [&str; 2] =
        ["    config.kubernetes.io/origin:", "    alpha.config.kubernetes.io/transformations:"];
    let (mut kept, mut above, mut is_about_build) = (String::new(), ["", ""], false);
    for line in document.split_inclusive('\n') {
        match line.find(|one| one != ' ') {
            Some(0) if line.trim().is_empty() => {}
            Some(0) => (above, is_about_build) = ([line, ""], false),
            Some(2) => (above[1], is_about_build) = (line, false),
            Some(4) => {
                let is_annotation = above == ["metadata:\n", "  annotations:\n"];
                is_about_build = is_annotation && ABOUT_BUILD.iter().any(|name| line.starts_with(name));
            }
            _ => {}
        }
        if !is_about_build {
            kept.push_str(line);
        }
    }
    kept
}

#[cfg(test)]
mod tests;
