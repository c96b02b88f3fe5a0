//! What stays remote behind a locked reference, as the lock says: findings of the rule that it would be of in the tree,
//! at the reference of the user.
//!
//! `check` cannot see locked contents. Localizing such a reference would bring in something that a build still fetches,
//! so being locked is not enough. Only the configuration decides what may stay remote.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::Context;
use super::remote_chart;
use super::remote_reference::is_fulfilled;
use super::remotes::RemoteUse;
use crate::config::Config;
use crate::graph::{self, way, ways};
use crate::message::finding::Finding;
use crate::record::{LOCK_NAME, Left, LeftWhat};

/// How many things behind one reference are reported one by one.
const MOST: usize = 100;

pub(super) fn find(context: &Context<'_>) -> Vec<Finding> {
    let Some(lock) = context.lock().filter(|lock| lock.target.is_none()) else {
        return Vec::new();
    };
    let left = lock.left.iter().filter(|left| !left.through.is_empty() && covered(context.config, left).is_none());
    let left: Vec<&Left> = left.collect();
    if left.is_empty() {
        return Vec::new();
    }
    let mut names: HashMap<&str, Vec<String>> = HashMap::new();
    let mut labels: HashMap<String, String> = HashMap::new();
    for remote in &lock.remotes {
        let label = remote.label();
        labels.extend(remote.references().into_iter().chain([label.clone()]).map(|name| (name, label.clone())));
        for through in remote.through() {
            names.entry(through).or_default().push(label.clone());
        }
    }
    let fulfilled = context.remotes.iter().filter(|one| is_fulfilled(one));
    let fulfilled: Vec<_> =
        fulfilled.filter_map(|one| Some((one, one.locked?, one.wanted.in_chain(one.locked?)))).collect();
    let named: HashSet<&str> = fulfilled.iter().map(|(.., name)| name.as_str()).collect();
    let mut found = Vec::new();
    for (one, locked, name) in &fulfilled {
        let label = locked.label();
        let ways = ways([label.as_str()], |from| {
            let named = names.get(from).into_iter().flatten();
            named.map(|to| (to.as_str(), to.as_str())).collect::<Vec<_>>()
        });
        let behind = left.iter().filter_map(|left| {
            let chain = left.through.iter().find_map(|through| match labels.get(through) {
                _ if through == name || *through == label => Some(Vec::new()),
                // Another directory of the same repository, which has a finding of its own where the user names it.
                Some(holder) if *holder == label => (!named.contains(through.as_str())).then(|| vec![through.as_str()]),
                Some(holder) => way(&ways, holder.as_str()),
                None => None,
            });
            Some((*left, chain?))
        });
        let behind: Vec<(&Left, Vec<&str>)> = behind.collect();
        for (left, chain) in behind.iter().take(MOST) {
            found.push(finding(context, one, left, chain));
        }
        if let Some((next, _)) = behind.get(MOST) {
            let message = format!("{} more behind `{}` stay remote", behind.len() - MOST, one.shown());
            let help = vec![format!("see `left` in {LOCK_NAME}")];
            found.push(context.at_reference(graph::rule(&next.what), one.edge, message, help));
        }
    }
    found
}

/// Returns the entries of `allow` in `config` that are about what is behind locked references.
pub(super) fn entries(context: &Context<'_>, config: &Config) -> BTreeSet<usize> {
    let left = context.locks.iter().flat_map(|(_, lock)| &lock.left);
    left.filter_map(|left| covered(config, left)).collect()
}

fn covered(config: &Config, left: &Left) -> Option<usize> {
    config.allowed_by(graph::rule(&left.what), &graph::subject(&left.what), "")
}

/// Makes a finding of something that a reference leads to.
fn finding(context: &Context<'_>, one: &RemoteUse<'_>, left: &Left, chain: &[&str]) -> Finding {
    let label = left.what.label();
    let (what, help) = match left.what {
        LeftWhat::Chart { .. } => ("the chart", remote_chart::lock_charts(context.config)),
        LeftWhat::Image { .. } => (
            "the image",
            "name a version of it whose functions are pinned by their digests and need no network".to_owned(),
        ),
        LeftWhat::Reference { .. } => {
            ("what is at", "bring the lock up to date: git kustomize-localize lock".to_owned())
        }
    };
    let subject = graph::subject(&left.what);
    let message = format!(
        "`{}` is locked, but {what} {label} behind it stays remote: {} > {label}",
        one.shown(),
        [&[one.shown().as_str()], chain].concat().join(" > ")
    );
    let help = vec![help];
    Finding { reference: label, subject, ..context.at_reference(graph::rule(&left.what), one.edge, message, help) }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Scene, under_caret};
    use super::*;
    use crate::message::finding::Rule;
    use crate::message::finding::Severity;

    const OWN: &str = "https://github.com/o/r//a?ref=v1";
    const LABEL: &str = "https://github.com/o/r?ref=v1";

    fn scene(what: LeftWhat, through: &[&str]) -> Scene {
        let text = format!("resources:\n- {OWN}\n- https://github.com/o/r/base?ref=v1\n");
        let mut scene = Scene::of(&text).git("https://github.com/o/r", Some("v1"));
        scene.lock.left.push(Left {
            what,
            through: through.iter().map(|one| (*one).to_owned()).collect(),
            reason: "said".to_owned(),
            accepted: true,
        });
        scene
    }

    fn chart() -> LeftWhat {
        LeftWhat::Chart {
            url: "https://charts.example/stable".to_owned(),
            chart: "web".to_owned(),
            version: Some("1.2.3".to_owned()),
        }
    }

    #[test]
    fn it_is_reported_at_the_users_reference_with_the_chain() {
        let generator = |named_by: &str| {
            let mut scene = scene(chart(), &["https://h/gen.yaml"]).http("https://h/gen.yaml");
            scene.lock.remotes.iter_mut().filter(|one| one.label() != LABEL).for_each(|one| {
                one.through_mut().insert(named_by.to_owned());
            });
            scene.check().findings
        };
        let findings = generator(LABEL);
        let [finding, other] = findings.as_slice() else {
            panic!("{findings:?}");
        };
        // What a remote names counts for the whole of it.
        assert_eq!(under_caret(other), "https://github.com/o/r/base?ref=v1");
        assert_eq!(finding.rule, Rule::RemoteChart);
        assert_eq!(finding.severity, Severity::Error);
        assert_eq!(under_caret(finding), OWN);
        assert_eq!(
            finding.message,
            "`https://github.com/o/r//a?ref=v1` is locked, but the chart https://charts.example/stable#web@1.2.3 behind it \
             stays remote: https://github.com/o/r//a?ref=v1 > https://h/gen.yaml > https://charts.example/stable#web@1.2.3"
        );
        let findings = generator("https://github.com/o/other?ref=v1");
        assert!(findings.iter().all(|one| one.rule == Rule::StaleLock), "{findings:?}");
    }

    #[test]
    fn another_directory_of_the_same_repository_is_behind_it() {
        const OTHER: &str = "https://github.com/o/other?ref=v1";
        const BEHIND: &str = "https://github.com/o/r//base?ref=v1";
        let find = |resources: &[&str], way_back: &str| {
            let text = format!("resources:\n- {}\n", resources.join("\n- "));
            let mut scene = Scene { lock: scene(chart(), &[BEHIND]).lock, ..Scene::of(&text) };
            scene.lock.remotes[0].through_mut().insert(way_back.to_owned());
            if way_back == OTHER {
                scene = scene.git("https://github.com/o/other", Some("v1"));
                scene.lock.remotes[1].through_mut().insert(LABEL.to_owned());
            }
            scene.check().findings
        };
        for way_back in [LABEL, OTHER] {
            let findings = find(&[OWN], way_back);
            let [finding] = findings.as_slice() else {
                panic!("{way_back}: {findings:?}");
            };
            assert!(finding.rule == Rule::RemoteChart && finding.fails());
            assert_eq!(under_caret(finding), OWN);
            let chain = format!("stays remote: {OWN} > {BEHIND} > https://charts");
            assert!(finding.message.contains(&chain), "{}", finding.message);
            // The one that the user names keeps its own.
            let findings = find(&[OWN, BEHIND], way_back);
            assert_eq!(findings.iter().map(under_caret).collect::<Vec<_>>(), [BEHIND], "{way_back}: {findings:?}");
        }
    }

    #[test]
    fn more_than_people_read_is_counted() {
        let mut scene = scene(chart(), &[OWN]);
        for number in 0..MOST + 4 {
            scene.lock.left.push(Left {
                what: LeftWhat::Chart {
                    url: "https://charts.example/stable".to_owned(),
                    chart: format!("c{number:03}"),
                    version: None,
                },
                ..scene.lock.left[0].clone()
            });
        }
        let findings = scene.find(Rule::RemoteChart);
        assert_eq!(findings.len(), MOST + 1);
        let last = format!("5 more behind `{OWN}` stay remote");
        assert!(findings.iter().any(|one| one.message == last && one.fails()));
    }

    #[test]
    fn the_configuration_alone_accepts_it() {
        for (entry, count) in [
            ("- {chart: charts.example, refs: any, reason: r}", 0),
            ("- {url: github.com/o, refs: any, reason: r}", 0),
            ("- {chart: other.example, refs: any, reason: r}", 1),
        ] {
            let scene = scene(chart(), &[OWN]).config(&format!("allow:\n{entry}\n"));
            let findings = scene.check().findings;
            let failing = findings.iter().filter(|finding| finding.fails());
            assert_eq!(failing.count(), count, "{entry} {findings:?}");
            let stale = findings.iter().any(|one| one.rule == Rule::StaleAllow);
            assert_eq!(stale, count == 1, "{entry} {findings:?}");
        }
        let image = || LeftWhat::Image { image: "gcr.io/x/fn:v1".to_owned() };
        for (rules, count) in [("", 1), (", rules: [function]", 0)] {
            let entry = format!("allow:\n- {{image: gcr.io/x, refs: any{rules}, reason: r}}\n");
            let findings = scene(image(), &[OWN]).config(&entry).find(Rule::Function);
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
