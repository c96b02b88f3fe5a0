//! What is behind a locked reference, and neither locked nor allowed to stay remote: findings of the rule that it would be
//! of in the tree, at the reference of the user.
//!
//! `check` cannot see locked contents, but the lock says what they name. Localizing such a reference would bring in
//! something that a build still fetches, so being locked is not enough. Only the configuration decides what may stay
//! remote.

use std::collections::BTreeSet;

use super::Context;
use super::remote_chart;
use super::remotes::RemoteUse;
use crate::config::Config;
use crate::graph::{way, ways};
use crate::message::finding::{Finding, Rule};
use crate::record::Lock;
use crate::reference::Upstream;
use crate::tree::LOCK_COMMAND;

/// How many things behind one reference are reported.
const MOST: usize = 100;

pub(super) fn find(context: &Context<'_>) -> Vec<Finding> {
    let Some(lock) = context.lock().filter(|lock| lock.target.is_none()) else {
        return Vec::new();
    };
    let open = lock.named().filter(|one| !lock.holds(one) && covered(context.config, one).is_none());
    let open: BTreeSet<&Upstream> = open.collect();
    if open.is_empty() {
        return Vec::new();
    }
    let found = behind(context, lock, &open).into_iter();
    found.map(|(one, open, chain)| finding(context, one, open, &chain)).collect()
}

/// Returns which of these upstreams are behind locked references, each with what leads there; of one reference at most
/// [`MOST`].
pub(super) fn behind<'a>(
    context: &'a Context<'_>,
    lock: &'a Lock,
    those: &BTreeSet<&'a Upstream>,
) -> Vec<(&'a RemoteUse<'a>, &'a Upstream, String)> {
    let mut found = Vec::new();
    for one in context.remotes.iter().filter(|one| one.is_locked && !those.is_empty()) {
        let Some(upstream) = &one.locked else { continue };
        let ways = ways([upstream], |from| lock.names(from).into_iter().flatten().map(|to| (to, to)));
        let behind = those.iter().copied().filter(|open| ways.contains_key(*open) && *open != upstream);
        let behind: Vec<&Upstream> = behind.collect();
        for (index, open) in behind.iter().take(MOST).enumerate() {
            let chain: Vec<String> = way(&ways, *open).unwrap_or_default().iter().map(ToString::to_string).collect();
            let more = behind.len() - MOST.min(behind.len());
            let more = if index + 1 == MOST && more > 0 { format!(", and {more} more") } else { String::new() };
            found.push((one, *open, chain.join(" > ") + &more));
        }
    }
    found
}

/// Returns the entries of `allow` in `config` that are about what is behind locked references, or may be young: that the
/// lock does not tell.
pub(super) fn entries(context: &Context<'_>, config: &Config) -> BTreeSet<usize> {
    let named = context.locks.iter().flat_map(|(_, lock)| lock.named());
    let behind = named.filter_map(|upstream| covered(config, upstream));
    let locked = context.locks.iter().flat_map(|(_, lock)| lock.upstreams()).map(|one| one.subject());
    let named = context.remotes.iter().filter_map(|one| Some(one.edge.remote.as_ref()?.subject()));
    let young = locked.chain(named).filter_map(|subject| config.allowed_by(Rule::YoungSource, &subject, ""));
    behind.chain(young).collect()
}

fn covered(config: &Config, upstream: &Upstream) -> Option<usize> {
    config.allowed_by(upstream.rule(), &upstream.subject(), "")
}

/// Makes a finding of something that a reference leads to, over these.
fn finding(context: &Context<'_>, one: &RemoteUse<'_>, open: &Upstream, chain: &str) -> Finding {
    let (what, help) = match open {
        Upstream::Chart { .. } => ("the chart", remote_chart::lock_charts(context.config)),
        Upstream::Image { .. } => {
            ("the image", "use a version whose functions are pinned by digest and need no network".to_owned())
        }
        Upstream::Git { .. } | Upstream::File { .. } => ("what is at", format!("lock it: {LOCK_COMMAND}")),
    };
    let shown = one.shown();
    let message = format!("`{shown}` is locked, but {what} {open} behind it stays remote: {shown} > {chain}");
    let at = context.at_reference(open.rule(), one.edge, message, vec![help]);
    Finding { reference: open.to_string(), subject: open.subject(), ..at }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Scene, under_caret};
    use super::*;
    use crate::message::finding::Severity;

    const OWN: &str = "https://github.com/o/r//a?ref=v1";
    const CHART: &str = "https://charts.example/stable#web@1.2.3";

    fn scene(named: &str) -> Scene {
        let text = format!("resources:\n- {OWN}\n- https://github.com/o/r/base?ref=v1\n");
        Scene::of(&text).git("https://github.com/o/r", Some("v1")).names(OWN, named)
    }

    #[test]
    fn it_is_reported_at_the_users_reference_with_the_chain() {
        let generator = |from: &str| {
            let scene = scene("https://h/gen.yaml").http("https://h/gen.yaml").git("https://h/o/r", None);
            scene.names(from, CHART).check().findings
        };
        let findings = generator("https://h/gen.yaml");
        let [finding, stale] = findings.as_slice() else {
            panic!("{findings:?}");
        };
        assert_eq!(stale.rule, Rule::StaleLock);
        assert_eq!(finding.rule, Rule::RemoteChart);
        assert_eq!(finding.severity, Severity::Error);
        assert_eq!(under_caret(finding), OWN);
        assert_eq!(
            finding.message,
            "`https://github.com/o/r//a?ref=v1` is locked, but the chart https://charts.example/stable#web@1.2.3 behind it \
             stays remote: https://github.com/o/r//a?ref=v1 > https://h/gen.yaml > https://charts.example/stable#web@1.2.3"
        );
        // What nothing needs leads nowhere.
        let findings = generator("https://h/o/r");
        assert!(findings.iter().all(|one| one.rule == Rule::StaleLock), "{findings:?}");
    }

    #[test]
    fn what_the_lock_lost_is_behind_the_reference() {
        for (named, rule) in [
            ("https://github.com/o/gone//x?ref=v1", Rule::RemoteReference),
            // The repository is there, and not the directory.
            ("https://github.com/o/r//nowhere?ref=v1", Rule::RemoteReference),
            ("docker://gcr.io/x/fn:v1", Rule::Function),
        ] {
            let finding = scene(named).one(rule);
            assert!(finding.fails() && finding.message.contains(&format!(" > {named}")), "{finding:?}");
        }
    }

    #[test]
    fn each_directory_has_its_own() {
        const BASE: &str = "https://github.com/o/r//base?ref=v1";
        for (from, expected) in [(OWN, &[OWN][..]), (BASE, &["https://github.com/o/r/base?ref=v1"])] {
            let findings = scene(OWN).names(from, CHART).check().findings;
            assert_eq!(findings.iter().map(under_caret).collect::<Vec<_>>(), expected, "{from}: {findings:?}");
        }
        // One that the other names, round about.
        let findings = scene(BASE).names(BASE, OWN).names(BASE, CHART).check().findings;
        assert_eq!(findings.len(), 2, "{findings:?}");
        let chain = format!("stays remote: {OWN} > {BASE} > https://charts");
        assert!(findings[0].message.contains(&chain), "{}", findings[0].message);
    }

    #[test]
    fn more_than_people_read_is_counted() {
        let charts = (0..MOST + 4).map(|number| format!("https://charts.example/stable#c{number:03}"));
        let scene = charts.fold(scene(CHART), |scene, chart| scene.names(OWN, &chart));
        let findings = scene.find(Rule::RemoteChart);
        assert_eq!(findings.len(), MOST);
        assert!(findings.iter().any(|one| one.message.ends_with(", and 5 more") && one.fails()));
    }

    #[test]
    fn the_configuration_alone_accepts_it() {
        for (entry, count, is_stale) in [
            ("- {chart: charts.example, refs: any, reason: r}", 0, false),
            ("- {chart: 'https://charts.example/stable#web@1.2.3', reason: r}", 0, false),
            // What leads there is locked.
            ("- {url: github.com/o, refs: any, reason: r}", 1, false),
            ("- {chart: other.example, refs: any, reason: r}", 1, true),
        ] {
            let scene = scene(CHART).config(&format!("allow:\n{entry}\n"));
            let findings = scene.check().findings;
            let failing = findings.iter().filter(|finding| finding.fails());
            assert_eq!(failing.count(), count, "{entry} {findings:?}");
            let stale = findings.iter().any(|one| one.rule == Rule::StaleAllow);
            assert_eq!(stale, is_stale, "{entry} {findings:?}");
        }
        for (rules, count) in [("", 1), (", rules: [function]", 0)] {
            let entry = format!("allow:\n- {{image: gcr.io/x, refs: any{rules}, reason: r}}\n");
            let findings = scene("docker://gcr.io/x/fn:v1").config(&entry).find(Rule::Function);
            assert_eq!(findings.len(), count, "{entry} {findings:?}");
        }
    }

    #[test]
    fn references_left_in_localized_files_are_reported() {
        let function = "apiVersion: a/v1\nkind: Gen\nmetadata:\n  name: g\n  annotations:\n    config.kubernetes.io/function: |\n      container: {image: 'gcr.io/x/fn:v1', network: true}\n";
        let kustomization = "generators: [fn.yaml]\nhelmCharts:\n- {name: web, repo: 'https://charts.example', version: 1.2.3}\n- {name: local}\n";
        let scene = Scene::of("resources: [localized-files/a]\n")
            .stored("localized-files/a/kustomization.yaml", kustomization)
            .stored("localized-files/a/fn.yaml", function);
        let findings = scene.check().findings;
        let rules: Vec<Rule> = findings.iter().map(|finding| finding.rule).collect();
        assert_eq!(rules, [Rule::Function, Rule::RemoteChart, Rule::MissingPath], "{findings:?}");
        for finding in &findings[..2] {
            let help = finding.help.join("\n");
            assert!(!help.contains("git add"), "{help}");
        }
    }
}
