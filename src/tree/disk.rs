//! A directory of the file system.

use std::path::{Path, PathBuf};

use super::{Entry, Tree, path};
use crate::failure::{Failure, Result};

/// The files below one real directory, as they are on disk now.
#[derive(Debug)]
pub struct DiskTree {
    top: PathBuf,
    shown: String,
}

impl DiskTree {
    /// Opens `top`, a real directory (no link on the way to it). `shown` is how the user names it.
    #[must_use]
    pub fn new(top: PathBuf, shown: String) -> Self {
        DiskTree { top, shown }
    }

    fn place(&self, path: &str) -> PathBuf {
        match path.is_empty() {
            true => self.top.clone(),
            false => self.top.join(path),
        }
    }

    fn failure(&self, path: &str, error: &std::io::Error) -> Failure {
        Failure::new(format!("could not read `{}`: {error}", self.label(path)))
    }
}

impl Tree for DiskTree {
    fn entry(&self, path: &str) -> Result<Option<Entry>> {
        let metadata = match std::fs::symlink_metadata(self.place(path)) {
            Ok(metadata) => metadata,
            Err(error)
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::NotFound
                        | std::io::ErrorKind::NotADirectory
                        | std::io::ErrorKind::InvalidInput
                ) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(self.failure(path, &error)),
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

    fn read(&self, path: &str) -> Result<Vec<u8>> {
        let place = self.place(path);
        match self.entry(path)? {
            Some(Entry::Link) => std::fs::read_link(&place)
                .map(|target| target.to_string_lossy().into_owned().into_bytes())
                .map_err(|error| self.failure(path, &error)),
            _ => std::fs::read(&place).map_err(|error| self.failure(path, &error)),
        }
    }

    fn absolute(&self, text: &str) -> Option<String> {
        // kustomize cleans the text before it looks; links on the way are followed afterwards.
        let inside = |path: &Path| {
            let rest = path.strip_prefix(&self.top).ok()?;
            let parts: Option<Vec<&str>> = rest
                .components()
                .map(|part| part.as_os_str().to_str())
                .collect();
            path::resolve("", &parts?.join("/"))
        };
        let cleaned = PathBuf::from(format!("/{}", path::resolve("", text)?));
        inside(&cleaned).or_else(|| {
            // The same directory under another name: a link above the top, or `/private` on macOS.
            let real = std::fs::canonicalize(cleaned.parent()?).ok()?;
            inside(&real.join(cleaned.file_name()?))
        })
    }

    fn label(&self, path: &str) -> String {
        match (self.shown.as_str(), path) {
            ("" | ".", "") => ".".to_owned(),
            ("" | ".", path) => path.to_owned(),
            (shown, path) => path::join(shown.trim_end_matches('/'), path),
        }
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
