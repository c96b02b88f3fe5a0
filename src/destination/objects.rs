//! Writes trees directly into the object database.

use gix::ObjectId;
use gix::objs::tree::{Editor, EntryKind};

use crate::git::object_id;
use crate::message::failure::{Failure, Result};
use crate::os::failpoint;
use crate::plan::Changes;
use crate::record::history::trees::lookup;
use crate::tree::path;

/// The ids of the written trees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WrittenTrees {
    /// The tree of the commit.
    pub tree: ObjectId,
    /// The tree of NEW_DIR; the same as `tree` if there is none.
    pub directory: ObjectId,
}

/// Applies changes to the tree `base`, after adding `others`, the trees of other NEW_DIRs to keep, and removing
/// `new_dir`, the NEW_DIR of the changes; `None` for a repository in place, and for rendered files.
pub(crate) fn write_trees(
    repository: &gix::Repository,
    base: ObjectId,
    others: impl IntoIterator<Item = (String, ObjectId)>,
    changes: &Changes,
    new_dir: Option<&str>,
) -> Result<WrittenTrees> {
    // The repository's own editor requires every blob that a tree names, and a partial clone lacks some.
    let root = repository.find_tree(base).and_then(|tree| Ok(tree.decode()?.to_owned()));
    let root = root.map_err(|error| not_stored(&error))?;
    let mut editor = Editor::new(root, &repository.objects, repository.object_hash());
    // Other copies on the branch stay as they are: their trees are taken over whole, without their files.
    for (path, id) in others {
        editor.upsert(path::components(&path), EntryKind::Tree, id).map_err(|error| not_stored(&error))?;
    }
    // `changes` has every file of NEW_DIR, so an old file that it lacks must go.
    if let Some(new_dir) = new_dir {
        editor.remove(path::components(new_dir)).map_err(|error| not_stored(&error))?;
    }
    for (path, file) in changes {
        let components = path::components(path);
        let Some(file) = file else {
            editor.remove(components).map_err(|error| not_stored(&error))?;
            continue;
        };
        // A blob that the repository has already need not be written, and often not even be read.
        let id = match &file.blob {
            Some(id) => object_id(id)?,
            None => {
                failpoint::before("write a blob");
                repository.write_blob(&file.bytes).map_err(|error| not_stored(&error))?.detach()
            }
        };
        let kind = if file.executable { EntryKind::BlobExecutable } else { EntryKind::Blob };
        editor.upsert(components, kind, id).map_err(|error| not_stored(&error))?;
    }
    let tree = editor.write(|tree| {
        failpoint::before("write a tree");
        repository.write_object(tree).map(gix::Id::detach)
    });
    let tree = tree.map_err(|error| not_stored(&error))?;
    // A repository that is localized in place has no directory of its own for the result.
    let Some(new_dir) = new_dir else {
        return Ok(WrittenTrees { tree, directory: tree });
    };
    match lookup(repository, tree, new_dir)? {
        Some((_, directory)) => Ok(WrittenTrees { tree, directory }),
        None => Err(Failure::new(format!("tree {tree} does not hold `{new_dir}` after it was written"))),
    }
}

/// The failure of writing an object. Its message has all causes of the error of gix, because the outer error does not
/// always name them.
fn not_stored(error: &dyn std::error::Error) -> Failure {
    let mut message = "could not write to the object database".to_owned();
    for error in std::iter::successors(Some(error), |error| error.source()) {
        let cause = error.to_string();
        if !message.ends_with(&cause) {
            message = format!("{message}: {cause}");
        }
    }
    Failure::new(message).hint("check that the repository can be written and that the disk has room")
}
