//! Plugin configurations: the objects that `generators`, `transformers` and `validators` lead to, inline or in a
//! file of their own. Built-in ones hold references; all others are code (`function`), and only noted.

use std::collections::HashSet;

use super::fields::BUILTIN_PLUGINS;
use super::read::{self, Found, Place, Reader, Whereabouts};
use super::yaml::{Dialect, Document, NodeId, NodeKind, Stream, Type};
use super::{
    Accepts, FunctionRuntime, NoteKind, PluginFile, PluginUse, Problem, ProblemKind, function,
    is_pinned, libyaml_check,
};
use crate::failure::nearest;

/// How many objects one file may hold because of aliases.
const MOST_OBJECTS: usize = 100_000;

/// How many strings of a foreign configuration are noted.
const MOST_STRINGS: usize = 64;

/// Longer strings name nothing.
const LONGEST_NAME: usize = 1024;

/// Reads a file that is named in `generators`, `transformers` or `validators`; all its documents count. With `listed`,
/// a built-in plugin must be of that kind.
///
/// # Errors
///
/// Returns everything that kustomize would refuse, in the order of the text.
pub fn read_plugin(bytes: &[u8], listed: Option<PluginUse>) -> Result<PluginFile, Vec<Problem>> {
    let stream = read::parse(bytes, usize::MAX).map_err(|problem| vec![problem])?;
    let mut found = Found::default();
    read_objects(&stream, &Whereabouts::file(&stream), "", listed, &mut found);
    found.finish()?;
    Ok(PluginFile {
        references: found.references,
        notes: found.notes,
        has_code: found.has_code,
    })
}

/// Reads a string as Kubernetes objects, as kustomize does to distinguish inline configurations and patches from paths.
/// The error is the reason why it is not a list of objects.
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

/// Collects the objects of a stream, those in lists too. The error is the document and node that is none, and why.
pub(super) fn collect(stream: &Stream<'_>) -> Result<Vec<Object>, (usize, NodeId, String)> {
    let mut objects = Vec::new();
    let mut visits = 0;
    for (index, document) in stream.documents.iter().enumerate() {
        if let Some(root) = document.root() {
            let place = Place::root(root);
            collect_from(stream, document, index, place, &mut visits, &mut objects)
                .map_err(|(node, why)| (index, node, why))?;
        }
    }
    Ok(objects)
}

fn collect_from(
    stream: &Stream<'_>,
    document: &Document,
    index: usize,
    place: Place,
    visits: &mut usize,
    objects: &mut Vec<Object>,
) -> Result<(), (NodeId, String)> {
    let node = place.node;
    *visits += 1;
    if *visits > MOST_OBJECTS + document.nodes().len() {
        return Err((node, "aliases expand beyond all measure".to_owned()));
    }
    if document.scalar_type(node, Dialect::Objects) == Some(Type::Null) {
        return Ok(());
    }
    let what = match &document.resolved(node).kind {
        NodeKind::Mapping(pairs) if pairs.is_empty() => return Ok(()),
        NodeKind::Mapping(_) => {
            return collect_object(stream, document, index, place, visits, objects);
        }
        NodeKind::Sequence(_) => "a list",
        _ => "text",
    };
    Err((node, format!("{what} instead of an object")))
}

/// `GetValidatedMetadata` (kyaml/yaml/rnode.go): a kind and a name, but a list needs no name. `apiVersion` may be
/// missing.
fn collect_object(
    stream: &Stream<'_>,
    document: &Document,
    index: usize,
    place: Place,
    visits: &mut usize,
    objects: &mut Vec<Object>,
) -> Result<(), (NodeId, String)> {
    let mut scratch = Found::default();
    let whereabouts = Whereabouts::file(stream);
    let mut reader = Reader::new(document, index, Dialect::Objects, whereabouts, &mut scratch);
    let entries = reader.entries(&place, "").unwrap_or_default();
    let of = |key: &str| {
        entries
            .iter()
            .find(|entry| entry.key == key)
            .map(|entry| &entry.place)
    };
    let mut word = |place: Option<&Place>, keys: &[&str]| {
        let word = place.and_then(|place| reader.word(place, keys));
        word.unwrap_or_default()
    };
    let kind = word(of("kind"), &[]);
    if kind.is_empty() {
        return Err((place.node, "an object without `kind`".to_owned()));
    }
    let is_list = kind.ends_with("List");
    if let Some(items) = of("items").filter(|_| is_list) {
        if let NodeKind::Sequence(nodes) = &document.resolved(items.node).kind {
            for (i, item) in nodes.iter().enumerate() {
                let item = items.child(*item, i);
                collect_from(stream, document, index, item, visits, objects)?;
            }
        }
        return Ok(());
    }
    if !is_list && word(of("metadata"), &["name"]).is_empty() {
        let why = format!("an object of kind {kind} without `metadata.name`");
        return Err((place.node, why));
    }
    objects.push(Object {
        document: index,
        api_version: word(of("apiVersion"), &[]),
        kind,
        place,
    });
    Ok(())
}

/// Returns a key that a mapping holds twice, which kyaml refuses.
pub(super) fn duplicate_key(document: &Document) -> Option<NodeId> {
    document.nodes().iter().find_map(|node| {
        let NodeKind::Mapping(pairs) = &node.kind else {
            return None;
        };
        let mut seen = HashSet::new();
        pairs
            .iter()
            .map(|(key, _)| *key)
            .find(|key| document.scalar(*key).is_some_and(|word| !seen.insert(word)))
    })
}

/// Reads the plugin configurations of a stream. `prefix` stands before the kind in every field.
pub(super) fn read_objects(
    stream: &Stream<'_>,
    whereabouts: &Whereabouts<'_>,
    prefix: &str,
    listed: Option<PluginUse>,
    found: &mut Found,
) {
    let objects = match collect(stream) {
        Ok(objects) => objects,
        Err((index, node, why)) => {
            if let Some(document) = stream.documents.get(index) {
                Reader::new(
                    document,
                    index,
                    Dialect::Objects,
                    whereabouts.clone(),
                    found,
                )
                .problem(
                    node,
                    "",
                    ProblemKind::WrongType,
                    format!("not a plugin configuration: {why}"),
                    vec![],
                );
            }
            return;
        }
    };
    for (index, document) in stream.documents.iter().enumerate() {
        if let Some(key) = duplicate_key(document) {
            let word = document.scalar(key).unwrap_or_default();
            Reader::new(
                document,
                index,
                Dialect::Objects,
                whereabouts.clone(),
                found,
            )
            .problem(
                key,
                "",
                ProblemKind::DuplicateKey,
                format!("the key `{word}` is there twice"),
                vec!["remove one of them".to_owned()],
            );
        }
    }
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
    let mut strings = Vec::new();
    reader.strings(&place, "", &mut strings);
    if let Some(runtime) = function::find(reader, &place) {
        let message = match &runtime {
            FunctionRuntime::Exec { path } => format!("a function runs the program `{path}`"),
            FunctionRuntime::Container { image, network, .. } => format!(
                "a function runs the image `{image}`, {}{}",
                if is_pinned(image) {
                    "pinned by its digest"
                } else {
                    "not pinned by a digest"
                },
                if *network { ", with the network" } else { "" }
            ),
            FunctionRuntime::Starlark { url, .. } if !url.is_empty() => format!(
                "a function runs the Starlark at {}, which kustomize dropped in 5.5",
                crate::redact::url(url)
            ),
            FunctionRuntime::Starlark { .. } => {
                "a function runs Starlark, which kustomize dropped in 5.5".to_owned()
            }
            FunctionRuntime::Unknown => "a function of an unknown sort".to_owned(),
        };
        let note = NoteKind::KrmFunction {
            runtime,
            api_version,
            kind,
            strings,
        };
        reader.note(place.node, "", note, message);
        return;
    }
    let message = format!(
        "the code of plugin `{kind}` is in the plugin home of the machine that builds, at `{}`",
        home_path(&api_version, &kind)
    );
    let note = NoteKind::LegacyPlugin {
        args_from_file: reader.referenced(&place, &["argsFromFile"], Accepts::File),
        api_version,
        kind,
        strings,
    };
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

    /// Returns the same word, as a reference too.
    fn referenced(&mut self, place: &Place, keys: &[&str], accepts: Accepts) -> Option<String> {
        self.referenced_in(place, "", keys, accepts)
    }

    /// Returns the same word, as a reference too. `field` is what is at `place`.
    pub(super) fn referenced_in(
        &mut self,
        place: &Place,
        field: &str,
        keys: &[&str],
        accepts: Accepts,
    ) -> Option<String> {
        let word = self.word(place, keys)?;
        let place = self.at(place, keys)?;
        if self.document.scalar_type(place.node, Dialect::Objects) == Some(Type::Text) {
            let field = read::join(field, &keys.join("."));
            self.reference(accepts, &place, &field, &word, None);
        }
        Some(word)
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

    /// Collects strings that may name something, except those that every object has.
    fn strings(&mut self, place: &Place, field: &str, strings: &mut Vec<(String, String)>) {
        if strings.len() >= MOST_STRINGS || place.path.len() > 32 {
            return;
        }
        if let Some(word) = self.document.scalar(place.node) {
            let may_name = word.contains(['/', '.']) && !word.contains(char::is_whitespace);
            if may_name && word.len() <= LONGEST_NAME {
                strings.push((field.to_owned(), word.to_owned()));
            }
            return;
        }
        for (i, item) in self.items(place).iter().enumerate() {
            self.strings(item, &format!("{field}[{i}]"), strings);
        }
        for entry in self.entries(place, "").unwrap_or_default() {
            let common = matches!(entry.key.as_str(), "apiVersion" | "kind" | "metadata");
            if !(field.is_empty() && common) {
                self.strings(&entry.place, &read::join(field, &entry.key), strings);
            }
        }
    }
}
