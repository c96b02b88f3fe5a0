//! `floating-ref`: a remote reference that can mean something else tomorrow.
//!
//! Reported in addition to `remote-reference`: that something is remote and that it moves are two things, and allowing
//! one (by a comment, by `allow` with a policy for refs, by a severity) does not allow the other. A locked reference
//! does not float. Files below `localized-files` are skipped: their refs cannot be changed here.
//!
//! Offline, only the text can tell ([`Pin`], [`reference::file_pin`]).

use super::Context;
use super::remote_reference::PLAIN_QUERY;
use super::remotes::RemoteUse;
use super::rule::{Allow, Definition, Find};
use crate::finding::{Finding, Rule, Severity};
use crate::redact;
use crate::reference::{self, Pin};

pub(super) const DEFINITION: Definition = Definition {
    id: "floating-ref",
    severity: Severity::Error,
    is_off: false,
    summary: "a remote reference that can mean something else tomorrow",
    explanation: r"
A remote reference names a branch, an abbreviated commit, a query that kustomize drops, or nothing at all: what it means
can change without any change here. Name a tag or a full commit id, or lock it, which holds the commit:

```yaml
resources:
- https://github.com/acme/bases//web?ref=main     # floats
- https://github.com/acme/bases//web?ref=v1.2.0   # does not
```

Without a network only the text tells. A ref without a digit is a branch (`main`, `latest`), one with a digit a tag
(`v1.2.3`, `2024-01-31`), unless it begins as a branch does (`feature/`, `fix/`, `dependabot/` …), leaves a number open
(`v1.x`), or names a line of releases (`release-1.2`); `refs/heads/…` and `refs/tags/…` decide it. The URL of a file floats
when it has such a ref where GitHub, GitLab and Bitbucket have it, is that of `releases/latest`, or has a directory
`main`, `master`, `trunk`, `develop`, `HEAD` or `latest`.

This rule is reported beside [`remote-reference`](remote_reference.rs): a reference that is allowed to be remote is not
yet allowed to move.
",
    allow: Allow::Always,
    in_localized_files: false,
    find: Find::Here(find),
};

fn find(context: &Context<'_>) -> Vec<Finding> {
    if context.broken_lock {
        return Vec::new();
    }
    context
        .remotes
        .iter()
        .filter(|one| one.ambiguity.is_none() && one.locked.is_none())
        .filter(|one| !context.is_owned(context.path(one.edge.from)))
        // The page of a branch is not a file, and `remote-reference` suggests what to write.
        .filter(|one| reference::web_page(one.wanted.text.exposed()).is_none())
        .filter_map(|one| {
            let (message, help) = tell(one)?;
            Some(context.at_reference(Rule::FloatingRef, one.edge, message, vec![help.to_owned()]))
        })
        .collect()
}

fn tell(one: &RemoteUse<'_>) -> Option<(String, &'static str)> {
    const FULL_ID: &str = "write the commit id in full, 40 digits";
    const NAME_ONE: &str = "name a tag or a full commit id, or lock it";
    let shown = one.shown();
    let pin = one.pin().filter(|pin| pin.floats())?;
    let Some(spec) = one.repository() else {
        let (_, version) = reference::file_pin(one.wanted.text.exposed())?;
        let version = redact::url(&version);
        if pin == Pin::ShortCommit {
            return Some((
                format!(
                    "`{shown}` is a file that moves: `{version}` looks like a short commit id, which may soon be that of others too"
                ),
                FULL_ID,
            ));
        }
        if version.is_empty() {
            return Some((
                format!("`{shown}` is a file that moves: it names no revision"),
                "write the full id of its revision after `raw/`, or lock it",
            ));
        }
        return Some((
            format!("`{shown}` is a file that moves: `{version}` is whatever it is today"),
            "name a tag, a release or a full commit id in its place, or lock it",
        ));
    };
    let reference = redact::url(spec.reference.as_deref().unwrap_or_default());
    Some(match pin {
        Pin::None if spec.query_dropped => (
            format!(
                "kustomize cannot parse the query of `{shown}`, ignores all of it and builds HEAD"
            ),
            PLAIN_QUERY,
        ),
        Pin::None => (
            format!("`{shown}` names no ref: it is whatever HEAD is today"),
            "add `?ref=TAG-OR-COMMIT`, or lock it",
        ),
        Pin::ShortCommit => (
            format!(
                "`{reference}` of `{shown}` looks like a short commit id, which git does not fetch"
            ),
            FULL_ID,
        ),
        _ => (
            format!("`{reference}` of `{shown}` looks like a branch: it is whatever it is today"),
            NAME_ONE,
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{COMMIT, Scene, shown, under_caret};
    use super::*;

    fn find(scene: Scene) -> Vec<Finding> {
        scene.find(Rule::FloatingRef)
    }

    fn resource(text: &str) -> Scene {
        Scene::of(&format!("resources:\n- '{text}'\n"))
    }

    #[test]
    fn floating_refs_are_reported_with_the_reason() {
        for (text, message, help) in [
            (
                "https://github.com/o/r//a",
                "`https://github.com/o/r//a` names no ref: it is whatever HEAD is today",
                "add `?ref=TAG-OR-COMMIT`, or lock it",
            ),
            (
                "git@github.com:o/r?ref=main",
                "`main` of `git@github.com:o/r?ref=main` looks like a branch: it is whatever it is today",
                "name a tag or a full commit id, or lock it",
            ),
            (
                "github.com/o/r?ref=feature/v2",
                "`feature/v2` of `github.com/o/r?ref=feature/v2` looks like a branch: it is whatever it is today",
                "name a tag or a full commit id, or lock it",
            ),
            (
                "https://github.com/o/r?ref=abc1234",
                "`abc1234` of `https://github.com/o/r?ref=abc1234` looks like a short commit id, which git does not fetch",
                "write the commit id in full, 40 digits",
            ),
            (
                "https://github.com/o/r?ref=v1;x",
                "kustomize cannot parse the query of `https://github.com/o/r?ref=v1;x`, ignores all of it and builds HEAD",
                PLAIN_QUERY,
            ),
            (
                "https://raw.githubusercontent.com/o/r/main/x.yaml",
                "`https://raw.githubusercontent.com/o/r/main/x.yaml` is a file that moves: `main` is whatever it is today",
                "name a tag, a release or a full commit id in its place, or lock it",
            ),
            (
                "https://raw.githubusercontent.com/o/r/abc1234/x.yaml",
                "`https://raw.githubusercontent.com/o/r/abc1234/x.yaml` is a file that moves: `abc1234` looks like a short commit id, which may soon be that of others too",
                "write the commit id in full, 40 digits",
            ),
            (
                "https://gist.githubusercontent.com/u/1/raw/x.yaml",
                "`https://gist.githubusercontent.com/u/1/raw/x.yaml` is a file that moves: it names no revision",
                "write the full id of its revision after `raw/`, or lock it",
            ),
            (
                "https://github.com/o/r/releases/latest/download/x.yaml",
                "`https://github.com/o/r/releases/latest/download/x.yaml` is a file that moves: `releases/latest` is whatever it is today",
                "name a tag, a release or a full commit id in its place, or lock it",
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
            let scene = resource(text)
                .file("main/kustomization.yaml", "namePrefix: a-\n")
                .file("x.yaml", "");
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
            assert_eq!(find(Scene::of(text)).len(), 1, "{text}");
        }
        // A repository is not a file, whatever is in its path.
        let text = "patches: [{path: 'https://example.com/o/r'}]";
        assert_eq!(find(Scene::of(text)), []);
    }

    #[test]
    fn a_locked_ref_does_not_float() {
        let both =
            "resources: ['https://github.com/o/r?ref=main', 'https://example.com/latest/x.yaml']\n";
        let locked = |text: &str| {
            Scene::of(text)
                .git("https://github.com/o/r", Some("main"))
                .http("https://example.com/latest/x.yaml")
        };
        assert_eq!(find(Scene::of(both)).len(), 2);
        assert_eq!(find(locked(both)), []);
        assert_eq!(find(locked(both).config("locked: error\n")), []);
        let other = "resources: ['https://github.com/o/r?ref=master']\n";
        assert_eq!(find(locked(other)).len(), 1);
        let broken = Scene::of(both).file("kustomize-localize.lock", "version: 1\nremotes: x\n");
        assert_eq!(find(broken), []);
    }

    #[test]
    fn allowing_a_remote_reference_does_not_allow_it_to_float() {
        let fails = |scene: Scene| -> Vec<&'static str> {
            let findings = scene.check().findings;
            let failing = findings.iter().filter(|finding| finding.fails());
            failing.map(|finding| finding.rule.id()).collect()
        };
        let text = "resources:\n- https://github.com/o/r?ref=main # kustomize-localize: allow[remote-reference] ours\n";
        assert_eq!(fails(Scene::of(text)), ["floating-ref"]);
        let allow = |refs: &str| {
            resource("https://github.com/o/r?ref=main").config(&format!(
                "allow: [{{url: github.com/o, refs: {refs}, reason: ours}}]\n"
            ))
        };
        assert_eq!(fails(allow("tag")), ["remote-reference", "floating-ref"]);
        assert_eq!(fails(allow("branch")), [""; 0]);
        let off =
            resource("https://github.com/o/r?ref=main").config("rules: {remote-reference: off}\n");
        assert_eq!(fails(off), ["floating-ref"]);
    }

    #[test]
    fn localized_files_are_skipped() {
        let place = "localized-files/a/kustomization.yaml";
        let text = "resources: ['https://github.com/o/r?ref=main']\n";
        let mut scene = Scene::default().file(place, text);
        scene.lock.files.push(crate::record::StoredFile {
            path: place.into(),
            sha256: crate::record::sha256_hex(text.as_bytes()),
            ..Default::default()
        });
        assert_eq!(find(scene), []);
        assert_eq!(find(Scene::default().file(place, text)).len(), 1);
    }

    #[test]
    fn no_secret_is_shown() {
        for text in [
            "https://u:hunter2@github.com/o/r?ref=main",
            "https://u:hunter2@example.com/latest/x.yaml?token=hunter2",
            "https://u:hunter2@github.com/o/r?token=hunter2;",
        ] {
            let findings = find(resource(text));
            assert_eq!(findings.len(), 1, "{text}");
            assert!(!shown(&findings).contains("hunter2"), "{findings:?}");
        }
    }
}
