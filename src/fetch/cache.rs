//! What was fetched before: bare repositories, one for each (URL, commit), and files by digest.
//!
//! Nothing in it is ever written again. A repository is fetched into a temporary sibling and renamed, and so is each
//! pack with more of its files that is added later; there is no lock and no maintenance, and all of it may be deleted at
//! any time.

use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::atomic::AtomicBool;

use super::budget::MAX_FILE_SIZE;
use super::git::format_of;
use crate::git::{object_id, open_fetched};
use crate::message::failure::{Failure, Result};
use crate::os::failpoint;
use crate::os::interrupt::{self, Scratch};
use crate::record::sha256_hex;
use crate::tree::git::proven;

/// How the names of unfinished things begin.
const FETCHING: &str = "fetching-";

/// What to do where it cannot be written.
pub(super) const ROOM: &str = "set XDG_CACHE_HOME to a writable directory with enough free space";

/// The user's cache directory for this program.
#[derive(Debug, Clone)]
pub(crate) struct Cache {
    /// None where no home is known: a run that fetches nothing needs no cache.
    directory: Option<PathBuf>,
}

impl Cache {
    /// Names the cache: `$XDG_CACHE_HOME/git-kustomize-localize`, or what stands for it.
    pub(crate) fn of_user() -> Cache {
        let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let base = variable("XDG_CACHE_HOME")
            .or_else(|| variable("LOCALAPPDATA"))
            .or_else(|| variable("HOME").map(|home| home.join(".cache")));
        Cache { directory: base.map(|base| base.join("git-kustomize-localize")) }
    }

    /// Returns the repository that holds `commit` of `url` (without secrets), if it is there and
    /// whole. One that was damaged is removed, so that it is fetched again.
    pub(crate) fn repository(&self, url: &str, commit: &str) -> Result<Option<PathBuf>> {
        let Some(directory) = &self.directory else {
            return Ok(None);
        };
        refuse_shared(directory)?;
        let path = self.repositories(url)?.join(commit);
        let damaged = path.exists();
        if is_whole(&path, commit) {
            return Ok(Some(path));
        }
        // Another run may be adding a missing entry at this moment.
        if damaged {
            failpoint::before("remove a damaged entry of the cache");
            let _ = std::fs::remove_dir_all(&path);
        }
        Ok(None)
    }

    /// Returns whether something of `url` was fetched before.
    pub(crate) fn knows(&self, url: &str) -> bool {
        self.repositories(url).is_ok_and(|directory| directory.is_dir())
    }

    /// Makes an empty repository to fetch `url` into, for objects of a `format`: `sha1` or `sha256`.
    pub(crate) fn scratch(&self, url: &str, format: &str) -> Result<Scratch> {
        let parent = self.repositories(url)?;
        self.make(&parent)?;
        self.sweep();
        let make = || -> std::io::Result<Scratch> {
            let scratch = Scratch::beside(&parent, FETCHING)?;
            failpoint::before("make a repository to fetch into");
            // As `git init --bare` does: three processes a fetch would be felt.
            let version = if format == "sha1" { "0" } else { "1\n[extensions]\n\tobjectFormat = sha256" };
            let config = format!("[core]\n\tbare = true\n\trepositoryformatversion = {version}\n");
            std::fs::create_dir_all(scratch.path().join("objects/pack"))?;
            std::fs::create_dir(scratch.path().join("refs"))?;
            std::fs::write(scratch.path().join("HEAD"), "ref: refs/heads/main\n")?;
            std::fs::write(scratch.path().join("config"), config)?;
            Ok(scratch)
        };
        make().map_err(|error| self.failure(&error))
    }

    /// Keeps what was fetched as the repository that holds `commit` of `url`.
    pub(crate) fn keep(&self, scratch: &Scratch, url: &str, commit: &str) -> Result<PathBuf> {
        if let Some(path) = self.repository(url, commit)? {
            return Ok(path);
        }
        let path = self.repositories(url)?.join(commit);
        let one = self.scratch(url, format_of(commit))?;
        self.add(scratch, &[one.path()])?;
        failpoint::before("put a fetched repository into the cache");
        match one.persist(&path) {
            Ok(()) => Ok(path),
            // Another run was faster: the same commit holds the same bytes.
            Err(_) if self.repository(url, commit)?.is_some() => Ok(path),
            Err(error) => Err(self.failure(&error)),
        }
    }

    /// Adds the objects that were fetched to repositories of the cache.
    pub(crate) fn add(&self, scratch: &Scratch, repositories: &[&Path]) -> Result<()> {
        const PACKS: &str = "objects/pack";
        let put = |from: &Path, to: &Path| -> std::io::Result<()> {
            let beside = scratch.path().join("added");
            std::fs::hard_link(from, &beside).or_else(|_| std::fs::copy(from, &beside).map(drop))?;
            failpoint::before("put files into a repository of the cache");
            std::fs::rename(&beside, to)
        };
        let add = || -> std::io::Result<()> {
            for entry in scratch.path().join(PACKS).read_dir()? {
                let pack = entry?.path();
                let Some(name) = pack.file_name().filter(|_| is_pack(&pack)) else {
                    continue;
                };
                for repository in repositories {
                    let to = repository.join(PACKS).join(name);
                    let index = to.with_extension("idx");
                    // A pack with an index holds the same: its name is the digest of its contents.
                    if !index.exists() {
                        put(&pack, &to)?;
                        put(&pack.with_extension("idx"), &index)?;
                    }
                }
            }
            Ok(())
        };
        add().map_err(|error| self.failure(&error))
    }

    /// Returns the file with this digest, if it is there and still is what its name says.
    pub(crate) fn file(&self, sha256: &str) -> Option<Vec<u8>> {
        let bytes = std::fs::read(self.files().ok()?.join(sha256)).ok()?;
        (sha256_hex(&bytes) == sha256).then_some(bytes)
    }

    pub(crate) fn keep_file(&self, bytes: &[u8], sha256: &str) -> Result<()> {
        if self.file(sha256).is_some() {
            return Ok(());
        }
        let directory = self.files()?;
        self.make(&directory)?;
        let write = || -> std::io::Result<()> {
            let scratch = Scratch::beside(&directory, FETCHING)?;
            let temporary = scratch.path().join("body");
            failpoint::before("write a file for the cache");
            std::fs::write(&temporary, bytes)?;
            failpoint::before("put a file into the cache");
            std::fs::rename(&temporary, directory.join(sha256))
        };
        write().map_err(|error| self.failure(&error))
    }

    /// Removes what interrupted runs left of other repositories, once; a run that fetches has time for that.
    fn sweep(&self) {
        static SWEPT: Once = Once::new();
        SWEPT.call_once(|| {
            let repositories = self.directory().map(|directory| directory.join("git").read_dir());
            for entry in repositories.into_iter().flatten().flatten().flatten() {
                interrupt::sweep(&entry.path(), FETCHING);
            }
        });
    }

    fn directory(&self) -> Result<&Path> {
        self.directory
            .as_deref()
            .ok_or_else(|| Failure::new("there is no cache directory").hint("set HOME or XDG_CACHE_HOME"))
    }

    fn repositories(&self, url: &str) -> Result<PathBuf> {
        let digest = sha256_hex(url.as_bytes());
        Ok(self.directory()?.join("git").join(&digest[..32]))
    }

    fn files(&self) -> Result<PathBuf> {
        Ok(self.directory()?.join("http"))
    }

    fn make(&self, directory: &Path) -> Result<()> {
        refuse_shared(self.directory()?)?;
        if directory.is_dir() {
            return Ok(());
        }
        failpoint::before("make a directory of the cache");
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true);
        // Contents fetched with the user's credentials are private.
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(directory).map_err(|error| self.failure(&error))
    }

    fn failure(&self, error: &std::io::Error) -> Failure {
        let shown = self.directory.as_deref().unwrap_or(Path::new("")).display();
        Failure::new(format!("could not write the cache `{shown}`: {error}")).hint(ROOM)
    }
}

/// Refuses a directory that belongs to another user, or that others may write to: git runs in the repositories
/// below it, with their configuration.
#[cfg(unix)]
fn refuse_shared(directory: &Path) -> Result<()> {
    use std::os::unix::fs::MetadataExt;
    let Ok(metadata) = directory.metadata() else {
        return Ok(());
    };
    let problem = if metadata.uid() != rustix::process::geteuid().as_raw() {
        "belongs to another user"
    } else if metadata.mode() & 0o022 != 0 {
        "can be written by other users"
    } else {
        return Ok(());
    };
    let shown = directory.display().to_string();
    Err(Failure::new(format!("the cache `{shown}` {problem}, so it is not used"))
        .hint(format!("remove it: {}", crate::message::failure::command("rm -rf", [&shown])))
        .hint("or set XDG_CACHE_HOME to a directory of your own"))
}

#[cfg(not(unix))]
fn refuse_shared(_: &Path) -> Result<()> {
    Ok(())
}

fn is_pack(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "pack")
}

/// Returns whether `directory` holds `commit` with everything that was fetched with it, as it was written.
fn is_whole(directory: &Path, commit: &str) -> bool {
    let Ok(id) = object_id(commit) else {
        return false;
    };
    let is_readable =
        || open_fetched(directory, MAX_FILE_SIZE).is_ok_and(|repository| proven(&repository, "commit", id).is_ok());
    let packs = directory.join("objects/pack").read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
    let indexes: Vec<PathBuf> = packs.filter(|path| path.extension().is_some_and(|it| it == "idx")).collect();
    let are_whole = indexes.iter().all(|index| is_pack_whole(index, id.kind()) == Some(true));
    !indexes.is_empty() && are_whole && is_readable()
}

/// Returns whether an index and its pack are what they were when they were written; none if they cannot be read.
fn is_pack_whole(index: &Path, kind: gix::hash::Kind) -> Option<bool> {
    let never = AtomicBool::new(false);
    let pack = gix::odb::pack::data::File::at(index.with_extension("pack"), kind).ok()?;
    let index = gix::odb::pack::index::File::at(index, kind).ok()?;
    index.verify_checksum(&mut gix::progress::Discard, &never).ok()?;
    let checksum = pack.verify_checksum(&mut gix::progress::Discard, &never).ok()?;
    Some(checksum == index.pack_checksum())
}
