//! The messages of a commit's history, which have the other copy of each record.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::{DifferenceKind, Verifier, unlike_tree};
use crate::git::{CommitId, LocalRepo, object_id};
use crate::message::failure::{Failure, Result, short};
use crate::record::history::records::{self, RecordLookup, Recorded};
use crate::record::history::tip;
use crate::record::history::trees::{differences, entries, lookup};
use crate::record::{Digest, LOCK_NAME, Lock, Trailers};
use crate::tree::{Entry, path};

/// The message about the lock of a copy that cannot be compared.
const LOCK_GONE: &str = "is gone, or no longer lists files";

/// The history of a commit.
pub(super) struct History<'a> {
    repo: &'a Rc<LocalRepo>,
    repository: &'a gix::Repository,
    rev: &'a str,
    id: &'a CommitId,
    /// The newest record of the history.
    newest: RecordLookup,
    /// Whether a missing record was reported.
    is_missing: bool,
}

impl<'a> History<'a> {
    /// Reads the newest record among the messages that `id`, the commit that `rev` names, contains. `locks` are the
    /// paths of its locks.
    pub(super) fn of(
        repo: &'a Rc<LocalRepo>,
        repository: &'a gix::Repository,
        (rev, id): (&'a str, &'a CommitId),
        locks: &[String],
    ) -> Result<Self> {
        let newest = records::newest(repository, &id.commit, locks, |_| true)?;
        Ok(History { repo, repository, rev, id, newest, is_missing: false })
    }

    /// Whether the newest record is about a repository that was localized in place.
    pub(super) fn is_in_place(&self) -> bool {
        matches!(&self.newest, RecordLookup::Record(newest) if newest.trailers.target.new_dir.is_none())
    }

    /// The newest record, if it is about rendered files, which are verified in another way; otherwise `None`.
    pub(super) fn rendered(&self) -> Option<&Recorded> {
        match &self.newest {
            RecordLookup::Record(newest) if newest.trailers.target.rendered => Some(newest),
            _ => None,
        }
    }

    /// Compares a lock and its directory with the message that has the same record, and returns that record; `None` if
    /// there is no message, or none that can be read. With `may_lack_message` the commit is on a branch of somebody
    /// else, where a squash may have removed the message.
    pub(super) fn compare_record(
        &mut self,
        verifier: &mut Verifier,
        directory: &str,
        lock: &Lock,
        may_lack_message: bool,
    ) -> Result<Option<Box<Recorded>>> {
        let name = path::join(directory, LOCK_NAME);
        let locks = std::slice::from_ref(&name);
        match records::newest(self.repository, &self.id.commit, locks, |trailers| is_about(trailers, directory))? {
            RecordLookup::Record(record) => {
                compare_lock(verifier, directory, lock, &record);
                self.compare_tree(verifier, directory, &record)?;
                self.compare_source(verifier, &record)?;
                Ok(Some(record))
            }
            // An older message is not taken instead, because the newest one counts.
            RecordLookup::Unreadable { commit, failure } => {
                unreadable(verifier, &commit, &failure);
                Ok(None)
            }
            RecordLookup::Nothing => {
                // Without a message the lock is the only record. It says whether a message must have it, too.
                if lock.trailers && !may_lack_message {
                    self.report_missing(verifier, &name)?;
                }
                Ok(None)
            }
        }
    }

    /// Reports that no message has a record although one must: as a difference, or in a shallow clone, which may lack
    /// that message, as a failure.
    fn report_missing(&mut self, verifier: &mut Verifier, name: &str) -> Result<()> {
        // A shallow clone is one reason for all locks, so it is reported once.
        let is_first = !std::mem::replace(&mut self.is_missing, true);
        match tip::cut_off(self.repo, self.rev)? {
            Some(failure) => verifier.failures.extend(is_first.then_some(failure)),
            None => {
                verifier.add(DifferenceKind::Trailers, name, "no commit message has its record");
            }
        }
        Ok(())
    }

    /// Compares the directory with the tree that the message names.
    fn compare_tree(&self, verifier: &mut Verifier, directory: &str, record: &Recorded) -> Result<()> {
        let Recorded { commit, trailers, .. } = record;
        let (repository, by) = (self.repository, short(commit));
        let whole = object_id(&self.id.tree)?;
        // In place the record covers the whole repository.
        let tree = match directory {
            "" => Some(whole),
            _ => lookup(repository, whole, directory)?.map(|(_, id)| id),
        };
        let recorded = object_id(trailers.tree.hex())?;
        // Equal ids prove every file at once. The directory exists, because the lock is in it.
        let Some(tree) = tree.filter(|tree| *tree != recorded) else {
            return Ok(());
        };
        // With the recorded tree, each path that differs is reported.
        if entries(repository, recorded).is_ok() {
            let paths = differences(repository, recorded, tree, &BTreeSet::new())?;
            let paths = paths.iter().map(|path| path::join(directory, path));
            add_changed(verifier, paths, &unlike_tree(by));
        }
        // If no path is reported, for example because the repository lacks the recorded tree, the ids are. Differences
        // of trailers do not count: they have the path of the lock, but are not about its file.
        let is_reported = verifier.differences.iter().any(|difference| {
            difference.kind != DifferenceKind::Trailers
                && !difference.path.is_empty()
                && path::is_in(&difference.path, directory)
        });
        if !is_reported {
            let subject = if directory.is_empty() { "the repository " } else { "" };
            let message = format!("{subject}has the tree {tree}, but the message of {by} records {recorded}");
            verifier.add(DifferenceKind::Tree, directory, message);
        }
        Ok(())
    }

    /// Reports a source that the commit of the record does not contain.
    fn compare_source(&self, verifier: &mut Verifier, record: &Recorded) -> Result<()> {
        let Recorded { commit, trailers, .. } = record;
        let by = short(commit);
        let Some(source) = trailers.source.as_ref().map(Digest::hex) else {
            verifier.add_sourceless(by);
            return Ok(());
        };
        // The raw bytes name the parents also in a shallow clone, where git reports none.
        let object =
            self.repository.find_object(object_id(commit)?).map_err(|error| records::unread(commit, &error))?;
        let text = String::from_utf8_lossy(&object.data);
        let header = text.lines().take_while(|line| !line.is_empty());
        let mut parents = header.filter_map(|line| line.strip_prefix("parent "));
        // The usual case needs no walk through the history.
        if parents.any(|parent| parent == source) {
            return Ok(());
        }
        if self.repo.commit(source)?.is_some() && self.repo.is_ancestor(source, commit)? {
            return Ok(());
        }
        if self.repo.is_shallow()? {
            let failure = Failure::new(format!(
                "this shallow clone cannot tell whether {by} contains the source commit {source} of its message"
            ));
            let failure = failure.hint("fetch more of it: git fetch --deepen=100");
            verifier.failures.push(failure.hint("or all of it: git fetch --unshallow"));
            return Ok(());
        }
        let message = format!("the message of {by} names the source commit {source}, which {by} does not contain");
        verifier.add(DifferenceKind::Trailers, "", message);
        Ok(())
    }

    /// Reports the rest, which no lock covers: a missing record, and changes beside the copies.
    pub(super) fn report_uncovered(
        &mut self,
        verifier: &mut Verifier,
        locks: &[(String, Lock)],
        is_ours: bool,
    ) -> Result<()> {
        // Only the newest record counts, so a malformed one is reported and no older one is read.
        let newest = match std::mem::replace(&mut self.newest, RecordLookup::Nothing) {
            RecordLookup::Record(newest) => newest,
            RecordLookup::Unreadable { commit, failure } => {
                unreadable(verifier, &commit, &failure);
                return Ok(());
            }
            RecordLookup::Nothing => {
                // A missing record is reported once, with its lock if there is one.
                if is_ours && !self.is_missing {
                    self.report_missing(verifier, "")?;
                }
                return Ok(());
            }
        };
        // In place, the tree of the message covers everything already.
        let Some(directory) = &newest.trailers.target.new_dir else {
            return Ok(());
        };
        // A copy without its lock can no longer be verified, and whoever removed it may have changed it.
        let exists = matches!(verifier.tree.entry(directory)?, Some(Entry::Directory));
        let name = path::join(directory, LOCK_NAME);
        let has_lock = locks.iter().any(|(other, _)| other == directory);
        if exists && !has_lock {
            verifier.add(DifferenceKind::Lock, &name, LOCK_GONE);
        }
        self.compare_beside_copies(verifier, &newest, &name)
    }

    /// Reports files outside of the copies that differ from the source, in the commit of the record or since. `lock` is
    /// the path of the lock of its copy.
    fn compare_beside_copies(&self, verifier: &mut Verifier, newest: &Recorded, lock: &str) -> Result<()> {
        let Recorded { commit, trailers, .. } = newest;
        let by = short(commit);
        let ours = self.repo.commit(commit)?.ok_or_else(|| Failure::new(format!("commit {commit} cannot be read")))?;
        let before = object_id(&ours.tree)?;
        let since = differences(self.repository, before, object_id(&self.id.tree)?, &BTreeSet::new())?;
        add_changed(verifier, since, &format!("differs from the localized commit {by}"));
        match tip::differences_from_source(self.repo, self.repository, before, trailers)? {
            Some(paths) => {
                let (gone, others): (Vec<String>, Vec<String>) = paths.into_iter().partition(|path| path == lock);
                add_changed(verifier, gone, LOCK_GONE);
                let message = format!("differs from the source commit that the message of {by} records");
                add_changed(verifier, others, &message);
            }
            None if self.repo.is_shallow()? => {
                let failure = Failure::new(format!(
                    "cannot compare the files beside the copies: this shallow clone lacks the source commit of {by}"
                ));
                verifier.failures.push(failure.hint("fetch more of it: git fetch --deepen=100"));
            }
            // A message without a source commit of this history was reported before.
            None => {}
        }
        Ok(())
    }
}

/// Compares a lock with the trailers of its message: their upstreams with digests, and the target of a copy. A lock
/// that was edited together with its files still differs from the message.
fn compare_lock(verifier: &mut Verifier, directory: &str, lock: &Lock, record: &Recorded) {
    let Recorded { commit, trailers, .. } = record;
    let name = path::join(directory, LOCK_NAME);
    let by = short(commit);
    let listed = lock.remote_trailers();
    for remote @ (upstream, digest) in listed.symmetric_difference(&trailers.remotes) {
        let (in_lock, in_message) =
            if listed.contains(remote) { ("lists", "does not") } else { ("does not list", "does") };
        let message = format!("{in_lock} {upstream} at {digest}, but the message of {by} {in_message}");
        verifier.add(DifferenceKind::Trailers, &name, message);
    }
    if let Some(target) = &lock.target
        && (*target != trailers.target.target || lock.scope != trailers.target.scope)
    {
        let recorded = &trailers.target.target;
        let message =
            format!("has the target `{target}`, but the message of {by} records `{recorded}`, or another scope");
        verifier.add(DifferenceKind::Trailers, &name, message);
    }
}

/// Reports that the record in a message is malformed.
fn unreadable(verifier: &mut Verifier, commit: &str, failure: &Failure) {
    let message = format!("cannot read the record in the message of {}: {}", short(commit), failure.message);
    verifier.add(DifferenceKind::Trailers, "", message);
}

/// Whether a record is about a directory.
fn is_about(trailers: &Trailers, directory: &str) -> bool {
    trailers.target.new_dir.as_deref().unwrap_or_default() == directory
}

/// Reports paths as changed, with a message, unless they are reported already.
fn add_changed(verifier: &mut Verifier, paths: impl IntoIterator<Item = String>, message: &str) {
    let reported: BTreeSet<String> = verifier.differences.iter().map(|difference| difference.path.clone()).collect();
    for path in paths {
        // The same edit may be reported already as a directory above, or as a path below.
        let below = format!("{path}/");
        let mut next = reported.range(below.clone()..);
        let is_reported = path::and_above(&path).any(|above| reported.contains(above))
            || next.next().is_some_and(|next| next.starts_with(&below));
        if !is_reported {
            verifier.add(DifferenceKind::Tree, &path, message);
        }
    }
}
