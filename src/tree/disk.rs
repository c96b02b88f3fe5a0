//! A directory of the file system.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::{Entry, Tree, path};
use crate::message::failure::{Failure, Result};

/// The files of this machine, as they are on disk now. Paths are those of the file system without the root, so that a
/// reference may lead out of any directory and back into it.
#[derive(Debug)]
pub(crate) struct DiskTree {
    root: PathBuf,
    from: String,
}

impl DiskTree {
    /// Opens the file system. Paths are shown relative to `from`, a real directory (no link on the
    /// way to it).
    pub(crate) fn new(from: &Path) -> Result<Self> {
        let root = from.ancestors().last().unwrap_or(from).to_owned();
        let tree = DiskTree { root, from: String::new() };
        let from = tree.path(from)?;
        Ok(DiskTree { from, ..tree })
    }

    /// Returns the path in this tree of a real path of the file system.
    pub(crate) fn path(&self, place: &Path) -> Result<String> {
        let parts: Option<Vec<&str>> = place
            .strip_prefix(&self.root)
            .unwrap_or(place)
            .components()
            .map(|part| part.as_os_str().to_str())
            .collect();
        match parts {
            Some(parts) => Ok(parts.join("/")),
            None => Err(Failure::new(format!("`{}` is not UTF-8", place.display()))),
        }
    }

    fn place(&self, path: &str) -> PathBuf {
        if path.is_empty() { self.root.clone() } else { self.root.join(path) }
    }

    fn failure(&self, path: &str, error: &std::io::Error) -> Failure {
        Failure::new(format!("could not read `{}`: {error}", self.label(path)))
    }
}

impl Tree for DiskTree {
    fn entry(&self, path: &str) -> Result<Option<Entry>> {
        look(&self.place(path)).map_err(|error| self.failure(path, &error))
    }

    fn names(&self, directory: &str) -> Result<Vec<String>> {
        match self.entry(directory)? {
            Some(Entry::Directory) => list(&self.place(directory)).map_err(|error| self.failure(directory, &error)),
            _ => Ok(Vec::new()),
        }
    }

    fn read(&self, path: &str) -> Result<Vec<u8>> {
        read(&self.place(path)).map_err(|error| self.failure(path, &error))
    }

    fn absolute(&self, text: &str) -> Option<String> {
        // kustomize cleans the text before it looks; links on the way are followed afterwards.
        let rest = Path::new(text).strip_prefix(&self.root).ok()?;
        let parts: Option<Vec<&str>> = rest.components().map(|part| part.as_os_str().to_str()).collect();
        path::resolve("", &parts?.join("/"))
    }

    fn label(&self, path: &str) -> String {
        path::relative(&self.from, path)
    }

    fn word(&self, path: &str) -> String {
        let label = self.label(path);
        if label.starts_with('-') {
            // An option would begin so.
            return format!("./{label}");
        }
        label
    }
}

/// Returns what is at a place, without following a link there.
pub(super) fn look(place: &Path) -> io::Result<Option<Entry>> {
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
        let executable = is_executable(&metadata);
        Some(Entry::File { executable })
    } else {
        // A socket, a pipe, a device: reading one could block for ever.
        None
    })
}

/// Returns the names in a directory, sorted.
pub(super) fn list(place: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(place)? {
        let name = entry?.file_name().into_string().map_err(|name| {
            let name = name.to_string_lossy();
            io::Error::new(ErrorKind::InvalidData, format!("the name `{name}` is not UTF-8"))
        })?;
        names.push(name);
    }
    names.sort();
    Ok(names)
}

/// Returns the bytes of a file, or the target of a link.
pub(super) fn read(place: &Path) -> io::Result<Vec<u8>> {
    match look(place)? {
        Some(Entry::Link) => {
            let target = std::fs::read_link(place)?;
            Ok(target.to_string_lossy().into_owned().into_bytes())
        }
        None => Err(ErrorKind::NotFound.into()),
        Some(_) => std::fs::read(place),
    }
}

#[cfg(unix)]
fn is_executable(metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o100 != 0
}

#[cfg(not(unix))]
fn is_executable(_metadata: &std::fs::Metadata) -> bool {
    false
}
