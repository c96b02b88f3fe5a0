//! What stays remote, as the lock records it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use super::remotes;
use crate::config::Config;
use crate::graph::{Edge, FileId, Graph, Origin, RootId, Target};
use crate::kustomization::{FunctionRuntime, NoteKind, is_pinned};
use crate::message::finding::{Rule, Subject};
use crate::message::redact;
use crate::record::{Left, LeftWhat};

/// The reason for something left because it could not be fetched.
pub(crate) const UNRESOLVED: &str = "could not be resolved";

/// The references that lead to something, in chains.
type Chains = BTreeSet<Vec<String>>;

/// Returns what stays remote of a graph: charts that are not in it, functions that get code from elsewhere or use the
/// network, references that `leave` accepts, references of what was fetched that could not be resolved. What only those
/// lead to does not count.
///
/// `brought` returns what a file of the first tree was brought in from, if it was.
pub(crate) fn left(graph: &Graph, leave: Option<&Config>, brought: &dyn Fn(&str) -> Option<String>) -> Vec<Left> {
    let mut all = All { graph, leave, brought, chains: chains(graph), found: BTreeMap::new() };
    all.references();
    all.unresolved();
    all.charts();
    all.functions();
    all.found.into_values().collect()
}

/// Returns how a lock names a reference of an upstream that could not be resolved; none where no lock can name it.
pub(crate) fn unresolved(edge: &Edge) -> Option<(LeftWhat, Subject)> {
    let wanted = edge.remote.as_ref()?;
    let url = wanted.text.shown();
    let what = LeftWhat::Reference { url };
    what.is_valid().then(|| (what, wanted.subject()))
}

/// Returns every remote reference that was followed, as chains of references name them.
pub(crate) fn references(graph: &Graph) -> BTreeSet<String> {
    let edges = graph.roots.iter().flat_map(|root| &root.edges);
    edges.filter_map(|edge| remotes::reference(graph, edge)).collect()
}

/// Returns what a root reaches that its build lacks here: references that stay remote, charts among `left`, local files
/// that may be missing. None where it reaches nothing of that kind, so that it can be built without the network.
pub(crate) fn reached(graph: &Graph, root: RootId, left: &[Left]) -> Option<String> {
    let left: HashMap<String, bool> = left.iter().map(|left| (left.what.label(), left.accepted)).collect();
    for root in graph.reach([root], |_, _, _| true) {
        if let Some(path) = graph.missing.get(&root) {
            return Some(format!("{path} is missing (allowed)"));
        }
        for chart in graph.charts_of(root) {
            let is_remote = !chart.is_there() && chart.archive.is_none();
            let label = chart.label();
            match left.get(&label).filter(|_| is_remote) {
                Some(true) => return Some(format!("{label} stays remote (allowed)")),
                // The original could pull it, and the result could not: it is read-only, and without a network.
                Some(false) => {
                    return Some(format!("{label} stays remote (`helm: true` brings it in)"));
                }
                None => {}
            }
        }
        for (index, edge) in graph.roots[root].edges.iter().enumerate() {
            if graph.left.contains(&(root, index)) {
                let url = redact::url(&edge.reference.text);
                return Some(format!("{url} stays remote (allowed)"));
            }
        }
    }
    None
}

/// Returns the chains that lead to each root of a fetched repository, from the references of the user. The roots of the
/// user have none; what only leads there over something that stays remote is not among them.
fn chains(graph: &Graph) -> HashMap<RootId, Chains> {
    let is_own = |root: &RootId| graph.sources[graph.roots[*root].source].repository.is_none();
    let mut chains: HashMap<RootId, Chains> = HashMap::new();
    for own in (0..graph.roots.len()).filter(is_own) {
        chains.insert(own, Chains::new());
        let mut seen = HashSet::new();
        // Breadth first: chains are as short as can be.
        let mut todo = VecDeque::from([(own, Vec::new())]);
        while let Some((root, chain)) = todo.pop_front() {
            for (index, edge) in graph.roots[root].edges.iter().enumerate() {
                let Target::Root { id, remote } = edge.target else {
                    continue;
                };
                if is_own(&id) || graph.left.contains(&(root, index)) {
                    continue;
                }
                let mut chain: Vec<String> = chain.clone();
                if remote {
                    chain.extend(remotes::reference(graph, edge));
                }
                let start = chain.first().cloned();
                if seen.insert((start, id)) {
                    chains.entry(id).or_default().insert(chain.clone());
                    todo.push_back((id, chain));
                }
            }
        }
    }
    chains
}

struct All<'a> {
    graph: &'a Graph,
    leave: Option<&'a Config>,
    brought: &'a dyn Fn(&str) -> Option<String>,
    chains: HashMap<RootId, Chains>,
    found: BTreeMap<LeftWhat, Left>,
}

impl All<'_> {
    fn references(&mut self) {
        let graph = self.graph;
        for (root, index) in &graph.left {
            // References that could not be resolved may have been removed from the graph.
            let Some(edge) = graph.roots[*root].edges.get(*index) else {
                continue;
            };
            let Some(wanted) = &edge.remote else {
                continue;
            };
            let url = wanted.text.shown();
            let what = LeftWhat::Reference { url };
            self.add(
                what,
                Rule::RemoteReference,
                &wanted.subject(),
                (*root, edge.lines()),
                "it is not locked, which `rules` in the configuration makes no error",
            );
        }
    }

    /// The user's references are not included: `check` reports where they stand.
    fn unresolved(&mut self) {
        let graph = self.graph;
        for (root, node) in graph.roots.iter().enumerate() {
            for (index, edge) in node.edges.iter().enumerate() {
                if edge.target == Target::Broken
                    && graph.is_fetched(edge.from)
                    && !graph.left.contains(&(root, index))
                    && let Some((what, subject)) = unresolved(edge)
                {
                    let place = (root, edge.lines());
                    self.add(what, Rule::RemoteReference, &subject, place, UNRESOLVED);
                }
            }
        }
    }

    fn charts(&mut self) {
        let graph = self.graph;
        for chart in &graph.charts {
            let Some(wanted) = &chart.wanted else {
                continue;
            };
            let subject = wanted.subject();
            let lines = graph.lines_of(chart.note);
            let accepts = |leave: &Config| graph.exception(leave, Rule::RemoteChart, &subject, lines);
            if chart.is_there() || (chart.archive.is_some() && self.leave.and_then(accepts).is_none()) {
                continue;
            }
            let what = LeftWhat::Chart {
                url: wanted.repo.shown(),
                chart: wanted.name.clone(),
                version: Some(wanted.version.clone()).filter(|version| !version.is_empty()),
            };
            // A chart that helm would not take either is trouble of whoever wrote it.
            if !what.is_valid() {
                continue;
            }
            let reason = "charts are brought in with `helm: true` only";
            let place = (chart.root, lines);
            self.add(what, Rule::RemoteChart, &subject, place, reason);
        }
    }

    fn functions(&mut self) {
        let graph = self.graph;
        for noted in &graph.notes {
            let NoteKind::KrmFunction { runtime: FunctionRuntime::Container { image, network }, .. } = &noted.note.kind
            else {
                continue;
            };
            let reason = match (is_pinned(image), network) {
                (false, true) => "the image is not pinned by its digest, and the function asks for the network",
                (false, false) => "the image is not pinned by its digest",
                (true, true) => "the function asks for the network",
                (true, false) => continue,
            };
            let image = redact::url(image);
            let what = LeftWhat::Image { image: image.clone() };
            let line = noted.note.line;
            let place = (noted.root, (noted.file, line, line));
            self.add(what, Rule::Function, &Subject::Image { image }, place, reason);
        }
    }

    /// Returns the chains that lead to the roots that name a file.
    fn leading_to(&self, file: FileId) -> Chains {
        let names = |root: &RootId| {
            let mut edges = self.graph.roots[*root].edges.iter();
            edges.any(|edge| edge.target == Target::File(file))
        };
        let naming = self.chains.iter().filter(|(root, _)| names(root));
        naming.flat_map(|(_, chains)| chains).cloned().collect()
    }

    fn add(
        &mut self,
        what: LeftWhat,
        rule: Rule,
        subject: &Subject,
        (root, lines): (RootId, (FileId, usize, usize)),
        reason: &str,
    ) {
        let Some(chains) = self.chains.get(&root) else {
            return;
        };
        let mut through = match &self.graph.files[lines.0].origin {
            // A plugin configuration that the root names by its URL, or one of a repository.
            Origin::Remote(remote) => with_last(chains, &remote.url.shown()),
            Origin::Tree { source: 0, path } => match (self.brought)(path) {
                Some(label) => Chains::from([vec![label]]),
                None => chains.clone(),
            },
            // A plugin configuration may be in a repository that the root lists.
            Origin::Tree { .. } | Origin::Archive { .. } if chains.is_empty() => self.leading_to(lines.0),
            Origin::Tree { .. } | Origin::Archive { .. } => chains.clone(),
        };
        let graph = self.graph;
        let accepts = |leave: &Config| graph.exception(leave, rule, subject, lines);
        let accepted = self.leave.and_then(accepts);
        let is_accepted = accepted.is_some();
        let reason = accepted.unwrap_or_else(|| reason.to_owned());
        match self.found.get_mut(&what) {
            Some(left) => {
                left.through.append(&mut through);
                // One function of the same image may ask for more than the other.
                if !is_accepted && reason.len() > left.reason.len() {
                    left.reason = reason;
                }
                left.accepted &= is_accepted;
            }
            None => {
                let left = Left { what: what.clone(), through, reason, accepted: is_accepted };
                self.found.insert(what, left);
            }
        }
    }
}

/// Returns the chains, each with one more at its end.
fn with_last(chains: &Chains, last: &str) -> Chains {
    let mut longer: Vec<Vec<String>> = chains.iter().cloned().collect();
    if longer.is_empty() {
        longer.push(Vec::new());
    }
    for chain in &mut longer {
        chain.push(last.to_owned());
    }
    longer.into_iter().collect()
}
