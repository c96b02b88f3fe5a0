//! Why a path is not in a tree of this repository.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use super::ignored::Ignores;
use super::objects::{ObjectTree, object_id};
use super::{Entry, SharedTree, Tree};
use crate::git::LocalRepo;
use crate::os::limits::PATH;

/// Why a local file is not in the tree that is looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Absence {
    Nowhere,
    /// It is on disk, but not in the tree: git does not track it, or it is not staged (not
    /// committed, where the tree is a commit).
    Untracked,
    /// It is kept out of git by a rule, at this place, with this pattern. It may be on disk.
    Ignored(String, String),
}

/// Explains why paths are missing. Every path is looked up once.
pub struct Absences {
    here: Rc<LocalRepo>,
    tree: SharedTree,
    ignores: Ignores,
    on_disk: bool,
    known: RefCell<HashMap<String, Absence>>,
    /// What HEAD holds, if there is one.
    head: OnceCell<Option<ObjectTree>>,
}

impl Absences {
    /// `tree` is the tree to look at; its ignore files count. `on_disk` is whether files on disk may end up in it: not
    /// in that of a commit.
    pub fn new(here: Rc<LocalRepo>, tree: SharedTree, on_disk: bool) -> Self {
        Absences { here, tree, ignores: Ignores::default(), on_disk, known: RefCell::default(), head: OnceCell::new() }
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
        matches!(entry, Some(Entry::File { .. } | Entry::Link | Entry::Directory))
    }

    /// Returns why `path` (from the top) is missing.
    pub fn of(&self, path: &str) -> Absence {
        if path.len() > PATH.most {
            return Absence::Nowhere;
        }
        if let Some(known) = self.known.borrow().get(path) {
            return known.clone();
        }
        let place = self.here.top.as_ref().filter(|_| self.on_disk);
        let place = place.map(|top| top.join(path));
        let is_directory = place.as_ref().is_some_and(|place| place.is_dir());
        let absence = match self.ignores.rule(&*self.tree, path, is_directory) {
            Some(rule) => Absence::Ignored(rule.place, rule.pattern),
            None if place.is_some_and(|place| place.symlink_metadata().is_ok()) => Absence::Untracked,
            None => Absence::Nowhere,
        };
        let mut known = self.known.borrow_mut();
        known.insert(path.to_owned(), absence.clone());
        absence
    }
}
