//! The files of the result: every node placed, every reference edited, nothing else touched.

use std::collections::{BTreeMap, BTreeSet};

use super::files::{File, Localized, Rewritten, stripped};
use super::placing::{Builder, Instance, Placed};
use super::{GITATTRIBUTES, remotes};
use crate::config::Config;
use crate::graph::{Graph, Origin, RootId, SourceId};
use crate::kustomization::{self, Edit};
use crate::message::failure::{Failure, Failures, Location, Result};
use crate::message::redact;
use crate::record::{Lock, Mode, StoredFile, sha256_hex};
use crate::reference::localized_path::LOCALIZED_FILES;
use crate::tree::checkout::FILE_NAME;
use crate::tree::path;

/// Localizes the roots `starts` of a walked graph, with all they reach. With `in_place` the tree of the user stays where it
/// is; otherwise what is reached of it is copied. `held` tells what a reference names that was not followed.
///
/// Every reference or file that cannot be placed.
pub(super) fn localize(
    graph: &Graph,
    starts: &[RootId],
    config: &Config,
    held: &Lock,
    in_place: bool,
) -> Result<Localized, Failures> {
    let mut builder = Builder::new(graph, config, in_place);
    let top = Instance { source: SourceId::FIRST, base: String::new() };
    for start in starts {
        builder.place_root(&top, *start);
    }
    builder.collect(held)
}

/// Returns the lock's entry for a file of the user, or of ours.
pub(super) fn entry(path: &str, file: &File) -> StoredFile {
    let mode = if file.executable { Mode::Executable } else { Mode::Plain };
    StoredFile { path: path.to_owned(), mode, sha256: sha256_hex(&file.bytes), ..StoredFile::default() }
}

/// Adds attributes to a directory, so that git changes no byte below it, unless it holds some.
fn add_attributes(files: &mut BTreeMap<String, (File, StoredFile)>, directory: &str) {
    let place = path::join(directory, FILE_NAME);
    let file = File::plain(GITATTRIBUTES.as_bytes());
    let entry = entry(&place, &file);
    files.entry(place).or_insert((file, entry));
}

impl Builder<'_> {
    fn collect(mut self, held: &Lock) -> Result<Localized, Failures> {
        let graph = self.graph;
        let top = Instance { source: SourceId::FIRST, base: String::new() };
        let mut localized = Localized {
            vendored: std::mem::take(&mut self.vendored),
            kept: std::mem::take(&mut self.kept),
            target: graph.roots.first().map_or_else(String::new, |root| self.destination(&top, &root.directory)),
            ..Localized::default()
        };
        let mut failures = std::mem::take(&mut self.failures);
        for (place, placed) in &self.placed {
            failures.extend(self.file(place, placed, &mut localized).err());
        }
        if !self.config.no_licenses {
            failures.extend(self.add_licenses(&mut localized.files, &mut localized.findings).err());
        }
        match remotes::remotes(graph, held) {
            Ok(remotes) => localized.remotes = remotes,
            Err(failure) => failures.push(failure),
        }
        if !failures.is_empty() {
            return Err(Failures(failures));
        }
        let is_ours = |place: &&String| !self.in_place || localized.is_brought(place);
        let ours = localized.files.keys().filter(is_ours);
        let mut directories: BTreeSet<String> = ours.flat_map(|place| localized_directories(place)).collect();
        // Beside a chart, which sees every file in its own directory.
        let beside = localized.vendored.iter().map(|chart| path::parent(chart).to_owned());
        let beside = BTreeSet::from_iter(beside);
        localized.vendored.extend(beside.iter().map(|directory| path::join(directory, FILE_NAME)));
        directories.extend(beside);
        if graph.sources[0].repository.is_some() {
            // All of it was brought in.
            directories.insert(String::new());
        }
        for directory in directories {
            add_attributes(&mut localized.files, &directory);
        }
        Ok(localized)
    }

    /// Adds a file to the result, and what there is to report about it.
    fn file(&self, place: &str, placed: &Placed, localized: &mut Localized) -> Result<()> {
        let graph = self.graph;
        let from = &graph.files[placed.file];
        let remote = graph.pinned(placed.file).map(|(source, _)| source);
        let is_local = remote.is_none();
        let (path, blob) = match &from.origin {
            Origin::Remote(_) => (None, None),
            Origin::Archive { path, .. } => (Some(path), None),
            Origin::Tree { source, path } => (Some(path), graph.sources[*source].tree.stored(path)),
        };
        let source = path.filter(|_| !is_local).cloned();
        if is_local {
            localized.local_files.insert(place.to_owned());
        }
        // What was downloaded is not run by accident; it has no mode.
        let may_run = match &from.origin {
            _ if is_local => None,
            Origin::Tree { .. } => placed.run_at.as_ref().filter(|_| from.executable),
            Origin::Remote(_) => placed.run_at.as_ref(),
            Origin::Archive { .. } => None,
        };
        let is_trusted = may_run.is_some() && self.config.trusts(place);
        let bytes = graph.read(placed.file).map_err(|failure| graph.unreadable(placed.file, failure))?;
        let mut file = File { bytes, executable: (from.executable && is_local) || is_trusted, blob };
        let mut stored = StoredFile { remote, source, ..entry(place, &file) };
        if is_trusted {
            localized.trusted.insert(placed.file);
        } else if let Some(location) = may_run {
            stored.stripped = true;
            localized.findings.push(stripped(&stored, location.clone()));
        }
        if let Some(bytes) = self.edited(place, placed, &file.bytes, &mut localized.rewritten)? {
            stored.sha256 = sha256_hex(&bytes);
            file = File { bytes: bytes.into(), blob: None, ..file };
        }
        for edit in placed.edits.iter().filter(|_| !is_local) {
            let Some(before) = &edit.before else { continue };
            if redact::has_secret(&graph[edit.edge].reference.text) {
                // What is written nowhere cannot be restored: this file is fetched again.
                stored.source = None;
                if matches!(from.origin, Origin::Remote(_)) {
                    stored.remote = None;
                    stored.rewritten.clear();
                    break;
                }
            } else {
                stored.rewritten.insert(edit.value.clone(), before.clone());
            }
        }
        localized.files.insert(place.to_owned(), (file, stored));
        Ok(())
    }

    /// Returns what a file of these bytes holds after its edits, if there are any, and adds these to what was rewritten.
    fn edited(
        &self,
        place: &str,
        placed: &Placed,
        bytes: &[u8],
        rewritten: &mut Vec<Rewritten>,
    ) -> Result<Option<Vec<u8>>> {
        let graph = self.graph;
        let mut edits = Vec::new();
        for edit in &placed.edits {
            let edge = &graph[edit.edge];
            edits.push(Edit { spot: &edge.reference.spot, value: edit.value.clone() });
            rewritten.push(Rewritten {
                path: place.to_owned(),
                location: graph.location(edge.from, &edge.reference),
                from: redact::url(&edge.reference.text),
                to: edit.text.clone(),
            });
        }
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

/// Returns every `localized-files` that a path lies in.
fn localized_directories(place: &str) -> impl Iterator<Item = String> {
    let above = path::and_above(path::parent(place)).filter(|above| path::name(above) == LOCALIZED_FILES);
    above.map(str::to_owned)
}
