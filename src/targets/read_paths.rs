//! What an engine reads for a target, and what Argo CD has to watch for that reason: the value of
//! `argocd.argoproj.io/manifest-generate-paths`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use super::{Engine, Found, Here, Object, Place, Target, Targets, fleet, override_files};
use crate::graph::RootId;
use crate::graph::inputs::{self, Input, Inputs};
use crate::kustomization::{Value, read_object};
use crate::message::failure::Result;
use crate::tree::{self, Entry, Resolved, Tree, path};

/// The files that say what a chart depends on.
const CHARTS: [&str; 2] = ["Chart.yaml", "requirements.yaml"];

/// Returns what an engine reads for a target besides roots.
pub(crate) fn inputs(tree: &dyn Tree, target: &Target, here: &Here) -> Result<Vec<Input>> {
    let mut whole = target.build.values.clone();
    let beside = override_files(&here.path, &target.object.name);
    let scanned = here.scanned.iter().filter(|one| !one.is_root).map(|one| one.path.clone());
    match &here.found {
        // Flux does not take all of it.
        Found::Directory(_) if target.engine == Engine::Flux => {}
        Found::Chart(directory) => whole.extend(charts(tree, directory)?),
        Found::Directory(directory) | Found::Plugin(directory) => whole.push(directory.clone()),
        Found::Kustomization(_) | Found::Submodule(_) | Found::Nothing(_) => {}
    }
    // A bundle holds everything beside its file, or in its directory.
    if target.object.kind == fleet::FILE_NAME {
        whole.push(path::parent(&target.object.file).to_owned());
    } else if target.engine == Engine::Fleet {
        whole.push(here.path.clone());
    }
    let mut all = inputs::of_no_root(tree, &here.path, &whole)?;
    let beside = beside.into_iter().filter(|_| target.engine == Engine::ArgoCd);
    all.extend(scanned.chain(beside).map(Input::At));
    Ok(all)
}

/// Returns the directories of a chart and of those in the repository that it depends on.
fn charts(tree: &dyn Tree, directory: &str) -> Result<Vec<String>> {
    let mut charts = Vec::new();
    let mut todo = vec![directory.to_owned()];
    while let Some(chart) = todo.pop() {
        for name in CHARTS {
            let place = path::join(&chart, name);
            let Resolved::File { path: place, .. } = tree::resolve(tree, &place)? else {
                continue;
            };
            let text = tree.read(&place)?;
            let read = read_object(&String::from_utf8_lossy(&text), 0);
            let read = read.ok().flatten();
            let dependencies = read.as_ref().and_then(|read| read.get("dependencies"));
            let dependencies = dependencies.and_then(Value::list).unwrap_or_default();
            let beside = dependencies.iter().filter_map(|one| {
                let url = one.get("repository")?.text()?;
                path::resolve(&chart, url.strip_prefix("file://")?)
            });
            todo.extend(beside.filter(|one| !charts.contains(one)));
        }
        charts.push(chart);
    }
    Ok(charts)
}

/// Returns the value for each application that lies in the repository: it covers every file of it that makes a
/// difference. `.` is the path of the application itself, what begins with a slash is seen from the top.
pub(crate) fn generate_paths(tree: &Rc<dyn Tree>, targets: &Targets) -> Result<BTreeMap<Object, String>> {
    let applications: Vec<(&Target, &Here)> = targets
        .targets
        .iter()
        .filter(|target| target.engine == Engine::ArgoCd && target.object.kind != "target")
        .filter_map(|target| match &target.place {
            Place::Here(here) => Some((target, here)),
            Place::External(_) | Place::Templated(_) => None,
        })
        .collect();
    let starts: BTreeSet<&str> = applications.iter().flat_map(|(target, here)| target.roots(here)).collect();
    let starts: Vec<String> = starts.into_iter().map(str::to_owned).collect();
    let explored = inputs::explore(tree.clone(), &starts);
    let of_roots = Inputs::of(&explored.graph);
    let known: HashMap<&str, RootId> = starts
        .iter()
        .map(String::as_str)
        .zip(&explored.starts)
        .filter_map(|(directory, root)| Some((directory, (*root)?)))
        .collect();
    let mut paths: BTreeMap<Object, BTreeSet<String>> = BTreeMap::new();
    for (target, here) in applications {
        let mut read = BTreeSet::new();
        add(&**tree, inputs(&**tree, target, here)?, &mut read)?;
        for directory in target.roots(here) {
            match known.get(directory) {
                Some(root) => add_root(&**tree, &of_roots, *root, &mut read)?,
                None => {
                    read.insert(directory.to_owned());
                }
            }
        }
        // What lies in something else that is watched is watched.
        let is_watched = |place: &str| {
            path::is_in(place, &here.path)
                || (!place.is_empty() && read.contains(""))
                || path::and_above(path::parent(place)).any(|above| read.contains(above))
        };
        let paths = paths.entry(target.object.clone()).or_default();
        paths.insert(".".to_owned());
        let outside = read.iter().filter(|place| !is_watched(place));
        paths.extend(outside.map(|place| format!("/{place}")));
    }
    let values = paths.into_iter().map(|(object, paths)| {
        let paths: Vec<String> = paths.into_iter().collect();
        (object, paths.join(";"))
    });
    Ok(values.collect())
}

/// Adds the directories and files that the build of a root reads.
fn add_root(tree: &dyn Tree, inputs: &Inputs<'_>, root: RootId, read: &mut BTreeSet<String>) -> Result<()> {
    let mut seen = BTreeSet::new();
    let mut todo = vec![root];
    while let Some(root) = todo.pop() {
        if seen.insert(root) {
            let found = inputs.of_root(root)?;
            read.insert(inputs.directory(root).to_owned());
            todo.extend(found.roots);
            add(tree, found.own, read)?;
        }
    }
    Ok(())
}

/// Adds the directories and files that are inputs.
fn add(tree: &dyn Tree, inputs: Vec<Input>, read: &mut BTreeSet<String>) -> Result<()> {
    for input in inputs {
        match input {
            // A directory is there as long as something is in it.
            Input::At(place) if tree.entry(&place)? == Some(Entry::Directory) => {}
            Input::At(place) | Input::Below(place) => {
                read.insert(place);
            }
            Input::Remote(_) | Input::Chart(_) => {}
        }
    }
    Ok(())
}
