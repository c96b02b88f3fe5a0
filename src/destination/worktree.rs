//! A linked worktree that has the branch checked out. Its files follow the branch: if a run ends after it moved the
//! branch, the next run finishes the work.

use std::path::{Path, PathBuf};

use crate::git::LocalRepo;
use crate::message::failure::{Failure, Result, command};
use crate::os::failpoint;

/// A linked worktree that exists or will be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LinkedWorktree {
    /// An absolute path.
    pub(super) directory: PathBuf,
    /// The commit that is checked out without changes; `None` if the worktree does not exist yet.
    checked_out: Option<String>,
}

impl LinkedWorktree {
    /// Finds the linked worktree at a directory that the user named, or accepts an empty or missing directory, in which
    /// one will be made. `branch` is the full name of the ref that it must have checked out. Fails for any other
    /// directory, and for a worktree with uncommitted changes.
    pub(super) fn find(repo: &LocalRepo, directory: &Path, branch: &str) -> Result<LinkedWorktree> {
        let shown = directory.display().to_string();
        let absolute = std::path::absolute(directory)
            .map_err(|error| Failure::new(format!("`{shown}` cannot be used: {error}")))?;
        // git lists worktrees by their real paths.
        let directory = absolute.canonicalize().unwrap_or(absolute);
        let worktrees = repo.worktrees()?;
        let index = worktrees.iter().position(|listed| Path::new(&listed.directory) == directory);
        let checked_out = match index {
            // git refuses to add a worktree in the place of one that it still lists, also of the same branch.
            Some(index) if worktrees[index].is_gone => {
                return Err(Failure::new(format!("the worktree `{shown}` was deleted, and git still lists it"))
                    .hint(format!("to remove it, with staged changes: {}", worktrees[index].removal())));
            }
            // The directory is empty, or does not exist.
            None if directory.read_dir().map_or(!directory.exists(), |mut entries| entries.next().is_none()) => None,
            // git lists the main worktree first. It is not a linked one.
            Some(index @ 1..) if worktrees[index].branch.as_deref() == Some(branch) => {
                Some(checked_out_commit(repo, &directory, branch)?)
            }
            _ => {
                let name = branch.trim_start_matches("refs/heads/");
                return Err(Failure::new(format!("`{shown}` exists, and is not a linked worktree of `{name}`"))
                    .hint("choose an empty or a new directory"));
            }
        };
        Ok(LinkedWorktree { directory, checked_out })
    }

    /// Whether this is the existing worktree at `directory`.
    pub(super) fn is_at(&self, directory: &str) -> bool {
        self.checked_out.is_some() && self.directory == Path::new(directory)
    }

    /// Its directory, for a command; `None` if the worktree does not exist yet.
    pub(super) fn existing(&self) -> Option<String> {
        self.checked_out.as_ref().map(|_| self.directory.display().to_string())
    }

    /// Fails if [`follow`](Self::follow) would.
    pub(super) fn refuse_blocked_update(&self, repo: &LocalRepo, commit: &str) -> Result<()> {
        self.checked_out.as_ref().map_or(Ok(()), |old| self.read_tree(repo, &["--dry-run", old, commit]))
    }

    /// Makes the worktree have the files of `commit`, after the branch has moved there. Adds the worktree if it does
    /// not exist yet.
    pub(super) fn follow(&self, repo: &LocalRepo, branch: &str, commit: &str) -> Result<()> {
        match &self.checked_out {
            Some(old) if old == commit => Ok(()),
            Some(old) => {
                failpoint::before("check out the worktree");
                self.read_tree(repo, &[old, commit])
            }
            None => repo.add_worktree(&self.directory, branch.trim_start_matches("refs/heads/")),
        }
    }

    /// Replaces the files of one commit by those of another, as `git reset --keep` would if the branch had not moved
    /// yet.
    fn read_tree(&self, repo: &LocalRepo, args: &[&str]) -> Result<()> {
        repo.in_worktree(&self.directory, &[&["read-tree", "-m", "-u"], args].concat()).map_err(|failure| {
            let shown = self.directory.display().to_string();
            failure
                .context(format_args!("cannot update the worktree `{shown}`"))
                .hint(format!("look at it: {}", command("git -C", [&*shown, "status"])))
        })
    }
}

/// The commit whose files a worktree has, without changes: the tip of its branch, or the previous tip if a run ended
/// between moving the branch and updating the files. Fails if the worktree has uncommitted changes, which an update
/// would lose.
fn checked_out_commit(repo: &LocalRepo, directory: &Path, branch: &str) -> Result<String> {
    failpoint::before("refresh the index of the worktree");
    // Without a refresh, a file with a new time but the same content counts as changed. The error is dropped: git
    // reports changed files by it, and these are refused below.
    let _ = repo.in_worktree(directory, &["update-index", "-q", "--refresh"]);
    // First the files are compared with the index, then the index with each commit.
    if repo.in_worktree(directory, &["diff-files", "--quiet"]).is_ok() {
        // `@{1}` is the entry before in the reflog of the branch.
        for state in [branch.to_owned(), format!("{branch}@{{1}}")] {
            if repo.in_worktree(directory, &["diff-index", "--cached", "--quiet", &state, "--"]).is_ok()
                && let Some(id) = repo.commit(&state)?
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
