//! `new-exception`: an exception that a change adds for what else it adds.
//!
//! A gate must not trust the change that it judges, and a reviewer should see an exception as such. What the base has
//! already needs none.

use std::collections::{BTreeMap, HashSet};

use super::RemoteReferences;
use crate::config::{Config, FILE_NAME};
use crate::message::finding::{Allowed, Finding, Rule, Severity, Subject};
use crate::record::Lock;
use crate::tree::LOCK_COMMAND;

/// Returns one finding for each reference that `before`, the lock of the base, localizes and that an exception leaves remote
/// from now on.
pub(super) fn no_longer_localized(findings: &[Finding], config: &Config, before: &Lock) -> Vec<Finding> {
    let Some(severity) = config.level(Rule::NewException, Rule::NewException.default_severity()) else {
        return Vec::new();
    };
    let held: Vec<Subject> = before.upstreams().map(|upstream| upstream.subject()).collect();
    let found = findings.iter().filter_map(|one| {
        let allowed = one.allowed.as_ref().filter(|_| RemoteReferences::is_one(one))?;
        held.contains(&one.subject).then(|| Finding {
            rule: Rule::NewException,
            severity,
            message: format!("`{}` was localized, and is now remote: {} allows it", one.reference, allowed.by()),
            help: vec![format!(
                "make the exception exact, or remove it, and lock again: {LOCK_COMMAND}; or set `rules: {{{}: warning}}` in a separate change, and merge that first",
                Rule::NewException
            )],
            allowed: None,
            ..one.clone()
        })
    });
    found.collect()
}

/// Accepts what is added beside the first lock, by `init` or by hand: exceptions for what lies behind a reference that the
/// base, whose findings `old` are, fetches on the same line already. Only a lock tells that it is there.
pub(super) fn accept_first(findings: &mut [Finding], old: &[Finding]) {
    let place = |one: &Finding| (one.path.clone(), one.line_text.clone());
    let fetched: HashSet<_> = old.iter().filter(|one| RemoteReferences::is_one(one)).map(place).collect();
    for finding in findings.iter_mut().filter(|one| RemoteReferences::is_one(one) && fetched.contains(&place(one))) {
        if let Some(allowed) = finding.allowed.as_mut() {
            allowed.is_new = false;
        }
    }
}

/// Returns one finding for each exception that only the change has, unless the rule is off.
pub(super) fn find(findings: &[Finding], config: &Config) -> Vec<Finding> {
    let Some(severity) = config.level(Rule::NewException, Rule::NewException.default_severity()) else {
        return Vec::new();
    };
    let mut covered: BTreeMap<_, Vec<(&Allowed, &Finding)>> = BTreeMap::new();
    for one in findings {
        if let Some(allowed) = one.allowed.as_ref().filter(|one| one.is_new) {
            let place = (&allowed.path, allowed.span);
            covered.entry(place).or_default().push((allowed, one));
        }
    }
    covered.into_values().map(|all| new(&all, severity)).collect()
}

fn new(covered: &[(&Allowed, &Finding)], severity: Severity) -> Finding {
    let (allowed, first) = covered[0];
    // It matters no more than what it covers.
    let worst = covered.iter().map(|(_, finding)| finding.severity).min();
    let line = first.span.map_or(String::new(), |span| format!(":{}", span.start.line));
    let place = format!("{}{line}", first.path);
    let what = match &*first.reference {
        "" => format!("{} at {place}", first.rule),
        reference => format!("{} at {place}: `{reference}`", first.rule),
    };
    let more = match covered.len() {
        1 => String::new(),
        count => format!(", and {} more", count - 1),
    };
    let message = format!("the change itself adds this exception for {what}{more}");
    let help = vec![format!(
        "add it to `allow` in {FILE_NAME}, in a separate change, and merge that first; or set `rules: {{{}: warning}}` there",
        Rule::NewException
    )];
    Finding {
        severity: severity.max(worst.unwrap_or(severity)),
        span: Some(allowed.span),
        ..Finding::new(Rule::NewException, &allowed.path, message, help)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::{select, subsequence};

    use super::super::Checked;
    use super::super::testing::Scene;
    use super::*;
    use crate::tree::overlay::OverlayTree;

    const REFERENCES: [&str; 7] = [
        "https://a.example/x.yaml",
        "https://a.example/main/x.yaml",
        "https://github.com/o/r//a?ref=v1",
        "https://github.com/o/r//a?ref=main",
        "https://github.com/o/locked//a?ref=v1",
        "gone.yaml",
        "../../../out.yaml",
    ];
    const ENTRIES: [&str; 6] = [
        "{url: a.example, refs: tag, reason: r}",
        "{url: github.com/o, refs: any, reason: r}",
        "{chart: charts.example, refs: any, reason: r}",
        "{path: '**', reason: r}",
        "{path: '**', rules: [out-of-scope], reason: r}",
        "{url: a.example, refs: any, rules: [floating-ref], reason: r}",
    ];
    const MORE: [&str; 4] = [
        "exclude: [b]\n",
        "include: [a]\n",
        "rules: {remote-reference: off, missing-path: off, new-exception: off}\n",
        "rules: {remote-reference: warning, floating-ref: error}\n",
    ];
    const RULES: &str = "remote-reference, missing-path, out-of-scope, floating-ref";

    /// Two kustomizations, each of references with or without a comment, and a configuration.
    #[derive(Debug, Clone)]
    struct Side {
        references: [Vec<(&'static str, bool)>; 2],
        allow: Vec<&'static str>,
        more: &'static str,
    }

    impl Side {
        fn config(&self) -> Config {
            let entries = self.allow.iter().map(|entry| format!("- {entry}\n"));
            let allow = match self.allow.len() {
                0 => String::new(),
                _ => format!("allow:\n{}", entries.collect::<String>()),
            };
            let text = format!("{allow}{}", self.more);
            Config::parse(text.as_bytes(), FILE_NAME).unwrap()
        }

        /// Checks the files by this configuration, with or without their comments.
        fn check(&self, config: Config, own: Option<Config>, has_comments: bool) -> Checked {
            let mut scene = Scene { config, own, ..Scene::default() };
            for (name, references) in ["a", "b"].into_iter().zip(&self.references) {
                let lines = references.iter().map(|(text, is_allowed)| {
                    let comment = format!(" # kustomize-localize: allow[{RULES}] r");
                    let comment = Some(comment).filter(|_| *is_allowed && has_comments);
                    format!("- {text}{}\n", comment.unwrap_or_default())
                });
                let text = format!("resources:\n- x.yaml\n{}", lines.collect::<String>());
                scene = scene.file(&format!("{name}/kustomization.yaml"), &text);
                scene = scene.file(&format!("{name}/x.yaml"), "");
            }
            scene = scene.git("https://github.com/o/locked", Some("v1"));
            scene.names(REFERENCES[4], "https://charts.example/stable#web").check()
        }
    }

    fn side(more: impl Strategy<Value = &'static str>) -> impl Strategy<Value = Side> {
        let reference = (select(&REFERENCES[..]), any::<bool>());
        let references = || prop::collection::vec(reference.clone(), 0..4);
        let allow = subsequence(&ENTRIES[..], 0..=3);
        (references(), references(), allow, more).prop_map(|(a, b, allow, more)| Side {
            references: [a, b],
            allow,
            more,
        })
    }

    /// Returns what counts and says more than that an exception is stale.
    fn counting(checked: &Checked) -> impl Iterator<Item = &Finding> {
        let counting = checked.findings.iter().filter(|one| one.allowed.is_none());
        counting.filter(|one| one.rule != Rule::StaleAllow)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_change_widens_nothing(
            base in side(select(&["", MORE[0], MORE[1], MORE[3]][..])),
            change in side(select(&["", MORE[0], MORE[1], MORE[2], MORE[3]][..])),
        ) {
            let config = base.config();
            let old = base.check(config.clone(), Some(config.clone()), true).findings;
            let mut judged = change.check(config.clone(), Some(change.config()), true);
            judged.judge(&old, &config, &Lock::default(), &OverlayTree::default());
            // As if the change could say nothing.
            let mut alone = change.check(config.clone(), None, false);
            alone.judge(&old, &config, &Lock::default(), &OverlayTree::default());
            for one in counting(&alone) {
                let is_same = |other: &&Finding| {
                    (other.identity(), other.span, other.severity)
                        == (one.identity(), one.span, one.severity)
                };
                let found = judged.findings.iter().find(is_same);
                prop_assert!(found.is_some(), "{one:?} is gone: {:#?}", judged.findings);
                let Some(allowed) = &found.unwrap().allowed else { continue };
                let is_named = judged.findings.iter().any(|new| {
                    new.rule == Rule::NewException
                        && new.severity <= one.severity
                        && (&new.path, new.span) == (&allowed.path, Some(allowed.span))
                });
                prop_assert!(is_named, "{one:?} passes: {:#?}", judged.findings);
            }
        }

        #[test]
        fn a_change_of_nothing_is_clean(base in side(select(&MORE[..]))) {
            let config = base.config();
            let old = base.check(config.clone(), Some(config.clone()), true).findings;
            let mut judged = base.check(config.clone(), Some(config.clone()), true);
            judged.judge(&old, &config, &Lock::default(), &OverlayTree::default());
            prop_assert_eq!(counting(&judged).count(), 0, "{:#?}", judged.findings);
        }
    }

    #[test]
    fn one_exception_is_one_finding() {
        let none: [&str; 0] = [];
        let both = [(REFERENCES[0], false), ("https://a.example/y.yaml", false)];
        for (allow, said, more) in [
            (ENTRIES[0], "`https://a.example/x.yaml`, and 1 more", ""),
            (ENTRIES[0], "", MORE[2]),
            (ENTRIES[1], "", ""),
        ] {
            let change = Side { references: [both.to_vec(), Vec::new()], allow: vec![allow], more: "" };
            let base = Side { references: [Vec::new(), Vec::new()], allow: none.to_vec(), more };
            let mut judged = change.check(base.config(), Some(change.config()), true);
            judged.judge(&[], &base.config(), &Lock::default(), &OverlayTree::default());
            let new = judged.findings.iter();
            let new: Vec<_> = new.filter(|one| one.rule == Rule::NewException).collect();
            assert_eq!(new.len(), usize::from(!said.is_empty()), "{new:?}");
            assert!(new.iter().all(|one| one.message.ends_with(said)), "{new:?}");
        }
    }
}
