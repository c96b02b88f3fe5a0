//! `--upstream`: which remotes of a commit's locks to ask, and what the answers mean for the result. The caller passes
//! in how to ask: nothing here reaches the network.

use serde::Serialize;

use super::{Difference, Kind};
use crate::config::Config;
use crate::message::failure::{Failure, Location, Result};
use crate::message::position::{Position, Span};
use crate::record::answer::{Answer, Verdict};
use crate::record::{LOCK_NAME, Lock, Pinned, serialize_remote};
use crate::reference::Upstream;
use crate::tree::{Tree, path};

/// Asks for remotes as a configuration wants them: one answer for each, in their order.
pub(crate) type Ask<'a> = dyn Fn(&Config, &[(&Upstream, &Pinned)]) -> Vec<Answer> + 'a;

/// An entry of a lock, and its state upstream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Listed {
    /// The lock that lists it, from the top of the repository.
    pub lock: String,
    /// The line of that lock on which it begins, from 1.
    pub line: usize,
    #[serde(flatten, serialize_with = "serialize_remote")]
    pub entry: (Upstream, Pinned),
    #[serde(flatten)]
    pub answer: Answer,
}

impl Listed {
    /// Returns what is not as recorded, if it is not.
    pub(super) fn difference(&self) -> Option<Difference> {
        let Listed { lock, line, entry: (source, _), answer } = self;
        answer.verdict.differs().then(|| Difference {
            kind: Kind::Upstream,
            path: lock.clone(),
            place: Some(Span { start: Position::new(*line, 1), end: Position::new(*line, 1) }),
            message: format!("{source} is {} upstream: {}", answer.verdict, answer.why),
        })
    }

    /// Returns why its state is unknown, if it is.
    pub(super) fn failure(&self) -> Option<Failure> {
        let failure = self.answer.failure.clone();
        failure.filter(|_| self.answer.verdict == Verdict::Unreachable).map(|failure| {
            failure.at(Location {
                file: self.lock.clone(),
                position: Position::new(self.line, 0),
                ..Location::default()
            })
        })
    }
}

/// Returns the entries of a lock, not asked yet.
pub(super) fn listed(tree: &dyn Tree, directory: &str, lock: &Lock) -> Result<Vec<Listed>> {
    let name = path::join(directory, LOCK_NAME);
    let places = Lock::places(&tree.read(&name)?);
    let entry = |(source, pinned): (&Upstream, &Pinned)| Listed {
        lock: name.clone(),
        line: places.get(source).map_or(0, |at| at.line),
        entry: (source.clone(), pinned.clone()),
        answer: Answer::ok(pinned.digest.clone()),
    };
    Ok(lock.remotes.iter().map(entry).collect())
}
