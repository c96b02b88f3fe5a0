//! The one map from the objects of a tree to the targets that deploy them.

use std::collections::{BTreeSet, HashMap};
use std::ops::Bound;
use std::rc::Rc;

use super::{PathContent, Target, TargetDir, TargetLocation};
use crate::graph::{Graph, RootId};

/// The roots and files of targets, which are known by their numbers.
#[derive(Default)]
pub(crate) struct Deployments<'a> {
    nodes: Vec<TargetNodes<'a>>,
    /// The targets that deploy each file.
    users: HashMap<&'a str, Vec<usize>>,
}

/// The roots and files of a target.
#[derive(Default, Clone)]
struct TargetNodes<'a> {
    roots: Rc<BTreeSet<RootId>>,
    files: Rc<BTreeSet<&'a str>>,
}

impl<'a> Deployments<'a> {
    /// Finds the roots that targets deploy, and which of the files with `objects` they deploy. A target at another
    /// revision counts as if it deployed this tree.
    pub(crate) fn of<'t>(
        graph: &Graph,
        targets: impl IntoIterator<Item = &'t Target>,
        objects: &BTreeSet<&'a str>,
    ) -> Deployments<'a> {
        // The files with objects that each root reads itself: few roots read any.
        let mut reading: HashMap<RootId, Vec<&'a str>> = HashMap::new();
        for root in graph.root_ids() {
            let files = graph.roots[root].edges.iter().filter_map(|edge| graph.user_file(edge));
            let files: Vec<&str> = files.filter_map(|file| objects.get(file).copied()).collect();
            if !files.is_empty() {
                reading.insert(root, files);
            }
        }
        // Targets with the same roots share one walk: many deploy one root, and a walk of a large graph takes long.
        let mut built: HashMap<Vec<RootId>, TargetNodes<'a>> = HashMap::new();
        let mut deployments = Deployments::default();
        for (number, target) in targets.into_iter().enumerate() {
            let mut deployed = TargetNodes::default();
            if let TargetLocation::Local(dir) = &target.location {
                let starts: Vec<RootId> = target.walked(dir, graph).collect();
                let of_roots = built.entry(starts).or_insert_with_key(|starts| {
                    let roots = graph.reach_localized(starts.iter().copied());
                    let files = roots.iter().filter_map(|root| reading.get(root)).flatten().copied().collect();
                    TargetNodes { roots: Rc::new(roots), files: Rc::new(files) }
                });
                deployed = of_roots.clone();
                let files = target.files_without_root(dir, objects);
                if !files.is_empty() {
                    Rc::make_mut(&mut deployed.files).extend(files);
                }
            }
            deployed.files.iter().for_each(|file| deployments.users.entry(file).or_default().push(number));
            deployments.nodes.push(deployed);
        }
        deployments
    }

    /// The roots that a target builds, and those that they reference.
    pub(crate) fn roots(&self, number: usize) -> &Rc<BTreeSet<RootId>> {
        &self.nodes[number].roots
    }

    /// The files with objects that a target reads, or applies as they are.
    pub(crate) fn files(&self, number: usize) -> &BTreeSet<&'a str> {
        &self.nodes[number].files
    }

    /// The numbers of the targets that deploy the objects in a file.
    pub(crate) fn users(&self, file: &str) -> &[usize] {
        self.users.get(file).map(Vec::as_slice).unwrap_or_default()
    }
}

impl Target {
    /// Whether its engine renders one of these files, which have objects, with helm.
    pub(super) fn renders_any(&self, files: &BTreeSet<&str>) -> bool {
        self.is_chart() && self.local_dir().is_some_and(|dir| !self.files_without_root(dir, files).is_empty())
    }

    /// Those of `files`, which have objects, that it deploys without a root: as they are, or rendered by a chart or
    /// plugin.
    fn files_without_root<'a>(&self, dir: &TargetDir, files: &BTreeSet<&'a str>) -> Vec<&'a str> {
        let (PathContent::Directory(directory) | PathContent::Chart(directory) | PathContent::Plugin(directory)) =
            &dir.content
        else {
            return Vec::new();
        };
        // Only the plugin knows which files it reads.
        let is_plugin = matches!(dir.content, PathContent::Plugin(_));
        // With its slash, or `app` would have the files of `apple`, too.
        let prefix = if directory.is_empty() { String::new() } else { format!("{directory}/") };
        let inside = files.range::<str, _>((Bound::Included(&*prefix), Bound::Unbounded));
        let inside = inside.take_while(|file| file.starts_with(&prefix));
        inside.copied().filter(|file| is_plugin || self.takes(dir, file)).collect()
    }
}
