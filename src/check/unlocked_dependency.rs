//! Finds upstreams behind a locked reference that are neither locked nor allowed to stay remote. The finding is at the
//! user's reference, and has the rule that it would have if the tree itself named the upstream.
//!
//! `check` does not read locked contents, but the lock lists the upstreams that they name. If such a reference were
//! localized, a build would still fetch the upstreams behind it: the lock entry of the reference alone is not enough.
//! Each upstream behind it must be locked, too, or the configuration must allow it: no comment can.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use super::Context;
use super::remote_chart::hint_lock_charts;
use super::remotes::RemoteUse;
use crate::config::Config;
use crate::message::failure::Failure;
use crate::message::finding::{Finding, Rule};
use crate::record::Lock;
use crate::reference::Upstream;
use crate::tree::LOCK_COMMAND;

/// The most upstreams that are reported behind one reference.
const MOST: usize = 10;

/// The most upstreams of a chain that are shown before the rest is counted.
const SHOWN: usize = 5;

/// Finds the upstreams behind locked references that the lock lacks and that the configuration does not allow.
pub(super) fn find(context: &Context<'_>) -> Vec<Finding> {
    let Some(lock) = context.lock() else { return Vec::new() };
    let named = lock.referenced().into_iter().filter(|upstream| !lock.holds(upstream));
    let unlocked: BTreeSet<&Upstream> = named.filter(|upstream| covered(context.config, upstream).is_none()).collect();
    if unlocked.is_empty() {
        return Vec::new();
    }
    behind(context, lock, &unlocked).iter().map(|behind| finding(context, behind)).collect()
}

/// An upstream behind a locked reference.
pub(super) struct Behind<'a> {
    pub(super) remote: &'a RemoteUse<'a>,
    pub(super) upstream: &'a Upstream,
    /// The upstreams on the way from the reference to `upstream`, as text.
    pub(super) chain: String,
}

impl Behind<'_> {
    /// A finding at the reference about the upstream: that it `is` something. `kind` is the article and noun before it.
    pub(super) fn finding(&self, context: &Context<'_>, rule: Rule, kind: &str, is: &str, hint: &str) -> Finding {
        let Behind { remote, upstream, chain } = self;
        let shown = remote.shown();
        let message = format!("`{shown}` is locked, but {kind}{upstream} behind it {is}: {shown} > {chain}");
        context.at_reference(rule, remote.edge, Failure::new(message).hint(hint)).naming(upstream)
    }
}

/// Finds those of `wanted` that are behind locked references: for each reference at most [`MOST`] of those that
/// [`first_steps`] finds.
pub(super) fn behind<'a>(context: &'a Context<'_>, lock: &'a Lock, wanted: &BTreeSet<&'a Upstream>) -> Vec<Behind<'a>> {
    let unlocked = wanted.iter().filter(|upstream| !lock.holds(upstream)).map(|upstream| (*upstream).clone());
    let upstreams: Vec<Upstream> = lock.upstreams().chain(unlocked).collect();
    // Numbers instead of names: a lock may have thousands of entries, and the search visits each edge.
    let ids: HashMap<&Upstream, usize> = upstreams.iter().zip(0..).collect();
    let mut users = vec![Vec::new(); upstreams.len()];
    for (id, upstream) in upstreams.iter().enumerate() {
        // An entry whose commit a bot or a person changed still lists the references of the old commit.
        if lock.get(upstream).is_none_or(|pinned| pinned.is_stale()) {
            continue;
        }
        let named = lock.names(upstream).into_iter().flatten().filter_map(|named| ids.get(named));
        named.for_each(|named| users[*named].push(id));
    }
    // The search goes backwards, from the wanted upstreams to the references, so that one search serves all references.
    let wanted: BTreeMap<usize, &Upstream> =
        wanted.iter().filter_map(|upstream| Some((*ids.get(upstream)?, *upstream))).collect();
    let steps = first_steps(&users, wanted.keys().copied());
    let mut behind = Vec::new();
    for remote in context.remotes.iter().filter(|remote| remote.is_locked) {
        let Some(from) = remote.locked.as_ref().and_then(|upstream| ids.get(upstream)) else { continue };
        for (index, (to, _)) in steps[*from].iter().take(MOST).enumerate() {
            let more = if index + 1 == MOST && steps[*from].len() > MOST { ", and more" } else { "" };
            let chain = chain(&upstreams, &steps, *from, *to) + more;
            behind.push(Behind { remote, upstream: wanted[to], chain });
        }
    }
    behind
}

/// The first step of a shortest way from one upstream to another one.
#[derive(Debug, Clone, Copy)]
struct Step {
    next: usize,
    /// The length of the way, this step included.
    count: usize,
}

/// Finds for each upstream the first step of a shortest way to each of `wanted`, for the nearest [`MOST`] and one more.
/// `users` has for each upstream those that reference it: the search goes backwards, so that all references share its
/// cost.
fn first_steps(users: &[Vec<usize>], wanted: impl Iterator<Item = usize>) -> Vec<BTreeMap<usize, Step>> {
    let mut steps: Vec<BTreeMap<usize, Step>> = vec![BTreeMap::new(); users.len()];
    // Each item is an upstream, the wanted one that it leads to, and the length of that way.
    let mut queue: VecDeque<(usize, usize, usize)> = wanted.map(|to| (to, to, 0)).collect();
    while let Some((next, to, count)) = queue.pop_front() {
        for user in users[next].iter().filter(|user| **user != to) {
            let steps = &mut steps[*user];
            if steps.len() <= MOST && !steps.contains_key(&to) {
                steps.insert(to, Step { next, count: count + 1 });
                queue.push_back((*user, to, count + 1));
            }
        }
    }
    steps
}

/// Shows the way from one upstream to another one. The middle of a long way is only counted.
fn chain(upstreams: &[Upstream], steps: &[BTreeMap<usize, Step>], from: usize, to: usize) -> String {
    let (mut names, mut at) = (Vec::new(), from);
    while let Some(Step { next, count }) = steps[at].get(&to) {
        if names.len() == SHOWN && *count > 2 {
            names.push(format!("… {} more …", count - 1));
            names.push(upstreams[to].to_string());
            break;
        }
        at = *next;
        names.push(upstreams[at].to_string());
        if at == to {
            break;
        }
    }
    names.join(" > ")
}

/// The indices of the `allow` entries that the check cannot judge by the tree alone, so that they are not stale: those
/// that cover an upstream behind a locked reference, or one that may be too young.
pub(super) fn entries_in_use(context: &Context<'_>, config: &Config) -> BTreeSet<usize> {
    if config.allow.is_empty() {
        return BTreeSet::new();
    }
    let referenced = context.locks.values().flat_map(|lock| lock.referenced());
    let behind = referenced.filter_map(|upstream| covered(config, upstream));
    let locked = context.locks.values().flat_map(|lock| lock.upstreams()).map(|upstream| upstream.subject());
    let named = context.remotes.iter().filter_map(|remote| Some(remote.edge.remote.as_ref()?.subject()));
    let young = locked.chain(named).filter_map(|subject| config.allowed_by(Rule::YoungSource, &subject, ""));
    behind.chain(young).collect()
}

/// The index of the `allow` entry that covers an upstream, if there is one.
fn covered(config: &Config, upstream: &Upstream) -> Option<usize> {
    config.allowed_by(upstream.rule(), &upstream.subject(), "")
}

/// The finding for an upstream behind a locked reference, with the help for its kind.
fn finding(context: &Context<'_>, behind: &Behind<'_>) -> Finding {
    let (kind, hint) = match behind.upstream {
        Upstream::Chart { .. } => ("the chart ", &*hint_lock_charts(context.config)),
        Upstream::Image { .. } => {
            ("the image ", "use a version whose functions are pinned by digest and need no network")
        }
        Upstream::Git { .. } | Upstream::File { .. } => ("what is at ", &*format!("lock it: {LOCK_COMMAND}")),
    };
    behind.finding(context, behind.upstream.rule(), kind, "stays remote", hint)
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
        // An entry that nothing needs is only stale.
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
        assert!(findings.iter().any(|one| one.message.ends_with(", and more") && one.fails()));
    }

    #[test]
    fn a_long_chain_is_walked_once_for_all_references_and_cut() {
        const COUNT: usize = 1000;
        let name = |number: usize| format!("https://github.com/o/r//d{number}?ref=v1");
        let resources: String = (0..COUNT).map(|number| format!("- {}\n", name(number))).collect();
        let mut scene = Scene::of(&format!("resources:\n{resources}")).git("https://github.com/o/r", Some("v1"));
        let source = Upstream::named(&name(0)).source();
        let paths = &mut scene.lock.remotes.get_mut(&source).unwrap().paths;
        for number in 0..COUNT {
            let next = if number + 1 < COUNT { name(number + 1) } else { CHART.to_owned() };
            paths.insert(format!("d{number}"), [Upstream::named(&next)].into());
        }
        let findings = scene.find(Rule::RemoteChart);
        assert_eq!(findings.len(), COUNT);
        let shown: Vec<String> = (0..=SHOWN).map(name).collect();
        let chain = format!("stays remote: {} > … {} more … > {CHART}", shown.join(" > "), COUNT - SHOWN - 1);
        assert!(findings[0].message.ends_with(&chain), "{}", findings[0].message);
        let bytes: usize = findings.iter().map(|one| one.message.len()).sum();
        assert!(bytes < COUNT * 1000, "{bytes}");
    }

    #[test]
    fn the_configuration_alone_accepts_it() {
        for (entry, count, is_stale) in [
            ("- {chart: charts.example, refs: any, reason: r}", 0, false),
            ("- {chart: 'https://charts.example/stable#web@1.2.3', reason: r}", 0, false),
            // The exception covers the chart, and the upstream that names it is locked.
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
