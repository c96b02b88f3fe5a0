//! Reading a kustomization or a plugin configuration from bytes, finding every reference in it with
//! its exact place, and editing references in the text byte by byte.
//!
//! Pure code: bytes in, data out. This module finds which scalars of a file name another file or root ([`Reference`]),
//! what kustomize would refuse ([`Problem`]) and what it accepts although the user should know ([`Note`]). What a
//! reference *means* is the business of `crate::reference`.
//!
//! The rules are those of kustomize 5.8.1, measured with the real program: the first document only, keys compared as Go's
//! `encoding/json` does (case-insensitive), YAML 1.1 words such as `yes` are no strings, of a key twice the last one
//! counts. What is not on the way to a reference is kustomize's business; what is on the way and cannot be read is a problem,
//! and so is a reference that does not count. In plugin configurations and other objects a problem is what their readers
//! may understand in different ways (tags, merge keys, a key twice). A file is read by two parsers: where they disagree
//! nothing is believed.
//!
//! | module | what it holds |
//! |---|---|
//! | `fields` | THE table: every field of a kustomization and of the built-in plugins that leads somewhere |
//! | `yaml` | values that know their bytes; the two parsers |
//! | `read`, `plugin` | the table applied to a document; inline and separate plugin configurations, functions |
//! | `edit` | edits in the text, and the proof that nothing else changed |
//! | `sniff` | what a downloaded body is |
//! | `format` | YAML of our own formats |
//! | `objects` | Kubernetes objects as values with places |
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
pub(crate) use objects::{documents, read_object, unescaped};
pub(crate) use plugin::{Runs, is_pinned};
pub(crate) use read::is_same_key;
pub use read::{read, read_plugin, reshaping};
pub(crate) use sniff::{is_flux_object, looks_like_html, looks_like_resources};
pub(crate) use typed::{Mistyped, Placed, Scalar};
pub(crate) use yaml::{Data, Value};

pub use crate::tree::FILE_NAMES;

/// What a kustomization file declares itself to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Kind {
    /// An ordinary kustomization; also when `kind` is absent.
    #[default]
    Kustomization,
    /// A component, to be named in `components` only.
    Component,
}

/// What one kustomization file says, or one file of plugin configurations, as kustomize would understand it. The
/// references of a plugin are relative to the kustomization that lists it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Kustomization {
    /// The declared or implied kind.
    pub kind: Kind,
    /// Every reference in effect, in the order of the text.
    pub references: Vec<Reference>,
    /// What kustomize accepts but a person should know, in the order of the text.
    pub notes: Vec<Note>,
}

/// One scalar that names a file or a root.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Reference {
    /// The place as a person would name it, spelled with the canonical key names: `resources[2]`,
    /// `configMapGenerator[0].files[1]`, `generators[0]#PatchTransformer.path` for a plugin configuration that
    /// stands inline, `PatchTransformer.path` in a plugin file.
    pub field: String,
    /// What kustomize takes here.
    pub accepts: Accepts,
    /// The path or URL; in a generator's `files` without `key=`.
    pub text: String,
    /// The data key that the file gets; only for a generator's `files`.
    pub key: Option<GeneratorKey>,
    /// The scalar.
    pub span: Span,
    /// Where to edit.
    pub spot: Spot,
}

impl Reference {
    /// Returns the whole value of the scalar as it is.
    pub fn value(&self) -> String {
        self.with_path(&self.text)
    }

    /// Returns the whole value of the scalar, for [`Edit::value`], that makes it name `path` and nothing else
    /// change: a generator's file keeps its key, which is written out when the base name of `path` is another one.
    pub fn with_path(&self, path: &str) -> String {
        match &self.key {
            Some(key) if key.is_written || read::base_name(path) != key.name => format!("{}={path}", key.name),
            _ => path.to_owned(),
        }
    }
}

/// What kustomize takes in a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Accepts {
    /// A file, local or over http(s).
    File,
    /// A directory or git repository that holds a component.
    Component,
    /// A file or a root, tried in this order (`accumulateResources`).
    Either,
    /// A file or a root, as [`Accepts::Either`], whose objects are configurations of plugins.
    Plugin,
    /// A program, by a path with a slash in it, anywhere; a URL too, which kustomize does not read.
    Program,
}

/// The key under which a generator stores a file.
///
/// kustomize computes it from the *text* of the source (`ParseFileSource`), so another path may need
/// an explicit key to keep it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GeneratorKey {
    /// The key itself; the base name of the text, its query included, where none is written.
    pub name: String,
    /// Whether it is written as `key=path`.
    pub is_written: bool,
}

/// Where in a file a scalar stands, for [`edit()`]. Valid for the bytes it was read from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Spot {
    /// Its bytes; none where it cannot be edited.
    range: Range<usize>,
    start: Position,
    /// Whether it stands in `[]` or `{}`.
    in_flow: bool,
    /// Several places may show one scalar, by an anchor of what it stands in: each has its number.
    number: usize,
}

/// A file whose references cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Why, in the order of the text.
    pub problems: Vec<Problem>,
    /// What could be read all the same. There may be more in the file.
    pub read: Kustomization,
}

/// Something in the file that kustomize refuses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub position: Position,
    /// The field, as in [`Reference::field`]; empty when the whole file is meant.
    pub field: String,
    /// What is wrong: a lower-case phrase.
    pub message: String,
    /// What to do about it; may be empty.
    pub hint: String,
    /// What sort of problem it is.
    pub kind: ProblemKind,
}

/// The sorts of [`Problem`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProblemKind {
    /// Nothing but `apiVersion` and `kind`, or nothing at all.
    Empty,
    /// `kind` or `apiVersion` is not what kustomize wants.
    WrongKind,
    /// Its text is a template, of which something else makes YAML.
    Template,
    /// More than what is read of a file: nothing in it is known.
    TooLarge,
    /// A program would take a text for one of its options.
    Option,
    /// Plugin configurations are not simply what stands in their files.
    Reshaped,
    /// Anything else.
    Other,
}

/// Something that kustomize accepts but a person should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    pub position: Position,
    /// The field, as in [`Reference::field`].
    pub field: String,
    /// What it is.
    pub kind: NoteKind,
}

/// The sorts of [`Note`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoteKind {
    /// A document after the first, which kustomize does not read.
    ExtraDocument,
    /// A key that is there again, so that kustomize does not read this one.
    Replaced {
        /// The line of the one that counts.
        line: usize,
    },
    /// A chart, at `{chartHome}/{name}`. One with a repository may be at `{chartHome}/{name}-{version}/{name}`, if it has a
    /// version, and is pulled by helm where it is not there.
    Chart {
        /// The repository, `https://`, `http://` or `oci://`; empty where there is none.
        repo: String,
        /// The chart.
        name: String,
        /// The version; empty when floating.
        version: String,
        /// Where that is edited; `None` if it is floating.
        version_at: Option<Spot>,
        /// Whether `valuesFile` is set or the values are replaced; otherwise the chart's own `values.yaml` is
        /// read, below the root only.
        values_file: bool,
        /// The directory in which charts are looked for, as written.
        home: String,
        /// Whether `devel` is set: without a version, the newest one may be one under development.
        devel: bool,
    },
    /// A function or plugin: code that is not part of the kustomization.
    Code {
        /// `kind` of the configuration.
        kind: String,
        /// What runs.
        runs: Runs,
    },
}

#[cfg(test)]
mod tests;
