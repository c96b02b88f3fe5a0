//! What a walk could not follow, with what rules need to know of it.

use super::Absence;
use super::nodes::{FileId, RootId};
use crate::kustomization::{ProblemKind, Reshaping};
use crate::message::failure::Failure;

/// Something that the walk could not follow, or that kustomize refuses.
#[derive(Debug, Clone)]
pub(crate) struct Trouble {
    /// What sort of thing it is.
    pub kind: TroubleKind,
    /// The reference that it is about: a root and the index of its edge.
    pub edge: Option<(RootId, usize)>,
    /// The root that it keeps from being built, and that paths in it are relative to; none where it is about a file
    /// alone.
    pub root: Option<RootId>,
    /// The file that it is about; none if there is no such file.
    pub file: Option<FileId>,
    /// The same for a person who localizes.
    pub failure: Failure,
}

/// The sorts of [`Trouble`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TroubleKind {
    /// Something could not be read or fetched, so the answer is unknown.
    Failed,
    /// A chart of a repository could not be brought in.
    Chart,
    /// The reference holds what git or kustomize could take for something else.
    Unsafe,
    /// The reference is a URL for kustomize, and there is something at the path of that name.
    Shadowed,
    /// The reference was surely meant to be remote, but kustomize cannot read it.
    Unsupported,
    /// The path leaves what bounds it.
    OutOfScope(Beyond),
    /// There is nothing at the path.
    Missing {
        /// The path from the top of the tree, links followed.
        path: String,
        /// Why not.
        absence: Absence,
    },
    /// The directory holds no kustomization file.
    NoKustomization {
        /// Its path from the top of the tree.
        directory: String,
    },
    /// The directory holds more than one kustomization file.
    SeveralKustomizations {
        /// Its path from the top of the tree.
        directory: String,
        /// The names of the files, in kustomize's order.
        names: Vec<&'static str>,
    },
    /// The path lies in a submodule.
    Submodule {
        /// The path of the submodule.
        path: String,
    },
    /// Roots lead back to themselves.
    Cycle,
    /// Plugin configurations are not simply what stands in their files.
    Reshaped(Reshaping),
    /// What kustomize refuses in a file.
    Problem(ProblemKind),
    /// What else `kustomize build` refuses: a file for a directory, a component among resources.
    Refused,
}

impl TroubleKind {
    /// Returns whether something was not read as a whole, so that it may name more than is known.
    pub(crate) fn hides_references(&self) -> bool {
        matches!(
            self,
            TroubleKind::Failed
                | TroubleKind::Problem(_)
                | TroubleKind::Reshaped(_)
                | TroubleKind::SeveralKustomizations { .. }
        )
    }
}

/// What a path leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Beyond {
    /// The root that may read files in or below it only.
    Root,
    /// The scope, or the tree.
    Scope,
    Absolute,
    /// A link leads out of the tree.
    Link {
        /// The path of that link.
        link: String,
        /// Its message.
        target: String,
    },
}

/// What stops one step of the walk.
#[derive(Debug, Clone)]
pub(super) struct WalkError {
    /// Boxed, because it is large and rare.
    pub(super) kind: Box<TroubleKind>,
    pub(super) failure: Failure,
}

/// The result of one step of the walk.
pub(super) type WalkResult<T> = Result<T, WalkError>;

impl WalkError {
    pub(super) fn new(kind: TroubleKind, message: impl Into<String>) -> Self {
        WalkError { kind: Box::new(kind), failure: Failure::new(message) }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.failure = self.failure.hint(hint);
        self
    }
}

impl From<Failure> for WalkError {
    fn from(failure: Failure) -> Self {
        WalkError { kind: Box::new(TroubleKind::Failed), failure }
    }
}
