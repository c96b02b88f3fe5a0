//! `deployed-remote`: a target deploys a branch that is not localized, and its build fetches.
//!
//! Engines do not read the lock, so they fetch locked references too. References that are not locked are findings of
//! other rules.

use std::collections::HashMap;

use super::{Context, remote_chart};
use crate::graph::RootId;
use crate::message::failure::Failure;
use crate::message::finding::{Common, Finding, Rule};

/// Finds the targets of this repository whose builds fetch locked references, because their branch is not localized.
pub(super) fn find(context: &Context<'_>) -> Vec<Finding> {
    let mut fetched: HashMap<RootId, usize> = HashMap::new();
    let references = context.remotes.iter().filter(|remote| remote.locked.is_some()).map(|remote| remote.root);
    for root in references.chain(remote_chart::locked_charts(context).map(|chart| chart.root)) {
        *fetched.entry(root).or_default() += 1;
    }
    // Most trees are done here. The rest looks at each root of each target.
    if fetched.is_empty() {
        return Vec::new();
    }
    // A target of a localized branch is the goal of this rule, not a finding.
    let deployed = context.deployed.local.iter();
    let deployed = deployed.filter(|local| !local.directory.revision.is_localized());
    let findings = deployed.filter_map(|local| {
        let count: usize = local.roots.iter().filter_map(|root| fetched.get(root)).sum();
        if count == 0 {
            return None;
        }
        let (by, path, revision) = (local.target.by(), local.directory.shown(), local.directory.revision.shown());
        let references = format!("{count} remote reference{}", if count == 1 { "" } else { "s" });
        let message =
            format!("{by} deploys {path} from {revision}, which is not localized: its build fetches {references}");
        let hint = format!("deploy a localized branch: git kustomize-localize explain {}", Rule::DeployedRemote);
        let common = Some(Common {
            all: "are deployed from what is not localized: their builds fetch remote references",
            each: format!("{by}: {path} from {revision}, {references}"),
        });
        let failure = Failure::new(message).hint(hint);
        Some(Finding { common, ..context.at_target(Rule::DeployedRemote, local.target, failure) })
    });
    findings.collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Scene, argo, flux, source};
    use super::*;

    const REMOTE: &str = "'https://github.com/acme/bases//base?ref=v1'";

    fn scene(object: &str, resource: &str) -> Scene {
        Scene::default()
            .file("root.yaml", object)
            .file("web/kustomization.yaml", &format!("resources: [{resource}]\n"))
            .file("web/x.yaml", "")
            .git("https://github.com/acme/bases", Some("v1"))
    }

    #[test]
    fn what_is_deployed_at_a_branch_that_is_not_localized_is_found() {
        for (revision, resource, expected) in [
            ("main", REMOTE, 1),
            ("HEAD", REMOTE, 1),
            ("localized/main", REMOTE, 0),
            // Nobody knows what is there.
            ("v1.0.0", REMOTE, 0),
            ("main", "x.yaml", 0),
        ] {
            let object = argo(&format!("path: web, targetRevision: {revision}"));
            let findings = scene(&object, resource).find(Rule::DeployedRemote);
            assert_eq!(findings.len(), expected, "{revision} {resource}");
        }
        // An unlocked reference has a finding already, and one with an exception needs none.
        let object = argo("path: web, targetRevision: main");
        let other = "'https://github.com/acme/other?ref=v1'";
        assert_eq!(scene(&object, other).find(Rule::DeployedRemote).len(), 0);
    }

    #[test]
    fn it_counts_what_the_build_reaches() {
        let findings = scene(&source(""), REMOTE)
            .file("apps.yaml", &flux("./apps"))
            .file("apps/kustomization.yaml", &format!("resources: [../web, {}]\n", REMOTE.replace("base?", "dir?")))
            .find(Rule::DeployedRemote);
        let message = &findings[0].message;
        assert!(
            message.ends_with(
                "deploys `./apps` from `main`, which is not localized: its build fetches 2 remote references"
            ),
            "{message}"
        );
    }
}
