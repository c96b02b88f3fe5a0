//! A result as plain files on disk: written beside its place, then put there with one rename.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::build::disk;
use crate::message::failure::{Failure, Result, command};
use crate::os::failpoint;
use crate::os::interrupt::{Scratch, TEMPORARY};
use crate::plan::{Changes, changed};
use crate::record::history::{self, tip};
use crate::record::stored::{self, Difference};
use crate::tree::Tree;
use crate::tree::disk::DiskTree;
use crate::tree::overlay::OverlayTree;
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
    /// Where it is written first: below the git directory, where git does not see it, else beside its place.
    staging: PathBuf,
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
        let is_inside = |directory: &PathBuf| directory.canonicalize().is_ok_and(|inside| place.starts_with(inside));
        if repo.as_ref().is_some_and(|repo| is_inside(&repo.git_dir)) {
            return Err(Failure::new(format!("`{shown}` is in the git directory")).hint("choose another NEW_DIR"));
        }
        if let Some(link) = top.and_then(|top| link_in(top, cwd, shown)) {
            return Err(Failure::new(format!("`{shown}` goes through the link `{}`", link.display()))
                .hint("name the target of the link"));
        }
        let staging = match (repo, top) {
            (Some(repo), Some(top)) if place.starts_with(top) => {
                history::refuse_checked_out(repo)?;
                repo.git_dir.clone()
            }
            _ => place.parent().unwrap_or(cwd).to_owned(),
        };
        Ok(NewDirectory { into: tree.path(&place)?, place, shown: shown.to_owned(), converts: repo.is_some(), staging })
    }

    /// Refuses what is there, unless it is an unedited NEW_DIR of the same target.
    pub(super) fn claim(&self, tree: &dyn Tree, target: &str, overwrite: bool) -> Result<()> {
        let Some(lock) = tip::claim(tree, &self.into, target, "")? else { return Ok(()) };
        let tree = DiskTree::of_directory(&self.place, self.converts)?;
        let edited = stored::differences(&tree, "", &lock)?.into_iter();
        // Not every system has modes.
        let edited = edited.filter(|(_, difference)| cfg!(unix) || *difference != Difference::Mode);
        let edited: Vec<String> = edited.map(|(path, _)| path).collect();
        if edited.is_empty() || overwrite {
            return Ok(());
        }
        Err(Failure::new(format!("files of `{}` were edited by hand: {}", self.shown, edited.join(", ")))
            .hint("to discard the edits: --overwrite"))
    }

    /// Writes the files in one step, instead of what is there. On any failure everything is as it was.
    pub(super) fn write(&self, changes: &Changes) -> Result<()> {
        let failed = |failure: Failure| {
            failure
                .context(format_args!("could not write `{}`", self.shown))
                .hint("check that its parent directory exists, is writable and has room")
        };
        let said = |error: io::Error| failed(Failure::new(error.to_string()));
        let scratch = Scratch::beside(&self.staging, TEMPORARY).map_err(said)?;
        let tree = changed(OverlayTree::default(), changes);
        failpoint::before("make NEW_DIR beside its place");
        disk::write(&tree, changes.keys(), None, scratch.path()).map_err(failed)?;
        let fresh = scratch.path().join(&self.into);
        if self.place.exists() {
            failpoint::before("let NEW_DIR change places with the old one");
            return exchange(&fresh, &self.place, &scratch.path().join("old")).map_err(said);
        }
        failpoint::before("move NEW_DIR to its place");
        fs::rename(&fresh, &self.place).map_err(said)
    }
}

/// Returns the link of a repository on the way to NEW_DIR, if there is one.
fn link_in(top: &Path, cwd: &Path, shown: &str) -> Option<PathBuf> {
    let mut place = shown.strip_prefix(":/").map_or(cwd, |_| top).to_owned();
    for name in Path::new(shown.strip_prefix(":/").unwrap_or(shown)).parent()?.components() {
        place.push(name);
        if place.starts_with(top) && place.is_symlink() {
            return Some(place);
        }
    }
    None
}

/// Returns where NEW_DIR goes.
fn place(from: &Path, shown: &str) -> Result<PathBuf> {
    let place = from.join(shown);
    let (Some(parent), Some(name)) = (place.parent(), place.file_name()) else {
        return Err(
            Failure::new(format!("`{shown}` is not a valid name for a new directory")).hint("choose another NEW_DIR")
        );
    };
    let above = Path::new(shown).parent().unwrap_or(parent);
    match parent.canonicalize() {
        Ok(parent) if parent.is_dir() => Ok(parent.join(name)),
        _ => Err(Failure::new(format!("no parent directory for `{shown}`"))
            .hint(format!("create it first: {}", command("mkdir -p --", [above.to_string_lossy()])))),
    }
}

/// Lets two directories change places: in one step, so that neither is missing at any moment, where the system can do
/// that.
fn exchange(fresh: &Path, place: &Path, old: &Path) -> io::Result<()> {
    #[cfg(any(target_os = "linux", target_vendor = "apple"))]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        if renameat_with(CWD, fresh, CWD, place, RenameFlags::EXCHANGE).is_ok() {
            return Ok(());
        }
    }
    failpoint::before("move the old NEW_DIR away");
    fs::rename(place, old)?;
    failpoint::before("move NEW_DIR to the place of the old one");
    fs::rename(fresh, place).inspect_err(|_| {
        // Back as it was, as far as that can be done.
        let _ = fs::rename(old, place);
    })
}
