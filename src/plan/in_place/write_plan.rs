//! Compares the planned files with the disk and the lock: which may be written, which may be deleted, and which belong
//! to somebody else.

use std::collections::{BTreeSet, HashMap};

use super::restore::Restored;
use crate::graph::{Explored, Graph, Place, TroubleKind};
use crate::message::failure::{Failure, Failures, Result, listed, stage};
use crate::plan::Change;
use crate::plan::troubles::Troubles;
use crate::plan::{Localized, ResultFile, Rewritten};
use crate::record::stored::home;
use crate::record::{Lock, StoredFile, sha256_hex};
use crate::reference::localized_path::LOCALIZED_FILES;
use crate::tree::{Entry, license, path};
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

/// Compares a file of this digest, and of this mode if that means anything, with the disk.
fn there(workspace: &Workspace, place: &str, sha256: &str, mode: Option<bool>) -> Result<There> {
    Ok(match workspace.tree.entry(place)? {
        None => There::Nothing,
        Some(Entry::File { executable })
            if mode.is_none_or(|mode| mode == executable) && sha256_hex(&workspace.tree.read(place)?) == sha256 =>
        {
            There::Same
        }
        Some(Entry::File { .. } | Entry::Link) => There::Another,
        Some(Entry::Directory | Entry::Submodule) => There::NoFile,
    })
}

/// Returns whether the mode of a file on disk means anything.
fn has_modes(workspace: &Workspace) -> Result<bool> {
    Ok(match &workspace.files {
        Files::WorkingTree { repo, .. } => repo.config("core.filemode")?.as_deref() != Some("false"),
        Files::Commit { .. } | Files::Disk { .. } | Files::Tree(_) => true,
    })
}

/// Returns the localized files that a lock lists. A lock comes with a pull request: listing a file anywhere else does
/// not make it ours.
pub(super) fn ours(held: &Lock) -> impl Iterator<Item = &StoredFile> {
    held.files.iter().filter(|file| home(&file.path).is_some())
}

/// Returns the localized files that are not what the lock says.
pub(super) fn edited<'a>(workspace: &Workspace, held: &'a Lock) -> Result<Vec<&'a StoredFile>> {
    let modes = has_modes(workspace)?;
    let mut edited = Vec::new();
    for file in ours(held) {
        let mode = modes.then_some(file.executable);
        if there(workspace, &file.path, &file.sha256, mode)? != There::Same {
            edited.push(file);
        }
    }
    Ok(edited)
}

/// The planned files, with what is known of their places.
pub(super) struct WritePlan<'a> {
    workspace: &'a Workspace,
    held: &'a Lock,
    localized: &'a Localized,
    owned: HashMap<&'a str, &'a StoredFile>,
    /// Whether the mode of a file on disk means anything.
    modes: bool,
    /// Whether licences are left out.
    no_licenses: bool,
    /// What to write, and what is there now.
    places: Vec<(&'a str, &'a ResultFile, There)>,
}

impl<'a> WritePlan<'a> {
    pub(super) fn new(
        workspace: &'a Workspace,
        held: &'a Lock,
        localized: &'a Localized,
        no_licenses: bool,
    ) -> Result<Self> {
        let modes = has_modes(workspace)?;
        let mut writes = WritePlan {
            workspace,
            held,
            localized,
            owned: ours(held).map(|file| (file.path.as_str(), file)).collect(),
            modes,
            no_licenses,
            places: Vec::new(),
        };
        for (place, file) in &localized.files {
            let sha256 = sha256_hex(file.content.bytes());
            let there = there(workspace, place, &sha256, modes.then_some(file.executable))?;
            writes.places.push((place, file, there));
        }
        Ok(writes)
    }

    /// Compares a stored file with the disk.
    fn stored(&self, file: &StoredFile) -> Result<There> {
        there(self.workspace, &file.path, &file.sha256, self.modes.then_some(file.executable))
    }

    /// Returns the directory of the chart that a file belongs to, if the chart is the user's from then on.
    pub(super) fn vendored(&self, place: &str) -> Option<&'a str> {
        let vendored = self.localized.vendored.iter();
        vendored.map(String::as_str).find(|directory| path::is_in(place, directory))
    }

    fn is_local(&self, place: &str) -> bool {
        self.localized.local_files.contains(place)
    }

    /// Refuses to write if somebody would lose work.
    pub(super) fn refuse(&self, graph: &Graph, overwrite: bool) -> Result<(), Failures> {
        let mut failures = Vec::new();
        let mut edited = Vec::new();
        let mut unknown = Vec::new();
        for (place, file, there) in &self.places {
            if matches!(there, There::Nothing | There::Same) || self.is_local(place) {
                continue;
            }
            match self.owned.get(place) {
                None => unknown.push((*place).to_owned()),
                Some(stored) if self.stored(stored)? != There::Same => {
                    if !overwrite || *there == There::NoFile {
                        edited.push((*place).to_owned());
                    }
                }
                Some(stored)
                    if (&stored.remote, &stored.source) != (&file.remote, &file.source) && is_used(graph, place) =>
                {
                    failures.push(
                        Failure::new(format!(
                            "`{place}` is from {}, which is still referenced, and {} would take its place",
                            stored.remote.as_deref().unwrap_or("elsewhere"),
                            file.remote.as_deref().unwrap_or("something else"),
                        ))
                        .hint("write both references as URLs again: localized together they get different names"),
                    );
                }
                Some(_) => {}
            }
        }
        failures.extend(self.unstaged()?);
        if !edited.is_empty() {
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
        if failures.is_empty() { Ok(()) } else { Err(Failures(failures)) }
    }

    /// Refuses to edit files of the user that differ from the index: the edit could not be told apart from what was
    /// there before.
    fn unstaged(&self) -> Result<Option<Failure>> {
        let edits: BTreeSet<String> = self
            .places
            .iter()
            .filter(|(place, _, there)| self.is_local(place) && *there != There::Same)
            .map(|(place, ..)| (*place).to_owned())
            .collect();
        let Files::WorkingTree { repo, .. } = &self.workspace.files else {
            return Ok(None);
        };
        if edits.is_empty() {
            return Ok(None);
        }
        let unstaged = repo.unstaged_paths(&edits)?;
        let tracked = repo.tracked_paths()?;
        let differ: Vec<String> =
            edits.into_iter().filter(|place| unstaged.contains(place) || !tracked.contains_key(place)).collect();
        if differ.is_empty() {
            return Ok(None);
        }
        Ok(Some(
            Failure::new(format!("these files would be edited, and differ from the index: {}", listed(&differ)))
                .hint(stage(&differ)),
        ))
    }

    /// Returns what was brought in and what belongs to it.
    pub(super) fn brought(&self) -> impl Iterator<Item = (&'a str, &'a ResultFile)> {
        self.places
            .iter()
            .filter(|(place, ..)| !self.is_local(place) && self.vendored(place).is_none())
            .map(|(place, file, _)| (*place, *file))
    }

    /// Returns the entries of the lock that stay: the files that something of `after`, the walk after the changes,
    /// references or may reference.
    pub(super) fn kept(&self, after: &Explored) -> Result<Vec<&'a StoredFile>> {
        let graph = &after.graph;
        let used: BTreeSet<&str> = graph.own_paths().collect();
        // Carried directories and charts are only of use as a whole.
        let mut whole: Vec<String> =
            graph.carried.iter().filter(|carried| carried.source == 0).map(|carried| carried.path.clone()).collect();
        for chart in graph.named_charts() {
            if let Place::There(path) = chart.place {
                whole.push(path);
            }
        }
        let mut missing: Vec<&str> = Vec::new();
        // What could not be read may use anything.
        let mut is_unread = !Troubles::of(self.workspace, after)?.unread.is_empty();
        for trouble in &after.troubles {
            match &trouble.kind {
                TroubleKind::Missing { path, .. } => missing.push(path),
                TroubleKind::NoKustomization { directory } => missing.push(directory),
                TroubleKind::Refused => is_unread = true,
                _ => {}
            }
        }
        let reached: BTreeSet<&str> = graph.roots.iter().map(|root| root.directory.as_str()).collect();
        let roots = self.workspace.kustomizations()?.roots();
        let may_be_used = |file: &StoredFile| {
            if is_unread
                || used.contains(file.path.as_str())
                || whole.iter().any(|path| path::is_in(&file.path, path))
                || missing.iter().any(|path| path::is_in(&file.path, path))
            {
                return true;
            }
            let Some(home) = home(&file.path).map(path::parent) else {
                return false;
            };
            // A root that is not a starting point may use its neighbours.
            roots.contains(home) && !reached.contains(home)
        };
        let brought: BTreeSet<&str> = self.brought().map(|(place, _)| place).collect();
        let mut kept: Vec<&StoredFile> = ours(self.held)
            .filter(|file| !is_attributes(&file.path) && !brought.contains(file.path.as_str()))
            .filter(|file| may_be_used(file))
            .collect();
        kept.extend(self.licenses(&kept, &brought));
        let directories: BTreeSet<String> = kept
            .iter()
            .map(|file| file.path.as_str())
            .chain(brought.iter().copied())
            .flat_map(localized_directories)
            .collect();
        let attributes = ours(self.held).filter(|file| {
            is_attributes(&file.path)
                && !brought.contains(file.path.as_str())
                && directories.contains(path::parent(&file.path))
        });
        kept.extend(attributes);
        Ok(kept)
    }

    /// Returns the licences of the files that stay: those of the same remote in the directories above.
    fn licenses(&self, kept: &[&StoredFile], brought: &BTreeSet<&str>) -> Vec<&'a StoredFile> {
        if self.no_licenses {
            return Vec::new();
        }
        let is_kept = |file: &StoredFile| kept.iter().any(|one| one.path == file.path);
        let is_of = |file: &StoredFile, directory: &str| {
            let mut kept = kept.iter().filter(|one| one.remote == file.remote);
            kept.any(|one| path::is_in(&one.path, directory) && license::covered(&one.path).is_none())
        };
        ours(self.held)
            .filter(|file| file.remote.is_some() && !brought.contains(file.path.as_str()))
            .filter(|file| license::covered(&file.path).is_some_and(|place| is_of(file, place)))
            .filter(|file| !is_kept(file))
            .collect()
    }

    /// Returns which of the files that stay are programs that have become trusted, with their bytes.
    pub(super) fn trusted(
        &self,
        kept: &[&StoredFile],
        restored: &Restored,
        is_trusted: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<(String, Vec<u8>)>> {
        let mut trusted = Vec::new();
        for file in kept {
            if !file.stripped || !is_trusted(&file.path) {
                continue;
            }
            if let Some((bytes, _)) = restored.files.get(&file.path) {
                trusted.push((file.path.clone(), bytes.clone()));
                continue;
            }
            // Whether it is executable on disk already makes no difference, what it holds does.
            if there(self.workspace, &file.path, &file.sha256, None)? == There::Same {
                let bytes = self.workspace.tree.read(&file.path)?;
                trusted.push((file.path.clone(), bytes));
            }
        }
        Ok(trusted)
    }

    /// Returns the removal of files that nothing needs any more.
    pub(super) fn removals(&self, gone: &[&StoredFile], overwrite: bool) -> Result<Vec<Change>, Failures> {
        let mut changes = Vec::new();
        let mut edited = Vec::new();
        for file in gone.iter().filter(|file| home(&file.path).is_some()) {
            match self.stored(file)? {
                There::Nothing => {}
                There::Another if !overwrite => edited.push(file.path.clone()),
                There::NoFile => edited.push(file.path.clone()),
                There::Same | There::Another => changes.push(Change { path: file.path.clone(), to: None }),
            }
        }
        if edited.is_empty() {
            Ok(changes)
        } else {
            Err(Failure::new(format!(
                "localized files that nothing references any more were edited by hand: {}",
                listed(&edited)
            ))
            .hint("to discard the edits: --overwrite")
            .into())
        }
    }

    /// Returns what to write: what was brought in, then the files that reference it.
    pub(super) fn writes(&self) -> Vec<Change> {
        let change = |(place, file, _): &(&str, &ResultFile, There)| Change {
            path: (*place).to_owned(),
            to: Some((file.content.bytes().into(), file.executable)),
        };
        let different = || self.places.iter().filter(|(_, _, there)| *there != There::Same);
        let brought = different().filter(|(place, ..)| !self.is_local(place));
        let edited = different().filter(|(place, ..)| self.is_local(place));
        brought.chain(edited).map(change).collect()
    }

    /// Returns the references that change on disk.
    pub(super) fn rewritten(&self) -> Vec<Rewritten> {
        let changed: BTreeSet<&str> =
            self.places.iter().filter(|(_, _, there)| *there != There::Same).map(|(place, ..)| *place).collect();
        let rewritten = self.localized.rewritten.iter();
        rewritten.filter(|one| changed.contains(one.path.as_str())).cloned().collect()
    }
}

/// Returns whether the user's tree itself references the file at `place`.
fn is_used(graph: &Graph, place: &str) -> bool {
    is_carried(graph, place) || graph.own_paths().any(|path| path == place)
}

/// Returns whether the file at `place` belongs to what the user's tree needs as a whole.
fn is_carried(graph: &Graph, place: &str) -> bool {
    let mut carried = graph.carried.iter();
    carried.any(|carried| carried.source == 0 && path::is_in(place, &carried.path))
}

fn is_attributes(place: &str) -> bool {
    path::name(place) == ".gitattributes" && path::name(path::parent(place)) == LOCALIZED_FILES
}

/// Returns every `localized-files` that a path lies in.
fn localized_directories(place: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut directory = path::parent(place);
    while !directory.is_empty() {
        if path::name(directory) == LOCALIZED_FILES {
            found.push(directory.to_owned());
        }
        directory = path::parent(directory);
    }
    found
}
