//! What a lock lists that it did not list before.

use serde::Serialize;

use super::{Digest, Lock, Remote};
use crate::message::failure::Result;
use crate::tree::Tree;

/// An entry, or a directory of one, that is new in a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Added {
    /// The lock, from the top of the repository.
    pub lock: String,
    /// The line on which the entry begins, from 1.
    pub line: usize,
    /// The [label](Remote::label) of the entry, or the reference to the directory.
    pub remote: String,
    /// What it was resolved to.
    pub digest: Digest,
}

/// Returns the entries of the lock at `place` that the lock there of `base` lacks or has otherwise, and the directories
/// that it lacks of those that it has. A lock of the base that cannot be read holds nothing.
pub(crate) fn added(tree: &dyn Tree, base: &dyn Tree, place: &str) -> Result<Vec<Added>> {
    let bytes = tree.read(place)?;
    let lock = Lock::parse(&bytes, place)?;
    let before = Lock::at(base, place).ok().flatten().unwrap_or_default();
    let mut added = Vec::new();
    for (remote, (line, _)) in lock.remotes.iter().zip(Lock::places(&bytes)) {
        let named = match (before.get(remote.key()), remote) {
            (Some(old), _) if old.digest() != remote.digest() => vec![remote.label()],
            (Some(Remote::Git(old)), Remote::Git(git)) => {
                git.paths.difference(&old.paths).map(|path| git.reference_to(path)).collect()
            }
            (Some(_), _) => Vec::new(),
            (None, _) => vec![remote.label()],
        };
        let entry = |named| Added { lock: place.to_owned(), line, remote: named, digest: remote.digest() };
        added.extend(named.into_iter().map(entry));
    }
    Ok(added)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::LOCK_NAME;
    use crate::tree::overlay::OverlayTree;

    fn tree(remotes: &str) -> OverlayTree {
        let mut tree = OverlayTree::default();
        let text = format!("version: 1\nremotes:\n{remotes}");
        tree.file(LOCK_NAME, text.as_bytes(), false);
        tree
    }

    fn git(name: &str, digit: char, more: &str) -> String {
        let commit = digit.to_string().repeat(40);
        format!("  - url: https://example.com/{name}\n    ref: v1\n    commit: \"{commit}\"\n{more}")
    }

    #[test]
    fn new_and_changed_entries_are_added() {
        let base = tree(&[git("a", '1', ""), git("b", '1', "")].concat());
        let paths = "    paths: [x]\n";
        let now = tree(&[git("a", '1', paths), git("b", '2', ""), git("c", '3', "")].concat());
        let found = added(&now, &base, LOCK_NAME).unwrap();
        let found: Vec<(String, usize)> = found.iter().map(|added| (added.remote.clone(), added.line)).collect();
        assert_eq!(
            found,
            [
                ("https://example.com/a//x?ref=v1".to_owned(), 3),
                ("https://example.com/b?ref=v1".to_owned(), 7),
                ("https://example.com/c?ref=v1".to_owned(), 10),
            ]
        );
        let mut none = OverlayTree::default();
        assert_eq!(added(&now, &none, LOCK_NAME).unwrap().len(), 3);
        none.file(LOCK_NAME, b"<<<<<<< HEAD\n", false);
        assert_eq!(added(&now, &none, LOCK_NAME).unwrap().len(), 3);
        assert!(added(&none, &now, LOCK_NAME).is_err());
    }
}
