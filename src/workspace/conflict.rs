//! A lock in the middle of a merge or rebase, of which git left two sides.

use std::rc::Rc;

use crate::git::LocalRepo;
use crate::kustomization::format::CONFLICT;
use crate::message::failure::{Failure, Result, command, short, stage};
use crate::record::lock::{LockConflict, Merged};
use crate::record::{LOCK_NAME, Lock};
use crate::tree::disk::DiskTree;
use crate::tree::git::GitTree;
use crate::tree::{LOCK_COMMAND, Tree as _};

/// Merges the two sides of the lock at the top, which are read from the index. `None` if the index does not have both,
/// or if the conflict is resolved on disk. Fails if the lock has conflict markers of which the index has no sides.
pub(super) fn merged(repo: &Rc<LocalRepo>, tree: &DiskTree) -> Result<Option<Merged>> {
    let [base, Some(ours), Some(theirs)] = stages(repo, tree)? else {
        refuse_markers(repo, tree)?;
        return Ok(None);
    };
    let (ours, theirs) = (side(&ours, "ours")?, side(&theirs, "theirs")?);
    // One with conflict markers cannot be parsed. Where git does not merge a file it leaves ours, so that only another
    // lock than ours shows that the user has resolved the conflict.
    let on_disk = tree.entry(LOCK_NAME)?.map(|_| tree.read(LOCK_NAME)).transpose()?;
    let on_disk = on_disk.and_then(|bytes| Lock::parse(&bytes, LOCK_NAME).ok());
    if on_disk.is_some_and(|lock| lock != ours) {
        return Ok(None);
    }
    // Without a readable base every difference counts as a change of both sides.
    let base = base.and_then(|bytes| side(&bytes, "the base").ok());
    let mut merged = Lock::merge(base.as_ref(), &ours, &theirs);
    // git has removed a file that one side removed, so the merged lock must not list it.
    let mut files = Vec::new();
    for file in std::mem::take(&mut merged.lock.files) {
        if tree.entry(&file.path)?.is_some() {
            files.push(file);
        }
    }
    merged.lock.files = files;
    Ok(Some(merged))
}

/// Fails for a lock with conflict markers that were staged or committed: its sides are only text, so they cannot be
/// merged.
fn refuse_markers(repo: &Rc<LocalRepo>, tree: &DiskTree) -> Result<()> {
    let Err(mut failure) = Lock::find(tree, LOCK_NAME) else { return Ok(()) };
    if &*failure.message != CONFLICT {
        return Err(failure);
    }
    let head = repo.commit("HEAD")?.map(|head| GitTree::of_commit(repo, &head)).transpose()?;
    let is_committed = head.is_some_and(|head| Lock::find(&head, LOCK_NAME).is_err());
    let commit = if is_committed { "HEAD^" } else { "HEAD" };
    failure.hints.clear();
    Err(failure
        .hint(format!("take a lock without markers: git checkout {commit} -- :/{LOCK_NAME}; then: {LOCK_COMMAND}")))
}

/// The failure of a source that both sides changed, with what to do.
pub(super) fn conflict_failure(conflict: &LockConflict) -> Failure {
    Failure::new(format!(
        "{}: both sides changed it: kept ours ({}), not theirs ({})",
        conflict.upstream,
        short(conflict.ours.hex()),
        short(conflict.theirs.hex())
    ))
    .hint(format!("to keep ours: {}", stage([LOCK_NAME])))
    .hint(format!("to resolve it again: {}", command("git kustomize-localize update", [conflict.upstream.to_string()])))
}

/// Reads a side. `name` is the one that the options of git have, `ours` or `theirs`; for the base, whose failure is
/// dropped, any name does.
fn side(bytes: &[u8], name: &str) -> Result<Lock> {
    let other = if name == "ours" { "theirs" } else { "ours" };
    // Both sides stay in the index until the file is staged.
    let take = format!("git checkout --{other} -- :/{LOCK_NAME} && git add -f -- :/{LOCK_NAME}");
    let hint = format!("take the other side: {take}; then: {LOCK_COMMAND}");
    Lock::parse(bytes, LOCK_NAME)
        .map_err(|failure| failure.context(format_args!("cannot read `{name}` of the lock's conflict")).hint(hint))
}

/// The versions of the lock in the index: base, ours, theirs.
fn stages(repo: &LocalRepo, tree: &DiskTree) -> Result<[Option<Vec<u8>>; 3]> {
    let mut stages = [None, None, None];
    for entry in tree.unmerged(LOCK_NAME) {
        if let Some(stage) = entry.stage.checked_sub(1).and_then(|index| stages.get_mut(index)) {
            *stage = repo.object("blob", &entry.id)?;
        }
    }
    Ok(stages)
}
