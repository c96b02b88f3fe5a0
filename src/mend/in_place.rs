//! Localizing where the tree stands: what was brought in goes beside the kustomization that names it,
//! and only the reference changes.
//!
//! A file that was localized before is a file of the tree like any other, and stays as long as a
//! kustomization references it. What is written is known before the first file changes ([`Plan`]).

mod again;
mod graph_check;
mod restore;
mod write_plan;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::rc::Rc;

use super::{Ground, Troubles, lock};
use crate::commit::working::Change;
use crate::config::Leave;
use crate::failure::{Failure, Failures, Result};
use crate::localize::{self, GITATTRIBUTES, InPlace, Rewritten};
use crate::record::{LOCK_NAME, LoadRestrictor, Lock, StoredFile, stored};
use crate::tree::overlay::OverlayTree;
use crate::tree::{Entry, SharedTree, Tree, path};
use crate::walk::{
    self, Chart, Contents, Explored, FileId, Graph, Origin, Remotes, RootId, Source, Target,
    Warning,
};

use restore::Restored;
use write_plan::WritePlan;

/// How many paths an error names before it only counts the rest.
const NAMED: usize = 10;

/// What to localize, and how.
pub struct Request<'a> {
    /// The directories of the roots to localize; every starting point when there are none.
    pub targets: &'a [String],
    /// Which files a root may load.
    pub load_restrictor: LoadRestrictor,
    /// Says of a path that it may be missing for this run; what the configuration lets be missing always may.
    pub leave_missing: &'a dyn Fn(&str) -> bool,
    /// The globs of URLs that stay remote, besides what the configuration says.
    pub leave_remote: BTreeSet<String>,
    /// Whether charts are brought in.
    pub helm: bool,
    /// Whether the licences of what is brought in are left out.
    pub no_licenses: bool,
    /// Whether edits in localized files are discarded.
    pub overwrite: bool,
    /// Says of a path that a program from elsewhere may be executable there.
    pub trusted: &'a dyn Fn(&str) -> bool,
    /// The patterns that say so, for the lock.
    pub trust_exec: BTreeSet<String>,
    /// Makes of a pattern the command line that trusts what it matches.
    pub again_trusting: &'a dyn Fn(&str) -> String,
    /// Whether the message of the commit is going to hold the record.
    pub trailers: bool,
    /// The labels of remotes whose localized files are brought in again. Then nothing else is localized.
    pub again: BTreeSet<String>,
}

/// What localizing in place is going to change.
pub struct Plan {
    /// The changes, in their order; none when there is nothing to do.
    pub changes: Vec<Change>,
    /// The lock that the tree has afterwards.
    pub lock: Lock,
    /// The references that are rewritten.
    pub rewritten: Vec<Rewritten>,
    /// The paths to hand to `git add`: edited kustomizations, `localized-files`, the lock.
    pub paths: Vec<String>,
    /// What works but should be known.
    pub warnings: Vec<Warning>,
    /// The files from elsewhere that stay executable, because somebody trusts them.
    pub trusted: HashSet<FileId>,
    /// What was walked.
    pub before: Graph,
    /// What a walk is going to find afterwards.
    pub after: Graph,
    /// The directories of the roots that build to something else if anything went wrong: those that
    /// reach what changes, and that no other root names.
    pub affected: Vec<String>,
}

/// Says whether a `localized-files` that no lock lists is one of ours all the same: that of a run that was undone with
/// `git restore`, which leaves new files. What is in it is still not written over, as it is not listed.
fn is_left_of_us(tree: &dyn Tree, directory: &str) -> bool {
    let attributes = path::join(directory, ".gitattributes");
    matches!(tree.entry(&attributes), Ok(Some(Entry::File { .. })))
        && tree
            .read(&attributes)
            .is_ok_and(|bytes| bytes == GITATTRIBUTES.as_bytes())
}

/// Finds out what localizing in place changes. Nothing is written.
///
/// # Errors
/// Every reference that cannot be localized; where targets are named, everything that is wrong with
/// them; files that are in the way, or would be lost.
pub fn plan(
    ground: &Ground,
    request: &Request<'_>,
    remotes: &mut dyn Remotes,
) -> Result<Plan, Failures> {
    planned(ground, request, remotes).map_err(|failures| ground.explain(failures))
}

fn planned(
    ground: &Ground,
    request: &Request<'_>,
    remotes: &mut dyn Remotes,
) -> Result<Plan, Failures> {
    let mut starts = match request.targets {
        [] => ground.starts(&[])?,
        targets => targets.to_vec(),
    };
    let empty = Rc::default();
    let held = ground.lock.as_ref().unwrap_or(&empty);
    let mut restored = if request.overwrite {
        restore::restore(ground, held, &write_plan::edited(ground, held)?, remotes)?
    } else {
        Restored::default()
    };
    let mut tree = OverlayTree::new(ground.tree.clone());
    for (place, (bytes, executable)) in &restored.files {
        tree.file(place, bytes, *executable);
    }
    let mut tree: SharedTree = Rc::new(tree);
    let again = again::with_what_names_them(held, &request.again);
    let mut turned = BTreeSet::new();
    if !again.is_empty() {
        let mut overlay = OverlayTree::new(tree.clone());
        let (roots, files) = again::turn_back(ground, held, &tree, &again, &mut overlay)?;
        turned = files;
        starts.extend(roots);
        starts.sort();
        starts.dedup();
        tree = Rc::new(overlay);
    }
    let leave = Leave::new(&ground.config, &request.leave_remote)?;
    let missing = |path: &str| ground.config.missing(path, (request.leave_missing)(path));
    let options = walk::Options {
        load_restrictor: request.load_restrictor,
        leave_missing: Some(&missing),
        leave: Some(&leave),
        contents: Contents::Fetched,
        ..walk::Options::default()
    };
    let source = Source {
        tree: tree.clone(),
        ..ground.source()
    };
    let explored = walk::explore(source, &starts, Some(remotes), &options);
    let troubles = Troubles::of(ground, &explored);
    let mut failures = troubles.remote.clone();
    if !request.targets.is_empty() {
        failures.extend(troubles.local.iter().cloned());
    }
    if !failures.is_empty() {
        failures.sort_by(|one, other| one.location.cmp(&other.location));
        return Err(Failures(failures));
    }
    let graph = &explored.graph;
    // What was not asked for is left as it is, also where nothing needs it any more.
    let asked: Option<BTreeSet<&str>> = (!request.targets.is_empty()).then(|| {
        let roots = graph.roots.iter().filter(|root| root.source == 0);
        roots.map(|root| root.directory.as_str()).collect()
    });
    let is_asked = |place: &str| match (&asked, stored::home(place)) {
        (Some(asked), Some(home)) => asked.contains(path::parent(home)),
        (Some(_) | None, _) => true,
    };
    restored.files.retain(|place, _| is_asked(place));
    let roots: Vec<RootId> = explored.starts.iter().flatten().copied().collect();
    let rules = localize::Rules {
        owned: &|place| {
            // Of a directory that holds nothing git knows nothing: it is nobody's.
            let is_empty = |top: &PathBuf| {
                let entries = top.join(place).read_dir();
                entries.is_ok_and(|mut entries| entries.next().is_none())
            };
            ground.owns(place)
                || ground.top.as_ref().is_some_and(is_empty)
                || is_left_of_us(&*ground.tree, place)
        },
        trusted: request.trusted,
        licenses: !request.no_licenses,
        leave: Some(&leave),
    };
    let in_place = localize::localize_in_place(
        graph,
        &roots,
        &rules,
        &|from, label| // What a remote configuration names comes with it.
            again.is_empty()
                || from.contains("://")
                || (again.contains(label) && turned.contains(from)),
    )?;

    let ledger = WritePlan::new(ground, held, &in_place.localized, request.no_licenses)?;
    ledger.refuse(graph, request.overwrite)?;

    let after = walked(ground, tree, request, &leave, &in_place, &starts)?;
    graph_check::assert_whole(graph, &after.graph, &in_place, &again)?;
    let kept = ledger.kept(&after);
    let lost: Vec<String> = kept
        .iter()
        .filter(|file| restored.lost.contains(&file.path) && is_asked(&file.path))
        .map(|file| file.path.clone())
        .collect();
    if !lost.is_empty() {
        return Err(Failure::new(format!(
            "localized files are not what the lock says, and what they were cannot be found: {}",
            named(&lost)
        ))
        .hint("write the URL in place of the local path that leads there, stage that, and run it again")
        .into());
    }
    if let Some(file) = kept.iter().find(|file| {
        let is_again = |label: &String| request.again.contains(label);
        file.remote.as_ref().is_some_and(is_again)
    }) {
        return Err(Failure::new(format!(
            "`{}` is referenced by itself, so that it cannot be told where it would come from now",
            file.path
        ))
        .hint("write a URL in place of the reference that leads there, stage that, then: git kustomize-localize --in-place --no-commit")
        .into());
    }
    let mut files: BTreeMap<&str, StoredFile> = kept
        .iter()
        .map(|file| (file.path.as_str(), (*file).clone()))
        .collect();
    let trusted = ledger.trusted(&kept, &restored, request.trusted)?;
    for (place, _) in &trusted {
        if let Some(file) = files.get_mut(place.as_str()) {
            file.executable = true;
            file.stripped = false;
        }
    }
    for (place, file) in ledger.brought() {
        files.insert(place, file.record(place));
    }
    for file in &held.files {
        if !is_asked(&file.path) {
            files.entry(&file.path).or_insert_with(|| file.clone());
        }
    }
    let files: Vec<StoredFile> = files.into_values().collect();
    refuse_case(&files)?;
    let known: BTreeSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
    let gone: Vec<&StoredFile> = held
        .files
        .iter()
        .filter(|file| !known.contains(file.path.as_str()))
        .collect();

    let found = localize::remotes(graph)?;
    let mut before = Lock {
        files: files.clone(),
        ..(**held).clone()
    };
    before.options.helm = request.helm;
    before.options.no_licenses = request.no_licenses;
    before.options.trust_exec.clone_from(&request.trust_exec);
    let named = lock::still_named(&after.graph, &before);
    let (mut lock, unsure) = lock::merged(
        &before,
        found,
        &named,
        &BTreeSet::new(),
        !troubles.unread.is_empty(),
    );
    lock::leave(&mut lock, &after.graph, None, &leave)?;
    if request.trailers {
        lock.trailers = !lock.files.is_empty()
    } else {
        lock.written_after(held)
    }

    let mut changes = ledger.removals(&gone, request.overwrite)?;
    let mut written: Vec<Change> = kept
        .iter()
        .filter_map(|file| {
            let (bytes, executable) = restored.files.get(&file.path)?;
            Some(Change {
                path: file.path.clone(),
                to: Some((bytes.as_slice().into(), *executable)),
            })
        })
        .collect();
    written.retain(|change| !trusted.iter().any(|(place, _)| *place == change.path));
    written.extend(trusted.into_iter().map(|(path, bytes)| Change {
        path,
        to: Some((bytes.into(), true)),
    }));
    written.extend(ledger.writes());
    if lock != **held || (ground.lock.is_none() && !written.is_empty()) {
        changes.push(Change {
            path: LOCK_NAME.to_owned(),
            to: Some((lock.render()?.into_bytes().into(), false)),
        });
    }
    changes.append(&mut written);
    let mut warnings = lock::warnings(&troubles, &unsure);
    warnings.extend(graph.warnings.iter().cloned());
    warnings.extend(in_place.localized.warnings.iter().cloned());
    let untrusted = in_place.localized.untrusted.iter();
    warnings.extend(untrusted.map(|program| program.warning(request.again_trusting)));
    warnings.extend(ledger.warnings(&known, request.overwrite)?);
    warnings.sort();
    warnings.dedup();
    let touched: BTreeSet<&str> = changes.iter().map(|change| change.path.as_str()).collect();
    let affected = affected(graph, &touched);
    Ok(Plan {
        affected,
        paths: to_stage(ground, &changes, &known, &gone, &ledger)?,
        changes,
        lock,
        rewritten: ledger.rewritten(),
        warnings,
        after: after.graph,
        trusted: in_place.localized.trusted,
        before: explored.graph,
    })
}

/// Returns the directories of the user's roots that reach a `touched` file, and that no other of these roots
/// names: what is built to see that nothing changed.
fn affected(graph: &Graph, touched: &BTreeSet<&str>) -> Vec<String> {
    let is_touched = |file: FileId| match &graph.files[file].origin {
        Origin::Tree { source: 0, path } => touched.contains(path.as_str()),
        _ => false,
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
    let directories = reached
        .iter()
        .map(|root| graph.roots[*root].directory.clone());
    directories.collect::<BTreeSet<_>>().into_iter().collect()
}

/// Walks the tree as it is going to be from every starting point, with no network.
fn walked(
    ground: &Ground,
    tree: SharedTree,
    request: &Request<'_>,
    leave: &Leave<'_>,
    in_place: &InPlace,
    targets: &[String],
) -> Result<Explored> {
    let mut tree = OverlayTree::new(tree);
    for (place, file) in &in_place.localized.files {
        tree.file(place, file.content.bytes(), file.executable);
    }
    // Where the configuration leaves out every root, those that are named are all there are.
    let mut starts = match ground.starts(&[]) {
        Err(_) if !targets.is_empty() => Vec::new(),
        starts => starts?,
    };
    starts.extend(targets.iter().cloned());
    starts.sort();
    starts.dedup();
    let source = Source {
        tree: Rc::new(tree),
        ..ground.source()
    };
    let missing = |path: &str| ground.config.missing(path, (request.leave_missing)(path));
    let options = walk::Options {
        load_restrictor: request.load_restrictor,
        leave_missing: Some(&missing),
        leave: Some(leave),
        contents: Contents::Configurations,
        ..walk::Options::default()
    };
    Ok(walk::explore(source, &starts, None, &options))
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
    ground: &Ground,
    changes: &[Change],
    known: &BTreeSet<&str>,
    gone: &[&StoredFile],
    ledger: &WritePlan<'_>,
) -> Result<Vec<String>> {
    let gone: BTreeSet<&str> = gone.iter().map(|file| file.path.as_str()).collect();
    let mut paths = BTreeSet::new();
    for change in changes {
        let path = change.path.as_str();
        let home = stored::home(path).filter(|_| known.contains(path) || gone.contains(path));
        let home = home.or_else(|| ledger.vendored(path));
        paths.insert(home.unwrap_or(path).to_owned());
    }
    if changes.is_empty() || ground.top.is_none() {
        return Ok(Vec::new());
    }
    let tracked = ground.here.tracked_paths()?;
    // What an earlier run left, and nobody has added yet.
    let new = known.iter().filter(|place| !tracked.contains_key(**place));
    paths.extend(new.filter_map(|place| stored::home(place).map(str::to_owned)));
    if changes.iter().any(|change| change.to.is_none()) {
        // Of what is gone git can only be told what it knows.
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

/// Names paths in a message.
fn named(paths: &[String]) -> String {
    let mut text = paths
        .iter()
        .take(NAMED)
        .map(|path| format!("`{path}`"))
        .collect::<Vec<_>>()
        .join(", ");
    if paths.len() > NAMED {
        text.push_str(&format!(" and {} more", paths.len() - NAMED));
    }
    text
}
