//! The lock in the middle of a merge or a rebase, where git left two sides of it.

use crate::git::LocalRepo;
use crate::message::failure::{Failure, Result, command, short};
use crate::record::lock::{Both, Merged};
use crate::record::{LOCK_NAME, Lock};
use crate::tree::disk::DiskTree;
use crate::tree::{LOCK_COMMAND, Tree as _};

/// Merges the two sides of the lock at the top; none if there is no conflict, or it is resolved.
///
/// Both sides come from the index.
pub(super) fn merged(here: &LocalRepo, tree: &DiskTree) -> Result<Option<Merged>> {
    let on_disk = match tree.entry(LOCK_NAME)? {
        Some(_) => Some(tree.read(LOCK_NAME)?),
        None => None,
    };
    let stages = stages(here, tree)?;
    if let [base, Some(ours), Some(theirs)] = &stages {
        let (ours, theirs) = (side(ours, "our")?, side(theirs, "their")?);
        let is_resolved = on_disk
            .as_ref()
            .and_then(|bytes| Lock::parse(bytes, LOCK_NAME).ok())
            .is_some_and(|now| now != ours && now != theirs);
        if is_resolved {
            return Ok(None);
        }
        let base = base.as_ref().and_then(|bytes| side(bytes, "the base").ok());
        let mut merged = Lock::merge(base.as_ref(), &ours, &theirs);
        // What one side has removed git has removed, too.
        let mut files = Vec::new();
        for file in std::mem::take(&mut merged.lock.files) {
            if tree.entry(&file.path)?.is_some() {
                files.push(file);
            }
        }
        merged.lock.files = files;
        return Ok(Some(merged));
    }
    // A commit can hold markers; of its sides nothing but text is left.
    Ok(None)
}

/// Returns the failure for a remote that both sides changed, with what to do.
pub(super) fn unclear(both: &Both) -> Failure {
    Failure::new(format!(
        "{}: both sides changed it: kept ours ({}), not theirs ({})",
        both.upstream,
        short(both.ours.hex()),
        short(both.theirs.hex())
    ))
    .hint(format!("resolve it again: {}", command("git kustomize-localize update", [both.upstream.to_string()])))
}

fn side(bytes: &[u8], whose: &str) -> Result<Lock> {
    let hint = format!("take the other: git checkout --ours -- :/{LOCK_NAME}, or --theirs; then: {LOCK_COMMAND}");
    let unreadable = || format!("cannot read {whose} side of the lock's conflict");
    Lock::parse(bytes, LOCK_NAME).map_err(|failure| failure.context(unreadable()).hint(hint))
}

/// Returns what the index holds of the lock: base, ours, theirs.
fn stages(here: &LocalRepo, tree: &DiskTree) -> Result<[Option<Vec<u8>>; 3]> {
    let mut stages = [None, None, None];
    for entry in tree.unmerged(LOCK_NAME) {
        if let Some(place) = entry.stage.checked_sub(1).and_then(|place| stages.get_mut(place)) {
            *place = here.object("blob", &entry.id)?;
        }
    }
    Ok(stages)
}
