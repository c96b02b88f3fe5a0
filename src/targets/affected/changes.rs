//! What is different between two trees.

use std::collections::{BTreeSet, HashMap};
use std::ops::Bound;
use std::rc::Rc;

use super::Cause;
use crate::config::Config;
use crate::graph::inputs::Input;
use crate::kustomization::FILE_NAMES;
use crate::message::failure::Result;
use crate::record::{ChangeKind, LOCK_NAME, Lock, Remote};
use crate::targets::{self, IGNORE_NAME, Identity, Targets};
use crate::tree::{self, Entry, Tree, path};

/// Two trees, and where they differ.
pub(crate) struct Changes {
    /// What was.
    pub old: Rc<dyn Tree>,
    /// What is.
    pub new: Rc<dyn Tree>,
    /// The paths at which they differ, each as deep as both have directories.
    paths: BTreeSet<String>,
    /// The directories below which a checkout may convert files otherwise.
    attributes: BTreeSet<String>,
    /// A file with patterns of Flux that is different, or is there no longer, or only now.
    pub ignores: Option<String>,
    /// The remotes that are something else now, or reach something that is, as either lock lists them.
    moved: Lock,
}

impl Changes {
    /// Compares two trees, which differ at `paths`: each as deep as both have directories.
    pub(crate) fn of(old: Rc<dyn Tree>, new: Rc<dyn Tree>, paths: BTreeSet<String>) -> Result<Changes> {
        let lock = |tree: &dyn Tree| -> Result<_> { Ok(Lock::at(tree, LOCK_NAME)?.unwrap_or_default()) };
        let is_attributes = |place: &&String| path::name(place) == ".gitattributes";
        let attributes = paths.iter().filter(is_attributes);
        Ok(Changes {
            ignores: ignores(&[&*old, &*new], &paths)?,
            attributes: attributes.map(|place| path::parent(place).to_owned()).collect(),
            moved: moved(&*lock(&*old)?, &*lock(&*new)?),
            old,
            new,
            paths,
        })
    }

    /// Finds what was deployed and what is.
    pub(crate) fn targets(
        &self,
        config: &Config,
        identity: &dyn Fn() -> Result<Identity>,
    ) -> Result<(Targets, Targets)> {
        Ok((targets::find(&*self.old, config, identity)?, targets::find(&*self.new, config, identity)?))
    }

    /// Returns the first of these inputs that is different.
    pub(crate) fn first_of(&self, inputs: &[Input]) -> Result<Option<Cause>> {
        for input in inputs {
            let cause = match input {
                Input::At(place) => self.at(place)?.map(Cause::Path),
                Input::Below(directory) => self.below(directory)?.map(Cause::Path),
                Input::Remote(remote) => {
                    let moved = remote.locked(&self.moved);
                    moved.map(|remote| Cause::Remote(remote.label()))
                }
                Input::Chart(chart) => {
                    let moved = chart.locked(&self.moved);
                    moved.map(|_| Cause::Remote(chart.label()))
                }
            };
            if cause.is_some() {
                return Ok(cause);
            }
        }
        Ok(None)
    }

    pub(crate) fn was_root(&self, directory: &str) -> Result<bool> {
        Ok(tree::kustomization_in(&*self.old, directory)?.is_some())
    }

    /// Returns the directories in which there was a root, and that are not among `here`, those of the roots that there are.
    pub(crate) fn gone(&self, here: &BTreeSet<&str>) -> Result<BTreeSet<String>> {
        let mut all = BTreeSet::new();
        for place in &self.paths {
            let below = self.old.below(place)?;
            let gone = below
                .iter()
                .chain([place])
                .filter(|place| FILE_NAMES.contains(&path::name(place)) && !here.contains(path::parent(place)));
            for place in gone {
                if let Some(Entry::File { .. } | Entry::Link) = self.old.entry(place)? {
                    all.insert(path::parent(place).to_owned());
                }
            }
        }
        Ok(all)
    }

    /// Returns where the trees differ, if that makes a difference to who asks for `place`.
    fn at(&self, place: &str) -> Result<Option<String>> {
        if let Some(changed) = self.first_above(place) {
            return Ok(Some(changed.to_owned()));
        }
        if self.converts(place) && self.is_converted(place)? {
            return Ok(Some(place.to_owned()));
        }
        Ok(None)
    }

    /// Returns where the trees differ at a path or above it.
    fn first_above<'p>(&self, place: &'p str) -> Option<&'p str> {
        path::and_above(place).find(|above| self.paths.contains(*above))
    }

    /// Returns where the trees differ at or below a directory.
    fn below(&self, directory: &str) -> Result<Option<String>> {
        if let Some(changed) = self.at(directory)? {
            return Ok(Some(changed));
        }
        let inside = match directory {
            "" => String::new(),
            directory => format!("{directory}/"),
        };
        let from = (Bound::Excluded(inside.as_str()), Bound::Unbounded);
        let inside = self.paths.range::<str, _>(from);
        let mut inside = inside.take_while(|changed| path::is_in(changed, directory));
        if let Some(changed) = inside.next() {
            return Ok(Some(changed.clone()));
        }
        let may_convert =
            |attributes: &String| path::is_in(attributes, directory) || path::is_in(directory, attributes);
        if self.attributes.iter().any(may_convert) {
            for place in self.new.below(directory)? {
                if self.is_converted(&place)? {
                    return Ok(Some(place));
                }
            }
        }
        Ok(None)
    }

    /// Returns whether other attributes may apply to a path.
    fn converts(&self, place: &str) -> bool {
        !self.attributes.is_empty()
            && (self.attributes.contains("") || path::and_above(place).any(|above| self.attributes.contains(above)))
    }

    /// Returns whether a checkout gives a file other bytes, although the same are stored.
    fn is_converted(&self, place: &str) -> Result<bool> {
        Ok(matches!(self.new.entry(place)?, Some(Entry::File { .. }))
            && self.old.read(place)? != self.new.read(place)?)
    }
}

/// Returns the first file with patterns of Flux in what differs: also in a directory that only one of the trees has.
fn ignores(trees: &[&dyn Tree], paths: &BTreeSet<String>) -> Result<Option<String>> {
    let is_one = |place: &&String| path::name(place) == IGNORE_NAME;
    for place in paths {
        if is_one(&place) {
            return Ok(Some(place.clone()));
        }
        for tree in trees {
            if let Some(file) = tree.below(place)?.iter().find(is_one) {
                return Ok(Some(file.clone()));
            }
        }
    }
    Ok(None)
}

/// Returns the remotes that are something else in the other lock, and those through which these were found.
fn moved(old: &Lock, new: &Lock) -> Lock {
    let changes = Lock::changes(old, new).into_iter();
    // Where more of one is in use, what was there is the same.
    let changes = changes.filter(|change| change.kind != ChangeKind::Extended);
    let mut todo: Vec<String> = changes.map(|change| change.label).collect();
    let mut by_label: HashMap<String, Vec<&Remote>> = HashMap::new();
    for remote in old.remotes.iter().chain(&new.remotes) {
        by_label.entry(remote.label()).or_default().push(remote);
    }
    let mut moved = Lock::default();
    while let Some(label) = todo.pop() {
        for remote in by_label.remove(&label).into_iter().flatten() {
            todo.extend(remote.through().iter().cloned());
            moved.remotes.push(remote.clone());
        }
    }
    moved.sort();
    moved
}
