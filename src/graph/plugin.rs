//! Plugin configurations, which `generators`, `transformers` and `validators` list. They may be files, or roots whose
//! resources are the configurations.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::{At, Edge, FileId, Graph, RootId, Trouble, TroubleKind, Walker};
use crate::kustomization::{self, Accepts, Kustomization, Reference};

impl Walker {
    /// Reads a plugin configuration, and adds its references to the root that lists it in `field`: kustomize loads them
    /// for the build of that root.
    pub(super) fn read_plugin(&mut self, root: RootId, file: FileId, field: &str) {
        // A root may list a configuration twice.
        if !self.plugins.insert((root, file)) || !self.is_within_limits() {
            return;
        }
        let plugin = self.plugin_file(file);
        for note in &plugin.notes {
            self.record_note(root, file, note.clone());
        }
        // kustomize resolves them in that root, wherever the configuration is.
        for reference in &plugin.references {
            let field = format!("{field} > {}", reference.field);
            self.add_edge(root, file, Reference { field, ..reference.clone() });
        }
    }

    /// The references and notes of a plugin configuration, which is read and parsed only once, however many roots list
    /// it: otherwise its problems would be recorded more than once. Empty if it cannot be read.
    fn plugin_file(&mut self, file: FileId) -> Rc<Kustomization> {
        if let Some(known) = self.read_plugins.get(&file) {
            return known.clone();
        }
        let plugin = self.read_configuration(file).map_or_else(Kustomization::default, |bytes| {
            kustomization::read_plugin(&bytes).unwrap_or_else(|refused| self.record_problems(file, refused))
        });
        let plugin = Rc::new(plugin);
        self.read_plugins.insert(file, plugin.clone());
        plugin
    }

    /// Reads the plugin configurations in the roots that are listed instead of files: the resources of these roots.
    /// Returns whether any of them was new, so that the walk has references to follow again.
    pub(super) fn read_plugin_roots(&mut self) -> bool {
        let mut is_any_new = false;
        // A copy, because `read_plugin` empties the map if it exceeds a limit.
        for ((lister, root), field) in self.plugin_roots.clone() {
            for file in self.resource_files(&self.resource_roots(root)) {
                if self.plugins.contains(&(lister, file)) {
                    continue;
                }
                is_any_new = true;
                self.read_plugin(lister, file, &field);
            }
        }
        is_any_new
    }

    /// A root and all roots that it reaches by its own kustomization, without lists of plugins.
    fn resource_roots(&self, root: RootId) -> BTreeSet<RootId> {
        self.graph.reach([root], |id, edge| self.graph.is_of_kustomization(id.root, edge))
    }

    /// The files that `roots` list as resources.
    fn resource_files(&self, roots: &BTreeSet<RootId>) -> Vec<FileId> {
        let edges = roots.iter().flat_map(|root| self.graph.edges_of(*root));
        // A file that a configuration references is not a configuration itself.
        let edges = edges.filter(|(id, edge)| self.graph.is_of_kustomization(id.root, edge));
        let listed = edges.filter(|(_, edge)| edge.reference.accepts == Accepts::Either);
        listed.filter_map(|(_, edge)| edge.file()).collect()
    }

    /// Records a problem for each root that is listed as plugin configurations and changes its resources, for example
    /// by a patch: the configurations that kustomize runs are then not those in the files, which this program has read.
    pub(super) fn refuse_reshaped_plugins(&mut self) {
        let listed: BTreeSet<RootId> =
            self.plugin_roots.keys().flat_map(|(_, root)| self.resource_roots(*root)).collect();
        for root in listed {
            let file = self.graph.roots[root].file;
            match self.graph.read(file).map(|bytes| kustomization::reshaping(&bytes)) {
                Ok(Some(problem)) => drop(self.record_problems(file, problem.into())),
                Ok(None) => {}
                Err(failure) => self.record_trouble(*Trouble::of(TroubleKind::Failed, failure), At::File(file)),
            }
        }
    }
}

impl Graph {
    /// Whether the kustomization of the root itself has the reference, in a field that does not list plugins.
    fn is_of_kustomization(&self, root: RootId, edge: &Edge) -> bool {
        edge.from == self.roots[root].file && edge.reference.accepts != Accepts::Plugin
    }
}
