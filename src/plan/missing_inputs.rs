//! Finds the content that a build lacks because it stays remote or may be missing.

use std::collections::BTreeSet;

use crate::graph::{Chart, ChartRef, Graph, RootId};
use crate::message::redact;

/// The first thing that the builds of `roots` lack here: something that stays remote, or a local file that may be
/// missing. `None` if they can be built without the network.
pub(crate) fn among(graph: &Graph, roots: &BTreeSet<RootId>) -> Option<String> {
    for &root in roots {
        if let Some(path) = graph.missing.get(&root) {
            return Some(format!("{path} is missing (allowed)"));
        }
        // The original could pull a chart that stays remote, but the result could not: it is read-only, and has no
        // network.
        let mut charts = graph.charts_of(root).iter();
        let chart = charts
            .find(|chart| chart.wanted.is_some() && !chart.is_there() && chart.archive.is_none())
            .and_then(|chart: &Chart| chart.wanted.as_ref())
            .map(ChartRef::upstream);
        let edge = graph.edges_of(root).find(|(edge, _)| graph.stays_remote.contains_key(edge));
        let remote =
            chart.map(|chart| chart.to_string()).or_else(|| edge.map(|(_, edge)| redact::url(&edge.reference.text)));
        if let Some(remote) = remote {
            return Some(format!("{remote} stays remote"));
        }
    }
    None
}
