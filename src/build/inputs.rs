//! Lays out the files of builds: for each tree of a graph the files that its roots read, and the fetched files.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use super::disk::{self, Layout, Pool};
use super::proxy::{self, Served};
use super::roots::Writing;
use super::stand_in::{ClonedCommit, Manifest};
use crate::graph::inputs::{BuildInput, RootInputs, inputs_of_directory, leads_out};
use crate::graph::{ChartLookup, FileId, Graph, Origin, RemoteFile, Resolution, RootId, ScopedTree, SourceId};
use crate::kustomization::{NoteKind, Runs};
use crate::message::failure::Result;
use crate::os::parallel::locked;
use crate::plan::Plan;
use crate::reference::RepoSpec;
use crate::tree::checkout::Conversion;
use crate::tree::overlay::OverlayTree;
use crate::tree::{self, SharedTree, Tree as _, path};

/// The responses to the requests of a build.
pub(super) struct Answers {
    /// The manifest of the [stand-in](super::stand_in).
    pub(super) manifest: PathBuf,
    pub(super) files: RemoteFiles,
    /// Whether functions are images, which container engines run.
    pub(super) has_images: bool,
    /// Whether a path leads out of the tree, so that a file there may be read, and may change.
    reads_outside: bool,
    /// The identity of each repository, and the directory with its files.
    fetched: Vec<(String, PathBuf)>,
    /// The digests of directories, once they are asked for.
    digests: Mutex<BTreeMap<PathBuf, String>>,
}

/// The sources of remote files for a build.
pub(super) enum RemoteFiles {
    /// The proxy answers with fetched files. With `is_closed` the build reaches nothing else.
    Served { served: Arc<Served>, is_closed: bool },
    /// The build fetches them from upstream once more, because nothing on this machine can answer in the place of
    /// upstream.
    Upstream,
}

impl Answers {
    /// The responses from a walk, whose repositories are [written](lay_out) below `top`.
    pub(super) fn of(graph: &Graph, offline: bool, top: &Path) -> Result<Answers> {
        let sources = graph.sources.iter().enumerate();
        let upstreams = sources.filter_map(|(number, source)| {
            Some(ClonedCommit::new(source.repository.as_ref()?, upstream_dir(SourceId(number), top)))
        });
        let images = graph.notes.iter().filter_map(|noted| match &noted.note.kind {
            NoteKind::Code { runs: Runs::Image { image, .. }, .. } => Some(image.clone()),
            _ => None,
        });
        let manifest = Manifest { upstreams: upstreams.collect(), images: images.collect() };
        Ok(Answers {
            // First, because it makes the directory.
            manifest: manifest.write(top)?,
            files: RemoteFiles::of(graph, offline, top)?,
            has_images: !manifest.images.is_empty(),
            reads_outside: graph.reads_outside(),
            fetched: manifest.upstreams.iter().map(ClonedCommit::identity).collect(),
            digests: Mutex::default(),
        })
    }

    /// The digest of everything that a build may read: of its own files, whose digest is `files`, and of the responses.
    /// `None` if the build may read other files, or reach a server.
    pub(super) fn digest_with(&self, files: &str) -> Result<Option<String>> {
        if self.reads_outside {
            return Ok(None);
        }
        let RemoteFiles::Served { served, is_closed: true } = &self.files else { return Ok(None) };
        let mut lines: Vec<String> = Vec::new();
        for (identity, directory) in &self.fetched {
            lines.push(format!("{identity} {}\n", self.digest_below(directory)?));
        }
        lines.sort();
        Ok(Some(format!("{}{}{files}", lines.concat(), served.digest())))
    }

    /// The digest of a directory; empty if it is missing, because nothing was written for it.
    pub(super) fn digest_below(&self, directory: &Path) -> Result<String> {
        // The directories do not change, so each is read once.
        if let Some(digest) = locked(&self.digests).get(directory) {
            return Ok(digest.clone());
        }
        // Unlocked: other builds need not wait for it.
        let digest = if directory.exists() { disk::digest(directory)? } else { String::new() };
        Ok(locked(&self.digests).entry(directory.to_owned()).or_insert(digest).clone())
    }
}

impl RemoteFiles {
    /// Serves the remote files of a walk to its builds. `offline` is whether nothing may be asked of an upstream.
    fn of(graph: &Graph, offline: bool, top: &Path) -> Result<RemoteFiles> {
        let remote = graph.files.iter().filter_map(|file| match &file.origin {
            Origin::Remote(remote) => Some(&**remote),
            Origin::Tree { .. } | Origin::Archive { .. } => None,
        });
        let remote: Vec<&RemoteFile> = remote.collect();
        // On a system where kustomize refuses the certificate of our proxy, it must ask the servers themselves.
        if !offline && !proxy::IS_TRUSTED && !remote.is_empty() {
            return Ok(RemoteFiles::Upstream);
        }
        // kustomize first asks for a repository as if its URL were that of a file.
        let edges = graph.roots.iter().flat_map(|root| &root.edges);
        let repositories = edges.filter(|edge| matches!(edge.resolution, Resolution::Root { remote: true, .. }));
        // Go asks a host on this machine without the proxy, so then the network stays open.
        let is_closed = offline || !remote.iter().any(|file: &&RemoteFile| proxy::is_direct(file.url.exposed()));
        let remote = remote.iter().map(|file| (file.url.exposed(), &*file.bytes));
        let served = Served::new(remote, repositories.map(|edge| edge.reference.text.as_str()), top)?;
        Ok(RemoteFiles::Served { served: Arc::new(served), is_closed })
    }
}

/// The directory of the trees of the user's roots among the inputs of builds.
pub(super) const TREES: &str = "tree";

/// The directory of a fetched tree of a graph below `top`.
fn upstream_dir(source: SourceId, top: &Path) -> PathBuf {
    top.join(format!("upstream/{}", source.0))
}

/// The top of the tree for one of several roots, by its number.
pub(super) fn tree_dir(graph: &Graph, number: usize, top: &Path) -> PathBuf {
    match graph.sources[0].repository {
        // Each root of the user has its own tree, so that files of other roots are missing there.
        None => top.join(TREES).join(number.to_string()),
        Some(_) => upstream_dir(SourceId::FIRST, top),
    }
}

/// Lays out the inputs of some roots of a graph, each with its number, and of all roots that they reach, below `top`.
/// Files of upstreams, which all builds share, are written now. Returns the layout of the user's files for each number,
/// which its build writes; there are none if the roots are those of an upstream.
pub(super) fn lay_out(
    graph: &Graph,
    roots: impl IntoIterator<Item = (usize, RootId)>,
    writing: Writing<'_>,
    top: &Path,
    pool: &mut Pool,
) -> Result<BTreeMap<usize, Layout>> {
    let mut layouts = BTreeMap::new();
    // The files of all roots in one tree are collected for each source. The first source is the tree of the roots: the
    // user's, or for a remote target that of an upstream.
    let mut trees: Vec<TreeInputs> = graph.sources.iter().map(TreeInputs::of).collect();
    let mut inputs: BTreeMap<RootId, RootInputs> = BTreeMap::new();
    let conversion = conversion(writing.checks_out);
    for (number, start) in roots {
        for id in graph.reachable([start]) {
            let root = &graph.roots[id];
            // Roots of upstreams are collected once, and fetched files too, which lie in the trees of upstreams. Roots
            // of the user are collected for each number that reaches them.
            let root_inputs = match inputs.entry(id) {
                Entry::Vacant(new) => {
                    add_fetched_files(graph, id, writing.trusted, &mut trees)?;
                    new.insert(graph.inputs(id)?)
                }
                Entry::Occupied(known) if root.source == SourceId::FIRST => known.into_mut(),
                Entry::Occupied(_) => continue,
            };
            trees[root.source.0].add(&root_inputs.inputs)?;
            trees[root.source.0].put_charts(graph, id);
        }
        // The user's tree is collected anew for the next number, so that its build sees no file of this one.
        if graph.sources[0].repository.is_none() {
            let tree = std::mem::replace(&mut trees[0], TreeInputs::of(&graph.sources[0]));
            layouts.insert(number, tree.layout(conversion.as_ref(), &tree_dir(graph, number, top), pool)?);
        }
    }
    let fetched = trees.iter().enumerate().filter(|(_, tree)| tree.source.repository.is_some());
    for (number, tree) in fetched {
        tree.write(&upstream_dir(SourceId(number), top))?;
    }
    Ok(layouts)
}

/// Adds the fetched files that a root reads, and the links on the way to the directories of its URLs.
fn add_fetched_files(
    graph: &Graph,
    root: RootId,
    trusted: Option<&HashSet<FileId>>,
    trees: &mut [TreeInputs],
) -> Result<()> {
    // kustomize follows the path in a URL on disk, so that its links must exist there.
    for edge in &graph.roots[root].edges {
        if let Resolution::Root { id, remote: true } = edge.resolution
            && let Ok(spec) = RepoSpec::parse(&edge.reference.text)
        {
            let source = graph.roots[id].source;
            trees[source.0].add(&inputs_of_directory(&*graph.sources[source].tree, &spec.directory(), &[])?)?;
        }
    }
    for id in graph.files_of_build(root) {
        let file = &graph.files[id];
        if let Origin::Tree { source, path } = &file.origin
            && graph.sources[*source].repository.is_some()
        {
            // A fetched program runs only if the configuration trusts it.
            let is_trusted = trusted.is_some_and(|trusted| trusted.contains(&id));
            trees[source.0].put(path, &graph.read(id)?, file.executable && is_trusted);
        }
    }
    Ok(())
}

/// Why some roots cannot be built from the files that the walk knows, because a program of theirs may read files
/// outside of the tree; `None` if they can.
pub(super) fn outside_reason(graph: &Graph, roots: &BTreeSet<RootId>) -> Result<Option<String>> {
    // A chart or code may read whatever a link in its directory leads to.
    for &id in roots {
        let ScopedTree { tree, repository, .. } = &graph.sources[graph.roots[id].source];
        // Of a fetched tree only the files are written that the walk has read. Without helm and code, the walk knows
        // all that a build reads.
        if repository.is_some() || !graph.runs(id) {
            continue;
        }
        for input in graph.inputs(id)?.inputs {
            let BuildInput::Below(directory) = input else { continue };
            for path in tree.below(&directory)? {
                if let Some(why) = leads_out(&**tree, &path)? {
                    let reader = if graph.roots[id].runs_code { "code" } else { "helm" };
                    return Ok(Some(format!("{why}, and {reader} may read what is there")));
                }
            }
        }
    }
    Ok(None)
}

/// Writes everything that roots of a tree may reach.
pub(super) fn write_scope(source: &ScopedTree, checks_out: bool, top: &Path) -> Result<()> {
    disk::write_temporary(&*source.tree, source.tree.below(&source.scope)?, conversion(checks_out).as_ref(), top)
}

/// Writes the files of a copy, which the plan puts below `into`, to the same paths below `top`. `checkout` is the
/// source commit, if the copy becomes a part of a commit: the files are then written as a checkout has them, else
/// unchanged.
pub(super) fn write_copy(plan: &Plan, into: &str, checkout: Option<&SharedTree>, top: &Path) -> Result<()> {
    // Attributes of the commit above the copy decide how its files are checked out.
    let mut tree = OverlayTree::new(checkout.cloned().unwrap_or_else(|| Rc::new(OverlayTree::default())));
    let mut paths = Vec::new();
    for (path, file) in &plan.changes {
        // The plan of a copy writes only below `into`, and removes nothing.
        if let Some(file) = file
            && path::is_in(path, into)
        {
            tree.add_file_with_mode(path, &file.bytes, file.executable);
            paths.push(path);
        }
    }
    disk::write_temporary(&tree, paths, conversion(checkout.is_some()).as_ref(), top)
}

/// The conversion to files of a checkout: line ends, `ident` and encodings follow the attributes of each directory.
pub(super) fn conversion(checks_out: bool) -> Option<Conversion> {
    // A filter is not run, because its result depends on the configuration of the user.
    checks_out.then(|| Conversion::without_filters(gix::hash::Kind::Sha1))
}

/// The files of one tree that builds read.
struct TreeInputs<'a> {
    source: &'a ScopedTree,
    /// The tree; for a fetched tree with the files that the walk has read.
    tree: OverlayTree,
    /// The paths to write.
    paths: BTreeSet<String>,
    /// The charts that were pulled.
    pulled: OverlayTree,
}

impl<'a> TreeInputs<'a> {
    /// The inputs in a tree, none of them yet.
    fn of(source: &'a ScopedTree) -> TreeInputs<'a> {
        let tree = OverlayTree::new(source.tree.clone());
        TreeInputs { source, tree, paths: BTreeSet::new(), pulled: OverlayTree::default() }
    }

    /// Adds the paths of inputs that are in this tree.
    fn add(&mut self, inputs: &[BuildInput]) -> Result<()> {
        let tree = &*self.source.tree;
        for input in inputs {
            let paths = match input {
                BuildInput::At(path) => vec![path.clone()],
                BuildInput::Below(directory) => tree.below(directory)?,
                BuildInput::Remote(_) | BuildInput::Chart(_) => continue,
            };
            for path in paths {
                let is_file = || Ok(matches!(tree.entry(&path)?, Some(tree::Entry::File { .. })));
                // References may not leave the scope. A fetched tree may be partial, so its files are those that the
                // walk has read: `put` adds these.
                if path::is_in(&path, &self.source.scope) && !(self.source.repository.is_some() && is_file()?) {
                    self.paths.insert(path);
                }
            }
        }
        Ok(())
    }

    /// Adds a file with the bytes that the walk has read.
    fn put(&mut self, path: &str, bytes: &[u8], executable: bool) {
        self.tree.add_file_with_mode(path, bytes, executable);
        self.paths.insert(path.to_owned());
    }

    /// Puts the charts that were pulled for a root where kustomize looks for them.
    fn put_charts(&mut self, graph: &Graph, root: RootId) {
        for chart in graph.charts_of(root) {
            if let (Some(archive), ChartLookup::Missing(directory)) = (&chart.archive, &chart.lookup)
                && path::is_in(directory, &self.source.scope)
            {
                // Without these files kustomize would pull the chart itself.
                let files = archive.files.iter();
                files.for_each(|(name, bytes)| self.pulled.add_file(&path::join(directory, name), bytes));
            }
        }
    }

    /// The files of the user's tree, below `top`.
    fn layout(&self, conversion: Option<&Conversion>, top: &Path, pool: &mut Pool) -> Result<Layout> {
        let mut layout = Layout::new(top);
        layout.add(&self.tree, &self.paths, conversion, pool)?;
        // No checkout gives pulled charts, so they are not converted.
        layout.add(&self.pulled, self.pulled.below("")?, None, pool)?;
        Ok(layout)
    }

    /// Writes the files of an upstream, whose tree is a checkout already.
    fn write(&self, top: &Path) -> Result<()> {
        disk::write_temporary(&self.tree, &self.paths, None, top)?;
        disk::write_temporary(&self.pulled, self.pulled.below("")?, None, top)
    }
}
