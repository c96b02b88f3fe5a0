//! `remote-reference`: a remote file or root that is neither localized nor locked.

use super::Context;
use crate::finding::{Finding, Rule};
use crate::redact;
use crate::walk::Target;

pub(super) fn find(context: &Context<'_>) -> Vec<Finding> {
    context
        .edges()
        .filter(|(_, edge)| edge.target == Target::Remote)
        .map(|(_, edge)| {
            context.at_reference(
                Rule::RemoteReference,
                edge,
                format!(
                    "`{}` is neither localized nor locked",
                    redact::url(&edge.reference.text)
                ),
                vec![],
            )
        })
        .collect()
}
