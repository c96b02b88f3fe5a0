//! A result as plain files on disk: written beside its place, then put there with one rename.

use std::cell::OnceCell;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::build::disk;
use crate::message::failure::{Failure, Result, command};
use crate::os::failpoint;
use crate::os::interrupt::{self, Scratch, TEMPORARY};
use crate::plan::{Changes, changed};
use crate::record::history::{self, tip};
use crate::record::sha256_hex;
use crate::record::stored::{self, FileDifference};
use crate::tree::disk::DiskTree;
use crate::tree::overlay::OverlayTree;
use crate::tree::{Entry, Tree};
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
    /// The digest of what was there when it was claimed; unset if nothing was.
    claimed: OnceCell<String>,
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
        let (into, converts, claimed) = (tree.path(&place)?, repo.is_some(), OnceCell::new());
        Ok(NewDirectory { into, place, shown: shown.to_owned(), converts, staging, claimed })
    }

    /// Refuses what is there, unless it is an unedited NEW_DIR of the same target.
    pub(super) fn claim(&self, tree: &dyn Tree, target: &str, overwrite: bool) -> Result<()> {
        let Some(lock) = tip::claim(tree, &self.into, target, "")? else { return Ok(()) };
        if self.place.join(".git").symlink_metadata().is_ok() {
            return Err(Failure::new(format!("`{}` has become a git repository of its own", self.shown))
                .hint("choose another NEW_DIR, and copy its files there"));
        }
        let _ = self.claimed.set(digest(&self.place)?);
        let tree = DiskTree::of_directory(&self.place, self.converts)?;
        let edited = stored::differences(&tree, "", &lock)?.into_iter();
        // Not every system has modes.
        let edited = edited.filter(|(_, difference)| cfg!(unix) || *difference != FileDifference::Mode);
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
        disk::write(&tree, changes.keys(), None, scratch.path(), None).map_err(failed)?;
        let fresh = scratch.path().join(&self.into);
        if self.place.symlink_metadata().is_ok() {
            self.refuse_changed(&self.place)?;
            return self.replace(&fresh, scratch);
        }
        failpoint::before("move NEW_DIR to its place");
        fs::rename(&fresh, &self.place).map_err(said)
    }

    /// Lets a new directory take the place of the one that was claimed. If what comes out of there is anything else, it goes
    /// back.
    fn replace(&self, fresh: &Path, scratch: Scratch) -> Result<()> {
        let said = |error: io::Error| Failure::new(format!("could not write `{}`: {error}", self.shown));
        let _held = interrupt::hold();
        failpoint::before("let NEW_DIR change places with the old one");
        let old = exchange(fresh, &self.place, &scratch.path().join("old")).map_err(said)?;
        let Err(changed) = self.refuse_changed(&old) else { return Ok(()) };
        failpoint::before("let NEW_DIR change places again");
        match exchange(&old, &self.place, &scratch.path().join("new")) {
            Ok(_) => Err(changed),
            Err(error) => {
                scratch.keep();
                Err(said(error).hint(format!("what was there before is now at `{}`", old.display())))
            }
        }
    }

    /// Refuses what is in a directory if that is not what was claimed.
    fn refuse_changed(&self, directory: &Path) -> Result<()> {
        let is_directory = directory.symlink_metadata().is_ok_and(|there| there.is_dir());
        let is_same = |claimed: &String| is_directory && digest(directory).is_ok_and(|now| now == *claimed);
        if self.claimed.get().is_some_and(is_same) {
            return Ok(());
        }
        Err(Failure::new(format!("`{}` was changed during this run, and stays as it is", self.shown))
            .hint("run the same command again"))
    }
}

/// Returns a digest of all that is in a directory.
fn digest(directory: &Path) -> Result<String> {
    let tree = DiskTree::of_directory(directory, false)?;
    let mut all = format!("{}\0", directory.join(".git").exists());
    for path in tree.below("")? {
        let entry = tree.entry(&path)?;
        let bytes = match entry {
            Some(Entry::File { .. } | Entry::Link) => tree.read(&path)?,
            _ => Vec::new(),
        };
        all += &format!("{path}\0{entry:?}\0{}\0", sha256_hex(&bytes));
    }
    Ok(sha256_hex(all.as_bytes()))
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
/// that. Returns where the one that was at `place` is then: at `old`, or in the place of the other.
fn exchange(fresh: &Path, place: &Path, old: &Path) -> io::Result<PathBuf> {
    #[cfg(any(target_os = "linux", target_vendor = "apple"))]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        if renameat_with(CWD, fresh, CWD, place, RenameFlags::EXCHANGE).is_ok() {
            return Ok(fresh.to_owned());
        }
    }
    failpoint::before("move the old NEW_DIR away");
    fs::rename(place, old)?;
    failpoint::before("move NEW_DIR to the place of the old one");
    fs::rename(fresh, place).inspect_err(|_| {
        // Back as it was, as far as that can be done.
        let _ = fs::rename(old, place);
    })?;
    Ok(old.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_claimed_goes_back() {
        let top = tempfile::tempdir().unwrap();
        let [place, fresh] = ["copy", "fresh"].map(|name| top.path().join(name));
        let write = |directory: &Path, text: &str| {
            fs::create_dir_all(directory).unwrap();
            fs::write(directory.join("a"), text).unwrap();
        };
        write(&place, "old");
        let directory = NewDirectory {
            place: place.clone(),
            into: "copy".to_owned(),
            shown: "copy".to_owned(),
            converts: false,
            staging: top.path().to_owned(),
            claimed: OnceCell::from(digest(&place).unwrap()),
        };
        let replace = || {
            write(&fresh, "new");
            directory.replace(&fresh, Scratch::beside(top.path(), TEMPORARY).unwrap())
        };
        write(&place, "mine");
        let failure = replace().unwrap_err();
        assert_eq!(failure.message, "`copy` was changed during this run, and stays as it is");
        assert_eq!(fs::read_to_string(place.join("a")).unwrap(), "mine");
        fs::remove_dir_all(&place).unwrap();
        fs::write(&place, "mine").unwrap();
        replace().unwrap_err();
        assert_eq!(fs::read_to_string(&place).unwrap(), "mine");
        fs::remove_file(&place).unwrap();
        write(&place, "old");
        replace().unwrap();
        assert_eq!(fs::read_to_string(place.join("a")).unwrap(), "new");
    }
}
