//! Writes files of trees to disk, at their paths from the top, so that relative links still work: [`write`] at once, a
//! [`Layout`] when its build begins, with contents that a [`Pool`] shares.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::message::failure::{Failure, Result};
use crate::os::failpoint;
use crate::os::interrupt::{Scratch, unusable};
use crate::os::parallel::locked;
use crate::record::sha256_hex;
use crate::tree::checkout::Conversion;
use crate::tree::disk::DiskTree;
use crate::tree::{Entry, Tree, path};

/// A node of a tree, as it is written.
enum DiskNode {
    File { bytes: Vec<u8>, executable: bool },
    Directory,
    Link(String),
}

impl DiskNode {
    /// Reads the node at a path. With a conversion the files are those of a checkout. `None` if nothing is to be
    /// written: for a link that leads out of the tree, a submodule, and a missing path.
    fn read(tree: &dyn Tree, path: &str, conversion: Option<&Conversion>) -> Result<Option<DiskNode>> {
        Ok(match tree.entry(path)? {
            Some(Entry::File { executable }) => {
                let bytes = match conversion {
                    Some(conversion) => conversion.read(tree, path)?,
                    None => tree.read(path)?,
                };
                Some(DiskNode::File { bytes, executable })
            }
            Some(Entry::Directory) => Some(DiskNode::Directory),
            Some(Entry::Link) => link_text(tree, path)?.map(DiskNode::Link),
            // A checkout has an empty directory, or nothing, there.
            Some(Entry::Submodule) | None => None,
        })
    }
}

/// The most bytes of a pool that wait in memory for the build that writes them.
const MOST_IN_MEMORY: usize = 64 << 20;

/// The contents of files of builds, each written once at most. Nobody may write to them.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    files: HashMap<FileKey, Arc<Pooled>>,
    in_memory: usize,
    /// The directory of the contents for which memory has no room; `None` until there is one.
    scratch: Option<Arc<Scratch>>,
}

/// The content of a file, by its digest.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct FileKey {
    digest: String,
    executable: bool,
}

/// A file of a pool.
#[derive(Debug)]
struct Pooled {
    key: FileKey,
    content: Mutex<PooledContent>,
}

#[derive(Debug)]
enum PooledContent {
    InMemory(Vec<u8>),
    OnDisk {
        path: PathBuf,
        /// Keeps the directory of the pool; `None` for a file of a build, which lives as long as all builds.
        _scratch: Option<Arc<Scratch>>,
    },
}

impl Pool {
    /// The file with these bytes, which all builds share that read the same content.
    fn shared_file(&mut self, bytes: Vec<u8>, executable: bool) -> io::Result<Arc<Pooled>> {
        let key = FileKey { digest: sha256_hex(&bytes), executable };
        if let Some(pooled) = self.files.get(&key) {
            return Ok(pooled.clone());
        }
        // Contents stay in memory at first, because a remembered build never needs its files on disk.
        let content = if self.in_memory + bytes.len() <= MOST_IN_MEMORY {
            self.in_memory += bytes.len();
            PooledContent::InMemory(bytes)
        } else {
            let scratch = match &self.scratch {
                Some(scratch) => scratch.clone(),
                None => self.scratch.insert(Arc::new(Scratch::new()?)).clone(),
            };
            let path = scratch.path().join(self.files.len().to_string());
            write_file(&path, &bytes, executable)?;
            PooledContent::OnDisk { path, _scratch: Some(scratch) }
        };
        let pooled = Arc::new(Pooled { key: key.clone(), content: Mutex::new(content) });
        self.files.insert(key, pooled.clone());
        Ok(pooled)
    }
}

impl Pooled {
    /// Writes the file to `to`: from memory if it is on disk nowhere, else as a hard link to the file there, or a copy.
    fn write(&self, to: &Path) -> io::Result<()> {
        let mut content = locked(&self.content);
        match &*content {
            PooledContent::InMemory(bytes) => {
                write_file(to, bytes, self.key.executable)?;
                *content = PooledContent::OnDisk { path: to.to_owned(), _scratch: None };
                Ok(())
            }
            // Some file systems have no hard links, and all of them limit their number. A copy has the mode of the
            // file.
            PooledContent::OnDisk { path, .. } => fs::hard_link(path, to).or_else(|_| fs::copy(path, to).map(drop)),
        }
    }
}

/// The files of a build, which are written when the build begins. It holds no tree, so that threads can share it.
#[derive(Debug)]
pub(super) struct Layout {
    /// The directory that they are written to.
    top: PathBuf,
    files: Vec<LaidFile>,
    directories: Vec<Box<str>>,
    links: Vec<LaidLink>,
    /// Locked while they are written.
    is_written: Mutex<bool>,
}

#[derive(Debug)]
struct LaidFile {
    path: Box<str>,
    content: Arc<Pooled>,
}

#[derive(Debug)]
struct LaidLink {
    path: Box<str>,
    text: String,
}

impl Layout {
    /// A layout without files, to be written below `top`.
    pub(super) fn new(top: &Path) -> Layout {
        let (files, directories, links) = (Vec::new(), Vec::new(), Vec::new());
        Layout { top: top.to_owned(), files, directories, links, is_written: Mutex::default() }
    }

    /// Adds the nodes at some paths of a tree, which are read at once and written when a build begins. With a
    /// conversion the files are those of a checkout.
    pub(super) fn add<P: AsRef<str>>(
        &mut self,
        tree: &dyn Tree,
        paths: impl IntoIterator<Item = P>,
        conversion: Option<&Conversion>,
        pool: &mut Pool,
    ) -> Result<()> {
        for path in paths {
            let path = path.as_ref();
            match DiskNode::read(tree, path, conversion)? {
                Some(DiskNode::File { bytes, executable }) => {
                    let content = pool.shared_file(bytes, executable).map_err(unusable)?;
                    self.files.push(LaidFile { path: path.into(), content });
                }
                Some(DiskNode::Directory) => self.directories.push(path.into()),
                Some(DiskNode::Link(text)) => self.links.push(LaidLink { path: path.into(), text }),
                None => {}
            }
        }
        Ok(())
    }

    /// The digest of names, modes, and bytes or texts of links: the [digest](digest) of a directory with the same
    /// files.
    pub(super) fn digest(&self) -> String {
        let files = self.files.iter().map(|LaidFile { path, content }| {
            let FileKey { digest, executable } = &content.key;
            (path, Entry::File { executable: *executable }, digest.clone())
        });
        let links = self.links.iter().map(|LaidLink { path, text }| (path, Entry::Link, sha256_hex(text.as_bytes())));
        let lines: BTreeSet<String> =
            files.chain(links).map(|(path, entry, digest)| digest_line(path, Some(entry), &digest)).collect();
        sha256_hex(String::from_iter(lines).as_bytes())
    }

    /// Writes the files, unless that was done before.
    pub(super) fn ensure_written(&self) -> Result<()> {
        let mut is_written = locked(&self.is_written);
        if !*is_written {
            self.write().map_err(unusable)?;
            *is_written = true;
        }
        Ok(())
    }

    /// Writes all files, directories and links below the top.
    fn write(&self) -> io::Result<()> {
        fs::create_dir_all(&self.top)?;
        for path in &self.directories {
            fs::create_dir_all(self.top.join(&**path))?;
        }
        for LaidFile { path, content } in &self.files {
            let to = self.top.join(&**path);
            fs::create_dir_all(to.parent().unwrap_or(&to))?;
            content.write(&to)?;
        }
        // Links come last, so that nothing is written through a link.
        self.links.iter().try_for_each(|LaidLink { path, text }| write_link(text, &self.top.join(&**path)))
    }
}

/// Writes the nodes at some paths of a tree below `top`: a directory empty, a link if it leads to a path in the tree, a
/// submodule not at all. With a conversion the files are those of a checkout. The outer error is one of reading the
/// tree. The inner error is one of writing, for which a caller may have another message.
pub(crate) fn write<P: AsRef<str>>(
    tree: &dyn Tree,
    paths: impl IntoIterator<Item = P>,
    conversion: Option<&Conversion>,
    top: &Path,
) -> Result<Result<()>> {
    let mut links: Vec<LaidLink> = Vec::new();
    for path in paths {
        let path = path.as_ref();
        let to = top.join(path);
        let written = match DiskNode::read(tree, path, conversion)? {
            Some(DiskNode::File { bytes, executable }) => write_file(&to, &bytes, executable),
            Some(DiskNode::Directory) => fs::create_dir_all(&to),
            Some(DiskNode::Link(text)) => {
                links.push(LaidLink { path: path.into(), text });
                Ok(())
            }
            None => Ok(()),
        };
        if let Err(error) = written {
            return Ok(Err(not_written(path, &error)));
        }
    }
    // Links come last, so that nothing is written through a link.
    Ok(links.iter().try_for_each(|LaidLink { path, text }| {
        write_link(text, &top.join(&**path)).map_err(|error| not_written(path, &error))
    }))
}

/// Writes the nodes at some paths of a tree to a place in the temporary directory, for a build. An error of writing
/// says that this directory is unusable.
pub(crate) fn write_temporary<P: AsRef<str>>(
    tree: &dyn Tree,
    paths: impl IntoIterator<Item = P>,
    conversion: Option<&Conversion>,
    top: &Path,
) -> Result<()> {
    write(tree, paths, conversion, top)?.map_err(unusable)
}

fn not_written(path: &str, error: &io::Error) -> Failure {
    Failure::new(format!("could not write `{path}`: {error}"))
}

/// Writes a file, and the directories on the way.
fn write_file(disk_path: &Path, bytes: &[u8], executable: bool) -> io::Result<()> {
    fs::create_dir_all(disk_path.parent().unwrap_or(disk_path))?;
    failpoint::before("write a file");
    fs::write(disk_path, bytes)?;
    set_executable(disk_path, fs::metadata(disk_path)?.permissions(), executable)
}

/// Copies a directory with the links in it into another one.
pub(super) fn copy(from: &Path, to: &Path) -> Result<()> {
    let tree = DiskTree::of_directory(from)?;
    write_temporary(&tree, tree.below("")?, None, to)
}

/// The digest of all files and links below a directory: names, modes, and bytes or texts of links.
pub(super) fn digest(top: &Path) -> Result<String> {
    let tree = DiskTree::of_directory(top)?;
    let mut lines = BTreeSet::new();
    for path in tree.below("")? {
        lines.insert(digest_line(&path, tree.entry(&path)?, &sha256_hex(&tree.read(&path)?)));
    }
    Ok(sha256_hex(String::from_iter(lines).as_bytes()))
}

/// The line of a node in the text of which a digest is made.
fn digest_line(path: &str, entry: Option<Entry>, digest: &str) -> String {
    format!("{path:?} {entry:?} {digest}\n")
}

/// Writes a program.
#[cfg(unix)]
pub(super) fn write_program(disk_path: &Path, text: &str) -> io::Result<()> {
    fs::write(disk_path, text)?;
    set_executable(disk_path, fs::metadata(disk_path)?.permissions(), true)
}

/// Sets the execute bit for everybody who may read the file, or clears it for everybody.
pub(crate) fn set_executable(disk_path: &Path, mut permissions: fs::Permissions, executable: bool) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = permissions.mode();
        // As git checks out 100755: each right to read gives the right to run.
        permissions.set_mode(if executable { mode | ((mode & 0o444) >> 2) } else { mode & !0o111 });
    }
    let _ = executable;
    fs::set_permissions(disk_path, permissions)
}

/// The relative text for the copy of a link. `None` if the link leads out of the tree, is absolute in a tree that is
/// not the whole machine, or is not UTF-8, because then it names no path of a tree.
fn link_text(tree: &dyn Tree, path: &str) -> Result<Option<String>> {
    let directory = path::parent(path);
    let Ok(text) = String::from_utf8(tree.read(path)?) else {
        return Ok(None);
    };
    // Only a tree of the whole machine knows the path to which an absolute link leads.
    Ok(match tree.linked(&text).filter(|_| path::is_absolute(&text)) {
        Some(inside) => Some(path::relative(directory, &inside)),
        None => Some(text).filter(|text| !path::is_absolute(text) && path::resolve(directory, text).is_some()),
    })
}

#[cfg(unix)]
fn write_link(text: &str, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to.parent().unwrap_or(to))?;
    // A copy into a directory with other files of the same tree may find the link there.
    match std::os::unix::fs::symlink(text, to) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

#[cfg(not(unix))]
fn write_link(_text: &str, _to: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
