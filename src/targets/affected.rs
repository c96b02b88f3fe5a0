//! Finds the roots and targets whose builds may differ between two trees.
//!
//! A build is a function of its inputs: the nodes and bytes at the paths that it reads ([`inputs`]). If none of them
//! differs, the build reads the same paths again, and its output is the same. So the inputs in the new tree are enough,
//! together with the differences to the old tree ([`changes`]).

pub(crate) mod changes;
mod deployed;
mod filled;
mod reached;
mod sides;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde::Serialize;

use super::{DeployedTree, ObjectRef, PathContent, Target, Targets, Unread, Why, flux_objects};
use crate::config::Config;
use crate::graph::inputs::{self, BuildInput, RootInputs};
use crate::graph::{ChartLookup, Explored, FileId, Graph, RootId, TroubleKind, reach};
use crate::kustomization::ProblemKind;
use crate::message::failure::Result;
use crate::reference::Upstream;
use crate::tree::{Tree, path};

use changes::Changes;
use reached::DeploymentIndex;
pub(crate) use sides::Sides;

/// The roots and targets whose builds may differ.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Affected {
    /// The top roots, sorted by directory.
    pub roots: Vec<AffectedRoot>,
    /// How many of these there are now.
    pub total: usize,
    /// The targets.
    pub targets: Vec<AffectedTarget>,
    /// How many targets there are now, with those that may still be there.
    pub targets_total: usize,
    /// The targets of the new tree that an unknown build may change: they are compared as written.
    pub unbuilt: Vec<Target>,
    /// The files that could not be read, so that their deployments are unknown.
    pub unread: Vec<Unread>,
    /// The directories of all roots whose build can differ, and those in which something does that nothing may read.
    #[serde(skip)]
    pub directories: BTreeSet<String>,
}

/// A target whose build can differ.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct AffectedTarget {
    /// The target; of one that is gone as it was.
    pub target: Target,
    /// The old target, if its object changed.
    #[serde(skip)]
    pub was: Option<Target>,
    /// How it differs.
    pub status: DiffStatus,
    /// One of the differences.
    #[serde(flatten)]
    pub cause: Cause,
}

impl AffectedTarget {
    /// The old and the new target.
    pub(crate) fn sides(&self) -> Sides<Option<&Target>> {
        match self.status {
            DiffStatus::Removed => Sides { old: Some(&self.target), new: None },
            _ => Sides { old: self.was.as_ref(), new: Some(&self.target) },
        }
    }
}

/// A root whose build can differ.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct AffectedRoot {
    /// Its directory from the top of the repository.
    #[serde(serialize_with = "crate::tree::path::serialize")]
    pub directory: String,
    /// How it differs.
    pub status: DiffStatus,
    /// One of the differences; for a removed root its directory.
    #[serde(flatten)]
    pub cause: Cause,
}

/// How a root, a target or an object differs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DiffStatus {
    /// It is new.
    Added,
    /// It, or something that its build reads, is different.
    #[default]
    Changed,
    /// It is gone.
    Removed,
}

impl DiffStatus {
    /// How something of several parts differs: as all of them do, or it is changed.
    pub(crate) fn of_all(parts: impl IntoIterator<Item = DiffStatus>) -> DiffStatus {
        let mut parts = parts.into_iter();
        let first = parts.next().unwrap_or_default();
        if parts.all(|part| part == first) { first } else { DiffStatus::Changed }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            DiffStatus::Added => "added",
            DiffStatus::Changed => "changed",
            DiffStatus::Removed => "removed",
        }
    }
}

/// A difference.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Cause {
    /// The content at this path, from the top of the repository.
    Path(String),
    /// The lock entry of this source.
    Remote(Upstream),
}

/// The builds of a tree besides its targets.
pub(crate) struct OtherBuilds {
    /// The top roots, by their directories.
    pub roots: Vec<String>,
    /// The files that could not be read, so that their deployments are unknown.
    pub unread: Vec<Unread>,
}

/// Finds everything that is built from a tree besides its targets, and the files that may deploy more.
pub(crate) fn other_builds(tree: &dyn Tree, config: &Config, deployed: &DeployedTree) -> Result<OtherBuilds> {
    let starts = starts(tree, config, deployed)?;
    let incomplete = incomplete_roots(&deployed.explored, &deployed.targets);
    // Without a comparison every file that could not be read counts, whatever differs.
    let unread = unread(deployed, &starts, &incomplete, |_, _| true, |_| Ok(true))?;
    Ok(OtherBuilds { roots: Vec::from_iter(top_directories(deployed, &starts)), unread })
}

/// The files that could not be read and may deploy something, so that a report is not complete: objects that are
/// deployed as they are, `incomplete` roots in `starts` if `is_shown`, and other files with objects if `is_touched`. A
/// comparison uses the two functions to keep what the change concerns.
fn unread(
    DeployedTree { explored, targets }: &DeployedTree,
    starts: &BTreeSet<String>,
    incomplete: &BTreeMap<RootId, Unread>,
    is_shown: impl Fn(RootId, &Unread) -> bool,
    is_touched: impl Fn(&Unread) -> Result<bool>,
) -> Result<Vec<Unread>> {
    let graph = &explored.graph;
    let roots = incomplete
        .iter()
        .filter(|(root, unread)| starts.contains(&graph.roots[**root].directory) && is_shown(**root, unread));
    let mut all: Vec<Unread> = targets.unread_objects(graph).chain(roots.map(|(_, unread)| unread)).cloned().collect();
    for file in &targets.unread {
        if !all.contains(file) && is_touched(file)? {
            all.push(file.clone());
        }
    }
    Ok(all)
}

/// The roots and targets whose builds may differ, or that were removed. For each tree it takes a walk over the whole
/// tree, and its targets.
pub(crate) fn affected(changes: &Changes, config: &Config, deployed: Sides<&DeployedTree>) -> Result<Affected> {
    let directories = starts(&*changes.trees.new, config, deployed.new)?;
    let old_directories = old_starts(changes, config, deployed.old)?;
    let (graph, targets) = (&deployed.new.explored.graph, &deployed.new.targets);
    let reached = deployed.map(DeploymentIndex::of);
    let incomplete = &reached.new.incomplete;
    // A difference for each root; these tell which unreadable files matter.
    let causes = Causes::of(graph, changes, incomplete)?;
    let mut touched = causes.affected_targets(config, reached.as_ref())?;
    let filled = filled::filled_targets(&causes, &targets.targets, &mut touched)?;
    // An old target that is perhaps not removed is only in `touched`, and counts as present.
    let new: HashSet<&ObjectRef> = targets.targets.iter().map(|target| &target.object).collect();
    let may_stay =
        |change: &&AffectedTarget| change.status != DiffStatus::Removed && !new.contains(&change.target.object);
    let targets_total = targets.targets.len() + touched.iter().filter(may_stay).count();
    // The top roots of both trees. The target that deployed a root compares its output, also if the root is gone, or
    // another root references it now: only a root that is a top root now is listed by itself, too.
    let mut top = top_directories(deployed.old, &old_directories);
    let was_deployed = deployed.old.targets.roots();
    top.retain(|directory| !was_deployed.contains(directory));
    top.extend(top_directories(deployed.new, &directories));
    Ok(Affected {
        total: top.intersection(&directories).count(),
        roots: causes.affected_roots(top, Sides { old: &old_directories, new: &directories })?,
        targets_total,
        unbuilt: unbuilt(targets, filled, &touched),
        targets: touched,
        unread: causes.unread(deployed.new, config, &directories, incomplete)?,
        // Also the roots around a difference that no walk shows to read it.
        directories: causes.directories().chain(changes.directories()).collect(),
    })
}

/// The targets of which a reviewer must hear because their builds are unknown: those that a build may change or Flux
/// fills in, and those that may be gone.
fn unbuilt(targets: &Targets, filled: Vec<Target>, touched: &[AffectedTarget]) -> Vec<Target> {
    let mut unbuilt: Vec<Target> = targets.targets.iter().filter(is_open).cloned().collect();
    let known: HashSet<ObjectRef> = unbuilt.iter().map(|target| target.object.clone()).collect();
    let perhaps_gone = touched.iter().map(|target| &target.target).filter(is_open);
    unbuilt.extend(filled);
    unbuilt.extend(perhaps_gone.filter(|target| !known.contains(&target.object)).cloned());
    unbuilt
}

/// Whether an unknown build may change a target.
fn is_open(target: &&Target) -> bool {
    target.changed_by.is_some()
}

/// The directories at which a run starts, if nobody names others.
fn starts(tree: &dyn Tree, config: &Config, deployed: &DeployedTree) -> Result<BTreeSet<String>> {
    let starts = config.starting_points(tree, &[], &tree.kustomizations()?, deployed.targets.roots())?;
    Ok(starts.into_iter().collect())
}

/// The same of the old tree. Unlike [`starts`], this does not fail if the configuration excludes all of it.
fn old_starts(changes: &Changes, config: &Config, deployed: &DeployedTree) -> Result<BTreeSet<String>> {
    let directories = changes.trees.old.kustomizations()?.into_iter().map(|path| path::parent(&path).to_owned());
    let directories = directories.filter(|directory| config.may_start_in(directory));
    Ok(directories.chain(deployed.targets.roots()).collect())
}

/// The roots of the tree with an error that hides references, so that they may reference more than is known.
fn incomplete_roots(explored: &Explored, targets: &Targets) -> BTreeMap<RootId, Unread> {
    let graph = &explored.graph;
    // An empty kustomization is an error, too, but has no references.
    let hides = |kind: &TroubleKind| kind.hides_references() && *kind != TroubleKind::Problem(ProblemKind::Empty);
    let mut troubles = explored.troubles.iter().filter(|trouble| hides(&trouble.kind)).peekable();
    // Most trees have no such error, and the rest looks at every root.
    if troubles.peek().is_none() {
        return BTreeMap::new();
    }
    // An object of Flux in a file that is named `kustomization.yaml` is not a kustomization, so it hides nothing.
    let flux = flux_objects(explored, &targets.roots());
    let files: BTreeMap<FileId, RootId> =
        graph.user_roots().into_values().map(|root| (graph.roots[root].file, root)).collect();
    let incomplete = troubles.filter_map(|trouble| {
        let file = graph.file_at(trouble.at).filter(|file| !flux.contains(file))?;
        // A trouble of a whole file is in no root: there the root is the one that has the file.
        let root = graph.root_at(trouble.at).or_else(|| files.get(&file).copied())?;
        let message = "its references are unknown (see: git kustomize-localize check)";
        let path = graph.user_path(file)?;
        let is_template = trouble.kind == TroubleKind::Problem(ProblemKind::Template);
        let why = if is_template { Why::Template } else { Why::Invalid };
        Some((root, Unread::new(path, 0, message, why)))
    });
    incomplete.collect()
}

/// The charts that differ, and that no target or root of this tree uses. They are reported as unread, because a
/// `HelmRelease` elsewhere may deploy them.
fn unused_charts(
    changes: &Changes,
    config: &Config,
    DeployedTree { explored, targets }: &DeployedTree,
) -> Result<Vec<Unread>> {
    let mut charts = changes.charts()?;
    // A chart with a known user is compared as a part of that target or root.
    let deployed = targets.local_targets().filter_map(|(_, dir)| match &dir.content {
        PathContent::Chart(directory) => Some(directory.as_str()),
        _ => None,
    });
    // A chart that a kustomization inflates is among the inputs of its root.
    let inflated = explored.graph.charts.iter().filter_map(|chart| match &chart.lookup {
        ChartLookup::There(directory) => Some(directory.as_str()),
        _ => None,
    });
    let used: BTreeSet<&str> = deployed.chain(inflated).collect();
    // A chart counts as used, too, if another chart inside of it is used: that part is compared.
    charts.retain(|chart| !config.leaves_out(chart) && !used.iter().any(|used| path::is_in(used, chart)));
    let message = "a chart, which something else may deploy";
    let files = charts.iter().map(|chart| path::join(chart, "Chart.yaml"));
    // Nothing is wrong with the chart itself: it has no line, and no hint.
    Ok(files.map(|file| Unread::new(&file, 0, message, Why::Unavailable(Vec::new()))).collect())
}

/// Those of `directories` that a comparison builds by themselves: top roots, and directories whose root cannot be read.
/// A root that another one in `directories`, or a deployed one, references is a part of the build of that.
fn top_directories(
    DeployedTree { explored, targets }: &DeployedTree,
    directories: &BTreeSet<String>,
) -> BTreeSet<String> {
    let graph = &explored.graph;
    let flux = flux_objects(explored, &targets.roots());
    let deployed = targets.local_targets().flat_map(|(target, dir)| target.roots(dir));
    let starts = directories.iter().map(String::as_str).chain(deployed);
    let reached = graph.reach_localized(starts.filter_map(|directory| graph.user_root(directory)));
    let top = graph.top_roots(&graph.root_ids().collect::<Vec<_>>(), reached);
    // An object of Flux may be named like a root.
    let is_built = |root: &RootId| top.contains(root) && !flux.contains(&graph.roots[*root].file);
    directories.iter().filter(|directory| graph.user_root(directory).as_ref().is_none_or(is_built)).cloned().collect()
}

/// The reasons why builds of the new tree may differ: one difference for each root.
struct Causes<'a> {
    changes: &'a Changes,
    graph: &'a Graph,
    /// One of the differences; `None` for a root whose build is the same.
    of_roots: Vec<Option<Cause>>,
}

impl<'a> Causes<'a> {
    /// Finds a difference for each root, by itself or in a root that it builds. An `incomplete` root may read any file
    /// in its directory.
    fn of(graph: &'a Graph, changes: &'a Changes, incomplete: &BTreeMap<RootId, Unread>) -> Result<Causes<'a>> {
        // First each root by itself; then a difference moves up to all roots that build it.
        let mut users = vec![Vec::new(); graph.roots.len()];
        let mut of_roots = Vec::new();
        for root in graph.root_ids() {
            let RootInputs { inputs, roots } = graph.inputs(root)?;
            roots.into_iter().for_each(|below| users[below.0].push(root));
            let mut cause = changes.cause_in(&inputs)?;
            if cause.is_none() && incomplete.contains_key(&root) {
                cause = changes.below(&graph.roots[root].directory)?.map(Cause::Path);
            }
            of_roots.push(cause);
        }
        for root in graph.root_ids() {
            let Some(cause) = of_roots[root.0].clone() else { continue };
            // A root with a difference of its inputs keeps it, and passes it on.
            let users_of = |root: &RootId| {
                let users: &Vec<RootId> = &users[root.0];
                users.iter().copied().filter(|user| of_roots[user.0].is_none()).collect::<Vec<_>>()
            };
            for user in reach([root], users_of) {
                of_roots[user.0] = Some(cause.clone());
            }
        }
        Ok(Causes { changes, graph, of_roots })
    }

    /// The directories of the roots for which something differs.
    fn directories(&self) -> impl Iterator<Item = String> {
        let own = self.graph.user_roots().into_iter();
        own.filter(|(_, root)| self.of_roots[root.0].is_some()).map(|(directory, _)| directory.to_owned())
    }

    /// The files of the new tree that could not be read, and that the change concerns.
    fn unread(
        &self,
        deployed: &DeployedTree,
        config: &Config,
        starts: &BTreeSet<String>,
        incomplete: &BTreeMap<RootId, Unread>,
    ) -> Result<Vec<Unread>> {
        let roots = deployed.targets.roots();
        // A template that nothing deploys says nothing, unless the change is in it.
        let is_shown = |root: RootId, unread: &Unread| {
            let is_deployed = roots.contains(&self.graph.roots[root].directory);
            unread.why != Why::Template || self.of_roots[root.0].is_some() || is_deployed
        };
        let mut unread = unread(deployed, starts, incomplete, is_shown, |file: &Unread| {
            Ok(self.changes.cause_in(&[BuildInput::At(file.file.clone())])?.is_some())
        })?;
        // A chart is not reported again if one of its files is.
        for chart in unused_charts(self.changes, config, deployed)? {
            let directory = path::parent(&chart.file);
            if !unread.iter().any(|file| path::is_in(&file.file, directory)) {
                unread.push(chart);
            }
        }
        Ok(unread)
    }

    /// The roots among `top`, in its order, whose builds may differ, or that were removed. `starts` are all directories
    /// in which a run starts.
    fn affected_roots(&self, top: BTreeSet<String>, starts: Sides<&BTreeSet<String>>) -> Result<Vec<AffectedRoot>> {
        let mut roots = Vec::new();
        for directory in top {
            let Sides { old: was_there, new: is_there } = starts.map(|starts| starts.contains(&directory));
            let status = match (was_there, is_there) {
                (_, false) => DiffStatus::Removed,
                (true, true) => DiffStatus::Changed,
                (false, true) => DiffStatus::Added,
            };
            let cause = if is_there { self.of_directory(&directory)? } else { Some(Cause::Path(directory.clone())) };
            roots.extend(cause.map(|cause| AffectedRoot { directory, status, cause }));
        }
        Ok(roots)
    }

    /// One of the differences for the build of a directory; `None` if there is none.
    fn of_directory(&self, directory: &str) -> Result<Option<Cause>> {
        match self.graph.user_root(directory) {
            Some(root) => Ok(self.of_roots[root.0].clone()),
            // Several kustomizations, or one that cannot be read.
            None => self.changes.cause_in(&inputs::inputs_of_directory(&*self.changes.trees.new, directory, &[])?),
        }
    }
}
