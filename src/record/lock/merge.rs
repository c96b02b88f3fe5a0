//! Two locks that come together in a merge.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::{Left, LeftWhat, Lock, Remote, StoredFile};
use crate::record::Digest;

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
    /// What names it.
    pub label: String,
    /// What it is in our lock.
    pub ours: Digest,
    /// What it is in theirs.
    pub theirs: Digest,
}

impl Lock {
    /// Returns all entries of two locks that began with `base`, which tells the side that changed one of them. Where
    /// both hold one repository, its entry has the directories of both.
    pub fn merge(base: Option<&Lock>, ours: &Lock, theirs: &Lock) -> Merged {
        let mut lock = ours.clone();
        let mut both = Vec::new();
        for remote in &theirs.remotes {
            let before = base.and_then(|base| base.get(remote.key())).map(Remote::digest);
            match ours.position(remote.key()) {
                None => lock.remotes.push(remote.clone()),
                Some(index) => both.extend(join(&mut lock.remotes[index], remote, before.as_ref())),
            }
        }
        let mut left: BTreeMap<LeftWhat, Left> = BTreeMap::new();
        for one in ours.left.iter().chain(&theirs.left) {
            match left.entry(one.what.clone()) {
                Entry::Vacant(vacant) => {
                    vacant.insert(one.clone());
                }
                // What one side does not accept is not accepted.
                Entry::Occupied(mut there) => {
                    there.get_mut().accepted &= one.accepted;
                    there.get_mut().through.extend(one.through.clone());
                }
            }
        }
        lock.left = left.into_values().collect();
        let files = theirs.files.iter().chain(&ours.files);
        let files: BTreeMap<&str, &StoredFile> = files.map(|file| (file.path.as_str(), file)).collect();
        lock.files = files.into_values().cloned().collect();
        lock.sort();
        Merged { lock, both }
    }
}

/// Adds their entry of a remote to ours. Returns what both changed, and not to the same.
fn join(ours: &mut Remote, theirs: &Remote, before: Option<&Digest>) -> Option<Both> {
    let was = ours.digest();
    let is = theirs.digest();
    let mut joined = if before == Some(&was) { theirs.clone() } else { ours.clone() };
    for side in [&*ours, theirs] {
        joined.through_mut().extend(side.through().iter().cloned());
        if let (Remote::Git(git), Remote::Git(side)) = (&mut joined, side) {
            git.paths.extend(side.paths.iter().cloned());
        }
    }
    *ours = joined;
    let is_clear = was == is || before == Some(&was) || before == Some(&is);
    (!is_clear).then(|| Both { label: theirs.label(), ours: was, theirs: is })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a lock of repositories, each as its name, a digit for its commit, and directories.
    fn lock(entries: &str) -> Lock {
        let entry = |entry: &str| {
            let parts: Vec<&str> = entry.split('.').collect();
            let (commit, paths) = (parts[1].repeat(40), parts[2].replace('+', ", "));
            let name = parts[0];
            format!("- {{url: \"https://h/{name}\", ref: main, commit: \"{commit}\", paths: [{paths}]}}\n")
        };
        let entries: String = entries.split(' ').map(entry).collect();
        Lock::parse(format!("version: 1\nremotes:\n{entries}").as_bytes(), "x").unwrap()
    }

    #[test]
    fn changes_of_both_sides_are_taken() {
        let base = lock("a.1.x b.1.x c.1.x d.1.x");
        let ours = lock("a.2.x b.1.x d.2.x o.1.x");
        let theirs = lock("a.1.x b.2.x c.1.x t.1.x");
        for (ours, theirs) in [(&ours, &theirs), (&theirs, &ours)] {
            let merged = Lock::merge(Some(&base), ours, theirs);
            assert_eq!(merged.lock, lock("a.2.x b.2.x c.1.x d.2.x o.1.x t.1.x"));
            assert_eq!(merged.both, []);
        }
        // Without a base nothing tells which one is newer.
        let merged = Lock::merge(None, &ours, &theirs);
        assert_eq!((merged.both.len(), merged.lock.remotes.len()), (2, 6));
        // Where both changed one thing, ours stays, and it is reported.
        let (ours, theirs) = (lock("a.2.x b.1.y c.2.y"), lock("a.3.x b.1.z c.1.z"));
        let merged = Lock::merge(Some(&base), &ours, &theirs);
        assert_eq!(merged.lock, lock("a.2.x b.1.y+z c.2.y+z"));
        let both = merged.both.iter();
        let both: Vec<_> = both.map(|both| (&*both.label, both.theirs.hex())).collect();
        assert_eq!(both, [("https://h/a?ref=main", &*"3".repeat(40))]);
    }
}
