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

/// The remote references of the tree, each with its entry in `lock`, the lock at the top.
pub(super) fn remote_uses<'a>(graph: &'a Graph, lock: Option<&'a Lock>) -> Vec<RemoteUse<'a>> {
    // The check walks without a network, so that no URL is resolved.
    let remote = graph.edges().filter(|(_, edge)| edge.resolution == Resolution::Remote);
    let uses = remote.filter_map(|(id, edge)| {
        let wanted = edge.remote.as_deref()?;
        let locked = lock.and_then(|lock| wanted.locked(lock));
        let is_locked = lock.is_some_and(|lock| locked.as_ref().is_some_and(|upstream| lock.holds(upstream)));
        // A locked reference was resolved once, so it is meant as an upstream.
        let ambiguity = if locked.is_none() { Ambiguity::of(wanted) } else { None };
        Some(RemoteUse { root: id.root, edge, wanted, locked, is_locked, ambiguity })
    });
    uses.collect()
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
