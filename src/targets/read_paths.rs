//! What an engine reads for a target, and what Argo CD has to watch for that reason: the value of
//! `argocd.argoproj.io/manifest-generate-paths`.

use std::collections::{BTreeMap, BTreeSet};

use super::argo::{APPLICATION, matcher};
use super::{Found, Here, Object, Place, Target, Targets, unfilled};
use crate::graph::Graph;
use crate::graph::inputs::{self, Input};
use crate::kustomization::{Value, read_object};
use crate::message::failure::Result;
use crate::reference::is_url;
use crate::tree::{self, Entry, Resolved, Tree, path};

/// The files that say what a chart depends on.
const CHARTS: [&str; 2] = ["Chart.yaml", "requirements.yaml"];

/// Returns what an engine reads for a target besides roots. `plain` are the files that it takes of a directory of plain files;
/// `None` if that is all of it.
pub(crate) fn inputs(tree: &dyn Tree, target: &Target, here: &Here, plain: Option<Vec<String>>) -> Result<Vec<Input>> {
    let mut whole = target.build.values.clone();
    let beside = target.beside(here);
    let scanned = here.scanned.iter().filter(|one| !one.is_root).map(|one| one.path.clone());
    match &here.found {
        // Flux does not take all of it.
        Found::Directory(_) if target.engine.generates() => {}
        Found::Chart(directory) => whole.extend(charts(tree, directory)?),
        Found::Directory(directory) => whole.extend(plain.unwrap_or_else(|| vec![directory.clone()])),
        Found::Plugin(directory) => whole.push(directory.clone()),
        Found::Kustomization(_) | Found::Submodule(_) | Found::Nothing(_) => {}
    }
    let mut all = inputs::of_no_root(tree, &here.path, &whole)?;
    let patches = target.build.patches.iter().filter(|one| !is_url(&one.text));
    let patches = patches.filter_map(|one| path::resolve(&here.path, &one.text));
    all.extend(scanned.chain(beside).chain(patches).map(Input::At));
    Ok(all)
}

/// Returns the directories of a chart and of those in the repository that it depends on.
fn charts(tree: &dyn Tree, directory: &str) -> Result<Vec<String>> {
    let mut charts = Vec::new();
    let mut todo = vec![directory.to_owned()];
    while let Some(chart) = todo.pop() {
        let beside = dependencies(tree, &chart)?.into_iter().filter_map(|one| {
            let url = one.get("repository")?.text()?;
            path::resolve(&chart, url.strip_prefix("file://")?)
        });
        todo.extend(beside.filter(|one| !charts.contains(one)));
        charts.push(chart);
    }
    Ok(charts)
}

/// Returns what the chart in a directory depends on, as it says it.
fn dependencies(tree: &dyn Tree, chart: &str) -> Result<Vec<Value>> {
    let mut all = Vec::new();
    for name in CHARTS {
        let Resolved::File { path: place, .. } = tree::resolve(tree, &path::join(chart, name))? else {
            continue;
        };
        let read = read_object(&String::from_utf8_lossy(&tree.read(&place)?), 0).ok().flatten();
        let listed = read.as_ref().and_then(|read| read.get("dependencies")).and_then(Value::list);
        all.extend(listed.unwrap_or_default().iter().cloned());
    }
    Ok(all)
}

/// A chart that another one in the tree depends on, and that is not beside it.
pub(crate) struct MissingChart {
    /// The directory in which the tree lacks it.
    pub home: String,
    pub name: String,
    /// As it is written.
    pub version: String,
    /// Where helm downloads it; empty if that is not said.
    pub repository: String,
}

/// Returns the charts that an engine downloads for a chart in a directory, because the tree lacks them.
pub(crate) fn missing_charts(tree: &dyn Tree, directory: &str) -> Result<Vec<MissingChart>> {
    let mut missing = Vec::new();
    for chart in charts(tree, directory)? {
        let home = path::join(&chart, "charts");
        let there = match tree::resolve(tree, &home)? {
            Resolved::Directory { path } => tree.names(&path)?,
            _ => Vec::new(),
        };
        for one in dependencies(tree, &chart)? {
            let text = |key: &str| one.get(key).and_then(Value::scalar).unwrap_or_default();
            let (name, repository) = (text("name"), text("repository"));
            let packed = format!("{name}-");
            let is_there = |file: &String| *file == name || file.starts_with(&packed) && file.ends_with(".tgz");
            if !repository.starts_with("file://") && !there.iter().any(is_there) {
                missing.push(MissingChart { home: home.clone(), name, version: text("version"), repository });
            }
        }
    }
    Ok(missing)
}

/// The annotation that says of which files a change matters to an application.
pub(crate) const GENERATE_PATHS: &str = "argocd.argoproj.io/manifest-generate-paths";

/// Returns the paths of the tree of a walk that the build of a target reads, or all below which it reads, and the roots that
/// it leads to. A directory is there as long as something is in it.
fn read(graph: &Graph, target: &Target, here: &Here) -> Result<[BTreeSet<String>; 2]> {
    let tree = &*graph.sources[0].tree;
    let mut all = inputs(tree, target, here, None)?;
    let mut roots: BTreeSet<String> = target.roots(here).map(str::to_owned).collect();
    for root in graph.reach_localized(target.walked(here, graph)) {
        roots.insert(graph.roots[root].directory.clone());
        all.extend(graph.inputs(root)?.own);
    }
    let mut read = BTreeSet::new();
    for input in all {
        match input {
            Input::At(place) if tree.entry(&place)? == Some(Entry::Directory) => {}
            Input::At(place) | Input::Below(place) => drop(read.insert(place)),
            Input::Remote(_) | Input::Chart(_) => {}
        }
    }
    Ok([read, roots])
}

/// Returns the value for each application that lies in the tree of a walk: it covers every file of it that makes a
/// difference. `.` is the path of the application itself, what begins with a slash is seen from the top.
pub(crate) fn generate_paths(graph: &Graph, targets: &Targets) -> Result<BTreeMap<Object, String>> {
    let mut paths: BTreeMap<Object, BTreeSet<String>> = BTreeMap::new();
    for target in targets.targets.iter().filter(|one| one.object.kind == APPLICATION) {
        let Place::Here(here) = &target.place else { continue };
        let [mut read, mut roots] = read(graph, target, here)?;
        read.append(&mut roots);
        // What lies in something else that is watched is watched.
        let is_watched = |place: &str| {
            path::is_in(place, &here.path)
                || (!place.is_empty() && read.contains(""))
                || path::and_above(path::parent(place)).any(|above| read.contains(above))
        };
        let outside = read.iter().filter(|place| !is_watched(place)).map(|place| format!("/{place}"));
        paths.entry(target.object.clone()).or_default().extend(outside.chain([".".to_owned()]));
    }
    let values = paths.into_iter().map(|(object, paths)| {
        let paths: Vec<String> = paths.into_iter().collect();
        (object, paths.join(";"))
    });
    Ok(values.collect())
}

/// Returns what of the tree of a walk an application reads, and its annotation leaves out; nothing where it has none.
/// Argo CD (util/app/path) takes a path for itself and for all that is in it, and a pattern for whole paths.
pub(crate) fn unwatched(graph: &Graph, targets: &Targets, target: &Target, here: &Here) -> Result<BTreeSet<String>> {
    let said: serde_json::Value = serde_json::from_str(&target.said).unwrap_or_default();
    let annotation = said["metadata"]["annotations"][GENERATE_PATHS].as_str().unwrap_or_default();
    let all = targets.targets.iter().filter(|one| one.object == target.object);
    let sources: Vec<&str> = all.filter_map(|one| Some(one.here()?.path.as_str())).collect();
    let items = annotation.split(';').filter(|item| !item.is_empty());
    let watched: Vec<String> = items
        .flat_map(|item| match item.strip_prefix('/') {
            Some(item) => vec![path::resolve("", item)],
            None => sources.iter().map(|source| path::resolve(source, item)).collect(),
        })
        .flatten()
        .collect();
    if watched.is_empty() || unfilled([annotation]).is_some() {
        return Ok(BTreeSet::new());
    }
    let patterns: Vec<_> = watched.iter().filter_map(|item| matcher(item)).collect();
    let is_watched = |place: &String| {
        watched.iter().any(|item| path::is_in(place, item)) || patterns.iter().any(|pattern| pattern.is_match(place))
    };
    let tree = &*graph.sources[0].tree;
    let [mut unwatched, _] = read(graph, target, here)?;
    // What is not there may be read once it is, and changes nothing until then.
    unwatched.retain(|place| !is_watched(place) && !matches!(tree.entry(place), Ok(None)));
    Ok(unwatched)
}
