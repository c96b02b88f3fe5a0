//! Writing the files of hooks, and taking out what is ours. First all is planned, then it is done.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::script::{self, Manager, Split};
use super::{Directory, Hook};
use crate::failure::{Failure, Location, Result, command};

/// What was done to a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Its file.
    pub path: PathBuf,
    /// What was done.
    pub done: Done,
}

/// What was done to the file of a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Done {
    /// It was made.
    Made,
    /// Our lines were added to it.
    Added,
    /// Our lines in it were of another version.
    Updated,
    /// It was as it should be.
    Kept,
    /// There was nothing of ours in it.
    Absent,
    /// The hook that was there is at this path now.
    MovedAside(PathBuf),
    /// It was ours and is gone.
    Removed,
    /// Our lines are out of it.
    TakenOut,
    /// The hook that was moved aside is back.
    Restored,
}

/// One file, and what to do with it.
pub(super) struct Step {
    change: Change,
    action: Action,
}

enum Action {
    Nothing,
    Write(Vec<u8>),
    MoveAsideAndWrite(PathBuf, Vec<u8>),
    Remove,
    MoveBack(PathBuf),
}

/// What is at the path of a hook.
enum Found {
    Nothing,
    Script { bytes: Vec<u8>, runs: bool },
    Link,
    Other,
}

fn look(path: &Path) -> Result<Found> {
    let failed = |error| failed("read", path, &error);
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(error) => return Err(failed(error)),
    };
    Ok(if metadata.is_symlink() {
        Found::Link
    } else if metadata.is_file() {
        Found::Script {
            bytes: fs::read(path).map_err(failed)?,
            runs: runs(&metadata),
        }
    } else {
        Found::Other
    })
}

/// Returns whether git runs this file.
#[cfg(unix)]
fn runs(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o111 != 0
}

#[cfg(not(unix))]
fn runs(_metadata: &fs::Metadata) -> bool {
    true
}

fn failed(verb: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("could not {verb} `{}`: {error}", path.display()))
}

fn halves<'a>(path: &Path, bytes: &'a [u8]) -> Result<Option<Split<'a>>> {
    script::split(bytes).map_err(|line| {
        Failure::new("the lines of `git kustomize-localize` that begin here have no end")
            .hint("remove them by hand, and run the same command again")
            .at(Location {
                file: path.display().to_string(),
                line,
                ..Location::default()
            })
    })
}

/// Finds out what to do so that `hook` runs us.
pub(super) fn plan_install(directory: &Directory, hook: Hook, force: bool) -> Result<Step> {
    let path = directory.path.join(hook.name());
    let step = |done, action| {
        let path = path.clone();
        let change = Change { path, done };
        Ok(Step { change, action })
    };
    let shown = path.display();
    let (bytes, runs) = match look(&path)? {
        Found::Nothing => return step(Done::Made, Action::Write(hook.script().into())),
        Found::Script { bytes, runs } => (bytes, runs),
        Found::Link => {
            let failure = Failure::new(format!(
                "`{shown}` is a symbolic link: its target is not changed"
            ));
            return in_the_way(directory, hook, force, failure.hint(run_us(hook)));
        }
        Found::Other => return Err(Failure::new(format!("`{shown}` is not a file"))),
    };
    let disabled = || {
        Failure::new(format!(
            "`{shown}` is not executable, so git does not run it"
        ))
        .hint(command("chmod +x", [shown.to_string()]))
    };
    if let Some(split) = halves(&path, &bytes)? {
        let text = split.with(hook);
        return match text == bytes {
            _ if !runs && split.is_all_ours() => step(Done::Updated, Action::Write(text)),
            _ if !runs => Err(disabled()),
            true => step(Done::Kept, Action::Nothing),
            false => step(Done::Updated, Action::Write(text)),
        };
    }
    if let Some(manager) = Manager::of(&bytes) {
        let failure = Failure::new(format!("{} writes `{shown}`", manager.name()));
        return in_the_way(directory, hook, force, failure.hint(manager.hint(hook)));
    }
    if !runs {
        return in_the_way(directory, hook, force, disabled());
    }
    match script::added(hook, &bytes) {
        Some(text) => step(Done::Added, Action::Write(text)),
        None => {
            let failure = Failure::new(format!("`{shown}` is not a shell script"));
            in_the_way(directory, hook, force, failure.hint(run_us(hook)))
        }
    }
}

fn run_us(hook: Hook) -> String {
    format!(
        "let it run this, and end with its status: git kustomize-localize hook run {}",
        hook.name()
    )
}

/// Moves a hook aside if that is wanted; else it is an error.
fn in_the_way(directory: &Directory, hook: Hook, force: bool, failure: Failure) -> Result<Step> {
    let path = directory.path.join(hook.name());
    let aside = directory.path.join(hook.aside());
    if !force {
        return Err(failure.hint(format!(
            "to move it aside and run both: git kustomize-localize hook install --force {}",
            hook.name()
        )));
    }
    if fs::symlink_metadata(&aside).is_ok() {
        return Err(Failure::new(format!(
            "`{}` is in the way: it was moved aside before",
            aside.display()
        ))
        .hint("look at it, and remove it or give it another name"));
    }
    Ok(Step {
        change: Change {
            path,
            done: Done::MovedAside(aside.clone()),
        },
        action: Action::MoveAsideAndWrite(aside, script::in_place_of_another(hook)),
    })
}

/// Plans how to remove our block from `hook`.
pub(super) fn plan_uninstall(directory: &Directory, hook: Hook) -> Result<Step> {
    let path = directory.path.join(hook.name());
    let (done, action) = match look(&path)? {
        Found::Nothing | Found::Link | Found::Other => (Done::Absent, Action::Nothing),
        Found::Script { bytes, .. } => match halves(&path, &bytes)? {
            None => (Done::Absent, Action::Nothing),
            Some(split) if split.is_all_ours() => (Done::Removed, Action::Remove),
            Some(split) if split.is_in_place_of(hook) => {
                let aside = directory.path.join(hook.aside());
                match fs::symlink_metadata(&aside) {
                    Ok(_) => (Done::Restored, Action::MoveBack(aside)),
                    Err(_) => (Done::Removed, Action::Remove),
                }
            }
            Some(split) => (Done::TakenOut, Action::Write(split.without())),
        },
    };
    let change = Change { path, done };
    Ok(Step { change, action })
}

/// Does what was planned.
pub(super) fn apply(steps: Vec<Step>) -> Result<Vec<Change>> {
    let mut changes = Vec::new();
    for Step { change, action } in steps {
        let path = &change.path;
        match action {
            Action::Nothing => {}
            Action::Write(bytes) => write(path, &bytes)?,
            Action::MoveAsideAndWrite(aside, bytes) => {
                fs::rename(path, &aside).map_err(|error| failed("move", path, &error))?;
                if let Err(failure) = write(path, &bytes) {
                    // The hook that was there must not be lost over it.
                    let _ = fs::rename(&aside, path);
                    return Err(failure);
                }
            }
            Action::Remove => {
                fs::remove_file(path).map_err(|error| failed("remove", path, &error))?;
            }
            Action::MoveBack(aside) => {
                fs::rename(&aside, path).map_err(|error| failed("move", &aside, &error))?;
            }
        }
        changes.push(change);
    }
    Ok(changes)
}

/// Puts a file in place in one step, executable, or with the mode of the one that was there.
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let failed = |error: std::io::Error| failed("write", path, &error);
    let directory = path.parent().unwrap_or(path);
    fs::create_dir_all(directory).map_err(failed)?;
    let mut file = tempfile::Builder::new()
        .prefix(".kustomize-localize-")
        .tempfile_in(directory)
        .map_err(failed)?;
    file.write_all(bytes).map_err(failed)?;
    let old = fs::metadata(path).ok().filter(runs);
    let permissions = match old {
        Some(old) => old.permissions(),
        None => executable(file.path()).map_err(failed)?,
    };
    fs::set_permissions(file.path(), permissions).map_err(failed)?;
    file.persist(path).map_err(|error| failed(error.error))?;
    Ok(())
}

#[cfg(unix)]
fn executable(_file: &Path) -> std::io::Result<fs::Permissions> {
    use std::os::unix::fs::PermissionsExt;
    Ok(fs::Permissions::from_mode(0o755))
}

#[cfg(not(unix))]
fn executable(file: &Path) -> std::io::Result<fs::Permissions> {
    Ok(fs::metadata(file)?.permissions())
}
