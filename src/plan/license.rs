//! The licences of what is brought in: those at the top of each repository, and beside each root.

use std::collections::{BTreeMap, BTreeSet};

use super::files::File;
use super::placing::{Builder, Instance};
use super::remotes;
use super::result::entry;
use crate::graph::Warning;
use crate::message::failure::{Location, Result};
use crate::message::finding::Rule;
use crate::record::StoredFile;
use crate::reference::localized_path;
use crate::tree::{license, path};

impl Builder<'_> {
    /// Adds the licences of everything that was placed. What cannot be brought along is a warning.
    pub(super) fn add_licenses(
        &self,
        files: &mut BTreeMap<String, (File, StoredFile)>,
        warnings: &mut Vec<Warning>,
    ) -> Result<()> {
        let graph = self.graph;
        let mut covered = BTreeSet::new();
        for (instance, root) in &self.visited {
            let directory = graph.roots[*root].directory.as_str();
            covered.extend([directory, ""].map(|one| (instance.source, one, instance.base.as_str())));
        }
        let mut last = None;
        let mut licenses = Vec::new();
        for (source, directory, base) in covered {
            let Some(repository) = &graph.sources[source].repository else {
                continue;
            };
            if last != Some((source, directory)) {
                last = Some((source, directory));
                let tree = &*graph.sources[source].tree;
                let found = license::find(tree, directory).map_err(|failure| {
                    failure
                        .context(format!("the licences of `{}`", tree.label(directory)))
                        .hint("to leave licences out, write `licenses: false` in .kustomize-localize")
                })?;
                licenses = found.files;
                warnings.extend(found.left.iter().map(|(place, why)| {
                    let location = Location { file: tree.label(place), ..Location::default() };
                    let message = format!("this licence is not brought along: {why}");
                    Warning::new(Rule::LeftLicense, location, message)
                }));
            }
            let top = self.destination(&Instance { source, base: base.to_owned() }, directory);
            for (from, bytes) in &licenses {
                let inside = path::below(from, directory).unwrap_or(from);
                let names: Vec<String> = path::components(inside).map(localized_path::segment).collect();
                let to = path::join(&top, &names.join("/"));
                if files.contains_key(&to) {
                    // It is in use.
                    continue;
                }
                let file = File::plain(bytes.as_slice());
                let remote = Some(remotes::git(repository).label());
                let stored = StoredFile { remote, source: Some(from.clone()), ..entry(&to, &file) };
                files.insert(to, (file, stored));
            }
        }
        Ok(())
    }
}
