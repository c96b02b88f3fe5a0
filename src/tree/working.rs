//! The working tree, as it is on disk now.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hasher as _};
use std::path::PathBuf;
use std::rc::Rc;

use super::index::IndexTree;
use super::top::Top;
use super::{Entry, Listing, Tree, disk, path};
use crate::git::LocalRepo;
use crate::message::failure::{Failure, Result, shown};
use crate::os::limits::PATH;

/// The files below the top of the working tree, ignored ones too: a build reads them all. A submodule
/// of the index is one, whether it is checked out or not.
pub(crate) struct WorkingTree {
    here: Rc<LocalRepo>,
    top: Top,
    submodules: BTreeSet<String>,
    /// The directories that were requested, and are there.
    directories: RefCell<HashSet<String>>,
    /// What git lists, once it was asked.
    files: OnceCell<Vec<u8>>,
    /// The index, where modes on disk mean nothing (`core.fileMode`), once that was asked.
    modes: OnceCell<Option<IndexTree>>,
    /// What was read, by path: the digest of the bytes.
    read: RefCell<HashMap<String, u64>>,
}

impl WorkingTree {
    /// Opens the working tree of this repository.
    pub(crate) fn open(here: Rc<LocalRepo>) -> Result<Self> {
        let top = here.top.as_deref().and_then(Top::new);
        let top = top.ok_or_else(|| {
            Failure::new("this repository has no working tree").hint("look at a commit instead: --rev REV")
        })?;
        here.begin_settings();
        let submodules = here.staged()?.into_iter();
        let submodules = submodules.filter(|entry| entry.mode == "160000");
        let submodules = submodules.filter_map(|entry| String::from_utf8(entry.path).ok());
        Ok(WorkingTree {
            here,
            top,
            submodules: submodules.collect(),
            directories: RefCell::default(),
            files: OnceCell::new(),
            modes: OnceCell::new(),
            read: RefCell::default(),
        })
    }

    /// Returns whether a file that was read is still what it was.
    pub(crate) fn is_as_read(&self, path: &str) -> bool {
        let read = self.read.borrow().get(path).copied();
        read.is_none_or(|read| disk::read(&self.place(path)).is_ok_and(|bytes| digest(&bytes) == read))
    }

    /// Returns the paths that git tracks, or neither tracks nor ignores, with a NUL after each.
    fn files(&self) -> Result<&[u8]> {
        if let Some(files) = self.files.get() {
            return Ok(files);
        }
        let files = self.here.working_files()?;
        Ok(self.files.get_or_init(|| files))
    }

    /// Returns where modes come from, if not from the disk: git adds a file as one that is not executable then.
    fn modes(&self) -> Result<Option<&IndexTree>> {
        if let Some(modes) = self.modes.get() {
            return Ok(modes.as_ref());
        }
        let modes = match self.here.config("core.filemode")?.as_deref() {
            Some("false") => Some(IndexTree::open(self.here.clone())?),
            _ => None,
        };
        Ok(self.modes.get_or_init(|| modes).as_ref())
    }

    fn place(&self, path: &str) -> PathBuf {
        if path.is_empty() { self.top.path().to_owned() } else { self.top.path().join(path) }
    }

    fn failure(path: &str, error: &std::io::Error) -> Failure {
        Failure::new(format!("could not read `{path}`: {error}"))
    }
}

impl WorkingTree {
    /// Returns the paths that git lists, if they are wanted and still on disk, sorted.
    fn listed(&self, wanted: impl Fn(&[u8]) -> bool) -> Result<Vec<String>> {
        let listed = self.files()?;
        let mut found = Vec::new();
        for path in listed.split(|byte| *byte == 0) {
            if wanted(path)
                && let Ok(path) = std::str::from_utf8(path)
                && !path.is_empty()
                && self.entry(path)?.is_some()
            {
                found.push(path.to_owned());
            }
        }
        found.sort();
        found.dedup();
        Ok(found)
    }
}

impl Tree for WorkingTree {
    fn entry(&self, path: &str) -> Result<Option<Entry>> {
        // git holds nothing of that name, wherever it is.
        if path::name(path).eq_ignore_ascii_case(".git") {
            return Ok(None);
        }
        PATH.check(path.len(), || shown(path))?;
        if path.is_empty() {
            return Ok(Some(Entry::Directory));
        }
        if !self.is_directory(path::parent(path))? {
            return Ok(None);
        }
        let entry = disk::look(&self.place(path)).map_err(|error| Self::failure(path, &error))?;
        let is_file = matches!(entry, Some(Entry::File { .. }));
        if is_file && let Some(index) = self.modes()? {
            let executable = index.entry(path)? == Some(Entry::File { executable: true });
            return Ok(Some(Entry::File { executable }));
        }
        Ok(match entry {
            None | Some(Entry::Directory) if self.submodules.contains(path) => Some(Entry::Submodule),
            entry => entry,
        })
    }

    fn is_directory(&self, path: &str) -> Result<bool> {
        if path.is_empty() {
            return Ok(true);
        }
        if self.directories.borrow().contains(path) {
            return Ok(true);
        }
        let is_directory = self.entry(path)? == Some(Entry::Directory);
        if is_directory {
            self.directories.borrow_mut().insert(path.to_owned());
        }
        Ok(is_directory)
    }

    fn names(&self, directory: &str) -> Result<Vec<String>> {
        if self.entry(directory)? != Some(Entry::Directory) {
            return Ok(Vec::new());
        }
        let names = disk::list(&self.place(directory));
        names.map_err(|error| Self::failure(directory, &error))
    }

    fn read(&self, path: &str) -> Result<Vec<u8>> {
        let bytes = disk::read(&self.place(path)).map_err(|error| Self::failure(path, &error))?;
        let mut read = self.read.borrow_mut();
        read.entry(path.to_owned()).or_insert_with(|| digest(&bytes));
        Ok(bytes)
    }

    fn absolute(&self, text: &str) -> Option<String> {
        self.top.inside(text)
    }

    fn converts(&self) -> bool {
        true
    }

    fn label(&self, path: &str) -> String {
        match path {
            "" => ".".to_owned(),
            path => path.to_owned(),
        }
    }
}

/// Returns whether the last component of a path is one of `names`.
fn is_named(path: &[u8], names: &[&str]) -> bool {
    names
        .iter()
        .any(|name| path.strip_suffix(name.as_bytes()).is_some_and(|above| above.is_empty() || above.ends_with(b"/")))
}

/// Distinguishes contents, unless chosen to collide.
fn digest(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

impl Listing for WorkingTree {
    /// Only what git tracks, or what is neither tracked nor ignored.
    fn files_named(&self, names: &[&str]) -> Result<Vec<String>> {
        let mut found = Vec::new();
        for path in self.listed(|path| is_named(path, names))? {
            if matches!(self.entry(&path)?, Some(Entry::File { .. } | Entry::Link)) {
                found.push(path);
            }
        }
        Ok(found)
    }

    fn unnameable(&self, names: &[&str]) -> Result<Vec<String>> {
        let listed = self.files()?;
        let paths = listed.split(|byte| *byte == 0);
        let mut found: Vec<String> = paths
            .filter(|path| is_named(path, names) && std::str::from_utf8(path).is_err())
            .map(|path| String::from_utf8_lossy(path).into_owned())
            .collect();
        found.sort();
        found.dedup();
        Ok(found)
    }

    /// Only what git tracks, or what is neither tracked nor ignored.
    fn below(&self, directory: &str) -> Result<Vec<String>> {
        let prefix = match directory {
            "" => String::new(),
            directory => format!("{directory}/"),
        };
        self.listed(|path| path.starts_with(prefix.as_bytes()))
    }
}
