//! References to something remote, for the rules that are about them.

use std::collections::BTreeSet;

use super::Context;
use super::unsafe_reference::Ambiguity;
use crate::graph::{Edge, Graph, RemoteRef, RootId, Target};
use crate::message::failure::{command, stage};
use crate::record::{self, LOCK_NAME, Lock};
use crate::reference::localized_path::LOCALIZED_FILES;
use crate::reference::{self, Pin, RepoSpec};
use crate::tree::{LOCK_COMMAND, path};

/// How many paths a command names; a longer command is unreadable.
const MOST_PATHS: usize = 50;
/// How many roots are looked at to find them.
const MOST_ROOTS: usize = 1_000;

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

    /// Returns the commands that bring it in, after a phrase, and everything that comes with it.
    pub(super) fn in_place_command(&self, context: &Context<'_>) -> Option<String> {
        if self.is_short_commit() || context.is_owned(context.path(self.edge.from)) {
            return None;
        }
        let what = "or bring it in, here";
        Some(in_place_command(context, self.root, what, &[]))
    }
}

/// Returns the commands that localize a root in place, which also changes `more`, after the phrase `what`.
pub(super) fn in_place_command(context: &Context<'_>, root: RootId, what: &str, more: &[&str]) -> String {
    // Must work from any directory: git starts a hook at the top, the person who commits may be elsewhere.
    let command = command("git kustomize-localize vendor", [format!(":/{}", context.graph.roots[root].directory)]);
    match stage_in_place(context, root, more) {
        Some(stage) => format!("{what}: {command} && {stage}"),
        None => format!("{what}, and stage what that changes, as it says: {command}"),
    }
}

/// Returns the command that stages what changes when a root is localized in place, which also changes `more`; none where
/// that is too much for a line.
pub(super) fn stage_in_place(context: &Context<'_>, root: RootId, more: &[&str]) -> Option<String> {
    let changed = context.changed_in_place(root)?;
    let mut paths: BTreeSet<&str> = changed.iter().map(String::as_str).collect();
    paths.extend(more);
    Some(stage(paths))
}

/// Returns the paths that change when a root is localized in place; none where they are more than people read.
pub(super) fn changed_in_place(context: &Context<'_>, root: RootId) -> Option<BTreeSet<String>> {
    let graph = context.graph;
    let mut paths = BTreeSet::from([LOCK_NAME.to_owned()]);
    let mut seen = BTreeSet::from([root]);
    let mut todo = vec![root];
    while let Some(id) = todo.pop() {
        let root = &graph.roots[id];
        for edge in &root.edges {
            match edge.target {
                Target::Root { id, .. } if seen.insert(id) => todo.push(id),
                // Localized files stay where they are.
                Target::Remote if !context.is_owned(context.path(edge.from)) => {
                    paths.insert(context.path(edge.from).to_owned());
                    paths.insert(path::join(&root.directory, LOCALIZED_FILES));
                }
                _ => {}
            }
        }
        if paths.len() > MOST_PATHS || seen.len() > MOST_ROOTS {
            return None;
        }
    }
    Some(paths)
}
