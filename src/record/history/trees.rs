//! Reading trees from the object database, and comparing them.

use std::collections::{BTreeMap, BTreeSet};

use gix::ObjectId;
use gix::objs::tree::{EntryKind, EntryMode};

use crate::message::failure::{Failure, Result};
use crate::tree::path;

pub(crate) type TreeEntry = (EntryMode, ObjectId);

/// Returns the entries of a tree object, by name.
pub(crate) fn entries(repository: &gix::Repository, tree: ObjectId) -> Result<BTreeMap<Vec<u8>, TreeEntry>> {
    let object =
        repository.find_object(tree).map_err(|error| Failure::new(format!("tree {tree} cannot be read: {error}")))?;
    let mut entries = BTreeMap::new();
    for entry in gix::objs::TreeRefIter::from_bytes(&object.data, repository.object_hash()) {
        let entry = entry.map_err(|error| Failure::new(format!("tree {tree} cannot be read: {error}")))?;
        entries.insert(entry.filename.to_vec(), (entry.mode, entry.oid.to_owned()));
    }
    Ok(entries)
}

/// Returns what lies at `place` of a tree.
pub(crate) fn lookup(repository: &gix::Repository, tree: ObjectId, place: &str) -> Result<Option<TreeEntry>> {
    let mut found: TreeEntry = (EntryKind::Tree.into(), tree);
    for component in path::components(place) {
        if !found.0.is_tree() {
            return Ok(None);
        }
        match entries(repository, found.1)?.remove(component.as_bytes()) {
            Some(entry) => found = entry,
            None => return Ok(None),
        }
    }
    Ok(Some(found))
}

/// Returns the paths at which two trees differ, each as deep as both have directories. What lies in
/// one of the directories `apart` of the new tree is not compared.
pub(crate) fn differences(
    repository: &gix::Repository,
    old: ObjectId,
    new: ObjectId,
    apart: &BTreeSet<&str>,
) -> Result<Vec<String>> {
    let mut paths = Vec::new();
    let mut todo = vec![(String::new(), Some(old), new)];
    while let Some((directory, old, new)) = todo.pop() {
        if old == Some(new) {
            continue;
        }
        let mut old = match old {
            Some(old) => entries(repository, old)?,
            None => BTreeMap::new(),
        };
        for (name, (mode, id)) in entries(repository, new)? {
            let place = path::join(&directory, &String::from_utf8_lossy(&name));
            let was = old.remove(&name);
            if was == Some((mode, id)) || apart.contains(place.as_str()) {
                continue;
            }
            let was = was.filter(|(mode, _)| mode.is_tree()).map(|(_, id)| id);
            // A directory that is there only because of what lies apart may hold other things.
            let leads_there = apart.iter().any(|apart| path::is_in(apart, &place));
            if mode.is_tree() && (was.is_some() || leads_there) {
                todo.push((place, was, id))
            } else {
                paths.push(place)
            }
        }
        for name in old.into_keys() {
            paths.push(path::join(&directory, &String::from_utf8_lossy(&name)));
        }
    }
    paths.sort();
    Ok(paths)
}

/// Returns the files at which two trees differ, with what the new one holds there: none for one that is gone.
pub(crate) fn changed_files(
    repository: &gix::Repository,
    old: ObjectId,
    new: ObjectId,
) -> Result<BTreeMap<String, Option<TreeEntry>>> {
    let mut changed = BTreeMap::new();
    for place in differences(repository, old, new, &BTreeSet::new())? {
        for (tree, is_new) in [(old, false), (new, true)] {
            let mut todo = vec![(place.clone(), lookup(repository, tree, &place)?)];
            while let Some((place, entry)) = todo.pop() {
                match entry {
                    None => {}
                    Some((mode, id)) if mode.is_tree() => todo.extend(
                        entries(repository, id)?
                            .into_iter()
                            .map(|(name, entry)| (path::join(&place, &String::from_utf8_lossy(&name)), Some(entry))),
                    ),
                    Some(entry) => drop(changed.insert(place, is_new.then_some(entry))),
                }
            }
        }
    }
    Ok(changed)
}
