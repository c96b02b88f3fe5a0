//! The commits of a history whose messages hold a record.

use gix::ObjectId;

use super::trees::lookup;
use crate::git::object_id;
use crate::message::failure::{Failure, Result, short};
use crate::record::Trailers;

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
        let mut taken = 0;
        for lock in locks.iter().filter(|_| parents.len() > 1) {
            let here = lock_of(repository, commit.id, lock)?;
            let has_it = |parent: &ObjectId| Ok(lock_of(repository, *parent, lock)? == here);
            let found: Vec<bool> = parents.iter().map(has_it).collect::<Result<_>>()?;
            taken = taken.max(found.into_iter().position(|has_it| has_it).unwrap_or_default());
        }
        next = parents.get(taken).copied().filter(|_| after.len() < HISTORY);
    }
    Ok(Found::Nothing)
}

/// Returns the id of a lock in a commit.
fn lock_of(repository: &gix::Repository, id: ObjectId, lock: &str) -> Result<Option<ObjectId>> {
    let tree = commit(repository, id).and_then(|commit| Some(commit.tree_id().ok()?.detach()));
    let found = tree.map(|tree| lookup(repository, tree, lock)).transpose()?;
    Ok(found.flatten().map(|(_, id)| id))
}

fn commit(repository: &gix::Repository, id: ObjectId) -> Option<gix::Commit<'_>> {
    repository.find_object(id).ok()?.try_into_commit().ok()
}

fn unread(commit: &str, error: &dyn std::fmt::Display) -> Failure {
    Failure::new(format!("commit {commit} cannot be read: {error}"))
}
