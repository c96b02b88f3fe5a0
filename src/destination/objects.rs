//! Writing trees straight into the object database.

use std::collections::BTreeMap;

use gix::ObjectId;
use gix::objs::tree::EntryKind;

use crate::message::failure::{Failure, Result};
use crate::os::failpoint;
use crate::plan::{Change, Content, ResultFile};
use crate::record::history::trees::lookup;
use crate::tree::objects::object_id;
use crate::tree::path;

/// The trees that were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Written {
    /// The tree of the commit.
    pub tree: ObjectId,
    /// The tree of NEW_DIR.
    pub directory: ObjectId,
}

/// Writes `base` with some files written and others removed. Returns the tree.
pub(crate) fn write_changes(repository: &gix::Repository, base: ObjectId, changes: &[Change]) -> Result<ObjectId> {
    let mut editor = editor(repository, base)?;
    for change in changes {
        let place = path::components(&change.path);
        match &change.to {
            None => editor.remove(place).map_err(|error| failed(&error))?,
            Some((bytes, executable)) => {
                let id = write_blob(repository, bytes)?;
                editor.upsert(place, kind(*executable), id).map_err(|error| failed(&error))?
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

fn write_trees(repository: &gix::Repository, editor: &mut gix::objs::tree::Editor<'_>) -> Result<ObjectId> {
    editor
        .write(|tree| {
            failpoint::before("write a tree");
            repository.write_object(tree).map(gix::Id::detach)
        })
        .map_err(|error| failed(&error))
}

fn failed(error: &dyn std::error::Error) -> Failure {
    Failure::new(format!("could not write to the object database: {}", with_sources(error)))
        .hint("check that the repository can be written and that the disk has room")
}

fn kind(executable: bool) -> EntryKind {
    if executable { EntryKind::BlobExecutable } else { EntryKind::Blob }
}

/// Not the repository's own editor, which wants every blob that a tree names to be at hand: in a partial
/// clone they are not.
fn editor(repository: &gix::Repository, base: ObjectId) -> Result<gix::objs::tree::Editor<'_>> {
    let root =
        repository.find_tree(base).and_then(|tree| Ok(tree.decode()?.to_owned())).map_err(|error| failed(&error))?;
    Ok(gix::objs::tree::Editor::new(root, &repository.objects, repository.object_hash()))
}

/// Writes the files of NEW_DIR and the tree that holds them: `base` (the tree of the source) with
/// `others` (directories to take over, by path) and NEW_DIR put into it.
pub(crate) fn write(
    repository: &gix::Repository,
    base: ObjectId,
    others: &BTreeMap<String, ObjectId>,
    new_dir: &str,
    files: &BTreeMap<String, ResultFile>,
) -> Result<Written> {
    let mut editor = editor(repository, base)?;
    for (place, id) in others {
        editor.upsert(path::components(place), EntryKind::Tree, *id).map_err(|error| failed(&error))?;
    }
    editor.remove(path::components(new_dir)).map_err(|error| failed(&error))?;
    for (place, file) in files {
        let id = match &file.content {
            Content::Stored(id, _) => object_id(id)?,
            Content::Bytes(bytes) => write_blob(repository, bytes)?,
        };
        editor
            .upsert(path::components(new_dir).chain(path::components(place)), kind(file.executable), id)
            .map_err(|error| failed(&error))?;
    }
    let tree = write_trees(repository, &mut editor)?;
    match lookup(repository, tree, new_dir)? {
        Some((_, directory)) => Ok(Written { tree, directory }),
        None => Err(Failure::new(format!("tree {tree} does not hold `{new_dir}` after it was written"))),
    }
}

/// Returns an error with its causes: gix says what failed, the cause says why.
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
