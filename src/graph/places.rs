//! Which file or root of a graph lies where.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use super::{File, Origin, Root, SourceId};

/// What may lie in a tree.
pub(super) trait Placed {
    /// Returns the tree that it lies in, and its path there.
    fn place(&self) -> Option<(SourceId, &str)>;
}

impl Placed for File {
    fn place(&self) -> Option<(SourceId, &str)> {
        match &self.origin {
            Origin::Tree { source, path } => Some((*source, path)),
            Origin::Remote(_) | Origin::Archive { .. } => None,
        }
    }
}

impl Placed for Root {
    fn place(&self) -> Option<(SourceId, &str)> {
        Some((self.source, &self.directory))
    }
}

/// Files or roots by their places. They hold their paths, which are long, so that these are not held again.
#[derive(Default)]
pub(super) struct Places {
    hashes: RandomState,
    /// Where each is in the graph, by the hash of the place, or the next number that was free.
    ids: HashMap<u32, u32>,
}

impl Places {
    /// Returns which of `all` is at a path; if none is, where it is to be [added](Places::add).
    pub(super) fn find(&self, all: &[impl Placed], source: SourceId, path: &str) -> Result<usize, u32> {
        // Half of it tells them apart.
        let mut number = self.hashes.hash_one((source, path)) as u32;
        loop {
            let Some(id) = self.ids.get(&number).map(|id| *id as usize) else {
                return Err(number);
            };
            if all.get(id).and_then(Placed::place) == Some((source, path)) {
                return Ok(id);
            }
            number = number.wrapping_add(1);
        }
    }

    pub(super) fn add(&mut self, number: u32, id: usize) {
        // More take more memory than there is.
        if let Ok(id) = u32::try_from(id) {
            self.ids.insert(number, id);
        }
    }
}
