//! References to something remote, for the rules that are about them.

use super::Context;
use super::unsafe_reference::Ambiguity;
use crate::graph::{Edge, Graph, RemoteRef, RootId, Target};
use crate::message::failure::command;
use crate::record::{self, Lock};
use crate::reference::{self, Pin, RepoSpec};
use crate::tree::LOCK_COMMAND;

/// A reference that kustomize reads over the network.
pub(super) struct RemoteUse<'a> {
    /// The root that it is relative to.
    pub(super) root: RootId,
    /// The reference.
    pub(super) edge: &'a Edge,
    /// What kustomize asks the network for.
    pub(super) wanted: &'a RemoteRef,
    /// The entry of the lock at the top of the tree.
    pub(super) locked: Option<&'a record::Remote>,
    /// Whether an exception lets it stay remote.
    pub(super) is_left: bool,
    /// Why it was probably meant as something else.
    pub(super) ambiguity: Option<Ambiguity>,
}

/// Returns every reference of the tree that leads out of it.
pub(super) fn all<'a>(graph: &'a Graph, lock: Option<&'a Lock>) -> Vec<RemoteUse<'a>> {
    let mut all = Vec::new();
    for (id, root) in graph.roots.iter().enumerate() {
        for (index, edge) in root.edges.iter().enumerate() {
            if edge.target != Target::Remote {
                continue;
            }
            let Some(wanted) = edge.remote.as_deref() else {
                continue;
            };
            let locked = lock.and_then(|lock| wanted.locked(lock));
            let ambiguity = match locked {
                // It has been resolved, so it is what it was meant to be.
                Some(_) => None,
                None => Ambiguity::of(wanted),
            };
            all.push(RemoteUse {
                root: id,
                edge,
                wanted,
                locked,
                is_left: graph.left.contains(&(id, index)),
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

    /// Returns the directory that it wants of a repository of which the lock holds others only.
    pub(super) fn unlocked_directory(&self) -> Option<String> {
        self.wanted.unlocked_directory(self.locked?)
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

    /// Returns whether it can be neither locked nor brought in: git fetches no short commit id.
    pub(super) fn is_short_commit(&self) -> bool {
        self.repository().is_some() && self.pin() == Some(Pin::ShortCommit)
    }

    /// Returns the commands that lock it, after a phrase; `None` when that cannot be.
    pub(super) fn lock_command(&self) -> Option<String> {
        (!self.is_short_commit()).then(|| format!("keep the URL, and lock what it is now: {}", LOCK_COMMAND))
    }

    /// Returns the command that brings it in, after a phrase, and everything that comes with it.
    pub(super) fn in_place_command(&self, context: &Context<'_>) -> Option<String> {
        if self.is_short_commit() || context.is_owned(context.path(self.edge.from)) {
            return None;
        }
        // Must work from any directory: git starts a hook at the top, the person who commits may be elsewhere.
        let root = format!(":/{}", context.graph.roots[self.root].directory);
        Some(format!("or bring it in, here: {}", command("git kustomize-localize vendor", [root])))
    }
}
