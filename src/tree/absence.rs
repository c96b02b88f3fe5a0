//! Why a path is not in a tree of this repository.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use super::objects::{ObjectTree, object_id};
use super::{Entry, Tree};
use crate::git::Here;

/// Why a local file is not in the tree that is looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Absence {
    /// It is nowhere.
    Nowhere,
    /// It is on disk, but not in the tree: git does not track it, or it is not staged (not
    /// committed, where the tree is a commit).
    Untracked,
    /// It is kept out of git by a rule, at this place, with this pattern. It may be on disk.
    Ignored(String, String),
}

/// Tells why paths are missing. Every path is looked up once.
pub struct Absences {
    here: Rc<Here>,
    on_disk: bool,
    known: RefCell<HashMap<String, Absence>>,
    /// What HEAD holds, if there is one.
    head: OnceCell<Option<ObjectTree>>,
}

impl Absences {
    /// `on_disk` says that what is on disk may end up in the tree that is looked at: not in that of any commit.
    #[must_use]
    pub fn new(here: Rc<Here>, on_disk: bool) -> Self {
        Absences {
            here,
            on_disk,
            known: RefCell::default(),
            head: OnceCell::new(),
        }
    }

    /// Looks up many paths (from the top) with one question to git.
    pub fn learn<'a>(&self, paths: impl IntoIterator<Item = &'a str>) {
        let mut known = self.known.borrow_mut();
        // Each once: several kustomizations may name the same.
        let paths: BTreeSet<&str> = paths
            .into_iter()
            .filter(|path| !known.contains_key(*path))
            .collect();
        let paths: Vec<&str> = paths.into_iter().collect();
        // What git cannot tell is no reason to say less than that the path is missing.
        let mut ignored = self.here.ignored(&paths).unwrap_or_default();
        for path in paths {
            let absence = match (ignored.remove(path), &self.here.top) {
                (Some(rule), _) => Absence::Ignored(rule.place, rule.pattern),
                (None, Some(top)) if self.on_disk && top.join(path).symlink_metadata().is_ok() => {
                    Absence::Untracked
                }
                _ => Absence::Nowhere,
            };
            known.insert(path.to_owned(), absence);
        }
    }

    /// Returns whether there is something on disk at `path` (from the top) that may end up in the tree.
    pub fn is_on_disk(&self, path: &str) -> bool {
        let top = self.here.top.as_ref().filter(|_| self.on_disk);
        top.is_some_and(|top| top.join(path).symlink_metadata().is_ok())
    }

    /// Returns whether `git restore` can bring back `path` (from the top): whether HEAD holds it.
    pub fn is_in_head(&self, path: &str) -> bool {
        let open = || {
            let commit = self.here.commit("HEAD").ok()??;
            ObjectTree::of_here(self.here.clone(), object_id(&commit.tree).ok()?).ok()
        };
        let entry = self.head.get_or_init(open).as_ref();
        let entry = entry.and_then(|tree| tree.entry(path).ok()?);
        matches!(
            entry,
            Some(Entry::File { .. } | Entry::Link | Entry::Directory)
        )
    }

    /// Returns why `path` (from the top) is missing.
    pub fn of(&self, path: &str) -> Absence {
        self.learn([path]);
        let known = self.known.borrow();
        known.get(path).cloned().unwrap_or(Absence::Nowhere)
    }
}
