//! What an engine gets to see of the repository. Flux builds from an artifact: links are not in it, nor what patterns
//! leave out. Others build from a checkout.

use std::rc::Rc;

use super::ignore::{Ignored, Ignores, SourceIgnore};
use super::{Artifact, Engine, Here, Target};
use crate::message::failure::Result;
use crate::tree::{Entry, Tree};

/// What an engine does not get to see.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Hidden {
    ignores: Option<Ignores>,
    has_links: bool,
}

impl Hidden {
    /// Returns what is hidden from the engine of a target. `known` holds what every `.sourceignore` says, once somebody
    /// asks.
    pub(super) fn of(
        tree: &dyn Tree,
        target: &Target,
        here: &Here,
        known: &mut Option<SourceIgnore>,
    ) -> Result<Hidden> {
        let ignores = match (target.artifact(here), &mut *known) {
            (None, _) => None,
            (Some(artifact), Some(known)) => Some(known.with(artifact)),
            (Some(artifact), none) => Some(none.insert(SourceIgnore::of(tree)?).with(artifact)),
        };
        Ok(Hidden { ignores, has_links: target.engine == Engine::Flux })
    }

    /// Returns the pattern that leaves a file out, if one does.
    pub(crate) fn rule(&self, file: &str) -> Option<Ignored> {
        self.ignores.as_ref()?.rule(file)
    }

    /// Returns whether something is hidden. A directory is there as long as something is in it.
    pub(crate) fn hides(&self, place: &str, entry: Entry) -> bool {
        match entry {
            Entry::Link => self.has_links,
            Entry::File { .. } => self.rule(place).is_some(),
            Entry::Directory | Entry::Submodule => false,
        }
    }
}

impl Target {
    /// Returns the artifact of a `GitRepository` from which Flux builds it: of others nobody here knows what is packed.
    pub(crate) fn artifact<'a>(&self, here: &'a Here) -> Option<&'a Rc<Artifact>> {
        here.artifact.as_ref().filter(|artifact| {
            let object = artifact.object.as_ref();
            self.engine == Engine::Flux && object.is_none_or(|one| one.kind == "GitRepository")
        })
    }
}

/// A tree as an engine sees it.
pub(crate) struct SeenTree<'a> {
    tree: &'a dyn Tree,
    hidden: &'a Hidden,
}

impl<'a> SeenTree<'a> {
    /// Hides something of a tree.
    pub(crate) fn new(tree: &'a dyn Tree, hidden: &'a Hidden) -> Self {
        SeenTree { tree, hidden }
    }
}

impl Tree for SeenTree<'_> {
    fn entry(&self, path: &str) -> Result<Option<Entry>> {
        let entry = self.tree.entry(path)?;
        Ok(entry.filter(|entry| !self.hidden.hides(path, *entry)))
    }

    fn names(&self, directory: &str) -> Result<Vec<String>> {
        // Whoever lists them asks for the entry of each.
        self.tree.names(directory)
    }

    fn read(&self, path: &str) -> Result<Vec<u8>> {
        self.tree.read(path)
    }

    fn label(&self, path: &str) -> String {
        self.tree.label(path)
    }
}
