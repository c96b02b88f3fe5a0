//! Plugin configurations: the objects that `generators`, `transformers` and `validators` lead to, inline or in a
//! file of their own. Built-in ones hold references; all others are code, and only noted.

use std::collections::HashSet;

use super::fields::BUILTIN_PLUGINS;
use super::read::{self, Found, Place, Reader, Whereabouts};
use super::yaml::{Dialect, Document, NodeId, NodeKind, Stream, Type};
use super::{NoteKind, PluginFile, Problem, ProblemKind, opinion};

/// How many objects one file may hold because of aliases.
const MOST_OBJECTS: usize = 100_000;

/// How many strings of a foreign configuration are noted.
const MOST_STRINGS: usize = 64;

/// The annotations that make an object a function, in the order in which kustomize looks for them
/// (kyaml/fn/runtime/runtimeutil/functiontypes.go).
const FUNCTION_ANNOTATIONS: [&str; 2] = ["config.kubernetes.io/function", "config.k8s.io/function"];
const CONTAINER_ANNOTATION: &str = "config.kubernetes.io/container";

/// What a KRM function runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FunctionRuntime {
    /// A program. With a slash it is relative to the kustomization and may lie anywhere; without one it is
    /// looked up in `PATH`.
    Exec {
        /// The path as written.
        path: String,
    },
    /// A container image.
    Container {
        /// The image.
        image: String,
        /// Whether it may use the network.
        network: bool,
        /// The files and directories that it is given (`mounts[].src` of type `bind`).
        mounts: Vec<String>,
    },
    /// A Starlark script; gone since kustomize 5.5.
    Starlark {
        /// The script as a file; empty if none.
        path: String,
        /// The script as a URL; empty if none.
        url: String,
    },
    /// None that is known.
    Unknown,
}

/// Reads a file that is named in `generators`, `transformers` or `validators`; all its documents count.
///
/// # Errors
///
/// Returns everything that kustomize would refuse, in the order of the text.
pub fn read_plugin(bytes: &[u8]) -> Result<PluginFile, Vec<Problem>> {
    let stream = read::parse(bytes, usize::MAX).map_err(|problem| vec![problem])?;
    let mut found = Found::default();
    read_objects(&stream, &Whereabouts::file(&stream), "", &mut found);
    found.finish()?;
    Ok(PluginFile {
        references: found.references,
        notes: found.notes,
    })
}

/// Reads a string as Kubernetes objects, as kustomize does to tell inline configurations and patches from paths.
/// The error says why it is none.
pub(super) fn objects(text: &str) -> Result<Stream<'_>, String> {
    let stream = opinion::read(text, usize::MAX).map_err(|error| error.message)?;
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

/// `GetValidatedMetadata` (kyaml/yaml/rnode.go): a kind and a name, but a list needs no name. `apiVersion` may be missing.
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
        read_object(&mut reader, object);
    }
}

fn read_object(reader: &mut Reader<'_>, object: Object) {
    let Object {
        place,
        api_version,
        kind,
        ..
    } = object;
    // The group is empty in both (`resid.ParseGroupVersion`).
    if matches!(api_version.as_str(), "builtin" | "/builtin") {
        match BUILTIN_PLUGINS.iter().find(|(name, _)| *name == kind) {
            Some((_, record)) => {
                reader.root(record, place);
            }
            None => {
                let message = format!("there is no built-in plugin `{kind}`");
                let kind = ProblemKind::UnknownPlugin;
                reader.problem(place.node, "", kind, message, vec![]);
            }
        }
        return;
    }
    let mut strings = Vec::new();
    reader.strings(&place, "", &mut strings);
    if let Some(runtime) = function(reader, &place) {
        let message = match &runtime {
            FunctionRuntime::Exec { path } => format!("a function runs the program `{path}`"),
            FunctionRuntime::Container { image, .. } => {
                format!("a function runs the image `{image}`")
            }
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
    let message = format!("the code of plugin `{kind}` lies outside the repository");
    let note = NoteKind::LegacyPlugin {
        args_from_file: reader.word(&place, &["argsFromFile"]),
        api_version,
        kind,
        strings,
    };
    reader.note(place.node, "", note, message);
}

/// Finds out what an object runs, if it is a function.
fn function(reader: &mut Reader<'_>, place: &Place) -> Option<FunctionRuntime> {
    for name in FUNCTION_ANNOTATIONS {
        if let Some(text) = reader.word(place, &["metadata", "annotations", name]) {
            let runtime = opinion::read(&text, 1)
                .ok()
                .and_then(|stream| runtime(&stream, Dialect::Objects, None));
            return Some(runtime.unwrap_or(FunctionRuntime::Unknown));
        }
    }
    if let Some(spec) = reader.at(place, &["metadata", "configFn"]) {
        return Some(runtime_at(reader, &spec).unwrap_or(FunctionRuntime::Unknown));
    }
    let image = reader.word(place, &["metadata", "annotations", CONTAINER_ANNOTATION])?;
    Some(FunctionRuntime::Container {
        image,
        network: false,
        mounts: Vec::new(),
    })
}

fn runtime(stream: &Stream<'_>, dialect: Dialect, at: Option<Place>) -> Option<FunctionRuntime> {
    let document = stream.documents.first()?;
    let place = at.or_else(|| document.root().map(Place::root))?;
    let mut scratch = Found::default();
    let whereabouts = Whereabouts::file(stream);
    let mut reader = Reader::new(document, 0, dialect, whereabouts, &mut scratch);
    runtime_at(&mut reader, &place)
}

/// Reads a `FunctionSpec`.
fn runtime_at(reader: &mut Reader<'_>, place: &Place) -> Option<FunctionRuntime> {
    if let Some(path) = reader.word(place, &["exec", "path"]) {
        return Some(FunctionRuntime::Exec { path });
    }
    if let Some(script) = reader.at(place, &["starlark"]) {
        return Some(FunctionRuntime::Starlark {
            path: reader.word(&script, &["path"]).unwrap_or_default(),
            url: reader.word(&script, &["url"]).unwrap_or_default(),
        });
    }
    let container = reader.at(place, &["container"])?;
    let mounts = reader.at(&container, &["mounts"]);
    Some(FunctionRuntime::Container {
        image: reader.word(&container, &["image"]).unwrap_or_default(),
        network: reader.word(&container, &["network"]).as_deref() == Some("true"),
        mounts: mounts.map_or_else(Vec::new, |mounts| {
            reader
                .items(&mounts)
                .iter()
                .filter_map(|mount| {
                    // A volume has a name, no path.
                    let kind = reader.word(mount, &["type"]);
                    let is_bound = kind.is_none_or(|kind| kind == "bind");
                    is_bound.then(|| reader.word(mount, &["src"])).flatten()
                })
                .collect()
        }),
    })
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

    fn items(&self, place: &Place) -> Vec<Place> {
        match &self.document.resolved(place.node).kind {
            NodeKind::Sequence(items) => items
                .iter()
                .enumerate()
                .map(|(i, item)| place.child(*item, i))
                .collect(),
            _ => Vec::new(),
        }
    }

    /// Collects strings with a `/` in them, except those that every object has.
    fn strings(&mut self, place: &Place, field: &str, strings: &mut Vec<(String, String)>) {
        if strings.len() >= MOST_STRINGS || place.path.len() > 32 {
            return;
        }
        if let Some(word) = self.document.scalar(place.node) {
            if word.contains('/') {
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
