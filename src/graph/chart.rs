//! Charts: where kustomize looks for them, and bringing in those that are not there.
//!
//! kustomize calls `helm pull` unless the directory of the chart is there: `{chartHome}/{name}-{version}/{name}`
//! with a repository and a version, else `{chartHome}/{name}` (`HelmChartInflationGenerator.go`). What is in it is
//! not looked at.

mod homes;

use std::collections::BTreeMap;
use std::rc::Rc;

use super::local::wider;
use super::trouble::{Beyond, Trouble, TroubleKind, WalkError, WalkResult};
use super::{File, FileId, Graph, NamedBy, Noted, Origin, Remotes, RootId, Walker, Warning};
use crate::config::FILE_NAME;
use crate::kustomization::{NoteKind, Spot};
use crate::message::failure::{Failure, Result};
use crate::message::finding::{Rule, Subject};
use crate::message::redact::SafeUrl;
use crate::record::{ChartRemote, Lock, chart_label};
use crate::tree::{self, Resolved, path};

pub(crate) use homes::{CHART_HOME, ChartHomes};

/// A chart of a repository.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ChartRef {
    /// The repository as written.
    pub repo: SafeUrl,
    pub name: String,
    /// The version as written; empty when none is.
    pub version: String,
    /// Whether the newest version may be one under development.
    pub devel: bool,
}

/// A chart that was pulled.
pub(crate) struct Archive {
    /// The request.
    pub chart: ChartRef,
    /// The version that it is.
    pub resolved: String,
    /// The SHA-256 of the archive, in hex.
    pub sha256: String,
    /// The number of its bytes.
    pub size: u64,
    /// Its files by their path in the directory of the chart.
    pub files: BTreeMap<String, Rc<[u8]>>,
}

/// The result of a chart that was requested.
#[derive(Clone)]
pub(crate) enum Pulled {
    /// It is here.
    Archive(Rc<Archive>),
    /// It is left remote; the rest of a sentence explains why, or what to do.
    Left,
}

/// A chart of a repository that is not in the tree, and what happened to it.
pub(crate) struct Chart {
    /// The root whose kustomization or plugin configuration names it.
    pub root: RootId,
    /// Where it is named: index into [`Graph::notes`].
    pub note: usize,
    pub name: String,
    /// What names it in a record; empty for one that should be in the tree, and may be missing.
    pub label: String,
    /// The archive, and its files by their path in the directory of the chart; none where it is left remote.
    pub brought: Option<(Rc<Archive>, BTreeMap<String, FileId>)>,
}

impl ChartRef {
    /// Returns what names it in a record.
    pub(crate) fn label(&self) -> String {
        chart_label(&self.repo.shown(), &self.name, self.version())
    }

    /// Returns it as it may be shown.
    pub(crate) fn shown(&self) -> String {
        self.label()
    }

    /// Returns what it is for a policy.
    pub(crate) fn subject(&self) -> Subject {
        Subject::Helm { url: self.repo.shown(), chart: self.name.clone(), version: self.version.clone() }
    }

    /// Returns whether it is an artifact of a registry.
    pub(crate) fn is_oci(&self) -> bool {
        self.repo.exposed().starts_with("oci://")
    }

    /// Returns its entry in a lock.
    pub(crate) fn locked<'a>(&self, lock: &'a Lock) -> Option<&'a ChartRemote> {
        lock.find_chart(&self.repo.shown(), &self.name, self.version())
    }

    fn version(&self) -> Option<&str> {
        Some(self.version.as_str()).filter(|version| !version.is_empty())
    }

    /// Refuses what helm, or a path, could take for something else.
    pub(crate) fn refuse_unsafe(&self) -> Result<()> {
        let refuse = |what: &str| {
            Err(Failure::new(format!("the chart {} is refused: {what}", self.shown()))
                .hint("what helm or a path could take for something else is never passed on"))
        };
        let texts = [self.repo.exposed(), &self.name, &self.version];
        if texts.iter().any(|text| text.contains(char::is_control)) {
            return refuse("it holds control characters");
        }
        if texts.iter().any(|text| text.starts_with('-')) {
            return refuse("a part of it begins with `-`");
        }
        if matches!(self.name.as_str(), "." | "..") || self.name.contains(['/', '\\', ':']) {
            return refuse("its name is not a directory name");
        }
        if self.version.contains(['/', '\\']) {
            return refuse("its version holds a slash");
        }
        let scheme = self.repo.exposed().split_once("://").map(|(scheme, _)| scheme);
        if !matches!(scheme, Some("https" | "http" | "oci")) {
            return refuse("its repository has no https, http or oci URL");
        }
        Ok(())
    }
}

/// A chart that a kustomization or plugin configuration names.
pub(crate) struct Named<'a> {
    /// Where, as an index into [`Graph::notes`].
    pub note: usize,
    /// Where.
    pub noted: &'a Noted,
    /// The repository as written; none for one that must be in the tree.
    pub repo: Option<&'a str>,
    pub name: &'a str,
    /// The version as written; empty when none is.
    pub version: &'a str,
    /// Where charts are looked for, as written, and where that is written.
    pub home: (&'a str, Option<&'a Spot>),
    /// Where it is looked for.
    pub place: Place,
}

impl Named<'_> {
    /// Returns the chart to request; none if it must be in the tree.
    pub(crate) fn wanted(&self) -> Option<ChartRef> {
        let devel = matches!(self.noted.note.kind, NoteKind::RemoteChart { devel: true, .. });
        Some(ChartRef {
            repo: self.repo?.into(),
            name: self.name.to_owned(),
            version: self.version.to_owned(),
            devel: devel && self.version.is_empty(),
        })
    }
}

/// Where a chart is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// At this path, from the top, and something is there.
    There(String),
    /// At this path, links on the way followed, and there is nothing.
    Missing(String),
    /// In this submodule.
    Submodule(String),
    /// Out of the tree.
    Outside,
}

impl Graph {
    /// Returns the charts that roots name, in the order of the notes.
    pub(crate) fn named_charts(&self) -> Vec<Named<'_>> {
        let homes = self.chart_homes();
        let notes = self.notes.iter().enumerate();
        let charts = notes.filter_map(|(note, noted)| {
            let (repo, name, version) = named(noted)?;
            Some(Named {
                note,
                noted,
                repo,
                name,
                version,
                home: homes.find(noted),
                place: self.places.get(&note)?.clone(),
            })
        });
        charts.collect()
    }

    /// Returns where each chart is looked for, by its note, or why the tree cannot tell.
    fn chart_places(&self) -> Vec<(usize, Result<Place>)> {
        let homes = self.chart_homes();
        let notes = self.notes.iter().enumerate();
        let places = notes.filter_map(|(note, noted)| {
            let (repo, name, version) = named(noted)?;
            let below = match (repo, version) {
                (Some(_), version) if !version.is_empty() => format!("{name}-{version}/{name}"),
                _ => name.to_owned(),
            };
            let (home, _) = homes.find(noted);
            let tree = &*self.sources[self.roots[noted.root].source].tree;
            let place = self.local_path(noted.root, home).and_then(|home| path::resolve(&home, &below));
            let place = match place.map(|place| Ok((tree::resolve(tree, &place)?, place))) {
                None => Ok(Place::Outside),
                Some(resolved) => resolved.map(|(resolved, place)| match resolved {
                    Resolved::Missing { path } => Place::Missing(path),
                    Resolved::Submodule { path } => Place::Submodule(path),
                    Resolved::Leaves { .. } => Place::Outside,
                    _ => Place::There(place),
                }),
            };
            Some((note, place))
        });
        places.collect()
    }
}

/// Returns the repository, the name and the version of a chart as a note has them.
fn named(noted: &Noted) -> Option<(Option<&str>, &str, &str)> {
    let (repo, name, version) = match &noted.note.kind {
        NoteKind::RemoteChart { repo, name, version, .. } => (Some(repo.as_str()), name, version),
        NoteKind::LocalChart { name, version, .. } => (None, name, version),
        _ => return None,
    };
    (!name.is_empty()).then_some((repo, name, version))
}

/// A chart of the tree at hand, by its place and what names it.
struct Local {
    note: usize,
    path: String,
}

/// A chart to be brought in.
struct Missing {
    note: usize,
    wanted: ChartRef,
}

impl Walker<'_> {
    /// Looks where charts are.
    pub(super) fn find_charts(&mut self) {
        for (note, place) in self.graph.chart_places() {
            match place {
                Ok(place) => {
                    self.graph.places.insert(note, place);
                }
                Err(failure) => self.chart_trouble(note, failure.into()),
            }
        }
    }

    /// Brings along the charts that are in the tree, and brings in those that are not.
    pub(super) fn bring_charts(&mut self, remotes: &mut dyn Remotes) {
        let (mut locals, mut missing, mut absent) = (Vec::new(), Vec::new(), Vec::new());
        let mut stops = Vec::new();
        for chart in self.graph.named_charts() {
            let note = chart.note;
            match (&chart.place, chart.wanted()) {
                (Place::There(path), _) => {
                    let path = path.clone();
                    locals.push(Local { note, path });
                }
                (_, Some(wanted)) => match wanted.refuse_unsafe() {
                    Ok(()) => missing.push(Missing { note, wanted }),
                    // That concerns the text, not what it leads to.
                    Err(failure) => {
                        let kind = Box::new(TroubleKind::Refused);
                        stops.push((note, WalkError { kind, failure }));
                    }
                },
                (Place::Missing(path), None) => {
                    let source = self.graph.roots[chart.noted.root].source;
                    if self.may_be_missing(source, path, self.graph.lines_of(note)) {
                        absent.push((note, chart.name.to_owned(), path.clone()));
                    } else {
                        stops.push((note, no_chart(&self.graph, note, chart.name, path)));
                    }
                }
                (Place::Submodule(path), None) => {
                    let shown = &chart.name;
                    let stop = WalkError::new(
                        TroubleKind::Submodule { path: path.clone() },
                        format!(
                            "the chart `{shown}` lies in the submodule `{path}`, whose files this repository does not hold"
                        ),
                    );
                    stops.push((note, stop.hint("copy the chart into this repository")));
                }
                (Place::Outside, None) => {
                    stops.push((note, outside(chart.name, chart.home.0)));
                }
            }
        }
        for (note, stop) in stops {
            self.chart_trouble(note, stop);
        }
        for (note, name, path) in absent {
            self.keep_missing(self.graph.notes[note].root, &path);
            self.graph.charts.push(Chart {
                root: self.graph.notes[note].root,
                note,
                name,
                label: String::new(),
                brought: None,
            });
        }
        for Local { note, path } in locals {
            if let Err(stop) = self.carry_chart(note, &path) {
                self.chart_trouble(note, stop);
            }
        }
        if missing.is_empty() {
            return;
        }
        let (accepted, missing): (Vec<Missing>, Vec<Missing>) = missing
            .into_iter()
            .partition(|one| !self.options.asks_for_left && self.accepts_chart(one.note, &one.wanted));
        for Missing { note, wanted } in accepted {
            self.unbrought_chart(note, &wanted);
        }
        let by = |one: &Missing| self.named_by(self.graph.notes[one.note].file);
        let wanted: Vec<(ChartRef, NamedBy)> = missing.iter().map(|one| (one.wanted.clone(), by(one))).collect();
        let answers = remotes.charts(&wanted);
        for (Missing { note, wanted }, answer) in missing.into_iter().zip(answers) {
            match answer {
                Ok(Pulled::Archive(archive)) => self.brought_chart(note, &wanted, archive),
                Ok(Pulled::Left) | Err(_) if self.accepts_chart(note, &wanted) => {
                    self.unbrought_chart(note, &wanted);
                }
                Ok(Pulled::Left) => {
                    let message = format!("{} is not brought in: write `helm: true` into {FILE_NAME}", wanted.shown());
                    let location = self.graph.note_location(note);
                    let warning = Warning::new(Rule::RemoteChart, location, message);
                    self.graph.warnings.push(warning);
                    self.unbrought_chart(note, &wanted);
                }
                Err(failure) => {
                    let kind = Box::new(TroubleKind::Chart);
                    self.chart_trouble(note, WalkError { kind, failure });
                }
            }
        }
    }

    /// Brings along the directory of a chart that is in the tree.
    fn carry_chart(&mut self, note: usize, place: &str) -> WalkResult<()> {
        let root = self.graph.notes[note].root;
        let source = self.graph.roots[root].source;
        let scope = self.graph.sources[source].scope.clone();
        let tree = self.graph.sources[source].tree.clone();
        let real = match tree::resolve(&*tree, place)? {
            Resolved::Directory { path } => path,
            _ => {
                return Err(WalkError::new(
                    TroubleKind::Chart,
                    format!("`{}` is not a directory, so it is not a chart", tree.label(place)),
                )
                .hint("unpack the chart there"));
            }
        };
        if !path::is_in(place, &scope) || !path::is_in(&real, &scope) {
            let message = format!("the chart `{}` lies outside the scope `{}`", tree.label(&real), tree.label(&scope));
            return Err(WalkError::new(TroubleKind::OutOfScope(Beyond::Scope), message).hint(wider(
                &*tree,
                &scope,
                Some(&real),
            )));
        }
        let id = self.bring(source, place, &scope)?;
        let carries = &mut self.graph.roots[root].carries;
        if !carries.contains(&id) {
            carries.push(id);
        }
        Ok(())
    }

    fn brought_chart(&mut self, note: usize, wanted: &ChartRef, archive: Rc<Archive>) {
        let files = archive
            .files
            .iter()
            .map(|(path, bytes)| {
                let id = self.graph.files.len();
                self.graph.files.push(File {
                    origin: Origin::Archive { archive: archive.clone(), path: path.clone() },
                    bytes: bytes.clone(),
                    executable: false,
                    comments: None,
                });
                (path.clone(), id)
            })
            .collect();
        self.graph.charts.push(Chart {
            root: self.graph.notes[note].root,
            note,
            name: wanted.name.clone(),
            label: wanted.label(),
            brought: Some((archive, files)),
        });
    }

    /// Returns whether it is accepted that a chart stays remote.
    fn accepts_chart(&self, note: usize, wanted: &ChartRef) -> bool {
        let lines = self.graph.lines_of(note);
        self.is_allowed(Rule::RemoteChart, &wanted.subject(), lines)
    }

    fn unbrought_chart(&mut self, note: usize, wanted: &ChartRef) {
        self.graph.charts.push(Chart {
            root: self.graph.notes[note].root,
            note,
            name: wanted.name.clone(),
            label: wanted.label(),
            brought: None,
        });
    }

    fn chart_trouble(&mut self, note: usize, stop: WalkError) {
        let failure = stop.failure.at(self.graph.note_location(note));
        let noted = &self.graph.notes[note];
        self.troubles.push(Trouble {
            kind: *stop.kind,
            edge: None,
            root: Some(noted.root),
            file: Some(noted.file),
            failure,
        });
    }
}

fn no_chart(graph: &Graph, note: usize, name: &str, path: &str) -> WalkError {
    let root = &graph.roots[graph.notes[note].root];
    let shown = graph.sources[root.source].tree.label(path);
    WalkError::new(
        TroubleKind::Refused,
        format!("there is no `{shown}`, and the chart `{name}` names no repository to get it from"),
    )
    .hint("put the chart there, or name its `repo`")
}

fn outside(name: &str, home: &str) -> WalkError {
    WalkError::new(
        TroubleKind::OutOfScope(Beyond::Scope),
        format!("the chart `{name}` is looked for in `{home}`, out of the repository"),
    )
    .hint("name a directory of this repository in `chartHome`, and put the chart there")
}
