//! Files on disk, as they are now: those of the working tree, of one directory, of the whole machine.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use memchr::memmem;

use super::git::GitTree;
use super::{Entry, Names, Search, Tree, files_below, hold, path, search};
use crate::git::{LocalRepo, Staged};
use crate::message::failure::{Failure, Result, shown};
use crate::os::limits::PATH;

/// How many files are searched at once by a thread.
const SHARE: usize = 1024;

/// The files below a real directory.
pub(crate) struct DiskTree {
    root: PathBuf,
    /// The directory that labels start from.
    from: String,
    /// Whether it may be a checkout, with other line ends than git stores.
    converts: bool,
    git: Option<Rc<Tracked>>,
    /// Whether what git ignores and does not track is not there, as in any other checkout.
    hides_ignored: bool,
    /// The directories that were requested, and are there.
    directories: RefCell<HashSet<String>>,
}

/// What git knows of a working tree.
struct Tracked {
    /// The submodules of the index, whether they are checked out or not.
    submodules: BTreeSet<String>,
    here: Rc<LocalRepo>,
    /// What is executable in the index.
    programs: BTreeSet<String>,
    /// The paths that git tracks, or neither tracks nor ignores, each with whether it does: also what is odd.
    files: BTreeMap<String, bool>,
    /// The files that a sparse checkout leaves out, and all directories that they lie in. What is not on disk is what the
    /// index has.
    left_out: BTreeSet<String>,
    index: OnceCell<GitTree>,
    unmerged: Vec<Staged>,
    /// Which of them are there, once that is asked for.
    present: OnceCell<Vec<String>>,
    /// What was read, by path: the digest of the bytes, which is none that anybody could choose.
    read: RefCell<HashMap<String, u64>>,
    /// Where nothing was.
    absent: RefCell<HashSet<String>>,
    hasher: RandomState,
}

impl DiskTree {
    /// Opens the working tree of this repository.
    pub(crate) fn of_working_tree(here: Rc<LocalRepo>) -> Result<Self> {
        let top = here.top.as_ref().and_then(|top| top.canonicalize().ok());
        let top = top.ok_or_else(|| {
            Failure::new("this repository has no working tree").hint("read a commit instead: --rev REV")
        })?;
        let (staged, untracked) = here.working_files()?;
        let of_mode = |mode: &str| -> BTreeSet<String> {
            let entries = staged.iter().filter(|entry| entry.mode == mode);
            entries.map(|entry| entry.path.clone()).collect()
        };
        // A repository of its own within this one, which git only ever adds as a submodule.
        let (within, untracked): (Vec<String>, Vec<String>) =
            untracked.into_iter().partition(|path| path.ends_with('/'));
        let mut submodules = of_mode("160000");
        submodules.extend(within.iter().map(|path| path.trim_end_matches('/').to_owned()));
        let left_out: Vec<&str> =
            staged.iter().filter(|entry| entry.is_left_out).map(|entry| entry.path.as_str()).collect();
        let directories = path::directories(left_out.iter().copied());
        let git = Tracked {
            submodules,
            programs: of_mode("100755"),
            unmerged: staged.iter().filter(|entry| entry.stage > 0).cloned().collect(),
            left_out: directories.into_iter().chain(left_out).map(str::to_owned).collect(),
            index: OnceCell::new(),
            files: staged
                .into_iter()
                .map(|entry| (entry.path, true))
                .chain(untracked.into_iter().map(|path| (path, false)))
                .collect(),
            present: OnceCell::new(),
            read: RefCell::default(),
            absent: RefCell::default(),
            hasher: RandomState::new(),
            here,
        };
        Ok(DiskTree { git: Some(Rc::new(git)), ..DiskTree::at(top, true) })
    }

    /// Opens one directory, whatever git knows of it. `converts` says whether it may be a checkout.
    pub(crate) fn of_directory(directory: &Path, converts: bool) -> Result<Self> {
        let root = directory.canonicalize();
        let root = root.map_err(|error| Failure::new(format!("`{}` cannot be read: {error}", directory.display())))?;
        Ok(DiskTree::at(root, converts))
    }

    /// Opens the whole file system. Its paths are those of the file system without the root, so that a reference may
    /// lead out of any directory and back into it. They are shown relative to `from`, a real directory.
    pub(crate) fn of_machine(from: &Path) -> Result<Self> {
        let root = from.ancestors().last().unwrap_or(from).to_owned();
        let tree = DiskTree::at(root, false);
        Ok(DiskTree { from: tree.path(from)?, ..tree })
    }

    fn at(root: PathBuf, converts: bool) -> Self {
        let (git, hides_ignored) = (None, false);
        DiskTree { root, from: String::new(), converts, git, hides_ignored, directories: RefCell::default() }
    }

    /// Returns the same working tree without what git ignores and does not track: what a commit of it would hold.
    pub(crate) fn without_ignored(&self) -> Self {
        DiskTree { git: self.git.clone(), hides_ignored: true, ..DiskTree::at(self.root.clone(), self.converts) }
    }

    /// Returns the path in this tree of a real path of the file system.
    pub(crate) fn path(&self, place: &Path) -> Result<String> {
        let path = path::of_components(place.strip_prefix(&self.root).unwrap_or(place));
        path.ok_or_else(|| Failure::new(format!("`{}` is not UTF-8", place.display())))
    }

    /// Returns whether a file of the working tree that was read is still what it was, and nothing is where nothing was.
    pub(crate) fn is_as_read(&self, path: &str) -> bool {
        let Some(git) = &self.git else {
            return true;
        };
        if git.absent.borrow().contains(path) && self.place(path).symlink_metadata().is_ok() {
            return false;
        }
        let is = |read: &u64| read_file(&self.place(path)).is_ok_and(|bytes| git.hasher.hash_one(bytes) == *read);
        git.read.borrow().get(path).is_none_or(is)
    }

    /// Returns whether git tracks a file of the working tree.
    pub(crate) fn is_tracked(&self, path: &str) -> bool {
        self.git.as_ref().is_some_and(|git| git.files.get(path) == Some(&true))
    }

    /// Returns the sides of a file that git could not merge, from the index.
    pub(crate) fn unmerged(&self, path: &str) -> impl Iterator<Item = &Staged> {
        self.git.iter().flat_map(|git| &git.unmerged).filter(move |entry| entry.path == path)
    }

    /// Returns whether a sparse checkout leaves the file at `path` out, and it is not on disk.
    pub(crate) fn is_left_out(&self, path: &str) -> bool {
        let is_left_out = self.git.as_ref().is_some_and(|git| git.left_out.contains(path));
        is_left_out && self.place(path).symlink_metadata().is_err()
    }

    /// Returns whether something at a path of the disk is hidden.
    fn is_hidden(&self, path: &str) -> bool {
        let Some(git) = self.git.as_ref().filter(|_| self.hides_ignored) else { return false };
        !git.files.contains_key(path) && !git.submodules.contains(path) && !git.has_below(path)
    }

    /// Notes that nothing is there, unless that may only be hidden.
    fn nothing(&self, path: &str) -> Option<Entry> {
        if let Some(git) = self.git.as_ref().filter(|_| !self.hides_ignored) {
            git.absent.borrow_mut().insert(path.to_owned());
        }
        None
    }

    fn place(&self, path: &str) -> PathBuf {
        if path.is_empty() { self.root.clone() } else { self.root.join(path) }
    }

    fn failed(&self, path: &str) -> impl Fn(io::Error) -> Failure {
        let label = self.label(path);
        move |error| Failure::new(format!("could not read `{label}`: {error}"))
    }
}

impl Tracked {
    /// Returns whether git tracks something below a directory, or neither tracks nor ignores it.
    fn has_below(&self, directory: &str) -> bool {
        let first = format!("{directory}/");
        let file = self.files.range(first.clone()..).next().map(|(path, _)| path);
        let submodule = self.submodules.range(first.clone()..).next();
        file.into_iter().chain(submodule).any(|path| path.starts_with(&first))
    }

    /// Returns the index, which holds what is left out.
    fn index(&self) -> Result<&GitTree> {
        if let Some(index) = self.index.get() {
            return Ok(index);
        }
        let index = GitTree::of_index(self.here.clone())?;
        Ok(self.index.get_or_init(|| index))
    }
}

impl Tree for DiskTree {
    fn entry(&self, path: &str) -> Result<Option<Entry>> {
        PATH.check(path.len(), || shown(path))?;
        if path.is_empty() || self.directories.borrow().contains(path) {
            return Ok(Some(Entry::Directory));
        }
        // git holds nothing of that name, wherever it is.
        if self.git.is_some() && path::name(path).eq_ignore_ascii_case(".git")
            || self.entry(path::parent(path))? != Some(Entry::Directory)
        {
            return Ok(self.nothing(path));
        }
        let entry = look(&self.place(path)).map_err(self.failed(path))?.filter(|_| !self.is_hidden(path));
        let entry = match (entry, &self.git) {
            (None, Some(git)) if git.left_out.contains(path) => git.index()?.entry(path)?,
            (None | Some(Entry::Directory), Some(git)) if git.submodules.contains(path) => Some(Entry::Submodule),
            (Some(Entry::File { executable }), Some(git)) => {
                let is_staged = git.programs.contains(path);
                let is_told = executable == is_staged || git.here.has_modes()?;
                Some(Entry::File { executable: if is_told { executable } else { is_staged } })
            }
            (None, _) => self.nothing(path),
            (entry, _) => entry,
        };
        if entry == Some(Entry::Directory) {
            self.directories.borrow_mut().insert(path.to_owned());
        }
        Ok(entry)
    }

    fn names(&self, directory: &str) -> Result<Vec<String>> {
        if self.entry(directory)? != Some(Entry::Directory) {
            return Ok(Vec::new());
        }
        let left_out = self.git.as_ref().filter(|git| git.left_out.contains(directory));
        let mut names: Vec<String> = match left_out {
            Some(git) => git.index()?.names(directory)?,
            None => Vec::new(),
        };
        names.retain(|name| self.is_left_out(&path::join(directory, name)));
        let failed = self.failed(directory);
        match std::fs::read_dir(self.place(directory)) {
            Err(error) if error.kind() == ErrorKind::NotFound && left_out.is_some() => {}
            Err(error) => return Err(failed(error)),
            Ok(entries) => {
                for entry in entries {
                    let name = entry.map_err(&failed)?.file_name();
                    let name = name.to_string_lossy();
                    path::refuse_odd(directory, &name)?;
                    names.push(name.into_owned());
                }
            }
        }
        names.retain(|name| name != ".git" && !self.is_hidden(&path::join(directory, name)));
        names.sort();
        Ok(names)
    }

    fn read(&self, path: &str) -> Result<Vec<u8>> {
        if let Some(git) = self.git.as_ref().filter(|_| self.is_left_out(path)) {
            return git.index()?.read(path);
        }
        let bytes = read_file(&self.place(path)).map_err(self.failed(path))?;
        if let Some(git) = &self.git {
            git.read.borrow_mut().entry(path.to_owned()).or_insert_with(|| git.hasher.hash_one(&bytes));
        }
        Ok(bytes)
    }

    fn absolute(&self, text: &str) -> Option<String> {
        path::inside(&self.root, text)
    }

    fn linked(&self, target: &str) -> Option<String> {
        if self.root.parent().is_none() { path::inside(&self.root, target) } else { None }
    }

    fn converts(&self) -> bool {
        self.converts
    }

    fn label(&self, path: &str) -> String {
        path::relative(&self.from, path)
    }

    fn word(&self, path: &str) -> String {
        match self.label(path) {
            _ if self.git.is_some() => format!(":/{path}"),
            // An option would begin so.
            label if label.starts_with('-') => format!("./{label}"),
            label => label,
        }
    }

    /// Of a working tree only what git tracks, or what is neither tracked nor ignored.
    fn below(&self, directory: &str) -> Result<Vec<String>> {
        let Some(git) = &self.git else {
            return files_below(self, directory);
        };
        if let Some(all) = git.present.get().filter(|_| directory.is_empty()) {
            return Ok(all.clone());
        }
        let is_below = |path: &&String| *path != directory && path::is_in(path, directory);
        let mut found = Vec::new();
        for path in git.files.keys().filter(is_below) {
            if self.entry(path)?.is_some() {
                found.push(path.clone());
            }
        }
        if directory.is_empty() {
            git.present.set(found.clone()).ok();
        }
        Ok(found)
    }

    fn untracked(&self) -> Result<Vec<String>> {
        let Some(git) = &self.git else { return Ok(Vec::new()) };
        Ok(git.files.iter().filter(|(_, is_tracked)| !**is_tracked).map(|(path, _)| path.clone()).collect())
    }

    fn files_named(&self, is_wanted: &dyn Fn(&str) -> bool) -> Result<Vec<String>> {
        let is_named = |path: &&String| is_wanted(path::name(path));
        let Some(git) = &self.git else {
            return Ok(self.below("")?.into_iter().filter(|path| is_named(&path)).collect());
        };
        let mut found = Vec::new();
        for path in git.files.keys().filter(is_named) {
            path::refuse_odd("", path)?;
            if self.entry(path)?.is_some() {
                found.push(path.clone());
            }
        }
        Ok(found)
    }

    fn files_with(&self, endings: Names, marks: &[&'static [u8]]) -> Result<Search<'_>> {
        let marks = marks.to_vec();
        let Some(git) = &self.git else {
            return Ok(Box::new(move || search(self, endings, &marks)));
        };
        let paths = git.files.keys().filter(|path| endings.iter().any(|ending| path.ends_with(ending)));
        let paths: Vec<&String> = paths.collect();
        let places: Vec<PathBuf> = paths.iter().map(|path| self.place(path)).collect();
        let hold = hold(places, SHARE, &marks, || {
            |place: &PathBuf, is_marked: &dyn Fn(&[u8]) -> bool| {
                read_alone(place).map_or(true, |bytes| is_marked(&bytes))
            }
        });
        let is_marked = move |path: &str| {
            let holds = |bytes: Vec<u8>| marks.iter().any(|mark| memmem::find(&bytes, mark).is_some());
            !self.is_left_out(path) || self.read(path).map_or(true, holds)
        };
        Ok(Box::new(move || {
            let found = paths.into_iter().zip(hold()).filter(|(path, holds)| *holds && is_marked(path));
            // What is not there, or no file, could not be read.
            let is_file = |path: &&String| matches!(self.entry(path), Ok(Some(Entry::File { .. })) | Err(_));
            Ok(found.map(|(path, _)| path).filter(is_file).cloned().collect())
        }))
    }
}

/// Reads a file, and nothing that a link leads to, or that would have to be waited for.
fn read_alone(place: &Path) -> io::Result<Vec<u8>> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;

        use rustix::fs::OFlags;
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
        let mut file = std::fs::File::options().read(true).custom_flags(flags.cast_signed()).open(place)?;
        let mut bytes = Vec::new();
        io::Read::read_to_end(&mut file, &mut bytes)?;
        Ok(bytes)
    }
    #[cfg(not(unix))]
    read_file(place)
}

/// Returns what is at a place, without following a link there.
fn look(place: &Path) -> io::Result<Option<Entry>> {
    let metadata = match std::fs::symlink_metadata(place) {
        Ok(metadata) => metadata,
        Err(error)
            if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidInput) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let kind = metadata.file_type();
    Ok(if kind.is_symlink() {
        Some(Entry::Link)
    } else if kind.is_dir() {
        Some(Entry::Directory)
    } else if kind.is_file() {
        #[cfg(unix)]
        let executable = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o100 != 0;
        #[cfg(not(unix))]
        let executable = false;
        Some(Entry::File { executable })
    } else {
        // A socket, a pipe, a device: reading one could block for ever.
        None
    })
}

/// Returns the bytes of a file, or the target of a link.
fn read_file(place: &Path) -> io::Result<Vec<u8>> {
    match look(place)? {
        Some(Entry::Link) => {
            let target = std::fs::read_link(place)?;
            Ok(target.to_string_lossy().into_owned().into_bytes())
        }
        None => Err(ErrorKind::NotFound.into()),
        Some(_) => std::fs::read(place),
    }
}
