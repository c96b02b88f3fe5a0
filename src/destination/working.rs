//! Changes files of the working tree. Each file changes in one step; if a run ends in between, running it again
//! finishes the work.

use std::fs;
use std::io;
use std::path::Path;

use tempfile::NamedTempFile;

use crate::build::disk::set_executable;
use crate::message::failure::{Failure, Result, command, shown};
use crate::os::failpoint;
use crate::os::interrupt::{self, Scratch, TEMPORARY};
use crate::plan::{Changes, ResultFile};
use crate::record::{LOCK_NAME, stored};
use crate::tree::disk::DiskTree;
use crate::tree::{Tree, path};
use crate::workspace::{Files, Workspace, changed_meanwhile};

/// Makes changes in the working tree, and removes temporary files of dead runs.
pub(crate) fn write(workspace: &Workspace, changes: &Changes) -> Result<()> {
    let Files::WorkingTree { repo, top, tree, .. } = &workspace.files else {
        return Err(Failure::new("only a working tree can be changed"));
    };
    let _alone = repo.alone()?;
    refuse_edited(workspace, top, tree, changes)?;
    apply(&repo.git_dir, top, changes)
}

/// Refuses to overwrite a file that somebody edited since this run read it, unless it already has the new content; and
/// to write anything if another run has changed the lock. Also refuses to change files that a sparse checkout leaves
/// out, because the user would not see them.
fn refuse_edited(workspace: &Workspace, top: &Path, tree: &DiskTree, changes: &Changes) -> Result<()> {
    if let Some(path) = changes.keys().find(|path| tree.is_left_out(path)) {
        return Err(left_out_failure(workspace, top, path));
    }
    // First the lock: with another one each other change would be wrong, too. The run keeps the bytes of the lock since
    // its start, even if it did not read the lock through `tree`.
    if !changes.is_empty() && !workspace.has_lock_as_read() && !has_new_content(tree, changes, LOCK_NAME) {
        return Err(changed_meanwhile());
    }
    let mut paths = changes.keys().filter(|path| *path != LOCK_NAME);
    match paths.find(|path| !tree.is_as_read(path) && !has_new_content(tree, changes, path)) {
        None => Ok(()),
        Some(path) => {
            Err(Failure::new(format!("`{}` was edited during this run", shown(path)))
                .hint("run the same command again"))
        }
    }
}

/// Whether a file that changes is on disk as it is to be already: with the new content, or not at all.
fn has_new_content(tree: &DiskTree, changes: &Changes, path: &str) -> bool {
    let Some(to) = changes.get(path) else { return false };
    tree.read(path).ok().as_deref() == to.as_ref().map(|file| &*file.bytes)
}

/// The failure of a change of a file that a sparse checkout leaves out.
fn left_out_failure(workspace: &Workspace, top: &Path, path: &str) -> Failure {
    let directory = shown(path::parent(path));
    // git adds a directory that is relative to the current one.
    let add = if workspace.prefix.is_empty() {
        command("git sparse-checkout add", [directory])
    } else {
        command("git -C", [&*top.to_string_lossy(), "sparse-checkout", "add", &directory])
    };
    Failure::new(format!("`{}` would change, and a sparse checkout leaves it out", shown(path)))
        .hint(format!("check it out: {add}"))
}

/// Makes the changes: all files are written below the git directory before the first one is moved to its path.
/// Directories that a removal leaves empty are removed too.
pub(super) fn apply(git_dir: &Path, top: &Path, changes: &Changes) -> Result<()> {
    // With changes, `Scratch::beside` below does this.
    if changes.is_empty() {
        interrupt::sweep(git_dir, TEMPORARY);
        return Ok(());
    }
    // All paths are checked before the first change: a link could lead a write out of the directory.
    for path in changes.keys() {
        refuse_links(top, path)?;
    }
    let scratch =
        Scratch::beside(git_dir, TEMPORARY).map_err(|error| not_written(&git_dir.display().to_string(), &error))?;
    let mut steps = Vec::new();
    // A full disk or a missing permission fails here, while nothing has changed yet.
    for (number, (path, to)) in changes.iter().enumerate() {
        let staged = scratch.path().join(format!("{number}.new"));
        if let Some(file) = to {
            failpoint::before("write a file for the working tree");
            stage(file, &staged, &top.join(path)).map_err(|error| not_written(path, &error))?;
        }
        steps.push((rank(path, to.as_ref()), path, to.as_ref().map(|_| staged)));
    }
    // In the order of [`rank`], so that another run can continue after an early end.
    steps.sort();
    // From here an interruption waits, because half of the changes would not build.
    let _signals = interrupt::delay_interrupts();
    for (_, path, staged) in &steps {
        change_file(top, path, staged.as_deref()).map_err(|error| not_written(path, &error))?;
    }
    Ok(())
}

/// The rank of a file in the order in which files change: written localized files, removed files, the lock, and the
/// files that name localized ones.
fn rank(path: &str, to: Option<&ResultFile>) -> u8 {
    // If a run ends early, the next one must know its files: those to remove go while the old lock still lists them,
    // and what names localized files changes last, when these are there and the lock lists them.
    match to {
        Some(_) if path == LOCK_NAME => 2,
        Some(_) if stored::localized_dir(path).is_none() => 3,
        Some(_) => 0,
        None => 1,
    }
}

/// The failure of a file that could not be written to the working tree.
fn not_written(path: &str, error: &io::Error) -> Failure {
    Failure::new(format!("could not write `{path}`: {error}"))
        .hint("check that its directory can be written and has room, then run the same command again")
}

/// Writes a file, with the permissions of the file that it replaces.
fn stage(file: &ResultFile, staged: &Path, like: &Path) -> io::Result<()> {
    fs::write(staged, &file.bytes)?;
    let replaced = fs::symlink_metadata(like).ok().filter(fs::Metadata::is_file);
    let permissions = replaced.map_or_else(|| fs::metadata(staged), Ok)?.permissions();
    set_executable(staged, permissions, file.executable)
}

/// Moves a staged file to its path; without one, removes the file there and the directories that this empties.
fn change_file(top: &Path, path: &str, staged: Option<&Path>) -> io::Result<()> {
    let to = top.join(path);
    let Some(staged) = staged else {
        failpoint::before("remove a file of the working tree");
        match fs::remove_file(&to) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        // git does not store empty directories, so a fresh clone would not have them either.
        for directory in path::and_above(path::parent(path)) {
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
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => replace_by_copy(staged, &to),
        done => done,
    }
}

/// Replaces a file by a copy of a staged one, in one step. The git directory, where files are staged, may be on another
/// file system.
fn replace_by_copy(staged: &Path, to: &Path) -> io::Result<()> {
    let beside = NamedTempFile::with_prefix_in(TEMPORARY, to.parent().unwrap_or(to))?;
    fs::copy(staged, &beside)?;
    beside.persist(to).map(drop).map_err(|error| error.error)
}

/// Refuses to write `path` if anything above it is not a directory, such as a link, through which a file outside of the
/// repository would be written, or if a directory is at `path` itself.
fn refuse_links(top: &Path, path: &str) -> Result<()> {
    let mut above: Vec<&str> = path::and_above(path).collect();
    above.reverse();
    for prefix in above {
        // From the top down: nothing is below a path that does not exist.
        let Ok(metadata) = fs::symlink_metadata(top.join(prefix)) else { return Ok(()) };
        // A directory is expected above the path, but not at it.
        if metadata.is_dir() == (prefix != path) {
            continue;
        }
        let kind = if metadata.is_dir() { "a directory" } else { "not a directory" };
        return Err(Failure::new(format!("`{prefix}` is {kind}, so `{path}` cannot be written"))
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
        Changes::from([(path.to_owned(), Some(ResultFile::plain(&b"x"[..])))])
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
        // Also from a git directory on another file system.
        let staged = tempfile::NamedTempFile::new().unwrap();
        replace_by_copy(staged.path(), &top.path().join("link")).unwrap();
        assert!(top.path().join("link").symlink_metadata().unwrap().is_file());
        assert_eq!(top.path().read_dir().unwrap().count(), 2);

        fs::remove_file(top.path().join("link")).unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), top.path().join("link")).unwrap();
        apply(git_dir().path(), top.path(), &change("link")).unwrap();
        assert_eq!(fs::read_to_string(top.path().join("link")).unwrap(), "x");
        assert_eq!(elsewhere.path().read_dir().unwrap().count(), 0);
    }

    #[cfg(unix)]
    #[test]
    fn permissions_stay() {
        use std::os::unix::fs::PermissionsExt;
        let top = top();
        let path = top.path().join("a/old");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        apply(git_dir().path(), top.path(), &change("a/old")).unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o640);
        let executable = ResultFile { executable: true, ..ResultFile::plain(&b"y"[..]) };
        apply(git_dir().path(), top.path(), &Changes::from([("a/old".to_owned(), Some(executable))])).unwrap();
        assert_eq!(mode(&path), 0o750);
    }
}
