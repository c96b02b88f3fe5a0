//! What was brought in, as lock entries, and what each of them names in turn.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::config::Config;
use crate::graph::{Edge, FileId, Graph, Lines, Origin, REASON_NOT_AN_ERROR, RootId, SourceId, Target};
use crate::kustomization::{NoteKind, Runs, is_pinned};
use crate::message::failure::{Failure, Result};
use crate::message::finding::Rule;
use crate::message::redact;
use crate::record::{Lock, Pinned, Remotes, can_be_named};
use crate::reference::Upstream;

/// Something remote that a root names, itself or in a plugin configuration.
struct Named {
    upstream: Upstream,
    root: RootId,
    /// Where.
    lines: Lines,
    /// Whether the walk left it remote, or an exception would.
    is_left: bool,
}

/// What the user's own files name.
#[derive(Default)]
pub(super) struct Own {
    /// What is to be localized.
    pub starts: BTreeSet<Upstream>,
    /// The sources of it that are named by their URL.
    pub urls: BTreeSet<Upstream>,
    /// What stays remote, with the reason.
    pub left: BTreeMap<Upstream, String>,
}

/// Returns every remote file, repository and chart of a graph, each with what it names in turn. `held` tells what a
/// reference names that was not followed.
pub(crate) fn remotes(graph: &Graph, held: &Lock) -> Result<Remotes> {
    let names = Names::of(graph, held);
    let mut all = Remotes::new();
    if let Some((upstream, pinned)) = graph.roots.first().and_then(|root| rooted(graph, RootId(0), &root.directory)) {
        add(&mut all, &upstream, pinned, names.of_root(RootId(0)))?;
    }
    for edge in graph.roots.iter().flat_map(|root| &root.edges) {
        let Some((upstream, pinned)) = resolved(graph, edge) else { continue };
        let named = match edge.target {
            Target::Root { id, .. } => names.of_root(id),
            Target::File(file) => names.files.get(&file).cloned().unwrap_or_default(),
            Target::Remote | Target::Unchanged | Target::Broken => BTreeSet::new(),
        };
        let added = add(&mut all, &upstream, pinned, named);
        added.map_err(|failure| failure.at(graph.location(edge.from, &edge.reference)))?;
    }
    for chart in &graph.charts {
        let Some(archive) = &chart.archive else { continue };
        let (upstream, pinned) = archive.pinned();
        let added = add(&mut all, &upstream, pinned, BTreeSet::new());
        added.map_err(|failure| failure.at(graph.note_location(chart.note)))?;
    }
    Ok(all)
}

/// Returns what the user's own files name; where the target is remote, that.
pub(super) fn own(graph: &Graph, config: &Config, held: &Lock) -> Own {
    let mut own = Own::default();
    if let Some((upstream, _)) = graph.roots.first().and_then(|root| rooted(graph, RootId(0), &root.directory)) {
        own.starts.insert(upstream);
    }
    for Named { upstream, lines, is_left, .. } in named(graph, held) {
        if graph.is_fetched(lines.file) {
            continue;
        }
        let rule = upstream.rule();
        let exception = graph.exception(config, rule, &upstream.subject(), lines);
        let kept = (rule == Rule::RemoteReference).then(|| REASON_NOT_AN_ERROR.to_owned());
        match exception.or(kept).filter(|_| is_left) {
            Some(reason) => {
                own.left.insert(upstream, reason);
            }
            None => {
                own.urls.insert(upstream.source());
                own.starts.insert(upstream);
            }
        }
    }
    own
}

/// What roots and fetched files name themselves.
struct Names<'a> {
    graph: &'a Graph,
    roots: Vec<BTreeSet<Upstream>>,
    /// Plugin configurations, by which roots of others name things, too.
    files: HashMap<FileId, BTreeSet<Upstream>>,
}

impl<'a> Names<'a> {
    fn of(graph: &'a Graph, held: &Lock) -> Names<'a> {
        let mut names = Names { graph, roots: vec![BTreeSet::new(); graph.roots.len()], files: HashMap::new() };
        let mut listed_by: HashMap<FileId, Vec<RootId>> = HashMap::new();
        for (id, edge) in graph.edges() {
            if let Target::File(file) = edge.target {
                listed_by.entry(file).or_default().push(id.root);
            }
        }
        for Named { upstream, root, lines: Lines { file, .. }, .. } in named(graph, held) {
            let is_of = |source: SourceId| move |id: &&RootId| graph.roots[**id].source == source;
            match graph.files[file].origin {
                Origin::Remote(_) => {
                    names.files.entry(file).or_default().insert(upstream);
                }
                // A plugin configuration of another repository is read for the root that lists that.
                Origin::Tree { source, .. } if source != graph.roots[root].source => {
                    for &id in listed_by.get(&file).into_iter().flatten().filter(is_of(source)) {
                        names.roots[id.0].insert(upstream.clone());
                    }
                }
                Origin::Tree { .. } | Origin::Archive { .. } => {
                    names.roots[root.0].insert(upstream);
                }
            }
        }
        names
    }

    /// Returns what a root names, and what it reaches by paths.
    fn of_root(&self, root: RootId) -> BTreeSet<Upstream> {
        let is_local = |_, edge: &Edge| matches!(edge.target, Target::Root { remote: false, .. });
        let reached = self.graph.reach([root], is_local);
        reached.into_iter().flat_map(|root| self.roots[root.0].iter().cloned()).collect()
    }
}

/// Returns whatever remote a graph names: references, charts that are not in it, images of functions that may change or
/// use the network. What no lock could hold is trouble of whoever wrote it.
fn named(graph: &Graph, held: &Lock) -> Vec<Named> {
    let mut all = Vec::new();
    for (id, edge) in graph.edges() {
        let wanted = edge.remote.as_ref().filter(|_| edge.target == Target::Remote);
        let unresolved = || wanted.map(|wanted| wanted.locked(held).unwrap_or_else(|| wanted.upstream()));
        let upstream = resolved(graph, edge).map(|(upstream, _)| upstream).or_else(unresolved);
        let is_left = graph.stays_remote.contains_key(&id);
        all.extend(upstream.map(|upstream| Named { upstream, root: id.root, lines: edge.lines(), is_left }));
    }
    for chart in &graph.charts {
        let lines = graph.lines_of(chart.note);
        let upstream = chart.wanted.as_ref().map(|wanted| wanted.upstream());
        // One that was brought in stays locked as long as it is named.
        let upstream = upstream.filter(|one| !chart.is_there() || held.holds(one) && !graph.is_fetched(lines.file));
        let is_left = chart.archive.is_none() && !chart.is_there();
        all.extend(upstream.map(|upstream| Named { upstream, root: chart.root, lines, is_left }));
    }
    for (note, noted) in graph.notes.iter().enumerate() {
        let NoteKind::Code { runs: Runs::Image { image, network }, .. } = &noted.note.kind else { continue };
        if !is_pinned(image) || *network {
            let upstream = Upstream::Image { image: redact::url(image) };
            all.push(Named { upstream, root: noted.root, lines: graph.lines_of(note), is_left: true });
        }
    }
    all.retain(|one| can_be_named(&one.upstream));
    all
}

/// Returns what a reference has brought in, without what that names.
fn resolved(graph: &Graph, edge: &Edge) -> Option<(Upstream, Pinned)> {
    match edge.target {
        Target::Root { id, remote: true } => {
            // As it is named: a lock must show what it holds without looking into the repository.
            rooted(graph, id, &edge.remote.as_ref()?.spec.as_ref()?.directory())
        }
        Target::File(file) => match &graph.files[file].origin {
            Origin::Remote(file) => Some(file.pinned()),
            Origin::Tree { .. } | Origin::Archive { .. } => None,
        },
        _ => None,
    }
}

/// Returns the repository of a root, at a directory in it.
fn rooted(graph: &Graph, root: RootId, directory: &str) -> Option<(Upstream, Pinned)> {
    let (source, pinned) = graph.sources[graph.roots[root].source].repository.as_ref()?.pinned();
    Some((source.at(directory), pinned))
}

fn add(all: &mut Remotes, upstream: &Upstream, pinned: Pinned, names: BTreeSet<Upstream>) -> Result<()> {
    let there = match all.entry(upstream.source()) {
        Entry::Vacant(vacant) => vacant.insert(pinned),
        Entry::Occupied(there) if there.get().digest == pinned.digest => there.into_mut(),
        Entry::Occupied(there) => {
            return Err(Failure::new(format!(
                "{} returned different content for different credentials; the lock stores none and cannot tell them apart",
                there.key()
            ))
            .hint("copy one of the two into this repository, or use different URLs"));
        }
    };
    there.paths.entry(upstream.path().to_owned()).or_default().extend(names);
    Ok(())
}
