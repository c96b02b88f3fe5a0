//! Fetching the files of repositories before the walk asks for them: the same walk goes through what is here, and what
//! it lacks is one request, until nothing is missing. A file that is not found so is fetched when it is read.

use std::collections::HashMap;
use std::rc::Rc;

use super::Fetcher;
use super::checkout::CheckoutTree;
use super::git::Missing;
use crate::graph::{self, Origin, Place, Repository, Source};
use crate::reference::RepoRef;
use crate::tree::{Resolved, Tree, license, resolve};

impl Fetcher {
    /// Fetches the files that builds of these roots read, all that are known at one moment together.
    pub(super) fn bring_files<'a>(&self, roots: impl Iterator<Item = (&'a Rc<Repository>, String)>) {
        let mut directories: HashMap<&RepoRef, (&Rc<Repository>, Vec<String>)> = HashMap::new();
        for (repository, directory) in roots {
            let known = directories.entry(&repository.version).or_insert_with(|| (repository, Vec::new()));
            known.1.push(directory);
        }
        loop {
            let mut all: Vec<Missing> = Vec::new();
            for (version, (repository, directories)) in &directories {
                let Some(tree) = self.checkouts.get(version) else { continue };
                for missing in tree.missing(|| walk(tree, repository, directories)) {
                    let left = all.iter_mut().try_fold(missing, |missing, one| one.join(missing).ok_or(()));
                    all.extend(left.ok());
                }
            }
            if all.is_empty() {
                return;
            }
            self.network.fetch_missing(&all);
        }
    }
}

/// Goes through everything in a repository that builds of the roots in these directories read.
fn walk(tree: &CheckoutTree, repository: &Rc<Repository>, directories: &[String]) {
    let is_directory = |directory: &String| match resolve(tree, directory) {
        Ok(Resolved::Directory { path }) => Some(path),
        _ => None,
    };
    let directories: Vec<String> = directories.iter().filter_map(is_directory).collect();
    let source = Source { tree: repository.tree.clone(), scope: String::new(), repository: Some(repository.clone()) };
    let graph = graph::explore(source, &directories, None, &graph::Options::default()).graph;
    for file in &graph.files {
        if let Origin::Tree { path, .. } = &file.origin {
            tree.want(path);
        }
    }
    for directory in graph.roots.iter().map(|root| root.directory.as_str()).chain([""]) {
        for place in license::paths(tree, directory).unwrap_or_default() {
            tree.want(&place);
        }
    }
    for chart in &graph.charts {
        if let Place::There(place) = &chart.place {
            tree.below(place).unwrap_or_default().iter().for_each(|place| tree.want(place));
        }
    }
}
