//! The entries of a lock that its base does not have.

use serde::Serialize;

use super::{ChangeKind, Digest, Lock, LockChange};
use crate::message::failure::Result;
use crate::reference::Upstream;
use crate::tree::{Tree, path};

/// An entry of a lock, or a directory of an entry, that the base does not have, or has with another digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AddedEntry {
    /// The path of the lock from the top of the repository.
    pub lock: String,
    /// The line on which the entry begins, from 1.
    pub line: usize,
    /// The repository, file or chart of the entry. If only a directory of it is new, the repository with that
    /// directory.
    pub remote: Upstream,
    /// The digest in the lock.
    pub digest: Digest,
}

/// The entries of the lock at `path` that are new or have another digest since `base`, and the new directories of the
/// other entries, for those who review a change: each is content that was not there before.
pub(crate) fn new_entries(tree: &dyn Tree, base: &dyn Tree, path: &str) -> Result<Vec<AddedEntry>> {
    let bytes = tree.read(path)?;
    let lock = Lock::parse(&bytes, path)?;
    // A lock of the base that cannot be read counts as empty: then all is new, and shown.
    let old = Lock::find(base, path).ok().flatten().unwrap_or_default();
    let positions = Lock::positions(&bytes);
    let mut entries = Vec::new();
    for LockChange { kind, upstream, new, paths, .. } in Lock::changes(&old, &lock) {
        // A dropped entry has no line in the new lock.
        let (Some(digest), Some(position)) = (new, positions.get(&upstream)) else { continue };
        // If the digest is the same, only the new directories are new content.
        let remotes = match kind {
            ChangeKind::Extended => paths.iter().map(|path| upstream.at(path::of_shown(path))).collect(),
            _ => vec![upstream],
        };
        entries.extend(remotes.into_iter().map(|remote| AddedEntry {
            lock: path.to_owned(),
            line: position.line,
            remote,
            digest: digest.clone(),
        }));
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::LOCK_NAME;
    use crate::tree::overlay::OverlayTree;

    fn tree(remotes: &str) -> OverlayTree {
        let mut tree = OverlayTree::default();
        let text = format!("version: 1\nremotes:\n{remotes}");
        tree.add_file(LOCK_NAME, text.as_bytes());
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
        let entries = new_entries(&now, &base, LOCK_NAME).unwrap();
        let entries: Vec<(String, usize)> =
            entries.iter().map(|added| (added.remote.to_string(), added.line)).collect();
        assert_eq!(
            entries,
            [
                ("https://example.com/a//x?ref=v1".to_owned(), 3),
                ("https://example.com/b?ref=v1".to_owned(), 7),
                ("https://example.com/c?ref=v1".to_owned(), 10),
            ]
        );
        let mut none = OverlayTree::default();
        assert_eq!(new_entries(&now, &none, LOCK_NAME).unwrap().len(), 3);
        none.add_file(LOCK_NAME, b"<<<<<<< HEAD\n");
        assert_eq!(new_entries(&now, &none, LOCK_NAME).unwrap().len(), 3);
        assert!(new_entries(&none, &now, LOCK_NAME).is_err());
    }
}
