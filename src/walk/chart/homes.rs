//! Where kustomizations and plugin configurations say that charts are.

use std::collections::HashMap;

use crate::kustomization::{NoteKind, Spot};
use crate::walk::{FileId, Graph, Noted, RootId};

/// The default of `chartHome`.
pub const CHART_HOME: &str = "charts";

/// A chart home as written, and where that is.
type Home<'a> = (&'a str, Option<&'a Spot>);

/// Where the charts of a [`Graph`] are looked for.
///
/// The charts of a kustomization share one place: that of `helmGlobals` where there is such a field, else the
/// last one of the old generator (`SplitHelmParameters`). A plugin configuration has its own.
pub struct ChartHomes<'a> {
    graph: &'a Graph,
    files: HashMap<(RootId, FileId), FileHomes<'a>>,
}

/// The settings of one file.
#[derive(Default)]
struct FileHomes<'a> {
    /// `helmGlobals` is there.
    has_globals: bool,
    /// The first home of `helmGlobals`.
    globals: Option<Home<'a>>,
    /// The last home of the old generator.
    generator: Option<Home<'a>>,
    /// The first home of each field.
    own: HashMap<&'a str, Home<'a>>,
}

impl Graph {
    /// Returns where charts are looked for.
    #[must_use]
    pub fn chart_homes(&self) -> ChartHomes<'_> {
        let mut files: HashMap<_, FileHomes<'_>> = HashMap::new();
        for noted in &self.notes {
            let field = noted.note.field.as_str();
            let is_global = field.starts_with("helmGlobals.");
            let home = match &noted.note.kind {
                NoteKind::ChartHome { path, spot } => Some((path.as_str(), Some(spot))),
                _ if is_global => None,
                _ => continue,
            };
            let file = files.entry((noted.root, noted.file)).or_default();
            file.has_globals |= is_global;
            if is_global {
                file.globals = file.globals.or(home);
            } else if field.starts_with("helmChartInflationGenerator[") {
                file.generator = home;
            }
            if let Some(home) = home {
                file.own.entry(field).or_insert(home);
            }
        }
        ChartHomes { graph: self, files }
    }
}

impl<'a> ChartHomes<'a> {
    /// Returns where kustomize looks for a chart, as written, and where that is written.
    #[must_use]
    pub fn find(&self, chart: &Noted) -> (&'a str, Option<&'a Spot>) {
        let field = chart.note.field.as_str();
        let of_kustomization = ["helmCharts[", "helmChartInflationGenerator["]
            .iter()
            .any(|prefix| field.starts_with(prefix));
        let file = self.files.get(&(chart.root, chart.file));
        let found = file.and_then(|file| {
            if chart.file != self.graph.roots[chart.root].file || !of_kustomization {
                return file.own.get(format!("{field}.chartHome").as_str()).copied();
            }
            if file.has_globals {
                file.globals
            } else {
                file.generator
            }
        });
        found
            .filter(|(home, _)| !home.is_empty())
            .unwrap_or((CHART_HOME, None))
    }
}
