//! Linked worktrees of this repository.

use std::path::Path;
use std::time::Duration;

use super::{LocalRepo, stdout_of};
use crate::git::{command, run, untie};
use crate::message::failure::{self, Failure, Result};
use crate::os::{failpoint, interrupt};

/// The time to wait for another run that checks out a worktree.
const PATIENCE: Duration = Duration::from_secs(60);

/// A worktree in the output of `git worktree list`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorktreeEntry {
    pub directory: String,
    /// The full name of its current branch; `None` if its HEAD is detached.
    pub branch: Option<String>,
    /// Whether its directory was deleted.
    pub is_gone: bool,
}

impl WorktreeEntry {
    /// The command that removes it after its directory was deleted, with staged changes, also if it is locked.
    pub fn removal(&self) -> String {
        failure::command("git worktree remove -f -f", [&self.directory])
    }
}

impl LocalRepo {
    /// All worktrees, the main worktree first.
    pub fn worktrees(&self) -> Result<Vec<WorktreeEntry>> {
        let list = self.text(&["worktree", "list", "--porcelain"])?;
        let entries = list.split("\n\n").filter_map(|worktree| {
            let [directory, branch] = ["worktree ", "branch "]
                .map(|name| worktree.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned));
            let directory = directory?;
            Some(WorktreeEntry { branch, is_gone: !Path::new(&directory).exists(), directory })
        });
        Ok(entries.collect())
    }

    /// Waits until no other run changes a worktree of this repository, and keeps others waiting until the result is
    /// dropped.
    pub fn alone(&self) -> Result<interrupt::DirectoryLock> {
        interrupt::lock(&self.common, PATIENCE).ok_or_else(|| {
            Failure::new("another run is in progress in a worktree of this repository")
                .hint("run the same command again when it is done")
        })
    }

    /// Makes a linked worktree with a branch in a directory, an absolute path.
    pub fn add_worktree(&self, directory: &Path, branch: &str) -> Result<()> {
        let mut git = self.command();
        git.args(["worktree", "add", "--quiet", "--"]).arg(directory).arg(branch);
        failpoint::before("make the worktree");
        stdout_of(run(&mut git, None)?)
            .map(drop)
            .map_err(|failure| failure.context(format_args!("no worktree at `{}`", directory.display())))
    }

    /// Runs git in a worktree.
    pub fn in_worktree(&self, directory: &Path, args: &[&str]) -> Result<()> {
        let mut git = command();
        // The `GIT_DIR` of a hook names another worktree.
        untie(&mut git);
        stdout_of(run(git.current_dir(directory).args(args), None)?).map(drop)
    }
}
