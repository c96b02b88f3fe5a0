//! What `sources` asks of what was resolved in this run, before a lock may hold it. What a lock holds was judged when it
//! was locked.

use std::time::{Duration, SystemTime};

use super::git::Fetched;
use super::{Fetcher, Network};
use crate::config::{Config, FILE_NAME, Source};
use crate::git::{Part, Signers, date, made, object_id, open_fetched};
use crate::graph;
use crate::message::failure::{Failure, FailureKind, Result};
use crate::message::finding::Rule;
use crate::reference::Upstream;
use crate::tree::git::proven;

/// What a ref leads to: its tag object, or else its commit.
struct Object {
    kind: &'static str,
    id: String,
    bytes: Vec<u8>,
}

impl Fetcher {
    /// Refuses what lacks what `policy` asks of it. `is_lifted`: it may be young.
    pub(super) fn trusted(&self, upstream: &Upstream, policy: &Source, is_lifted: bool) -> Result<()> {
        let source = &upstream.source();
        let min_age = policy.min_age.filter(|_| !is_lifted);
        if !matches!(source, Upstream::Git { .. }) {
            let lacks = policy.signed_by.as_ref().map(|_| "signature").or(min_age.map(|_| "date"));
            return lacks.map_or(Ok(()), |what| {
                let message = format!("{source} has no {what}, which `sources` requires: it is not a repository");
                Err(Failure::new(message).hint(Config::list_before(&graph::subject(source))))
            });
        }
        for (_, (tree, repository)) in self.opened.iter().filter(|(key, _)| key.upstream() == *source) {
            let fetched = &tree.fetched;
            if let Some(signers) = &policy.signed_by {
                let signed = self.network.signer(fetched, signers).map_err(|failure| {
                    let failure = failure.context(source).because(FailureKind::Unsigned);
                    Failure { upstream: source.to_string().into(), ..failure }
                })?;
                let _ = repository.signed.set(signed);
            }
            let before = self.options.before.as_ref().and_then(|lock| lock.get(source));
            // That is no news.
            let is_known = before.is_some_and(|pinned| pinned.digest.hex() == fetched.commit);
            if let Some(least) = min_age.filter(|_| !is_known) {
                refuse_young(upstream, made(&self.network.object(fetched)?.bytes), least)?;
            }
        }
        Ok(())
    }

    /// Returns how old something is that was resolved in this run, and who signed it, as far as that is known.
    pub(crate) fn about(&self, source: &Upstream) -> Option<String> {
        let (_, (tree, repository)) = self.opened.iter().find(|(key, _)| key.upstream() == *source)?;
        let made = made(&self.network.object(&tree.fetched).ok()?.bytes)?;
        let signed = repository.signed.get();
        let signed = signed.map(|signed| format!(", signed by {signed}")).unwrap_or_default();
        Some(format!("{} old{signed}", age(since(made))))
    }
}

impl Network {
    /// Returns who signed what was resolved: its tag, which must be of that name, or else its commit.
    pub(super) fn signer(&self, fetched: &Fetched, signers: &Signers) -> Result<String> {
        let Object { kind, id, bytes } = self.object(fetched)?;
        let reference = fetched.request.reference();
        let name = reference.strip_prefix("refs/").unwrap_or(reference);
        let name = name.strip_prefix("tags/").unwrap_or(name);
        if kind == "tag" && header(&bytes, "tag") != Some(name) {
            return Err(Failure::new(format!("the tag object is not named `{name}`")));
        }
        signers.verify(&fetched.directory, kind, &id)
    }

    /// Returns the tag object of what was resolved, or else its commit.
    fn object(&self, fetched: &Fetched) -> Result<Object> {
        let Fetched { directory, commit, tag, request, .. } = fetched;
        let open = || open_fetched(directory, self.budget.memory());
        let mut repository = open()?;
        let kind = if tag.as_ref().is_some_and(|tag| tag != commit) { "tag" } else { "commit" };
        let id = object_id(tag.as_ref().unwrap_or(commit))?;
        if !repository.has_object(id) {
            // Another ref had led to the commit.
            let scratch = self.fetch_into(request, &[request.reference()], Part::NoTrees)?;
            self.cache.add(&scratch, &[directory])?;
            repository = open()?;
        }
        let bytes = proven(&repository, kind, id)?;
        // A server may say of any commit that a tag leads there.
        if kind == "tag" && header(&bytes, "object") != Some(commit) {
            let message = format!("the tag `{}` does not point at the commit {commit} directly", request.reference());
            return Err(Failure::new(message));
        }
        Ok(Object { kind, id: id.to_string(), bytes })
    }
}

/// Returns a line of the head of a tag.
fn header<'a>(tag: &'a [u8], name: &str) -> Option<&'a str> {
    let mut head = tag.split(|byte| *byte == b'\n').take_while(|line| !line.is_empty());
    let value = head.find_map(|line| line.strip_prefix(name.as_bytes())?.strip_prefix(b" "))?;
    std::str::from_utf8(value).ok()
}

fn refuse_young(upstream: &Upstream, made: Option<u64>, least: Duration) -> Result<()> {
    let source = upstream.source();
    let young = |message: String| {
        let failure = Failure::new(message).because(FailureKind::Young);
        Failure { upstream: source.to_string().into(), ..failure }
    };
    let Some(made) = made else {
        let message = format!("{source} has no date, or one before 1970 (min-age {})", age(least));
        return Err(young(message).hint(lift(upstream)));
    };
    let old = since(made);
    if old >= least {
        return Ok(());
    }
    let passes = date(made.saturating_add(least.as_secs()));
    Err(young(format!("{source} is {} old (min-age {})", age(old), age(least)))
        .hint(format!("it may be locked from {passes} on"))
        .hint(lift(upstream)))
}

/// Returns how long ago a date was: not at all if it is in the future.
fn since(made: u64) -> Duration {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    now.saturating_sub(Duration::from_secs(made))
}

/// Says how something may be locked although it is young.
fn lift(upstream: &Upstream) -> String {
    let exception = Config::exception(Rule::YoungSource, &graph::subject(upstream), "");
    let entries = Config::entries(&exception.iter().collect::<Vec<_>>()).concat();
    format!("to lock it now, add to `allow` in {FILE_NAME}: {entries}")
}

/// Returns a duration in its largest unit.
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
