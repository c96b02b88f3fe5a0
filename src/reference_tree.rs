//! The reference graph as people see it: what names what, and in which state it is.

mod deployed;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

pub(crate) use deployed::Survey;

use serde::Serialize;

use crate::check;
use crate::config::Config;
use crate::graph::{
    self, At, Edge, Explored, FileId, Graph, Origin, Place, RootId, Source, Target, TroubleKind, reach,
};
use crate::kustomization::Kind;
use crate::message::failure::{Result, short};
use crate::message::redact;
use crate::plan::update::reference_to;
use crate::record::{Digest, LOCK_NAME, Lock, Remote};
use crate::reference::{self, Pin};
use crate::tree::{Tree, path};

/// Walks a tree without a network, from the roots in `paths` (from the top), or else from all that no other root names.
/// With `indirect`, references of remotes are included as well, from the lock.
pub(crate) fn survey(tree: Rc<dyn Tree>, config: &Config, paths: &[String], indirect: bool) -> Result<ReferenceTree> {
    let directories = config.starting_points(&*tree, paths, &tree.kustomizations()?)?;
    let locks = locks(&*tree)?;
    let options = graph::Options { load_restrictor: config.load_restrictor, ..graph::Options::default() };
    let source = Source { tree, scope: String::new(), repository: None };
    let explored = graph::explore(source, &directories, None, &options);
    let flux = check::flux_objects(&explored);
    let roots: Vec<RootId> = explored.starts.iter().copied().flatten().collect();
    let roots = roots.into_iter().filter(|root| !flux.contains(&explored.graph.roots[*root].file));
    let roots: Vec<RootId> = roots.collect();
    // Show the requested nodes, and below them only what nothing else leads to.
    let is_asked_for = |root: &RootId| {
        let root = &explored.graph.roots[*root];
        let file = path::join(&root.directory, root.file_name);
        paths.iter().any(|path| [&root.directory, &file].contains(&path))
    };
    let mut starts: BTreeSet<RootId> = roots.iter().copied().filter(is_asked_for).collect();
    let all = 0..explored.graph.roots.len();
    starts.extend(unnamed(&explored.graph, roots, all));
    let starts: Vec<RootId> = starts.into_iter().collect();
    Ok(ReferenceTree::of(&explored, &starts, &locks, indirect))
}

/// Returns the locks of a tree, each with the directory that it lies in.
fn locks(tree: &dyn Tree) -> Result<Vec<(String, Lock)>> {
    let read = |place: &String| {
        let lock = Lock::parse(&tree.read(place)?, &tree.label(place))?;
        Ok((path::parent(place).to_owned(), lock))
    };
    tree.locks()?.iter().map(read).collect()
}

/// Returns the roots to which none of `others` leads but themselves, and one of each ring that is left.
pub(crate) fn unnamed(graph: &Graph, roots: Vec<RootId>, others: impl IntoIterator<Item = RootId>) -> Vec<RootId> {
    let named = |id: RootId| {
        graph.roots[id].edges.iter().filter_map(move |edge| match edge.target {
            Target::Root { id: other, .. } if other != id => Some(other),
            _ => None,
        })
    };
    let all: BTreeSet<RootId> = others.into_iter().flat_map(named).collect();
    let mut starts: Vec<RootId> = Vec::new();
    let mut reached = BTreeSet::new();
    let (below, above): (Vec<RootId>, Vec<RootId>) = roots.iter().partition(|id| all.contains(id));
    for root in above.into_iter().chain(below) {
        if reached.contains(&root) {
            continue;
        }
        starts.push(root);
        reached.extend(graph.reach([root], |_, _, _| true));
    }
    starts.sort_unstable();
    starts
}

/// Something that is named, or that names something.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Node {
    /// Its path from the top of the repository (`.` for the top), or its URL without secrets.
    pub name: String,
    /// What it is.
    #[serde(flatten)]
    pub kind: NodeKind,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum NodeKind {
    /// A kustomization root.
    #[serde(rename = "kustomization")]
    Root {
        component: bool,
        /// The [label](Remote::label) of the remote that it was brought in from.
        localized: Option<String>,
        /// Why its references are unknown, in a word or two.
        #[serde(rename = "why")]
        broken: Option<&'static str>,
    },
    File {
        /// The [label](Remote::label) of the remote that it was brought in from.
        localized: Option<String>,
    },
    /// A directory of another repository.
    Git {
        /// The ref as written.
        #[serde(rename = "ref")]
        reference: Option<String>,
        /// How firmly the ref names a commit.
        pin: Pin,
        /// The commit that the lock holds for it.
        locked: Option<Digest>,
    },
    /// A file on another host.
    Http {
        /// The digest that the lock holds for it.
        locked: Option<Digest>,
    },
    /// A Helm chart of a repository.
    Chart {
        /// The digest that the lock holds for its archive.
        locked: Option<Digest>,
    },
    /// What cannot be followed.
    Broken {
        /// Why, in a word or two.
        why: &'static str,
    },
}

impl Node {
    /// Returns whether it is on another host, or was brought in from one.
    pub(crate) fn is_remote(&self) -> bool {
        match &self.kind {
            NodeKind::Git { .. } | NodeKind::Http { .. } | NodeKind::Chart { .. } => true,
            NodeKind::Root { localized, .. } | NodeKind::File { localized } => localized.is_some(),
            NodeKind::Broken { .. } => false,
        }
    }

    /// Returns what there is to know about it besides its name; empty for an ordinary root or file.
    pub(crate) fn state(&self) -> String {
        let locked = |locked: &Option<Digest>| match locked {
            Some(digest) => format!("locked {}", short(digest.hex())),
            None => "not locked".to_owned(),
        };
        let from = |localized: &Option<String>| localized.as_ref().map(|label| format!("from {label}"));
        match &self.kind {
            NodeKind::Root { component, localized, broken } => {
                let parts = [component.then(|| "component".to_owned()), from(localized), broken.map(str::to_owned)];
                parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
            }
            NodeKind::File { localized } => from(localized).unwrap_or_default(),
            NodeKind::Git { pin, locked: state, .. } => match pin {
                Pin::None => format!("no ref, {}", locked(state)),
                pin => format!("{}, {}", pin.name(), locked(state)),
            },
            NodeKind::Http { locked: state } => locked(state),
            NodeKind::Chart { locked: state } => format!("chart, {}", locked(state)),
            NodeKind::Broken { why } => (*why).to_owned(),
        }
    }
}

/// One reference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Link {
    /// What names: index into [`ReferenceTree::nodes`].
    pub from: usize,
    /// What is named: index into [`ReferenceTree::nodes`].
    pub to: usize,
    /// The file that holds the reference.
    #[serde(rename = "path")]
    pub file: String,
    /// Its line, from 1; 0 if it is known from the lock only.
    pub line: usize,
    /// Its column in characters, from 1; 0 if it is known from the lock only.
    pub column: usize,
    /// Its field, as `resources[2]`.
    pub field: String,
    /// Its text, without secrets.
    pub reference: String,
}

/// The graph.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct ReferenceTree {
    /// What names and is named, each once.
    pub nodes: Vec<Node>,
    /// Where to begin reading.
    pub starts: Vec<usize>,
    /// The references, those of one node in their order in the file.
    #[serde(rename = "references")]
    pub links: Vec<Link>,
}

impl ReferenceTree {
    /// Makes the reference tree of a walk without a network. `starts` are the roots to begin with; `locks` those of the
    /// tree, each with the directory that it lies in. With `indirect`, references of remotes are included as well, from
    /// the lock at the top.
    pub(crate) fn of(
        explored: &Explored,
        starts: &[RootId],
        locks: &[(String, Lock)],
        indirect: bool,
    ) -> ReferenceTree {
        let graph = &explored.graph;
        let top = locks.iter().find(|(directory, _)| directory.is_empty());
        let mut maker = Maker {
            graph,
            lock: top.map(|(_, lock)| lock),
            brought: brought(locks),
            broken: HashMap::new(),
            known: HashMap::new(),
            locked: BTreeMap::new(),
            reference_tree: ReferenceTree::default(),
        };
        for trouble in &explored.troubles {
            if let At::File(file) = trouble.at {
                let why = why(Some(&trouble.kind));
                maker.broken.entry(file).or_insert(why);
            }
        }
        let mut troubles: HashMap<(RootId, usize), &TroubleKind> = HashMap::new();
        let mut cycles = BTreeSet::new();
        for trouble in &explored.troubles {
            if let At::Edge(root, edge) = trouble.at {
                let edge = (root, edge);
                if trouble.kind == TroubleKind::Cycle {
                    cycles.insert(edge);
                }
                troubles.entry(edge).or_insert(&trouble.kind);
            }
        }
        let ids: Vec<usize> = (0..graph.roots.len()).map(|root| maker.root(root)).collect();
        for (root, node) in graph.roots.iter().enumerate() {
            for (index, edge) in node.edges.iter().enumerate() {
                let to = match edge.target {
                    // References that kustomize does not follow are not drawn as if it did.
                    Target::Root { id, .. } if cycles.contains(&(root, index)) => {
                        let name = maker.reference_tree.nodes[ids[id]].name.clone();
                        maker.node(name, "broken", NodeKind::Broken { why: why(Some(&TroubleKind::Cycle)) })
                    }
                    Target::Root { id, .. } => ids[id],
                    Target::File(file) => maker.file(file),
                    Target::Remote | Target::Kept | Target::Broken => {
                        let trouble = troubles.get(&(root, index)).copied();
                        maker.leaf(root, edge, trouble)
                    }
                };
                maker.reference_tree.links.push(Link {
                    from: ids[root],
                    to,
                    file: graph.label(edge.from),
                    line: edge.reference.line,
                    column: edge.reference.column,
                    field: edge.reference.field.clone(),
                    reference: redact::url(&edge.reference.text),
                });
            }
        }
        maker.charts(&ids);
        if indirect {
            maker.indirect();
        }
        maker.reference_tree.starts = starts.iter().map(|root| ids[*root]).collect();
        maker.reference_tree
    }

    /// Returns what each node names, each once, in the order of the references.
    pub(crate) fn below(&self) -> Vec<Vec<usize>> {
        let mut below = vec![Vec::new(); self.nodes.len()];
        let mut seen = HashSet::new();
        for link in &self.links {
            if seen.insert((link.from, link.to)) {
                below[link.from].push(link.to);
            }
        }
        below
    }

    /// Keeps only what is remote, and what leads to it.
    pub(crate) fn only_remote(&mut self) {
        let remote: Vec<usize> = (0..self.nodes.len()).filter(|node| self.nodes[*node].is_remote()).collect();
        let kept = self.leading_to(&remote);
        self.links.retain(|link| kept.contains(&link.to));
        self.starts.retain(|start| kept.contains(start));
        self.keep(&kept);
    }

    /// Turns the graph around: it begins at the remotes that `is_meant` picks, and leads to what names them.
    /// Returns whether there is one.
    pub(crate) fn invert(&mut self, is_meant: impl Fn(&Node) -> bool) -> bool {
        let meant: Vec<usize> = (0..self.nodes.len())
            .filter(|node| self.nodes[*node].is_remote() && is_meant(&self.nodes[*node]))
            .collect();
        let kept = self.leading_to(&meant);
        self.links.retain(|link| kept.contains(&link.to));
        for link in &mut self.links {
            std::mem::swap(&mut link.from, &mut link.to);
        }
        self.starts = meant;
        self.keep(&kept);
        !self.starts.is_empty()
    }

    /// Drops every node but these.
    fn keep(&mut self, kept: &BTreeSet<usize>) {
        let places: HashMap<usize, usize> = kept.iter().copied().zip(0..).collect();
        let mut id = 0..;
        self.nodes.retain(|_| id.next().is_some_and(|id| kept.contains(&id)));
        let place = |id: &mut usize| *id = places.get(id).copied().unwrap_or_default();
        self.starts.iter_mut().for_each(place);
        for link in &mut self.links {
            place(&mut link.from);
            place(&mut link.to);
        }
    }

    /// Returns the nodes that lead to one of these, and these.
    fn leading_to(&self, nodes: &[usize]) -> BTreeSet<usize> {
        let mut above: HashMap<usize, Vec<usize>> = HashMap::new();
        for link in &self.links {
            above.entry(link.to).or_default().push(link.from);
        }
        reach(nodes.iter().copied(), |node| above.get(node).into_iter().flatten().copied().collect::<Vec<_>>())
    }
}

/// Returns the labels of the remotes that stored files were brought in from, by path from the top.
fn brought(locks: &[(String, Lock)]) -> HashMap<String, String> {
    locks
        .iter()
        .flat_map(|(directory, lock)| lock.files.iter().map(move |file| (directory, file)))
        .filter_map(|(directory, file)| Some((path::join(directory, &file.path), file.remote.clone()?)))
        .collect()
}

struct Maker<'a> {
    graph: &'a Graph,
    lock: Option<&'a Lock>,
    brought: HashMap<String, String>,
    /// Why something in a file is not what kustomize takes, so that it may name more.
    broken: HashMap<FileId, &'static str>,
    /// The nodes that may be named more than once.
    known: HashMap<(String, &'static str), usize>,
    /// The nodes of what the lock holds, by the label of the entry.
    locked: BTreeMap<String, BTreeSet<usize>>,
    reference_tree: ReferenceTree,
}

impl Maker<'_> {
    fn node(&mut self, name: String, class: &'static str, kind: NodeKind) -> usize {
        let next = self.reference_tree.nodes.len();
        let id = *self.known.entry((name.clone(), class)).or_insert(next);
        if id == next {
            self.reference_tree.nodes.push(Node { name, kind });
        }
        id
    }

    fn root(&mut self, id: RootId) -> usize {
        let root = &self.graph.roots[id];
        let kind = NodeKind::Root {
            component: root.kind == Some(Kind::Component),
            localized: self.origin(root.file),
            broken: match root.kind {
                None => Some(self.broken.get(&root.file).copied().unwrap_or("unreadable")),
                Some(_) => self.broken.get(&root.file).copied(),
            },
        };
        let name = match root.directory.as_str() {
            "" => ".".to_owned(),
            _ => self.graph.root_label(id),
        };
        self.node(name, "root", kind)
    }

    fn file(&mut self, id: FileId) -> usize {
        let localized = self.origin(id);
        self.node(self.graph.label(id), "file", NodeKind::File { localized })
    }

    /// A directory that is of use as a whole is one thing, like a file.
    fn directory(&mut self, source: usize, place: &str) -> usize {
        let name = self.graph.sources[source].tree.label(place);
        let mut brought = self.brought.iter();
        let localized = brought.find(|(path, _)| path::is_in(path, place));
        let localized = localized.map(|(_, label)| label.clone());
        self.node(name, "file", NodeKind::File { localized })
    }

    /// Adds the charts that roots name. They are no references of kustomize, which leaves them to helm.
    fn charts(&mut self, ids: &[usize]) {
        let graph = self.graph;
        for chart in &graph.charts {
            let root = chart.root;
            let to = match (&chart.place, &chart.wanted) {
                (Place::There(path), _) => self.directory(graph.roots[root].source, path),
                (_, Some(wanted)) => {
                    let locked = self.lock.and_then(|lock| wanted.locked(lock));
                    let locked = locked.map(|chart| Digest::Sha256(chart.sha256.clone()));
                    let label = wanted.label();
                    let node = self.node(label.clone(), "chart", NodeKind::Chart { locked });
                    self.locked.entry(label).or_default().insert(node);
                    node
                }
                (Place::Missing(path), None) => self.node(path.clone(), "broken", NodeKind::Broken { why: "missing" }),
                (Place::Submodule(path), None) => {
                    self.node(path.clone(), "broken", NodeKind::Broken { why: "in a submodule" })
                }
                (Place::Outside, None) => {
                    let name = redact::url(&chart.name);
                    self.node(name, "broken", NodeKind::Broken { why: "out of scope" })
                }
            };
            let noted = &graph.notes[chart.note];
            let note = &noted.note;
            self.reference_tree.links.push(Link {
                from: ids[root],
                to,
                file: graph.label(noted.file),
                line: note.line,
                column: note.column,
                field: note.field.clone(),
                reference: redact::url(chart.wanted.as_ref().map_or(&chart.name, |wanted| wanted.repo.exposed())),
            });
        }
    }

    fn origin(&self, file: FileId) -> Option<String> {
        match &self.graph.files[file].origin {
            Origin::Tree { path, .. } => self.brought.get(path).cloned(),
            Origin::Remote(_) | Origin::Archive { .. } => None,
        }
    }

    /// References that a walk without a network cannot follow.
    fn leaf(&mut self, root: RootId, edge: &Edge, trouble: Option<&TroubleKind>) -> usize {
        let text = &edge.reference.text;
        let shown = redact::url(text);
        if edge.target == Target::Broken {
            let name = match path::resolve(&self.graph.roots[root].directory, text) {
                Some(path) if !reference::is_remote_file(text) => redact::message(&path).into_owned(),
                _ => shown,
            };
            return self.node(name, "broken", NodeKind::Broken { why: why(trouble) });
        }
        let Some(wanted) = &edge.remote else {
            return self.node(shown, "broken", NodeKind::Broken { why: "left as it is" });
        };
        let locked = self.lock.and_then(|lock| wanted.locked(lock));
        let held = locked.filter(|remote| wanted.unlocked_directory(remote).is_none());
        let digest = held.map(Remote::digest);
        let repository = match locked {
            Some(Remote::File(_) | Remote::Chart(_)) => None,
            Some(Remote::Git(_)) => wanted.spec.as_ref(),
            None => wanted.repository(),
        };
        let kind = match repository {
            Some(spec) => NodeKind::Git {
                pin: Pin::of(spec.reference.as_deref()),
                reference: spec.reference.clone(),
                locked: digest,
            },
            None => NodeKind::Http { locked: digest },
        };
        let label = locked.map(Remote::label);
        let node = self.node(shown, "remote", kind);
        if let Some(label) = label {
            self.locked.entry(label).or_default().insert(node);
        }
        node
    }

    /// Adds the references of remotes. The tree does not show them, unless they were brought in; the lock does.
    fn indirect(&mut self) {
        let Some(lock) = self.lock else {
            return;
        };
        let brought: BTreeSet<&String> = self.brought.values().collect();
        let named: Vec<&Remote> = lock
            .remotes
            .iter()
            .filter(|remote| !remote.through().is_empty() && !brought.contains(&remote.label()))
            .collect();
        for remote in &named {
            let nodes: Vec<usize> =
                entries(remote).into_iter().map(|(name, class, kind)| self.node(name, class, kind)).collect();
            self.locked.entry(remote.label()).or_default().extend(nodes);
        }
        let of = |label: &String| self.locked.get(label).into_iter().flatten().copied();
        let mut links = Vec::new();
        for remote in named {
            let label = remote.label();
            for from in remote.through().iter().flat_map(of) {
                links.extend(of(&label).filter(|to| *to != from).map(|to| Link {
                    from,
                    to,
                    file: LOCK_NAME.to_owned(),
                    line: 0,
                    column: 0,
                    field: "through".to_owned(),
                    reference: label.clone(),
                }));
            }
        }
        self.reference_tree.links.append(&mut links);
    }
}

/// Returns what an entry of the lock names, as nodes: their names, the class of these, and what is known of them.
fn entries(remote: &Remote) -> Vec<(String, &'static str, NodeKind)> {
    let locked = Some(remote.digest());
    match remote {
        Remote::Git(git) => {
            let name = |path: &String| {
                let directory = if path == "." { "" } else { path };
                let name = reference_to(git, directory);
                let kind = NodeKind::Git {
                    pin: Pin::of(git.reference.as_deref()),
                    reference: git.reference.clone(),
                    locked: locked.clone(),
                };
                (name.map_or(remote.label(), |(name, _)| name), "remote", kind)
            };
            git.paths.iter().map(name).collect()
        }
        Remote::File(_) => vec![(remote.label(), "remote", NodeKind::Http { locked })],
        Remote::Chart(_) => vec![(remote.label(), "chart", NodeKind::Chart { locked })],
    }
}

/// Returns why something cannot be followed, in a word or two.
fn why(trouble: Option<&TroubleKind>) -> &'static str {
    match trouble {
        Some(TroubleKind::Missing { .. }) => "missing",
        Some(TroubleKind::NoKustomization { .. }) => "no kustomization",
        Some(TroubleKind::BadKustomization { .. }) => "invalid kustomization",
        Some(TroubleKind::OutOfScope | TroubleKind::Restricted) => "out of scope",
        Some(TroubleKind::Submodule { .. }) => "in a submodule",
        Some(TroubleKind::Cycle) => "cycle",
        Some(TroubleKind::Unsafe) => "unsafe",
        Some(TroubleKind::Unsupported) => "unsupported",
        Some(TroubleKind::Failed | TroubleKind::Chart) => "unreadable",
        Some(TroubleKind::Problem(_) | TroubleKind::Refused | TroubleKind::Reshaped) | None => "invalid",
    }
}
