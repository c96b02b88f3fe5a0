//! `locked-reference`: something remote that the lock holds, and that a build still fetches. Off by default.
//!
//! Found all the same: an exception about a locked reference covers it, so it is not stale.

use super::remote_reference::hint_vendor;
use super::{Context, remote_chart};
use crate::message::failure::Failure;
use crate::message::finding::{Finding, Rule};

/// Finds the references and charts that are locked, and that a build fetches.
pub(super) fn find(context: &Context<'_>) -> Vec<Finding> {
    let locked = context.remotes.iter().filter(|remote| remote.ambiguity.is_none() && remote.is_locked);
    let findings = locked.map(|remote| {
        let failure = Failure::new(format!("`{}` is locked, but not localized", remote.shown()));
        let failure = failure.hint(hint_vendor(context, remote.root));
        context.at_reference(Rule::LockedReference, remote.edge, failure)
    });
    findings.chain(remote_chart::chart_findings(context, Rule::LockedReference)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::Scene;
    use super::*;

    #[test]
    fn what_is_locked_is_found_where_that_is_asked_for() {
        let scene = |config: &str| {
            Scene::of("resources:\n- https://github.com/o/r?ref=v1\n")
                .git("https://github.com/o/r", Some("v1"))
                .config(config)
        };
        for (config, found) in [
            ("", &[] as &[Rule]),
            ("rules: {locked-reference: error}\n", &[Rule::LockedReference]),
            ("rules: {locked-reference: error}\nallow: [{url: github.com, refs: any, reason: r}]\n", &[]),
            ("allow: [{url: github.com, refs: any, reason: r}]\n", &[]),
            ("allow: [{url: gitlab.com, refs: any, reason: r}]\n", &[Rule::StaleAllow]),
        ] {
            let findings = scene(config).check().findings;
            let counting = findings.iter().filter(|one| one.allowed.is_none());
            let rules: Vec<Rule> = counting.map(|one| one.rule).collect();
            assert_eq!(rules, found, "{config}");
        }
    }
}
