//! What comes of a run of `verify`.

use super::listed::Listed;
use serde::Serialize;

use crate::message::failure::Failure;
use crate::message::position::Span;
use crate::record::history::records::Recorded;
use crate::record::{LeftKeys, Lock};
use crate::reference::Upstream;
use crate::tree::path;

/// The result.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Verified {
    /// The commit or the directory as it was named.
    pub rev: String,
    /// The full id of the commit; none of a directory.
    pub commit: Option<String>,
    /// The records that it holds, by directory.
    pub records: Vec<Record>,
    /// What is not as it must be, by path.
    pub differences: Vec<Difference>,
    /// What stays remote because of an exception, by the directories of the locks that say so.
    pub left: Vec<LeftOf>,
    /// The state of the remotes of the locks, in their order; none if upstream was not asked.
    pub upstream: Option<Vec<Listed>>,
    /// What could not be checked. Everything else was.
    pub failures: Vec<Failure>,
    /// Which other requested checks passed: short phrases.
    #[serde(skip)]
    pub also: Vec<&'static str>,
}

/// What stays remote, and the directory of the lock that says so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct LeftOf {
    #[serde(serialize_with = "path::serialize")]
    pub directory: String,
    #[serde(skip)]
    pub upstream: Upstream,
    #[serde(flatten)]
    pub left: LeftKeys,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Record {
    /// The directory of its lock from the top of the repository; empty for the top.
    #[serde(serialize_with = "path::serialize")]
    pub directory: String,
    /// What was localized there; none for what was localized where it stands.
    pub target: Option<String>,
    /// How many files the lock lists.
    pub files: usize,
    /// How many remotes the lock lists.
    pub remotes: usize,
    /// Whether, according to the lock, a message holds the record, too.
    pub has_message: bool,
    /// The commit whose message holds the other copy of the record; none when no message does any more.
    pub recorded_by: Option<String>,
    /// The commit that was localized, as that message says.
    pub source: Option<String>,
    /// The tree that was made, as that message says.
    pub tree: Option<String>,
}

impl Record {
    /// Returns what a lock and a message record of a directory.
    pub(super) fn of(directory: &str, lock: &Lock, recorded: Option<&Recorded>) -> Record {
        let trailers = recorded.map(|recorded| &recorded.trailers);
        Record {
            directory: directory.to_owned(),
            target: lock.target.clone(),
            files: lock.files.len(),
            remotes: lock.remotes.len(),
            has_message: lock.trailers,
            recorded_by: recorded.map(|recorded| recorded.commit.clone()),
            source: trailers.and_then(|trailers| Some(trailers.source.as_ref()?.hex().to_owned())),
            tree: trailers.map(|trailers| trailers.tree.hex().to_owned()),
        }
    }
}

/// Something that is not as the record says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Difference {
    /// What sort of thing it is.
    pub kind: Kind,
    /// The file or directory from the top of the repository; empty where the commit is meant.
    pub path: String,
    /// The span, where a reference is meant.
    #[serde(flatten)]
    pub place: Option<Span>,
    /// What is wrong: a lower-case phrase.
    pub message: String,
}

/// The sorts of [`Difference`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// A file is not what the lock says.
    File,
    /// A lock that the message names is gone.
    Lock,
    /// Something remote is left.
    Remote,
    /// `check` fails for something else.
    Finding,
    /// The directory is not the tree that the message names.
    Tree,
    /// Lock and message disagree.
    Trailers,
    /// It differs when localized again.
    Rebuilt,
    /// Upstream is not what the lock says.
    Upstream,
}

impl Verified {
    /// Returns the exit status: 0 as recorded, 1 something differs, 2 something could not be checked.
    pub(crate) fn status(&self) -> u8 {
        if self.failures.is_empty() { u8::from(!self.differences.is_empty()) } else { 2 }
    }
}
