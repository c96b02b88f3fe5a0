//! `unlisted-source` and `unsigned-source`: what may not be locked, as `sources` says. The walk reports references that name
//! such an upstream; what is behind a locked reference, and what only the lock holds, is reported here.

use std::collections::{BTreeMap, BTreeSet};

use super::Context;
use super::behind::behind;
use crate::graph;
use crate::message::finding::{Finding, Rule};
use crate::record::LOCK_NAME;
use crate::reference::Upstream;

pub(super) fn find(context: &Context<'_>) -> Vec<Finding> {
    let Some(lock) = context.lock().filter(|_| context.config.sources.is_some()) else {
        return Vec::new();
    };
    let distrust = |one: &Upstream| context.config.distrust(&graph::subject(one), lock.get(one));
    let distrusted = lock.upstreams().filter_map(|one| Some((distrust(&one)?, one)));
    let distrusted: BTreeMap<Upstream, (Rule, String, String)> = distrusted.map(|(why, one)| (one, why)).collect();
    let own = context.edges().filter_map(|(_, edge)| Some(edge.remote.as_ref()?.locked(lock)?.source()));
    let mut said: BTreeSet<Upstream> = own.collect();
    let mut found = Vec::new();
    for (one, upstream, chain) in behind(context, lock, &distrusted.keys().collect()) {
        let (rule, why, help) = &distrusted[upstream];
        let shown = one.shown();
        let message = format!("`{shown}` is locked, but {upstream} behind it {why}: {shown} > {chain}");
        let at = context.at_reference(*rule, one.edge, message, vec![help.clone()]);
        found.push(Finding { reference: upstream.to_string(), subject: graph::subject(upstream), ..at });
        said.insert(upstream.source());
    }
    // Nothing names them any more: they were localized, or are stale.
    for (one, (rule, why, help)) in distrusted {
        let source = one.source();
        let message = format!("the lock contains {source}, which {why}");
        let finding = Finding::new(rule, LOCK_NAME, message, vec![help]);
        if said.insert(source.clone()) {
            found.push(Finding { reference: source.to_string(), subject: graph::subject(&source), ..finding });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Scene, under_caret};
    use super::*;

    const OWN: &str = "https://github.com/acme/lib//a?ref=v1";
    const DEEP: &str = "https://github.com/evil/deep//base?ref=v1";

    fn find(scene: Scene) -> Vec<Finding> {
        scene.find(Rule::UnlistedSource)
    }

    fn scene() -> Scene {
        let scene = Scene::of(&format!("resources:\n- {OWN}\n")).git("https://github.com/acme/lib", Some("v1"));
        scene.names(OWN, DEEP).git("https://github.com/evil/deep", Some("v1"))
    }

    #[test]
    fn what_is_named_or_behind_what_is_named_must_be_listed() {
        assert!(find(scene()).is_empty());
        assert!(find(scene().config("sources: [{url: '*'}]\n")).is_empty());
        let found = find(scene().config("sources: [{url: github.com/acme}]\n"));
        let [behind] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(under_caret(behind), OWN);
        assert!(behind.message.ends_with(&format!("{OWN} > {DEEP}")), "{}", behind.message);
        let found = find(scene().config("sources: [{url: github.com/evil}]\n"));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(under_caret(&found[0]), OWN);
        assert_eq!(
            found[0].help,
            ["if it may be used, add it to `sources` in .kustomize-localize: - {url: github.com/acme/lib}"]
        );
    }

    #[test]
    fn what_is_not_locked_yet_must_be_listed_unless_it_stays_remote() {
        let scene = |allow: &str| {
            let scene = Scene::of(&format!("resources:\n- {OWN}\n"));
            scene.config(&format!("sources: [{{url: github.com/other}}]\n{allow}"))
        };
        let all = scene("").check().findings;
        assert_eq!(all.iter().map(|one| one.rule).collect::<Vec<_>>(), [Rule::UnlistedSource]);
        let left = scene("allow: [{url: github.com/acme, refs: any, reason: r}]\n");
        assert!(find(left).is_empty());
    }

    #[test]
    fn what_only_the_lock_holds_is_found_there() {
        let scene = Scene::of("resources: []\n").git("https://github.com/evil/deep", Some("v1"));
        let found = find(scene.config("sources: [{url: github.com/acme}]\n"));
        assert_eq!(found.iter().map(|one| one.path.as_str()).collect::<Vec<_>>(), [LOCK_NAME]);
    }
}
