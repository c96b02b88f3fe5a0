//! A result as plain files on disk: written beside its place, then put there with one rename.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::message::failure::{Failure, Result, command};
use crate::os::failpoint;
use crate::os::interrupt::Scratch;
use crate::plan::ResultFile;
use crate::record::history;
use crate::record::stored::{self, Difference};
use crate::record::{LOCK_NAME, Lock};
use crate::tree::directory::DirectoryTree;
use crate::workspace::{Files, Workspace};

/// A directory of its own for a copy.
pub(crate) struct NewDirectory {
    /// Where it goes: a real path but for its last component, which may not be there yet.
    place: PathBuf,
    /// The same in the tree of the workspace.
    pub(super) into: String,
    /// As the user named it.
    pub(super) shown: String,
    /// Whether it lies in a repository, so that what is there may be a checkout.
    converts: bool,
    /// Whether something is there that is going to be replaced.
    replaces: bool,
}

impl NewDirectory {
    /// Finds the place for a directory that is named `shown`, from where we were started, or from the top of the
    /// repository with `:/`.
    pub(super) fn find(workspace: &Workspace, shown: &str) -> Result<NewDirectory> {
        let Files::Disk { repo, cwd, tree } = &workspace.files else {
            return Err(Failure::new("a directory can be written from the files on disk only"));
        };
        let top = repo.as_ref().and_then(|repo| repo.top.as_ref());
        let place = match (top, shown.strip_prefix(":/")) {
            (Some(top), Some(rest)) => place(top, rest)?,
            _ => place(cwd, shown)?,
        };
        if let (Some(repo), Some(top)) = (repo, top)
            && place.starts_with(top)
        {
            history::refuse_checked_out(repo)?;
        }
        Ok(NewDirectory {
            into: tree.path(&place)?,
            place,
            shown: shown.to_owned(),
            converts: repo.is_some(),
            replaces: false,
        })
    }

    /// Finds out whether something is there that is going to be replaced: an unedited NEW_DIR of the same target.
    pub(super) fn claim(&mut self, target: &str, overwrite: bool) -> Result<()> {
        self.replaces = claim(&self.place, &self.shown, target, overwrite, self.converts)?;
        Ok(())
    }

    /// Writes the files in one step, instead of what [`claim`](Self::claim) found there. On any failure everything is
    /// as it was.
    pub(super) fn write(&self, files: &BTreeMap<String, ResultFile>) -> Result<()> {
        write(&self.place, &self.shown, files, self.replaces)
    }
}

/// Returns where NEW_DIR goes.
fn place(from: &Path, shown: &str) -> Result<PathBuf> {
    let place = from.join(shown);
    let (Some(parent), Some(name)) = (place.parent(), place.file_name()) else {
        return Err(Failure::new(format!("`{shown}` is not a name for a new directory")).hint("choose another NEW_DIR"));
    };
    let above = Path::new(shown).parent().unwrap_or(parent);
    match parent.canonicalize() {
        Ok(parent) if parent.is_dir() => Ok(parent.join(name)),
        _ => Err(Failure::new(format!("there is no directory to put `{shown}` into"))
            .hint(format!("make it first: {}", command("mkdir -p --", [above.to_string_lossy()])))),
    }
}

fn claim(place: &Path, shown: &str, target: &str, overwrite: bool, converts: bool) -> Result<bool> {
    match std::fs::symlink_metadata(place) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(error) => {
            return Err(Failure::new(format!("could not look at `{shown}`: {error}")));
        }
        Ok(metadata) if !metadata.is_dir() => {
            return Err(Failure::new(format!("`{shown}` is there already, and is not a directory"))
                .hint("choose another NEW_DIR"));
        }
        Ok(_) => {}
    }
    let not_ours = || {
        Failure::new(format!("`{shown}` is there already, and was not made by this tool"))
            .hint("choose another NEW_DIR, or remove it")
    };
    let bytes = std::fs::read(place.join(LOCK_NAME)).map_err(|_| not_ours())?;
    let lock = Lock::parse(&bytes, &format!("{shown}/{LOCK_NAME}"))?;
    match lock.target.as_deref() {
        None => return Err(not_ours()),
        Some(owner) if owner != target => {
            return Err(
                Failure::new(format!("`{shown}` holds another target, `{owner}`")).hint("choose another NEW_DIR")
            );
        }
        Some(_) => {}
    }
    let edited = edited(place, &lock, converts)?;
    if !edited.is_empty() && !overwrite {
        return Err(Failure::new(format!("files of `{shown}` were edited by hand: {}", edited.join(", ")))
            .hint("to discard the edits: --overwrite"));
    }
    Ok(true)
}

/// Returns the paths that are not what the lock says. `converts` is whether git may have checked them out.
fn edited(place: &Path, lock: &Lock, converts: bool) -> Result<Vec<String>> {
    let tree = DirectoryTree::open(place, converts)?;
    let found = stored::differences(&tree, "", lock)?.into_iter();
    // Not every system has modes.
    let counts = |difference: &Difference| cfg!(unix) || *difference != Difference::Mode;
    Ok(found.filter(|(_, difference)| counts(difference)).map(|(path, _)| path).collect())
}

fn write(place: &Path, shown: &str, files: &BTreeMap<String, ResultFile>, replaces: bool) -> Result<()> {
    let failed = |error: std::io::Error| {
        Failure::new(format!("could not write `{shown}`: {error}"))
            .hint("check that the directory above it exists, can be written and has room")
    };
    let parent = match place.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let scratch = Scratch::among_files(parent).map_err(failed)?;
    let fresh = scratch.path().join("new");
    failpoint::before("make NEW_DIR beside its place");
    std::fs::create_dir(&fresh).map_err(failed)?;
    for (path, file) in files {
        let target = fresh.join(path);
        if let Some(directory) = target.parent() {
            std::fs::create_dir_all(directory).map_err(failed)?;
        }
        failpoint::before("write a file of NEW_DIR");
        write_file(&target, file.content.bytes(), file.executable).map_err(failed)?;
    }
    if replaces {
        failpoint::before("let NEW_DIR change places with the old one");
        if exchange(&fresh, place) {
            return Ok(());
        }
        let old = scratch.path().join("old");
        failpoint::before("move the old NEW_DIR away");
        std::fs::rename(place, &old).map_err(failed)?;
        failpoint::before("move NEW_DIR to the place of the old one");
        if let Err(error) = std::fs::rename(&fresh, place) {
            // Back as it was; should that fail too, the old files are kept where they are.
            if std::fs::rename(&old, place).is_err() {
                let kept = scratch.keep();
                return Err(failed(error).hint(format!("what was there before is in `{}`", kept.join("old").display())));
            }
            return Err(failed(error));
        }
        return Ok(());
    }
    failpoint::before("move NEW_DIR to its place");
    std::fs::rename(&fresh, place).map_err(|error| {
        if place.exists() {
            Failure::new(format!("`{shown}` was created by another process")).hint("run the same command again")
        } else {
            failed(error)
        }
    })
}

/// Lets two directories change places in one step, so that neither is missing at any moment.
/// Returns whether it did: not every system and file system can.
fn exchange(fresh: &Path, place: &Path) -> bool {
    #[cfg(any(target_os = "linux", target_vendor = "apple"))]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        renameat_with(CWD, fresh, CWD, place, RenameFlags::EXCHANGE).is_ok()
    }
    #[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
    {
        let _ = (fresh, place);
        false
    }
}

fn write_file(path: &Path, bytes: &[u8], executable: bool) -> std::io::Result<()> {
    std::fs::write(path, bytes)?;
    #[cfg(unix)]
    if executable {
        use std::os::unix::fs::PermissionsExt;
        let mut permissions = std::fs::metadata(path)?.permissions();
        // Executable for whoever may read it, as git checks out 100755.
        let mode = permissions.mode();
        permissions.set_mode(mode | ((mode & 0o444) >> 2));
        std::fs::set_permissions(path, permissions)?;
    }
    #[cfg(not(unix))]
    let _ = executable;
    Ok(())
}
