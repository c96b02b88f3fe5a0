//! The index: what would be committed.

mod entries;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use gix::ObjectId;
use gix::bstr::BStr;
use gix::index::State;
use gix::index::entry::{Flags, Mode, Stage, Stat};

use self::entries::{Entries, IndexEntry};
use super::objects::ObjectTree;
use super::recent::Recent;
use super::store::Objects;
use super::top::Top;
use super::{Entry, LOCK_COMMAND, LOCK_NAME, Listing, Search, Tree, path};
use crate::failure::{Failure, Result, command, pathspec, shown};
use crate::git::LocalRepo;
use crate::limits::PATH;

/// The files of the index, as they are stored.
///
/// A path of which only the name is staged (`git add -N`) is not there: a commit would not hold it.
/// A path that is not merged yet is there, but cannot be read.
pub struct IndexTree {
    entries: Arc<Entries>,
    /// When it was written, in seconds.
    written: i64,
    objects: Rc<Objects>,
    /// The directories of a sparse index, which holds them as trees, by path.
    trees: BTreeMap<String, ObjectTree>,
    /// Where the entries below a directory are, for those that were requested.
    ranges: Recent<Range<usize>>,
    top: Option<Top>,
}

impl IndexTree {
    /// Reads the index of this repository, as it is now. One that was never written is empty.
    ///
    /// # Errors
    /// When neither we nor git can read it.
    pub fn open(here: Rc<LocalRepo>) -> Result<Self> {
        let top = here.top.as_deref().and_then(Top::new);
        let objects = Rc::new(Objects::of_here(here.clone())?);
        let (entries, written) = match read(&here.index, objects.hash()) {
            Some(read) => read,
            None => ask(&here, objects.hash())?,
        };
        for path in entries.all().iter().map(|entry| entries.path(entry)) {
            PATH.check(path.len(), || shown(&path.to_string()))?;
        }
        let mut trees = BTreeMap::new();
        let directories = entries.all().iter();
        for entry in directories.filter(|entry| entry.kind == Entry::Directory) {
            if let Ok(path) = std::str::from_utf8(entries.path(entry)) {
                let path = path.trim_end_matches('/');
                let tree = ObjectTree::at(objects.clone(), entries.id(entry), path);
                trees.insert(path.to_owned(), tree);
            }
        }
        Ok(IndexTree {
            entries: Arc::new(entries),
            written,
            objects,
            trees,
            ranges: Recent::default(),
            top,
        })
    }

    /// Returns the kind of the ids.
    #[must_use]
    pub fn hash(&self) -> gix::hash::Kind {
        self.objects.hash()
    }

    /// Returns the paths of the submodules, sorted.
    #[must_use]
    pub fn submodules(&self) -> Vec<String> {
        let mut paths: Vec<String> = self
            .entries()
            .filter(|(_, entry)| entry.kind == Entry::Submodule)
            .filter_map(|(path, _)| std::str::from_utf8(path).ok())
            .map(str::to_owned)
            .collect();
        paths.dedup();
        paths
    }

    /// Returns which of `paths` may be something else on disk than they are here, as far as the
    /// times and sizes tell that the index holds. Those that a sparse checkout leaves out may not.
    #[must_use]
    pub fn touched<'a>(&self, paths: &'a [String]) -> Vec<&'a str> {
        let Some(top) = &self.top else {
            return Vec::new();
        };
        paths
            .iter()
            .map(String::as_str)
            .filter(|path| {
                let Some(entry) = self.find(path) else {
                    return false;
                };
                if entry.is_left_out {
                    return false;
                }
                let on_disk = top.path().join(path).symlink_metadata();
                let on_disk = on_disk.ok().and_then(|metadata| modified(&metadata));
                // Written at the same moment as the index, a file can have changed unnoticed.
                let racy = i64::from(entry.written.0) >= self.written;
                racy || on_disk != Some(entry.written)
            })
            .collect()
    }

    /// Returns the entries with their paths.
    fn entries(&self) -> impl Iterator<Item = (&BStr, &IndexEntry)> {
        let all = self.entries.all().iter();
        all.map(|entry| (self.path(entry), entry))
    }

    /// Returns the entry of the file, link or gitlink at `path`: of one that is not merged, ours, or else
    /// the first.
    fn find(&self, path: &str) -> Option<&IndexEntry> {
        // Few entries to compare with, and all of them side by side.
        let entries = self.entries.all().get(self.range(path::parent(path))?)?;
        let first = entries.partition_point(|entry| self.path(entry) < path);
        let stages = || {
            entries
                .get(first..)
                .unwrap_or_default()
                .iter()
                .take_while(|entry| self.path(entry) == path)
        };
        let ours = stages().find(|entry| entry.stage == Stage::Ours);
        ours.or_else(|| stages().next())
    }

    /// Returns where the entries below `directory` are; `None` where nothing is below it.
    fn range(&self, directory: &str) -> Option<Range<usize>> {
        if directory.is_empty() {
            return Some(0..self.entries.all().len());
        }
        if directory.len() > PATH.most {
            return None;
        }
        if let Some(known) = self.ranges.get(directory) {
            return Some(known);
        }
        let above = self.range(path::parent(directory))?;
        let entries = self.entries.all().get(above.clone())?;
        let order = |entry: &IndexEntry| below(self.path(entry), directory.as_bytes());
        let start = entries.partition_point(|entry| order(entry) == Ordering::Less);
        let rest = entries.get(start..)?;
        let length = rest.partition_point(|entry| order(entry) == Ordering::Equal);
        if length == 0 {
            return None;
        }
        let range = above.start + start..above.start + start + length;
        self.ranges.insert(directory, range.clone());
        Some(range)
    }

    /// Returns the tree of a sparse index that holds `path`, and the path in it.
    fn tree<'a>(&self, path: &'a str) -> Option<(&ObjectTree, &'a str)> {
        if self.trees.is_empty() {
            return None;
        }
        let mut end = path.len();
        while let Some(slash) = path.get(..end)?.rfind('/') {
            if let Some(tree) = self.trees.get(path.get(..slash)?) {
                return Some((tree, path.get(slash + 1..)?));
            }
            end = slash;
        }
        None
    }

    fn path(&self, entry: &IndexEntry) -> &BStr {
        self.entries.path(entry)
    }
}

/// Compares a path with the paths below a directory: equal means that it is one of them.
fn below(path: &[u8], directory: &[u8]) -> Ordering {
    let common = path.len().min(directory.len());
    let (head, tail) = path.split_at(common);
    head.cmp(directory.get(..common).unwrap_or_default())
        .then_with(|| match tail.first() {
            // The directory is longer, or the path is the directory itself.
            None => Ordering::Less,
            Some(next) => next.cmp(&b'/'),
        })
}

impl Tree for IndexTree {
    fn entry(&self, path: &str) -> Result<Option<Entry>> {
        if path.is_empty() {
            return Ok(Some(Entry::Directory));
        }
        if let Some(entry) = self.find(path) {
            return Ok(Some(entry.kind));
        }
        if self.range(path).is_some() {
            return Ok(Some(Entry::Directory));
        }
        match self.tree(path) {
            Some((tree, rest)) => tree.entry(rest),
            None => Ok(None),
        }
    }

    fn is_directory(&self, path: &str) -> Result<bool> {
        // An index never holds both a path and something below it.
        match self.tree(path) {
            _ if self.range(path).is_some() => Ok(true),
            Some((tree, rest)) => tree.is_directory(rest),
            None => Ok(false),
        }
    }

    fn names(&self, directory: &str) -> Result<Vec<String>> {
        let mut names: Vec<String> = self
            .below(directory)?
            .iter()
            .filter_map(|path| path::components(path::below(path, directory)?).next())
            .map(str::to_owned)
            .collect();
        names.sort();
        names.dedup();
        Ok(names)
    }

    fn read(&self, path: &str) -> Result<Vec<u8>> {
        match self.find(path) {
            Some(entry) if entry.stage != Stage::Unconflicted => Err(Failure::new(format!(
                "`{path}` is not merged yet"
            ))
            .hint(match path {
                LOCK_NAME => LOCK_COMMAND.to_owned(),
                path => format!(
                    "resolve the conflict, then: {}",
                    command("git add --", [pathspec(path)])
                ),
            })),
            Some(entry) => self.objects.read("blob", self.entries.id(entry), path),
            None => match self.tree(path) {
                Some((tree, rest)) => tree.read(rest),
                None => Err(Failure::new(format!("`{path}` is not in the index"))),
            },
        }
    }

    fn stored(&self, path: &str) -> Option<String> {
        match self.find(path) {
            Some(entry) if entry.stage == Stage::Unconflicted => {
                Some(self.entries.id(entry).to_string())
            }
            Some(_) => None,
            None => {
                let (tree, rest) = self.tree(path)?;
                tree.stored(rest)
            }
        }
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

impl Listing for IndexTree {
    fn below(&self, directory: &str) -> Result<Vec<String>> {
        let entries = self.entries.all();
        let order = |entry: &IndexEntry| {
            if directory.is_empty() {
                Ordering::Equal
            } else {
                below(self.path(entry), directory.as_bytes())
            }
        };
        let first = entries.partition_point(|entry| order(entry) == Ordering::Less);
        let mut found: Vec<String> = entries
            .get(first..)
            .unwrap_or_default()
            .iter()
            .take_while(|entry| order(entry) == Ordering::Equal)
            .filter(|entry| entry.kind != Entry::Directory)
            .filter_map(|entry| std::str::from_utf8(self.path(entry)).ok())
            .map(str::to_owned)
            .collect();
        for (place, tree) in &self.trees {
            let (inner, outer) = (path::below(directory, place), path::below(place, directory));
            let rest = match (inner, outer) {
                (Some(inner), _) => inner,
                (None, Some(_)) => "",
                (None, None) => continue,
            };
            let below = tree.below(rest)?;
            found.extend(below.iter().map(|path| path::join(place, path)));
        }
        found.sort();
        found.dedup();
        Ok(found)
    }

    fn files_named(&self, names: &[&str]) -> Result<Vec<String>> {
        let mut found: Vec<String> = self
            .entries()
            .filter(|(path, entry)| {
                is_named(path, names) && matches!(entry.kind, Entry::File { .. } | Entry::Link)
            })
            .filter_map(|(path, _)| std::str::from_utf8(path).ok())
            .map(str::to_owned)
            .collect();
        for (directory, tree) in &self.trees {
            let below = tree.files_named(names)?;
            found.extend(below.iter().map(|path| path::join(directory, path)));
        }
        found.sort();
        // A path that is not merged is there once for each stage.
        found.dedup();
        Ok(found)
    }

    fn files_with(
        &self,
        places: &BTreeSet<String>,
        is_wanted: &dyn Fn(&str) -> bool,
        is_meant: fn(&[u8]) -> bool,
    ) -> Result<Search<'_>> {
        let is_all = places.contains("");
        let is_inside = |path: &str| is_all || path::and_above(path).any(|at| places.contains(at));
        let is_wanted = |path: &str| is_wanted(path) && is_inside(path);
        let is_file = |entry: &IndexEntry| {
            matches!(entry.kind, Entry::File { .. })
                && std::str::from_utf8(self.path(entry)).is_ok_and(&is_wanted)
        };
        let numbers = (0..).zip(self.entries.all());
        // There may be millions.
        let files: Vec<u32> = numbers
            .filter_map(|(number, entry)| is_file(entry).then_some(number))
            .collect();
        let files = Arc::new(files);
        let (entries, numbers) = (self.entries.clone(), files.clone());
        let blobs = Arc::new(move |file: usize| entries.id(&entries.all()[numbers[file] as usize]));
        let found = self.objects.hold(files.len(), blobs, is_meant);
        let mut searches = Vec::new();
        for (directory, tree) in &self.trees {
            let top = [String::new()].into();
            let is_wanted = |path: &str| is_wanted(&path::join(directory, path));
            let search = tree.files_with(&top, &is_wanted, is_meant)?;
            searches.push((directory, search));
        }
        Ok(Box::new(move || {
            let found = found().into_iter().filter_map(|file| {
                let number = *files.get(file)? as usize;
                let path = self.path(self.entries.all().get(number)?);
                Some(std::str::from_utf8(path).ok()?.to_owned())
            });
            let mut found: Vec<String> = found.collect();
            for (directory, search) in searches {
                let below = search()?;
                found.extend(below.iter().map(|path| path::join(directory, path)));
            }
            found.sort();
            found.dedup();
            Ok(found)
        }))
    }

    fn unnameable(&self, names: &[&str]) -> Result<Vec<String>> {
        let mut found: Vec<String> = self
            .entries()
            .filter(|(path, entry)| is_named(path, names) && entry.kind != Entry::Submodule)
            .filter(|(path, _)| std::str::from_utf8(path).is_err())
            .map(|(path, _)| path.to_string())
            .collect();
        for (directory, tree) in &self.trees {
            let below = tree.unnameable(names)?;
            found.extend(below.iter().map(|path| path::join(directory, path)));
        }
        // Nor can a directory of a sparse index be named.
        let directories = self.entries();
        for (path, entry) in directories.filter(|(_, entry)| entry.kind == Entry::Directory) {
            if std::str::from_utf8(path).is_err() {
                let directory = path.to_string();
                let directory = directory.trim_end_matches('/');
                let tree = ObjectTree::at(self.objects.clone(), self.entries.id(entry), directory);
                let below = [tree.files_named(names)?, tree.unnameable(names)?].concat();
                found.extend(below.iter().map(|path| path::join(directory, path)));
            }
        }
        found.sort();
        found.dedup();
        Ok(found)
    }
}

/// Returns whether the last component of a path is one of `names`.
pub(super) fn is_named(path: &[u8], names: &[&str]) -> bool {
    names.iter().any(|name| {
        path.strip_suffix(name.as_bytes())
            .is_some_and(|above| above.is_empty() || above.ends_with(b"/"))
    })
}

/// Returns when a file was written, and its size, as an index holds them.
fn modified(metadata: &std::fs::Metadata) -> Option<(u32, u32, u32)> {
    let since = metadata.modified().ok()?;
    let since = since.duration_since(std::time::UNIX_EPOCH).ok()?;
    // An index holds the low 32 bits of each.
    let low = |number: u64| number as u32;
    Some((
        low(since.as_secs()),
        since.subsec_nanos(),
        low(metadata.len()),
    ))
}

/// Reads an index file, and when it was written, in seconds; `None` when git has to.
fn read(file: &Path, hash: gix::hash::Kind) -> Option<(Entries, i64)> {
    if let Err(error) = file.symlink_metadata()
        && error.kind() == std::io::ErrorKind::NotFound
    {
        return taken(&State::new(hash));
    }
    // git does not check the hash either: it takes as long as all the rest.
    let skip_hash = true;
    let options = gix::index::decode::Options::default();
    let file = gix::index::File::at(file, hash, skip_hash, options).ok()?;
    let state = &*file;
    let in_order = state.entries().is_sorted_by(|one, other| {
        let order = one.path(state).cmp(other.path(state));
        order.then(one.stage_raw().cmp(&other.stage_raw())) == Ordering::Less
    });
    // Nothing is what git writes for an empty repository, but also what an unknown way of writing looks like.
    if !in_order || state.entries().is_empty() {
        return None;
    }
    taken(state)
}

fn taken(state: &State) -> Option<(Entries, i64)> {
    Some((Entries::of(state)?, state.timestamp().unix_seconds()))
}

/// Asks git for the index.
fn ask(here: &LocalRepo, hash: gix::hash::Kind) -> Result<(Entries, i64)> {
    let mut state = State::new(hash);
    for staged in here.staged()? {
        let foreign = || Failure::new("git listed an index that is none");
        let mode = u32::from_str_radix(&staged.mode, 8).map_err(|_| foreign())?;
        let id = ObjectId::from_hex(staged.id.as_bytes()).map_err(|_| foreign())?;
        let mut flags = Flags::from_bits_retain(staged.stage << 12);
        flags.set(Flags::INTENT_TO_ADD, staged.intent_to_add);
        let mode = Mode::from_bits_truncate(mode);
        let path = staged.path.as_slice().into();
        state.dangerously_push_entry(Stat::default(), id, flags, mode, path);
    }
    // git reads past the end of a file that was cut off, and only mentions it in passing.
    taken(&state).ok_or_else(|| {
        Failure::new(format!("the index `{}` is damaged", here.index.display())).hint(format!(
            "make it again from HEAD: {} && git reset",
            command("rm", [here.index.display().to_string()])
        ))
    })
}
