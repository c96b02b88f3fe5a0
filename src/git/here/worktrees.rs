//! Linked worktrees of this repository.

use std::path::Path;

use super::{Here, ok, run};
use crate::failure::{Failure, Result};
use crate::git::{command, said, untied};

/// A worktree, as `git worktree list` names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its directory.
    pub directory: String,
    /// The full name of the branch that is checked out there; none where it is a commit.
    pub branch: Option<String>,
    /// Whether its directory is not there any more.
    pub is_gone: bool,
}

impl Here {
    /// Returns all worktrees, the main one first.
    ///
    /// # Errors
    /// When git cannot list them.
    pub fn worktrees(&self) -> Result<Vec<Listed>> {
        let list = ok(self.run(&["worktree", "list", "--porcelain"], None)?)?;
        let listed = list.split("\n\n").filter_map(|worktree| {
            let field = |name: &str| worktree.lines().find_map(|line| line.strip_prefix(name));
            Some(Listed {
                directory: field("worktree ")?.to_owned(),
                branch: field("branch ").map(str::to_owned),
                is_gone: field("prunable").is_some(),
            })
        });
        Ok(listed.collect())
    }

    /// Makes a linked worktree at a directory, an absolute path, with a commit checked out.
    ///
    /// # Errors
    /// When git cannot make it: nothing is left of it then.
    pub fn add_worktree(&self, directory: &Path, commit: &str) -> Result<()> {
        let mut git = self.command();
        git.args(["worktree", "add", "--quiet", "--detach", "--"])
            .arg(directory)
            .arg(commit);
        ok(run::<&str>(git, &[], None)?)
            .map(drop)
            .map_err(|failure| {
                failure.context(format_args!("no worktree at `{}`", directory.display()))
            })
    }

    /// Removes a linked worktree with everything in it.
    ///
    /// # Errors
    /// When git cannot remove it.
    pub fn remove_worktree(&self, directory: &Path) -> Result<()> {
        let mut git = self.command();
        git.args(["worktree", "remove", "--force", "--"])
            .arg(directory);
        ok(run::<&str>(git, &[], None)?).map(drop)
    }

    /// Runs git in a worktree, without the repository that our caller named. Says whether it succeeded.
    ///
    /// # Errors
    /// When git cannot be run.
    pub fn asks_worktree(&self, directory: &Path, args: &[&str]) -> Result<bool> {
        let mut git = command();
        untied(&mut git);
        git.current_dir(directory);
        Ok(run(git, args, None)?.status.success())
    }

    /// Runs git in a worktree, without the repository that our caller named.
    ///
    /// # Errors
    /// When it does not succeed.
    pub fn in_worktree(&self, directory: &Path, args: &[&str]) -> Result<()> {
        let mut git = command();
        untied(&mut git);
        git.current_dir(directory);
        let output = run(git, args, None)?;
        match output.status.success() {
            true => Ok(()),
            false => Err(Failure::new(said(&output))),
        }
    }
}
