//! Object databases, as gix opens them.

use std::path::Path;

use gix::ObjectId;

use crate::message::failure::{Failure, Result};

/// The size of the cache of delta bases, in bytes.
const DELTA_BASES: usize = 16 << 20;

/// The number of packs that may be added to a fetched repository while it is open.
const PACKS: usize = 256;

/// Reads a full hex object id.
pub fn object_id(hex: &str) -> Result<ObjectId> {
    ObjectId::from_hex(hex.as_bytes()).map_err(|_| Failure::new(format!("`{hex}` is not a full object id")))
}

/// Opens the object database of the repository at `git_dir`. No reference is read, so any ref storage works.
pub fn open(git_dir: &Path) -> Result<gix::Repository> {
    opened(git_dir, gix::open::Options::isolated())
}

/// Opens the object database of a fetched repository. Objects that need more than `most` bytes of memory are not read.
pub(crate) fn open_fetched(git_dir: &Path, most: u64) -> Result<gix::Repository> {
    // A hostile pack may claim any size.
    let limit = format!("gitoxide.objects.allocLimit={most}");
    // Each batch of files is one pack, and gix allocates slots for packs in advance.
    let slots = gix::odb::store::init::Slots::AsNeededByDiskState { multiplier: 2.0, minimum: PACKS };
    let options = gix::open::Options::isolated().config_overrides([limit]).object_store_slots(slots);
    opened(git_dir, options)
}

/// Opens an object database with options that every use needs.
fn opened(git_dir: &Path, options: gix::open::Options) -> Result<gix::Repository> {
    // Other clones do not have the replacements that `git replace` makes here.
    let options = options.with(gix::sec::Trust::Full).cli_overrides(["core.useReplaceRefs=false"]);
    let mut repository = gix::open_opts(git_dir, options)
        .map_err(|error| Failure::new(format!("could not open the repository at `{}`: {error}", git_dir.display())))?;
    keep_bases(&mut repository);
    Ok(repository)
}

/// Gives a repository a cache of delta bases.
pub(crate) fn keep_bases(repository: &mut gix::Repository) {
    // Kustomizations resemble each other, so packs store most of them as deltas.
    repository.objects.set_pack_cache(|| Box::new(gix::odb::pack::cache::lru::MemoryCappedHashmap::new(DELTA_BASES)));
}
