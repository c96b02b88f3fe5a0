//! What an earlier run has proven, and of which roots that still holds: what the same version made of the same source and
//! the same remotes is the same.

use std::collections::BTreeSet;

use super::{Job, Verdict};
use crate::graph::inputs::Input;
use crate::graph::{Graph, RootId};
use crate::message::failure::Result;
use crate::plan::Affected;
use crate::record::{Builder, Remotes, Verified};
use crate::tree::path;

/// What a record says, and everything that is something else now than it was then.
pub(crate) struct Earlier {
    /// What the record says.
    pub verified: Verified,
    /// The paths at which the source differs from that of the record.
    pub source: BTreeSet<String>,
    /// What was brought in.
    pub remotes: Remotes,
    /// The directories that a kustomization names which has changed or is gone: a root there may have been built only
    /// as part of another one.
    pub named: BTreeSet<String>,
}

impl Earlier {
    /// Returns what the record says of each root, if `by` built it from nothing but what it would build it from now.
    pub(super) fn verdicts(&self, job: &Job<'_>, by: &Builder) -> Result<Vec<Option<Verdict>>> {
        let (graph, affected) = (&job.plan.before, &job.plan.affected);
        let is_stale = self.stale(graph, affected.iter().map(|one| one.root))?;
        // Attributes above a copy decide how it is checked out.
        let is_moved = |into: &String| is_changed(&Input::At(into.clone()), &self.source);
        let holds = self.verified.holds_for(by) && !job.plan.new_dir.as_ref().is_some_and(is_moved);
        // Of what did not build nobody knows what it reads.
        let is_covered = |one: &Affected| {
            holds
                && !self.verified.not_built.contains(&one.name)
                && !self.named.contains(&graph.roots[one.root].directory)
                && graph.reach([one.root], |_, _| true).is_disjoint(&is_stale)
        };
        Ok(affected.iter().map(|one| is_covered(one).then_some(Verdict::VerifiedBefore)).collect())
    }

    /// Returns the roots that themselves would be built from something else, among those that some lead to.
    fn stale(&self, graph: &Graph, starts: impl Iterator<Item = RootId>) -> Result<BTreeSet<RootId>> {
        let mut stale = BTreeSet::new();
        for id in graph.reach(starts, |_, _| true) {
            if self.has_other_remotes(graph, id)
                || graph.sources[graph.roots[id].source].repository.is_none()
                    && graph.inputs(id)?.own.iter().any(|input| is_changed(input, &self.source))
            {
                stale.insert(id);
            }
        }
        Ok(stale)
    }

    /// Returns whether a root reads something fetched that is not what it was.
    fn has_other_remotes(&self, graph: &Graph, id: RootId) -> bool {
        let mut fetched = graph.read_by(id).into_iter().filter_map(|file| graph.pinned(file));
        !fetched.all(|(source, now)| self.remotes.get(&source).is_some_and(|pinned| pinned.digest == now.digest))
    }
}

/// Returns whether what a build reads, or how it is checked out, is among what has changed. A directory that is new or
/// gone stands for all that is in it.
fn is_changed(input: &Input, changed: &BTreeSet<String>) -> bool {
    let is_at = |place: &str| {
        let mut above = path::and_above(place);
        above.any(|above| {
            let attributes = path::join(path::parent(above), ".gitattributes");
            changed.contains(above) || changed.contains(&attributes)
        })
    };
    match input {
        Input::At(place) => is_at(place),
        Input::Below(place) => {
            let below = if place.is_empty() { String::new() } else { format!("{place}/") };
            is_at(place) || changed.range(below.clone()..).next().is_some_and(|one| one.starts_with(&below))
        }
        // What was brought in for them is compared.
        Input::Remote(_) | Input::Chart(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changes_to_inputs_are_found() {
        let at = ["apps/a/kustomization.yaml", "base/x.yaml"].map(|place| Input::At(place.to_owned()));
        let below = ["charts/web", "scripts/run.sh"].map(|place| Input::Below(place.to_owned()));
        let inputs = [at, below].concat();
        for (changed, expected) in [
            (&["base/x.yaml"] as &[&str], true),
            (&["base"], true),
            (&["README.md", "apps/a/kustomization.yaml"], true),
            (&["charts/web/templates/x.yaml"], true),
            (&["charts"], true),
            (&["scripts/run.sh"], true),
            (&[".gitattributes"], true),
            (&["base/.gitattributes"], true),
            (&["charts/web-2/x", "charts/web.yaml"], false),
            (&["charts/web!", "charts/web/x"], true),
            (&["base/y.yaml", "base/x", "apps/a/x"], false),
            (&["apps/b/.gitattributes"], false),
            (&[], false),
        ] {
            let all = changed.iter().map(|place| (*place).to_owned()).collect();
            assert_eq!(inputs.iter().any(|input| is_changed(input, &all)), expected, "{changed:?}");
        }
        assert!(is_changed(&Input::Below(String::new()), &BTreeSet::from(["README.md".to_owned()])));
    }
}
