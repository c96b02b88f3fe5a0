//! Plugin configurations: the objects that `generators`, `transformers` and `validators` lead to, inline or in a
//! file of their own. Built-in ones hold references; all others are code (`function`), and only noted.

use std::collections::HashSet;

use super::fields::BUILTIN_PLUGINS;
use super::read::{self, Found, Place, Reader, Whereabouts};
use super::yaml::{Dialect, Document, NodeId, NodeKind, Stream, Type};
use super::{
    FunctionRuntime, NoteKind, PluginFile, PluginUse, Problem, ProblemKind, Refused, function,
    is_pinned, libyaml_check,
};
use crate::failure::nearest;

/// Reads a file that is named in `generators`, `transformers` or `validators`; all its documents count. With `listed`,
/// a built-in plugin must be of that kind.
///
/// # Errors
///
/// Returns everything that kustomize would refuse, in the order of the text.
pub fn read_plugin(
    bytes: &[u8],
    listed: Option<PluginUse>,
) -> Result<PluginFile, Refused<PluginFile>> {
    let stream = read::parse(bytes, usize::MAX)?;
    let mut found = Found::default();
    read_objects(&stream, &Whereabouts::file(&stream), "", listed, &mut found);
    found.finish(|found| PluginFile {
        references: found.references,
        notes: found.notes,
        has_code: found.has_code,
    })
}

/// Reads a text that stands in a kustomization as Kubernetes objects. The error is the reason why it is not a list of
/// objects.
pub(super) fn objects(text: &str) -> Result<Stream<'_>, String> {
    let stream = libyaml_check::read(text, usize::MAX).map_err(|error| error.message)?;
    collect(&stream).map_err(|(_, _, why)| why)?;
    Ok(stream)
}

/// An object with what kustomize asks of every object.
#[derive(Debug)]
pub(super) struct Object {
    /// Index of its document.
    document: usize,
    place: Place,
    api_version: String,
    kind: String,
}

/// Collects the objects of a stream. The error is the document and node that is not one, and why.
///
/// `GetValidatedMetadata` (kyaml/yaml/rnode.go): a kind and a name, but a list needs no name. `apiVersion` may be
/// missing.
pub(super) fn collect(stream: &Stream<'_>) -> Result<Vec<Object>, (usize, NodeId, String)> {
    let mut objects = Vec::new();
    for (index, document) in stream.documents.iter().enumerate() {
        let Some(root) = document.root() else {
            continue;
        };
        let wrong = |what: &str| Err((index, root, what.to_owned()));
        match &document.resolved(root).kind {
            NodeKind::Mapping(pairs) if pairs.is_empty() => continue,
            NodeKind::Mapping(_) => {}
            NodeKind::Sequence(_) => return wrong("a list instead of an object"),
            _ if document.scalar_type(root, Dialect::Objects) == Some(Type::Null) => continue,
            _ => return wrong("text instead of an object"),
        }
        let place = Place::root(root);
        let mut scratch = Found::default();
        let whereabouts = Whereabouts::file(stream);
        let mut reader = Reader::new(document, index, Dialect::Objects, whereabouts, &mut scratch);
        let mut word = |keys: &[&str]| reader.word(&place, keys).unwrap_or_default();
        let (api_version, kind) = (word(&["apiVersion"]), word(&["kind"]));
        if kind.is_empty() {
            return wrong("an object without `kind`");
        }
        if !kind.ends_with("List") && word(&["metadata", "name"]).is_empty() {
            return wrong(&format!("an object of kind {kind} without `metadata.name`"));
        }
        objects.push(Object {
            document: index,
            place,
            api_version,
            kind,
        });
    }
    Ok(objects)
}

/// Returns what in a stream of objects is not plain YAML, with its place in the stream. kyaml, go-yaml and the splitters
/// of documents differ about it, from version to version too, so that only a build could tell what such an object says.
pub(super) fn not_plain(stream: &Stream<'_>) -> Vec<Problem> {
    let mut found = Vec::new();
    let mut add = |(line, column), kind, message: String, hint: &str| {
        found.push(Problem {
            line,
            column,
            field: String::new(),
            message,
            hints: vec![hint.to_owned()],
            kind,
        });
    };
    let not_plain = |what: &str| format!("not plain YAML: {what}");
    for (line, text) in stream.text.lines().enumerate() {
        let after = text.strip_prefix("---").unwrap_or_default();
        let is_comment = after.starts_with([' ', '\t']) && after.trim_start().starts_with('#');
        if !after.trim().is_empty() && !is_comment {
            let message = not_plain("text after `---`");
            let hint = "begin the document on the line after `---`";
            add((line + 1, 1), ProblemKind::NotPlain, message, hint);
        }
    }
    for document in &stream.documents {
        for node in document.nodes() {
            if let Some(tag) = &node.tag {
                let tag = tag.replace("tag:yaml.org,2002:", "!!");
                let message = not_plain(&format!("the tag `{tag}`"));
                let hint = "write the value without a tag";
                add(node.start, ProblemKind::NotPlain, message, hint);
            }
            let NodeKind::Mapping(pairs) = &node.kind else {
                continue;
            };
            for (key, _) in pairs {
                let (what, hint) = if document.is_merge_key(*key) {
                    ("the merge key `<<`", "write out what it merges")
                } else if !document.node(*key).is_word() {
                    let what = "a key that is not a plain or quoted string";
                    (what, "write it as `key: value`")
                } else {
                    continue;
                };
                let start = document.node(*key).start;
                add(start, ProblemKind::NotPlain, not_plain(what), hint);
            }
        }
        for key in duplicate_keys(document) {
            let word = document.scalar(key).unwrap_or_default();
            let message = format!("the key `{word}` is there twice");
            let start = document.node(key).start;
            add(
                start,
                ProblemKind::DuplicateKey,
                message,
                "remove one of them",
            );
        }
    }
    found
}

/// Refuses what in a stream of objects is not plain YAML.
pub(super) fn refuse_odd(stream: &Stream<'_>, whereabouts: &Whereabouts<'_>, found: &mut Found) {
    for odd in not_plain(stream) {
        let start = (odd.line, odd.column);
        whereabouts.problem(start, "", odd.kind, odd.message, odd.hints, found);
    }
}

/// Returns the keys that a mapping holds already, which kyaml refuses.
pub(super) fn duplicate_keys(document: &Document) -> Vec<NodeId> {
    let mut found = Vec::new();
    for node in document.nodes() {
        if let NodeKind::Mapping(pairs) = &node.kind {
            let mut seen = HashSet::new();
            let keys = pairs.iter().map(|(key, _)| *key);
            found.extend(
                keys.filter(|key| document.scalar(*key).is_some_and(|word| !seen.insert(word))),
            );
        }
    }
    found
}

/// Reads the plugin configurations of a stream. `prefix` stands before the kind in every field.
pub(super) fn read_objects(
    stream: &Stream<'_>,
    whereabouts: &Whereabouts<'_>,
    prefix: &str,
    listed: Option<PluginUse>,
    found: &mut Found,
) {
    refuse_odd(stream, whereabouts, found);
    let objects = match collect(stream) {
        Ok(objects) => objects,
        Err((index, node, why)) => {
            let message = format!("not a plugin configuration: {why}");
            let start = stream.documents[index].node(node).start;
            let hint = "write one object in each document, with `kind` and `metadata.name`";
            let hints = vec![hint.to_owned()];
            whereabouts.problem(start, "", ProblemKind::WrongType, message, hints, found);
            return;
        }
    };
    let many = objects.len() > 1;
    for (i, object) in objects.into_iter().enumerate() {
        let Some(document) = stream.documents.get(object.document) else {
            continue;
        };
        let label = if many {
            format!("{prefix}{}[{i}]", object.kind)
        } else {
            format!("{prefix}{}", object.kind)
        };
        let within = whereabouts.within(&label);
        if object.kind.ends_with("List") {
            let start = document.node(object.place.node).start;
            let message = format!("not plain YAML: a `{}` of objects", object.kind);
            let hints = vec!["write each object in a document of its own, after `---`".to_owned()];
            within.problem(start, "", ProblemKind::NotPlain, message, hints, found);
            continue;
        }
        let mut reader = Reader::new(document, object.document, Dialect::Objects, within, found);
        read_object(&mut reader, object, listed);
    }
}

fn read_object(reader: &mut Reader<'_>, object: Object, listed: Option<PluginUse>) {
    let Object {
        place,
        api_version,
        kind,
        ..
    } = object;
    // The group is empty in both (`resid.ParseGroupVersion`).
    if matches!(api_version.as_str(), "builtin" | "/builtin") {
        read_builtin(reader, place, &kind, listed);
        return;
    }
    reader.found.has_code = true;
    if let Some(runtime) = function::find(reader, &place) {
        let message = match &runtime {
            FunctionRuntime::Exec { path } => format!("a function runs the program `{path}`"),
            FunctionRuntime::Container { image, network } => format!(
                "a function runs the image `{image}`, {}{}",
                if is_pinned(image) {
                    "pinned by its digest"
                } else {
                    "not pinned by a digest"
                },
                if *network { ", with the network" } else { "" }
            ),
            FunctionRuntime::Unknown => "a function of an unknown sort".to_owned(),
        };
        let note = NoteKind::KrmFunction { runtime, kind };
        reader.note(place.node, "", note, message);
        return;
    }
    // In every spelling: of two, kustomize takes the one that is set.
    for entry in reader.entries(&place, "").unwrap_or_default() {
        if read::equal("argsFromFile", &entry.key) && !reader.is_null(entry.place.node) {
            let hint = "write the arguments into `argsOneLiner`";
            reader.refused(&entry.place, "argsFromFile", hint);
        }
    }
    let message = format!(
        "the code of plugin `{kind}` is in the plugin home of the machine that builds, at `{}`",
        home_path(&api_version, &kind)
    );
    let note = NoteKind::LegacyPlugin { api_version, kind };
    reader.note(place.node, "", note, message);
}

fn read_builtin(reader: &mut Reader<'_>, place: Place, kind: &str, listed: Option<PluginUse>) {
    let known = BUILTIN_PLUGINS.iter().find(|(name, _, _)| *name == kind);
    let (message, hint) = match known {
        Some((_, is, record)) if listed.is_none_or(|listed| listed == *is) => {
            reader.root(record, place);
            return;
        }
        Some((_, PluginUse::Generator, _)) => (
            format!("`{kind}` is a generator, which cannot transform"),
            Some("list it in `generators`".to_owned()),
        ),
        Some((_, PluginUse::Transformer, _)) => (
            format!("`{kind}` is a transformer, which cannot generate"),
            Some("list it in `transformers`".to_owned()),
        ),
        None => {
            let names = BUILTIN_PLUGINS.iter().map(|(name, _, _)| *name);
            let meant = nearest(kind, names).map(|name| format!("did you mean `{name}`?"));
            (format!("there is no built-in plugin `{kind}`"), meant)
        }
    };
    let hints = hint.into_iter().collect();
    reader.problem(place.node, "", ProblemKind::UnknownPlugin, message, hints);
}

/// Returns where below the plugin home kustomize looks for the code of a plugin
/// (api/internal/plugins/loader/loader.go). A Go plugin has `.so` at the end.
#[must_use]
pub fn home_path(api_version: &str, kind: &str) -> String {
    format!("{api_version}/{}/{kind}", kind.to_lowercase())
}

impl Reader<'_> {
    /// Returns what some keys lead to, one below the other.
    pub(super) fn at(&mut self, place: &Place, keys: &[&str]) -> Option<Place> {
        let mut place = place.clone();
        for key in keys {
            let entries = self.entries(&place, "")?;
            place = entries.into_iter().find(|entry| entry.key == *key)?.place;
        }
        Some(place)
    }

    /// Returns the scalar that some keys lead to, unless it is null.
    pub(super) fn word(&mut self, place: &Place, keys: &[&str]) -> Option<String> {
        let place = self.at(place, keys)?;
        match self.document.scalar_type(place.node, Dialect::Objects) {
            None | Some(Type::Null) => None,
            Some(_) => self.document.scalar(place.node).map(str::to_owned),
        }
    }

    pub(super) fn items(&self, place: &Place) -> Vec<Place> {
        match &self.document.resolved(place.node).kind {
            NodeKind::Sequence(items) => items
                .iter()
                .enumerate()
                .map(|(i, item)| place.child(*item, i))
                .collect(),
            _ => Vec::new(),
        }
    }
}
