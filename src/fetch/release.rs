//! The releases of a repository: its tags that are versions.

use globset::GlobMatcher;
use semver::Version;

use super::git::GitRequest;
use super::{Fetcher, helm};
use crate::config::{Config, is_one_version};
use crate::graph::{ChartRef, Remotes as _};
use crate::message::failure::{Failure, FailureKind, Result};
use crate::message::finding::Rule;
use crate::reference::{RepoSpec, Upstream};

/// How many releases are tried, the newest first.
const TRIED: usize = 20;

/// The version in the name of a tag, and the text before it. The version may lack its last numbers. `None` if the tag
/// is not a version.
pub(super) fn version(tag: &str) -> Option<(&str, Version)> {
    let (before, text) = tag.split_at(tag.find(|c: char| c.is_ascii_digit())?);
    let (numbers, rest) = text.split_at(text.find(['-', '+']).unwrap_or(text.len()));
    let missing = 2_usize.checked_sub(numbers.matches('.').count())?;
    let version = Version::parse(&format!("{numbers}{}{rest}", ".0".repeat(missing))).ok()?;
    Some((before.strip_suffix('v').unwrap_or(before), version))
}

impl Fetcher {
    /// The newest release after the one that a reference names, among those that match `pattern` and may be locked; and
    /// why newer ones may not. No release if the reference does not name a version, or if no newer one may be locked.
    pub(crate) fn newest(
        &mut self,
        spec: &RepoSpec,
        pattern: &GlobMatcher,
        config: &Config,
    ) -> Result<(Option<String>, Vec<Failure>)> {
        let reference = spec.reference.as_deref().unwrap_or_default();
        let short = ["refs/tags/", "tags/"].iter().find_map(|start| reference.strip_prefix(start)).unwrap_or(reference);
        // A branch or a commit has no newer release.
        let Some((before, current)) = version(short) else { return Ok((None, Vec::new())) };
        // The user's file names the repository, so it may get the user's login.
        self.network.reach.add_user_url(spec.clone_spec().exposed());
        let listing = self.network.list(&GitRequest::new(spec.clone_spec(), None, None), &["refs/tags/*"])?;
        let mut newer = Vec::new();
        for tag in listing.tags().filter(|tag| pattern.is_match(tag)) {
            // A pre-release, or a tag with another prefix, is another series that nobody asked for.
            if let Some((other, version)) = version(tag)
                && other == before
                && version.pre.is_empty()
                && version > current
            {
                newer.push((version, tag));
            }
        }
        // The newest one comes first, because the first that may be locked ends the search.
        newer.sort_by(|(a, _), (b, _)| b.cmp(a));
        let mut refused = Vec::new();
        for (_, tag) in newer.into_iter().take(TRIED) {
            // A prefix such as `refs/tags/` stays as the user wrote it.
            let written = reference.replace(short, tag);
            match self.resolve_lockable(&RepoSpec { reference: Some(written.clone()), ..spec.clone() }, config) {
                Ok(()) => return Ok((Some(written), refused)),
                // An older release may have what `sources` requires.
                Err(failure) if matches!(failure.kind, FailureKind::Young | FailureKind::Unsigned) => {
                    refused.push(failure)
                }
                Err(failure) => return Err(failure),
            }
        }
        Ok((None, refused))
    }

    /// The version that `update --to` writes for a chart: the newest release that matches `pattern`, and why others
    /// were not considered. The version is `None` if none is newer than the current one, if the reference has a range,
    /// or if the chart is in a registry.
    pub(crate) fn newest_chart(
        &self,
        chart: &ChartRef,
        pattern: &GlobMatcher,
    ) -> Result<(Option<String>, Vec<Failure>)> {
        let Some((_, now)) = version(&chart.version).filter(|_| is_one_version(&chart.version)) else {
            return Ok((None, Vec::new()));
        };
        chart.refuse_unsafe()?;
        // helm has no command for it, and the API of registries needs logins that only helm has.
        if chart.is_oci() {
            let refused = Failure::new(format!("{}: a registry does not list its versions", chart.upstream()));
            return Ok((None, vec![refused.hint("name the version: `--to VERSION`")]));
        }
        // The user's file names it, so that it may get the user's login.
        self.network.reach.add_user_url(chart.repo.exposed());
        let versions = helm::versions(&self.network, chart)?.into_iter();
        let matching = versions.filter(|version| is_one_version(version) && pattern.is_match(version));
        let newer = matching.filter_map(|text| {
            let version = version(&text)?.1;
            (version.pre.is_empty() && version > now).then_some((version, text))
        });
        Ok((newer.max().map(|(_, newest)| newest), Vec::new()))
    }

    /// Resolves a repository that is not in the user's files yet: a remote TARGET, or a release for `update --to`.
    /// Refuses one that `sources` of the configuration does not accept, as the walk refuses those in files.
    pub(crate) fn resolve_lockable(&mut self, spec: &RepoSpec, config: &Config) -> Result<()> {
        let upstream = Upstream::git(spec);
        if !config.lists(&upstream) {
            let message = format!("{upstream} is not in `sources`, so it may not be locked");
            return Err(Failure::new(message).hint(Config::hint_to_list(&upstream)));
        }
        self.repository(spec)?;
        let exception = config.reason(Rule::YoungSource, &upstream.subject());
        config.source(&upstream).map_or(Ok(()), |policy| self.trust(&upstream, policy, exception.is_some()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_versions_after_what_stands_before_them() {
        for (tag, expected) in [
            ("v1.2.3", Some(("", "1.2.3"))),
            ("1.2", Some(("", "1.2.0"))),
            ("v4", Some(("", "4.0.0"))),
            ("kustomize/v5.8.1", Some(("kustomize/", "5.8.1"))),
            ("helm-chart-4.10.1", Some(("helm-chart-", "4.10.1"))),
            ("v1.2-rc.1", Some(("", "1.2.0-rc.1"))),
            ("v1.2.3+build.5", Some(("", "1.2.3+build.5"))),
            ("2024.01.31", None),
            ("1.2.3.4", None),
            ("v1.x", None),
            ("main", None),
            ("0123456789abcdef0123456789abcdef01234567", None),
        ] {
            let parsed = version(tag).map(|(before, version)| (before, version.to_string()));
            assert_eq!(parsed, expected.map(|(before, version)| (before, version.to_owned())), "{tag}");
        }
    }
}
