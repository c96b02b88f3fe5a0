//! Where charts that were pulled go: to where kustomize (since 5.3) looks for a chart with a repository and a version
//! before it pulls it, so that nothing has to be edited.

use super::placing::{Builder, Instance};
use crate::graph::RootId;
use crate::kustomization::NoteKind;
use crate::message::failure::{Failure, Location, Result};
use crate::record::stored;
use crate::tree::path;

impl Builder<'_> {
    /// Places the charts of a root.
    pub(super) fn place_charts(&mut self, instance: &Instance, root: RootId) -> Result<()> {
        let graph = self.graph;
        let stays = self.stays(graph.roots[root].source);
        for (note, noted) in graph.notes.iter().enumerate().filter(|(_, noted)| noted.root == root && !stays) {
            // Charts that are there already come along.
            if let NoteKind::ChartHome { path, .. } = &noted.note.kind
                && self.is_in_scope(root, path)
            {
                self.chart_home(instance, root, path).map_err(|failure| failure.at(graph.note_location(note)))?;
            }
        }
        for chart in graph.charts_of(root) {
            let Some(archive) = &chart.archive else {
                if chart.wanted.is_none() && !chart.is_there() {
                    let home = graph.local_path(root, &chart.home).unwrap_or_default();
                    self.kept.insert(path::join(&self.destination(instance, &home), &chart.name));
                }
                continue;
            };
            let location = || -> Location { graph.note_location(chart.note) };
            let home = self.chart_home(instance, root, &chart.home).map_err(|failure| failure.at(location()))?;
            let place = match archive.chart.version.as_str() {
                "" => path::join(&home, &chart.name),
                version => path::join(&home, &format!("{}-{version}/{}", chart.name, chart.name)),
            };
            for (name, file) in &chart.files {
                self.place_file(&path::join(&place, name), *file).map_err(|failure| failure.at(location()))?;
            }
            // Among localized files it is one of them.
            if stored::home(&place).is_none() {
                self.vendored.insert(place);
            }
        }
        Ok(())
    }

    fn is_in_scope(&self, root: RootId, home: &str) -> bool {
        let scope = &self.graph.sources[self.graph.roots[root].source].scope;
        self.graph.local_path(root, home).is_some_and(|home| path::is_in(&home, scope))
    }

    /// Returns where the charts of a home go in the result, which no other text names.
    fn chart_home(&self, instance: &Instance, root: RootId, text: &str) -> Result<String> {
        let directory = self.destination(instance, &self.graph.roots[root].directory);
        let home = self.graph.local_path(root, text).map(|home| self.destination(instance, &home));
        match home {
            // In the scope, and under the same text wherever the tree lies.
            Some(home)
                if self.is_in_scope(root, text)
                    && !path::is_absolute(text)
                    && path::resolve(&directory, text).as_ref() == Some(&home) =>
            {
                Ok(home)
            }
            _ => Err(Failure::new(format!("no chart can be put into `chartHome: {text}`"))
                .hint("name a directory that stays in the scope by a relative path, in characters that are portable")),
        }
    }
}
