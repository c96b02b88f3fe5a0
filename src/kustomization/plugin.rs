//! Plugin configurations: the objects that `generators`, `transformers` and `validators` lead to, inline or in a
//! file of their own. Built-in ones hold references; all others are code, and only noted.

use super::fields::{BUILTIN_TREES, FUNCTION};
use super::read::{Reader, did_you_mean};
use super::yaml::{self, Data, Stream, Value};
use super::{Accepts, NoteKind};
use crate::message::finding::Subject;
use crate::message::position::Position;
use crate::message::redact;
use crate::reference::Upstream;

/// The annotations that make an object a function, in the order in which kustomize looks for them
/// (kyaml/fn/runtime/runtimeutil/functiontypes.go). An empty one is none.
const FUNCTION_ANNOTATIONS: [&str; 2] = ["config.kubernetes.io/function", "config.k8s.io/function"];
const CONTAINER_ANNOTATION: &str = "config.kubernetes.io/container";

/// What a function or plugin runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Runs {
    /// A program. With a slash it is relative to the kustomization and may lie anywhere; without one it is
    /// looked up in `PATH`.
    Program(String),
    /// A container image.
    Image {
        /// The image; not empty.
        image: String,
        /// Whether it may use the network.
        network: bool,
    },
    /// An exec or Go plugin, by where below the plugin home kustomize looks for it (api/internal/plugins/loader/loader.go).
    /// A Go plugin has `.so` at the end.
    Plugin(String),
    /// A function of a sort that is not known.
    Unknown,
}

impl NoteKind {
    /// Returns what it runs, for a policy; none where it runs nothing, or cannot be read.
    pub fn subject(&self) -> Option<Subject> {
        let NoteKind::Code { kind, runs } = self else {
            return None;
        };
        let program = match runs {
            Runs::Image { image, .. } => return Some(Subject::Remote(Upstream::Image { image: redact::url(image) })),
            Runs::Program(path) => path,
            Runs::Plugin(_) => kind,
            Runs::Unknown => return None,
        };
        Some(Subject::Program { program: redact::url(program) })
    }

    /// Returns what code it runs that is not in the tree, or that can be another tomorrow, for people.
    pub fn open(&self) -> Option<String> {
        let NoteKind::Code { kind, runs } = self else {
            return None;
        };
        Some(match runs {
            Runs::Program(path) if path.contains('/') => return None,
            Runs::Image { image, network: false } if is_pinned(image) => return None,
            Runs::Program(path) => {
                format!("the function `{kind}` runs whatever `{path}` is on the PATH of the build machine")
            }
            Runs::Image { image, network } => {
                let pinned = if is_pinned(image) { "" } else { ", not pinned by digest" };
                let network = if *network { ", with network access" } else { "" };
                format!("the function `{kind}` runs the image `{image}`{pinned}{network}")
            }
            Runs::Plugin(home) => {
                format!("the code of plugin `{kind}` is in the plugin home of the build machine, at `{home}`")
            }
            Runs::Unknown => format!("the function `{kind}` names neither a program nor an image"),
        })
    }
}

/// Returns whether an image is named by its digest.
pub(crate) fn is_pinned(image: &str) -> bool {
    image.rsplit_once("@sha256:").is_some_and(|(name, digest)| {
        !name.is_empty() && digest.len() == 64 && digest.bytes().all(|b| b.is_ascii_hexdigit())
    })
}

/// Collects the objects of a stream, with their kinds. The error is the place of what is not one, and why.
///
/// `GetValidatedMetadata` (kyaml/yaml/rnode.go): a kind and a name, but a list needs no name. `apiVersion` may be
/// missing.
pub(super) fn objects<'s>(stream: &'s Stream<'_>) -> Result<Vec<(&'s Value, String)>, (Position, String)> {
    let mut objects = Vec::new();
    for value in &stream.documents {
        let word = |keys: &[&str]| value.at(keys).and_then(Value::scalar).unwrap_or_default();
        let (kind, name) = (word(&["kind"]), word(&["metadata", "name"]));
        let why = match &value.data {
            Data::Null => continue,
            Data::Mapping(pairs) if pairs.is_empty() => continue,
            Data::Mapping(_) if kind.is_empty() => "an object without `kind`".to_owned(),
            Data::Mapping(_) if name.is_empty() && !kind.ends_with("List") => {
                format!("an object of kind {kind} without `metadata.name`")
            }
            Data::Mapping(_) => {
                objects.push((value, kind));
                continue;
            }
            _ => format!("expected an object, found {}", value.kind()),
        };
        return Err((value.start, why));
    }
    Ok(objects)
}

/// Returns what in a stream of objects is not plain YAML: its place, what it is, and what to do. kyaml, go-yaml and the
/// splitters of documents differ about it, from version to version too, so that only a build could tell what such an
/// object says.
pub(super) fn not_plain(stream: &Stream<'_>) -> Option<(Position, String, &'static str)> {
    let is_odd = |text: &str| {
        let after = text.strip_prefix("---").unwrap_or_default();
        let is_comment = after.starts_with([' ', '\t']) && after.trim_start().starts_with('#');
        !after.trim().is_empty() && !is_comment
    };
    if let Some(line) = stream.text.lines().position(is_odd) {
        let place = Position::new(stream.before + line + 1, 1);
        return Some((place, "text after `---`".to_owned(), "begin the document on the line after `---`"));
    }
    // kyaml takes it for text of the line, and so of a comment.
    let is_return = |(at, _): &(usize, &str)| !stream.text[at + 1..].starts_with('\n');
    if let Some((at, _)) = stream.text.match_indices('\r').find(is_return) {
        let place = Position::new(stream.before + stream.text[..at].matches('\n').count() + 1, 1);
        return Some((place, "a carriage return without a line feed".to_owned(), "end the line with a line feed"));
    }
    stream.documents.iter().find_map(|document| document.find_map(&odd_here))
}

/// Returns what in a value itself is not plain YAML.
pub(super) fn odd_here(value: &Value) -> Option<(Position, String, &'static str)> {
    if let Some(tag) = &value.tag {
        let tag = tag.replace("tag:yaml.org,2002:", "!!");
        return Some((value.start, format!("the tag `{tag}`"), "write the value without a tag"));
    }
    let (_, merged) = value.mapping()?.iter().find(|(key, _)| key == "<<")?;
    Some((merged.key, "the merge key `<<`".to_owned(), "write out the merged fields"))
}

fn refuse_odd(stream: &Stream<'_>, reader: &mut Reader<'_>) {
    if let Some((place, what, hint)) = not_plain(stream) {
        reader.problem(place, format!("not plain YAML: {what}"), hint);
    }
}

/// Reads the plugin configurations of a stream.
pub(super) fn read_objects(stream: &Stream<'_>, reader: &mut Reader<'_>) {
    refuse_odd(stream, reader);
    let objects = match objects(stream) {
        Ok(objects) => objects,
        Err((place, why)) => {
            let hint = "write one object in each document, with `kind` and `metadata.name`";
            return reader.problem(place, format!("not a plugin configuration: {why}"), hint);
        }
    };
    let is_one = objects.len() == 1;
    let inline = if reader.field.is_empty() { "" } else { "#" };
    for (i, (value, kind)) in objects.into_iter().enumerate() {
        let number = if is_one { String::new() } else { format!("[{i}]") };
        reader.within(&format!("{inline}{kind}{number}"), |reader| read_object(value, kind, reader));
    }
}

fn read_object(value: &Value, kind: String, reader: &mut Reader<'_>) {
    let api_version = value.get("apiVersion").and_then(Value::scalar).unwrap_or_default();
    if kind.ends_with("List") {
        let hint = "write each object in a document of its own, after `---`";
        reader.problem(value.start, format!("not plain YAML: a `{kind}` of objects"), hint);
    } else if !matches!(api_version.as_str(), "builtin" | "/builtin") {
        // The group is empty in both (`resid.ParseGroupVersion`).
        let home = || Runs::Plugin(format!("{api_version}/{}/{kind}", kind.to_lowercase()));
        let runs = function(reader, value).unwrap_or_else(home);
        reader.note(value.start, NoteKind::Code { kind, runs });
    } else if let Some(tree) = BUILTIN_TREES.get(kind.as_str()) {
        reader.visit_plugin(tree, value);
    } else {
        let hint = did_you_mean(&kind, BUILTIN_TREES.keys().copied());
        reader.problem(value.start, format!("there is no built-in plugin `{kind}`"), &hint);
    }
}

/// Finds out what an object runs, if it is a function.
fn function(reader: &mut Reader<'_>, object: &Value) -> Option<Runs> {
    let metadata = object.get("metadata")?;
    let annotation = |name| metadata.at(&["annotations", name]).filter(|value| value.text() != Some(""));
    if let Some(value) = FUNCTION_ANNOTATIONS.into_iter().find_map(annotation) {
        let stream = yaml::read_within(reader.text, value).ok().filter(|_| value.text().is_some());
        let Some(stream) = stream.filter(|stream| stream.documents.len() == 1) else {
            return Some(Runs::Unknown);
        };
        refuse_odd(&stream, reader);
        return Some(specified(reader, &stream.documents[0]));
    }
    if let Some(spec) = metadata.get("configFn") {
        return Some(specified(reader, spec));
    }
    let at = metadata.at(&["annotations", CONTAINER_ANNOTATION])?;
    let image = at.scalar().filter(|image| !image.is_empty())?;
    reader.argument(at, &image, "docker");
    Some(Runs::Image { image, network: false })
}

/// Reads a specification (`runtimeutil.FunctionSpec`), whose keys are those of a kustomization. An image goes before a
/// program.
fn specified(reader: &mut Reader<'_>, spec: &Value) -> Runs {
    reader.visit(&FUNCTION, spec);
    let field = |of, name| spec.folded_field(of).and_then(|of| of.folded_field(name));
    let word = |of, name| field(of, name).and_then(|at| Some((at, at.scalar().filter(|word| !word.is_empty())?)));
    if let Some((at, image)) = word("container", "image") {
        reader.within("container.image", |reader| reader.argument(at, &image, "docker"));
        let network = field("container", "network").is_some_and(Value::is_on);
        return Runs::Image { image, network };
    }
    let Some((at, path)) = word("exec", "path") else {
        return Runs::Unknown;
    };
    // Without a slash it is looked for on the `PATH`.
    if path.contains('/') {
        reader.within("exec.path", |reader| reader.reference(Accepts::Program, at, &path, None));
    }
    Runs::Program(path)
}
