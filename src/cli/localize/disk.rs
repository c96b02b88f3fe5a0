//! From the files on disk to a directory on disk, as `kustomize localize` does.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::{Local, copy, fetched_target, fetcher, local_target, new_dir, owns, remote_target};
use crate::cli::LocalizeArgs;
use crate::commit::directory;
use crate::failure::{Failure, Failures, Result};
use crate::fetch::Tip;
use crate::git::Here;
use crate::record::{LOCK_NAME, Lock};
use crate::report::{Outcome, Report};
use crate::tree::disk::DiskTree;
use crate::tree::path;
use crate::walk::Absence;

pub(super) fn run(args: &LocalizeArgs) -> Result<Report, Failures> {
    let spec = remote_target(args)?;
    let here = Here::discover()?;
    let cwd = std::env::current_dir()
        .map_err(|error| Failure::new(format!("the current directory cannot be read: {error}")))?;

    let mut lock_source = None;
    let mut found = None;
    let mut scope_real = None;
    if spec.is_none() {
        let target = real(&cwd, &args.target, "target")?;
        let scope = match &args.scope {
            Some(scope) => real(&cwd, scope, "scope")?,
            None => target.clone(),
        };
        // The lock of the repository says which `localized-files` are ours.
        let top = here
            .as_ref()
            .and_then(|here| here.top.as_ref()?.canonicalize().ok());
        if let Some(top) = top.filter(|top| scope.starts_with(top)) {
            let inside = slashed(scope.strip_prefix(&top).unwrap_or(&scope))?;
            lock_source = read_lock(&top.join(LOCK_NAME), LOCK_NAME)?.map(|lock| (lock, inside));
        }
        let shown = match &args.scope {
            Some(scope) => scope.clone(),
            None => args.target.clone(),
        };
        let local = Local {
            tree: Rc::new(DiskTree::new(scope.clone(), shown)),
            prefix: String::new(),
            lock: None,
        };
        // The tree begins at the scope: there, not here, are target and scope looked up.
        let inside = LocalizeArgs {
            target: below(&target, &scope).ok_or_else(|| {
                Failure::new(format!(
                    "the scope `{}` does not contain the target `{}`",
                    args.scope.as_deref().unwrap_or_default(),
                    args.target
                ))
                .hint("name a directory above the target")
            })?,
            scope: args.scope.as_ref().map(|_| ".".to_owned()),
            ..args.clone()
        };
        let mut target_found = local_target(&inside, &local)?;
        target_found.base = target
            .file_name()
            .and_then(|name| name.to_str())
            .map(str::to_owned);
        found = Some((target_found, target));
        scope_real = Some(scope);
    }
    let base = found.as_ref().and_then(|(target, _)| target.base.clone());
    let shown = new_dir(args, spec.as_ref(), base.as_deref())?;
    let place = cwd.join(&shown);
    let parent = place
        .parent()
        .and_then(|parent| parent.canonicalize().ok())
        .ok_or_else(|| {
            Failure::new(format!("there is no directory to put `{shown}` into"))
                .hint("make it first: mkdir -p")
        })?;
    let Some(name) = place.file_name().filter(|_| !shown.ends_with("..")) else {
        return Err(Failure::new(format!("`{shown}` is no name for a new directory")).into());
    };
    let place = parent.join(name);
    let forbidden = match &scope_real {
        Some(scope) => below(&place, scope),
        None => None,
    };

    // How the lock names the target must not depend on where all of this lies.
    let anchor = here
        .as_ref()
        .and_then(|here| here.top.as_ref()?.canonicalize().ok())
        .unwrap_or(parent);
    if let Some((target, directory)) = &mut found {
        target.name = slashed(&relative(&anchor, directory))?;
        if let (Some(_), Some(scope)) = (&args.scope, &scope_real) {
            target.scope = Some(slashed(&relative(&anchor, scope))?);
        }
    }

    let before = read_lock(&place.join(LOCK_NAME), &format!("{shown}/{LOCK_NAME}"))?;
    let previous = before.clone().map(|lock| Tip {
        tree: Rc::new(DiskTree::new(place.clone(), shown.clone())),
        directory: String::new(),
        lock,
    });
    let source_lock = lock_source.as_ref().map(|(lock, _)| lock.clone());
    let mut fetcher = fetcher(args, here.as_ref(), source_lock, previous)?;
    let target = match (found, &spec) {
        (Some((target, _)), _) => target,
        (None, Some(spec)) => fetched_target(args, spec, &mut fetcher)?,
        (None, None) => return Err(Failure::new("there is no target").into()),
    };
    let replaces = directory::claim(&place, &shown, &target.name, args.overwrite)?;
    let owned = |place: &str| match &lock_source {
        Some((lock, inside)) => owns(Some(lock), &path::join(inside, place)),
        None => false,
    };
    let copied = copy(
        args,
        target,
        &mut fetcher,
        &|_| Absence::Nowhere,
        forbidden,
        &owned,
    )?;
    let files = copied.files()?;
    let before = before.map(|lock| (*lock).clone()).unwrap_or_default();
    if args.dry_run {
        return Ok(copied.report(&files, shown, &before, Outcome::DryRun { branch: None }));
    }
    directory::write(&place, &shown, &files, replaces)?;
    Ok(copied.report(&files, shown, &before, Outcome::Written))
}

/// Returns the real path of a directory that was named on the command line.
fn real(cwd: &Path, text: &str, what: &str) -> Result<PathBuf> {
    let path = cwd
        .join(text)
        .canonicalize()
        .map_err(|_| Failure::new(format!("there is no directory `{text}` for the {what}")))?;
    match path.is_dir() {
        true => Ok(path),
        false => Err(Failure::new(format!("the {what} `{text}` is a file"))
            .hint("name the directory that holds the kustomization")),
    }
}

/// Returns `path` relative to `directory` with slashes, if it is that directory or lies below it.
fn below(path: &Path, directory: &Path) -> Option<String> {
    let inside = path.strip_prefix(directory).ok()?;
    slashed(inside).ok().map(|inside| match inside.as_str() {
        "." => String::new(),
        _ => inside,
    })
}

fn slashed(path: &Path) -> Result<String> {
    let parts: Option<Vec<&str>> = path
        .components()
        .map(|part| part.as_os_str().to_str())
        .collect();
    match parts {
        Some(parts) if parts.is_empty() => Ok(".".to_owned()),
        Some(parts) => Ok(parts.join("/")),
        None => Err(Failure::new(format!("`{}` is not UTF-8", path.display()))),
    }
}

/// Returns the path that leads from one real directory to another.
fn relative(from: &Path, to: &Path) -> PathBuf {
    let common = from
        .components()
        .zip(to.components())
        .take_while(|(a, b)| a == b)
        .count();
    let mut path: PathBuf = from.components().skip(common).map(|_| "..").collect();
    path.extend(to.components().skip(common));
    path
}

fn read_lock(place: &Path, shown: &str) -> Result<Option<Rc<Lock>>> {
    match std::fs::read(place) {
        Ok(bytes) => Ok(Some(Rc::new(Lock::parse(&bytes, shown)?))),
        Err(_) => Ok(None),
    }
}
