//! A linked worktree that has the branch checked out. It changes together with the branch, or not at all.

use std::path::{Path, PathBuf};

use crate::git::{Amid, Listed, LocalRepo};
use crate::message::failure::{Failure, Result, command};
use crate::os::failpoint;

/// Names the commit whose files are being checked out, in the worktree alone: a run that is killed then has left the
/// files of this one or of the one that the branch names.
const COMING: &str = "refs/worktree/kustomize-localize";

/// A linked worktree, there or to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Linked {
    /// Its directory, an absolute path.
    directory: PathBuf,
    stage: Stage,
}

/// How far a worktree is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing is there.
    Missing,
    /// Nothing is there any more, but git knows of one that was never finished.
    Lost,
    /// A run that was killed has put it there. No branch need be checked out.
    Unfinished,
    /// The branch is checked out there.
    Ready,
}

/// What a worktree was before it was changed.
pub(super) struct Before {
    was_there: bool,
}

impl Linked {
    /// Finds the worktree at a directory, or the place for one. `branch` is the full name of a ref. No other run may be
    /// making worktrees ([`LocalRepo::alone`]).
    pub(super) fn find(here: &LocalRepo, directory: &Path, branch: &str) -> Result<Linked> {
        let shown = directory.display();
        let absolute = std::path::absolute(directory)
            .map_err(|error| Failure::new(format!("`{shown}` cannot be used: {error}")))?;
        let worktrees = here.worktrees()?;
        let at = |place: &Path| {
            let is_it = |listed: &Listed| Path::new(&listed.directory) == place;
            worktrees.iter().position(is_it)
        };
        let nothing = |place: PathBuf| {
            let lost = at(&place).and_then(|index| worktrees.get(index));
            let is_lost = lost.is_some_and(|lost| lost.is_unfinished);
            Linked { directory: place, stage: if is_lost { Stage::Lost } else { Stage::Missing } }
        };
        let Ok(real) = absolute.canonicalize() else {
            // git names it by the real path of what is above.
            let parent = absolute.parent().and_then(|parent| parent.canonicalize().ok());
            return Ok(nothing(match (parent, absolute.file_name()) {
                (Some(parent), Some(name)) => parent.join(name),
                _ => absolute,
            }));
        };
        let is_empty = real.read_dir().is_ok_and(|mut entries| entries.next().is_none());
        let Some((index, listed)) = at(&real).and_then(|index| Some((index, worktrees.get(index)?))) else {
            return if is_empty {
                Ok(nothing(real))
            } else {
                Err(Failure::new(format!("`{shown}` is there already, and no worktree of this repository"))
                    .hint("choose a directory that is empty or not there"))
            };
        };
        if listed.is_unfinished && is_empty {
            return Ok(nothing(real));
        }
        let name = branch.trim_start_matches("refs/heads/");
        if let Some(failure) = amid(listed) {
            return Err(failure);
        }
        let checked_out = listed.branch.as_deref();
        let is_bare_commit = listed.is_unfinished && checked_out.is_none();
        if index == 0 || (checked_out != Some(branch) && !is_bare_commit) {
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
        let linked =
            Linked { directory: real, stage: if listed.is_unfinished { Stage::Unfinished } else { Stage::Ready } };
        linked.refuse_changed(here)?;
        Ok(linked)
    }

    /// Looks again at what was found: other runs may have been here.
    pub(super) fn again(&self, here: &LocalRepo, branch: &str) -> Result<Linked> {
        Linked::find(here, &self.directory, branch)
    }

    /// Returns whether this is the worktree at `directory`.
    pub(super) fn is_at(&self, directory: &str) -> bool {
        matches!(self.stage, Stage::Unfinished | Stage::Ready) && self.directory == Path::new(directory)
    }

    fn refuse_changed(&self, here: &LocalRepo) -> Result<()> {
        failpoint::before("refresh the index of the worktree");
        // A file that was only touched has not changed.
        here.asks_worktree(&self.directory, &["update-index", "-q", "--refresh"])?;
        if here.asks_worktree(&self.directory, &["diff-files", "--quiet"])? { Ok(()) } else { Err(self.has_changes()) }
    }

    fn has_changes(&self) -> Failure {
        let shown = self.directory.display().to_string();
        let at = [shown.as_str()];
        match self.stage {
            Stage::Unfinished => Failure::new(format!(
                "the worktree `{shown}` was left unfinished by a run that was killed"
            ))
            .hint(format!(
                "look whether it holds anything of yours, then remove it: {}",
                command("git worktree remove --force --force", at)
            )),
            _ => Failure::new(format!("the worktree `{shown}` has changes of its own")).hint(format!(
                "look at them, then discard them: {} status; {} reset --hard",
                command("git -C", at),
                command("git -C", at)
            )),
        }
    }

    /// Puts the files of a commit out. The branch has not moved yet.
    pub(super) fn put_out(&self, here: &LocalRepo, commit: &str) -> Result<Before> {
        if matches!(self.stage, Stage::Missing | Stage::Lost) {
            here.add_worktree(&self.directory, commit, self.stage == Stage::Lost)?;
            return Ok(Before { was_there: false });
        }
        // A run that was killed in between has left the files of one of these.
        let states = ["HEAD", commit, "HEAD^", COMING];
        for state in states {
            let args = ["diff-index", "--cached", "--quiet", state, "--"];
            if !here.asks_worktree(&self.directory, &args)? {
                continue;
            }
            if state == COMING {
                // It is named otherwise from now on.
                self.read(here, COMING, "HEAD")?;
            }
            failpoint::before("note what the worktree is going to hold");
            here.in_worktree(&self.directory, &["update-ref", COMING, commit])?;
            let state = if state == COMING { "HEAD" } else { state };
            let read = self.read(here, state, commit);
            read.inspect_err(|_| self.forget_coming(here))?;
            return Ok(Before { was_there: true });
        }
        Err(self.has_changes())
    }

    /// Lets the files of one commit follow those of another.
    fn read(&self, here: &LocalRepo, old: &str, new: &str) -> Result<()> {
        failpoint::before("check out the worktree");
        here.in_worktree(&self.directory, &["read-tree", "-m", "-u", old, new]).map_err(|failure| {
            failure.context(format_args!("the worktree `{}` cannot be brought up to date", self.directory.display()))
        })
    }

    fn forget_coming(&self, here: &LocalRepo) {
        failpoint::before("forget what the worktree was going to hold");
        // Where it stays it names what nothing is compared with but the files that it describes.
        let _ = here.in_worktree(&self.directory, &["update-ref", "-d", COMING]);
    }

    /// Takes back what [`put_out`](Self::put_out) did, because the branch could not be moved.
    pub(super) fn take_back(&self, here: &LocalRepo, before: &Before, commit: &str) {
        // Nothing can be done where this fails, too; the next run finds the files of either commit.
        if !before.was_there {
            let _ = here.remove_worktree(&self.directory);
        } else if self.read(here, commit, "HEAD").is_ok() {
            self.forget_coming(here);
        }
    }

    /// Lets the worktree have the branch checked out, which is where its files are from.
    pub(super) fn settle(&self, here: &LocalRepo, before: &Before, branch: &str) -> Result<()> {
        if self.stage != Stage::Ready {
            here.finish_worktree(&self.directory, branch)?;
        }
        if before.was_there {
            self.forget_coming(here);
        }
        Ok(())
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
        Failure::new(format!("branch `{name}` is being {doing} at `{directory}`"))
            .hint(format!("finish that, or give it up: {} {end}", command("git -C", [directory]))),
    )
}
