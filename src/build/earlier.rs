//! What an earlier run has proven, and of which roots that still holds.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};

use super::Job;
use crate::graph::inputs::{Input, Inputs};
use crate::graph::{Graph, Origin, RootId};
use crate::message::failure::Result;
use crate::plan::{Affected, git_remote};
use crate::record::{Builder, Digest, RemoteTrailer, Verified};
use crate::tree::path;

/// What a record says, and everything that is something else now than it was then.
pub(crate) struct Earlier {
    /// What the record says.
    pub verified: Verified,
    /// The paths at which the source differs from that of the record.
    pub source: BTreeSet<String>,
    /// The paths at which the result differs from that of the record.
    pub result: BTreeSet<String>,
    /// What was brought in.
    pub remotes: BTreeSet<RemoteTrailer>,
    /// The directories that a kustomization names which has changed or is gone: a root there may have been built only
    /// as part of another one.
    pub named: BTreeSet<String>,
}

impl Earlier {
    /// Returns whether the record says of each root that it was verified, when `by` built it from nothing but what it
    /// would build it from now.
    pub(super) fn covered(&self, job: &Job<'_>, by: &Builder) -> Result<Vec<bool>> {
        let graph = &job.plan.before;
        let before = Stale::new(graph, &self.source, &self.remotes);
        let after = Stale::new(&job.plan.after, &self.result, &self.remotes);
        let known = job.plan.after.own_roots();
        let is_covered = |one: &Affected| {
            let is_verified = self.verified.holds_for(by)
                && !self.verified.has_not_built(&one.name)
                && !self.named.contains(&graph.roots[one.root].directory);
            let is_same_result = match (&job.plan.new_dir, known.get(one.localized.as_str())) {
                // A copy is one unit, and attributes above it decide how it is checked out.
                (Some(into), _) => self.result.is_empty() && !is_changed(&Input::At(into.clone()), &self.source),
                (None, Some(root)) if is_verified => !after.build(*root)?,
                (None, _) => false,
            };
            Ok(is_verified && is_same_result && !before.build(one.root)?)
        };
        job.plan.affected.iter().map(is_covered).collect()
    }
}

/// The roots of a graph that would be built from something else than a record says.
struct Stale<'a> {
    graph: &'a Graph,
    inputs: Inputs<'a>,
    changed: &'a BTreeSet<String>,
    remotes: &'a BTreeSet<RemoteTrailer>,
    known: RefCell<HashMap<RootId, bool>>,
}

impl<'a> Stale<'a> {
    fn new(graph: &'a Graph, changed: &'a BTreeSet<String>, remotes: &'a BTreeSet<RemoteTrailer>) -> Stale<'a> {
        Stale { graph, inputs: Inputs::of(graph), changed, remotes, known: RefCell::default() }
    }

    /// Returns whether a root, or one that it leads to, would be built from something else.
    fn build(&self, start: RootId) -> Result<bool> {
        for root in self.graph.reach([start], |_, _, _| true) {
            let known = self.known.borrow().get(&root).copied();
            let is_stale = match known {
                Some(known) => known,
                None => self.root(root)?,
            };
            self.known.borrow_mut().insert(root, is_stale);
            if is_stale {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn root(&self, id: RootId) -> Result<bool> {
        let graph = self.graph;
        let is_new = |remote: RemoteTrailer| !self.remotes.contains(&remote);
        let is_new_file =
            |label: String, sha256: &str| is_new(RemoteTrailer { label, digest: Digest::Sha256(sha256.to_owned()) });
        let mut archives = graph.charts_of(id).iter().filter_map(|chart| chart.archive.as_ref());
        if archives.any(|archive| is_new_file(archive.chart.label(), &archive.sha256)) {
            return Ok(true);
        }
        let mut files = graph.read_by(id).into_iter();
        let is_new_origin = |origin: &Origin| match origin {
            Origin::Remote(file) => is_new_file(file.url.shown(), &file.sha256),
            Origin::Tree { .. } | Origin::Archive { .. } => false,
        };
        if files.any(|file| is_new_origin(&graph.files[file].origin)) {
            return Ok(true);
        }
        match &graph.sources[graph.roots[id].source].repository {
            Some(repository) => Ok(is_new(RemoteTrailer::from(&git_remote(repository)))),
            None => Ok(self.inputs.of_root(id)?.own.iter().any(|input| is_changed(input, self.changed))),
        }
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
