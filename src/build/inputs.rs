//! Where builds find their files: of each tree of a graph what its roots read, and what was fetched.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::disk;
use super::fake_git::{self, Upstream};
use super::proxy::{self, Proxy};
use crate::graph::inputs::{Input, of_no_root};
use crate::graph::{FileId, Graph, Origin, Place, RemoteFile, RootId, Source, SourceId, Target};
use crate::message::failure::Result;
use crate::plan::Plan;
use crate::reference::RepoSpec;
use crate::tree::checkout::Conversion;
use crate::tree::overlay::OverlayTree;
use crate::tree::{Entry, SharedTree, path};

/// What a graph has of remote repositories and files, to answer builds with.
pub(super) struct Fetched {
    /// The repositories, for the stand-in for git.
    pub(super) manifest: PathBuf,
    pub(super) files: Files,
}

/// Where a build gets remote files.
pub(super) enum Files {
    /// From nowhere.
    None,
    /// From here.
    Served(Proxy),
    /// From upstream once more: nothing here can answer in its place.
    Upstream,
}

impl Fetched {
    /// Takes what a walk has fetched, of which the repositories were [written](of_graph) below `top`.
    pub(super) fn of(graph: &Graph, offline: bool, top: &Path) -> Result<Fetched> {
        let sources = graph.sources.iter().enumerate();
        let upstreams: Vec<Upstream> = sources
            .filter_map(|(number, source)| Some(Upstream::new(source.repository.as_ref()?, place(graph, number, top))))
            .collect();
        let remote = graph.files.iter().filter_map(|file| match &file.origin {
            Origin::Remote(remote) => Some(&**remote),
            Origin::Tree { .. } | Origin::Archive { .. } => None,
        });
        let remote: Vec<&RemoteFile> = remote.collect();
        let is_direct = |file: &&RemoteFile| proxy::is_direct(file.url.exposed());
        let files = if remote.is_empty() {
            Files::None
        } else if proxy::IS_TRUSTED && !(offline && remote.iter().any(is_direct)) {
            Files::Served(Proxy::start(remote.iter().map(|file| (file.url.exposed(), &*file.bytes)), top)?)
        } else if offline {
            Files::None
        } else {
            Files::Upstream
        };
        Ok(Fetched { manifest: fake_git::write(&upstreams, top)?, files })
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
