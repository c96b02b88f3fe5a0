//! The files of a commit or of the index, read from the object database and never checked out. An index is a commit
//! whose directories are decoded already.

mod objects;
mod unmarked;

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use gix::ObjectId;

use self::objects::{Directory, Item, Listed, Objects};
use super::checkout::Conversion;
use super::{Entry, LOCK_COMMAND, LOCK_NAME, Names, Search, Tree, path};
use crate::git::{CommitId, LocalRepo, Staged, object_id};
use crate::message::failure::{Failure, Result, command, pathspec, shown};
use crate::os::limits::{PATH, PATH_BYTES, PATHS};

pub(crate) use self::objects::read_proven;

/// The files of one tree object, or of the index: as they are stored, or as a checkout gives them.
pub struct GitTree {
    objects: Rc<Objects>,
    root: ObjectId,
    /// The unmerged paths of an index: they exist, but cannot be read. `None` for a commit.
    unmerged: Option<Rc<BTreeSet<String>>>,
    followed: RefCell<BTreeSet<String>>,
    /// The directories that were looked into, by path.
    directories: RefCell<HashMap<String, Rc<Directory>>>,
    /// The stored files and their conversion, if this tree gives its files as in a checkout.
    stored: Option<(Rc<GitTree>, Conversion)>,
}

impl GitTree {
    /// Opens the tree object `root` of any other repository.
    pub fn new(repository: gix::Repository, root: ObjectId) -> Self {
        GitTree::at(Rc::new(Objects::new(repository, None)), root)
    }

    /// Opens the tree object `root` of this repository.
    pub fn of_local(repo: Rc<LocalRepo>, root: ObjectId) -> Result<Self> {
        Ok(GitTree::at(Rc::new(Objects::new(repo.repository()?.clone(), Some(repo))), root))
    }

    /// Opens the tree of a commit of this repository.
    pub(crate) fn of_commit(repo: &Rc<LocalRepo>, commit: &CommitId) -> Result<Self> {
        GitTree::of_local(repo.clone(), object_id(&commit.tree)?)
    }

    /// Reads the current index of this repository; an index that was never written is empty. A path added with
    /// `git add -N` is missing.
    pub(crate) fn of_index(repo: Rc<LocalRepo>) -> Result<Self> {
        // The root is replaced below: its id depends on the hash function of the repository.
        let tree = GitTree::of_local(repo.clone(), ObjectId::null(gix::hash::Kind::Sha1))?;
        // The index has no tree objects, so directories are built for it, with ids that no object has.
        let mut index = Index::new();
        let root = unused_id(0, tree.hash());
        index.insert("", (root, Directory::default()));
        let mut unmerged = BTreeSet::new();
        // Without the paths of `git add -N`, which a commit would not contain.
        let staged = repo.staged()?;
        let mut last = "";
        for entry in &staged {
            // git reads past the end of a truncated index, and only prints a warning.
            let item = index_item(entry).ok_or_else(|| {
                let index = repo.index.display();
                Failure::new(format!("the index `{index}` is damaged"))
                    .hint(format!("recreate it from HEAD: {} && git reset", command("rm", [index.to_string()])))
            })?;
            // An unmerged path has an entry for each side: ours (stage 2) counts, or else the first one.
            if last != entry.path || entry.stage == 2 {
                insert_item(&mut index, &entry.path, item);
            }
            last = &entry.path;
            if entry.stage > 0 {
                unmerged.insert(entry.path.clone());
            }
        }
        let decoded = index.into_values().map(|(id, directory)| (id, Rc::new(directory)));
        tree.objects.directories.borrow_mut().extend(decoded);
        Ok(GitTree { root, unmerged: Some(Rc::new(unmerged)), ..tree })
    }

    /// A tree of stored files, of which nothing was read yet.
    fn at(objects: Rc<Objects>, root: ObjectId) -> Self {
        let (followed, directories) = (RefCell::default(), RefCell::default());
        GitTree { objects, root, unmerged: None, followed, directories, stored: None }
    }

    /// The tree object `root` of the same repository.
    pub fn beside(&self, root: ObjectId) -> Self {
        // Common directories are kept in memory once.
        GitTree::at(self.objects.clone(), root)
    }

    /// The same files as in a checkout, which `kustomize build` reads. A file with a filter cannot be read.
    pub fn checked_out(&self) -> Self {
        self.converted(Conversion::refusing_filters(self.hash()))
    }

    /// The same files, converted.
    pub(crate) fn converted(&self, conversion: Conversion) -> Self {
        GitTree { stored: Some((Rc::new(self.copy()), conversion)), ..self.copy() }
    }

    /// The same files as they are stored.
    fn copy(&self) -> Self {
        GitTree { unmerged: self.unmerged.clone(), ..self.beside(self.root) }
    }

    /// The repository of its objects.
    pub fn repository(&self) -> &gix::Repository {
        &self.objects.repository
    }

    /// The id of the blob, link or gitlink at `path`; `None` for a directory and a missing path.
    pub fn id(&self, path: &str) -> Result<Option<ObjectId>> {
        Ok(self.item(path)?.filter(|item| item.entry != Entry::Directory).map(|item| item.id))
    }

    /// The id of the file or link at `path`; `None` for any other path.
    fn blob(&self, path: &str) -> Result<Option<ObjectId>> {
        let blob = self.item(path)?.filter(|item| matches!(item.entry, Entry::File { .. } | Entry::Link));
        Ok(blob.map(|item| item.id))
    }

    /// The id of the file or link at `path` if its object is missing in the repository, as in a partial clone.
    pub fn lacks(&self, path: &str) -> Result<Option<ObjectId>> {
        Ok(self.blob(path)?.filter(|id| !self.repository().has_object(*id)))
    }

    /// The number of bytes of the file or link at `path`, without reading them; `None` if the object is missing.
    pub(crate) fn size(&self, path: &str) -> Result<Option<u64>> {
        let header = self.blob(path)?.and_then(|id| self.repository().find_header(id).ok());
        Ok(header.map(|header| header.size()))
    }

    /// The kind of the object ids.
    pub fn hash(&self) -> gix::hash::Kind {
        self.repository().object_hash()
    }

    /// The links that were read so far.
    pub fn followed(&self) -> BTreeSet<String> {
        self.followed.borrow().clone()
    }

    /// The nodes below a directory that are not directories, sorted by path.
    fn list(&self, top: &str) -> Result<Vec<(String, Item)>> {
        let mut all = Vec::new();
        let mut todo: Vec<_> = match self.item(top)? {
            Some(Item { entry: Entry::Directory, id }) => vec![(top.to_owned(), id)],
            _ => Vec::new(),
        };
        let (mut paths, mut bytes) = (0, 0);
        // Equal directories are one object, so a few objects can make any number of paths: the limits count paths.
        while let Some((directory, id)) = todo.pop() {
            // In reverse, so that the first directory is taken next.
            for (name, item) in self.objects.directory(id, &directory)?.iter().rev() {
                let length = directory.len() + 1 + name.len();
                PATH.check(length, || shown(&path::join(&directory, name)))?;
                (paths, bytes) = (paths + 1, bytes + length);
                let path = path::join(&directory, name);
                match item.entry {
                    Entry::Directory => todo.push((path, item.id)),
                    _ => all.push((path, *item)),
                }
            }
            PATHS.check(paths, || format!("tree {}", self.root))?;
            PATH_BYTES.check(bytes, || format!("tree {}", self.root))?;
        }
        all.sort_by(|(left, _), (right, _)| left.cmp(right));
        Ok(all)
    }

    /// All nodes of the tree that are not directories.
    fn all(&self) -> Result<Listed> {
        // Several trees of one repository may show the same root, which is listed once.
        if let Some(all) = self.objects.listed.borrow().get(&self.root) {
            return Ok(all.clone());
        }
        let all = Rc::new(self.list("")?);
        self.objects.listed.borrow_mut().insert(self.root, all.clone());
        Ok(all)
    }

    /// The node at a path; `None` if it is missing.
    fn item(&self, path: &str) -> Result<Option<Item>> {
        PATH.check(path.len(), || shown(path))?;
        if path.is_empty() {
            return Ok(Some(Item { entry: Entry::Directory, id: self.root }));
        }
        let name = path::name(path);
        // A name that is not UTF-8 is only shown, so that no path means it.
        let directory = self.directory(path::parent(path))?.filter(|_| !path::is_odd(name));
        Ok(directory.and_then(|directory| directory.get(name).copied()))
    }

    /// The entries of the directory at a path; `None` if there is no directory.
    fn directory(&self, path: &str) -> Result<Option<Rc<Directory>>> {
        if let Some(known) = self.directories.borrow().get(path) {
            return Ok(Some(known.clone()));
        }
        let Some(Item { entry: Entry::Directory, id }) = self.item(path)? else { return Ok(None) };
        let directory = self.objects.directory(id, path)?;
        self.directories.borrow_mut().insert(path.to_owned(), directory.clone());
        Ok(Some(directory))
    }
}

impl Tree for GitTree {
    fn entry(&self, path: &str) -> Result<Option<Entry>> {
        Ok(self.item(path)?.map(|item| item.entry))
    }

    fn names(&self, directory: &str) -> Result<Vec<String>> {
        let nodes = self.directory(directory)?.unwrap_or_default();
        nodes.keys().map(|name| path::refuse_odd(directory, name).map(|()| name.to_string())).collect()
    }

    fn read(&self, path: &str) -> Result<Vec<u8>> {
        if let Some((stored, conversion)) = &self.stored {
            return conversion.read(&**stored, path);
        }
        if self.unmerged.as_ref().is_some_and(|unmerged| unmerged.contains(path)) {
            return Err(Failure::new(format!("`{path}` is unmerged")).hint(match path {
                LOCK_NAME => LOCK_COMMAND.to_owned(),
                path => format!("resolve the conflict, then: {}", command("git add --", [pathspec(path)])),
            }));
        }
        match self.item(path)? {
            Some(Item { entry, id }) if entry != Entry::Directory => {
                // A run that follows a link must notice if it changes.
                if entry == Entry::Link {
                    self.followed.borrow_mut().insert(path.to_owned());
                }
                self.objects.read("blob", id, path)
            }
            _ => Err(Failure::new(format!("`{path}` is not a file"))),
        }
    }

    fn raw(&self, path: &str) -> Result<Option<Vec<u8>>> {
        let Some((stored, conversion)) = &self.stored else {
            return Ok(None);
        };
        let applies = conversion.applies(&**stored, path::parent(path))?;
        applies.then(|| stored.read(path)).transpose()
    }

    fn stored(&self, path: &str) -> Option<String> {
        let is_commit = self.objects.repo.is_some() && self.unmerged.is_none() && self.stored.is_none();
        is_commit.then(|| self.id(path).ok().flatten()).flatten().map(|id| id.to_string())
    }

    fn absolute(&self, text: &str) -> Option<String> {
        path::inside(self.objects.repo.as_ref()?.top.as_ref()?, text)
    }

    fn converts(&self) -> bool {
        self.stored.is_some()
    }

    fn below(&self, directory: &str) -> Result<Vec<String>> {
        let paths: Vec<String> = match directory {
            "" => self.all()?.iter().map(|(path, _)| path.clone()).collect(),
            _ => self.list(directory)?.into_iter().map(|(path, _)| path).collect(),
        };
        Ok(paths.into_iter().filter(|path| !path::is_odd(path)).collect())
    }

    fn files_named(&self, is_wanted: &dyn Fn(&str) -> bool) -> Result<Vec<String>> {
        let all = self.all()?;
        let files = all.iter().filter(|(_, item)| item.entry != Entry::Submodule).map(|(path, _)| path);
        let named = files.filter(|path| is_wanted(path::name(path)));
        named.map(|path| path::refuse_odd("", path).map(|()| path.clone())).collect()
    }

    fn files_with(&self, endings: Names, marks: &[&'static [u8]]) -> Result<Search<'_>> {
        let all = self.all()?;
        let is_searched = |(path, item): &(String, Item)| {
            matches!(item.entry, Entry::File { .. }) && endings.iter().any(|ending| path.ends_with(ending))
        };
        let files: Vec<usize> = (0..all.len()).filter(|file| is_searched(&all[*file])).collect();
        let blobs = files.iter().map(|file| all[*file].1.id).collect();
        // The search goes on while the caller reads something else.
        let search = self.objects.start_search(blobs, marks);
        Ok(Box::new(move || {
            let paths = files.into_iter().map(|file| &all[file].0).zip(search());
            // An unmerged file cannot be read, and must be reported rather than skipped.
            let unmerged = self.unmerged.as_ref();
            let marked =
                paths.filter(|(path, has_mark)| *has_mark || unmerged.is_some_and(|paths| paths.contains(*path)));
            Ok(marked.map(|(path, _)| path.clone()).collect())
        }))
    }
}

/// The directories of an index by their paths, each with an id that no object has: its number.
type Index<'a> = HashMap<&'a str, (ObjectId, Directory)>;

/// An id that no object has, for a directory of an index.
fn unused_id(number: usize, hash: gix::hash::Kind) -> ObjectId {
    let mut bytes = vec![0; hash.len_in_bytes()];
    bytes[..8].copy_from_slice(&(number as u64 + 1).to_le_bytes());
    ObjectId::from_bytes_or_panic(&bytes)
}

/// The node of an index entry; `None` if git does not write such an entry.
fn index_item(staged: &Staged) -> Option<Item> {
    let id = ObjectId::from_hex(staged.id.as_bytes()).ok().filter(|id| !id.is_null())?;
    let entry = match staged.mode.as_str() {
        "100644" => Entry::File { executable: false },
        "100755" => Entry::File { executable: true },
        "120000" => Entry::Link,
        "160000" => Entry::Submodule,
        _ => return None,
    };
    Some(Item { entry, id })
}

/// Adds a node to the directory above it, which is made if it is missing, with the directories above that.
fn insert_item<'a>(index: &mut Index<'a>, path: &'a str, item: Item) {
    let above = path::parent(path);
    if !index.contains_key(above) {
        let id = unused_id(index.len(), item.id.kind());
        index.insert(above, (id, Directory::default()));
        insert_item(index, above, Item { entry: Entry::Directory, id });
    }
    if let Some((_, directory)) = index.get_mut(above) {
        directory.insert(path::name(path).into(), item);
    }
}
