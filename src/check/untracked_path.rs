//! `untracked-path`: a path whose files the repository does not hold, on purpose: git ignores them, or they lie in a
//! submodule.
//!
//! A warning: the build works wherever they are.

use super::Context;
use crate::graph::TroubleKind;
use crate::message::finding::{Finding, Rule};
use crate::tree::absence::Absence;

pub(super) fn find(context: &Context<'_>) -> Vec<Finding> {
    context.troubles(Rule::UntrackedPath, |kind| match kind {
        TroubleKind::Submodule { .. } => true,
        TroubleKind::Missing { absence, .. } | TroubleKind::NoKustomization { absence, .. } => {
            matches!(absence, Absence::Ignored(..))
        }
        _ => false,
    })
}
