//! From the files on disk to a directory on disk, as `kustomize localize` does.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::{
    Local, copy, fetched_target, fetcher, local_target, lock_at, new_dir, owns, proven,
    remote_target, withheld,
};
use crate::cli::LocalizeArgs;
use crate::commit::directory;
use crate::config::Config;
use crate::failure::{Failure, Failures, Result, argument};
use crate::fetch::Tip;
use crate::git::LocalRepo;
use crate::record::LOCK_NAME;
use crate::report::{Outcome, Report};
use crate::tree::disk::DiskTree;
use crate::tree::path;
use crate::walk::Absence;

pub(super) fn run(args: &LocalizeArgs) -> Result<Report, Failures> {
    let spec = remote_target(args)?;
    let here = LocalRepo::discover()?;
    let cwd = std::env::current_dir()
        .and_then(|cwd| cwd.canonicalize())
        .map_err(|error| Failure::new(format!("the current directory cannot be read: {error}")))?;
    let disk = Rc::new(DiskTree::new(&cwd)?);
    let prefix = disk.path(&cwd)?;
    let top = match here
        .as_ref()
        .and_then(|here| here.top.as_ref()?.canonicalize().ok())
    {
        Some(top) => Some(disk.path(&top)?),
        None => None,
    };
    let local = Local {
        tree: disk.clone(),
        prefix: prefix.clone(),
        top: top.clone(),
        committed: false,
        lock: None,
        config: match &top {
            Some(top) => Config::of(&*disk, top)?,
            None => Config::default(),
        },
    };
    let mut found = match &spec {
        Some(_) => None,
        None => Some(local_target(args, &local)?),
    };
    let shown = new_dir(
        args,
        spec.as_ref(),
        found.as_ref().and_then(|target| target.base.as_deref()),
    )?;
    let place = match (
        here.as_ref().and_then(|here| here.top.as_ref()),
        shown.strip_prefix(":/"),
    ) {
        (Some(top), Some(rest)) => place(top, rest)?,
        _ => place(&cwd, &shown)?,
    };
    let new_dir = disk.path(&place)?;

    // The lock of the repository says which `localized-files` are ours.
    let source_lock = match (&found, &top) {
        (Some(target), Some(top)) if path::is_in(&target.start.directory, top) => {
            lock_at(&*disk, &path::join(top, LOCK_NAME))?
        }
        _ => None,
    };
    // How the lock names the target must not depend on where all of this lies.
    let anchor = top
        .clone()
        .unwrap_or_else(|| path::parent(&new_dir).to_owned());
    if let Some(target) = &mut found {
        target.name = path::relative(&anchor, &target.start.directory);
        target.scope = args
            .scope
            .as_ref()
            .map(|_| path::relative(&anchor, &target.start.source.scope));
    }

    let before = lock_at(&*disk, &path::join(&new_dir, LOCK_NAME))?;
    let previous = before.clone().map(|lock| Tip {
        tree: disk.clone(),
        directory: new_dir.clone(),
        lock,
    });
    let mut fetcher = fetcher(
        args,
        here.as_ref(),
        &local.config,
        source_lock.clone(),
        previous,
    )?;
    let target = match (found, &spec) {
        (Some(target), _) => target,
        (None, Some(spec)) => fetched_target(args, spec, &mut fetcher)?,
        (None, None) => return Err(Failure::new("there is no target").into()),
    };
    let replaces = directory::claim(&place, &shown, &target.name, args.overwrite)?;
    let owned = |path: &str| match &top {
        Some(top) => path::below(path, top).is_some_and(|path| owns(source_lock.as_ref(), path)),
        None => false,
    };
    let copied = copy(
        args,
        &local,
        target,
        &mut fetcher,
        &|_| Absence::Nowhere,
        Some(new_dir),
        &owned,
    )?;
    let files = copied.files()?;
    let before = before.map(|lock| (*lock).clone()).unwrap_or_default();
    let proof = proven(args, here.as_ref(), &copied, None, &fetcher, None)?;
    let warnings = copied.warnings(args, &proof);
    let outcome = match withheld(args, &copied.strict, &proof, &warnings, None) {
        Some(outcome) => outcome,
        None => {
            directory::write(&place, &shown, &files, replaces)?;
            Outcome::Written
        }
    };
    Ok(copied.report(&files, shown, &before, outcome, proof, warnings))
}

/// Returns where NEW_DIR goes: a real path but for its last component, which may not be there yet.
fn place(cwd: &Path, shown: &str) -> Result<PathBuf> {
    let place = cwd.join(shown);
    let (Some(parent), Some(name)) = (place.parent(), place.file_name()) else {
        return Err(
            Failure::new(format!("`{shown}` is not a name for a new directory"))
                .hint("choose another NEW_DIR"),
        );
    };
    let above = Path::new(shown).parent().unwrap_or(parent);
    match parent.canonicalize() {
        Ok(parent) if parent.is_dir() => Ok(parent.join(name)),
        _ => Err(
            Failure::new(format!("there is no directory to put `{shown}` into")).hint(format!(
                "make it first: mkdir -p -- {}",
                argument(&above.to_string_lossy())
            )),
        ),
    }
}
