//! The state of an upstream now, compared with a record.

use std::fmt;

use serde::Serialize;

use super::Digest;
use crate::message::failure::Failure;

/// The state of an upstream, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum UpstreamVerdict {
    /// It is as recorded.
    Ok,
    /// It is newer, as a branch may be: it moved forward. This is not a difference.
    Updated,
    /// It changed although it should not: a tag names another commit, a branch was rewritten, or a file or archive has
    /// other bytes.
    Moved,
    /// It is as recorded, but lacks the signature that the configuration demands.
    Unsigned,
    /// The server answered, and does not have it any more.
    Gone,
    /// The server did not answer, or refused to.
    Unreachable,
}

impl UpstreamVerdict {
    /// All verdicts, from the best to the worst.
    pub(crate) const ALL: [UpstreamVerdict; 6] = [
        UpstreamVerdict::Ok,
        UpstreamVerdict::Updated,
        UpstreamVerdict::Moved,
        UpstreamVerdict::Unsigned,
        UpstreamVerdict::Gone,
        UpstreamVerdict::Unreachable,
    ];

    /// Whether upstream differs from the record in a way that needs attention.
    pub(crate) fn differs(self) -> bool {
        matches!(self, UpstreamVerdict::Moved | UpstreamVerdict::Unsigned | UpstreamVerdict::Gone)
    }
}

/// The verdict in one word, as in JSON.
impl fmt::Display for UpstreamVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// The kind of `update` that accepts the new state into the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UpdateKind {
    /// Any `update`.
    Any,
    /// Only an `update` that names the upstream, because by convention it never changes.
    ByName,
    /// No `update`: there is nothing to lock.
    Nothing,
}

/// The answer about one upstream of a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct UpstreamState {
    pub verdict: UpstreamVerdict,
    /// The present digest. `None` if it is not known.
    #[serde(rename = "new")]
    pub now: Option<Digest>,
    /// The reason, as a lower-case phrase. Empty if the verdict says enough.
    #[serde(rename = "message")]
    pub why: String,
    /// The number of commits, without merges, between the recorded commit and the present one. `None` unless it moved
    /// forward.
    pub commits: Option<usize>,
    /// The newest of these commits, newest first, as id and first line of the message.
    pub newest: Vec<(String, String)>,
    /// The kind of `update` that accepts the new state.
    #[serde(skip)]
    pub update: UpdateKind,
    /// The failure of an upstream that is unreachable.
    #[serde(skip)]
    pub failure: Option<Failure>,
}

impl UpstreamState {
    /// An upstream that is as recorded.
    pub(crate) fn ok(now: Digest) -> Self {
        UpstreamState { verdict: UpstreamVerdict::Ok, ..UpstreamState::unusable(Some(now), "") }
    }

    /// An upstream that changed.
    pub(crate) fn moved(now: Digest, why: impl Into<String>) -> Self {
        UpstreamState { update: UpdateKind::Any, ..UpstreamState::unusable(Some(now), why) }
    }

    /// An upstream that changed so that no build can use it.
    pub(crate) fn unusable(now: Option<Digest>, why: impl Into<String>) -> Self {
        let (verdict, why, update) = (UpstreamVerdict::Moved, why.into(), UpdateKind::Nothing);
        UpstreamState { verdict, now, why, commits: None, newest: Vec::new(), update, failure: None }
    }

    /// An upstream whose locked content has no signature that the configuration accepts.
    pub(crate) fn unsigned(answer: UpstreamState, why: impl Into<String>) -> Self {
        UpstreamState { verdict: UpstreamVerdict::Unsigned, why: why.into(), update: UpdateKind::Nothing, ..answer }
    }

    /// An upstream that does not exist any more.
    pub(crate) fn gone(why: impl Into<String>) -> Self {
        UpstreamState { verdict: UpstreamVerdict::Gone, ..UpstreamState::unusable(None, why) }
    }

    /// An upstream that could not be asked.
    pub(crate) fn unreachable(failure: Failure) -> Self {
        UpstreamState {
            verdict: UpstreamVerdict::Unreachable,
            failure: Some(failure.clone()),
            ..UpstreamState::unusable(None, failure.message)
        }
    }
}
