//! The index: what would be committed. It is a commit whose directories are decoded already.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use gix::ObjectId;

use super::objects::{Directory, Item, ObjectTree};
use super::{Entry, LOCK_COMMAND, LOCK_NAME, Listing, Search, Tree};
use crate::git::{LocalRepo, Staged};
use crate::message::failure::{Failure, Result, command, pathspec};

/// The files of the index, as they are stored.
///
/// A path of which only the name is staged (`git add -N`) is not there: a commit would not hold it.
/// A path that is not merged yet is there, but cannot be read.
pub(crate) struct IndexTree {
    tree: ObjectTree,
    unmerged: BTreeSet<String>,
}

impl IndexTree {
    /// Reads the index of this repository, as it is now. One that was never written is empty.
    pub(crate) fn open(here: Rc<LocalRepo>) -> Result<Self> {
        let mut staged = here.staged()?;
        // git lists an entry that only names a file as an empty one.
        if staged.iter().any(Staged::is_empty) {
            let named = here.only_named()?;
            staged.retain(|entry| !(entry.is_empty() && named.contains(&entry.path)));
        }
        let mut tree = ObjectTree::of_here(here.clone(), ObjectId::null(gix::hash::Kind::Sha1))?;
        let mut index = Decoder::new(tree.hash());
        let mut unmerged = BTreeSet::new();
        for entry in &staged {
            // git reads past the end of a file that was cut off, and only mentions it in passing.
            index.add(entry).ok_or_else(|| {
                let index = here.index.display();
                Failure::new(format!("the index `{index}` is damaged"))
                    .hint(format!("make it again from HEAD: {} && git reset", command("rm", [index.to_string()])))
            })?;
            if entry.stage > 0 {
                unmerged.extend(String::from_utf8(entry.path.clone()));
            }
        }
        let (root, decoded) = index.finish();
        tree.decoded_as(root, decoded);
        Ok(IndexTree { tree, unmerged })
    }

    /// Returns the kind of the ids.
    pub(crate) fn hash(&self) -> gix::hash::Kind {
        self.tree.hash()
    }
}

/// A directory that is being filled: the names of its entries and what they are, those that are not UTF-8 apart.
#[derive(Default)]
struct Filled {
    entries: Vec<(String, Item)>,
    odd: Vec<(String, Option<ObjectId>)>,
}

/// Puts the entries of an index into directories, each with an id that no object has.
struct Decoder {
    hash: gix::hash::Kind,
    /// The number of each directory by its path.
    numbers: HashMap<Vec<u8>, usize>,
    directories: Vec<Filled>,
    /// The path of the last entry.
    last: Vec<u8>,
}

impl Decoder {
    fn new(hash: gix::hash::Kind) -> Self {
        Decoder {
            hash,
            numbers: HashMap::from([(Vec::new(), 0)]),
            directories: vec![Filled::default()],
            last: Vec::new(),
        }
    }

    /// Returns the id of a directory by its number: the number itself, which is the digest of nothing.
    fn id(&self, number: usize) -> ObjectId {
        let mut bytes = vec![0; self.hash.len_in_bytes()];
        let number = (number as u64 + 1).to_be_bytes();
        let start = bytes.len() - number.len();
        bytes[start..].copy_from_slice(&number);
        ObjectId::from_bytes_or_panic(&bytes)
    }

    /// Adds an entry; of a path that is not merged ours counts, or else the first. `None` where it is none that git
    /// writes.
    fn add(&mut self, staged: &Staged) -> Option<()> {
        let id = ObjectId::from_hex(staged.id.as_bytes()).ok()?;
        let entry = match staged.mode.as_str() {
            "100644" => Entry::File { executable: false },
            "100755" => Entry::File { executable: true },
            "120000" => Entry::Link,
            "160000" => Entry::Submodule,
            _ => return None,
        };
        if id.is_null() {
            return None;
        }
        let (above, name) = split(&staged.path);
        let number = self.directory(above);
        let is_another_stage = self.last == staged.path;
        self.last.clone_from(&staged.path);
        let directory = &mut self.directories[number];
        match std::str::from_utf8(name) {
            Ok(_) if is_another_stage && staged.stage != 2 => {}
            Ok(name) => directory.entries.push((name.to_owned(), Item { entry, id })),
            Err(_) if is_another_stage => {}
            Err(_) => directory.odd.push((shown(name), None)),
        }
        Some(())
    }

    /// Returns the number of a directory, which is made with those above it.
    fn directory(&mut self, path: &[u8]) -> usize {
        if let Some(number) = self.numbers.get(path) {
            return *number;
        }
        let (above, name) = split(path);
        let above = self.directory(above);
        let number = self.directories.len();
        let id = self.id(number);
        self.numbers.insert(path.to_owned(), number);
        self.directories.push(Filled::default());
        let entry = Entry::Directory;
        match std::str::from_utf8(name) {
            Ok(name) => (self.directories[above].entries).push((name.to_owned(), Item { entry, id })),
            Err(_) => self.directories[above].odd.push((shown(name), Some(id))),
        }
        number
    }

    /// Returns the id of the top, and all directories by their ids.
    fn finish(mut self) -> (ObjectId, Vec<(ObjectId, Directory)>) {
        let directories = std::mem::take(&mut self.directories).into_iter().enumerate();
        let decoded = directories.filter_map(|(number, Filled { entries, odd })| {
            let all = entries.iter().map(|(name, item)| (name.as_str(), *item));
            let directory = Directory::of(all.collect(), odd, self.hash)?;
            Some((self.id(number), directory))
        });
        let decoded = decoded.collect();
        (self.id(0), decoded)
    }
}

/// Splits a path into its directory and its name.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (&[], path),
    }
}

fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

impl Tree for IndexTree {
    fn entry(&self, path: &str) -> Result<Option<Entry>> {
        self.tree.entry(path)
    }

    fn is_directory(&self, path: &str) -> Result<bool> {
        self.tree.is_directory(path)
    }

    fn names(&self, directory: &str) -> Result<Vec<String>> {
        self.tree.names(directory)
    }

    fn read(&self, path: &str) -> Result<Vec<u8>> {
        if !self.unmerged.contains(path) {
            return self.tree.read(path);
        }
        Err(Failure::new(format!("`{path}` is not merged yet")).hint(match path {
            LOCK_NAME => LOCK_COMMAND.to_owned(),
            path => format!("resolve the conflict, then: {}", command("git add --", [pathspec(path)])),
        }))
    }

    fn stored(&self, path: &str) -> Option<String> {
        let is_merged = !self.unmerged.contains(path);
        is_merged.then(|| self.tree.stored(path)).flatten()
    }

    fn absolute(&self, text: &str) -> Option<String> {
        self.tree.absolute(text)
    }

    fn label(&self, path: &str) -> String {
        self.tree.label(path)
    }
}

impl Listing for IndexTree {
    fn below(&self, directory: &str) -> Result<Vec<String>> {
        self.tree.below(directory)
    }

    fn files_named(&self, names: &[&str]) -> Result<Vec<String>> {
        self.tree.files_named(names)
    }

    fn files_with(
        &self,
        places: &BTreeSet<String>,
        is_wanted: &dyn Fn(&str) -> bool,
        is_meant: fn(&[u8]) -> bool,
    ) -> Result<Search<'_>> {
        self.tree.files_with(places, is_wanted, is_meant)
    }

    fn unnameable(&self, names: &[&str]) -> Result<Vec<String>> {
        self.tree.unnameable(names)
    }
}
