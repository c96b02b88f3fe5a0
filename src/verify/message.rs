//! The messages of a commit's history, which hold the other copy of each record.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::{Kind, Verifier};
use crate::git::{CommitId, LocalRepo, object_id};
use crate::message::failure::{Failure, Result, short};
use crate::record::history::records::{self, Found, Recorded};
use crate::record::history::tip;
use crate::record::history::trees::{differences, entries, lookup};
use crate::record::{Digest, LOCK_NAME, Lock, Trailers};
use crate::tree::{Entry, path};

/// The history of a commit.
pub(super) struct History<'a> {
    here: &'a Rc<LocalRepo>,
    repository: &'a gix::Repository,
    rev: &'a str,
    id: &'a CommitId,
    /// The newest record of all.
    newest: Found,
    /// Whether a missing record was reported.
    is_missing: bool,
}

impl<'a> History<'a> {
    pub(super) fn of(
        here: &'a Rc<LocalRepo>,
        repository: &'a gix::Repository,
        (rev, id): (&'a str, &'a CommitId),
        locks: &[String],
    ) -> Result<Self> {
        let newest = records::newest(repository, &id.commit, locks, |_| true)?;
        Ok(History { here, repository, rev, id, newest, is_missing: false })
    }

    /// Returns whether the newest record is that of a repository in place.
    pub(super) fn is_in_place(&self) -> bool {
        matches!(&self.newest, Found::Record(newest) if newest.trailers.target.into.is_none())
    }

    /// Compares a lock and its directory with the message that holds the same record, which it returns. On a
    /// branch that is not ours (`is_other`) there may be none, as after a squash: then the lock is the record.
    pub(super) fn message(
        &mut self,
        verifier: &mut Verifier,
        directory: &str,
        lock: &Lock,
        is_other: bool,
    ) -> Result<Option<Box<Recorded>>> {
        let name = path::join(directory, LOCK_NAME);
        let is_it = |trailers: &Trailers| is_about(trailers, directory);
        let locks = std::slice::from_ref(&name);
        match records::newest(self.repository, &self.id.commit, locks, is_it)? {
            Found::Record(record) => {
                self.lock(verifier, directory, lock, &record)?;
                self.tree(verifier, directory, &record)?;
                self.source(verifier, &record)?;
                Ok(Some(record))
            }
            Found::Unreadable { commit, failure } => {
                unreadable(verifier, &commit, &failure);
                Ok(None)
            }
            Found::Nothing => {
                if lock.trailers && !is_other {
                    self.missing(verifier, &name)?;
                }
                Ok(None)
            }
        }
    }

    /// Adds that no message holds a record that there must be.
    fn missing(&mut self, verifier: &mut Verifier, name: &str) -> Result<()> {
        let is_first = !std::mem::replace(&mut self.is_missing, true);
        match tip::cut_off(self.here, self.rev)? {
            Some(failure) => verifier.failures.extend(is_first.then_some(failure)),
            None => {
                let message = "no commit message has its record";
                verifier.add(Kind::Trailers, name, message.to_owned());
            }
        }
        Ok(())
    }

    fn lock(&self, verifier: &mut Verifier, directory: &str, lock: &Lock, record: &Recorded) -> Result<()> {
        let Recorded { commit, trailers, .. } = record;
        let name = path::join(directory, LOCK_NAME);
        let by = short(commit);
        let listed = lock.remote_trailers();
        for remote in listed.symmetric_difference(&trailers.remotes) {
            let (here, there) = if listed.contains(remote) { ("lists", "does not") } else { ("does not list", "does") };
            let message = format!("{here} {} at {}, but the message of {by} {there}", remote.0, remote.1);
            verifier.add(Kind::Trailers, &name, message);
        }
        if let Some(target) = &lock.target
            && (*target != trailers.target.target || lock.scope != trailers.target.scope)
        {
            let message = format!(
                "has the target `{target}`, but the message of {by} records `{}`, or another scope",
                trailers.target.target
            );
            verifier.add(Kind::Trailers, &name, message);
        }
        Ok(())
    }

    /// Compares the directory with the tree that the message names: in place that is the whole repository.
    fn tree(&mut self, verifier: &mut Verifier, directory: &str, record: &Recorded) -> Result<()> {
        let Recorded { commit, trailers, .. } = record;
        let (repository, by) = (self.repository, short(commit));
        let whole = object_id(&self.id.tree)?;
        let found = match directory {
            "" => Some(whole),
            _ => lookup(repository, whole, directory)?.map(|(_, id)| id),
        };
        let recorded = object_id(trailers.tree.hex())?;
        let Some(found) = found.filter(|found| *found != recorded) else {
            return Ok(());
        };
        if entries(repository, recorded).is_ok() {
            let places = differences(repository, recorded, found, &BTreeSet::new())?;
            let places = places.iter().map(|place| path::join(directory, place));
            self.changed(verifier, places, by);
        }
        // Without the tree of the message, only that it differs can be reported.
        let is_told = |told: &super::Difference| {
            told.kind != Kind::Trailers && !told.path.is_empty() && path::is_in(&told.path, directory)
        };
        if !verifier.differences.iter().any(is_told) {
            let what = match directory {
                "" => "the repository ",
                _ => "",
            };
            let message =
                format!("{what}has the tree {found}, but the message of {by} records {}", trailers.tree.hex());
            verifier.add(Kind::Tree, directory, message);
        }
        Ok(())
    }

    /// Finds a source that the commit of a record does not come from: it is neither a parent nor contained in one.
    fn source(&mut self, verifier: &mut Verifier, record: &Recorded) -> Result<()> {
        let Recorded { commit, trailers, .. } = record;
        let by = short(commit);
        let Some(source) = trailers.source.as_ref().map(Digest::hex) else {
            verifier.add(Kind::Trailers, "", format!("the message of {by} does not name the source commit"));
            return Ok(());
        };
        // As it was written: a shallow clone has cut the parents off.
        let bytes = match self.repository.find_object(object_id(commit)?) {
            Ok(mut found) => std::mem::take(&mut found.data),
            Err(_) => self.here.object("commit", commit)?.unwrap_or_default(),
        };
        let text = String::from_utf8_lossy(&bytes);
        let header = text.lines().take_while(|line| !line.is_empty());
        let mut parents = header.filter_map(|line| line.strip_prefix("parent "));
        if parents.any(|parent| parent == source) {
            return Ok(());
        }
        if self.here.commit(source)?.is_some() && self.here.is_ancestor(source, commit)? {
            return Ok(());
        }
        if self.here.is_shallow()? {
            verifier.failures.push(
                Failure::new(format!(
                    "this shallow clone cannot tell whether {by} contains the source commit {source} of its message"
                ))
                .hint("fetch more of it: git fetch --deepen=100")
                .hint("or all of it: git fetch --unshallow"),
            );
            return Ok(());
        }
        verifier.add(
            Kind::Trailers,
            "",
            format!("the message of {by} names the source commit {source}, which {by} does not contain"),
        );
        Ok(())
    }

    /// Adds what differs from the localized commit, unless it is reported already.
    fn changed(&mut self, verifier: &mut Verifier, places: impl IntoIterator<Item = String>, by: &str) {
        let told: BTreeSet<String> = verifier.differences.iter().map(|one| one.path.clone()).collect();
        for place in places {
            let below = format!("{place}/");
            let mut next = told.range(below.clone()..);
            let is_told = path::and_above(&place).any(|above| told.contains(above))
                || next.next().is_some_and(|next| next.starts_with(&below));
            if !is_told {
                verifier.add(Kind::Tree, &place, format!("differs from the tree recorded in the message of {by}"));
            }
        }
    }

    /// Finds what no lock covers: a missing record, and what else differs from the newest localized commit.
    pub(super) fn whole(&mut self, verifier: &mut Verifier, locks: &[(String, Lock)], is_ours: bool) -> Result<()> {
        let newest = match std::mem::replace(&mut self.newest, Found::Nothing) {
            Found::Record(newest) => newest,
            Found::Unreadable { commit, failure } => {
                unreadable(verifier, &commit, &failure);
                return Ok(());
            }
            Found::Nothing => {
                if is_ours && !self.is_missing {
                    self.missing(verifier, "")?;
                }
                return Ok(());
            }
        };
        let Some(directory) = &newest.trailers.target.into else {
            return Ok(());
        };
        let is_there = matches!(verifier.tree.entry(directory)?, Some(Entry::Directory));
        let name = path::join(directory, LOCK_NAME);
        let has_lock = locks.iter().any(|(other, _)| other == directory);
        if is_there && !has_lock {
            let message = "is gone, or no longer lists files".to_owned();
            verifier.add(Kind::Lock, &name, message);
        }
        self.beside_copies(verifier, &newest)
    }

    /// Finds what lies beside the copies and is not what the source holds, in the commit of a record or since.
    fn beside_copies(&mut self, verifier: &mut Verifier, newest: &Recorded) -> Result<()> {
        let Recorded { commit, trailers, .. } = newest;
        let by = short(commit);
        let Some(ours) = self.here.commit(commit)? else {
            return Ok(());
        };
        let (before, after) = (object_id(&ours.tree)?, object_id(&self.id.tree)?);
        let since = differences(self.repository, before, after, &BTreeSet::new())?;
        self.changed(verifier, since, by);
        match tip::against_source(self.here, self.repository, before, trailers)? {
            Some(places) => self.changed(verifier, places, by),
            None if self.here.is_shallow()? => verifier.failures.push(
                Failure::new(format!(
                    "cannot compare the files beside the copies: this shallow clone lacks the source commit of {by}"
                ))
                .hint("fetch more of it: git fetch --deepen=100"),
            ),
            // A message that names no commit of this history is reported.
            None => {}
        }
        Ok(())
    }
}

/// Adds that a message does not hold the record that it held.
fn unreadable(verifier: &mut Verifier, commit: &str, failure: &Failure) {
    let message = format!("cannot read the record in the message of {}: {}", short(commit), failure.message);
    verifier.add(Kind::Trailers, "", message);
}

/// Returns whether a message describes what lies in a directory.
fn is_about(trailers: &Trailers, directory: &str) -> bool {
    match &trailers.target.into {
        Some(into) => into == directory,
        None => trailers.target.into.is_none() && directory.is_empty(),
    }
}
