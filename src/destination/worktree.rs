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
    directory: PathBuf,
    /// The commit whose files it holds; none where it is to be made.
    holds: Option<String>,
}

impl Linked {
    /// Finds the worktree at a directory, or the place for one. `branch` is the full name of a ref.
    pub(super) fn find(here: &LocalRepo, directory: &Path, branch: &str) -> Result<Linked> {
        let shown = directory.display();
        let absolute = std::path::absolute(directory)
            .map_err(|error| Failure::new(format!("`{shown}` cannot be used: {error}")))?;
        // git names it by its real path.
        let directory = absolute.canonicalize().unwrap_or(absolute);
        let worktrees = here.worktrees()?;
        let found = worktrees.iter().position(|listed| Path::new(&listed.directory) == directory);
        let Some(index) = found.filter(|index| !worktrees[*index].is_gone) else {
            let is_free = !directory.exists() || directory.read_dir().is_ok_and(|mut entries| entries.next().is_none());
            return if is_free {
                Ok(Linked { directory, holds: None })
            } else {
                Err(Failure::new(format!("`{shown}` is there already, and no worktree of this repository"))
                    .hint("choose a directory that is empty or not there"))
            };
        };
        let listed = &worktrees[index];
        let name = branch.trim_start_matches("refs/heads/");
        let refused = |what: String| {
            Err(Failure::new(format!("`{shown}` is {what}")).hint(format!("choose another directory for `{name}`")))
        };
        match listed.branch.as_deref() {
            _ if index == 0 => refused("the main worktree, whose files are yours".to_owned()),
            Some(other) if other == branch => Linked::holding(here, directory, branch),
            Some(other) => {
                refused(format!("a worktree that has `{}` checked out", other.trim_start_matches("refs/heads/")))
            }
            None => refused("a worktree that has a commit checked out".to_owned()),
        }
    }

    /// Finds out whose files a worktree holds, which has no changes of its own.
    fn holding(here: &LocalRepo, directory: PathBuf, branch: &str) -> Result<Linked> {
        failpoint::before("refresh the index of the worktree");
        // A file that was only touched has not changed.
        let _ = here.in_worktree(&directory, &["update-index", "-q", "--refresh"]);
        if here.in_worktree(&directory, &["diff-files", "--quiet"]).is_ok() {
            for state in [branch.to_owned(), format!("{branch}@{{1}}")] {
                let args = ["diff-index", "--cached", "--quiet", &state, "--"];
                if here.in_worktree(&directory, &args).is_ok()
                    && let Some(id) = here.commit(&state)?
                {
                    return Ok(Linked { directory, holds: Some(id.commit) });
                }
            }
        }
        let shown = directory.display().to_string();
        let at = [shown.as_str()];
        Err(Failure::new(format!("the worktree `{shown}` has changes of its own")).hint(format!(
            "look at them, then discard them: {} status; {} reset --hard",
            command("git -C", at),
            command("git -C", at)
        )))
    }

    /// Looks again at what was found: other runs may have been here.
    pub(super) fn again(&self, here: &LocalRepo, branch: &str) -> Result<Linked> {
        Linked::find(here, &self.directory, branch)
    }

    /// Returns whether this is the worktree at `directory`.
    pub(super) fn is_at(&self, directory: &str) -> bool {
        self.holds.is_some() && self.directory == Path::new(directory)
    }

    /// Refuses to go on where [`follow`](Self::follow) could not.
    pub(super) fn refuse_in_the_way(&self, here: &LocalRepo, commit: &str) -> Result<()> {
        match &self.holds {
            Some(old) => self.read(here, &["--dry-run", old, commit]),
            None => Ok(()),
        }
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

    /// Lets the files of one commit follow those of another.
    fn read(&self, here: &LocalRepo, args: &[&str]) -> Result<()> {
        let args = [&["read-tree", "-m", "-u"], args].concat();
        here.in_worktree(&self.directory, &args).map_err(|failure| {
            failure.context(format_args!("the worktree `{}` cannot be brought up to date", self.directory.display()))
        })
    }
}
