//! `new-exception`: an exception that a change adds for a finding that it adds, too.
//!
//! A gate must not trust the change that it judges, and a reviewer should see each exception. Findings of the base need
//! no exception.

use std::collections::{BTreeMap, HashSet};

use super::RemoteReferences;
use crate::config::{Config, FILE_NAME};
use crate::message::failure::Failure;
use crate::message::finding::{Allowed, Finding, Rule, Severity, Subject};
use crate::record::Lock;
use crate::tree::LOCK_COMMAND;

/// Finds references that `before`, the lock of the base, localizes, and that an exception of the change keeps remote.
pub(super) fn no_longer_localized(findings: &[Finding], config: &Config, before: &Lock) -> Vec<Finding> {
    let Some(severity) = config.level(Rule::NewException, Rule::NewException.default_severity()) else {
        return Vec::new();
    };
    // By subject, as exceptions are matched: without regard to submodules. Another ref is another subject.
    let localized: Vec<Subject> = before.upstreams().map(|upstream| upstream.subject()).collect();
    let new = findings.iter().filter_map(|finding| {
        let allowed = finding.allowed.as_ref().filter(|_| RemoteReferences::is_unlocked(finding))?;
        localized.contains(&finding.subject).then(|| Finding {
            rule: Rule::NewException,
            severity,
            message: format!("`{}` was localized, and is now remote: {} allows it", finding.reference, allowed.by()),
            help: vec![format!(
                "make the exception exact, or remove it, and lock again: {LOCK_COMMAND}; or set `rules: {{{}: warning}}` in a separate change, and merge that first",
                Rule::NewException
            )],
            allowed: None,
            ..finding.clone()
        })
    });
    new.collect()
}

/// Accepts exceptions of the change that adds the first lock, by `init` or by hand: those for upstreams behind a
/// reference that the base fetches already. Only the lock shows these upstreams, so nobody could allow them before. A
/// reference is known by its line, which a finding in `old`, those of the base, has too.
pub(super) fn accept_first(findings: &mut [Finding], old: &[Finding]) {
    let location = |finding: &Finding| (finding.path.clone(), finding.line_text.clone());
    let fetched: HashSet<_> =
        old.iter().filter(|finding| RemoteReferences::is_unlocked(finding)).map(location).collect();
    for finding in findings
        .iter_mut()
        .filter(|finding| RemoteReferences::is_unlocked(finding) && fetched.contains(&location(finding)))
    {
        if let Some(allowed) = finding.allowed.as_mut() {
            allowed.is_new = false;
        }
    }
}

/// One finding for each exception that only the change has, unless the rule is off.
pub(super) fn find(findings: &[Finding], config: &Config) -> Vec<Finding> {
    let Some(severity) = config.level(Rule::NewException, Rule::NewException.default_severity()) else {
        return Vec::new();
    };
    let mut covered: BTreeMap<_, Vec<(&Allowed, &Finding)>> = BTreeMap::new();
    for finding in findings {
        if let Some(allowed) = finding.allowed.as_ref().filter(|allowed| allowed.is_new) {
            let exception = (&allowed.path, allowed.span);
            covered.entry(exception).or_default().push((allowed, finding));
        }
    }
    covered.into_values().map(|group| exception_finding(&group, severity)).collect()
}

/// The finding for an exception that covers these findings.
fn exception_finding(covered: &[(&Allowed, &Finding)], severity: Severity) -> Finding {
    let (allowed, first) = covered[0];
    // The exception is not worse than the findings that it covers.
    let worst = covered.iter().map(|(_, finding)| finding.severity).min();
    let line = first.span.map_or(String::new(), |span| format!(":{}", span.start.line));
    let location = format!("{}{line}", first.path);
    // An exception may cover many findings; the first one is enough to recognize it.
    let subject = match &*first.reference {
        "" => format!("{} at {location}", first.rule),
        reference => format!("{} at {location}: `{reference}`", first.rule),
    };
    let more = match covered.len() {
        1 => String::new(),
        count => format!(", and {} more", count - 1),
    };
    let message = format!("the change itself adds this exception for {subject}{more}");
    let failure = Failure::new(message).hint(format!(
        "add it to `allow` in {FILE_NAME}, in a separate change, and merge that first; or set `rules: {{{}: warning}}` there",
        Rule::NewException
    ));
    Finding {
        severity: severity.max(worst.unwrap_or(severity)),
        span: Some(allowed.span),
        ..Finding::new(Rule::NewException, &allowed.path, failure)
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
