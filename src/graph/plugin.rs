//! Plugin configurations: what `generators`, `transformers` and `validators` list. They may be files, or
//! roots whose resources they are.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::trouble::{At, WalkResult};
use super::{Edge, FileId, RootId, Target, Walker};
use crate::kustomization::{self, Accepts, Kustomization, Reference};

impl Walker {
    /// Adds the references of a plugin configuration to the root that lists it: kustomize resolves
    /// them there, wherever the configuration itself lies.
    pub(super) fn read_plugin(&mut self, root: RootId, file: FileId, field: &str) -> WalkResult<()> {
        if !self.plugins.insert((root, file)) || !self.has_room() {
            return Ok(());
        }
        let plugin = self.plugin_file(file)?;
        for note in &plugin.notes {
            self.note(root, file, note.clone());
        }
        for reference in &plugin.references {
            let field = format!("{field} > {}", reference.field);
            self.add_edge(root, file, Reference { field, ..reference.clone() });
        }
        Ok(())
    }

    /// Returns what a plugin configuration says, which is read once, whoever lists it. What is wrong with it is noted.
    fn plugin_file(&mut self, file: FileId) -> WalkResult<Rc<Kustomization>> {
        if let Some(known) = self.read_plugins.get(&file) {
            return Ok(known.clone());
        }
        // A file that cannot be read fails once, too.
        self.read_plugins.insert(file, Rc::default());
        let plugin = kustomization::read_plugin(&self.configuration(file)?);
        let plugin = Rc::new(plugin.unwrap_or_else(|refused| self.problems(file, refused)));
        self.read_plugins.insert(file, plugin.clone());
        Ok(plugin)
    }

    /// Reads the resources of roots that are listed as plugin configurations, as far as they are known.
    /// Returns whether there were any that had not been read.
    pub(super) fn read_plugin_roots(&mut self) -> bool {
        let mut any = false;
        // None are left where there is no room.
        for ((lister, root), field) in self.plugin_roots.clone() {
            for file in self.configurations(root).1 {
                if self.plugins.contains(&(lister, file)) {
                    continue;
                }
                any = true;
                if let Err(stop) = self.read_plugin(lister, file, &field) {
                    self.trouble(*stop, At::File(file));
                }
            }
        }
        any
    }

    /// Returns a root and those that it names, and the files that hold their resources.
    fn configurations(&self, root: RootId) -> (BTreeSet<RootId>, Vec<FileId>) {
        let graph = &self.graph;
        // A file that a configuration names is not one itself.
        let is_configured = |root: RootId, edge: &Edge| {
            edge.from == graph.roots[root].file && edge.reference.accepts != Accepts::Plugin
        };
        let roots = graph.reach([root], |id, edge| is_configured(id.root, edge));
        let edges = roots.iter().flat_map(|root| graph.roots[*root].edges.iter().map(|edge| (*root, edge)));
        let files = edges.filter_map(|(root, edge)| match edge.target {
            Target::File(file) if edge.reference.accepts == Accepts::Either && is_configured(root, edge) => Some(file),
            _ => None,
        });
        let files = files.collect();
        (roots, files)
    }

    /// Notes the roots of plugin configurations that are not simply those in their files.
    pub(super) fn refuse_reshaped_plugins(&mut self) {
        let listed = self.plugin_roots.keys().map(|(_, top)| self.configurations(*top).0);
        let listed: BTreeSet<RootId> = listed.flatten().collect();
        for root in listed {
            let file = self.graph.roots[root].file;
            match self.graph.read(file).map(|bytes| kustomization::reshaping(&bytes)) {
                Ok(Some(problem)) => drop(self.problems(file, problem.into())),
                Ok(None) => {}
                Err(failure) => self.trouble(*super::Trouble::of(super::TroubleKind::Failed, failure), At::File(file)),
            }
        }
    }
}
