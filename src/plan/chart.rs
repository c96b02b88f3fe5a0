//! Lays out charts that were pulled. They go to the directory in which kustomize (since 5.3) looks for a chart with a
//! repository and a version before it pulls the chart, so that nothing has to be edited.

use super::placing::{Instance, LayoutBuilder};
use crate::graph::{ChartLookup, RootId};
use crate::message::failure::{Failure, Result};
use crate::record::stored;
use crate::tree::{checkout, path};

impl LayoutBuilder<'_> {
    /// Lays out the charts of a root. Fails if a chart cannot be put where the unchanged `chartHome` leads in the
    /// result.
    pub(super) fn lay_out_charts(&mut self, instance: &Instance, root: RootId) -> Result<()> {
        let graph = self.graph;
        let source = graph.roots[root].source;
        let stays = self.stays(source);
        for chart in graph.charts_of(root) {
            let at_chart = |failure: Failure| failure.at(graph.note_location(chart.note));
            // kustomize looks for a chart in exactly one directory, so it must be laid out there whatever its origin.
            let directory = match (&chart.lookup, &chart.archive) {
                // In place, a chart of the user is there already.
                (ChartLookup::There(_), _) if stays => continue,
                (ChartLookup::There(path), _) => {
                    // Asked only for its failure: a chart of the tree keeps its path.
                    self.chart_home(instance, root, &chart.home).map_err(at_chart)?;
                    self.destination(instance, path)
                }
                (_, Some(archive)) => {
                    let home = self.chart_home(instance, root, &chart.home).map_err(at_chart)?;
                    let directory = path::join(&home, &archive.chart.directory());
                    // A chart of a fetched root is in a directory `localized-files`, so it belongs to the lock, not to
                    // the user.
                    self.vendored.extend(stored::localized_dir(&directory).is_none().then(|| directory.clone()));
                    directory
                }
                // The chart stays remote, or it has no repository and may be missing. The walk that proves the result
                // must allow the second to be missing, too.
                (_, None) => {
                    let home = graph.local_path(root, &chart.home).filter(|_| chart.wanted.is_none());
                    self.allowed_missing
                        .extend(home.map(|home| path::join(&self.destination(instance, &home), &chart.name)));
                    continue;
                }
            };
            // With a `.gitattributes` from upstream, git could change the bytes of the files beside it.
            let is_user_chart = chart.archive.is_none() && graph.sources[source].repository.is_none();
            let files = chart.files.iter();
            for (name, file) in files.filter(|(name, _)| is_user_chart || path::name(name) != checkout::FILE_NAME) {
                self.lay_out_file(&path::join(&directory, name), *file).map_err(at_chart)?;
            }
        }
        Ok(())
    }

    /// The directory for the charts of a `chartHome` in the result. Fails if the text of `chartHome` would have to
    /// change.
    fn chart_home(&self, instance: &Instance, root: RootId, text: &str) -> Result<String> {
        let directory = self.destination(instance, &self.graph.roots[root].directory);
        let scope = &self.graph.sources[self.graph.roots[root].source].scope;
        let home = self.graph.local_path(root, text);
        let home = home.filter(|home| path::is_in(home, scope) && !path::is_absolute(text));
        let new_home = home.map(|home| self.destination(instance, &home));
        // The text is not edited, so it must lead to the new directory from the new root, too.
        match new_home.filter(|new_home| path::resolve(&directory, text).as_ref() == Some(new_home)) {
            Some(new_home) => Ok(new_home),
            None => Err(Failure::new(format!("cannot put a chart into `chartHome: {text}`"))
                .hint("write a relative path in the scope, in portable characters")),
        }
    }
}
