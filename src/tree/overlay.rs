//! A tree with some files replaced, added or removed. Without a base it is a tree in memory.

use std::collections::BTreeMap;

use super::{Entry, Names, Search, SharedTree, Tree, path, search};
use crate::message::failure::{Failure, Result};

/// Files and links by path. Directories exist if they contain any.
#[derive(Clone, Default)]
pub struct OverlayTree {
    base: Option<SharedTree>,
    /// The new nodes by path; `None` for a removed one.
    nodes: BTreeMap<String, Option<(Entry, Vec<u8>)>>,
}

impl OverlayTree {
    /// A tree equal to `base`.
    pub(crate) fn new(base: SharedTree) -> Self {
        OverlayTree { base: Some(base), nodes: BTreeMap::new() }
    }

    /// Adds a file that is not executable, or replaces the node at `path`.
    pub fn add_file(&mut self, path: &str, bytes: &[u8]) {
        self.add_file_with_mode(path, bytes, false);
    }

    /// Adds a file, or replaces the node at `path`.
    pub fn add_file_with_mode(&mut self, path: &str, bytes: &[u8], executable: bool) {
        self.nodes.insert(path.to_owned(), Some((Entry::File { executable }, bytes.to_vec())));
    }

    /// Adds a symbolic link.
    pub fn link(&mut self, path: &str, target: &str) {
        self.nodes.insert(path.to_owned(), Some((Entry::Link, target.as_bytes().to_vec())));
    }

    /// Removes a file or a link.
    pub fn remove(&mut self, path: &str) {
        self.nodes.insert(path.to_owned(), None);
    }

    /// The new paths below a directory, relative to it.
    fn overlaid_below<'a>(&'a self, directory: &'a str) -> impl Iterator<Item = &'a str> {
        let first = if directory.is_empty() { String::new() } else { format!("{directory}/") };
        let below =
            self.nodes.range(first..).map_while(move |(path, node)| Some((path::below(path, directory)?, node)));
        below.filter_map(|(path, node)| node.as_ref().map(|_| path)).filter(|path| !path.is_empty())
    }

    /// Whether a path of the base was removed.
    fn is_gone(&self, path: &str) -> bool {
        matches!(self.nodes.get(path), Some(None))
    }

    fn base<'a, T>(&'a self, ask: impl FnOnce(&'a SharedTree) -> T) -> Option<T> {
        self.base.as_ref().map(ask)
    }
}

impl Tree for OverlayTree {
    fn entry(&self, path: &str) -> Result<Option<Entry>> {
        if let Some(Some((entry, _))) = self.nodes.get(path) {
            return Ok(Some(*entry));
        }
        if path.is_empty() || self.overlaid_below(path).next().is_some() {
            return Ok(Some(Entry::Directory));
        }
        // A new or a removed node hides everything of the base at and below its path.
        if !self.nodes.is_empty() && path::and_above(path).any(|above| self.nodes.contains_key(above)) {
            return Ok(None);
        }
        self.base(|base| base.entry(path)).unwrap_or(Ok(None))
    }

    fn names(&self, directory: &str) -> Result<Vec<String>> {
        let mut names = self.base(|base| base.names(directory)).transpose()?.unwrap_or_default();
        names.retain(|name| !self.is_gone(&path::join(directory, name)));
        names.extend(self.overlaid_below(directory).filter_map(|path| path.split('/').next()).map(str::to_owned));
        names.sort();
        names.dedup();
        Ok(names)
    }

    fn read(&self, path: &str) -> Result<Vec<u8>> {
        match (self.nodes.get(path), &self.base) {
            (Some(Some((_, bytes))), _) => Ok(bytes.clone()),
            (None, Some(base)) => base.read(path),
            (Some(None), _) | (None, None) => Err(Failure::new(format!("`{path}` is not in the result"))),
        }
    }

    fn absolute(&self, path: &str) -> Option<String> {
        self.base(|base| base.absolute(path)).flatten()
    }

    fn linked(&self, target: &str) -> Option<String> {
        self.base(|base| base.linked(target)).flatten()
    }

    fn label(&self, path: &str) -> String {
        self.base(|base| base.label(path)).unwrap_or_else(|| path::relative("", path))
    }

    fn below(&self, directory: &str) -> Result<Vec<String>> {
        let mut all = self.base(|base| base.below(directory)).transpose()?.unwrap_or_default();
        all.retain(|path| !self.is_gone(path));
        all.extend(self.overlaid_below(directory).map(|inside| path::join(directory, inside)));
        all.sort();
        all.dedup();
        Ok(all)
    }

    /// With a base, only its files are searched, also those that were removed or replaced, but not the new ones.
    fn files_with(&self, endings: Names, marks: &[&'static [u8]]) -> Result<Search<'_>> {
        if let Some(base) = &self.base {
            return base.files_with(endings, marks);
        }
        let marks = marks.to_vec();
        Ok(Box::new(move || search(self, endings, &marks)))
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;

    #[test]
    fn what_is_taken_away_is_not_there() {
        let mut base = OverlayTree::default();
        ["a/b/x", "a/y", "z"].iter().for_each(|path| base.add_file(path, b""));
        let mut tree = OverlayTree::new(Rc::new(base));
        tree.remove("a/y");
        tree.remove("z");
        tree.add_file("z/w", b"new");
        assert_eq!(tree.entry("a/y").unwrap(), None);
        assert_eq!(tree.entry("z").unwrap(), Some(Entry::Directory));
        assert_eq!(tree.names("a").unwrap(), ["b"]);
        assert_eq!(tree.names("").unwrap(), ["a", "z"]);
        assert_eq!(tree.below("").unwrap(), ["a/b/x", "z/w"]);
        assert_eq!(tree.files_named(&|name| ["y", "w"].contains(&name)).unwrap(), ["z/w"]);
        assert!(tree.read("a/y").is_err() && tree.read("z").is_err());
        tree.add_file("a/y", b"");
        assert_eq!(tree.names("a").unwrap(), ["b", "y"]);
    }
}
