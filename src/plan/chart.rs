//! Where charts that were pulled go, and what their kustomization says then.
//!
//! Without its `repo`, a chart is taken from `{chartHome}/{name}` by every kustomize. Where that is another chart
//! already, `repo` and `version` stay, and kustomize (since 5.3) looks in `{chartHome}/{name}-{version}/{name}`.

use std::collections::HashMap;

use super::files::Rewritten;
use super::placing::Holders;
use super::result::{Builder, Instance};
use crate::graph::{CHART_HOME, Chart, Graph, RootId};
use crate::kustomization::{Edit, NoteKind, Spot};
use crate::message::failure::{Failure, Result};
use crate::record::stored;
use crate::tree::path;

/// Changes to a file because of charts.
#[derive(Default)]
pub(super) struct ChartEdits {
    /// The charts whose `repo` goes: indexes into the graph's notes, each with the place of the chart as the
    /// kustomization would name it.
    pub(super) repos: Vec<(usize, String)>,
    /// The homes that are somewhere else now: indexes into the graph's notes, each with its new text.
    pub(super) homes: Vec<(usize, String)>,
}

impl ChartEdits {
    pub(super) fn is_empty(&self) -> bool {
        self.repos.is_empty() && self.homes.is_empty()
    }

    /// Returns the edits.
    pub(super) fn edits<'a>(&'a self, graph: &'a Graph) -> impl Iterator<Item = Edit<'a>> {
        let homes = self
            .homes
            .iter()
            .filter_map(|(note, value)| Some(Edit { spot: home_spot(graph, *note)?, value: Some(value.clone()) }));
        let repos = self.repos.iter().filter_map(|(note, _)| match &graph.notes[*note].note.kind {
            NoteKind::RemoteChart { repo_spot, .. } => Some(Edit { spot: repo_spot, value: None }),
            _ => None,
        });
        homes.chain(repos)
    }

    /// Returns what is changed, for reports.
    pub(super) fn rewritten(&self, graph: &Graph, place: &str) -> Vec<Rewritten> {
        let label = |note: usize| {
            let mut charts = graph.charts.iter();
            charts.find(|chart| chart.note == note)
        };
        let text = |note: usize| match &graph.notes[note].note.kind {
            NoteKind::ChartHome { path, .. } => path.clone(),
            _ => label(note).map_or_else(String::new, |chart| chart.label.clone()),
        };
        let all = self.repos.iter().chain(&self.homes);
        all.map(|(note, to)| Rewritten {
            path: place.to_owned(),
            location: graph.note_location(*note),
            from: text(*note),
            to: to.clone(),
        })
        .collect()
    }
}

/// Returns what is known of charts, by the root that names them: indexes into the graph's notes.
pub(super) fn notes(graph: &Graph) -> HashMap<RootId, Vec<usize>> {
    let mut notes: HashMap<RootId, Vec<usize>> = HashMap::new();
    for (index, noted) in graph.notes.iter().enumerate() {
        let is_of_charts = matches!(
            noted.note.kind,
            NoteKind::RemoteChart { .. } | NoteKind::LocalChart { .. } | NoteKind::ChartHome { .. }
        );
        if is_of_charts {
            notes.entry(noted.root).or_default().push(index);
        }
    }
    notes
}

fn home_spot(graph: &Graph, note: usize) -> Option<&Spot> {
    match &graph.notes[note].note.kind {
        NoteKind::ChartHome { spot, .. } => Some(spot),
        _ => None,
    }
}

impl Builder<'_> {
    /// Places the charts of a root, and has its references to them edited.
    pub(super) fn place_charts(&mut self, instance: &Instance, root: RootId, holders: &Holders) -> Result<()> {
        if !self.chart_notes.contains_key(&root) {
            return Ok(());
        }
        let graph = self.graph;
        let node = &graph.roots[root];
        let stays = self.stays(node.source);
        let directory = self.destination(instance, &node.directory);
        for chart in graph.charts.iter().filter(|chart| chart.root == root) {
            let Some((archive, files)) = &chart.brought else {
                if chart.label.is_empty() {
                    let (text, _) = self.chart_homes.find(&graph.notes[chart.note]);
                    let home = graph.local_path(root, text).unwrap_or_default();
                    let place = path::join(&self.destination(instance, &home), &chart.name);
                    self.kept.insert(place);
                }
                continue;
            };
            let noted = &graph.notes[chart.note];
            if stays
                && let Some(chosen) = self.in_place
                && !chosen(&graph.label(noted.file), &chart.label)
            {
                continue;
            }
            let location = || graph.note_location(chart.note);
            let (text, spot) = self.chart_homes.find(noted);
            let Some(home) = self.home(instance, root, text, spot) else {
                self.failures.push(
                    Failure::new(format!(
                        "the chart home `{text}` lies out of the repository, so the chart `{}` has no place in it",
                        chart.name
                    ))
                    .at(location())
                    .hint("name a directory of this repository in `chartHome`"),
                );
                continue;
            };
            let version = archive.chart.version.as_str();
            let keeps = !version.is_empty() && (stays || self.keeps_repo(chart));
            let inside = if keeps { format!("{}-{version}/{}", chart.name, chart.name) } else { chart.name.clone() };
            let place = path::join(&home, &inside);
            for (name, file) in files {
                if let Err(failure) = self.place_file(&path::join(&place, name), *file) {
                    self.failures.push(failure.at(location()));
                    break;
                }
            }
            // Among localized files it is one of them.
            if (stays && stored::home(&place).is_none()) || self.in_place.is_none() {
                self.vendored.insert(place.clone());
            }
            if stays || keeps {
                continue;
            }
            for holder in holders.get(&noted.file).into_iter().flatten() {
                self.hold(holder, noted.file)?;
                if let Some(placed) = self.placed.get_mut(holder) {
                    let edits = &mut placed.charts.repos;
                    if !edits.iter().any(|(note, _)| *note == chart.note) {
                        edits.push((chart.note, path::relative(&directory, &place)));
                    }
                }
            }
        }
        if stays { Ok(()) } else { self.spell_homes(instance, root, holders) }
    }

    /// Returns where the charts of a home go in the result: where it lies, or below the root where that is out of
    /// the scope.
    fn home(&self, instance: &Instance, root: RootId, text: &str, spot: Option<&Spot>) -> Option<String> {
        let node = &self.graph.roots[root];
        let scope = &self.graph.sources[node.source].scope;
        match self.graph.local_path(root, text) {
            Some(home) if path::is_in(&home, scope) => Some(self.destination(instance, &home)),
            // Where nothing is written, nothing can be rewritten.
            _ if self.stays(node.source) || spot.is_none() => None,
            _ => {
                let directory = self.destination(instance, &node.directory);
                Some(path::join(&directory, CHART_HOME))
            }
        }
    }

    /// Returns whether something else is or will be where a chart without its `repo` is looked for.
    fn keeps_repo(&self, chart: &Chart) -> bool {
        let graph = self.graph;
        let home = |chart: &Chart| {
            let noted = &graph.notes[chart.note];
            let (text, _) = self.chart_homes.find(noted);
            let node = &graph.roots[chart.root];
            let scope = &graph.sources[node.source].scope;
            match graph.local_path(chart.root, text) {
                Some(home) if path::is_in(&home, scope) => (node.source, home),
                _ => (node.source, path::join(&node.directory, CHART_HOME)),
            }
        };
        let (source, own) = home(chart);
        let digest = |chart: &Chart| chart.brought.as_ref().map(|(archive, _)| archive.sha256.clone());
        let other = graph.charts.iter().any(|other| {
            other.name == chart.name
                && other.brought.is_some()
                && digest(other) != digest(chart)
                && home(other) == (source, own.clone())
        });
        let tree = &graph.sources[source].tree;
        let there = tree.entry(&path::join(&own, &chart.name));
        other || !matches!(there, Ok(None))
    }

    /// Has the homes edited that are written as absolute paths, or lie somewhere else now.
    fn spell_homes(&mut self, instance: &Instance, root: RootId, holders: &Holders) -> Result<()> {
        let graph = self.graph;
        let node = &graph.roots[root];
        let directory = self.destination(instance, &node.directory);
        let scope = graph.sources[node.source].scope.clone();
        for index in self.chart_notes.get(&root).cloned().unwrap_or_default() {
            let noted = &graph.notes[index];
            let NoteKind::ChartHome { path: text, spot } = &noted.note.kind else {
                continue;
            };
            let uses = |chart: &Chart| {
                let own = &graph.notes[chart.note];
                chart.root == root
                    && chart.brought.is_some()
                    && own.file == noted.file
                    && self.chart_homes.find(own).1 == Some(spot)
            };
            let home = match graph.local_path(root, text) {
                Some(home) if path::is_in(&home, &scope) => self.destination(instance, &home),
                _ if graph.charts.iter().any(uses) => path::join(&directory, CHART_HOME),
                _ => continue,
            };
            if !path::is_absolute(text) && path::resolve(&directory, text).as_ref() == Some(&home) {
                continue;
            }
            let value = path::relative(&directory, &home);
            for holder in holders.get(&noted.file).into_iter().flatten() {
                self.hold(holder, noted.file)?;
                let Some(placed) = self.placed.get_mut(holder) else {
                    continue;
                };
                let homes = &mut placed.charts.homes;
                match homes.iter().find(|(note, _)| home_spot(graph, *note) == Some(spot)) {
                    None => homes.push((index, value.clone())),
                    Some((_, other)) if *other == value => {}
                    Some(_) => self.failures.push(
                        Failure::new(format!(
                            "`{}` is listed by several kustomizations, and this directory would have to differ in each",
                            graph.label(noted.file)
                        ))
                        .at(graph.note_location(index))
                        .hint("give each kustomization a plugin configuration of its own"),
                    ),
                }
            }
        }
        Ok(())
    }
}
