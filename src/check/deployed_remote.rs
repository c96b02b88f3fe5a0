//! `deployed-remote`: what is deployed is not the localized branch, and its build fetches.
//!
//! The lock is read by this program alone. Only what it does not hold is a finding of other rules.

use std::collections::HashMap;

use super::{Context, remote_chart};
use crate::graph::RootId;
use crate::message::finding::{Common, Finding, Rule};

pub(super) fn find(context: &Context<'_>) -> Vec<Finding> {
    let mut fetched: HashMap<RootId, usize> = HashMap::new();
    let references = context.remotes.iter().filter(|one| one.locked.is_some()).map(|one| one.root);
    for root in references.chain(remote_chart::locked(context).map(|chart| chart.root)) {
        *fetched.entry(root).or_default() += 1;
    }
    if fetched.is_empty() {
        return Vec::new();
    }
    let deployed = context.deployed.here.iter();
    let deployed = deployed.filter(|one| !one.here.revision.is_localized());
    let findings = deployed.filter_map(|one| {
        let count: usize = one.roots.iter().filter_map(|root| fetched.get(root)).sum();
        if count == 0 {
            return None;
        }
        let (by, place, revision) = (one.target.by(), one.here.shown(), one.here.revision.shown());
        let references = format!("{count} remote reference{}", if count == 1 { "" } else { "s" });
        let message =
            format!("{by} deploys {place} from {revision}, which is not localized: its build fetches {references}");
        let help = format!("deploy a localized branch: git kustomize-localize explain {}", Rule::DeployedRemote);
        let common = Common {
            all: "are deployed from what is not localized: their builds fetch remote references",
            each: format!("{by}: {place} from {revision}, {references}"),
        };
        let found = context.at_target(Rule::DeployedRemote, one.target, message, vec![help]);
        Some(Finding { common: Some(common), ..found })
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
        // What is not locked is a finding already, what an exception covers is none.
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
