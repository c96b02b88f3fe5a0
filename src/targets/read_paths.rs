//! What Argo CD has to watch for an application: the value of `argocd.argoproj.io/manifest-generate-paths`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use super::{Engine, Here, Object, Place, Target, Targets};
use crate::failure::Result;
use crate::tree::{Entry, Listing, path};
use crate::walk::RootId;
use crate::walk::inputs::{self, Input, Inputs};

/// Returns the value for each application that lies in the repository. `.` is the path of the application itself, what
/// begins with a slash is seen from the top.
///
/// # Errors
/// When the tree cannot be read.
pub fn generate_paths(
    tree: &Rc<dyn Listing>,
    targets: &Targets,
) -> Result<BTreeMap<Object, String>> {
    let applications: Vec<(&Target, &Here)> = targets
        .targets
        .iter()
        .filter(|target| target.engine == Engine::ArgoCd && target.object.kind != "target")
        .filter_map(|target| match &target.place {
            Place::Here(here) => Some((target, here)),
            Place::External(_) | Place::Templated(_) => None,
        })
        .collect();
    let roots = |target, here| super::roots(&**tree, target, here);
    let starts: BTreeSet<String> = applications
        .iter()
        .flat_map(|(target, here)| roots(target, here))
        .collect();
    let starts: Vec<String> = starts.into_iter().collect();
    let explored = inputs::explore(tree.clone(), &starts);
    let inputs = Inputs::of(&**tree, &explored.graph)?;
    let known: HashMap<&str, RootId> = starts
        .iter()
        .map(String::as_str)
        .zip(&explored.starts)
        .filter_map(|(directory, root)| Some((directory, (*root)?)))
        .collect();
    let mut paths: BTreeMap<Object, BTreeSet<String>> = BTreeMap::new();
    for (target, here) in applications {
        let mut read = BTreeSet::new();
        for directory in roots(target, here) {
            match known.get(directory.as_str()) {
                Some(root) => read.extend(of_root(&**tree, &inputs, *root)?),
                None => {
                    read.insert(directory);
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

/// Returns the directories and files that the build of a root reads.
fn of_root(tree: &dyn Listing, inputs: &Inputs<'_>, root: RootId) -> Result<BTreeSet<String>> {
    let mut read = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut todo = vec![root];
    while let Some(root) = todo.pop() {
        if !seen.insert(root) {
            continue;
        }
        let found = inputs.of_root(root)?;
        read.insert(inputs.directory(root).to_owned());
        todo.extend(found.roots);
        for input in found.own {
            match input {
                Input::At(place) => {
                    // A directory is there as long as something is in it.
                    if tree.entry(&place)? != Some(Entry::Directory) {
                        read.insert(place);
                    }
                }
                Input::Below(directory) => {
                    read.insert(directory);
                }
                Input::Remote(_) | Input::Chart(_) => {}
            }
        }
    }
    Ok(read)
}
