//! What an earlier run has proven, and of which roots that still holds: what the same version made of the same source and
//! the same remotes is the same.

use std::collections::BTreeSet;

use super::{Job, Verdict};
use crate::graph::{Graph, RootId};
use crate::message::failure::Result;
use crate::plan::Affected;
use crate::record::{BuildTool, Remotes, Verified};
use crate::targets::affected::changes::Changes;

/// What a record says, and everything that is something else now than it was then.
pub(crate) struct Earlier {
    /// What the record says.
    pub verified: Verified,
    /// Where the source differs from that of the record.
    pub source: Changes,
    /// What was brought in.
    pub remotes: Remotes,
    /// The directories that a kustomization names which has changed or is gone: a root there may have been built only
    /// as part of another one.
    pub named: BTreeSet<String>,
}

impl Earlier {
    /// Returns what the record says of each root, if `by` built it from nothing but what it would build it from now.
    pub(super) fn verdicts(&self, job: &Job<'_>, by: &BuildTool) -> Result<Vec<Option<Verdict>>> {
        let (graph, affected) = (&job.plan.before, &job.plan.affected);
        let is_stale = self.stale(graph, affected.iter().map(|root| root.root))?;
        // Attributes above a copy decide how it is checked out.
        let is_moved = |into: &String| Ok(self.source.may_convert(into) || self.source.at(into)?.is_some());
        let is_moved = job.plan.new_dir.as_ref().map_or(Ok(false), is_moved)?;
        let holds = self.verified.holds_for(by) && !is_moved;
        // Of what did not build nobody knows what it reads.
        let is_covered = |root: &Affected| {
            holds
                && !self.verified.not_built.contains(&root.name)
                && !self.named.contains(&graph.roots[root.root].directory)
                && graph.reach([root.root], |_, _| true).is_disjoint(&is_stale)
        };
        Ok(affected.iter().map(|root| is_covered(root).then_some(Verdict::VerifiedBefore)).collect())
    }

    /// The roots that themselves would be built from something else, among those that some lead to.
    fn stale(&self, graph: &Graph, starts: impl Iterator<Item = RootId>) -> Result<BTreeSet<RootId>> {
        let mut stale = BTreeSet::new();
        for id in graph.reach(starts, |_, _| true) {
            if self.has_other_remotes(graph, id)
                || graph.sources[graph.roots[id].source].repository.is_none()
                    && self.source.first_of(&graph.inputs(id)?.own)?.is_some()
            {
                stale.insert(id);
            }
        }
        Ok(stale)
    }

    /// Whether a root reads something fetched that is not what it was.
    fn has_other_remotes(&self, graph: &Graph, id: RootId) -> bool {
        let mut fetched = graph.read_by(id).into_iter().filter_map(|file| graph.pinned(file));
        !fetched.all(|(source, now)| self.remotes.get(&source).is_some_and(|pinned| pinned.digest == now.digest))
    }
}
