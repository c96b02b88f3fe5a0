//! Plugin configurations: what `generators`, `transformers` and `validators` list. They may be files, or
//! roots whose resources they are.

use std::collections::HashSet;

use super::trouble::Step;
use super::{Edge, FileId, RootId, Target, Walker, Wanted, Warning};
use crate::kustomization::{self, Accepts};
use crate::redact;

/// A root that is listed for the plugin configurations in it.
pub(super) struct PluginRoot {
    /// The root that lists it.
    pub(super) lister: RootId,
    /// The root that is listed.
    pub(super) root: RootId,
    /// The field that lists it.
    pub(super) field: String,
}

impl Walker<'_> {
    /// Leaves a repository of plugin configurations where it is: it is not fetched, as it stays what
    /// it is.
    pub(super) fn keep_plugin_root(
        &mut self,
        root: RootId,
        edge: usize,
        wanted: &Wanted,
    ) -> Step<Target> {
        super::remote::refuse_unsafe(wanted)?;
        Ok(self.keep_plugin(root, edge))
    }

    /// Adds the references of a plugin configuration to the root that lists it: kustomize resolves
    /// them there, wherever the configuration itself lies.
    pub(super) fn read_plugin(&mut self, root: RootId, file: FileId, field: &str) -> Step<()> {
        if !self.plugins.insert((root, file)) {
            return Ok(());
        }
        let bytes = self.bytes(file)?;
        match kustomization::read_plugin(&bytes) {
            Ok(plugin) => {
                for note in plugin.notes {
                    self.note(root, file, note);
                }
                for mut reference in plugin.references {
                    reference.field = format!("{field} > {}", reference.field);
                    self.graph.roots[root].edges.push(Edge {
                        from: file,
                        reference: reference.into(),
                        target: Target::Broken,
                    });
                }
            }
            Err(problems) => self.problems(file, problems),
        }
        Ok(())
    }

    pub(super) fn keep_plugin(&mut self, root: RootId, edge: usize) -> Target {
        let edge = &self.graph.roots[root].edges[edge];
        let location = self.graph.location(edge.from, &edge.reference);
        self.graph.warnings.push(Warning {
            id: "plugin-root",
            message: format!(
                "`{}` is a git URL of plugin configurations: left as it is, so the result may not build without it",
                redact::url(&edge.reference.text)
            ),
            location,
        });
        Target::Kept
    }

    /// Reads the resources of roots that are listed as plugin configurations, as far as they are known.
    /// Says whether there were any that had not been read.
    pub(super) fn read_plugin_roots(&mut self) -> bool {
        let mut any = false;
        for index in 0..self.plugin_roots.len() {
            let PluginRoot {
                lister,
                root,
                field,
            } = &self.plugin_roots[index];
            let (lister, field) = (*lister, field.clone());
            for file in self.resources(*root) {
                if self.plugins.contains(&(lister, file)) {
                    continue;
                }
                any = true;
                let added = self.graph.roots[lister].edges.len();
                if let Err(stop) = self.read_plugin(lister, file, &field) {
                    self.trouble(stop, None, Some(file));
                }
                for edge in added..self.graph.roots[lister].edges.len() {
                    self.follow(lister, edge);
                }
            }
        }
        any
    }

    /// Returns the files that hold the resources of a root, those of the roots that it names included.
    fn resources(&self, root: RootId) -> Vec<FileId> {
        let mut files = Vec::new();
        let mut seen = HashSet::from([root]);
        let mut todo = vec![root];
        while let Some(root) = todo.pop() {
            let edges = self.graph.roots[root].edges.iter();
            for edge in edges.filter(|edge| edge.reference.accepts != Accepts::Plugin) {
                match edge.target {
                    Target::File(file) if edge.reference.accepts == Accepts::Either => {
                        files.push(file);
                    }
                    Target::Root { id, .. } if seen.insert(id) => todo.push(id),
                    _ => {}
                }
            }
        }
        files
    }
}
