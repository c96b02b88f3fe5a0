//! What a walk could not follow, with what rules need to know of it.

use std::collections::BTreeSet;

use super::{Absence, EdgeId, FileId, Graph, RootId};
use crate::kustomization::ProblemKind;
use crate::message::failure::{Failure, Location};
use crate::message::finding::Rule;

/// Something that the walk could not follow, or that kustomize refuses. While the walk is on its way, what stops a step.
#[derive(Debug, Clone)]
pub(crate) struct Trouble {
    pub kind: TroubleKind,
    pub at: At,
    /// What it is, where, and what to do about it.
    pub failure: Failure,
}

/// What a [`Trouble`] is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum At {
    Edge(EdgeId),
    /// Something that was noted: index into [`Graph::notes`].
    Note(usize),
    File(FileId),
    /// A place where there is no file.
    Nothing,
}

/// The sorts of [`Trouble`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TroubleKind {
    /// Something could not be read or fetched, so the answer is unknown.
    Failed,
    /// A chart could not be brought in, or is none.
    Chart,
    /// A schema of a chart makes helm read something that is not in the chart, or cannot be read.
    Schema {
        /// What helm reads; empty if that is not known.
        url: String,
    },
    /// The reference holds what git or kustomize could take for something else.
    Unsafe,
    /// The reference was surely meant to be remote, but kustomize cannot read it; or it is a URL for kustomize, and there is
    /// something at the path of that name.
    Unsupported,
    /// The upstream may not be locked, as this rule says.
    Distrusted(Rule),
    /// The path leaves its scope or the tree, or is absolute.
    OutOfScope,
    /// The path leaves its root, which may read files in or below it only.
    Restricted,
    /// There is nothing at the path.
    Missing {
        /// The path from the top of the tree, links followed.
        path: String,
        absence: Absence,
    },
    /// The directory holds no kustomization.
    NoKustomization {
        /// Its path from the top of the tree.
        directory: String,
        absence: Absence,
    },
    /// The directory contains several kustomizations, or something of that name that is none.
    BadKustomization {
        /// The path of that.
        path: String,
    },
    /// The path lies in a submodule.
    Submodule {
        /// The path of the submodule.
        path: String,
    },
    /// Roots lead back to themselves.
    Cycle,
    /// Plugin configurations are not simply what stands in their files.
    Reshaped,
    /// What kustomize refuses in a file.
    Problem(ProblemKind),
    /// What else `kustomize build` refuses: a file for a directory, a component among resources.
    Refused,
}

impl TroubleKind {
    /// Returns whether something was not read as a whole, so that it may name more than is known.
    pub(crate) fn hides_references(&self) -> bool {
        use TroubleKind::{BadKustomization, Failed, Problem, Reshaped};
        matches!(self, Failed | Problem(_) | Reshaped | BadKustomization { .. })
    }
}

impl Graph {
    /// Returns the root that paths at a place are relative to.
    pub(crate) fn root_at(&self, at: At) -> Option<RootId> {
        match at {
            At::Edge(edge) => Some(edge.root),
            At::Note(note) => Some(self.notes[note].root),
            At::File(_) | At::Nothing => None,
        }
    }

    /// Returns whether a place belongs to one of some roots. `At::Nothing` belongs to all.
    pub(crate) fn is_in(&self, at: At, roots: &BTreeSet<RootId>) -> bool {
        match (self.root_at(at), at) {
            (Some(root), _) => roots.contains(&root),
            (None, At::File(file)) => roots.iter().any(|root| self.used_by(*root).any(|used| used == file)),
            (None, _) => true,
        }
    }

    /// Returns the file of a place.
    pub(crate) fn file_at(&self, at: At) -> Option<FileId> {
        match at {
            At::Edge(edge) => Some(self[edge].from),
            At::Note(note) => Some(self.notes[note].file),
            At::File(file) => Some(file),
            At::Nothing => None,
        }
    }

    fn location_at(&self, at: At) -> Option<Location> {
        match at {
            At::Edge(edge) => Some(self.location(self[edge].from, &self[edge].reference)),
            At::Note(note) => Some(self.note_location(note)),
            At::File(_) | At::Nothing => None,
        }
    }
}

/// The result of one step of the walk. Boxed, because what stops one is large and rare.
pub(super) type WalkResult<T> = Result<T, Box<Trouble>>;

impl Trouble {
    pub(super) fn new(kind: TroubleKind, message: impl Into<String>) -> Box<Self> {
        Trouble::of(kind, Failure::new(message))
    }

    /// What kustomize refuses besides.
    pub(super) fn refused(message: impl Into<String>) -> Box<Self> {
        Trouble::new(TroubleKind::Refused, message)
    }

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

    /// Returns what it means for what it happened at.
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
