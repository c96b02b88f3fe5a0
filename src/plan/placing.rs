//! Lays out the graph: the path of every node in the result, and the new text of each reference.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::layout;
use super::spelling::{new_text, text_to};
use crate::config::Config;
use crate::graph::{EdgeId, FileId, Graph, Origin, Resolution, RootId, SourceId};
use crate::kustomization::Accepts;
use crate::message::failure::{Failure, Location, Result};
use crate::reference::localized_path::{LOCALIZED_FILES, segment};
use crate::tree::path;

/// The most extra copies of roots. Repositories that reference each other twice double them with every level, which
/// does not happen in real trees.
const MOST_COPIES: usize = 10_000;

/// A tree at its path in the result.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Instance {
    pub(super) source: SourceId,
    /// The path of the tree's top in the result. For the user's tree it is the path of its scope.
    pub(super) base: String,
}

/// A file of the result, and the edits in it.
pub(super) struct LaidOutFile {
    pub(super) file: FileId,
    pub(super) edits: Vec<LaidOutEdit>,
    /// The reference that runs it. `None` if it is not a program.
    pub(super) run_at: Option<Location>,
}

pub(super) struct LaidOutEdit {
    pub(super) edge: EdgeId,
    pub(super) value: String,
    /// The path in the new value.
    pub(super) text: String,
    /// The upstream scalar, or an equivalent one, with which the file can be restored. `None` if the value is the same.
    pub(super) original: Option<String>,
}

pub(super) struct LayoutBuilder<'a> {
    pub(super) graph: &'a Graph,
    pub(super) config: &'a Config,
    /// Whether the user's files stay where they are. In a copy they are laid out as well.
    pub(super) in_place: bool,
    /// The paths below `localized-files` of each root, by reference.
    paths: HashMap<EdgeId, String>,
    pub(super) visited: HashSet<(Instance, RootId)>,
    pub(super) laid_out: BTreeMap<String, LaidOutFile>,
    pub(super) allowed_missing: HashSet<String>,
    /// The directories of fetched charts.
    pub(super) vendored: BTreeSet<String>,
    pub(super) failures: Vec<Failure>,
}

/// The root or file that a reference leads to, at its path in the result.
enum LaidOutReference {
    /// A root, in its tree at that path.
    Root(Instance, RootId),
    File(FileId, String),
    /// Nothing that has a path.
    Unplaced,
}

/// For each file with references: its paths in the result.
type ReferringFiles = HashMap<FileId, BTreeSet<String>>;

impl<'a> LayoutBuilder<'a> {
    /// A builder for a copy, in which nothing is laid out yet.
    pub(super) fn new(graph: &'a Graph, config: &'a Config) -> Self {
        LayoutBuilder {
            graph,
            config,
            in_place: false,
            paths: graph.root_ids().flat_map(|root| layout::localized_paths(graph, root)).collect(),
            visited: HashSet::new(),
            laid_out: BTreeMap::new(),
            allowed_missing: HashSet::new(),
            vendored: BTreeSet::new(),
            failures: Vec::new(),
        }
    }
}

impl LayoutBuilder<'_> {
    /// The path in the result of a path of a tree. Names from fetched trees are changed so that every file system and
    /// every kustomize reads them in the same way.
    pub(super) fn destination(&self, instance: &Instance, tree_path: &str) -> String {
        let source = &self.graph.sources[instance.source];
        let inside = self.graph.in_scope(instance.source, tree_path);
        match source.repository {
            Some(_) => path::components(inside).fold(instance.base.clone(), |to, name| path::join(&to, &segment(name))),
            None => path::join(&instance.base, inside),
        }
    }

    /// Lays out a root, and everything that it reaches.
    pub(super) fn lay_out_from(&mut self, instance: &Instance, root: RootId) {
        // A work list instead of recursion: upstreams decide how deep roots are nested.
        let mut todo = vec![(instance.clone(), root)];
        while let Some((instance, root)) = todo.pop() {
            if !self.visited.insert((instance.clone(), root)) {
                continue;
            }
            if self.visited.len() > self.graph.roots.len() + MOST_COPIES {
                self.failures.push(
                    Failure::new(format!(
                        "the result would contain more than {MOST_COPIES} extra copies of remote roots: one beside every kustomization that names it"
                    ))
                    .hint("reference shared remote roots from fewer places"),
                );
                return;
            }
            let laid_out = self.lay_out_root(&instance, root, &mut todo);
            self.failures.extend(laid_out.err());
        }
    }

    /// Whether the files of a tree stay where they are: those of the user, in place.
    pub(super) fn stays(&self, source: SourceId) -> bool {
        self.in_place && self.graph.sources[source].repository.is_none()
    }

    /// The path in the result of the kustomization of a root, which is edited there.
    fn kustomization(&self, instance: &Instance, root: RootId) -> String {
        let node = &self.graph.roots[root];
        match &self.graph.files[node.file].origin {
            // A kustomization that is a link is edited where the link leads.
            Origin::Tree { path, .. } if self.stays(node.source) => path.clone(),
            _ => path::join(&self.destination(instance, &node.directory), node.file_name),
        }
    }

    /// The root or file that a reference leads to, if its root is laid out in an instance.
    fn destination_of(&self, instance: &Instance, edge: EdgeId) -> LaidOutReference {
        let graph = self.graph;
        // `layout` has a path for the upstream of every remote reference.
        let localized_path = || {
            let below = self.paths.get(&edge).map(String::as_str).unwrap_or_default();
            let directory = self.destination(instance, &graph.roots[edge.root].directory);
            path::join(&path::join(&directory, LOCALIZED_FILES), below)
        };
        match graph[edge].resolution {
            Resolution::Root { id, remote: false } => LaidOutReference::Root(instance.clone(), id),
            // An upstream that two kustomizations reference is laid out below each of them, as an instance of its own.
            Resolution::Root { id, remote: true } => {
                LaidOutReference::Root(Instance { source: graph.roots[id].source, base: localized_path() }, id)
            }
            Resolution::File(file) => match &graph.files[file].origin {
                Origin::Tree { path, .. } => {
                    let reference = &graph[edge].reference;
                    // A program may depend on the name that it is called by, so it goes to the path of the link.
                    let is_program = reference.accepts == Accepts::Program;
                    let link = graph.local_path(edge.root, &reference.text).filter(|_| is_program);
                    LaidOutReference::File(file, self.destination(instance, link.as_ref().unwrap_or(path)))
                }
                Origin::Remote(_) | Origin::Archive { .. } => LaidOutReference::File(file, localized_path()),
            },
            Resolution::Unchanged | Resolution::Remote | Resolution::Broken => LaidOutReference::Unplaced,
        }
    }

    /// The paths of a root's kustomization, and of the plugin configurations that it lists, as files or as resources of
    /// roots. They have the references of the root, so a changed reference is edited at each of these paths.
    fn referring_files(&self, instance: &Instance, root: RootId) -> ReferringFiles {
        let graph = self.graph;
        let node = &graph.roots[root];
        let kustomization = self.kustomization(instance, root);
        let mut files = ReferringFiles::from([(node.file, BTreeSet::from([kustomization]))]);
        // Most roots list no plugin configurations, and need no walk.
        if node.edges.iter().all(|edge| edge.from == node.file) {
            return files;
        }
        let mut seen = HashSet::new();
        // The first root lists plugin configurations as plugins. A root in such a list has them among its resources.
        let mut todo = vec![(instance.clone(), root, true)];
        while let Some((instance, root, is_first)) = todo.pop() {
            for (id, edge) in graph.edges_of(root) {
                if (edge.reference.accepts == Accepts::Plugin) != is_first {
                    continue;
                }
                match self.destination_of(&instance, id) {
                    LaidOutReference::File(file, path) if is_first || edge.reference.accepts == Accepts::Either => {
                        files.entry(file).or_default().insert(path);
                    }
                    LaidOutReference::Root(instance, root) if seen.insert((instance.clone(), root)) => {
                        todo.push((instance, root, false));
                    }
                    _ => {}
                }
            }
        }
        files
    }

    /// Lays out the files of a root, with new texts for its references. The roots that it leads to are added to `todo`.
    fn lay_out_root(&mut self, instance: &Instance, root: RootId, todo: &mut Vec<(Instance, RootId)>) -> Result<()> {
        let graph = self.graph;
        let node = &graph.roots[root];
        let directory = self.destination(instance, &node.directory);
        let stays = self.stays(node.source);
        // In place, the user's kustomization is laid out only together with an edit.
        if !stays {
            let kustomization = self.kustomization(instance, root);
            self.lay_out_file(&kustomization, node.file)?;
        }
        let referring_files = self.referring_files(instance, root);
        self.lay_out_charts(instance, root)?;
        // The file or root that a reference leads to is laid out, and the reference edited in each file that has it.
        for (id, edge) in graph.edges_of(root) {
            // A file without a path in the result does not change.
            let Some(paths) = referring_files.get(&edge.from) else { continue };
            let destination = self.lay_out_edge(instance, id, todo)?;
            let text = destination.and_then(|destination| new_text(edge, &directory, &destination));
            let Some(text) = text else { continue };
            let value = edge.reference.with_path(&text);
            let original = self.original(id).filter(|original| *original != value);
            for path in paths {
                let edit =
                    LaidOutEdit { edge: id, original: original.clone(), value: value.clone(), text: text.clone() };
                // A failure does not end the run, which reports all failures.
                let added = self.add_edit(path, edit);
                self.failures.extend(added.err());
            }
        }
        Ok(())
    }

    /// Lays out the file that a reference leads to, or adds the root to `todo`. Returns its path; `None` if the
    /// reference does not change, or if its file could not be laid out, which is recorded. Fails if a reference that
    /// should be localized leads to nothing.
    fn lay_out_edge(
        &mut self,
        instance: &Instance,
        id: EdgeId,
        todo: &mut Vec<(Instance, RootId)>,
    ) -> Result<Option<String>> {
        match self.destination_of(instance, id) {
            LaidOutReference::Root(inner, root) => {
                // A reference between two roots of a tree that stays keeps its text.
                let is_unchanged = self.stays(self.graph.roots[id.root].source) && inner == *instance;
                let destination = self.destination(&inner, &self.graph.roots[root].directory);
                todo.push((inner, root));
                Ok(Some(destination).filter(|_| !is_unchanged))
            }
            LaidOutReference::File(file, destination) => Ok(self.lay_out_referenced(id, file, destination)),
            LaidOutReference::Unplaced => self.leave(instance, id).map(|()| None),
        }
    }

    /// Lays out the file that a reference leads to. Returns its path; `None` if the reference does not change, or if
    /// the file could not be laid out, which is recorded.
    fn lay_out_referenced(&mut self, id: EdgeId, file: FileId, destination: String) -> Option<String> {
        let (graph, edge) = (self.graph, &self.graph[id]);
        let stays = self.stays(graph.roots[id.root].source) && matches!(graph.files[file].origin, Origin::Tree { .. });
        // A relative path still leads to a file that stays. An absolute one holds on this machine only.
        if stays && !path::is_absolute(&edge.reference.text) {
            return None;
        }
        if !stays && let Err(failure) = self.lay_out_file(&destination, file) {
            self.failures.push(failure.at(graph.location(edge)));
            return None;
        }
        // A finding about the execute bit names the first reference that runs the program.
        if edge.reference.accepts == Accepts::Program
            && let Some(placed) = self.laid_out.get_mut(&destination)
        {
            placed.run_at.get_or_insert_with(|| graph.location(edge));
        }
        Some(destination)
    }

    /// Leaves a reference as it is that leads to nothing with a path. Fails if it should be localized.
    fn leave(&mut self, instance: &Instance, id: EdgeId) -> Result<()> {
        let (graph, edge) = (self.graph, &self.graph[id]);
        let node = &graph.roots[id.root];
        if edge.resolution == Resolution::Unchanged {
            // The file may be missing. The walk that proves the result must allow that, too.
            let directory = self.destination(instance, &node.directory);
            self.allowed_missing.extend(path::resolve(&directory, &edge.reference.text));
            return Ok(());
        }
        // In place, a broken reference of the user was broken before, and `check` reports it.
        if self.stays(node.source) || graph.stays_remote.contains_key(&id) {
            return Ok(());
        }
        Err(Failure::new("a reference was not resolved").at(graph.location(edge)))
    }

    /// The value of a reference before localizing, or an equivalent one, with which an upstream file can be restored.
    /// `None` if the reference leads to nothing in a tree.
    fn original(&self, id: EdgeId) -> Option<String> {
        let (graph, edge) = (self.graph, &self.graph[id]);
        if edge.remote.is_some() {
            return Some(edge.reference.value());
        }
        let path = match edge.resolution {
            Resolution::Root { id, .. } => &graph.roots[id].directory,
            _ => match &graph.files[edge.file()?].origin {
                Origin::Tree { path, .. } => path,
                Origin::Remote(_) | Origin::Archive { .. } => return None,
            },
        };
        let text = text_to(&edge.reference, &graph.roots[id.root].directory, path);
        Some(edge.reference.with_path(&text))
    }

    /// Lays out a file at a path. Fails if the path cannot be written, or if a file with other bytes is laid out there.
    pub(super) fn lay_out_file(&mut self, destination: &str, file: FileId) -> Result<()> {
        // A name that only Windows forbids is not refused, because git stores it.
        let options = gix::validate::path::component::Options {
            protect_windows: false,
            ..gix::validate::path::component::Options::default()
        };
        // git refuses some names only when the tree is written. Here the message can still name the reference.
        for component in path::components(destination) {
            if let Err(error) = gix::validate::path::component(component.into(), None, options) {
                return Err(Failure::new(format!("`{destination}` cannot be written: {error}"))
                    .hint("git cannot store that name: rename the file or directory"));
            }
        }
        // Two different files for one path would silently lose one; equal ones are the same file to a build.
        match self.laid_out.get(destination) {
            None => {
                let laid_out = LaidOutFile { file, edits: Vec::new(), run_at: None };
                self.laid_out.insert(destination.to_owned(), laid_out);
                Ok(())
            }
            Some(placed) if placed.file == file => Ok(()),
            Some(placed) if self.graph.read(placed.file)? == self.graph.read(file)? => Ok(()),
            Some(placed) => Err(Failure::new(format!(
                "`{}` and `{}` would both become `{destination}`",
                self.graph.label(placed.file),
                self.graph.label(file)
            ))),
        }
    }

    /// Adds an edit to the file at `path` in the result, which contains the edited reference. The file is laid out
    /// first.
    fn add_edit(&mut self, path: &str, edit: LaidOutEdit) -> Result<()> {
        let graph = self.graph;
        let edge = &graph[edit.edge];
        self.lay_out_file(path, edge.from)?;
        // Never `None`: the file was laid out just now.
        let Some(placed) = self.laid_out.get_mut(path) else { return Ok(()) };
        // Two kustomizations that list one plugin configuration edit the same scalar.
        match placed.edits.iter().find(|edit| graph[edit.edge].reference.spot == edge.reference.spot) {
            None => placed.edits.push(edit),
            Some(known) if known.value == edit.value => {}
            Some(_) => {
                let label = graph.label(edge.from);
                return Err(Failure::new(format!(
                    "several kustomizations list `{label}`, and each needs a different value here"
                ))
                .at(graph.location(edge))
                .hint("give each kustomization a plugin configuration of its own"));
            }
        }
        Ok(())
    }
}
