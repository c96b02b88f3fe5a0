//! Merges two locks.

use std::collections::BTreeMap;

use super::{Lock, Pinned, StoredFile};
use crate::record::Digest;
use crate::reference::Upstream;

/// The result of merging two locks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// The lock with the entries of both sides.
    pub lock: Lock,
    /// The sources that both sides changed in different ways. `lock` has our entries of them.
    pub conflicts: Vec<LockConflict>,
}

/// A source with different entries in both locks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockConflict {
    pub upstream: Upstream,
    /// The digest in our lock.
    pub ours: Digest,
    /// The digest in their lock.
    pub theirs: Digest,
}

impl Lock {
    /// Merges two locks after git could not: the lock has generated lines that conflict easily. The common ancestor
    /// `base` tells which side changed an entry, whose version is then taken. Without one, every difference counts as a
    /// change of both sides: a conflict, in which our entry stays.
    ///
    /// An entry that only one side has is in the result, even if the other side removed it: the caller locks again,
    /// which drops every entry that nothing references.
    pub fn merge(base: Option<&Lock>, ours: &Lock, theirs: &Lock) -> Merged {
        let mut lock = ours.clone();
        let mut conflicts = Vec::new();
        // Their entries are added to ours, or joined with them.
        for (source, their) in &theirs.remotes {
            let base_digest = base.and_then(|base| base.remotes.get(source)).map(|pinned| &pinned.digest);
            match lock.remotes.get_mut(source) {
                None => drop(lock.remotes.insert(source.clone(), their.clone())),
                Some(our) => {
                    let (ours, theirs) = (our.digest.clone(), their.digest.clone());
                    merge_entry(our, their, base_digest);
                    // Each side that equals the base has not changed the entry.
                    if ours != theirs && base_digest != Some(&ours) && base_digest != Some(&theirs) {
                        conflicts.push(LockConflict { upstream: source.clone(), ours, theirs });
                    }
                }
            }
        }
        // An upstream that one side localizes is localized.
        lock.left.extend(theirs.left.clone());
        let left = std::mem::take(&mut lock.left);
        lock.left = left.into_iter().filter(|(upstream, _)| !lock.holds(upstream)).collect();
        // If both have a file at a path, ours counts.
        let files = theirs.files.iter().chain(&ours.files);
        let files: BTreeMap<&str, &StoredFile> = files.map(|file| (file.path.as_str(), file)).collect();
        lock.files = files.into_values().cloned().collect();
        Merged { lock, conflicts }
    }
}

/// Merges their entry for a source into ours. `base_digest` is the digest in the common ancestor.
fn merge_entry(ours: &mut Pinned, theirs: &Pinned, base_digest: Option<&Digest>) {
    // Entries of one commit get the directories of both. Otherwise the side that changed the entry counts.
    if ours.digest == theirs.digest {
        ours.join(theirs);
    } else if base_digest == Some(&ours.digest) {
        *ours = theirs.clone();
    }
    // Otherwise only we changed it, or both did: a conflict, in which ours stays.
}
