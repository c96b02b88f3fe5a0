//! The upstreams of a graph as lock entries, each with the upstreams that it references.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::config::Config;
use crate::graph::{Chart, Edge, FileId, Graph, Lines, Origin, REASON_NOT_AN_ERROR, Resolution, RootId};
use crate::kustomization::{NoteKind, Runs, is_pinned};
use crate::message::failure::{Failure, Result};
use crate::message::finding::Rule;
use crate::message::redact;
use crate::record::{Lock, Pinned, Remotes, can_be_named};
use crate::reference::Upstream;

/// A remote reference of a root or of its plugin configurations.
struct Mention {
    upstream: Upstream,
    root: RootId,
    /// The location of the reference.
    lines: Lines,
    /// Whether it stays remote, because the walk left it so or an exception would.
    is_left: bool,
}

/// The upstreams that the user's own files reference.
#[derive(Default)]
pub(super) struct UserRemotes {
    /// The upstreams to localize.
    pub to_localize: BTreeSet<Upstream>,
    /// The sources of these that the user references by URL.
    pub urls: BTreeSet<Upstream>,
    /// The upstreams that stay remote, each with the reason.
    pub stays_remote: BTreeMap<Upstream, String>,
}

/// Every fetched file, repository and chart of a graph, each with the upstreams that it references. `old_lock` tells
/// the references of an upstream that was not followed.
pub(crate) fn remotes(graph: &Graph, old_lock: &Lock) -> Result<Remotes> {
    let names = Referenced::of(graph, old_lock);
    let mut remotes = Remotes::new();
    if let Some((upstream, pinned)) = remote_target(graph) {
        add_entry(&mut remotes, &upstream, pinned, names.of_root(RootId(0)))?;
    }
    // Several references may share an upstream; `add_entry` joins their paths and checks that they agree on the digest.
    for edge in graph.roots.iter().flat_map(|root| &root.edges) {
        let Some((upstream, pinned)) = resolved_upstream(graph, edge) else { continue };
        let named = match edge.resolution {
            Resolution::Root { id, .. } => names.of_root(id),
            Resolution::File(file) => names.files.get(&file).cloned().unwrap_or_default(),
            Resolution::Remote | Resolution::Unchanged | Resolution::Broken => BTreeSet::new(),
        };
        let added = add_entry(&mut remotes, &upstream, pinned, named);
        added.map_err(|failure| failure.at(graph.location(edge)))?;
    }
    // Charts are notes, not edges, so they are collected separately.
    for chart in &graph.charts {
        let Some(archive) = &chart.archive else { continue };
        let (upstream, pinned) = archive.pinned();
        let added = add_entry(&mut remotes, &upstream, pinned, BTreeSet::new());
        added.map_err(|failure| failure.at(graph.note_location(chart.note)))?;
    }
    Ok(remotes)
}

/// The upstreams that the user's own files reference, as the lock names them.
pub(crate) fn user_upstreams(graph: &Graph, lock: &Lock) -> impl Iterator<Item = Upstream> {
    let mentions = mentions(graph, lock).into_iter().filter(|mention| !graph.is_fetched(mention.lines.file));
    mentions.map(|mention| mention.upstream)
}

/// The upstreams that the user's own files reference, by which the lock keeps or drops entries. For a remote target it
/// is the target.
pub(super) fn user_remotes(graph: &Graph, config: &Config, old_lock: &Lock) -> UserRemotes {
    let mut remotes = UserRemotes::default();
    remotes.to_localize.extend(remote_target(graph).map(|(upstream, _)| upstream));
    for Mention { upstream, lines, is_left, .. } in mentions(graph, old_lock) {
        // Fetched files are not the user's.
        if graph.is_fetched(lines.file) {
            continue;
        }
        let rule = upstream.rule();
        let exception = graph.exception(config, rule, &upstream.subject(), lines);
        // Without an exception, something is left only if the configuration says that it is not an error. A chart or an
        // image is never left that way: it counts as not locked, and locking reports it.
        let default = (rule == Rule::RemoteReference).then(|| REASON_NOT_AN_ERROR.to_owned());
        // An exception counts only for what was really left: an older lock may still have it localized.
        match exception.or(default).filter(|_| is_left) {
            Some(reason) => drop(remotes.stays_remote.insert(upstream, reason)),
            None => {
                remotes.urls.insert(upstream.source());
                remotes.to_localize.insert(upstream);
            }
        }
    }
    remotes
}

/// The upstreams that roots and fetched files reference.
struct Referenced<'a> {
    graph: &'a Graph,
    roots: Vec<BTreeSet<Upstream>>,
    /// Plugin configurations that were fetched as files.
    files: HashMap<FileId, BTreeSet<Upstream>>,
}

impl<'a> Referenced<'a> {
    /// Collects them from the references of all files. `old_lock` tells the upstreams of references that were not
    /// followed.
    fn of(graph: &'a Graph, old_lock: &Lock) -> Referenced<'a> {
        let mut names = Referenced { graph, roots: vec![BTreeSet::new(); graph.roots.len()], files: HashMap::new() };
        // A file can be listed by roots of several repositories, each of which gets the reference.
        let mut listed_by: HashMap<FileId, Vec<RootId>> = HashMap::new();
        for (id, edge) in graph.edges() {
            if let Resolution::File(file) = edge.resolution {
                listed_by.entry(file).or_default().push(id.root);
            }
        }
        for Mention { upstream, root, lines: Lines { file, .. }, .. } in mentions(graph, old_lock) {
            match graph.files[file].origin {
                Origin::Remote(_) => {
                    names.files.entry(file).or_default().insert(upstream);
                }
                // A plugin configuration of another repository counts for the roots of that repository that list it.
                Origin::Tree { source, .. } if source != graph.roots[root].source => {
                    for &id in listed_by.get(&file).into_iter().flatten() {
                        if graph.roots[id].source == source {
                            names.roots[id.0].insert(upstream.clone());
                        }
                    }
                }
                Origin::Tree { .. } | Origin::Archive { .. } => {
                    names.roots[root.0].insert(upstream);
                }
            }
        }
        names
    }

    /// The upstreams that a root references, itself or through roots that it reaches by paths.
    fn of_root(&self, root: RootId) -> BTreeSet<Upstream> {
        let reached =
            self.graph.reach([root], |_, edge| matches!(edge.resolution, Resolution::Root { remote: false, .. }));
        reached.into_iter().flat_map(|root| self.roots[root.0].iter().cloned()).collect()
    }
}

/// The remote references of a graph: URLs that are not broken, charts that the tree lacks or that the old lock has, and
/// images of functions that may change or use the network. References that no lock could have are skipped; the walk
/// reports them.
fn mentions(graph: &Graph, old_lock: &Lock) -> Vec<Mention> {
    let edges = graph.edges().filter_map(|(id, edge)| {
        let (upstream, is_left) = (upstream_of_edge(graph, edge, old_lock)?, graph.stays_remote.contains_key(&id));
        Some(Mention { upstream, root: id.root, lines: edge.lines(), is_left })
    });
    let charts = graph.charts.iter().filter_map(|chart| mentioned_chart(graph, chart, old_lock));
    let images = graph.notes.iter().enumerate().filter_map(|(note, noted)| {
        let upstream = changing_image(&noted.note.kind)?;
        // Images are never fetched.
        Some(Mention { upstream, root: noted.root, lines: graph.lines_of(note), is_left: true })
    });
    edges.chain(charts).chain(images).filter(|mention| can_be_named(&mention.upstream)).collect()
}

/// The upstream of a remote reference; of one that was not followed that of the old lock, or that of its text. `None`
/// if the reference is local or broken.
fn upstream_of_edge(graph: &Graph, edge: &Edge, old_lock: &Lock) -> Option<Upstream> {
    if let Some((upstream, _)) = resolved_upstream(graph, edge) {
        return Some(upstream);
    }
    let wanted = edge.remote.as_ref().filter(|_| edge.resolution == Resolution::Remote)?;
    Some(wanted.locked(old_lock).unwrap_or_else(|| wanted.upstream()))
}

/// The mention of a chart. `None` for a chart in the tree, unless the old lock has it: then it was fetched once, and
/// stays locked as long as files of the user reference it. A chart in a fetched tree came with that tree.
fn mentioned_chart(graph: &Graph, chart: &Chart, old_lock: &Lock) -> Option<Mention> {
    let (upstream, lines) = (chart.wanted.as_ref()?.upstream(), graph.lines_of(chart.note));
    if chart.is_there() && (!old_lock.holds(&upstream) || graph.is_fetched(lines.file)) {
        return None;
    }
    // A chart was not pulled if an exception covers it, helm is not enabled, pulling failed, or the walk had no
    // network. [`user_remotes`] asks for the exception.
    let is_left = chart.archive.is_none() && !chart.is_there();
    Some(Mention { upstream, root: chart.root, lines, is_left })
}

/// The image that a function runs. `None` for a pinned one without network: it cannot change, so that the lock need not
/// mention it.
fn changing_image(note: &NoteKind) -> Option<Upstream> {
    let NoteKind::Code { runs: Runs::Image { image, network }, .. } = note else { return None };
    (!is_pinned(image) || *network).then(|| Upstream::Image { image: redact::url(image) })
}

/// The upstream that a reference was resolved to, with its entry, without the upstreams that it references. `None` if
/// the reference is local, or was not resolved.
fn resolved_upstream(graph: &Graph, edge: &Edge) -> Option<(Upstream, Pinned)> {
    match edge.resolution {
        Resolution::Root { id, remote: true } => {
            // The directory as the reference has it: a lock must be usable without looking into the repository.
            rooted(graph, id, &edge.remote.as_ref()?.spec.as_ref()?.directory())
        }
        _ => match &graph.files[edge.file()?].origin {
            Origin::Remote(file) => Some(file.pinned()),
            Origin::Tree { .. } | Origin::Archive { .. } => None,
        },
    }
}

/// The target of a copy, if it is remote.
fn remote_target(graph: &Graph) -> Option<(Upstream, Pinned)> {
    rooted(graph, RootId(0), &graph.roots.first()?.directory)
}

/// The repository of a root, with a directory in it. `None` for a root of the user.
fn rooted(graph: &Graph, root: RootId, directory: &str) -> Option<(Upstream, Pinned)> {
    let (source, pinned) = graph.sources[graph.roots[root].source].repository.as_ref()?.pinned();
    Some((source.at(directory), pinned))
}

/// Adds the entry of an upstream, or its directory to the entry of the same repository. `names` are the upstreams that
/// it references. Fails if both were fetched with different logins, and differ.
fn add_entry(remotes: &mut Remotes, upstream: &Upstream, pinned: Pinned, names: BTreeSet<Upstream>) -> Result<()> {
    let entry = match remotes.entry(upstream.source()) {
        Entry::Vacant(vacant) => vacant.insert(pinned),
        Entry::Occupied(entry) if entry.get().digest == pinned.digest => entry.into_mut(),
        Entry::Occupied(entry) => {
            return Err(Failure::new(format!(
                "{} returned different content for different credentials; the lock stores none and cannot tell them apart",
                entry.key()
            ))
            .hint("copy one of the two into this repository, or use different URLs"));
        }
    };
    entry.paths.entry(upstream.path().to_owned()).or_default().extend(names);
    Ok(())
}
