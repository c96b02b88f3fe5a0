//! Subtracts the findings of a base from those of a change.
//!
//! Two findings are the same if they have the same rule, path and subject. The base must also have had the roots and
//! targets that lead to it. A file that git takes for renamed has the findings of the old one. A reference to another
//! version of the same upstream is known, unless the base allows it: an `allow` entry is for the version that it names,
//! but a comment is for the one reference beside it, whatever its version. Findings without a reference are counted: as
//! many are known as the base has.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::Checked;
use crate::kustomization::FILE_NAMES;
use crate::message::finding::{Finding, Rule, Severity, Starts, Subject};
use crate::reference::{Upstream, file_pin};
use crate::tree::path;

/// The findings of a base, and each of them again as it would be after renames, so that the findings of a file that a
/// change renames are not new. `renames` maps old paths to new ones.
pub(crate) fn renamed(mut findings: Vec<Finding>, renames: &HashMap<String, String>) -> Vec<Finding> {
    let roots = renames.iter().filter(|(old, _)| FILE_NAMES.contains(&path::name(old)));
    let roots: HashMap<&str, &str> = roots.map(|(old, new)| (path::parent(old), path::parent(new))).collect();
    // A root that moves leads to its findings from the new directory, too.
    for finding in &mut findings {
        let moved = finding.starts.roots.iter().filter_map(|root| roots.get(&**root));
        let moved: Vec<String> = moved.map(|root| (*root).to_owned()).collect();
        if !moved.is_empty() {
            Arc::make_mut(&mut finding.starts).roots.extend(moved);
        }
    }
    // Keep the old path, too: git also pairs a new file with one that only resembles it.
    let moved = findings.iter().filter_map(|finding| {
        let path = renames.get(&finding.path)?.clone();
        Some(Finding { path, ..finding.clone() })
    });
    let moved: Vec<Finding> = moved.collect();
    findings.extend(moved);
    findings
}

/// The findings of a base that have one key.
struct KnownFindings {
    severity: Severity,
    /// How many of them no finding of the change was compared with yet.
    count: Cell<usize>,
    starts: Starts,
}

impl KnownFindings {
    /// Adds a finding of the base to those with the same `key`. Together they have the severity of the worst one, and
    /// all starts that lead to any of them: a finding of the change is known only if it is not worse than that.
    fn add_known(all: &mut HashMap<Key, KnownFindings>, key: Key, finding: &Finding) {
        let empty = KnownFindings { severity: finding.severity, count: Cell::default(), starts: Starts::default() };
        let old = all.entry(key).or_insert(empty);
        old.severity = finding.severity.min(old.severity);
        old.count.set(old.count.get() + 1);
        old.starts.roots.extend(finding.starts.roots.iter().cloned());
        // Targets of one name are compared by their number, because their locations may change: the longest list
        // counts.
        for (name, targets) in &finding.starts.targets {
            let known = old.starts.targets.entry(name.clone()).or_default();
            if known.len() < targets.len() {
                known.clone_from(targets);
            }
        }
    }

    /// Whether there is one more of them.
    fn remains(&self) -> bool {
        self.count.get() > 0
    }

    /// Uses up one of them.
    fn use_up(&self) {
        self.count.set(self.count.get().saturating_sub(1));
    }

    /// Whether a finding that is known from these stays, with an exception, or because of what now leads to it.
    fn keeps(&self, finding: &mut Finding) -> bool {
        // An exception that covers an old finding lets nothing new in.
        if let Some(allowed) = &mut finding.allowed {
            allowed.is_new = false;
            return true;
        }
        // A known finding matters again if something new leads to it: a target now deploys a directory that nobody
        // used.
        let Some(start) = self.new_start(&finding.starts) else { return false };
        finding.message = format!("{}, and {start} leads to it now", finding.message);
        true
    }

    /// A target or root that leads to the finding in the change, but not in the base; `None` if there is none.
    fn new_start(&self, starts: &Starts) -> Option<String> {
        let target = starts.targets.iter().find_map(|(name, targets)| {
            let count = self.starts.targets.get(name).map_or(0, Vec::len);
            targets.get(count).cloned()
        });
        let mut roots = starts.tops.difference(&self.starts.roots);
        target.or_else(|| Some(format!("`{}`", path::shown(roots.next()?))))
    }
}

/// The findings of a base, by what a finding of the change may have in common with them.
#[derive(Default)]
struct OldFindings {
    /// All findings, by their identity.
    same: HashMap<Key, KnownFindings>,
    /// Those that the base does not allow, for other versions of the same upstream.
    other_versions: HashMap<Key, KnownFindings>,
    /// Those that a comment named, and that are gone, for other versions of the same upstream.
    gone_with_comment: HashMap<Key, KnownFindings>,
}

impl OldFindings {
    /// Indexes the findings of a base. `now` are those of the change.
    fn of(old: &[Finding], now: &[Finding]) -> OldFindings {
        let mut all = OldFindings::default();
        for finding in old {
            KnownFindings::add_known(&mut all.same, identity(finding), finding);
            if finding.allowed.is_none() && finding.is_named() {
                KnownFindings::add_known(&mut all.other_versions, unversioned(finding), finding);
            }
            if has_comment(finding) {
                KnownFindings::add_known(&mut all.gone_with_comment, unversioned(finding), finding);
            }
        }
        // A finding that the change still has is not gone.
        let commented: HashSet<Key> = old.iter().filter(|finding| has_comment(finding)).map(identity).collect();
        for finding in now.iter().filter(|finding| commented.contains(&identity(finding))) {
            if let Some(gone) = all.gone_with_comment.get(&unversioned(finding)) {
                gone.use_up();
            }
        }
        all
    }

    /// The findings from which one of the change is known; `None` if it is new. A finding without a reference is known
    /// as often as the base has it.
    fn known(&self, finding: &Finding) -> Option<&KnownFindings> {
        let unversioned = unversioned(finding);
        let is_enough = |old: &&KnownFindings| finding.is_named() || old.remains();
        let same = self.same.get(&identity(finding)).filter(is_enough);
        let other_version = self.other_versions.get(&unversioned).filter(is_enough);
        let gone = self.gone_with_comment.get(&unversioned).filter(|old| old.remains());
        // An error is new if the base has it as a warning.
        [same, other_version, gone].into_iter().flatten().find(|old| old.severity <= finding.severity)
    }
}

/// The identity of a finding across a change: rule, path and subject.
type Key = (Rule, String, String);

/// The identity of a finding, as a key that outlives it.
fn identity(finding: &Finding) -> Key {
    let (rule, path, text) = finding.identity();
    (rule, path.to_owned(), text)
}

/// The identity of a finding without the version of its upstream: another ref of an upstream that the base fetches is
/// known.
fn unversioned(finding: &Finding) -> Key {
    let (rule, path, text) = identity(finding);
    let about = match &finding.subject {
        Subject::Remote(Upstream::Git { url, path, .. }) => format!("{url}\0{path}"),
        Subject::Remote(Upstream::File { url }) => {
            file_pin(url).map_or_else(|| url.clone(), |(_, version)| without_version(url, &version))
        }
        Subject::Remote(Upstream::Chart { url, chart, .. }) => format!("{url}\0{chart}"),
        // Another version of an image is other code that a build runs, so it is new.
        _ => text,
    };
    (rule, path, about)
}

/// Whether a comment in the file of the finding allows it.
fn has_comment(finding: &Finding) -> bool {
    finding.allowed.as_ref().is_some_and(|allowed| allowed.path == finding.path)
}

/// Cuts `version` out of a URL, if it is a whole segment of its path or a whole value of its query.
fn without_version(url: &str, version: &str) -> String {
    match url.match_indices(version).find(|(at, _): &(usize, &str)| {
        let rest = &url[at + version.len()..];
        url[..*at].ends_with(['/', '=']) && (rest.is_empty() || rest.starts_with(['/', '?', '&']))
    }) {
        Some((at, _)) => format!("{}\0{}", &url[..at], &url[at + version.len()..]),
        None => url.to_owned(),
    }
}

impl Checked {
    /// Drops the findings that are known from `old`, the findings of a base, whether the base allows them or not.
    /// Returns the number of dropped findings.
    ///
    /// A finding is known if the base has one that is not less severe
    ///
    /// - with the same rule, path and subject, or
    /// - about another version of the same upstream, which the base does not allow, or
    /// - about another version that a comment named, and that is gone: as many as are gone.
    ///
    /// A known finding stays if an exception allows it, but then that exception is not new; if its file could not be
    /// read completely; and if a root or target leads to it that did not in the base.
    pub(super) fn leave_out(&mut self, old: &[Finding]) -> usize {
        let old = OldFindings::of(old, &self.findings);
        let before = self.findings.len();
        self.findings.retain_mut(|finding| {
            let Some(known) = old.known(finding) else { return true };
            // Each finding uses up one of the base, also if it stays.
            known.use_up();
            finding.unread || known.keeps(finding)
        });
        before - self.findings.len()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Scene, flux, source};
    use super::{Finding, Rule};
    use crate::config::Config;

    const ID: &str = "0123456789abcdef0123456789abcdef01234567";

    /// The rules and references that are new in `new`.
    fn new(old: &str, new: &str) -> Vec<String> {
        renamed(("kustomization.yaml", old), ("kustomization.yaml", new), &[])
    }

    fn renamed(old: (&str, &str), new: (&str, &str), files: &[(&str, &str)]) -> Vec<String> {
        let check = |(path, text): (&str, &str)| Scene::default().file(path, text).check();
        let pair = |(old, new): &(&str, &str)| ((*old).to_owned(), (*new).to_owned());
        let renames = files.iter().map(pair).collect();
        let mut checked = check(new);
        let old = check(old).findings;
        checked.leave_out(&super::renamed(old, &renames));
        let findings = checked.findings.iter();
        findings.map(|one| format!("{} {}", one.rule, one.reference)).collect()
    }

    /// A kustomization of one repository at this ref.
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
            checked.leave_out(&check("?ref=v1").findings);
            let is_new = |one: &&Finding| one.allowed.is_none() && one.rule == Rule::RemoteReference;
            assert_eq!(checked.findings.iter().filter(is_new).count(), expected, "{now}");
        }
    }

    #[test]
    fn what_a_comment_covers_is_known_once() {
        const COMMENT: &str = " # kustomize-localize: allow[remote-reference] ours\n";
        let comment = |version: &str| format!("{}{COMMENT}", at(version).trim_end());
        let new_since = |old: &str, now: &str| {
            let allow = "allow: [{url: 'https://github.com/o/r//base?ref=v9', reason: why}]\n";
            let mut checked = Scene::of(now).config(allow).check();
            checked.leave_out(&Scene::of(old).config(allow).check().findings);
            let is_new =
                |one: &&Finding| one.allowed.as_ref().is_none_or(|one| one.is_new) && one.rule == Rule::RemoteReference;
            checked.findings.iter().filter(is_new).count()
        };
        let new = |now: &str| new_since(&comment("?ref=v1"), now);
        assert_eq!(new(&comment("?ref=v1")), 0);
        assert_eq!(new(&comment("?ref=v2")), 0);
        // A version that the configuration allows beside it is not the one of the comment.
        let with_allowed = |version: &str| format!("{}- https://github.com/o/r//base?ref=v9\n", comment(version));
        assert_eq!(new_since(&with_allowed("?ref=v1"), &with_allowed("?ref=v2")), 0);
        let beside = |version: &str| format!("{}- https://github.com/o/r//base?ref=v2\n", comment(version));
        assert_eq!(new(&beside("?ref=v1")), 1);
        assert_eq!(new(&beside("?ref=v3")), 1);
    }

    #[test]
    fn a_finding_is_known_for_what_led_to_it() {
        const REMOTE: &str = "resources: ['https://evil.example/x.yaml']\n";
        let sandbox = ("old/kustomization.yaml", REMOTE);
        let live = ("live/kustomization.yaml", REMOTE);
        let prod = ("prod/kustomization.yaml", "resources: [../base]\n");
        let lists = ("prod/kustomization.yaml", "resources: [../base, ../old]\n");
        let over = ("over/kustomization.yaml", "resources: [../old]\n");
        let object = |path: &str| flux(path).replace("name: apps", "name: more");
        let (to_old, to_live) = (object("old"), object("live"));
        let check = |files: &[(&str, &str)], paths: &[&str]| {
            let scene = Scene::default().file("flux/source.yaml", &source("")).file("flux/apps.yaml", &flux("prod"));
            let scene = scene.file("base/kustomization.yaml", "namePrefix: a-\n");
            let scene = files.iter().fold(scene, |scene, (path, text)| scene.file(path, text));
            let paths = paths.iter().map(|path| (*path).to_owned()).collect();
            Scene { own: Some(Config::default()), paths, ..scene }.check()
        };
        let renames = [(sandbox.0.to_owned(), live.0.to_owned())].into();
        let new = |old: &[(&str, &str)], now: &[(&str, &str)], paths: &[&str]| -> Vec<String> {
            let mut checked = check(now, paths);
            checked.leave_out(&super::renamed(check(old, &[]).findings, &renames));
            let remote = checked.findings.iter().filter(|one| one.rule == Rule::RemoteReference);
            remote.map(|one| one.message.split_once(", and ").map_or("", |(_, new)| new).to_owned()).collect()
        };
        let more = "Flux Kustomization more (flux/more.yaml:1) leads to it now";
        for (now, expected) in [
            (&[prod, sandbox][..], &[][..]),
            (&[lists, sandbox], &["Flux Kustomization apps (flux/apps.yaml:1) leads to it now"]),
            (&[prod, sandbox, ("flux/more.yaml", &to_old)], &[more]),
            (&[prod, sandbox, over], &["`over` leads to it now"]),
            (&[prod, live], &[]),
            (&[prod, live, ("flux/more.yaml", &to_live)], &[more]),
        ] {
            assert_eq!(new(&[prod, sandbox], now, &[]), expected, "{now:?}");
        }
        // A finding is not new if fewer roots lead to it, if only a part is checked, or if the object moved to another
        // file.
        assert_eq!(new(&[prod, over, sandbox], &[prod, sandbox], &[]), [""; 0]);
        assert_eq!(new(&[lists, sandbox], &[prod, sandbox], &[]), [""; 0]);
        assert_eq!(new(&[prod, over, sandbox], &[prod, over, sandbox], &["old"]), [""; 0]);
        let was = [prod, sandbox, ("flux/more.yaml", &to_old)];
        assert_eq!(new(&was, &[prod, sandbox, ("flux/other.yaml", &to_old)], &[]), [""; 0]);
    }

    #[test]
    fn a_finding_is_known_by_its_place_and_not_by_what_it_says() {
        let deployed = |references: &[&str]| {
            let lines = references.iter().map(|name| format!("- https://github.com/o/r//{name}?ref=v1\n"));
            Scene::default()
                .file("flux/source.yaml", &source(""))
                .file("flux/apps.yaml", &flux("prod"))
                .file("prod/kustomization.yaml", &format!("resources:\n{}", lines.collect::<String>()))
                .git("https://github.com/o/r", Some("v1"))
                .check()
        };
        let mut now = deployed(&["a"]);
        now.leave_out(&deployed(&["a", "base"]).findings);
        assert_eq!(now.findings, []);
        // Findings that nothing tells apart are counted: as many are known as the base had.
        let twice = |count: usize| {
            let again = "namePrefix: b-\n".repeat(count);
            Scene::of(&format!("namePrefix: a-\n{again}")).check()
        };
        for (old, now, new) in [(1, 1, 0), (1, 2, 1), (2, 1, 0), (0, 1, 1)] {
            let mut now = twice(now);
            now.leave_out(&twice(old).findings);
            assert_eq!(now.findings.len(), new, "{:?}", now.findings);
        }
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
