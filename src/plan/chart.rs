//! Where charts that were pulled go: to where kustomize (since 5.3) looks for a chart with a repository and a version
//! before it pulls it, so that nothing has to be edited.

use super::placing::{Builder, Instance};
use crate::graph::{Place, RootId};
use crate::message::failure::{Failure, Result};
use crate::record::stored;
use crate::tree::{checkout, path};

impl Builder<'_> {
    /// Places the charts of a root.
    pub(super) fn place_charts(&mut self, instance: &Instance, root: RootId) -> Result<()> {
        let graph = self.graph;
        let source = graph.roots[root].source;
        let stays = self.stays(source);
        for chart in graph.charts_of(root) {
            let located = |failure: Failure| failure.at(graph.note_location(chart.note));
            let place = match (&chart.place, &chart.archive) {
                (Place::There(_), _) if stays => continue,
                (Place::There(path), _) => {
                    self.chart_home(instance, root, &chart.home).map_err(located)?;
                    self.destination(instance, path)
                }
                (_, Some(archive)) => {
                    let home = self.chart_home(instance, root, &chart.home).map_err(located)?;
                    let place = match archive.chart.version.as_str() {
                        "" => path::join(&home, &chart.name),
                        version => path::join(&home, &format!("{}-{version}/{}", chart.name, chart.name)),
                    };
                    // Among localized files it is one of them.
                    self.vendored.extend(stored::home(&place).is_none().then(|| place.clone()));
                    place
                }
                (_, None) => {
                    let home = graph.local_path(root, &chart.home).filter(|_| chart.wanted.is_none());
                    self.kept.extend(home.map(|home| path::join(&self.destination(instance, &home), &chart.name)));
                    continue;
                }
            };
            // Attributes of its own would decide over those beside it.
            let is_own = chart.archive.is_none() && graph.sources[source].repository.is_none();
            let is_placed = |name: &&String| is_own || path::name(name) != checkout::FILE_NAME;
            for (name, file) in chart.files.iter().filter(|(name, _)| is_placed(name)) {
                self.place_file(&path::join(&place, name), *file).map_err(located)?;
            }
        }
        Ok(())
    }

    /// Returns where the charts of a home go in the result, which no other text names.
    fn chart_home(&self, instance: &Instance, root: RootId, text: &str) -> Result<String> {
        let directory = self.destination(instance, &self.graph.roots[root].directory);
        let scope = &self.graph.sources[self.graph.roots[root].source].scope;
        let home =
            self.graph.local_path(root, text).filter(|home| path::is_in(home, scope) && !path::is_absolute(text));
        // Under the same text wherever the tree lies.
        let is_same = |home: &String| path::resolve(&directory, text).as_ref() == Some(home);
        match home.map(|home| self.destination(instance, &home)).filter(is_same) {
            Some(home) => Ok(home),
            None => Err(Failure::new(format!("cannot put a chart into `chartHome: {text}`"))
                .hint("write a relative path in the scope, in portable characters")),
        }
    }
}
