//! `locked-reference`: something remote that the lock holds, and that a build still fetches. Off by default.
//!
//! Found all the same: an exception about a locked reference covers it, so it is not stale.

use super::{Context, remote_chart, remote_reference};
use crate::message::finding::{Finding, Rule};

pub(super) fn find(context: &Context<'_>) -> Vec<Finding> {
    let fulfilled = context.remotes.iter();
    let fulfilled = fulfilled.filter(|remote| remote.ambiguity.is_none() && remote.is_locked);
    fulfilled
        .map(|remote| {
            let message = format!("`{}` is locked, but not localized", remote.shown());
            let help = vec![remote_reference::bring_in(context, remote.root)];
            context.at_reference(Rule::LockedReference, remote.edge, message, help)
        })
        .chain(remote_chart::find_locked(context))
        .collect()
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
