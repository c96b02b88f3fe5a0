//! Checks the demands of `sources` on content from the network or the cache, even if a lock has it: anybody can edit a
//! lock. Content of the tip of a localized branch was checked when it came there.

use std::time::{Duration, SystemTime};

use gix::ObjectId;
use gix::object::Kind;
use serde::Serialize;

use super::answers::refuse_unsafe_upstream;
use super::git::{Fetched, GitRequest};
use super::{Fetcher, HINT_RUN_ONLINE, Network};
use crate::config::{Config, FILE_NAME, SourcePolicy};
use crate::git::{FetchFilter, Signers, date, made, object_id, open_fetched};
use crate::message::failure::{Failure, FailureKind, Result, command};
use crate::message::finding::Rule;
use crate::record::Pinned;
use crate::reference::{Pin, Upstream};
use crate::tree::git::read_proven;

/// The age and the signer of an upstream, for reviewers.
#[derive(Debug, Serialize)]
pub(crate) struct Provenance {
    pub date: String,
    /// The time since `date`, in words.
    #[serde(skip)]
    pub age: String,
    /// `None` if `sources` requires no signature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signed: Option<String>,
}

/// The object that a ref names: its tag object, or else its commit.
struct GitObject {
    kind: &'static str,
    id: String,
    bytes: Vec<u8>,
}

impl Fetcher {
    /// Refuses an upstream that lacks what `policy` demands. With `is_lifted`, it may be younger than `min-age`.
    pub(super) fn trusted(&self, upstream: &Upstream, policy: &SourcePolicy, is_lifted: bool) -> Result<()> {
        let source = &upstream.source();
        let min_age = policy.min_age.filter(|_| !is_lifted);
        // Only a commit has a date and a signature, so no other upstream can meet a demand for one.
        if !matches!(source, Upstream::Git { .. }) {
            let lacks = policy.signed_by.as_ref().map(|_| "signature").or(min_age.map(|_| "date"));
            return lacks.map_or(Ok(()), |lacking| {
                let message = format!("{source} has no {lacking}, which `sources` requires: it is not a repository");
                Err(Failure::new(message).hint(Config::hint_to_list_first(source)))
            });
        }
        // A repository that comes from a tip is not among these: it was checked when it came there.
        for (_, (tree, repository)) in self.opened.iter().filter(|(key, _)| Upstream::git(key) == *source) {
            let fetched = &tree.fetched;
            if let Some(signers) = &policy.signed_by {
                let recorded = repository.signed.get().map(String::as_str);
                let _ = repository.signed.set(self.signer(source, fetched, signers, recorded)?);
            }
            let locked_before = self.options.before.as_ref().and_then(|lock| lock.get(source));
            // A commit in the old lock is not new.
            let is_known = locked_before.is_some_and(|pinned| pinned.digest.hex() == fetched.commit);
            if let Some(least) = min_age.filter(|_| !is_known) {
                let object = self.network.dated_object(fetched)?;
                refuse_young(upstream, made(&object.bytes), least)?;
            }
        }
        Ok(())
    }

    /// Verifies that one of `signers` has signed the commit that a lock has for a repository, or its tag, and that it
    /// is the signer in the lock, if the lock names one. The commit is read from the cache or fetched.
    pub(crate) fn verify(&self, source: &Upstream, pinned: &Pinned, signers: &Signers) -> Result<()> {
        refuse_unsafe_upstream(source)?;
        self.network.reach.add_user_url(source.url());
        let request = GitRequest::new(source.url(), source.reference(), Some(pinned.digest.hex()));
        let signed = self.signer(source, &self.network.fetch_one(&request)?, signers, pinned.signed.as_deref())?;
        refuse_other_signer(&signed, pinned).map_err(|failure| failure.context(source).hint(restore_hint(source)))
    }

    /// The signer of a fetched commit, verified once per run. `recorded` is the signer in the lock: fails if the
    /// signature is by another key.
    fn signer(
        &self,
        source: &Upstream,
        fetched: &Fetched,
        signers: &Signers,
        recorded: Option<&str>,
    ) -> Result<String> {
        let key = (source.clone(), fetched.commit.clone(), signers.file.clone());
        // Verifying starts a program, and many references share a commit.
        if let Some(known) = self.verified.borrow().get(&key) {
            return known.clone();
        }
        // Another key than the recorded one may mean that somebody replaced the release, even if both keys are allowed.
        // The name of a key may change.
        let signed = self.network.signer(fetched, signers, recorded).and_then(|signed| match recorded {
            Some(recorded) if !is_same_key(&signed, recorded) => Err(other_signer(&signed, recorded)),
            _ => Ok(signed),
        });
        let signed = signed.map_err(|failure| {
            let failure = Failure { distrusted: Some(source.clone().into()), ..failure.context(source) };
            if recorded.is_some() && failure.kind == FailureKind::Unsigned {
                return failure.hint(restore_hint(source));
            }
            failure
        });
        self.verified.borrow_mut().insert(key, signed.clone());
        signed
    }

    /// The age and the signer of an upstream that this run fetched or opened from the cache. `None` for any other, and
    /// if it has no date: the report then lacks both.
    pub(crate) fn provenance(&self, source: &Upstream) -> Option<Provenance> {
        let (_, (tree, repository)) = self.opened.iter().find(|(key, _)| Upstream::git(key) == *source)?;
        let made = made(&self.network.dated_object(&tree.fetched).ok()?.bytes)?;
        let signed = repository.signed.get().cloned();
        Some(Provenance { date: date(made), age: age_in_words(made), signed })
    }
}

impl Network {
    /// The signer of a fetched ref: of its tag object, which must have that name, or else of its commit. `recorded` is
    /// the signer in the lock.
    pub(super) fn signer(&self, fetched: &Fetched, signers: &Signers, recorded: Option<&str>) -> Result<String> {
        let of_commit = self.signer_of(fetched, signers);
        let is_recorded =
            of_commit.as_ref().is_ok_and(|signed| recorded.is_none_or(|recorded| is_same_key(signed, recorded)));
        if fetched.tag.is_some() || is_recorded {
            return of_commit;
        }
        // A commit that was fetched by its id may have been locked by a tag, so either may be signed by the recorded
        // key.
        match self.tag_object(fetched)? {
            Some(tag) => self.signer_of(&Fetched { tag: Some(tag), ..fetched.clone() }, signers),
            None if self.offline => of_commit.map_err(|failure| failure.hint(HINT_RUN_ONLINE)),
            None => of_commit,
        }
    }

    /// The signer of the tag object of a resolved ref, or else of its commit. Fails if the tag object has another name
    /// than the ref: a server could give the signed tag of an older release.
    fn signer_of(&self, fetched: &Fetched, signers: &Signers) -> Result<String> {
        let GitObject { kind, id, bytes } = self.dated_object(fetched)?;
        let name = tag_name(fetched);
        if kind == "tag" && header(&bytes, "tag") != Some(name) {
            let message = format!("the tag object is not named `{name}`");
            return Err(Failure::new(message).because(FailureKind::Unsigned));
        }
        signers.verify(&fetched.directory, kind, &id)
    }

    /// The id of the tag object that the ref of a request names, to verify its signature. `None` if the ref is not an
    /// annotated tag, or offline if the cache does not have it.
    fn tag_object(&self, fetched: &Fetched) -> Result<Option<String>> {
        let Fetched { directory, commit, request, .. } = fetched;
        // A commit id and HEAD name no tag.
        if Pin::of(request.reference.as_deref()) == Pin::Commit || request.reference.is_none() {
            return Ok(None);
        }
        let name = tag_name(fetched);
        // A repository in the cache has no refs, so its tag objects are searched for one of this name and commit.
        let repository = open_fetched(directory, self.budget.memory())?;
        let mut cached = repository.objects.iter().into_iter().flatten().flatten();
        if let Some(id) = cached.find(|id: &ObjectId| {
            // An object that cannot be read is not the tag, so that the server is asked below.
            let is_tag = repository.find_header(*id).is_ok_and(|header| header.kind() == Kind::Tag);
            let bytes = if is_tag { read_proven(&repository, "tag", *id).unwrap_or_default() } else { Vec::new() };
            header(&bytes, "tag") == Some(name) && header(&bytes, "object") == Some(commit)
        }) {
            return Ok(Some(id.to_string()));
        }
        // The caller then goes by the signature of the commit.
        if self.offline {
            return Ok(None);
        }
        let full = format!("refs/tags/{name}");
        let listing = self.list(request, &[&full])?;
        // A lightweight tag names the commit itself.
        Ok(listing.id(&full).filter(|id| id != commit))
    }

    /// The object that has the date and the signature of a resolved ref: its tag object, or else its commit.
    fn dated_object(&self, fetched: &Fetched) -> Result<GitObject> {
        let Fetched { directory, commit, tag, request, .. } = fetched;
        let mut repository = open_fetched(directory, self.budget.memory())?;
        let kind = if tag.as_ref().is_some_and(|tag| tag != commit) { "tag" } else { "commit" };
        let id = object_id(tag.as_ref().unwrap_or(commit))?;
        if !repository.has_object(id) {
            // The commit was fetched by another ref, so the tag object did not come with it.
            let scratch = self.fetch_refs(request, &[request.reference()], FetchFilter::NoTrees)?;
            self.cache.add_objects(&scratch, &[directory])?;
            repository = open_fetched(directory, self.budget.memory())?;
        }
        let bytes = read_proven(&repository, kind, id)?;
        // A server may claim that a tag names any commit.
        if kind == "tag" && header(&bytes, "object") != Some(commit) {
            let message = format!("the tag `{}` does not point at the commit {commit} directly", request.reference());
            return Err(Failure::new(message).because(FailureKind::Unsigned));
        }
        Ok(GitObject { kind, id: id.to_string(), bytes })
    }
}

/// The name of the tag that a ref may be.
fn tag_name(fetched: &Fetched) -> &str {
    let reference = fetched.request.reference();
    let name = reference.strip_prefix("refs/").unwrap_or(reference);
    name.strip_prefix("tags/").unwrap_or(name)
}

/// Fails if a lock names another signer than the signature of its commit does, perhaps with the same key: reviewers
/// read the name.
pub(super) fn refuse_other_signer(signed: &str, pinned: &Pinned) -> Result<()> {
    let recorded = pinned.signed.as_deref().filter(|recorded| *recorded != signed);
    recorded.map_or(Ok(()), |recorded| Err(other_signer(signed, recorded)))
}

fn other_signer(signed: &str, recorded: &str) -> Failure {
    let message = format!("expected a signature by {recorded}, found one by {signed}");
    Failure::new(message).because(FailureKind::Unsigned)
}

/// Whether two signers, as [`Signers::verify`] returns them, have the same key.
fn is_same_key(a: &str, b: &str) -> bool {
    a.split(' ').next() == b.split(' ').next()
}

/// The hint for an entry of a lock that names another signer than the signature does.
fn restore_hint(source: &Upstream) -> String {
    format!("restore its entry in the lock, or {}", relock(source))
}

/// The hint to lock an upstream again.
fn relock(source: &Upstream) -> String {
    format!("lock its current version: {}", command("git kustomize-localize update", [source.url()]))
}

/// The value of a header line of a tag object.
fn header<'a>(tag: &'a [u8], name: &str) -> Option<&'a str> {
    let mut head = tag.split(|byte| *byte == b'\n').take_while(|line| !line.is_empty());
    let value = head.find_map(|line| line.strip_prefix(name.as_bytes())?.strip_prefix(b" "))?;
    std::str::from_utf8(value).ok()
}

/// Refuses an upstream that was `made` (in seconds since 1970) less than `least` ago. A malicious release is often
/// noticed within days, so `min-age` gives others the time to notice.
fn refuse_young(upstream: &Upstream, made: Option<u64>, least: Duration) -> Result<()> {
    let source = upstream.source();
    let Some(made) = made else {
        let message = format!("{source} has no date, or one before 1970 (min-age {})", age(least));
        return Err(young(&source, message).hint(lift(upstream)));
    };
    if since(made).is_some_and(|old| old >= least) {
        return Ok(());
    }
    let passes = date(made.saturating_add(least.as_secs()));
    Err(young(&source, format!("{source} is {} (min-age {})", age_in_words(made), age(least)))
        .hint(format!("it may be locked from {passes} on"))
        .hint(lift(upstream)))
}

/// The failure of an upstream that is younger than `min-age`.
fn young(source: &Upstream, message: String) -> Failure {
    let failure = Failure::new(message).because(FailureKind::Young);
    Failure { distrusted: Some(source.clone().into()), ..failure }
}

/// The time since a date. `None` if the date is in the future.
fn since(made: u64) -> Option<Duration> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    now.checked_sub(Duration::from_secs(made))
}

/// The age of something with this date, as the end of a sentence.
fn age_in_words(made: u64) -> String {
    since(made).map_or_else(|| "dated in the future".to_owned(), |old| format!("{} old", age(old)))
}

/// The hint for an upstream that may be locked although it is young.
fn lift(upstream: &Upstream) -> String {
    let exception = Config::exception(Rule::YoungSource, &upstream.subject(), "");
    let entries = Config::entries(&exception.iter().collect::<Vec<_>>()).concat();
    format!("to lock it now, add to `allow` in {FILE_NAME}: {entries}")
}

/// A duration in its largest unit.
fn age(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let units = [(24 * 60 * 60, "day"), (60 * 60, "hour"), (60, "minute")];
    let (count, unit) = units
        .into_iter()
        .find(|(unit, _)| seconds >= *unit)
        .map_or((seconds, "second"), |(unit, name)| (seconds / unit, name));
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_shown_in_their_largest_unit() {
        for (seconds, expected) in [
            (0, "0 seconds"),
            (59, "59 seconds"),
            (60, "1 minute"),
            (7199, "1 hour"),
            (172_800, "2 days"),
            (604_800, "7 days"),
        ] {
            assert_eq!(age(Duration::from_secs(seconds)), expected);
        }
    }
}
