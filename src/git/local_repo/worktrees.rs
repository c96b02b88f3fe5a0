//! Linked worktrees of this repository.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{LocalRepo, ok, run};
use crate::git::{command, said, untied};
use crate::message::failure::{Failure, Result};
use crate::os::failpoint;
use crate::os::interrupt;

/// How long another run may take to check out a worktree.
const PATIENCE: Duration = Duration::from_secs(60);

/// A worktree, as `git worktree list` names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub directory: String,
    /// The full name of the branch that is checked out there, or set aside; none where it is a commit.
    pub branch: Option<String>,
    /// Whether its directory is gone.
    pub is_gone: bool,
    /// Whether git keeps it even then.
    pub is_locked: bool,
    /// What git is in the middle of there: it has set the branch aside, and moves it at the end.
    pub amid: Option<Amid>,
}

/// What takes several steps, with a commit checked out in place of the branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amid {
    /// `git rebase`.
    Rebase,
    /// `git bisect`.
    Bisect,
}

impl LocalRepo {
    /// Returns all worktrees, the main one first.
    pub fn worktrees(&self) -> Result<Vec<Listed>> {
        let list = ok(self.run(&["worktree", "list", "--porcelain"], None)?)?;
        let listed = list.split("\n\n").filter_map(|worktree| {
            let field = |name: &str| worktree.lines().find_map(|line| line.strip_prefix(name));
            let directory = field("worktree ")?.to_owned();
            let mut branch = field("branch ").map(str::to_owned);
            let mut amid = None;
            if branch.is_none()
                && let Some((name, what)) = git_dir(Path::new(&directory)).and_then(set_aside)
            {
                (branch, amid) = (Some(name), Some(what));
            }
            Some(Listed {
                branch,
                amid,
                // One that is locked is not prunable, wherever it went.
                is_gone: field("prunable").is_some() || !Path::new(&directory).exists(),
                is_locked: field("locked").is_some(),
                directory,
            })
        });
        Ok(listed.collect())
    }

    /// Returns the directory that all worktrees share: as in `gitrepository-layout(5)` for `commondir`.
    fn common(&self) -> PathBuf {
        match fs::read_to_string(self.git_dir.join("commondir")) {
            Ok(common) => self.git_dir.join(common.trim_end()),
            Err(_) => self.git_dir.clone(),
        }
    }

    /// Waits until no other run changes a worktree of this repository. None does before the return value is dropped.
    pub fn alone(&self) -> Result<interrupt::Alone> {
        interrupt::lock(&self.common(), PATIENCE).ok_or_else(|| {
            Failure::new("another run is at work in a worktree of this repository")
                .hint("run the same command again when it is done")
        })
    }

    /// Makes a linked worktree at a directory, an absolute path, with a branch checked out.
    pub fn add_worktree(&self, directory: &Path, branch: &str) -> Result<()> {
        let mut git = self.command();
        git.args(["worktree", "add", "--quiet", "--"]).arg(directory).arg(branch);
        failpoint::before("make the worktree");
        ok(run::<&str>(git, &[], None)?)
            .map(drop)
            .map_err(|failure| failure.context(format_args!("no worktree at `{}`", directory.display())))
    }

    /// Runs git in a worktree, without the repository that our caller named.
    pub fn in_worktree(&self, directory: &Path, args: &[&str]) -> Result<()> {
        let mut git = command();
        untied(&mut git);
        git.current_dir(directory);
        let output = run(git, args, None)?;
        if output.status.success() { Ok(()) } else { Err(Failure::new(said(&output))) }
    }
}

/// Returns the repository directory of the worktree at `directory`.
fn git_dir(directory: &Path) -> Option<PathBuf> {
    let link = directory.join(".git");
    match fs::read_to_string(&link) {
        Ok(text) => Some(directory.join(text.strip_prefix("gitdir: ")?.trim_end())),
        Err(_) => Some(link),
    }
}

/// Returns the branch that git has set aside in a worktree, by its full name, and what for: `git worktree list` shows a
/// detached HEAD only (`worktree.c`, `is_worktree_being_rebased`).
fn set_aside(git_dir: PathBuf) -> Option<(String, Amid)> {
    let read = |name: &str| Some(fs::read_to_string(git_dir.join(name)).ok()?.trim().to_owned());
    for name in ["rebase-merge/head-name", "rebase-apply/head-name"] {
        if let Some(name) = read(name).filter(|name| name.starts_with("refs/heads/")) {
            return Some((name, Amid::Rebase));
        }
    }
    // A commit id if no branch was checked out: then there is no such branch.
    let start = read("BISECT_START")?;
    let name = start.strip_prefix("refs/heads/").unwrap_or(&start);
    Some((format!("refs/heads/{name}"), Amid::Bisect))
}
