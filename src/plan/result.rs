//! Collects the files of the result: every node laid out, every reference edited, nothing else touched.

use std::collections::{BTreeMap, BTreeSet};

use super::files::{LocalizedRoots, ResultFile, Rewritten, stripped};
use super::placing::{Instance, LaidOutEdit, LaidOutFile, LayoutBuilder};
use super::{GITATTRIBUTES, remotes};
use crate::graph::{Origin, RootId, SourceId};
use crate::kustomization::{self, Edit};
use crate::message::failure::{Failure, Failures, Location, Result};
use crate::message::redact;
use crate::record::{Lock, Mode, StoredFile, sha256_hex};
use crate::reference::localized_path::LOCALIZED_FILES;
use crate::tree::checkout::FILE_NAME;
use crate::tree::path;

/// The lock entry of a file that has no upstream.
pub(super) fn entry(path: &str, file: &ResultFile) -> StoredFile {
    let mode = if file.executable { Mode::Executable } else { Mode::Plain };
    StoredFile { path: path.to_owned(), mode, sha256: sha256_hex(&file.bytes), ..StoredFile::default() }
}

/// Adds attributes to a directory, so that git changes no byte below it, unless it has some already.
fn add_attributes(files: &mut BTreeMap<String, (ResultFile, StoredFile)>, directory: &str) {
    let path = path::join(directory, FILE_NAME);
    let file = ResultFile::plain(GITATTRIBUTES.as_bytes());
    let entry = entry(&path, &file);
    files.entry(path).or_insert((file, entry));
}

impl LayoutBuilder<'_> {
    /// Localizes the roots `starts` of the graph, with everything that they reach. `old_lock` tells the references of
    /// an upstream that was not followed.
    ///
    /// Fails with every reference or file that cannot be laid out.
    pub(super) fn localize(mut self, starts: &[RootId], old_lock: &Lock) -> Result<LocalizedRoots, Failures> {
        let top = Instance { source: SourceId::FIRST, base: String::new() };
        for start in starts {
            self.lay_out_from(&top, *start);
        }
        self.collect(old_lock)
    }

    /// The files of everything that was laid out, after their edits, with the licenses and attributes beside them.
    fn collect(mut self, old_lock: &Lock) -> Result<LocalizedRoots, Failures> {
        let graph = self.graph;
        let top = Instance { source: SourceId::FIRST, base: String::new() };
        let mut localized = LocalizedRoots {
            vendored: std::mem::take(&mut self.vendored),
            allowed_missing: std::mem::take(&mut self.allowed_missing),
            target: graph.roots.first().map_or_else(String::new, |root| self.destination(&top, &root.directory)),
            ..LocalizedRoots::default()
        };
        let mut failures = std::mem::take(&mut self.failures);
        for (path, placed) in &self.laid_out {
            failures.extend(self.add_file(path, placed, &mut localized).err());
        }
        if !self.config.no_licenses {
            failures.extend(self.add_licenses(&mut localized.files, &mut localized.findings).err());
        }
        match remotes::remotes(graph, old_lock) {
            Ok(remotes) => localized.remotes = remotes,
            Err(failure) => failures.push(failure),
        }
        Failures::if_any(failures)?;
        // Every directory with localized files gets attributes. In place, a directory `localized-files` of the user
        // gets none.
        let ours = localized.files.keys().filter(|path| !self.in_place || localized.is_fetched(path));
        let mut directories: BTreeSet<String> = ours.flat_map(|path| localized_directories(path)).collect();
        // Attributes go beside a chart, because a chart sees every file in its own directory.
        let beside = localized.vendored.iter().map(|chart| path::parent(chart).to_owned());
        let beside = BTreeSet::from_iter(beside);
        localized.vendored.extend(beside.iter().map(|directory| path::join(directory, FILE_NAME)));
        directories.extend(beside);
        if graph.sources[0].repository.is_some() {
            // The whole copy was fetched.
            directories.insert(String::new());
        }
        for directory in directories {
            add_attributes(&mut localized.files, &directory);
        }
        Ok(localized)
    }

    /// Adds a file to the result, with its findings.
    fn add_file(&self, path_in_result: &str, placed: &LaidOutFile, localized: &mut LocalizedRoots) -> Result<()> {
        let graph = self.graph;
        let from = &graph.files[placed.file];
        let bytes = graph.read(placed.file).map_err(|failure| graph.unreadable(placed.file, failure))?;
        let blob = match &from.origin {
            // A file of a tree may have a blob already, which then need not be written.
            Origin::Tree { source, path } => graph.sources[*source].tree.stored(path),
            Origin::Remote(_) | Origin::Archive { .. } => None,
        };
        let mut file = ResultFile { bytes, executable: from.executable, blob };
        let mut stored = if graph.is_fetched(placed.file) {
            self.fetched_entry(path_in_result, placed, &mut file, localized)
        } else {
            localized.local_files.insert(path_in_result.to_owned());
            entry(path_in_result, &file)
        };
        // The edits come last: without edits, the entry and the stored object of the original stay valid.
        if let Some(bytes) = self.edited(path_in_result, placed, &file.bytes, &mut localized.rewritten)? {
            stored.sha256 = sha256_hex(&bytes);
            file = ResultFile { bytes: bytes.into(), blob: None, ..file };
        }
        localized.files.insert(path_in_result.to_owned(), (file, stored));
        Ok(())
    }

    /// The lock entry of a fetched file before its edits. A program loses its execute bit, unless the configuration
    /// trusts it: it must not run by accident.
    fn fetched_entry(
        &self,
        path_in_result: &str,
        placed: &LaidOutFile,
        file: &mut ResultFile,
        localized: &mut LocalizedRoots,
    ) -> StoredFile {
        let is_download = matches!(self.graph.files[placed.file].origin, Origin::Remote(_));
        // A downloaded file has no mode, so it is a program whenever a reference runs it.
        let run_at = placed.run_at.as_ref().filter(|_| file.executable || is_download);
        file.executable = run_at.is_some() && self.config.trusts(path_in_result);
        let mut stored = entry(path_in_result, file);
        stored.remote = self.graph.pinned(placed.file).map(|(remote, _)| remote);
        if file.executable {
            localized.trusted.insert(placed.file);
        } else if let Some(location) = run_at {
            stored.stripped = true;
            localized.findings.push(stripped(&stored, location.clone()));
        }
        self.make_restorable(placed, &mut stored);
        stored
    }

    /// Adds to the entry of a fetched file its path upstream and the original text of each reference, from which it can
    /// be restored. A URL with a secret is stored nowhere, so a file that has one cannot be restored. It is fetched
    /// again, because its entry has no `source`, or, if it is the file of a URL, which never has one, no `remote`.
    fn make_restorable(&self, placed: &LaidOutFile, stored: &mut StoredFile) {
        let has_secret = |edit: &LaidOutEdit| redact::has_secret(&self.graph[edit.edge].reference.text);
        let origin = &self.graph.files[placed.file].origin;
        if placed.edits.iter().any(has_secret) {
            if matches!(origin, Origin::Remote(_)) {
                stored.remote = None;
            }
            return;
        }
        if let Origin::Tree { path, .. } | Origin::Archive { path, .. } = origin {
            stored.source = Some(path.clone());
        }
        let originals = placed.edits.iter().filter_map(|edit| Some((edit.value.clone(), edit.original.clone()?)));
        stored.rewritten = originals.collect();
    }

    /// The bytes of a file after its edits. `None` if there are none. The edits are added to `rewritten`.
    fn edited(
        &self,
        path: &str,
        placed: &LaidOutFile,
        bytes: &[u8],
        rewritten: &mut Vec<Rewritten>,
    ) -> Result<Option<Vec<u8>>> {
        let graph = self.graph;
        let mut edits = Vec::new();
        for edit in &placed.edits {
            let edge = &graph[edit.edge];
            edits.push(Edit { spot: &edge.reference.spot, value: edit.value.clone() });
            rewritten.push(Rewritten {
                path: path.to_owned(),
                location: graph.location(edge),
                from: redact::url(&edge.reference.text),
                to: edit.text.clone(),
            });
        }
        // Without edits the stored object is used again: its bytes need not be read.
        if edits.is_empty() {
            return Ok(None);
        }
        kustomization::edit(bytes, &edits).map(Some).map_err(|error| {
            let location = Location { position: error.position, ..graph.file_location(placed.file) };
            Failure::new(format!("cannot be rewritten: {}", error.message))
                .at(location)
                .hint("write the value where it is used, in plain quotes")
        })
    }
}

/// Every directory `localized-files` that a path is in.
fn localized_directories(path: &str) -> impl Iterator<Item = String> {
    let above = path::and_above(path::parent(path)).filter(|above| path::name(above) == LOCALIZED_FILES);
    above.map(str::to_owned)
}
