//! Plugin configurations: the objects that `generators`, `transformers` and `validators` lead to, inline or in a
//! file of their own. Built-in ones hold references; all others are code, and only noted.

use std::collections::HashSet;

use super::fields::BUILTIN_PLUGINS;
use super::read::{self, Found, Place, Reader, Whereabouts};
use super::yaml::{Dialect, Document, NodeId, NodeKind, Stream, Type};
use super::{Accepts, NoteKind, PluginFile, PluginUse, Problem, ProblemKind, opinion};

/// How many objects one file may hold because of aliases.
const MOST_OBJECTS: usize = 100_000;

/// How many strings of a foreign configuration are noted.
const MOST_STRINGS: usize = 64;

/// Longer strings name nothing.
const LONGEST_NAME: usize = 1024;

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

/// Reads a file that is named in `generators`, `transformers` or `validators`; all its documents count. Where
/// `listed` says for what, a built-in plugin must be one for that.
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
        is_inert: !found.leads_somewhere,
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
    reader.found.leads_somewhere = true;
    let mut strings = Vec::new();
    reader.strings(&place, "", &mut strings);
    if let Some(runtime) = function(reader, &place) {
        let message = match &runtime {
            FunctionRuntime::Exec { path } => format!("a function runs the program `{path}`"),
            FunctionRuntime::Container { image, network, .. } => format!(
                "a function runs the image `{image}`, {}{}",
                match is_pinned(image) {
                    true => "pinned by its digest",
                    false => "not pinned by a digest",
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
        "the code of plugin `{kind}` is in the plugin home of who builds, at `{}`",
        home_path(&api_version, &kind)
    );
    let note = NoteKind::LegacyPlugin {
        args_from_file: reader.named(&place, &["argsFromFile"], Accepts::File),
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
            reader.found.leads_somewhere |= !record.fields.is_empty();
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
            let meant = read::nearest(kind, names).map(|name| format!("did you mean `{name}`?"));
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

/// Says whether an image is named by its digest.
#[must_use]
pub fn is_pinned(image: &str) -> bool {
    image.rsplit_once("@sha256:").is_some_and(|(name, digest)| {
        !name.is_empty() && digest.len() == 64 && digest.bytes().all(|b| b.is_ascii_hexdigit())
    })
}

/// Finds out what an object runs, if it is a function.
fn function(reader: &mut Reader<'_>, place: &Place) -> Option<FunctionRuntime> {
    for name in FUNCTION_ANNOTATIONS {
        let keys = ["metadata", "annotations", name];
        if let (Some(at), Some(text)) = (reader.at(place, &keys), reader.word(place, &keys)) {
            let runtime = opinion::read(&text, 1)
                .ok()
                .and_then(|stream| runtime(reader, &at, &text, &stream));
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

/// Reads a `FunctionSpec` that is the text of an annotation.
fn runtime(
    reader: &mut Reader<'_>,
    at: &Place,
    text: &str,
    stream: &Stream<'_>,
) -> Option<FunctionRuntime> {
    let document = stream.documents.first()?;
    let place = document.root().map(Place::root)?;
    let label = reader.whereabouts.label("");
    let whereabouts = reader.within_scalar(at, text, stream).within(&label);
    let mut inner = Reader::new(document, 0, Dialect::Objects, whereabouts, reader.found);
    runtime_at(&mut inner, &place)
}

/// Reads a `FunctionSpec`.
fn runtime_at(reader: &mut Reader<'_>, place: &Place) -> Option<FunctionRuntime> {
    if let Some(path) = reader.word(place, &["exec", "path"]) {
        // Without a slash it is looked for on the `PATH`.
        if path.contains('/') {
            reader.named(place, &["exec", "path"], Accepts::Program);
        }
        return Some(FunctionRuntime::Exec { path });
    }
    let below = Accepts::Carried { anywhere: false };
    if let Some(script) = reader.at(place, &["starlark"]) {
        return Some(FunctionRuntime::Starlark {
            path: reader
                .named_in(&script, "starlark", &["path"], below)
                .unwrap_or_default(),
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
                .enumerate()
                .filter_map(|(i, mount)| {
                    // A volume has a name, no path.
                    let kind = reader.word(mount, &["type"]);
                    let is_bound = kind.is_none_or(|kind| kind == "bind");
                    let field = format!("container.mounts[{i}]");
                    is_bound
                        .then(|| reader.named_in(mount, &field, &["src"], below))
                        .flatten()
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

    /// Returns the same word, as a reference too.
    fn named(&mut self, place: &Place, keys: &[&str], accepts: Accepts) -> Option<String> {
        self.named_in(place, "", keys, accepts)
    }

    /// Returns the same word, as a reference too. `field` is what is at `place`.
    fn named_in(
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
