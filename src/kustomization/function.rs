//! Functions: objects that say which program or container image makes them, in an annotation that is YAML itself.
//!
//! kustomize reads a specification as strictly as a kustomization (`sigs.k8s.io/yaml`), so the same table does:
//! keys in any case, the booleans of YAML 1.1, no unknown field. A field that is there twice is refused, also in
//! another case, where kustomize would put both together.

use super::fields::FUNCTION;
use super::read::{Place, Reader};
use super::yaml::{Dialect, Stream, Type};
use super::{Accepts, libyaml_check, plugin};
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
        /// The files and directories that it is given (`mounts[].src`).
        mounts: Vec<String>,
        /// The types of what it is given besides those, as `volume`: nothing that the tree holds.
        others: Vec<String>,
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
        mounts: Vec::new(),
        others: Vec::new(),
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
    if let Some(container) = reader.folded(spec, &["container"])
        && let Some(image) = reader.folded_word(&container, "image")
    {
        let at = reader.folded(&container, &["image"]);
        let at = at.as_ref().unwrap_or(&container);
        refuse_option(reader, at, "container.image", &image);
        return contained(reader, &container, image);
    }
    let exec = reader.folded(spec, &["exec"]);
    if let Some(path) = exec
        .as_ref()
        .and_then(|exec| reader.folded_word(exec, "path"))
        && let Some(exec) = &exec
    {
        // Without a slash it is looked for on the `PATH`.
        if path.contains('/') {
            reader.referred(exec, "exec", "path", Accepts::Program);
        }
        return FunctionRuntime::Exec { path };
    }
    let Some(script) = reader.folded(spec, &["starlark"]) else {
        return FunctionRuntime::Unknown;
    };
    let below = Accepts::Carried { anywhere: false };
    FunctionRuntime::Starlark {
        path: reader
            .referred(&script, "starlark", "path", below)
            .unwrap_or_default(),
        url: reader.folded_word(&script, "url").unwrap_or_default(),
    }
}

fn contained(reader: &mut Reader<'_>, container: &Place, image: String) -> FunctionRuntime {
    let (mut mounts, mut others) = (Vec::new(), Vec::new());
    let list = reader.folded(container, &["mounts"]);
    let list = list.map(|list| reader.items(&list)).unwrap_or_default();
    for (i, mount) in list.iter().enumerate() {
        let field = format!("container.mounts[{i}]");
        for name in ["type", "src", "dst"] {
            // They become one argument, in which a comma ends each.
            if let Some(text) = reader
                .folded_word(mount, name)
                .filter(|text| text.contains(','))
            {
                let place = reader
                    .folded(mount, &[name])
                    .unwrap_or_else(|| mount.clone());
                let message = format!(
                    "docker would take `{}` for more than one option",
                    redact::url(&text)
                );
                reader.misleading(place.node, &format!("{field}.{name}"), &text, message);
            }
        }
        let sort = reader.folded_word(mount, "type").unwrap_or_default();
        if sort != "bind" {
            others.push(sort.clone());
        }
        // A volume has a name, no path.
        if sort.is_empty() || sort.eq_ignore_ascii_case("bind") {
            let below = Accepts::Carried { anywhere: false };
            mounts.extend(reader.referred(mount, &field, "src", below));
        }
    }
    FunctionRuntime::Container {
        image,
        network: reader.folded(container, &["network"]).is_some_and(|place| {
            reader.document.scalar(place.node).is_some_and(|word| {
                word.starts_with(['y', 'Y', 't', 'T']) || word.eq_ignore_ascii_case("on")
            })
        }),
        mounts,
        others,
    }
}

/// Notes an image that docker would take for an option.
fn refuse_option(reader: &mut Reader<'_>, at: &Place, field: &str, image: &str) {
    if image.starts_with('-') {
        let message = format!("docker would take `{}` for an option", redact::url(image));
        reader.misleading(at.node, field, image, message);
    }
}

impl Reader<'_> {
    /// Returns the word of a field, in any case; none where it is empty.
    fn folded_word(&mut self, place: &Place, name: &str) -> Option<String> {
        let place = self.folded(place, &[name])?;
        match self
            .document
            .scalar_type(place.node, Dialect::Kustomization)
        {
            None | Some(Type::Null) => None,
            Some(_) => self.document.scalar(place.node).map(str::to_owned),
        }
        .filter(|word| !word.is_empty())
    }

    /// Returns the same word, as a reference too. `field` is what is at `place`.
    fn referred(
        &mut self,
        place: &Place,
        field: &str,
        name: &str,
        accepts: Accepts,
    ) -> Option<String> {
        let word = self.folded_word(place, name)?;
        let at = self.folded(place, &[name])?;
        if self.document.scalar_type(at.node, Dialect::Kustomization) == Some(Type::Text) {
            self.reference(accepts, &at, &format!("{field}.{name}"), &word, None);
        }
        Some(word)
    }
}
