//! A linked worktree that has the branch checked out. It changes together with the branch, or not at all.

use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result, argument};
use crate::git::{Amid, Here, Listed};

/// A linked worktree, there or to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Linked {
    /// Its directory, an absolute path.
    directory: PathBuf,
    /// Whether it is there, with the branch checked out.
    is_there: bool,
}

/// What a worktree was before it was changed.
#[must_use]
pub struct Before {
    /// What its index held; none where there was no worktree.
    state: Option<String>,
}

impl Linked {
    /// Finds the worktree at a directory, or the place for one. `branch` is the full name of a ref.
    ///
    /// # Errors
    /// When something else is there: files, a worktree of another branch, one with changes.
    pub fn find(here: &Here, directory: &Path, branch: &str) -> Result<Linked> {
        let shown = directory.display();
        let absolute = std::path::absolute(directory)
            .map_err(|error| Failure::new(format!("`{shown}` cannot be used: {error}")))?;
        let Ok(real) = absolute.canonicalize() else {
            return Ok(Linked {
                directory: absolute,
                is_there: false,
            });
        };
        let worktrees = here.worktrees()?;
        let listed = worktrees
            .iter()
            .position(|listed| Path::new(&listed.directory) == real);
        let Some(index) = listed else {
            let is_empty = real
                .read_dir()
                .is_ok_and(|mut entries| entries.next().is_none());
            return match is_empty {
                true => Ok(Linked {
                    directory: real,
                    is_there: false,
                }),
                false => Err(Failure::new(format!(
                    "`{shown}` is there already, and no worktree of this repository"
                ))
                .hint("choose a directory that is empty or not there")),
            };
        };
        let name = branch.trim_start_matches("refs/heads/");
        if let Some(failure) = worktrees.get(index).and_then(amid) {
            return Err(failure);
        }
        let checked_out = worktrees.get(index).and_then(|one| one.branch.as_deref());
        if index == 0 || checked_out != Some(branch) {
            let other = match checked_out {
                Some(other) => format!("`{}`", other.trim_start_matches("refs/heads/")),
                None => "a commit".to_owned(),
            };
            return Err(Failure::new(match index {
                0 => format!("`{shown}` is the main worktree, whose files are yours"),
                _ => format!("`{shown}` is a worktree that has {other} checked out"),
            })
            .hint(format!("choose another directory for `{name}`")));
        }
        let linked = Linked {
            directory: real,
            is_there: true,
        };
        linked.refuse_changed(here)?;
        Ok(linked)
    }

    /// Returns whether this is the worktree at `directory`.
    #[must_use]
    pub fn is_at(&self, directory: &str) -> bool {
        self.is_there && self.directory == Path::new(directory)
    }

    fn refuse_changed(&self, here: &Here) -> Result<()> {
        // What is only touched is not changed.
        here.asks_worktree(&self.directory, &["update-index", "-q", "--refresh"])?;
        match here.asks_worktree(&self.directory, &["diff-files", "--quiet"])? {
            true => Ok(()),
            false => Err(self.has_changes()),
        }
    }

    fn has_changes(&self) -> Failure {
        let shown = self.directory.display().to_string();
        Failure::new(format!("the worktree `{shown}` has changes of its own")).hint(format!(
            "look at them, then discard them: git -C {0} status; git -C {0} reset --hard",
            argument(&shown)
        ))
    }

    /// Puts the files of a commit out. The branch has not moved yet.
    ///
    /// # Errors
    /// When git cannot, as where something untracked is in the way: the worktree is then as before.
    pub fn put_out(&self, here: &Here, commit: &str) -> Result<Before> {
        if !self.is_there {
            here.add_worktree(&self.directory, commit)?;
            return Ok(Before { state: None });
        }
        // A run that was killed in between has left the files of either commit.
        let ways = ["HEAD", commit, "HEAD^"];
        for state in ways {
            let args = ["diff-index", "--cached", "--quiet", state, "--"];
            if here.asks_worktree(&self.directory, &args)? {
                here.in_worktree(&self.directory, &["read-tree", "-m", "-u", state, commit])
                    .map_err(|failure| {
                        failure.context(format_args!(
                            "the worktree `{}` cannot be brought up to date",
                            self.directory.display()
                        ))
                    })?;
                let state = Some(state.to_owned());
                return Ok(Before { state });
            }
        }
        Err(self.has_changes())
    }

    /// Takes back what [`put_out`](Self::put_out) did, because the branch could not be moved.
    pub fn take_back(&self, here: &Here, before: &Before, commit: &str) {
        // Nothing can be done where this fails, too; the next run finds the files of either commit.
        let _ = match &before.state {
            None => here.remove_worktree(&self.directory),
            Some(state) => {
                here.in_worktree(&self.directory, &["read-tree", "-m", "-u", commit, state])
            }
        };
    }

    /// Lets the worktree have the branch checked out, which is where its files are from.
    ///
    /// # Errors
    /// When git cannot.
    pub fn settle(&self, here: &Here, branch: &str) -> Result<()> {
        match self.is_there {
            true => Ok(()),
            false => here.in_worktree(&self.directory, &["symbolic-ref", "HEAD", branch]),
        }
    }
}

/// Returns why a branch cannot be moved while git is in the middle of something with it: git moves it at the end.
pub(super) fn amid(listed: &Listed) -> Option<Failure> {
    let name = listed.branch.as_deref()?.trim_start_matches("refs/heads/");
    let directory = &listed.directory;
    let (doing, end) = match listed.amid? {
        Amid::Rebase => ("rebased", "rebase --abort"),
        Amid::Bisect => ("bisected", "bisect reset"),
    };
    Some(
        Failure::new(format!("branch `{name}` is being {doing} at `{directory}`")).hint(format!(
            "finish that, or give it up: git -C {} {end}",
            argument(directory)
        )),
    )
}
