//! `--upstream`: the entries of the locks to ask about, and what the answers mean for the result. The caller passes a
//! function that asks, because this room does not reach the network.

use serde::Serialize;

use super::{Difference, DifferenceKind};
use crate::config::Config;
use crate::message::failure::{Failure, Location, Result};
use crate::message::position::{Position, Span};
use crate::record::answer::{UpstreamState, UpstreamVerdict};
use crate::record::{LOCK_NAME, Lock, Pinned, serialize_remote};
use crate::reference::Upstream;
use crate::tree::{Tree, path};

/// Asks about entries as the configuration demands. Returns one answer for each, in their order.
pub(crate) type Ask<'a> = dyn Fn(&Config, &[(&Upstream, &Pinned)]) -> Vec<UpstreamState> + 'a;

/// An entry of a lock, and its state upstream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct EntryStatus {
    /// The path of the lock from the top of the repository.
    pub lock: String,
    /// The line of the lock on which the entry begins, from 1.
    pub line: usize,
    #[serde(flatten, serialize_with = "serialize_remote")]
    pub entry: (Upstream, Pinned),
    #[serde(flatten)]
    pub answer: UpstreamState,
}

impl EntryStatus {
    /// The difference between the entry and upstream. `None` if there is none.
    pub(super) fn difference(&self) -> Option<Difference> {
        let EntryStatus { lock, line, entry: (source, _), answer } = self;
        answer.verdict.differs().then(|| Difference {
            kind: DifferenceKind::Upstream,
            path: lock.clone(),
            span: Some(Span { start: Position::new(*line, 1), end: Position::new(*line, 1) }),
            message: format!("{source} is {} upstream: {}", answer.verdict, answer.why),
        })
    }

    /// The reason why the state is unknown. `None` if it is known.
    pub(super) fn failure(&self) -> Option<Failure> {
        let failure = self.answer.failure.clone().filter(|_| self.answer.verdict == UpstreamVerdict::Unreachable)?;
        let position = Position::new(self.line, 0);
        Some(failure.at(Location { file: self.lock.clone(), position, ..Location::default() }))
    }
}

/// The entries of a lock to ask upstream about. They have the answer `ok` until the real one replaces it.
pub(super) fn unasked_entries(tree: &dyn Tree, directory: &str, lock: &Lock) -> Result<Vec<EntryStatus>> {
    let name = path::join(directory, LOCK_NAME);
    let positions = Lock::positions(&tree.read(&name)?);
    let entries = lock.remotes.iter().map(|(source, pinned)| EntryStatus {
        lock: name.clone(),
        line: positions.get(source).map_or(0, |position| position.line),
        entry: (source.clone(), pinned.clone()),
        answer: UpstreamState::ok(pinned.digest.clone()),
    });
    Ok(entries.collect())
}
