//! The tip of a localized branch, and whether it still is as the program wrote it.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use gix::ObjectId;

use super::records::{self, RecordLookup, Recorded};
use super::trees::{changed_files, differences, entries, lookup};
use crate::git::{CommitId, LocalRepo, object_id};
use crate::message::failure::{Failure, Result, command};
use crate::record::{LOCK_NAME, Lock, TargetTrailer, Trailers, stored};
use crate::tree::git::GitTree;
use crate::tree::{Entry, Tree, path};

/// A NEW_DIR on a branch: a directory with a lock that names a target.
#[derive(Debug, Clone)]
pub(crate) struct NewDir {
    pub tree: ObjectId,
    pub lock: Rc<Lock>,
}

/// The tip of a localized branch.
#[derive(Debug, Clone)]
pub(crate) struct TipState {
    pub commit: String,
    /// The tree of the commit.
    pub tree: ObjectId,
    /// The record of the newest localized commit.
    pub record: Trailers,
    /// Every NEW_DIR that is not the same in the source, by path. Empty unless the branch has copies.
    pub new_dirs: BTreeMap<String, NewDir>,
    /// The lock at the top of a branch that is localized in place. `None` if it was edited by hand, and for copies.
    pub lock: Option<Rc<Lock>>,
    /// The paths that were edited by hand, sorted. An edit that the source has too does not count, because localizing
    /// again does not lose it.
    pub edited: Vec<String>,
    /// The abbreviated commits since the record, which made these edits, newest first. Empty without edits, or if the
    /// localized commit itself was rewritten.
    pub edited_by: Vec<String>,
    /// Whether nothing was edited since the record, not even what the source has, too.
    pub matches_record: bool,
}

impl TipState {
    /// Whether the entry at `path`, or a directory above it, was edited by hand.
    pub(crate) fn is_edited(&self, path: &str) -> bool {
        self.edited.iter().any(|edited| path::is_in(path, edited))
    }

    /// The edits that a commit of NEW_DIR `into` discards; empty for the repository in place. Edits in other NEW_DIRs
    /// stay.
    pub(crate) fn discarded(&self, into: &str) -> Vec<String> {
        let others = self.others(into);
        let is_elsewhere = |path: &String| others.keys().any(|other| path::is_in(path, other));
        self.edited.iter().filter(|path| !is_elsewhere(path)).cloned().collect()
    }

    /// The trees of all NEW_DIRs but `into`. They do not change.
    pub(crate) fn others(&self, into: &str) -> BTreeMap<String, ObjectId> {
        let others = self.new_dirs.iter();
        let others = others.filter(|(directory, _)| *directory != into);
        others.map(|(directory, new_dir)| (directory.clone(), new_dir.tree)).collect()
    }
}

/// The kind of content of a branch. Never two of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// The localized repository.
    InPlace,
    /// Copies in NEW_DIRs.
    Copies,
    /// The builds of the repository.
    Rendered,
}

impl Content {
    /// The kind of content that the commit of a record has.
    pub(crate) fn of(target: &TargetTrailer) -> Content {
        match target.new_dir {
            Some(_) => Content::Copies,
            None if target.rendered => Content::Rendered,
            None => Content::InPlace,
        }
    }

    /// Its name in messages.
    fn noun(self) -> &'static str {
        match self {
            Content::InPlace => "the localized repository",
            Content::Copies => "copies",
            Content::Rendered => "rendered files",
        }
    }
}

/// The differences between a tip and its record.
struct TipEdits {
    /// The paths that differ from the record.
    edited: Vec<String>,
    /// The paths that localizing writes: an edit at one of them would be lost.
    localized: Vec<String>,
}

/// Examines the tip of a localized branch. `source_tree` is the tree of the commit to be localized. Fails if the branch
/// has no record, or another kind of content than `content`.
pub(crate) fn examine(
    repo: &Rc<LocalRepo>,
    repository: &gix::Repository,
    branch: &str,
    commit: &str,
    source_tree: ObjectId,
    content: Content,
) -> Result<TipState> {
    let id =
        repo.commit(commit)?.ok_or_else(|| Failure::new(format!("the tip {commit} of `{branch}` cannot be read")))?;
    let tree = object_id(&id.tree)?;
    let recorded = newest_record(repo, repository, branch, commit)?;
    refuse_other_content(branch, &recorded.trailers.target, content)?;
    // The repository or its builds fill the whole branch, copies only their directories.
    let is_whole = content != Content::Copies;
    // First everything that differs from the record, then the part of it that localizing again would lose.
    let mut new_dirs = BTreeMap::new();
    let TipEdits { mut edited, localized } = if is_whole {
        edited_in_place(repo, repository, &recorded.trailers, tree)?
    } else {
        new_dirs = self::changed_new_dirs(repo, tree, source_tree)?;
        edited_copies(repo, repository, &recorded, tree, &new_dirs)?
    };
    let Recorded { trailers, after, .. } = recorded;
    let matches_record = edited.is_empty();
    // Localizing writes whole NEW_DIRs, so they are in `localized` already.
    let excluded = new_dirs.keys().chain(&trailers.target.new_dir).map(String::as_str).collect();
    let unlike_source = differences(repository, source_tree, tree, &excluded)?;
    edited.retain(|path| is_lost(path, &localized, &unlike_source));
    edited.sort();
    // An edited lock proves nothing about the branch, and the next run must not take digests from it.
    let is_lock_intact = is_whole && !edited.iter().any(|path| path == LOCK_NAME);
    let lock = if is_lock_intact { Lock::find(&GitTree::of_local(repo.clone(), tree)?, LOCK_NAME)? } else { None };
    // Nobody is named for edits that the source has, too.
    let edited_by = if edited.is_empty() { Vec::new() } else { after };
    let edited = without_nested(edited);
    Ok(TipState {
        commit: commit.to_owned(),
        tree,
        record: trailers,
        new_dirs,
        lock,
        edited,
        edited_by,
        matches_record,
    })
}

/// Sorted paths without those in a directory that is listed already.
fn without_nested(paths: Vec<String>) -> Vec<String> {
    let mut outermost: Vec<String> = Vec::new();
    for path in paths {
        if !outermost.iter().any(|listed| path::is_in(&path, listed)) {
            outermost.push(path);
        }
    }
    outermost
}

/// Refuses a branch with another kind of content than `expected`, because localizing would delete its files.
fn refuse_other_content(branch: &str, target: &TargetTrailer, expected: Content) -> Result<()> {
    let actual = Content::of(target);
    if actual == expected {
        return Ok(());
    }
    if actual == Content::Copies {
        return Err(holds_copies(branch, target));
    }
    let (actual, expected) = (actual.noun(), expected.noun());
    Err(Failure::new(format!("branch `{branch}` contains {actual}, not {expected}"))
        .hint(format!("commit {expected} to another branch: `--branch NAME`")))
}

/// The failure of a branch with copies, where the whole repository was to be written.
fn holds_copies(branch: &str, target: &TargetTrailer) -> Failure {
    let example = target.new_dir.as_ref().unwrap_or(&target.target);
    Failure::new(format!("branch `{branch}` contains copies, for example `{example}`"))
        .hint("commit the repository to another branch: `--branch NAME`")
        .hint(format!("or delete this one, if its copies are not in use: {}", command("git branch -D", [branch])))
}

/// The edits since the newest localized commit, or in it, in NEW_DIRs and beside them. Localizing writes the NEW_DIRs.
fn edited_copies(
    repo: &Rc<LocalRepo>,
    repository: &gix::Repository,
    Recorded { commit, trailers, .. }: &Recorded,
    tree: ObjectId,
    new_dirs: &BTreeMap<String, NewDir>,
) -> Result<TipEdits> {
    // Edits since the commit, then edits that were amended into it. The search for the record has read this commit, so
    // it is not missing.
    let recorded_tree = repo.commit(commit)?.map_or(Ok(tree), |id| object_id(&id.tree))?;
    let mut edited = edited_paths(repository, recorded_tree, tree, &BTreeSet::new())?;
    // A shallow clone may not have the source any more. Then there is nothing to compare with.
    edited.extend(differences_from_source(repo, repository, recorded_tree, trailers)?.unwrap_or_default());
    // Each NEW_DIR is compared with its own lock. For the recorded one the tree id is enough.
    for (directory, new_dir) in new_dirs {
        let is_recorded = trailers.target.new_dir.as_ref() == Some(directory);
        if is_recorded && object_id(trailers.tree.hex())? == new_dir.tree {
            continue;
        }
        let files = GitTree::of_local(repo.clone(), new_dir.tree)?;
        let edits = stored::differences(&files, "", &new_dir.lock)?;
        if is_recorded && edits.is_empty() {
            // Files and lock agree with each other, but not with the commit: the lock was edited.
            edited.push(path::join(directory, LOCK_NAME));
        }
        edited.extend(edits.iter().map(|(path, _)| path::join(directory, path)));
    }
    let localized = new_dirs.keys().chain(&trailers.target.new_dir).cloned().collect();
    Ok(TipEdits { edited, localized })
}

/// The edits by hand on a branch that is localized in place: the paths at which its tip differs from the tree that the
/// record names, and the paths that localizing writes. These are the paths at which the recorded tree differs from its
/// source, or all if this clone does not have the source.
fn edited_in_place(
    repo: &Rc<LocalRepo>,
    repository: &gix::Repository,
    trailers: &Trailers,
    tree: ObjectId,
) -> Result<TipEdits> {
    let everywhere = vec![String::new()];
    let recorded = object_id(trailers.tree.hex())?;
    if entries(repository, recorded).is_err() {
        // Not even the commit of the record has its tree, so it was rewritten.
        return Ok(TipEdits { edited: vec![LOCK_NAME.to_owned()], localized: everywhere });
    }
    let edited = edited_paths(repository, recorded, tree, &BTreeSet::new())?;
    let localized = match source_of(repo, trailers)? {
        Some(source) => differences(repository, object_id(&source.tree)?, recorded, &BTreeSet::new())?,
        None => everywhere,
    };
    Ok(TipEdits { edited, localized })
}

/// The paths at which a tip differs from another tree, without the `excluded` directories. A new directory counts by
/// its files, because the source may have them and others beside them. A removed directory is one path.
fn edited_paths(
    repository: &gix::Repository,
    old: ObjectId,
    tip: ObjectId,
    excluded: &BTreeSet<&str>,
) -> Result<Vec<String>> {
    let changed = changed_files(repository, old, tip, excluded)?.into_iter();
    // First the new and changed files, then what was removed.
    let mut edited: Vec<String> = changed.filter_map(|(path, entry)| entry.map(|_| path)).collect();
    for path in differences(repository, old, tip, excluded)? {
        if lookup(repository, tip, &path)?.is_none() {
            edited.push(path);
        }
    }
    Ok(edited)
}

/// Whether localizing the source again would lose an edit of the tip: it is at a path that localizing writes, or at
/// which the tip is `unlike_source`.
fn is_lost(path: &str, localized: &[String], unlike_source: &[String]) -> bool {
    // An edit of the user's own file is not lost if the source has it by now, after a rebase or a cherry-pick.
    let mut others = localized.iter().chain(unlike_source);
    others.any(|other| path::is_in(path, other) || path::is_in(other, path))
}

/// The newest localized commit in the history of `tip`. Fails if there is none, because a branch of another program
/// must not be overwritten, or if its record is malformed.
pub(crate) fn newest_record(
    repo: &LocalRepo,
    repository: &gix::Repository,
    branch: &str,
    tip: &str,
) -> Result<Recorded> {
    match records::newest(repository, tip, &[], |_| true)? {
        RecordLookup::Record(recorded) => Ok(*recorded),
        RecordLookup::Unreadable { failure, .. } => Err(failure),
        RecordLookup::Nothing => Err(not_ours(repo, branch)?),
    }
}

/// The failure of a branch without any record: it is not a localized branch, or a shallow clone lacks the record.
fn not_ours(repo: &LocalRepo, branch: &str) -> Result<Failure> {
    if let Some(failure) = cut_off(repo, branch)? {
        return Ok(failure);
    }
    Ok(Failure::new(format!("branch `{branch}` was not made by this tool: none of its commits has a record"))
        .hint("commit to another branch: `--branch NAME`"))
}

/// The failure of a branch without a record in a shallow clone, which may be cut off. `None` in a full clone.
pub(crate) fn cut_off(repo: &LocalRepo, branch: &str) -> Result<Option<Failure>> {
    Ok(repo.is_shallow()?.then(|| {
        Failure::new(format!("no commit of `{branch}` in this shallow clone has a record"))
            .hint("git fetch --deepen=100")
            .hint("or fetch all of it: git fetch --unshallow")
    }))
}

/// The source commit of a record. `None` if the record has none, or if this clone does not have it.
fn source_of(repo: &LocalRepo, trailers: &Trailers) -> Result<Option<CommitId>> {
    Ok(trailers.source.as_ref().map(|source| repo.commit(source.hex())).transpose()?.flatten())
}

/// The edits in a localized commit with copies, which somebody amended: the paths outside of NEW_DIRs at which its
/// `tree` differs from the source, because the program changes nothing there. If its NEW_DIR has no readable lock, also
/// that lock. `None` if this clone does not have the source.
pub(crate) fn differences_from_source(
    repo: &Rc<LocalRepo>,
    repository: &gix::Repository,
    tree: ObjectId,
    trailers: &Trailers,
) -> Result<Option<Vec<String>>> {
    let Some(source) = source_of(repo, trailers)? else { return Ok(None) };
    // NEW_DIRs are left out: the caller compares them with their own locks.
    let source = object_id(&source.tree)?;
    let new_dirs = self::changed_new_dirs(repo, tree, source)?;
    let excluded = new_dirs.keys().chain(&trailers.target.new_dir).map(String::as_str).collect();
    let mut edited = edited_paths(repository, source, tree, &excluded)?;
    // A NEW_DIR without its lock cannot be compared, so the lock counts as edited. `new_dirs` cannot tell: it lacks a
    // NEW_DIR that was merged into the source.
    if let Some(new_dir) = &trailers.target.new_dir
        && !matches!(new_dir_at(repo, tree, new_dir), Ok(Some(_)))
    {
        edited.push(path::join(new_dir, LOCK_NAME));
    }
    Ok(Some(edited))
}

/// Every NEW_DIR of a tree, by path: each outermost directory with the lock of a copy, unless it is the same in
/// `source`, the tree of the source commit.
fn changed_new_dirs(repo: &Rc<LocalRepo>, tree: ObjectId, source: ObjectId) -> Result<BTreeMap<String, NewDir>> {
    let files = GitTree::of_local(repo.clone(), tree)?;
    let mut locks = files.locks()?;
    // Shorter paths first, so that a directory comes before the directories in it.
    locks.sort_by_key(String::len);
    let mut new_dirs: BTreeMap<String, NewDir> = BTreeMap::new();
    for lock in locks {
        let directory = path::parent(&lock);
        let is_inside = path::and_above(directory).any(|above| new_dirs.contains_key(above));
        // A lock at the top is the user's own: NEW_DIR is always below the top.
        if !directory.is_empty()
            && !is_inside
            && lookup(files.repository(), tree, directory)? != lookup(files.repository(), source, directory)?
            // A lock that cannot be read was edited. Its directory is not one of these then, so callers report it.
            && let Ok(Some(new_dir)) = new_dir_at(repo, tree, directory)
        {
            new_dirs.insert(directory.to_owned(), new_dir);
        }
    }
    Ok(new_dirs)
}

/// The NEW_DIR at `directory` of a tree. `None` if there is none.
pub(crate) fn new_dir_at(repo: &Rc<LocalRepo>, tree: ObjectId, directory: &str) -> Result<Option<NewDir>> {
    let files = GitTree::of_local(repo.clone(), tree)?;
    let id = lookup(files.repository(), tree, directory)?;
    Ok(id.zip(lock_of_copy(&files, directory)?).map(|((_, tree), lock)| NewDir { tree, lock }))
}

/// The lock of a NEW_DIR. `None` if `directory` has none, or one without a target.
fn lock_of_copy(tree: &dyn Tree, directory: &str) -> Result<Option<Rc<Lock>>> {
    let lock = Lock::find(tree, &path::join(directory, LOCK_NAME))?;
    Ok(lock.filter(|lock| lock.target.is_some()))
}

/// The lock of the copy that NEW_DIR would replace; `None` if nothing is there. Fails if anything else is there than a
/// copy of the same target, or if no directory can be made there. `in_tree` names `tree` in messages: empty, or a
/// phrase that begins with a space, such as ` in the source commit`.
pub(crate) fn replaced_copy(tree: &dyn Tree, new_dir: &str, target: &str, in_tree: &str) -> Result<Option<Rc<Lock>>> {
    let shown = tree.label(new_dir);
    // Nothing above may be a file, a link or another copy.
    for directory in path::and_above(path::parent(new_dir)) {
        let (above, entry) = (tree.label(directory), tree.entry(directory)?);
        let kind = match entry {
            None => continue,
            Some(Entry::Directory) => match lock_of_copy(tree, directory)?.and_then(|lock| lock.target.clone()) {
                None => continue,
                Some(owner) => {
                    return Err(taken(format!("`{shown}` is in `{above}`, which contains `{owner}`{in_tree}")));
                }
            },
            Some(Entry::Link) => "a link",
            Some(Entry::Submodule) => "a submodule",
            Some(Entry::File { .. }) => "a file",
        };
        return Err(taken(format!("`{above}` is {kind}{in_tree}, so `{shown}` cannot be below it")));
    }
    // Only a copy of the same target may be replaced: anything else may be the work of somebody.
    if tree.entry(new_dir)?.is_none() {
        return Ok(None);
    }
    let lock = lock_of_copy(tree, new_dir)?;
    match lock.as_ref().and_then(|lock| lock.target.as_deref()) {
        Some(owner) if owner == target => Ok(lock),
        Some(owner) => Err(taken(format!("`{shown}`{in_tree} contains another target, `{owner}`"))),
        None => Err(taken(format!("`{shown}` already exists{in_tree}, and was not made by this tool"))),
    }
}

fn taken(message: String) -> Failure {
    Failure::new(message).hint("choose another NEW_DIR")
}
