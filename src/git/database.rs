//! Object databases, as gix opens them.

use std::path::Path;

use gix::ObjectId;

use crate::message::failure::{Failure, Result};

/// How much of what other objects of a pack are made from is kept at hand. Kustomizations are alike, so
/// that most of them are stored as what differs from some other.
const DELTA_BASES: usize = 16 << 20;

/// How many packs may be added to a repository that is not the user's while it is open: gix makes room for them at
/// once. Each batch of files is one.
const PACKS: usize = 256;

/// Reads a full hex object id.
pub fn object_id(hex: &str) -> Result<ObjectId> {
    ObjectId::from_hex(hex.as_bytes()).map_err(|_| Failure::new(format!("`{hex}` is not a full object id")))
}

/// Opens the object database of the repository at `git_dir`. No reference is read, so that every
/// ref storage will do.
pub fn open(git_dir: &Path) -> Result<gix::Repository> {
    opened(git_dir, gix::open::Options::isolated())
}

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
    keep_bases(&mut repository);
    Ok(repository)
}

/// Keeps at hand what objects of a pack are made from.
pub(crate) fn keep_bases(repository: &mut gix::Repository) {
    let cache = || -> Box<gix::odb::cache::PackCache> {
        Box::new(gix::odb::pack::cache::lru::MemoryCappedHashmap::new(DELTA_BASES))
    };
    repository.objects.set_pack_cache(cache);
}
