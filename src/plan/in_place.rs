//! Plans localizing in place: localized files go beside the kustomization that references them, and only the reference
//! changes.
//!
//! In a working tree the result is a function of the user's files and the lock. It is made from the tree with all URLs
//! restored, whose content comes from the localized files themselves, and compared with the files on disk; files that
//! nothing uses any more are removed. In a commit, files that were localized before are ordinary files of the tree, and
//! stay.

mod restored_urls;
mod tree_changes;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::files::{LocalizedRoots, ResultFile, Rewritten, edited};
use super::placing::LayoutBuilder;
use super::result::entry;
use super::troubles::Troubles;
use super::{Changes, ComparedRoot, Plan, PlanOptions, hydrator, lock, proof, remotes};
use crate::graph::{self, At, Explored, FileId, Graph, Remotes, RootId, Survey};
use crate::message::failure::{Failure, FailureKind, Failures, Result, listed};
use crate::message::finding::{Rule, Severity};
use crate::record::stored::localized_dir;
use crate::record::{LOCK_NAME, Lock, StoredFile};
use crate::reference::Upstream;
use crate::tree::overlay::OverlayTree;
use crate::tree::{FILE_NAMES, Tree, path};
use crate::workspace::{Files, Workspace};

pub(crate) use restored_urls::{RestoredUrls, restored};

/// The roots to localize.
#[derive(Default)]
pub(crate) struct InPlaceRequest {
    /// The directories of the roots to localize. If there are none: every starting point, and every root that was
    /// localized before.
    pub targets: Vec<String>,
    /// The tree with its URLs restored, if an update changed some of them. Then only roots that were localized before
    /// are localized again.
    pub updated: Option<RestoredUrls>,
}

/// Plans localizing in place. Nothing is written.
///
/// Fails with every reference that cannot be localized, or with the files that are in the way or would be lost.
pub(crate) fn plan(
    workspace: &Workspace,
    request: InPlaceRequest,
    options: &PlanOptions,
    remotes: &mut dyn Remotes,
) -> Result<Plan, Failures> {
    workspace.refuse_foreign_lock()?;
    plan_unexplained(workspace, request, options, remotes).map_err(|failures| workspace.explain(failures))
}

/// The localized files that a lock lists. A lock comes with a pull request, so a file outside of `localized-files` is
/// never ours, although it is listed.
fn ours(old_lock: &Lock) -> impl Iterator<Item = &StoredFile> {
    old_lock.files.iter().filter(|file| localized_dir(&file.path).is_some())
}

/// The tree with the files as the user has them: on disk if there is a working tree.
fn user_tree(workspace: &Workspace) -> &dyn Tree {
    match &workspace.files {
        Files::WorkingTree { tree, .. } => &**tree,
        _ => &*workspace.tree,
    }
}

/// Localizes everything anew in memory, compares the result with the files, and returns the changes as a plan. [`plan`]
/// explains the failures.
fn plan_unexplained(
    workspace: &Workspace,
    request: InPlaceRequest,
    options: &PlanOptions,
    remotes: &mut dyn Remotes,
) -> Result<Plan, Failures> {
    let run = InPlaceRun::of(workspace, request, options)?;
    let explored = walk(workspace, &run.survey(), &run.starts, Some(remotes));
    // A root that the user named must exist. Other errors in the user's files are left to `check`.
    let missing = explored.troubles.iter().filter(|trouble| run.is_named && trouble.at == At::Nothing);
    Failures::if_any(missing.map(|trouble| trouble.failure.clone()).chain(Troubles::of(&explored).remote).collect())?;
    let graph = &explored.graph;
    let mut roots: Vec<RootId> = explored.starts.iter().flatten().copied().collect();
    roots.retain(|root| !run.is_update || run.restored_urls.roots.contains(&graph.roots[*root].directory));
    let mut user_roots = graph.reachable(roots.iter().copied());
    user_roots.retain(|root| graph.is_user_root(*root));
    let mut localized = run.localized(graph, &roots, &user_roots)?;
    // The result is walked too: that proves that each reference in its files leads to something.
    let survey = Rc::new(Survey::of(Rc::new(localized.on(OverlayTree::new(run.restored_urls.tree.clone())))));
    let after = walk_after(workspace, &survey, &run.starts)?;
    proof::assert_whole(Some(graph), &after, &localized)?;
    // From all starting points, also those that the user did not name.
    let has_unread = Troubles::of(&after).has_unread;
    let mut files = run.remaining(graph, &user_roots, &localized, &survey, has_unread)?;
    files.extend(run.stored(&localized));
    let lock = run.relocked(files, &localized, &after.graph, has_unread);
    let mut changes = tree_changes::changes(workspace, &run.old_lock, &lock, &localized, options.overwrite)?;
    if lock != run.old_lock || (workspace.lock.is_none() && !changes.is_empty()) {
        changes.insert(LOCK_NAME.to_owned(), Some(ResultFile::of(&lock)?));
    }
    changes.extend(hydrator::change(workspace, &lock)?);
    let mut findings = graph.findings.clone();
    findings.append(&mut localized.findings);
    localized.rewritten.retain(|rewritten| changes.contains_key(&rewritten.path) && !run.was_rewritten(rewritten));
    Ok(Plan {
        affected: compared_roots(graph, &changes, options.trailers),
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

/// One run in place, and what it starts from.
struct InPlaceRun<'a> {
    workspace: &'a Workspace,
    options: &'a PlanOptions,
    old_lock: Lock,
    /// Whether the user named the roots to localize.
    is_named: bool,
    /// Whether an update changed the URLs.
    is_update: bool,
    /// The tree in which references into localized files are URLs again, so that everything is localized in the same
    /// way.
    restored_urls: RestoredUrls,
    /// The directories in which the walk starts.
    starts: Vec<String>,
}

impl<'a> InPlaceRun<'a> {
    fn of(workspace: &'a Workspace, request: InPlaceRequest, options: &'a PlanOptions) -> Result<InPlaceRun<'a>> {
        let InPlaceRequest { targets, updated } = request;
        let old_lock = workspace.lock.as_deref().cloned().unwrap_or_default();
        let (is_named, is_update) = (!targets.is_empty(), updated.is_some());
        let restored_urls = match (updated, &workspace.files) {
            (Some(updated), _) => updated,
            (None, Files::WorkingTree { .. }) => restored(workspace, &old_lock)?,
            // In a commit, files that were localized before are ordinary files.
            (None, _) => RestoredUrls::of(workspace.tree.clone()),
        };
        let starts = if is_named { targets } else { united(starts_on_disk(workspace)?, &restored_urls.roots) };
        Ok(InPlaceRun { workspace, options, old_lock, is_named, is_update, restored_urls, starts })
    }

    /// The survey of the tree with its URLs restored: that of the workspace if there were none to restore.
    fn survey(&self) -> Rc<Survey> {
        if self.restored_urls.files.is_empty() {
            return self.workspace.survey().clone();
        }
        Rc::new(Survey::of(self.restored_urls.tree.clone()))
    }

    /// Localizes `roots`. The result also has those files of `user_roots`, the user's roots that they reach, in which a
    /// restored URL stays: in the tree they still have the path of a localized file, which may go.
    fn localized(
        &self,
        graph: &Graph,
        roots: &[RootId],
        user_roots: &BTreeSet<RootId>,
    ) -> Result<LocalizedRoots, Failures> {
        let mut builder = LayoutBuilder::new(graph, &self.workspace.config);
        builder.in_place = true;
        let mut localized = builder.localize(roots, &self.old_lock)?;
        let files = user_roots.iter().flat_map(|root| graph.roots[*root].files());
        let walked: BTreeSet<&str> = files.filter_map(|file| graph.user_path(file)).collect();
        // Localizing rewrites most of these files again. The others are written with their restored URLs. Files of
        // roots that are not localized now keep their paths into localized files.
        for path in self.restored_urls.files.iter().filter(|path| walked.contains(path.as_str())) {
            if localized.local_files.insert(path.clone()) {
                let file = edited(&*self.restored_urls.tree, path, &[])?;
                let entry = entry(path, &file);
                localized.files.insert(path.clone(), (file, entry));
            }
        }
        Ok(localized)
    }

    /// The localized files of earlier runs that this run did not make again, and that stay in the lock because
    /// something may still use them: in a commit all. `survey` is that of the result.
    fn remaining(
        &self,
        graph: &Graph,
        user_roots: &BTreeSet<RootId>,
        localized: &LocalizedRoots,
        survey: &Survey,
        has_unread: bool,
    ) -> Result<Vec<StoredFile>> {
        let mut others: Vec<StoredFile> = ours(&self.old_lock).cloned().collect();
        others.retain(|file| !localized.files.contains_key(&file.path));
        let Files::WorkingTree { tree, .. } = &self.workspace.files else { return Ok(others) };
        // A root that the configuration excludes is not localized, but builds with the files that it names.
        let all_roots: Vec<String> = self.workspace.roots()?.into_iter().map(str::to_owned).collect();
        // Without an update, the files that an unread file may use are not old, and stay.
        refuse_unclear(&others, &survey.walk(&all_roots), has_unread && self.is_update)?;
        if has_unread {
            return Ok(others);
        }
        // The others are removed: the roots beside which they are were localized again, and did not make them. Only
        // files that a sparse checkout leaves out, and those beside roots that the user did not name, are not touched.
        let directories: BTreeSet<&str> = user_roots.iter().map(|root| &*graph.roots[*root].directory).collect();
        let is_beside_root =
            |path: &str| localized_dir(path).is_some_and(|home| directories.contains(path::parent(home)));
        others.retain(|file| tree.is_left_out(&file.path) || (self.is_named && !is_beside_root(&file.path)));
        Ok(others)
    }

    /// The files of the result that the lock lists. In a working tree a chart belongs to the user afterwards, so it is
    /// not listed. On a branch it is, so that later runs take the chart from there, also if upstream changes it.
    fn stored<'l>(&self, localized: &'l LocalizedRoots) -> impl Iterator<Item = StoredFile> + use<'l> {
        let has_charts = self.options.trailers;
        let stored = localized.files.iter().filter(move |(path, _)| {
            localized.is_fetched(path) && (has_charts || localized.vendored_directory(path).is_none())
        });
        stored.map(|(_, (_, entry))| entry.clone())
    }

    /// The lock of the resulting tree. `files` are the stored files that it lists, and `after` is the graph of that
    /// tree. With `has_unread`, a file of the user could not be read.
    fn relocked(&self, files: Vec<StoredFile>, localized: &LocalizedRoots, after: &Graph, has_unread: bool) -> Lock {
        let (config, old_lock) = (&self.workspace.config, &self.old_lock);
        let before = Lock { files, ..old_lock.clone() };
        let user_remotes = remotes::user_remotes(after, config, old_lock);
        // The files of the user no longer name what was just localized, but the lock must still say where it came from.
        // An unread file may name anything in the lock, so then everything stays.
        let mut user_remotes = lock::keep_locked(user_remotes, &before, has_unread);
        let fetched = localized.remotes.iter();
        let fetched = fetched.flat_map(|(source, pinned)| pinned.paths.keys().map(|path| source.at(path)));
        user_remotes.to_localize.extend(fetched);
        // An upstream that was localized stays so, whatever an exception says.
        let exception = |upstream: &Upstream| lock::excepted(config, upstream).filter(|_| !old_lock.holds(upstream));
        // No source keeps its old entry in any case: a reference that could not be resolved has ended the run.
        let mut lock = lock::reachable_lock(&before, &localized.remotes, &BTreeSet::new(), &user_remotes, &exception);
        // On a branch the commit has trailers, which the lock claims only for localized files: without any it is as
        // people commit it. A lock in a working tree must not claim them.
        if self.options.trailers {
            lock.trailers = !lock.files.is_empty()
        } else {
            lock.written_after(old_lock)
        }
        lock
    }

    /// Whether a reference was localized before and got the same text again, so that it is not reported.
    fn was_rewritten(&self, Rewritten { path, location, to, .. }: &Rewritten) -> bool {
        self.restored_urls.references.contains(&(path.clone(), location.field.clone(), to.clone()))
    }
}

/// Refuses to go on if the resulting tree uses some of `others`, the localized files that were not made again: they
/// would be old. With `has_unread`, a file that could not be read may use any of them, so each of them is refused.
fn refuse_unclear(others: &[StoredFile], after: &Graph, has_unread: bool) -> Result<()> {
    let used: BTreeSet<&str> = after.user_paths().collect();
    let paths = others.iter().map(|file| file.path.as_str()).filter(|path| has_unread || used.contains(path));
    let paths: Vec<String> = paths.map(str::to_owned).collect();
    if paths.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!(
        "these localized files cannot be refreshed: no locked URL leads to them: {}",
        listed(&paths)
    ))
    .hint("replace the reference that leads there with a URL, and fix the findings of `git kustomize-localize check`"))
}

/// The directories in which a walk that localizes everything starts. Those that a sparse checkout leaves out are
/// skipped, because git does not stage them.
fn starts_on_disk(workspace: &Workspace) -> Result<Vec<String>> {
    let mut starts = super::starts(workspace)?;
    if let Files::WorkingTree { tree, .. } = &workspace.files {
        starts.retain(|root| !FILE_NAMES.iter().any(|name| tree.is_left_out(&path::join(root, name))));
    }
    Ok(starts)
}

/// The directories of roots with more of them, each once, sorted.
fn united<'a>(starts: Vec<String>, more: impl IntoIterator<Item = &'a String>) -> Vec<String> {
    starts.into_iter().chain(more.into_iter().cloned()).collect::<BTreeSet<String>>().into_iter().collect()
}

/// Walks a tree from `starts`. Without `remotes` nothing is fetched.
fn walk(workspace: &Workspace, survey: &Survey, starts: &[String], remotes: Option<&mut dyn Remotes>) -> Explored {
    // A reference that is not locked is not an error if the configuration says so, because localizing a commit resolves
    // nothing.
    let level = workspace.config.level(Rule::RemoteReference, Severity::Error);
    let keeps_remote =
        matches!(workspace.files, Files::Commit { .. } | Files::Tree(_)) && level != Some(Severity::Error);
    let policy = graph::WalkPolicy { lock: workspace.lock.as_deref(), keeps_remote, ..graph::WalkPolicy::default() };
    lock::explore(workspace, survey, starts, remotes, policy)
}

/// Walks the resulting tree from every starting point, without a network.
fn walk_after(workspace: &Workspace, survey: &Survey, starts: &[String]) -> Result<Explored> {
    // If the configuration excludes every root, only the named ones are walked.
    let directories = match super::starts(workspace) {
        Err(failure) if failure.kind == FailureKind::Excluded && !starts.is_empty() => Vec::new(),
        directories => directories?,
    };
    let starts = united(directories, starts);
    Ok(walk(workspace, survey, &starts, None))
}

/// The top roots of the user that reach a changed file, or with `with_unchanged` all top roots. They are built to see
/// that the output is the same and that nothing is fetched. Without a referrer none is in a cycle, which kustomize
/// would not build.
fn compared_roots(graph: &Graph, changes: &Changes, with_unchanged: bool) -> Vec<ComparedRoot> {
    // A root changes if one of its files does, if files are localized beside it, or if a chart was pulled for it.
    let beside: BTreeSet<&str> = changes.keys().filter_map(|path| localized_dir(path)).map(path::parent).collect();
    let referrers = graph.referrers();
    let changed = graph.leading_to(graph.root_ids().filter(|id: &RootId| {
        let mut paths = graph.files_of_build(*id).into_iter().filter_map(|file: FileId| graph.user_path(file));
        graph.is_user_root(*id)
            && (beside.contains(graph.roots[*id].directory.as_str())
                || paths.any(|path| changes.contains_key(path))
                || graph.charts_of(*id).iter().any(|chart| chart.archive.is_some()))
    }));
    // By directory, so that the order is the same in each run.
    let roots = BTreeMap::from_iter(graph.user_roots()).into_values();
    let roots = roots.filter(|root| referrers[root.0].is_empty() && (changed.contains(root) || with_unchanged));
    roots.map(|root| ComparedRoot::unmoved(graph, root, changed.contains(&root))).collect()
}

/// The paths for the `git add` that the report suggests, from the top. A directory of localized files is added as a
/// whole.
fn to_stage(workspace: &Workspace, changes: &Changes, localized: &LocalizedRoots, lock: &Lock) -> Result<Vec<String>> {
    let Files::WorkingTree { tree, .. } = &workspace.files else {
        return Ok(Vec::new());
    };
    // The report is that there is nothing to do.
    if changes.is_empty() {
        return Ok(Vec::new());
    }
    // `git add` fails for deleted paths that git does not track.
    let changed = changes.iter().filter(|(path, file)| file.is_some() || tree.is_tracked(path));
    let changed = changed.map(|(path, _)| path.as_str());
    // An earlier run may have written files that were not added yet.
    let untracked = lock.files.iter().map(|file| file.path.as_str()).filter(|path| !tree.is_tracked(path));
    let paths = changed.chain(untracked);
    let paths: BTreeSet<&str> =
        paths.map(|path| localized_dir(path).or_else(|| localized.vendored_directory(path)).unwrap_or(path)).collect();
    Ok(paths.into_iter().map(str::to_owned).collect())
}
