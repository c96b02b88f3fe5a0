//! Reads a kustomization or a plugin configuration from bytes, finds every reference in it with its exact position, and
//! edits references in the text byte by byte.
//!
//! Pure code: bytes in, data out. This module finds the scalars of a file that name another file or root
//! ([`Reference`]), the errors that kustomize would report ([`Problem`]) and the things that it accepts although the
//! user should know ([`Note`]). The meaning of a reference is the business of `crate::reference`.
//!
//! The rules are those of kustomize 5.8.1, measured with the real program: it reads the first document only, compares
//! keys as Go's `encoding/json` does (case-insensitive), does not take YAML 1.1 words such as `yes` for strings, and
//! uses the last value of a repeated key. Of a field that leads to no reference only the name is checked. On the way to
//! a reference, a value that cannot be read is a problem, and so is a reference that kustomize ignores. In plugin
//! configurations and other objects, anything that their readers may understand differently is a problem (tags, merge
//! keys, repeated keys). Two parsers read each file; if they disagree, the file is rejected.
//!
//! | module | content |
//! |---|---|
//! | `fields` | THE table: every field of a kustomization and of the built-in plugins that leads to a reference |
//! | `yaml` | values that know their bytes; the two parsers |
//! | `read`, `plugin` | the table applied to a document; inline and separate plugin configurations, functions |
//! | `edit` | edits in the text, and the proof that nothing else changed |
//! | `sniff` | recognizes web pages and objects in a downloaded body |
//! | `format` | YAML of our own formats |
//! | `objects` | Kubernetes objects as values with positions |
//! | `typed` | values as types of `serde` |

use crate::message::position::{Position, Span};
use std::ops::Range;

mod edit;
mod fields;
pub(crate) mod format;
mod objects;
mod plugin;
mod read;
mod sniff;
mod typed;
mod yaml;

pub use edit::{Edit, edit};
pub(crate) use objects::{FileDocument, ObjectError, documents, read_object, unescaped};
pub(crate) use plugin::{Runs, is_pinned};
pub(crate) use read::is_same_key;
pub use read::{read, read_plugin, reshaping};
pub(crate) use sniff::{count_objects, is_flux_object, looks_like_html};
pub(crate) use typed::{Located, Mistyped, Scalar};
pub(crate) use yaml::{Data, Value, refuse_expansion};

pub use crate::tree::FILE_NAMES;

/// The kind that a kustomization file declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum KustomizationKind {
    /// An ordinary kustomization; also if `kind` is missing.
    #[default]
    Kustomization,
    /// A component, to be named in `components` only.
    Component,
}

/// The content of one kustomization file, or one file of plugin configurations, as kustomize understands it. The
/// references of a plugin are relative to the kustomization that lists it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Kustomization {
    /// The declared or implied kind.
    pub kind: KustomizationKind,
    /// Every reference in effect, in the order of the text.
    pub references: Vec<Reference>,
    /// In the order of the text.
    pub notes: Vec<Note>,
}

/// One scalar that names a file or a root.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Reference {
    /// The field as a person would name it, with the canonical names of keys: `resources[2]`,
    /// `configMapGenerator[0].files[1]`, `generators[0]#PatchTransformer.path` in an inline plugin configuration,
    /// `PatchTransformer.path` in a plugin file.
    pub field: String,
    pub accepts: Accepts,
    /// The path or URL; in a generator's `files` without `key=`.
    pub text: String,
    /// The data key that the file gets; only for a generator's `files`.
    pub key: Option<GeneratorKey>,
    /// The location of the scalar for messages, and for edits.
    pub span: Span,
    pub spot: Spot,
}

impl Reference {
    /// The whole value of the scalar.
    pub fn value(&self) -> String {
        self.with_path(&self.text)
    }

    /// The whole value of the scalar, for [`Edit::value`], that names `path` instead. A generator's file keeps its key.
    pub fn with_path(&self, path: &str) -> String {
        match &self.key {
            // A key that is not written is the base name, so another base name needs it written out.
            Some(key) if key.is_written || read::base_name(path) != key.name => format!("{}={path}", key.name),
            _ => path.to_owned(),
        }
    }
}

/// The references that kustomize accepts in a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Accepts {
    /// A file, local or over http(s).
    File,
    /// A directory or git repository with a component.
    Component,
    /// A file or a root, tried in this order (`accumulateResources`).
    Either,
    /// A file or a root, as [`Accepts::Either`], whose objects are configurations of plugins.
    Plugin,
    /// A program: a path with a slash, which may leave the root. A URL is accepted only to report that kustomize does
    /// not read it.
    Program,
}

/// The key under which a generator stores a file.
///
/// kustomize computes it from the *text* of the source (`ParseFileSource`), so another path may need
/// an explicit key to keep it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GeneratorKey {
    /// The key; the base name of the text, with its query, if no key is written.
    pub name: String,
    /// Whether the entry has the form `key=path`.
    pub is_written: bool,
}

/// The location of a scalar for [`edit()`]. It is valid for the bytes that it was read from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Spot {
    /// The bytes; empty if the scalar cannot be edited.
    range: Range<usize>,
    start: Position,
    /// Whether the scalar is in `[]` or `{}`.
    in_flow: bool,
    /// A number that distinguishes the references that show one scalar, because an alias repeats a value around it.
    number: usize,
}

/// A file whose references cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// In the order of the text.
    pub problems: Vec<Problem>,
    /// The part that could be read. There may be more in the file.
    pub read: Kustomization,
}

/// A part of the file that kustomize refuses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub position: Position,
    /// The field, as in [`Reference::field`]; empty for the whole file.
    pub field: String,
    /// A phrase in lower case.
    pub message: String,
    /// May be empty.
    pub hint: String,
    pub kind: ProblemKind,
}

/// The kinds of [`Problem`] that other rooms handle differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProblemKind {
    /// Nothing but `apiVersion` and `kind`, or nothing at all.
    Empty,
    /// Kustomize wants another `kind` or `apiVersion`.
    WrongKind,
    /// The text is a template, from which another program makes YAML.
    Template,
    /// The file exceeds a limit, so nothing in it is known. Or a reference is too long, and only that is skipped.
    TooLarge,
    /// A program would take a text for one of its options.
    Option,
    /// Fields of a root may change the plugin configurations that its files contain.
    Reshaped,
    /// Anything else.
    Other,
}

/// A part of the file that kustomize accepts although the user should know about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    pub position: Position,
    /// The field, as in [`Reference::field`].
    pub field: String,
    pub kind: NoteKind,
}

/// The kinds of [`Note`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoteKind {
    /// A document after the first, which kustomize does not read.
    ExtraDocument,
    /// A key that is repeated below, so that kustomize does not read this value.
    Replaced {
        /// The line of the value that counts.
        line: usize,
    },
    /// A chart, at `{chartHome}/{name}`. If it has a repository and a version it may also be at
    /// `{chartHome}/{name}-{version}/{name}`; if it is missing, helm pulls it.
    Chart {
        /// The repository, `https://`, `http://` or `oci://`; empty for a local chart.
        repo: String,
        name: String,
        /// The version; empty for a floating one.
        version: String,
        /// The spot of the version; `None` if it floats.
        version_at: Option<Spot>,
        /// Whether `valuesFile` is set or the values are replaced; otherwise the `values.yaml` of the chart is read,
        /// which must be below the root.
        values_file: bool,
        /// The directory that contains charts, as written.
        home: String,
        /// Whether `devel` is set: without a version, the newest one may be a pre-release.
        devel: bool,
    },
    /// A function or plugin: code that is not part of the kustomization.
    Code {
        /// `kind` of the configuration.
        kind: String,
        runs: Runs,
    },
}

#[cfg(test)]
mod tests;
