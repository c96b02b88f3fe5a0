//! Plugin configurations, which `generators`, `transformers` and `validators` list. They may be files, or roots whose
//! resources are the configurations.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::trouble::{At, WalkResult};
use super::{Edge, FileId, Graph, RootId, Walker};
use crate::kustomization::{self, Accepts, Kustomization, Reference};

impl Walker {
    /// Adds the references of a plugin configuration to the root that lists it.
    pub(super) fn read_plugin(&mut self, root: RootId, file: FileId, field: &str) -> WalkResult<()> {
        if !self.plugins.insert((root, file)) || !self.has_room() {
            return Ok(());
        }
        let plugin = self.plugin_file(file)?;
        for note in &plugin.notes {
            self.note(root, file, note.clone());
        }
        // kustomize resolves them in that root, wherever the configuration is.
        for reference in &plugin.references {
            let field = format!("{field} > {}", reference.field);
            self.add_edge(root, file, Reference { field, ..reference.clone() });
        }
        Ok(())
    }

    /// The references and notes of a plugin configuration.
    fn plugin_file(&mut self, file: FileId) -> WalkResult<Rc<Kustomization>> {
        // It is parsed once, whoever lists it, so that its problems are recorded once.
        if let Some(known) = self.read_plugins.get(&file) {
            return Ok(known.clone());
        }
        // An empty entry first, so that a file that cannot be read fails only once.
        self.read_plugins.insert(file, Rc::default());
        let plugin = kustomization::read_plugin(&self.configuration(file)?);
        let plugin = Rc::new(plugin.unwrap_or_else(|refused| self.problems(file, refused)));
        self.read_plugins.insert(file, plugin.clone());
        Ok(plugin)
    }

    /// Reads the resources of the roots that are listed as plugin configurations. Returns whether any of them was new.
    pub(super) fn read_plugin_roots(&mut self) -> bool {
        let mut is_any_new = false;
        // After a limit was exceeded this map is empty.
        for ((lister, root), field) in self.plugin_roots.clone() {
            for file in self.configurations(root).1 {
                if self.plugins.contains(&(lister, file)) {
                    continue;
                }
                is_any_new = true;
                if let Err(stop) = self.read_plugin(lister, file, &field) {
                    self.trouble(*stop, At::File(file));
                }
            }
        }
        is_any_new
    }

    /// A root and all roots that it references as resources, and the files that have their resources.
    fn configurations(&self, root: RootId) -> (BTreeSet<RootId>, Vec<FileId>) {
        let graph = &self.graph;
        // A file that a configuration references is not a configuration itself.
        let roots = graph.reach([root], |id, edge| graph.is_of_kustomization(id.root, edge));
        let edges = roots.iter().flat_map(|root| graph.roots[*root].edges.iter().map(|edge| (*root, edge)));
        let edges = edges.filter(|(root, edge)| graph.is_of_kustomization(*root, edge));
        let listed = edges.filter(|(_, edge)| edge.reference.accepts == Accepts::Either);
        let files = listed.filter_map(|(_, edge)| edge.file()).collect();
        (roots, files)
    }

    /// Records a problem for each root of plugin configurations that changes the configurations in its files.
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

impl Graph {
    /// Whether the kustomization itself has the reference, in a field that does not list plugins.
    fn is_of_kustomization(&self, root: RootId, edge: &Edge) -> bool {
        edge.from == self.roots[root].file && edge.reference.accepts != Accepts::Plugin
    }
}
