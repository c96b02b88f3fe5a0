//! Finds the objects that nothing deploys: archived objects often name directories that no longer exist.

use std::collections::{BTreeMap, BTreeSet};

use super::Targets;
use super::deployments::Deployments;
use crate::graph::{Graph, RootId};
use crate::tree::path;

impl Targets {
    /// The files of objects that nothing deploys, each with the topmost directory without a deployment: findings about
    /// archived objects would be noise. Empty if no target deploys an object. A file at the top, or in a directory of
    /// which anything is deployed, is not among them.
    pub(super) fn undeployed(&self, graph: &Graph, deployments: &Deployments<'_>) -> BTreeMap<String, String> {
        let mut roots: BTreeSet<RootId> = BTreeSet::new();
        let mut reached: BTreeSet<&str> = BTreeSet::new();
        let mut deploying = BTreeSet::new();
        // The paths that targets deploy, and the files of the objects that deploy something.
        for (number, target) in self.targets.iter().enumerate() {
            let Some(dir) = target.local_dir() else { continue };
            let Some(directory) = dir.content.real_path() else { continue };
            deploying.insert(target.object.file.as_str());
            reached.insert(directory);
            reached.extend(dir.scanned.iter().map(|resource| resource.path.as_str()));
            roots.extend(&**deployments.roots(number));
        }
        // Files of deployed roots are deployed with them.
        let edges = roots.into_iter().flat_map(|root| &graph.roots[root].edges);
        reached.extend(edges.filter_map(|edge| graph.user_file(edge)));
        // An entry of the configuration is deployed by definition.
        let objects = self.targets.iter().map(|target| &target.object).filter(|object| !object.is_listed());
        let files: BTreeSet<&str> = objects.map(|object| object.file.as_str()).collect();
        // Nothing in the tree starts here: somebody applies the objects by hand, or from another repository.
        if files.is_disjoint(&reached) {
            return BTreeMap::new();
        }
        // Whoever applied an unreached object by hand may have applied those beside it.
        let by_hand: BTreeSet<&str> = deploying.difference(&reached).map(|file| path::parent(file)).collect();
        // The topmost unused directory names the whole archive, not each file in it.
        let used: BTreeSet<&str> = reached.union(&deploying).copied().collect();
        let is_used = |directory: &str| {
            let inside = format!("{directory}/");
            let first = used.range(inside.as_str()..).next();
            used.contains(directory) || first.is_some_and(|file| file.starts_with(&inside))
        };
        let undeployed = files.into_iter().filter_map(|file| {
            if reached.contains(file) || by_hand.contains(path::parent(file)) {
                return None;
            }
            let above = path::and_above(path::parent(file));
            let unused = above.take_while(|above| !is_used(above)).last()?;
            Some((file.to_owned(), unused.to_owned()))
        });
        undeployed.collect()
    }
}
