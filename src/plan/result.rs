//! The files of the result: every node placed, every reference edited, nothing else touched.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::files::{File, Localized, Rewritten, stripped};
use super::placing::{Builder, Instance, Needed, Placed, PlacedEdit};
use super::spelling::whole;
use super::{GITATTRIBUTES, remotes};
use crate::graph::{Graph, Origin, RootId, Target, Warning};
use crate::kustomization::{self, Accepts, Edit, Reference};
use crate::message::failure::{Failure, Failures, Location, Result};
use crate::message::finding::Rule;
use crate::message::redact;
use crate::record::{StoredFile, sha256_hex, stored};
use crate::reference::localized_path::LOCALIZED_FILES;
use crate::tree::{Tree, path};

/// What a result depends on besides the graph.
pub(super) struct Rules<'a> {
    /// Whether a lock holds this path of the source.
    pub(super) owned: &'a dyn Fn(&str) -> bool,
    /// Whether a fetched program may be executable at this path of the result.
    pub(super) trusted: &'a dyn Fn(&str) -> bool,
    /// Whether the licences of what is brought in come along.
    pub(super) licenses: bool,
    /// The tree of the user that stays where it is; none where all of it is copied.
    pub(super) stays: Option<Stays<'a>>,
}

/// The tree of the user in which the result is put.
pub(super) struct Stays<'a> {
    /// Its files as they are.
    pub(super) tree: &'a dyn Tree,
    /// The files that were walked with URLs in place of local paths.
    pub(super) turned: &'a BTreeSet<String>,
}

/// Localizes the roots `starts` of a walked graph, with all they reach.
///
/// Every reference or file that cannot be placed.
pub(super) fn localize(graph: &Graph, starts: &[RootId], rules: &Rules<'_>) -> Result<Localized, Failures> {
    let mut builder = Builder::new(graph, rules);
    let top = Instance { source: 0, base: String::new() };
    for start in starts {
        builder.place_root(&top, *start);
    }
    builder.place_turned();
    builder.collect()
}

/// Returns the lock's entry for a file of the user, or of ours.
pub(super) fn entry(path: &str, file: &File) -> StoredFile {
    StoredFile {
        path: path.to_owned(),
        executable: file.executable,
        stripped: false,
        sha256: sha256_hex(&file.bytes),
        remote: None,
        source: None,
        rewritten: BTreeMap::new(),
    }
}

/// Returns a `.gitattributes` for a directory.
pub(super) fn attributes(directory: &str, text: &str) -> (String, (File, StoredFile)) {
    let place = path::join(directory, ".gitattributes");
    let file = File::plain(text.as_bytes());
    let entry = entry(&place, &file);
    (place, (file, entry))
}

/// Returns attributes for the top of NEW_DIR that let git change no byte in the directories of these charts.
fn chart_attributes(charts: &BTreeSet<String>) -> String {
    let of_all = GITATTRIBUTES.trim_start_matches('*');
    let outside = charts.iter().filter(|chart| stored::home(chart).is_none());
    let line = |chart: &String| {
        let mut pattern = String::from("\"/");
        for character in chart.chars() {
            // Once for the pattern, and once for the quotes around it.
            match character {
                '*' | '?' | '[' => pattern.push_str("\\\\"),
                '\\' => pattern.push_str("\\\\\\"),
                '"' => pattern.push('\\'),
                _ => {}
            }
            pattern.push(character);
        }
        format!("{pattern}/**\"{of_all}")
    };
    outside.map(line).collect()
}

impl Builder<'_> {
    /// Places the files of the user that were walked with URLs, also where such a URL stays now.
    fn place_turned(&mut self) {
        let (Some(stays), graph) = (&self.rules.stays, self.graph) else { return };
        let mut turned = Vec::new();
        for (instance, root) in &self.visited {
            let root = &graph.roots[*root];
            let files = root.edges.iter().map(|edge| edge.from).chain([root.file]).filter(|_| instance.source == 0);
            turned.extend(files.filter_map(|file| Some((file, graph.own_path(file)?))));
        }
        for (file, place) in turned {
            if stays.turned.contains(place)
                && let Err(failure) = self.hold(place, file)
            {
                self.failures.push(failure);
            }
        }
    }

    fn collect(mut self) -> Result<Localized, Failures> {
        let graph = self.graph;
        let top = Instance { source: 0, base: String::new() };
        let mut localized = Localized {
            files: BTreeMap::new(),
            rewritten: Vec::new(),
            remotes: Vec::new(),
            local_files: BTreeSet::new(),
            vendored: std::mem::take(&mut self.vendored),
            kept: std::mem::take(&mut self.kept),
            placed: BTreeSet::new(),
            trusted: HashSet::new(),
            warnings: self.rewritten_data(),
            target: graph.roots.first().map_or_else(String::new, |root| self.destination(&top, &root.directory)),
        };
        let own = self.visited.iter().filter(|(instance, _)| instance.source == 0);
        localized.placed.extend(own.map(|(_, root)| graph.roots[*root].directory.clone()));
        let mut failures = std::mem::take(&mut self.failures);
        for (place, placed) in &self.placed {
            failures.extend(self.file(place, placed, &mut localized).err());
        }
        if self.rules.licenses {
            failures.extend(self.add_licenses(&mut localized.files, &mut localized.warnings).err());
        }
        match remotes::remotes(graph) {
            Ok(remotes) => localized.remotes = remotes,
            Err(failure) => failures.push(failure),
        }
        if !failures.is_empty() {
            return Err(Failures(failures));
        }
        let is_ours = |place: &&String| self.rules.stays.is_none() || localized.is_brought(place);
        let ours = localized.files.keys().filter(is_ours);
        let directories: BTreeSet<String> = ours.flat_map(|place| localized_directories(place)).collect();
        localized.files.extend(directories.iter().map(|directory| attributes(directory, GITATTRIBUTES)));
        if self.rules.stays.is_none() {
            // What else was brought in lies where the attributes of the user's repository would hold. A chart sees every
            // file in its directory, so that nothing can be put there.
            let text = match graph.sources[0].repository {
                Some(_) => GITATTRIBUTES.to_owned(),
                None => chart_attributes(&localized.vendored),
            };
            let (place, file) = attributes("", &text);
            if !text.is_empty() {
                localized.files.entry(place).or_insert(file);
            }
        }
        Ok(localized)
    }

    /// Adds a file to the result, and what there is to report about it.
    fn file(&self, place: &str, placed: &Placed, localized: &mut Localized) -> Result<()> {
        let graph = self.graph;
        let from = &graph.files[placed.file];
        let (remote, source, blob) = match &from.origin {
            Origin::Remote(remote) => (Some(remote.url.shown()), None, None),
            Origin::Archive { archive, path } => (Some(archive.chart.label()), Some(path.clone()), None),
            Origin::Tree { source, path } => {
                let blob = graph.sources[*source].tree.stored(path);
                match &graph.sources[*source].repository {
                    Some(repository) => (Some(remotes::git(repository).label()), Some(path.clone()), blob),
                    None => {
                        localized.local_files.insert(place.to_owned());
                        (None, None, blob)
                    }
                }
            }
        };
        let is_local = remote.is_none();
        let may_run = self.may_run(placed);
        let is_trusted = may_run.is_some() && (self.rules.trusted)(place);
        let bytes = graph.read(placed.file).map_err(|failure| graph.unreadable(placed.file, failure))?;
        let mut file = File { bytes, executable: (from.executable && is_local) || is_trusted, blob };
        let mut stored = StoredFile { remote, source, ..entry(place, &file) };
        if is_trusted {
            localized.trusted.insert(placed.file);
        } else if let Some(needed) = may_run {
            stored.stripped = true;
            localized.warnings.push(stripped(&stored, needed.location.clone()));
        }
        if let Some(bytes) = self.edited(place, placed, &file.bytes, &mut localized.rewritten)? {
            stored.sha256 = sha256_hex(&bytes);
            file = File { bytes: bytes.into(), blob: None, ..file };
        }
        for edit in placed.edits.iter().filter(|_| !is_local) {
            let Some(before) = &edit.before else { continue };
            if redact::has_secret(&graph.roots[edit.root].edges[edit.edge].reference.text) {
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

    /// Returns for what a file from elsewhere is run: what was downloaded is not run by accident.
    fn may_run<'b>(&self, placed: &'b Placed) -> Option<&'b Needed> {
        let file = &self.graph.files[placed.file];
        placed.needed.as_ref().filter(|needed| match &file.origin {
            Origin::Tree { source, .. } => self.graph.sources[*source].repository.is_some() && file.executable,
            // A download has no mode.
            Origin::Remote(_) => needed.is_program,
            Origin::Archive { .. } => false,
        })
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
        let reference = |edit: &PlacedEdit| -> &Reference { &graph.roots[edit.root].edges[edit.edge].reference };
        let mut tell = |edit: &PlacedEdit| {
            let edge = &graph.roots[edit.root].edges[edit.edge];
            rewritten.push(Rewritten {
                path: place.to_owned(),
                location: graph.location(edge.from, &edge.reference),
                from: redact::url(&edge.reference.text),
                to: edit.text.clone(),
            });
        };
        let edit = |bytes: &[u8], edits: &[Edit<'_>]| {
            kustomization::edit(bytes, edits).map_err(|error| {
                let location = Location { line: error.line, column: error.column, ..graph.place(placed.file) };
                Failure::new(format!("cannot be rewritten: {}", error.message))
                    .at(location)
                    .hint("write the value out where it is used, plainly quoted")
            })
        };
        let turned = self.rules.stays.as_ref().filter(|stays| stays.turned.contains(place));
        let Some(stays) = turned.filter(|_| graph.is_start(placed.file)) else {
            placed.edits.iter().for_each(tell);
            let edits = placed.edits.iter();
            let edits: Vec<Edit<'_>> =
                edits.map(|edit| Edit { spot: &reference(edit).spot, value: edit.value.clone() }).collect();
            return (!edits.is_empty()).then(|| edit(bytes, &edits)).transpose();
        };
        // What is there already stays as it is written.
        let there = stays.tree.read(place)?;
        let (old, new) = (references(&there), references(bytes));
        let mut edits = Vec::new();
        for (old, new) in old.iter().zip(&new) {
            let placed = placed.edits.iter().find(|edit| reference(edit).spot == new.spot);
            let value = placed.map_or_else(|| whole(new), |edit| edit.value.clone());
            let is_there = placed.is_some_and(|edit| {
                let directory = &graph.roots[edit.root].directory;
                !path::is_absolute(&old.text)
                    && path::resolve(directory, &old.text) == path::resolve(directory, &edit.text)
            });
            if !is_there && value != whole(old) {
                placed.into_iter().for_each(&mut tell);
                edits.push(Edit { spot: &old.spot, value });
            }
        }
        edit(&there, &edits).map(Some)
    }

    /// Warns of files that are rewritten for what they reference, and are also read as data.
    fn rewritten_data(&self) -> Vec<Warning> {
        let graph = self.graph;
        let edited = self.placed.values().filter(|placed| !placed.edits.is_empty());
        let edited: HashSet<_> = edited.map(|placed| placed.file).collect();
        let for_plugins = graph.plugin_roots();
        let roots = graph.roots.iter().enumerate().filter(|(id, _)| !for_plugins.contains(id));
        let edges = roots.flat_map(|(_, root)| &root.edges);
        let is_edited = |target: Target| match target {
            Target::File(file) => edited.contains(&file),
            _ => false,
        };
        edges
            .filter(|edge| edge.reference.accepts != Accepts::Plugin && is_edited(edge.target))
            .map(|edge| {
                let text = redact::url(&edge.reference.text);
                let location = graph.location(edge.from, &edge.reference);
                let message = format!(
                    "`{text}` is also read as data here, but what it references was rewritten: the build will differ"
                );
                Warning::new(Rule::RewrittenData, location, message)
            })
            .collect()
    }
}

/// Returns the references of a kustomization, or of a plugin configuration.
fn references(bytes: &[u8]) -> Vec<Reference> {
    let read = kustomization::read(bytes).or_else(|_| kustomization::read_plugin(bytes));
    read.map(|read| read.references).unwrap_or_default()
}

/// Returns every `localized-files` that a path lies in.
pub(super) fn localized_directories(place: &str) -> impl Iterator<Item = String> {
    let above = path::and_above(path::parent(place)).filter(|above| path::name(above) == LOCALIZED_FILES);
    above.map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::checkout::{Conversion, Filters};
    use crate::tree::overlay::OverlayTree;

    #[test]
    fn the_attributes_of_charts_hold_for_them_alone() {
        let charts = ["charts/web", "a b/\"c\\d/*[x]?", "app/localized-files/h/charts/web"];
        let charts = charts.map(str::to_owned).into_iter().collect();
        let own = chart_attributes(&charts);
        assert_eq!(own.lines().count(), 2, "{own}");
        let mut tree = OverlayTree::default();
        let files: [(&str, &[u8]); 5] = [
            (".gitattributes", b"* text eol=crlf\n"),
            ("out/.gitattributes", own.as_bytes()),
            ("out/charts/web/templates/x.yaml", b"a\n"),
            ("out/a b/\"c\\d/*[x]?/x.yaml", b"a\n"),
            ("out/charts/other.yaml", b"a\n"),
        ];
        for (path, bytes) in files {
            tree.file(path, bytes, false);
        }
        let conversion = Conversion::new(Filters::None, gix::hash::Kind::Sha1);
        let read = |path: &str| conversion.read(&tree, path).unwrap();
        for (path, _) in &files[2..4] {
            assert_eq!(read(path), b"a\n", "{path}\n{own}");
        }
        assert_eq!(read("out/charts/other.yaml"), b"a\r\n");
    }
}
