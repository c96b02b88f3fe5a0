//! Localizing where the tree stands: what was brought in goes beside the kustomization that names it, and only the
//! reference changes.
//!
//! In a working tree the result is a function of the user's files and the lock: it is made from the tree with all URLs
//! back, whose contents come from the localized files themselves, and compared with what is there. In a commit what was
//! localized before is a file of the tree like any other. Either way it goes when nothing uses it any more.

mod there;
mod turned_back;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::rc::Rc;

use super::files::{File, Localized};
use super::result::{Rules, Stays, attributes, localize, localized_directories};
use super::troubles::Troubles;
use super::{Affected, Changes, GITATTRIBUTES, Options, Original, Plan, hydrator, lock, proof};
use crate::graph::{self, Explored, FileId, Graph, Place, RemoteRef, Remotes, RootId, Source, TroubleKind, reach};
use crate::message::failure::{Failure, Failures, Result, listed};
use crate::message::finding::{Rule, Severity};
use crate::record::stored::home;
use crate::record::{LOCK_NAME, Lock, Remote, StoredFile};
use crate::tree::overlay::OverlayTree;
use crate::tree::{Entry, SharedTree, Tree, license, path};
use crate::workspace::{Files, Workspace};

use there::OnDisk;
pub(crate) use turned_back::TurnedBack;

/// What to localize.
#[derive(Default)]
pub(crate) struct Request {
    /// The directories of the roots to localize; every starting point when there are none.
    pub targets: Vec<String>,
    /// The tree with the URLs back, if something in it was changed. Then nothing is localized but what was before.
    pub again: Option<TurnedBack>,
}

/// Finds out what localizing in place changes. Nothing is written.
///
/// Every reference that cannot be localized; where targets are named, everything that is wrong with
/// them; files that are in the way, or would be lost.
pub(crate) fn plan(
    workspace: &Workspace,
    request: Request,
    options: &Options,
    remotes: &mut dyn Remotes,
) -> Result<Plan, Failures> {
    workspace.refuse_foreign_lock()?;
    planned(workspace, request, options, remotes).map_err(|failures| workspace.explain(failures))
}

/// Returns the tree of the workspace in which the user's files name by URL again what was localized of it.
pub(crate) fn turned_back(workspace: &Workspace, held: &Lock) -> Result<TurnedBack> {
    turned_back::turn_back(workspace, held, &OnDisk::of(workspace, held)?.edited)
}

/// Returns the localized files that a lock lists. A lock comes with a pull request: listing a file anywhere else does
/// not make it ours.
fn ours(held: &Lock) -> impl Iterator<Item = &StoredFile> {
    held.files.iter().filter(|file| home(&file.path).is_some())
}

/// Returns the files of the user as they are.
fn own_tree(workspace: &Workspace) -> &dyn Tree {
    match &workspace.files {
        Files::WorkingTree { tree, .. } => &**tree,
        Files::Commit { .. } | Files::Disk { .. } | Files::Tree(_) => &*workspace.tree,
    }
}

fn planned(
    workspace: &Workspace,
    request: Request,
    options: &Options,
    remotes: &mut dyn Remotes,
) -> Result<Plan, Failures> {
    let empty = Rc::default();
    let held: &Lock = workspace.lock.as_ref().unwrap_or(&empty);
    let Request { targets, again } = request;
    let starts = if targets.is_empty() { workspace.starts(&[])? } else { targets.clone() };
    let on_disk = OnDisk::of(workspace, held)?;
    let only = again.as_ref().map(|again| again.roots.clone());
    let turned = match (again, &workspace.files) {
        (Some(again), _) => again,
        (None, Files::WorkingTree { .. }) => turned_back::turn_back(workspace, held, &on_disk.edited)?,
        (None, _) => TurnedBack { tree: workspace.tree.clone(), roots: BTreeSet::new(), files: BTreeSet::new() },
    };
    let starts = with(starts, only.iter().flatten().cloned());
    let explored = walk(workspace, turned.tree.clone(), &starts, Some(remotes));
    let troubles = Troubles::of(workspace, &explored)?;
    refuse(&troubles, !targets.is_empty())?;
    let graph = &explored.graph;
    let used = graph.own_paths().map(str::to_owned).collect();
    let roots = explored.starts.iter().flatten().copied();
    let is_asked = |root: &RootId| only.as_ref().is_none_or(|only| only.contains(&graph.roots[*root].directory));
    let roots: Vec<RootId> = roots.filter(is_asked).collect();
    let mut localized = localized(workspace, graph, &roots, &turned)?;
    let after = walk_after(workspace, &turned.tree, &starts, &localized)?;
    proof::assert_whole(graph, &after, &localized)?;
    let mut kept = kept(workspace, held, &localized, &after)?;
    let directories: BTreeSet<String> = kept.iter().flat_map(|file| localized_directories(&file.path)).collect();
    localized.files.extend(directories.iter().map(|directory| attributes(directory, GITATTRIBUTES)));
    kept.retain(|file| !localized.files.contains_key(&file.path));
    let mut changes = on_disk.changes(&localized, &kept, options.overwrite)?;
    let entries = localized.files.iter().filter(|(place, _)| localized.is_brought(place));
    let entries = entries.filter(|(place, _)| localized.vendored(place).is_none()).map(|(_, (_, entry))| entry);
    let mut files: Vec<StoredFile> = entries.chain(kept.iter().copied()).cloned().collect();
    files.sort_by(|one, other| one.path.cmp(&other.path));
    let lock = relocked(workspace, held, files, &localized, &after, options, !troubles.unread.is_empty())?;
    refuse_unknown(&kept, &on_disk, &localized, held, &lock)?;
    if lock != *held || (workspace.lock.is_none() && changes.values().any(Option::is_some)) {
        changes.insert(LOCK_NAME.to_owned(), Some(File::plain(lock.render()?.into_bytes())));
    }
    changes.extend(hydrator::change(workspace, &lock)?);
    let mut warnings = graph.warnings.clone();
    warnings.append(&mut localized.warnings);
    warnings.sort();
    warnings.dedup();
    localized.rewritten.retain(|one| changes.contains_key(&one.path));
    Ok(Plan {
        affected: affected(graph, &changes),
        stage: to_stage(workspace, &changes, &localized, &lock)?,
        new_dir: None,
        changes,
        rewritten: localized.rewritten,
        lock,
        warnings,
        used,
        trusted: localized.trusted,
        load_restrictor: workspace.config.load_restrictor,
        before: explored.graph,
        after: after.graph,
    })
}

/// Returns the directories of roots with more of them, each once.
fn with(starts: Vec<String>, more: impl Iterator<Item = String>) -> Vec<String> {
    starts.into_iter().chain(more).collect::<BTreeSet<String>>().into_iter().collect()
}

fn walk(workspace: &Workspace, tree: SharedTree, starts: &[String], remotes: Option<&mut dyn Remotes>) -> Explored {
    let config = &workspace.config;
    let missing = |path: &str| config.may_be_missing(path);
    // What is not locked is no error where the configuration says so, and a commit resolves nothing.
    let level = config.level(Rule::RemoteReference, Severity::Error);
    let lock = workspace.lock.as_deref();
    let keeps = |wanted: &RemoteRef| {
        let locked = lock.and_then(|lock| wanted.locked(lock));
        wanted.unlocked(locked).is_some()
    };
    let is_commit = matches!(workspace.files, Files::Commit { .. });
    let options = graph::Options {
        keeps: (is_commit && level != Some(Severity::Error)).then_some(&keeps),
        load_restrictor: config.load_restrictor,
        leave_missing: Some(&missing),
        leave: Some(config),
        ..graph::Options::default()
    };
    graph::explore(Source { tree, ..workspace.source() }, starts, remotes, &options)
}

/// Walks the tree as it will be, from every starting point, without a network.
fn walk_after(workspace: &Workspace, tree: &SharedTree, starts: &[String], localized: &Localized) -> Result<Explored> {
    let mut after = OverlayTree::new(tree.clone());
    for (place, (file, _)) in &localized.files {
        after.file(place, &file.bytes, file.executable);
    }
    // Where the configuration leaves out every root, those that are named are all there are.
    let all = match workspace.starts(&[]) {
        Err(_) if !starts.is_empty() => Vec::new(),
        all => all?,
    };
    let starts = with(all, starts.iter().cloned());
    Ok(walk(workspace, Rc::new(after), &starts, None))
}

/// Refuses what could not be followed: anything remote, and where targets are named, anything.
fn refuse(troubles: &Troubles, is_named: bool) -> Result<(), Failures> {
    let local = troubles.local.iter().filter(|_| is_named);
    let mut failures: Vec<Failure> = troubles.remote.iter().chain(local).cloned().collect();
    failures.sort_by(|one, other| one.location.cmp(&other.location));
    if failures.is_empty() { Ok(()) } else { Err(Failures(failures)) }
}

/// Places and edits what was walked.
fn localized(
    workspace: &Workspace,
    graph: &Graph,
    roots: &[RootId],
    turned: &TurnedBack,
) -> Result<Localized, Failures> {
    let tree = own_tree(workspace);
    let is_empty = |place: &str| match &workspace.files {
        // git knows nothing about a directory without files.
        Files::WorkingTree { top, .. } => {
            let directory: PathBuf = top.join(place);
            directory.read_dir().is_ok_and(|mut entries| entries.next().is_none())
        }
        Files::Commit { .. } | Files::Disk { .. } | Files::Tree(_) => false,
    };
    // Left by a run that was undone with `git restore`, which leaves new files. Its contents are still not overwritten, as
    // no lock lists them.
    let is_left_of_us = |place: &str| {
        let attributes = path::join(place, ".gitattributes");
        matches!(tree.entry(&attributes), Ok(Some(Entry::File { .. })))
            && tree.read(&attributes).is_ok_and(|bytes| bytes == GITATTRIBUTES.as_bytes())
    };
    let rules = Rules {
        owned: &|place| workspace.owns(place) || is_empty(place) || is_left_of_us(place),
        trusted: &|path| workspace.config.trusts(path),
        licenses: !workspace.config.no_licenses,
        stays: Some(Stays { tree, turned: &turned.files }),
    };
    localize(graph, roots, &rules)
}

/// Returns the localized files of the lock that stay as they are: those that are used as files of the tree, that what
/// could not be read may use, or that lie beside a root which was not localized now.
fn kept<'a>(
    workspace: &Workspace,
    held: &'a Lock,
    localized: &Localized,
    after: &Explored,
) -> Result<Vec<&'a StoredFile>> {
    let graph = &after.graph;
    let used: BTreeSet<&str> = graph.own_paths().collect();
    let charts = graph.charts.iter().filter_map(|chart| match &chart.place {
        Place::There(path) => Some(path.clone()),
        _ => None,
    });
    let missing = after.troubles.iter().filter_map(|trouble| match &trouble.kind {
        TroubleKind::Missing { path, .. } => Some(path.clone()),
        TroubleKind::NoKustomization { directory, .. } => Some(directory.clone()),
        _ => None,
    });
    let whole: Vec<String> = charts.chain(missing).collect();
    let is_refused = after.troubles.iter().any(|trouble| trouble.kind == TroubleKind::Refused);
    let is_unread = is_refused || !Troubles::of(workspace, after)?.unread.is_empty();
    let roots = workspace.kustomizations()?.roots();
    let is_kept = |file: &&StoredFile| {
        let beside = home(&file.path).map(path::parent);
        is_unread
            || used.contains(file.path.as_str())
            || whole.iter().any(|path| path::is_in(&file.path, path))
            || beside.is_some_and(|root| roots.contains(root) && !localized.placed.contains(root))
    };
    let new: Vec<&StoredFile> = ours(held).filter(|file| !localized.files.contains_key(&file.path)).collect();
    let mut kept: Vec<&StoredFile> = new.iter().copied().filter(is_kept).collect();
    // With the licences of what they are from.
    let remotes: BTreeSet<Option<&String>> = kept.iter().map(|file| file.remote.as_ref()).collect();
    let is_license = |file: &StoredFile| {
        file.remote.is_some() && license::covered(&file.path).is_some() && remotes.contains(&file.remote.as_ref())
    };
    if !workspace.config.no_licenses {
        kept.extend(new.into_iter().filter(|file| !is_kept(file) && is_license(file)));
    }
    Ok(kept)
}

/// Refuses files that stay beside a root that was localized where nothing tells what they are now: they are not as the
/// lock says, or what they are from was resolved again.
fn refuse_unknown(
    kept: &[&StoredFile],
    on_disk: &OnDisk<'_>,
    localized: &Localized,
    held: &Lock,
    lock: &Lock,
) -> Result<()> {
    let digest =
        |lock: &Lock, label: &str| lock.remotes.iter().find(|remote| remote.label() == label).map(Remote::digest);
    let is_unknown = |file: &&&StoredFile| {
        let is_beside = home(&file.path).is_some_and(|home| localized.placed.contains(path::parent(home)));
        let is_edited = on_disk.edited.iter().any(|edited| edited.path == file.path);
        let is_moved = file.remote.as_ref().is_some_and(|label| digest(held, label) != digest(lock, label));
        is_beside && (is_edited || is_moved)
    };
    let unknown: Vec<String> = kept.iter().filter(is_unknown).map(|file| file.path.clone()).collect();
    if unknown.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!(
        "localized files are referenced by themselves, and nothing tells what they are now: {}",
        listed(&unknown)
    ))
    .hint("write a URL in place of the reference that leads there, stage that, and run it again"))
}

/// Returns the lock that the tree has afterwards.
fn relocked(
    workspace: &Workspace,
    held: &Lock,
    files: Vec<StoredFile>,
    localized: &Localized,
    after: &Explored,
    options: &Options,
    keep: bool,
) -> Result<Lock> {
    let before = Lock { files, ..held.clone() };
    let named = lock::still_named(&after.graph, &before).into_keys().collect();
    let mut lock = lock::merged(&before, localized.remotes.clone(), &named, &BTreeSet::new(), keep);
    lock::leave(&mut lock, &after.graph, None, &workspace.config, &localized.remotes);
    if options.trailers {
        lock.trailers = !lock.files.is_empty()
    } else {
        lock.written_after(held)
    }
    Ok(lock)
}

/// Returns the user's roots that reach a changed file and that no other one names: what is built to see that nothing
/// changed.
fn affected(graph: &Graph, changes: &Changes) -> Vec<Affected> {
    let beside: BTreeSet<&str> = changes.keys().filter_map(|path| home(path)).map(path::parent).collect();
    let is_touched = |file: FileId| graph.own_path(file).is_some_and(|path| changes.contains_key(path));
    let is_hit = |id: &RootId| {
        let root = &graph.roots[*id];
        root.source == 0
            && (beside.contains(root.directory.as_str())
                || graph.read_by(*id).into_iter().any(is_touched)
                || graph.charts_of(*id).iter().any(|chart| chart.archive.is_some()))
    };
    let users = graph.users();
    let reached = reach((0..graph.roots.len()).filter(is_hit), |root| users[*root].iter().copied());
    let roots = reached.into_iter().filter(|root| users[*root].is_empty());
    let affected: BTreeMap<&str, RootId> = roots.map(|root| (graph.roots[root].directory.as_str(), root)).collect();
    let affected = affected.into_iter().map(|(directory, root)| Affected {
        name: path::shown(directory).to_owned(),
        root,
        original: Original::Directory(directory.to_owned()),
        localized: directory.to_owned(),
    });
    affected.collect()
}

/// Returns what `git add` has to be given, from the top: a directory of localized files as a whole.
fn to_stage(workspace: &Workspace, changes: &Changes, localized: &Localized, lock: &Lock) -> Result<Vec<String>> {
    let Files::WorkingTree { repo, .. } = &workspace.files else {
        return Ok(Vec::new());
    };
    if changes.is_empty() {
        return Ok(Vec::new());
    }
    let tracked = repo.tracked_paths()?;
    // Left by an earlier run, and not added yet.
    let left = lock.files.iter().map(|file| file.path.as_str()).filter(|place| !tracked.contains_key(*place));
    let paths = changes.keys().map(String::as_str).chain(left);
    let paths: BTreeSet<&str> =
        paths.map(|place| home(place).or_else(|| localized.vendored(place)).unwrap_or(place)).collect();
    // `git add` fails for deleted paths that git does not track.
    let is_known = |place: &&str| {
        let is_in = |path: &str| path::is_in(path, place);
        changes.iter().any(|(path, to)| to.is_some() && is_in(path))
            || lock.files.iter().any(|file| is_in(&file.path))
            || tracked.keys().any(|path| is_in(path))
    };
    Ok(paths.into_iter().filter(is_known).map(str::to_owned).collect())
}
