//! The result of `verify`.

use super::upstream_status::EntryStatus;
use serde::Serialize;

use crate::message::failure::{FAILED, Failure};
use crate::message::position::Span;
use crate::record::history::records::Recorded;
use crate::record::{LeftKeys, Lock};
use crate::reference::Upstream;
use crate::tree::path;

/// The result of verifying a commit or directory.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct VerifyOutcome {
    /// The commit or directory as it was named.
    pub rev: String,
    /// The full id of the commit. `None` for a directory.
    pub commit: Option<String>,
    /// The records of the commit, by directory.
    pub records: Vec<Record>,
    /// The differences, by path.
    pub differences: Vec<Difference>,
    /// The upstreams that stay remote because of an exception, by the directory of their lock.
    pub left: Vec<LeftOf>,
    /// The state of the upstreams in the locks, in their order. `None` if upstream was not asked.
    pub upstream: Option<Vec<EntryStatus>>,
    /// The reasons why a part could not be checked. The rest was.
    pub failures: Vec<Failure>,
    /// Short phrases for other requested checks that passed.
    #[serde(skip)]
    pub also: Vec<&'static str>,
}

/// An upstream that stays remote, and the directory of its lock.
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
    /// The directory of the lock from the top of the repository; empty for the top.
    #[serde(serialize_with = "path::serialize")]
    pub directory: String,
    /// The target of a copy. `None` for a repository that was localized in place.
    pub target: Option<String>,
    /// The number of files in the lock.
    pub files: usize,
    /// The number of upstreams in the lock.
    pub remotes: usize,
    /// Whether a message has the record too, according to the lock.
    pub has_message: bool,
    /// The commit whose message has the other copy of the record. `None` if no message has it any more.
    pub recorded_by: Option<String>,
    /// The source commit in that message.
    pub source: Option<String>,
    /// The resulting tree in that message.
    pub tree: Option<String>,
    /// Whether it holds the builds of the source.
    pub rendered: bool,
    /// The arguments of the builds in that message.
    #[serde(skip)]
    pub arguments: Vec<String>,
}

impl Record {
    /// The record of a directory, from its lock and the message.
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
            rendered: trailers.is_some_and(|trailers| trailers.target.rendered),
            arguments: trailers.and_then(|trailers| trailers.verified.clone()).map_or(Vec::new(), |it| it.by.arguments),
        }
    }
}

/// A difference from the record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Difference {
    pub kind: DifferenceKind,
    /// The file or directory from the top of the repository. Empty for the whole commit.
    pub path: String,
    /// The span of a reference. `None` if the difference is not about a reference.
    #[serde(flatten)]
    pub span: Option<Span>,
    /// The problem, as a lower-case phrase.
    pub message: String,
}

/// The kinds of [`Difference`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DifferenceKind {
    /// A file differs from the lock.
    File,
    /// A lock that the message names is gone.
    Lock,
    /// A reference is remote.
    Remote,
    /// `check` reports an error for another reason.
    Finding,
    /// The directory differs from the tree that the message names.
    Tree,
    /// Lock and message differ.
    Trailers,
    /// Localizing again gives another result.
    Rebuilt,
    /// Upstream differs from the lock.
    Upstream,
}

impl VerifyOutcome {
    /// The exit status: 0 as recorded, 1 something differs, 2 something could not be checked.
    pub(crate) fn status(&self) -> u8 {
        if self.failures.is_empty() { u8::from(!self.differences.is_empty()) } else { FAILED }
    }
}
