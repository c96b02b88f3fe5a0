//! Which file of a graph lies where.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use super::{File, FileId, Origin, SourceId};

/// The files of trees by their places. The files hold their paths, which are long, so that these are not held again.
#[derive(Default)]
pub(super) struct Places {
    hashes: RandomState,
    /// By the hash of the place, or the next number that was free.
    ids: HashMap<u64, FileId>,
}

impl Places {
    /// Returns the file at a path; if there is none, where it is to be [added](Places::add).
    pub(super) fn find(&self, files: &[File], source: SourceId, path: &str) -> Result<FileId, u64> {
        let is_there = |file: &File| match &file.origin {
            Origin::Tree {
                source: its_source,
                path: its_path,
            } => *its_source == source && its_path == path,
            Origin::Remote(_) | Origin::Archive { .. } => false,
        };
        let mut number = self.hashes.hash_one((source, path));
        loop {
            match self.ids.get(&number) {
                None => return Err(number),
                Some(id) if files.get(*id).is_some_and(is_there) => return Ok(*id),
                Some(_) => number = number.wrapping_add(1),
            }
        }
    }

    pub(super) fn add(&mut self, number: u64, file: FileId) {
        self.ids.insert(number, file);
    }
}
