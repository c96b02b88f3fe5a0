//! What the tip of the branch holds, and whether it still is what we made.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use gix::ObjectId;

use super::records::{self, Found, Recorded};
use super::trees::{differences, entries, lookup};
use crate::git::LocalRepo;
use crate::message::failure::{Failure, Result, command};
use crate::record::{LOCK_NAME, Lock, TargetTrailer, Trailers, stored};
use crate::tree::git::{GitTree, object_id};
use crate::tree::{Entry, Tree, path};

/// A directory with a lock.
#[derive(Debug, Clone)]
pub(crate) struct NewDir {
    pub tree: ObjectId,
    pub lock: Rc<Lock>,
}

/// The tip of a branch.
#[derive(Debug, Clone)]
pub(crate) struct TipState {
    pub commit: String,
    /// The tree of that commit.
    pub tree: ObjectId,
    /// The record of the newest localized commit.
    pub made: Trailers,
    /// What it holds beyond the source: every NEW_DIR by its path. None of a branch that is localized in place.
    pub new_dirs: BTreeMap<String, NewDir>,
    /// The lock at the top of a branch that is localized in place, unless it was edited by hand.
    pub lock: Option<Rc<Lock>>,
    /// The paths that were edited by hand, sorted: not those where the source is the same by now, so that nothing is
    /// lost.
    pub edited: Vec<String>,
    /// The commits (abbreviated) that did it, newest first; empty if a localized commit was rewritten.
    pub edited_by: Vec<String>,
    /// Whether the record describes what the tip holds, also where nothing would be lost.
    pub is_told: bool,
}

impl TipState {
    /// Returns whether the entry at `place`, or a directory above it, was edited by hand.
    pub(crate) fn is_edited(&self, place: &str) -> bool {
        self.edited.iter().any(|edited| path::is_in(place, edited))
    }

    /// Returns the trees of the other NEW_DIRs, which do not change.
    pub(crate) fn others(&self, into: &str) -> BTreeMap<String, ObjectId> {
        let others = self.new_dirs.iter();
        let others = others.filter(|(directory, _)| *directory != into);
        others.map(|(directory, new_dir)| (directory.clone(), new_dir.tree)).collect()
    }
}

/// Examines the tip of a localized branch. `source_tree` is the tree of the commit to be localized, `in_place` what the
/// branch has to hold: the repository localized in place, or copies.
pub(crate) fn examine(
    here: &Rc<LocalRepo>,
    repository: &gix::Repository,
    branch: &str,
    commit: &str,
    source_tree: ObjectId,
    in_place: bool,
) -> Result<TipState> {
    let id =
        here.commit(commit)?.ok_or_else(|| Failure::new(format!("the tip {commit} of `{branch}` cannot be read")))?;
    let tree = object_id(&id.tree)?;
    let recorded = newest(here, repository, branch, commit)?;
    match (in_place, recorded.trailers.target.in_place) {
        (true, false) => return Err(holds_copies(branch, recorded.trailers.target)),
        (false, true) => {
            return Err(Failure::new(format!(
                "branch `{branch}` holds the repository, localized where it stands, and no copies"
            ))
            .hint("commit copies to another branch: `--branch NAME`"));
        }
        (true, true) | (false, false) => {}
    }
    let state = TipState {
        commit: commit.to_owned(),
        tree,
        made: recorded.trailers,
        new_dirs: BTreeMap::new(),
        lock: None,
        edited: Vec::new(),
        edited_by: recorded.after,
        is_told: true,
    };
    let mut state = if in_place {
        compared_in_place(here, repository, state, &recorded.commit, source_tree)?
    } else {
        compared_copies(here, repository, state, &recorded.commit, source_tree)?
    };
    if state.edited.is_empty() {
        // A merge that changed nothing, or an empty commit.
        state.edited_by.clear();
    }
    Ok(state)
}

fn holds_copies(branch: &str, made: TargetTrailer) -> Failure {
    Failure::new(format!("branch `{branch}` holds copies, for example `{}`", made.into.unwrap_or(made.target)))
        .hint("commit the repository to another branch: `--branch NAME`")
        .hint(format!("or begin this one again, if the copies are not in use: {}", command("git branch -D", [branch])))
}

/// Finds the NEW_DIRs, and what was edited. `made` is the newest localized commit.
fn compared_copies(
    here: &Rc<LocalRepo>,
    repository: &gix::Repository,
    mut state: TipState,
    made: &str,
    source_tree: ObjectId,
) -> Result<TipState> {
    let (tree, trailers) = (state.tree, &state.made);
    let made_tree =
        if made == state.commit { tree } else { here.commit(made)?.map_or(Ok(tree), |id| object_id(&id.tree))? };
    let mut edited = differences(repository, made_tree, tree, &BTreeSet::new())?;
    if edited.is_empty() {
        state.edited_by.clear();
    }
    state.new_dirs = new_dirs(here, repository, tree, Some(source_tree))?;
    // A shallow clone may not have the source any more: then there is nothing to compare with.
    edited.extend(against_source(here, repository, made_tree, trailers)?.unwrap_or_default());
    for (directory, new_dir) in &state.new_dirs {
        let recorded = recorded_tree(trailers, directory);
        if recorded == Some(new_dir.tree) {
            continue;
        }
        let paths = against_lock(here, new_dir, directory)?;
        if recorded.is_some() && paths.is_empty() {
            // Files and lock agree with each other, but not with the commit: the lock was edited.
            edited.push(path::join(directory, LOCK_NAME));
        }
        edited.extend(paths);
    }
    let new_dirs = state.new_dirs.keys().chain(&trailers.target.into);
    let ours: Vec<String> = new_dirs.cloned().collect();
    let apart = ours.iter().map(String::as_str).collect();
    let elsewhere = differences(repository, source_tree, tree, &apart)?;
    let found = edited.len();
    edited.retain(|place| is_lost(place, &ours, &elsewhere));
    state.is_told = edited.len() == found;
    edited.sort();
    for place in edited {
        // A path in a directory that is named already is not named again.
        if !state.is_edited(&place) {
            state.edited.push(place);
        }
    }
    Ok(state)
}

/// Finds the lock, and what was edited. `made` is the newest localized commit.
fn compared_in_place(
    here: &Rc<LocalRepo>,
    repository: &gix::Repository,
    mut state: TipState,
    made: &str,
    source_tree: ObjectId,
) -> Result<TipState> {
    let (tree, trailers) = (state.tree, &state.made);
    let recorded = object_id(trailers.tree.hex())?;
    let none = BTreeSet::new();
    let mut edited = match entries(repository, recorded) {
        Ok(_) => differences(repository, recorded, tree, &none)?,
        // Not even the commit of that record holds its tree: it was rewritten.
        Err(_) => vec![LOCK_NAME.to_owned()],
    };
    state.is_told = edited.is_empty();
    if !state.is_told
        && entries(repository, recorded).is_ok()
        && let Some(source) = &trailers.source
        && let Some(source) = here.commit(source.hex())?
    {
        let ours = differences(repository, object_id(&source.tree)?, recorded, &none)?;
        let elsewhere = differences(repository, source_tree, tree, &none)?;
        edited.retain(|place| is_lost(place, &ours, &elsewhere));
    }
    if made == state.commit {
        // Our own commit was rewritten.
        state.edited_by.clear();
    }
    edited.sort();
    if !edited.iter().any(|place| place == LOCK_NAME) {
        state.lock = Lock::at(&GitTree::of_here(here.clone(), tree)?, LOCK_NAME)?;
    }
    state.edited = edited;
    Ok(state)
}

/// Returns whether an edit of the tip is lost when the source is localized again: it is not if the file is the user's
/// and the source holds the same by now, after a rebase or when a fix was picked from there. `ours` are the paths where
/// localizing made a difference, `elsewhere` those where the tip differs from the source.
fn is_lost(place: &str, ours: &[String], elsewhere: &[String]) -> bool {
    let mut others = ours.iter().chain(elsewhere);
    others.any(|other| path::is_in(place, other) || path::is_in(other, place))
}

/// Returns the newest localized commit that a tip contains.
fn newest(here: &LocalRepo, repository: &gix::Repository, branch: &str, tip: &str) -> Result<Recorded> {
    match records::newest(repository, tip, &[], |_| true)? {
        Found::Record(recorded) => Ok(*recorded),
        Found::Unreadable { failure, .. } => Err(failure),
        Found::Nothing => Err(not_ours(here, branch)?),
    }
}

fn not_ours(here: &LocalRepo, branch: &str) -> Result<Failure> {
    if let Some(failure) = cut_off(here, branch)? {
        return Ok(failure);
    }
    Ok(Failure::new(format!("branch `{branch}` was not made by this tool: no commit of it holds a record"))
        .hint("commit to another branch: `--branch NAME`"))
}

/// Explains why no commit of a branch holds a record, if that is because of what was fetched of it.
pub(crate) fn cut_off(here: &LocalRepo, branch: &str) -> Result<Option<Failure>> {
    let failure = || {
        Failure::new(format!("no commit of `{branch}` that is in this shallow clone holds a record"))
            .hint("fetch more of it: git fetch --deepen=100")
            .hint("or all of it: git fetch --unshallow")
    };
    Ok(here.is_shallow()?.then(failure))
}

fn recorded_tree(trailers: &Trailers, directory: &str) -> Option<ObjectId> {
    let into = trailers.target.into.as_deref()?;
    (into == directory).then(|| object_id(trailers.tree.hex()).ok())?
}

/// Returns the paths of a localized commit, with the `tree`, that are neither those of its source nor in a NEW_DIR, and
/// its own NEW_DIR if that has no lock; none where its source is not here.
pub(crate) fn against_source(
    here: &Rc<LocalRepo>,
    repository: &gix::Repository,
    tree: ObjectId,
    trailers: &Trailers,
) -> Result<Option<Vec<String>>> {
    let source = trailers.source.as_ref().map(|source| here.commit(source.hex()));
    let Some(source) = source.transpose()?.flatten() else {
        return Ok(None);
    };
    let source = object_id(&source.tree)?;
    let owned = new_dirs(here, repository, tree, Some(source))?;
    let apart = owned.keys().chain(&trailers.target.into).map(String::as_str).collect();
    let mut edited = differences(repository, source, tree, &apart)?;
    if let Some(into) = &trailers.target.into
        && !owned.contains_key(into)
    {
        edited.push(path::join(into, LOCK_NAME));
    }
    Ok(Some(edited))
}

/// Returns the paths of a NEW_DIR that are not what its lock says.
fn against_lock(here: &Rc<LocalRepo>, new_dir: &NewDir, directory: &str) -> Result<Vec<String>> {
    let tree = GitTree::of_here(here.clone(), new_dir.tree)?;
    let found = stored::differences(&tree, "", &new_dir.lock)?.into_iter();
    Ok(found.map(|(place, _)| path::join(directory, &place)).collect())
}

/// Finds every directory with a lock that names a target. Directories that `known` (the tree of
/// the source) holds in the same state are skipped.
fn new_dirs(
    here: &Rc<LocalRepo>,
    repository: &gix::Repository,
    tree: ObjectId,
    known: Option<ObjectId>,
) -> Result<BTreeMap<String, NewDir>> {
    let mut found = BTreeMap::new();
    let mut todo = vec![(String::new(), tree, known)];
    while let Some((directory, tree, known)) = todo.pop() {
        if Some(tree) == known {
            continue;
        }
        let names = entries(repository, tree)?;
        if !directory.is_empty()
            && names.contains_key(LOCK_NAME.as_bytes())
            // A lock that cannot be read was edited: its directory is then reported as a difference.
            && let Ok(Some(lock)) = lock_of(&GitTree::of_here(here.clone(), tree)?, "")
        {
            let lock = Rc::new(lock);
            found.insert(directory, NewDir { tree, lock });
            continue;
        }
        let known = match known {
            Some(known) => entries(repository, known)?,
            None => BTreeMap::new(),
        };
        for (name, (mode, id)) in names {
            if mode.is_tree()
                && let Ok(text) = std::str::from_utf8(&name)
            {
                let below = known.get(&name).filter(|(mode, _)| mode.is_tree()).map(|(_, id)| *id);
                todo.push((path::join(&directory, text), id, below));
            }
        }
    }
    Ok(found)
}

/// Returns the NEW_DIR that a tree holds at `directory`, if there is one.
pub(crate) fn new_dir_at(
    here: &Rc<LocalRepo>,
    repository: &gix::Repository,
    tree: ObjectId,
    directory: &str,
) -> Result<Option<NewDir>> {
    let Some((_, id)) = lookup(repository, tree, directory)? else { return Ok(None) };
    let lock = lock_of(&GitTree::of_here(here.clone(), tree)?, directory)?;
    Ok(lock.map(|lock| NewDir { tree: id, lock: Rc::new(lock) }))
}

/// Returns the lock of a directory, if it is that of a NEW_DIR.
fn lock_of(tree: &dyn Tree, directory: &str) -> Result<Option<Lock>> {
    let place = path::join(directory, LOCK_NAME);
    if !matches!(tree.entry(&place)?, Some(Entry::File { .. })) {
        return Ok(None);
    }
    let lock = Lock::parse(&tree.read(&place)?, &tree.label(&place))?;
    Ok(lock.target.is_some().then_some(lock))
}

/// Refuses to write NEW_DIR where something else is: only a lock of the same target may be there, which it returns. `tree`
/// is `in_whose`.
pub(crate) fn claim(tree: &dyn Tree, new_dir: &str, target: &str, in_whose: &str) -> Result<Option<Lock>> {
    let shown = tree.label(new_dir);
    let refused = |message: String| Err(Failure::new(message).hint("choose another NEW_DIR"));
    for place in path::and_above(path::parent(new_dir)) {
        let (above, entry) = (tree.label(place), tree.entry(place)?);
        let kind = match entry {
            None => continue,
            Some(Entry::Directory) => match lock_of(tree, place)?.and_then(|lock| lock.target) {
                None => continue,
                Some(owner) => return refused(format!("`{shown}` lies in `{above}`, which holds `{owner}`{in_whose}")),
            },
            Some(Entry::Link) => "a link",
            Some(Entry::Submodule) => "a submodule",
            Some(Entry::File { .. }) => "a file",
        };
        return refused(format!("`{above}` is {kind}{in_whose}, so `{shown}` cannot be below it"));
    }
    if tree.entry(new_dir)?.is_none() {
        return Ok(None);
    }
    let lock = lock_of(tree, new_dir)?;
    match lock.as_ref().and_then(|lock| lock.target.as_deref()) {
        Some(owner) if owner == target => Ok(lock),
        Some(owner) => refused(format!("`{shown}`{in_whose} holds another target, `{owner}`")),
        None => refused(format!("`{shown}` is there already{in_whose}, and was not made by this tool")),
    }
}
