//! The inputs of builds: every path, URL and chart that the build of a root reads.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::{Chart, ChartLookup, ChartRef, Edge, Explored, Graph, RemoteRef, Resolution, RootId, Survey, WalkPolicy};
use crate::kustomization::FILE_NAMES;
use crate::message::failure::Result;
use crate::record::LoadRestrictor;
use crate::tree::recorded::RecordedTree;
use crate::tree::{self, Entry, Resolved, Tree, path};

/// An input of a build.
#[derive(Debug, Clone)]
pub(crate) enum BuildInput {
    /// The entry at a path of the tree: none, a file with its content, a link with its text, or a directory.
    At(String),
    /// Everything at and below a path of the tree.
    Below(String),
    /// The content of a URL.
    Remote(Rc<RemoteRef>),
    /// A chart of a repository.
    Chart(ChartRef),
}

/// The inputs of the build of one root.
#[derive(Debug, Default)]
pub(crate) struct RootInputs {
    /// The inputs that the root reads itself.
    pub inputs: Vec<BuildInput>,
    /// The roots whose output is part of the output of this root.
    pub roots: BTreeSet<RootId>,
}

impl Graph {
    /// The inputs of a root's build in its own tree.
    pub(crate) fn inputs(&self, id: RootId) -> Result<RootInputs> {
        let root = &self.roots[id];
        let source = &self.sources[root.source];
        // A fetched tree may have only the files that the walk asked for, so no other file of it is read.
        let is_fetched = source.repository.is_some();
        let mut recorder = InputRecorder::new(&*source.tree);
        let mut roots: BTreeSet<RootId> = self.referenced_roots(id).map(|(_, named)| named).collect();
        // Also the spellings that are not there: a file of that name would be read instead.
        recorder.record_kustomization(&root.directory)?;
        for edge in &root.edges {
            recorder.inputs.extend(edge.remote.clone().map(BuildInput::Remote));
            if !is_fetched || is_local_and_resolved(edge) {
                roots.extend(self.record_local(id, edge, &mut recorder)?);
            }
        }
        for chart in self.charts_of(id) {
            self.record_chart(chart, is_fetched, &mut recorder)?;
        }
        // A program runs in the directory of its root, and may read any file there.
        if !is_fetched && root.runs_code {
            recorder.record_below(root.directory.clone())?;
        }
        // kustomize refuses a root that names itself, so its output has no part of that kind.
        roots.remove(&id);
        Ok(RootInputs { inputs: recorder.finish(), roots })
    }

    /// Records the path of a reference, and returns the root that is there. A URL counts as a path as well: kustomize
    /// looks for a file of that name first.
    fn record_local(&self, root: RootId, edge: &Edge, recorder: &mut InputRecorder<'_>) -> Result<Option<RootId>> {
        // A path out of the tree is no input that a tree can have; [`Graph::reads_outside`] finds it.
        let Some(path) = self.local_path(root, &edge.reference.text) else { return Ok(None) };
        let Resolved::Directory { path } = recorder.resolve(&path)? else { return Ok(None) };
        // Also a root of the wrong kind, to which the reference does not resolve: this build fails as long as its
        // kustomization has that kind.
        let named = self.root_in(self.roots[root].source, &path);
        if named.is_none() {
            recorder.record_kustomization(&path)?;
        }
        Ok(named)
    }

    /// Records a chart, for which kustomize looks in its home before it asks the repository.
    fn record_chart(&self, chart: &Chart, is_fetched: bool, recorder: &mut InputRecorder<'_>) -> Result<()> {
        if let Some(home) = self.local_path(chart.root, &chart.home) {
            recorder.resolve(&home)?;
        }
        if let ChartLookup::There(path) | ChartLookup::Missing(path) | ChartLookup::Submodule(path) = &chart.lookup {
            if is_fetched {
                recorder.resolve(path)?;
            } else {
                recorder.record_path(path)?;
            }
        }
        // Also a chart in the tree: if it was fetched once, the lock still has its entry.
        recorder.inputs.extend(chart.wanted.clone().map(BuildInput::Chart));
        Ok(())
    }
}

/// Whether a reference is local, and the walk has found the root or file at its path.
fn is_local_and_resolved(edge: &Edge) -> bool {
    edge.remote.is_none() && matches!(edge.resolution, Resolution::Root { .. } | Resolution::File(_))
}

impl Graph {
    /// The links of the user's tree through which its roots read files. A link that was changed and not committed
    /// changes a build, like a file.
    pub(crate) fn user_links(&self) -> Result<BTreeSet<String>> {
        let (tree, mut links) = (&self.sources[0].tree, BTreeSet::new());
        for root in self.root_ids().filter(|root| self.is_user_root(*root)) {
            for input in self.inputs(root)?.inputs {
                if let BuildInput::At(path) = input
                    && tree.entry(&path)? == Some(Entry::Link)
                {
                    links.insert(path);
                }
            }
        }
        Ok(links)
    }
}

impl Survey {
    /// Walks from the roots in `directories` for the inputs of their builds, which [`Graph::inputs`] then tells.
    pub(crate) fn explore_inputs(&self, directories: &[String]) -> Explored {
        // Files outside of their root count, because some builds lift the load restrictor.
        self.judged(directories, &WalkPolicy { load_restrictor: LoadRestrictor::None, ..WalkPolicy::default() })
    }

    /// Walks from every kustomization for the inputs of their builds.
    pub(crate) fn explore_all_inputs(&self) -> Result<Explored> {
        let kustomizations = self.tree().kustomizations()?;
        let directories: BTreeSet<&str> = kustomizations.iter().map(|file| path::parent(file)).collect();
        Ok(self.explore_inputs(&directories.into_iter().map(str::to_owned).collect::<Vec<String>>()))
    }
}

/// [`Survey::explore_inputs`] of a new survey.
pub(crate) fn explore(tree: Rc<dyn Tree>, directories: &[String]) -> Explored {
    Survey::of(tree).explore_inputs(directories)
}

/// [`Survey::explore_all_inputs`] of a new survey.
pub(crate) fn explore_all(tree: Rc<dyn Tree>) -> Result<Explored> {
    Survey::of(tree).explore_all_inputs()
}

/// The inputs of the build of a directory that is not a root: its kustomization names, and everything at and below
/// `whole`.
pub(crate) fn inputs_of_directory(tree: &dyn Tree, directory: &str, whole: &[String]) -> Result<Vec<BuildInput>> {
    let mut recorder = InputRecorder::new(tree);
    recorder.record_kustomization(directory)?;
    for path in whole {
        recorder.record_path(path)?;
    }
    Ok(recorder.finish())
}

/// The paths of a tree that `inputs` mean: a directory that counts as a whole becomes everything below it. URLs and
/// charts are skipped; a path at which there is nothing is not.
pub(crate) fn paths_of(tree: &dyn Tree, inputs: Vec<BuildInput>) -> Result<Vec<String>> {
    let mut paths = Vec::new();
    for input in inputs {
        match input {
            BuildInput::At(path) => paths.push(path),
            BuildInput::Below(directory) => paths.extend(tree.below(&directory)?),
            BuildInput::Remote(_) | BuildInput::Chart(_) => {}
        }
    }
    Ok(paths)
}

/// Why other checkouts lack the content of a link or submodule: the link leads out of the tree, or the files are in
/// another repository. The output of a build that reads them depends on the machine. `None` for any other path, also
/// for a link to nothing in the tree: no checkout has more.
pub(crate) fn leads_out(tree: &dyn Tree, link: &str) -> Result<Option<String>> {
    if !matches!(tree.entry(link)?, Some(Entry::Link | Entry::Submodule)) {
        return Ok(None);
    }
    Ok(match tree::resolve(tree, link)? {
        Resolved::Leaves { .. } => Some(format!("the link `{}` leads out of the repository", tree.label(link))),
        Resolved::Submodule { path } => {
            Some(format!("the files of the submodule `{}` are not in this repository", tree.label(&path)))
        }
        _ => None,
    })
}

/// A tree that records each path that it is asked for.
struct InputRecorder<'a> {
    tree: RecordedTree<'a>,
    inputs: Vec<BuildInput>,
    /// The directories that were recorded as a whole.
    whole: BTreeSet<String>,
}

impl<'a> InputRecorder<'a> {
    fn new(tree: &'a dyn Tree) -> Self {
        InputRecorder { tree: RecordedTree::new(tree), inputs: Vec::new(), whole: BTreeSet::new() }
    }

    fn resolve(&self, path: &str) -> Result<Resolved> {
        tree::resolve(&self.tree, path)
    }

    /// Records the names that a kustomization in `directory` may have.
    fn record_kustomization(&self, directory: &str) -> Result<()> {
        // A build depends on which of them exist.
        for name in FILE_NAMES {
            self.resolve(&path::join(directory, name))?;
        }
        Ok(())
    }

    /// Records a file, or everything below a directory.
    fn record_path(&mut self, path: &str) -> Result<()> {
        match self.resolve(path)? {
            Resolved::Directory { path } => self.record_below(path),
            _ => Ok(()),
        }
    }

    /// Records that helm or a program may read everything below a directory (a real path), and below the directories to
    /// which links in it lead.
    fn record_below(&mut self, directory: String) -> Result<()> {
        let mut todo = vec![directory];
        while let Some(directory) = todo.pop() {
            if !self.whole.insert(directory.clone()) {
                continue;
            }
            for entry in self.tree.tree.below(&directory)? {
                // Helm and programs follow links, but `below` does not.
                if self.tree.tree.entry(&entry)? == Some(Entry::Link)
                    && let Resolved::Directory { path } = self.resolve(&entry)?
                {
                    todo.push(path);
                }
            }
            self.inputs.push(BuildInput::Below(directory));
        }
        Ok(())
    }

    /// The recorded inputs: what was added, and every path that the tree was asked for.
    fn finish(self) -> Vec<BuildInput> {
        let mut inputs = self.inputs;
        inputs.extend(self.tree.asked.into_inner().into_iter().map(BuildInput::At));
        inputs
    }
}
