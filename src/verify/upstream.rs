//! `--upstream`: which remotes of a commit's locks to ask, and what the answers mean for the result. The caller passes
//! in how to ask: nothing here reaches the network.

use std::collections::BTreeSet;
use std::rc::Rc;

use serde::Serialize;

use super::{Difference, Kind};
use crate::graph::{self, Origin, Source, Target};
use crate::message::failure::{Failure, Location, Result};
use crate::message::finding::Span;
use crate::record::upstream::{Answer, Verdict};
use crate::record::{LOCK_NAME, LoadRestrictor, Lock, Remote};
use crate::tree::{Tree, path};

/// Asks for remotes: one answer for each, in their order.
pub(crate) type Ask<'a> = dyn Fn(&[&Remote]) -> Vec<Answer> + 'a;

/// A remote of a lock, and its state upstream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Upstream {
    /// The lock that lists it, from the top of the repository.
    pub lock: String,
    /// The line of that lock on which it begins, from 1.
    pub line: usize,
    /// Its entry in the lock.
    #[serde(flatten)]
    pub remote: Remote,
    #[serde(flatten)]
    pub answer: Answer,
}

impl Upstream {
    /// Returns what is not as recorded, if it is not.
    pub(super) fn difference(&self) -> Option<Difference> {
        let Upstream { lock, line, answer, .. } = self;
        answer.verdict.differs().then(|| Difference {
            kind: Kind::Upstream,
            path: lock.clone(),
            place: Some(Span { line: *line, column: 1, end_line: *line, end_column: 1 }),
            message: format!("{} is {} upstream: {}", self.remote.label(), answer.verdict.name(), answer.why),
        })
    }

    /// Returns why its state is unknown, if it is.
    pub(super) fn failure(&self) -> Option<Failure> {
        let failure = self.answer.failure.clone();
        failure
            .filter(|_| self.answer.verdict == Verdict::Unreachable)
            .map(|failure| failure.at(Location { file: self.lock.clone(), line: self.line, ..Location::default() }))
    }
}

/// Returns the remotes that a lock lists, not asked yet; with `paths`, those that what lies in or below them needs.
pub(super) fn listed(tree: &Rc<dyn Tree>, directory: &str, lock: &Lock, paths: &[String]) -> Result<Vec<Upstream>> {
    let name = path::join(directory, LOCK_NAME);
    let is_whole = paths.is_empty() || paths.iter().any(|path| path::is_in(directory, path));
    let needed = if is_whole { None } else { Some(needed(tree, directory, lock, paths)?) };
    let lines = Lock::lines(&tree.read(&name)?);
    let remotes = lock.remotes.iter().enumerate();
    let remotes = remotes.filter(|(_, remote)| needed.as_ref().is_none_or(|needed| needed.contains(&remote.label())));
    Ok(remotes
        .map(|(index, remote)| Upstream {
            lock: name.clone(),
            line: lines.get(index).copied().unwrap_or(1),
            remote: remote.clone(),
            answer: Answer::ok(remote.digest()),
        })
        .collect())
}

/// Returns the labels of the remotes that were brought in below `paths`, or are named from there, and of those that
/// these name in turn.
fn needed(tree: &Rc<dyn Tree>, directory: &str, lock: &Lock, paths: &[String]) -> Result<BTreeSet<String>> {
    let is_asked = |place: &str| paths.iter().any(|path| path::is_in(place, path));
    let mut starts: Vec<String> = tree.kustomizations()?;
    starts.retain(|place| is_asked(place));
    for place in &mut starts {
        *place = path::parent(place).to_owned();
    }
    let source = Source { tree: tree.clone(), scope: String::new(), repository: None };
    let options = graph::Options { load_restrictor: LoadRestrictor::None, ..graph::Options::default() };
    let graph = graph::explore(source, &starts, None, &options).graph;
    let mut reached: BTreeSet<&str> = BTreeSet::new();
    for file in &graph.files {
        if let Origin::Tree { path, .. } = &file.origin {
            reached.insert(path);
        }
    }
    let mut needed = BTreeSet::new();
    for file in &lock.files {
        let place = path::join(directory, &file.path);
        if is_asked(&place) || reached.contains(place.as_str()) {
            needed.extend(file.remote.clone());
        }
    }
    // References are locked at the top alone.
    if directory.is_empty() {
        let edges = graph.roots.iter().flat_map(|root| &root.edges);
        let remote = edges.filter(|edge| edge.target == Target::Remote);
        let wanted = remote.filter_map(|edge| edge.remote.as_ref());
        needed.extend(wanted.filter_map(|wanted| Some(wanted.locked(lock)?.label())));
    }
    needed.extend(graph.charts.iter().filter_map(|chart| Some(chart.wanted.as_ref()?.label())));
    loop {
        let before = needed.len();
        for remote in &lock.remotes {
            if !remote.through().is_disjoint(&needed) {
                needed.insert(remote.label());
            }
        }
        if needed.len() == before {
            return Ok(needed);
        }
    }
}
