//! Names of roots and references, and their state, as `tree` and reports show them.

use std::collections::HashMap;
use std::rc::Rc;

use serde::{Serialize, Serializer};

use super::{
    At, Chart, ChartLookup, EdgeId, Explored, FileId, Graph, Lines, RemoteRef, Resolution, RootId, TroubleKind,
};
use crate::config::Config;
use crate::kustomization::KustomizationKind;
use crate::message::failure::{Location, Result, short};
use crate::message::finding::Rule;
use crate::message::redact;
use crate::record::{Digest, LOCK_NAME, Lock};
use crate::reference::{Pin, Upstream};
use crate::tree::path;

/// A root, a file or something remote, as reports show it.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub(crate) struct Node {
    /// Its path from the top of the repository (`.` for the top), or its URL without secrets.
    pub name: String,
    pub kind: NodeKind,
    /// Whether a kustomization is a Component.
    pub component: bool,
    /// The upstream: as the lock has it, or as the file was fetched from. `None` if it is neither locked nor fetched.
    pub remote: Option<Upstream>,
    /// How firmly the ref of a git repository names a commit.
    pub pin: Option<Pin>,
    /// The digest in the lock. `None` if the lock has none, or for a local node.
    pub locked: Option<Digest>,
    /// Why it cannot be followed, or why its references are unknown, in a word or two; of a remote node that no lock
    /// has whether an exception allows it.
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
    /// A reference that cannot be followed.
    Broken,
}

impl Node {
    /// The node of a reference that cannot be followed.
    fn broken(name: String, why: &'static str) -> Node {
        Node { name, kind: NodeKind::Broken, why: Some(why), ..Node::default() }
    }

    /// The node of something on another host, which `lock` may have.
    fn on_host(name: String, kind: NodeKind, upstream: Option<Upstream>, lock: &Lock) -> Node {
        let upstream = upstream.filter(|upstream| lock.holds(upstream));
        let locked = upstream.as_ref().and_then(|upstream| lock.get(upstream)).map(|pinned| pinned.digest.clone());
        Node { name, kind, remote: upstream.map(|upstream| upstream.source()), locked, ..Node::default() }
    }

    /// Whether it is on another host.
    pub(crate) fn is_remote(&self) -> bool {
        matches!(self.kind, NodeKind::Git | NodeKind::Http | NodeKind::Chart)
    }

    /// The words behind the name of the node in reports: its kind, its pin, whether it is locked, and why it cannot be
    /// followed. Empty for an ordinary root or file.
    pub(crate) fn state(&self) -> String {
        let origin = match (&self.locked, &self.remote) {
            (Some(digest), _) => Some(format!("locked {}", short(digest.hex()))),
            (None, Some(label)) => Some(format!("from {label}")),
            // If an exception allows it, `why` says so.
            (None, None) => (self.is_remote() && self.why.is_none()).then(|| NOT_LOCKED.to_owned()),
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

/// The states of something remote that no lock has: without and with an exception.
pub(crate) const NOT_LOCKED: &str = "not locked";
pub(crate) const ALLOWED: &str = "allowed";

/// A reference, as reports show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct NamedReference {
    /// The root that has the reference. In JSON it is its name.
    #[serde(serialize_with = "name")]
    pub from: Rc<Node>,
    /// The root, file or upstream that the reference leads to.
    pub to: Node,
    #[serde(flatten)]
    pub location: Location,
    /// Its text, without secrets.
    pub reference: String,
}

/// Serializes a node as its name.
fn name<S: Serializer>(node: &Rc<Node>, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    node.name.serialize(serializer)
}

/// Names the roots and references of a walk that had no network.
pub(crate) struct Namer<'a> {
    graph: &'a Graph,
    /// The configuration with exceptions.
    config: &'a Config,
    /// The lock at the top of the tree.
    lock: Rc<Lock>,
    /// The upstreams of localized files, by path from the top of the tree.
    localized_from: HashMap<String, Upstream>,
    /// Why something cannot be followed.
    reasons: HashMap<At, &'static str>,
}

impl<'a> Namer<'a> {
    /// Prepares to name the nodes of a walk from its tree. Reads all locks of the tree, which tell the upstreams of
    /// localized files.
    pub(crate) fn of(explored: &'a Explored, config: &'a Config) -> Result<Namer<'a>> {
        let graph = &explored.graph;
        let tree = &*graph.sources[0].tree;
        let mut localized_from = HashMap::new();
        let mut top_lock = Rc::default();
        for lock_path in tree.locks()? {
            let Some(lock) = Lock::find(tree, &lock_path)? else { continue };
            for (file, remote) in lock.files.iter().filter_map(|file| Some((file, file.remote.clone()?))) {
                localized_from.insert(path::join(path::parent(&lock_path), &file.path), remote);
            }
            if lock_path == LOCK_NAME {
                top_lock = lock;
            }
        }
        // The first trouble at a location counts, so they are collected from the last to the first.
        let reasons = explored.troubles.iter().rev().map(|trouble| (trouble.at, reason(&trouble.kind)));
        Ok(Namer { graph, config, lock: top_lock, localized_from, reasons: reasons.collect() })
    }

    /// The nodes that `roots` reach and that are not in the tree: remote or broken.
    pub(crate) fn beyond(&self, roots: impl IntoIterator<Item = RootId>) -> impl Iterator<Item = Node> {
        let roots = self.graph.reach_localized(roots).into_iter();
        let nodes = roots.flat_map(|root| self.references_of(root).map(|named| named.to).chain([self.root(root)]));
        nodes.filter(|node| node.is_remote() || node.why.is_some())
    }

    /// The node of a root. A localized root has the upstream of its kustomization.
    pub(crate) fn root(&self, id: RootId) -> Node {
        let root = &self.graph.roots[id];
        let reason = self.reasons.get(&At::File(root.file)).copied();
        Node {
            name: path::shown(&self.graph.root_label(id)).to_owned(),
            kind: NodeKind::Kustomization,
            component: root.kind == Some(KustomizationKind::Component),
            remote: self.origin(root.file),
            why: reason.or(root.kind.is_none().then_some("invalid")),
            ..Node::default()
        }
    }

    /// The upstream from which a file was localized, by the locks of the tree. `None` if it was not.
    fn origin(&self, file: FileId) -> Option<Upstream> {
        self.graph.user_path(file).and_then(|path| self.localized_from.get(path)).cloned()
    }

    /// The references of a root, then its charts, each with the node that it leads to.
    pub(crate) fn references_of(&self, root: RootId) -> impl Iterator<Item = NamedReference> {
        let from = Rc::new(self.root(root));
        let chart_from = from.clone();
        let edges = self.graph.edges_of(root).map(move |(id, edge)| NamedReference {
            from: from.clone(),
            to: self.resolved_node(id),
            location: self.graph.location(edge),
            reference: redact::url(&edge.reference.text),
        });
        // Charts are not edges of the graph, because kustomize leaves them to helm.
        let charts = self.graph.charts_of(root).iter().map(move |chart| NamedReference {
            from: chart_from.clone(),
            to: self.chart_node(chart),
            location: self.graph.note_location(chart.note),
            reference: redact::url(chart.wanted.as_ref().map_or(&chart.name, |wanted| wanted.repo.exposed())),
        });
        edges.chain(charts)
    }

    /// The node that a reference leads to: a root, a file, something remote, or why it cannot be followed.
    fn resolved_node(&self, id: EdgeId) -> Node {
        let (edge, reason) = (&self.graph[id], self.reasons.get(&At::Edge(id)).copied());
        match (edge.resolution, &edge.remote) {
            // A reference that kustomize does not follow must not be drawn as if it did.
            (Resolution::Root { id, .. }, _) if reason.is_none() => self.root(id),
            (Resolution::File(file), _) if reason.is_none() => {
                Node { name: self.graph.label(file), remote: self.origin(file), ..Node::default() }
            }
            (Resolution::Remote | Resolution::Unchanged, Some(wanted)) => self.remote_node(wanted, edge.lines()),
            (_, remote) => {
                let text = &edge.reference.text;
                let name = match path::resolve(&self.graph.roots[id.root].directory, text) {
                    Some(path) if remote.is_none() => redact::message(path::shown(&path)).into_owned(),
                    _ => redact::url(text),
                };
                let is_unchanged = edge.resolution == Resolution::Unchanged;
                Node::broken(name, reason.or(is_unchanged.then_some("left as it is")).unwrap_or("invalid"))
            }
        }
    }

    /// [`ALLOWED`], if an exception from `rule` at these lines covers an upstream.
    fn allowed(&self, rule: Rule, upstream: &Upstream, lines: Lines) -> Option<&'static str> {
        self.graph.exception(self.config, rule, &upstream.subject(), lines).map(|_| ALLOWED)
    }

    /// The node of a remote reference at these lines, which the walk has not fetched: its digest if it is locked,
    /// otherwise whether an exception allows it.
    fn remote_node(&self, wanted: &RemoteRef, lines: Lines) -> Node {
        let spec = wanted.repository_by(&self.lock);
        let kind = spec.map_or(NodeKind::Http, |_| NodeKind::Git);
        let pin = spec.map(|spec| Pin::of(spec.reference.as_deref()));
        let allowed = self.allowed(Rule::RemoteReference, &wanted.meant(), lines);
        let why = allowed.filter(|_| !wanted.is_locked(&self.lock));
        Node { pin, why, ..Node::on_host(wanted.text.shown(), kind, wanted.locked(&self.lock), &self.lock) }
    }

    /// The node of a chart: its directory if it is in the tree, otherwise its upstream.
    fn chart_node(&self, chart: &Chart) -> Node {
        match (&chart.lookup, &chart.wanted) {
            // A chart is used as a whole, so its directory is one node, like a file.
            (ChartLookup::There(path), _) => {
                let localized = self.localized_from.iter().find(|(file, _)| path::is_in(file, path));
                let source = self.graph.roots[chart.root].source;
                let name = self.graph.sources[source].tree.label(path);
                Node { name, remote: localized.map(|(_, upstream)| upstream.clone()), ..Node::default() }
            }
            (_, Some(wanted)) => {
                let upstream = wanted.upstream();
                let allowed = self.allowed(Rule::RemoteChart, &upstream, self.graph.lines_of(chart.note));
                let why = allowed.filter(|_| wanted.locked(&self.lock).is_none());
                Node { why, ..Node::on_host(upstream.to_string(), NodeKind::Chart, Some(upstream), &self.lock) }
            }
            (ChartLookup::Missing(path), None) => Node::broken(path.clone(), "missing"),
            (ChartLookup::Submodule(path), None) => Node::broken(path.clone(), "in a submodule"),
            (ChartLookup::Outside, None) => Node::broken(redact::url(&chart.name), "out of scope"),
        }
    }
}

/// Why something cannot be followed, in a word or two.
fn reason(trouble: &TroubleKind) -> &'static str {
    match trouble {
        TroubleKind::Missing { .. } => "missing",
        TroubleKind::NoKustomization { .. } => "no kustomization",
        TroubleKind::OutOfScope | TroubleKind::Restricted => "out of scope",
        TroubleKind::Submodule { .. } => "in a submodule",
        TroubleKind::Cycle => "cycle",
        _ => "invalid",
    }
}
