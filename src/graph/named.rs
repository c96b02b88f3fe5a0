//! What roots and references are called, and in which state they are.

use std::collections::HashMap;
use std::rc::Rc;

use serde::{Serialize, Serializer};

use super::{At, Chart, EdgeId, Explored, FileId, Graph, Place, RemoteRef, RootId, Target, TroubleKind};
use crate::kustomization::Kind;
use crate::message::failure::{Location, Result, short};
use crate::message::redact;
use crate::record::{Digest, LOCK_NAME, Lock};
use crate::reference::{Pin, Upstream};
use crate::tree::path;

/// Something that is named, or that names something.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub(crate) struct Node {
    /// Its path from the top of the repository (`.` for the top), or its URL without secrets.
    pub name: String,
    pub kind: NodeKind,
    /// Whether a kustomization is a Component.
    pub component: bool,
    /// The source that it is in the lock, or that it was brought in from.
    pub remote: Option<Upstream>,
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

    /// Makes one of something on another host, which `lock` may hold.
    fn away(name: String, kind: NodeKind, upstream: Option<Upstream>, lock: &Lock) -> Node {
        let held = upstream.filter(|upstream| lock.holds(upstream));
        let locked = held.as_ref().and_then(|upstream| lock.get(upstream)).map(|pinned| pinned.digest.clone());
        Node { name, kind, remote: held.map(|upstream| upstream.source()), locked, ..Node::default() }
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
            self.pin.map(|pin| pin.name().replace("none", "no ref")),
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
    pub to: Node,
    #[serde(flatten)]
    pub place: Location,
    /// Its text, without secrets.
    pub reference: String,
}

fn name<S: Serializer>(node: &Rc<Node>, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    node.name.serialize(serializer)
}

/// Says what roots and references of a walk without a network are.
pub(crate) struct Namer<'a> {
    graph: &'a Graph,
    /// The lock at the top.
    lock: Rc<Lock>,
    /// The sources that stored files were brought in from, by path from the top.
    brought: HashMap<String, Upstream>,
    /// Why something cannot be followed.
    whys: HashMap<At, &'static str>,
}

impl<'a> Namer<'a> {
    pub(crate) fn of(explored: &'a Explored) -> Result<Namer<'a>> {
        let graph = &explored.graph;
        let tree = &*graph.sources[0].tree;
        let mut brought = HashMap::new();
        let mut at_top = Rc::default();
        for place in tree.locks()? {
            let Some(lock) = Lock::at(tree, &place)? else { continue };
            for (file, remote) in lock.files.iter().filter_map(|file| Some((file, file.remote.clone()?))) {
                brought.insert(path::join(path::parent(&place), &file.path), remote);
            }
            if place == LOCK_NAME {
                at_top = lock;
            }
        }
        // Of one place the first counts.
        let whys = explored.troubles.iter().rev().map(|trouble| (trouble.at, why(&trouble.kind)));
        Ok(Namer { graph, lock: at_top, brought, whys: whys.collect() })
    }

    /// Returns what is not in the tree among what roots lead to.
    pub(crate) fn beyond(&self, roots: impl IntoIterator<Item = RootId>) -> impl Iterator<Item = Node> {
        let roots = self.graph.insisted(roots).into_iter();
        let nodes = roots.flat_map(|root| self.named(root).map(|link| link.to).chain([self.root(root)]));
        nodes.filter(|node| node.is_away() || node.why.is_some())
    }

    pub(crate) fn root(&self, id: RootId) -> Node {
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

    fn origin(&self, file: FileId) -> Option<Upstream> {
        self.graph.own_path(file).and_then(|path| self.brought.get(path)).cloned()
    }

    /// Returns the references of a root, and its charts: these are no references of kustomize, which leaves them to helm.
    pub(crate) fn named(&self, root: RootId) -> impl Iterator<Item = Link> {
        let from = Rc::new(self.root(root));
        let link = move |to, place, text| Link { from: from.clone(), to, place, reference: redact::url(text) };
        let link_chart = link.clone();
        let edges = self.graph.edges_of(root).map(move |(id, edge)| {
            let place = self.graph.location(edge.from, &edge.reference);
            link(self.leads_to(id), place, &edge.reference.text)
        });
        let charts = self.graph.charts_of(root).iter().map(move |chart| {
            let repo = chart.wanted.as_ref().map(|wanted| wanted.repo.exposed());
            link_chart(self.chart(chart), self.graph.note_location(chart.note), repo.unwrap_or(&chart.name))
        });
        edges.chain(charts)
    }

    fn leads_to(&self, id: EdgeId) -> Node {
        let (edge, why) = (&self.graph[id], self.whys.get(&At::Edge(id)).copied());
        match (edge.target, &edge.remote) {
            // References that kustomize does not follow are not drawn as if it did.
            (Target::Root { id, .. }, _) if why.is_none() => self.root(id),
            (Target::File(file), _) if why.is_none() => {
                Node { name: self.graph.label(file), remote: self.origin(file), ..Node::default() }
            }
            (Target::Remote | Target::Kept, Some(wanted)) => self.remote(wanted),
            (_, remote) => {
                let text = &edge.reference.text;
                let name = match path::resolve(&self.graph.roots[id.root].directory, text) {
                    Some(path) if remote.is_none() => redact::message(path::shown(&path)).into_owned(),
                    _ => redact::url(text),
                };
                let is_kept = edge.target == Target::Kept;
                Node::broken(name, why.or(is_kept.then_some("left as it is")).unwrap_or("invalid"))
            }
        }
    }

    fn remote(&self, wanted: &RemoteRef) -> Node {
        let locked = wanted.locked(&self.lock);
        let spec = match locked {
            Some(Upstream::Git { .. }) => wanted.spec.as_ref(),
            Some(_) => None,
            None => wanted.repository(),
        };
        let kind = spec.map_or(NodeKind::Http, |_| NodeKind::Git);
        let pin = spec.map(|spec| Pin::of(spec.reference.as_deref()));
        Node { pin, ..Node::away(wanted.text.shown(), kind, locked, &self.lock) }
    }

    fn chart(&self, chart: &Chart) -> Node {
        match (&chart.place, &chart.wanted) {
            // A directory that is of use as a whole is one thing, like a file.
            (Place::There(place), _) => {
                let brought = self.brought.iter().find(|(path, _)| path::is_in(path, place));
                let source = self.graph.roots[chart.root].source;
                let name = self.graph.sources[source].tree.label(place);
                Node { name, remote: brought.map(|(_, source)| source.clone()), ..Node::default() }
            }
            (_, Some(wanted)) => {
                let upstream = wanted.upstream();
                Node::away(upstream.to_string(), NodeKind::Chart, Some(upstream), &self.lock)
            }
            (Place::Missing(path), None) => Node::broken(path.clone(), "missing"),
            (Place::Submodule(path), None) => Node::broken(path.clone(), "in a submodule"),
            (Place::Outside, None) => Node::broken(redact::url(&chart.name), "out of scope"),
        }
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
