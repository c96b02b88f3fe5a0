//! Where both builds find their files: of each tree what the roots read, and what was fetched.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::Job;
use super::checkout::{Stored, convert};
use super::disk::{self, not_written};
use super::fake_git::{self, Upstream};
use super::proxy::{self, Proxy};
use crate::graph::inputs::{Input, Inputs, of_no_root};
use crate::graph::{FileId, Graph, Origin, Place, RemoteFile, RootId, SourceId, Target};
use crate::kustomization::{self, Edit, NoteKind};
use crate::message::failure::Result;
use crate::plan::{Affected, Original};
use crate::reference::RepoSpec;
use crate::tree::checkout::FILE_NAME as ATTRIBUTES;
use crate::tree::overlay::OverlayTree;
use crate::tree::{self, SharedTree, path};

/// Original and result on disk, for all roots that are built.
pub(super) struct BuildInputs {
    /// What builds read, and may not change.
    pub(super) input: PathBuf,
    /// What was fetched, for the stand-in for git.
    pub(super) manifest: PathBuf,
    /// Serves the remote files of the originals, where that can be.
    pub(super) proxy: Option<Proxy>,
    /// Whether everything that the originals need is here or served, so that nothing is requested again.
    pub(super) is_complete: bool,
    /// What the scope of the originals is, from the top.
    scope: String,
}

impl BuildInputs {
    /// Writes everything that the builds of these roots read, below `top`.
    pub(super) fn write(job: &Job<'_>, built: &[&Affected], top: &Path) -> Result<BuildInputs> {
        let graph = &job.plan.before;
        let input = top.join("input");
        let place = |source: SourceId| match graph.sources[source].repository {
            None => input.join("original"),
            Some(_) => input.join(format!("upstream/{source}")),
        };
        let trusted = &job.plan.trusted;
        let mut writer = Writer::new(graph, &place, trusted);
        writer.roots(built.iter().map(|one| one.root))?;
        for one in built {
            if let Original::Url(url) = &one.original {
                writer.named_by_url(0, url)?;
            }
        }
        writer.move_absolute()?;
        // On disk, and of what was fetched, they are what a checkout gives.
        if job.checkout.is_some() {
            convert(&writer.stored, &*graph.sources[0].tree)?;
        }
        write_result(job, built, &input.join("localized"))?;
        let remote = graph.files.iter().filter_map(|file| match &file.origin {
            Origin::Remote(remote) => Some(&**remote),
            Origin::Tree { .. } | Origin::Archive { .. } => None,
        });
        let remote: Vec<&RemoteFile> = remote.collect();
        let proxy = if proxy::IS_TRUSTED && !remote.is_empty() {
            Some(Proxy::start(remote.iter().map(|file| (file.url.exposed(), &*file.bytes)), top)?)
        } else {
            None
        };
        let is_here = |file: &&RemoteFile| proxy.is_some() && !proxy::is_direct(file.url.exposed());
        let sources = graph.sources.iter().enumerate();
        let upstreams = sources.filter_map(|(number, source)| {
            let repository = source.repository.as_ref()?;
            Some(Upstream::new(repository, place(number)))
        });
        Ok(BuildInputs {
            manifest: fake_git::write(&upstreams.collect::<Vec<_>>(), top)?,
            is_complete: remote.iter().all(is_here),
            proxy,
            input,
            scope: graph.sources.first().map(|source| source.scope.clone()).unwrap_or_default(),
        })
    }

    /// Returns what to build for an original.
    pub(super) fn original(&self, original: &Original) -> PathBuf {
        match original {
            Original::Directory(directory) => self.input.join("original").join(path::join(&self.scope, directory)),
            Original::Url(url) => PathBuf::from(url),
        }
    }

    /// Returns what to build for a result.
    pub(super) fn localized(&self, directory: &str) -> PathBuf {
        self.input.join("localized").join(directory)
    }

    /// Returns what a build said without the temporary directories that it names, on one line.
    pub(super) fn plain(&self, said: &str) -> String {
        // What is deprecated is no reason, and kustomize says it before the reason.
        let is_cause = |line: &&str| {
            let is_flag = line.starts_with("Flag --") && line.contains(" has been deprecated");
            !is_flag && !line.starts_with("# Warning:")
        };
        let mut text = said.lines().filter(is_cause).collect::<Vec<_>>().join("\n");
        for place in [self.original(&Original::Directory(String::new())), self.localized("")] {
            let place = place.display().to_string();
            let place = place.trim_end_matches('/');
            text = text.replace(&format!("{place}/"), "").replace(place, ".");
        }
        // The message of a command that it ran has several lines.
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        cause(text.strip_prefix("Error: ").unwrap_or(&text))
    }
}

/// Returns what went wrong, and in which root: kustomize first lists everything else that it took the root for.
fn cause(text: &str) -> String {
    let innermost = text.rsplit_once("recursed ").and_then(|(_, rest)| rest.split_once("path '")?.1.split_once("': "));
    match innermost {
        None => text.to_owned(),
        // A fetched root lies in a temporary directory, whose name means nothing to the user.
        Some((path, cause)) if path.starts_with('/') => cause.to_owned(),
        Some((path, cause)) => format!("in `{path}`: {cause}"),
    }
}

/// Writes the results, as a checkout gives them.
fn write_result(job: &Job<'_>, built: &[&Affected], localized: &Path) -> Result<()> {
    let (stored, attributes): (Stored, SharedTree) = match &job.plan.new_dir {
        None => {
            let graph = &job.plan.after;
            let known = graph.own_roots();
            let (place, trusted) = (|_| localized.to_owned(), HashSet::new());
            let mut writer = Writer::new(graph, &place, &trusted);
            writer.roots(built.iter().filter_map(|one| known.get(one.localized.as_str()).copied()))?;
            writer.move_absolute()?;
            (writer.stored, graph.sources[0].tree.clone())
        }
        Some(into) => {
            let nothing = || -> SharedTree { Rc::new(OverlayTree::default()) };
            let mut tree = OverlayTree::new(job.checkout.clone().unwrap_or_else(nothing));
            let mut stored = Stored::new();
            for (place, file) in &job.plan.changes {
                let (Some(file), Some(inside)) = (file, path::below(place, into)) else { continue };
                disk::write(&localized.join(inside), &file.bytes, file.executable)?;
                if path::name(place) == ATTRIBUTES {
                    tree.file(place, &file.bytes, false);
                }
                stored.insert(place.clone(), localized.join(inside));
            }
            (stored, Rc::new(tree))
        }
    };
    match job.checkout {
        Some(_) => convert(&stored, &*attributes),
        None => Ok(()),
    }
}

/// Writes what roots read, each tree into a directory of its own.
struct Writer<'a> {
    graph: &'a Graph,
    inputs: Inputs<'a>,
    place: &'a dyn Fn(SourceId) -> PathBuf,
    /// The fetched files that stay executable.
    trusted: &'a HashSet<FileId>,
    done: HashSet<(SourceId, String)>,
    /// The files of the user's tree that were written as it holds them.
    stored: Stored,
}

impl<'a> Writer<'a> {
    fn new(graph: &'a Graph, place: &'a dyn Fn(SourceId) -> PathBuf, trusted: &'a HashSet<FileId>) -> Writer<'a> {
        let inputs = Inputs::of(graph);
        Writer { graph, inputs, place, trusted, done: HashSet::new(), stored: Stored::new() }
    }

    /// Writes what some roots, and all that these lead to, are built from.
    fn roots(&mut self, starts: impl Iterator<Item = RootId>) -> Result<()> {
        let graph = self.graph;
        for number in 0..graph.sources.len() {
            fs::create_dir_all((self.place)(number)).map_err(|error| not_written(&error))?;
        }
        let roots = graph.reach(starts, |_, _, _| true);
        let mut files = BTreeSet::new();
        for id in &roots {
            let root = &graph.roots[*id];
            for input in self.inputs.of_root(*id)?.own {
                match input {
                    // For the programs of functions: they come with the references that name them.
                    Input::Below(directory) if directory == root.directory => {}
                    input => self.put(root.source, &input)?,
                }
            }
            for edge in &root.edges {
                if let Target::Root { id, remote: true } = edge.target {
                    self.named_by_url(graph.roots[id].source, &edge.reference.text)?;
                }
            }
            files.extend(graph.read_by(*id));
        }
        for id in files {
            let file = &graph.files[id];
            if let Origin::Tree { source, path } = &file.origin
                && graph.sources[*source].repository.is_some()
            {
                let executable = file.executable && self.trusted.contains(&id);
                disk::write(&(self.place)(*source).join(path), &graph.read(id)?, executable)?;
            }
        }
        self.charts(&roots)
    }

    /// Writes the links on the way to the directory that a URL names.
    fn named_by_url(&mut self, source: SourceId, url: &str) -> Result<()> {
        let Ok(spec) = RepoSpec::parse(url) else {
            return Ok(());
        };
        let inputs = of_no_root(&*self.graph.sources[source].tree, &spec.directory(), &[])?;
        inputs.iter().try_for_each(|input| self.put(source, input))
    }

    /// Puts the charts that were pulled where kustomize looks for them, so that it pulls none itself.
    fn charts(&self, roots: &BTreeSet<RootId>) -> Result<()> {
        let graph = self.graph;
        for chart in graph.charts.iter().filter(|chart| roots.contains(&chart.root)) {
            let source = graph.roots[chart.root].source;
            if let (Some(archive), Place::Missing(directory)) = (&chart.archive, &chart.place)
                && path::is_in(directory, &graph.sources[source].scope)
            {
                let to = (self.place)(source).join(directory);
                archive.files.iter().try_for_each(|(name, bytes)| disk::write(&to.join(name), bytes, false))?;
            }
        }
        Ok(())
    }

    fn put(&mut self, source: SourceId, input: &Input) -> Result<()> {
        let tree = &*self.graph.sources[source].tree;
        match input {
            Input::At(place) => self.put_at(source, place),
            Input::Below(directory) => tree.below(directory)?.iter().try_for_each(|place| self.put_at(source, place)),
            Input::Remote(_) | Input::Chart(_) => Ok(()),
        }
    }

    fn put_at(&mut self, source: SourceId, place: &str) -> Result<()> {
        let from = &self.graph.sources[source];
        if !path::is_in(place, &from.scope) || !self.done.insert((source, place.to_owned())) {
            return Ok(());
        }
        let is_file = matches!(from.tree.entry(place)?, Some(tree::Entry::File { .. }));
        // A fetched tree may be partial: what the walk has read of it is written from the graph.
        if is_file && from.repository.is_some() {
            return Ok(());
        }
        let top = (self.place)(source);
        if is_file {
            self.stored.insert(place.to_owned(), top.join(place));
        }
        disk::put(&*from.tree, place, &top)
    }

    /// Lets absolute paths of the user's tree lead to where it was written.
    fn move_absolute(&self) -> Result<()> {
        let graph = self.graph;
        let mut edits: BTreeMap<FileId, Vec<Edit<'_>>> = BTreeMap::new();
        for (id, root) in graph.roots.iter().enumerate() {
            let top = (self.place)(root.source).display().to_string();
            let moved = |text: &str| {
                let inside = graph.local_path(id, text).filter(|_| path::is_absolute(text));
                inside.map(|inside| path::join(&top, &inside))
            };
            for edge in root.edges.iter().filter(|edge| matches!(edge.target, Target::File(_))) {
                if let Some(text) = moved(&edge.reference.text) {
                    let value = edge.reference.with_path(&text);
                    edits.entry(edge.from).or_default().push(Edit { spot: &edge.reference.spot, value });
                }
            }
            for noted in graph.notes.iter().filter(|noted| noted.root == id) {
                if let NoteKind::ChartHome { path: text, spot } = &noted.note.kind
                    && let Some(text) = moved(text)
                {
                    edits.entry(noted.file).or_default().push(Edit { spot, value: text });
                }
            }
        }
        for (file, edits) in edits {
            let bytes = graph.bytes(file);
            if let Some(written) = graph.own_path(file).and_then(|path| self.stored.get(path))
                // A file that cannot be edited is left unchanged; the build reports what is wrong with it.
                && let Ok(edited) = kustomization::edit(&bytes, &edits)
            {
                disk::write(written, &edited, graph.files[file].executable)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::cause;

    #[test]
    fn the_cause_is_extracted_from_kustomize_output() {
        for (said, expected) in [
            ("no such file", "no such file"),
            (
                "accumulating resources: accumulation err='accumulating resources from '../../base': 'base' must resolve to a file': recursed merging from path 'base': may not add resource",
                "in `base`: may not add resource",
            ),
            (
                "accumulating resources: accumulation err='x': recursed accumulation of path '/tmp/a/kustomize-1/gen': accumulation err='y': recursed accumulation of path '/tmp/a/kustomize-2': external plugins disabled",
                "external plugins disabled",
            ),
        ] {
            assert_eq!(cause(said), expected);
        }
    }
}
