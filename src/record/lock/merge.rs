//! Two locks that come together in a merge.

use std::collections::BTreeMap;

use super::{Lock, Pinned, StoredFile};
use crate::record::Digest;
use crate::reference::Upstream;

/// What comes of two locks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// The entries of both.
    pub lock: Lock,
    /// The remotes that both sides changed, and not to the same: `lock` holds ours.
    pub both: Vec<Both>,
}

/// A remote that is one thing in our lock, and another in theirs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Both {
    pub upstream: Upstream,
    /// What it is in our lock.
    pub ours: Digest,
    /// What it is in theirs.
    pub theirs: Digest,
}

impl Lock {
    /// Returns all entries of two locks that began with `base`, which tells the side that changed one of them. Where
    /// both hold one repository at one commit, its entry has the directories of both.
    pub fn merge(base: Option<&Lock>, ours: &Lock, theirs: &Lock) -> Merged {
        let mut lock = ours.clone();
        let mut both = Vec::new();
        for (source, their) in &theirs.remotes {
            let before = base.and_then(|base| base.remotes.get(source)).map(|pinned| &pinned.digest);
            match lock.remotes.get_mut(source) {
                None => drop(lock.remotes.insert(source.clone(), their.clone())),
                Some(our) => {
                    let (ours, theirs) = (our.digest.clone(), their.digest.clone());
                    let is_clear = ours == theirs || before == Some(&ours) || before == Some(&theirs);
                    join(our, their, before);
                    both.extend((!is_clear).then(|| Both { upstream: source.clone(), ours, theirs }));
                }
            }
        }
        // What one side localizes is localized.
        lock.left.extend(theirs.left.clone());
        let left = std::mem::take(&mut lock.left);
        lock.left = left.into_iter().filter(|(upstream, _)| !lock.holds(upstream)).collect();
        let files = theirs.files.iter().chain(&ours.files);
        let files: BTreeMap<&str, &StoredFile> = files.map(|file| (file.path.as_str(), file)).collect();
        lock.files = files.into_values().cloned().collect();
        Merged { lock, both }
    }
}

/// Makes one entry of two: of one commit with the directories of both, else that of the side that changed it.
fn join(ours: &mut Pinned, theirs: &Pinned, before: Option<&Digest>) {
    if ours.digest == theirs.digest {
        ours.join(theirs);
    } else if before == Some(&ours.digest) {
        *ours = theirs.clone();
    }
}
