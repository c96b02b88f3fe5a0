//! References to something remote, for the rules that are about them.

use super::unsafe_reference::Ambiguity;
use crate::graph::{Edge, Graph, RemoteRef, RootId, Target};
use crate::record::Lock;
use crate::reference::{self, Pin, RepoSpec, Upstream};

/// A reference that kustomize reads over the network.
pub(super) struct RemoteUse<'a> {
    /// The root that it is relative to.
    pub(super) root: RootId,
    /// The reference.
    pub(super) edge: &'a Edge,
    /// What kustomize asks the network for.
    pub(super) wanted: &'a RemoteRef,
    /// What it is in the lock at the top of the tree, which may lack the directory.
    pub(super) locked: Option<Upstream>,
    /// Whether that lock holds it, so that it is localized.
    pub(super) is_locked: bool,
    /// Why it was probably meant as something else.
    pub(super) ambiguity: Option<Ambiguity>,
}

/// Returns every reference of the tree that leads out of it.
pub(super) fn all<'a>(graph: &'a Graph, lock: Option<&'a Lock>) -> Vec<RemoteUse<'a>> {
    let mut all = Vec::new();
    for (id, root) in graph.root_ids().zip(graph.roots.iter()) {
        for edge in &root.edges {
            if edge.target != Target::Remote {
                continue;
            }
            let Some(wanted) = edge.remote.as_deref() else {
                continue;
            };
            let locked = lock.and_then(|lock| wanted.locked(lock));
            let ambiguity = match &locked {
                // It has been resolved, so it is what it was meant to be.
                Some(_) => None,
                None => Ambiguity::of(wanted),
            };
            all.push(RemoteUse {
                root: id,
                edge,
                wanted,
                is_locked: locked.as_ref().is_some_and(|upstream| lock.is_some_and(|lock| lock.holds(upstream))),
                locked,
                ambiguity,
            });
        }
    }
    all
}

impl RemoteUse<'_> {
    /// Returns how it may be shown.
    pub(super) fn shown(&self) -> String {
        self.wanted.text.shown()
    }

    /// Returns how it is read as a repository, unless it is meant as a file.
    pub(super) fn repository(&self) -> Option<&RepoSpec> {
        self.wanted.repository()
    }

    /// Returns how firmly it is pinned; `None` for a file whose URL does not tell.
    pub(super) fn pin(&self) -> Option<Pin> {
        match self.repository() {
            Some(spec) => Some(Pin::of(spec.reference.as_deref())),
            None => reference::file_pin(self.wanted.text.exposed()).map(|(pin, _)| pin),
        }
    }
}
