//! The cache: a bare repository for each (URL, commit), and files by digest.
//!
//! A file of an entry never changes. A repository is fetched into a temporary sibling and renamed; later a pack with
//! more of its files may be added in the same way. The cache needs neither locks nor maintenance, and all of it may be
//! deleted at any time.

use std::io;
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
use crate::tree::git::read_proven;

/// The prefix of the names of unfinished entries.
const FETCHING: &str = "fetching-";

/// The hint if the cache cannot be written.
pub(super) const HINT_CACHE_HOME: &str = "set XDG_CACHE_HOME to a writable directory with enough free space";

/// The user's cache directory for this program.
#[derive(Debug, Clone)]
pub(crate) struct Cache {
    /// `None` if there is no home directory: a run that fetches nothing needs no cache.
    directory: Option<PathBuf>,
}

impl Cache {
    /// The cache of the user: `$XDG_CACHE_HOME/git-kustomize-localize`, or the usual place of the system.
    pub(crate) fn of_user() -> Cache {
        let base = absolute_path("XDG_CACHE_HOME")
            .or_else(|| absolute_path("LOCALAPPDATA"))
            .or_else(|| absolute_path("HOME").map(|home| home.join(".cache")));
        Cache { directory: base.map(|base| base.join("git-kustomize-localize")) }
    }

    /// The directory of the repository with `commit` of `url` (without secrets). `None` if the cache lacks it, or if it
    /// is damaged; a damaged one is removed, so that it is fetched again.
    pub(crate) fn repository(&self, url: &str, commit: &str) -> Result<Option<PathBuf>> {
        let Some(directory) = &self.directory else {
            return Ok(None);
        };
        refuse_shared(directory)?;
        let path = self.repositories(url)?.join(commit);
        let existed = path.exists();
        if is_whole(&path, commit) {
            return Ok(Some(path));
        }
        // Only an entry that existed before the check is removed: another run may be adding it at this moment.
        if existed {
            failpoint::before("remove a damaged entry of the cache");
            let _ = std::fs::remove_dir_all(&path);
        }
        Ok(None)
    }

    /// Whether a commit of `url` may be in the cache: something was fetched from it before, perhaps without success.
    pub(crate) fn knows(&self, url: &str) -> bool {
        self.repositories(url).is_ok_and(|directory| directory.is_dir())
    }

    /// An empty repository to fetch `url` into, for objects of a `format`: `sha1` or `sha256`.
    pub(crate) fn scratch(&self, url: &str, format: &str) -> Result<Scratch> {
        let parent = self.repositories(url)?;
        self.make_directory(&parent)?;
        self.sweep();
        make_repository(&parent, format).map_err(|error| self.failure(&error))
    }

    /// Puts fetched objects into the cache as the repository with `commit` of `url`, unless it is there. One fetch may
    /// bring several commits: the repository of each gets all objects of the fetch. Returns its directory.
    pub(crate) fn store(&self, scratch: &Scratch, url: &str, commit: &str) -> Result<PathBuf> {
        if let Some(path) = self.repository(url, commit)? {
            return Ok(path);
        }
        let path = self.repositories(url)?.join(commit);
        let repository = self.scratch(url, format_of(commit))?;
        self.add_objects(scratch, &[repository.path()])?;
        failpoint::before("put a fetched repository into the cache");
        match repository.persist(&path) {
            Ok(()) => Ok(path),
            // Another run was faster. The same commit has the same bytes.
            Err(_) if self.repository(url, commit)?.is_some() => Ok(path),
            Err(error) => Err(self.failure(&error)),
        }
    }

    /// Adds fetched objects, such as files that a first fetch left out, to repositories of the cache.
    pub(crate) fn add_objects(&self, scratch: &Scratch, repositories: &[&Path]) -> Result<()> {
        add_packs(scratch, repositories).map_err(|error| self.failure(&error))
    }

    /// The file with this digest. `None` if there is none, or if it is damaged.
    pub(crate) fn file(&self, sha256: &str) -> Option<Vec<u8>> {
        let bytes = std::fs::read(self.files().ok()?.join(sha256)).ok()?;
        (sha256_hex(&bytes) == sha256).then_some(bytes)
    }

    /// Writes a file to the cache, unless it is there. `sha256` is the digest of `bytes`, and becomes its name.
    pub(crate) fn keep_file(&self, bytes: &[u8], sha256: &str) -> Result<()> {
        if self.file(sha256).is_some() {
            return Ok(());
        }
        let directory = self.files()?;
        self.make_directory(&directory)?;
        write_file(&directory, bytes, sha256).map_err(|error| self.failure(&error))
    }

    /// Removes the unfinished entries of interrupted runs, once per run.
    fn sweep(&self) {
        static SWEPT: Once = Once::new();
        SWEPT.call_once(|| {
            let repositories = self.directory().map(|directory| directory.join("git").read_dir());
            for entry in repositories.into_iter().flatten().flatten().flatten() {
                interrupt::sweep(&entry.path(), FETCHING);
            }
        });
    }

    /// The directory of the cache. Fails if the user has no home directory.
    fn directory(&self) -> Result<&Path> {
        self.directory
            .as_deref()
            .ok_or_else(|| Failure::new("there is no cache directory").hint("set HOME or XDG_CACHE_HOME"))
    }

    /// The directory with the repositories of one URL, each named after its commit. The URL is hashed, because it may
    /// have any character.
    fn repositories(&self, url: &str) -> Result<PathBuf> {
        let digest = sha256_hex(url.as_bytes());
        Ok(self.directory()?.join("git").join(&digest[..32]))
    }

    /// The directory with the files and archives, each named after its digest.
    fn files(&self) -> Result<PathBuf> {
        Ok(self.directory()?.join("http"))
    }

    /// Makes a directory of the cache with its parents, unless it exists. Only the user may look into it.
    fn make_directory(&self, directory: &Path) -> Result<()> {
        refuse_shared(self.directory()?)?;
        if directory.is_dir() {
            return Ok(());
        }
        failpoint::before("make a directory of the cache");
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true);
        // Content that was fetched with the user's credentials is private.
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(directory).map_err(|error| self.failure(&error))
    }

    /// The failure of writing to the cache.
    fn failure(&self, error: &std::io::Error) -> Failure {
        let shown = self.directory.as_deref().unwrap_or(Path::new("")).display();
        Failure::new(format!("could not write the cache `{shown}`: {error}")).hint(HINT_CACHE_HOME)
    }
}

/// A variable of the environment, if it is an absolute path.
fn absolute_path(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// Makes an empty bare repository in a temporary directory, for objects of a `format`: `sha1` or `sha256`. It writes
/// the few files that git needs, because starting `git init` for each fetch takes time.
fn make_repository(parent: &Path, format: &str) -> io::Result<Scratch> {
    let scratch = Scratch::beside(parent, FETCHING)?;
    failpoint::before("make a repository to fetch into");
    let version = if format == "sha1" { "0" } else { "1\n[extensions]\n\tobjectFormat = sha256" };
    let config = format!("[core]\n\tbare = true\n\trepositoryformatversion = {version}\n");
    std::fs::create_dir_all(scratch.path().join("objects/pack"))?;
    std::fs::create_dir(scratch.path().join("refs"))?;
    std::fs::write(scratch.path().join("HEAD"), "ref: refs/heads/main\n")?;
    std::fs::write(scratch.path().join("config"), config)?;
    Ok(scratch)
}

/// Adds the packs of a scratch repository to repositories of the cache. Other runs may read these at the same time, so
/// each file appears at once, and the pack before its index, by which git finds it.
fn add_packs(scratch: &Scratch, repositories: &[&Path]) -> io::Result<()> {
    const PACKS: &str = "objects/pack";
    for entry in scratch.path().join(PACKS).read_dir()? {
        let pack = entry?.path();
        // Only packs are looked at. The index of each follows below; other files beside a pack are not needed.
        let Some(name) = pack.file_name().filter(|_| is_pack(&pack)) else {
            continue;
        };
        for repository in repositories {
            let to = repository.join(PACKS).join(name);
            let index = to.with_extension("idx");
            // A pack with an index is complete, and has these objects: its name is the digest of its content.
            if !index.exists() {
                put_file(scratch, &pack, &to)?;
                put_file(scratch, &pack.with_extension("idx"), &index)?;
            }
        }
    }
    Ok(())
}

/// Links or copies a file beside its destination, then renames it, so that no run sees a part of it.
fn put_file(scratch: &Scratch, from: &Path, to: &Path) -> io::Result<()> {
    let beside = scratch.path().join("added");
    std::fs::hard_link(from, &beside).or_else(|_| std::fs::copy(from, &beside).map(drop))?;
    failpoint::before("put files into a repository of the cache");
    std::fs::rename(&beside, to)
}

/// Writes a file beside its path, then renames it, so that no run sees a part of it.
fn write_file(directory: &Path, bytes: &[u8], sha256: &str) -> io::Result<()> {
    let scratch = Scratch::beside(directory, FETCHING)?;
    let temporary = scratch.path().join("body");
    failpoint::before("write a file for the cache");
    std::fs::write(&temporary, bytes)?;
    failpoint::before("put a file into the cache");
    std::fs::rename(&temporary, directory.join(sha256))
}

/// Refuses a cache that belongs to another user, or that others may write to: git reads the configuration of the
/// repositories in it, which can name programs to run.
#[cfg(unix)]
fn refuse_shared(directory: &Path) -> Result<()> {
    use std::os::unix::fs::MetadataExt;
    // A directory that does not exist is made by this user.
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

/// Whether a repository of the cache has `commit` and everything that was fetched with it, undamaged: the checksums of
/// all packs match, and so does the id of the commit.
fn is_whole(directory: &Path, commit: &str) -> bool {
    let Ok(id) = object_id(commit) else {
        return false;
    };
    let packs = directory.join("objects/pack").read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
    let mut indexes = packs.filter(|path| path.extension().is_some_and(|extension| extension == "idx")).peekable();
    indexes.peek().is_some()
        && indexes.all(|index| is_pack_whole(&index, id.kind()) == Some(true))
        && open_fetched(directory, MAX_FILE_SIZE).is_ok_and(|repository| read_proven(&repository, "commit", id).is_ok())
}

/// Whether an index belongs to its pack. `None` if one of them cannot be read, or does not match its own checksum.
fn is_pack_whole(index: &Path, kind: gix::hash::Kind) -> Option<bool> {
    let interrupted = AtomicBool::default();
    let pack = gix::odb::pack::data::File::at(index.with_extension("pack"), kind).ok()?;
    let index = gix::odb::pack::index::File::at(index, kind).ok()?;
    index.verify_checksum(&mut gix::progress::Discard, &interrupted).ok()?;
    let checksum = pack.verify_checksum(&mut gix::progress::Discard, &interrupted).ok()?;
    Some(checksum == index.pack_checksum())
}
