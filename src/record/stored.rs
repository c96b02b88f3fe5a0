//! Compares the files that a lock lists with a tree.
//!
//! Offline, and from the record alone: it proves that nothing changed since, not who made it. Lock and
//! files changed together agree with each other.

use std::collections::BTreeSet;

use super::{LOCK_NAME, Lock, Remote, sha256_hex};
use crate::failure::Result;
use crate::reference::localized_path::LOCALIZED_FILES;
use crate::tree::{Entry, Listing, path};

/// How a file is not what a lock says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Difference {
    /// It is listed, and not there.
    Missing,
    /// It is listed, and there is something else: a link, a directory, a submodule.
    NoFile,
    /// Its bytes are others.
    Edited {
        /// Their SHA-256, in hex.
        sha256: String,
    },
    /// It has the other mode.
    Mode,
    /// It lies where only what is listed may lie.
    Added,
    /// Its entry names a remote that is not listed.
    Unlisted {
        /// The [label](super::Remote::label) of that remote.
        remote: String,
    },
}

/// Returns every file that is not as the lock in `directory` says, by its path from the top of the tree.
///
/// A lock with a target owns all of its directory; any other one the directories `localized-files` of the
/// files that it lists.
///
/// # Errors
/// When the tree cannot be read.
pub fn differences(
    tree: &dyn Listing,
    directory: &str,
    lock: &Lock,
) -> Result<Vec<(String, Difference)>> {
    let mut differences = Vec::new();
    let mut listed = BTreeSet::new();
    let mut homes = BTreeSet::new();
    let remotes: BTreeSet<String> = lock.remotes.iter().map(Remote::label).collect();
    if lock.target.is_some() {
        homes.insert(directory.to_owned());
        listed.insert(path::join(directory, LOCK_NAME));
    }
    for file in &lock.files {
        let place = path::join(directory, &file.path);
        if lock.target.is_none() {
            homes.extend(home(&place).map(str::to_owned));
        }
        let difference = match tree.entry(&place)? {
            None => Some(Difference::Missing),
            Some(Entry::File { executable }) => {
                let bytes = tree.read(&place)?;
                let sha256 = sha256_hex(&bytes);
                let converted = || tree.converts() && sha256_hex(&unix(&bytes)) == file.sha256;
                if sha256 != file.sha256 && !converted() {
                    Some(Difference::Edited { sha256 })
                } else if executable != file.executable {
                    Some(Difference::Mode)
                } else {
                    let unlisted = file
                        .remote
                        .clone()
                        .filter(|remote| !remotes.contains(remote));
                    unlisted.map(|remote| Difference::Unlisted { remote })
                }
            }
            Some(_) => Some(Difference::NoFile),
        };
        differences.extend(difference.map(|difference| (place.clone(), difference)));
        listed.insert(place);
    }
    for home in homes {
        for place in tree.below(&home)? {
            // An entry at the place of a listed file is reported there.
            if !path::and_above(&place).any(|above| listed.contains(above)) {
                differences.push((place, Difference::Added));
            }
        }
    }
    differences.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(differences)
}

/// Returns the bytes with the line ends that git stores.
fn unix(bytes: &[u8]) -> Vec<u8> {
    let mut unix = Vec::with_capacity(bytes.len());
    for (index, byte) in bytes.iter().enumerate() {
        if (*byte, bytes.get(index + 1)) != (b'\r', Some(&b'\n')) {
            unix.push(*byte);
        }
    }
    unix
}

/// Returns the outermost `localized-files` that a path lies in.
#[must_use]
pub fn home(place: &str) -> Option<&str> {
    let mut end = 0;
    for component in place.split('/') {
        end += component.len();
        if component == LOCALIZED_FILES && end < place.len() {
            return place.get(..end);
        }
        end += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::StoredFile;
    use crate::tree::memory::MemoryTree;

    fn stored(path: &str, bytes: &[u8], executable: bool) -> StoredFile {
        StoredFile {
            path: path.to_owned(),
            executable,
            sha256: sha256_hex(bytes),
            ..StoredFile::default()
        }
    }

    fn lock(target: Option<&str>) -> Lock {
        Lock {
            target: target.map(str::to_owned),
            files: vec![
                stored("a/localized-files/h/x.yaml", b"x", false),
                stored("a/localized-files/h/run.sh", b"run", true),
            ],
            ..Lock::default()
        }
    }

    fn tree(directory: &str) -> MemoryTree {
        let mut tree = MemoryTree::default();
        let place = |path: &str| path::join(directory, path);
        tree.file(&place("a/localized-files/h/x.yaml"), b"x", false);
        tree.file(&place("a/localized-files/h/run.sh"), b"run", true);
        tree.file("a.yaml", b"", false);
        tree
    }

    #[test]
    fn a_matching_tree_does_not_differ() {
        for (directory, target) in [("", None), ("copy", Some("app")), ("copy", None)] {
            let found = differences(&tree(directory), directory, &lock(target)).unwrap();
            assert_eq!(found, [], "{directory}");
        }
    }

    #[test]
    fn every_difference_is_reported_by_its_path() {
        type Change = fn(&mut MemoryTree);
        let x = "a/localized-files/h/x.yaml";
        let changes: [(&str, Change, Difference); 6] = [
            (
                x,
                |tree| tree.remove("a/localized-files/h/x.yaml"),
                Difference::Missing,
            ),
            (
                x,
                |tree| tree.file("a/localized-files/h/x.yaml", b"y", false),
                Difference::Edited {
                    sha256: sha256_hex(b"y"),
                },
            ),
            (
                x,
                |tree| tree.file("a/localized-files/h/x.yaml", b"x", true),
                Difference::Mode,
            ),
            (
                x,
                |tree| tree.link("a/localized-files/h/x.yaml", "run.sh"),
                Difference::NoFile,
            ),
            (
                "a/localized-files/new",
                |tree| tree.file("a/localized-files/new", b"", false),
                Difference::Added,
            ),
            (
                "a/localized-files/link",
                |tree| tree.link("a/localized-files/link", "h"),
                Difference::Added,
            ),
        ];
        for (place, change, expected) in changes {
            let mut tree = tree("");
            change(&mut tree);
            let found = differences(&tree, "", &lock(None)).unwrap();
            assert_eq!(found, [(place.to_owned(), expected)]);
        }
    }

    #[test]
    fn a_file_that_became_a_directory_is_reported_once() {
        let mut tree = tree("");
        tree.remove("a/localized-files/h/x.yaml");
        tree.file("a/localized-files/h/x.yaml/inside", b"", false);
        let found = differences(&tree, "", &lock(None)).unwrap();
        assert_eq!(
            found,
            [("a/localized-files/h/x.yaml".to_owned(), Difference::NoFile)]
        );
    }

    #[test]
    fn a_copy_is_owned_as_a_whole() {
        let mut tree = tree("copy");
        tree.file("copy/kustomize-localize.lock", b"", false);
        tree.file("copy/a/mine.yaml", b"", false);
        tree.file("copying/mine.yaml", b"", false);
        let found = differences(&tree, "copy", &lock(Some("app"))).unwrap();
        assert_eq!(found, [("copy/a/mine.yaml".to_owned(), Difference::Added)]);
        assert_eq!(differences(&tree, "copy", &lock(None)).unwrap(), []);
    }

    #[test]
    fn the_outermost_directory_owns() {
        for (place, expected) in [
            (
                "a/localized-files/b/localized-files/c",
                Some("a/localized-files"),
            ),
            ("localized-files/c", Some("localized-files")),
            ("a/localized-files", None),
            ("a/localized-files-2/c", None),
            ("a/my-localized-files/c", None),
        ] {
            assert_eq!(home(place), expected, "{place}");
        }
    }
}
