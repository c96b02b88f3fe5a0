//! The differences between two trees.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};

use super::{Cause, Sides};
use crate::git::{CommitId, LocalRepo, Snapshot, object_id};
use crate::graph::inputs::BuildInput;
use crate::graph::{Graph, RootId, reach};
use crate::message::failure::Result;
use crate::record::history::trees;
use crate::record::{ChangeKind, LOCK_NAME, Lock};
use crate::reference::Upstream;
use crate::targets::IGNORE_NAME;
use crate::tree::{self, SharedTree, kustomization_in, path};
use crate::workspace::Files;

/// Two trees, and where they differ.
pub(crate) struct Changes {
    pub trees: Sides<SharedTree>,
    /// The paths at which they differ, each as deep as both have directories.
    paths: BTreeSet<String>,
    /// The directories below which a checkout may convert files otherwise.
    attributes: BTreeSet<String>,
    /// A file with patterns of Flux that is different, or is there no longer, or only now.
    pub ignores: Option<String>,
    /// The sources with different entries, or that only one of the locks has.
    pub sources: BTreeSet<Upstream>,
    /// The entries of these sources in either lock, and those of all sources that reference one of them: a build that
    /// reaches any of these may differ.
    affected_entries: Lock,
}

impl Changes {
    /// Compares two trees, which differ at `paths`: each as deep as both have directories.
    pub(crate) fn of(trees: Sides<SharedTree>, paths: BTreeSet<String>) -> Result<Changes> {
        let attributes = paths.iter().filter(|path: &&String| path::name(path) == ".gitattributes");
        let attributes = attributes.map(|path| path::parent(path).to_owned()).collect();
        // A lock entry is an input of every build that reaches it, although no file of the build differs.
        let lock = |tree: &SharedTree| Lock::find(&**tree, LOCK_NAME).map(Option::unwrap_or_default);
        let locks = trees.as_ref().try_map(lock)?;
        let sources = changed_sources(locks.as_ref().map(|lock| &**lock));
        let affected_entries = affected_entries(locks.as_ref().map(|lock| &**lock), &sources);
        let mut changes = Changes { ignores: None, attributes, affected_entries, sources, trees, paths };
        // One such file is enough: it may hide or show a file of every artifact.
        changes.ignores = changes.files(|file| path::name(file) == IGNORE_NAME)?.pop_first();
        Ok(changes)
    }

    /// Compares two commits, by the files that a build sees of them.
    pub(crate) fn of_commits(repo: &LocalRepo, commits: Sides<&CommitId>, trees: Sides<SharedTree>) -> Result<Changes> {
        let Sides { old, new } = commits.try_map(|commit| object_id(&commit.tree))?;
        let differences = trees::differences(repo.repository()?, old, new, &BTreeSet::new())?;
        Changes::of(trees, differences.into_iter().collect())
    }

    /// Compares a commit with another one, or with the files of the working tree, by the files that a build sees of
    /// them.
    pub(crate) fn since(repo: &LocalRepo, base: &CommitId, files: &Files, trees: Sides<SharedTree>) -> Result<Changes> {
        match files {
            Files::Commit { id, .. } => Changes::of_commits(repo, Sides { old: base, new: id }, trees),
            _ => Changes::among(trees, repo.changed_since(&base.commit, &Snapshot::WorkingTree)?),
        }
    }

    /// Compares two trees, which differ at most at the paths of some files, as git lists them.
    pub(crate) fn among(trees: Sides<SharedTree>, files: impl IntoIterator<Item = String>) -> Result<Changes> {
        let mut paths = BTreeSet::new();
        let Sides { old, new } = trees.as_ref();
        for file in files {
            // A directory that only one tree has differs as a whole.
            let mut path = file.as_str();
            for above in path::and_above(&file) {
                if [old.entry(above)?, new.entry(above)?] != [Some(tree::Entry::Directory); 2] {
                    path = above;
                }
            }
            // git lists a file whose mode or stat changed, too; only bytes and kinds count.
            let is_same = match (old.entry(path)?, new.entry(path)?) {
                (None, None) => true,
                (Some(was @ (tree::Entry::File { .. } | tree::Entry::Link)), Some(is)) if was == is => {
                    is_same_file(trees.as_ref(), path)
                }
                // Two submodules may be at different commits, which an entry does not have.
                _ => false,
            };
            if !is_same {
                paths.insert(path.to_owned());
            }
        }
        Changes::of(trees, paths)
    }

    /// For each path at which the trees differ, the innermost directory that has a kustomization in the new tree: the
    /// roots that a change may touch, although no walk shows that they read the path. A directory that cannot be read
    /// has none.
    pub(super) fn directories(&self) -> impl Iterator<Item = String> {
        self.paths.iter().filter_map(move |path: &String| {
            path::and_above(path)
                .chain([""])
                .find(|directory: &&str| {
                    kustomization_in(&*self.trees.new, directory).is_ok_and(|kustomization| kustomization.is_some())
                })
                .map(str::to_owned)
        })
    }

    /// The directories of the charts that differ, in either tree. A chart inside another one is a part of it.
    pub(super) fn charts(&self) -> Result<BTreeSet<String>> {
        let mut charts: BTreeSet<String> = BTreeSet::new();
        let files = self.files(|_| true)?;
        // Sorted, so that a directory comes before those in it.
        let directories: BTreeSet<&str> = path::directories(files.iter().map(String::as_str)).into_iter().collect();
        for directory in [""].into_iter().chain(directories) {
            let file = path::join(directory, "Chart.yaml");
            let is_inner = path::and_above(directory).chain([""]).any(|above| charts.contains(above));
            if !is_inner && self.trees.as_ref().try_map(|tree| tree.entry(&file))?.newest().is_some() {
                charts.insert(directory.to_owned());
            }
        }
        Ok(charts)
    }

    /// The `is_wanted` files that differ, and links and submodules. If only one tree has a directory, all files in it
    /// differ, and the path of the directory itself is among them.
    pub(super) fn files(&self, is_wanted: impl Fn(&str) -> bool) -> Result<BTreeSet<String>> {
        let mut files = BTreeSet::new();
        for path in &self.paths {
            files.insert(path.clone());
            for tree in self.trees.iter() {
                files.extend(tree.below(path)?);
            }
        }
        files.retain(|file| is_wanted(file));
        Ok(files)
    }

    /// The paths below a directory at which the trees differ in something else than a file: a link, a submodule, or a
    /// directory that only one tree has, which may have these in it. A comparison of lists of files does not show them.
    pub(super) fn changed_non_files(&self, directory: &str) -> Result<Vec<String>> {
        let mut changed = Vec::new();
        for path in self.paths.iter().filter(|path| path::is_in(path, directory)) {
            let entries = self.trees.as_ref().try_map(|tree| tree.entry(path))?;
            if entries.iter().flatten().any(|entry| !matches!(entry, tree::Entry::File { .. })) {
                changed.push(path.clone());
            }
        }
        Ok(changed)
    }

    /// The difference at the first of these inputs that is different; `None` if all are the same, so that a build that
    /// reads only these has the same output.
    pub(crate) fn cause_in(&self, inputs: &[BuildInput]) -> Result<Option<Cause>> {
        for input in inputs {
            let cause = match input {
                BuildInput::At(path) => self.at(path)?.map(Cause::Path),
                BuildInput::Below(directory) => self.below(directory)?.map(Cause::Path),
                BuildInput::Remote(remote) => {
                    remote.locked(&self.affected_entries).map(|upstream| Cause::Remote(upstream.source()))
                }
                BuildInput::Chart(chart) => {
                    chart.locked(&self.affected_entries).map(|_| Cause::Remote(chart.upstream()))
                }
            };
            if cause.is_some() {
                return Ok(cause);
            }
        }
        Ok(None)
    }

    /// The sources that differ and that some roots of the new tree lead to, so that a report shows which builds a new
    /// version reaches. `of_roots` keeps the upstreams that each root references, for the next call with the same
    /// changes and graph.
    pub(crate) fn changed_sources_below(
        &self,
        graph: &Graph,
        roots: impl Iterator<Item = RootId>,
        of_roots: &mut HashMap<RootId, Vec<Upstream>>,
    ) -> Result<BTreeSet<Upstream>> {
        // Most changes leave the lock alone.
        if self.sources.is_empty() {
            return Ok(BTreeSet::new());
        }
        let mut starts = Vec::new();
        // Many builds share roots, so that each root is read once.
        for root in graph.reachable(roots) {
            if let Entry::Vacant(new) = of_roots.entry(root) {
                let upstream = |input: &BuildInput| match input {
                    BuildInput::Remote(remote) => remote.locked(&self.affected_entries),
                    BuildInput::Chart(chart) => Some(chart.upstream()),
                    BuildInput::At(_) | BuildInput::Below(_) => None,
                };
                new.insert(graph.inputs(root)?.inputs.iter().filter_map(upstream).collect());
            }
            starts.extend(of_roots.get(&root).into_iter().flatten().cloned());
        }
        // An upstream may reference others, which only the lock shows.
        let reached = self.affected_entries.reach(starts);
        Ok(reached.iter().map(Upstream::source).filter(|source| self.sources.contains(source)).collect())
    }

    /// Whether a checkout may write other bytes for a path, although the stored bytes are equal.
    pub(crate) fn may_convert(&self, path: &str) -> bool {
        self.attributes.iter().any(|directory| path::is_in(path, directory))
    }

    /// The path of the difference, if a reader of `path` would notice it; `None` if nothing differs.
    pub(crate) fn at(&self, path: &str) -> Result<Option<String>> {
        if let Some(changed) = path::and_above(path).find(|above| self.paths.contains(*above)) {
            return Ok(Some(changed.to_owned()));
        }
        let is_converted = self.may_convert(path)
            && matches!(self.trees.new.entry(path)?, Some(tree::Entry::File { .. }))
            && !is_same_file(self.trees.as_ref(), path);
        Ok(is_converted.then(|| path.to_owned()))
    }

    /// The path of a difference at or below a directory; `None` if there is none.
    pub(super) fn below(&self, directory: &str) -> Result<Option<String>> {
        let first = if directory.is_empty() { String::new() } else { format!("{directory}/") };
        let inside = self.paths.range(first..).next().filter(|changed| path::is_in(changed, directory));
        let changed = self.at(directory)?.or(inside.cloned());
        if changed.is_some() || self.attributes.is_empty() {
            return Ok(changed);
        }
        // Attributes can change any file below, which only a comparison of its converted bytes shows.
        for path in self.trees.new.below(directory)? {
            if let Some(changed) = self.at(&path)? {
                return Ok(Some(changed));
            }
        }
        Ok(None)
    }
}

/// Whether a file has equal bytes in two trees.
fn is_same_file(trees: Sides<&SharedTree>, path: &str) -> bool {
    // A file that cannot be read may differ.
    trees.try_map(|tree| tree.read(path)).is_ok_and(|Sides { old, new }| old == new)
}

/// The sources whose content differs between two locks.
fn changed_sources(Sides { old, new }: Sides<&Lock>) -> BTreeSet<Upstream> {
    let changes = Lock::changes(old, new).into_iter();
    // If only more paths of an entry are in use, the content of the others is the same.
    changes.filter(|change| change.kind != ChangeKind::Extended).map(|change| change.upstream).collect()
}

/// The entries of both locks for `changed` sources, and for all sources that reference one of them; of an entry in both
/// the new one.
fn affected_entries(locks: Sides<&Lock>, changed: &BTreeSet<Upstream>) -> Lock {
    let Sides { old, new } = locks;
    let referrers = locks.map(Lock::referrers);
    let starts = old.upstreams().chain(new.upstreams()).filter(|upstream| changed.contains(&upstream.source()));
    let sources: BTreeSet<Upstream> = reach(starts, |upstream: &Upstream| {
        referrers.iter().filter_map(|referrers| referrers.get(upstream)).flatten().cloned().collect::<Vec<_>>()
    })
    .iter()
    .map(Upstream::source)
    .collect();
    let entries = old.remotes.iter().chain(&new.remotes).filter(|(source, _)| sources.contains(source));
    let remotes = entries.map(|(source, pinned)| (source.clone(), pinned.clone())).collect();
    Lock { remotes, ..Lock::default() }
}
