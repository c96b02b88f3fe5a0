//! Compares the localized files with the tree: which are to be written, and which edits would be lost.

use std::collections::{BTreeMap, BTreeSet};

use super::{Result, ours, user_tree};
use crate::message::failure::{Failure, Failures, command, listed, pathspec, stage};
use crate::plan::Changes;
use crate::plan::files::LocalizedRoots;
use crate::record::stored::localized_dir;
use crate::record::{Lock, Mode, StoredFile, sha256_hex};
use crate::tree::{Entry, path};
use crate::workspace::{Files, Workspace};

/// How a file of the tree compares with an entry of a lock.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FileState {
    Missing,
    Same,
    Differs,
}

/// The files to write and to remove, so that the tree has the localized files, and no other files of `old_lock` than
/// those in `lock`. Fails if somebody would lose work, and if other files are where localized ones go.
pub(super) fn changes(
    workspace: &Workspace,
    old_lock: &Lock,
    lock: &Lock,
    localized: &LocalizedRoots,
    overwrite: bool,
) -> Result<Changes, Failures> {
    // Whether the file system stores the modes of files.
    let modes = match &workspace.files {
        Files::WorkingTree { repo, .. } => repo.has_modes()?,
        _ => true,
    };
    let tree = user_tree(workspace);
    let compare = |file: &StoredFile| -> Result<FileState> {
        Ok(match tree.entry(&file.path)? {
            None => FileState::Missing,
            Some(Entry::File { executable })
                if (!modes || executable == (file.mode == Mode::Executable))
                    && sha256_hex(&tree.read(&file.path)?) == file.sha256 =>
            {
                FileState::Same
            }
            Some(_) => FileState::Differs,
        })
    };
    let owned: BTreeMap<&str, &StoredFile> = ours(old_lock).map(|file| (file.path.as_str(), file)).collect();
    let mut changes = Changes::new();
    let (mut edited, mut in_the_way, mut user_edits) = (BTreeSet::new(), Vec::new(), BTreeSet::new());
    // Files to write: an edited localized file, or a foreign one, must not be overwritten.
    for (path, (file, entry)) in &localized.files {
        let state = compare(entry)?;
        if state == FileState::Same {
            continue;
        }
        // A user's file can be restored only from the index, so unstaged edits of it are refused below.
        if !localized.is_fetched(path) {
            user_edits.insert(path.clone());
        } else if state == FileState::Differs {
            match owned.get(path.as_str()) {
                None => in_the_way.push(path.clone()),
                Some(owned) if !overwrite && compare(owned)? == FileState::Differs => {
                    edited.insert(path.clone());
                }
                Some(_) => {}
            }
        }
        changes.insert(path.clone(), Some(file.clone()));
    }
    // A new directory `localized-files` must be empty.
    let fetched = localized.files.keys().filter(|path| localized.is_fetched(path));
    let homes: BTreeSet<&str> = fetched.filter_map(|path| localized_dir(path)).collect();
    for home in homes.into_iter().filter(|home| !workspace.owns(home)) {
        let is_free = matches!(tree.entry(home)?, None | Some(Entry::Directory));
        let others = tree.below(home)?.into_iter();
        let others = others.filter(|path| !owned.contains_key(path.as_str()) && !localized.files.contains_key(path));
        in_the_way.extend(others.chain((!is_free).then(|| home.to_owned())));
    }
    // Files to remove: those that the new lock does not list any more.
    let listed_paths: BTreeSet<&str> = lock.files.iter().map(|file| file.path.as_str()).collect();
    let mut gone = owned;
    gone.retain(|path, _| !listed_paths.contains(path) && !localized.files.contains_key(*path));
    for (path, file) in &gone {
        let state = compare(file)?;
        if state == FileState::Differs && !overwrite {
            edited.insert((*path).to_owned());
        }
        if state != FileState::Missing {
            changes.insert((*path).to_owned(), None);
        }
    }
    let edited = Vec::from_iter(edited);
    // `update` has no `--overwrite`, so the roots beside these files are named for `vendor`.
    let roots = edited.iter().filter_map(|path| Some(pathspec(path::parent(localized_dir(path)?))));
    let discard = command("git kustomize-localize vendor --overwrite", roots.collect::<BTreeSet<_>>());
    let mut failures: Vec<Failure> = unstaged_failure(workspace, user_edits)?.into_iter().collect();
    // All reasons are reported at once, or else people would need a run to see each.
    let mut refuse = |paths: Vec<String>, problem: &str, hint: &str| {
        if !paths.is_empty() {
            failures.push(Failure::new(format!("{problem}: {}", listed(&paths))).hint(hint));
        }
    };
    refuse(edited, "localized files were edited by hand", &format!("to discard the edits: {discard}"));
    refuse(
        in_the_way,
        "files that the lock does not list are in the way",
        "move them away, then run the same command again",
    );
    Failures::if_any(failures)?;
    Ok(changes)
}

/// The failure if files that are to be edited differ from the index: nobody could tell the edits of the user from ours.
/// `None` if none does, or if there is no index because the files are not in a working tree.
fn unstaged_failure(workspace: &Workspace, edits: BTreeSet<String>) -> Result<Option<Failure>> {
    let Files::WorkingTree { repo, tree, .. } = &workspace.files else {
        return Ok(None);
    };
    if edits.is_empty() {
        return Ok(None);
    }
    let unstaged = repo.unstaged_paths(&edits)?;
    let differ: Vec<String> =
        edits.into_iter().filter(|path| unstaged.contains(path) || !tree.is_tracked(path)).collect();
    if differ.is_empty() {
        return Ok(None);
    }
    let message = format!("files to edit differ from the index: {}", listed(&differ));
    Ok(Some(Failure::new(message).hint(stage(&differ))))
}
