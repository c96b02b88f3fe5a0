//! Compares the localized files with the tree: which are to be written, and which edits would be lost.

use std::collections::{BTreeMap, BTreeSet};

use super::{Result, ours, user_tree};
use crate::message::failure::{Failure, Failures, command, listed, pathspec, stage};
use crate::plan::Changes;
use crate::plan::files::LocalizedRoots;
use crate::record::stored::localized_dir;
use crate::record::{Lock, Mode, StoredFile, sha256_hex};
use crate::tree::{Entry, Tree, path};
use crate::workspace::{Files, Workspace};

/// The files to write and to remove, so that the tree has the localized files, and no other files of `old_lock` than
/// those in `lock`. Fails if somebody would lose work, and if other files are where localized ones go.
pub(super) fn changes(
    workspace: &Workspace,
    old_lock: &Lock,
    lock: &Lock,
    localized: &LocalizedRoots,
    overwrite: bool,
) -> Result<Changes, Failures> {
    let mut comparison = Comparison {
        tree: user_tree(workspace),
        has_modes: match &workspace.files {
            Files::WorkingTree { repo, .. } => repo.has_modes()?,
            _ => true,
        },
        localized,
        owned: ours(old_lock).map(|file| (file.path.as_str(), file)).collect(),
        overwrite,
        changes: Changes::new(),
        edited: BTreeSet::new(),
        in_the_way: Vec::new(),
    };
    comparison.write_localized()?;
    comparison.require_empty_homes(workspace)?;
    comparison.remove_unlisted(lock)?;
    // All reasons are reported at once, or else people would need a run to see each.
    let unstaged = unstaged_failure(workspace, comparison.user_edits())?;
    Failures::if_any(unstaged.into_iter().chain(comparison.failures()).collect())?;
    Ok(comparison.changes)
}

/// A comparison of the tree with the localized files, and its results so far.
struct Comparison<'a> {
    tree: &'a dyn Tree,
    /// Whether the file system stores the modes of files.
    has_modes: bool,
    localized: &'a LocalizedRoots,
    /// The files that an earlier run wrote, by path.
    owned: BTreeMap<&'a str, &'a StoredFile>,
    overwrite: bool,
    changes: Changes,
    /// The files of an earlier run whose edits would be lost.
    edited: BTreeSet<String>,
    /// The files that no run wrote, where localized ones go.
    in_the_way: Vec<String>,
}

impl Comparison<'_> {
    /// Whether the tree has a file as the entry of a lock describes it.
    fn has(&self, file: &StoredFile) -> Result<bool> {
        let Some(Entry::File { executable }) = self.tree.entry(&file.path)? else { return Ok(false) };
        let has_mode = !self.has_modes || executable == (file.mode == Mode::Executable);
        Ok(has_mode && sha256_hex(&self.tree.read(&file.path)?) == file.sha256)
    }

    /// Plans to write each file of the result that the tree does not have yet, also over what would be lost: all losses
    /// are reported together at the end.
    fn write_localized(&mut self) -> Result<()> {
        for (path, (file, entry)) in &self.localized.files {
            if self.has(entry)? {
                continue;
            }
            // An edit of a user's file is expected. It can be undone from the index, which `unstaged_failure` ensures.
            if self.localized.is_fetched(path) {
                self.note_loss(path)?;
            }
            self.changes.insert(path.clone(), Some(file.clone()));
        }
        Ok(())
    }

    /// The user's files that are edited.
    fn user_edits(&self) -> BTreeSet<String> {
        self.changes.keys().filter(|path| self.localized.local_files.contains(*path)).cloned().collect()
    }

    /// Requires that each new directory `localized-files` has no other files than those that we write.
    fn require_empty_homes(&mut self, workspace: &Workspace) -> Result<()> {
        let fetched = self.localized.files.keys().filter(|path| self.localized.is_fetched(path));
        let homes: BTreeSet<&str> = fetched.filter_map(|path| localized_dir(path)).collect();
        for home in homes.into_iter().filter(|home| !workspace.owns(home)) {
            let mut others = self.tree.below(home)?;
            others.retain(|path| !self.owned.contains_key(path.as_str()) && !self.localized.files.contains_key(path));
            self.in_the_way.append(&mut others);
            if !matches!(self.tree.entry(home)?, None | Some(Entry::Directory)) {
                self.in_the_way.push(home.to_owned());
            }
        }
        Ok(())
    }

    /// Removes each file of an earlier run that neither the new lock nor the result has.
    fn remove_unlisted(&mut self, lock: &Lock) -> Result<()> {
        let listed_paths: BTreeSet<&str> = lock.files.iter().map(|file| file.path.as_str()).collect();
        let owned: Vec<&str> = self.owned.keys().copied().collect();
        for path in owned {
            let is_kept = listed_paths.contains(path) || self.localized.files.contains_key(path);
            if !is_kept && self.tree.entry(path)?.is_some() {
                self.note_loss(path)?;
                self.changes.insert(path.to_owned(), None);
            }
        }
        Ok(())
    }

    /// Notes that what the tree has at a path would be lost, unless an earlier run wrote it and nobody edited it since.
    fn note_loss(&mut self, path: &str) -> Result<()> {
        if self.tree.entry(path)?.is_none() {
            return Ok(());
        }
        match self.owned.get(path) {
            None => self.in_the_way.push(path.to_owned()),
            Some(owned) if !self.overwrite && !self.has(owned)? => drop(self.edited.insert(path.to_owned())),
            Some(_) => {}
        }
        Ok(())
    }

    /// The failures of files that would be lost.
    fn failures(&self) -> impl Iterator<Item = Failure> {
        // `update` has no `--overwrite`, so the roots beside these files are named for `vendor`.
        let roots = self.edited.iter().filter_map(|path| Some(pathspec(path::parent(localized_dir(path)?))));
        let discard = command("git kustomize-localize vendor --overwrite", roots.collect::<BTreeSet<_>>());
        let failure = |problem: &str, paths: &[String], hint: String| {
            (!paths.is_empty()).then(|| Failure::new(format!("{problem}: {}", listed(paths))).hint(hint))
        };
        let edited = Vec::from_iter(self.edited.iter().cloned());
        let edited =
            failure("localized files were edited by hand", &edited, format!("to discard the edits: {discard}"));
        let in_the_way = failure(
            "files that the lock does not list are in the way",
            &self.in_the_way,
            "move them away, then run the same command again".to_owned(),
        );
        edited.into_iter().chain(in_the_way)
    }
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
