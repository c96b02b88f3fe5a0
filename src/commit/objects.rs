//! Writing trees straight into the object database, and comparing them.

use std::collections::{BTreeMap, BTreeSet};

use gix::ObjectId;
use gix::objs::tree::{EntryKind, EntryMode};

use super::working::Change;
use crate::failpoint;
use crate::failure::{Failure, Result};
use crate::localize::{Content, ResultFile};
use crate::tree::objects::object_id;
use crate::tree::path;

/// One entry of a tree: its mode and its id.
pub type TreeEntry = (EntryMode, ObjectId);

/// Returns the entries of a tree object, by name.
///
/// # Errors
/// When it cannot be read.
pub fn entries(
    repository: &gix::Repository,
    tree: ObjectId,
) -> Result<BTreeMap<Vec<u8>, TreeEntry>> {
    let object = repository
        .find_object(tree)
        .map_err(|error| Failure::new(format!("tree {tree} cannot be read: {error}")))?;
    let mut entries = BTreeMap::new();
    for entry in gix::objs::TreeRefIter::from_bytes(&object.data, repository.object_hash()) {
        let entry =
            entry.map_err(|error| Failure::new(format!("tree {tree} cannot be read: {error}")))?;
        entries.insert(entry.filename.to_vec(), (entry.mode, entry.oid.to_owned()));
    }
    Ok(entries)
}

/// Returns what lies at `place` of a tree.
///
/// # Errors
/// When a tree on the way cannot be read.
pub fn lookup(
    repository: &gix::Repository,
    tree: ObjectId,
    place: &str,
) -> Result<Option<TreeEntry>> {
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
///
/// # Errors
/// When a tree cannot be read.
pub fn differences(
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

/// The trees that were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// The tree of the commit.
    pub tree: ObjectId,
    /// The tree of NEW_DIR.
    pub directory: ObjectId,
}

/// Writes `base` with some files written and others removed. Returns the tree.
///
/// # Errors
/// When an object cannot be written.
pub fn write_changes(
    repository: &gix::Repository,
    base: ObjectId,
    changes: &[Change],
) -> Result<ObjectId> {
    let mut editor = editor(repository, base)?;
    for change in changes {
        let place = path::components(&change.path);
        match &change.to {
            None => editor.remove(place).map_err(|error| failed(&error))?,
            Some((bytes, executable)) => {
                let id = write_blob(repository, bytes)?;
                editor
                    .upsert(place, kind(*executable), id)
                    .map_err(|error| failed(&error))?
            }
        };
    }
    write_trees(repository, &mut editor)
}

fn write_blob(repository: &gix::Repository, bytes: &[u8]) -> Result<ObjectId> {
    failpoint::before("write a blob");
    let id = repository.write_blob(bytes);
    Ok(id.map_err(|error| failed(&error))?.detach())
}

fn write_trees(
    repository: &gix::Repository,
    editor: &mut gix::objs::tree::Editor<'_>,
) -> Result<ObjectId> {
    editor
        .write(|tree| {
            failpoint::before("write a tree");
            repository.write_object(tree).map(gix::Id::detach)
        })
        .map_err(|error| failed(&error))
}

fn failed(error: &dyn std::error::Error) -> Failure {
    Failure::new(format!(
        "could not write to the object database: {}",
        with_sources(error)
    ))
    .hint("check that the repository can be written and that the disk has room")
}

fn kind(executable: bool) -> EntryKind {
    if executable {
        EntryKind::BlobExecutable
    } else {
        EntryKind::Blob
    }
}

/// Not the repository's own editor, which wants every blob that a tree names to be at hand: in a partial
/// clone they are not.
fn editor(repository: &gix::Repository, base: ObjectId) -> Result<gix::objs::tree::Editor<'_>> {
    let root = repository
        .find_tree(base)
        .and_then(|tree| Ok(tree.decode()?.to_owned()))
        .map_err(|error| failed(&error))?;
    Ok(gix::objs::tree::Editor::new(
        root,
        &repository.objects,
        repository.object_hash(),
    ))
}

/// Writes the files of NEW_DIR and the tree that holds them: `base` (the tree of the source) with
/// `others` (directories to take over, by path) and NEW_DIR put into it.
///
/// # Errors
/// When an object cannot be written.
pub fn write(
    repository: &gix::Repository,
    base: ObjectId,
    others: &BTreeMap<String, ObjectId>,
    new_dir: &str,
    files: &BTreeMap<String, ResultFile>,
) -> Result<Written> {
    let mut editor = editor(repository, base)?;
    for (place, id) in others {
        editor
            .upsert(path::components(place), EntryKind::Tree, *id)
            .map_err(|error| failed(&error))?;
    }
    editor
        .remove(path::components(new_dir))
        .map_err(|error| failed(&error))?;
    for (place, file) in files {
        let id = match &file.content {
            Content::Stored(id, _) => object_id(id)?,
            Content::Bytes(bytes) => write_blob(repository, bytes)?,
        };
        editor
            .upsert(
                path::components(new_dir).chain(path::components(place)),
                kind(file.executable),
                id,
            )
            .map_err(|error| failed(&error))?;
    }
    let tree = write_trees(repository, &mut editor)?;
    match lookup(repository, tree, new_dir)? {
        Some((_, directory)) => Ok(Written { tree, directory }),
        None => Err(Failure::new(format!(
            "tree {tree} does not hold `{new_dir}` after it was written"
        ))),
    }
}

/// Returns an error with what caused it: gix says what it did, the cause says why that failed.
fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        next = cause.source();
    }
    text
}
