//! Troubles: references that a walk could not follow, with the data that rules need.

use std::collections::BTreeSet;

use super::{Absence, EdgeId, FileId, Graph, RootId};
use crate::kustomization::ProblemKind;
use crate::message::failure::{Failure, Location};
use crate::message::finding::Rule;

/// A reference that the walk could not follow, or a file that kustomize refuses. During the walk it is also the error
/// that ends a step.
#[derive(Debug, Clone)]
pub(crate) struct Trouble {
    pub kind: TroubleKind,
    pub at: At,
    /// The message, location and hints.
    pub failure: Failure,
}

/// The subject of a [`Trouble`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum At {
    Edge(EdgeId),
    /// A note, by its index in [`Graph::notes`].
    Note(usize),
    File(FileId),
    /// No file and no reference: a directory without a kustomization in which the walk starts, or the whole walk.
    Nothing,
}

/// The kinds of [`Trouble`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TroubleKind {
    /// Something could not be read or fetched, or exceeds a limit, so the answer is unknown.
    Failed,
    /// A chart could not be fetched, or is not a chart.
    Chart,
    /// The schema of a chart makes helm read something that is not in the chart.
    Schema {
        /// The URL or path that helm reads. Empty if it is not known.
        url: String,
    },
    /// The reference has text that git or kustomize could misread.
    Unsafe,
    /// The reference was surely meant to be remote, but kustomize cannot read it. Or kustomize takes it for a URL
    /// although a path of that name exists.
    Unsupported,
    /// This rule forbids to lock the upstream.
    Distrusted(Rule),
    /// The path leaves its scope or the tree, or is absolute.
    OutOfScope,
    /// The path leaves its root, which may read only files in or below it.
    Restricted,
    /// There is nothing at the path.
    Missing {
        /// The path from the top of the tree, with links followed.
        path: String,
        absence: Absence,
    },
    /// The directory has no kustomization.
    NoKustomization {
        /// The path of the directory from the top of the tree.
        directory: String,
        absence: Absence,
    },
    /// The directory has several kustomizations, or something of that name that is not a file.
    BadKustomization {
        /// The path of the first of them.
        path: String,
    },
    /// The path is in a submodule.
    Submodule {
        /// The path of the submodule.
        path: String,
    },
    /// Roots reference each other in a cycle.
    Cycle,
    /// The root of plugin configurations changes them, so they are not what their files say.
    Reshaped,
    /// kustomize refuses something in the file.
    Problem(ProblemKind),
    /// kustomize refuses the reference for another reason, such as a component in `resources`.
    Refused,
}

impl TroubleKind {
    /// Whether a file was not read as a whole, so that it may have more references than are known.
    pub(crate) fn hides_references(&self) -> bool {
        use TroubleKind::{BadKustomization, Failed, Problem, Reshaped};
        matches!(self, Failed | Problem(_) | Reshaped | BadKustomization { .. })
    }
}

impl Graph {
    /// The root whose directory paths at `at` are relative to. `None` for a file, also for a kustomization, and for
    /// `At::Nothing`.
    pub(crate) fn root_at(&self, at: At) -> Option<RootId> {
        match at {
            At::Edge(edge) => Some(edge.root),
            At::Note(note) => Some(self.notes[note].root),
            At::File(_) | At::Nothing => None,
        }
    }

    /// Whether `at` belongs to one of `roots`. `At::Nothing` belongs to all.
    pub(crate) fn belongs_to(&self, at: At, roots: &BTreeSet<RootId>) -> bool {
        match (self.root_at(at), at) {
            (Some(root), _) => roots.contains(&root),
            // Several roots may list one plugin configuration.
            (None, At::File(file)) => roots.iter().any(|root| self.files_of(*root).any(|used| used == file)),
            (None, _) => true,
        }
    }

    /// The file of `at`. `None` for `At::Nothing`.
    pub(crate) fn file_at(&self, at: At) -> Option<FileId> {
        match at {
            At::Edge(edge) => Some(self[edge].from),
            At::Note(note) => Some(self.notes[note].file),
            At::File(file) => Some(file),
            At::Nothing => None,
        }
    }

    /// The location of a reference or note. `None` for a file, whose troubles come with a location.
    fn location_at(&self, at: At) -> Option<Location> {
        match at {
            At::Edge(edge) => Some(self.location(&self[edge])),
            At::Note(note) => Some(self.note_location(note)),
            At::File(_) | At::Nothing => None,
        }
    }
}

/// The result of one step of the walk. The error is boxed because it is large and rare.
pub(super) type WalkResult<T> = Result<T, Box<Trouble>>;

impl Trouble {
    /// A trouble with this message. The walk adds its subject when it records the trouble.
    pub(super) fn new(kind: TroubleKind, message: impl Into<String>) -> Box<Self> {
        Trouble::of(kind, Failure::new(message))
    }

    /// A trouble of a reference or file that `kustomize build` refuses.
    pub(super) fn refused(message: impl Into<String>) -> Box<Self> {
        Trouble::new(TroubleKind::Refused, message)
    }

    /// A trouble with this failure. The walk adds its subject when it records the trouble.
    pub(super) fn of(kind: TroubleKind, failure: Failure) -> Box<Self> {
        Box::new(Trouble { kind, at: At::Nothing, failure })
    }

    pub(super) fn hint(mut self: Box<Self>, hint: impl Into<String>) -> Box<Self> {
        self.failure = self.failure.hint(hint);
        self
    }

    pub(super) fn hints(self: Box<Self>, hints: impl IntoIterator<Item = String>) -> Box<Self> {
        hints.into_iter().fold(self, Trouble::hint)
    }

    /// Binds the trouble to its subject, and adds the location of it to the message.
    pub(super) fn at(self, graph: &Graph, at: At) -> Trouble {
        let failure = match graph.location_at(at) {
            Some(location) => self.failure.at(location),
            None => self.failure,
        };
        Trouble { kind: self.kind, at, failure }
    }
}

impl From<Failure> for Box<Trouble> {
    fn from(failure: Failure) -> Self {
        Trouble::of(TroubleKind::Failed, failure)
    }
}
