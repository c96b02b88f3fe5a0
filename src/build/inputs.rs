//! Where builds find their files: of each tree of a graph what its roots read, and what was fetched.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use super::disk;
use super::proxy::{self, Served};
use super::stand_in::{Manifest, Upstream};
use crate::graph::inputs::{Input, of_no_root};
use crate::graph::{FileId, Graph, Origin, Place, RemoteFile, RootId, Source, SourceId, Target};
use crate::kustomization::{NoteKind, Runs};
use crate::message::failure::Result;
use crate::plan::Plan;
use crate::reference::RepoSpec;
use crate::tree::checkout::Conversion;
use crate::tree::overlay::OverlayTree;
use crate::tree::{Entry, SharedTree, path};

/// What answers a build.
pub(super) struct Answers {
    /// The manifest of the [stand-in](super::stand_in).
    pub(super) manifest: PathBuf,
    pub(super) files: Files,
}

/// Where a build gets remote files.
pub(super) enum Files {
    /// From here. With `is_closed` from nowhere else, whatever it asks.
    Served { served: Arc<Served>, is_closed: bool },
    /// From upstream once more: nothing here can answer in its place.
    Upstream,
}

impl Answers {
    /// Takes what a walk has fetched, of which the repositories were [written](of_graph) below `top`.
    pub(super) fn of(graph: &Graph, offline: bool, top: &Path) -> Result<Answers> {
        let sources = graph.sources.iter().enumerate();
        let upstreams = sources
            .filter_map(|(number, source)| Some(Upstream::new(source.repository.as_ref()?, place(graph, number, top))));
        let images = graph.notes.iter().filter_map(|noted| match &noted.note.kind {
            NoteKind::Code { runs: Runs::Image { image, .. }, .. } => Some(image.clone()),
            _ => None,
        });
        let manifest = Manifest { upstreams: upstreams.collect(), images: images.collect() }.write(top)?;
        let remote = graph.files.iter().filter_map(|file| match &file.origin {
            Origin::Remote(remote) => Some(&**remote),
            Origin::Tree { .. } | Origin::Archive { .. } => None,
        });
        let remote: Vec<&RemoteFile> = remote.collect();
        if !offline && !proxy::IS_TRUSTED && !remote.is_empty() {
            return Ok(Answers { manifest, files: Files::Upstream });
        }
        let edges = graph.roots.iter().flat_map(|root| &root.edges);
        let repositories = edges.filter(|edge| matches!(edge.target, Target::Root { remote: true, .. }));
        let is_direct = |file: &&RemoteFile| proxy::is_direct(file.url.exposed());
        let is_closed = offline || !remote.iter().any(is_direct);
        let remote = remote.iter().map(|file| (file.url.exposed(), &*file.bytes));
        let served = Served::new(remote, repositories.map(|edge| edge.reference.text.as_str()), top)?;
        Ok(Answers { manifest, files: Files::Served { served: Arc::new(served), is_closed } })
    }
}

/// Returns where a tree of a graph lies below `top`.
pub(super) fn place(graph: &Graph, source: SourceId, top: &Path) -> PathBuf {
    match graph.sources[source].repository {
        None => top.join("tree"),
        Some(_) => top.join(format!("upstream/{source}")),
    }
}

/// Writes what some roots of a graph, and all that these lead to, are built from. With `checks_out` the user's files are
/// those of a checkout.
pub(super) fn of_graph(
    graph: &Graph,
    roots: impl IntoIterator<Item = RootId>,
    trusted: &HashSet<FileId>,
    checks_out: bool,
    top: &Path,
) -> Result<()> {
    let mut parts: Vec<Part> = graph.sources.iter().map(Part::of).collect();
    let roots = graph.reach(roots, |_, _, _| true);
    let mut files = BTreeSet::new();
    let mut urls: Vec<(SourceId, &str)> = Vec::new();
    for id in &roots {
        let root = &graph.roots[*id];
        parts[root.source].add(&graph.inputs(*id)?.own)?;
        for edge in &root.edges {
            if let Target::Root { id, remote: true } = edge.target {
                urls.push((graph.roots[id].source, &edge.reference.text));
            }
        }
        files.extend(graph.read_by(*id));
    }
    // The links on the way to the directory that a URL names.
    for (source, url) in urls {
        if let Ok(spec) = RepoSpec::parse(url) {
            parts[source].add(&of_no_root(&*graph.sources[source].tree, &spec.directory(), &[])?)?;
        }
    }
    for id in files {
        let file = &graph.files[id];
        if let Origin::Tree { source, path } = &file.origin
            && graph.sources[*source].repository.is_some()
        {
            parts[*source].put(path, &graph.read(id)?, file.executable && trusted.contains(&id));
        }
    }
    // Charts that were pulled lie where kustomize looks for them, so that it pulls none itself.
    for chart in graph.charts.iter().filter(|chart| roots.contains(&chart.root)) {
        let part = &mut parts[graph.roots[chart.root].source];
        if let (Some(archive), Place::Missing(directory)) = (&chart.archive, &chart.place)
            && path::is_in(directory, &part.source.scope)
        {
            archive.files.iter().for_each(|(name, bytes)| part.put(&path::join(directory, name), bytes, false));
        }
    }
    for (number, part) in parts.iter().enumerate() {
        let conversion = conversion(checks_out && part.source.repository.is_none());
        disk::write_temporary(&part.tree, &part.places, conversion.as_ref(), &place(graph, number, top))?;
    }
    Ok(())
}

/// Writes everything that roots of a tree may reach.
pub(super) fn whole(source: &Source, checks_out: bool, top: &Path) -> Result<()> {
    disk::write_temporary(&*source.tree, source.tree.below(&source.scope)?, conversion(checks_out).as_ref(), top)
}

/// Writes a copy as a plan makes it. `checkout` is the commit that it becomes a part of.
pub(super) fn of_copy(plan: &Plan, into: &str, checkout: Option<&SharedTree>, top: &Path) -> Result<()> {
    let mut tree = OverlayTree::new(checkout.cloned().unwrap_or_else(|| Rc::new(OverlayTree::default())));
    let mut places = Vec::new();
    for (place, file) in &plan.changes {
        if let Some(file) = file
            && path::is_in(place, into)
        {
            tree.file(place, &file.bytes, file.executable);
            places.push(place);
        }
    }
    disk::write_temporary(&tree, places, conversion(checkout.is_some()).as_ref(), top)
}

/// Returns what makes files those of a checkout: line ends, `ident` and encodings follow the attributes that hold where a
/// file lies. Both builds would see what a filter makes of one, which only who configured it knows.
fn conversion(checks_out: bool) -> Option<Conversion> {
    checks_out.then(|| Conversion::new(false, gix::hash::Kind::Sha1))
}

/// What builds read of one tree.
struct Part<'a> {
    source: &'a Source,
    /// The tree, with what the walk has read of a fetched one, which may be partial.
    tree: OverlayTree,
    places: BTreeSet<String>,
}

impl<'a> Part<'a> {
    fn of(source: &'a Source) -> Part<'a> {
        Part { source, tree: OverlayTree::new(source.tree.clone()), places: BTreeSet::new() }
    }

    fn add(&mut self, inputs: &[Input]) -> Result<()> {
        let tree = &*self.source.tree;
        for input in inputs {
            let places = match input {
                Input::At(place) => vec![place.clone()],
                Input::Below(directory) => tree.below(directory)?,
                Input::Remote(_) | Input::Chart(_) => continue,
            };
            for place in places {
                let is_fetched = || self.source.repository.is_some();
                let is_file = || Ok(matches!(tree.entry(&place)?, Some(Entry::File { .. })));
                if path::is_in(&place, &self.source.scope) && !(is_fetched() && is_file()?) {
                    self.places.insert(place);
                }
            }
        }
        Ok(())
    }

    fn put(&mut self, place: &str, bytes: &[u8], executable: bool) {
        self.tree.file(place, bytes, executable);
        self.places.insert(place.to_owned());
    }
}
