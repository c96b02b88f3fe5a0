//! A tree with some of its files replaced or added: what it is going to be.

use std::collections::{BTreeMap, BTreeSet};

use super::{Entry, SharedTree, Tree, path};
use crate::message::failure::Result;

/// A tree, and what is different from it.
pub(crate) struct OverlayTree {
    base: SharedTree,
    files: BTreeMap<String, (Vec<u8>, bool)>,
    directories: BTreeSet<String>,
}

impl OverlayTree {
    /// Returns `base` without a difference.
    pub(crate) fn new(base: SharedTree) -> Self {
        OverlayTree { base, files: BTreeMap::new(), directories: BTreeSet::new() }
    }

    /// Puts a file at `place`, whatever was there.
    pub(crate) fn file(&mut self, place: &str, bytes: &[u8], executable: bool) {
        self.files.insert(place.to_owned(), (bytes.to_vec(), executable));
        let mut directory = path::parent(place);
        while !directory.is_empty() && self.directories.insert(directory.to_owned()) {
            directory = path::parent(directory);
        }
    }

    /// Returns whether nothing is different: that is asked often.
    fn is_same(&self) -> bool {
        self.files.is_empty()
    }
}

impl Tree for OverlayTree {
    fn entry(&self, path: &str) -> Result<Option<Entry>> {
        if self.is_same() {
            return self.base.entry(path);
        }
        if let Some((_, executable)) = self.files.get(path) {
            let executable = *executable;
            return Ok(Some(Entry::File { executable }));
        }
        if self.directories.contains(path) {
            return Ok(Some(Entry::Directory));
        }
        self.base.entry(path)
    }

    fn is_directory(&self, path: &str) -> Result<bool> {
        if self.is_same() {
            return self.base.is_directory(path);
        }
        if path::and_above(path).any(|place| self.files.contains_key(place)) {
            return Ok(false);
        }
        Ok(self.directories.contains(path) || self.base.is_directory(path)?)
    }

    fn names(&self, directory: &str) -> Result<Vec<String>> {
        let mut names: BTreeSet<String> = self.base.names(directory)?.into_iter().collect();
        let own = self.files.keys().chain(&self.directories);
        names.extend(own.filter(|place| path::parent(place) == directory).map(|place| path::name(place).to_owned()));
        Ok(names.into_iter().collect())
    }

    fn read(&self, path: &str) -> Result<Vec<u8>> {
        match self.files.get(path) {
            Some((bytes, _)) => Ok(bytes.clone()),
            None => self.base.read(path),
        }
    }

    fn absolute(&self, path: &str) -> Option<String> {
        self.base.absolute(path)
    }

    fn label(&self, path: &str) -> String {
        self.base.label(path)
    }

    fn word(&self, path: &str) -> String {
        self.base.word(path)
    }
}
