//! A result as plain files on disk: written to a staging directory, then moved to its path with one rename.

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

/// How the name of a directory begins in which somebody's files stay after a failure.
const KEPT: &str = "kustomize-localize-old-";

/// A separate directory for a copy.
pub(crate) struct NewDirectory {
    /// Its path on disk, without links except for its last component, which need not exist yet.
    disk_path: PathBuf,
    /// Its path in the tree of the workspace.
    pub(super) tree_path: String,
    /// As the user named it.
    pub(super) shown: String,
    /// Whether the run is in a repository, so that the files of the directory may come from a checkout.
    converts: bool,
    /// The directory for staging: the git directory, whose files git does not track, if it can be, otherwise the parent
    /// directory.
    staging: PathBuf,
    /// The previous directory when it was claimed; unset if it did not exist.
    claimed: OnceCell<Claimed>,
}

/// The state of the previous directory.
struct Claimed {
    digest: String,
    /// The files that were edited by hand, by path in the directory.
    edited: Vec<String>,
}

impl NewDirectory {
    /// Resolves a directory that the user named `shown`, from the current directory, or with `:/` from the top of the
    /// repository. Fails if files cannot or should not be written there, or if the files on disk are not the source.
    pub(super) fn find(workspace: &Workspace, shown: &str) -> Result<NewDirectory> {
        let Files::Disk { repo, cwd, tree } = &workspace.files else {
            return Err(Failure::new("a directory can be written from the files on disk only"));
        };
        let top = repo.as_ref().and_then(|repo| repo.top.as_ref());
        let disk_path = match (top, shown.strip_prefix(":/")) {
            (Some(top), Some(rest)) => resolve_new_dir(top, rest)?,
            _ => resolve_new_dir(cwd, shown)?,
        };
        let git_dir = repo.as_ref().and_then(|repo| repo.git_dir.canonicalize().ok());
        // git could delete or misread foreign files among its own.
        if git_dir.is_some_and(|git_dir| disk_path.starts_with(git_dir)) {
            return Err(Failure::new(format!("`{shown}` is in the git directory")).hint("choose another NEW_DIR"));
        }
        // The copy would land outside of the repository, or in another directory of it, while its paths say something
        // else.
        if let Some(link) = top.and_then(|top| link_in(top, cwd, shown)) {
            return Err(Failure::new(format!("`{shown}` goes through the link `{}`", link.display()))
                .hint("name the target of the link"));
        }
        // The copy is written to a staging directory and then exchanged, so both must be on one file system. The git
        // directory is the best place: git never shows files in it as untracked. That of a linked worktree may be on
        // another file system.
        let beside = disk_path.parent().unwrap_or(cwd);
        let staging = match (repo, top) {
            (Some(repo), Some(top)) if disk_path.starts_with(top) => {
                // A commit of the copy would be an edit by hand of the localized branch.
                history::refuse_localized_head(repo)?;
                if are_on_one_file_system(&repo.git_dir, beside) { repo.git_dir.clone() } else { beside.to_owned() }
            }
            _ => beside.to_owned(),
        };
        let (tree_path, converts, claimed) = (tree.path(&disk_path)?, repo.is_some(), OnceCell::new());
        Ok(NewDirectory { tree_path, disk_path, shown: shown.to_owned(), converts, staging, claimed })
    }

    /// Refuses an existing directory, unless it is an earlier copy of `target` without edits by hand: it will be
    /// replaced as a whole. With `overwrite` edits are accepted. Records its content, so that a later change is
    /// noticed. A directory that does not exist is accepted.
    pub(super) fn claim(&self, tree: &dyn Tree, target: &str, overwrite: bool) -> Result<()> {
        let Some(lock) = tip::replaced_copy(tree, &self.tree_path, target, "")? else { return Ok(()) };
        if let Some(inside) = repositories(&self.disk_path)?.first() {
            let shown = Path::new(&self.shown).join(inside);
            return Err(Failure::new(format!("`{}` is a git repository of its own", shown.display()))
                .hint("move it away, or choose another NEW_DIR"));
        }
        let digest = directory_digest(&self.disk_path)?;
        // The paths of the lock are relative to NEW_DIR, so it is read as a tree of its own.
        let tree = DiskTree::of_directory(&self.disk_path)?.converting(self.converts);
        let edited = stored::differences(&tree, "", &lock)?.into_iter();
        // Only Unix has file modes.
        let edited = edited.filter(|(_, difference)| cfg!(unix) || *difference != FileDifference::Mode);
        let edited = edited.map(|(path, _)| path).collect();
        let edited = &self.claimed.get_or_init(|| Claimed { digest, edited }).edited;
        if edited.is_empty() || overwrite {
            return Ok(());
        }
        Err(Failure::new(format!("files of `{}` were edited by hand: {}", self.shown, edited.join(", ")))
            .hint("to discard the edits: --overwrite"))
    }

    /// The files that were edited by hand when the directory was claimed, by path in it.
    pub(super) fn edited(&self) -> &[String] {
        self.claimed.get().map_or(&[], |claimed| &claimed.edited)
    }

    /// Replaces the directory by a new one with the files of a plan, in one step if the system can do that. After a
    /// failure everything is as before, or the failure names the new path of the old directory.
    pub(super) fn write(&self, changes: &Changes) -> Result<()> {
        let scratch = Scratch::beside(&self.staging, TEMPORARY).map_err(|error| self.failed(&error))?;
        // The plan of a copy has every file of NEW_DIR, so the new directory needs nothing of the old one.
        let tree = changed(OverlayTree::default(), changes);
        failpoint::before("make NEW_DIR beside its place");
        disk::write(&tree, changes.keys(), None, scratch.path())?.map_err(|failure| self.not_written(failure))?;
        let fresh = scratch.path().join(&self.tree_path);
        if self.disk_path.symlink_metadata().is_ok() {
            // `replace` checks it again, but would have to put it back.
            self.refuse_changed(&self.disk_path)?;
            return self.replace(&fresh, scratch);
        }
        failpoint::before("move NEW_DIR to its place");
        fs::rename(&fresh, &self.disk_path).map_err(|error| self.failed(&error))
    }

    /// The failure of an error of the system while NEW_DIR was written.
    fn failed(&self, error: &io::Error) -> Failure {
        self.not_written(Failure::new(error.to_string()))
    }

    /// Adds to a failure that NEW_DIR could not be written, and how to fix it.
    fn not_written(&self, failure: Failure) -> Failure {
        failure
            .context(format_args!("could not write `{}`", self.shown))
            .hint("check that its parent directory exists, is writable and has room")
    }

    /// Exchanges a new directory with the one that was claimed. If the old one has changed since, exchanges them back.
    fn replace(&self, fresh: &Path, scratch: Scratch) -> Result<()> {
        let _signals = interrupt::delay_interrupts();
        failpoint::before("let NEW_DIR change places with the old one");
        let moved = scratch.path().join("old");
        let old = match exchange(fresh, &self.disk_path, &moved) {
            Ok(old) => old,
            Err(error) => return Err(self.not_exchanged(&error, &moved, scratch)),
        };
        // Nobody can write to the old directory any more, so only now it is certain whether it has changed.
        let Err(changed) = self.refuse_changed(&old) else { return Ok(()) };
        failpoint::before("let NEW_DIR change places again");
        match exchange(&old, &self.disk_path, &scratch.path().join("new")) {
            Ok(_) => Err(changed),
            Err(error) => Err(self.not_exchanged(&error, &old, scratch)),
        }
    }

    /// The failure of an exchange. If the old directory is still at `moved`, it stays there, and the hint says so.
    fn not_exchanged(&self, error: &io::Error, moved: &Path, scratch: Scratch) -> Failure {
        let failure = Failure::new(format!("could not write `{}`: {error}", self.shown));
        if moved.symlink_metadata().is_err() {
            return failure;
        }
        // The next run removes what has the name of a temporary directory.
        let scratch = scratch.keep();
        let name = scratch.file_name().unwrap_or_default().to_string_lossy().replace(TEMPORARY, KEPT);
        let kept = scratch.with_file_name(name);
        let moved = match (fs::rename(&scratch, &kept), moved.strip_prefix(&scratch)) {
            (Ok(()), Ok(inside)) => kept.join(inside),
            _ => moved.to_owned(),
        };
        failure.hint(format!("what was there before is now at `{}`", moved.display()))
    }

    /// Refuses a directory whose content has changed since it was claimed, or that did not exist then.
    fn refuse_changed(&self, directory: &Path) -> Result<()> {
        let is_directory = directory.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
        let claimed = self.claimed.get().filter(|_| is_directory);
        if claimed.is_some_and(|claimed| directory_digest(directory).is_ok_and(|now| now == claimed.digest)) {
            return Ok(());
        }
        Err(Failure::new(format!("`{}` was changed during this run, and stays as it is", self.shown))
            .hint("run the same command again"))
    }
}

/// The `.git` of each repository in a directory, by its path in it. A tree does not list them, so their history would
/// be deleted with the directory unnoticed.
fn repositories(directory: &Path) -> Result<Vec<PathBuf>> {
    let failed = |error: io::Error| Failure::new(format!("`{}` cannot be read: {error}", directory.display()));
    let (mut repositories, mut directories) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(inside) = directories.pop() {
        for entry in fs::read_dir(directory.join(&inside)).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if entry.file_name().eq_ignore_ascii_case(".git") {
                repositories.push(inside.join(entry.file_name()));
            } else if entry.file_type().map_err(failed)?.is_dir() {
                directories.push(inside.join(entry.file_name()));
            }
        }
    }
    repositories.sort();
    Ok(repositories)
}

/// A digest of the content of a directory, by which a change during a run is noticed: all files with their paths and
/// modes, and the git repositories.
fn directory_digest(directory: &Path) -> Result<String> {
    let tree = DiskTree::of_directory(directory)?;
    let mut all = format!("{:?}\0", repositories(directory)?);
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

/// Whether a directory can be renamed into another one.
#[cfg(unix)]
fn are_on_one_file_system(from: &Path, to: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let device = |directory: &Path| directory.metadata().map(|metadata| metadata.dev()).ok();
    device(from) == device(to)
}

#[cfg(not(unix))]
fn are_on_one_file_system(_: &Path, _: &Path) -> bool {
    true
}

/// The first link in the repository that the path of NEW_DIR, as the user wrote it, goes through; `None` if there is
/// none.
fn link_in(top: &Path, cwd: &Path, shown: &str) -> Option<PathBuf> {
    let mut disk_path = shown.strip_prefix(":/").map_or(cwd, |_| top).to_owned();
    for name in Path::new(shown.strip_prefix(":/").unwrap_or(shown)).parent()?.components() {
        disk_path.push(name);
        if disk_path.starts_with(top) && disk_path.is_symlink() {
            return Some(disk_path);
        }
    }
    None
}

/// The path on disk of a NEW_DIR that the user wrote as `shown`, relative to `from`. The links above it are resolved,
/// so that equal directories have equal paths. Fails if its parent does not exist.
fn resolve_new_dir(from: &Path, shown: &str) -> Result<PathBuf> {
    let disk_path = from.join(shown);
    let (Some(parent), Some(name)) = (disk_path.parent(), disk_path.file_name()) else {
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

/// Moves the directory `fresh` to `disk_path`, and the directory that was there away, in one step if the system can do
/// that. Returns the new path of the latter: `fresh` after an exchange in one step, otherwise `old`.
fn exchange(fresh: &Path, disk_path: &Path, old: &Path) -> io::Result<PathBuf> {
    #[cfg(any(target_os = "linux", target_vendor = "apple"))]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        // Both paths exist at any moment. Some file systems cannot do this: then two renames must do.
        if renameat_with(CWD, fresh, CWD, disk_path, RenameFlags::EXCHANGE).is_ok() {
            return Ok(fresh.to_owned());
        }
    }
    failpoint::before("move the old NEW_DIR away");
    fs::rename(disk_path, old)?;
    failpoint::before("move NEW_DIR to the place of the old one");
    fs::rename(fresh, disk_path).inspect_err(|_| {
        // Best effort: the first error is reported in any case.
        let _ = fs::rename(old, disk_path);
    })?;
    Ok(old.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_claimed_goes_back() {
        let top = tempfile::tempdir().unwrap();
        let [disk_path, fresh] = ["copy", "fresh"].map(|name| top.path().join(name));
        let write = |directory: &Path, text: &str| {
            fs::create_dir_all(directory).unwrap();
            fs::write(directory.join("a"), text).unwrap();
        };
        write(&disk_path, "old");
        let directory = NewDirectory {
            disk_path: disk_path.clone(),
            tree_path: "copy".to_owned(),
            shown: "copy".to_owned(),
            converts: false,
            staging: top.path().to_owned(),
            claimed: OnceCell::from(Claimed { digest: directory_digest(&disk_path).unwrap(), edited: Vec::new() }),
        };
        let replace = || {
            write(&fresh, "new");
            directory.replace(&fresh, Scratch::beside(top.path(), TEMPORARY).unwrap())
        };
        write(&disk_path, "mine");
        let failure = replace().unwrap_err();
        assert_eq!(failure.message, "`copy` was changed during this run, and stays as it is");
        assert_eq!(fs::read_to_string(disk_path.join("a")).unwrap(), "mine");
        fs::remove_dir_all(&disk_path).unwrap();
        fs::write(&disk_path, "mine").unwrap();
        replace().unwrap_err();
        assert_eq!(fs::read_to_string(&disk_path).unwrap(), "mine");
        fs::remove_file(&disk_path).unwrap();
        write(&disk_path, "old");
        replace().unwrap();
        assert_eq!(fs::read_to_string(disk_path.join("a")).unwrap(), "new");
        // Without a new directory, the old one goes back.
        let _ = fs::remove_dir_all(&fresh);
        let scratch = || Scratch::beside(top.path(), TEMPORARY).unwrap();
        let failure = directory.replace(&fresh, scratch()).unwrap_err();
        assert!(failure.hints.is_empty(), "{failure:?}");
        assert_eq!(fs::read_to_string(disk_path.join("a")).unwrap(), "new");
        // If it cannot go back, it is not deleted with the scratch directory.
        let scratch = scratch();
        let moved = scratch.path().join("old");
        write(&moved, "old");
        let failure = directory.not_exchanged(&io::Error::other("busy"), &moved, scratch);
        let moved = PathBuf::from(moved.to_str().unwrap().replace(TEMPORARY, KEPT));
        assert_eq!(failure.hints, [format!("what was there before is now at `{}`", moved.display())]);
        // The next run removes what is left of others.
        interrupt::sweep(top.path(), TEMPORARY);
        assert_eq!(fs::read_to_string(moved.join("a")).unwrap(), "old");
    }
}
