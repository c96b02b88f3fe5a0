//! Where every node of the graph goes, and what each reference must say there.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::layout;
use super::spelling::{is_remote, new_text, text_to};
use crate::config::Config;
use crate::graph::{Edge, EdgeId, FileId, Graph, Origin, RootId, SourceId, Target};
use crate::kustomization::Accepts;
use crate::message::failure::{Failure, Location, Result};
use crate::reference::localized_path::{LOCALIZED_FILES, segment};
use crate::tree::path;

/// How many copies of roots there may be, besides one of each. Repositories that name each other twice double them with
/// every level, which no real tree does.
const MOST_COPIES: usize = 10_000;

/// A tree at the place that it gets in the result.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Instance {
    pub(super) source: SourceId,
    /// Where the top of the tree (for the source: its scope) lies in the result.
    pub(super) base: String,
}

/// A file of the result and the edits to it.
pub(super) struct Placed {
    pub(super) file: FileId,
    pub(super) edits: Vec<PlacedEdit>,
    /// The reference that runs it, if one does.
    pub(super) run_at: Option<Location>,
}

pub(super) struct PlacedEdit {
    pub(super) edge: EdgeId,
    pub(super) value: String,
    /// The path in the new value.
    pub(super) text: String,
    /// What the upstream scalar said, or what leads to the same place, where the new value alone
    /// would not.
    pub(super) before: Option<String>,
}

pub(super) struct Builder<'a> {
    pub(super) graph: &'a Graph,
    pub(super) config: &'a Config,
    /// Whether the tree of the user stays where it is.
    pub(super) in_place: bool,
    /// The names that each root gives to what it brings in, by edge.
    names: HashMap<EdgeId, String>,
    pub(super) visited: HashSet<(Instance, RootId)>,
    pub(super) placed: BTreeMap<String, Placed>,
    pub(super) kept: HashSet<String>,
    /// The directories of charts that were brought in.
    pub(super) vendored: BTreeSet<String>,
    pub(super) failures: Vec<Failure>,
}

/// What a reference leads to, at its place in the result.
enum Lead {
    /// A root of a tree that lies there.
    Root(Instance, RootId),
    File(FileId, String),
    /// Nothing that has a place.
    None,
}

/// The places of the files that hold references.
type Holders = HashMap<FileId, BTreeSet<String>>;

impl<'a> Builder<'a> {
    pub(super) fn new(graph: &'a Graph, config: &'a Config, in_place: bool) -> Self {
        Builder {
            graph,
            config,
            in_place,
            names: graph.root_ids().flat_map(|root| layout::names(graph, root)).collect(),
            visited: HashSet::new(),
            placed: BTreeMap::new(),
            kept: HashSet::new(),
            vendored: BTreeSet::new(),
            failures: Vec::new(),
        }
    }
}

impl Builder<'_> {
    /// Returns where a path of a tree lies in the result: that of a fetched one under names that every file system and
    /// every kustomize reads the same way.
    pub(super) fn destination(&self, instance: &Instance, tree_path: &str) -> String {
        let source = &self.graph.sources[instance.source];
        let inside = self.graph.in_scope(instance.source, tree_path);
        match source.repository {
            Some(_) => path::components(inside).fold(instance.base.clone(), |to, name| path::join(&to, &segment(name))),
            None => path::join(&instance.base, inside),
        }
    }

    pub(super) fn place_root(&mut self, instance: &Instance, root: RootId) {
        // A work list, not recursion: how deep roots are nested is up to whoever wrote them.
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
            if let Err(failure) = self.place_one(&instance, root, &mut todo) {
                self.failures.push(failure);
            }
        }
    }

    /// Returns whether this tree stays where it is.
    pub(super) fn stays(&self, source: SourceId) -> bool {
        self.in_place && self.graph.sources[source].repository.is_none()
    }

    /// Returns where the kustomization of a root lies.
    fn kustomization(&self, instance: &Instance, root: RootId) -> String {
        let node = &self.graph.roots[root];
        match &self.graph.files[node.file].origin {
            // The file itself, if that is a link.
            Origin::Tree { path, .. } if self.stays(node.source) => path.clone(),
            _ => path::join(&self.destination(instance, &node.directory), node.file_name),
        }
    }

    fn lead(&self, instance: &Instance, edge: EdgeId) -> Result<Lead> {
        let graph = self.graph;
        let node = &graph.roots[edge.root];
        let brought = || {
            let name = self
                .names
                .get(&edge)
                .ok_or_else(|| Failure::new("bug: a remote reference has no path in `localized-files`"))?;
            let directory = self.destination(instance, &node.directory);
            Ok(path::join(&path::join(&directory, LOCALIZED_FILES), name))
        };
        Ok(match graph[edge].target {
            Target::Root { id, remote: false } => Lead::Root(instance.clone(), id),
            Target::Root { id, remote: true } => {
                Lead::Root(Instance { source: graph.roots[id].source, base: brought()? }, id)
            }
            Target::File(file) => match &graph.files[file].origin {
                Origin::Tree { path, .. } => {
                    let reference = &graph[edge].reference;
                    // A program may do what it is called by, so that it goes where the link is.
                    let called = Some(reference).filter(|one| one.accepts == Accepts::Program);
                    let called = called.and_then(|one| graph.local_path(edge.root, &one.text));
                    Lead::File(file, self.destination(instance, called.as_ref().unwrap_or(path)))
                }
                Origin::Remote(_) | Origin::Archive { .. } => Lead::File(file, brought()?),
            },
            Target::Unchanged | Target::Remote | Target::Broken => Lead::None,
        })
    }

    /// Returns the places of the kustomization of a root, and of the plugin configurations that it lists: those
    /// in files, and the resources of roots.
    fn holders(&self, instance: &Instance, root: RootId) -> Result<Holders> {
        let graph = self.graph;
        let node = &graph.roots[root];
        let own = self.kustomization(instance, root);
        let mut holders = Holders::from([(node.file, BTreeSet::from([own]))]);
        if node.edges.iter().all(|edge| edge.from == node.file) {
            return Ok(holders);
        }
        let mut seen = HashSet::new();
        let mut todo = vec![(instance.clone(), root, true)];
        while let Some((instance, root, is_lister)) = todo.pop() {
            for (id, edge) in graph.edges_of(root) {
                if (edge.reference.accepts == Accepts::Plugin) != is_lister {
                    continue;
                }
                match self.lead(&instance, id)? {
                    Lead::File(file, place) if is_lister || edge.reference.accepts == Accepts::Either => {
                        holders.entry(file).or_default().insert(place);
                    }
                    Lead::Root(instance, root) if seen.insert((instance.clone(), root)) => {
                        todo.push((instance, root, false));
                    }
                    _ => {}
                }
            }
        }
        Ok(holders)
    }

    fn place_one(&mut self, instance: &Instance, root: RootId, todo: &mut Vec<(Instance, RootId)>) -> Result<()> {
        let graph = self.graph;
        let node = &graph.roots[root];
        let directory = self.destination(instance, &node.directory);
        let stays = self.stays(node.source);
        if !stays {
            let kustomization = self.kustomization(instance, root);
            self.place_file(&kustomization, node.file)?;
        }
        let holders = self.holders(instance, root)?;
        self.place_charts(instance, root)?;
        for (id, edge) in graph.edges_of(root) {
            let Some(places) = holders.get(&edge.from) else {
                // It stands in a file that does not change.
                continue;
            };
            let Some(destination) = self.place_edge(instance, id, todo)? else {
                continue;
            };
            let Some(text) = new_text(&edge.reference, &directory, &destination) else {
                continue;
            };
            let value = edge.reference.with_path(&text);
            let before = self.before(id).filter(|before| *before != value);
            for holder in places {
                if let Err(failure) = self.place_file(holder, edge.from) {
                    // A plugin configuration may lie in a root that comes later.
                    self.failures.push(failure);
                    continue;
                }
                let edit = PlacedEdit { edge: id, before: before.clone(), value: value.clone(), text: text.clone() };
                if let Err(failure) = self.edit(holder, edit) {
                    self.failures.push(failure);
                }
            }
        }
        Ok(())
    }

    /// Places the target of a reference, and returns its path; none if the reference does not change.
    fn place_edge(
        &mut self,
        instance: &Instance,
        id: EdgeId,
        todo: &mut Vec<(Instance, RootId)>,
    ) -> Result<Option<String>> {
        let graph = self.graph;
        let (node, edge) = (&graph.roots[id.root], &graph[id]);
        let stays = self.stays(node.source);
        let location = || graph.location(edge.from, &edge.reference);
        Ok(match self.lead(instance, id)? {
            Lead::Root(inner, root) => {
                let is_local = inner == *instance;
                let destination = self.destination(&inner, &graph.roots[root].directory);
                todo.push((inner, root));
                Some(destination).filter(|_| !(stays && is_local))
            }
            Lead::File(file, destination) => {
                if stays && matches!(graph.files[file].origin, Origin::Tree { .. }) {
                    if !path::is_absolute(&edge.reference.text) {
                        return Ok(None);
                    }
                } else if let Err(failure) = self.place_file(&destination, file) {
                    self.failures.push(failure.at(location()));
                    return Ok(None);
                }
                if edge.reference.accepts == Accepts::Program
                    && let Some(placed) = self.placed.get_mut(&destination)
                {
                    placed.run_at.get_or_insert_with(location);
                }
                Some(destination)
            }
            Lead::None if edge.target == Target::Unchanged => {
                let directory = self.destination(instance, &node.directory);
                self.kept.extend(path::resolve(&directory, &edge.reference.text));
                None
            }
            Lead::None if stays || graph.stays_remote.contains_key(&id) => None,
            Lead::None => {
                return Err(Failure::new("a reference was not resolved").at(location()));
            }
        })
    }

    /// Returns what a reference said upstream, or what leads to the same place there; none for what upstream does not
    /// name.
    fn before(&self, id: EdgeId) -> Option<String> {
        let (graph, edge) = (self.graph, &self.graph[id]);
        let to = |path: &str| text_to(&edge.reference, &graph.roots[id.root].directory, path);
        match edge.target {
            _ if is_remote(&edge.reference) => Some(edge.reference.value()),
            Target::Root { id, .. } => Some(to(&graph.roots[id].directory)),
            Target::File(file) => match &graph.files[file].origin {
                Origin::Tree { path, .. } => Some(edge.reference.with_path(&to(path))),
                Origin::Remote(_) | Origin::Archive { .. } => None,
            },
            _ => None,
        }
    }

    pub(super) fn place_file(&mut self, destination: &str, file: FileId) -> Result<()> {
        let options = gix::validate::path::component::Options {
            protect_windows: false,
            ..gix::validate::path::component::Options::default()
        };
        for component in path::components(destination) {
            if let Err(error) = gix::validate::path::component(component.into(), None, options) {
                return Err(Failure::new(format!("`{destination}` cannot be written: {error}"))
                    .hint("git cannot store that name: rename the file or directory"));
            }
        }
        match self.placed.get(destination) {
            None => {
                self.placed.insert(destination.to_owned(), Placed { file, edits: Vec::new(), run_at: None });
                Ok(())
            }
            Some(there) if there.file == file => Ok(()),
            Some(there) if self.graph.read(there.file)? == self.graph.read(file)? => Ok(()),
            Some(there) => Err(Failure::new(format!(
                "`{}` and `{}` would both become `{destination}`",
                self.graph.label(there.file),
                self.graph.label(file)
            ))),
        }
    }

    fn edit(&mut self, holder: &str, edit: PlacedEdit) -> Result<()> {
        let graph = self.graph;
        let Edge { reference, from, .. } = &graph[edit.edge];
        let Some(placed) = self.placed.get_mut(holder) else {
            return Err(Failure::new(format!("`{holder}` was not placed")));
        };
        let same = placed.edits.iter().find(|one| graph[one.edge].reference.spot == reference.spot);
        match same {
            None => placed.edits.push(edit),
            Some(same) if same.value == edit.value => {}
            Some(_) => {
                return Err(Failure::new(format!(
                    "several kustomizations list `{}`, and each needs a different value here",
                    graph.label(*from)
                ))
                .at(graph.location(*from, reference))
                .hint("give each kustomization a plugin configuration of its own"));
            }
        }
        Ok(())
    }
}
