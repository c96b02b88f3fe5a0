//! `unknown-target`: what an object deploys is said by a template, a variable or a build, so it was not looked at.

use super::Context;
use crate::message::finding::{Finding, Rule};

pub(super) fn find(context: &Context<'_>) -> Vec<Finding> {
    let unknown = context.deployed.unknown();
    let findings = unknown.map(|(target, why)| {
        let message = format!("cannot tell what {} deploys: {why}", target.by());
        let help = "write it out, or say why it may be unknown: # kustomize-localize: allow[unknown-target] REASON";
        context.at_place(Rule::UnknownTarget, &target.object.file, target.spot, message, vec![help.to_owned()])
    });
    findings.collect()
}
