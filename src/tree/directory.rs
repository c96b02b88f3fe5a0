//! One directory of the file system, with all that is in it.

use std::path::{Path, PathBuf};

use super::{Entry, Listing, Tree, disk, path};
use crate::message::failure::{Failure, Result};

/// The files below a directory, whatever git knows of them.
#[derive(Debug)]
pub(crate) struct DirectoryTree {
    root: PathBuf,
    converts: bool,
}

impl DirectoryTree {
    /// Opens a directory. `converts` says whether it may be a checkout, with other line ends than git stores.
    pub(crate) fn open(directory: &Path, converts: bool) -> Result<Self> {
        let root = directory
            .canonicalize()
            .map_err(|error| Failure::new(format!("`{}` cannot be read: {error}", directory.display())))?;
        Ok(DirectoryTree { root, converts })
    }

    fn place(&self, path: &str) -> PathBuf {
        if path.is_empty() { self.root.clone() } else { self.root.join(path) }
    }

    /// Returns everything below a directory that is none, in order.
    fn walk(&self, directory: &str) -> Result<Vec<String>> {
        let mut found = Vec::new();
        let mut todo = vec![directory.to_owned()];
        while let Some(directory) = todo.pop() {
            for name in self.names(&directory)? {
                let place = path::join(&directory, &name);
                match self.entry(&place)? {
                    Some(Entry::Directory) => todo.push(place),
                    // A pipe or a device is not a file, but it is there.
                    Some(Entry::File { .. } | Entry::Link | Entry::Submodule) | None => {
                        found.push(place);
                    }
                }
            }
        }
        found.sort();
        Ok(found)
    }
}

fn failure(path: &str, error: &std::io::Error) -> Failure {
    Failure::new(format!("could not read `{path}`: {error}"))
}

impl Tree for DirectoryTree {
    fn entry(&self, path: &str) -> Result<Option<Entry>> {
        // Below a link there is nothing.
        let mut above = path::parent(path);
        while !above.is_empty() {
            let found = disk::look(&self.place(above)).map_err(|error| failure(above, &error))?;
            if found != Some(Entry::Directory) {
                return Ok(None);
            }
            above = path::parent(above);
        }
        disk::look(&self.place(path)).map_err(|error| failure(path, &error))
    }

    fn names(&self, directory: &str) -> Result<Vec<String>> {
        if self.entry(directory)? != Some(Entry::Directory) {
            return Ok(Vec::new());
        }
        let names = disk::list(&self.place(directory)).map_err(|error| failure(directory, &error))?;
        Ok(names.into_iter().filter(|name| name != ".git").collect())
    }

    fn read(&self, path: &str) -> Result<Vec<u8>> {
        disk::read(&self.place(path)).map_err(|error| failure(path, &error))
    }

    fn converts(&self) -> bool {
        self.converts
    }

    fn label(&self, path: &str) -> String {
        match path {
            "" => ".".to_owned(),
            path => path.to_owned(),
        }
    }
}

impl Listing for DirectoryTree {
    fn files_named(&self, names: &[&str]) -> Result<Vec<String>> {
        let mut found = self.walk("")?;
        found.retain(|place| names.contains(&path::name(place)));
        Ok(found)
    }

    fn below(&self, directory: &str) -> Result<Vec<String>> {
        self.walk(directory)
    }
}
