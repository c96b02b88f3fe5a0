//! Compares the files that a lock lists with a tree.
//!
//! The comparison is offline and uses only the record. It proves that nothing changed since the record was written, but
//! not who wrote it: files that were changed together with the lock match it.

use std::collections::BTreeSet;
use std::fmt;

use gix::bstr::ByteSlice as _;

use super::lock::{Mode, StoredFile};
use super::{LOCK_NAME, Lock, sha256_hex};
use crate::message::failure::Result;
use crate::reference::Upstream;
use crate::reference::localized_path::LOCALIZED_FILES;
use crate::tree::{Entry, Tree, path};

/// How a file differs from its entry in the lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FileDifference {
    /// It is listed, but does not exist.
    Missing,
    /// It is listed, but is a link, a directory or a submodule.
    NotAFile,
    /// Its bytes differ.
    Edited {
        /// The SHA-256 of its bytes, in hex.
        sha256: String,
    },
    /// It has the other mode.
    Mode,
    /// It is not listed, but is in a directory that only the lock may fill.
    Added,
    /// Its entry names an upstream that the lock does not list.
    Unlisted { remote: Upstream },
}

impl fmt::Display for FileDifference {
    /// The difference as the end of a sentence that begins with the path of the file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileDifference::Missing => f.write_str("is missing, although the lock lists it"),
            FileDifference::NotAFile => f.write_str("is not a file, although the lock lists it as one"),
            FileDifference::Edited { sha256 } => write!(f, "was changed: its sha256 {sha256} differs from the lock"),
            FileDifference::Mode => f.write_str("has a different mode than in the lock"),
            FileDifference::Added => f.write_str("was added: the lock does not list it"),
            FileDifference::Unlisted { remote } => write!(f, "is from {remote}, which the lock does not list"),
        }
    }
}

/// Every file that differs from the lock in `directory`, by path from the top of the tree.
pub(crate) fn differences(tree: &dyn Tree, directory: &str, lock: &Lock) -> Result<Vec<(String, FileDifference)>> {
    let mut differences = Vec::new();
    // The lock lists every file that it owns, except for itself.
    let mut listed = BTreeSet::from([path::join(directory, LOCK_NAME)]);
    for file in &lock.files {
        let path = path::join(directory, &file.path);
        let difference = difference(tree, &path, file, lock)?;
        differences.extend(difference.map(|difference| (path.clone(), difference)));
        listed.insert(path);
    }
    for owned_dir in owned_dirs(directory, lock) {
        for path in tree.below(&owned_dir)? {
            // An entry below the path of a listed file is reported with that file.
            if !path::and_above(&path).any(|above| listed.contains(above)) {
                differences.push((path, FileDifference::Added));
            }
        }
    }
    differences.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(differences)
}

/// The directories that only the lock may fill: with a target all of its own directory, otherwise the directories
/// `localized-files` of its files.
fn owned_dirs(directory: &str, lock: &Lock) -> BTreeSet<String> {
    if lock.target.is_some() {
        return BTreeSet::from([directory.to_owned()]);
    }
    let paths = lock.files.iter().map(|file| path::join(directory, &file.path));
    paths.filter_map(|path| localized_dir(&path).map(str::to_owned)).collect()
}

/// How a listed file differs from its entry in the lock. `None` if it does not.
fn difference(tree: &dyn Tree, path: &str, file: &StoredFile, lock: &Lock) -> Result<Option<FileDifference>> {
    let executable = match tree.entry(path)? {
        None => return Ok(Some(FileDifference::Missing)),
        Some(Entry::File { executable }) => executable,
        Some(_) => return Ok(Some(FileDifference::NotAFile)),
    };
    // First the bytes, because other bytes explain a difference better than another mode.
    let bytes = tree.read(path)?;
    let sha256 = sha256_hex(&bytes);
    // A checkout may have made CRLF of the line ends that git stores, so both are compared.
    let is_same = sha256 == file.sha256 || tree.converts() && sha256_hex(&bytes.replace("\r\n", "\n")) == file.sha256;
    if !is_same {
        return Ok(Some(FileDifference::Edited { sha256 }));
    }
    if executable != (file.mode == Mode::Executable) {
        return Ok(Some(FileDifference::Mode));
    }
    let unlisted = file.remote.clone().filter(|remote| !lock.remotes.contains_key(remote));
    Ok(unlisted.map(|remote| FileDifference::Unlisted { remote }))
}

/// The outermost directory `localized-files` that a path is in. `None` if it is in none.
pub(crate) fn localized_dir(path: &str) -> Option<&str> {
    path::and_above(path::parent(path)).filter(|above| path::name(above) == LOCALIZED_FILES).last()
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
        tree.add_file(&path::join(directory, X), b"x");
        tree.add_file_with_mode(&path::join(directory, RUN), b"run", true);
        tree.add_file("a.yaml", b"");
        tree
    }

    #[test]
    fn a_matching_tree_does_not_differ() {
        for (directory, target) in [("", None), ("copy", Some("app")), ("copy", None)] {
            let listed = super::differences(&tree(directory), directory, &lock(target)).unwrap();
            assert_eq!(listed, [], "{directory}");
        }
    }

    #[test]
    fn every_difference_is_reported_by_its_path() {
        type Change = fn(&mut OverlayTree);
        let edited = FileDifference::Edited { sha256: sha256_hex(b"y") };
        let inside: Change = |tree| {
            tree.remove(X);
            tree.add_file("a/localized-files/h/x.yaml/inside", b"");
        };
        let changes: [(&str, Change, FileDifference); 7] = [
            (X, |tree| tree.remove(X), FileDifference::Missing),
            (X, |tree| tree.add_file(X, b"y"), edited),
            (X, |tree| tree.add_file_with_mode(X, b"x", true), FileDifference::Mode),
            (X, |tree| tree.link(X, "run.sh"), FileDifference::NotAFile),
            // The files in it are not reported again.
            (X, inside, FileDifference::NotAFile),
            ("a/localized-files/new", |tree| tree.add_file("a/localized-files/new", b""), FileDifference::Added),
            ("a/localized-files/link", |tree| tree.link("a/localized-files/link", "h"), FileDifference::Added),
        ];
        for (path, change, expected) in changes {
            let mut tree = tree("");
            change(&mut tree);
            let listed = differences(&tree, "", &lock(None)).unwrap();
            assert_eq!(listed, [(path.to_owned(), expected)]);
        }
    }

    #[test]
    fn a_copy_is_owned_as_a_whole() {
        let mut tree = tree("copy");
        tree.add_file("copy/kustomize-localize.lock", b"");
        tree.add_file("copy/a/mine.yaml", b"");
        tree.add_file("copying/mine.yaml", b"");
        let edits = differences(&tree, "copy", &lock(Some("app"))).unwrap();
        assert_eq!(edits, [("copy/a/mine.yaml".to_owned(), FileDifference::Added)]);
        assert_eq!(differences(&tree, "copy", &lock(None)).unwrap(), []);
    }

    #[test]
    fn the_outermost_directory_owns() {
        for (path, expected) in [
            ("a/localized-files/b/localized-files/c", Some("a/localized-files")),
            ("localized-files/c", Some("localized-files")),
            ("a/localized-files", None),
            ("a/localized-files-2/c", None),
            ("a/my-localized-files/c", None),
        ] {
            assert_eq!(localized_dir(path), expected, "{path}");
        }
    }
}
