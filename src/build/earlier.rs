//! What an earlier run has proven, and of which targets that still holds.

use std::collections::{BTreeSet, HashMap};

use super::{Job, Target};
use crate::graph::{FileId, Graph, Named, Origin, Place, RootId, SourceId, Target as Leads};
use crate::kustomization::FILE_NAMES;
use crate::plan::git_remote;
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
    /// Returns of which targets the record says that they were verified, when `by` built them from nothing but what it
    /// would build them from now.
    pub(super) fn covered(&self, job: &Job<'_>, by: &Builder) -> Vec<bool> {
        let covered = self.covers(job, by, &job.targets);
        let covered = covered.into_iter().zip(&job.targets);
        covered.map(|(is_covered, target)| is_covered && self.is_verified(target)).collect()
    }

    fn is_verified(&self, target: &Target) -> bool {
        !self.verified.has_not_built(&target.name)
    }

    fn covers(&self, job: &Job<'_>, by: &Builder, targets: &[Target]) -> Vec<bool> {
        let before = Reach::new(&job.plan.before);
        let after = job.plan.new_dir.is_none().then(|| Reach::new(&job.plan.after));
        let covers = |target: &Target| {
            let root = match &after {
                Some(_) => before.root(&target.localized),
                None => Some(0),
            };
            let Some(root) = root.filter(|_| self.verified.holds_for(by)) else {
                return false;
            };
            let original = before.inputs(root);
            let is_result_known = match &after {
                Some(after) => {
                    after.root(&target.localized).is_some_and(|root| !after.inputs(root).are_among(&self.result))
                }
                // A copy is one unit, and attributes above it decide how it is checked out.
                None => {
                    let into = job.plan.new_dir.as_deref().unwrap_or_default();
                    let mut above = path::and_above(into).map(path::parent);
                    self.result.is_empty()
                        && !above.any(|directory| {
                            let attributes = path::join(directory, ".gitattributes");
                            let mut places = path::and_above(&attributes);
                            places.any(|place| self.source.contains(place))
                        })
                }
            };
            is_result_known
                && !self.named.contains(&job.plan.before.roots[root].directory)
                && !original.are_among(&self.source)
                && original.remotes.is_subset(&self.remotes)
        };
        targets.iter().map(covers).collect()
    }
}

/// A graph, to be asked for what its roots are built from.
struct Reach<'a> {
    graph: &'a Graph,
    charts: Vec<Named<'a>>,
    /// The roots of the user's tree by their directories.
    roots: HashMap<&'a str, RootId>,
}

/// What one root is built from.
#[derive(Default)]
struct Inputs {
    /// Files of the user's tree.
    files: BTreeSet<String>,
    /// Paths of the user's tree with whatever lies there or below.
    whole: BTreeSet<String>,
    /// What was brought in.
    remotes: BTreeSet<RemoteTrailer>,
}

impl<'a> Reach<'a> {
    fn new(graph: &'a Graph) -> Self {
        Reach { graph, charts: graph.named_charts(), roots: graph.own_roots() }
    }

    /// Returns the root of a directory of the user's tree.
    fn root(&self, directory: &str) -> Option<RootId> {
        self.roots.get(directory).copied()
    }

    fn inputs(&self, start: RootId) -> Inputs {
        let mut inputs = Inputs::default();
        for id in self.graph.reach([start], |_, _, _| true) {
            self.add_root(id, &mut inputs);
        }
        inputs
    }

    fn add_root(&self, id: RootId, inputs: &mut Inputs) {
        let graph = self.graph;
        let root = &graph.roots[id];
        let is_ours = self.add_source(root.source, inputs);
        if is_ours {
            // One that is there besides is an error.
            let names = FILE_NAMES.iter();
            let names = names.map(|name| path::join(&root.directory, name));
            inputs.files.extend(names);
        }
        let (files, carried) = graph.read_by(id);
        for file in files {
            self.add_file(file, inputs);
        }
        for carried in carried {
            let carried = &graph.carried[carried];
            if self.add_source(carried.source, inputs) {
                inputs.whole.insert(carried.path.clone());
            }
        }
        for edge in root.edges.iter().filter(|_| is_ours) {
            if let Leads::Remote | Leads::Kept | Leads::Broken = edge.target {
                let named = path::resolve(&root.directory, &edge.reference.text);
                inputs.whole.extend(named);
            }
        }
        for chart in graph.charts.iter().filter(|chart| chart.root == id) {
            if let Some((archive, _)) = &chart.brought {
                inputs.remotes.insert(RemoteTrailer {
                    label: archive.chart.label(),
                    digest: Digest::Sha256(archive.sha256.clone()),
                });
            }
        }
        for chart in self.charts.iter().filter(|chart| chart.noted.root == id) {
            if let (true, Place::There(place) | Place::Missing(place)) = (is_ours, &chart.place) {
                inputs.whole.insert(place.clone());
            }
        }
    }

    /// Adds the repository of a source, and returns whether it is the user's tree.
    fn add_source(&self, source: SourceId, inputs: &mut Inputs) -> bool {
        let Some(repository) = &self.graph.sources[source].repository else {
            return true;
        };
        let remote = git_remote(repository);
        inputs.remotes.insert(RemoteTrailer::from(&remote));
        false
    }

    fn add_file(&self, file: FileId, inputs: &mut Inputs) {
        match &self.graph.files[file].origin {
            Origin::Tree { source, path } => {
                if self.add_source(*source, inputs) {
                    inputs.files.insert(path.clone());
                }
            }
            Origin::Remote(file) => {
                inputs
                    .remotes
                    .insert(RemoteTrailer { label: file.url.shown(), digest: Digest::Sha256(file.sha256.clone()) });
            }
            // It is added with its chart.
            Origin::Archive { .. } => {}
        }
    }
}

impl Inputs {
    /// Returns whether some of them are among `changed` paths. A directory that is new or gone stands for all that is
    /// in it.
    fn are_among(&self, changed: &BTreeSet<String>) -> bool {
        let is_changed = |place: &String| {
            let mut above = path::and_above(place);
            above.any(|above| {
                let attributes = path::join(path::parent(above), ".gitattributes");
                changed.contains(above) || changed.contains(&attributes)
            })
        };
        let is_changed_below = |place: &String| {
            let inside = |other: &String| path::is_in(other, place);
            changed.range(place.clone()..).next().is_some_and(inside)
                || changed.range(format!("{place}/")..).next().is_some_and(inside)
        };
        let mut whole = self.whole.iter();
        self.files.iter().chain(&self.whole).any(is_changed) || whole.any(is_changed_below)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changes_to_inputs_are_found() {
        let set = |places: &[&str]| places.iter().map(|place| (*place).to_owned()).collect();
        let inputs = Inputs {
            files: set(&["apps/a/kustomization.yaml", "base/x.yaml"]),
            whole: set(&["charts/web", "scripts/run.sh"]),
            remotes: BTreeSet::new(),
        };
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
            assert_eq!(inputs.are_among(&set(changed)), expected, "{changed:?}");
        }
        let top = Inputs { whole: set(&[""]), ..Inputs::default() };
        assert!(top.are_among(&set(&["README.md"])));
    }
}
