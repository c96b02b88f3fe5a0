//! The reference graph as people see it: what names what, and in which state it is.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use serde::{Serialize, Serializer};

use super::{Reached, flux_objects};
use crate::config::Config;
use crate::graph::{
    self, At, Chart, Edge, Explored, FileId, Graph, Origin, Place, RemoteRef, RootId, Source, Target, TroubleKind,
    reach,
};
use crate::kustomization::Kind;
use crate::message::failure::{Location, Result, short};
use crate::message::redact;
use crate::record::{Digest, LOCK_NAME, Lock, Remote};
use crate::reference::Pin;
use crate::tree::{Tree, path};

/// Something that is named, or that names something.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub(crate) struct Node {
    /// Its path from the top of the repository (`.` for the top), or its URL without secrets.
    pub name: String,
    pub kind: NodeKind,
    /// Whether a kustomization is a Component.
    pub component: bool,
    /// The [label](Remote::label) of the remote that it is in the lock, or that it was brought in from.
    pub remote: Option<String>,
    /// How firmly the ref of a git repository names a commit.
    pub pin: Option<Pin>,
    /// What the lock holds for something remote.
    pub locked: Option<Digest>,
    /// Why it cannot be followed, or its references are unknown, in a word or two.
    pub why: Option<&'static str>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
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

    /// Makes one of something on another host; `locked` is its entry in the lock.
    fn away(name: String, kind: NodeKind, pin: Option<Pin>, locked: Option<Remote>) -> Node {
        let (remote, locked) = (locked.as_ref().map(Remote::label), locked.as_ref().map(Remote::digest));
        Node { name, kind, pin, remote, locked, ..Node::default() }
    }

    /// Returns whether it is on another host.
    pub(crate) fn is_away(&self) -> bool {
        matches!(self.kind, NodeKind::Git | NodeKind::Http | NodeKind::Chart)
    }

    /// Returns what there is to know about it besides its name; empty for an ordinary root or file.
    pub(crate) fn state(&self) -> String {
        let origin = match (&self.locked, &self.remote) {
            (Some(digest), _) => Some(format!("locked {}", short(digest.hex()))),
            (None, Some(label)) => Some(format!("from {label}")),
            (None, None) => self.is_away().then(|| "not locked".to_owned()),
        };
        let parts = [
            self.component.then(|| "component".to_owned()),
            (self.kind == NodeKind::Chart).then(|| "chart".to_owned()),
            self.pin.map(|pin| if pin == Pin::None { "no ref" } else { pin.name() }.to_owned()),
            origin,
            self.why.map(str::to_owned),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// One reference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Link {
    /// What names; as JSON its name.
    #[serde(serialize_with = "name")]
    pub from: Rc<Node>,
    /// What is named.
    #[serde(serialize_with = "node")]
    pub to: Rc<Node>,
    /// Where; of what is known from the lock only that.
    #[serde(flatten)]
    pub place: Location,
    /// Its text, without secrets.
    pub reference: String,
}

fn name<S: Serializer>(node: &Rc<Node>, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    node.name.serialize(serializer)
}

fn node<S: Serializer>(node: &Rc<Node>, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    (**node).serialize(serializer)
}

fn nodes<S: Serializer>(nodes: &[Rc<Node>], serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.collect_seq(nodes.iter().map(|node| &**node))
}

/// The graph.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct ReferenceTree {
    /// Where to begin reading.
    #[serde(serialize_with = "nodes")]
    pub starts: Vec<Rc<Node>>,
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
        let namer = Namer::of(&explored)?;
        let nodes: Vec<Rc<Node>> = (0..graph.roots.len()).map(|root| Rc::new(namer.root(root))).collect();
        let mut links: Vec<Link> = nodes.iter().enumerate().flat_map(|(root, from)| namer.named(root, from)).collect();
        if indirect {
            links.extend(namer.indirect(&links));
        }
        Ok(ReferenceTree { starts: starts.into_iter().map(|root| nodes[root].clone()).collect(), links })
    }

    /// Returns what each node names, each once, in the order of the references.
    pub(crate) fn below(&self) -> HashMap<&Node, Vec<&Node>> {
        let mut below: HashMap<&Node, Vec<&Node>> = HashMap::new();
        let mut seen = HashSet::new();
        for link in &self.links {
            if seen.insert((&link.from, &link.to)) {
                below.entry(&link.from).or_default().push(&link.to);
            }
        }
        below
    }

    /// Keeps only what is on another host, or was brought in from one, where `is_meant` picks it, and what leads there.
    /// Returns those.
    pub(crate) fn only_remote(&mut self, is_meant: impl Fn(&Node) -> bool) -> BTreeSet<Rc<Node>> {
        let is_meant = |node: &&Rc<Node>| (node.is_away() || node.remote.is_some()) && is_meant(node);
        let named = self.links.iter().map(|link| &link.to);
        let meant: BTreeSet<Rc<Node>> = named.chain(&self.starts).filter(is_meant).cloned().collect();
        let mut above: HashMap<&Node, Vec<Rc<Node>>> = HashMap::new();
        for link in &self.links {
            above.entry(&link.to).or_default().push(link.from.clone());
        }
        let kept = reach(meant.iter().cloned(), |node| above.get(&**node).cloned().unwrap_or_default());
        self.links.retain(|link| kept.contains(&link.to));
        self.starts.retain(|start| kept.contains(start));
        meant
    }

    /// Turns the graph around: it begins at the remotes that `is_meant` picks, and leads to what names them.
    /// Returns whether there is one.
    pub(crate) fn invert(&mut self, is_meant: impl Fn(&Node) -> bool) -> bool {
        self.starts = self.only_remote(is_meant).into_iter().collect();
        for link in &mut self.links {
            std::mem::swap(&mut link.from, &mut link.to);
        }
        !self.starts.is_empty()
    }
}

/// Says what roots and references of a walk without a network are.
pub(super) struct Namer<'a> {
    graph: &'a Graph,
    /// The lock at the top.
    lock: Rc<Lock>,
    /// The labels of the remotes that stored files were brought in from, by path from the top.
    brought: HashMap<String, String>,
    /// Why something cannot be followed.
    whys: HashMap<At, &'static str>,
}

impl<'a> Namer<'a> {
    pub(super) fn of(explored: &'a Explored) -> Result<Namer<'a>> {
        let graph = &explored.graph;
        let tree = &*graph.sources[0].tree;
        let mut brought = HashMap::new();
        for place in tree.locks()? {
            let lock = Lock::parse(&tree.read(&place)?, &tree.label(&place))?;
            let files = lock.files.into_iter();
            brought.extend(files.filter_map(|file| Some((path::join(path::parent(&place), &file.path), file.remote?))));
        }
        // Of one place the first counts.
        let whys = explored.troubles.iter().rev().map(|trouble| (trouble.at, why(&trouble.kind)));
        Ok(Namer { graph, lock: Lock::at(tree, LOCK_NAME)?.unwrap_or_default(), brought, whys: whys.collect() })
    }

    /// Returns what is not in the tree among what roots lead to, sorted.
    pub(super) fn beyond(&self, roots: impl IntoIterator<Item = RootId>) -> Vec<Reached> {
        let nodes = self.graph.insisted(roots).into_iter().flat_map(|root| {
            let node = Rc::new(self.root(root));
            let named: Vec<Rc<Node>> = self.named(root, &node).map(|link| link.to).collect();
            named.into_iter().chain([node])
        });
        let beyond = nodes.filter(|node| node.is_away() || node.why.is_some());
        let reached = beyond.map(|node| Reached { name: node.name.clone(), state: node.state() });
        reached.collect::<BTreeSet<_>>().into_iter().collect()
    }

    fn root(&self, id: RootId) -> Node {
        let root = &self.graph.roots[id];
        let why = self.whys.get(&At::File(root.file)).copied();
        Node {
            name: path::shown(&self.graph.root_label(id)).to_owned(),
            kind: NodeKind::Kustomization,
            component: root.kind == Some(Kind::Component),
            remote: self.origin(root.file),
            why: why.or(root.kind.is_none().then_some("invalid")),
            ..Node::default()
        }
    }

    fn origin(&self, file: FileId) -> Option<String> {
        match &self.graph.files[file].origin {
            Origin::Tree { path, .. } => self.brought.get(path).cloned(),
            Origin::Remote(_) | Origin::Archive { .. } => None,
        }
    }

    /// Returns the references of a root, which is `from`, and its charts: these are no references of kustomize, which
    /// leaves them to helm.
    fn named(&self, root: RootId, from: &Rc<Node>) -> impl Iterator<Item = Link> {
        let link = |to: Node, place: Location, text: &str| {
            let (from, to, reference) = (from.clone(), Rc::new(to), redact::url(text));
            Link { from, to, place, reference }
        };
        let edges = self.graph.roots[root].edges.iter().enumerate().map(move |(index, edge)| {
            let place = self.graph.location(edge.from, &edge.reference);
            link(self.leads_to(root, index, edge), place, &edge.reference.text)
        });
        let charts = self.graph.charts_of(root).iter().map(move |chart| {
            let text = chart.wanted.as_ref().map_or(chart.name.as_str(), |wanted| wanted.repo.exposed());
            link(self.chart(chart), self.graph.note_location(chart.note), text)
        });
        edges.chain(charts)
    }

    fn leads_to(&self, root: RootId, index: usize, edge: &Edge) -> Node {
        let why = self.whys.get(&At::Edge(root, index)).copied();
        match (edge.target, &edge.remote) {
            // References that kustomize does not follow are not drawn as if it did.
            (Target::Root { id, .. }, _) if why.is_none() => self.root(id),
            (Target::File(file), _) if why.is_none() => {
                Node { name: self.graph.label(file), remote: self.origin(file), ..Node::default() }
            }
            (Target::Remote | Target::Kept, Some(wanted)) => self.remote(wanted),
            (_, remote) => {
                let text = &edge.reference.text;
                let name = match path::resolve(&self.graph.roots[root].directory, text) {
                    Some(path) if remote.is_none() => redact::message(path::shown(&path)).into_owned(),
                    _ => redact::url(text),
                };
                let left = if edge.target == Target::Kept { "left as it is" } else { "invalid" };
                Node::broken(name, why.unwrap_or(left))
            }
        }
    }

    fn remote(&self, wanted: &RemoteRef) -> Node {
        let locked = wanted.locked(&self.lock);
        let spec = match locked {
            Some(Remote::File(_) | Remote::Chart(_)) => None,
            Some(Remote::Git(_)) => wanted.spec.as_ref(),
            None => wanted.repository(),
        };
        let kind = if spec.is_some() { NodeKind::Git } else { NodeKind::Http };
        let pin = spec.map(|spec| Pin::of(spec.reference.as_deref()));
        let locked = locked.filter(|remote| wanted.unlocked_directory(remote).is_none());
        Node::away(wanted.text.shown(), kind, pin, locked.cloned())
    }

    fn chart(&self, chart: &Chart) -> Node {
        match (&chart.place, &chart.wanted) {
            // A directory that is of use as a whole is one thing, like a file.
            (Place::There(place), _) => {
                let brought = self.brought.iter().find(|(path, _)| path::is_in(path, place));
                let source = self.graph.roots[chart.root].source;
                let name = self.graph.sources[source].tree.label(place);
                Node { name, remote: brought.map(|(_, label)| label.clone()), ..Node::default() }
            }
            (_, Some(wanted)) => {
                let locked = wanted.locked(&self.lock).cloned().map(Remote::Chart);
                Node::away(wanted.label(), NodeKind::Chart, None, locked)
            }
            (Place::Missing(path), None) => Node::broken(path.clone(), "missing"),
            (Place::Submodule(path), None) => Node::broken(path.clone(), "in a submodule"),
            (Place::Outside, None) => Node::broken(redact::url(&chart.name), "out of scope"),
        }
    }

    /// Returns the references of remotes. The tree does not show them, unless they were brought in; the lock does.
    fn indirect(&self, links: &[Link]) -> Vec<Link> {
        let brought: HashSet<&String> = self.brought.values().collect();
        let remotes = self.lock.remotes.iter().map(|remote| (remote.label(), remote));
        let hidden = remotes.filter(|(label, remote)| !remote.through().is_empty() && !brought.contains(label));
        let hidden: Vec<(String, &Remote)> = hidden.collect();
        let mut nodes: BTreeMap<String, BTreeSet<Rc<Node>>> = BTreeMap::new();
        for to in links.iter().map(|link| &link.to).filter(|to| to.is_away()) {
            nodes.entry(to.remote.clone().unwrap_or_default()).or_default().insert(to.clone());
        }
        for (label, remote) in &hidden {
            let node = |name, kind, pin| Rc::new(Node::away(name, kind, pin, Some((*remote).clone())));
            let pin = |reference: &Option<String>| Some(Pin::of(reference.as_deref()));
            let nodes = nodes.entry(label.clone()).or_default();
            match remote {
                Remote::Git(git) => nodes.extend(
                    git.paths.iter().map(|path| node(git.reference_to(path), NodeKind::Git, pin(&git.reference))),
                ),
                Remote::File(_) => nodes.extend([node(label.clone(), NodeKind::Http, None)]),
                Remote::Chart(_) => nodes.extend([node(label.clone(), NodeKind::Chart, None)]),
            }
        }
        let mut links = Vec::new();
        for (reference, remote) in &hidden {
            for from in remote.through().iter().filter_map(|label| nodes.get(label)).flatten() {
                let place = Location { file: LOCK_NAME.to_owned(), ..Location::default() };
                let to = nodes[reference].iter().filter(|to| *to != from);
                links.extend(to.map(|to| Link {
                    from: from.clone(),
                    to: to.clone(),
                    place: place.clone(),
                    reference: reference.clone(),
                }));
            }
        }
        links
    }
}

/// Returns why something cannot be followed, in a word or two.
fn why(trouble: &TroubleKind) -> &'static str {
    match trouble {
        TroubleKind::Missing { .. } => "missing",
        TroubleKind::NoKustomization { .. } => "no kustomization",
        TroubleKind::OutOfScope | TroubleKind::Restricted => "out of scope",
        TroubleKind::Submodule { .. } => "in a submodule",
        TroubleKind::Cycle => "cycle",
        _ => "invalid",
    }
}
