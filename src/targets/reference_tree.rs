//! The reference graph as people see it: what names what, and in which state it is.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use serde::Serialize;

use super::flux_objects;
use crate::config::Config;
use crate::graph::{
    self, At, Chart, Edge, Explored, FileId, Graph, Origin, Place, RootId, Source, Target, TroubleKind, reach,
};
use crate::kustomization::Kind;
use crate::message::failure::{Result, short};
use crate::message::redact;
use crate::record::{Digest, LOCK_NAME, Lock, Remote};
use crate::reference::{self, Pin};
use crate::tree::{Tree, path};

/// Something that is named, or that names something.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Node {
    /// Its path from the top of the repository (`.` for the top), or its URL without secrets.
    pub name: String,
    pub kind: NodeKind,
    /// Whether a kustomization is a Component.
    pub component: bool,
    /// The [label](Remote::label) of the remote that it was brought in from.
    pub localized: Option<String>,
    /// The ref of a git repository as written.
    #[serde(rename = "ref")]
    pub reference: Option<String>,
    /// How firmly the ref names a commit.
    pub pin: Option<Pin>,
    /// What the lock holds for something remote.
    pub locked: Option<Digest>,
    /// Why it cannot be followed, or its references are unknown, in a word or two.
    pub why: Option<&'static str>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum NodeKind {
    Kustomization,
    #[default]
    File,
    /// A directory of another repository.
    Git,
    /// A file on another host.
    Http,
    /// A Helm chart of a repository.
    Chart,
    /// What cannot be followed.
    Broken,
}

impl Node {
    fn broken(name: String, why: &'static str) -> Node {
        Node { name, kind: NodeKind::Broken, why: Some(why), ..Node::default() }
    }

    /// Returns whether it is on another host.
    pub(crate) fn is_away(&self) -> bool {
        matches!(self.kind, NodeKind::Git | NodeKind::Http | NodeKind::Chart)
    }

    /// Returns whether it is on another host, or was brought in from one.
    pub(crate) fn is_remote(&self) -> bool {
        self.is_away() || self.localized.is_some()
    }

    /// Returns what there is to know about it besides its name; empty for an ordinary root or file.
    pub(crate) fn state(&self) -> String {
        let locked = match &self.locked {
            Some(digest) => format!("locked {}", short(digest.hex())),
            None => "not locked".to_owned(),
        };
        let parts = [
            self.component.then(|| "component".to_owned()),
            (self.kind == NodeKind::Chart).then(|| "chart".to_owned()),
            self.pin.map(|pin| if pin == Pin::None { "no ref" } else { pin.name() }.to_owned()),
            self.is_away().then_some(locked),
            self.localized.as_ref().map(|label| format!("from {label}")),
            self.why.map(str::to_owned),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
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
    /// Walks a tree without a network, from the roots in `paths` (from the top), or else from all that no other root
    /// names. With `indirect`, references of remotes are included as well, from the lock.
    pub(crate) fn survey(
        tree: Rc<dyn Tree>,
        config: &Config,
        paths: &[String],
        indirect: bool,
    ) -> Result<ReferenceTree> {
        let directories = config.starting_points(&*tree, paths, &tree.kustomizations()?)?;
        let options = graph::Options { load_restrictor: config.load_restrictor, ..graph::Options::default() };
        let source = Source { tree, scope: String::new(), repository: None };
        let explored = graph::explore(source, &directories, None, &options);
        let graph = &explored.graph;
        let flux = flux_objects(&explored);
        let roots = explored.starts.iter().copied().flatten();
        let roots: Vec<RootId> = roots.filter(|root| !flux.contains(&graph.roots[*root].file)).collect();
        // Show the requested nodes, and below them only what nothing else leads to.
        let is_asked_for = |root: &RootId| {
            let root = &graph.roots[*root];
            let file = path::join(&root.directory, root.file_name);
            paths.iter().any(|path| [&root.directory, &file].contains(&path))
        };
        let mut starts: BTreeSet<RootId> = roots.iter().copied().filter(is_asked_for).collect();
        starts.extend(graph.unnamed(&roots, 0..graph.roots.len()));
        ReferenceTree::of(&explored, starts, indirect)
    }

    /// Makes the reference tree of a walk without a network, with `starts` to begin with.
    pub(super) fn of(
        explored: &Explored,
        starts: impl IntoIterator<Item = RootId>,
        indirect: bool,
    ) -> Result<ReferenceTree> {
        let graph = &explored.graph;
        let tree = &*graph.sources[0].tree;
        let mut maker = Maker {
            graph,
            lock: Lock::at(tree, LOCK_NAME)?.unwrap_or_default(),
            brought: brought(tree)?,
            whys: HashMap::new(),
            known: HashMap::new(),
            locked: BTreeMap::new(),
            reference_tree: ReferenceTree::default(),
        };
        for trouble in &explored.troubles {
            maker.whys.entry(trouble.at).or_insert(why(&trouble.kind));
        }
        let ids: Vec<usize> = (0..graph.roots.len()).map(|root| maker.root(root)).collect();
        for (root, node) in graph.roots.iter().enumerate() {
            for (index, edge) in node.edges.iter().enumerate() {
                let to = match edge.target {
                    // References that kustomize does not follow are not drawn as if it did.
                    Target::Root { id, .. } => match maker.whys.get(&At::Edge(root, index)) {
                        Some(&"cycle") => {
                            let name = maker.reference_tree.nodes[ids[id]].name.clone();
                            maker.node(Node::broken(name, "cycle"))
                        }
                        _ => ids[id],
                    },
                    Target::File(file) => maker.file(file),
                    Target::Remote | Target::Kept | Target::Broken => maker.leaf(root, index, edge),
                };
                let reference = &edge.reference;
                let place = (edge.from, reference.line, reference.column, reference.field.as_str());
                maker.link(ids[root], to, place, &reference.text);
            }
        }
        for chart in &graph.charts {
            let to = maker.chart(chart);
            let noted = &graph.notes[chart.note];
            let place = (noted.file, noted.note.line, noted.note.column, noted.note.field.as_str());
            let text = chart.wanted.as_ref().map_or(chart.name.as_str(), |wanted| wanted.repo.exposed());
            maker.link(ids[chart.root], to, place, text);
        }
        if indirect {
            maker.indirect();
        }
        maker.reference_tree.starts = starts.into_iter().map(|root| ids[root]).collect();
        Ok(maker.reference_tree)
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

    /// Keeps only the remotes that `is_meant` picks, and what leads to them. Returns those.
    pub(crate) fn only_remote(&mut self, is_meant: impl Fn(&Node) -> bool) -> Vec<usize> {
        let mut above = vec![Vec::new(); self.nodes.len()];
        for link in &self.links {
            above[link.to].push(link.from);
        }
        let meant = |node: &usize| self.nodes[*node].is_remote() && is_meant(&self.nodes[*node]);
        let meant: Vec<usize> = (0..self.nodes.len()).filter(meant).collect();
        let kept = reach(meant.iter().copied(), |node| above[*node].iter().copied());
        self.links.retain(|link| kept.contains(&link.to));
        self.starts.retain(|start| kept.contains(start));
        let places: HashMap<usize, usize> = kept.iter().copied().zip(0..).collect();
        let mut id = 0..;
        self.nodes.retain(|_| id.next().is_some_and(|id| kept.contains(&id)));
        self.starts.iter_mut().for_each(|start| *start = places[start]);
        for link in &mut self.links {
            (link.from, link.to) = (places[&link.from], places[&link.to]);
        }
        meant.iter().map(|node| places[node]).collect()
    }

    /// Turns the graph around: it begins at the remotes that `is_meant` picks, and leads to what names them.
    /// Returns whether there is one.
    pub(crate) fn invert(&mut self, is_meant: impl Fn(&Node) -> bool) -> bool {
        self.starts = self.only_remote(is_meant);
        for link in &mut self.links {
            std::mem::swap(&mut link.from, &mut link.to);
        }
        !self.starts.is_empty()
    }
}

/// Returns the labels of the remotes that stored files were brought in from, by path from the top.
fn brought(tree: &dyn Tree) -> Result<HashMap<String, String>> {
    let mut brought = HashMap::new();
    for place in tree.locks()? {
        let lock = Lock::parse(&tree.read(&place)?, &tree.label(&place))?;
        let files = lock.files.into_iter();
        brought.extend(files.filter_map(|file| Some((path::join(path::parent(&place), &file.path), file.remote?))));
    }
    Ok(brought)
}

struct Maker<'a> {
    graph: &'a Graph,
    /// The lock at the top.
    lock: Rc<Lock>,
    brought: HashMap<String, String>,
    /// Why something cannot be followed.
    whys: HashMap<At, &'static str>,
    /// The nodes that may be named more than once.
    known: HashMap<(String, NodeKind), usize>,
    /// The nodes of what the lock holds, by the label of the entry.
    locked: BTreeMap<String, BTreeSet<usize>>,
    reference_tree: ReferenceTree,
}

impl Maker<'_> {
    fn node(&mut self, node: Node) -> usize {
        let next = self.reference_tree.nodes.len();
        let id = *self.known.entry((node.name.clone(), node.kind)).or_insert(next);
        if id == next {
            self.reference_tree.nodes.push(node);
        }
        id
    }

    /// Adds a node that an entry of the lock holds.
    fn held(&mut self, label: String, node: Node) -> usize {
        let id = self.node(node);
        self.locked.entry(label).or_default().insert(id);
        id
    }

    fn link(&mut self, from: usize, to: usize, place: (FileId, usize, usize, &str), text: &str) {
        let (file, line, column, field) = place;
        let (file, field, reference) = (self.graph.label(file), field.to_owned(), redact::url(text));
        self.reference_tree.links.push(Link { from, to, file, line, column, field, reference });
    }

    fn root(&mut self, id: RootId) -> usize {
        let root = &self.graph.roots[id];
        let name = if root.directory.is_empty() { ".".to_owned() } else { self.graph.root_label(id) };
        let why = self.whys.get(&At::File(root.file)).copied();
        self.node(Node {
            name,
            kind: NodeKind::Kustomization,
            component: root.kind == Some(Kind::Component),
            localized: self.origin(root.file),
            why: why.or(root.kind.is_none().then_some("unreadable")),
            ..Node::default()
        })
    }

    fn file(&mut self, id: FileId) -> usize {
        let localized = self.origin(id);
        self.node(Node { name: self.graph.label(id), localized, ..Node::default() })
    }

    fn origin(&self, file: FileId) -> Option<String> {
        match &self.graph.files[file].origin {
            Origin::Tree { path, .. } => self.brought.get(path).cloned(),
            Origin::Remote(_) | Origin::Archive { .. } => None,
        }
    }

    /// Adds a chart that a root names. It is no reference of kustomize, which leaves it to helm.
    fn chart(&mut self, chart: &Chart) -> usize {
        match (&chart.place, &chart.wanted) {
            // A directory that is of use as a whole is one thing, like a file.
            (Place::There(place), _) => {
                let mut brought = self.brought.iter();
                let localized = brought.find(|(path, _)| path::is_in(path, place)).map(|(_, label)| label.clone());
                let source = self.graph.roots[chart.root].source;
                self.node(Node { name: self.graph.sources[source].tree.label(place), localized, ..Node::default() })
            }
            (_, Some(wanted)) => {
                let locked = wanted.locked(&self.lock).map(|chart| Digest::Sha256(chart.sha256.clone()));
                let name = wanted.label();
                self.held(name.clone(), Node { name, kind: NodeKind::Chart, locked, ..Node::default() })
            }
            (Place::Missing(path), None) => self.node(Node::broken(path.clone(), "missing")),
            (Place::Submodule(path), None) => self.node(Node::broken(path.clone(), "in a submodule")),
            (Place::Outside, None) => self.node(Node::broken(redact::url(&chart.name), "out of scope")),
        }
    }

    /// References that a walk without a network cannot follow.
    fn leaf(&mut self, root: RootId, index: usize, edge: &Edge) -> usize {
        let text = &edge.reference.text;
        let shown = redact::url(text);
        if edge.target == Target::Broken {
            let name = match path::resolve(&self.graph.roots[root].directory, text) {
                Some(path) if !reference::is_remote_file(text) => redact::message(&path).into_owned(),
                _ => shown,
            };
            let why = self.whys.get(&At::Edge(root, index)).copied();
            return self.node(Node::broken(name, why.unwrap_or("invalid")));
        }
        let Some(wanted) = &edge.remote else {
            return self.node(Node::broken(shown, "left as it is"));
        };
        let locked = wanted.locked(&self.lock);
        let held = locked.filter(|remote| wanted.unlocked_directory(remote).is_none());
        let spec = match locked {
            Some(Remote::File(_) | Remote::Chart(_)) => None,
            Some(Remote::Git(_)) => wanted.spec.as_ref(),
            None => wanted.repository(),
        };
        let node = remote(shown, spec.map(|spec| spec.reference.clone()), held.map(Remote::digest));
        match locked.map(Remote::label) {
            Some(label) => self.held(label, node),
            None => self.node(node),
        }
    }

    /// Adds the references of remotes. The tree does not show them, unless they were brought in; the lock does.
    fn indirect(&mut self) {
        let lock = self.lock.clone();
        let brought: BTreeSet<String> = self.brought.values().cloned().collect();
        let is_hidden = |remote: &&Remote| !remote.through().is_empty() && !brought.contains(&remote.label());
        for entry in lock.remotes.iter().filter(is_hidden) {
            let locked = || Some(entry.digest());
            match entry {
                Remote::Git(git) => {
                    for path in &git.paths {
                        let node = remote(git.reference_to(path), Some(git.reference.clone()), locked());
                        self.held(entry.label(), node);
                    }
                }
                Remote::File(_) => {
                    self.held(entry.label(), remote(entry.label(), None, locked()));
                }
                Remote::Chart(_) => {
                    let kind = NodeKind::Chart;
                    let node = Node { name: entry.label(), kind, locked: locked(), ..Node::default() };
                    self.held(entry.label(), node);
                }
            }
        }
        let of = |label: &String| self.locked.get(label).into_iter().flatten().copied();
        for entry in lock.remotes.iter().filter(is_hidden) {
            for from in entry.through().iter().flat_map(of) {
                let to = of(&entry.label()).filter(|to| *to != from);
                self.reference_tree.links.extend(to.map(|to| Link {
                    from,
                    to,
                    file: LOCK_NAME.to_owned(),
                    line: 0,
                    column: 0,
                    field: "through".to_owned(),
                    reference: entry.label(),
                }));
            }
        }
    }
}

/// Returns a file on another host, or a directory of another repository at a ref.
fn remote(name: String, reference: Option<Option<String>>, locked: Option<Digest>) -> Node {
    let kind = if reference.is_some() { NodeKind::Git } else { NodeKind::Http };
    let pin = reference.as_ref().map(|reference| Pin::of(reference.as_deref()));
    Node { name, kind, pin, reference: reference.flatten(), locked, ..Node::default() }
}

/// Returns why something cannot be followed, in a word or two.
fn why(trouble: &TroubleKind) -> &'static str {
    match trouble {
        TroubleKind::Missing { .. } => "missing",
        TroubleKind::NoKustomization { .. } => "no kustomization",
        TroubleKind::BadKustomization { .. } => "invalid kustomization",
        TroubleKind::OutOfScope | TroubleKind::Restricted => "out of scope",
        TroubleKind::Submodule { .. } => "in a submodule",
        TroubleKind::Cycle => "cycle",
        TroubleKind::Unsafe => "unsafe",
        TroubleKind::Unsupported => "unsupported",
        TroubleKind::Failed | TroubleKind::Chart => "unreadable",
        TroubleKind::Problem(_) | TroubleKind::Refused | TroubleKind::Reshaped => "invalid",
    }
}
