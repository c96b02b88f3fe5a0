//! What is at the places of localized files: what may be written, and what would be lost.

use std::collections::{BTreeMap, BTreeSet};

use super::{Result, ours, own_tree};
use crate::message::failure::{Failure, Failures, listed, stage};
use crate::plan::Changes;
use crate::plan::files::Localized;
use crate::record::stored::home;
use crate::record::{Lock, Mode, StoredFile, sha256_hex};
use crate::tree::Entry;
use crate::workspace::{Files, Workspace};

/// Returns what has to be written and removed for the tree to hold what is localized, and no other files of `held` than
/// those of `lock`. Refuses what somebody would lose work by.
pub(super) fn changes(
    workspace: &Workspace,
    held: &Lock,
    lock: &Lock,
    localized: &Localized,
    overwrite: bool,
) -> Result<Changes, Failures> {
    // Whether the mode of a file means anything.
    let modes = match &workspace.files {
        Files::WorkingTree { repo, .. } => repo.has_modes()?,
        _ => true,
    };
    let tree = own_tree(workspace);
    // Whether the very file is at its place; none where nothing is.
    let compare = |file: &StoredFile| -> Result<Option<bool>> {
        Ok(match tree.entry(&file.path)? {
            None => None,
            Some(Entry::File { executable }) if !modes || executable == (file.mode == Mode::Executable) => {
                Some(sha256_hex(&tree.read(&file.path)?) == file.sha256)
            }
            Some(_) => Some(false),
        })
    };
    let is_lost = |there: Option<bool>| there == Some(false) && !overwrite;
    let owned: BTreeMap<&str, &StoredFile> = ours(held).map(|file| (file.path.as_str(), file)).collect();
    let mut changes = Changes::new();
    let (mut edited, mut in_the_way, mut own) = (BTreeSet::new(), Vec::new(), BTreeSet::new());
    for (place, (file, entry)) in &localized.files {
        let there = compare(entry)?;
        if there == Some(true) {
            continue;
        }
        if !localized.is_brought(place) {
            own.insert(place.clone());
        } else if there.is_some() {
            match owned.get(place.as_str()) {
                None => in_the_way.push(place.clone()),
                Some(owned) if is_lost(compare(owned)?) => drop(edited.insert(place.clone())),
                Some(_) => {}
            }
        }
        changes.insert(place.clone(), Some(file.clone()));
    }
    let brought = localized.files.keys().filter(|place| localized.is_brought(place));
    let homes: BTreeSet<&str> = brought.filter_map(|place| home(place)).collect();
    for home in homes.into_iter().filter(|home| !workspace.owns(home)) {
        let is_free = matches!(tree.entry(home)?, None | Some(Entry::Directory));
        let others = tree.below(home)?.into_iter();
        let is_other = |place: &String| !owned.contains_key(place.as_str()) && !localized.files.contains_key(place);
        in_the_way.extend(others.filter(is_other).chain((!is_free).then(|| home.to_owned())));
    }
    let kept: BTreeSet<&str> = lock.files.iter().map(|file| file.path.as_str()).collect();
    let is_gone = |place: &str| !kept.contains(place) && !localized.files.contains_key(place);
    for (place, file) in owned.iter().filter(|(place, _)| is_gone(place)) {
        let there = compare(file)?;
        if is_lost(there) {
            edited.insert((*place).to_owned());
        }
        if there.is_some() {
            changes.insert((*place).to_owned(), None);
        }
    }
    let edited = Vec::from_iter(edited);
    let mut failures: Vec<Failure> = unstaged(workspace, own)?.into_iter().collect();
    let mut refuse = |places: Vec<String>, what: &str, hint: &str| {
        if !places.is_empty() {
            failures.push(Failure::new(format!("{what}: {}", listed(&places))).hint(hint));
        }
    };
    refuse(edited, "localized files were edited by hand", "to discard the edits: --overwrite");
    refuse(
        in_the_way,
        "files that the lock does not list are in the way",
        "move them away, then run the same command again",
    );
    if failures.is_empty() { Ok(changes) } else { Err(Failures(failures)) }
}

/// Refuses to edit files of the user that differ from the index: the edit could not be told apart from what was
/// there before.
fn unstaged(workspace: &Workspace, edits: BTreeSet<String>) -> Result<Option<Failure>> {
    let Files::WorkingTree { repo, tree, .. } = &workspace.files else {
        return Ok(None);
    };
    if edits.is_empty() {
        return Ok(None);
    }
    let unstaged = repo.unstaged_paths(&edits)?;
    let differs = |place: &String| unstaged.contains(place) || !tree.is_tracked(place);
    let differ: Vec<String> = edits.into_iter().filter(differs).collect();
    let message = || format!("files to edit differ from the index: {}", listed(&differ));
    Ok((!differ.is_empty()).then(|| Failure::new(message()).hint(stage(&differ))))
}
