//! Bringing the lock at the top up to date with what the tree references.
//!
//! The lock holds whatever localizing would bring in: what the tree names, and what that names in
//! turn. So everything can be localized later with `--locked`, and offline once it is in the cache.
//! What cannot be resolved keeps nothing else out of it.

mod unresolved;

use std::collections::{BTreeMap, BTreeSet};

use super::{Ground, Troubles};
use crate::commit::working::Change;
use crate::failure::{Failure, Location, Result};
use crate::localize;
use crate::record::{GitRemote, LOCK_NAME, Lock, Remote};
use crate::walk::{
    self, Contents, Edge, Explored, Graph, Place, Remotes, Target, Wanted, WantedChart, Warning,
};

/// A lock that fits the tree.
pub struct Relocked {
    /// The lock.
    pub lock: Lock,
    /// What works but should be known.
    pub warnings: Vec<Warning>,
    /// What could not be resolved.
    pub unresolved: Unresolved,
}

/// What could not be resolved of the remote references of a tree.
#[derive(Debug, Clone, Default)]
pub struct Unresolved {
    /// Why, by place.
    pub failures: Vec<Failure>,
    /// How many references that is.
    pub count: usize,
    /// How many there are in all.
    pub of: usize,
}

/// Returns what to say if the lock fits the tree as it is, as far as the walk from `paths` (all when empty) tells. Nothing
/// is fetched for that.
///
/// # Errors
/// When there is nowhere to start.
pub fn up_to_date(ground: &Ground, paths: &[String], helm: bool) -> Result<Option<Relocked>> {
    let lock = ground.lock.clone().unwrap_or_default();
    if helm != lock.options.helm {
        return Ok(None);
    }
    let explored = explore(ground, paths, None)?;
    let troubles = Troubles::of(ground, &explored);
    let Some(named) = named(&explored.graph, &lock) else {
        return Ok(None);
    };
    // What others reference cannot be told from some paths.
    let is_whole = paths.is_empty();
    let needed = match is_whole {
        true => named.keys().cloned().collect(),
        false => still_named(&explore(ground, &[], None)?.graph, &lock),
    };
    let is_named = |remote: &Remote| needed.contains(&remote.label());
    // What a kustomization that cannot be read needs is not known, so nothing is dropped for it.
    let fits = troubles.remote.is_empty()
        && (lock.stale(is_named).is_empty() || !troubles.unread.is_empty())
        && lock.remotes.iter().all(|remote| match remote {
            Remote::Git(git) if is_whole && git.through.is_empty() && !is_stored(&lock, remote) => {
                named
                    .get(&remote.label())
                    .is_none_or(|paths| *paths == git.paths)
            }
            Remote::Git(git) => named
                .get(&remote.label())
                .is_none_or(|paths| paths.is_subset(&git.paths)),
            Remote::File(_) | Remote::Chart(_) => true,
        });
    Ok(fits.then(|| Relocked {
        lock: (*lock).clone(),
        warnings: warnings(&troubles, &[]),
        unresolved: Unresolved::default(),
    }))
}

/// Returns the remotes that the tree itself names by their labels, with the directories that it
/// names in each; none if one of them is not in the lock.
fn named(graph: &Graph, lock: &Lock) -> Option<BTreeMap<String, BTreeSet<String>>> {
    let mut named: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for edge in graph.roots.iter().flat_map(|root| &root.edges) {
        if edge.target == Target::Remote {
            let (label, directory) = entry(edge, lock)?;
            named.entry(label).or_default().extend(directory);
        }
    }
    for (wanted, is_there) in charts(graph) {
        match wanted.locked(lock) {
            Some(_) => {
                named.entry(wanted.label()).or_default();
            }
            None if lock.options.helm && !is_there => return None,
            None => {}
        }
    }
    Some(named)
}

/// Returns the charts of repositories that the tree itself names, and whether each is in the tree.
fn charts(graph: &Graph) -> Vec<(WantedChart, bool)> {
    // A tree that cannot be read is a trouble of the walk.
    let charts = graph.named_charts().unwrap_or_default();
    charts
        .iter()
        .filter_map(|chart| Some((chart.wanted()?, matches!(chart.place, Place::There(_)))))
        .collect()
}

/// Returns the label of the entry that a reference has in the lock, and the directory that it names
/// there.
fn entry(edge: &Edge, lock: &Lock) -> Option<(String, Option<String>)> {
    let wanted = Wanted::of(&edge.reference)?;
    let remote = wanted.locked(lock)?;
    let directory = match (remote, &wanted.spec) {
        (Remote::Git(_), Some(spec)) => Some(GitRemote::path(&spec.directory())),
        _ => None,
    };
    Some((remote.label(), directory))
}

fn explore(
    ground: &Ground,
    paths: &[String],
    remotes: Option<&mut dyn Remotes>,
) -> Result<Explored> {
    let options = walk::Options {
        load_restrictor: ground.config.load_restrictor,
        contents: Contents::Configurations,
        ..walk::Options::default()
    };
    let starts = ground.starts(paths)?;
    Ok(walk::explore(ground.source(), &starts, remotes, &options))
}

/// Returns the lock that fits the tree, with everything resolved that `held` does not hold and that can be. With `paths`
/// only what is walked from there is resolved. What could not be asked again stays what `held` says.
///
/// # Errors
/// When there is nowhere to start, or two remotes would be one for the lock.
pub fn relock(
    ground: &Ground,
    paths: &[String],
    held: &Lock,
    remotes: &mut dyn Remotes,
) -> Result<Relocked> {
    let mut explored = explore(ground, paths, Some(remotes))?;
    let mut troubles = Troubles::of(ground, &explored);
    let asked = unresolved::take_out(&mut explored, held);
    let graph = &explored.graph;
    let mut named: BTreeSet<String> = charts_needed(graph, held).collect();
    named.extend(asked.not_asked.iter().cloned());
    if !paths.is_empty() {
        // What others reference stays.
        let whole = explore(ground, &[], None)?;
        named.extend(still_named(&whole.graph, held));
        troubles.unread = Troubles::of(ground, &whole).unread;
    }
    let keep = !troubles.unread.is_empty();
    let found = localize::remotes(graph)?;
    let (lock, kept) = merged(held, found, &named, &asked.not_asked, keep);
    let mut lock = lock;
    if asked.charts > 0 && !has_charts(&lock) && !is_on(ground) {
        // It was asked for now, and came to nothing.
        lock.options.helm = false;
    }
    let mut warnings = warnings(&troubles, &kept);
    let of_charts = graph.warnings.iter();
    warnings.extend(
        of_charts
            .filter(|warning| warning.id == "remote-chart")
            .cloned(),
    );
    Ok(Relocked {
        warnings,
        lock,
        unresolved: Unresolved {
            failures: troubles.remote,
            count: asked.unresolved,
            of: asked.references,
        },
    })
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
        .chain(charts_needed(graph, held))
        .collect()
}

fn has_charts(lock: &Lock) -> bool {
    let mut remotes = lock.remotes.iter();
    remotes.any(|remote| matches!(remote, Remote::Chart(_)))
}

/// Says whether charts were brought in so far.
fn is_on(ground: &Ground) -> bool {
    ground.lock.as_ref().is_some_and(|lock| lock.options.helm)
}

/// Returns the labels of the charts whose entries stay. A chart that is in the tree is not brought in, and what it was
/// stays known.
fn charts_needed(graph: &Graph, held: &Lock) -> impl Iterator<Item = String> {
    let helm = held.options.helm;
    let needed = charts(graph).into_iter();
    needed
        .filter(move |(_, is_there)| helm || *is_there)
        .map(|(chart, _)| chart.label())
}

/// Returns a lock of what was found and of what else is needed (`named` labels among it), and the labels of what is kept only
/// because nobody knows whether it is. Of what could not be asked again (`not_asked` labels) the entry stays.
pub(super) fn merged(
    held: &Lock,
    found: Vec<Remote>,
    named: &BTreeSet<String>,
    not_asked: &BTreeSet<String>,
    keep: bool,
) -> (Lock, Vec<String>) {
    let mut lock = Lock {
        target: None,
        trailers: held.trailers,
        options: held.options.clone(),
        remotes: found,
        left: held.left.clone(),
        files: held.files.clone(),
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
            (Some(Remote::Git(new)), Remote::Git(old_git))
                if is_stored(held, old) || named.contains(&old.label()) =>
            {
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
    let mut kept = Vec::new();
    match keep {
        true => kept.extend(stale.iter().map(Remote::label)),
        false => lock.remotes.retain(|remote| !stale.contains(remote)),
    }
    let labels: BTreeSet<String> = lock.remotes.iter().map(Remote::label).collect();
    for remote in &mut lock.remotes {
        remote.through_mut().retain(|label| labels.contains(label));
    }
    lock.sort();
    (lock, kept)
}

fn is_same(one: &Remote, other: &Remote) -> bool {
    let submodules = |remote: &Remote| match remote {
        Remote::Git(GitRemote { submodules, .. }) => Some(*submodules),
        Remote::File(_) | Remote::Chart(_) => None,
    };
    one.label() == other.label() && submodules(one) == submodules(other)
}

/// Says whether files of a remote are stored beside the lock.
pub(super) fn is_stored(lock: &Lock, remote: &Remote) -> bool {
    let label = remote.label();
    lock.files
        .iter()
        .any(|file| file.remote.as_deref() == Some(&label))
}

pub(super) fn warnings(troubles: &Troubles, kept: &[String]) -> Vec<Warning> {
    let mut warnings: Vec<Warning> = troubles.warnings().collect();
    if !kept.is_empty() {
        warnings.push(Warning {
            id: "kept-entry",
            location: Location {
                file: LOCK_NAME.to_owned(),
                ..Location::default()
            },
            message: format!(
                "nothing references {}, but it stays: what {} references cannot be told",
                kept.join(", "),
                troubles.unread.join(", ")
            ),
        });
    }
    warnings
}

/// Writes the lock.
///
/// # Errors
/// When it holds what no lock may, or cannot be written: everything is then as before.
pub fn write(ground: &Ground, lock: &Lock) -> Result<()> {
    let change = Change {
        path: LOCK_NAME.to_owned(),
        to: Some((lock.render()?.into_bytes().into(), false)),
    };
    ground.apply(&[change])
}
