//! What stays remote, as the lock records it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::remotes;
use crate::config::Config;
use crate::graph::{Chart, FileId, Graph, Origin, RootId, Target};
use crate::kustomization::{NoteKind, Runs, is_pinned};
use crate::message::finding::{Rule, Subject};
use crate::message::redact;
use crate::record::{Left, LeftWhat};

/// Something that may stay remote.
struct Candidate {
    what: LeftWhat,
    rule: Rule,
    subject: Subject,
    /// The root that names it, and where.
    root: RootId,
    lines: (FileId, usize, usize),
    /// Why it stays, unless an exception says so.
    reason: &'static str,
}

/// Returns what stays remote of a graph: charts that are not in it, functions that get code from elsewhere or use the
/// network, references that `config` accepts. What only those lead to does not count.
///
/// `brought` returns what a file of the first tree was brought in from, if it was.
pub(crate) fn left(graph: &Graph, config: &Config, brought: &dyn Fn(&str) -> Option<String>) -> Vec<Left> {
    let own = (0..graph.roots.len()).filter(|root| graph.sources[graph.roots[*root].source].repository.is_none());
    let reached = graph.insisted(own);
    let behind = through(graph, &reached);
    let mut found: BTreeMap<LeftWhat, Left> = BTreeMap::new();
    let candidates = references(graph).chain(charts(graph, config)).chain(functions(graph));
    for one in candidates.filter(|one| reached.contains(&one.root)) {
        let file = one.lines.0;
        let through: BTreeSet<String> = match (&graph.files[file].origin, behind.get(&one.root)) {
            (Origin::Tree { source: 0, path }, _) => brought(path).into_iter().collect(),
            (Origin::Tree { .. }, Some(through)) => through.clone(),
            // A plugin configuration that is fetched for a root of the user.
            _ => remotes::through(graph, file).into_iter().collect(),
        };
        let accepted = graph.exception(config, one.rule, &one.subject, one.lines);
        let is_accepted = accepted.is_some();
        let reason = accepted.unwrap_or_else(|| one.reason.to_owned());
        let new =
            Left { what: one.what.clone(), through: BTreeSet::new(), reason: reason.clone(), accepted: is_accepted };
        let left = found.entry(one.what).or_insert(new);
        left.through.extend(through);
        if !is_accepted {
            left.reason = reason;
        }
        left.accepted &= is_accepted;
    }
    found.into_values().collect()
}

fn references(graph: &Graph) -> impl Iterator<Item = Candidate> {
    graph.left.iter().filter_map(|(root, index)| {
        // References that could not be resolved may have been removed from the graph.
        let edge = graph.roots[*root].edges.get(*index)?;
        let wanted = edge.remote.as_ref()?;
        Some(Candidate {
            what: LeftWhat::Reference { url: wanted.text.shown() },
            rule: Rule::RemoteReference,
            subject: wanted.subject(),
            root: *root,
            lines: edge.lines(),
            reason: "it is not locked, which `rules` in the configuration makes no error",
        })
    })
}

fn charts(graph: &Graph, config: &Config) -> impl Iterator<Item = Candidate> {
    graph.charts.iter().filter_map(|chart| {
        let wanted = chart.wanted.as_ref()?;
        let (subject, lines) = (wanted.subject(), graph.lines_of(chart.note));
        let is_brought = || graph.exception(config, Rule::RemoteChart, &subject, lines).is_none();
        if chart.is_there() || (chart.archive.is_some() && is_brought()) {
            return None;
        }
        let what = LeftWhat::Chart {
            url: wanted.repo.shown(),
            chart: wanted.name.clone(),
            version: Some(wanted.version.clone()).filter(|version| !version.is_empty()),
        };
        let reason = "charts are brought in with `helm: true` only";
        // A chart that helm would not take either is trouble of whoever wrote it.
        let is_valid = what.is_valid();
        is_valid.then_some(Candidate { what, rule: Rule::RemoteChart, subject, root: chart.root, lines, reason })
    })
}

fn functions(graph: &Graph) -> impl Iterator<Item = Candidate> {
    graph.notes.iter().filter_map(|noted| {
        let NoteKind::Code { runs: Runs::Image { image, network }, .. } = &noted.note.kind else { return None };
        if is_pinned(image) && !network {
            return None;
        }
        let (image, line) = (redact::url(image), noted.note.line);
        Some(Candidate {
            what: LeftWhat::Image { image: image.clone() },
            rule: Rule::Function,
            subject: Subject::Image { image },
            root: noted.root,
            lines: (noted.file, line, line),
            reason: "the image is not pinned by its digest, or the function asks for the network",
        })
    })
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
