//! The tree of a commit, read from the object database and never checked out.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use gix::ObjectId;
use gix::objs::tree::EntryKind;

use super::{Entry, Tree, path};
use crate::failure::{Failure, Result};
use crate::git::Here;

/// One entry of a directory.
#[derive(Debug, Clone, Copy)]
struct Item {
    entry: Entry,
    id: ObjectId,
}

type Directory = HashMap<String, Item>;

/// The files of one tree object, as they are stored: no end of line or encoding is converted.
pub struct ObjectTree {
    repository: gix::Repository,
    root: ObjectId,
    /// Every directory that was looked into, decoded once.
    directories: RefCell<HashMap<String, Option<Rc<Directory>>>>,
    /// The repository at hand, when it is this one: git may reach objects that gix does not.
    here: Option<Rc<Here>>,
    /// The top of the working tree as `absolute` needs it, made real.
    top: Option<PathBuf>,
}

/// Opens the object database of the repository at `git_dir`. No reference is read, so that every
/// ref storage will do.
///
/// # Errors
/// When the repository cannot be opened.
pub fn open(git_dir: &Path) -> Result<gix::Repository> {
    gix::open_opts(
        git_dir,
        gix::open::Options::isolated().with(gix::sec::Trust::Full),
    )
    .map_err(|error| {
        Failure::new(format!(
            "could not open the repository at `{}`: {error}",
            git_dir.display()
        ))
    })
}

/// Reads a full hex object id.
///
/// # Errors
/// When it is none.
pub fn object_id(hex: &str) -> Result<ObjectId> {
    ObjectId::from_hex(hex.as_bytes())
        .map_err(|_| Failure::new(format!("`{hex}` is no full object id")))
}

impl ObjectTree {
    /// Opens the tree object `root` of a repository that is not the user's.
    #[must_use]
    pub fn new(repository: gix::Repository, root: ObjectId) -> Self {
        ObjectTree {
            repository,
            root,
            directories: RefCell::default(),
            here: None,
            top: None,
        }
    }

    /// Opens the tree object `root` of the repository at hand.
    ///
    /// # Errors
    /// When the repository cannot be opened.
    pub fn of_here(here: Rc<Here>, root: ObjectId) -> Result<Self> {
        let top = here
            .top
            .as_ref()
            .and_then(|top| std::fs::canonicalize(top).ok());
        Ok(ObjectTree {
            here: Some(here.clone()),
            top,
            ..ObjectTree::new(open(&here.git_dir)?, root)
        })
    }

    /// Returns the id of the blob, link or gitlink at `path`; of a directory none.
    ///
    /// # Errors
    /// When an object cannot be read.
    pub fn id(&self, path: &str) -> Result<Option<ObjectId>> {
        Ok(self
            .item(path)?
            .filter(|item| item.entry != Entry::Directory)
            .map(|item| item.id))
    }

    /// Returns every file and link below the root, with whether it is executable.
    ///
    /// # Errors
    /// When a tree cannot be read.
    pub fn files(&self) -> Result<std::collections::BTreeMap<String, bool>> {
        let mut files = std::collections::BTreeMap::new();
        let mut todo = vec![String::new()];
        while let Some(directory) = todo.pop() {
            for (name, item) in self
                .directory(&directory)?
                .iter()
                .flat_map(|entries| entries.iter())
            {
                let place = path::join(&directory, name);
                match item.entry {
                    Entry::Directory => todo.push(place),
                    Entry::File { executable } => {
                        files.insert(place, executable);
                    }
                    Entry::Link | Entry::Submodule => {
                        files.insert(place, false);
                    }
                }
            }
        }
        Ok(files)
    }

    fn item(&self, path: &str) -> Result<Option<Item>> {
        if path.is_empty() {
            let entry = Entry::Directory;
            return Ok(Some(Item {
                entry,
                id: self.root,
            }));
        }
        let directory = self.directory(path::parent(path))?;
        Ok(directory.and_then(|directory| directory.get(path::name(path)).copied()))
    }

    fn directory(&self, path: &str) -> Result<Option<Rc<Directory>>> {
        if let Some(known) = self.directories.borrow().get(path) {
            return Ok(known.clone());
        }
        let found = match self.item(path)? {
            Some(Item {
                entry: Entry::Directory,
                id,
            }) => Some(Rc::new(self.decode(id)?)),
            _ => None,
        };
        self.directories
            .borrow_mut()
            .insert(path.to_owned(), found.clone());
        Ok(found)
    }

    fn decode(&self, id: ObjectId) -> Result<Directory> {
        let bytes = self.object("tree", id)?;
        let mut directory = Directory::new();
        for entry in gix::objs::TreeRefIter::from_bytes(&bytes, self.repository.object_hash()) {
            let entry = entry
                .map_err(|error| Failure::new(format!("tree {id} cannot be read: {error}")))?;
            // A name that is not UTF-8 cannot be named by a reference, which is text.
            let Ok(name) = std::str::from_utf8(entry.filename) else {
                continue;
            };
            let kind = match entry.mode.kind() {
                EntryKind::Tree => Entry::Directory,
                EntryKind::Blob => Entry::File { executable: false },
                EntryKind::BlobExecutable => Entry::File { executable: true },
                EntryKind::Link => Entry::Link,
                EntryKind::Commit => Entry::Submodule,
            };
            let id = entry.oid.to_owned();
            directory.insert(name.to_owned(), Item { entry: kind, id });
        }
        Ok(directory)
    }

    fn object(&self, kind: &str, id: ObjectId) -> Result<Vec<u8>> {
        let error = match self.repository.find_object(id) {
            Ok(mut object) => return Ok(std::mem::take(&mut object.data)),
            Err(error) => error,
        };
        match &self.here {
            Some(here) => here.object(kind, &id.to_string()),
            None => Err(Failure::new(format!("object {id} cannot be read: {error}"))),
        }
    }
}

impl Tree for ObjectTree {
    fn entry(&self, path: &str) -> Result<Option<Entry>> {
        Ok(self.item(path)?.map(|item| item.entry))
    }

    fn read(&self, path: &str) -> Result<Vec<u8>> {
        match self.id(path)? {
            Some(id) => self.object("blob", id),
            None => Err(Failure::new(format!("`{path}` is no file"))),
        }
    }

    fn stored(&self, path: &str) -> Option<String> {
        self.here.as_ref()?;
        self.id(path).ok().flatten().map(|id| id.to_string())
    }

    fn absolute(&self, text: &str) -> Option<String> {
        let cleaned = PathBuf::from(format!("/{}", path::resolve("", text)?));
        let top = self.top.as_ref()?;
        let inside = match cleaned.strip_prefix(top) {
            Ok(inside) => inside.to_owned(),
            // The same place under another name: a link above the top, as `/tmp` on macOS. Links
            // below the top are those of the tree, and followed there.
            Err(_) => cleaned
                .ancestors()
                .collect::<Vec<_>>()
                .into_iter()
                .rev()
                .find_map(|above| {
                    let real = std::fs::canonicalize(above).ok()?;
                    let inside = real.strip_prefix(top).ok()?;
                    Some(inside.join(cleaned.strip_prefix(above).ok()?))
                })?,
        };
        let parts: Option<Vec<&str>> = inside
            .components()
            .map(|part| part.as_os_str().to_str())
            .collect();
        Some(parts?.join("/"))
    }

    fn label(&self, path: &str) -> String {
        match path {
            "" => ".".to_owned(),
            path => path.to_owned(),
        }
    }
}
