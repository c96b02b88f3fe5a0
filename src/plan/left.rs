//! What a build lacks because it stays remote, or may be missing.

use std::collections::BTreeSet;

use crate::graph::{Chart, ChartRef, Graph, RootId};
use crate::message::redact;

/// Returns what some roots, with all that they reach, lack for a build here: what stays remote, local files that may be
/// missing. `None` if there is nothing of that kind, so that they can be built without the network.
pub(crate) fn among(graph: &Graph, roots: &BTreeSet<RootId>) -> Option<String> {
    for &root in roots {
        if let Some(path) = graph.missing.get(&root) {
            return Some(format!("{path} is missing (allowed)"));
        }
        // The original could pull a chart, and the result could not: it is read-only, and without a network.
        let is_left = |chart: &&Chart| chart.wanted.is_some() && !chart.is_there() && chart.archive.is_none();
        let chart =
            graph.charts_of(root).iter().find(is_left).and_then(|chart| chart.wanted.as_ref()).map(ChartRef::upstream);
        let edge = || graph.edges_of(root).find(|(edge, _)| graph.stays_remote.contains_key(edge));
        if let Some(what) =
            chart.map(|chart| chart.to_string()).or_else(|| edge().map(|(_, edge)| redact::url(&edge.reference.text)))
        {
            return Some(format!("{what} stays remote"));
        }
    }
    None
}
