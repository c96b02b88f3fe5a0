//! Functions: objects that say which program or container image makes them, in an annotation that is YAML itself.
//!
//! kustomize reads a specification as strictly as a kustomization (`sigs.k8s.io/yaml`), so the same table does:
//! keys in any case, the booleans of YAML 1.1, no unknown field. A field that is there twice is refused, also in
//! another case, where kustomize would put both together.

use super::fields::FUNCTION;
use super::read::{Place, Reader};
use super::yaml::{Dialect, Stream, Type};
use super::{Accepts, NoteKind, libyaml_check, plugin};
use crate::finding::Subject;
use crate::redact;

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
    #[must_use]
    pub fn subject(&self) -> Subject {
        Subject::Image {
            image: redact::url(self.image),
        }
    }
}

impl NoteKind {
    /// Returns what it runs, for a policy; none where it runs nothing, or cannot be read.
    #[must_use]
    pub fn runs(&self) -> Option<Subject> {
        let program = match self {
            NoteKind::KrmFunction { runtime, .. } => match runtime {
                FunctionRuntime::Exec { path } => path,
                FunctionRuntime::Container { image, .. } => {
                    let image = redact::url(image);
                    return Some(Subject::Image { image });
                }
                FunctionRuntime::Unknown => return None,
            },
            NoteKind::LegacyPlugin { kind, .. } => kind,
            _ => return None,
        };
        let program = redact::url(program);
        Some(Subject::Program { program })
    }

    /// Returns what a function gets from elsewhere; none where it needs nothing, or an image that cannot change.
    #[must_use]
    pub fn remote_image(&self) -> Option<RemoteImage<'_>> {
        let NoteKind::KrmFunction {
            runtime: FunctionRuntime::Container { image, network },
            ..
        } = self
        else {
            return None;
        };
        let found = RemoteImage {
            image,
            is_pinned: is_pinned(image),
            network: *network,
        };
        (!image.is_empty() && (found.network || !found.is_pinned)).then_some(found)
    }
}

/// Returns whether an image is named by its digest.
#[must_use]
pub fn is_pinned(image: &str) -> bool {
    image.rsplit_once("@sha256:").is_some_and(|(name, digest)| {
        !name.is_empty() && digest.len() == 64 && digest.bytes().all(|b| b.is_ascii_hexdigit())
    })
}

/// Finds out what an object runs, if it is a function.
pub(super) fn find(reader: &mut Reader<'_>, object: &Place) -> Option<FunctionRuntime> {
    for name in FUNCTION_ANNOTATIONS {
        let keys = ["metadata", "annotations", name];
        let Some(at) = reader.at(object, &keys) else {
            continue;
        };
        match reader.word(object, &keys) {
            Some(text) if text.is_empty() => {}
            Some(text) => {
                let runtime = libyaml_check::read(&text, 1)
                    .ok()
                    .and_then(|stream| in_text(reader, &at, &text, &stream));
                return Some(runtime.unwrap_or(FunctionRuntime::Unknown));
            }
            // Nothing, or what no annotation can be.
            None if reader.is_null(at.node) => {}
            None => return Some(FunctionRuntime::Unknown),
        }
    }
    if let Some(spec) = reader.at(object, &["metadata", "configFn"])
        && !reader.is_null(spec.node)
    {
        let label = reader.whereabouts.label("");
        let mut strict = reader.as_strict(&label);
        return Some(specified(&mut strict, &spec));
    }
    let keys = ["metadata", "annotations", CONTAINER_ANNOTATION];
    let image = reader.word(object, &keys)?;
    let at = reader.at(object, &keys)?;
    refuse_option(reader, &at, "", &image);
    (!image.is_empty()).then_some(FunctionRuntime::Container {
        image,
        network: false,
    })
}

/// Reads a specification that is the text of an annotation.
fn in_text(
    reader: &mut Reader<'_>,
    at: &Place,
    text: &str,
    stream: &Stream<'_>,
) -> Option<FunctionRuntime> {
    let document = stream.documents.first()?;
    let spec = document.root().map(Place::root)?;
    let label = reader.whereabouts.label("");
    let whereabouts = reader.within_scalar(at, text, stream).within(&label);
    plugin::refuse_odd(stream, &whereabouts, reader.found);
    let dialect = Dialect::Kustomization;
    let mut strict = Reader::new(document, 0, dialect, whereabouts, reader.found);
    Some(specified(&mut strict, &spec))
}

/// Reads a specification. An image goes before a program.
fn specified(reader: &mut Reader<'_>, spec: &Place) -> FunctionRuntime {
    reader.root(&FUNCTION, spec.clone());
    if let Some(at) = reader.folded(spec, &["container", "image"])
        && let Some(image) = reader.filled(&at)
    {
        refuse_option(reader, &at, "container.image", &image);
        let network = reader.folded(spec, &["container", "network"]);
        let network = network.and_then(|place| reader.document.scalar(place.node));
        let network = network.is_some_and(|word| {
            word.starts_with(['y', 'Y', 't', 'T']) || word.eq_ignore_ascii_case("on")
        });
        return FunctionRuntime::Container { image, network };
    }
    let Some(at) = reader.folded(spec, &["exec", "path"]) else {
        return FunctionRuntime::Unknown;
    };
    let Some(path) = reader.filled(&at) else {
        return FunctionRuntime::Unknown;
    };
    // Without a slash it is looked for on the `PATH`.
    let is_text = reader.document.scalar_type(at.node, Dialect::Kustomization) == Some(Type::Text);
    if path.contains('/') && is_text {
        reader.reference(Accepts::Program, &at, "exec.path", &path, None);
    }
    FunctionRuntime::Exec { path }
}
/// Notes an image that docker would take for an option.
fn refuse_option(reader: &mut Reader<'_>, at: &Place, field: &str, image: &str) {
    if image.starts_with('-') {
        let message = format!("docker would take `{}` for an option", redact::url(image));
        reader.misleading(at.node, field, image, message);
    }
}

impl Reader<'_> {
    /// Returns the word at a place; none where it is empty.
    fn filled(&self, place: &Place) -> Option<String> {
        match self
            .document
            .scalar_type(place.node, Dialect::Kustomization)
        {
            None | Some(Type::Null) => None,
            Some(_) => self.document.scalar(place.node).map(str::to_owned),
        }
        .filter(|word| !word.is_empty())
    }
}
