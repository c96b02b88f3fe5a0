//! Localizing where the tree stands: what was brought in goes beside the kustomization that names it, and only the
//! reference changes.
//!
//! In a working tree the result is a function of the user's files and the lock: it is made from the tree with all URLs
//! back, whose contents come from the localized files themselves, and compared with what is there; what nothing uses any
//! more goes. In a commit what was localized before is a file of the tree like any other, and stays.

mod there;
mod turned_back;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::files::{File, Localized, Rewritten, edited};
use super::result::{entry, localize};
use super::troubles::Troubles;
use super::{Affected, Changes, Options, Plan, hydrator, lock, proof, remotes};
use crate::graph::{self, At, Explored, FileId, Graph, Remotes, RootId, SourceId, Survey};
use crate::message::failure::{Failure, Failures, Result, listed};
use crate::message::finding::{Rule, Severity};
use crate::record::stored::home;
use crate::record::{LOCK_NAME, Lock, StoredFile};
use crate::reference::Upstream;
use crate::tree::overlay::OverlayTree;
use crate::tree::{FILE_NAMES, Tree, path};
use crate::workspace::{Files, Workspace};

pub(crate) use turned_back::{TurnedBack, turned_back};

/// What to localize.
#[derive(Default)]
pub(crate) struct Request {
    /// The directories of the roots to localize; every starting point, with what was localized before, when there are none.
    pub targets: Vec<String>,
    /// The tree with the URLs back, if something in it was changed. Then nothing is localized but what was before.
    pub again: Option<TurnedBack>,
}

/// Finds out what localizing in place changes. Nothing is written.
///
/// Every reference that cannot be localized; files that are in the way, or would be lost.
pub(crate) fn plan(
    workspace: &Workspace,
    request: Request,
    options: &Options,
    remotes: &mut dyn Remotes,
) -> Result<Plan, Failures> {
    workspace.refuse_foreign_lock()?;
    planned(workspace, request, options, remotes).map_err(|failures| workspace.explain(failures))
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
        _ => &*workspace.tree,
    }
}

fn planned(
    workspace: &Workspace,
    request: Request,
    options: &Options,
    remotes: &mut dyn Remotes,
) -> Result<Plan, Failures> {
    let held = workspace.lock.as_deref().cloned().unwrap_or_default();
    let Request { targets, again } = request;
    let is_update = again.is_some();
    let turned = match (again, &workspace.files) {
        (Some(again), _) => again,
        (None, Files::WorkingTree { .. }) => turned_back(workspace, &held)?,
        (None, _) => TurnedBack::of(workspace.tree.clone()),
    };
    let is_named = !targets.is_empty();
    let starts = if is_named { targets } else { with(starts_on_disk(workspace)?, &turned.roots) };
    // Where nothing is turned back, it is what was looked at before.
    let is_as_it_was = !is_update && turned.files.is_empty();
    let own = if is_as_it_was { workspace.survey() } else { &Rc::new(Survey::of(turned.tree.clone())) };
    let explored = walk(workspace, own, &starts, Some(remotes));
    let troubles = Troubles::of(&explored);
    // What is named must be there; `check` finds what else is wrong in the files of the user.
    let nowhere = explored.troubles.iter().filter(|trouble| is_named && trouble.at == At::Nothing);
    let failures: Vec<Failure> = nowhere.map(|trouble| trouble.failure.clone()).chain(troubles.remote).collect();
    if !failures.is_empty() {
        return Err(Failures(failures));
    }
    let graph = &explored.graph;
    let is_asked = |root: &RootId| !is_update || turned.roots.contains(&graph.roots[*root].directory);
    let roots: Vec<RootId> = explored.starts.iter().flatten().copied().filter(is_asked).collect();
    let placed = graph.reach(roots.iter().copied(), |_, _| true);
    let placed: BTreeSet<RootId> =
        placed.into_iter().filter(|root| graph.roots[*root].source == SourceId::FIRST).collect();
    let mut localized = localized(workspace, graph, &roots, &placed, &turned)?;
    let survey = Rc::new(Survey::of(Rc::new(localized.on(OverlayTree::new(turned.tree.clone())))));
    let after = walk_after(workspace, &survey, &starts)?;
    proof::assert_whole(Some(graph), &after, &localized)?;
    let placed: BTreeSet<&str> = placed.iter().map(|root| graph.roots[*root].directory.as_str()).collect();
    let is_beside = |file: &StoredFile| home(&file.path).is_some_and(|home| placed.contains(path::parent(home)));
    let mut kept: Vec<&StoredFile> = ours(&held).filter(|file| !localized.files.contains_key(&file.path)).collect();
    if let Files::WorkingTree { tree, .. } = &workspace.files {
        let has_unread = Troubles::of(&after).has_unread;
        refuse_unclear(&kept, &after.graph, has_unread && is_update)?;
        // What lies beside other roots than those that are named is not touched.
        kept.retain(|file| has_unread || tree.is_left_out(&file.path) || (is_named && !is_beside(file)));
    }
    let brought = localized.files.iter().filter(|(place, _)| localized.is_brought(place));
    // In a working tree a chart is the user's from then on; what lies on the branch is taken from there again.
    let is_kept = |place: &str| options.trailers || localized.vendored(place).is_none();
    let brought = brought.filter(|(place, _)| is_kept(place)).map(|(_, (_, entry))| entry);
    let files = kept.iter().copied().chain(brought).cloned().collect();
    let lock = relocked(workspace, &held, files, &localized, &after, options, troubles.has_unread)?;
    let mut changes = there::changes(workspace, &held, &lock, &localized, options.overwrite)?;
    if lock != held || (workspace.lock.is_none() && changes.values().any(Option::is_some)) {
        changes.insert(LOCK_NAME.to_owned(), Some(File::of(&lock)?));
    }
    changes.extend(hydrator::change(workspace, &lock)?);
    let mut findings = graph.findings.clone();
    findings.append(&mut localized.findings);
    let is_said =
        |one: &Rewritten| turned.said.contains(&(one.path.clone(), one.location.field.clone(), one.to.clone()));
    localized.rewritten.retain(|one| changes.contains_key(&one.path) && !is_said(one));
    Ok(Plan {
        affected: affected(graph, &changes, options.trailers),
        stage: to_stage(workspace, &changes, &localized, &lock)?,
        new_dir: None,
        changes,
        rewritten: localized.rewritten,
        lock,
        findings,
        trusted: localized.trusted,
        before: explored.graph,
        after: after.graph,
        survey: Some(survey),
    })
}

/// Returns where a walk starts that localizes everything: not what a sparse checkout leaves out, which git does not stage.
fn starts_on_disk(workspace: &Workspace) -> Result<Vec<String>> {
    let mut starts = super::starts(workspace)?;
    if let Files::WorkingTree { tree, .. } = &workspace.files {
        starts.retain(|root| !FILE_NAMES.iter().any(|name| tree.is_left_out(&path::join(root, name))));
    }
    Ok(starts)
}

/// Returns the directories of roots with more of them, each once.
fn with<'a>(starts: Vec<String>, more: impl IntoIterator<Item = &'a String>) -> Vec<String> {
    starts.into_iter().chain(more.into_iter().cloned()).collect::<BTreeSet<String>>().into_iter().collect()
}

fn walk(workspace: &Workspace, survey: &Survey, starts: &[String], remotes: Option<&mut dyn Remotes>) -> Explored {
    // What is not locked is no error where the configuration says so, and a commit resolves nothing.
    let level = workspace.config.level(Rule::RemoteReference, Severity::Error);
    let keeps = matches!(workspace.files, Files::Commit { .. } | Files::Tree(_)) && level != Some(Severity::Error);
    let more = graph::Policy { lock: workspace.lock.as_deref(), keeps, ..graph::Policy::default() };
    lock::explore(workspace, survey, starts, remotes, more)
}

/// Walks the tree as it will be, from every starting point, without a network.
fn walk_after(workspace: &Workspace, survey: &Survey, starts: &[String]) -> Result<Explored> {
    // Where the configuration leaves out every root, those that are named are all there are.
    let all = match super::starts(workspace) {
        Err(_) if !starts.is_empty() => Vec::new(),
        all => all?,
    };
    let starts = with(all, starts);
    Ok(walk(workspace, survey, &starts, None))
}

/// Places and edits what was walked, and writes the URLs that stay now where there was a path.
fn localized(
    workspace: &Workspace,
    graph: &Graph,
    roots: &[RootId],
    placed: &BTreeSet<RootId>,
    turned: &TurnedBack,
) -> Result<Localized, Failures> {
    let held = workspace.lock.as_deref().cloned().unwrap_or_default();
    let mut localized = localize(graph, roots, &workspace.config, &held, true)?;
    let roots = placed.iter().map(|root| &graph.roots[*root]);
    let files = roots.flat_map(|root| root.edges.iter().map(|edge| edge.from).chain([root.file]));
    let walked: BTreeSet<&str> = files.filter_map(|file| graph.user_path(file)).collect();
    for place in turned.files.iter().filter(|place| walked.contains(place.as_str())) {
        if localized.local_files.insert(place.clone()) {
            let file = edited(&*turned.tree, place, &[])?;
            let entry = entry(place, &file);
            localized.files.insert(place.clone(), (file, entry));
        }
    }
    Ok(localized)
}

/// Refuses to go on where localized files that were not made again are used as files of the tree, or all of them with
/// `is_any`: something could not be read that may use them, and what they are now is unknown.
fn refuse_unclear(others: &[&StoredFile], after: &Graph, is_any: bool) -> Result<()> {
    let used: BTreeSet<&str> = after.user_paths().collect();
    let places = others.iter().map(|file| file.path.as_str()).filter(|place| is_any || used.contains(place));
    let places: Vec<String> = places.map(str::to_owned).collect();
    if places.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!(
        "these localized files cannot be refreshed: no locked URL leads to them: {}",
        listed(&places)
    ))
    .hint("replace the reference that leads there with a URL, and fix the findings of `git kustomize-localize check`"))
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
    let mut own = lock::with(remotes::own(&after.graph, &workspace.config, held), &before, keep);
    let found = localized.remotes.iter();
    own.starts.extend(found.flat_map(|(source, pinned)| pinned.paths.keys().map(|path| source.at(path))));
    // What was localized is, whatever an exception says.
    let is_left = |one: &Upstream| (!held.holds(one)).then(|| lock::excepted(&workspace.config, one)).flatten();
    let mut lock = lock::joined(&before, &localized.remotes, &BTreeSet::new(), &own, &is_left);
    if options.trailers {
        lock.trailers = !lock.files.is_empty()
    } else {
        lock.written_after(held)
    }
    Ok(lock)
}

/// Returns the user's roots that reach a changed file and that no other one names, or all that no other one names: what is
/// built to see that nothing changed, and that nothing reaches out.
fn affected(graph: &Graph, changes: &Changes, all: bool) -> Vec<Affected> {
    let beside: BTreeSet<&str> = changes.keys().filter_map(|path| home(path)).map(path::parent).collect();
    let is_touched = |file: FileId| graph.user_path(file).is_some_and(|path| changes.contains_key(path));
    let is_hit = |id: &RootId| {
        let root = &graph.roots[*id];
        root.source == SourceId::FIRST
            && (beside.contains(root.directory.as_str())
                || graph.read_by(*id).into_iter().any(is_touched)
                || graph.charts_of(*id).iter().any(|chart| chart.archive.is_some()))
    };
    let users = graph.referrers();
    let changed = graph.leading_to(graph.root_ids().filter(is_hit));
    let is_built = |root: &RootId| users[root.0].is_empty() && (changed.contains(root) || all);
    let roots = graph.user_roots().into_iter().filter(|(_, root)| is_built(root));
    let affected: BTreeMap<&str, RootId> = roots.collect();
    affected.into_values().map(|root| Affected::own(graph, root, changed.contains(&root))).collect()
}

/// Returns what `git add` has to be given, from the top: a directory of localized files as a whole.
fn to_stage(workspace: &Workspace, changes: &Changes, localized: &Localized, lock: &Lock) -> Result<Vec<String>> {
    let Files::WorkingTree { tree, .. } = &workspace.files else {
        return Ok(Vec::new());
    };
    if changes.is_empty() {
        return Ok(Vec::new());
    }
    // `git add` fails for deleted paths that git does not track.
    let is_known = |(place, to): &(&String, &Option<File>)| to.is_some() || tree.is_tracked(place);
    let changed = changes.iter().filter(is_known).map(|(place, _)| place.as_str());
    // Left by an earlier run, and not added yet.
    let left = lock.files.iter().map(|file| file.path.as_str()).filter(|place| !tree.is_tracked(place));
    let whole = |place| home(place).or_else(|| localized.vendored(place)).unwrap_or(place);
    let paths: BTreeSet<&str> = changed.chain(left).map(whole).collect();
    Ok(paths.into_iter().map(str::to_owned).collect())
}
