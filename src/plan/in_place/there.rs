//! What is at the places of localized files: what may be written, and what would be lost.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::Result;
use crate::message::failure::{Failure, Failures, listed, stage};
use crate::plan::Changes;
use crate::plan::files::{File, Localized};
use crate::record::{Lock, StoredFile, sha256_hex};
use crate::tree::Entry;
use crate::workspace::{Files, Workspace};

/// What is at the place of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum There {
    Nothing,
    /// The very file.
    Same,
    /// Another file, or a link.
    Another,
    /// A directory.
    NoFile,
}

/// The files of the tree beside those of the lock.
pub(super) struct OnDisk<'a> {
    workspace: &'a Workspace,
    /// Whether the mode of a file means anything.
    modes: bool,
    /// The localized files of the lock, and what is there of each.
    owned: HashMap<&'a str, There>,
    /// Those that are not as the lock says.
    pub(super) edited: Vec<&'a StoredFile>,
}

impl<'a> OnDisk<'a> {
    pub(super) fn of(workspace: &'a Workspace, held: &'a Lock) -> Result<Self> {
        let modes = match &workspace.files {
            Files::WorkingTree { repo, .. } => repo.config("core.filemode")?.as_deref() != Some("false"),
            Files::Commit { .. } | Files::Disk { .. } | Files::Tree(_) => true,
        };
        let mut on_disk = OnDisk { workspace, modes, owned: HashMap::new(), edited: Vec::new() };
        for file in super::ours(held) {
            let there = on_disk.compare(file)?;
            if there != There::Same {
                on_disk.edited.push(file);
            }
            on_disk.owned.insert(&file.path, there);
        }
        Ok(on_disk)
    }

    fn compare(&self, file: &StoredFile) -> Result<There> {
        let tree = super::own_tree(self.workspace);
        Ok(match tree.entry(&file.path)? {
            None => There::Nothing,
            Some(Entry::File { executable })
                if (!self.modes || executable == file.executable)
                    && sha256_hex(&tree.read(&file.path)?) == file.sha256 =>
            {
                There::Same
            }
            Some(Entry::File { .. } | Entry::Link) => There::Another,
            Some(Entry::Directory | Entry::Submodule) => There::NoFile,
        })
    }

    /// Returns what has to be written and removed for the tree to hold these files, and no others of the lock than
    /// `kept`. Refuses what somebody would lose work by.
    pub(super) fn changes(
        &self,
        localized: &Localized,
        kept: &[&StoredFile],
        overwrite: bool,
    ) -> Result<Changes, Failures> {
        let mut changes: Changes = BTreeMap::new();
        let (mut edited, mut unknown, mut own) = (Vec::new(), Vec::new(), BTreeSet::new());
        let is_lost = |there: There| match there {
            There::Nothing | There::Same => false,
            There::Another => !overwrite,
            There::NoFile => true,
        };
        for (place, (file, entry)) in &localized.files {
            let there = self.compare(entry)?;
            if there == There::Same {
                continue;
            }
            if !localized.is_brought(place) {
                own.insert(place.clone());
            } else if there != There::Nothing {
                match self.owned.get(place.as_str()) {
                    None => unknown.push(place.clone()),
                    Some(there) if is_lost(*there) => edited.push(place.clone()),
                    Some(_) => {}
                }
            }
            changes.insert(place.clone(), Some(File::clone(file)));
        }
        let kept: BTreeSet<&str> = kept.iter().map(|file| file.path.as_str()).collect();
        for (place, there) in &self.owned {
            if localized.files.contains_key(*place) || kept.contains(place) || *there == There::Nothing {
                continue;
            }
            if is_lost(*there) {
                edited.push((*place).to_owned());
            }
            changes.insert((*place).to_owned(), None);
        }
        let mut failures: Vec<Failure> = self.unstaged(own)?.into_iter().collect();
        if !edited.is_empty() {
            edited.sort();
            failures.push(
                Failure::new(format!("localized files were edited by hand: {}", listed(&edited)))
                    .hint("to discard the edits: --overwrite"),
            );
        }
        if !unknown.is_empty() {
            failures.push(
                Failure::new(format!("files are in the way that the lock does not list: {}", listed(&unknown)))
                    .hint("move them away, then run the same command again"),
            );
        }
        if failures.is_empty() { Ok(changes) } else { Err(Failures(failures)) }
    }

    /// Refuses to edit files of the user that differ from the index: the edit could not be told apart from what was
    /// there before.
    fn unstaged(&self, edits: BTreeSet<String>) -> Result<Option<Failure>> {
        let Files::WorkingTree { repo, .. } = &self.workspace.files else {
            return Ok(None);
        };
        if edits.is_empty() {
            return Ok(None);
        }
        let (unstaged, tracked) = (repo.unstaged_paths(&edits)?, repo.tracked_paths()?);
        let differs = |place: &String| unstaged.contains(place) || !tracked.contains_key(place);
        let differ: Vec<String> = edits.into_iter().filter(differs).collect();
        let message = || format!("these files would be edited, and differ from the index: {}", listed(&differ));
        Ok((!differ.is_empty()).then(|| Failure::new(message()).hint(stage(&differ))))
    }
}
