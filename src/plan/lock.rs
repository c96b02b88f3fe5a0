//! Bringing the lock at the top up to date with what the tree references.
//!
//! The lock holds whatever localizing would bring in: what the tree names, and what that names in
//! turn. So everything can be localized later from the lock alone, and offline once it is in the cache.
//! What cannot be resolved keeps nothing else out of it.

mod unresolved;

use std::collections::{BTreeMap, BTreeSet};

use super::troubles::Troubles;
use crate::config::Config;
use crate::graph::{self, Chart, Edge, Explored, Graph, RemoteRef, Remotes, RootId, Source, Target};
use crate::message::failure::{Failure, Result};
use crate::message::finding::Rule;
use crate::plan;
use crate::record::{GitRemote, Left, LeftWhat, Lock, Remote};
use crate::tree::SharedTree;
use crate::workspace::Workspace;

/// A lock that fits the tree.
#[derive(Default)]
pub(crate) struct Relocked {
    /// The lock.
    pub lock: Lock,
    /// What is wrong in the tree itself, so that what is behind it is not known: `check` reports it.
    pub unread: Vec<Failure>,
    /// Why not everything could be resolved, by place.
    pub unresolved: Vec<Failure>,
}

/// Returns the report if the lock fits the tree, at most without what nothing needs. Fetches nothing.
pub(crate) fn up_to_date(workspace: &Workspace) -> Result<Option<Relocked>> {
    let config = &workspace.config;
    let held = workspace.lock.as_deref().cloned().unwrap_or_default();
    let explored = walk(workspace, None)?;
    let graph = &explored.graph;
    if held != without_charts(&held, config.helm) || names_more(graph, &held, config) {
        return Ok(None);
    }
    let relocked = relocked(workspace, &explored, Troubles::of(workspace, &explored)?, &held, &BTreeSet::new())?;
    let lock = &relocked.lock;
    let labels: BTreeSet<String> = lock.remotes.iter().map(Remote::label).collect();
    let named = still_named(graph, &held);
    let names_less = |remote: &Remote| match remote {
        _ if !labels.contains(&remote.label()) => false,
        // What was dropped may have named more of it.
        _ if !remote.through().is_subset(&labels) => true,
        Remote::Git(git) if git.through.is_empty() && !is_stored(lock, remote) => {
            named.get(&remote.label()).is_some_and(|paths| *paths != git.paths)
        }
        _ => false,
    };
    // What is behind a locked reference, was not accepted, and could be brought in.
    let is_to_ask = |left: &Left| match left.what {
        _ if left.accepted || left.through.is_empty() => false,
        LeftWhat::Reference { .. } => true,
        LeftWhat::Chart { .. } => config.helm,
        LeftWhat::Image { .. } => false,
    };
    let fits =
        relocked.unresolved.is_empty() && !held.remotes.iter().any(names_less) && !lock.left.iter().any(is_to_ask);
    Ok(fits.then_some(relocked))
}

/// Returns whether a tree names something that is neither in the lock nor stays remote.
fn names_more(graph: &Graph, lock: &Lock, config: &Config) -> bool {
    let is_new = |root: RootId, index: usize, edge: &Edge| {
        let wanted = edge.remote.as_deref().filter(|_| edge.target == Target::Remote);
        wanted.is_some_and(|wanted| !is_locked(wanted, lock)) && !graph.left.contains(&(root, index))
    };
    let is_new_chart = |chart: &Chart| {
        let wanted = chart.wanted.as_ref().filter(|wanted| !chart.is_there() && wanted.locked(lock).is_none());
        let lines = graph.lines_of(chart.note);
        wanted.is_some_and(|wanted| graph.exception(config, Rule::RemoteChart, &wanted.subject(), lines).is_none())
    };
    let mut roots = graph.roots.iter().enumerate();
    roots.any(|(id, root)| root.edges.iter().enumerate().any(|(index, edge)| is_new(id, index, edge)))
        || (config.helm && graph.charts.iter().any(is_new_chart))
}

/// Returns whether a lock holds what a reference names, and the directory in it.
pub(super) fn is_locked(wanted: &RemoteRef, lock: &Lock) -> bool {
    wanted.locked(lock).is_some_and(|remote| wanted.unlocked_directory(remote).is_none())
}

fn walk(workspace: &Workspace, remotes: Option<&mut dyn Remotes>) -> Result<Explored> {
    Ok(explore(workspace, workspace.tree.clone(), &workspace.starts(&[])?, remotes, graph::Options::default()))
}

/// Walks a tree as the configuration says, and as `options` say beside it.
pub(super) fn explore(
    workspace: &Workspace,
    tree: SharedTree,
    starts: &[String],
    remotes: Option<&mut dyn Remotes>,
    options: graph::Options<'_>,
) -> Explored {
    let config = &workspace.config;
    let options = graph::Options {
        load_restrictor: config.load_restrictor,
        leave_missing: Some(&|path| config.may_be_missing(path)),
        leave: Some(config),
        ..options
    };
    graph::explore(Source { tree, ..workspace.source() }, starts, remotes, &options)
}

/// Returns the lock that fits the tree, with everything resolved that `held` does not hold and that can be. What could not
/// be asked again stays what `held` says.
pub(crate) fn relock(workspace: &Workspace, held: &Lock, remotes: &mut dyn Remotes) -> Result<Relocked> {
    let mut explored = walk(workspace, Some(remotes))?;
    let troubles = Troubles::of(workspace, &explored)?;
    let not_asked = unresolved::take_out(&mut explored, held);
    relocked(workspace, &explored, troubles, held, &not_asked)
}

/// Returns the lock of what was walked. What could not be asked again (`not_asked` labels) stays what `held` says.
fn relocked(
    workspace: &Workspace,
    explored: &Explored,
    troubles: Troubles,
    held: &Lock,
    not_asked: &BTreeSet<String>,
) -> Result<Relocked> {
    let graph = &explored.graph;
    let mut named: BTreeSet<String> = still_named(graph, held).into_keys().collect();
    named.extend(not_asked.iter().cloned());
    let found = plan::remotes(graph)?;
    let mut lock = merged(held, found.clone(), &named, not_asked, troubles.has_unread);
    leave(&mut lock, graph, &workspace.config, &found);
    if workspace.config.helm {
        // A chart of the user that could not be pulled; `check` reports it.
        let is_own = |left: &Left| left.through.is_empty() && matches!(left.what, LeftWhat::Chart { .. });
        lock.left.retain(|left| left.accepted || !is_own(left));
    }
    Ok(Relocked { unread: troubles.local, lock, unresolved: troubles.remote })
}

/// Returns the labels of the entries of `held` that a tree names and a walk did not follow, or that are charts, each with the
/// directories that it names there.
pub(super) fn still_named(graph: &Graph, held: &Lock) -> BTreeMap<String, BTreeSet<String>> {
    let mut named: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (id, root) in graph.roots.iter().enumerate() {
        for (index, edge) in root.edges.iter().enumerate() {
            if let Some(wanted) = &edge.remote
                && (edge.target == Target::Remote || graph.left.contains(&(id, index)))
                && let Some(remote) = wanted.locked(held)
            {
                let directory = wanted.spec.as_ref().filter(|_| matches!(remote, Remote::Git(_)));
                let directory = directory.map(|spec| GitRemote::path(&spec.directory()));
                named.entry(remote.label()).or_default().extend(directory);
            }
        }
    }
    let charts = graph.charts.iter().filter_map(|chart| Some((chart.wanted.as_ref()?.label(), BTreeSet::new())));
    named.extend(charts);
    named
}

/// Returns a lock without the charts that are not stored beside it, unless `helm` is on.
pub(crate) fn without_charts(lock: &Lock, helm: bool) -> Lock {
    let mut kept = lock.clone();
    kept.remotes.retain(|remote| helm || !matches!(remote, Remote::Chart(_)) || is_stored(lock, remote));
    kept
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
        let there = lock.remotes.iter_mut().find(|new| old.key() == new.key());
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
    if !keep {
        drop_stale(&mut lock, |label| direct.contains(label) || named.contains(label));
    }
    let labels: BTreeSet<String> = lock.remotes.iter().map(Remote::label).collect();
    for remote in &mut lock.remotes {
        remote.through_mut().retain(|label| labels.contains(label));
    }
    lock.sort();
    lock
}

/// Takes out what nothing needs: what is not named, and only such remotes name.
fn drop_stale(lock: &mut Lock, is_named: impl Fn(&str) -> bool) {
    let stale: Vec<Remote> = lock.stale(|remote| is_named(&remote.label())).into_iter().cloned().collect();
    lock.remotes.retain(|remote| !stale.contains(remote));
}

/// Records what stays remote of a tree. What lies behind remotes that were not walked (`found` are those that were) is
/// unknown here: its record stays.
pub(super) fn leave(lock: &mut Lock, graph: &Graph, config: &Config, found: &[Remote]) {
    let old = std::mem::take(&mut lock.left);
    let seen: BTreeSet<String> = found.iter().flat_map(Remote::references).collect();
    let mut unseen = BTreeSet::new();
    for remote in &lock.remotes {
        let references = remote.references().into_iter().filter(|reference| !seen.contains(reference));
        let count = unseen.len();
        unseen.extend(references);
        if unseen.len() > count {
            unseen.insert(remote.label());
        }
    }
    let origins = lock.origins();
    let brought = |path: &str| origins.get(path).map(|label| (*label).to_owned());
    let mut left = plan::left(graph, config, &brought);
    for mut one in old {
        one.through.retain(|reference| unseen.contains(reference));
        if one.through.is_empty() {
            continue;
        }
        if let Some(reason) = config.reason(graph::rule(&one.what), &graph::subject(&one.what)) {
            one.reason = reason;
            one.accepted = true;
        } else if one.accepted {
            one.reason = "no longer accepted".to_owned();
            one.accepted = false;
        }
        match left.iter_mut().find(|there| there.what == one.what) {
            Some(there) => there.through.extend(one.through),
            None => left.push(one),
        }
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

/// Returns whether files of a remote are stored beside the lock.
pub(super) fn is_stored(lock: &Lock, remote: &Remote) -> bool {
    let label = remote.label();
    lock.files.iter().any(|file| file.remote.as_deref() == Some(&label))
}
