//! The survey of a tree: its references, walked once per run, and only as far as a command asks for them.

use std::cell::{Ref, RefCell};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use super::trouble::At;
use super::{
    Edge, EdgeId, Explored, FileId, Graph, Noted, Remotes, Resolution, RootId, ScopedTree, Trouble, TroubleKind,
    WalkPolicy, Walker,
};
use crate::kustomization::Accepts;
use crate::os::failpoint;
use crate::tree::SharedTree;

/// The references of the files of a tree. A survey judges nothing: it knows no configuration, lock or network.
pub(crate) struct Survey {
    walker: RefCell<Walker>,
}

impl Survey {
    /// Begins a survey of the whole tree. Nothing is read yet.
    pub(crate) fn of(tree: SharedTree) -> Survey {
        Survey::in_scope(ScopedTree::user(tree))
    }

    /// Begins a survey of a tree whose references are bounded by a scope. Nothing is read yet.
    pub(super) fn in_scope(source: ScopedTree) -> Survey {
        failpoint::walks();
        let mut walker = Walker::default();
        walker.graph.sources.push(source);
        Survey { walker: RefCell::new(walker) }
    }

    /// The tree that is surveyed.
    pub(crate) fn tree(&self) -> SharedTree {
        self.walker.borrow().graph.sources[0].tree.clone()
    }

    /// Walks the references of the roots in `directories` (real paths), as far as they were not walked before. A
    /// reference that cannot be followed never stops the rest. Returns the graph of all walks so far.
    pub(crate) fn walk(&self, directories: &[String]) -> Ref<'_, Graph> {
        let mut walker = self.walker.borrow_mut();
        walker.start(directories);
        walker.follow_all(None);
        drop(walker);
        Ref::map(self.walker.borrow(), |walker| &walker.graph)
    }

    /// The part of the graph that the roots in `directories` reach.
    pub(crate) fn graph(&self, directories: &[String]) -> Graph {
        drop(self.walk(directories));
        self.walker.borrow().part(directories).0.graph
    }

    /// Whether a root that was walked references a file outside of itself.
    pub(crate) fn leaves_roots(&self) -> bool {
        let walker = self.walker.borrow();
        walker.troubles.iter().any(|trouble| trouble.kind == TroubleKind::Restricted)
    }

    /// The files of the tree that the roots in `directories`, and all roots that they reach, list as resources.
    pub(crate) fn listed(&self, directories: &[String]) -> BTreeSet<String> {
        drop(self.walk(directories));
        let walker = self.walker.borrow();
        let roots = walker.reached(walker.starts(directories).into_iter().flatten());
        let edges = roots.into_iter().flat_map(|root| &walker.graph.roots[root].edges);
        let edges = edges.filter(|edge| edge.reference.accepts == Accepts::Either);
        edges.filter_map(|edge| walker.graph.user_file(edge)).map(str::to_owned).collect()
    }

    /// The part of the graph that the roots in `directories` reach, judged by a policy, without fetching.
    pub(crate) fn judged(&self, directories: &[String], policy: &WalkPolicy<'_>) -> Explored {
        drop(self.walk(directories));
        let (part, starts) = self.walker.borrow().part(directories);
        part.judged(starts, None, policy)
    }

    /// Walks from the roots in `directories`, and returns the part of the graph that they reach, judged by a policy.
    /// With `remotes`, remote references that do not stay remote are fetched and followed. Otherwise nothing is
    /// fetched.
    pub(crate) fn explore(
        &self,
        directories: &[String],
        remotes: Option<&mut dyn Remotes>,
        policy: &WalkPolicy<'_>,
    ) -> Explored {
        let Some(remotes) = remotes else { return self.judged(directories, policy) };
        let mut walker = self.walker.borrow_mut();
        walker.start(directories);
        // The surveyed tree may be a fetched repository, whose files are fetched as the walk needs them.
        walker.follow_all(Some(&mut *remotes));
        let (part, starts) = walker.part(directories);
        drop(walker);
        part.judged(starts, Some(remotes), policy)
    }
}

impl Walker {
    /// The part of the walk that some directories reach, as if nothing else had been walked, and the root of each.
    fn part(&self, directories: &[String]) -> (Walker, Vec<Option<RootId>>) {
        let starts = self.starts(directories);
        let roots = self.reached(starts.iter().flatten().copied());
        // If all roots are in the part, they keep their ids and need no copy.
        let is_whole = roots.len() == self.graph.roots.len();
        let (mut part, starts) = if is_whole { (self.copy(), starts) } else { self.copy_roots(&roots, &starts) };
        // The trouble of a directory without a root is in `started`, and not among those of the walk.
        let troubles = directories.iter().filter_map(|directory| self.started.get(directory)?.as_ref()?.as_ref().err());
        part.troubles.extend(troubles.map(|trouble| Trouble::clone(trouble)));
        (part, starts)
    }

    /// The root in each of some directories at which a walk has started.
    fn starts(&self, directories: &[String]) -> Vec<Option<RootId>> {
        let roots = directories.iter().map(|directory| self.started.get(directory)?.as_ref()?.as_ref().ok().copied());
        roots.collect()
    }

    /// A copy of the whole walk, for a caller that judges it: a survey itself is never judged, because other callers
    /// use it with other policies.
    fn copy(&self) -> Walker {
        Walker {
            graph: self.graph.clone(),
            files: self.files.clone(),
            pending: self.pending.clone(),
            plugin_roots: self.plugin_roots.clone(),
            plugins: self.plugins.clone(),
            read_plugins: self.read_plugins.clone(),
            references_read: self.references_read,
            remotes: self.remotes,
            is_full: self.is_full,
            troubles: self.troubles.clone(),
            // The other fields are still empty, or a copy does not need them: `references` only saves memory, and
            // `started` and `misfits` tell which roots a part has.
            ..Walker::default()
        }
    }

    /// A copy of the walk without the roots that are not in `roots`, so that their troubles do not count. The roots of
    /// the copy get new ids; files keep their ids. Also returns `starts` with their new ids.
    fn copy_roots(&self, roots: &[RootId], starts: &[Option<RootId>]) -> (Walker, Vec<Option<RootId>>) {
        let new_ids = NewIds(roots.iter().copied().zip((0..).map(RootId)).collect());
        let mut part = Walker {
            graph: self.graph.copy_roots(roots, &new_ids),
            files: self.files.clone(),
            read_plugins: self.read_plugins.clone(),
            // A part has no limits of its own: those of the whole walk were counted already.
            references_read: self.references_read,
            remotes: self.remotes,
            is_full: self.is_full,
            ..Walker::default()
        };
        // Pending references and plugin configurations count only if the part has their roots.
        part.pending = self.pending.iter().filter_map(|edge| new_ids.edge(*edge)).collect();
        let plugins = self.plugins.iter().filter_map(|(root, file)| Some((new_ids.root(*root)?, *file)));
        part.plugins = plugins.collect();
        let plugin_roots = self.plugin_roots.iter().filter_map(|((lister, root), field)| {
            let key = (new_ids.root(*lister)?, new_ids.root(*root)?);
            Some((key, field.clone()))
        });
        part.plugin_roots = plugin_roots.collect();
        // A trouble in a file counts only if the part has read that file.
        let plugins = part.plugins.iter().map(|(_, file)| *file);
        let read: HashSet<FileId> = plugins.chain(part.graph.roots.iter().map(|root| root.file)).collect();
        let troubles = self.troubles.iter().filter_map(|trouble| {
            let at = match trouble.at {
                At::Edge(edge) => At::Edge(new_ids.edge(edge)?),
                At::File(file) => At::File(Some(file).filter(|file| read.contains(file))?),
                At::Nothing => At::Nothing,
                // Troubles of charts come from judging, and each part is judged by the policy of its own run.
                At::Note(_) => return None,
            };
            Some(Trouble { at, ..trouble.clone() })
        });
        part.troubles = troubles.collect();
        (part, starts.iter().map(|start| new_ids.root((*start)?)).collect())
    }

    /// `starts` and all roots that they reach, in the order in which a walk that starts there would enter them.
    fn reached(&self, starts: impl Iterator<Item = RootId>) -> Vec<RootId> {
        let mut seen = HashSet::new();
        let mut reached: Vec<RootId> = starts.filter(|root| seen.insert(*root)).collect();
        let mut next = 0;
        while let Some(root) = reached.get(next).copied() {
            next += 1;
            for (edge, Edge { resolution: target, .. }) in self.graph.edges_of(root) {
                let id = match target {
                    Resolution::Root { id, .. } => Some(*id),
                    // A root of the wrong kind was walked as well, so its troubles count.
                    _ => self.misfits.get(&edge).copied(),
                };
                reached.extend(id.filter(|id| seen.insert(*id)));
            }
        }
        reached
    }
}

/// The new ids of the roots of a part, by their ids in the whole graph.
struct NewIds(HashMap<RootId, RootId>);

impl NewIds {
    fn root(&self, root: RootId) -> Option<RootId> {
        self.0.get(&root).copied()
    }

    fn edge(&self, edge: EdgeId) -> Option<EdgeId> {
        Some(EdgeId { root: self.root(edge.root)?, ..edge })
    }
}

impl Graph {
    /// A copy of the part of the graph that belongs to `roots`, which include all roots that they reach.
    fn copy_roots(&self, roots: &[RootId], new_ids: &NewIds) -> Graph {
        let notes =
            self.notes.iter().filter_map(|noted| Some(Noted { root: new_ids.root(noted.root)?, ..noted.clone() }));
        let mut graph = Graph {
            sources: self.sources.clone(),
            files: self.files.clone(),
            notes: notes.collect::<Vec<_>>().into(),
            ..Graph::default()
        };
        // Files are shared with the survey; only roots, and the references to them, are renumbered.
        for (old, new) in roots.iter().zip((0..).map(RootId)) {
            let mut root = self.roots[*old].clone();
            for edge in &mut root.edges {
                // References to roots outside of the part do not occur: the caller has collected all that `roots`
                // reach.
                if let Resolution::Root { id, .. } = &mut edge.resolution {
                    *id = new_ids.0[id];
                }
            }
            Rc::make_mut(&mut graph.directories).entry(root.source).or_default().insert(root.directory.clone(), new);
            Rc::make_mut(&mut graph.roots).push(root);
        }
        graph
    }

    /// The files that a root references, and the files that have its references.
    pub(crate) fn files_of(&self, root: RootId) -> impl Iterator<Item = FileId> {
        let root = &self.roots[root];
        root.files().chain(root.edges.iter().filter_map(Edge::file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::testing::{source, tree};
    use crate::record::LoadRestrictor;

    /// A file that cannot be read.
    const LFS: &str = "version https://git-lfs.github.com/spec/v1\n";

    /// Roots that share others, a plugin and a component, and in which something is wrong.
    const FILES: [(&str, &str); 12] = [
        ("a/kustomization.yaml", "resources: [../base, ../c, ../lfs]\nconfigurations: [../x/config.yaml]\n"),
        ("b/kustomization.yaml", "generators: [../x/gen.yaml]\nresources: [../base, 'https://h/o/r?ref=v1']\n"),
        ("base/kustomization.yaml", "resources: [map.yaml]\nhelmCharts: [{name: c}]\n"),
        ("base/map.yaml", "kind: ConfigMap\n"),
        ("c/kustomization.yaml", "kind: Component\nresources: [../gone]\n"),
        ("d/kustomization.yaml", "resources: [../x/gen.yaml, ../c, ../lfs]\ngenerators: [../x/lfs.yaml]\n"),
        ("e/kustomization.yaml", "resources: [gone.yaml]\ngenerators: [../x/lfs.yaml]\n"),
        ("lfs/kustomization.yaml", LFS),
        ("x/config.yaml", ""),
        ("x/lfs.yaml", LFS),
        (
            "x/gen.yaml",
            "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: a}\nfiles: [missing]\nodd: 1\n",
        ),
        ("none/file.yaml", ""),
    ];

    /// Everything that was found, one line each, in its order.
    fn lines(Explored { graph, troubles, starts }: &Explored) -> Vec<String> {
        let edges = graph.edges().map(|(EdgeId { root, .. }, edge)| {
            let to = graph.resolved_file(edge).map(|file| graph.label(file));
            format!("{} {} {} {to:?}", root.0, graph.root_label(root), edge.reference.text)
        });
        let notes = graph.notes.iter().map(|noted| format!("{} {:?}", graph.root_label(noted.root), noted.note));
        let charts = graph.charts.iter().map(|chart| format!("{} {:?}", graph.root_label(chart.root), chart.lookup));
        let troubles = troubles.iter().map(|trouble| format!("{:?}", trouble.failure));
        let starts = starts.iter().map(|start| format!("{start:?}"));
        edges.chain(notes).chain(charts).chain(troubles).chain(starts).collect()
    }

    #[test]
    fn a_part_of_a_survey_is_what_a_walk_from_there_finds() {
        let policies = [
            WalkPolicy::default(),
            WalkPolicy { load_restrictor: LoadRestrictor::None, ..WalkPolicy::default() },
            WalkPolicy {
                unrestricted: ["a".to_owned()].into(),
                allows_missing: Some(&|_| true),
                ..WalkPolicy::default()
            },
        ];
        let all = ["a", "b", "c", "d", "e", "lfs", "none", "base"];
        for policy in policies {
            let survey = Survey::of(Rc::new(tree(&FILES)));
            drop(survey.walk(&["c".to_owned()]));
            for number in 1..1 << all.len() {
                let some = all.iter().enumerate().filter(|(index, _)| number & 1 << index != 0);
                let some: Vec<String> = some.map(|(_, name)| (*name).to_owned()).collect();
                let alone = Survey::in_scope(source(&FILES)).judged(&some, &policy);
                // Ids of roots differ in a graph that other roots have begun.
                let sorted = |explored| {
                    let mut lines: Vec<String> = lines(explored)
                        .into_iter()
                        .map(|line| line.trim_start_matches(char::is_numeric).to_owned())
                        .collect();
                    lines.retain(|line| !line.starts_with("Some("));
                    lines.sort();
                    lines
                };
                assert_eq!(sorted(&survey.judged(&some, &policy)), sorted(&alone), "{some:?}");
            }
        }
    }
}
