//! Charts: where kustomize looks for them, and bringing in those that are not there.
//!
//! kustomize calls `helm pull` unless the directory of the chart is there: `{chartHome}/{name}-{version}/{name}` with a
//! repository and a version, else `{chartHome}/{name}` (`HelmChartInflationGenerator.go`). Helm follows the links in
//! it, and reads what its schemas name.

pub mod archive;
mod files;
mod schema;

use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

use super::local::absent_failure;
use super::trouble::{At, Trouble, TroubleKind, WalkResult};
use super::{FileId, Graph, HINT_REWRITE, Origin, Remotes, RootId, WalkPolicy, Walker};
use crate::config::FILE_NAME;
use crate::kustomization::NoteKind;
use crate::message::failure::{Failure, Result};
use crate::message::finding::{Finding, Rule, Subject};
use crate::message::redact::{self, SafeUrl};
use crate::record::{Digest, Lock, Pinned};
use crate::reference::Upstream;
use crate::tree::{self, Resolved, path};

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

/// A chart that a kustomization or plugin configuration names.
#[derive(Clone)]
pub(crate) struct Chart {
    /// The root that names it, itself or in a plugin configuration.
    pub root: RootId,
    /// The index in [`Graph::notes`] of the note that names it.
    pub note: usize,
    pub name: String,
    /// The chart to request; `None` if it must be in the tree.
    pub wanted: Option<ChartRef>,
    /// Where charts are looked for, as written.
    pub home: String,
    /// Where it is looked for.
    pub lookup: ChartLookup,
    /// The pulled archive; `None` if the chart is in the tree, stays remote, or was not pulled.
    pub archive: Option<Rc<Archive>>,
    /// Its files, by their paths in the directory of the chart. A link counts as the file that it leads to. Empty if
    /// the result does not contain the files of the chart.
    pub files: BTreeMap<String, FileId>,
}

/// Where a chart is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ChartLookup {
    /// At this path, from the top, and something is there. There may be links on the way.
    There(String),
    /// At this path, links on the way followed, and there is nothing.
    Missing(String),
    /// In this submodule.
    Submodule(String),
    /// Out of the tree.
    Outside,
}

impl ChartRef {
    /// The identity in a record, which may be shown.
    pub(crate) fn upstream(&self) -> Upstream {
        let version = self.version().map(str::to_owned);
        Upstream::Chart { url: self.repo.shown(), chart: self.name.clone(), version }
    }

    /// Whether it is an artifact of a registry.
    pub(crate) fn is_oci(&self) -> bool {
        self.repo.exposed().starts_with("oci://")
    }

    /// Its entry in a lock.
    pub(crate) fn locked<'a>(&self, lock: &'a Lock) -> Option<&'a Pinned> {
        lock.get(&self.upstream())
    }

    /// The version as written. `None` if there is none.
    fn version(&self) -> Option<&str> {
        Some(self.version.as_str()).filter(|version| !version.is_empty())
    }

    /// The directory of the chart below the directory of charts.
    pub(crate) fn directory(&self) -> String {
        let ChartRef { name, .. } = self;
        // Each version has a directory of its own, so that two versions do not overwrite each other.
        self.version().map_or_else(|| name.clone(), |version| format!("{name}-{version}/{name}"))
    }

    /// The reason why no chart can be brought in from its repository. `None` if its URL may lead to one.
    pub(crate) fn odd_repository(&self) -> Option<String> {
        let expected = match self.repo.exposed().split_once("://") {
            Some(("https" | "http" | "oci", _)) => return None,
            Some(_) => "an https, http or oci URL",
            None => "a URL",
        };
        Some(format!("`repo: {}` is not {expected}", self.repo.shown()))
    }

    /// Refuses a chart whose repository, name or version could be misread: by helm as an option, or as a part of a path
    /// that leads elsewhere. The texts may come from an upstream.
    pub(crate) fn refuse_unsafe(&self) -> Result<()> {
        let texts = [self.repo.exposed(), &self.name, &self.version];
        let is_refused = texts.iter().any(|text| text.contains(char::is_control) || text.starts_with('-'))
            || matches!(self.name.as_str(), "." | "..")
            || self.name.contains(['/', '\\', ':'])
            || self.version.contains(['/', '\\']);
        let misread = is_refused.then(|| "helm, or a path, could misread a part of it".to_owned());
        let Some(why) = misread.or_else(|| self.odd_repository()) else { return Ok(()) };
        Err(Failure::new(format!("the chart {} is refused: {why}", self.upstream())).hint(HINT_REWRITE))
    }
}

impl Archive {
    /// The entry for a lock.
    pub(crate) fn pinned(&self) -> (Upstream, Pinned) {
        let resolved = Some(self.resolved.clone()).filter(|resolved| *resolved != self.chart.version);
        let pinned = Pinned::new(Digest::Sha256(self.sha256.clone()));
        (self.chart.upstream(), Pinned { size: Some(self.size), resolved, ..pinned })
    }
}

impl Chart {
    /// Whether the chart is in the tree, so that kustomize pulls none.
    pub(crate) fn is_there(&self) -> bool {
        matches!(self.lookup, ChartLookup::There(_))
    }
}

impl Graph {
    /// The charts that a root names.
    pub(crate) fn charts_of(&self, root: RootId) -> &[Chart] {
        let from = self.charts.partition_point(|chart| chart.root < root);
        let to = self.charts.partition_point(|chart| chart.root <= root);
        &self.charts[from..to]
    }

    /// Whether the build of a root itself runs helm, or code of this machine.
    pub(crate) fn runs(&self, root: RootId) -> bool {
        self.roots[root].runs_code || !self.charts_of(root).is_empty()
    }
}

impl Walker {
    /// Adds the charts that notes name to the graph: examines those in the tree, and pulls the others if there are
    /// `remotes`.
    pub(super) fn find_charts(&mut self, remotes: Option<&mut dyn Remotes>, policy: &WalkPolicy<'_>) {
        self.add_charts();
        // Charts in the tree are read first: only those that are missing need a request, and all of them share it.
        let (mut missing, mut sound) = (Vec::new(), HashSet::new());
        for chart in 0..self.graph.charts.len() {
            match self.examine_chart(chart, remotes.is_some(), &mut sound, policy) {
                Ok(wanted) => missing.extend(wanted.map(|wanted| (chart, wanted))),
                Err(trouble) => self.record_trouble(*trouble, At::Note(self.graph.charts[chart].note)),
            }
        }
        if let Some(remotes) = remotes {
            self.pull_charts(missing, remotes, policy);
        }
    }

    /// Adds the charts that notes name to the graph, or a trouble in the place of a chart whose lookup failed.
    fn add_charts(&mut self) {
        let mut charts = Vec::new();
        for note in 0..self.graph.notes.len() {
            match self.chart_of_note(note) {
                Ok(chart) => charts.extend(chart),
                Err(trouble) => self.record_trouble(*trouble, At::Note(note)),
            }
        }
        // `charts_of` finds the charts of a root by a binary search.
        charts.sort_by_key(|chart| chart.root);
        self.graph.charts = charts;
    }

    /// The chart that a note names. `None` if the note is about something else, or names a repository without a chart,
    /// which leads to no directory and no request. Fails if the lookup of the chart fails.
    fn chart_of_note(&self, note: usize) -> WalkResult<Option<Chart>> {
        let noted = &self.graph.notes[note];
        let NoteKind::Chart { repo, name, version, devel, home, .. } = &noted.note.kind else { return Ok(None) };
        if name.is_empty() {
            return Ok(None);
        }
        let (root, name, home) = (noted.root, name.clone(), home.clone());
        let wanted = (!repo.is_empty()).then(|| ChartRef {
            repo: repo.as_str().into(),
            name: name.clone(),
            version: version.clone(),
            // helm ignores `devel` beside a version.
            devel: *devel && version.is_empty(),
        });
        let below = wanted.as_ref().map_or_else(|| name.clone(), ChartRef::directory);
        let lookup = self.look_up_chart(root, &home, &below)?;
        let (archive, files) = (None, BTreeMap::new());
        Ok(Some(Chart { root, note, name, wanted, home, lookup, archive, files }))
    }

    /// Pulls charts that are not in the tree, each by its index in [`Graph::charts`].
    fn pull_charts(&mut self, missing: Vec<(usize, ChartRef)>, remotes: &mut dyn Remotes, policy: &WalkPolicy<'_>) {
        // A chart that an upstream names must not get the user's logins, so the request says who names it.
        let upstream_url = |chart: usize| self.upstream_url(self.graph.notes[self.graph.charts[chart].note].file);
        let requests: Vec<_> = missing.iter().map(|(chart, wanted)| (wanted.clone(), upstream_url(*chart))).collect();
        for ((chart, wanted), answer) in missing.into_iter().zip(remotes.charts(&requests)) {
            let note = self.graph.charts[chart].note;
            let lines = self.graph.lines_of(note);
            let upstream = wanted.upstream();
            // `sources` is checked before the chart becomes part of the graph.
            let answer = answer.and_then(|pulled| match pulled {
                Some(_) => self.check_source(remotes, policy, &upstream, &upstream, lines).map(|()| pulled),
                None => Ok(None),
            });
            match answer {
                Ok(Some(archive)) => {
                    let (files, no_user_files) = (archive.files.clone(), BTreeMap::new());
                    // A chart whose schemas make helm read something else cannot be rendered from its files alone.
                    if self.judge_schemas(chart, files, &no_user_files, &|url| policy.covers_schema(url)) {
                        self.add_archive(chart, archive);
                    }
                }
                Ok(None) => {
                    let failure = Failure::new(format!("{upstream} is not localized"))
                        .hint(format!("write `helm: true` into {FILE_NAME}"));
                    let location = self.graph.note_location(note);
                    self.graph.findings.push(Finding::at(Rule::RemoteChart, location, failure));
                }
                Err(failure) => self.record_trouble(*Trouble::of(TroubleKind::Chart, failure), At::Note(note)),
            }
        }
    }

    /// Looks for a chart in the tree, as kustomize does before it pulls one: at the path `below` in the directory
    /// `home` that the kustomization of `root` names for its charts. Fails if a file is there, or links that form a
    /// loop or lead out of the tree.
    fn look_up_chart(&self, root: RootId, home: &str, below: &str) -> WalkResult<ChartLookup> {
        // An absolute path means another directory on another machine.
        let home = self.graph.local_path(root, home).filter(|_| !path::is_absolute(home));
        let Some(path) = home.and_then(|home| path::resolve(&home, below)) else {
            return Ok(ChartLookup::Outside);
        };
        let tree = &self.graph.sources[self.graph.roots[root].source].tree;
        Ok(match tree::resolve(&**tree, &path)? {
            Resolved::Directory { .. } => ChartLookup::There(path),
            Resolved::Missing { path } => ChartLookup::Missing(path),
            Resolved::Submodule { path } => ChartLookup::Submodule(path),
            leaves @ Resolved::Leaves { .. } => {
                return Err(self.unresolved(self.graph.roots[root].source, &tree.label(&path), leaves));
            }
            Resolved::File { .. } | Resolved::Loop { .. } => {
                let message = format!("`{}` is not a directory, so it is not a chart", tree.label(&path));
                return Err(Trouble::new(TroubleKind::Chart, message).hint("unpack the chart there"));
            }
        })
    }

    /// Examines a chart, and returns the request for it; `None` if it is in the tree, stays remote, may be missing, or
    /// if there is no network. Fails if it or a file of it is refused, if its source is not trusted, or if it has no
    /// repository and is not in the tree. Troubles of its schemas are recorded, and are not a failure. `sound` are the
    /// paths of the user's charts without problems.
    fn examine_chart(
        &mut self,
        chart: usize,
        has_network: bool,
        sound: &mut HashSet<String>,
        policy: &WalkPolicy<'_>,
    ) -> WalkResult<Option<ChartRef>> {
        let Chart { root, note, name, wanted, home, lookup, .. } = &self.graph.charts[chart];
        let (root, source) = (*root, self.graph.roots[*root].source);
        match (lookup.clone(), wanted) {
            (ChartLookup::There(path), _) => {
                // With neither a network nor a configuration, nobody asks for problems or files of charts.
                if has_network || policy.config.is_some() {
                    self.inspect_files(chart, source, &path, sound, policy, has_network)?;
                }
                Ok(None)
            }
            (_, Some(wanted)) => self.chart_request(*note, wanted, has_network, policy),
            (ChartLookup::Missing(path), None)
                if policy.may_be_missing(&self.graph, source, &path, self.graph.lines_of(*note)) =>
            {
                self.graph.allow_missing(root, &path);
                Ok(None)
            }
            (ChartLookup::Missing(path), None) => {
                let shown = self.graph.sources[source].tree.label(&path);
                let message = format!("there is no `{shown}`, and the chart `{name}` has no `repo`");
                let absence = policy.absence(&self.graph, source, &path);
                let failure = absent_failure(&absence, &path, message, "put the chart there, or add its `repo`");
                Err(Trouble::of(TroubleKind::Missing { path, absence }, failure))
            }
            (ChartLookup::Submodule(path), None) => Err(self.unresolved(source, name, Resolved::Submodule { path })),
            (ChartLookup::Outside, None) => {
                let message = format!("the chart `{name}` is expected in `{home}`, outside of the repository");
                Err(Trouble::new(TroubleKind::OutOfScope, message)
                    .hint("name a directory of this repository in `chartHome`, and put the chart there"))
            }
        }
    }

    /// The request for a chart of a repository; `None` if it stays remote, or if there is no network. Fails if its text
    /// is unsafe, or its source is not trusted.
    fn chart_request(
        &self,
        note: usize,
        wanted: &ChartRef,
        has_network: bool,
        policy: &WalkPolicy<'_>,
    ) -> WalkResult<Option<ChartRef>> {
        // Before the exceptions, because none of them makes an unsafe text safe. Without a network nothing passes the
        // text on.
        if has_network {
            wanted.refuse_unsafe().map_err(|failure| Trouble::of(TroubleKind::Refused, failure))?;
        }
        if policy.keeps_chart_remote(&self.graph, note, wanted) {
            return Ok(None);
        }
        // Before the request, because a source that nobody trusts must not even be asked. A walk without a network
        // reports it, too.
        let pinned = policy.lock.and_then(|lock| wanted.locked(lock));
        let upstream = wanted.upstream();
        policy.refuse_distrusted(&upstream, pinned, &upstream.to_string())?;
        Ok(has_network.then(|| wanted.clone()))
    }

    /// Adds the files of a pulled chart to the graph.
    fn add_archive(&mut self, chart: usize, archive: Rc<Archive>) {
        let mut files = BTreeMap::new();
        for path in archive.files.keys() {
            let origin = Origin::Archive { archive: archive.clone(), path: path.clone() };
            files.insert(path.clone(), self.add_file(origin));
        }
        let chart = &mut self.graph.charts[chart];
        (chart.archive, chart.files) = (Some(archive), files);
    }
}

impl WalkPolicy<'_> {
    /// Whether a chart stays remote: an exception says so, and no lock holds it.
    fn keeps_chart_remote(&self, graph: &Graph, note: usize, wanted: &ChartRef) -> bool {
        self.lock.is_none_or(|lock| wanted.locked(lock).is_none())
            && self.exception(graph, Rule::RemoteChart, &wanted.upstream().subject(), graph.lines_of(note)).is_some()
    }

    /// Whether the configuration allows a URL in a schema.
    fn covers_schema(&self, url: &str) -> bool {
        let subject = Subject::Remote(Upstream::File { url: redact::url(url) });
        self.config.is_some_and(|config| config.reason(Rule::RemoteChart, &subject).is_some())
    }
}
