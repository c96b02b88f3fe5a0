//! What a change did not bring: the findings that its base has, too.
//!
//! A finding is known by rule, path and what it is about. A file that git takes for a renamed one has the findings of the
//! old, and a reference to another version of the same thing is known; but not of what the base allows: an entry is for
//! what it names, and a comment for the one reference that it stands beside, whichever version that has.

use std::collections::HashMap;

use super::{Checked, Known};
use crate::message::finding::{Finding, Rule, Severity, Subject};
use crate::reference::file_pin;
use crate::tree::path;

/// Returns the findings of the base as they would be found now, where `renames` has the new path by the old one.
pub(crate) fn renamed(findings: Vec<Finding>, renames: &HashMap<String, String>) -> Vec<Finding> {
    let both = findings.into_iter().flat_map(|finding| {
        let moved = renames.get(&finding.path).map(|now| {
            // Messages about whole files name them.
            let [was, is] = [&finding.path, now].map(|file| format!("`{}", path::parent(file)));
            Finding { message: finding.message.replace(&was, &is), path: now.clone(), ..finding.clone() }
        });
        // A file that only resembles the renamed one may still be there.
        std::iter::once(finding).chain(moved)
    });
    both.collect()
}

/// What is the same before and after a change: rule, path, and what it is about, whichever version that names.
type Key<'a> = (Rule, &'a str, String);

fn key(finding: &Finding) -> Key<'_> {
    let (rule, path, text) = finding.identity();
    let about = match &finding.subject {
        Subject::Local | Subject::Path { .. } | Subject::Program { .. } | Subject::Image { .. } => text,
        Subject::Git { url, path, .. } => format!("{url}\0{path}"),
        Subject::Http { url } => file_pin(url).map_or_else(|| url.clone(), |(_, version)| without(url, &version)),
        Subject::Helm { url, chart, .. } => format!("{url}\0{chart}"),
    };
    (rule, path, about)
}

/// Returns whether the comment beside it covers it.
fn has_comment(finding: &Finding) -> bool {
    finding.allowed.as_ref().is_some_and(|one| one.path == finding.path)
}

/// Returns a URL without the part of its path or query that is this version.
fn without(url: &str, version: &str) -> String {
    let is_whole = |(at, _): &(usize, &str)| {
        let rest = &url[at + version.len()..];
        url[..*at].ends_with(['/', '=']) && (rest.is_empty() || rest.starts_with(['/', '?', '&']))
    };
    match url.match_indices(version).find(is_whole) {
        Some((at, _)) => format!("{}\0{}", &url[..at], &url[at + version.len()..]),
        None => url.to_owned(),
    }
}

impl Checked {
    /// Leaves out what `old`, the findings of `base`, holds already, allowed there or not. What an exception of this
    /// change covers of it is not new either, and stays as allowed.
    pub(super) fn leave_out(&mut self, old: &[Finding], base: &str) {
        let mut known: HashMap<Key<'_>, Severity> = HashMap::new();
        // How many that a comment covers are gone from the base: as many are there in another version.
        let mut bumped: HashMap<(Rule, String, String), (isize, Severity)> = HashMap::new();
        let owned = |(rule, path, about): Key<'_>| (rule, path.to_owned(), about);
        for finding in old {
            let other = finding.allowed.is_none().then(|| key(finding));
            for key in other.into_iter().chain([finding.identity()]) {
                let severity = known.entry(key).or_insert(finding.severity);
                *severity = finding.severity.min(*severity);
            }
            if has_comment(finding) {
                let (count, severity) = bumped.entry(owned(key(finding))).or_insert((0, finding.severity));
                *count += 1;
                *severity = finding.severity.min(*severity);
            }
        }
        for finding in self.findings.iter().filter(|one| known.contains_key(&one.identity())) {
            if let Some((count, _)) = bumped.get_mut(&owned(key(finding))) {
                *count -= 1;
            }
        }
        let before = self.findings.len();
        self.findings.retain_mut(|finding| {
            let is_covered = finding.allowed.as_ref().is_some_and(|one| !one.is_new);
            // What was a warning is new as an error.
            let is_as_bad = |key| known.get(&key).is_some_and(|severity| *severity <= finding.severity);
            let is_known = is_as_bad(finding.identity())
                || is_as_bad(key(finding))
                || bumped.get_mut(&owned(key(finding))).is_some_and(|(count, severity)| {
                    *count -= 1;
                    *count >= 0 && *severity <= finding.severity
                });
            if is_covered || finding.unread || !is_known {
                return true;
            }
            let allowed = finding.allowed.as_mut();
            allowed.map(|allowed| allowed.is_new = false).is_some()
        });
        self.known = Some(Known { rev: base.to_owned(), left_out: before - self.findings.len() });
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Scene;
    use super::{Finding, Rule};

    const ID: &str = "0123456789abcdef0123456789abcdef01234567";

    /// Returns the rules and references that are new in `new`.
    fn new(old: &str, new: &str) -> Vec<String> {
        renamed(("kustomization.yaml", old), ("kustomization.yaml", new), &[])
    }

    fn renamed(old: (&str, &str), new: (&str, &str), files: &[(&str, &str)]) -> Vec<String> {
        let check = |(path, text): (&str, &str)| Scene::default().file(path, text).check();
        let pair = |(old, new): &(&str, &str)| ((*old).to_owned(), (*new).to_owned());
        let renames = files.iter().map(pair).collect();
        let mut checked = check(new);
        let old = check(old).findings;
        checked.leave_out(&super::renamed(old, &renames), "HEAD");
        let findings = checked.findings.iter();
        findings.map(|one| format!("{} {}", one.rule, one.reference)).collect()
    }

    /// Returns a kustomization of one repository at this ref.
    fn at(reference: &str) -> String {
        format!("resources:\n- https://github.com/o/r//base{reference}\n")
    }

    #[test]
    fn another_version_is_not_new() {
        let id = format!("?ref={ID}");
        let versions = [id.as_str(), "?ref=v1.2.0", "?ref=main", ""];
        for old in versions {
            for now in versions {
                assert_eq!(new(&at(old), &at(now)), [""; 0], "{old} {now}");
            }
        }
        // Another directory is another thing.
        let other = at("?ref=v1").replace("base", "other");
        assert_eq!(new(&at("?ref=v1"), &other).len(), 1);
    }

    #[test]
    fn what_the_base_allows_is_known_in_no_other_version() {
        let allow = "allow: [{url: 'https://github.com/o/r//base?ref=v1', reason: why}]\n";
        let check = |version: &str| Scene::of(&at(version)).config(allow).check();
        for (now, expected) in [("?ref=v1", 0), ("?ref=v2", 1), ("?ref=main", 1), ("", 1)] {
            let mut checked = check(now);
            checked.leave_out(&check("?ref=v1").findings, "HEAD");
            let is_new = |one: &&Finding| one.allowed.is_none() && one.rule == Rule::RemoteReference;
            assert_eq!(checked.findings.iter().filter(is_new).count(), expected, "{now}");
        }
    }

    #[test]
    fn what_a_comment_covers_is_known_once() {
        const COMMENT: &str = " # kustomize-localize: allow[remote-reference] ours\n";
        let comment = |version: &str| format!("{}{COMMENT}", at(version).trim_end());
        let new = |now: &str| {
            let mut checked = Scene::of(now).check();
            checked.leave_out(&Scene::of(&comment("?ref=v1")).check().findings, "HEAD");
            let is_new =
                |one: &&Finding| one.allowed.as_ref().is_none_or(|one| one.is_new) && one.rule == Rule::RemoteReference;
            checked.findings.iter().filter(is_new).count()
        };
        assert_eq!(new(&comment("?ref=v1")), 0);
        assert_eq!(new(&comment("?ref=v2")), 0);
        let beside = |version: &str| format!("{}- https://github.com/o/r//base?ref=v2\n", comment(version));
        assert_eq!(new(&beside("?ref=v1")), 1);
        assert_eq!(new(&beside("?ref=v3")), 1);
    }

    #[test]
    fn versions_of_files_and_charts_are_recognized_as_well() {
        let file = |version: &str| format!("resources: ['https://raw.githubusercontent.com/o/r/{version}/x.yaml']\n");
        assert_eq!(new(&file("main"), &file("v1.0.0")), [""; 0]);
        assert_eq!(new(&file("v1.0.0"), &file(ID)), [""; 0]);
        assert!(!new(&file("main"), &file("main/deep")).is_empty());
        let chart =
            |version: &str| format!("helmCharts: [{{name: a, repo: 'https://c.example', version: {version}}}]\n");
        assert_eq!(new(&chart("1.2.3"), &chart("1.2.4")), [""; 0]);
        assert_eq!(new(&chart("^1.2.3"), &chart("1.2.4")), [""; 0]);
    }

    #[test]
    fn what_moved_is_not_new() {
        let text = "resources: [gone.yaml, 'https://github.com/o/r?ref=v1']\n";
        let old = ("apps/a/kustomization.yaml", text);
        let now = ("teams/a/kustomization.yaml", text);
        assert!(!renamed(old, now, &[]).is_empty());
        let file = [(old.0, now.0)];
        assert_eq!(renamed(old, now, &file), [""; 0]);
        // Only what git takes for a renamed file is one.
        assert!(!renamed(old, now, &[("apps/a/x.yaml", "teams/a/x.yaml")]).is_empty());
    }
}
