//! What was brought in, as lock entries.

use std::collections::{BTreeMap, BTreeSet};

use crate::graph::{Archive, Edge, FileId, Graph, Origin, Repository, Target};
use crate::message::failure::{Failure, Result};
use crate::record::{ChartRemote, FileRemote, GitRemote, Remote};

/// Returns the lock entry of a repository, without the paths in it.
pub(crate) fn git(repository: &Repository) -> Remote {
    Remote::Git(GitRemote {
        url: repository.version.url.shown(),
        reference: repository.version.reference.clone(),
        submodules: repository.version.submodules,
        commit: repository.commit.clone(),
        paths: BTreeSet::new(),
        through: BTreeSet::new(),
    })
}

/// Returns every remote file and repository of a graph.
pub(crate) fn remotes(graph: &Graph) -> Result<Vec<Remote>> {
    let mut by_label: BTreeMap<(String, bool), Remote> = BTreeMap::new();
    if !graph.roots.is_empty() {
        add(&mut by_label, rooted(graph, 0, &graph.roots[0].directory))?;
    }
    for edge in graph.roots.iter().flat_map(|root| &root.edges) {
        let mut remote = remote_of(graph, edge);
        if let (Some(remote), Some(label)) = (&mut remote, through(graph, edge.from))
            && remote.label() != label
        {
            remote.through_mut().insert(label);
        }
        add(&mut by_label, remote).map_err(|failure| failure.at(graph.location(edge.from, &edge.reference)))?;
    }
    for chart in &graph.charts {
        let Some(archive) = &chart.archive else {
            continue;
        };
        let mut remote = self::chart(archive);
        let from = graph.notes[chart.note].file;
        remote.through_mut().extend(through(graph, from));
        add(&mut by_label, Some(remote)).map_err(|failure| failure.at(graph.note_location(chart.note)))?;
    }
    Ok(by_label.into_values().collect())
}

/// Returns the lock entry of a chart.
fn chart(archive: &Archive) -> Remote {
    let version = Some(archive.chart.version.clone()).filter(|version| !version.is_empty());
    Remote::Chart(ChartRemote {
        url: archive.chart.repo.shown(),
        chart: archive.chart.name.clone(),
        resolved: Some(archive.resolved.clone()).filter(|resolved| version.as_ref() != Some(resolved)),
        version,
        sha256: archive.sha256.clone(),
        size: archive.size,
        through: BTreeSet::new(),
    })
}

/// Returns a reference to something remote as the lock names it: for a repository with the directory, however that is
/// written.
pub(super) fn references(graph: &Graph, edge: &Edge) -> Vec<String> {
    remote_of(graph, edge).iter().flat_map(Remote::references).collect()
}

/// Returns what a reference brings in.
fn remote_of(graph: &Graph, edge: &Edge) -> Option<Remote> {
    match edge.target {
        Target::Root { id, remote: true } => {
            // As it is named: a lock must show what it holds without looking into the repository.
            rooted(graph, id, &edge.remote.as_ref()?.spec.as_ref()?.directory())
        }
        Target::File(file) => match &graph.files[file].origin {
            Origin::Remote(file) => Some(Remote::File(FileRemote {
                url: file.url.shown(),
                sha256: file.sha256.clone(),
                size: file.bytes.len() as u64,
                through: BTreeSet::new(),
            })),
            Origin::Tree { .. } | Origin::Archive { .. } => None,
        },
        _ => None,
    }
}

/// Returns the label of the remote that holds a reference; none where the tree of the user does.
pub(super) fn through(graph: &Graph, from: FileId) -> Option<String> {
    match &graph.files[from].origin {
        Origin::Archive { archive, .. } => Some(archive.chart.label()),
        Origin::Remote(file) => Some(file.url.shown()),
        Origin::Tree { source, .. } => {
            graph.sources[*source].repository.as_deref().map(|repository| git(repository).label())
        }
    }
}

/// Returns the repository of a root, with a directory in it.
fn rooted(graph: &Graph, root: usize, directory: &str) -> Option<Remote> {
    let root = &graph.roots[root];
    let mut remote = git(graph.sources[root.source].repository.as_ref()?);
    if let Remote::Git(git) = &mut remote {
        git.paths.insert(GitRemote::path(directory));
    }
    Some(remote)
}

fn add(by_label: &mut BTreeMap<(String, bool), Remote>, remote: Option<Remote>) -> Result<()> {
    let Some(remote) = remote else {
        return Ok(());
    };
    let label = remote.label();
    let has_submodules = !matches!(&remote, Remote::Git(git) if !git.submodules);
    let there = by_label.entry((label.clone(), has_submodules)).or_insert_with(|| remote.clone());
    if there.digest() != remote.digest() {
        return Err(Failure::new(format!(
            "{label} gives something else for another user, token or signature, and the lock, which holds none of these, could not tell them apart"
        ))
        .hint("keep one of the two in this repository, or give them URLs that differ otherwise"));
    }
    there.through_mut().extend(remote.through().iter().cloned());
    if let (Remote::Git(there), Remote::Git(git)) = (there, remote) {
        there.paths.extend(git.paths);
    }
    Ok(())
}
