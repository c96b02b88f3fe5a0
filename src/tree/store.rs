//! Where objects come from: gix, or git where gix does not find them.

use std::ops::Range;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use gix::ObjectId;

use crate::git::LocalRepo;
use crate::message::failure::{Failure, Result, command};
use crate::os::parallel::processors;

/// The object database of one repository.
pub(super) struct Objects {
    repository: gix::Repository,
    /// The repository at hand, when it is this one: git may reach objects that gix does not.
    here: Option<Rc<LocalRepo>>,
}

/// How much of what other objects of a pack are made from is kept at hand. Kustomizations are alike, so
/// that most of them are stored as what differs from some other.
const DELTA_BASES: usize = 16 << 20;
/// The same for each thread that searches.
const SEARCHED_BASES: usize = 4 << 20;

/// How many blobs are worth a thread.
const SHARE: usize = 1000;
/// How many threads search at most.
const THREADS: usize = 8;

/// Opens the object database of the repository at `git_dir`. No reference is read, so that every
/// ref storage will do.
pub fn open(git_dir: &Path) -> Result<gix::Repository> {
    opened(git_dir, gix::open::Options::isolated())
}

/// How many packs may be added to a repository that is not the user's while it is open: gix makes room for them at
/// once. Each batch of files is one.
const PACKS: usize = 256;

/// Opens the object database of a repository that is not the user's: no object in it that needs more than
/// `most` bytes of memory at once is read.
pub(crate) fn open_fetched(git_dir: &Path, most: u64) -> Result<gix::Repository> {
    let limit = format!("gitoxide.objects.allocLimit={most}");
    let slots = gix::odb::store::init::Slots::AsNeededByDiskState { multiplier: 2.0, minimum: PACKS };
    let options = gix::open::Options::isolated().config_overrides([limit]).object_store_slots(slots);
    opened(git_dir, options)
}

fn opened(git_dir: &Path, options: gix::open::Options) -> Result<gix::Repository> {
    // What `git replace` puts in place of an object, others do not see.
    let options = options.with(gix::sec::Trust::Full).cli_overrides(["core.useReplaceRefs=false"]);
    let mut repository = gix::open_opts(git_dir, options)
        .map_err(|error| Failure::new(format!("could not open the repository at `{}`: {error}", git_dir.display())))?;
    cache_bases(&mut repository, DELTA_BASES);
    Ok(repository)
}

fn cache_bases(repository: &mut gix::Repository, bytes: usize) {
    let cache = move || -> Box<gix::odb::cache::PackCache> {
        Box::new(gix::odb::pack::cache::lru::MemoryCappedHashmap::new(bytes))
    };
    repository.objects.set_pack_cache(cache);
}

/// Returns the bytes of an object (`kind`: `commit`, `tree`, `blob`) that was proven to be what its id says:
/// whoever can write to a pack can put other bytes under an id.
pub(crate) fn proven(repository: &gix::Repository, kind: &str, id: ObjectId) -> Result<Vec<u8>> {
    let unreadable = |reason: &dyn std::fmt::Display| Failure::new(format!("{kind} {id} cannot be read: {reason}"));
    let mut object = repository.find_object(id).map_err(|error| unreadable(&error))?;
    let bytes = std::mem::take(&mut object.data);
    let computed = gix::objs::compute_hash(id.kind(), object.kind, &bytes).map_err(|error| unreadable(&error))?;
    if computed == id && object.kind.as_bytes() == kind.as_bytes() {
        return Ok(bytes);
    }
    let directory = repository.git_dir().display();
    Err(Failure::new(format!("{kind} {id} in `{directory}` is not what its id says: the cache was changed"))
        .hint(format!("remove it, and run the command again: {}", command("rm -rf", [directory.to_string()]))))
}

/// Returns the id of each of the blobs to search.
pub(super) type Blobs = Arc<dyn Fn(usize) -> ObjectId + Send + Sync>;

/// Returns which of these blobs are meant, or cannot be read.
fn search(
    repository: &gix::ThreadSafeRepository,
    blobs: &Blobs,
    share: Range<usize>,
    is_meant: fn(&[u8]) -> bool,
) -> Vec<usize> {
    let mut repository = repository.to_thread_local();
    cache_bases(&mut repository, SEARCHED_BASES);
    let mut buffer = Vec::new();
    let is_found = |number: &usize| {
        let id = blobs(*number);
        let object = gix::objs::FindExt::find_blob(&repository.objects, &id, &mut buffer);
        object.map_or(true, |blob| is_meant(blob.data))
    };
    share.filter(is_found).collect()
}

impl Objects {
    /// Takes the objects of a repository that is not the user's.
    pub(super) fn fetched(repository: gix::Repository) -> Self {
        Objects { repository, here: None }
    }

    /// Opens the objects of this repository.
    pub(super) fn of_here(here: Rc<LocalRepo>) -> Result<Self> {
        Ok(Objects { repository: open(&here.git_dir)?, here: Some(here) })
    }

    /// Returns the repository.
    pub(super) fn repository(&self) -> &gix::Repository {
        &self.repository
    }

    /// Returns the kind of the hashes.
    pub(super) fn hash(&self) -> gix::hash::Kind {
        self.repository.object_hash()
    }

    /// Returns whether these are the objects of this repository.
    pub(super) fn are_here(&self) -> bool {
        self.here.is_some()
    }

    /// Returns whether an object is here.
    pub(super) fn holds(&self, id: ObjectId) -> bool {
        self.repository.has_object(id)
    }

    /// Returns the number of bytes of an object, without reading them.
    pub(super) fn size(&self, id: ObjectId) -> Result<u64> {
        let header = self.repository.find_header(id);
        let header = header.map_err(|error| Failure::new(format!("object {id} cannot be read: {error}")))?;
        Ok(header.size())
    }

    /// Begins to search as many blobs. What it returns waits for the answer: which of them, in their order, are meant. One
    /// that cannot be read may be.
    pub(super) fn hold(
        &self,
        count: usize,
        blobs: Blobs,
        is_meant: fn(&[u8]) -> bool,
    ) -> impl FnOnce() -> Vec<usize> + use<> {
        let threads = processors();
        let threads = threads.min(THREADS).min(count / SHARE);
        let size = count.div_ceil(threads.max(1)).max(1);
        let repository = Arc::new(self.repository.clone().into_sync());
        let shares: Vec<_> = (0..count)
            .step_by(size)
            .map(|start| {
                let share = start..count.min(start + size);
                let (theirs, blobs, repository) = (share.clone(), blobs.clone(), repository.clone());
                let begun = (threads > 0)
                    .then(|| thread::Builder::new().spawn(move || search(&repository, &blobs, theirs, is_meant)));
                (share, begun)
            })
            .collect();
        move || {
            let mut all = Vec::new();
            for (share, begun) in shares {
                all.extend(match begun.map(|thread| thread.map(JoinHandle::join)) {
                    Some(Ok(Ok(found))) => found,
                    Some(Ok(Err(panic))) => std::panic::resume_unwind(panic),
                    // Not worth a thread, or no thread available: then it is done here.
                    None | Some(Err(_)) => search(&repository, &blobs, share, is_meant),
                });
            }
            all
        }
    }

    /// Returns the raw bytes of the object (`kind`: `blob`, `tree`) that is at `path`.
    pub(super) fn read(&self, kind: &str, id: ObjectId, path: &str) -> Result<Vec<u8>> {
        let Some(here) = &self.here else {
            return proven(&self.repository, kind, id);
        };
        if let Ok(mut object) = self.repository.find_object(id) {
            return Ok(std::mem::take(&mut object.data));
        }
        let path = match path {
            "" => ".",
            path => path,
        };
        match here.object(kind, &id.to_string())? {
            Some(bytes) => Ok(bytes),
            None if here.is_partial()? => Err(Failure::new(format!(
                "`{path}` is not here: this is a partial clone, and nothing may be fetched now"
            ))
            .hint(format!("fetch it: git cat-file -e {id}"))),
            None => Err(Failure::new(format!("`{path}` is damaged: there is no object {id}"))
                .hint("see what is missing: git fsck")),
        }
    }
}
