//! Plugin configurations: the objects in `generators`, `transformers` and `validators`, inline or in a file of their
//! own. Those of built-in plugins can contain references; all others are code, and become notes.

use super::fields::{BUILTIN_FIELDS, FUNCTION_FIELDS};
use super::read::{KustomizationReader, did_you_mean};
use super::yaml::{self, Data, Stream, Value};
use super::{Accepts, NoteKind, Problem, ProblemKind};
use crate::message::finding::Subject;
use crate::message::position::Position;
use crate::message::redact;
use crate::reference::Upstream;

/// The annotations that make an object a function, in the order in which kustomize looks for them
/// (kyaml/fn/runtime/runtimeutil/functiontypes.go).
const FUNCTION_ANNOTATIONS: [&str; 2] = ["config.kubernetes.io/function", "config.k8s.io/function"];
const CONTAINER_ANNOTATION: &str = "config.kubernetes.io/container";

/// The code that a function or plugin runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Runs {
    /// A program. With a slash it is relative to the kustomization and may be outside of its root; without a slash it
    /// is looked up in `PATH`.
    Program(String),
    /// A container image.
    Image {
        /// The image; not empty.
        image: String,
        /// Whether it may use the network.
        network: bool,
    },
    /// An exec or Go plugin, by its path below the plugin home (api/internal/plugins/loader/loader.go). A Go plugin has
    /// `.so` at the end.
    Plugin(String),
    /// A function that names neither a program nor an image.
    Unknown,
}

impl NoteKind {
    /// The image or program that it runs, as an entry of `allow` names it; `None` if it runs no code, or unknown code.
    pub fn subject(&self) -> Option<Subject> {
        let NoteKind::Code { kind, runs } = self else { return None };
        let program = match runs {
            Runs::Image { image, .. } => return Some(Subject::Remote(Upstream::Image { image: redact::url(image) })),
            Runs::Program(path) => path,
            Runs::Plugin(_) => kind,
            Runs::Unknown => return None,
        };
        Some(Subject::Program { program: redact::url(program) })
    }

    /// The message about code that can change without a commit, so that the output of a build may change, too: a
    /// program or plugin of the machine, an image that is not pinned or uses the network, or code that is not known.
    /// `None` for any other note.
    pub fn untracked_code(&self) -> Option<String> {
        let NoteKind::Code { kind, runs } = self else { return None };
        Some(match runs {
            // With a slash it is a file of the tree or a URL, and not looked up on the machine.
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

/// Whether an image is named by its digest.
pub(crate) fn is_pinned(image: &str) -> bool {
    image.rsplit_once("@sha256:").is_some_and(|(name, digest)| {
        !name.is_empty() && digest.len() == 64 && digest.bytes().all(|b| b.is_ascii_hexdigit())
    })
}

/// The objects of a stream, each with its kind. Fails for the first document that kustomize would not accept as an
/// object.
pub(super) fn objects<'s>(stream: &'s Stream<'_>) -> Result<Vec<(&'s Value, String)>, Problem> {
    let mut objects = Vec::new();
    for value in &stream.documents {
        let [kind, name] = [&["kind"][..], &["metadata", "name"]]
            .map(|keys| value.at(keys).and_then(Value::scalar).unwrap_or_default());
        // As `GetValidatedMetadata` (kyaml/yaml/rnode.go): a list needs no name, and no object an `apiVersion`.
        let why = match &value.data {
            // kustomize skips empty documents, too.
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
        let hint = "write one object in each document, with `kind` and `metadata.name`";
        return Err(Problem::new(ProblemKind::Other, value.start, why, hint));
    }
    Ok(objects)
}

/// A part of a stream that kyaml, go-yaml and the splitters of documents read differently, also from version to
/// version, looked for in this order: text after `---`, lone carriage returns, tags and merge keys. `None` if there is
/// none.
pub(super) fn not_plain(stream: &Stream<'_>) -> Option<Problem> {
    let at_line = |line, message, hint| {
        Problem::new(ProblemKind::Other, Position::new(stream.before + line + 1, 1), message, hint)
    };
    if let Some(line) = stream.text.lines().position(has_text_after_dashes) {
        return Some(at_line(line, "text after `---`", "begin the document on the line after `---`"));
    }
    // For kyaml a lone carriage return does not end a line, so the rest of the line can be part of a comment.
    let mut returns = stream.text.match_indices('\r');
    if let Some((at, _)) = returns.find(|(at, _)| !stream.text[at + 1..].starts_with('\n')) {
        let line = stream.text[..at].matches('\n').count();
        return Some(at_line(line, "a carriage return without a line feed", "end the line with a line feed"));
    }
    stream.documents.iter().find_map(|document| document.find_map(&tag_or_merge_key))
}

/// Whether a line begins with `---` and has text after it that is not a comment.
fn has_text_after_dashes(line: &str) -> bool {
    let after = line.strip_prefix("---").unwrap_or_default();
    let is_comment = after.starts_with([' ', '\t']) && after.trim_start().starts_with('#');
    !after.trim().is_empty() && !is_comment
}

/// The problem of a tag or merge key at a value itself, which readers of YAML treat differently; `None` if it has
/// neither. The caller looks at the values in it.
pub(super) fn tag_or_merge_key(value: &Value) -> Option<Problem> {
    let (position, message, hint) = match &value.tag {
        Some(tag) => {
            let tag = tag.replace("tag:yaml.org,2002:", "!!");
            (value.start, format!("the tag `{tag}`"), "write the value without a tag")
        }
        None => {
            let (_, merged) = value.mapping()?.iter().find(|(key, _)| key == "<<")?;
            (merged.key, "the merge key `<<`".to_owned(), "write out the merged fields")
        }
    };
    Some(Problem::new(ProblemKind::Other, position, message, hint))
}

/// Adds a problem to `reader` if a stream is not plain YAML.
fn refuse_other_yaml(stream: &Stream<'_>, reader: &mut KustomizationReader<'_>) {
    if let Some(problem) = not_plain(stream) {
        reader.push_problem(problem.context("not plain YAML"));
    }
}

/// Reads the plugin configurations of a stream, from a file of their own or inline in a kustomization, and adds their
/// references, notes and problems to `reader`.
pub(super) fn read_objects(stream: &Stream<'_>, reader: &mut KustomizationReader<'_>) {
    refuse_other_yaml(stream, reader);
    let objects = match objects(stream) {
        Ok(objects) => objects,
        Err(problem) => return reader.push_problem(problem.context("not a plugin configuration")),
    };
    // Messages name each configuration by its kind, and by its number if there are several.
    let is_single = objects.len() == 1;
    let inline = if reader.field.is_empty() { "" } else { "#" };
    for (i, (value, kind)) in objects.into_iter().enumerate() {
        let number = if is_single { String::new() } else { format!("[{i}]") };
        reader.within(&format!("{inline}{kind}{number}"), |reader| read_object(value, kind, reader));
    }
}

/// Reads one plugin configuration: of a built-in plugin its references, of any other the code that it runs.
fn read_object(value: &Value, kind: String, reader: &mut KustomizationReader<'_>) {
    let api_version = value.get("apiVersion").and_then(Value::scalar).unwrap_or_default();
    if kind.ends_with("List") {
        // kustomize reads each object of the list as a configuration, but this function would not find them.
        let hint = "write each object in a document of its own, after `---`";
        reader.add_problem(value.start, format!("not plain YAML: a `{kind}` of objects"), hint);
    } else if !matches!(api_version.as_str(), "builtin" | "/builtin") {
        // `/builtin` is `builtin` with an empty group (`resid.ParseGroupVersion`). Anything else is a function, or an
        // exec or Go plugin.
        let runs = function_code(reader, value)
            .unwrap_or_else(|| Runs::Plugin(format!("{api_version}/{}/{kind}", kind.to_lowercase())));
        reader.add_note(value.start, NoteKind::Code { kind, runs });
    } else if let Some(tree) = BUILTIN_FIELDS.get(kind.as_str()) {
        reader.visit_plugin(tree, value);
    } else {
        let hint = did_you_mean(&kind, BUILTIN_FIELDS.keys().copied());
        reader.add_problem(value.start, format!("there is no built-in plugin `{kind}`"), &hint);
    }
}

/// The code that an object runs as a function, by its annotations or `configFn`; `None` if it is not a function.
/// Problems in the annotation, which has YAML of its own, are added to `reader`.
fn function_code(reader: &mut KustomizationReader<'_>, object: &Value) -> Option<Runs> {
    let metadata = object.get("metadata")?;
    let mut annotations = FUNCTION_ANNOTATIONS.into_iter().filter_map(|name| metadata.at(&["annotations", name]));
    // As in kustomize, an empty annotation does not count.
    if let Some(value) = annotations.find(|value| value.text() != Some("")) {
        let stream = yaml::read_within(reader.text, value).ok().filter(|_| value.text().is_some());
        // An annotation that is not one document of YAML does not tell what runs.
        let Some(stream) = stream.filter(|stream| stream.documents.len() == 1) else {
            return Some(Runs::Unknown);
        };
        refuse_other_yaml(&stream, reader);
        return Some(read_function_spec(reader, &stream.documents[0]));
    }
    if let Some(spec) = metadata.get("configFn") {
        return Some(read_function_spec(reader, spec));
    }
    let at = metadata.at(&["annotations", CONTAINER_ANNOTATION])?;
    let image = at.scalar().filter(|image| !image.is_empty())?;
    reader.refuse_option(at, &image, "docker");
    Some(Runs::Image { image, network: false })
}

/// The code that the specification of a function runs (`runtimeutil.FunctionSpec`): an image, or a program. A program
/// of the tree is also added as a reference. As in a kustomization, the case of keys does not count.
fn read_function_spec(reader: &mut KustomizationReader<'_>, spec: &Value) -> Runs {
    reader.visit(&FUNCTION_FIELDS, spec);
    // As in kustomize, an image takes precedence over a program.
    if let Some((value, image)) = spec_field(spec, "container", "image").and_then(not_empty) {
        reader.within("container.image", |reader| reader.refuse_option(value, &image, "docker"));
        let network = spec_field(spec, "container", "network").is_some_and(Value::is_on);
        return Runs::Image { image, network };
    }
    let Some((value, path)) = spec_field(spec, "exec", "path").and_then(not_empty) else {
        return Runs::Unknown;
    };
    // Without a slash the program is looked up in `PATH`, so it is not a file of the tree.
    if path.contains('/') {
        reader.within("exec.path", |reader| reader.add_reference(Accepts::Program, value, &path, None));
    }
    Runs::Program(path)
}

/// The value of a field of the specification of a function, at two keys, whose case does not count.
fn spec_field<'v>(spec: &'v Value, outer: &str, inner: &str) -> Option<&'v Value> {
    spec.folded_field(outer)?.folded_field(inner)
}

/// The value with its text. `None` if it is empty, or not a scalar.
fn not_empty(value: &Value) -> Option<(&Value, String)> {
    Some((value, value.scalar().filter(|text| !text.is_empty())?))
}
