//! A linked worktree that has the branch checked out. It follows the branch: a run that was ended after the branch was
//! moved is finished by the next one.

use std::path::{Path, PathBuf};

use crate::git::LocalRepo;
use crate::message::failure::{Failure, Result, command};
use crate::os::failpoint;

/// A linked worktree, there or to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Linked {
    /// Its directory, an absolute path.
    pub(super) directory: PathBuf,
    /// The commit whose files it holds, and nothing else; none where it is to be made.
    holds: Option<String>,
}

impl Linked {
    /// Finds the worktree at a directory, or the place for one. `branch` is the full name of a ref.
    pub(super) fn find(here: &LocalRepo, directory: &Path, branch: &str) -> Result<Linked> {
        let shown = directory.display().to_string();
        let absolute = std::path::absolute(directory)
            .map_err(|error| Failure::new(format!("`{shown}` cannot be used: {error}")))?;
        // git names it by its real path.
        let directory = absolute.canonicalize().unwrap_or(absolute);
        let worktrees = here.worktrees()?;
        let mut listed = worktrees.iter();
        let found = listed.position(|listed| Path::new(&listed.directory) == directory && !listed.is_gone);
        let holds = match found {
            None if directory.read_dir().map_or(!directory.exists(), |mut entries| entries.next().is_none()) => None,
            Some(index @ 1..) if worktrees[index].branch.as_deref() == Some(branch) => {
                Some(held(here, &directory, branch)?)
            }
            _ => {
                let name = branch.trim_start_matches("refs/heads/");
                return Err(Failure::new(format!("`{shown}` exists, and is not a linked worktree of `{name}`"))
                    .hint("choose an empty or a new directory"));
            }
        };
        Ok(Linked { directory, holds })
    }

    /// Returns whether this is the worktree at `directory`.
    pub(super) fn is_at(&self, directory: &str) -> bool {
        self.holds.is_some() && self.directory == Path::new(directory)
    }

    /// Refuses to go on where [`follow`](Self::follow) could not.
    pub(super) fn refuse_in_the_way(&self, here: &LocalRepo, commit: &str) -> Result<()> {
        self.holds.as_ref().map_or(Ok(()), |old| self.read(here, &["--dry-run", old, commit]))
    }

    /// Brings the files up to date with the branch, which is at this commit now.
    pub(super) fn follow(&self, here: &LocalRepo, branch: &str, commit: &str) -> Result<()> {
        match &self.holds {
            Some(old) if old == commit => Ok(()),
            Some(old) => {
                failpoint::before("check out the worktree");
                self.read(here, &[old, commit])
            }
            None => here.add_worktree(&self.directory, branch.trim_start_matches("refs/heads/")),
        }
    }

    /// Lets the files of one commit follow those of another, as `git reset --keep` would, had the branch not moved.
    fn read(&self, here: &LocalRepo, args: &[&str]) -> Result<()> {
        here.in_worktree(&self.directory, &[&["read-tree", "-m", "-u"], args].concat()).map_err(|failure| {
            failure.context(format_args!("cannot update the worktree `{}`", self.directory.display()))
        })
    }
}

/// Returns whose files a worktree holds: those of its branch, or of what that was before, where a run was ended. Refuses
/// one with changes of its own.
fn held(here: &LocalRepo, directory: &Path, branch: &str) -> Result<String> {
    failpoint::before("refresh the index of the worktree");
    // A file that was only touched has not changed.
    let _ = here.in_worktree(directory, &["update-index", "-q", "--refresh"]);
    let is_clean = |args: &[&str]| here.in_worktree(directory, args).is_ok();
    if is_clean(&["diff-files", "--quiet"]) {
        for state in [branch.to_owned(), format!("{branch}@{{1}}")] {
            if is_clean(&["diff-index", "--cached", "--quiet", &state, "--"])
                && let Some(id) = here.commit(&state)?
            {
                return Ok(id.commit);
            }
        }
    }
    let shown = directory.display().to_string();
    let git = command("git -C", [&shown]);
    Err(Failure::new(format!("the worktree `{shown}` has uncommitted changes"))
        .hint(format!("look at them: {git} status"))
        .hint(format!("to discard them: {git} reset --hard")))
}
