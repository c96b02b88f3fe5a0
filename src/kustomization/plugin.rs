//! Plugin configurations: the objects that `generators`, `transformers` and `validators` lead to, inline or in a
//! file of their own. Built-in ones hold references; all others are code, and only noted.

use super::fields::{BUILTIN_TREES, FUNCTION};
use super::read::Reader;
use super::yaml::{self, Data, Stream, Value};
use super::{Accepts, NoteKind};
use crate::message::failure::nearest;
use crate::message::finding::Subject;
use crate::message::redact;

/// The annotations that make an object a function, in the order in which kustomize looks for them
/// (kyaml/fn/runtime/runtimeutil/functiontypes.go). An empty one is none.
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
    },
    /// None that is known.
    Unknown,
}

/// An image that may be another tomorrow, or that is given the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteImage<'a> {
    pub image: &'a str,
    pub is_pinned: bool,
    pub network: bool,
}

impl RemoteImage<'_> {
    /// Returns what it is for a policy.
    pub fn subject(&self) -> Subject {
        Subject::Image { image: redact::url(self.image) }
    }
}

impl NoteKind {
    /// Returns whether it is code, which annotations can make another.
    pub fn is_code(&self) -> bool {
        matches!(self, NoteKind::KrmFunction { .. } | NoteKind::LegacyPlugin { .. })
    }

    /// Returns what it runs, for a policy; none where it runs nothing, or cannot be read.
    pub fn runs(&self) -> Option<Subject> {
        let program = match self {
            NoteKind::KrmFunction { runtime: FunctionRuntime::Container { image, .. }, .. } => {
                return Some(Subject::Image { image: redact::url(image) });
            }
            NoteKind::KrmFunction { runtime: FunctionRuntime::Exec { path }, .. } => path,
            NoteKind::LegacyPlugin { kind, .. } => kind,
            _ => return None,
        };
        Some(Subject::Program { program: redact::url(program) })
    }

    /// Returns what a function gets from elsewhere; none where it needs nothing, or an image that cannot change.
    pub fn remote_image(&self) -> Option<RemoteImage<'_>> {
        let NoteKind::KrmFunction { runtime: FunctionRuntime::Container { image, network }, .. } = self else {
            return None;
        };
        let found = RemoteImage { image, is_pinned: is_pinned(image), network: *network };
        (!image.is_empty() && (found.network || !found.is_pinned)).then_some(found)
    }
}

/// Returns whether an image is named by its digest.
pub(crate) fn is_pinned(image: &str) -> bool {
    image.rsplit_once("@sha256:").is_some_and(|(name, digest)| {
        !name.is_empty() && digest.len() == 64 && digest.bytes().all(|b| b.is_ascii_hexdigit())
    })
}

/// Returns where below the plugin home kustomize looks for the code of a plugin
/// (api/internal/plugins/loader/loader.go). A Go plugin has `.so` at the end.
pub(crate) fn home_path(api_version: &str, kind: &str) -> String {
    format!("{api_version}/{}/{kind}", kind.to_lowercase())
}

/// An object with what kustomize asks of every object.
#[derive(Debug)]
pub(super) struct Object<'s> {
    value: &'s Value,
    api_version: String,
    kind: String,
}

/// Collects the objects of a stream. The error is the place of what is not one, and why.
///
/// `GetValidatedMetadata` (kyaml/yaml/rnode.go): a kind and a name, but a list needs no name. `apiVersion` may be
/// missing.
pub(super) fn objects<'s>(stream: &'s Stream<'_>) -> Result<Vec<Object<'s>>, ((usize, usize), String)> {
    let mut objects = Vec::new();
    for value in &stream.documents {
        let why = match &value.data {
            Data::Null => continue,
            Data::Mapping(pairs) if pairs.is_empty() => continue,
            Data::Mapping(_) => {
                let word = |keys: &[&str]| value.at(keys).and_then(Value::scalar).unwrap_or_default();
                let (api_version, kind) = (word(&["apiVersion"]), word(&["kind"]));
                if kind.is_empty() {
                    "an object without `kind`".to_owned()
                } else if !kind.ends_with("List") && word(&["metadata", "name"]).is_empty() {
                    format!("an object of kind {kind} without `metadata.name`")
                } else {
                    objects.push(Object { value, api_version, kind });
                    continue;
                }
            }
            Data::List(_) => "a list instead of an object".to_owned(),
            _ => "text instead of an object".to_owned(),
        };
        return Err((value.place(), why));
    }
    Ok(objects)
}

/// Returns what in a stream of objects is not plain YAML: its place, what it is, and what to do. kyaml, go-yaml and the
/// splitters of documents differ about it, from version to version too, so that only a build could tell what such an
/// object says.
pub(super) fn not_plain(stream: &Stream<'_>) -> Option<((usize, usize), String, &'static str)> {
    for (line, text) in stream.text.lines().enumerate() {
        let after = text.strip_prefix("---").unwrap_or_default();
        let is_comment = after.starts_with([' ', '\t']) && after.trim_start().starts_with('#');
        if !after.trim().is_empty() && !is_comment {
            let hint = "begin the document on the line after `---`";
            return Some(((line + 1, 1), "text after `---`".to_owned(), hint));
        }
    }
    stream.documents.iter().find_map(odd)
}

fn odd(value: &Value) -> Option<((usize, usize), String, &'static str)> {
    if let Some(tag) = &value.tag {
        let tag = tag.replace("tag:yaml.org,2002:", "!!");
        return Some((value.place(), format!("the tag `{tag}`"), "write the value without a tag"));
    }
    match &value.data {
        Data::List(items) => items.iter().find_map(odd),
        Data::Mapping(pairs) => pairs.iter().find_map(|(key, value)| {
            let place = (value.key.1, value.key.2);
            let merges = (key == "<<").then(|| (place, "the merge key `<<`".to_owned(), "write out what it merges"));
            merges.or_else(|| odd(value))
        }),
        _ => None,
    }
}

/// Reads the plugin configurations of a stream. `prefix` stands before the kind in every field.
pub(super) fn read_objects(stream: &Stream<'_>, prefix: &str, reader: &mut Reader<'_>) {
    if let Some((place, what, hint)) = not_plain(stream) {
        reader.problem(place, "", format!("not plain YAML: {what}"), hint);
    }
    let objects = match objects(stream) {
        Ok(objects) => objects,
        Err((place, why)) => {
            let hint = "write one object in each document, with `kind` and `metadata.name`";
            return reader.problem(place, "", format!("not a plugin configuration: {why}"), hint);
        }
    };
    let is_one = objects.len() == 1;
    for (i, object) in objects.into_iter().enumerate() {
        let kind = &object.kind;
        reader.prefix = if is_one { format!("{prefix}{kind}") } else { format!("{prefix}{kind}[{i}]") };
        if kind.ends_with("List") {
            let message = format!("not plain YAML: a `{kind}` of objects");
            let hint = "write each object in a document of its own, after `---`";
            reader.problem(object.value.place(), "", message, hint);
        } else if !matches!(object.api_version.as_str(), "builtin" | "/builtin") {
            // The group is empty in both (`resid.ParseGroupVersion`).
            code(reader, object);
        } else if let Some(tree) = BUILTIN_TREES.get(kind.as_str()) {
            reader.visit(tree, object.value, "");
        } else {
            let meant = nearest(kind, BUILTIN_TREES.keys().copied());
            let hint = meant.map(|name| format!("did you mean `{name}`?")).unwrap_or_default();
            reader.problem(object.value.place(), "", format!("there is no built-in plugin `{kind}`"), &hint);
        }
    }
}

/// Notes what an object runs.
fn code(reader: &mut Reader<'_>, object: Object<'_>) {
    let Object { value, api_version, kind } = object;
    let place = value.place();
    if let Some(runtime) = function(reader, value) {
        let message = match &runtime {
            FunctionRuntime::Exec { path } => format!("a function runs the program `{path}`"),
            FunctionRuntime::Container { image, network } => format!(
                "a function runs the image `{image}`, {}pinned by {} digest{}",
                if is_pinned(image) { "" } else { "not " },
                if is_pinned(image) { "its" } else { "a" },
                if *network { ", with the network" } else { "" }
            ),
            FunctionRuntime::Unknown => "a function of an unknown sort".to_owned(),
        };
        return reader.note(place, "", NoteKind::KrmFunction { runtime, kind }, message);
    }
    if let Some(arguments) = value.folded_field("argsFromFile") {
        let hint = "write the arguments into `argsOneLiner`";
        reader.problem(arguments.place(), "argsFromFile", "this field is not supported".to_owned(), hint);
    }
    let message = format!(
        "the code of plugin `{kind}` is in the plugin home of the machine that builds, at `{}`",
        home_path(&api_version, &kind)
    );
    reader.note(place, "", NoteKind::LegacyPlugin { api_version, kind }, message);
}

/// Finds out what an object runs, if it is a function.
fn function(reader: &mut Reader<'_>, object: &Value) -> Option<FunctionRuntime> {
    let metadata = object.get("metadata")?;
    for name in FUNCTION_ANNOTATIONS {
        match metadata.at(&["annotations", name]).map(|value| (value, &value.data)) {
            None => {}
            Some((_, Data::Text(text))) if text.is_empty() => {}
            Some((value, Data::Text(text))) => {
                let mut runtime = FunctionRuntime::Unknown;
                if let Ok(stream) = yaml::read(text, 1)
                    && let [spec] = stream.documents.as_slice()
                {
                    reader.nested(value, text, |reader| {
                        if let Some((place, what, hint)) = not_plain(&stream) {
                            reader.problem(place, "", format!("not plain YAML: {what}"), hint);
                        }
                        runtime = specified(reader, spec);
                    });
                }
                return Some(runtime);
            }
            // What no annotation can be.
            Some(_) => return Some(FunctionRuntime::Unknown),
        }
    }
    if let Some(spec) = metadata.get("configFn") {
        return Some(specified(reader, spec));
    }
    let at = metadata.at(&["annotations", CONTAINER_ANNOTATION])?;
    let image = at.scalar().filter(|image| !image.is_empty())?;
    reader.argument(at, "", &image, "docker");
    Some(FunctionRuntime::Container { image, network: false })
}

/// Reads a specification (`runtimeutil.FunctionSpec`), whose keys are those of a kustomization. An image goes before a
/// program.
fn specified(reader: &mut Reader<'_>, spec: &Value) -> FunctionRuntime {
    reader.visit(&FUNCTION, spec, "");
    let in_container = |name| spec.folded_field("container").and_then(|container| container.folded_field(name));
    let word = |value: &Value| value.scalar().filter(|word| !word.is_empty());
    if let Some(at) = in_container("image")
        && let Some(image) = word(at)
    {
        reader.argument(at, "container.image", &image, "docker");
        let network = in_container("network").is_some_and(Value::is_on);
        return FunctionRuntime::Container { image, network };
    }
    let path = spec.folded_field("exec").and_then(|exec| exec.folded_field("path"));
    let Some((at, path)) = path.and_then(|at| Some((at, word(at)?))) else {
        return FunctionRuntime::Unknown;
    };
    // Without a slash it is looked for on the `PATH`.
    if path.contains('/') {
        reader.reference(Accepts::Program, at, "exec.path", &path, None);
    }
    FunctionRuntime::Exec { path }
}
