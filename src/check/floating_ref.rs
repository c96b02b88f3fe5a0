//! `floating-ref`: a reference that may stay remote, and whose ref can move.
//!
//! To be remote and to move are two problems: allowing one (by a comment, by `allow` with a policy for refs, by a
//! severity) does not allow the other. A locked reference does not move. One that is neither locked nor allowed is
//! reported by `remote-reference` only, because locking it solves both.
//!
//! Offline, only the text of the reference tells ([`Pin`], [`reference::file_pin`]).

use std::collections::HashMap;

use super::Context;
use super::remotes::RemoteUse;
use crate::message::failure::Failure;
use crate::message::finding::{Finding, Rule};
use crate::message::redact;
use crate::reference::{self, PLAIN_QUERY, Pin};

const HINT_PIN: &str = "use a tag, a release or a full commit id, or remove the exception and lock the reference";

/// Finds the references that are not locked, and whose ref can move.
pub(super) fn find(context: &Context<'_>) -> Vec<Finding> {
    // Each locked reference would look unlocked. The lock itself is a failure of the check.
    if context.broken_lock {
        return Vec::new();
    }
    let unlocked = context.remotes.iter().filter(|remote| remote.ambiguity.is_none() && remote.locked.is_none());
    // The page of a branch is not a file, and `remote-reference` suggests its raw URL.
    let unlocked = unlocked.filter(|remote| reference::web_page(remote.wanted.text.exposed()).is_none());
    let findings =
        unlocked.filter_map(|remote| Some(context.at_reference(Rule::FloatingRef, remote.edge, floating(remote)?)));
    findings.collect()
}

/// Drops the findings about references that `remote-reference` reports with the same or a higher severity: locking such
/// a reference mends both.
pub(super) fn leave_out_remote(findings: &mut Vec<Finding>) {
    let rejected = findings.iter().filter(|finding| finding.allowed.is_none());
    let remote = rejected.filter(|finding| finding.rule == Rule::RemoteReference);
    let remote: HashMap<_, _> =
        remote.map(|finding| ((finding.path.clone(), finding.span), finding.severity)).collect();
    findings.retain(|finding| {
        finding.rule != Rule::FloatingRef
            || remote.get(&(finding.path.clone(), finding.span)).is_none_or(|severity| finding.severity < *severity)
    });
}

/// The failure of a reference whose ref can move without breaking a convention, as a branch does. `None` if it cannot.
fn floating(remote: &RemoteUse<'_>) -> Option<Failure> {
    let shown = remote.shown();
    let pin = remote.pin().filter(|pin| pin.floats())?;
    // The message names the ref, so that people see which part can move.
    let version = match remote.repository() {
        Some(spec) if spec.query_dropped => {
            let message = format!("kustomize cannot parse the query of `{shown}`, ignores all of it and builds HEAD");
            return Some(Failure::new(message).hint(PLAIN_QUERY));
        }
        Some(spec) => spec.reference.clone().unwrap_or_default(),
        None => reference::file_pin(remote.wanted.text.exposed())?.1,
    };
    let version = redact::url(&version);
    Some(match pin {
        Pin::ShortCommit => {
            Failure::new(format!("`{version}` of `{shown}` looks like a short commit id, which can become ambiguous"))
                .hint("write the commit id in full, 40 digits")
        }
        _ if version.is_empty() => {
            Failure::new(format!("`{shown}` has no ref, so it can change at any time")).hint(HINT_PIN)
        }
        _ => Failure::new(format!("`{version}` of `{shown}` can change at any time")).hint(HINT_PIN),
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{COMMIT, Scene, under_caret};
    use super::*;
    use crate::message::finding::Severity;

    fn find(scene: Scene) -> Vec<Finding> {
        scene.find(Rule::FloatingRef)
    }

    /// Every remote reference may stay.
    const REMOTE: &str = "rules: {remote-reference: off}\n";

    fn resource(text: &str) -> Scene {
        Scene::of(&format!("resources:\n- '{text}'\n")).config(REMOTE)
    }

    #[test]
    fn floating_refs_are_reported_with_the_reason() {
        for (text, message, help) in [
            (
                "https://github.com/o/r//a",
                "`https://github.com/o/r//a` has no ref, so it can change at any time",
                HINT_PIN,
            ),
            ("git@github.com:o/r?ref=main", "`main` of `git@github.com:o/r?ref=main` can change at any time", HINT_PIN),
            (
                "github.com/o/r?ref=feature/v2",
                "`feature/v2` of `github.com/o/r?ref=feature/v2` can change at any time",
                HINT_PIN,
            ),
            (
                "https://github.com/o/r?ref=abc1234",
                "`abc1234` of `https://github.com/o/r?ref=abc1234` looks like a short commit id, which can become ambiguous",
                "write the commit id in full, 40 digits",
            ),
            (
                "https://github.com/o/r?ref=v1;x",
                "kustomize cannot parse the query of `https://github.com/o/r?ref=v1;x`, ignores all of it and builds HEAD",
                PLAIN_QUERY,
            ),
            (
                "https://raw.githubusercontent.com/o/r/main/x.yaml",
                "`main` of `https://raw.githubusercontent.com/o/r/main/x.yaml` can change at any time",
                HINT_PIN,
            ),
            (
                "https://raw.githubusercontent.com/o/r/abc1234/x.yaml",
                "`abc1234` of `https://raw.githubusercontent.com/o/r/abc1234/x.yaml` looks like a short commit id, which can become ambiguous",
                "write the commit id in full, 40 digits",
            ),
            (
                "https://gist.githubusercontent.com/u/1/raw/x.yaml",
                "`https://gist.githubusercontent.com/u/1/raw/x.yaml` has no ref, so it can change at any time",
                HINT_PIN,
            ),
            (
                "https://github.com/o/r/releases/latest/download/x.yaml",
                "`releases/latest` of `https://github.com/o/r/releases/latest/download/x.yaml` can change at any time",
                HINT_PIN,
            ),
        ] {
            let findings = find(resource(text));
            assert_eq!(findings.len(), 1, "{text}");
            assert_eq!(findings[0].message, message);
            assert_eq!(findings[0].help, [help]);
            assert_eq!(under_caret(&findings[0]), format!("'{text}'"));
        }
    }

    #[test]
    fn pinned_refs_are_not_reported() {
        let commit = format!("https://github.com/o/r?ref={COMMIT}");
        for text in [
            "https://github.com/o/r//a?ref=v1.2.3",
            "git@github.com:o/r?ref=refs/tags/stable",
            "https://github.com/o/r?version=v1",
            &commit,
            "https://example.com/x.yaml",
            "https://github.com/o/r/blob/main/x.yaml",
            "https://github.com/o/r/tree/main/x",
            "https://github.com/o/r/releases/download/v1/x.yaml",
            "https://raw.githubusercontent.com/o/r/v1/main.yaml",
            "main",
            "x.yaml",
        ] {
            let scene = resource(text).file("main/kustomization.yaml", "namePrefix: a-\n").file("x.yaml", "");
            assert_eq!(find(scene), [], "{text}");
        }
    }

    #[test]
    fn every_field_is_looked_at() {
        for text in [
            "components: ['https://github.com/o/r?ref=main']",
            "generators: ['https://github.com/o/r//x?ref=main']",
            "patches: [{path: 'https://raw.githubusercontent.com/o/r/HEAD/x.yaml'}]",
            "configMapGenerator: [{name: a, files: ['k=https://example.com/latest/x']}]",
        ] {
            assert_eq!(find(Scene::of(text).config(REMOTE)).len(), 1, "{text}");
        }
        // A repository is not a file, whatever is in its path.
        let text = "patches: [{path: 'https://example.com/o/r'}]";
        assert_eq!(find(Scene::of(text).config(REMOTE)), []);
    }

    #[test]
    fn a_locked_ref_does_not_float() {
        let both = "resources: ['https://github.com/o/r?ref=main', 'https://example.com/latest/x.yaml']\n";
        let of = |text: &str| Scene::of(text).config(REMOTE);
        let locked =
            |text: &str| of(text).git("https://github.com/o/r", Some("main")).http("https://example.com/latest/x.yaml");
        assert_eq!(find(of(both)).len(), 2);
        assert_eq!(find(locked(both)), []);
        assert_eq!(find(locked(both).config("rules: {locked-reference: error}\n")), []);
        let other = "resources: ['https://github.com/o/r?ref=master']\n";
        assert_eq!(find(locked(other)).len(), 1);
        let broken = of(both).file("kustomize-localize.lock", "version: 1\nremotes: x\n");
        assert_eq!(find(broken), []);
    }

    #[test]
    fn allowing_a_remote_reference_does_not_allow_it_to_float() {
        let counting = |scene: Scene| -> Vec<(&'static str, Severity)> {
            let findings = scene.check().findings;
            let counting = findings.iter().filter(|finding| finding.allowed.is_none());
            counting.map(|finding| (finding.rule.id(), finding.severity)).collect()
        };
        let floats = [("floating-ref", Severity::Warning)];
        let remote = [("remote-reference", Severity::Error)];
        let of = |text: &str| Scene::of(&format!("resources:\n- https://github.com/o/r{text}\n"));
        for reference in ["", "?ref=main"] {
            let comment = "# kustomize-localize: allow[remote-reference] ours";
            assert_eq!(counting(of(&format!("{reference} {comment}"))), floats);
            let allow = |rest: &str| {
                let entry = format!("allow: [{{url: github.com/o, {rest}, reason: ours}}]\n");
                of(reference).config(&entry)
            };
            let by_rule = allow("refs: any, rules: [remote-reference]");
            assert_eq!(counting(by_rule), floats);
            assert_eq!(counting(allow("refs: any")), []);
            assert_eq!(counting(of(reference).config(REMOTE)), floats);
            // A reference that nothing accepts is one finding, and so is one that is accepted as a tag only.
            assert_eq!(counting(of(reference)), remote);
            // A warning does not replace an error.
            let rules = "rules: {remote-reference: warning, floating-ref: error}\n";
            let both = [("floating-ref", Severity::Error), ("remote-reference", Severity::Warning)];
            let mut found = counting(of(reference).config(rules));
            found.sort();
            assert_eq!(found, both);
            let as_tag = counting(allow("refs: tag"));
            assert_eq!(as_tag, [("stale-allow", Severity::Warning), remote[0]]);
        }
    }
}
