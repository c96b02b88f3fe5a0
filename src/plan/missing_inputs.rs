//! Finds the content that a build lacks because it stays remote or may be missing.

use std::collections::BTreeSet;

use crate::graph::{Chart, ChartRef, Graph, RootId};
use crate::message::redact;

/// The first input that the builds of `roots` lack here, as a reason why they are skipped: something that stays remote,
/// or a local file that may be missing. `None` if they can be built without the network.
pub(crate) fn first_missing(graph: &Graph, roots: &BTreeSet<RootId>) -> Option<String> {
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

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::graph::testing::tree;
    use crate::graph::{Survey, WalkPolicy};

    const CHART: &str = "helmCharts: [{name: web, repo: 'https://h/charts', version: 1.2.3}]\n";

    /// What the builds of all roots lack, if every local file may be missing.
    fn lacking(files: &[(&str, &str)]) -> Option<String> {
        let policy = WalkPolicy { allows_missing: Some(&|_| true), ..WalkPolicy::default() };
        let explored = Survey::of(Rc::new(tree(files))).explore(&[String::new()], None, &policy);
        first_missing(&explored.graph, &explored.graph.root_ids().collect())
    }

    #[test]
    fn a_build_lacks_a_chart_that_is_nowhere() {
        let lacks = lacking(&[("kustomization.yaml", CHART)]);
        assert_eq!(lacks.as_deref(), Some("https://h/charts#web@1.2.3 stays remote"));
    }

    #[test]
    fn a_build_has_a_chart_that_is_in_the_tree() {
        let files = [("kustomization.yaml", CHART), ("charts/web-1.2.3/web/Chart.yaml", "name: web\nversion: 1.2.3\n")];
        assert_eq!(lacking(&files), None);
    }

    #[test]
    fn a_build_lacks_a_file_that_may_be_missing() {
        let lacks = lacking(&[("kustomization.yaml", "resources: [secret.yaml]\n")]);
        assert_eq!(lacks.as_deref(), Some("secret.yaml is missing (allowed)"));
    }
}
