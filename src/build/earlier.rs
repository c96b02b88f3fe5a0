//! The results of an earlier run that still hold: the same version builds the same from equal sources and remotes.

use std::collections::BTreeSet;

use super::{PlanBuilds, Verdict};
use crate::graph::{Graph, RootId};
use crate::message::failure::Result;
use crate::plan::ComparedRoot;
use crate::record::{BuildTool, Remotes, Verified};
use crate::targets::affected::changes::Changes;

/// A record, and all differences since then.
pub(crate) struct Earlier {
    /// The verification in the record.
    pub verified: Verified,
    /// The differences between the source and that of the record.
    pub source: Changes,
    /// The fetched upstreams.
    pub remotes: Remotes,
    /// The directories that a kustomization names which has changed or is gone.
    pub named: BTreeSet<String>,
}

impl Earlier {
    /// The recorded verdict of each root, in the order of the plan: `None` if `by` must build it, because its inputs or
    /// the program may differ now, or because the record has no build of it.
    pub(super) fn verdicts(&self, job: &PlanBuilds<'_>, by: &BuildTool) -> Result<Vec<Option<Verdict>>> {
        let (graph, affected) = (&job.plan.before, &job.plan.affected);
        let stale = self.stale_roots(graph, affected.iter().map(|root| root.root))?;
        // A copy may differ although its sources do not: attributes above it decide how it is checked out, and its
        // directory, or one above, may be new or gone.
        let may_differ = |dir: &String| Ok(self.source.may_convert(dir) || self.source.at(dir)?.is_some());
        let is_copy_stale = job.plan.new_dir.as_ref().map_or(Ok(false), may_differ)?;
        let holds = self.verified.holds_for(by) && !is_copy_stale;
        // The inputs of a failed build are unknown.
        let is_covered = |root: &ComparedRoot| {
            holds
                && !self.verified.not_built.contains(&root.name)
                // A root that such a kustomization named may have been built only as a part of it.
                && !self.named.contains(&graph.roots[root.root].directory)
                && graph.reachable([root.root]).is_disjoint(&stale)
        };
        Ok(affected.iter().map(|root| is_covered(root).then_some(Verdict::VerifiedBefore)).collect())
    }

    /// The roots whose own inputs differ from those of the record, among those that `starts` reach.
    fn stale_roots(&self, graph: &Graph, starts: impl Iterator<Item = RootId>) -> Result<BTreeSet<RootId>> {
        let mut stale = BTreeSet::new();
        for id in graph.reachable(starts) {
            // A fetched root changes only with its upstream, whose digest is compared.
            if self.has_other_remotes(graph, id)
                || graph.sources[graph.roots[id].source].repository.is_none()
                    && self.source.cause_in(&graph.inputs(id)?.inputs)?.is_some()
            {
                stale.insert(id);
            }
        }
        Ok(stale)
    }

    /// Whether a root reads a fetched upstream that differs.
    fn has_other_remotes(&self, graph: &Graph, id: RootId) -> bool {
        let mut fetched = graph.files_of_build(id).into_iter().filter_map(|file| graph.pinned(file));
        !fetched.all(|(source, now)| self.remotes.get(&source).is_some_and(|pinned| pinned.digest == now.digest))
    }
}
