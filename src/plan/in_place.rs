//! Localizing where the tree stands: what was brought in goes beside the kustomization that names it,
//! and only the reference changes.
//!
//! A file that was localized before is a file of the tree like any other, and stays as long as a
//! kustomization references it. What is written is known before the first file changes.

mod again;
mod graph_check;
mod restore;
mod write_plan;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::rc::Rc;

use super::troubles::Troubles;
use super::{Affected, Change, GITATTRIBUTES, InPlace, Options, Original, Plan, Rules, Writes, hydrator, lock};
use crate::config::Config;
use crate::graph::{self, Chart, Contents, Explored, FileId, Graph, RemoteRef, Remotes, RootId, Source, Target};
use crate::message::failure::{Failure, Failures, Result, listed};
use crate::message::finding::{Rule, Severity};
use crate::record::stored::home;
use crate::record::{LOCK_NAME, Lock, StoredFile};
use crate::tree::overlay::OverlayTree;
use crate::tree::{Entry, SharedTree, Tree, path};
use crate::workspace::{Files, Workspace};

use restore::Restored;
use write_plan::WritePlan;

/// Returns whether a `localized-files` that no lock lists is ours all the same: left by a run that was undone with `git
/// restore`, which leaves new files. Its contents are still not overwritten, as they are not listed.
fn is_left_of_us(tree: &dyn Tree, directory: &str) -> bool {
    let attributes = path::join(directory, ".gitattributes");
    matches!(tree.entry(&attributes), Ok(Some(Entry::File { .. })))
        && tree.read(&attributes).is_ok_and(|bytes| bytes == GITATTRIBUTES.as_bytes())
}

/// What to localize.
#[derive(Debug, Clone, Default)]
pub(crate) struct Request {
    /// The directories of the roots to localize; every starting point when there are none.
    pub targets: Vec<String>,
    /// The labels of remotes whose localized files are brought in again. Then nothing else is localized.
    pub again: BTreeSet<String>,
}

/// Finds out what localizing in place changes. Nothing is written.
///
/// Every reference that cannot be localized; where targets are named, everything that is wrong with
/// them; files that are in the way, or would be lost.
pub(crate) fn plan(
    workspace: &Workspace,
    request: &Request,
    options: &Options,
    remotes: &mut dyn Remotes,
) -> Result<Plan, Failures> {
    plan_telling(workspace, request, options, remotes, &mut |_| {})
}

/// Returns the tree in which the user's files name by URL again what they name of the localized files from these remotes,
/// and the roots that do.
pub(crate) fn turned_back(
    workspace: &Workspace,
    held: &Lock,
    labels: &BTreeSet<String>,
) -> Result<(SharedTree, Vec<String>)> {
    let mut overlay = OverlayTree::new(workspace.tree.clone());
    let (roots, _) = again::turn_back(workspace, held, &workspace.tree, labels, &mut overlay)?;
    Ok((Rc::new(overlay), roots))
}

/// Does what [`plan`] does, and tells which files of the user the result depends on as soon as that is known.
pub(crate) fn plan_telling(
    workspace: &Workspace,
    request: &Request,
    options: &Options,
    remotes: &mut dyn Remotes,
    tell: &mut dyn FnMut(&BTreeSet<String>),
) -> Result<Plan, Failures> {
    workspace.refuse_foreign_lock()?;
    planned(workspace, request, options, remotes, tell).map_err(|failures| workspace.explain(failures))
}

fn planned(
    workspace: &Workspace,
    request: &Request,
    options: &Options,
    remotes: &mut dyn Remotes,
    tell: &mut dyn FnMut(&BTreeSet<String>),
) -> Result<Plan, Failures> {
    let empty = Rc::default();
    let held = workspace.lock.as_ref().unwrap_or(&empty);
    let mut start = Start::of(workspace, held, request, options, remotes)?;
    let walking = Walking { workspace };
    let explored = walking.walk(start.tree.clone(), &start.starts, Some(remotes), Contents::Fetched);
    let troubles = Troubles::of(workspace, &explored)?;
    refuse(&troubles, request)?;
    let graph = &explored.graph;
    let used = used(graph);
    tell(&used);
    let asked = Asked::of(request, graph);
    start.restored.files.retain(|place, _| asked.has(place));
    let in_place = localized(workspace, &start, &explored)?;
    let writes = WritePlan::new(workspace, held, &in_place.localized, workspace.config.no_licenses)?;
    writes.refuse(graph, options.overwrite)?;
    let after = walking.after(&start, &in_place)?;
    graph_check::assert_whole(graph, &after.graph, &in_place, &start.again)?;
    let kept = writes.kept(&after)?;
    refuse_lost(&kept, &start.restored, &asked, request)?;
    let trusted = writes.trusted(&kept, &start.restored, &|path| workspace.config.trusts(path))?;
    let files = stored(&writes, &kept, &trusted, held, &asked)?;
    let known: BTreeSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
    let is_gone = |file: &&StoredFile| !known.contains(file.path.as_str());
    let gone: Vec<&StoredFile> = held.files.iter().filter(is_gone).collect();
    let lock = relocked(held, &files, options, &explored, &after, &workspace.config, &troubles)?;

    let mut changes = writes.removals(&gone, options.overwrite)?;
    let mut written = rewritten_files(&kept, &start.restored, trusted);
    written.extend(writes.writes());
    if lock != **held || (workspace.lock.is_none() && !written.is_empty()) {
        changes.push(Change { path: LOCK_NAME.to_owned(), to: Some((lock.render()?.into_bytes().into(), false)) });
    }
    changes.append(&mut written);
    changes.extend(hydrator::change(workspace, &lock)?);
    let mut warnings = graph.warnings.clone();
    warnings.extend(in_place.localized.warnings.iter().cloned());
    let untrusted = in_place.localized.untrusted.iter();
    warnings.extend(untrusted.map(|program| program.warning()));
    warnings.sort();
    warnings.dedup();
    let touched: BTreeSet<&str> = changes.iter().map(|change| change.path.as_str()).collect();
    let affected = affected(graph, &touched);
    Ok(Plan {
        affected,
        rewritten: writes.rewritten(),
        writes: Writes::InPlace {
            stage: to_stage(workspace, &changes, &known, &gone, &writes)?,
            changes,
            after: Box::new(after.graph),
        },
        lock,
        warnings,
        used,
        trusted: in_place.localized.trusted,
        load_restrictor: workspace.config.load_restrictor,
        before: explored.graph,
    })
}

/// What is walked: the files of the workspace, with those that are restored, and with URLs where something is brought
/// in again.
struct Start {
    tree: SharedTree,
    /// The directories of the roots to begin with.
    starts: Vec<String>,
    restored: Restored,
    /// The labels of the remotes that are brought in again, and of those through which they were.
    again: BTreeSet<String>,
    /// The files of the user that name them by URL again.
    turned: BTreeSet<String>,
}

impl Start {
    fn of(
        workspace: &Workspace,
        held: &Lock,
        request: &Request,
        options: &Options,
        remotes: &mut dyn Remotes,
    ) -> Result<Start> {
        let mut starts = match request.targets.as_slice() {
            [] => workspace.starts(&[])?,
            targets => targets.to_vec(),
        };
        let restored = if options.overwrite {
            let edited = write_plan::edited(workspace, held)?;
            restore::restore(workspace, held, &edited, remotes)?
        } else {
            Restored::default()
        };
        let mut tree = OverlayTree::new(workspace.tree.clone());
        for (place, (bytes, executable)) in &restored.files {
            tree.file(place, bytes, *executable);
        }
        let mut tree: SharedTree = Rc::new(tree);
        let again = again::with_what_names_them(held, &request.again);
        let mut turned = BTreeSet::new();
        if !again.is_empty() {
            let mut overlay = OverlayTree::new(tree.clone());
            let (roots, files) = again::turn_back(workspace, held, &tree, &again, &mut overlay)?;
            turned = files;
            starts.extend(roots);
            starts.sort();
            starts.dedup();
            tree = Rc::new(overlay);
        }
        Ok(Start { tree, starts, restored, again, turned })
    }
}

/// How the tree is walked, before and after.
struct Walking<'a> {
    workspace: &'a Workspace,
}

impl Walking<'_> {
    fn walk(
        &self,
        tree: SharedTree,
        starts: &[String],
        remotes: Option<&mut dyn Remotes>,
        contents: Contents,
    ) -> Explored {
        let config = &self.workspace.config;
        let missing = |path: &str| config.may_be_missing(path);
        // What is not locked is no error where the configuration says so, and a commit resolves nothing.
        let level = config.level(Rule::RemoteReference, Severity::Error);
        let lock = self.workspace.lock.as_deref();
        let keeps = |wanted: &RemoteRef| {
            let locked = lock.and_then(|lock| wanted.locked(lock));
            wanted.unlocked(locked).is_some()
        };
        let is_commit = matches!(self.workspace.files, Files::Commit { .. });
        let options = graph::Options {
            keeps: (is_commit && level != Some(Severity::Error)).then_some(&keeps),
            load_restrictor: config.load_restrictor,
            leave_missing: Some(&missing),
            leave: Some(config),
            contents,
            ..graph::Options::default()
        };
        let source = Source { tree, ..self.workspace.source() };
        graph::explore(source, starts, remotes, &options)
    }

    /// Walks the tree as it will be, from every starting point, without a network.
    fn after(&self, start: &Start, in_place: &InPlace) -> Result<Explored> {
        let mut tree = OverlayTree::new(start.tree.clone());
        for (place, file) in &in_place.localized.files {
            tree.file(place, file.content.bytes(), file.executable);
        }
        // Where the configuration leaves out every root, those that are named are all there are.
        let mut starts = match self.workspace.starts(&[]) {
            Err(_) if !start.starts.is_empty() => Vec::new(),
            starts => starts?,
        };
        starts.extend(start.starts.iter().cloned());
        starts.sort();
        starts.dedup();
        Ok(self.walk(Rc::new(tree), &starts, None, Contents::Configurations))
    }
}

/// Refuses what could not be followed: anything remote, and where targets are named, anything.
fn refuse(troubles: &Troubles, request: &Request) -> Result<(), Failures> {
    let mut failures = troubles.remote.clone();
    if !request.targets.is_empty() {
        failures.extend(troubles.local.iter().cloned());
    }
    if failures.is_empty() {
        return Ok(());
    }
    failures.sort_by(|one, other| one.location.cmp(&other.location));
    Err(Failures(failures))
}

/// The roots that were requested, and what they reach; everything when none is named. Everything else is left alone,
/// also where nothing needs it any more.
struct Asked<'a>(Option<BTreeSet<&'a str>>);

impl<'a> Asked<'a> {
    fn of(request: &Request, graph: &'a Graph) -> Asked<'a> {
        Asked((!request.targets.is_empty()).then(|| {
            let roots = graph.roots.iter().filter(|root| root.source == 0);
            roots.map(|root| root.directory.as_str()).collect()
        }))
    }

    /// Returns whether a file lies beside one of the roots.
    fn has(&self, place: &str) -> bool {
        match (&self.0, home(place)) {
            (Some(asked), Some(home)) => asked.contains(path::parent(home)),
            (Some(_) | None, _) => true,
        }
    }
}

/// Places and edits what was walked.
fn localized(workspace: &Workspace, start: &Start, explored: &Explored) -> Result<InPlace, Failures> {
    let rules = Rules {
        owned: &|place| {
            // git knows nothing about a directory without files.
            let is_empty = |top: &PathBuf| {
                let entries = top.join(place).read_dir();
                entries.is_ok_and(|mut entries| entries.next().is_none())
            };
            let is_empty = match &workspace.files {
                Files::WorkingTree { top, .. } => is_empty(top),
                Files::Commit { .. } | Files::Disk { .. } | Files::Tree(_) => false,
            };
            workspace.owns(place) || is_empty || is_left_of_us(&*workspace.tree, place)
        },
        trusted: &|path| workspace.config.trusts(path),
        licenses: !workspace.config.no_licenses,
        leave: Some(&workspace.config),
    };
    // The references of a remote configuration come with it.
    let is_chosen = |from: &str, label: &str| {
        start.again.is_empty() || from.contains("://") || (start.again.contains(label) && start.turned.contains(from))
    };
    let roots: Vec<RootId> = explored.starts.iter().flatten().copied().collect();
    super::localize_in_place(&explored.graph, &roots, &rules, &is_chosen)
}

/// Refuses to go on without files that the lock lists and that cannot be found, and with those that would have to be
/// brought in again and still are in use.
fn refuse_lost(kept: &[&StoredFile], restored: &Restored, asked: &Asked<'_>, request: &Request) -> Result<()> {
    let lost: Vec<String> = kept
        .iter()
        .filter(|file| restored.lost.contains(&file.path) && asked.has(&file.path))
        .map(|file| file.path.clone())
        .collect();
    if !lost.is_empty() {
        return Err(Failure::new(format!(
            "localized files are not what the lock says, and what they were cannot be found: {}",
            listed(&lost)
        ))
        .hint("write the URL in place of the local path that leads there, stage that, and run it again"));
    }
    let is_again = |file: &&&StoredFile| {
        let label = file.remote.as_ref();
        label.is_some_and(|label| request.again.contains(label))
    };
    match kept.iter().find(is_again) {
        None => Ok(()),
        Some(file) => Err(Failure::new(format!(
            "`{}` is referenced by itself, so that it cannot be told where it would come from now",
            file.path
        ))
        .hint(
            "write a URL in place of the reference that leads there, stage that, then: git kustomize-localize vendor",
        )),
    }
}

/// Returns the localized files that the lock lists afterwards.
fn stored(
    writes: &WritePlan<'_>,
    kept: &[&StoredFile],
    trusted: &[(String, Vec<u8>)],
    held: &Lock,
    asked: &Asked<'_>,
) -> Result<Vec<StoredFile>> {
    let mut files: BTreeMap<&str, StoredFile> = kept.iter().map(|file| (file.path.as_str(), (*file).clone())).collect();
    for (place, _) in trusted {
        if let Some(file) = files.get_mut(place.as_str()) {
            file.executable = true;
            file.stripped = false;
        }
    }
    for (place, file) in writes.brought() {
        files.insert(place, file.record(place));
    }
    for file in held.files.iter().filter(|file| !asked.has(&file.path)) {
        files.entry(&file.path).or_insert_with(|| file.clone());
    }
    let files: Vec<StoredFile> = files.into_values().collect();
    refuse_case(&files)?;
    Ok(files)
}

/// Returns the lock that the tree has afterwards.
fn relocked(
    held: &Lock,
    files: &[StoredFile],
    options: &Options,
    explored: &Explored,
    after: &Explored,
    config: &Config,
    troubles: &Troubles,
) -> Result<Lock> {
    let found = super::remotes(&explored.graph)?;
    let before = Lock { files: files.to_vec(), ..held.clone() };
    let named = lock::still_named(&after.graph, &before);
    let keep = !troubles.unread.is_empty();
    let mut lock = lock::merged(&before, found, &named, &BTreeSet::new(), keep);
    lock::leave(&mut lock, &after.graph, None, config);
    if options.trailers {
        lock.trailers = !lock.files.is_empty()
    } else {
        lock.written_after(held)
    }
    Ok(lock)
}

/// Returns the changes of files that stay: those that are restored, and programs that are executable now.
fn rewritten_files(kept: &[&StoredFile], restored: &Restored, trusted: Vec<(String, Vec<u8>)>) -> Vec<Change> {
    let is_trusted = |file: &StoredFile| trusted.iter().any(|(place, _)| *place == file.path);
    let mut written: Vec<Change> = kept
        .iter()
        .filter(|file| !is_trusted(file))
        .filter_map(|file| {
            let (bytes, executable) = restored.files.get(&file.path)?;
            Some(Change { path: file.path.clone(), to: Some((bytes.as_slice().into(), *executable)) })
        })
        .collect();
    written.extend(trusted.into_iter().map(|(path, bytes)| Change { path, to: Some((bytes.into(), true)) }));
    written
}

/// Returns the files of the user that were walked.
fn used(graph: &Graph) -> BTreeSet<String> {
    graph.own_paths().map(str::to_owned).collect()
}

/// Returns the user's roots that reach a `touched` file and that no other one names: what is built to see that nothing
/// changed.
fn affected(graph: &Graph, touched: &BTreeSet<&str>) -> Vec<Affected> {
    let is_touched = |file: FileId| {
        let path = graph.own_path(file);
        path.is_some_and(|path| touched.contains(path))
    };
    let ours = |root: &RootId| graph.roots[*root].source == 0;
    let mut named_by: HashMap<RootId, Vec<RootId>> = HashMap::new();
    let mut todo = Vec::new();
    for id in (0..graph.roots.len()).filter(ours) {
        let root = &graph.roots[id];
        let is_brought = |chart: &Chart| chart.root == id && chart.brought.is_some();
        let mut hit = is_touched(root.file) || graph.charts.iter().any(is_brought);
        for edge in &root.edges {
            hit |= is_touched(edge.from);
            match edge.target {
                Target::File(file) => hit |= is_touched(file),
                Target::Root { id: named, remote } if !remote && named != id => {
                    named_by.entry(named).or_default().push(id);
                }
                _ => {}
            }
        }
        if hit {
            todo.push(id);
        }
    }
    let mut reached = BTreeSet::new();
    while let Some(root) = todo.pop() {
        if reached.insert(root) {
            todo.extend(named_by.get(&root).into_iter().flatten());
        }
    }
    reached.retain(|root| !named_by.contains_key(root));
    let mut affected: Vec<Affected> = reached
        .into_iter()
        .map(|root| {
            let directory = &graph.roots[root].directory;
            Affected {
                name: match directory.as_str() {
                    "" => ".".to_owned(),
                    directory => directory.to_owned(),
                },
                root,
                original: Original::Directory(directory.clone()),
                localized: directory.clone(),
            }
        })
        .collect();
    affected.sort_by(|one, other| one.localized.cmp(&other.localized));
    affected.dedup_by(|one, other| one.localized == other.localized);
    affected
}

/// Refuses names that are one on file systems that do not tell letter case.
fn refuse_case(files: &[StoredFile]) -> Result<()> {
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    for file in files {
        if let Some(other) = seen.insert(file.path.to_lowercase(), &file.path) {
            return Err(Failure::new(format!(
                "`{other}` and `{}` differ in letter case only, and some file systems cannot hold both",
                file.path
            ))
            .hint("write both references as URLs again: localized together they get different names"));
        }
    }
    Ok(())
}

/// Returns what `git add` has to be given, from the top: a directory of localized files as a whole.
fn to_stage(
    workspace: &Workspace,
    changes: &[Change],
    known: &BTreeSet<&str>,
    gone: &[&StoredFile],
    writes: &WritePlan<'_>,
) -> Result<Vec<String>> {
    let gone: BTreeSet<&str> = gone.iter().map(|file| file.path.as_str()).collect();
    let mut paths = BTreeSet::new();
    for change in changes {
        let path = change.path.as_str();
        let directory = home(path).filter(|_| known.contains(path) || gone.contains(path));
        let directory = directory.or_else(|| writes.vendored(path));
        paths.insert(directory.unwrap_or(path).to_owned());
    }
    let Files::WorkingTree { repo, .. } = &workspace.files else {
        return Ok(Vec::new());
    };
    if changes.is_empty() {
        return Ok(Vec::new());
    }
    let tracked = repo.tracked_paths()?;
    // Left by an earlier run, and not added yet.
    let new = known.iter().filter(|place| !tracked.contains_key(**place));
    paths.extend(new.filter_map(|place| home(place).map(str::to_owned)));
    if changes.iter().any(|change| change.to.is_none()) {
        // `git add` fails for deleted paths that git does not track.
        let is_known = |place: &String| {
            let written = |change: &Change| change.to.is_some() && path::is_in(&change.path, place);
            changes.iter().any(written)
                || known.iter().any(|path| path::is_in(path, place))
                || tracked.keys().any(|path| path::is_in(path, place))
        };
        return Ok(paths.into_iter().filter(is_known).collect());
    }
    Ok(paths.into_iter().collect())
}
