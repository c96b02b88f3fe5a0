//! The files of the result: every node placed, every reference edited, nothing else touched.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::GITATTRIBUTES;
use super::files::{Content, Localized, ResultFile, Rewritten};
use super::layout::{self, SafePaths};
use super::spelling::{is_remote, new_text, spelled, value, whole};
use super::{proof, remotes};
use crate::failure::{Failure, Failures, Location};
use crate::kustomization::{self, Accepts, Edit};
use crate::record::LoadRestrictor;
use crate::redact;
use crate::reference::place::LOCALIZED_FILES;
use crate::tree::{Entry, path};
use crate::walk::{FileId, Graph, Origin, RootId, SourceId, Target, Warning};

/// How many copies of roots there may be, besides one of each. Repositories that name each other
/// twice double them with every level, and nobody builds that.
const MOST_COPIES: usize = 10_000;

/// A tree at the place that it gets in the result.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Instance {
    source: SourceId,
    /// Where the top of the tree (for the source: its scope) lies in NEW_DIR.
    base: String,
}

/// A file of the result and what is to be changed in it.
struct Placed {
    file: FileId,
    edits: Vec<PlacedEdit>,
}

struct PlacedEdit {
    root: RootId,
    edge: usize,
    value: String,
    /// The path in the new value.
    text: String,
    /// What the upstream scalar said, or what leads to the same place, where the new value alone
    /// would not.
    before: Option<String>,
}

struct Builder<'a> {
    graph: &'a Graph,
    owned: &'a dyn Fn(&str) -> bool,
    safe: SafePaths,
    names: HashMap<RootId, HashMap<usize, String>>,
    visited: HashSet<(Instance, RootId)>,
    placed: BTreeMap<String, Placed>,
    kept: HashSet<String>,
    failures: Vec<Failure>,
    /// Whether the tree of the user stays where it is, so that nothing in it needs to be changed but
    /// what names something remote, of remotes with these labels.
    in_place: Option<&'a Chosen<'a>>,
}

/// Localizes a walked graph. `owned` says of a path of the source that a lock of ours holds it.
///
/// # Errors
/// Every reference or file that cannot be placed; also when the result, walked again without a
/// network, does not hold together.
pub fn localize(
    graph: &Graph,
    load_restrictor: LoadRestrictor,
    owned: &dyn Fn(&str) -> bool,
) -> Result<Localized, Failures> {
    let mut builder = Builder::new(graph, owned, None);
    let target = Instance {
        source: 0,
        base: String::new(),
    };
    builder.place_root(&target, 0);
    let mut localized = builder.collect(&target)?;
    let kept = builder.kept;
    for directory in localized_directories(localized.files.keys()) {
        add_attributes(&mut localized.files, &directory);
    }
    proof::prove(&localized, load_restrictor, &kept)?;
    Ok(localized)
}

/// What localizing where it stands changes.
pub struct InPlace {
    /// The files that are new or another by their path in the tree that was walked, and what was
    /// brought in.
    pub localized: Localized,
    /// The paths that references lead to which were left as they are.
    pub kept: HashSet<String>,
}

/// Says whether a remote with this label, named by this file of the user, is to be localized.
pub type Chosen<'a> = dyn Fn(&str, &str) -> bool + 'a;

/// Localizes the roots `starts` of a walked graph, and what they reach, where they stand. What could
/// not be followed stays as it is, and so does what is not
/// `chosen`. `owned` as for [`localize`].
///
/// # Errors
/// Every remote reference or file that cannot be placed.
pub fn localize_in_place(
    graph: &Graph,
    starts: &[RootId],
    owned: &dyn Fn(&str) -> bool,
    chosen: &Chosen<'_>,
) -> Result<InPlace, Failures> {
    let mut builder = Builder::new(graph, owned, Some(chosen));
    let top = Instance {
        source: 0,
        base: String::new(),
    };
    for start in starts {
        builder.place_root(&top, *start);
    }
    let mut localized = builder.collect(&top)?;
    let brought = localized.files.iter();
    let brought = brought.filter(|(place, _)| !localized.local_files.contains(*place));
    for directory in localized_directories(brought.map(|(place, _)| place)) {
        add_attributes(&mut localized.files, &directory);
    }
    let kept = builder.kept;
    Ok(InPlace { localized, kept })
}

/// Lets git change no byte of what lies in a `localized-files` directory.
fn add_attributes(files: &mut BTreeMap<String, ResultFile>, directory: &str) {
    let attributes = ResultFile {
        content: Content::Bytes(GITATTRIBUTES.as_bytes().into()),
        executable: false,
        remote: None,
        source: None,
        rewritten: BTreeMap::new(),
    };
    files.insert(path::join(directory, ".gitattributes"), attributes);
}

impl<'a> Builder<'a> {
    fn new(
        graph: &'a Graph,
        owned: &'a dyn Fn(&str) -> bool,
        in_place: Option<&'a Chosen<'a>>,
    ) -> Self {
        Builder {
            graph,
            owned,
            safe: SafePaths::new(graph),
            names: HashMap::new(),
            visited: HashSet::new(),
            placed: BTreeMap::new(),
            kept: HashSet::new(),
            failures: Vec::new(),
            in_place,
        }
    }
}

impl Builder<'_> {
    /// Returns where a path of a tree lies in NEW_DIR.
    fn destination(&self, instance: &Instance, tree_path: &str) -> String {
        let source = &self.graph.sources[instance.source];
        let inside = self.graph.in_scope(instance.source, tree_path);
        let inside = match source.repository {
            Some(_) => self.safe.of(instance.source, inside),
            None => inside.to_owned(),
        };
        path::join(&instance.base, &inside)
    }

    fn place_root(&mut self, instance: &Instance, root: RootId) {
        // A work list, not recursion: how deep roots are nested is up to whoever wrote them.
        let mut todo = vec![(instance.clone(), root)];
        while let Some((instance, root)) = todo.pop() {
            if !self.visited.insert((instance.clone(), root)) {
                continue;
            }
            if self.visited.len() > self.graph.roots.len() + MOST_COPIES {
                self.failures.push(
                    Failure::new(format!(
                        "the result would hold {MOST_COPIES} more copies of remote roots than there are: each has one beside every kustomization that names it"
                    ))
                    .hint("let fewer remote roots name the same ones"),
                );
                return;
            }
            if let Err(failure) = self.place_one(&instance, root, &mut todo) {
                self.failures.push(failure);
            }
        }
    }

    fn place_one(
        &mut self,
        instance: &Instance,
        root: RootId,
        todo: &mut Vec<(Instance, RootId)>,
    ) -> Result<(), Failure> {
        let graph = self.graph;
        let node = &graph.roots[root];
        let directory = self.destination(instance, &node.directory);
        let chosen = self
            .in_place
            .filter(|_| graph.sources[node.source].repository.is_none());
        let stays = chosen.is_some();
        let kustomization = match &graph.files[node.file].origin {
            // The file itself, if that is a link.
            Origin::Tree { path, .. } if stays => path.clone(),
            _ => path::join(&directory, node.file_name),
        };
        if !stays {
            self.place_file(&kustomization, node.file)?;
        }
        if !self.names.contains_key(&root) {
            let names = layout::names(graph, root)?;
            if !names.is_empty()
                && let Err(failure) = self.make_way(root)
            {
                self.failures.push(failure);
            }
            self.names.insert(root, names);
        }
        let localized = path::join(&directory, LOCALIZED_FILES);
        for (index, edge) in node.edges.iter().enumerate() {
            let name = self.names.get(&root).and_then(|names| names.get(&index));
            let brought = name.map(|name| path::join(&localized, name));
            if let Some(chosen) = chosen
                && remotes::label(graph, edge)
                    .is_some_and(|label| !chosen(&graph.label(edge.from), &label))
            {
                continue;
            }
            let destination = match edge.target {
                Target::Root { id, remote: false } => {
                    todo.push((instance.clone(), id));
                    if stays {
                        continue;
                    }
                    self.destination(instance, &graph.roots[id].directory)
                }
                Target::Root { id, remote: true } => {
                    let inner = Instance {
                        source: graph.roots[id].source,
                        base: brought.unwrap_or_default(),
                    };
                    let destination = self.destination(&inner, &graph.roots[id].directory);
                    todo.push((inner, id));
                    destination
                }
                Target::File(file) => {
                    let destination = match (&graph.files[file].origin, brought) {
                        (Origin::Tree { .. }, _) if stays => continue,
                        (Origin::Tree { path, .. }, _) => self.destination(instance, path),
                        (Origin::Remote(_), Some(brought)) => brought,
                        (Origin::Remote(_), None) => {
                            return Err(Failure::new("a remote file without a name"));
                        }
                    };
                    if let Err(failure) = self.place_file(&destination, file) {
                        let location = graph.location(edge.from, &edge.reference);
                        self.failures.push(failure.at(location));
                        continue;
                    }
                    destination
                }
                Target::Kept => {
                    if let Some(path) = path::resolve(&directory, &edge.reference.text) {
                        self.kept.insert(path);
                    }
                    continue;
                }
                Target::Broken if stays => continue,
                Target::Remote | Target::Broken => {
                    return Err(Failure::new("a reference was not resolved")
                        .at(graph.location(edge.from, &edge.reference)));
                }
            };
            let Some(text) = new_text(&edge.reference, &directory, &destination) else {
                continue;
            };
            let holder = match &graph.files[edge.from].origin {
                _ if edge.from == node.file => kustomization.clone(),
                Origin::Tree { path, .. } => self.destination(instance, path),
                // A plugin configuration that was downloaded for this root.
                Origin::Remote(_) => self.downloaded_place(root, edge.from, &localized)?,
            };
            let before = match edge.target {
                _ if is_remote(&edge.reference) => Some(whole(&edge.reference)),
                Target::Root { id, .. } => {
                    Some(spelled(&node.directory, &graph.roots[id].directory))
                }
                Target::File(file) => match &graph.files[file].origin {
                    Origin::Tree { path, .. } => {
                        let text = spelled(&node.directory, path);
                        Some(value(&edge.reference, &text))
                    }
                    Origin::Remote(_) => None,
                },
                _ => None,
            };
            let value = value(&edge.reference, &text);
            let edit = PlacedEdit {
                root,
                edge: index,
                before: before.filter(|before| *before != value),
                value,
                text,
            };
            if stays {
                self.placed.entry(holder.clone()).or_insert(Placed {
                    file: edge.from,
                    edits: Vec::new(),
                });
            } else if let Err(failure) = self.place_file(&holder, edge.from) {
                // A plugin configuration may lie in a root that comes later.
                self.failures.push(failure);
                continue;
            }
            if let Err(failure) = self.edit(&holder, edit) {
                self.failures.push(failure);
            }
        }
        Ok(())
    }

    /// Returns where a remote file that this root names was placed.
    fn downloaded_place(
        &self,
        root: RootId,
        file: FileId,
        localized: &str,
    ) -> Result<String, Failure> {
        self.graph.roots[root]
            .edges
            .iter()
            .position(|edge| edge.target == Target::File(file))
            .and_then(|index| self.names.get(&root)?.get(&index))
            .map(|name| path::join(localized, name))
            .ok_or_else(|| Failure::new("a remote plugin configuration without a name"))
    }

    /// Refuses a `localized-files` that is in the way and not ours.
    fn make_way(&self, root: RootId) -> Result<(), Failure> {
        let node = &self.graph.roots[root];
        let source = &self.graph.sources[node.source];
        let place = path::join(&node.directory, LOCALIZED_FILES);
        let there = source.tree.entry(&place)?;
        if there.is_none()
            || (there == Some(Entry::Directory)
                && source.repository.is_none()
                && (self.owned)(&place))
        {
            return Ok(());
        }
        let shown = source.tree.label(&place);
        let failure = Failure::new(format!(
            "`{shown}` is needed for what this kustomization references, and is not ours"
        ));
        Err(match source.repository {
            Some(_) => failure.hint("its repository has files there already; name another version, or copy what you need from it"),
            None => failure.hint(format!("rename it: git mv {shown} NEW_NAME")),
        })
    }

    fn place_file(&mut self, destination: &str, file: FileId) -> Result<(), Failure> {
        let from = &self.graph.files[file];
        let fetched = match &from.origin {
            Origin::Tree { source, .. } => self.graph.sources[*source].repository.is_some(),
            Origin::Remote(_) => true,
        };
        for component in path::components(destination) {
            let options = gix::validate::path::component::Options {
                protect_windows: fetched,
                ..gix::validate::path::component::Options::default()
            };
            if let Err(error) = gix::validate::path::component(component.into(), None, options) {
                return Err(
                    Failure::new(format!("`{destination}` cannot be written: {error}"))
                        .hint("git stores no file of that name: rename what is referenced"),
                );
            }
        }
        match self.placed.get(destination) {
            None => {
                let edits = Vec::new();
                self.placed
                    .insert(destination.to_owned(), Placed { file, edits });
                Ok(())
            }
            Some(there)
                if there.file == file || *self.graph.files[there.file].bytes == *from.bytes =>
            {
                Ok(())
            }
            Some(there) => Err(Failure::new(format!(
                "`{}` and `{}` would both become `{destination}`",
                self.graph.label(there.file),
                self.graph.label(file)
            ))),
        }
    }

    fn edit(&mut self, holder: &str, edit: PlacedEdit) -> Result<(), Failure> {
        let graph = self.graph;
        let reference = &graph.roots[edit.root].edges[edit.edge].reference;
        let from = graph.roots[edit.root].edges[edit.edge].from;
        let Some(placed) = self.placed.get_mut(holder) else {
            return Err(Failure::new(format!("`{holder}` was not placed")));
        };
        let same = placed
            .edits
            .iter()
            .find(|one| graph.roots[one.root].edges[one.edge].reference.spot == reference.spot);
        match same {
            None => placed.edits.push(edit),
            Some(same) if same.value == edit.value => {}
            Some(_) => {
                return Err(Failure::new(format!(
                    "`{}` is listed by several kustomizations, and this reference would have to differ in each",
                    graph.label(from)
                ))
                .at(graph.location(from, reference))
                .hint("give each kustomization a plugin configuration of its own"));
            }
        }
        Ok(())
    }

    fn collect(&mut self, target: &Instance) -> Result<Localized, Failures> {
        let graph = self.graph;
        let mut files = BTreeMap::new();
        let mut rewritten = Vec::new();
        let mut local_files = BTreeSet::new();
        for (place, placed) in &self.placed {
            let file = &graph.files[placed.file];
            let (remote, source) = match &file.origin {
                Origin::Remote(remote) => (Some(redact::url(&remote.url)), None),
                Origin::Tree { source, path } => match &graph.sources[*source].repository {
                    Some(repository) => {
                        (Some(remotes::git(repository).label()), Some(path.clone()))
                    }
                    None => {
                        local_files.insert(path.clone());
                        (None, None)
                    }
                },
            };
            let local = matches!(&file.origin, Origin::Tree { source, .. } if graph.sources[*source].repository.is_none());
            let mut result = ResultFile {
                content: self.content(placed.file),
                // What was downloaded is not run by accident.
                executable: file.executable && local,
                remote,
                source,
                rewritten: BTreeMap::new(),
            };
            if !placed.edits.is_empty() {
                let edits: Vec<Edit<'_>> = placed
                    .edits
                    .iter()
                    .map(|edit| Edit {
                        spot: &graph.roots[edit.root].edges[edit.edge].reference.spot,
                        value: edit.value.clone(),
                    })
                    .collect();
                match kustomization::edit(&file.bytes, &edits) {
                    Ok(bytes) => result.content = Content::Bytes(bytes.into()),
                    Err(error) => {
                        let location = Location {
                            file: graph.label(placed.file),
                            line: error.line,
                            column: error.column,
                            field: String::new(),
                        };
                        self.failures.push(
                            Failure::new(format!("cannot be rewritten: {error}"))
                                .at(location)
                                .hint("write the value out where it is used, plainly quoted"),
                        );
                        continue;
                    }
                }
            }
            for edit in &placed.edits {
                let edge = &graph.roots[edit.root].edges[edit.edge];
                let text = &edge.reference.text;
                rewritten.push(Rewritten {
                    path: place.clone(),
                    location: graph.location(edge.from, &edge.reference),
                    from: redact::url(text),
                    to: edit.text.clone(),
                });
                let Some(before) = edit.before.as_ref().filter(|_| result.remote.is_some()) else {
                    continue;
                };
                if redact::has_secret(text) {
                    // What is written nowhere cannot be turned back: this file is fetched again.
                    result.source = None;
                    if matches!(file.origin, Origin::Remote(_)) {
                        result.remote = None;
                    }
                } else {
                    result.rewritten.insert(edit.value.clone(), before.clone());
                }
            }
            files.insert(place.clone(), result);
        }
        let remotes = remotes::remotes(graph).unwrap_or_else(|failure| {
            self.failures.push(failure);
            Vec::new()
        });
        if !self.failures.is_empty() {
            return Err(Failures(std::mem::take(&mut self.failures)));
        }
        Ok(Localized {
            files,
            rewritten,
            remotes,
            target: match graph.roots.first() {
                Some(root) => self.destination(target, &root.directory),
                None => String::new(),
            },
            local_files,
            warnings: self.rewritten_data(),
        })
    }

    /// Warns of files that are rewritten for what they reference, and are also read as they are.
    fn rewritten_data(&self) -> Vec<Warning> {
        let graph = self.graph;
        let edited: HashSet<FileId> = self
            .placed
            .values()
            .filter(|placed| !placed.edits.is_empty())
            .map(|placed| placed.file)
            .collect();
        let for_plugins = graph.plugin_roots();
        let roots = graph.roots.iter().enumerate();
        roots
            .filter(|(id, _)| !for_plugins.contains(id))
            .flat_map(|(_, root)| &root.edges)
            .filter(|edge| edge.reference.accepts != Accepts::Plugin)
            .filter(|edge| matches!(edge.target, Target::File(file) if edited.contains(&file)))
            .map(|edge| Warning {
                id: "rewritten-data",
                message: format!(
                    "`{}` is read as it is here, but what it references was rewritten: the build will differ",
                    redact::url(&edge.reference.text)
                ),
                location: graph.location(edge.from, &edge.reference),
            })
            .collect()
    }

    fn content(&self, file: FileId) -> Content {
        let file = &self.graph.files[file];
        let stored = match &file.origin {
            Origin::Tree { source, path } => self.graph.sources[*source].tree.stored(path),
            Origin::Remote(_) => None,
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
