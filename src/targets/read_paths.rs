//! The paths that an engine reads for a target.

use std::collections::BTreeSet;

use super::{PathContent, Target, TargetDir};
use crate::graph::Graph;
use crate::graph::inputs::{self, BuildInput};
use crate::kustomization::{Value, read_object};
use crate::message::failure::Result;
use crate::reference::is_remote_file;
use crate::tree::{self, Entry, Resolved, Tree, path};

/// The files with the dependencies of a chart: that of helm 3, and the older one.
const CHARTS: [&str; 2] = ["Chart.yaml", "requirements.yaml"];

/// The inputs of the build of a target, without those of its roots. `plain` are the files that Argo CD
/// reads in a directory of plain files; `None` means all of them.
pub(crate) fn inputs(
    tree: &dyn Tree,
    target: &Target,
    dir: &TargetDir,
    plain: Option<Vec<String>>,
) -> Result<Vec<BuildInput>> {
    let mut whole = target.build.more_inputs.clone();
    let beside = target.engine.override_paths(dir, &target.object.name);
    let scanned = dir.scanned.iter().filter(|resource| !resource.is_root).map(|resource| resource.path.clone());
    match &dir.content {
        // Flux reads only what it finds as a resource: `scanned`, and roots.
        PathContent::Directory(_) if target.engine.generates() => {}
        PathContent::Chart(directory) => whole.extend(charts(tree, directory)?),
        PathContent::Directory(directory) => whole.extend(plain.unwrap_or_else(|| vec![directory.clone()])),
        PathContent::Plugin(directory) => whole.push(directory.clone()),
        PathContent::Kustomization(_) | PathContent::Submodule(_) | PathContent::Nothing(_) => {}
    }
    // These include paths that do not exist: a file that appears there changes the build.
    let mut all = inputs::inputs_of_directory(tree, &dir.path, &whole)?;
    let patches = target.build.patches.iter().filter(|patch| !is_remote_file(&patch.text));
    let patches = patches.filter_map(|patch| path::resolve(&dir.path, &patch.text));
    all.extend(scanned.chain(beside).chain(patches).map(BuildInput::At));
    Ok(all)
}

/// The directories of a chart and of the charts in the repository that it depends on (`file://`).
fn charts(tree: &dyn Tree, directory: &str) -> Result<Vec<String>> {
    let mut charts = Vec::new();
    let mut todo = vec![directory.to_owned()];
    while let Some(chart) = todo.pop() {
        // Charts may depend on each other, and two on one.
        if charts.contains(&chart) {
            continue;
        }
        let beside = dependencies(tree, &chart)?.into_iter().filter_map(|dependency| {
            let url = dependency.get("repository")?.text()?;
            path::resolve(&chart, url.strip_prefix("file://")?)
        });
        todo.extend(beside);
        charts.push(chart);
    }
    Ok(charts)
}

/// The dependencies that the chart in a directory lists, as written. A file that is missing or not plain YAML lists
/// none.
fn dependencies(tree: &dyn Tree, chart: &str) -> Result<Vec<Value>> {
    let mut all = Vec::new();
    for name in CHARTS {
        let Resolved::File { path, .. } = tree::resolve(tree, &path::join(chart, name))? else {
            continue;
        };
        let read = read_object(&*String::from_utf8_lossy(&tree.read(&path)?)).ok().flatten();
        let listed = read.as_ref().and_then(|read| read.get("dependencies")).and_then(Value::list);
        all.extend(listed.unwrap_or_default().iter().cloned());
    }
    Ok(all)
}

/// A dependency of a chart in the tree that is not beside it.
pub(crate) struct MissingChart {
    /// The directory in which the tree lacks it.
    pub home: String,
    pub name: String,
    /// As it is written.
    pub version: String,
    /// The repository that helm downloads it from; empty if it is not written.
    pub repository: String,
}

/// The charts that an engine downloads for a chart in a directory, and for the charts of the tree that this one depends
/// on, because the tree lacks them.
pub(crate) fn missing_charts(tree: &dyn Tree, directory: &str) -> Result<Vec<MissingChart>> {
    let mut missing = Vec::new();
    for chart in charts(tree, directory)? {
        let home = path::join(&chart, "charts");
        let files = match tree::resolve(tree, &home)? {
            Resolved::Directory { path } => tree.names(&path)?,
            _ => Vec::new(),
        };
        for dependency in dependencies(tree, &chart)? {
            let text = |key: &str| dependency.get(key).and_then(Value::scalar).unwrap_or_default();
            let (name, repository) = (text("name"), text("repository"));
            // helm takes a dependency from `charts`, as a directory or packed, before it asks the repository.
            let packed = format!("{name}-");
            if !repository.starts_with("file://")
                && !files
                    .iter()
                    .any(|file: &String| *file == name || file.starts_with(&packed) && file.ends_with(".tgz"))
            {
                missing.push(MissingChart { home: home.clone(), name, version: text("version"), repository });
            }
        }
    }
    Ok(missing)
}

/// The paths that the build of a target reads.
pub(super) struct ReadPaths {
    /// The paths that it reads, or below which it reads everything.
    pub(super) paths: BTreeSet<String>,
    /// The directories of the roots that it leads to.
    pub(super) roots: BTreeSet<String>,
}

/// The paths that the build of a target reads, with those of all roots that it leads to. `graph` is a walk over the
/// whole tree.
pub(super) fn read_paths(graph: &Graph, target: &Target, dir: &TargetDir) -> Result<ReadPaths> {
    let tree = &*graph.sources[0].tree;
    let mut all = inputs(tree, target, dir, None)?;
    let mut roots: BTreeSet<String> = target.roots(dir).map(str::to_owned).collect();
    for root in graph.reach_localized(target.walked(dir, graph)) {
        roots.insert(graph.roots[root].directory.clone());
        all.extend(graph.inputs(root)?.inputs);
    }
    let mut paths = BTreeSet::new();
    for input in all {
        match input {
            // git has no directories: one exists as long as a file is in it, and the build reads its files themselves.
            BuildInput::At(path) if tree.entry(&path)? == Some(Entry::Directory) => {}
            BuildInput::At(path) | BuildInput::Below(path) => drop(paths.insert(path)),
            BuildInput::Remote(_) | BuildInput::Chart(_) => {}
        }
    }
    Ok(ReadPaths { paths, roots })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::testing::tree;

    #[test]
    fn charts_that_depend_on_one_or_on_each_other_count_once() {
        let chart = |dependencies: &str| format!("name: x\ndependencies: [{dependencies}]\n");
        let on = |name: &str| format!("{{name: {name}, repository: 'file://../{name}'}}");
        let away = "{name: redis, version: 1.0.0, repository: 'https://charts.example.com'}";
        let tree = tree(&[
            ("a/Chart.yaml", &chart(&format!("{}, {}", on("b"), on("c")))),
            ("b/Chart.yaml", &chart(away)),
            ("c/Chart.yaml", &chart(&format!("{}, {}", on("b"), on("a")))),
        ]);
        assert_eq!(charts(&tree, "a").unwrap(), ["a", "c", "b"]);
        let missing: Vec<String> = missing_charts(&tree, "a").unwrap().into_iter().map(|chart| chart.home).collect();
        assert_eq!(missing, ["b/charts"]);
    }
}
