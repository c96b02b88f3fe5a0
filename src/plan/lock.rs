//! Bringing the lock at the top up to date with what the tree references.
//!
//! The lock holds whatever localizing would bring in: what the tree names, and what that names in
//! turn. So everything can be localized later from the lock alone, and offline once it is in the cache.
//! What cannot be resolved keeps nothing else out of it.

mod unresolved;

use std::collections::{BTreeMap, BTreeSet};

use super::remotes::{self, Own};
use super::troubles::Troubles;
use crate::config::Config;
use crate::graph::{self, Explored, Survey};
use crate::message::failure::{Failure, Result, short};
use crate::record::{Digest, Lock, Pinned, Remotes};
use crate::reference::Upstream;
use crate::workspace::Workspace;

/// A lock that fits the tree.
#[derive(Default)]
pub(crate) struct Relocked {
    /// The lock.
    pub lock: Lock,
    /// What is wrong in the tree itself, so that what is behind it is not known, and what is never locked: `check` reports
    /// both.
    pub unread: Vec<Failure>,
    /// Why not everything could be resolved, by place.
    pub unresolved: Vec<Failure>,
}

/// Returns the report if the lock fits the tree, at most without what nothing needs. Fetches nothing.
pub(crate) fn up_to_date(workspace: &Workspace) -> Result<Option<Relocked>> {
    let config = &workspace.config;
    let held = without_charts(workspace.lock.as_deref(), config.helm);
    let explored = walk(workspace, None)?;
    let troubles = Troubles::of(&explored);
    let own = with(remotes::own(&explored.graph, config, &held), &held, troubles.has_unread);
    let lock = joined(&held, &Remotes::new(), &BTreeSet::new(), &own, &|one| excepted(config, one));
    // An image is never locked, and a chart only where helm is on.
    let is_to_ask = |upstream: &Upstream| match upstream {
        Upstream::Image { .. } => false,
        Upstream::Chart { .. } => config.helm,
        Upstream::Git { .. } | Upstream::File { .. } => true,
    };
    let is_stale = lock.remotes.values().any(Pinned::is_stale);
    let fits = troubles.remote.is_empty() && !is_stale && !unlocked(&lock, &own).any(|one| is_to_ask(&one));
    Ok(fits.then(|| relocked(lock, &own, troubles)))
}

/// Returns whether a lock of the tree would hold nothing, as far as can be told without fetching.
pub(crate) fn has_nothing_to_lock(workspace: &Workspace) -> Result<bool> {
    let fits = up_to_date(workspace)?;
    Ok(fits.is_some_and(|one| one.unread.is_empty() && one.lock.remotes.is_empty() && one.lock.left.is_empty()))
}

/// Returns why something stays remote wherever it is named; none if no exception says so.
pub(super) fn excepted(config: &Config, upstream: &Upstream) -> Option<String> {
    config.reason(upstream.rule(), &upstream.subject())
}

fn walk(workspace: &Workspace, remotes: Option<&mut dyn graph::Remotes>) -> Result<Explored> {
    Ok(explore(workspace, workspace.survey(), &super::starts(workspace)?, remotes, graph::Policy::default()))
}

/// Walks a tree as the configuration says, and as `policy` says beside it.
pub(super) fn explore(
    workspace: &Workspace,
    survey: &Survey,
    starts: &[String],
    remotes: Option<&mut dyn graph::Remotes>,
    policy: graph::Policy<'_>,
) -> Explored {
    let config = &workspace.config;
    let policy = graph::Policy {
        load_restrictor: config.load_restrictor,
        leave_missing: Some(&|path| config.may_be_missing(path)),
        leave: Some(config),
        ..policy
    };
    survey.explore(starts, remotes, &policy)
}

/// Returns the lock that fits the tree, with everything resolved that `held` does not hold and that can be. What could not
/// be asked again stays what `held` says.
pub(crate) fn relock(workspace: &Workspace, held: &Lock, remotes: &mut dyn graph::Remotes) -> Result<Relocked> {
    let mut explored = walk(workspace, Some(remotes))?;
    let troubles = Troubles::of(&explored);
    let as_held = unresolved::take_out(&mut explored, held);
    let (graph, config) = (&explored.graph, &workspace.config);
    let found = remotes::remotes(graph, held)?;
    let own = with(remotes::own(graph, config, held), held, troubles.has_unread);
    let lock = joined(held, &found, &as_held, &own, &|one| excepted(config, one));
    Ok(relocked(lock, &own, troubles))
}

/// Adds what stays locked although no file names it: what stored files were brought in from, and with `all` everything.
pub(super) fn with(mut own: Own, held: &Lock, all: bool) -> Own {
    if all {
        own.starts.extend(held.upstreams())
    } else {
        own.starts.extend(held.stored())
    }
    own
}

/// Returns a lock of what is named: as it was found, or else as `held` says. `as_held` are the sources of which only `held`
/// tells. What stays remote, although the user's own files do not want it localized, `is_left` says.
pub(super) fn joined(
    held: &Lock,
    found: &Remotes,
    as_held: &BTreeSet<Upstream>,
    own: &Own,
    is_left: &dyn Fn(&Upstream) -> Option<String>,
) -> Lock {
    let mut lock = Lock { trailers: held.trailers, files: held.files.clone(), ..Lock::default() };
    let mut todo: Vec<Upstream> = own.starts.iter().chain(own.left.keys()).cloned().collect();
    let mut seen = BTreeSet::new();
    while let Some(upstream) = todo.pop() {
        if !seen.insert(upstream.clone()) {
            continue;
        }
        let reason = || own.left.get(&upstream).cloned().or_else(|| is_left(&upstream));
        if let Some(reason) = (!own.starts.contains(&upstream)).then(reason).flatten() {
            lock.left.insert(upstream, reason);
            continue;
        }
        let source = upstream.source();
        let old = held.remotes.get(&source);
        let is_as_held = |new: &&Pinned| old.is_some_and(|old| old.digest != new.digest) && as_held.contains(&source);
        let new = found.get(&source).filter(|new| !is_as_held(new));
        let pinned = new.or(old);
        // Of another commit it is not known what it names.
        let same = old.filter(|old| pinned.is_some_and(|pinned| pinned.digest == old.digest));
        let sides = [new, same].into_iter().flatten();
        let known = sides.into_iter().find_map(|side| Some((side, side.paths.get(upstream.path())?)));
        let (Some(pinned), Some((side, names))) = (pinned, known) else { continue };
        todo.extend(names.iter().cloned());
        let of = side.paths_of.clone().filter(|_| side.is_stale());
        let of = of.or_else(|| own.urls.contains(&source).then(|| paths_of(pinned, &source, held)).flatten());
        let new = || Pinned { paths: BTreeMap::new(), paths_of: of.clone(), ..pinned.clone() };
        let entry = lock.remotes.entry(source).or_insert_with(new);
        if !entry.is_stale() {
            entry.paths_of = of;
        }
        entry.paths.insert(upstream.path().to_owned(), names.clone());
    }
    lock
}

/// Returns what a lock says of the commit whose paths an entry has; `None` if a bot must not change it: what is stored came
/// from there.
fn paths_of(pinned: &Pinned, source: &Upstream, held: &Lock) -> Option<String> {
    let is_stored = held.files.iter().any(|file| file.remote.as_ref() == Some(source));
    let is_commit = matches!(pinned.digest, Digest::GitCommit(_));
    (is_commit && !is_stored).then(|| short(pinned.digest.hex()).to_owned())
}

/// Returns what the user's own files lead to and a lock neither holds nor leaves.
pub(super) fn unlocked(lock: &Lock, own: &Own) -> impl Iterator<Item = Upstream> {
    let reached = lock.reach(own.starts.iter().cloned());
    reached.into_iter().filter(|one| !lock.holds(one) && !lock.left.contains_key(one))
}

fn relocked(lock: Lock, own: &Own, troubles: Troubles) -> Relocked {
    // What could be resolved and is not has an error of its own.
    let unlocked = unlocked(&lock, own).filter(|one| matches!(one, Upstream::Chart { .. } | Upstream::Image { .. }));
    let unlocked = unlocked.map(|one| Failure::new(format!("{one} is not locked")));
    let unread = troubles.local.into_iter().chain(unlocked).collect();
    Relocked { unread, lock, unresolved: troubles.remote }
}

/// Returns a lock without the charts that are not stored beside it, unless `helm` is on.
pub(crate) fn without_charts(lock: Option<&Lock>, helm: bool) -> Lock {
    let mut kept = lock.cloned().unwrap_or_default();
    let stored: BTreeSet<Upstream> = kept.stored().collect();
    kept.remotes.retain(|source, _| helm || !matches!(source, Upstream::Chart { .. }) || stored.contains(source));
    kept
}
