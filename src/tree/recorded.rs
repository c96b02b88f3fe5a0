//! A tree that remembers the paths that it was asked for: the inputs of a build.

use std::cell::RefCell;
use std::collections::BTreeSet;

use super::{Entry, Tree};
use crate::message::failure::Result;

pub(crate) struct RecordedTree<'a> {
    pub(crate) tree: &'a dyn Tree,
    pub(crate) asked: RefCell<BTreeSet<String>>,
}

impl<'a> RecordedTree<'a> {
    /// Records the paths that `tree` is asked for from now on.
    pub(crate) fn new(tree: &'a dyn Tree) -> Self {
        RecordedTree { tree, asked: RefCell::default() }
    }

    /// The tree, to be asked for a path that is recorded.
    fn ask(&self, path: &str) -> &'a dyn Tree {
        self.asked.borrow_mut().insert(path.to_owned());
        self.tree
    }
}

impl Tree for RecordedTree<'_> {
    fn entry(&self, path: &str) -> Result<Option<Entry>> {
        self.ask(path).entry(path)
    }

    fn names(&self, directory: &str) -> Result<Vec<String>> {
        self.ask(directory).names(directory)
    }

    fn read(&self, path: &str) -> Result<Vec<u8>> {
        self.ask(path).read(path)
    }

    fn linked(&self, target: &str) -> Option<String> {
        self.tree.linked(target)
    }
}
