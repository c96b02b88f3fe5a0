//! Where kustomizations and plugin configurations say that charts are.

use std::collections::HashMap;

use crate::graph::{FileId, Graph, Noted, RootId};
use crate::kustomization::{NoteKind, Spot};

/// The default of `chartHome`.
pub(crate) const CHART_HOME: &str = "charts";

/// A chart home as written, and where that is.
type Home<'a> = (&'a str, Option<&'a Spot>);

/// Where the charts of a [`Graph`] are looked for. Those of a kustomization share one place: that of `helmGlobals`, or
/// the last one of the old generator (`SplitHelmParameters`; both is refused). A plugin configuration has its own.
pub(crate) struct ChartHomes<'a> {
    graph: &'a Graph,
    /// By the field of a plugin; the empty field is the kustomization.
    homes: HashMap<(RootId, FileId, &'a str), Home<'a>>,
}

impl Graph {
    /// Returns where charts are looked for.
    pub(crate) fn chart_homes(&self) -> ChartHomes<'_> {
        let homes = self.notes.iter().filter_map(|noted| {
            let NoteKind::ChartHome { path, spot } = &noted.note.kind else {
                return None;
            };
            let field = noted.note.field.trim_end_matches(".chartHome");
            let place = self.chart_field(noted.root, noted.file, field);
            Some((place, (path.as_str(), Some(spot))))
        });
        ChartHomes { graph: self, homes: homes.collect() }
    }

    /// Returns what a field shares its home with.
    fn chart_field<'f>(&self, root: RootId, file: FileId, field: &'f str) -> (RootId, FileId, &'f str) {
        let shared = ["helmGlobals", "helmCharts[", "helmChartInflationGenerator["];
        let is_shared = shared.iter().any(|prefix| field.starts_with(prefix));
        if file == self.roots[root].file && is_shared { (root, file, "") } else { (root, file, field) }
    }
}

impl<'a> ChartHomes<'a> {
    /// Returns where kustomize looks for a chart, as written, and where that is written.
    pub(crate) fn find(&self, chart: &Noted) -> (&'a str, Option<&'a Spot>) {
        let place = self.graph.chart_field(chart.root, chart.file, &chart.note.field);
        let home = self.homes.get(&place);
        home.copied().unwrap_or((CHART_HOME, None))
    }
}
