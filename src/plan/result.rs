//! The files of the result: every node placed, every reference edited, nothing else touched.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use super::GITATTRIBUTES;
use super::chart::{self, ChartEdits};
use super::files::{Content, Localized, ResultFile, Rewritten, Untrusted};
use super::layout::SafePaths;
use super::{graph_check, remotes};
use crate::config::Config;
use crate::graph::{ChartHomes, FileId, Graph, Origin, RootId, SourceId, Target, Warning};
use crate::kustomization::{self, Accepts, Edit};
use crate::message::failure::{Failure, Failures, Location, Result};
use crate::message::finding::Rule;
use crate::message::redact;
use crate::record::{LoadRestrictor, sha256_hex, stored};
use crate::reference::localized_path::LOCALIZED_FILES;
use crate::tree::path;

/// A tree at the place that it gets in the result.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Instance {
    pub(super) source: SourceId,
    /// Where the top of the tree (for the source: its scope) lies in NEW_DIR.
    pub(super) base: String,
}

/// A file of the result and the edits to it.
pub(super) struct Placed {
    pub(super) file: FileId,
    pub(super) edits: Vec<PlacedEdit>,
    pub(super) charts: ChartEdits,
    /// For what it may have to be executable.
    pub(super) needed: Option<Needed>,
}

impl Placed {
    pub(super) fn new(file: FileId) -> Self {
        Placed { file, edits: Vec::new(), charts: ChartEdits::default(), needed: None }
    }
}

/// What a file may have to be executable for.
pub(super) struct Needed {
    /// The reference that leads there.
    pub(super) location: Location,
    /// Whether it is the very program that is run, not one file of many.
    pub(super) is_program: bool,
}

pub(super) struct PlacedEdit {
    pub(super) root: RootId,
    pub(super) edge: usize,
    pub(super) value: String,
    /// The path in the new value.
    pub(super) text: String,
    /// What the upstream scalar said, or what leads to the same place, where the new value alone
    /// would not.
    pub(super) before: Option<String>,
}

/// What a result depends on besides the graph.
pub(crate) struct Rules<'a> {
    /// Whether a lock holds this path of the source.
    pub owned: &'a dyn Fn(&str) -> bool,
    /// Whether a fetched program may be executable at this path of the result.
    pub trusted: &'a dyn Fn(&str) -> bool,
    /// Whether the licences of what is brought in come along.
    pub licenses: bool,
    /// What stays remote: as the graph was walked.
    pub leave: Option<&'a Config>,
}

pub(super) struct Builder<'a> {
    pub(super) graph: &'a Graph,
    pub(super) rules: &'a Rules<'a>,
    pub(super) safe: SafePaths,
    pub(super) names: HashMap<RootId, Rc<HashMap<usize, String>>>,
    pub(super) visited: HashSet<(Instance, RootId)>,
    pub(super) placed: BTreeMap<String, Placed>,
    pub(super) kept: HashSet<String>,
    /// What is known of charts, by the root that names them: indexes into the graph's notes.
    pub(super) chart_notes: HashMap<RootId, Vec<usize>>,
    pub(super) chart_homes: ChartHomes<'a>,
    /// The directories of charts that were brought in.
    pub(super) vendored: BTreeSet<String>,
    pub(super) failures: Vec<Failure>,
    /// Whether the tree of the user stays where it is, so that nothing in it needs to be changed but
    /// what names something remote, of remotes with these labels.
    pub(super) in_place: Option<&'a Chosen<'a>>,
}

/// Localizes a walked graph.
///
/// Every reference or file that cannot be placed; also when the result, walked again without a
/// network, does not hold together.
pub(crate) fn localize(
    graph: &Graph,
    load_restrictor: LoadRestrictor,
    rules: &Rules<'_>,
) -> Result<Localized, Failures> {
    let mut builder = Builder::new(graph, rules, None);
    let target = Instance { source: 0, base: String::new() };
    builder.place_root(&target, 0);
    let mut localized = builder.collect(&target)?;
    let kept = builder.kept;
    for directory in localized_directories(localized.files.keys()) {
        add_attributes(&mut localized.files, &directory, GITATTRIBUTES);
    }
    // What else was brought in lies where the attributes of the user's repository would hold. A chart sees every file
    // in its directory, so that nothing can be put there.
    let text = match graph.sources[0].repository {
        Some(_) => GITATTRIBUTES.to_owned(),
        None => chart_attributes(&builder.vendored),
    };
    if !text.is_empty() && !localized.files.contains_key(".gitattributes") {
        add_attributes(&mut localized.files, "", &text);
    }
    localized.left = graph_check::assert_whole(
        &localized,
        load_restrictor,
        rules.leave,
        graph.sources[0].repository.is_some(),
        &kept,
    )?;
    Ok(localized)
}

/// The changes of localizing in place.
pub(crate) struct InPlace {
    /// The files that are new or another by their path in the tree that was walked, and what was
    /// brought in.
    pub localized: Localized,
    /// The paths that unchanged references lead to.
    pub kept: HashSet<String>,
}

/// Whether to localize a remote with this label (empty: an absolute path) that this file of the user names.
pub(super) type Chosen<'a> = dyn Fn(&str, &str) -> bool + 'a;

/// Localizes the roots `starts` of a walked graph, and what they reach, in place. What could not be followed does not
/// change, and neither does what is not `chosen`.
pub(crate) fn localize_in_place(
    graph: &Graph,
    starts: &[RootId],
    rules: &Rules<'_>,
    chosen: &Chosen<'_>,
) -> Result<InPlace, Failures> {
    let mut builder = Builder::new(graph, rules, Some(chosen));
    let top = Instance { source: 0, base: String::new() };
    for start in starts {
        builder.place_root(&top, *start);
    }
    let mut localized = builder.collect(&top)?;
    let brought = localized.files.iter();
    let brought = brought.filter(|(place, _)| !localized.local_files.contains(*place));
    for directory in localized_directories(brought.map(|(place, _)| place)) {
        add_attributes(&mut localized.files, &directory, GITATTRIBUTES);
    }
    let kept = builder.kept;
    Ok(InPlace { localized, kept })
}

/// Puts a `.gitattributes` with this text into a directory.
fn add_attributes(files: &mut BTreeMap<String, ResultFile>, directory: &str, text: &str) {
    let attributes = ResultFile {
        content: Content::Bytes(text.as_bytes().into()),
        executable: false,
        stripped: false,
        remote: None,
        source: None,
        rewritten: BTreeMap::new(),
    };
    files.insert(path::join(directory, ".gitattributes"), attributes);
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

impl<'a> Builder<'a> {
    fn new(graph: &'a Graph, rules: &'a Rules<'a>, in_place: Option<&'a Chosen<'a>>) -> Self {
        Builder {
            graph,
            rules,
            safe: SafePaths::new(graph),
            names: HashMap::new(),
            visited: HashSet::new(),
            placed: BTreeMap::new(),
            kept: HashSet::new(),
            chart_notes: chart::notes(graph),
            chart_homes: graph.chart_homes(),
            vendored: BTreeSet::new(),
            failures: Vec::new(),
            in_place,
        }
    }
}

/// Collected from the files of a result.
#[derive(Default)]
struct Collected {
    files: BTreeMap<String, ResultFile>,
    rewritten: Vec<Rewritten>,
    local_files: BTreeSet<String>,
    untrusted: Vec<Untrusted>,
    trusted: HashSet<FileId>,
    failures: Vec<Failure>,
}

impl Builder<'_> {
    fn collect(&mut self, target: &Instance) -> Result<Localized, Failures> {
        let graph = self.graph;
        let mut found = Collected::default();
        for (place, placed) in &self.placed {
            match self.file(place, placed, &mut found) {
                Ok(file) => {
                    found.files.insert(place.clone(), file);
                }
                Err(failure) => found.failures.push(failure),
            }
        }
        self.failures.append(&mut found.failures);
        let mut warnings = self.rewritten_data();
        if self.rules.licenses
            && let Err(failure) = self.add_licenses(&mut found.files, &mut warnings)
        {
            self.failures.push(failure);
        }
        let remotes = remotes::remotes(graph).unwrap_or_else(|failure| {
            self.failures.push(failure);
            Vec::new()
        });
        if !self.failures.is_empty() {
            return Err(Failures(std::mem::take(&mut self.failures)));
        }
        Ok(Localized {
            files: found.files,
            rewritten: found.rewritten,
            remotes,
            target: match graph.roots.first() {
                Some(root) => self.destination(target, &root.directory),
                None => String::new(),
            },
            local_files: found.local_files,
            vendored: self.vendored.clone(),
            left: Vec::new(),
            untrusted: found.untrusted,
            trusted: found.trusted,
            warnings,
        })
    }

    /// Returns a file of the result, and adds to `found` what there is to report about it.
    fn file(&self, place: &str, placed: &Placed, found: &mut Collected) -> Result<ResultFile> {
        let graph = self.graph;
        let file = &graph.files[placed.file];
        let (remote, source) = match &file.origin {
            Origin::Remote(remote) => (Some(remote.url.shown()), None),
            Origin::Archive { archive, path } => (Some(archive.chart.label()), Some(path.clone())),
            Origin::Tree { source, path } => match &graph.sources[*source].repository {
                Some(repository) => (Some(remotes::git(repository).label()), Some(path.clone())),
                None => {
                    found.local_files.insert(path.clone());
                    (None, None)
                }
            },
        };
        let is_local = remote.is_none();
        let may_run = self.may_run(placed);
        let is_trusted = may_run.is_some() && (self.rules.trusted)(place);
        if is_trusted {
            found.trusted.insert(placed.file);
        }
        let mut result = ResultFile {
            content: self.content(placed.file),
            executable: (file.executable && is_local) || is_trusted,
            stripped: may_run.is_some() && !is_trusted,
            remote,
            source,
            rewritten: BTreeMap::new(),
        };
        if let Some(needed) = may_run.filter(|_| !is_trusted) {
            found.untrusted.push(Untrusted {
                path: place.to_owned(),
                sha256: sha256_hex(result.content.bytes()),
                location: needed.location.clone(),
                remote: result.remote.clone().unwrap_or_default(),
            });
        }
        if let Some(bytes) = self.edited(placed)? {
            result.content = Content::Bytes(bytes.into());
        }
        let mut is_reversible = true;
        if !placed.charts.is_empty() {
            found.rewritten.extend(placed.charts.rewritten(graph, place));
            // A removed field cannot be restored.
            is_reversible = false;
        }
        for edit in &placed.edits {
            let edge = &graph.roots[edit.root].edges[edit.edge];
            let text = &edge.reference.text;
            found.rewritten.push(Rewritten {
                path: place.to_owned(),
                location: graph.location(edge.from, &edge.reference),
                from: redact::url(text),
                to: edit.text.clone(),
            });
            if let Some(before) = edit.before.as_ref().filter(|_| !is_local) {
                if redact::has_secret(text) {
                    // Nor can what is written nowhere.
                    is_reversible = false;
                } else {
                    result.rewritten.insert(edit.value.clone(), before.clone());
                }
            }
        }
        if !is_reversible && !is_local {
            // This file is fetched again.
            result.source = None;
            if matches!(file.origin, Origin::Remote(_)) {
                result.remote = None;
                result.rewritten.clear();
            }
        }
        Ok(result)
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

    /// Returns what a file holds after its edits, if there are any.
    fn edited(&self, placed: &Placed) -> Result<Option<Vec<u8>>> {
        if placed.edits.is_empty() && placed.charts.is_empty() {
            return Ok(None);
        }
        let graph = self.graph;
        let edits: Vec<Edit<'_>> = placed
            .edits
            .iter()
            .map(|edit| Edit {
                spot: &graph.roots[edit.root].edges[edit.edge].reference.spot,
                value: Some(edit.value.clone()),
            })
            .chain(placed.charts.edits(graph))
            .collect();
        let bytes = &graph.files[placed.file].bytes;
        let edited = kustomization::edit(bytes, &edits);
        edited.map(Some).map_err(|error| {
            let location = Location { line: error.line, column: error.column, ..graph.place(placed.file) };
            Failure::new(format!("cannot be rewritten: {error}"))
                .at(location)
                .hint("write the value out where it is used, plainly quoted")
        })
    }

    /// Warns of files that are rewritten for what they reference, and are also read as data.
    fn rewritten_data(&self) -> Vec<Warning> {
        let graph = self.graph;
        let edited: HashSet<FileId> = self
            .placed
            .values()
            .filter(|placed| !placed.edits.is_empty() || !placed.charts.is_empty())
            .map(|placed| placed.file)
            .collect();
        let for_plugins = graph.plugin_roots();
        let roots = graph.roots.iter().enumerate();
        roots
            .filter(|(id, _)| !for_plugins.contains(id))
            .flat_map(|(_, root)| &root.edges)
            .filter(|edge| edge.reference.accepts != Accepts::Plugin)
            .filter(|edge| match edge.target {
                Target::File(file) => edited.contains(&file),
                Target::Carried(id) => graph.carried[id]
                    .files
                    .values()
                    .any(|file| edited.contains(file)),
                _ => false,
            })
            .map(|edge| {
                let text = redact::url(&edge.reference.text);
                let location = graph.location(edge.from, &edge.reference);
                Warning::new(
                    Rule::RewrittenData,
                    location,
                    format!("`{text}` is also read as data here, but what it references was rewritten: the build will differ"),
                )
            })
            .collect()
    }

    fn content(&self, file: FileId) -> Content {
        let file = &self.graph.files[file];
        let stored = match &file.origin {
            Origin::Tree { source, path } => self.graph.sources[*source].tree.stored(path),
            Origin::Remote(_) | Origin::Archive { .. } => None,
        };
        match stored {
            Some(id) => Content::Stored(id, file.bytes.clone()),
            None => Content::Bytes(file.bytes.clone()),
        }
    }
}

/// Returns every directory called `localized-files` that holds something of the result.
fn localized_directories<'a>(paths: impl Iterator<Item = &'a String>) -> BTreeSet<String> {
    let mut directories = BTreeSet::new();
    for place in paths {
        let mut directory = path::parent(place);
        while !directory.is_empty() {
            if path::name(directory) == LOCALIZED_FILES {
                directories.insert(directory.to_owned());
            }
            directory = path::parent(directory);
        }
    }
    directories
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::checkout::{Conversion, Filters};
    use crate::tree::memory::MemoryTree;

    #[test]
    fn the_attributes_of_charts_hold_for_them_alone() {
        let charts = ["charts/web", "a b/\"c\\d/*[x]?", "app/localized-files/h/charts/web"];
        let charts = charts.map(str::to_owned).into_iter().collect();
        let own = chart_attributes(&charts);
        assert_eq!(own.lines().count(), 2, "{own}");
        let mut tree = MemoryTree::default();
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
