//! What became upstream of what a record lists.

use std::fmt;

use serde::Serialize;

use super::Digest;
use crate::message::failure::Failure;

/// What is upstream now, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    /// What the record says.
    Ok,
    /// Something newer, as a branch is there to give: it moved forward. No difference.
    Updated,
    /// Something else, which should not happen: a tag names another commit, a branch was rewritten, a file or an
    /// archive has other bytes.
    Moved,
    /// As the record says, but not signed as the configuration wants it.
    Unsigned,
    /// The server answered, and no longer has it.
    Gone,
    /// No answer, or not to this question.
    Unreachable,
}

impl Verdict {
    /// Every one of them, from the best to the worst.
    pub(crate) const ALL: [Verdict; 6] =
        [Verdict::Ok, Verdict::Updated, Verdict::Moved, Verdict::Unsigned, Verdict::Gone, Verdict::Unreachable];

    /// Returns whether upstream differs from the record in a way that needs attention.
    pub(crate) fn differs(self) -> bool {
        matches!(self, Verdict::Moved | Verdict::Unsigned | Verdict::Gone)
    }
}

/// In one word, as JSON has it.
impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// Which `update` takes what is upstream now into the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Update {
    /// Any.
    Any,
    /// One that names the remote: by convention it never changes.
    ByName,
    /// None: there is nothing that could be taken.
    Nothing,
}

/// What was found out about one remote of a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Answer {
    /// What it comes to.
    pub verdict: Verdict,
    /// What it is now, where that is known.
    #[serde(rename = "new")]
    pub now: Option<Digest>,
    /// Why: a lower-case phrase; empty if the verdict is enough.
    #[serde(rename = "message")]
    pub why: String,
    /// How many commits, without merges, lie between what it was and what it is, where it moved forward.
    pub commits: Option<usize>,
    /// The newest of these, newest first: id, and the first line of the message.
    pub newest: Vec<(String, String)>,
    /// Which `update` takes it.
    #[serde(skip)]
    pub update: Update,
    /// What to tell of one that is unreachable.
    #[serde(skip)]
    pub failure: Option<Failure>,
}

impl Answer {
    /// Something that is as the record says.
    pub(crate) fn ok(now: Digest) -> Self {
        Answer { verdict: Verdict::Ok, ..Answer::unusable(Some(now), "") }
    }

    /// Something that is something else now.
    pub(crate) fn moved(now: Digest, why: impl Into<String>) -> Self {
        Answer { update: Update::Any, ..Answer::unusable(Some(now), why) }
    }

    /// Something that is something else now, which no build can use.
    pub(crate) fn unusable(now: Option<Digest>, why: impl Into<String>) -> Self {
        let (verdict, why, update) = (Verdict::Moved, why.into(), Update::Nothing);
        Answer { verdict, now, why, commits: None, newest: Vec::new(), update, failure: None }
    }

    /// Something that is there, without the signature that is wanted.
    pub(crate) fn unsigned(answer: Answer, why: impl Into<String>) -> Self {
        Answer { verdict: Verdict::Unsigned, why: why.into(), update: Update::Nothing, ..answer }
    }

    /// Something that is there no more.
    pub(crate) fn gone(why: impl Into<String>) -> Self {
        Answer { verdict: Verdict::Gone, ..Answer::unusable(None, why) }
    }

    /// Something that could not be asked about.
    pub(crate) fn unreachable(failure: Failure) -> Self {
        Answer {
            verdict: Verdict::Unreachable,
            failure: Some(failure.clone()),
            ..Answer::unusable(None, failure.message)
        }
    }
}
