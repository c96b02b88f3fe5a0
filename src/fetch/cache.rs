//! What was fetched before: bare repositories, one for each (URL, commit), and files by digest.
//!
//! Nothing in it is ever written again. A repository is fetched into a temporary sibling and
//! renamed; there is no lock and no maintenance, and all of it may be deleted at any time.

use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result};
use crate::interrupt::Scratch;
use crate::record::sha256_hex;

/// The user's cache directory for this program.
#[derive(Debug, Clone)]
pub struct Cache {
    directory: PathBuf,
}

impl Cache {
    /// Names the cache: `$XDG_CACHE_HOME/git-kustomize-localize`, or what stands for it.
    ///
    /// # Errors
    /// When no home directory is known.
    pub fn new() -> Result<Cache> {
        let variable = |name: &str| {
            std::env::var_os(name)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
        };
        let base = variable("XDG_CACHE_HOME")
            .or_else(|| variable("LOCALAPPDATA"))
            .or_else(|| variable("HOME").map(|home| home.join(".cache")));
        match base {
            Some(base) => Ok(Cache {
                directory: base.join("git-kustomize-localize"),
            }),
            None => {
                Err(Failure::new("there is no place for a cache")
                    .hint("set HOME or XDG_CACHE_HOME"))
            }
        }
    }

    /// Returns the repository that holds `commit` of `url` (without secrets), if it is there.
    #[must_use]
    pub fn repository(&self, url: &str, commit: &str) -> Option<PathBuf> {
        let path = self.repositories(url).join(commit);
        path.join("objects").is_dir().then_some(path)
    }

    /// Says whether any commit of `url` is there.
    #[must_use]
    pub fn knows(&self, url: &str) -> bool {
        self.repositories(url).read_dir().is_ok_and(|mut entries| {
            entries.any(|entry| entry.is_ok_and(|entry| is_commit(&entry.file_name())))
        })
    }

    /// Makes a place to fetch `url` into.
    ///
    /// # Errors
    /// When the cache cannot be written.
    pub fn scratch(&self, url: &str) -> Result<Scratch> {
        let parent = self.repositories(url);
        self.make(&parent)?;
        Scratch::beside(&parent, "fetching-").map_err(|error| self.failure(&error))
    }

    /// Keeps a fetched repository as the one that holds `commit` of `url`.
    ///
    /// # Errors
    /// When the cache cannot be written.
    pub fn keep(&self, scratch: Scratch, url: &str, commit: &str) -> Result<PathBuf> {
        let path = self.repositories(url).join(commit);
        match scratch.persist(&path) {
            Ok(()) => Ok(path),
            // Another run was faster: the same commit holds the same bytes.
            Err(_) if self.repository(url, commit).is_some() => Ok(path),
            Err(error) => Err(self.failure(&error)),
        }
    }

    /// Removes a repository that turned out to be damaged.
    pub fn forget(&self, url: &str, commit: &str) {
        let _ = std::fs::remove_dir_all(self.repositories(url).join(commit));
    }

    /// Returns the file with this digest, if it is there and still is what its name says.
    #[must_use]
    pub fn file(&self, sha256: &str) -> Option<Vec<u8>> {
        let bytes = std::fs::read(self.files().join(sha256)).ok()?;
        (sha256_hex(&bytes) == sha256).then_some(bytes)
    }

    /// Keeps a file.
    ///
    /// # Errors
    /// When the cache cannot be written.
    pub fn keep_file(&self, bytes: &[u8], sha256: &str) -> Result<()> {
        let directory = self.files();
        self.make(&directory)?;
        let place = directory.join(sha256);
        if place.exists() {
            return Ok(());
        }
        let write = || -> std::io::Result<()> {
            let scratch = Scratch::beside(&directory, "fetching-")?;
            let temporary = scratch.path().join("body");
            std::fs::write(&temporary, bytes)?;
            std::fs::rename(&temporary, &place)
        };
        write().map_err(|error| self.failure(&error))
    }

    fn repositories(&self, url: &str) -> PathBuf {
        let digest = sha256_hex(url.as_bytes());
        self.directory.join("git").join(&digest[..32])
    }

    fn files(&self) -> PathBuf {
        self.directory.join("http")
    }

    fn make(&self, directory: &Path) -> Result<()> {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true);
        // What was fetched with the user's credentials is nobody else's to read.
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder
            .create(directory)
            .map_err(|error| self.failure(&error))
    }

    fn failure(&self, error: &std::io::Error) -> Failure {
        Failure::new(format!(
            "could not write the cache `{}`: {error}",
            self.directory.display()
        ))
        .hint("set XDG_CACHE_HOME to a directory that can be written and has room")
    }
}

fn is_commit(name: &std::ffi::OsStr) -> bool {
    name.to_str().is_some_and(crate::record::is_object_id)
}
