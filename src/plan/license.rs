//! Adds the licenses of fetched repositories: those at the top of each repository, and beside each root.

use std::collections::{BTreeMap, BTreeSet};

use super::files::ResultFile;
use super::placing::{Instance, LayoutBuilder};
use super::result::entry;
use crate::graph::SourceId;
use crate::message::failure::{Failure, Location, Result};
use crate::message::finding::{Finding, Rule};
use crate::record::StoredFile;
use crate::reference::{Upstream, localized_path};
use crate::tree::{license, path};

impl LayoutBuilder<'_> {
    /// Adds the licenses of everything that was laid out. A license that cannot be added is a finding.
    pub(super) fn add_licenses(
        &self,
        files: &mut BTreeMap<String, (ResultFile, StoredFile)>,
        findings: &mut Vec<Finding>,
    ) -> Result<()> {
        let graph = self.graph;
        // The license of a directory is in it or at the top of its repository.
        let mut covered: BTreeMap<(SourceId, &str), BTreeSet<&str>> = BTreeMap::new();
        for (instance, root) in &self.visited {
            for directory in [graph.roots[*root].directory.as_str(), ""] {
                covered.entry((instance.source, directory)).or_default().insert(&instance.base);
            }
        }
        // The user's own licenses are not copied: the result stays in the user's repository.
        for ((source, directory), bases) in covered {
            let Some(repository) = &graph.sources[source].repository else { continue };
            let tree = &*graph.sources[source].tree;
            let licenses = license::find(tree, directory).map_err(|failure| {
                failure
                    .context(format!("the licenses of `{}`", tree.label(directory)))
                    .hint("to omit licenses, write `licenses: false` in .kustomize-localize")
            })?;
            findings.extend(licenses.skipped.iter().map(|(path, why)| {
                let location = Location { file: tree.label(path), ..Location::default() };
                let failure = Failure::new(format!("this license is not vendored: {why}"));
                Finding::at(Rule::LeftLicense, location, failure)
            }));
            for (base, (from, bytes)) in
                bases.iter().flat_map(|base| licenses.files.iter().map(move |file| (base, file)))
            {
                let top = self.destination(&Instance { source, base: (*base).to_owned() }, directory);
                // The path is spelled like those of the files that it covers, so that it is beside them.
                let inside = path::below(from, directory).unwrap_or(from);
                let names: Vec<String> = path::components(inside).map(localized_path::segment).collect();
                let to = path::join(&top, &names.join("/"));
                if files.contains_key(&to) {
                    // The result has the file already, for example because a kustomization lists it.
                    continue;
                }
                let file = ResultFile::plain(bytes.as_slice());
                let remote = Some(Upstream::git(&repository.version));
                let stored = StoredFile { remote, source: Some(from.clone()), ..entry(&to, &file) };
                files.insert(to, (file, stored));
            }
        }
        Ok(())
    }
}
