//! A tree with some of its files replaced or added: what it is going to be. On nothing it is a tree in memory.

use std::collections::BTreeMap;

use super::{Entry, SharedTree, Tree, path};
use crate::message::failure::{Failure, Result};

/// Files and links by path. Directories are there because something lies in them.
#[derive(Clone, Default)]
pub struct OverlayTree {
    base: Option<SharedTree>,
    nodes: BTreeMap<String, (Entry, Vec<u8>)>,
}

impl OverlayTree {
    /// Returns `base` without a difference.
    pub(crate) fn new(base: SharedTree) -> Self {
        OverlayTree { base: Some(base), nodes: BTreeMap::new() }
    }

    /// Puts a file at `path`, whatever was there.
    pub fn file(&mut self, path: &str, bytes: &[u8], executable: bool) {
        self.nodes.insert(path.to_owned(), (Entry::File { executable }, bytes.to_vec()));
    }

    /// Adds a symbolic link.
    pub fn link(&mut self, path: &str, target: &str) {
        self.nodes.insert(path.to_owned(), (Entry::Link, target.as_bytes().to_vec()));
    }

    /// Takes one of its own files or links away.
    pub fn remove(&mut self, path: &str) {
        self.nodes.remove(path);
    }

    /// Returns its own paths below a directory, relative to that.
    fn own<'a>(&'a self, directory: &'a str) -> impl Iterator<Item = &'a str> {
        let first = if directory.is_empty() { String::new() } else { format!("{directory}/") };
        let below = self.nodes.range(first..).map_while(move |(path, _)| path::below(path, directory));
        below.filter(|path| !path.is_empty())
    }

    fn base<'a, T>(&'a self, ask: impl FnOnce(&'a SharedTree) -> T) -> Option<T> {
        self.base.as_ref().map(ask)
    }
}

impl Tree for OverlayTree {
    fn entry(&self, path: &str) -> Result<Option<Entry>> {
        if let Some((entry, _)) = self.nodes.get(path) {
            return Ok(Some(*entry));
        }
        if path.is_empty() || self.own(path).next().is_some() {
            return Ok(Some(Entry::Directory));
        }
        if !self.nodes.is_empty() && path::and_above(path).any(|above| self.nodes.contains_key(above)) {
            return Ok(None);
        }
        self.base(|base| base.entry(path)).unwrap_or(Ok(None))
    }

    fn names(&self, directory: &str) -> Result<Vec<String>> {
        let mut names = self.base(|base| base.names(directory)).transpose()?.unwrap_or_default();
        names.extend(self.own(directory).filter_map(|path| path.split('/').next()).map(str::to_owned));
        names.sort();
        names.dedup();
        Ok(names)
    }

    fn read(&self, path: &str) -> Result<Vec<u8>> {
        match (self.nodes.get(path), &self.base) {
            (Some((_, bytes)), _) => Ok(bytes.clone()),
            (None, Some(base)) => base.read(path),
            (None, None) => Err(Failure::new(format!("`{path}` is not in the result"))),
        }
    }

    fn absolute(&self, path: &str) -> Option<String> {
        self.base(|base| base.absolute(path)).flatten()
    }

    fn label(&self, path: &str) -> String {
        self.base(|base| base.label(path)).unwrap_or_else(|| path::relative("", path))
    }

    fn below(&self, directory: &str) -> Result<Vec<String>> {
        let mut all = self.base(|base| base.below(directory)).transpose()?.unwrap_or_default();
        all.extend(self.own(directory).map(|inside| path::join(directory, inside)));
        all.sort();
        all.dedup();
        Ok(all)
    }

    /// On top of another tree nothing that is different is looked at.
    fn files_with(&self, endings: &[&str], marks: &[&[u8]]) -> Result<Vec<String>> {
        self.base(|base| base.files_with(endings, marks)).unwrap_or_else(|| super::search(self, endings, marks))
    }
}
