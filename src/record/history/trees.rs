//! Reads and compares trees of the object database.

use std::collections::{BTreeMap, BTreeSet};

use gix::ObjectId;
use gix::objs::tree::{EntryKind, EntryMode};

use crate::message::failure::{Failure, Result};
use crate::tree::path;

pub(crate) type TreeEntry = (EntryMode, ObjectId);

/// The mode and the id of each entry of a tree object, by name. Fails if this clone does not have the tree, or cannot
/// parse it.
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

/// The mode and the id of the entry at `path` of a tree object. `None` if the tree has no such path.
pub(crate) fn lookup(repository: &gix::Repository, tree: ObjectId, path: &str) -> Result<Option<TreeEntry>> {
    let mut current: TreeEntry = (EntryKind::Tree.into(), tree);
    for component in path::components(path) {
        if !current.0.is_tree() {
            return Ok(None);
        }
        match entries(repository, current.1)?.remove(component.as_bytes()) {
            Some(entry) => current = entry,
            None => return Ok(None),
        }
    }
    Ok(Some(current))
}

/// A path at which two trees differ, with the entry that each of them has there.
struct Difference {
    path: String,
    old: Option<TreeEntry>,
    new: Option<TreeEntry>,
}

/// The paths at which two trees differ, as deep as both have directories. The `excluded` directories of the new tree
/// are not compared; one that only the old tree has is a difference.
pub(crate) fn differences(
    repository: &gix::Repository,
    old: ObjectId,
    new: ObjectId,
    excluded: &BTreeSet<&str>,
) -> Result<Vec<String>> {
    let differences = compare(repository, old, new, excluded)?;
    let paths: BTreeSet<String> = differences.into_iter().map(|difference| difference.path).collect();
    Ok(paths.into_iter().collect())
}

/// Compares two trees like [`differences`]. The entries are returned, too, because a path whose name is not UTF-8
/// cannot be looked up again.
fn compare(
    repository: &gix::Repository,
    old: ObjectId,
    new: ObjectId,
    excluded: &BTreeSet<&str>,
) -> Result<Vec<Difference>> {
    let mut differences = Vec::new();
    // A work list: trees come from anybody, and may be nested deeply.
    let mut todo = vec![(String::new(), Some(old), new)];
    while let Some((directory, old, new)) = todo.pop() {
        let mut old = old.map_or_else(|| Ok(BTreeMap::new()), |old| entries(repository, old))?;
        for (name, (mode, id)) in entries(repository, new)? {
            let path = path::join(&directory, &String::from_utf8_lossy(&name));
            let old_entry = old.remove(&name);
            // Equal ids mean equal content, so a large unchanged directory costs nothing.
            if old_entry == Some((mode, id)) || excluded.contains(path.as_str()) {
                continue;
            }
            let old_directory = old_entry.filter(|(mode, _)| mode.is_tree()).map(|(_, id)| id);
            // A new directory is one difference, unless an excluded directory is in it: then its other entries count.
            let has_excluded = excluded.iter().any(|excluded| path::is_in(excluded, &path));
            if mode.is_tree() && (old_directory.is_some() || has_excluded) {
                todo.push((path, old_directory, id))
            } else {
                differences.push(Difference { path, old: old_entry, new: Some((mode, id)) })
            }
        }
        // The entries that are still in `old` are not in the new tree.
        for (name, entry) in old {
            let path = path::join(&directory, &String::from_utf8_lossy(&name));
            differences.push(Difference { path, old: Some(entry), new: None });
        }
    }
    Ok(differences)
}

/// The files at which two trees differ, each with its entry in the new tree; `None` if it was removed. A directory that
/// only one of the trees has counts by its files. The `excluded` directories of the new tree are not compared.
pub(crate) fn changed_files(
    repository: &gix::Repository,
    old: ObjectId,
    new: ObjectId,
    excluded: &BTreeSet<&str>,
) -> Result<BTreeMap<String, Option<TreeEntry>>> {
    let mut changed = BTreeMap::new();
    for Difference { path, old, new } in compare(repository, old, new, excluded)? {
        // A path may be a file in one tree and a directory in the other, so both sides are listed: first the old one,
        // whose files count as removed unless the new one has them, too.
        for (entry, is_new) in [(old, false), (new, true)] {
            let mut todo = Vec::from_iter(entry.map(|entry| (path.clone(), entry)));
            while let Some((path, (mode, id))) = todo.pop() {
                if mode.is_tree() {
                    let entries = entries(repository, id)?.into_iter();
                    todo.extend(
                        entries.map(|(name, entry)| (path::join(&path, &String::from_utf8_lossy(&name)), entry)),
                    );
                } else {
                    changed.insert(path, is_new.then_some((mode, id)));
                }
            }
        }
    }
    Ok(changed)
}
