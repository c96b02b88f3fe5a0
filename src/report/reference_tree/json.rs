//! The graph for machines. Fields are only ever added; `version` changes if one goes away.

use crate::reference_tree::ReferenceTree;
use crate::report::json::report;

/// Returns the graph as one JSON object.
pub(crate) fn json(reference_tree: &ReferenceTree) -> String {
    report(reference_tree)
}
