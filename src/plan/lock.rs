//! Bringing the lock at the top up to date with what the tree references.
//!
//! The lock holds whatever localizing would bring in: what the tree names, and what that names in
//! turn. So everything can be localized later from the lock alone, and offline once it is in the cache.
//! What cannot be resolved keeps nothing else out of it.

mod unresolved;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::troubles::Troubles;
use crate::config::Config;
use crate::graph::{self, At, Edge, Explored, Graph, Remotes, RootId, Target, Trouble};
use crate::message::failure::{Failure, Result};
use crate::message::finding::Rule;
use crate::plan;
use crate::record::{GitRemote, Left, LeftWhat, Lock, Remote};
use crate::workspace::Workspace;

/// A lock that fits the tree.
pub(crate) struct Relocked {
    /// The lock.
    pub lock: Lock,
    /// What is wrong in the tree itself, so that what is behind it is not known: `check` reports it.
    pub unread: Vec<Failure>,
    /// What could not be resolved.
    pub unresolved: Unresolved,
}

/// What could not be resolved of the remote references of a tree.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Unresolved {
    /// Why, by place.
    pub failures: Vec<Failure>,
    /// How many references that is.
    pub count: usize,
    /// How many of these the lock holds all the same, as they were.
    pub kept: usize,
    /// How many there are in all.
    pub of: usize,
}

/// Returns the report if the lock fits the tree, at most without what nothing needs, as far as the walk from `paths` (all when empty) shows.
/// Fetches nothing.
pub(crate) fn up_to_date(workspace: &Workspace, paths: &[String]) -> Result<Option<Relocked>> {
    let config = &workspace.config;
    let mut lock = workspace.lock.as_deref().cloned().unwrap_or_default();
    if lock != without_charts(&lock, config.helm) {
        return Ok(None);
    }
    let explored = explore(workspace, paths, None)?;
    let troubles = Troubles::of(workspace, &explored)?;
    let Some(named) = direct_remotes(&explored.graph, &lock, config) else {
        return Ok(None);
    };
    // Some paths alone do not show what the rest of the tree references.
    let whole = match paths {
        [] => None,
        _ => Some(explore(workspace, &[], None)?.graph),
    };
    let is_whole = whole.is_none();
    let needed = match &whole {
        None => named.keys().cloned().collect(),
        Some(whole) => still_named(whole, &lock),
    };
    let is_named = |remote: &Remote| needed.contains(&remote.label());
    // The needs of a kustomization that cannot be read are unknown, so nothing is dropped for it.
    if troubles.unread.is_empty() {
        let stale: Vec<Remote> = lock.stale(is_named).into_iter().cloned().collect();
        lock.remotes.retain(|remote| !stale.contains(remote));
        // What these named in turn may need less of others now.
        let labels: BTreeSet<String> = stale.iter().map(Remote::label).collect();
        if lock.remotes.iter().any(|remote| !remote.through().is_disjoint(&labels)) {
            return Ok(None);
        }
    }
    let fits = troubles.remote.is_empty()
        && lock.remotes.iter().all(|remote| match remote {
            Remote::Git(git) if is_whole && git.through.is_empty() && !is_stored(&lock, remote) => {
                named.get(&remote.label()).is_none_or(|paths| *paths == git.paths)
            }
            Remote::Git(git) => named.get(&remote.label()).is_none_or(|paths| paths.is_subset(&git.paths)),
            Remote::File(_) | Remote::Chart(_) => true,
        });
    let asked = unfollowed(&explored.graph, &lock);
    leave(&mut lock, &explored.graph, whole.as_ref(), config);
    let fits = fits && !lock.left.iter().any(|left| is_to_ask(left, config.helm, &asked));
    Ok(fits.then(|| Relocked { lock, unread: troubles.local, unresolved: Unresolved::default() }))
}

/// Returns whether something that is left behind one of these references must be requested again: it was not accepted
/// that it stays remote, and it could be brought in.
fn is_to_ask(left: &Left, helm: bool, references: &BTreeSet<String>) -> bool {
    let can_be_had = match left.what {
        LeftWhat::Reference { .. } => true,
        LeftWhat::Chart { .. } => helm,
        LeftWhat::Image { .. } => false,
    };
    let mut firsts = left.through.iter().filter_map(|chain| chain.first());
    can_be_had && !left.accepted && firsts.any(|first| references.contains(first))
}

/// Returns the remotes that the tree itself names by their labels, with the directories that it
/// names in each; none if one of them is not in the lock, and does not stay remote.
fn direct_remotes(graph: &Graph, lock: &Lock, config: &Config) -> Option<BTreeMap<String, BTreeSet<String>>> {
    let mut named: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (id, root) in graph.roots.iter().enumerate() {
        for (index, edge) in root.edges.iter().enumerate() {
            if edge.target != Target::Remote {
                continue;
            }
            match entry(edge, lock) {
                Some((label, directory)) => named.entry(label).or_default().extend(directory),
                None if graph.left.contains(&(id, index)) => {}
                None => return None,
            }
        }
    }
    for chart in &graph.charts {
        let Some(wanted) = &chart.wanted else {
            continue;
        };
        let (subject, lines) = (wanted.subject(), graph.lines_of(chart.note));
        match wanted.locked(lock) {
            Some(_) => {
                named.entry(wanted.label()).or_default();
            }
            None if graph.exception(config, Rule::RemoteChart, &subject, lines).is_some() => {}
            None if config.helm && !chart.is_there() => return None,
            None => {}
        }
    }
    Some(named)
}

/// Returns the label of the entry that a reference has in the lock, and the directory that it names
/// there.
fn entry(edge: &Edge, lock: &Lock) -> Option<(String, Option<String>)> {
    let wanted = edge.remote.as_ref()?;
    let remote = wanted.locked(lock)?;
    let directory = match (remote, &wanted.spec) {
        (Remote::Git(_), Some(spec)) => Some(GitRemote::path(&spec.directory())),
        _ => None,
    };
    Some((remote.label(), directory))
}

fn explore(workspace: &Workspace, paths: &[String], remotes: Option<&mut dyn Remotes>) -> Result<Explored> {
    let config = &workspace.config;
    let missing = |path: &str| config.may_be_missing(path);
    let options = graph::Options {
        load_restrictor: config.load_restrictor,
        leave_missing: Some(&missing),
        leave: Some(config),
        asks_for_left: true,
        ..graph::Options::default()
    };
    let starts = workspace.starts(paths)?;
    Ok(graph::explore(workspace.source(), &starts, remotes, &options))
}

/// Returns the lock that fits the tree, with everything resolved that `held` does not hold and that can be. With
/// `paths` only what is walked from there is resolved. What could not be asked again stays what `held` says.
pub(crate) fn relock(
    workspace: &Workspace,
    paths: &[String],
    held: &Lock,
    remotes: &mut dyn Remotes,
) -> Result<Relocked> {
    let mut explored = explore(workspace, paths, Some(remotes))?;
    let starts: Vec<RootId> = explored.starts.iter().flatten().copied().collect();
    let insisted = explored.graph.insisted(starts);
    let graph = &explored.graph;
    explored.troubles.retain(|trouble| is_insisted(graph, &insisted, trouble));
    let mut troubles = Troubles::of(workspace, &explored)?;
    let asked = unresolved::take_out(&mut explored, held);
    let graph = &explored.graph;
    let mut named: BTreeSet<String> = charts_needed(graph).collect();
    named.extend(asked.not_asked.iter().cloned());
    // Whether what stays remote could be asked makes no difference.
    named.extend(left_labels(graph, held));
    let whole = match paths {
        [] => None,
        _ => Some(explore(workspace, &[], None)?),
    };
    if let Some(whole) = &whole {
        // Paths that others reference stay.
        named.extend(still_named(&whole.graph, held));
        troubles.unread = Troubles::of(workspace, whole)?.unread;
    }
    let keep = !troubles.unread.is_empty();
    let found = plan::remotes(graph)?;
    let mut lock = merged(held, found, &named, &asked.not_asked, keep);
    let whole = whole.map(|whole| whole.graph);
    leave(&mut lock, graph, whole.as_ref(), &workspace.config);
    if workspace.config.helm {
        // As any reference that could not be resolved: the lock names those of upstreams, `check` those of the user.
        let is_unresolved = |left: &Left| !left.accepted && matches!(left.what, LeftWhat::Chart { .. });
        lock.left.retain(|left| !is_unresolved(left) || !left.through.is_empty());
        for left in lock.left.iter_mut().filter(|left| is_unresolved(left)) {
            left.reason = plan::UNRESOLVED.to_owned();
        }
    }
    Ok(Relocked {
        unread: troubles.local,
        lock,
        unresolved: Unresolved {
            failures: troubles.remote,
            count: asked.unresolved,
            kept: asked.kept,
            of: asked.references,
        },
    })
}

/// Returns whether something has to be mended, and is not behind what stays remote.
fn is_insisted(graph: &Graph, insisted: &BTreeSet<RootId>, trouble: &Trouble) -> bool {
    if let At::Edge(root, edge) = trouble.at {
        return insisted.contains(&root) && !graph.left.contains(&(root, edge));
    }
    let Some(file) = graph.file_at(trouble.at) else {
        return true;
    };
    // A file that no root is known to hold is nothing to pass over.
    let holds = |root: &RootId| {
        let node = &graph.roots[*root];
        node.file == file || node.edges.iter().any(|edge| edge.target == Target::File(file))
    };
    let mut holders = (0..graph.roots.len()).filter(holds).peekable();
    holders.peek().is_none() || holders.any(|root| insisted.contains(&root))
}

/// Returns the labels of the entries of `held` that a walk without a network still finds named.
pub(super) fn still_named(graph: &Graph, held: &Lock) -> BTreeSet<String> {
    graph
        .roots
        .iter()
        .flat_map(|root| &root.edges)
        .filter(|edge| edge.target == Target::Remote)
        .filter_map(|edge| entry(edge, held))
        .map(|(label, _)| label)
        .chain(charts_needed(graph))
        .collect()
}

/// Returns a lock without the charts that are not stored beside it, unless `helm` is on.
pub(crate) fn without_charts(lock: &Lock, helm: bool) -> Lock {
    let mut kept = lock.clone();
    kept.remotes.retain(|remote| helm || !matches!(remote, Remote::Chart(_)) || is_stored(lock, remote));
    kept
}

/// Returns the labels of the charts whose entries stay.
fn charts_needed(graph: &Graph) -> impl Iterator<Item = String> {
    graph.charts.iter().filter_map(|chart| Some(chart.wanted.as_ref()?.label()))
}

/// Returns a lock of what was found and of what else is needed (`named` labels among it), and, with `keep`, of
/// what may be. What could not be asked again (`not_asked` labels)
/// keeps its entry.
pub(super) fn merged(
    held: &Lock,
    found: Vec<Remote>,
    named: &BTreeSet<String>,
    not_asked: &BTreeSet<String>,
    keep: bool,
) -> Lock {
    let mut lock = Lock {
        trailers: held.trailers,
        remotes: found,
        left: held.left.clone(),
        files: held.files.clone(),
        ..Lock::default()
    };
    let direct: BTreeSet<String> = lock.remotes.iter().map(Remote::label).collect();
    for old in &held.remotes {
        let there = lock.remotes.iter_mut().find(|new| is_same(old, new));
        match (there, old) {
            (None, _) => lock.remotes.push(old.clone()),
            (Some(new), _) if not_asked.contains(&old.label()) && new.digest() != old.digest() => {
                *new = old.clone();
            }
            // More of it is in use than what was found to name it.
            (Some(Remote::Git(new)), Remote::Git(old_git)) if is_stored(held, old) || named.contains(&old.label()) => {
                new.paths.extend(old_git.paths.iter().cloned());
                new.through.extend(old_git.through.iter().cloned());
            }
            (Some(_), _) => {}
        }
    }
    let stale: Vec<Remote> = lock
        .stale(|remote| direct.contains(&remote.label()) || named.contains(&remote.label()))
        .into_iter()
        .cloned()
        .collect();
    if !keep {
        lock.remotes.retain(|remote| !stale.contains(remote))
    }
    let labels: BTreeSet<String> = lock.remotes.iter().map(Remote::label).collect();
    for remote in &mut lock.remotes {
        remote.through_mut().retain(|label| labels.contains(label));
    }
    lock.sort();
    lock
}

/// Records what stays remote of a tree. `whole` is all of the tree where
/// `graph` is a part. What lies behind references that were not followed is unknown here: its record stays.
pub(super) fn leave(lock: &mut Lock, graph: &Graph, whole: Option<&Graph>, config: &Config) {
    let old = std::mem::take(&mut lock.left);
    let seen = plan::references(graph);
    let mut unseen = unfollowed(graph, lock);
    if let Some(whole) = whole {
        unseen.extend(unfollowed(whole, lock));
        unseen.retain(|reference| !seen.contains(reference));
    }
    // As far as a chain was followed it is known what it leads to.
    let is_unseen = |chain: &Vec<String>| {
        let mut rest = chain.iter().skip_while(|reference| seen.contains(*reference));
        rest.next().is_some_and(|reference| unseen.contains(reference))
    };
    let origins = lock.origins();
    let brought = |path: &str| origins.get(path).map(|label| (*label).to_owned());
    let mut left = Vec::new();
    for graph in std::iter::once(graph).chain(whole) {
        for one in plan::left(graph, Some(config), &brought) {
            add(&mut left, one);
        }
    }
    for mut one in old {
        one.through.retain(is_unseen);
        if one.through.is_empty() {
            continue;
        }
        if let Some(reason) = graph::accepted(config, &one.what) {
            one.reason = reason;
            one.accepted = true;
        } else if one.accepted {
            one.reason = "no longer accepted".to_owned();
            one.accepted = false;
        }
        add(&mut left, one);
    }
    // Locked references are brought in wherever this is localized.
    let is_locked = |left: &Left| match &left.what {
        LeftWhat::Chart { url, chart, version } => lock.find_chart(url, chart, version.as_deref()).is_some(),
        LeftWhat::Reference { .. } | LeftWhat::Image { .. } => false,
    };
    left.retain(|left| left.accepted || !is_locked(left));
    lock.left = left;
    lock.sort();
}

/// Adds what stays remote, unless it is there for other references already.
fn add(left: &mut Vec<Left>, one: Left) {
    match left.iter_mut().find(|there| there.what == one.what) {
        Some(there) => there.through.extend(one.through),
        None => left.push(one),
    }
}

/// Returns the references that stay remote by choice, as the lock names them.
fn left_labels(graph: &Graph, held: &Lock) -> Vec<String> {
    let edges = graph.left.iter();
    let edges = edges.filter_map(|(root, index)| graph.roots[*root].edges.get(*index));
    edges.filter_map(|edge| entry(edge, held)).map(|(label, _)| label).collect()
}

/// Returns the references of a tree that are locked, and that a walk did not follow, as chains of references name them.
fn unfollowed(graph: &Graph, lock: &Lock) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (id, root) in graph.roots.iter().enumerate() {
        for (index, edge) in root.edges.iter().enumerate() {
            let is_followed = !matches!(edge.target, Target::Remote | Target::Broken);
            if is_followed || graph.left.contains(&(id, index)) {
                continue;
            }
            if let Some(wanted) = &edge.remote
                && let Some(remote) = wanted.locked(lock)
            {
                found.insert(wanted.in_chain(remote));
            }
        }
    }
    found
}

fn is_same(one: &Remote, other: &Remote) -> bool {
    let submodules = |remote: &Remote| match remote {
        Remote::Git(GitRemote { submodules, .. }) => Some(*submodules),
        Remote::File(_) | Remote::Chart(_) => None,
    };
    one.label() == other.label() && submodules(one) == submodules(other)
}

/// Returns whether files of a remote are stored beside the lock.
pub(super) fn is_stored(lock: &Lock, remote: &Remote) -> bool {
    let label = remote.label();
    lock.files.iter().any(|file| file.remote.as_deref() == Some(&label))
}
