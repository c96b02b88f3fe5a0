//! What the build of a root reads.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::{ChartRef, Explored, Graph, Place, Policy, RemoteRef, RootId, SourceId, Survey, Target};
use crate::kustomization::FILE_NAMES;
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
    Remote(Rc<RemoteRef>),
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

impl Graph {
    /// Returns what the build of a root reads of its own tree. A fetched tree may hold only what the walk has asked for:
    /// it is asked for nothing else.
    pub(crate) fn inputs(&self, id: RootId) -> Result<RootInputs> {
        let root = &self.roots[id];
        let source = &self.sources[root.source];
        let is_fetched = source.repository.is_some();
        let mut reader = Reader::new(&*source.tree);
        let mut roots: BTreeSet<RootId> = self.named(id).map(|(_, named)| named).collect();
        reader.kustomization(&root.directory)?;
        for edge in &root.edges {
            reader.inputs.extend(edge.remote.clone().map(Input::Remote));
            let is_found = matches!(edge.target, Target::Root { .. } | Target::File(_)) && edge.remote.is_none();
            let place = self.local_path(id, &edge.reference.text);
            let Some(place) = place.filter(|_| is_found || !is_fetched) else {
                continue;
            };
            if let Resolved::Directory { path } = reader.resolve(&place)? {
                match self.root_in(root.source, &path) {
                    // Also of the wrong kind: another one may be the right one.
                    Some(id) => drop(roots.insert(id)),
                    None => reader.kustomization(&path)?,
                }
            }
        }
        for chart in self.charts_of(id) {
            if let Some(home) = self.local_path(id, &chart.home) {
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
        if !is_fetched && root.runs_code {
            reader.whole(root.directory.clone())?;
        }
        roots.remove(&id);
        Ok(RootInputs { own: reader.finish(), roots })
    }
}

impl Graph {
    /// Returns the links of the user's tree that lead to what its roots read.
    pub(crate) fn own_links(&self) -> Result<BTreeSet<String>> {
        let (tree, mut links) = (&self.sources[0].tree, BTreeSet::new());
        for root in self.root_ids().filter(|root| self.roots[*root].source == SourceId::FIRST) {
            for input in self.inputs(root)?.own {
                if let Input::At(place) = input
                    && tree.entry(&place)? == Some(Entry::Link)
                {
                    links.insert(place);
                }
            }
        }
        Ok(links)
    }
}

impl Survey {
    /// Returns what builds of the roots in `directories` read, whoever builds: files outside of their root as well.
    pub(crate) fn read(&self, directories: &[String]) -> Explored {
        self.judged(directories, &Policy { load_restrictor: LoadRestrictor::None, ..Policy::default() })
    }

    /// Returns what builds of every kustomization read.
    pub(crate) fn read_all(&self) -> Result<Explored> {
        let kustomizations = self.tree().kustomizations()?;
        let directories: BTreeSet<&str> = kustomizations.iter().map(|place| path::parent(place)).collect();
        Ok(self.read(&directories.into_iter().map(str::to_owned).collect::<Vec<String>>()))
    }
}

/// Walks a tree for what its builds read.
pub(crate) fn explore(tree: Rc<dyn Tree>, directories: &[String]) -> Explored {
    Survey::of(tree).read(directories)
}

/// Walks a tree so from every kustomization.
pub(crate) fn explore_all(tree: Rc<dyn Tree>) -> Result<Explored> {
    Survey::of(tree).read_all()
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

/// Returns the paths of what is read of a tree.
pub(crate) fn places_of(tree: &dyn Tree, inputs: Vec<Input>) -> Result<Vec<String>> {
    let mut places = Vec::new();
    for input in inputs {
        match input {
            Input::At(place) => places.push(place),
            Input::Below(directory) => places.extend(tree.below(&directory)?),
            Input::Remote(_) | Input::Chart(_) => {}
        }
    }
    Ok(places)
}

/// Returns why what is at a path cannot be read elsewhere, if not: it is a link or a submodule, and the tree does not hold what
/// is there.
pub(crate) fn leads_out(tree: &dyn Tree, place: &str) -> Result<Option<String>> {
    if !matches!(tree.entry(place)?, Some(Entry::Link | Entry::Submodule)) {
        return Ok(None);
    }
    Ok(match tree::resolve(tree, place)? {
        Resolved::Leaves { .. } => Some(format!("the link `{}` leads out of the repository", tree.label(place))),
        Resolved::Submodule { path } => {
            Some(format!("the files of the submodule `{}` are not in this repository", tree.label(&path)))
        }
        _ => None,
    })
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
