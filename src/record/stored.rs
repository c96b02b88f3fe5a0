//! Compares the files that a lock lists with a tree.
//!
//! Offline, and from the record alone: it proves that nothing changed since, not who made it. Lock and
//! files changed together agree with each other.

use std::collections::BTreeSet;
use std::fmt;

use gix::bstr::ByteSlice as _;

use super::lock::Mode;
use super::{LOCK_NAME, Lock, sha256_hex};
use crate::message::failure::Result;
use crate::reference::Upstream;
use crate::reference::localized_path::LOCALIZED_FILES;
use crate::tree::{Entry, Tree, path};

/// How a file is not what a lock says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Difference {
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
    /// Its entry names a source that is not listed.
    Unlisted { remote: Upstream },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Difference::Missing => f.write_str("is missing, although the lock lists it"),
            Difference::NoFile => f.write_str("is not a file, although the lock lists it as one"),
            Difference::Edited { sha256 } => write!(f, "was changed: its sha256 {sha256} differs from the lock"),
            Difference::Mode => f.write_str("has a different mode than in the lock"),
            Difference::Added => f.write_str("was added: the lock does not list it"),
            Difference::Unlisted { remote } => write!(f, "is from {remote}, which the lock does not list"),
        }
    }
}

/// Returns every file that is not as the lock in `directory` says, by its path from the top of the tree.
///
/// A lock with a target owns all of its directory; any other one the directories `localized-files` of the
/// files that it lists.
pub(crate) fn differences(tree: &dyn Tree, directory: &str, lock: &Lock) -> Result<Vec<(String, Difference)>> {
    let mut differences = Vec::new();
    let mut listed = BTreeSet::new();
    let mut homes = BTreeSet::new();
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
                // With the line ends that git stores.
                let converted = || tree.converts() && sha256_hex(&bytes.replace("\r\n", "\n")) == file.sha256;
                if sha256 != file.sha256 && !converted() {
                    Some(Difference::Edited { sha256 })
                } else if executable != (file.mode == Mode::Executable) {
                    Some(Difference::Mode)
                } else {
                    let unlisted = file.remote.clone().filter(|remote| !lock.remotes.contains_key(remote));
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

/// Returns the outermost `localized-files` that a path lies in.
pub(crate) fn home(place: &str) -> Option<&str> {
    path::and_above(path::parent(place)).filter(|above| path::name(above) == LOCALIZED_FILES).last()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::overlay::OverlayTree;

    const X: &str = "a/localized-files/h/x.yaml";
    const RUN: &str = "a/localized-files/h/run.sh";

    fn lock(target: Option<&str>) -> Lock {
        let target = target.map_or(String::new(), |target| format!("target: {target}\n"));
        let (x, run) = (sha256_hex(b"x"), sha256_hex(b"run"));
        let text = format!(
            "version: 1\n{target}files:\n- {{path: {RUN}, mode: \"100755\", sha256: {run}}}\n- {{path: {X}, mode: \"100644\", sha256: {x}}}\n"
        );
        Lock::parse(text.as_bytes(), "x").unwrap()
    }

    fn tree(directory: &str) -> OverlayTree {
        let mut tree = OverlayTree::default();
        tree.file(&path::join(directory, X), b"x", false);
        tree.file(&path::join(directory, RUN), b"run", true);
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
        type Change = fn(&mut OverlayTree);
        let edited = Difference::Edited { sha256: sha256_hex(b"y") };
        let inside: Change = |tree| {
            tree.remove(X);
            tree.file("a/localized-files/h/x.yaml/inside", b"", false);
        };
        let changes: [(&str, Change, Difference); 7] = [
            (X, |tree| tree.remove(X), Difference::Missing),
            (X, |tree| tree.file(X, b"y", false), edited),
            (X, |tree| tree.file(X, b"x", true), Difference::Mode),
            (X, |tree| tree.link(X, "run.sh"), Difference::NoFile),
            // What lies in it is not reported as well.
            (X, inside, Difference::NoFile),
            ("a/localized-files/new", |tree| tree.file("a/localized-files/new", b"", false), Difference::Added),
            ("a/localized-files/link", |tree| tree.link("a/localized-files/link", "h"), Difference::Added),
        ];
        for (place, change, expected) in changes {
            let mut tree = tree("");
            change(&mut tree);
            let found = differences(&tree, "", &lock(None)).unwrap();
            assert_eq!(found, [(place.to_owned(), expected)]);
        }
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
            ("a/localized-files/b/localized-files/c", Some("a/localized-files")),
            ("localized-files/c", Some("localized-files")),
            ("a/localized-files", None),
            ("a/localized-files-2/c", None),
            ("a/my-localized-files/c", None),
        ] {
            assert_eq!(home(place), expected, "{place}");
        }
    }
}
