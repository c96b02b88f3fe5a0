//! The blobs of a large repository that were searched for marks before and hold none: the next run reads only new ones.
//!
//! A blob never changes, so a fact about it stays true.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use gix::ObjectId;

use crate::git::Key;

/// The smallest number of blobs that is worth a file.
const LEAST: usize = 2_000;
/// The largest number of ids in the file: 20 MB of them.
const MOST: usize = 1 << 20;

/// The blobs of one repository that hold none of some marks.
pub(super) struct Unmarked {
    file: PathBuf,
    key: Key,
    /// The version, hash function and marks of the search.
    origin: Vec<u8>,
    known: HashSet<ObjectId>,
}

impl Unmarked {
    /// The blobs that an earlier run has searched, from the directory of this program in a repository. `None` if
    /// `count` blobs are too few for a file, or if nothing can be stored.
    pub(super) fn of(directory: &Path, count: usize, hash: gix::hash::Kind, marks: &[&[u8]]) -> Option<Unmarked> {
        // Fewer blobs are searched in a few milliseconds.
        if count < LEAST {
            return None;
        }
        let key = Key::of(directory)?;
        // Sealed together with the marks and the version, a file that is older or from elsewhere counts for nothing.
        let origin = format!("{} {hash} {marks:?}\n", env!("CARGO_PKG_VERSION")).into_bytes();
        let file = directory.join("unmarked");
        let ids = key.read(&file, &origin).unwrap_or_default();
        let known = ids.chunks_exact(hash.len_in_bytes()).map(ObjectId::from_bytes_or_panic).collect();
        Some(Unmarked { file, key, origin, known })
    }

    /// Whether an earlier run has found no mark in a blob.
    pub(super) fn knows(&self, id: &ObjectId) -> bool {
        self.known.contains(id)
    }

    /// Adds blobs without marks, if they can be stored.
    pub(super) fn add(mut self, new: Vec<ObjectId>) {
        if new.is_empty() {
            return;
        }
        // If there are too many, only the latest are remembered.
        if self.known.len() + new.len() > MOST {
            self.known.clear();
        }
        self.known.extend(new.into_iter().take(MOST));
        let ids: Vec<u8> = self.known.iter().flat_map(|id| id.as_bytes()).copied().collect();
        // Nothing is lost if they cannot be stored: then they are searched again.
        self.key.write(&self.file, &self.origin, &ids);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use gix::hash::Kind;

    use super::*;

    #[test]
    fn only_what_this_program_found_out_here_counts() {
        let top = tempfile::tempdir().unwrap();
        let directory = top.path().join("own");
        let (marks, other): (&[&[u8]], &[&[u8]]) = (&[b"a", b"b"], &[b"a", b"c"]);
        let open = |marks| Unmarked::of(&directory, LEAST, Kind::Sha1, marks).unwrap();
        assert!(Unmarked::of(&directory, LEAST - 1, Kind::Sha1, marks).is_none() && !directory.exists());

        let id = |number: u8| ObjectId::from_bytes_or_panic(&[number; 20]);
        open(marks).add(vec![id(1)]);
        open(marks).add(vec![id(2)]);
        let knows = |marks| [1, 2, 3].map(|number| open(marks).knows(&id(number)));
        assert_eq!(knows(marks), [true, true, false]);
        assert_eq!(knows(other), [false; 3]);
        assert!(!Unmarked::of(&directory, LEAST, Kind::Sha256, marks).unwrap().knows(&id(1)));

        let file = directory.join("unmarked");
        let bytes = fs::read(&file).unwrap();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            for bytes in [&damaged, &bytes[..at]] {
                fs::write(&file, bytes).unwrap();
                assert_eq!(knows(marks), [false; 3], "{at}");
            }
        }
        fs::write(&file, &bytes).unwrap();
        assert_eq!(knows(marks), [true, true, false]);
        fs::remove_file(directory.join("key")).unwrap();
        assert_eq!(knows(marks), [false; 3]);
    }
}
