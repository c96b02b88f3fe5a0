//! Which objects nothing deploys: what is archived names directories that are no longer there.

use std::collections::{BTreeMap, BTreeSet};

use super::{Found, Targets};
use crate::kustomization::{self, FILE_NAMES};
use crate::message::failure::Result;
use crate::tree::{self, Entry, Resolved, Tree, path};

impl Targets {
    /// Returns the files of objects that nothing deploys, each with the topmost directory of which nothing is deployed;
    /// none where what is deployed reaches no object, so that all are deployed from elsewhere. An object may be so, too,
    /// in whose directory there is another one that nothing reaches, and that deploys something.
    pub(crate) fn undeployed(&self, tree: &dyn Tree) -> Result<BTreeMap<String, String>> {
        let mut reached = BTreeSet::new();
        let mut deploying = BTreeSet::new();
        for (target, here) in self.here() {
            let (Found::Kustomization(directory)
            | Found::Directory(directory)
            | Found::Chart(directory)
            | Found::Plugin(directory)) = &here.found
            else {
                continue;
            };
            deploying.insert(target.object.file.as_str());
            let components = target.build.components.iter();
            let components = components.filter_map(|one| path::resolve(&here.path, &one.text));
            for directory in components.chain([directory.clone()]) {
                reached.extend(files_of(tree, &directory)?);
                reached.insert(directory);
            }
        }
        // What the configuration declares is deployed because it says so.
        let objects = self.targets.iter().map(|target| &target.object);
        let objects = objects.filter(|object| object.kind != "target");
        let files: BTreeSet<&str> = objects.map(|object| object.file.as_str()).collect();
        if !files.iter().any(|file| reached.contains(*file)) {
            return Ok(BTreeMap::new());
        }
        let by_hand = deploying.iter().filter(|file| !reached.contains(**file));
        let by_hand: BTreeSet<&str> = by_hand.map(|file| path::parent(file)).collect();
        let is_used = |directory: &str| {
            let mut used = reached.iter().map(String::as_str).chain(deploying.clone());
            used.any(|file| path::is_in(file, directory))
        };
        let undeployed = files.into_iter().filter_map(|file| {
            if reached.contains(file) || by_hand.contains(path::parent(file)) {
                return None;
            }
            let above = path::and_above(path::parent(file));
            let unused = above.take_while(|above| !is_used(above)).last()?;
            Some((file.to_owned(), unused.to_owned()))
        });
        Ok(undeployed.collect())
    }
}

/// Returns the files of the tree that the build of a directory reads: those that its kustomization leads to, or that
/// Flux finds where there is none.
fn files_of(tree: &dyn Tree, directory: &str) -> Result<BTreeSet<String>> {
    let mut files = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut todo = vec![(directory.to_owned(), true)];
    while let Some((directory, is_scanned)) = todo.pop() {
        if !seen.insert((directory.clone(), is_scanned)) {
            continue;
        }
        let mut root = None;
        for name in FILE_NAMES {
            let place = path::join(&directory, name);
            if let Resolved::File { path, .. } = tree::resolve(tree, &place)? {
                root = Some(path);
                break;
            }
        }
        if let Some(root) = root {
            let Ok(read) = kustomization::read(&tree.read(&root)?) else {
                continue;
            };
            for reference in read.references {
                let Some(place) = path::resolve(&directory, &reference.text) else {
                    continue;
                };
                match tree::resolve(tree, &place)? {
                    Resolved::File { path, .. } => {
                        files.insert(path);
                    }
                    Resolved::Directory { path } => todo.push((path, false)),
                    _ => {}
                }
            }
        } else if is_scanned {
            for name in tree.names(&directory)? {
                let place = path::join(&directory, &name);
                match tree.entry(&place)? {
                    Some(Entry::Directory) => todo.push((place, true)),
                    Some(Entry::File { .. }) => {
                        files.insert(place);
                    }
                    _ => {}
                }
            }
        }
    }
    Ok(files)
}
