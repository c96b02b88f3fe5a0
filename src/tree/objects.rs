//! The tree of a commit, read from the object database and never checked out.

mod directory;
mod wanted;

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;

use gix::ObjectId;
use gix::objs::tree::EntryKind;

pub(super) use self::directory::{Directory, Item};
use self::wanted::Wanted;
use super::recent::Recent;
use super::store::Objects;
use super::top::Top;
use super::{Entry, Listing, Search, Tree, path};
use crate::git::LocalRepo;
use crate::message::failure::{Failure, Result, shown};
use crate::os::limits::{PATH, PATH_BYTES, PATHS};

pub use super::store::open;
pub(crate) use super::store::{open_fetched, proven};

/// Every tree object that was looked into, decoded once.
type Decoded = RefCell<HashMap<ObjectId, Arc<Directory>>>;

/// The files of one tree object, as they are stored: no end of line or encoding is converted.
pub struct ObjectTree {
    objects: Rc<Objects>,
    root: ObjectId,
    /// Where the root is, for messages.
    place: String,
    decoded: Rc<Decoded>,
    directories: Recent<Arc<Directory>>,
    /// The last of them that was looked into: most of the time it is the next one, too.
    last: RefCell<Option<(String, Arc<Directory>)>>,
    links: RefCell<BTreeSet<String>>,
    /// Whether a directory has a name that is not UTF-8, once all were looked into.
    has_odd: OnceCell<bool>,
    top: Option<Top>,
}

/// Reads a full hex object id.
pub fn object_id(hex: &str) -> Result<ObjectId> {
    ObjectId::from_hex(hex.as_bytes()).map_err(|_| Failure::new(format!("`{hex}` is not a full object id")))
}

impl ObjectTree {
    /// Opens the tree object `root` of a repository that is not the user's.
    pub fn new(repository: gix::Repository, root: ObjectId) -> Self {
        ObjectTree::at(Rc::new(Objects::fetched(repository)), root, "")
    }

    /// Opens the tree object `root` of this repository.
    pub fn of_here(here: Rc<LocalRepo>, root: ObjectId) -> Result<Self> {
        let top = here.top.as_deref().and_then(Top::new);
        let objects = Rc::new(Objects::of_here(here)?);
        Ok(ObjectTree { top, ..ObjectTree::at(objects, root, "") })
    }

    /// Returns the tree object `root` of the same repository. What the two have in common is held once.
    pub fn beside(&self, root: ObjectId) -> Self {
        ObjectTree {
            decoded: self.decoded.clone(),
            top: self.top.clone(),
            ..ObjectTree::at(self.objects.clone(), root, "")
        }
    }

    /// Returns the repository that it lies in.
    pub fn repository(&self) -> &gix::Repository {
        self.objects.repository()
    }

    /// Opens the tree object `root`, which is the directory `place` of something else.
    pub(super) fn at(objects: Rc<Objects>, root: ObjectId, place: &str) -> Self {
        ObjectTree {
            objects,
            root,
            place: place.to_owned(),
            decoded: Rc::default(),
            directories: Recent::default(),
            last: RefCell::default(),
            links: RefCell::default(),
            has_odd: OnceCell::new(),
            top: None,
        }
    }

    /// Takes directories that are decoded already, and the one among them that is the root.
    pub(super) fn decoded_as(&mut self, root: ObjectId, all: Vec<(ObjectId, Directory)>) {
        self.root = root;
        let all = all.into_iter();
        self.decoded = Rc::new(RefCell::new(all.map(|(id, directory)| (id, Arc::new(directory))).collect()));
    }

    /// Returns the id of the blob, link or gitlink at `path`; of a directory none.
    pub fn id(&self, path: &str) -> Result<Option<ObjectId>> {
        Ok(self.item(path)?.filter(|item| item.entry != Entry::Directory).map(|item| item.id))
    }

    /// Returns the id of the file or link at `path` if the bytes of that are not here.
    pub fn lacks(&self, path: &str) -> Result<Option<ObjectId>> {
        let blob = self.item(path)?.filter(|item| matches!(item.entry, Entry::File { .. } | Entry::Link));
        let id = blob.map(|item| item.id);
        Ok(id.filter(|id| !self.objects.holds(*id)))
    }

    /// Returns the number of bytes of the blob at `path`, without reading them; none where there is no blob.
    pub fn size(&self, path: &str) -> Result<Option<u64>> {
        let blob = self.item(path)?.filter(|item| matches!(item.entry, Entry::File { .. } | Entry::Link));
        blob.map(|item| self.objects.size(item.id)).transpose()
    }

    /// Returns the kind of the ids.
    pub fn hash(&self) -> gix::hash::Kind {
        self.objects.hash()
    }

    /// Shows everything below a directory that is none itself, in any order: its directory, its name and what it is.
    fn each(&self, top: &str, visit: &mut dyn FnMut(&str, &str, Item)) -> Result<()> {
        self.each_directory(top, &mut |place, directory| {
            let items = directory.iter();
            for (name, item) in items.filter(|(_, item)| item.entry != Entry::Directory) {
                visit(place, name, item);
            }
        })
    }

    /// Shows every directory at or below `top` that a text can name.
    fn each_directory(&self, top: &str, visit: &mut dyn FnMut(&str, &Arc<Directory>)) -> Result<()> {
        self.walk(top, false, &mut |place, directory, _| visit(place, directory))
    }

    /// Shows every directory at or below `top`, in about the order of their paths: that of their files in a pack. With
    /// whether its path is UTF-8; those where it is not are left out unless they are requested.
    fn walk(&self, top: &str, with_odd: bool, visit: &mut dyn FnMut(&str, &Arc<Directory>, bool)) -> Result<()> {
        let mut todo = Vec::new();
        if let Some(item) = self.item(top)?
            && item.entry == Entry::Directory
        {
            todo.push((top.to_owned(), item.id, true));
        }
        let (mut paths, mut bytes, mut has_odd) = (0, 0, false);
        // Equal directories are one object, so that a few objects make any number of paths.
        let all = || format!("tree {}", self.root);
        while let Some((directory, id, is_named)) = todo.pop() {
            let entries = self.decoded(id, &directory)?;
            visit(&directory, &entries, is_named);
            has_odd |= !entries.odd.is_empty();
            let odd = entries.odd.iter().filter(|_| with_odd);
            let odd = odd.map(|(name, id)| (name.as_str(), *id, false));
            // The first one is the next one.
            let named = entries.iter().rev().map(|(name, item)| {
                let id = (item.entry == Entry::Directory).then_some(item.id);
                (name, id, is_named)
            });
            for (name, id, is_named) in odd.chain(named) {
                let length = directory.len() + 1 + name.len();
                PATH.check(length, || shown(&path::join(&directory, name)))?;
                (paths, bytes) = (paths + 1, bytes + length);
                if let Some(id) = id {
                    todo.push((path::join(&directory, name), id, is_named));
                }
            }
            PATHS.check(paths, all)?;
            PATH_BYTES.check(bytes, all)?;
        }
        if top.is_empty() {
            // The same each time.
            let _ = self.has_odd.set(has_odd);
        }
        Ok(())
    }

    /// Returns the links that were followed until now.
    pub fn followed(&self) -> BTreeSet<String> {
        self.links.borrow().clone()
    }

    fn item(&self, path: &str) -> Result<Option<Item>> {
        PATH.check(path.len(), || shown(path))?;
        if path.is_empty() {
            let entry = Entry::Directory;
            return Ok(Some(Item { entry, id: self.root }));
        }
        let directory = self.directory(path::parent(path))?;
        Ok(directory.and_then(|directory| {
            let number = directory.find(path::name(path))?;
            Some(directory.get(number).1)
        }))
    }

    fn directory(&self, path: &str) -> Result<Option<Arc<Directory>>> {
        if let Some((place, last)) = &*self.last.borrow()
            && place == path
        {
            return Ok(Some(last.clone()));
        }
        if let Some(known) = self.directories.get(path) {
            *self.last.borrow_mut() = Some((path.to_owned(), known.clone()));
            return Ok(Some(known));
        }
        let Some(Item { entry: Entry::Directory, id }) = self.item(path)? else {
            return Ok(None);
        };
        let found = self.decoded(id, path)?;
        self.directories.insert(path, found.clone());
        Ok(Some(found))
    }

    fn decoded(&self, id: ObjectId, path: &str) -> Result<Arc<Directory>> {
        if let Some(known) = self.decoded.borrow().get(&id) {
            return Ok(known.clone());
        }
        let new = Arc::new(self.decode(id, path)?);
        self.decoded.borrow_mut().insert(id, new.clone());
        Ok(new)
    }

    fn decode(&self, id: ObjectId, path: &str) -> Result<Directory> {
        let bytes = self.objects.read("tree", id, &path::join(&self.place, path))?;
        let (mut all, mut odd) = (Vec::new(), Vec::new());
        for entry in gix::objs::TreeRefIter::from_bytes(&bytes, self.objects.hash()) {
            let entry = entry.map_err(|error| Failure::new(format!("tree {id} cannot be read: {error}")))?;
            let name = entry.filename;
            if name.is_empty()
                || name.contains(&b'/')
                || [&b"."[..], b".."].contains(&&**name)
                || name.eq_ignore_ascii_case(b".git")
            {
                return Err(Failure::new(format!(
                    "tree {id} of `{}` names an entry `{}`, which git checks out nowhere",
                    shown(&path::join(&self.place, path)),
                    shown(&name.to_string())
                )));
            }
            // A name that is not UTF-8 cannot be named by a reference, which is text.
            let Ok(name) = std::str::from_utf8(entry.filename) else {
                let id = entry.mode.is_tree().then(|| entry.oid.to_owned());
                odd.push((entry.filename.to_string(), id));
                continue;
            };
            let kind = match entry.mode.kind() {
                EntryKind::Tree => Entry::Directory,
                EntryKind::Blob => Entry::File { executable: false },
                EntryKind::BlobExecutable => Entry::File { executable: true },
                EntryKind::Link => Entry::Link,
                EntryKind::Commit => Entry::Submodule,
            };
            let item = Item { entry: kind, id: entry.oid.to_owned() };
            all.push((name, item));
        }
        Directory::of(all, odd, self.objects.hash()).ok_or_else(|| Failure::new(format!("tree {id} is too large")))
    }
}

impl Tree for ObjectTree {
    fn entry(&self, path: &str) -> Result<Option<Entry>> {
        Ok(self.item(path)?.map(|item| item.entry))
    }

    fn is_directory(&self, path: &str) -> Result<bool> {
        Ok(self.directory(path)?.is_some())
    }

    fn names(&self, directory: &str) -> Result<Vec<String>> {
        let Some(found) = self.directory(directory)? else {
            return Ok(Vec::new());
        };
        if let Some((odd, _)) = found.odd.last() {
            return Err(Failure::new(format!(
                "`{}` holds a name that is not UTF-8: `{}`",
                path::join(&self.place, directory),
                shown(odd)
            )));
        }
        Ok(found.iter().map(|(name, _)| name.to_owned()).collect())
    }

    fn read(&self, path: &str) -> Result<Vec<u8>> {
        match self.item(path)? {
            Some(Item { entry, id }) if entry != Entry::Directory => {
                if entry == Entry::Link {
                    self.links.borrow_mut().insert(path.to_owned());
                }
                self.objects.read("blob", id, &path::join(&self.place, path))
            }
            _ => Err(Failure::new(format!("`{path}` is not a file"))),
        }
    }

    fn stored(&self, path: &str) -> Option<String> {
        if !self.objects.are_here() {
            return None;
        }
        self.id(path).ok().flatten().map(|id| id.to_string())
    }

    fn absolute(&self, text: &str) -> Option<String> {
        self.top.as_ref()?.inside(text)
    }

    fn label(&self, path: &str) -> String {
        match path {
            "" => ".".to_owned(),
            path => path.to_owned(),
        }
    }
}

impl Listing for ObjectTree {
    fn below(&self, directory: &str) -> Result<Vec<String>> {
        let mut found = Vec::new();
        self.each(directory, &mut |directory, name, _| {
            found.push(path::join(directory, name));
        })?;
        found.sort();
        Ok(found)
    }

    fn files_with(
        &self,
        places: &BTreeSet<String>,
        is_wanted: &dyn Fn(&str) -> bool,
        is_meant: fn(&[u8]) -> bool,
    ) -> Result<Search<'_>> {
        let mut wanted = Wanted::default();
        for place in places {
            match self.item(place)? {
                Some(item) if item.entry != Entry::Directory => {
                    let (above, is_it) = (path::parent(place), |name: &str| name == path::name(place));
                    if let Some(directory) = self.directory(above)? {
                        wanted.add(above, &directory, &is_it, is_wanted);
                    }
                }
                _ => self.each_directory(place, &mut |place, directory| {
                    wanted.add(place, directory, &|_| true, is_wanted);
                })?,
            }
        }
        let wanted = Arc::new(wanted);
        let searched = wanted.clone();
        let blobs = Arc::new(move |file: usize| searched.id(file));
        let found = self.objects.hold(wanted.count(), blobs, is_meant);
        Ok(Box::new(move || {
            let found = found().into_iter();
            let mut found: Vec<String> = found.map(|file| wanted.path(file)).collect();
            found.sort();
            Ok(found)
        }))
    }

    fn files_named(&self, names: &[&str]) -> Result<Vec<String>> {
        let mut found = Vec::new();
        self.each("", &mut |directory, name, item| {
            if names.contains(&name) && item.entry != Entry::Submodule {
                found.push(path::join(directory, name));
            }
        })?;
        found.sort();
        Ok(found)
    }

    fn unnameable(&self, names: &[&str]) -> Result<Vec<String>> {
        let mut found = Vec::new();
        if self.has_odd.get() == Some(&false) {
            return Ok(found);
        }
        self.walk("", true, &mut |place, directory, is_named| {
            let files = names.iter().filter(|name| {
                let item = directory.find(name).map(|number| directory.get(number).1);
                !is_named && item.is_some_and(|item| matches!(item.entry, Entry::File { .. } | Entry::Link))
            });
            found.extend(files.map(|name| path::join(place, name)));
        })?;
        found.sort();
        Ok(found)
    }
}
