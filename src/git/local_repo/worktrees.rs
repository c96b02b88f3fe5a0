//! Linked worktrees of this repository.

use std::path::Path;
use std::time::Duration;

use super::{LocalRepo, done};
use crate::git::{command, run, untied};
use crate::message::failure::{Failure, Result};
use crate::os::{failpoint, interrupt};

/// How long another run may take to check out a worktree.
const PATIENCE: Duration = Duration::from_secs(60);

/// A worktree, as `git worktree list` names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub directory: String,
    /// The full name of the branch that is checked out there; none where it is a commit.
    pub branch: Option<String>,
    /// Whether its directory is gone.
    pub is_gone: bool,
}

impl LocalRepo {
    /// Returns all worktrees, the main one first.
    pub fn worktrees(&self) -> Result<Vec<Listed>> {
        let list = self.text(&["worktree", "list", "--porcelain"])?;
        let listed = list.split("\n\n").filter_map(|worktree| {
            let field = |name: &str| worktree.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
            let directory = field("worktree ")?;
            Some(Listed { branch: field("branch "), is_gone: !Path::new(&directory).exists(), directory })
        });
        Ok(listed.collect())
    }

    /// Waits until no other run changes a worktree of this repository. None does before the return value is dropped.
    pub fn alone(&self) -> Result<interrupt::Alone> {
        interrupt::lock(&self.common, PATIENCE).ok_or_else(|| {
            Failure::new("another run is in progress in a worktree of this repository")
                .hint("run the same command again when it is done")
        })
    }

    /// Makes a linked worktree at a directory, an absolute path, with a branch checked out.
    pub fn add_worktree(&self, directory: &Path, branch: &str) -> Result<()> {
        let mut git = self.command();
        git.args(["worktree", "add", "--quiet", "--"]).arg(directory).arg(branch);
        failpoint::before("make the worktree");
        done(run(&mut git, None)?)
            .map(drop)
            .map_err(|failure| failure.context(format_args!("no worktree at `{}`", directory.display())))
    }

    /// Runs git in a worktree, without the repository that our caller named.
    pub fn in_worktree(&self, directory: &Path, args: &[&str]) -> Result<()> {
        let mut git = command();
        untied(&mut git);
        done(run(git.current_dir(directory).args(args), None)?).map(drop)
    }
}
