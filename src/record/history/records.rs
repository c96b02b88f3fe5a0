//! Searches a history for commits with a record in their message.

use gix::ObjectId;

use super::trees::lookup;
use crate::git::object_id;
use crate::message::failure::{Failure, Result, short};
use crate::record::Trailers;

/// How many commits back the search goes.
const MOST_COMMITS: usize = 1000;

/// The result of the search for a record.
pub(crate) enum RecordLookup {
    /// The newest commit with a record.
    Record(Box<Recorded>),
    /// A message has lines of a record, but they are malformed.
    Unreadable {
        commit: String,
        /// The problem of its record.
        failure: Failure,
    },
    /// No commit has an accepted record, as far back as the search goes.
    Nothing,
}

/// A localized commit.
pub(crate) struct Recorded {
    pub commit: String,
    /// The record in its message.
    pub trailers: Trailers,
    /// The commits after it that change a file, abbreviated, newest first.
    pub after: Vec<String>,
}

/// Finds the newest record that `accepts` accepts in the history of `tip`, a commit id. At a merge the search follows
/// the parent from which the merge took `locks` (paths from the top). It ends at a malformed record, because nobody
/// knows what that is about, and after [`MOST_COMMITS`] commits.
pub(crate) fn newest(
    repository: &gix::Repository,
    tip: &str,
    locks: &[String],
    accepts: impl Fn(&Trailers) -> bool,
) -> Result<RecordLookup> {
    let mut after = Vec::new();
    // Read with gix: starting git for each commit would take seconds.
    let mut next = Some(object_id(tip)?);
    for _ in 0..MOST_COMMITS {
        // The history also ends where a shallow clone was cut off.
        let Some(commit) = next.and_then(|id| read_commit(repository, id)) else { break };
        let id = commit.id.to_string();
        // A record is ASCII, so the encoding of the rest does not matter.
        let message = commit.message_raw().map_err(|error| unread(&id, &error))?;
        match Trailers::parse(&String::from_utf8_lossy(message)) {
            Err(failure) => {
                return Ok(RecordLookup::Unreadable { commit: id, failure });
            }
            Ok(Some(trailers)) if accepts(&trailers) => {
                return Ok(RecordLookup::Record(Box::new(Recorded { commit: id, trailers, after })));
            }
            // A commit without a record, or with one about something else.
            Ok(_) => {}
        }
        next = parent_with_locks(repository, &commit, locks)?;
        // An empty commit, or a merge without changes, edits nothing.
        if next.and_then(|parent| tree_of(repository, parent)) != tree_of(repository, commit.id) {
            after.push(short(&id).to_owned());
        }
    }
    Ok(RecordLookup::Nothing)
}

/// The parent of a commit with whose history the search for a record goes on: at a merge, the parent from which it took
/// `locks`, because the record of their files is there. Callers give one lock or none; if several came from different
/// parents, the last of these counts. `None` for the first commit.
fn parent_with_locks(
    repository: &gix::Repository,
    commit: &gix::Commit<'_>,
    locks: &[String],
) -> Result<Option<ObjectId>> {
    let parents: Vec<ObjectId> = commit.parent_ids().map(|id| id.detach()).collect();
    // The first parent, unless a lock came from a later one.
    let mut chosen = 0;
    for lock in locks.iter().filter(|_| parents.len() > 1) {
        let merged = lock_of(repository, commit.id, lock)?;
        for (index, parent) in parents.iter().enumerate() {
            if lock_of(repository, *parent, lock)? == merged {
                chosen = chosen.max(index);
                break;
            }
        }
    }
    Ok(parents.get(chosen).copied())
}

/// The object id of a lock in a commit. `None` if the commit has no such lock, or this clone lacks the commit.
fn lock_of(repository: &gix::Repository, id: ObjectId, lock: &str) -> Result<Option<ObjectId>> {
    let entry = tree_of(repository, id).map(|tree| lookup(repository, tree, lock)).transpose()?;
    Ok(entry.flatten().map(|(_, id)| id))
}

/// The tree of a commit; `None` if this clone does not have the commit.
fn tree_of(repository: &gix::Repository, id: ObjectId) -> Option<ObjectId> {
    Some(read_commit(repository, id)?.tree_id().ok()?.detach())
}

fn read_commit(repository: &gix::Repository, id: ObjectId) -> Option<gix::Commit<'_>> {
    repository.find_object(id).ok()?.try_into_commit().ok()
}

/// The failure of a commit that this clone should have.
pub(crate) fn unread(commit: &str, error: &dyn std::fmt::Display) -> Failure {
    Failure::new(format!("commit {commit} cannot be read: {error}"))
}
