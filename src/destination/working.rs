//! Changes to files of the working tree: all of them, or as far as a file system allows none.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::message::failure::{Failure, Result, shown};
use crate::os::failpoint;
use crate::os::interrupt::{self, Scratch};
use crate::plan::Change;
use crate::record::LOCK_NAME;
use crate::tree::working::WorkingTree;
use crate::tree::{Tree, path};
use crate::workspace::{Files, Workspace, changed_meanwhile};

/// Makes changes in the working tree, and removes what dead runs left there.
pub(crate) fn write(workspace: &Workspace, changes: &[Change]) -> Result<()> {
    let Files::WorkingTree { repo, top, tree, .. } = &workspace.files else {
        return Err(Failure::new("only a working tree can be changed"));
    };
    let _alone = repo.alone()?;
    refuse_other_lock(workspace, top, changes)?;
    refuse_edited(tree, changes)?;
    apply(top, changes)
}

/// Refuses to write over a lock that another run has written meanwhile, unless it is the very same.
fn refuse_other_lock(workspace: &Workspace, top: &Path, changes: &[Change]) -> Result<()> {
    let now = fs::read(top.join(LOCK_NAME)).ok();
    let is_ours = changes.iter().any(|change| {
        let to = change.to.as_ref().map(|(bytes, _)| &bytes[..]);
        change.path == LOCK_NAME && to == now.as_deref()
    });
    if changes.is_empty() || is_ours || workspace.has_lock_as_read() { Ok(()) } else { Err(changed_meanwhile()) }
}

/// Refuses to overwrite a file that was edited since it was read, unless it already holds the new contents.
fn refuse_edited(tree: &WorkingTree, changes: &[Change]) -> Result<()> {
    let is_done = |change: &Change| {
        let to = change.to.as_ref().map(|(bytes, _)| &bytes[..]);
        tree.read(&change.path).ok().as_deref() == to
    };
    let is_edited = |change: &&Change| !tree.is_as_read(&change.path) && !is_done(change);
    match changes.iter().find(is_edited) {
        None => Ok(()),
        Some(change) => {
            Err(Failure::new(format!("`{}` was edited meanwhile", shown(&change.path)))
                .hint("run the same command again"))
        }
    }
}

/// Makes the changes, in their order. Everything is written beside the tree before the first file of
/// it changes, and a step that fails takes back those before it. Directories that a removal leaves
/// empty are removed too, and in any case what dead runs left.
fn apply(top: &Path, changes: &[Change]) -> Result<()> {
    if changes.is_empty() {
        interrupt::sweep_files(top);
        return Ok(());
    }
    for change in changes {
        refuse_links(top, &change.path)?;
    }
    let failed = |error: &io::Error| {
        Failure::new(format!("could not write to `{}`: {error}", top.display()))
            .hint("check that the working tree can be written and has room")
    };
    let scratch = Scratch::among_files(top).map_err(|error| failed(&error))?;
    for (number, change) in changes.iter().enumerate() {
        if let Some((bytes, executable)) = &change.to {
            let staged = staged(scratch.path(), number);
            stage(&staged, bytes, *executable, &top.join(&change.path)).map_err(|error| said(&change.path, &error))?;
        }
    }
    let held = interrupt::hold();
    let mut done = Vec::new();
    let outcome = changes.iter().enumerate().try_for_each(|(number, change)| {
        let place = top.join(&change.path);
        step(top, scratch.path(), number, change, &place, &mut done).map_err(|error| said(&change.path, &error))
    });
    if outcome.is_err() {
        for undo in done.into_iter().rev() {
            failpoint::before("take back a change of the working tree");
            // As much as possible is restored; the first failure is reported.
            let _ = match undo {
                Undo::Made(directory) => fs::remove_dir(directory),
                Undo::Wrote(place) => fs::remove_file(place),
                Undo::Kept(old, place) => fs::rename(old, place),
            };
        }
    } else {
        for change in changes.iter().filter(|change| change.to.is_none()) {
            let mut directory = path::parent(&change.path);
            while !directory.is_empty() {
                failpoint::before("remove a directory of the working tree if it is empty");
                if fs::remove_dir(top.join(directory)).is_err() {
                    break;
                }
                directory = path::parent(directory);
            }
        }
    }
    drop(held);
    outcome
}

/// How a step is taken back.
enum Undo {
    /// A directory that was made.
    Made(PathBuf),
    /// A file that was not there before.
    Wrote(PathBuf),
    /// A file, and where it belongs.
    Kept(PathBuf, PathBuf),
}

fn step(
    top: &Path,
    scratch: &Path,
    number: usize,
    change: &Change,
    place: &Path,
    done: &mut Vec<Undo>,
) -> io::Result<()> {
    let old = scratch.join(format!("{number}.old"));
    let exists = place.symlink_metadata().is_ok();
    if change.to.is_none() {
        if exists {
            failpoint::before("remove a file of the working tree");
            fs::rename(place, &old)?;
            done.push(Undo::Kept(old, place.to_owned()));
        }
        return Ok(());
    }
    let mut missing = Vec::new();
    let mut directory = path::parent(&change.path);
    while !directory.is_empty() && !top.join(directory).is_dir() {
        missing.push(top.join(directory));
        directory = path::parent(directory);
    }
    for directory in missing.into_iter().rev() {
        failpoint::before("make a directory of the working tree");
        fs::create_dir(&directory)?;
        done.push(Undo::Made(directory));
    }
    if exists {
        // So that the file is never missing, the new one takes its place in one step.
        if place.is_symlink() {
            failpoint::before("move a link of the working tree away");
            fs::rename(place, &old)?;
            done.push(Undo::Kept(old.clone(), place.to_owned()));
        } else {
            failpoint::before("keep an old file of the working tree");
            fs::hard_link(place, &old).or_else(|_| fs::copy(place, &old).map(|_| ()))?;
        }
    }
    failpoint::before("put a file into the working tree");
    fs::rename(staged(scratch, number), place)?;
    done.push(if exists { Undo::Kept(old, place.to_owned()) } else { Undo::Wrote(place.to_owned()) });
    Ok(())
}

fn staged(scratch: &Path, number: usize) -> PathBuf {
    scratch.join(format!("{number}.new"))
}

/// Writes a file that is going to be `place`, with the permissions of what is there.
fn stage(staged: &Path, bytes: &[u8], executable: bool, place: &Path) -> io::Result<()> {
    failpoint::before("write a file for the working tree");
    fs::write(staged, bytes)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mut permissions = match fs::symlink_metadata(place) {
            Ok(there) if there.is_file() => there.permissions(),
            _ => fs::symlink_metadata(staged)?.permissions(),
        };
        let mode = permissions.mode();
        // Executable for whoever may read it, as git checks out 100755.
        permissions.set_mode(if executable { mode | ((mode & 0o444) >> 2) } else { mode & !0o111 });
        fs::set_permissions(staged, permissions)?;
    }
    #[cfg(not(unix))]
    let _ = (executable, place);
    Ok(())
}

/// Refuses to write through a link, or below something that is not a directory.
fn refuse_links(top: &Path, place: &str) -> Result<()> {
    let mut above = path::parent(place);
    let mut ways = vec![];
    while !above.is_empty() {
        ways.push(above);
        above = path::parent(above);
    }
    let is_in_the_way = |path: &str, what: &str| {
        Failure::new(format!("`{path}` is {what}, so that `{place}` cannot be written"))
            .hint("move it away, then run the same command again")
    };
    for above in ways.into_iter().rev() {
        match fs::symlink_metadata(top.join(above)) {
            Ok(there) if there.is_dir() => {}
            Ok(there) if there.is_symlink() => return Err(is_in_the_way(above, "a link")),
            Ok(_) => return Err(is_in_the_way(above, "a file")),
            Err(_) => break,
        }
    }
    match fs::symlink_metadata(top.join(place)) {
        Ok(there) if there.is_dir() => Err(is_in_the_way(place, "a directory")),
        _ => Ok(()),
    }
}

fn said(place: &str, error: &io::Error) -> Failure {
    Failure::new(format!("could not write `{place}`: {error}"))
        .hint("check that the working tree can be written and has room")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(path: &str, to: Option<&str>) -> Change {
        Change { path: path.to_owned(), to: to.map(|text| (text.as_bytes().into(), false)) }
    }

    fn top() -> tempfile::TempDir {
        let top = tempfile::tempdir().unwrap();
        fs::create_dir_all(top.path().join("a/b")).unwrap();
        fs::write(top.path().join("a/old"), "old").unwrap();
        fs::write(top.path().join("a/b/gone"), "gone").unwrap();
        top
    }

    /// Every path below `top`, with what a file holds.
    fn list(top: &Path) -> Vec<String> {
        let mut found = Vec::new();
        let mut todo = vec![top.to_owned()];
        while let Some(directory) = todo.pop() {
            for entry in directory.read_dir().unwrap() {
                let place = entry.unwrap().path();
                let name = place.strip_prefix(top).unwrap().display().to_string();
                if place.is_dir() {
                    found.push(format!("{name}/"));
                    todo.push(place);
                } else {
                    found.push(format!("{name}={}", fs::read_to_string(place).unwrap()))
                }
            }
        }
        found.sort();
        found
    }

    #[test]
    fn a_step_that_fails_takes_back_the_others() {
        let top = top();
        let before = list(top.path());
        let changes = [
            change("a/b/gone", None),
            change("a/old", Some("other")),
            change("c/d/new", Some("new")),
            // A path that was a file a moment ago cannot contain one.
            change("c/d/new/below", Some("new")),
        ];
        let failure = apply(top.path(), &changes).unwrap_err();
        assert!(failure.message.contains("c/d/new/below"), "{failure}");
        assert_eq!(list(top.path()), before);
    }

    #[cfg(unix)]
    #[test]
    fn nothing_is_written_through_a_link() {
        let top = top();
        let elsewhere = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), top.path().join("link")).unwrap();
        for path in ["link/x", "a/old/x", "a/b"] {
            let failure = apply(top.path(), &[change(path, Some("x"))]).unwrap_err();
            assert!(failure.message.contains("cannot be written"), "{failure}");
        }
        apply(top.path(), &[change("link", Some("x"))]).unwrap();
        assert_eq!(fs::read_to_string(top.path().join("link")).unwrap(), "x");
        assert_eq!(list(elsewhere.path()), [""; 0]);
    }

    #[cfg(unix)]
    #[test]
    fn permissions_stay() {
        use std::os::unix::fs::PermissionsExt;
        let top = top();
        let place = top.path().join("a/old");
        fs::set_permissions(&place, fs::Permissions::from_mode(0o640)).unwrap();
        apply(top.path(), &[change("a/old", Some("x"))]).unwrap();
        let mode = |place: &Path| place.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&place), 0o640);
        let executable = Change { path: "a/old".to_owned(), to: Some((b"y"[..].into(), true)) };
        apply(top.path(), &[executable]).unwrap();
        assert_eq!(mode(&place), 0o750);
    }
}
