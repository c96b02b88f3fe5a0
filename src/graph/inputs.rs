//! What the build of a root reads.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use super::{ChartRef, Explored, Graph, Noted, Options, Origin, Place, RemoteRef, RootId, Source, SourceId, Target};
use crate::kustomization::{FILE_NAMES, NoteKind, Runs};
use crate::message::failure::Result;
use crate::record::LoadRestrictor;
use crate::tree::recorded::RecordedTree;
use crate::tree::{self, Entry, Resolved, Tree, path};

/// Something that a build reads.
#[derive(Debug, Clone)]
pub(crate) enum Input {
    /// What is at a path of the tree: nothing, a file and what it holds, a link and where it leads, or that it is a
    /// directory.
    At(String),
    /// Everything at and below a path of the tree.
    Below(String),
    /// What a URL leads to.
    Remote(Box<RemoteRef>),
    /// The chart of a repository.
    Chart(ChartRef),
}

/// What the build of one root reads.
#[derive(Debug, Default)]
pub(crate) struct RootInputs {
    /// What it reads itself.
    pub own: Vec<Input>,
    /// The roots whose output is part of its own.
    pub roots: BTreeSet<RootId>,
}

/// What the builds of all roots of a walk read.
pub(crate) struct Inputs<'a> {
    graph: &'a Graph,
    /// The roots by their trees and directories.
    directories: HashMap<(SourceId, &'a str), RootId>,
    /// The roots that start code of the tree.
    runs_code: HashSet<RootId>,
}

impl<'a> Inputs<'a> {
    /// Prepares the inputs of the roots of a walk.
    pub(crate) fn of(graph: &'a Graph) -> Inputs<'a> {
        let runs_code = |noted: &Noted| match &noted.note.kind {
            NoteKind::Code { runs, .. } => matches!(runs, Runs::Program(_) | Runs::Plugin(_)).then_some(noted.root),
            _ => None,
        };
        let runs_code = graph.notes.iter().filter_map(runs_code).collect();
        let roots = graph.roots.iter().enumerate();
        let directories = roots.map(|(id, root)| ((root.source, root.directory.as_str()), id)).collect();
        Inputs { graph, directories, runs_code }
    }

    /// Returns what the build of a root reads of its own tree. A fetched tree may hold only what the walk has asked for:
    /// it is asked for nothing else.
    pub(crate) fn of_root(&self, id: RootId) -> Result<RootInputs> {
        let root = &self.graph.roots[id];
        let source = &self.graph.sources[root.source];
        let is_fetched = source.repository.is_some();
        let mut reader = Reader::new(&*source.tree);
        let mut roots: BTreeSet<RootId> = root.named().map(|(.., id)| id).collect();
        reader.kustomization(&root.directory)?;
        for edge in &root.edges {
            if let Some(remote) = &edge.remote {
                reader.inputs.push(Input::Remote(Box::new((**remote).clone())));
            }
            let is_found = match edge.target {
                Target::Root { remote, .. } => !remote,
                Target::File(file) => matches!(self.graph.files[file].origin, Origin::Tree { .. }),
                Target::Remote | Target::Kept | Target::Broken => false,
            };
            if is_fetched && !is_found {
                continue;
            }
            let text = &edge.reference.text;
            let Some(place) = self.graph.local_path(id, text) else {
                continue;
            };
            if let Resolved::Directory { path } = reader.resolve(&place)? {
                match self.directories.get(&(root.source, path.as_str())) {
                    // Also of the wrong kind: another one may be the right one.
                    Some(id) => {
                        roots.insert(*id);
                    }
                    None => reader.kustomization(&path)?,
                }
            }
        }
        for chart in self.graph.charts_of(id) {
            if let Some(home) = self.graph.local_path(id, &chart.home) {
                reader.resolve(&home)?;
            }
            if let Place::There(path) | Place::Missing(path) | Place::Submodule(path) = &chart.place {
                if is_fetched {
                    reader.resolve(path)?;
                } else {
                    reader.named(path)?;
                }
            }
            reader.inputs.extend(chart.wanted.clone().map(Input::Chart));
        }
        // Code is started in the directory of the root.
        if !is_fetched && self.runs_code.contains(&id) {
            reader.whole(root.directory.clone())?;
        }
        roots.remove(&id);
        Ok(RootInputs { own: reader.finish(), roots })
    }
}

/// Walks a tree for what its builds read, whoever builds: files outside of their root as well.
pub(crate) fn explore(tree: Rc<dyn Tree>, directories: &[String]) -> Explored {
    let options = Options { load_restrictor: LoadRestrictor::None, ..Options::default() };
    let source = Source { tree, scope: String::new(), repository: None };
    super::explore(source, directories, None, &options)
}

/// Walks a tree so from every kustomization.
pub(crate) fn explore_all(tree: Rc<dyn Tree>) -> Result<Explored> {
    let kustomizations = tree.kustomizations()?;
    let directories: BTreeSet<&str> = kustomizations.iter().map(|place| path::parent(place)).collect();
    let directories: Vec<String> = directories.into_iter().map(str::to_owned).collect();
    Ok(explore(tree, &directories))
}

/// Returns what the build of a directory reads that is no root, and all of the files and directories `whole`.
pub(crate) fn of_no_root(tree: &dyn Tree, directory: &str, whole: &[String]) -> Result<Vec<Input>> {
    let mut reader = Reader::new(tree);
    reader.kustomization(directory)?;
    for place in whole {
        reader.named(place)?;
    }
    Ok(reader.finish())
}

/// Asks a tree, and remembers what was asked.
struct Reader<'a> {
    tree: RecordedTree<'a>,
    inputs: Vec<Input>,
    /// What is read as a whole already.
    whole: BTreeSet<String>,
}

impl<'a> Reader<'a> {
    fn new(tree: &'a dyn Tree) -> Self {
        Reader { tree: RecordedTree::new(tree), inputs: Vec::new(), whole: BTreeSet::new() }
    }

    fn resolve(&self, place: &str) -> Result<Resolved> {
        tree::resolve(&self.tree, place)
    }

    /// Reads the kustomization of a directory: that it has one of the names, and no other.
    fn kustomization(&self, directory: &str) -> Result<()> {
        for name in FILE_NAMES {
            self.resolve(&path::join(directory, name))?;
        }
        Ok(())
    }

    /// Reads a file, or everything of a directory.
    fn named(&mut self, place: &str) -> Result<()> {
        match self.resolve(place)? {
            Resolved::Directory { path } => self.whole(path),
            _ => Ok(()),
        }
    }

    /// Reads everything of a directory (a real path), and what links in it lead to.
    fn whole(&mut self, directory: String) -> Result<()> {
        let mut todo = vec![directory];
        while let Some(directory) = todo.pop() {
            if !self.whole.insert(directory.clone()) {
                continue;
            }
            for place in self.tree.tree.below(&directory)? {
                if self.tree.tree.entry(&place)? == Some(Entry::Link)
                    && let Resolved::Directory { path } = self.resolve(&place)?
                {
                    todo.push(path);
                }
            }
            self.inputs.push(Input::Below(directory));
        }
        Ok(())
    }

    fn finish(self) -> Vec<Input> {
        let mut inputs = self.inputs;
        inputs.extend(self.tree.asked.into_inner().into_iter().map(Input::At));
        inputs
    }
}
