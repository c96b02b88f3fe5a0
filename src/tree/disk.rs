//! The current files on disk: of the working tree, of one directory, or of the whole machine.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::git::GitTree;
use super::{Entry, Names, Search, Tree, files_below, is_marked, path, search, start_search};
use crate::git::{LocalRepo, Staged};
use crate::message::failure::{Failure, Result, shown};
use crate::os::limits::PATH;

/// The number of files that a thread searches at a time.
const SHARE: usize = 1024;
/// The first size of the buffer for a file that is searched. Most files fit, so their sizes need not be asked for.
const BUFFER_BYTES: usize = 64 << 10;

/// The files below a real directory.
pub(crate) struct DiskTree {
    root: PathBuf,
    /// The directory that labels start from.
    from: String,
    /// Whether it may be a checkout, with other line ends than git stores.
    converts: bool,
    git: Option<Rc<Tracked>>,
    /// Whether files that git ignores and does not track are hidden, as they are missing in any other checkout.
    hides_ignored: bool,
    /// The existing directories among the requested paths.
    directories: RefCell<HashSet<String>>,
}

/// The state of a working tree as git reports it, and the files that were read.
struct Tracked {
    /// The submodules of the index, whether they are checked out or not.
    submodules: BTreeSet<String>,
    repo: Rc<LocalRepo>,
    /// The paths that are executable in the index.
    programs: BTreeSet<String>,
    /// The paths that git tracks (true), or neither tracks nor ignores (false), including those that are not UTF-8.
    files: BTreeMap<String, bool>,
    /// The files that a sparse checkout leaves out, and their directories. They are read from the index if they are not
    /// on disk.
    left_out: BTreeSet<String>,
    index: OnceCell<GitTree>,
    unmerged: Vec<Staged>,
    /// The existing ones among `files`, once they are requested.
    present: OnceCell<Vec<String>>,
    /// The hashes of the files that were read.
    read: RefCell<HashMap<String, u64>>,
    /// The requested paths that were missing.
    absent: RefCell<HashSet<String>>,
    hasher: RandomState,
}

impl DiskTree {
    /// Opens the working tree of this repository.
    pub(crate) fn of_working_tree(repo: Rc<LocalRepo>) -> Result<Self> {
        let top = repo.top.as_ref().and_then(|top| top.canonicalize().ok());
        let top = top.ok_or_else(|| {
            Failure::new("this repository has no working tree").hint("read a commit instead: --rev REV")
        })?;
        let (staged, untracked) = repo.working_files()?;
        // git names an untracked repository inside this one with a slash, and would add it as a submodule.
        let (nested, untracked): (Vec<String>, Vec<String>) =
            untracked.into_iter().partition(|path| path.ends_with('/'));
        let mut submodules = with_mode(&staged, "160000");
        submodules.extend(nested.iter().map(|path| path.trim_end_matches('/').to_owned()));
        // Paths need their directories too: neither exists on disk if a sparse checkout leaves all files out.
        let left_out: Vec<&str> =
            staged.iter().filter(|entry| entry.is_left_out).map(|entry| entry.path.as_str()).collect();
        let directories = path::directories(left_out.iter().copied());
        let git = Tracked {
            submodules,
            programs: with_mode(&staged, "100755"),
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
            repo,
        };
        Ok(DiskTree { git: Some(Rc::new(git)), converts: true, ..DiskTree::at(top) })
    }

    /// Opens one directory without asking git.
    pub(crate) fn of_directory(directory: &Path) -> Result<Self> {
        let root = directory.canonicalize();
        let root = root.map_err(|error| Failure::new(format!("`{}` cannot be read: {error}", directory.display())))?;
        Ok(DiskTree::at(root))
    }

    /// The same directory. `converts` is whether it may be a checkout, with other line ends than git stores.
    pub(crate) fn converting(self, converts: bool) -> Self {
        DiskTree { converts, ..self }
    }

    /// Opens the whole file system. Its paths are those of the file system without the root, and are shown relative to
    /// `from`, a real directory.
    pub(crate) fn of_machine(from: &Path) -> Result<Self> {
        // A reference may lead out of any directory and back into it.
        let root = from.ancestors().last().unwrap_or(from).to_owned();
        let tree = DiskTree::at(root);
        Ok(DiskTree { from: tree.path(from)?, ..tree })
    }

    /// A tree below a directory that is neither a working tree nor a checkout.
    fn at(root: PathBuf) -> Self {
        let (converts, git, hides_ignored) = (false, None, false);
        DiskTree { root, from: String::new(), converts, git, hides_ignored, directories: RefCell::default() }
    }

    /// The same working tree without the files that git ignores and does not track, which a commit would not contain.
    pub(crate) fn without_ignored(&self) -> Self {
        let (git, converts) = (self.git.clone(), self.converts);
        DiskTree { git, converts, hides_ignored: true, ..DiskTree::at(self.root.clone()) }
    }

    /// The path in this tree of a real path of the file system.
    pub(crate) fn path(&self, disk_path: &Path) -> Result<String> {
        let path = path::of_components(disk_path.strip_prefix(&self.root).unwrap_or(disk_path));
        path.ok_or_else(|| Failure::new(format!("`{}` is not UTF-8", disk_path.display())))
    }

    /// Whether a path of the working tree is as this run has seen it: with the bytes that were read, or still missing.
    /// Also true if it was not asked for, and without git, where nothing is remembered.
    pub(crate) fn is_as_read(&self, path: &str) -> bool {
        let Some(git) = &self.git else {
            return true;
        };
        if git.absent.borrow().contains(path) && self.disk_path(path).symlink_metadata().is_ok() {
            return false;
        }
        let read = git.read.borrow();
        let hash = read.get(path);
        hash.is_none_or(|hash| read_file(&self.disk_path(path)).is_ok_and(|bytes| git.hasher.hash_one(bytes) == *hash))
    }

    /// Whether git tracks a file of the working tree.
    pub(crate) fn is_tracked(&self, path: &str) -> bool {
        self.git.as_ref().is_some_and(|git| git.files.get(path) == Some(&true))
    }

    /// The index entries of a file that git could not merge, one for each side.
    pub(crate) fn unmerged(&self, path: &str) -> impl Iterator<Item = &Staged> {
        self.git.iter().flat_map(|git| &git.unmerged).filter(move |entry| entry.path == path)
    }

    /// Whether a sparse checkout leaves the file at `path` out, and it is not on disk.
    pub(crate) fn is_left_out(&self, path: &str) -> bool {
        let is_left_out = self.git.as_ref().is_some_and(|git| git.left_out.contains(path));
        is_left_out && self.disk_path(path).symlink_metadata().is_err()
    }

    /// Whether the file or directory at a path is hidden although it is on disk.
    fn is_hidden(&self, path: &str) -> bool {
        let Some(git) = self.git.as_ref().filter(|_| self.hides_ignored) else { return false };
        !git.files.contains_key(path) && !git.submodules.contains(path) && !git.has_below(path)
    }

    /// Remembers that a path is missing, unless it may only be hidden.
    fn record_absent(&self, path: &str) -> Option<Entry> {
        if let Some(git) = self.git.as_ref().filter(|_| !self.hides_ignored) {
            git.absent.borrow_mut().insert(path.to_owned());
        }
        None
    }

    fn disk_path(&self, path: &str) -> PathBuf {
        if path.is_empty() { self.root.clone() } else { self.root.join(path) }
    }

    /// Turns an error of reading a path into a failure that names the path.
    fn failed(&self, path: &str) -> impl Fn(io::Error) -> Failure {
        let label = self.label(path);
        move |error| Failure::new(format!("could not read `{label}`: {error}"))
    }
}

/// The paths of the index entries with a mode.
fn with_mode(staged: &[Staged], mode: &str) -> BTreeSet<String> {
    staged.iter().filter(|entry| entry.mode == mode).map(|entry| entry.path.clone()).collect()
}

impl Tracked {
    /// Whether a directory has files that git tracks, or neither tracks nor ignores.
    fn has_below(&self, directory: &str) -> bool {
        let first = format!("{directory}/");
        let file = self.files.range(first.clone()..).next().map(|(path, _)| path);
        let submodule = self.submodules.range(first.clone()..).next();
        file.into_iter().chain(submodule).any(|path| path.starts_with(&first))
    }

    /// The entry that other checkouts have at a path: files may be left out on this disk, submodules not checked out,
    /// and modes not kept.
    fn entry_elsewhere(&self, path: &str, on_disk: Option<Entry>) -> Result<Option<Entry>> {
        match on_disk {
            None if self.left_out.contains(path) => self.index()?.entry(path),
            None | Some(Entry::Directory) if self.submodules.contains(path) => Ok(Some(Entry::Submodule)),
            Some(Entry::File { executable }) => {
                // If git does not trust the modes on disk, the mode of the index counts. Asking git starts a process,
                // so it is asked only if the two differ.
                let in_index = self.programs.contains(path);
                let trusts_disk = executable == in_index || self.repo.has_modes()?;
                Ok(Some(Entry::File { executable: if trusts_disk { executable } else { in_index } }))
            }
            entry => Ok(entry),
        }
    }

    /// The index, from which left out files are read.
    fn index(&self) -> Result<&GitTree> {
        if let Some(index) = self.index.get() {
            return Ok(index);
        }
        let index = GitTree::of_index(self.repo.clone())?;
        Ok(self.index.get_or_init(|| index))
    }
}

impl Tree for DiskTree {
    fn entry(&self, path: &str) -> Result<Option<Entry>> {
        PATH.check(path.len(), || shown(path))?;
        if path.is_empty() || self.directories.borrow().contains(path) {
            return Ok(Some(Entry::Directory));
        }
        // git never stores a file of that name, in any directory.
        if self.git.is_some() && path::name(path).eq_ignore_ascii_case(".git")
            || self.entry(path::parent(path))? != Some(Entry::Directory)
        {
            return Ok(self.record_absent(path));
        }
        // The directory above was looked up first, so no link above the path is followed.
        let on_disk = entry_on_disk(&self.disk_path(path)).map_err(self.failed(path))?;
        let on_disk = on_disk.filter(|_| !self.is_hidden(path));
        let entry = self.git.as_ref().map_or(Ok(on_disk), |git| git.entry_elsewhere(path, on_disk))?;
        match entry {
            None => Ok(self.record_absent(path)),
            Some(Entry::Directory) => {
                self.directories.borrow_mut().insert(path.to_owned());
                Ok(entry)
            }
            Some(_) => Ok(entry),
        }
    }

    fn names(&self, directory: &str) -> Result<Vec<String>> {
        if self.entry(directory)? != Some(Entry::Directory) {
            return Ok(Vec::new());
        }
        // The files that a sparse checkout leaves out exist for everyone else, so the index adds them to those on disk.
        let left_out = self.git.as_ref().filter(|git| git.left_out.contains(directory));
        let mut names: Vec<String> = match left_out {
            Some(git) => git.index()?.names(directory)?,
            None => Vec::new(),
        };
        names.retain(|name| self.is_left_out(&path::join(directory, name)));
        let failed = self.failed(directory);
        match std::fs::read_dir(self.disk_path(directory)) {
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
        // A list that depends on the order of the file system would make reports differ between machines.
        names.retain(|name| name != ".git" && !self.is_hidden(&path::join(directory, name)));
        names.sort();
        Ok(names)
    }

    fn read(&self, path: &str) -> Result<Vec<u8>> {
        if let Some(git) = self.git.as_ref().filter(|_| self.is_left_out(path)) {
            return git.index()?.read(path);
        }
        let bytes = read_file(&self.disk_path(path)).map_err(self.failed(path))?;
        if let Some(git) = &self.git {
            // The hash has a random key, so that nobody can choose bytes with an equal one.
            git.read.borrow_mut().entry(path.to_owned()).or_insert_with(|| git.hasher.hash_one(&bytes));
        }
        Ok(bytes)
    }

    fn absolute(&self, text: &str) -> Option<String> {
        path::inside(&self.root, text)
    }

    fn linked(&self, text: &str) -> Option<String> {
        // In another checkout an absolute link is broken.
        if self.root.parent().is_none() { path::inside(&self.root, text) } else { None }
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
            // Otherwise it would be taken for an option.
            label if label.starts_with('-') => format!("./{label}"),
            label => label,
        }
    }

    /// In a working tree, only the files that git tracks, or neither tracks nor ignores.
    fn below(&self, directory: &str) -> Result<Vec<String>> {
        let Some(git) = &self.git else {
            return files_below(self, directory);
        };
        if let Some(all) = git.present.get().filter(|_| directory.is_empty()) {
            return Ok(all.clone());
        }
        // A tracked file may have been deleted.
        let mut present = Vec::new();
        for path in git.files.keys().filter(|path| *path != directory && path::is_in(path, directory)) {
            if self.entry(path)?.is_some() {
                present.push(path.clone());
            }
        }
        // Only the list of the whole tree is kept: it serves again and again, and parts of it are cheap.
        if directory.is_empty() {
            git.present.set(present.clone()).ok();
        }
        Ok(present)
    }

    fn untracked(&self) -> Result<Vec<String>> {
        let Some(git) = &self.git else { return Ok(Vec::new()) };
        Ok(git.files.iter().filter(|(_, is_tracked)| !**is_tracked).map(|(path, _)| path.clone()).collect())
    }

    fn files_named(&self, is_wanted: &dyn Fn(&str) -> bool) -> Result<Vec<String>> {
        let Some(git) = &self.git else {
            return Ok(self.below("")?.into_iter().filter(|path| is_wanted(path::name(path))).collect());
        };
        let mut named = Vec::new();
        for path in git.files.keys().filter(|path| is_wanted(path::name(path))) {
            path::refuse_odd("", path)?;
            if self.entry(path)?.is_some() {
                named.push(path.clone());
            }
        }
        Ok(named)
    }

    fn files_with(&self, endings: Names, marks: &[&'static [u8]]) -> Result<Search<'_>> {
        let marks = marks.to_vec();
        let Some(git) = &self.git else {
            return Ok(Box::new(move || search(self, endings, &marks)));
        };
        let paths = git.files.keys().filter(|path| endings.iter().any(|ending| path.ends_with(ending)));
        let paths: Vec<&String> = paths.collect();
        // Threads read the files without this tree, which cannot be shared; a file that they mark is read again below.
        let disk_paths: Vec<PathBuf> = paths.iter().map(|path| self.disk_path(path)).collect();
        let search = start_search(disk_paths, SHARE, &marks, || {
            let mut bytes = Vec::with_capacity(BUFFER_BYTES);
            move |disk_path: &PathBuf, is_marked: &dyn Fn(&[u8]) -> bool| {
                read_alone(disk_path, &mut bytes).map_or(true, |()| is_marked(&bytes))
            }
        });
        Ok(Box::new(move || {
            let marked = paths.into_iter().zip(search()).filter(|(_, has_mark)| *has_mark).map(|(path, _)| path);
            // Missing paths and directories could not be read, so they count as marked until here. A file that is left
            // out must be searched in the index.
            let marked = marked.filter(|path| !self.is_left_out(path) || is_marked(self, path, &marks));
            // A path with an error stays, so that whoever reads it reports the error.
            let marked = marked.filter(|path| matches!(self.entry(path), Ok(Some(Entry::File { .. })) | Err(_)));
            Ok(marked.cloned().collect())
        }))
    }
}

/// Reads a file into `bytes`, without following a link, and without blocking on a pipe.
fn read_alone(disk_path: &Path, bytes: &mut Vec<u8>) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;

        use rustix::fs::OFlags;
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
        let file = std::fs::File::options().read(true).custom_flags(flags.cast_signed()).open(disk_path)?;
        bytes.clear();
        // Reading a `File` directly would first ask for its size and position, two system calls for each file.
        io::Read::read_to_end(&mut io::Read::take(file, u64::MAX), bytes)?;
    }
    #[cfg(not(unix))]
    {
        *bytes = read_file(disk_path)?;
    }
    Ok(())
}

/// The node at a path on disk, without following a link; `None` if it is missing, or a pipe, socket or device.
fn entry_on_disk(disk_path: &Path) -> io::Result<Option<Entry>> {
    let metadata = match std::fs::symlink_metadata(disk_path) {
        Ok(metadata) => metadata,
        // Below a file there is nothing, and a path with NUL (`InvalidInput`) cannot exist.
        Err(error)
            if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidInput) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    // Only the executable bit of the owner counts, as in git.
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
        // Reading a socket, a pipe or a device could block for ever.
        None
    })
}

/// The bytes of a file, or the text of a link.
fn read_file(disk_path: &Path) -> io::Result<Vec<u8>> {
    match entry_on_disk(disk_path)? {
        Some(Entry::Link) => Ok(std::fs::read_link(disk_path)?.to_string_lossy().into_owned().into_bytes()),
        None => Err(ErrorKind::NotFound.into()),
        Some(_) => std::fs::read(disk_path),
    }
}
