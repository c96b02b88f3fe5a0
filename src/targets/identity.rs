//! Which URLs are this repository, and which revisions of it are looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use url::Url;

use super::{LOCALIZED, Revision, Target, TargetDir};
use crate::config::Config;
use crate::git::LocalRepo;
use crate::message::failure::Result;
use crate::reference::Pin;
use crate::tree::git::GitTree;

/// The known names of the inspected repository.
#[derive(Debug, Clone, Default)]
pub struct Identity {
    /// Its URLs in one form, each with the directory that is its top there.
    urls: Vec<(String, String)>,
    /// Whether the configuration has a git URL of it; an `oci://` URL does not count. Otherwise the tree shows its
    /// URLs.
    is_declared: bool,
    /// The number of `urls` that are declared or remotes; the tree showed those after them.
    known: usize,
    /// Whether every URL is taken for its own, to find out which are.
    is_any: bool,
    /// The branches that may be the inspected revision.
    branches: BTreeSet<String>,
    /// The repository itself; `None` if there is only a tree.
    repo: Option<Rc<LocalRepo>>,
}

/// The deployed paths of a URL, as they exist in the tree or are missing.
#[derive(Default)]
struct Votes {
    existing: usize,
    missing: usize,
}

impl Votes {
    /// Whether the URL is this repository. By majority: one typing error must not make it another one.
    fn are_for(&self) -> bool {
        self.existing > self.missing
    }
}

/// The votes for each URL: each path that targets deploy from it votes once.
fn votes<'t>(targets: impl Iterator<Item = &'t Target>) -> BTreeMap<&'t str, Votes> {
    let mut paths: BTreeMap<(&str, &str), bool> = BTreeMap::new();
    for dir in targets.filter_map(Target::local_dir) {
        let Some(url) = dir.revision.url.as_deref() else { continue };
        // The content of an artifact is unknown, and the top exists in every repository.
        let has_content = !url.starts_with("oci://") && !dir.path.is_empty();
        // Localized files are on a branch of their own.
        let may_be_here = !dir.is_missing() || !dir.revision.is_localized();
        if has_content && may_be_here {
            paths.insert((url, &dir.path), !dir.is_missing());
        }
    }
    let mut urls: BTreeMap<&str, Votes> = BTreeMap::new();
    for ((url, _), is_here) in paths {
        let votes = urls.entry(url).or_default();
        *if is_here { &mut votes.existing } else { &mut votes.missing } += 1;
    }
    urls
}

impl Identity {
    /// The identity of a repository with the URLs of these remotes and of the configuration. `branches` are those that
    /// may be the inspected revision.
    pub fn new(
        remotes: impl IntoIterator<Item = String>,
        config: &Config,
        branches: impl IntoIterator<Item = String>,
    ) -> Self {
        let declared = config.repository.iter();
        let declared = declared.map(|repository| (normal(&repository.url), repository.path.clone()));
        let remotes = remotes.into_iter().map(|url| (normal(&url), String::new()));
        // Declared ones first: `directory_of` takes the first equal URL, so a configured `path` counts even if a remote
        // has the same URL.
        let urls: Vec<_> = declared.chain(remotes).collect();
        Identity {
            known: urls.len(),
            urls,
            is_declared: config.names_repository(),
            branches: branches.into_iter().collect(),
            ..Identity::default()
        }
    }

    /// The identity of a repository, with the configuration of the inspected tree.
    pub fn of(repo: &Rc<LocalRepo>, config: &Config) -> Result<Identity> {
        Ok(Identity { repo: Some(repo.clone()), ..Identity::new(repo.remote_urls()?, config, repo.main_branches()?) })
    }

    /// As [`Identity::of`] without the remotes of the clone, for results that must be the same in each clone: checks,
    /// and the files of all builds.
    pub fn of_any_clone(repo: &Rc<LocalRepo>, config: &Config) -> Result<Identity> {
        Ok(Identity { repo: Some(repo.clone()), ..Identity::new([], config, repo.main_branches()?) })
    }

    /// An identity that accepts every URL.
    pub(super) fn of_any_url(&self) -> Identity {
        Identity { is_any: true, repo: None, ..self.clone() }
    }

    /// Whether it accepts every URL.
    pub(super) fn is_any_url(&self) -> bool {
        self.is_any
    }

    /// Whether the configuration says which URLs are its own.
    pub(super) fn is_declared(&self) -> bool {
        self.is_declared
    }

    /// Adds the URLs that the tree itself shows: those with more deployed paths that exist than paths that are missing.
    /// `targets` are found as if every URL were this repository. Returns the targets with missing paths at URLs of
    /// which some paths exist, but not most: they are only perhaps missing.
    pub(super) fn add_urls_shown_by<'t>(&mut self, targets: impl Iterator<Item = &'t Target> + Clone) -> Vec<Target> {
        let urls = votes(targets.clone());
        let is_own = |url: &str| self.urls.iter().any(|(own, _)| own == url);
        let undecided = urls.iter().filter(|(url, votes)| votes.existing > 0 && !votes.are_for() && !is_own(url));
        let undecided: BTreeSet<&str> = undecided.map(|(url, _)| *url).collect();
        let is_perhaps_missing = |dir: &TargetDir| {
            dir.is_missing() && dir.revision.url.as_deref().is_some_and(|url| undecided.contains(url))
        };
        let missing = targets.filter(|target| target.local_dir().is_some_and(is_perhaps_missing)).cloned().collect();
        let elected = urls.into_iter().filter(|(_, votes)| votes.are_for());
        self.urls.extend(elected.map(|(url, _)| (url.to_owned(), String::new())));
        missing
    }

    /// The files at the tip of a branch, local or remote-tracking, to look for paths that the inspected tree lacks;
    /// `None` if there is no such branch, and if there is only a tree.
    pub(crate) fn tip(&self, branch: &Revision) -> Result<Option<GitTree>> {
        let (Some(repo), Some(name)) = (&self.repo, &branch.name) else {
            return Ok(None);
        };
        let refs = repo.refs(&[format!("refs/heads/{name}"), format!("refs/remotes/*/{name}")])?;
        // By name, so that the local branch comes before those of remotes.
        let Some(tip) = refs.into_values().next() else {
            return Ok(None);
        };
        let Some(commit) = repo.commit(&tip.id)? else {
            return Ok(None);
        };
        GitTree::of_commit(repo, &commit).map(Some)
    }

    /// The directory of this repository that is the top at a URL; `None` if the URL names another repository. An
    /// identity that accepts every URL gives the top of the repository.
    pub fn directory_of(&self, url: &str) -> Option<&str> {
        let url = normal(url);
        if self.is_any {
            return Some("");
        }
        let own = self.urls.iter().find(|(own, _)| *own == url);
        own.map(|(_, directory)| directory.as_str())
    }

    /// The revision that an object names for a source at a URL, and whether it may be the inspected one. `is_tag` tells
    /// whether the object calls it a tag, or the digest of an artifact.
    pub fn revision(&self, url: &str, name: Option<&str>, is_tag: bool) -> Revision {
        // Engines take `refs/heads/NAME` and `NAME` for the same branch.
        let branch = name.map(|name| name.strip_prefix("refs/heads/").unwrap_or(name));
        let is_this = match branch {
            None | Some("" | "HEAD") => true,
            Some(branch) => {
                let source = branch.strip_prefix(LOCALIZED).unwrap_or(branch);
                self.branches.contains(source)
            }
        };
        let is_fixed = is_tag
            || matches!(Pin::of(branch), Pin::Commit)
            || branch.is_some_and(|name| name.starts_with("refs/tags/"));
        // The tag of an artifact is not a tag of the repository that it is made from.
        let is_this = is_this || url.starts_with("oci://") && !is_fixed;
        let normal_url = normal(url);
        // Only a URL that the tree must show to be this repository is kept.
        let is_known = !self.is_any && self.urls.iter().take(self.known).any(|(known, _)| *known == normal_url);
        let url = Some(normal_url).filter(|_| !is_known);
        // The inspected revision changes with each commit, whatever its name looks like.
        let is_fixed = is_fixed && !is_this;
        Revision { is_fixed, name: branch.filter(|name| !name.is_empty()).map(str::to_owned), is_this, url }
    }
}

/// A URL in the one form in which equal repositories are equal: host and path in lower case, without scheme, user, port
/// of ssh, `.git` and slashes at the end. Only `oci://` stays: an artifact is not the repository. A text that is not a
/// URL is only made lower case.
fn normal(url: &str) -> String {
    let url = url.trim();
    // `git@host:org/repo`
    let url = if url.contains("://") { url.to_owned() } else { format!("ssh://{}", url.replacen(':', "/", 1)) };
    let Ok(url) = Url::parse(&url) else { return url.to_ascii_lowercase() };
    let port = url.port().filter(|_| url.scheme() != "ssh").map(|port| format!(":{port}")).unwrap_or_default();
    let kind = if url.scheme() == "oci" { "oci://" } else { "" };
    let path = url.path().trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path).trim_end_matches('/');
    format!("{kind}{}{port}/{path}", url.host_str().unwrap_or_default()).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_one_repository_are_equal() {
        let expected = "github.com/acme/fleet";
        for url in [
            "https://github.com/acme/fleet",
            "https://github.com/Acme/fleet.git",
            "https://user:secret@github.com/acme/fleet/",
            "https://github.com:443/acme/fleet.git/",
            "ssh://git@github.com/acme/fleet",
            "ssh://git@github.com:22/acme/fleet.git",
            "git@github.com:acme/fleet.git",
            "github.com:acme/fleet",
            "git@github.com:/acme/fleet",
        ] {
            assert_eq!(normal(url), expected, "{url}");
        }
        for other in [
            "https://github.com/acme/fleet2",
            "oci://github.com/acme/fleet",
            "https://github.com:8443/acme/fleet",
            "https://example.com/acme/fleet",
            "",
        ] {
            assert_ne!(normal(other), expected, "{other}");
        }
    }

    #[test]
    fn only_revisions_that_can_be_this_one_are() {
        let identity = Identity { branches: ["trunk".to_owned()].into(), ..Identity::default() };
        for (name, is_this) in [
            (None, true),
            (Some("HEAD"), true),
            (Some("main"), false),
            (Some("trunk"), true),
            (Some("refs/heads/trunk"), true),
            (Some("localized/trunk"), true),
            (Some("v1.0.0"), false),
            (Some("production"), false),
            (Some("0123456789012345678901234567890123456789"), false),
        ] {
            assert_eq!(identity.revision("", name, false).is_this, is_this, "{name:?}");
        }
    }
}
