//! The remote references of the tree, for the rules about them.

use super::unsafe_reference::Ambiguity;
use crate::graph::{Edge, Graph, RemoteRef, Resolution, RootId};
use crate::record::Lock;
use crate::reference::{self, Pin, RepoSpec, Upstream};

/// A reference that kustomize reads over the network.
pub(super) struct RemoteUse<'a> {
    /// The root that it is relative to.
    pub(super) root: RootId,
    pub(super) edge: &'a Edge,
    /// The upstream that kustomize would fetch.
    pub(super) wanted: &'a RemoteRef,
    /// The upstream's entry in the lock at the top. The entry may lack the referenced directory.
    pub(super) locked: Option<Upstream>,
    /// Whether that entry covers the reference completely, so that localizing can bring it in.
    pub(super) is_locked: bool,
    /// The reason why the text was probably meant as something else, if there is one.
    pub(super) ambiguity: Option<Ambiguity>,
}

/// The remote references of the tree.
pub(super) fn all<'a>(graph: &'a Graph, lock: Option<&'a Lock>) -> Vec<RemoteUse<'a>> {
    let mut all = Vec::new();
    for (id, root) in graph.root_ids().zip(graph.roots.iter()) {
        for edge in &root.edges {
            // A reference that was localized is a local one here.
            if edge.target != Resolution::Remote {
                continue;
            }
            let Some(wanted) = edge.remote.as_deref() else {
                continue;
            };
            let locked = lock.and_then(|lock| wanted.locked(lock));
            let ambiguity = match &locked {
                // It has been resolved once, so it is meant as an upstream.
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
    /// The reference as text, without secrets.
    pub(super) fn shown(&self) -> String {
        self.wanted.text.shown()
    }

    /// The repository that the reference names. `None` if it names a file.
    pub(super) fn repository(&self) -> Option<&RepoSpec> {
        self.wanted.repository()
    }

    /// How firmly the reference is pinned. `None` if it is a file whose URL does not tell.
    pub(super) fn pin(&self) -> Option<Pin> {
        match self.repository() {
            Some(spec) => Some(Pin::of(spec.reference.as_deref())),
            None => reference::file_pin(self.wanted.text.exposed()).map(|(pin, _)| pin),
        }
    }
}
