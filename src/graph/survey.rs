//! What the files of a tree say, found once in a run and as far as it is asked for.

use std::cell::{Ref, RefCell};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use super::trouble::At;
use super::{
    Edge, EdgeId, Explored, FileId, Graph, Noted, Origin, Policy, Remotes, RootId, Source, Target, Trouble,
    TroubleKind, Walker,
};
use crate::kustomization::Accepts;
use crate::os::failpoint;
use crate::tree::SharedTree;

/// What the files of a tree say. It judges nothing: it knows no configuration, no lock and no network.
pub(crate) struct Survey {
    walker: RefCell<Walker>,
}

impl Survey {
    /// Begins to look at a tree from its top.
    pub(crate) fn of(tree: SharedTree) -> Survey {
        Survey::in_scope(Source { tree, scope: String::new(), repository: None })
    }

    pub(super) fn in_scope(source: Source) -> Survey {
        failpoint::walks();
        let mut walker = Walker::default();
        walker.graph.sources.push(source);
        Survey { walker: RefCell::new(walker) }
    }

    pub(crate) fn tree(&self) -> SharedTree {
        self.walker.borrow().graph.sources[0].tree.clone()
    }

    /// Walks what the roots in `directories` (real paths) reference, as far as it was not walked before. What cannot be
    /// followed never stops the rest. Returns what all walks have found.
    pub(crate) fn walk(&self, directories: &[String]) -> Ref<'_, Graph> {
        let mut walker = self.walker.borrow_mut();
        walker.start(directories);
        walker.follow_all(None);
        drop(walker);
        Ref::map(self.walker.borrow(), |walker| &walker.graph)
    }

    /// Returns what the roots in `directories` lead to.
    pub(crate) fn graph(&self, directories: &[String]) -> Graph {
        drop(self.walk(directories));
        self.walker.borrow().part(directories).0.graph
    }

    /// Returns whether a root that was walked names a file outside of itself.
    pub(crate) fn leaves_roots(&self) -> bool {
        let walker = self.walker.borrow();
        walker.troubles.iter().any(|trouble| trouble.kind == TroubleKind::Restricted)
    }

    /// Returns the files of the tree that the roots in `directories`, and those that they lead to, list as resources.
    pub(crate) fn listed(&self, directories: &[String]) -> BTreeSet<String> {
        drop(self.walk(directories));
        let walker = self.walker.borrow();
        let roots = walker.reached(walker.starts(directories).into_iter().flatten());
        let edges = roots.into_iter().flat_map(|root| &walker.graph.roots[root].edges);
        let edges = edges.filter(|edge| edge.reference.accepts == Accepts::Either);
        edges.filter_map(|edge| walker.graph.own_file(edge)).map(str::to_owned).collect()
    }

    /// Returns what the roots in `directories` lead to, with what a policy says about it.
    pub(crate) fn judged(&self, directories: &[String], policy: &Policy<'_>) -> Explored {
        drop(self.walk(directories));
        let (part, starts) = self.walker.borrow().part(directories);
        part.judged(starts, None, policy)
    }

    /// Returns what the roots in `directories` lead to, with `remotes` also where something remote is named that does not
    /// stay so.
    pub(crate) fn explore(
        &self,
        directories: &[String],
        remotes: Option<&mut dyn Remotes>,
        policy: &Policy<'_>,
    ) -> Explored {
        let Some(remotes) = remotes else { return self.judged(directories, policy) };
        let mut walker = self.walker.borrow_mut();
        walker.start(directories);
        walker.follow_all(Some(&mut *remotes));
        let (part, starts) = walker.part(directories);
        drop(walker);
        part.judged(starts, Some(remotes), policy)
    }
}

/// The new numbers of what is kept, by the old ones.
struct Kept {
    roots: HashMap<RootId, RootId>,
    files: HashMap<FileId, FileId>,
}

impl Walker {
    /// Returns what some directories lead to, as if nothing else had been walked, and the root of each.
    fn part(&self, directories: &[String]) -> (Walker, Vec<Option<RootId>>) {
        let starts = self.starts(directories);
        let roots = self.reached(starts.iter().flatten().copied());
        let is_whole = roots.len() == self.graph.roots.len();
        let (mut part, starts) = if is_whole { (self.whole(), starts) } else { self.among(&roots, &starts) };
        let stops = directories.iter().filter_map(|directory| self.started.get(directory)?.as_ref()?.as_ref().err());
        part.troubles.extend(stops.map(|stop| Trouble::clone(stop)));
        (part, starts)
    }

    /// Returns the root in each of some directories where a walk has started.
    fn starts(&self, directories: &[String]) -> Vec<Option<RootId>> {
        let root = |directory| self.started.get(directory)?.as_ref()?.as_ref().ok().copied();
        directories.iter().map(root).collect()
    }

    /// Returns all that was walked.
    fn whole(&self) -> Walker {
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
            ..Walker::default()
        }
    }

    /// Returns what was walked of some roots.
    fn among(&self, roots: &[RootId], starts: &[Option<RootId>]) -> (Walker, Vec<Option<RootId>>) {
        let files: BTreeSet<FileId> = roots.iter().flat_map(|root| self.graph.used_by(*root)).collect();
        let kept = Kept {
            files: files.iter().enumerate().map(|(new, old)| (*old, FileId(new))).collect(),
            roots: roots.iter().enumerate().map(|(new, old)| (*old, RootId(new))).collect(),
        };
        let mut part = Walker {
            graph: kept.graph(&self.graph, roots, &files),
            references_read: self.references_read,
            remotes: self.remotes,
            is_full: self.is_full,
            ..Walker::default()
        };
        for (id, file) in part.graph.file_ids().zip(part.graph.files.iter()) {
            if let Origin::Tree { source, path } = &file.origin {
                Rc::make_mut(&mut part.files).entry(*source).or_default().insert(path.clone(), id);
            }
        }
        part.pending = self.pending.iter().filter_map(|edge| kept.edge(*edge)).collect();
        let plugins = self.plugins.iter().filter_map(|(root, file)| Some((kept.root(*root)?, kept.file(*file)?)));
        part.plugins = plugins.collect();
        let plugin_roots = self
            .plugin_roots
            .iter()
            .filter_map(|((lister, root), field)| Some(((kept.root(*lister)?, kept.root(*root)?), field.clone())));
        part.plugin_roots = plugin_roots.collect();
        let read = self.read_plugins.iter().filter_map(|(file, read)| Some((kept.file(*file)?, read.clone())));
        part.read_plugins = read.collect();
        let plugins = part.plugins.iter().map(|(_, file)| *file);
        let read: HashSet<FileId> = plugins.chain(part.graph.roots.iter().map(|root| root.file)).collect();
        let troubles = self.troubles.iter().filter_map(|trouble| {
            let at = match trouble.at {
                At::Edge(edge) => At::Edge(kept.edge(edge)?),
                At::File(file) => At::File(kept.file(file).filter(|file| read.contains(file))?),
                At::Nothing => At::Nothing,
                At::Note(_) => return None,
            };
            Some(Trouble { at, ..trouble.clone() })
        });
        part.troubles = troubles.collect();
        (part, starts.iter().map(|start| kept.root((*start)?)).collect())
    }

    /// Returns these roots and those that they lead to, in the order in which a walk finds them.
    fn reached(&self, starts: impl Iterator<Item = RootId>) -> Vec<RootId> {
        let mut seen = HashSet::new();
        let mut reached: Vec<RootId> = starts.filter(|root| seen.insert(*root)).collect();
        let mut next = 0;
        while let Some(root) = reached.get(next).copied() {
            next += 1;
            for (edge, Edge { target, .. }) in self.graph.edges_of(root) {
                let id = match target {
                    Target::Root { id, .. } => Some(*id),
                    _ => self.misfits.get(&edge).copied(),
                };
                reached.extend(id.filter(|id| seen.insert(*id)));
            }
        }
        reached
    }
}

impl Kept {
    fn root(&self, root: RootId) -> Option<RootId> {
        self.roots.get(&root).copied()
    }

    fn edge(&self, edge: EdgeId) -> Option<EdgeId> {
        Some(EdgeId { root: self.root(edge.root)?, ..edge })
    }

    fn file(&self, file: FileId) -> Option<FileId> {
        self.files.get(&file).copied()
    }

    fn graph(&self, of: &Graph, roots: &[RootId], files: &BTreeSet<FileId>) -> Graph {
        let notes = of.notes.iter().filter_map(|noted| {
            let (root, file) = (self.root(noted.root)?, self.file(noted.file)?);
            Some(Noted { root, file, note: noted.note.clone() })
        });
        let files = files.iter().map(|file| of.files[*file].clone());
        let mut graph = Graph {
            sources: of.sources.clone(),
            files: files.collect::<Vec<_>>().into(),
            notes: notes.collect::<Vec<_>>().into(),
            ..Graph::default()
        };
        for (id, root) in roots.iter().enumerate().map(|(id, root)| (RootId(id), root)) {
            let mut root = of.roots[*root].clone();
            root.file = self.files[&root.file];
            for edge in &mut root.edges {
                edge.from = self.files[&edge.from];
                edge.target = match edge.target {
                    Target::Root { id, remote } => Target::Root { id: self.roots[&id], remote },
                    Target::File(file) => Target::File(self.files[&file]),
                    other => other,
                };
            }
            Rc::make_mut(&mut graph.directories).entry(root.source).or_default().insert(root.directory.clone(), id);
            Rc::make_mut(&mut graph.roots).push(root);
        }
        graph
    }
}

impl Graph {
    /// Returns the files that a root names, and those in which it does.
    pub(super) fn used_by(&self, root: RootId) -> impl Iterator<Item = FileId> {
        let of_edge = |edge: &Edge| match edge.target {
            Target::File(file) => [Some(edge.from), Some(file)],
            _ => [Some(edge.from), None],
        };
        let edges = self.roots[root].edges.iter();
        edges.flat_map(of_edge).flatten().chain([self.roots[root].file])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::explore;
    use crate::graph::testing::{source, tree};
    use crate::record::LoadRestrictor;

    /// Roots that share others, a plugin and a component, and in which something is wrong.
    const FILES: [(&str, &str); 9] = [
        ("a/kustomization.yaml", "resources: [../base, ../c, gone.yaml]\nconfigurations: [../x/config.yaml]\n"),
        ("b/kustomization.yaml", "generators: [../x/gen.yaml]\nresources: [../base, 'https://h/o/r?ref=v1']\n"),
        ("base/kustomization.yaml", "resources: [map.yaml]\nhelmCharts: [{name: c}]\n"),
        ("base/map.yaml", "kind: ConfigMap\n"),
        ("c/kustomization.yaml", "kind: Component\nresources: [../gone]\n"),
        ("d/kustomization.yaml", "resources: [../x/gen.yaml, ../c]\n"),
        ("x/config.yaml", ""),
        (
            "x/gen.yaml",
            "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: a}\nfiles: [missing]\nodd: 1\n",
        ),
        ("none/file.yaml", ""),
    ];

    /// Returns everything that was found, in its order.
    fn told(Explored { graph, troubles, starts }: &Explored) -> Vec<String> {
        let edges = graph.edges().map(|(EdgeId { root, .. }, edge)| {
            let to = graph.led_to(edge).map(|file| graph.label(file));
            format!("{} {} {} {to:?}", root.0, graph.root_label(root), edge.reference.text)
        });
        let notes = graph.notes.iter().map(|noted| format!("{} {:?}", graph.root_label(noted.root), noted.note));
        let charts = graph.charts.iter().map(|chart| format!("{} {:?}", graph.root_label(chart.root), chart.place));
        let troubles = troubles.iter().map(|trouble| format!("{:?}", trouble.failure));
        let starts = starts.iter().map(|start| format!("{start:?}"));
        edges.chain(notes).chain(charts).chain(troubles).chain(starts).collect()
    }

    #[test]
    fn a_part_of_a_survey_is_what_a_walk_from_there_finds() {
        let policies = [
            Policy::default(),
            Policy { load_restrictor: LoadRestrictor::None, ..Policy::default() },
            Policy { unrestricted: ["a".to_owned()].into(), leave_missing: Some(&|_| true), ..Policy::default() },
        ];
        let all = ["a", "b", "c", "d", "none", "base"];
        for policy in policies {
            let survey = Survey::of(Rc::new(tree(&FILES)));
            drop(survey.walk(&["c".to_owned()]));
            for number in 1..1 << all.len() {
                let some = all.iter().enumerate().filter(|(index, _)| number & 1 << index != 0);
                let some: Vec<String> = some.map(|(_, one)| (*one).to_owned()).collect();
                let alone = explore(source(&FILES), &some, None, &policy);
                // In a graph that others have begun, roots have other numbers.
                let sorted = |explored| {
                    let mut told: Vec<String> = told(explored)
                        .into_iter()
                        .map(|one| one.trim_start_matches(char::is_numeric).to_owned())
                        .collect();
                    told.retain(|one| !one.starts_with("Some("));
                    told.sort();
                    told
                };
                assert_eq!(sorted(&survey.judged(&some, &policy)), sorted(&alone), "{some:?}");
            }
        }
    }
}
