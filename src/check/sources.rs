//! `unlisted-source` and `unsigned-source`: upstreams that `sources` in the configuration does not let anybody lock.
//! The walk reports references that name such an upstream. This module reports those behind a locked reference, and
//! those that only the lock names. It also collects the lock entries that a change adds or edits: their `signed` is
//! only a claim.

use std::collections::{BTreeMap, BTreeSet};

use super::Context;
use super::unlocked_dependency::behind;
use crate::config::{Config, Distrust};
use crate::git::Signers;
use crate::message::failure::{Failure, FailureKind, Location, command, short};
use crate::message::finding::{Finding, Rule};
use crate::record::{LOCK_NAME, Lock, Pinned};
use crate::reference::Upstream;
use crate::tree::Tree;

/// A lock entry that a change adds or edits, so that nothing but the entry itself tells who signed the commit.
pub(crate) struct Claim<'a> {
    pub(crate) source: &'a Upstream,
    pub(crate) pinned: &'a Pinned,
    /// The signers that the configuration accepts.
    pub(crate) signers: &'a Signers,
}

impl<'a> Claim<'a> {
    /// The claims of a lock that the lock `before` does not make: a change could write any `signed`, so they are
    /// verified.
    pub(crate) fn added(config: &'a Config, lock: &'a Lock, before: &Lock) -> Vec<Claim<'a>> {
        let mut claims = Vec::new();
        for (source, pinned) in &lock.remotes {
            let old = before.remotes.get(source);
            let old = old.filter(|old| (&old.digest, &old.signed) == (&pinned.digest, &pinned.signed));
            // A directory may be the first that needs a signature, so a new one makes an old claim count.
            let new = pinned.paths.keys().filter(|path| old.is_none_or(|old| !old.paths.contains_key(*path)));
            let signers = config.signers(source, new).into_values();
            // An entry without an accepted signer is a finding already.
            let accepted = signers.filter(|signers| pinned.signed.as_ref().is_some_and(|key| signers.include(key)));
            claims.extend(accepted.map(|signers| Claim { source, pinned, signers }));
        }
        claims
    }

    /// The failure of a claim in a check that may not fetch. It is of the kind of a wrong signature, which makes it a
    /// finding. `arguments` are those of the `check --build` that may fetch.
    pub(crate) fn unverified(&self, arguments: &[&str]) -> Failure {
        let Claim { source, pinned, .. } = self;
        let message = format!(
            "the change locks {source} at {}, and nothing has verified that {} signed it",
            short(pinned.digest.hex()),
            pinned.signed.as_deref().unwrap_or("anybody")
        );
        Failure::new(message)
            .because(FailureKind::Unsigned)
            .hint(format!("verify it: {}", command("git kustomize-localize check --build", arguments)))
    }

    /// The finding for a claim that verification refuted, at its entry.
    pub(crate) fn finding(&self, tree: &dyn Tree, failure: Failure) -> Finding {
        let bytes = tree.read(LOCK_NAME).unwrap_or_default();
        let position = Lock::positions(&bytes).get(self.source).copied().unwrap_or_default();
        let location =
            Location { file: LOCK_NAME.to_owned(), position, field: "remotes".to_owned(), ..Location::default() };
        Finding::at(Rule::UnsignedSource, location, failure).naming(self.source)
    }
}

/// Finds the upstreams of the lock that `sources` does not let anybody lock.
pub(super) fn find(context: &Context<'_>) -> Vec<Finding> {
    let Some(lock) = context.lock().filter(|_| context.config.sources.is_some()) else {
        return Vec::new();
    };
    let mut distrusted: BTreeMap<Upstream, Distrust> = BTreeMap::new();
    for upstream in lock.upstreams() {
        if let Some(reason) = context.config.distrust(&upstream, lock.get(&upstream)) {
            distrusted.insert(upstream, reason);
        }
    }
    // The walk has reported the references of the tree.
    let edges = context.graph.edges();
    let named = edges.filter_map(|(_, edge)| edge.remote.as_ref()?.locked(lock));
    let mut reported: BTreeSet<Upstream> = named.collect();
    let mut listed = BTreeSet::new();
    let mut findings = Vec::new();
    for behind in behind(context, lock, &distrusted.keys().collect()) {
        let Distrust { rule, why, hint } = &distrusted[behind.upstream];
        findings.push(behind.finding(context, *rule, "", why, hint));
        reported.insert(behind.upstream.clone());
    }
    // Nothing names the others any more: they were localized, or are stale. One directory of a repository stands for
    // all.
    for (upstream, Distrust { rule, why, hint }) in distrusted {
        if !reported.contains(&upstream) && listed.insert(upstream.source()) {
            let failure = Failure::new(format!("the lock contains {upstream}, which {why}")).hint(hint);
            findings.push(Finding::new(rule, LOCK_NAME, failure).naming(&upstream));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::testing::{COMMIT, Scene, under_caret};
    use super::*;
    use crate::record::Digest;

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

    #[test]
    fn another_directory_of_a_repository_does_not_hide_one() {
        let paths = ["a", "b"].map(|path| (path.to_owned(), BTreeSet::new())).into();
        let pinned = Pinned { paths, ..Pinned::new(Digest::GitCommit(COMMIT.to_owned())) };
        let scene = Scene::of(&format!("resources: ['{OWN}']\n")).remote(Upstream::named(OWN).source(), pinned);
        let found = find(scene.config("sources: [{url: github.com/acme/lib/a}]\n"));
        let messages: Vec<&str> = found.iter().map(|one| &*one.message).collect();
        let unlisted = "the lock contains https://github.com/acme/lib//b?ref=v1, which is not in `sources`";
        assert_eq!(messages, [unlisted]);
    }
}
