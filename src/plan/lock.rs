//! Updates the lock at the top to the references of the tree.
//!
//! The lock has every upstream that localizing would fetch: those that the tree references, and those that they
//! reference. So everything can be localized later from the lock, and offline once it is in the cache. A reference that
//! cannot be resolved does not keep others out.

mod unresolved;

use std::collections::{BTreeMap, BTreeSet};

use super::remotes::{self, UserRemotes};
use super::troubles::Troubles;
use crate::config::Config;
use crate::graph::{self, Explored, Survey};
use crate::message::failure::{Failure, Result, short};
use crate::record::{Digest, Lock, Pinned, Remotes};
use crate::reference::Upstream;
use crate::workspace::Workspace;

/// An updated lock.
#[derive(Default)]
pub(crate) struct Relocked {
    pub lock: Lock,
    /// The errors in the tree itself, whose references are therefore unknown, and the charts and images that are not
    /// locked. `check` reports both.
    pub unread: Vec<Failure>,
    /// The reasons why references could not be resolved, by location.
    pub unresolved: Vec<Failure>,
}

/// The result of locking, if the lock already fits the tree, so that most runs of `lock` need no network. Entries
/// that nothing needs are only dropped. `None` if something must be fetched, or if a remote reference cannot be locked,
/// which [`relock`] reports.
pub(crate) fn up_to_date(workspace: &Workspace) -> Result<Option<Relocked>> {
    let config = &workspace.config;
    let old_lock = without_charts(workspace.lock.as_deref(), config.helm);
    let explored = walk(workspace, None)?;
    let troubles = Troubles::of(&explored);
    let user_remotes = remotes::user_remotes(&explored.graph, config, &old_lock);
    let user_remotes = keep_locked(user_remotes, &old_lock, troubles.has_unread);
    let lock = reachable_lock(&old_lock, &Remotes::new(), &BTreeSet::new(), &user_remotes, &|upstream| {
        excepted(config, upstream)
    });
    // An image is never locked, and a chart only if helm is enabled. Otherwise [`relocked`] reports them.
    let needs_fetch = unlocked(&lock, &user_remotes).any(|upstream| match upstream {
        Upstream::Image { .. } => false,
        Upstream::Chart { .. } => config.helm,
        Upstream::Git { .. } | Upstream::File { .. } => true,
    });
    // A bot changed the commit of a stale entry: its references at the new commit are unknown until it is fetched.
    let is_stale = lock.remotes.values().any(Pinned::is_stale);
    let fits = troubles.remote.is_empty() && !is_stale && !needs_fetch;
    Ok(fits.then(|| relocked(lock, &user_remotes, troubles, config.helm)))
}

/// Whether a lock of the tree would be empty, as far as can be told without fetching.
pub(crate) fn has_nothing_to_lock(workspace: &Workspace) -> Result<bool> {
    Ok(up_to_date(workspace)?.is_some_and(|Relocked { lock, unread, .. }| {
        unread.is_empty() && lock.remotes.is_empty() && lock.left.is_empty()
    }))
}

/// The reason why an upstream stays remote wherever it is referenced. `None` if no exception says so.
pub(super) fn excepted(config: &Config, upstream: &Upstream) -> Option<String> {
    config.reason(upstream.rule(), &upstream.subject())
}

/// Walks the tree of the workspace from all roots that the configuration includes. Without `remotes` nothing is
/// fetched.
fn walk(workspace: &Workspace, remotes: Option<&mut dyn graph::Remotes>) -> Result<Explored> {
    Ok(explore(workspace, workspace.survey(), &super::starts(workspace)?, remotes, graph::WalkPolicy::default()))
}

/// Walks a tree from the directories `starts`, with the rules of the configuration, and else those of `policy`.
pub(super) fn explore(
    workspace: &Workspace,
    survey: &Survey,
    starts: &[String],
    remotes: Option<&mut dyn graph::Remotes>,
    policy: graph::WalkPolicy<'_>,
) -> Explored {
    let config = &workspace.config;
    let policy = graph::WalkPolicy {
        load_restrictor: config.load_restrictor,
        allows_missing: Some(&|path| config.may_be_missing(path)),
        config: Some(config),
        ..policy
    };
    survey.explore(starts, remotes, &policy)
}

/// Locks the tree: resolves every reference that `old_lock` lacks and that can be resolved. An upstream that could not
/// be asked again keeps its old entry.
pub(crate) fn relock(workspace: &Workspace, old_lock: &Lock, remotes: &mut dyn graph::Remotes) -> Result<Relocked> {
    let mut explored = walk(workspace, Some(remotes))?;
    let troubles = Troubles::of(&explored);
    let kept_entries = unresolved::take_out(&mut explored, old_lock);
    let (graph, config) = (&explored.graph, &workspace.config);
    let fetched = remotes::remotes(graph, old_lock)?;
    let user_remotes = remotes::user_remotes(graph, config, old_lock);
    let user_remotes = keep_locked(user_remotes, old_lock, troubles.has_unread);
    let lock = reachable_lock(old_lock, &fetched, &kept_entries, &user_remotes, &|upstream| excepted(config, upstream));
    Ok(relocked(lock, &user_remotes, troubles, config.helm))
}

/// Adds upstreams that stay locked although no file references them: those of stored files, and with `has_unread`
/// everything in the lock, because a file that could not be read may reference it.
pub(super) fn keep_locked(mut user_remotes: UserRemotes, old_lock: &Lock, has_unread: bool) -> UserRemotes {
    if has_unread {
        user_remotes.to_localize.extend(old_lock.upstreams())
    } else {
        user_remotes.to_localize.extend(old_lock.stored_upstreams())
    }
    user_remotes
}

/// A lock of all upstreams that are reachable from the user's: with their `fetched` entries, or else their old ones.
/// The sources `kept_entries` keep their old entries in any case. `exception` gives the reason why an upstream stays
/// remote that only other upstreams reference.
pub(super) fn reachable_lock(
    old_lock: &Lock,
    fetched: &Remotes,
    kept_entries: &BTreeSet<Upstream>,
    user_remotes: &UserRemotes,
    exception: &dyn Fn(&Upstream) -> Option<String>,
) -> Lock {
    let entries = KnownEntries { old_lock, fetched, kept_entries };
    let mut lock = Lock { trailers: old_lock.trailers, files: old_lock.files.clone(), ..Lock::default() };
    let mut todo: Vec<Upstream> = user_remotes.to_localize.iter().cloned().collect();
    let mut seen = BTreeSet::new();
    // From the user's references downwards: an entry that nothing references any more is dropped on the way.
    while let Some(upstream) = todo.pop() {
        if !seen.insert(upstream.clone()) {
            continue;
        }
        // A reference that only an upstream has may stay remote by an exception of the configuration: a comment is
        // about the user's reference beside it.
        if !user_remotes.to_localize.contains(&upstream)
            && let Some(reason) = exception(&upstream)
        {
            lock.left.insert(upstream, reason);
            continue;
        }
        // An upstream without an entry was not resolved. It stays out of the lock, and `unlocked` finds it.
        let source = upstream.source();
        let Some(pinned) = entries.of_source(&source) else { continue };
        let Some((read_entry, names)) = entries.with_names(&upstream, pinned) else { continue };
        todo.extend(names.iter().cloned());
        // An entry whose commit a bot changed stays stale until its references are read again. A bot finds only what
        // the user's own files reference by URL, so only these entries get `paths_of`, by which such a change is
        // noticed.
        let paths_of = if read_entry.is_stale() {
            read_entry.paths_of.clone()
        } else {
            user_remotes.urls.get(&source).and_then(|source| paths_of(pinned, source, old_lock))
        };
        let new_entry = || Pinned { paths: BTreeMap::new(), paths_of: None, ..pinned.clone() };
        let entry = lock.remotes.entry(source).or_insert_with(new_entry);
        if !entry.is_stale() {
            entry.paths_of = paths_of;
        }
        entry.paths.insert(upstream.path().to_owned(), names.clone());
    }
    // What the user's references leave remote, unless something else needs it localized.
    for (upstream, reason) in &user_remotes.stays_remote {
        if !seen.contains(upstream) || lock.left.contains_key(upstream) {
            lock.left.insert(upstream.clone(), reason.clone());
        }
    }
    lock
}

/// The entries from which a lock is made.
struct KnownEntries<'a> {
    old_lock: &'a Lock,
    fetched: &'a Remotes,
    /// The sources that keep their old entries.
    kept_entries: &'a BTreeSet<Upstream>,
}

impl<'a> KnownEntries<'a> {
    /// The entry that tells the digest of a source: the fetched one, unless the old one is kept. A fetched entry with
    /// the same digest is better than the kept one: it may list references that the kept one does not know.
    fn of_source(&self, source: &Upstream) -> Option<&'a Pinned> {
        match (self.old_lock.remotes.get(source), self.fetched.get(source)) {
            (Some(old), Some(new)) if old.digest != new.digest && self.kept_entries.contains(source) => Some(old),
            (old, new) => new.or(old),
        }
    }

    /// The upstreams that `upstream` references, with the entry that lists them: the fetched or the old one, if it has
    /// the same digest as `pinned`. `None` if neither has the directory.
    fn with_names(&self, upstream: &Upstream, pinned: &Pinned) -> Option<(&'a Pinned, &'a BTreeSet<Upstream>)> {
        let entries = [self.fetched, &self.old_lock.remotes].map(|remotes| remotes.get(&upstream.source()));
        let mut entries = entries.into_iter().flatten().filter(|entry| entry.digest == pinned.digest);
        entries.find_map(|entry| Some((entry, entry.paths.get(upstream.path())?)))
    }
}

/// The commit whose paths an entry has, as a lock shows it. `None` for an entry that a bot must not change, because
/// files are stored from it, and for a file or a chart.
fn paths_of(pinned: &Pinned, source: &Upstream, old_lock: &Lock) -> Option<String> {
    let is_stored = old_lock.files.iter().any(|file| file.remote.as_ref() == Some(source));
    let is_commit = matches!(pinned.digest, Digest::GitCommit(_));
    (is_commit && !is_stored).then(|| short(pinned.digest.hex()).to_owned())
}

/// The upstreams that the user's files reach, and that a lock neither has nor leaves remote.
pub(super) fn unlocked(lock: &Lock, user_remotes: &UserRemotes) -> impl Iterator<Item = Upstream> {
    let reached = lock.reach(user_remotes.to_localize.iter().cloned());
    reached.into_iter().filter(|upstream| !lock.holds(upstream) && !lock.left.contains_key(upstream))
}

/// The result of locking: the lock, and what it does not have.
fn relocked(lock: Lock, user_remotes: &UserRemotes, troubles: Troubles, helm: bool) -> Relocked {
    // Anything that could not be resolved has an error of its own, but an image is never resolved, and a chart only
    // with `helm`.
    let unlocked = unlocked(&lock, user_remotes).filter(|upstream| match upstream {
        Upstream::Image { .. } => true,
        Upstream::Chart { .. } => !helm,
        Upstream::Git { .. } | Upstream::File { .. } => false,
    });
    let unlocked = unlocked.map(|upstream| Failure::new(format!("{upstream} is not locked")));
    let unread = troubles.local.into_iter().chain(unlocked).collect();
    Relocked { unread, lock, unresolved: troubles.remote }
}

/// A lock without the charts that are not stored beside it, unless `helm` is enabled.
pub(crate) fn without_charts(lock: Option<&Lock>, helm: bool) -> Lock {
    let mut lock = lock.cloned().unwrap_or_default();
    let stored = lock.stored_upstreams();
    lock.remotes.retain(|source, _| helm || !matches!(source, Upstream::Chart { .. }) || stored.contains(source));
    lock
}

#[cfg(test)]
mod tests;
