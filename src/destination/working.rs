//! Changes to files of the working tree. Each file changes in one step; a run that was ended in between is finished by
//! running it again.

use std::fs;
use std::io;
use std::path::Path;

use crate::build::disk::set_executable;
use crate::message::failure::{Failure, Result, command, shown};
use crate::os::failpoint;
use crate::os::interrupt::{self, Scratch, TEMPORARY};
use crate::plan::{Changes, File};
use crate::record::{LOCK_NAME, stored};
use crate::tree::disk::DiskTree;
use crate::tree::{Tree, path};
use crate::workspace::{Files, Workspace, changed_meanwhile};

/// Makes changes in the working tree, and removes what dead runs left there.
pub(crate) fn write(workspace: &Workspace, changes: &Changes) -> Result<()> {
    let Files::WorkingTree { repo, top, tree, .. } = &workspace.files else {
        return Err(Failure::new("only a working tree can be changed"));
    };
    let _alone = repo.alone()?;
    refuse_edited(workspace, tree, changes)?;
    apply(&repo.git_dir, top, changes)
}

/// Refuses to overwrite a file that was edited since it was read, unless it already holds the new contents; and to write
/// anything where another run has changed the lock.
fn refuse_edited(workspace: &Workspace, tree: &DiskTree, changes: &Changes) -> Result<()> {
    let is_edited = |place: &str| match changes.get(place) {
        Some(to) if tree.read(place).ok().as_deref() == to.as_ref().map(|file| &*file.bytes) => false,
        _ if place == LOCK_NAME => !workspace.has_lock_as_read(),
        _ => !tree.is_as_read(place),
    };
    if let Some(place) = changes.keys().find(|place| tree.is_left_out(place)) {
        let directory = path::parent(place);
        return Err(Failure::new(format!("`{}` would change, and a sparse checkout leaves it out", shown(place)))
            .hint(format!("check it out: {}", command("git sparse-checkout add", [shown(directory)]))));
    }
    if !changes.is_empty() && is_edited(LOCK_NAME) {
        return Err(changed_meanwhile());
    }
    match changes.keys().find(|place| is_edited(place)) {
        None => Ok(()),
        Some(place) => {
            Err(Failure::new(format!("`{}` was edited during this run", shown(place)))
                .hint("run the same command again"))
        }
    }
}

/// Makes the changes: everything is written below the git directory before the first file of it changes. Localized files come
/// first, and the lock that lists them before the files that name them, so that a run that is ended in between leaves
/// what the next one recognizes. Directories that a removal leaves empty are removed too.
fn apply(git_dir: &Path, top: &Path, changes: &Changes) -> Result<()> {
    if changes.is_empty() {
        interrupt::sweep(git_dir, TEMPORARY);
        return Ok(());
    }
    for place in changes.keys() {
        refuse_links(top, place)?;
    }
    let said = |place: &str, error: &io::Error| {
        Failure::new(format!("could not write `{place}`: {error}"))
            .hint("check that the working tree can be written and has room, then run the same command again")
    };
    let scratch = Scratch::beside(git_dir, TEMPORARY).map_err(|error| said(&git_dir.display().to_string(), &error))?;
    let rank = |place: &str, to: &Option<File>| match to {
        Some(_) if place == LOCK_NAME => 2,
        Some(_) if stored::home(place).is_none() => 3,
        Some(_) => 0,
        None => 1,
    };
    let mut steps = Vec::new();
    for (number, (place, to)) in changes.iter().enumerate() {
        let staged = scratch.path().join(format!("{number}.new"));
        if let Some(file) = to {
            failpoint::before("write a file for the working tree");
            stage(file, &staged, &top.join(place)).map_err(|error| said(place, &error))?;
        }
        steps.push((rank(place, to), place, to.as_ref().map(|_| staged)));
    }
    steps.sort();
    let _held = interrupt::hold();
    for (_, place, staged) in &steps {
        step(top, place, staged.as_deref()).map_err(|error| said(place, &error))?;
    }
    Ok(())
}

/// Writes a file, with the permissions of the one that it takes the place of.
fn stage(file: &File, staged: &Path, like: &Path) -> io::Result<()> {
    fs::write(staged, &file.bytes)?;
    let there = fs::symlink_metadata(like).ok().filter(fs::Metadata::is_file);
    let permissions = there.map_or_else(|| fs::metadata(staged), Ok)?.permissions();
    set_executable(staged, permissions, file.executable)
}

fn step(top: &Path, place: &str, staged: Option<&Path>) -> io::Result<()> {
    let to = top.join(place);
    let Some(staged) = staged else {
        failpoint::before("remove a file of the working tree");
        match fs::remove_file(&to) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        for directory in path::and_above(path::parent(place)) {
            failpoint::before("remove a directory of the working tree if it is empty");
            if fs::remove_dir(top.join(directory)).is_err() {
                break;
            }
        }
        return Ok(());
    };
    if let Some(directory) = to.parent().filter(|directory| !directory.is_dir()) {
        failpoint::before("make a directory of the working tree");
        fs::create_dir_all(directory)?;
    }
    failpoint::before("put a file into the working tree");
    match fs::rename(staged, &to) {
        // The git directory lies elsewhere.
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => fs::copy(staged, &to).map(drop),
        done => done,
    }
}

/// Refuses to write through a link, or below something that is not a directory.
fn refuse_links(top: &Path, place: &str) -> Result<()> {
    let mut above: Vec<&str> = path::and_above(place).collect();
    above.reverse();
    for path in above {
        let Ok(there) = fs::symlink_metadata(top.join(path)) else { return Ok(()) };
        if there.is_dir() != (path == place) {
            continue;
        }
        let what = if there.is_dir() { "a directory" } else { "not a directory" };
        return Err(Failure::new(format!("`{path}` is {what}, so `{place}` cannot be written"))
            .hint("move it away, then run the same command again"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn git_dir() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    fn change(path: &str) -> Changes {
        Changes::from([(path.to_owned(), Some(File::plain(&b"x"[..])))])
    }

    fn top() -> tempfile::TempDir {
        let top = tempfile::tempdir().unwrap();
        fs::create_dir_all(top.path().join("a/b")).unwrap();
        fs::write(top.path().join("a/old"), "old").unwrap();
        top
    }

    #[cfg(unix)]
    #[test]
    fn nothing_is_written_through_a_link() {
        let top = top();
        let elsewhere = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), top.path().join("link")).unwrap();
        for path in ["link/x", "a/old/x", "a/b"] {
            let failure = apply(git_dir().path(), top.path(), &change(path)).unwrap_err();
            assert!(failure.message.contains("cannot be written"), "{failure}");
        }
        apply(git_dir().path(), top.path(), &change("link")).unwrap();
        assert_eq!(fs::read_to_string(top.path().join("link")).unwrap(), "x");
        assert_eq!(elsewhere.path().read_dir().unwrap().count(), 0);
    }

    #[cfg(unix)]
    #[test]
    fn permissions_stay() {
        use std::os::unix::fs::PermissionsExt;
        let top = top();
        let place = top.path().join("a/old");
        fs::set_permissions(&place, fs::Permissions::from_mode(0o640)).unwrap();
        apply(git_dir().path(), top.path(), &change("a/old")).unwrap();
        let mode = |place: &Path| place.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&place), 0o640);
        let executable = File { executable: true, ..File::plain(&b"y"[..]) };
        apply(git_dir().path(), top.path(), &Changes::from([("a/old".to_owned(), Some(executable))])).unwrap();
        assert_eq!(mode(&place), 0o750);
    }
}
