//! A tree held in memory: a result that is not written yet, and what tests build.

use std::collections::BTreeMap;

use super::{Entry, Listing, Tree, path};
use crate::message::failure::{Failure, Result};

#[derive(Debug, Clone)]
struct Node {
    entry: Entry,
    bytes: Vec<u8>,
}

/// A set of files and links by path. Directories are there because something lies in them.
#[derive(Debug, Clone, Default)]
pub struct MemoryTree {
    nodes: BTreeMap<String, Node>,
}

impl MemoryTree {
    /// Adds a file.
    pub fn file(&mut self, path: &str, bytes: &[u8], executable: bool) {
        let entry = Entry::File { executable };
        self.insert(path, entry, bytes);
    }

    /// Adds a symbolic link.
    pub fn link(&mut self, path: &str, target: &str) {
        self.insert(path, Entry::Link, target.as_bytes());
    }

    /// Takes a file or link away.
    pub fn remove(&mut self, path: &str) {
        self.nodes.remove(path);
    }

    fn insert(&mut self, path: &str, entry: Entry, bytes: &[u8]) {
        let bytes = bytes.to_vec();
        self.nodes.insert(path.to_owned(), Node { entry, bytes });
    }
}

impl Tree for MemoryTree {
    fn entry(&self, path: &str) -> Result<Option<Entry>> {
        if let Some(node) = self.nodes.get(path) {
            return Ok(Some(node.entry));
        }
        let below = path::join(path, "\0");
        let below = below.trim_end_matches('\0').to_owned();
        let is_directory = path.is_empty()
            || self.nodes.range(below.clone()..).next().is_some_and(|(name, _)| name.starts_with(&below));
        Ok(is_directory.then_some(Entry::Directory))
    }

    fn names(&self, directory: &str) -> Result<Vec<String>> {
        let inside = self.nodes.keys().filter_map(|path| path::below(path, directory));
        let mut names: Vec<String> =
            inside.filter_map(|path| path::components(path).next()).map(str::to_owned).collect();
        names.dedup();
        Ok(names)
    }

    fn read(&self, path: &str) -> Result<Vec<u8>> {
        match self.nodes.get(path) {
            Some(node) => Ok(node.bytes.clone()),
            None => Err(Failure::new(format!("`{path}` is not in the result"))),
        }
    }

    fn label(&self, path: &str) -> String {
        path.to_owned()
    }
}

impl Listing for MemoryTree {
    fn files_named(&self, names: &[&str]) -> Result<Vec<String>> {
        let paths = self.nodes.keys();
        Ok(paths.filter(|path| names.contains(&path::name(path))).cloned().collect())
    }

    fn below(&self, directory: &str) -> Result<Vec<String>> {
        let paths = self.nodes.keys();
        Ok(paths.filter(|path| path::is_in(path, directory) && *path != directory).cloned().collect())
    }
}
