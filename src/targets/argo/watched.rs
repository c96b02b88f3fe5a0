//! The paths that Argo CD must watch because it reads them: the value of `argocd.argoproj.io/manifest-generate-paths`.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value as Json;

use super::matcher;
use super::models::{APPLICATION, Annotated};
use crate::graph::Graph;
use crate::message::failure::Result;
use crate::targets::read_paths::read_paths;
use crate::targets::{ObjectRef, Target, TargetDir, TargetLocation, Targets, unfilled};
use crate::tree::path;

pub(crate) use super::models::GENERATE_PATHS;

/// The value of the annotation that each application needs: it covers every file that the build reads, so that Argo CD
/// notices each change. `graph` is a walk over the whole tree.
pub(crate) fn generate_paths(graph: &Graph, targets: &Targets) -> Result<BTreeMap<ObjectRef, String>> {
    let mut paths: BTreeMap<ObjectRef, BTreeSet<String>> = BTreeMap::new();
    for target in targets.targets.iter().filter(|target| target.object.kind == APPLICATION) {
        let TargetLocation::Local(dir) = &target.location else { continue };
        let read = read_paths(graph, target, dir)?;
        let read: BTreeSet<String> = read.paths.into_iter().chain(read.roots).collect();
        // A path below a watched directory is already watched. The top (an empty path) is asked for by itself, because
        // `and_above` leaves it out.
        let is_watched = |path: &str| {
            path::is_in(path, &dir.path)
                || (!path.is_empty() && read.contains(""))
                || path::and_above(path::parent(path)).any(|above| read.contains(above))
        };
        // `.` is the path of the application itself; a path that begins with a slash is relative to the top.
        let outside = read.iter().filter(|path| !is_watched(path)).map(|path| format!("/{path}"));
        paths.entry(target.object.clone()).or_default().extend(outside.chain([".".to_owned()]));
    }
    let values = paths.into_iter().map(|(object, paths)| {
        let paths: Vec<String> = paths.into_iter().collect();
        (object, paths.join(";"))
    });
    Ok(values.collect())
}

/// The files that an application reads, and that its annotation leaves out: Argo CD does not notice their changes.
/// Empty without an annotation, or if variables in it are unknown. `graph` is a walk over the whole tree.
pub(crate) fn unwatched(
    graph: &Graph,
    targets: &Targets,
    target: &Target,
    dir: &TargetDir,
) -> Result<BTreeSet<String>> {
    let manifest: Json = serde_json::from_str(&target.manifest).unwrap_or_default();
    let annotated = Annotated::deserialize(manifest).unwrap_or_default();
    let annotation = annotated.metadata.annotations.generate_paths.as_str();
    // A relative path counts from the directory of each source of the application, and each source is a target.
    let all = targets.targets.iter().filter(|other| other.object == target.object);
    let sources: Vec<&str> = all.filter_map(|target| Some(target.local_dir()?.path.as_str())).collect();
    let items = annotation.split(';').filter(|item| !item.is_empty());
    let watched: Vec<String> = items
        .flat_map(|item| match item.strip_prefix('/') {
            Some(item) => vec![path::resolve("", item)],
            None => sources.iter().map(|source| path::resolve(source, item)).collect(),
        })
        .flatten()
        .collect();
    // Without a path in the annotation Argo CD watches everything.
    if watched.is_empty() || unfilled([annotation]).is_some() {
        return Ok(BTreeSet::new());
    }
    let patterns: Vec<_> = watched.iter().filter_map(|item| matcher(item)).collect();
    // In Argo CD (util/app/path) a path means itself and everything in it, and a pattern means whole paths.
    let is_watched = |path: &String| {
        watched.iter().any(|item| path::is_in(path, item)) || patterns.iter().any(|pattern| pattern.is_match(path))
    };
    let tree = &*graph.sources[0].tree;
    let mut unwatched = read_paths(graph, target, dir)?.paths;
    // A missing file changes nothing until it exists; a target that may read anything, as Jsonnet does, names no path.
    unwatched.retain(|path| !path.is_empty() && !is_watched(path) && !matches!(tree.entry(path), Ok(None)));
    Ok(unwatched)
}
