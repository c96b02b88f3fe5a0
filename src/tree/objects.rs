//! The tree of a commit, read from the object database and never checked out.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use gix::ObjectId;
use gix::objs::tree::EntryKind;

use super::store::Objects;
use super::top::Top;
use super::{Entry, Listing, Search, Tree, path};
use crate::failure::{Failure, Result, shown};
use crate::git::LocalRepo;

pub use super::store::{open, open_fetched, proven};

/// One entry of a directory.
#[derive(Debug, Clone, Copy)]
struct Item {
    entry: Entry,
    id: ObjectId,
}

/// What a directory holds. There may be a million entries, so that none of them has memory of its own.
#[derive(Debug, Default)]
struct Directory {
    /// All names, one after the other.
    names: String,
    /// Where each name is, and what it names, sorted by name.
    items: Vec<(Range<u32>, Item)>,
    /// The directories whose names are not UTF-8, as they can be shown.
    unnameable: Vec<(String, ObjectId)>,
    /// The name of something that is not UTF-8, as it can be shown.
    odd: Option<String>,
}

impl Directory {
    fn get(&self, name: &str) -> Option<&Item> {
        let found = self
            .items
            .binary_search_by(|(place, _)| self.name(place).cmp(name));
        self.items.get(found.ok()?).map(|(_, item)| item)
    }

    fn iter(&self) -> impl Iterator<Item = (&str, &Item)> {
        let items = self.items.iter();
        items.map(|(place, item)| (self.name(place), item))
    }

    fn name(&self, place: &Range<u32>) -> &str {
        let place = place.start as usize..place.end as usize;
        self.names.get(place).unwrap_or_default()
    }

    /// Adds an entry: all are in order after [`sort`](Self::sort).
    fn add(&mut self, name: &str, item: Item) -> Option<()> {
        let start = u32::try_from(self.names.len()).ok()?;
        self.names.push_str(name);
        let end = u32::try_from(self.names.len()).ok()?;
        self.items.push((start..end, item));
        Some(())
    }

    fn sort(&mut self) {
        let mut items = std::mem::take(&mut self.items);
        items.sort_by(|(one, _), (other, _)| self.name(one).cmp(self.name(other)));
        // Of a name that a damaged tree has twice the last one counts.
        items.dedup_by(|(place, item), (kept, first)| {
            let is_same = self.name(place) == self.name(kept);
            if is_same {
                *first = *item;
            }
            is_same
        });
        items.shrink_to_fit();
        self.items = items;
        self.names.shrink_to_fit();
    }
}

/// Every tree object that was looked into, decoded once.
type Decoded = RefCell<HashMap<ObjectId, Rc<Directory>>>;

/// How many directories are remembered by their paths at most: the next ones that are requested lie near the last ones.
const MOST_DIRECTORIES: usize = 10_000;

/// The files of one tree object, as they are stored: no end of line or encoding is converted.
pub struct ObjectTree {
    objects: Rc<Objects>,
    root: ObjectId,
    /// Where the root is, for messages.
    place: String,
    decoded: Rc<Decoded>,
    /// The directories that were looked into last.
    directories: RefCell<HashMap<String, Rc<Directory>>>,
    /// The last of them that was looked into: most of the time it is the next one, too.
    last: RefCell<Option<(String, Rc<Directory>)>>,
    links: RefCell<BTreeSet<String>>,
    /// The directories at any depth whose names are not UTF-8, as they can be shown, once all were looked into.
    unnameable: OnceCell<Vec<(String, ObjectId)>>,
    top: Option<Top>,
}

/// Reads a full hex object id.
///
/// # Errors
/// When it is none.
pub fn object_id(hex: &str) -> Result<ObjectId> {
    ObjectId::from_hex(hex.as_bytes())
        .map_err(|_| Failure::new(format!("`{hex}` is not a full object id")))
}

impl ObjectTree {
    /// Opens the tree object `root` of a repository that is not the user's.
    #[must_use]
    pub fn new(repository: gix::Repository, root: ObjectId) -> Self {
        ObjectTree::at(Rc::new(Objects::fetched(repository)), root, "")
    }

    /// Opens the tree object `root` of this repository.
    ///
    /// # Errors
    /// When the repository cannot be opened.
    pub fn of_here(here: Rc<LocalRepo>, root: ObjectId) -> Result<Self> {
        let top = here.top.as_deref().and_then(Top::new);
        let objects = Rc::new(Objects::of_here(here)?);
        Ok(ObjectTree {
            top,
            ..ObjectTree::at(objects, root, "")
        })
    }

    /// Returns the tree object `root` of the same repository. What the two have in common is held once.
    #[must_use]
    pub fn beside(&self, root: ObjectId) -> Self {
        ObjectTree {
            decoded: self.decoded.clone(),
            top: self.top.clone(),
            ..ObjectTree::at(self.objects.clone(), root, "")
        }
    }

    /// Returns the repository that it lies in.
    #[must_use]
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
            directories: RefCell::default(),
            last: RefCell::default(),
            links: RefCell::default(),
            unnameable: OnceCell::new(),
            top: None,
        }
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

    /// Returns the id of the file or link at `path` if the bytes of that are not here.
    ///
    /// # Errors
    /// When a tree cannot be read.
    pub fn lacks(&self, path: &str) -> Result<Option<ObjectId>> {
        let blob = self
            .item(path)?
            .filter(|item| matches!(item.entry, Entry::File { .. } | Entry::Link));
        let id = blob.map(|item| item.id);
        Ok(id.filter(|id| !self.objects.holds(*id)))
    }

    /// Returns the number of bytes of the blob at `path`, without reading them; none where there is no blob.
    ///
    /// # Errors
    /// When an object cannot be read.
    pub fn size(&self, path: &str) -> Result<Option<u64>> {
        let blob = self
            .item(path)?
            .filter(|item| matches!(item.entry, Entry::File { .. } | Entry::Link));
        blob.map(|item| self.objects.size(item.id)).transpose()
    }

    /// Returns the kind of the ids.
    #[must_use]
    pub fn hash(&self) -> gix::hash::Kind {
        self.objects.hash()
    }

    /// Returns every file and link below the root, with whether it is executable.
    ///
    /// # Errors
    /// When a tree cannot be read.
    pub fn files(&self) -> Result<std::collections::BTreeMap<String, bool>> {
        let mut files = std::collections::BTreeMap::new();
        self.each("", &mut |directory, name, item| {
            let executable = item.entry == Entry::File { executable: true };
            files.insert(path::join(directory, name), executable);
        })?;
        Ok(files)
    }

    /// Shows everything below a directory that is none itself, in any order: its directory, its name and what it is.
    fn each(&self, top: &str, visit: &mut dyn FnMut(&str, &str, &Item)) -> Result<()> {
        let mut unnameable = Vec::new();
        let mut todo = Vec::new();
        if let Some(item) = self.item(top)?
            && item.entry == Entry::Directory
        {
            todo.push((top.to_owned(), item.id));
        }
        while let Some((directory, id)) = todo.pop() {
            let entries = self.decoded(id, &directory)?;
            for (name, item) in entries.iter() {
                match item.entry {
                    Entry::Directory => todo.push((path::join(&directory, name), item.id)),
                    _ => visit(&directory, name, item),
                }
            }
            let here = entries.unnameable.iter();
            unnameable.extend(here.map(|(name, id)| (path::join(&directory, name), *id)));
        }
        if top.is_empty() {
            // The same each time.
            let _ = self.unnameable.set(unnameable);
        }
        Ok(())
    }

    /// Returns the links that were followed until now.
    #[must_use]
    pub fn followed(&self) -> BTreeSet<String> {
        self.links.borrow().clone()
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
        if let Some((place, last)) = &*self.last.borrow()
            && place == path
        {
            return Ok(Some(last.clone()));
        }
        if let Some(known) = self.directories.borrow().get(path) {
            *self.last.borrow_mut() = Some((path.to_owned(), known.clone()));
            return Ok(Some(known.clone()));
        }
        let Some(Item {
            entry: Entry::Directory,
            id,
        }) = self.item(path)?
        else {
            return Ok(None);
        };
        let found = self.decoded(id, path)?;
        let mut directories = self.directories.borrow_mut();
        if directories.len() == MOST_DIRECTORIES {
            directories.clear();
        }
        directories.insert(path.to_owned(), found.clone());
        Ok(Some(found))
    }

    fn decoded(&self, id: ObjectId, path: &str) -> Result<Rc<Directory>> {
        if let Some(known) = self.decoded.borrow().get(&id) {
            return Ok(known.clone());
        }
        let new = Rc::new(self.decode(id, path)?);
        self.decoded.borrow_mut().insert(id, new.clone());
        Ok(new)
    }

    fn decode(&self, id: ObjectId, path: &str) -> Result<Directory> {
        let bytes = self
            .objects
            .read("tree", id, &path::join(&self.place, path))?;
        let mut directory = Directory::default();
        for entry in gix::objs::TreeRefIter::from_bytes(&bytes, self.objects.hash()) {
            let entry = entry
                .map_err(|error| Failure::new(format!("tree {id} cannot be read: {error}")))?;
            // A name that is not UTF-8 cannot be named by a reference, which is text.
            let Ok(name) = std::str::from_utf8(entry.filename) else {
                let shown = entry.filename.to_string();
                directory.odd = Some(shown.clone());
                if entry.mode.is_tree() {
                    directory.unnameable.push((shown, entry.oid.to_owned()));
                }
                continue;
            };
            let kind = match entry.mode.kind() {
                EntryKind::Tree => Entry::Directory,
                EntryKind::Blob => Entry::File { executable: false },
                EntryKind::BlobExecutable => Entry::File { executable: true },
                EntryKind::Link => Entry::Link,
                EntryKind::Commit => Entry::Submodule,
            };
            let item = Item {
                entry: kind,
                id: entry.oid.to_owned(),
            };
            directory
                .add(name, item)
                .ok_or_else(|| Failure::new(format!("tree {id} is too large")))?;
        }
        directory.sort();
        Ok(directory)
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
        if let Some(odd) = &found.odd {
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
                self.objects
                    .read("blob", id, &path::join(&self.place, path))
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
        marks: &'static [&'static str],
    ) -> Result<Search<'_>> {
        let mut wanted = Vec::new();
        let mut visit = |directory: &str, name: &str, item: &Item| {
            let path = path::join(directory, name);
            if matches!(item.entry, Entry::File { .. }) && is_wanted(&path) {
                wanted.push((path, item.id));
            }
        };
        for place in places {
            match self.item(place)? {
                Some(item) if item.entry != Entry::Directory => {
                    visit(path::parent(place), path::name(place), &item);
                }
                _ => self.each(place, &mut visit)?,
            }
        }
        wanted.sort();
        let (paths, ids): (Vec<String>, Vec<ObjectId>) = wanted.into_iter().unzip();
        let blobs = Arc::new(move |number: usize| ids[number]);
        let found = self.objects.hold(paths.len(), blobs, marks);
        Ok(Box::new(move || {
            let found = found().into_iter();
            Ok(found
                .filter_map(|number| paths.get(number).cloned())
                .collect())
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
        if self.unnameable.get().is_none() {
            self.each("", &mut |_, _, _| {})?;
        }
        let mut found = Vec::new();
        for (directory, id) in self.unnameable.get().into_iter().flatten() {
            let place = path::join(&self.place, directory);
            let tree = ObjectTree::at(self.objects.clone(), *id, &place);
            let below = [tree.files_named(names)?, tree.unnameable(names)?].concat();
            found.extend(below.iter().map(|path| path::join(directory, path)));
        }
        found.sort();
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn of_a_name_the_last_entry_is_found(names in prop::collection::vec("[a-c./-]{0,4}", 0..30)) {
            let mut directory = Directory::default();
            let mut expected = std::collections::BTreeMap::new();
            for (number, name) in names.iter().enumerate() {
                let item = Item {
                    entry: Entry::File { executable: false },
                    id: object_id(&format!("{number:040x}")).unwrap(),
                };
                directory.add(name, item).unwrap();
                expected.insert(name.as_str(), item.id);
            }
            directory.sort();
            let found: Vec<_> = directory.iter().map(|(name, item)| (name, item.id)).collect();
            prop_assert_eq!(found, expected.clone().into_iter().collect::<Vec<_>>());
            for name in names.iter().map(String::as_str).chain(["none"]) {
                prop_assert_eq!(directory.get(name).map(|item| item.id), expected.get(name).copied());
            }
        }
    }
}
