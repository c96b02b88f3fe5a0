//! The commits of a history whose messages hold a record.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use super::trees::lookup;
use crate::failure::{Failure, Result, short};
use crate::git::{LocalRepo, LogEntry};
use crate::record::Trailers;
use crate::tree::objects::object_id;

/// How far back to look for a localized commit.
pub(super) const HISTORY: usize = 1000;

/// A history, and what its messages say.
pub struct Records<'a> {
    here: &'a LocalRepo,
    repository: &'a gix::Repository,
    tip: &'a str,
    /// The first parents of a commit.
    chains: RefCell<HashMap<String, Rc<Vec<LogEntry>>>>,
}

/// Where a record was found.
pub enum Found {
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
pub struct Recorded {
    /// Its id.
    pub commit: String,
    /// The record in its message.
    pub trailers: Trailers,
    /// The commits (abbreviated) that follow it, newest first.
    pub after: Vec<String>,
}

impl<'a> Records<'a> {
    /// Opens the history of `tip`, a commit id.
    #[must_use]
    pub fn of(here: &'a LocalRepo, repository: &'a gix::Repository, tip: &'a str) -> Self {
        Records {
            here,
            repository,
            tip,
            chains: RefCell::default(),
        }
    }

    /// Finds the newest record that `is_it` accepts. The history is followed over first parents, but where a merge took
    /// one of `locks` (from the top) from another parent, over that one.
    ///
    /// # Errors
    /// When git cannot read the history.
    pub fn newest(&self, locks: &[String], is_it: impl Fn(&Trailers) -> bool) -> Result<Found> {
        // Most of the time the tip is one: without starting git. What `git replace` says counts here, too.
        if let Some(message) = message(self.repository, self.tip)
            && let Ok(records) = Trailers::parse_all(&message)
            && let Some(trailers) = records.into_iter().find(&is_it)
        {
            return Ok(Found::Record(Box::new(Recorded {
                commit: self.tip.to_owned(),
                trailers,
                after: Vec::new(),
            })));
        }
        let mut after = Vec::new();
        let mut next = Some(self.tip.to_owned());
        while let Some(start) = next.take() {
            for entry in self.chain(&start)?.iter() {
                let commit = entry.commit.clone();
                match Trailers::parse_all(&entry.message) {
                    Err(failure) => return Ok(Found::Unreadable { commit, failure }),
                    Ok(records) => {
                        if let Some(trailers) = records.into_iter().find(&is_it) {
                            return Ok(Found::Record(Box::new(Recorded {
                                commit,
                                trailers,
                                after,
                            })));
                        }
                    }
                }
                after.push(short(&commit).to_owned());
                next = self.merged(entry, locks)?;
                if next.is_some() || after.len() >= HISTORY {
                    break;
                }
            }
            next = next.filter(|_| after.len() < HISTORY);
        }
        Ok(Found::Nothing)
    }

    fn chain(&self, start: &str) -> Result<Rc<Vec<LogEntry>>> {
        if let Some(chain) = self.chains.borrow().get(start) {
            return Ok(chain.clone());
        }
        let chain = Rc::new(self.here.first_parents(start, HISTORY)?);
        let mut chains = self.chains.borrow_mut();
        Ok(chains.entry(start.to_owned()).or_insert(chain).clone())
    }

    /// Returns the parent from which a merge took one of `locks`, if that is not the first.
    fn merged(&self, entry: &LogEntry, locks: &[String]) -> Result<Option<String>> {
        let Some((first, others)) = entry.parents.split_first() else {
            return Ok(None);
        };
        if others.is_empty() {
            return Ok(None);
        }
        for lock in locks {
            let lock_of = |commit: &str| -> Result<_> {
                // Many merges may be looked at: without starting git.
                let object = self.repository.find_object(object_id(commit)?);
                let Some(tree) = object
                    .ok()
                    .and_then(|object| object.try_into_commit().ok()?.tree_id().ok())
                else {
                    return Ok(None);
                };
                let found = lookup(self.repository, tree.detach(), lock)?;
                Ok(found.map(|(_, id)| id))
            };
            let Some(there) = lock_of(&entry.commit)? else {
                continue;
            };
            if lock_of(first)? == Some(there) {
                continue;
            }
            for other in others {
                if lock_of(other)? == Some(there) {
                    return Ok(Some(other.clone()));
                }
            }
        }
        Ok(None)
    }
}

/// Returns the message of a commit; none where only git can read it, as in another encoding.
fn message(repository: &gix::Repository, commit: &str) -> Option<String> {
    let object = repository.find_object(object_id(commit).ok()?).ok()?;
    let commit = object.try_into_commit().ok()?;
    let commit = commit.decode().ok()?;
    if commit.encoding.is_some() {
        return None;
    }
    String::from_utf8(commit.message.to_vec()).ok()
}
