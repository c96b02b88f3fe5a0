//! What the tip of the branch holds, and whether it still is what we made.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use gix::ObjectId;

use super::records::{self, Found, Recorded};
use super::trees::{differences, entries, lookup};
use crate::git::{CommitId, LocalRepo, object_id};
use crate::message::failure::{Failure, Result, command};
use crate::record::{LOCK_NAME, Lock, TargetTrailer, Trailers, stored};
use crate::tree::git::GitTree;
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
    match (in_place, recorded.trailers.target.into.is_none()) {
        (true, false) => return Err(holds_copies(branch, recorded.trailers.target)),
        (false, true) => {
            return Err(Failure::new(format!("branch `{branch}` contains the localized repository, not copies"))
                .hint("commit copies to another branch: `--branch NAME`"));
        }
        (true, true) | (false, false) => {}
    }
    let Recorded { commit: made, trailers, after } = recorded;
    let mut new_dirs = BTreeMap::new();
    let (mut edited, ours) = if in_place {
        edited_in_place(here, repository, &trailers, tree)?
    } else {
        new_dirs = self::new_dirs(here, tree, source_tree)?;
        edited_copies(here, repository, (&made, &trailers), tree, &new_dirs)?
    };
    let is_told = edited.is_empty();
    let apart = new_dirs.keys().chain(&trailers.target.into).map(String::as_str).collect();
    let elsewhere = differences(repository, source_tree, tree, &apart)?;
    edited.retain(|place| is_lost(place, &ours, &elsewhere));
    edited.sort();
    let is_lock = |place: &String| place == LOCK_NAME;
    let is_kept = in_place && !edited.iter().any(is_lock);
    let lock = if is_kept { Lock::at(&GitTree::of_here(here.clone(), tree)?, LOCK_NAME)? } else { None };
    let mut state = TipState {
        commit: commit.to_owned(),
        tree,
        made: trailers,
        new_dirs,
        lock,
        edited: Vec::new(),
        // None after a merge that changed nothing, or an empty commit.
        edited_by: if edited.is_empty() { Vec::new() } else { after },
        is_told,
    };
    for place in edited {
        // A path in a directory that is named already is not named again.
        if !state.is_edited(&place) {
            state.edited.push(place);
        }
    }
    Ok(state)
}

fn holds_copies(branch: &str, made: TargetTrailer) -> Failure {
    Failure::new(format!("branch `{branch}` contains copies, for example `{}`", made.into.unwrap_or(made.target)))
        .hint("commit the repository to another branch: `--branch NAME`")
        .hint(format!("or delete this one, if its copies are not in use: {}", command("git branch -D", [branch])))
}

/// Returns what was edited beside and in the NEW_DIRs since the newest localized commit, `made`, or in it; and the
/// directories where localizing made a difference.
fn edited_copies(
    here: &Rc<LocalRepo>,
    repository: &gix::Repository,
    (made, trailers): (&str, &Trailers),
    tree: ObjectId,
    new_dirs: &BTreeMap<String, NewDir>,
) -> Result<(Vec<String>, Vec<String>)> {
    let made_tree = here.commit(made)?.map_or(Ok(tree), |id| object_id(&id.tree))?;
    let mut edited = differences(repository, made_tree, tree, &BTreeSet::new())?;
    // A shallow clone may not have the source any more: then there is nothing to compare with.
    edited.extend(against_source(here, repository, made_tree, trailers)?.unwrap_or_default());
    for (directory, new_dir) in new_dirs {
        let is_recorded = trailers.target.into.as_ref() == Some(directory);
        if is_recorded && object_id(trailers.tree.hex())? == new_dir.tree {
            continue;
        }
        let files = GitTree::of_here(here.clone(), new_dir.tree)?;
        let found = stored::differences(&files, "", &new_dir.lock)?;
        if is_recorded && found.is_empty() {
            // Files and lock agree with each other, but not with the commit: the lock was edited.
            edited.push(path::join(directory, LOCK_NAME));
        }
        edited.extend(found.iter().map(|(place, _)| path::join(directory, place)));
    }
    Ok((edited, new_dirs.keys().chain(&trailers.target.into).cloned().collect()))
}

/// Returns what differs from the tree of a record, and where that differs from its source; everywhere, where that cannot
/// be told.
fn edited_in_place(
    here: &Rc<LocalRepo>,
    repository: &gix::Repository,
    trailers: &Trailers,
    tree: ObjectId,
) -> Result<(Vec<String>, Vec<String>)> {
    let everywhere = vec![String::new()];
    let recorded = object_id(trailers.tree.hex())?;
    if entries(repository, recorded).is_err() {
        // Not even the commit of that record holds its tree: it was rewritten.
        return Ok((vec![LOCK_NAME.to_owned()], everywhere));
    }
    let edited = differences(repository, recorded, tree, &BTreeSet::new())?;
    let ours = match source_of(here, trailers)? {
        Some(source) => differences(repository, object_id(&source.tree)?, recorded, &BTreeSet::new())?,
        None => everywhere,
    };
    Ok((edited, ours))
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
    Ok(Failure::new(format!("branch `{branch}` was not made by this tool: none of its commits has a record"))
        .hint("commit to another branch: `--branch NAME`"))
}

/// Explains why no commit of a branch holds a record, if that is because of what was fetched of it.
pub(crate) fn cut_off(here: &LocalRepo, branch: &str) -> Result<Option<Failure>> {
    let failure = || {
        Failure::new(format!("no commit of `{branch}` in this shallow clone has a record"))
            .hint("git fetch --deepen=100")
            .hint("or fetch all of it: git fetch --unshallow")
    };
    Ok(here.is_shallow()?.then(failure))
}

/// Returns the source that a record names; `None` if it names none, or if that is not here.
fn source_of(here: &LocalRepo, trailers: &Trailers) -> Result<Option<CommitId>> {
    Ok(trailers.source.as_ref().map(|source| here.commit(source.hex())).transpose()?.flatten())
}

/// Returns the paths of a localized commit, with the `tree`, that are neither those of its source nor in a NEW_DIR, and
/// its own NEW_DIR if that has no lock; none where its source is not here.
pub(crate) fn against_source(
    here: &Rc<LocalRepo>,
    repository: &gix::Repository,
    tree: ObjectId,
    trailers: &Trailers,
) -> Result<Option<Vec<String>>> {
    let Some(source) = source_of(here, trailers)? else { return Ok(None) };
    let source = object_id(&source.tree)?;
    let owned = new_dirs(here, tree, source)?;
    let apart = owned.keys().chain(&trailers.target.into).map(String::as_str).collect();
    let mut edited = differences(repository, source, tree, &apart)?;
    if let Some(into) = &trailers.target.into
        && !owned.contains_key(into)
    {
        edited.push(path::join(into, LOCK_NAME));
    }
    Ok(Some(edited))
}

/// Finds every directory with a lock that names a target. Those that `source` (a tree) holds in the same state are left
/// out.
fn new_dirs(here: &Rc<LocalRepo>, tree: ObjectId, source: ObjectId) -> Result<BTreeMap<String, NewDir>> {
    let files = GitTree::of_here(here.clone(), tree)?;
    let mut locks = files.locks()?;
    // A directory comes before what is in it.
    locks.sort_by_key(String::len);
    let mut found: BTreeMap<String, NewDir> = BTreeMap::new();
    for place in locks {
        let directory = path::parent(&place);
        let is_inside = path::and_above(directory).any(|above| found.contains_key(above));
        if !directory.is_empty()
            && !is_inside
            && lookup(files.repository(), tree, directory)? != lookup(files.repository(), source, directory)?
            // A lock that cannot be read was edited: its directory is then reported as a difference.
            && let Ok(Some(new_dir)) = new_dir_at(here, tree, directory)
        {
            found.insert(directory.to_owned(), new_dir);
        }
    }
    Ok(found)
}

/// Returns the NEW_DIR that a tree holds at `directory`, if there is one.
pub(crate) fn new_dir_at(here: &Rc<LocalRepo>, tree: ObjectId, directory: &str) -> Result<Option<NewDir>> {
    let files = GitTree::of_here(here.clone(), tree)?;
    let id = lookup(files.repository(), tree, directory)?;
    Ok(id.zip(lock_of(&files, directory)?).map(|((_, tree), lock)| NewDir { tree, lock }))
}

/// Returns the lock of a directory, if it is that of a NEW_DIR.
fn lock_of(tree: &dyn Tree, directory: &str) -> Result<Option<Rc<Lock>>> {
    let lock = Lock::at(tree, &path::join(directory, LOCK_NAME))?;
    Ok(lock.filter(|lock| lock.target.is_some()))
}

/// Refuses to write NEW_DIR where something else is: only a lock of the same target may be there, which it returns. `tree`
/// is `in_whose`.
pub(crate) fn claim(tree: &dyn Tree, new_dir: &str, target: &str, in_whose: &str) -> Result<Option<Rc<Lock>>> {
    let shown = tree.label(new_dir);
    let refused = |message: String| Err(Failure::new(message).hint("choose another NEW_DIR"));
    for place in path::and_above(path::parent(new_dir)) {
        let (above, entry) = (tree.label(place), tree.entry(place)?);
        let kind = match entry {
            None => continue,
            Some(Entry::Directory) => match lock_of(tree, place)?.and_then(|lock| lock.target.clone()) {
                None => continue,
                Some(owner) => {
                    return refused(format!("`{shown}` is in `{above}`, which contains `{owner}`{in_whose}"));
                }
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
        Some(owner) => refused(format!("`{shown}`{in_whose} contains another target, `{owner}`")),
        None => refused(format!("`{shown}` already exists{in_whose}, and was not made by this tool")),
    }
}
