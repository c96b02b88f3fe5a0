//! The commits of a history whose messages hold a record.

use gix::ObjectId;

use super::trees::lookup;
use crate::message::failure::{Failure, Result, short};
use crate::record::Trailers;
use crate::tree::git::object_id;

/// How far back to look for a localized commit.
const HISTORY: usize = 1000;

/// Where a record was found.
pub(crate) enum Found {
    /// It can be read.
    Record(Box<Recorded>),
    /// A message has lines of one, but it is not as it was written.
    Unreadable {
        /// The commit.
        commit: String,
        /// Why.
        failure: Failure,
    },
    /// There is none.
    Nothing,
}

/// A localized commit.
pub(crate) struct Recorded {
    /// Its id.
    pub commit: String,
    /// The record in its message.
    pub trailers: Trailers,
    /// The commits (abbreviated) that follow it, newest first.
    pub after: Vec<String>,
}

/// Finds the newest record that `is_it` accepts in the history of `tip`, a commit id. The history is followed over first
/// parents, but where a merge took one of `locks` (from the top) from another parent, over that one.
pub(crate) fn newest(
    repository: &gix::Repository,
    tip: &str,
    locks: &[String],
    is_it: impl Fn(&Trailers) -> bool,
) -> Result<Found> {
    let mut after = Vec::new();
    let mut next = Some(object_id(tip)?);
    // A history ends, too, where a shallow clone was cut off.
    while let Some(commit) = next.and_then(|id| commit(repository, id)) {
        let id = commit.id.to_string();
        // A record has ASCII letters only, whatever the encoding of the rest.
        let message = commit.message_raw().map_err(|error| unread(&id, &error))?;
        match Trailers::parse(&String::from_utf8_lossy(message)) {
            Err(failure) => {
                return Ok(Found::Unreadable { commit: id, failure });
            }
            Ok(Some(trailers)) if is_it(&trailers) => {
                return Ok(Found::Record(Box::new(Recorded { commit: id, trailers, after })));
            }
            Ok(_) => {}
        }
        after.push(short(&id).to_owned());
        let parents: Vec<ObjectId> = commit.parent_ids().map(|id| id.detach()).collect();
        next = merged(repository, &commit, &parents, locks)?.or(parents.first().copied());
        next = next.filter(|_| after.len() < HISTORY);
    }
    Ok(Found::Nothing)
}

/// Returns the parent from which a merge took one of `locks`, if that is not the first.
fn merged(
    repository: &gix::Repository,
    merge: &gix::Commit<'_>,
    parents: &[ObjectId],
    locks: &[String],
) -> Result<Option<ObjectId>> {
    let Some((first, others)) = parents.split_first() else {
        return Ok(None);
    };
    let lock_of = |commit: Option<&gix::Commit<'_>>, lock: &str| -> Result<Option<ObjectId>> {
        let tree = commit.and_then(|commit| commit.tree_id().ok());
        let found = tree.map(|tree| lookup(repository, tree.detach(), lock)).transpose()?;
        Ok(found.flatten().map(|(_, id)| id))
    };
    for lock in locks.iter().filter(|_| !others.is_empty()) {
        let Some(there) = lock_of(Some(merge), lock)? else {
            continue;
        };
        if lock_of(commit(repository, *first).as_ref(), lock)? == Some(there) {
            continue;
        }
        for other in others {
            if lock_of(commit(repository, *other).as_ref(), lock)? == Some(there) {
                return Ok(Some(*other));
            }
        }
    }
    Ok(None)
}

fn commit(repository: &gix::Repository, id: ObjectId) -> Option<gix::Commit<'_>> {
    repository.find_object(id).ok()?.try_into_commit().ok()
}

fn unread(commit: &str, error: &dyn std::fmt::Display) -> Failure {
    Failure::new(format!("commit {commit} cannot be read: {error}"))
}
