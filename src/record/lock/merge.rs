//! Two locks that come together in a merge, and the text that git leaves where it cannot bring them together.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use super::{Left, LeftWhat, Lock, Remote, StoredFile};
use crate::record::Digest;

/// What comes of two locks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// The entries of both, but those that one side dropped.
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

/// The texts that a conflict was made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sides {
    /// What both began with, where the markers tell.
    pub base: Option<String>,
    /// What stands first.
    pub ours: String,
    /// What stands second.
    pub theirs: String,
}

/// What three versions of one thing come to.
enum Choice<T> {
    /// One that decides.
    Clear(Option<T>),
    /// Both sides changed it.
    Unclear(T, T),
}

fn choose<T: Clone + PartialEq>(
    base: Option<&T>,
    ours: Option<&T>,
    theirs: Option<&T>,
) -> Choice<T> {
    match (ours, theirs) {
        _ if ours == theirs || base == theirs => Choice::Clear(ours.cloned()),
        _ if base == ours => Choice::Clear(theirs.cloned()),
        (Some(ours), Some(theirs)) => Choice::Unclear(ours.clone(), theirs.clone()),
        // A side still needs what it changed.
        (Some(one), None) | (None, Some(one)) => Choice::Clear(Some(one.clone())),
        (None, None) => Choice::Clear(None),
    }
}

impl Lock {
    /// Brings two locks together that began with `base`: what only one side changed is as that side has it; where both
    /// added or changed directories of a repository, the entry has those of both.
    #[must_use]
    pub fn merge(base: Option<&Lock>, ours: &Lock, theirs: &Lock) -> Merged {
        let mut lock = ours.clone();
        let mut both = Vec::new();
        lock.remotes = remotes(base, ours, theirs, &mut both);
        lock.left = left(base, ours, theirs);
        lock.files = files(base, ours, theirs);
        // A stored file names where it came from.
        let mut labels: BTreeSet<String> = lock.remotes.iter().map(Remote::label).collect();
        for remote in ours.remotes.iter().chain(&theirs.remotes) {
            let label = remote.label();
            let is_origin = |file: &StoredFile| file.remote.as_ref() == Some(&label);
            if !labels.contains(&label) && lock.files.iter().any(is_origin) {
                lock.remotes.push(remote.clone());
                labels.insert(label);
            }
        }
        for remote in &mut lock.remotes {
            remote.through_mut().retain(|label| labels.contains(label));
        }
        lock.sort();
        Merged { lock, both }
    }
}

/// Returns what both have, and what one added.
fn set<'a, T: Clone + Ord + 'a, I: IntoIterator<Item = &'a T>>(
    base: Option<I>,
    ours: I,
    theirs: I,
) -> BTreeSet<T> {
    let base: BTreeSet<&T> = base.into_iter().flatten().collect();
    let ours: BTreeSet<&T> = ours.into_iter().collect();
    let theirs: BTreeSet<&T> = theirs.into_iter().collect();
    let all = ours.union(&theirs).copied();
    all.filter(|one| (ours.contains(one) && theirs.contains(one)) || !base.contains(one))
        .cloned()
        .collect()
}

/// Returns what stays remote, each once. What one side does not accept is not accepted.
fn left(base: Option<&Lock>, ours: &Lock, theirs: &Lock) -> Vec<Left> {
    let mut merged: BTreeMap<LeftWhat, Left> = BTreeMap::new();
    for left in set(base.map(|base| &base.left), &ours.left, &theirs.left) {
        match merged.entry(left.what.clone()) {
            Entry::Vacant(vacant) => {
                vacant.insert(left);
            }
            Entry::Occupied(mut there) => {
                there.get_mut().accepted &= left.accepted;
                there.get_mut().through.extend(left.through);
            }
        }
    }
    merged.into_values().collect()
}

fn remotes(base: Option<&Lock>, ours: &Lock, theirs: &Lock, both: &mut Vec<Both>) -> Vec<Remote> {
    let keyed = |lock| -> BTreeMap<_, &Remote> {
        let lock: &Lock = lock;
        let remotes = lock.remotes.iter();
        remotes.map(|remote| (remote.key(), remote)).collect()
    };
    let base = base.map(keyed).unwrap_or_default();
    let (ours, theirs) = (keyed(ours), keyed(theirs));
    let keys: BTreeSet<_> = ours.keys().chain(theirs.keys()).collect();
    let mut merged = Vec::new();
    for key in keys {
        let version = |side: &BTreeMap<_, &Remote>| side.get(key).copied().cloned();
        let (base, ours, theirs) = (version(&base), version(&ours), version(&theirs));
        match choose(base.as_ref(), ours.as_ref(), theirs.as_ref()) {
            Choice::Clear(remote) => merged.extend(remote),
            Choice::Unclear(ours, theirs) => {
                let is = base.as_ref().map(Remote::digest);
                let mut remote = if is == Some(ours.digest()) {
                    theirs.clone()
                } else {
                    ours.clone()
                };
                let is_clear = [Some(ours.digest()), Some(theirs.digest())].contains(&is)
                    || ours.digest() == theirs.digest();
                if !is_clear {
                    both.push(Both {
                        label: ours.label(),
                        ours: ours.digest(),
                        theirs: theirs.digest(),
                    });
                }
                for side in [ours, theirs] {
                    remote.through_mut().extend(side.through().iter().cloned());
                    if let (Remote::Git(git), Remote::Git(side)) = (&mut remote, side) {
                        git.paths.extend(side.paths);
                    }
                }
                merged.push(remote);
            }
        }
    }
    merged
}

fn files(base: Option<&Lock>, ours: &Lock, theirs: &Lock) -> Vec<StoredFile> {
    let by_path = |lock| -> BTreeMap<_, &StoredFile> {
        let lock: &Lock = lock;
        let files = lock.files.iter();
        files.map(|file| (file.path.as_str(), file)).collect()
    };
    let base = base.map(by_path).unwrap_or_default();
    let (ours, theirs) = (by_path(ours), by_path(theirs));
    let paths: BTreeSet<&&str> = ours.keys().chain(theirs.keys()).collect();
    let files = paths.into_iter().filter_map(|path| {
        match choose(base.get(path), ours.get(path), theirs.get(path)) {
            Choice::Clear(file) => file,
            // The file itself is in conflict as well.
            Choice::Unclear(ours, _) => Some(ours),
        }
    });
    files.cloned().collect()
}

impl Sides {
    /// Takes a text with conflict markers apart, also with those of `diff3` and `zdiff3`; none where there are none, or
    /// they make no sense.
    #[must_use]
    pub fn of(text: &str) -> Option<Sides> {
        /// Where a line stands.
        #[derive(PartialEq)]
        enum Place {
            Common,
            Ours,
            Base,
            Theirs,
        }
        let mut sides = [String::new(), String::new(), String::new()];
        let [base, ours, theirs] = &mut sides;
        let mut place = Place::Common;
        let (mut width, mut hunks, mut bases) = (0, 0, 0);
        for line in text.split_inclusive('\n') {
            place = match (place, marker(line)) {
                (Place::Common, Some(('<', wide))) => {
                    width = wide;
                    hunks += 1;
                    Place::Ours
                }
                (Place::Ours, Some(('|', wide))) if wide == width => {
                    bases += 1;
                    Place::Base
                }
                (Place::Ours | Place::Base, Some(('=', wide))) if wide == width => Place::Theirs,
                (Place::Theirs, Some(('>', wide))) if wide == width => Place::Common,
                (place, _) => {
                    match place {
                        Place::Common => [&mut *base, &mut *ours, &mut *theirs]
                            .into_iter()
                            .for_each(|side| side.push_str(line)),
                        Place::Ours => ours.push_str(line),
                        Place::Base => base.push_str(line),
                        Place::Theirs => theirs.push_str(line),
                    }
                    place
                }
            };
        }
        let [base, ours, theirs] = sides;
        (hunks > 0 && place == Place::Common).then(|| Sides {
            base: (bases == hunks).then_some(base),
            ours,
            theirs,
        })
    }
}

/// Returns the character and the width of a conflict marker.
pub(super) fn marker(line: &str) -> Option<(char, usize)> {
    /// The default of git's `conflict-marker-size` attribute.
    const WIDTH: usize = 7;
    let first = line
        .chars()
        .next()
        .filter(|first| "<|=>".contains(*first))?;
    let rest = line.trim_start_matches(first);
    let width = line.len() - rest.len();
    (width >= WIDTH && (rest.is_empty() || rest.starts_with([' ', '\r', '\n'])))
        .then_some((first, width))
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
            format!(
                "- {{url: \"https://h/{name}\", ref: main, commit: \"{commit}\", paths: [{paths}]}}\n"
            )
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
            assert_eq!(merged.lock, lock("a.2.x b.2.x d.2.x o.1.x t.1.x"));
            assert_eq!(merged.both, []);
        }
        // Without a base nothing is known to be dropped.
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

    #[test]
    fn texts_with_markers_are_taken_apart() {
        let plain = "1\n<<<<<<< HEAD\no\n=======\nt\n>>>>>>> topic\n2\n";
        let sides = Sides::of(plain).unwrap();
        assert_eq!(
            (sides.ours.as_str(), sides.theirs.as_str()),
            ("1\no\n2\n", "1\nt\n2\n")
        );
        assert_eq!(sides.base, None);
        let diff3 = "1\r\n<<<<<<< a\r\no\r\n||||||| b\r\nb\r\n=======\r\n>>>>>>> c\r\n";
        let sides = Sides::of(diff3).unwrap();
        assert_eq!(sides.base.as_deref(), Some("1\r\nb\r\n"));
        assert_eq!(sides.theirs, "1\r\n");
        // Wider ones, and a base that was a conflict itself.
        let wide = "<<<<<<<<< a\n=======\n||||||||| b\n<<<<<<<<<<< x\n===========\n>>>>>>>>>>> y\n=========\nt\n>>>>>>>>> c\n";
        assert_eq!(Sides::of(wide).unwrap().ours, "=======\n");
        for none in [
            "",
            "1\n",
            "<<<<<<< a\n",
            "<<<<<<< a\n=======\nt\n",
            "=======\n",
            "<<<<<<<a\n",
        ] {
            assert_eq!(Sides::of(none), None, "{none}");
        }
    }
}
