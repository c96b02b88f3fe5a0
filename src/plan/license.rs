//! The licences of what is brought in: of the top of each repository, and of the directories between it and a root.

use std::collections::{BTreeMap, BTreeSet, HashMap, hash_map};

use super::files::{Content, ResultFile};
use super::layout::distinct;
use super::remotes;
use super::result::{Builder, Instance};
use crate::graph::Warning;
use crate::message::failure::{Location, Result};
use crate::message::finding::Rule;
use crate::reference::localized_path;
use crate::tree::{license, path};

impl Builder<'_> {
    /// Adds the licences of everything that was placed. What is not ours to bring along is a warning.
    pub(super) fn add_licenses(
        &self,
        files: &mut BTreeMap<String, ResultFile>,
        warnings: &mut Vec<Warning>,
    ) -> Result<()> {
        let graph = self.graph;
        let mut covered: BTreeSet<(&str, usize, &str)> = BTreeSet::new();
        for (instance, root) in &self.visited {
            if graph.sources[instance.source].repository.is_some() {
                let directory = graph.roots[*root].directory.as_str();
                let directories = path::and_above(directory).chain([""]);
                covered.extend(directories.map(|one| (&*instance.base, instance.source, one)));
            }
        }
        let mut folded: HashMap<String, String> =
            files.keys().map(|place| (place.to_lowercase(), place.clone())).collect();
        let mut found = HashMap::new();
        for (base, source, directory) in covered {
            let Some(repository) = &graph.sources[source].repository else {
                continue;
            };
            let tree = &*graph.sources[source].tree;
            let licenses = match found.entry((source, directory)) {
                hash_map::Entry::Occupied(known) => known.into_mut(),
                hash_map::Entry::Vacant(new) => {
                    let licenses = license::find(tree, directory).map_err(|failure| {
                        failure
                            .context(format!("the licences of `{}`", tree.label(directory)))
                            .hint("to leave licences out, write `licenses: false` in .kustomize-localize")
                    })?;
                    warnings.extend(licenses.left.iter().map(|(place, why)| {
                        let location = Location { file: tree.label(place), ..Location::default() };
                        let message = format!("this licence is not brought along: {why}");
                        Warning::new(Rule::LeftLicense, location, message)
                    }));
                    new.insert(licenses.files)
                }
            };
            let instance = Instance { source, base: base.to_owned() };
            let top = self.destination(&instance, directory);
            for (from, bytes) in licenses.iter() {
                let inside = path::below(from, directory).unwrap_or(from);
                let names: Vec<String> = path::components(inside).map(localized_path::segment).collect();
                let mut to = path::join(&top, &names.join("/"));
                match folded.get(&to.to_lowercase()) {
                    // It is in use.
                    Some(there) if *there == to && files[there].content.bytes() == *bytes => {
                        continue;
                    }
                    Some(_) => to = path::join(path::parent(&to), &distinct(path::name(from))),
                    None => {}
                }
                folded.insert(to.to_lowercase(), to.clone());
                files.insert(
                    to,
                    ResultFile {
                        content: Content::Bytes(bytes.as_slice().into()),
                        executable: false,
                        stripped: false,
                        remote: Some(remotes::git(repository).label()),
                        source: Some(from.clone()),
                        rewritten: BTreeMap::new(),
                    },
                );
            }
        }
        Ok(())
    }
}
