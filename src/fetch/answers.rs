//! Asks for the present state of the upstreams in a lock. Only the lock is used, and nothing is kept.
//!
//! A question that several entries share is asked once: a repository for all of its refs, a file or chart for its
//! bytes. All questions are asked in parallel, and each has the whole time limit. Only a branch that moved needs a
//! second question: its history.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::git::{GitRequest, Listing};
use super::history::REWRITTEN;
use super::progress::SIDE_BY_SIDE;
use super::trust::refuse_other_signer;
use super::{Network, helm, release};
use crate::config::{Config, is_one_version};
use crate::graph::ChartRef;
use crate::kustomization;
use crate::message::failure::{Failure, FailureKind, Result};
use crate::message::redact;
use crate::record::answer::{UpdateKind, UpstreamState, UpstreamVerdict};
use crate::record::{Digest, Pinned, sha256_hex};
use crate::reference::{Pin, RepoSpec, Upstream, file_pin, names_page, refuse_unsafe};

/// The prefix of the full name of a tag.
const TAGS: &str = "refs/tags/";

/// An entry of a lock.
type LockEntry<'a> = (&'a Upstream, &'a Pinned);

impl Network {
    /// The present state of each entry, in their order, including its signature if the configuration demands one.
    /// `verify --upstream` reports these states.
    pub(crate) fn states(&self, config: &Config, entries: &[LockEntry<'_>]) -> Vec<UpstreamState> {
        // Entries of one repository are asked for together. Those that differ only in their submodules share a
        // question.
        let mut by_repository = BTreeMap::<String, BTreeMap<String, LockEntry<'_>>>::new();
        for entry @ (source, _) in entries {
            let repository = match source {
                Upstream::Git { url, .. } => url.clone(),
                _ => source.to_string(),
            };
            by_repository.entry(repository).or_default().insert(question(entry), *entry);
        }
        let groups: Vec<_> = by_repository.into_values().collect();
        let answers = self.progress.each(
            SIDE_BY_SIDE,
            &groups,
            |group| group.values().next().map(|(source, _)| redact::url(source.url())).unwrap_or_default(),
            |_, group| self.ask_group(group),
        );
        let answers: HashMap<String, UpstreamState> = answers.into_iter().flatten().collect();
        entries.iter().map(|entry| self.with_signature(config, *entry, answers[&question(entry)].clone())).collect()
    }

    /// Verifies the signature of the locked commit, or of its tag, if the configuration asks for one. Only for an
    /// upstream that is as locked or moved forward: any other state already is a reason to look.
    fn with_signature(&self, config: &Config, (source, pinned): LockEntry<'_>, answer: UpstreamState) -> UpstreamState {
        let signers = config.signers(source, pinned.paths.keys());
        let is_there = matches!(answer.verdict, UpstreamVerdict::Ok | UpstreamVerdict::Updated);
        if signers.is_empty() || !is_there {
            return answer;
        }
        if !matches!(source, Upstream::Git { .. }) {
            return UpstreamState::unsigned(answer, "it is not a repository, so it has no signature");
        }
        // A tag has a signature of its own, so a ref at the locked commit is fetched by its name. A branch that moved
        // on is fetched by the locked commit.
        let by_name = answer.verdict == UpstreamVerdict::Ok && is_floating(source);
        let commit = Some(pinned.digest.hex()).filter(|_| !by_name);
        let fetched = match self.fetch_one(&GitRequest::new(source.url(), source.reference(), commit)) {
            Ok(fetched) => fetched,
            Err(failure) => return UpstreamState::unreachable(failure),
        };
        let verified = signers.into_values().try_for_each(|signers| {
            let signed = self.signer(&fetched, signers, pinned.signed.as_deref())?;
            refuse_other_signer(&signed, pinned)
        });
        match verified {
            Ok(()) => answer,
            Err(failure) if failure.kind == FailureKind::Unsigned => UpstreamState::unsigned(answer, failure.message),
            Err(failure) => UpstreamState::unreachable(failure),
        }
    }

    /// The states of entries of one repository, one file, or one chart, each with its question. All refs of a
    /// repository are listed with one request.
    fn ask_group(&self, group: &BTreeMap<String, LockEntry<'_>>) -> Vec<(String, UpstreamState)> {
        let sources = group.values().map(|(source, _)| *source);
        let floating: Vec<&Upstream> =
            sources.filter(|source| is_floating(source) && refuse_unsafe_upstream(source).is_ok()).collect();
        let listing = floating.first().map(|first| {
            // The user's lock names the URL, so it gets the user's login.
            self.reach.add_user_url(first.url());
            let names: BTreeSet<&str> = floating.iter().map(|source| source.reference().unwrap_or("HEAD")).collect();
            self.list(&GitRequest::new(first.url(), None, None), &Vec::from_iter(names))
        });
        let answers = group
            .iter()
            .map(|(question, (source, pinned))| (question.clone(), self.answer(source, pinned, listing.as_ref())));
        answers.collect()
    }

    /// The state of one entry. `listing` has the refs of its repository, if any of them can move.
    fn answer(&self, source: &Upstream, pinned: &Pinned, listing: Option<&Result<Listing>>) -> UpstreamState {
        if let Err(failure) = refuse_unsafe_upstream(source) {
            return UpstreamState::unreachable(failure);
        }
        // For the requests of a file, a chart or a single commit as well.
        self.reach.add_user_url(source.url());
        let answer = self.uncompared_state(source, pinned, listing).unwrap_or_else(failed);
        if answer.now.as_ref() == Some(&pinned.digest) {
            return UpstreamState::ok(pinned.digest.clone());
        }
        // A branch is meant to move, a version is not: `update` takes a moved version only if it is named.
        let is_tag = listing.is_some_and(|listing| is_tag(source, listing));
        if answer.update == UpdateKind::Any && is_version(source, || is_tag) {
            return UpstreamState { update: UpdateKind::ByName, ..answer };
        }
        answer
    }

    /// The state of one entry, which does not say yet that it is as locked: the caller compares the digests.
    fn uncompared_state(
        &self,
        source: &Upstream,
        pinned: &Pinned,
        listing: Option<&Result<Listing>>,
    ) -> Result<UpstreamState> {
        match (source, listing) {
            (Upstream::Git { .. }, Some(listing)) if is_floating(source) => {
                self.state_of_ref(source, pinned, listing.as_ref().map_err(Clone::clone)?)
            }
            // A commit id cannot move, but the server may not have the commit any more.
            (Upstream::Git { url, reference, .. }, _) => self.state_of_commit(url, reference.as_deref()),
            (Upstream::File { url }, _) => self.state_of_file(url),
            (Upstream::Chart { url, chart, version }, _) => {
                let chart = ChartRef {
                    repo: url.clone().into(),
                    name: chart.clone(),
                    version: version.clone().unwrap_or_default(),
                    // Without a version helm takes a pre-release only with `--devel`, which the lock does not record.
                    devel: version.is_none() && pinned.resolved.as_ref().is_some_and(|version| version.contains('-')),
                };
                self.state_of_chart(&chart, pinned)
            }
            (Upstream::Image { .. }, _) => Err(Failure::new("an image is not locked")),
        }
    }

    /// The state of a repository at a commit id, which the server is asked for.
    fn state_of_commit(&self, url: &str, id: Option<&str>) -> Result<UpstreamState> {
        let id = id.unwrap_or_default().to_ascii_lowercase();
        let now = self.resolve_on_server(&GitRequest::new(url, Some(&id), None), &id)?;
        Ok(UpstreamState::moved(Digest::GitCommit(now), format!("`{id}` resolves to that commit")))
    }

    /// The state of a repository at a ref, which may have moved since it was locked.
    fn state_of_ref(&self, git: &Upstream, pinned: &Pinned, listing: &Listing) -> Result<UpstreamState> {
        let reference = git.reference().unwrap_or("HEAD");
        // The server has listed its refs, so a missing one is the state of the upstream, not a failure to ask.
        let Some((name, id)) = listing.find(reference) else {
            return Ok(UpstreamState::gone(match reference {
                "HEAD" => "the repository has no HEAD: it is empty".to_owned(),
                reference => format!("the repository no longer has the ref `{reference}`"),
            }));
        };
        let now = Digest::GitCommit(id.clone());
        // Only a ref that moved needs its history, which costs another request. The caller sees that this one has not.
        if id == pinned.digest.hex() {
            return Ok(UpstreamState::moved(now, ""));
        }
        // A tag should not move at all, so it does not matter whether it moved forward.
        if let Some(tag) = name.strip_prefix(TAGS) {
            return Ok(UpstreamState::moved(now, format!("the tag `{tag}` points to another commit")));
        }
        let name = match name.strip_prefix("refs/heads/") {
            Some(branch) => format!("the branch `{branch}`"),
            None => format!("`{name}`"),
        };
        let request = GitRequest::new(git.url(), git.reference(), Some(&id));
        Ok(match self.history(&request, pinned.digest.hex(), &id) {
            Ok(history) if history.is_forward => UpstreamState {
                verdict: UpstreamVerdict::Updated,
                commits: Some(history.commits),
                newest: history.newest,
                ..UpstreamState::moved(now, format!("{name} moved forward"))
            },
            Ok(_) => UpstreamState::moved(now, format!("{name} {REWRITTEN}")),
            Err(failure) => {
                let failure = failure.context(format_args!("{name} moved, but its history cannot be compared"));
                UpstreamState { now: Some(now), ..UpstreamState::unreachable(failure) }
            }
        })
    }

    /// The state of a file, which is downloaded: a server gives no other proof that its content is the same. The caller
    /// compares the digest with the lock; `why` explains a difference.
    fn state_of_file(&self, url: &str) -> Result<UpstreamState> {
        let bytes = self.client.get(url)?;
        let now = Digest::Sha256(sha256_hex(&bytes));
        // A server that demands a login may answer with a page instead of an error.
        if kustomization::looks_like_html(&bytes) && !names_page(url) {
            return Ok(UpstreamState::unusable(Some(now), "it is a web page, possibly a login"));
        }
        let why = match file_pin(url) {
            Some((Pin::Tag | Pin::Commit, version)) => {
                format!("`{version}` should never change, but its content differs")
            }
            _ => "its content differs".to_owned(),
        };
        Ok(UpstreamState::moved(now, why))
    }

    /// The state of a chart, which is pulled: the archive tells which version its range means today. The caller
    /// compares the digest with the lock.
    fn state_of_chart(&self, chart: &ChartRef, pinned: &Pinned) -> Result<UpstreamState> {
        chart.refuse_unsafe()?;
        let bytes = helm::pull(self, chart)?;
        let now = Digest::Sha256(sha256_hex(&bytes));
        let version = match helm::unpack(chart, &bytes) {
            Ok(archive) => archive.resolved,
            Err(failure) => return Ok(UpstreamState::unusable(Some(now), failure.message)),
        };
        let written = Some(&chart.version).filter(|version| !version.is_empty());
        let old = pinned.resolved.as_ref().or(written);
        // If the bytes differ, but not the version, the repository replaced the archive.
        let Some(old) = old.filter(|old| **old != version) else {
            return Ok(UpstreamState::moved(now, "a different archive of the same version"));
        };
        // Only a range may move by itself.
        let floats = !is_one_version(&chart.version);
        Ok(UpstreamState {
            verdict: if floats && is_newer(&version, old) { UpstreamVerdict::Updated } else { UpstreamVerdict::Moved },
            ..UpstreamState::moved(now, format!("it is now version {version}, was {old}"))
        })
    }
}

/// Whether an upstream never changes by convention: a tag, a version of a chart, or a URL with a tag or a commit. Only
/// the server knows whether the ref of a repository `is_tag`, so the caller tells.
pub(super) fn is_version(source: &Upstream, is_tag: impl FnOnce() -> bool) -> bool {
    match source {
        Upstream::Git { .. } => is_tag(),
        Upstream::File { url } => file_pin(url).is_some_and(|(pin, _)| matches!(pin, Pin::Tag | Pin::Commit)),
        Upstream::Chart { version, .. } => version.as_deref().is_some_and(is_one_version),
        Upstream::Image { .. } => false,
    }
}

/// Whether an upstream is a repository at a tag, as the server lists it.
fn is_tag(source: &Upstream, listing: &Result<Listing>) -> bool {
    let found = listing.as_ref().ok().zip(source.reference()).and_then(|(listing, name)| listing.find(name));
    found.is_some_and(|(name, _)| name.starts_with(TAGS))
}

/// Whether an upstream is a repository at a ref that can move.
fn is_floating(source: &Upstream) -> bool {
    matches!(source, Upstream::Git { .. } if source.pin() != Pin::Commit)
}

/// The question about an entry. Entries with equal questions share one answer: submodules do not change the commit.
fn question((source, pinned): &LockEntry<'_>) -> String {
    let mut source = (*source).clone();
    if let Upstream::Git { submodules, .. } = &mut source {
        *submodules = true;
    }
    format!("{source} {}", pinned.digest.hex())
}

/// Refuses an upstream in a lock that must not be requested. A lock comes with a pull request, so anybody can write a
/// URL into it, even one that no kustomization can reference, such as a command for git's `ext::` transport.
pub(super) fn refuse_unsafe_upstream(source: &Upstream) -> Result<()> {
    let url = source.url();
    if redact::has_placeholder(url) {
        return Err(Failure::new(format!("cannot check {url}: its secret is not stored in the lock"))
            .hint("keep secrets out of URLs: store them in a credential helper of git"));
    }
    // A file or a chart never becomes an argument of git. The functions that fetch them refuse what is unsafe there.
    let Upstream::Git { reference, .. } = source else {
        return Ok(());
    };
    // The URL is parsed as a reference to the top directory of its repository, as in a kustomization, and must come out
    // unchanged.
    let text = format!("{url}//.");
    let mut spec = RepoSpec::parse(&text)
        .ok()
        .filter(|spec| spec.clone_spec().shown() == url)
        .ok_or_else(|| refused_url(url, "a kustomization cannot reference such a repository"))?;
    spec.reference.clone_from(reference);
    refuse_unsafe(&text, Some(&spec)).map_err(|reason| refused_url(url, &reason))
}

/// The failure of a URL in a lock that must not be requested.
fn refused_url(url: &str, why: &str) -> Failure {
    Failure::new(format!("{url} is refused: {why}")).hint("find out how it came into the lock")
}

/// The state of an upstream that could not be fetched.
fn failed(failure: Failure) -> UpstreamState {
    match failure.kind {
        kind if kind.is_gone() => UpstreamState::gone(failure.message),
        FailureKind::Unusable => UpstreamState::unusable(None, failure.message),
        _ => UpstreamState::unreachable(failure),
    }
}

/// Whether a version of a chart is newer than another one. `false` if one of them is not a version.
fn is_newer(version: &str, than: &str) -> bool {
    release::version(version).zip(release::version(than)).is_some_and(|((_, version), (_, than))| version > than)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        for (version, than, expected) in [
            ("1.10.0", "1.9.3", true),
            ("1.2.3", "1.2.3", false),
            ("1.2.2", "1.2.3", false),
            ("v2.0.0", "1.2.3", true),
            ("1.2.3", "1.2.3-rc.1", true),
            ("1.2.3-rc.1", "1.2.3", false),
            ("1.2.3-rc.2", "1.2.3-rc.1", true),
            ("0.0.1", "1.2.3+build", false),
        ] {
            assert_eq!(is_newer(version, than), expected, "{version} after {than}");
        }
    }

    #[test]
    fn only_versions_that_a_kustomization_can_name_are_asked() {
        let git = |url: &str, reference: Option<&str>| Upstream::Git {
            url: url.to_owned(),
            reference: reference.map(str::to_owned),
            submodules: true,
            path: String::new(),
        };
        for url in [
            "https://github.com/acme/lib",
            "https://github.com/acme/lib.git",
            "https://gitlab.com/a/b/c",
            "https://dev.azure.com/org/project/_git/repo",
            "https://localhost:8443/git/acme/base",
            "git@github.com:acme/lib",
            "ssh://git@example.com:2222/acme/lib.git",
            "file:///srv/acme/lib",
            "https://git-codecommit.eu-west-1.amazonaws.com/v1/repos/lib",
        ] {
            for reference in [None, Some("v1"), Some("feature/a+b"), Some("größe")] {
                refuse_unsafe_upstream(&git(url, reference)).unwrap();
            }
        }
        for (url, reference) in [
            ("ext::sh -c id", None),
            ("/srv/acme/lib", None),
            ("../lib", None),
            ("git://example.com/acme/lib", None),
            ("https://-host/acme/lib", None),
            ("https://example.com/../lib", None),
            ("https://github.com/acme/lib", Some("a..b")),
            ("https://github.com/acme/lib", Some("--upload-pack=id")),
        ] {
            refuse_unsafe_upstream(&git(url, reference)).unwrap_err();
        }
    }
}
