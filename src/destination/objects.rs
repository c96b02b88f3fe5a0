//! Writing trees straight into the object database.

use gix::ObjectId;
use gix::objs::tree::{Editor, EntryKind};

use crate::git::object_id;
use crate::message::failure::{Failure, Result};
use crate::os::failpoint;
use crate::plan::Plan;
use crate::record::history::trees::lookup;
use crate::tree::path;

/// The trees that were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Written {
    /// The tree of the commit.
    pub tree: ObjectId,
    /// The tree of NEW_DIR, or the same.
    pub directory: ObjectId,
}

/// Writes what a plan makes of `base`, the tree of the source, with `others` (directories to take over) put into it.
pub(crate) fn write(
    repository: &gix::Repository,
    base: ObjectId,
    others: impl IntoIterator<Item = (String, ObjectId)>,
    plan: &Plan,
) -> Result<Written> {
    // Not the repository's own editor, which wants every blob that a tree names to be at hand: in a partial clone they are
    // not.
    let root = repository.find_tree(base).and_then(|tree| Ok(tree.decode()?.to_owned()));
    let root = root.map_err(|error| failed(&error))?;
    let mut editor = Editor::new(root, &repository.objects, repository.object_hash());
    for (place, id) in others {
        editor.upsert(path::components(&place), EntryKind::Tree, id).map_err(|error| failed(&error))?;
    }
    if let Some(new_dir) = &plan.new_dir {
        editor.remove(path::components(new_dir)).map_err(|error| failed(&error))?;
    }
    for (place, file) in &plan.changes {
        let place = path::components(place);
        let Some(file) = file else {
            editor.remove(place).map_err(|error| failed(&error))?;
            continue;
        };
        let id = match &file.blob {
            Some(id) => object_id(id)?,
            None => {
                failpoint::before("write a blob");
                repository.write_blob(&file.bytes).map_err(|error| failed(&error))?.detach()
            }
        };
        let kind = if file.executable { EntryKind::BlobExecutable } else { EntryKind::Blob };
        editor.upsert(place, kind, id).map_err(|error| failed(&error))?;
    }
    let tree = editor.write(|tree| {
        failpoint::before("write a tree");
        repository.write_object(tree).map(gix::Id::detach)
    });
    let tree = tree.map_err(|error| failed(&error))?;
    let Some(new_dir) = &plan.new_dir else {
        return Ok(Written { tree, directory: tree });
    };
    match lookup(repository, tree, new_dir)? {
        Some((_, directory)) => Ok(Written { tree, directory }),
        None => Err(Failure::new(format!("tree {tree} does not hold `{new_dir}` after it was written"))),
    }
}

/// gix says what failed, the causes say why.
fn failed(error: &dyn std::error::Error) -> Failure {
    let all = std::iter::successors(Some(error), |error| error.source()).map(ToString::to_string);
    Failure::new(format!("could not write to the object database: {}", all.collect::<Vec<_>>().join(": ")))
        .hint("check that the repository can be written and that the disk has room")
}
