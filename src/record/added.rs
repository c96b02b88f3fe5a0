//! What a lock lists that it did not list before.

use serde::Serialize;

use super::{Change, ChangeKind, Digest, Lock};
use crate::message::failure::Result;
use crate::reference::Upstream;
use crate::tree::{Tree, path};

/// An entry, or a directory of one, that is new in a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Added {
    /// The lock, from the top of the repository.
    pub lock: String,
    /// The line on which the entry begins, from 1.
    pub line: usize,
    /// The entry, or the directory.
    pub remote: Upstream,
    /// What it was resolved to.
    pub digest: Digest,
}

/// Returns the entries of the lock at `place` that the lock there of `base` lacks or has otherwise, and the directories
/// that it lacks of those that it has. A lock of the base that cannot be read holds nothing.
pub(crate) fn added(tree: &dyn Tree, base: &dyn Tree, place: &str) -> Result<Vec<Added>> {
    let bytes = tree.read(place)?;
    let lock = Lock::parse(&bytes, place)?;
    let before = Lock::at(base, place).ok().flatten().unwrap_or_default();
    let places = Lock::places(&bytes);
    let changes = Lock::changes(&before, &lock).into_iter();
    let entries = changes.filter_map(|Change { kind, upstream, new, paths, .. }| {
        let (digest, line) = (new?, places.get(&upstream)?.line);
        let named = match kind {
            ChangeKind::Extended => paths.iter().map(|path| upstream.at(path::of_shown(path))).collect(),
            _ => vec![upstream],
        };
        let entry = move |remote| Added { lock: place.to_owned(), line, remote, digest: digest.clone() };
        Some(named.into_iter().map(entry))
    });
    Ok(entries.flatten().collect())
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
        let paths = "    paths: {x: {}}\n";
        let now = tree(&[git("a", '1', paths), git("b", '2', ""), git("c", '3', "")].concat());
        let found = added(&now, &base, LOCK_NAME).unwrap();
        let found: Vec<(String, usize)> = found.iter().map(|added| (added.remote.to_string(), added.line)).collect();
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
