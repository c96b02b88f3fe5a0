//! What stays remote, as the lock records it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::remotes;
use crate::config::Config;
use crate::graph::{Chart, FileId, Graph, Origin, RootId, Target};
use crate::kustomization::{NoteKind, Runs, is_pinned};
use crate::message::finding::{Rule, Subject};
use crate::message::redact;
use crate::record::{Left, LeftWhat};

/// Returns what stays remote of a graph: charts that are not in it, functions that get code from elsewhere or use the
/// network, references that `leave` accepts. What only those lead to does not count.
///
/// `brought` returns what a file of the first tree was brought in from, if it was.
pub(crate) fn left(graph: &Graph, leave: Option<&Config>, brought: &dyn Fn(&str) -> Option<String>) -> Vec<Left> {
    let own = (0..graph.roots.len()).filter(|root| graph.sources[graph.roots[*root].source].repository.is_none());
    let reached = graph.insisted(own);
    let mut all = All { graph, leave, brought, through: through(graph, &reached), reached, found: BTreeMap::new() };
    all.references();
    all.charts();
    all.functions();
    all.found.into_values().collect()
}

/// Returns what a root reaches that its build lacks here: what stays remote, local files that may be missing. None where it
/// reaches nothing of that kind, so that it can be built without the network.
pub(crate) fn reached(graph: &Graph, root: RootId) -> Option<String> {
    for root in graph.reach([root], |_, _, _| true) {
        if let Some(path) = graph.missing.get(&root) {
            return Some(format!("{path} is missing (allowed)"));
        }
        // The original could pull a chart, and the result could not: it is read-only, and without a network.
        let is_left = |chart: &&Chart| chart.wanted.is_some() && !chart.is_there() && chart.archive.is_none();
        let chart = graph.charts_of(root).iter().find(is_left).map(|chart| chart.label());
        let mut edges = graph.roots[root].edges.iter().enumerate();
        let mut edge = || edges.find(|(index, _)| graph.left.contains(&(root, *index)));
        if let Some(what) = chart.or_else(|| edge().map(|(_, edge)| redact::url(&edge.reference.text))) {
            return Some(format!("{what} stays remote"));
        }
    }
    None
}

/// Returns the remote references over which roots of fetched repositories are reached, as the lock names them.
fn through(graph: &Graph, reached: &BTreeSet<RootId>) -> HashMap<RootId, BTreeSet<String>> {
    let named = reached.iter().flat_map(|root| {
        let named = graph.roots[*root].named().filter(|(index, ..)| !graph.left.contains(&(*root, *index)));
        named.flat_map(|(_, edge, id)| {
            remotes::references(graph, edge).into_iter().map(move |reference| (reference, id))
        })
    });
    let named: BTreeSet<(String, RootId)> = named.collect();
    let is_local = |target| matches!(target, Target::Root { remote: false, .. });
    let mut through: HashMap<RootId, BTreeSet<String>> = HashMap::new();
    for (reference, id) in named {
        for behind in graph.reach([id], |_, _, edge| is_local(edge.target)) {
            through.entry(behind).or_default().insert(reference.clone());
        }
    }
    through
}

struct All<'a> {
    graph: &'a Graph,
    leave: Option<&'a Config>,
    brought: &'a dyn Fn(&str) -> Option<String>,
    /// The roots that the user's lead to, over nothing that stays remote.
    reached: BTreeSet<RootId>,
    through: HashMap<RootId, BTreeSet<String>>,
    found: BTreeMap<LeftWhat, Left>,
}

impl All<'_> {
    fn references(&mut self) {
        let graph = self.graph;
        for (root, index) in &graph.left {
            // References that could not be resolved may have been removed from the graph.
            let Some(edge) = graph.roots[*root].edges.get(*index) else { continue };
            let Some(wanted) = &edge.remote else { continue };
            let (what, place) = (LeftWhat::Reference { url: wanted.text.shown() }, (*root, edge.lines()));
            let reason = "it is not locked, which `rules` in the configuration makes no error";
            self.add(what, Rule::RemoteReference, &wanted.subject(), place, reason);
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
            let NoteKind::Code { runs: Runs::Image { image, network }, .. } = &noted.note.kind else {
                continue;
            };
            if is_pinned(image) && !network {
                continue;
            }
            let reason = "the image is not pinned by its digest, or the function asks for the network";
            let image = redact::url(image);
            let what = LeftWhat::Image { image: image.clone() };
            let line = noted.note.line;
            let place = (noted.root, (noted.file, line, line));
            self.add(what, Rule::Function, &Subject::Image { image }, place, reason);
        }
    }

    fn add(
        &mut self,
        what: LeftWhat,
        rule: Rule,
        subject: &Subject,
        (root, lines): (RootId, (FileId, usize, usize)),
        reason: &str,
    ) {
        let graph = self.graph;
        if !self.reached.contains(&root) {
            return;
        }
        let from = &graph.files[lines.0].origin;
        let through = match (from, self.through.get(&root)) {
            (Origin::Tree { source: 0, path }, _) => (self.brought)(path).into_iter().collect(),
            (Origin::Tree { .. }, Some(through)) => through.clone(),
            // A plugin configuration that is fetched for a root of the user.
            _ => remotes::through(graph, lines.0).into_iter().collect(),
        };
        let accepted = self.leave.and_then(|leave| graph.exception(leave, rule, subject, lines));
        let is_accepted = accepted.is_some();
        let reason = accepted.unwrap_or_else(|| reason.to_owned());
        let new = Left { what: what.clone(), through: BTreeSet::new(), reason: reason.clone(), accepted: is_accepted };
        let left = self.found.entry(what).or_insert(new);
        left.through.extend(through);
        if !is_accepted {
            left.reason = reason;
        }
        left.accepted &= is_accepted;
    }
}
