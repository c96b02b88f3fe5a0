//! The difference of two outputs.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::Hash;
use std::time::Duration;

use serde::Serialize;
use serde_yaml::{Mapping, Value};
use similar::TextDiff;

use super::secrets;
use crate::kustomization;
use crate::message::redact::visible_with_marks;
use crate::record::sha256_hex;
use crate::targets::affected::{DiffStatus, Sides};
use crate::targets::policy::{full_name, text};

/// The result of comparing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub(crate) enum Verdict {
    /// The same bytes, but for the annotations of `buildMetadata`: they name paths of the built files.
    Identical,
    /// It is built from the same files as before, and asks for nothing.
    Unchanged,
    /// It was the same when an earlier run built it from the same inputs.
    VerifiedBefore,
    /// Not the same.
    Differs(OutputDifference),
    /// Not the same, but the original is not even the same as itself.
    Unsteady(OutputDifference),
    /// The original builds, and the result does not.
    Broken {
        /// The message of the program.
        reason: String,
    },
    /// The original does not build, or not as a whole.
    NotBuilt {
        /// Why.
        reason: String,
    },
    /// A build asks for or reads something that no reference names: rule `unread-reference`.
    Unread {
        /// Its requests, without secrets.
        messages: BTreeSet<String>,
    },
    /// It was not built: something that it needs stays remote, or may be missing.
    Skipped {
        /// The reason why it was not built.
        reason: String,
    },
}

impl Verdict {
    /// Whether the result is as good as the original.
    pub(crate) fn is_same(&self) -> bool {
        matches!(self, Verdict::Identical | Verdict::Unchanged | Verdict::VerifiedBefore)
    }

    /// Whether the result must not be used.
    pub(crate) fn differs(&self) -> bool {
        matches!(self, Verdict::Differs(_) | Verdict::Unsteady(_) | Verdict::Broken { .. })
    }
}

/// The difference of two outputs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct OutputDifference {
    /// The objects that differ; empty if only the order does.
    pub objects: Vec<ObjectChange>,
    /// The changed lines, limited in length.
    pub diff: String,
}

/// One object that is not the same.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize)]
pub(crate) struct ObjectChange {
    /// Its identity: `apps/v1 Deployment NAMESPACE/NAME`.
    pub id: String,
    /// Its identity before, if that was another: another version, another hash of a generator, a
    /// namespace that it had without saying it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub was: Option<String>,
    pub change: DiffStatus,
    /// The lines that differ, as they can be shown: values of Secrets as sizes and digests.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub diff: String,
    /// The old and the new object, with all values: large ones as [digests](condensed).
    #[serde(skip)]
    pub values: Sides<Option<Value>>,
}

impl ObjectChange {
    /// A key that is equal for objects that differ alike.
    pub(crate) fn alike(&self) -> impl Eq + Hash {
        // Only changed lines count, wherever they stand in the object.
        let lines: Vec<&str> = self.diff.lines().filter(|line| line.starts_with(['-', '+'])).collect();
        // If no line is shown, the values tell the objects apart.
        let values = lines.is_empty().then_some(&self.values);
        (&self.id, &self.was, self.change, lines, values)
    }

    /// The lines that differ, or their number if they are too many for a terminal.
    pub(crate) fn shown(&self) -> Cow<'_, str> {
        // How much is shown, in bytes.
        const LARGE: usize = 1 << 20;
        match self.diff.len() {
            ..=LARGE => Cow::Borrowed(&self.diff),
            _ => Cow::Owned(format!("too large to show: {} (`--format html` shows all)\n", self.counts())),
        }
    }

    /// The numbers of changed lines, in words.
    pub(crate) fn counts(&self) -> String {
        let [removed, added] = ['-', '+'].map(|sign| self.diff.lines().filter(|line| line.starts_with(sign)).count());
        format!("{removed} {} removed, {added} added", if removed == 1 { "line" } else { "lines" })
    }
}

/// Compares the outputs of original and result.
pub(crate) fn compare(original: &[u8], localized: &[u8]) -> Verdict {
    if original == localized {
        return Verdict::Identical;
    }
    // Two texts that differ only in the annotations of `buildMetadata` are the same. Bytes that are not text cannot be
    // read for these annotations, so they differ.
    let is_text = str::from_utf8(original).is_ok() && str::from_utf8(localized).is_ok();
    let [original, localized] = [original, localized].map(String::from_utf8_lossy);
    let [before, after] = [document_texts(&original), document_texts(&localized)];
    if is_text && before == after {
        return Verdict::Identical;
    }
    let mut objects = changed_objects(&before, &after, Sides::default());
    // If no object differs, the order does, or bytes that are not text and that `from_utf8_lossy` made equal.
    let diff = if objects.is_empty() {
        diff(&ids(&before), &ids(&after))
    } else {
        objects.iter_mut().map(|object| format!("{}:\n{}", object.id, std::mem::take(&mut object.diff))).collect()
    };
    Verdict::Differs(OutputDifference { objects, diff: limited(&diff) })
}

/// The identities of objects, one on each line.
fn ids(texts: &[DocumentText<'_>]) -> String {
    OutputObject::read(texts.iter()).map(|object| object.id + "\n").collect::<String>()
}

/// The objects of two outputs that differ, at any position. An object without a namespace may be in the namespace of
/// its side, unless that is empty.
pub(crate) fn changes(outputs: Sides<&[u8]>, namespaces: Sides<&str>) -> Vec<ObjectChange> {
    if outputs.old == outputs.new {
        return Vec::new();
    }
    let Sides { old, new } = outputs.map(String::from_utf8_lossy);
    changed_objects(&document_texts(&old), &document_texts(&new), namespaces)
}

/// The objects that differ between the documents of two outputs.
fn changed_objects(
    before: &[DocumentText<'_>],
    after: &[DocumentText<'_>],
    namespaces: Sides<&str>,
) -> Vec<ObjectChange> {
    // Only documents that the other side lacks are parsed: of a large output these are few.
    let differing = Sides {
        old: OutputObject::read(documents_without(before, after)).collect(),
        new: OutputObject::read(documents_without(after, before)).collect(),
    };
    let mut all = Vec::new();
    // The namespaces come second: an object that is written without one may be of a kind that has none.
    let unpaired = pair_objects(differing, Sides::default(), &mut all);
    let Sides { old, new } = pair_objects(unpaired, namespaces, &mut all);
    all.extend(old.into_iter().map(|old| object_change(Sides { old: Some(old), new: None })));
    all.extend(new.into_iter().map(|new| object_change(Sides { old: None, new: Some(new) })));
    // Added, removed and changed objects are listed together, by their identities.
    all.sort_by_cached_key(|change| identity_key(&change.id));
    all
}

/// Adds the changes of the objects that have one [`identity_key`] on both sides, and returns the other objects. An
/// object without a namespace gets that of its side.
fn pair_objects<'a>(
    objects: Sides<Vec<OutputObject<'a>>>,
    namespaces: Sides<&str>,
    changes: &mut Vec<ObjectChange>,
) -> Sides<Vec<OutputObject<'a>>> {
    let mut by_key: BTreeMap<String, Sides<Vec<OutputObject<'_>>>> = BTreeMap::new();
    for object in objects.old {
        by_key.entry(in_namespace(identity_key(&object.id), namespaces.old)).or_default().old.push(object);
    }
    for object in objects.new {
        by_key.entry(in_namespace(identity_key(&object.id), namespaces.new)).or_default().new.push(object);
    }
    let mut unpaired: Sides<Vec<OutputObject<'_>>> = Sides::default();
    for Sides { mut old, mut new } in by_key.into_values() {
        // If several differ only in hash or version, pair those of the same name first.
        old.sort_by_key(|old| !new.iter().any(|new| new.id == old.id));
        for old in old {
            if new.is_empty() {
                unpaired.old.push(old);
                continue;
            }
            let partner = new.iter().position(|new| new.id == old.id).unwrap_or(0);
            changes.push(object_change(Sides { old: Some(old), new: Some(new.remove(partner)) }));
        }
        unpaired.new.extend(new);
    }
    unpaired
}

/// The change of an object; `None` on a side that lacks it.
fn object_change(objects: Sides<Option<OutputObject<'_>>>) -> ObjectChange {
    let Sides { old, new } = objects.as_ref().map(Option::as_ref);
    let status = match (old, new) {
        (Some(_), Some(_)) => DiffStatus::Changed,
        (Some(_), None) => DiffStatus::Removed,
        (None, _) => DiffStatus::Added,
    };
    let id = new.or(old).map_or(String::new(), |named| named.id.clone());
    let was = old.map(|old| old.id.clone()).filter(|was| *was != id);
    let [before, after] = [old, new].map(|object| object.map_or("", OutputObject::shown));
    let diff = match diff(before, after) {
        // Values of Secrets may have equal masks, and lines may be equal without their hidden parts.
        diff if diff.is_empty() => "the difference is hidden: it may be in a Secret\n".to_owned(),
        diff => diff,
    };
    ObjectChange { id, was, change: status, diff, values: objects.map(|object| object?.value) }
}

/// The documents that `others` lacks, with multiplicity: a document that is in `texts` twice and in `others` once is
/// returned once.
fn documents_without<'a>(
    texts: &'a [DocumentText<'a>],
    others: &'a [DocumentText<'a>],
) -> impl Iterator<Item = &'a DocumentText<'a>> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for other in others {
        *counts.entry(&other.text).or_default() += 1;
    }
    texts.iter().filter(move |text| match counts.get_mut(&*text.text) {
        Some(count @ 1..) => {
            *count -= 1;
            false
        }
        _ => true,
    })
}

/// The lines that differ, in unified format and without secrets. An added line that is shown as a removed one, because
/// they differ only in what is hidden, says so.
fn diff(before: &str, after: &str) -> String {
    // The time after which lines are no longer compared: the diff is then right, but longer than it has to be.
    const PATIENCE: Duration = Duration::from_millis(500);
    let diff = TextDiff::configure().timeout(PATIENCE).diff_lines(before, after);
    let text = diff.unified_diff().context_radius(3).missing_newline_hint(false).to_string();
    let removed: HashSet<&str> = text.lines().filter_map(|line| line.strip_prefix('-')).collect();
    let removed_as_shown: HashSet<String> = removed.iter().map(|line| visible_with_marks(line)).collect();
    let shown = |line: &str| {
        let text = visible_with_marks(line);
        let added = line.strip_prefix('+').filter(|added| !removed.contains(added));
        let is_same = added.is_some_and(|added| removed_as_shown.contains(&visible_with_marks(added)));
        text + if is_same { "  (differs in the hidden part)\n" } else { "\n" }
    };
    text.lines().map(shown).collect()
}

/// The beginning of the diffs of all objects, short enough for a report: the first lines, and of each long line the
/// part that differs.
fn limited(diff: &str) -> String {
    // How many lines are shown at most.
    const LINES: usize = 100;
    let lines: Vec<&str> = diff.lines().take(LINES).collect();
    let is_same_run =
        |line: &&str, next: &&str| line.get(..1) == next.get(..1) || line.starts_with('-') && next.starts_with('+');
    let mut shown = String::new();
    // In a run of removed and added lines, the n-th removed and the n-th added line are a pair: a long one is shown
    // around their first difference. Other lines have no partner.
    for run in lines.chunk_by(is_same_run) {
        let (old, new) = run.split_at(run.partition_point(|line| line.starts_with('-')));
        let removed = old.iter().enumerate().map(|(number, line)| (line, new.get(number)));
        let added = new.iter().enumerate().map(|(number, line)| (line, old.get(number)));
        removed.chain(added).for_each(|(line, other)| shown += &excerpt(line, other));
    }
    match diff.lines().count().saturating_sub(LINES) {
        0 => shown,
        1 => format!("{shown}(1 more line not shown)\n"),
        more => format!("{shown}({more} more lines not shown)\n"),
    }
}

/// A line of a diff; if it is too long, the part around its first difference from the other line of the pair, or its
/// beginning if there is no such line.
fn excerpt(line: &str, other: Option<&&str>) -> String {
    // How many characters of a line are shown at most.
    const WIDTH: usize = 200;
    // How many of the characters before the difference are shown.
    const SAME: usize = 40;
    // The first character is the mark of the diff.
    let chars = || line.chars().skip(1);
    let same = other
        .map_or(0, |other| chars().zip(other.chars().skip(1)).take_while(|(letter, other)| letter == other).count());
    let count = chars().count();
    if count < WIDTH {
        return format!("{line}\n");
    }
    let start = if same < WIDTH - SAME { 0 } else { same - SAME };
    let [before, after] = [start > 0, count - start > WIDTH].map(|is_cut| if is_cut { "…" } else { "" });
    let shown: String = chars().skip(start).take(WIDTH).collect();
    let mark: String = line.chars().take(1).collect();
    format!("{mark}{before}{shown}{after}\n")
}

/// One document of an output.
struct DocumentText<'a> {
    /// The number of documents before it.
    number: usize,
    /// Without the annotations of `buildMetadata`.
    text: Cow<'a, str>,
}

impl PartialEq for DocumentText<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

/// A document that was read.
struct OutputObject<'a> {
    /// Its identity: `apps/v1 Deployment NAMESPACE/NAME`; for a document that is not an object, its place.
    id: String,
    text: &'a str,
    /// The same without values of Secrets; `None` if it has none.
    masked: Option<String>,
    /// Its fields, in short; `None` if they cannot be read.
    value: Option<Value>,
}

/// The documents of an output, without the annotations of `buildMetadata`.
fn document_texts(output: &str) -> Vec<DocumentText<'_>> {
    let documents = documents(output).enumerate();
    documents.map(|(number, document)| DocumentText { number, text: without_build_metadata(document) }).collect()
}

/// The documents of an output, without the lines that separate them. Empty ones are skipped.
pub(super) fn documents(output: &str) -> impl Iterator<Item = &str> {
    let documents = kustomization::documents(output).map(|document| match document.text.split_once('\n') {
        Some((separator, content)) if separator.trim_end() == "---" => content,
        None if document.text.trim_end() == "---" => "",
        _ => document.text,
    });
    documents.filter(|document| !document.trim().is_empty())
}

impl<'a> OutputObject<'a> {
    /// Reads documents as objects, with the texts and values that may be shown and compared.
    fn read(texts: impl Iterator<Item = &'a DocumentText<'a>>) -> impl Iterator<Item = OutputObject<'a>> {
        texts.map(|DocumentText { number, text }| {
            // A document that is not YAML is named by its number. It is never shown, because it may be a Secret.
            let value: Option<Value> = serde_yaml::from_str(text).ok();
            let id = value.as_ref().and_then(id).unwrap_or_else(|| format!("document {}", number + 1));
            let masked = value.clone().filter(|_| secrets::may_hold(text.as_bytes())).and_then(|mut value| {
                let has_secret = secrets::each_value(&mut value, &mut mask);
                has_secret.then(|| serde_yaml::to_string(&value).unwrap_or_default())
            });
            OutputObject { id, text, masked, value: value.map(condensed) }
        })
    }

    /// The text as it is shown: values of Secrets are masked.
    fn shown(&self) -> &str {
        match (&self.value, &self.masked) {
            (None, _) => "(invalid YAML: it may contain a Secret)\n",
            (_, Some(masked)) => masked,
            _ => self.text,
        }
    }
}

/// A value with digests in the place of large texts that nobody looks into.
pub(super) fn condensed(value: Value) -> Value {
    // The differences of all builds are in memory together.
    const LONG: usize = 1000;
    match value {
        Value::String(text) if text.len() > LONG => digest_of(&text),
        Value::Sequence(items) => Value::Sequence(items.into_iter().map(condensed).collect()),
        Value::Mapping(fields) => Value::Mapping(fields.into_iter().map(condensed_field).collect()),
        other => other,
    }
}

/// A field with its value condensed.
fn condensed_field((key, value): (Value, Value)) -> (Value, Value) {
    const SCHEMA: &str = "openAPIV3Schema";
    match key.as_str() {
        // A schema is outlined, because a lost field in it is a consequence.
        Some(SCHEMA) => {
            let digest = digest_of(&serde_yaml::to_string(&value).unwrap_or_default());
            let mut names = outline(&value);
            names.insert("digest".into(), digest);
            (key, Value::Mapping(names))
        }
        _ => (key, condensed(value)),
    }
}

/// The digest that stands for a large text.
fn digest_of(text: &str) -> Value {
    Value::String(sha256_hex(text.as_bytes()))
}

/// The names of the fields of a schema, nested as in the schema: all that `removed_fields` of
/// `consequences` reads.
fn outline(schema: &Value) -> Mapping {
    const KEEPS: &str = "x-kubernetes-preserve-unknown-fields";
    let mut names = Mapping::new();
    if let Some(Value::Mapping(fields)) = schema.get("properties") {
        let fields = fields.iter().map(|(name, field)| (name.clone(), Value::Mapping(outline(field))));
        names.insert("properties".into(), Value::Mapping(fields.collect()));
    }
    for field in ["items", "additionalProperties"] {
        if let Some(inner @ Value::Mapping(_)) = schema.get(field) {
            names.insert(field.into(), Value::Mapping(outline(inner)));
        }
    }
    if schema.get(KEEPS) == Some(&Value::Bool(true)) {
        names.insert(KEEPS.into(), Value::Bool(true));
    }
    names
}

/// The part of an identity by which an object is found on the other side: without the version of its group, and without
/// the hash that a generator adds.
pub(super) fn identity_key(id: &str) -> String {
    let (group, rest) = group_and_name(id);
    // kustomize adds a hash to the names of these kinds only.
    let is_generated = rest.starts_with("ConfigMap ") || rest.starts_with("Secret ");
    let stem = match rest.rsplit_once('-') {
        Some((stem, hash)) if is_generated && is_hash(hash) => stem,
        _ => rest,
    };
    format!("{group} {stem}")
}

/// The group of an identity, and its kind and name: two of one cluster with both are one object.
pub(super) fn group_and_name(id: &str) -> (&str, &str) {
    let (version, rest) = id.split_once(' ').unwrap_or(("", id));
    (version.rsplit_once('/').map_or("", |(group, _)| group), rest)
}

/// Whether a part of a name is the hash of a generator.
fn is_hash(text: &str) -> bool {
    // The hash of kustomize: ten hexadecimal digits, of which it replaces those that could make a word.
    const HASH: usize = 10;
    const DIGITS: &str = "2456789bcdfghkmt";
    text.len() == HASH && text.chars().all(|letter| DIGITS.contains(letter))
}

/// A key with this namespace, unless it has one.
pub(super) fn in_namespace(key: String, namespace: &str) -> String {
    match key.rsplit_once(' ') {
        Some((kind, name)) if !namespace.is_empty() && !name.contains('/') => format!("{kind} {namespace}/{name}"),
        _ => key,
    }
}

/// The identity of an object.
pub(super) fn id(value: &Value) -> Option<String> {
    let kind = value.get("kind")?.as_str()?;
    Some(format!("{} {kind} {}", text(value, "apiVersion"), full_name(value)))
}

/// Replaces a scalar by its size and the beginning of its digest: enough to see that it changes.
fn mask(value: &mut Value) {
    if let Some(text) = secrets::scalar_text(value) {
        *value = Value::String(secrets::shown_fingerprint(&text));
    }
}

/// An object without the annotations of `buildMetadata`. Their key `annotations:` stays, even if it has no others.
pub(super) fn without_build_metadata(document: &str) -> Cow<'_, str> {
    // These name paths of the built files, which may differ where the objects are the same.
    const ABOUT_BUILD: [&str; 2] =
        ["    config.kubernetes.io/origin:", "    alpha.config.kubernetes.io/transformations:"];
    // Most documents have none of these, and are not copied.
    if !ABOUT_BUILD.iter().any(|name| memchr::memmem::find(document.as_bytes(), name.as_bytes()).is_some()) {
        return Cow::Borrowed(document);
    }
    // Lines are dropped, because writing the object anew would unquote `"on"`, which is not a string to every reader.
    let (mut text, mut parents, mut is_about_build) = (String::new(), ["", ""], false);
    for line in document.split_inclusive('\n') {
        // kustomize indents by two spaces. A dropped annotation goes on over lines that are indented deeper, and over
        // empty ones.
        let indentation = line.find(|letter| letter != ' ');
        match indentation {
            Some(0) if line.trim().is_empty() => {}
            Some(0) => (parents, is_about_build) = ([line, ""], false),
            Some(2) => (parents[1], is_about_build) = (line, false),
            Some(4) => {
                let is_annotation = parents == ["metadata:\n", "  annotations:\n"];
                is_about_build = is_annotation && ABOUT_BUILD.iter().any(|name| line.starts_with(name));
            }
            _ => {}
        }
        if !is_about_build {
            text.push_str(line);
        }
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests;
