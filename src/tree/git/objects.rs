//! The objects of a repository: read by gix, or by git if gix does not find them.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

use gix::ObjectId;
use gix::bstr::ByteSlice as _;
use gix::objs::Find as _;
use gix::objs::tree::EntryKind;

use super::unmarked::Unmarked;
use crate::git::{LocalRepo, keep_bases};
use crate::message::failure::{Failure, Result, command, shown};
use crate::tree::{Entry, path, start_search};

/// One entry of a directory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Item {
    pub(super) entry: Entry,
    pub(super) id: ObjectId,
}

/// The entries of a directory. A name that is not UTF-8 is replaced by one that can be shown, and is
/// [odd](path::is_odd).
pub(super) type Directory = BTreeMap<Box<str>, Item>;

/// All nodes of a tree that are not directories, by path.
pub(super) type Listed = Rc<Vec<(String, Item)>>;

/// The object database of one repository.
pub(super) struct Objects {
    pub(super) repository: gix::Repository,
    /// The repository at hand, when it is this one: git may fetch objects.
    pub(super) repo: Option<Rc<LocalRepo>>,
    /// Objects of a push that were not taken yet, in a hook of a server.
    quarantine: Option<gix::odb::Handle>,
    /// Every tree object that was looked into.
    pub(super) directories: RefCell<HashMap<ObjectId, Rc<Directory>>>,
    /// The trees that were listed.
    pub(super) listed: RefCell<HashMap<ObjectId, Listed>>,
}

/// How many objects are searched at once by a thread.
const SHARE: usize = 4096;

/// The bytes of an object (`kind`: `commit`, `tree`, `blob`) that was proven to be what its id says.
pub(crate) fn read_proven(repository: &gix::Repository, kind: &str, id: ObjectId) -> Result<Vec<u8>> {
    let unreadable = |reason: &dyn std::fmt::Display| Failure::new(format!("{kind} {id} cannot be read: {reason}"));
    let mut object = repository.find_object(id).map_err(|error| unreadable(&error))?;
    let bytes = std::mem::take(&mut object.data);
    // Whoever can write to a pack can put other bytes under an id.
    let computed = gix::objs::compute_hash(id.kind(), object.kind, &bytes).map_err(|error| unreadable(&error))?;
    if computed == id && object.kind.as_bytes() == kind.as_bytes() {
        return Ok(bytes);
    }
    let directory = repository.git_dir().display();
    Err(Failure::new(format!("{kind} {id} in `{directory}` does not match its id: the cache was changed"))
        .hint(format!("remove it, and run the command again: {}", command("rm -rf", [directory.to_string()]))))
}

/// Whether a checkout of an entry with this name would write outside of its directory.
fn is_hostile(name: &[u8]) -> bool {
    matches!(name, b"" | b"." | b"..") || name.contains(&b'/') || name.eq_ignore_ascii_case(b".git")
}

fn entry_of(kind: EntryKind) -> Entry {
    match kind {
        EntryKind::Tree => Entry::Directory,
        EntryKind::Blob => Entry::File { executable: false },
        EntryKind::BlobExecutable => Entry::File { executable: true },
        EntryKind::Link => Entry::Link,
        EntryKind::Commit => Entry::Submodule,
    }
}

impl Objects {
    /// The objects of a repository; `repo` if it is the repository at hand.
    pub(super) fn new(repository: gix::Repository, repo: Option<Rc<LocalRepo>>) -> Self {
        // In a hook of a server git keeps the objects of a push there, which were not taken yet.
        let directory = std::env::var_os("GIT_OBJECT_DIRECTORY").filter(|_| repo.is_some());
        let quarantine = directory.and_then(|directory| gix::odb::at(directory, repository.object_hash()).ok());
        Objects { repository, repo, quarantine, directories: RefCell::default(), listed: RefCell::default() }
    }

    /// The entries of the tree object at `path`.
    pub(super) fn directory(&self, id: ObjectId, path: &str) -> Result<Rc<Directory>> {
        if let Some(known) = self.directories.borrow().get(&id) {
            return Ok(known.clone());
        }
        let bytes = self.read("tree", id, path)?;
        let mut directory = Directory::default();
        for entry in gix::objs::TreeRefIter::from_bytes(&bytes, self.repository.object_hash()) {
            let entry = entry.map_err(|error| Failure::new(format!("tree {id} cannot be read: {error}")))?;
            if is_hostile(entry.filename) {
                let directory = if path.is_empty() { "the top directory" } else { &*format!("`{}`", shown(path)) };
                let name = shown(&entry.filename.to_string());
                let message = format!("tree {id} of {directory} has an entry `{name}`, which git cannot check out");
                return Err(Failure::new(message));
            }
            let item = Item { entry: entry_of(entry.mode.kind()), id: entry.oid.to_owned() };
            // A name that is not UTF-8 cannot be referenced from YAML.
            // If a damaged directory has a name twice, the last one counts.
            directory.insert(entry.filename.to_str_lossy().into(), item);
        }
        let directory = Rc::new(directory);
        // By id: many directories of two commits are the same object.
        self.directories.borrow_mut().insert(id, directory.clone());
        Ok(directory)
    }

    /// Starts to test for each blob whether it contains one of these marks. A blob that gix does not find counts as one
    /// that does.
    pub(super) fn start_search(
        &self,
        blobs: Vec<ObjectId>,
        marks: &[&'static [u8]],
    ) -> impl FnOnce() -> Vec<bool> + use<> {
        let hash = self.repository.object_hash();
        let directory = self.repo.as_ref().map(|repo| repo.own_directory());
        // Blobs in which an earlier run found none of the marks are not read again.
        let unmarked = directory.and_then(|directory| Unmarked::of(&directory, blobs.len(), hash, marks));
        // Many files of a repository are equal, so each object is read once.
        let mut seen = HashSet::new();
        let mut to_search = blobs.clone();
        to_search.retain(|id| !unmarked.as_ref().is_some_and(|unmarked| unmarked.knows(id)) && seen.insert(*id));
        let shared = self.repository.clone().into_sync();
        let search = start_search(to_search.clone(), SHARE, marks, move || {
            let mut repository = shared.to_thread_local();
            keep_bases(&mut repository);
            let mut buffer = Vec::new();
            move |id: &ObjectId, is_marked: &dyn Fn(&[u8]) -> bool| match repository.objects.try_find(id, &mut buffer) {
                Ok(Some(blob)) => is_marked(blob.data),
                // A blob that gix does not find here may hold a mark.
                _ => true,
            }
        });
        move || {
            let searched: HashMap<ObjectId, bool> = to_search.into_iter().zip(search()).collect();
            if let Some(unmarked) = unmarked {
                unmarked.add(searched.iter().filter(|(_, has_mark)| !**has_mark).map(|(id, _)| *id).collect());
            }
            blobs.iter().map(|id| searched.get(id).is_some_and(|has_mark| *has_mark)).collect()
        }
    }

    /// The raw bytes of the object (`kind`: `blob`, `tree`) that is at `path`. git is asked last: it also fetches what
    /// a partial clone lacks, if this run may fetch.
    pub(super) fn read(&self, kind: &str, id: ObjectId, path: &str) -> Result<Vec<u8>> {
        // The cache is not trusted; the repository at hand is.
        let Some(repo) = &self.repo else {
            return read_proven(&self.repository, kind, id);
        };
        if let Ok(mut object) = self.repository.find_object(id) {
            return Ok(std::mem::take(&mut object.data));
        }
        let mut bytes = Vec::new();
        // During a push the new objects are not in the repository yet.
        let object = self.quarantine.as_ref().map(|quarantine| quarantine.try_find(&id, &mut bytes));
        if let Some(Ok(Some(_))) = object {
            return Ok(bytes);
        }
        let path = path::shown(path);
        match repo.object(kind, &id.to_string())? {
            Some(bytes) => Ok(bytes),
            // This run may not fetch.
            None if repo.is_partial()? => {
                Err(Failure::new(format!("`{path}` has not been fetched into this partial clone"))
                    .hint(format!("fetch it: git cat-file -e {id}")))
            }
            None => Err(Failure::new(format!("`{path}` is damaged: there is no object {id}"))
                .hint("list missing objects: git fsck")),
        }
    }
}
