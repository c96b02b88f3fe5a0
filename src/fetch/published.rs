//! A localized branch at one of the user's remotes.

use std::cell::RefCell;
use std::rc::Rc;

use crate::git::LocalRepo;
use crate::message::failure::{Failure, Result, command};

/// A branch, and the remote at which others see it.
pub(crate) struct Published {
    repo: Rc<LocalRepo>,
    remote: String,
    name: String,
    /// The commit that the remote had when it was fetched. `None` if the remote did not have the branch.
    fetched: RefCell<Option<String>>,
}

impl Published {
    /// The localized branch with the short name `branch`, and the remote where others see it. The first of these that
    /// exists counts: the remote that the user `asked` for, the remote of the branch, the remote of its `source`
    /// branch, `origin`, the only remote. `None` if none exists. Fails if the remote that was asked for does not exist.
    pub(crate) fn find(
        repo: &Rc<LocalRepo>,
        asked: Option<&str>,
        branch: &str,
        source: Option<&str>,
    ) -> Result<Option<Published>> {
        let remotes = repo.remotes()?;
        let remote_of = |branch: &str| repo.config(&format!("branch.{branch}.remote"));
        if let Some(asked) = asked.filter(|asked| !remotes.contains(asked)) {
            return Err(Failure::new(format!("unknown remote `{asked}`")).hint("list them: git remote"));
        }
        let [asked, origin] = [asked, Some("origin")].map(|name| name.map(str::to_owned));
        let only = remotes.first().filter(|_| remotes.len() == 1).map(|only| (*only).to_owned());
        // The order goes from the explicit to the usual.
        let candidates = [asked, remote_of(branch)?, source.map(remote_of).transpose()?.flatten(), origin, only];
        // `branch.NAME.remote` may also be a URL, or `.` for this repository: neither is a remote.
        let Some(remote) = candidates.into_iter().flatten().find(|remote| remotes.contains(&**remote)) else {
            return Ok(None);
        };
        Ok(Some(Published {
            repo: repo.clone(),
            remote,
            name: format!("refs/heads/{branch}"),
            fetched: RefCell::default(),
        }))
    }

    /// The name of the remote.
    pub(crate) fn remote(&self) -> &str {
        &self.remote
    }

    /// The remote-tracking ref of the branch.
    pub(crate) fn tracking(&self) -> String {
        format!("refs/remotes/{}/{}", self.remote, self.short())
    }

    /// The short name of the branch.
    fn short(&self) -> &str {
        self.name.trim_start_matches("refs/heads/")
    }

    /// Fetches the branch, if the remote has it.
    pub(crate) fn fetch(&self) -> Result<()> {
        let id = self.remote_tip()?;
        if id.is_some() {
            let fetched = self.repo.fetch_branch(&self.remote, &self.name, &self.tracking());
            fetched.map_err(|failure| self.explained(failure, "fetch", "from"))?;
        }
        self.fetched.replace(id);
        Ok(())
    }

    /// Pushes `commit` as the new tip of the branch. Returns `false` if somebody else pushed since it was fetched: the
    /// caller then localizes again, on top of their commit.
    pub(crate) fn push(&self, commit: &str) -> Result<bool> {
        // The remote has it already.
        if self.fetched.borrow().as_deref() == Some(commit) {
            return Ok(true);
        }
        let Err(failure) = self.repo.push(&self.remote, commit, &self.name, &self.tracking()) else {
            return Ok(true);
        };
        // If the remote has moved, the push came too late, or succeeded although the connection broke.
        match self.remote_tip()? {
            moved if moved != *self.fetched.borrow() => Ok(moved.as_deref() == Some(commit)),
            _ => Err(self.explained(failure, "push", "to")),
        }
    }

    /// Refuses to start a branch that the remote already has although this clone lacks it, because CI often clones a
    /// single branch: the new branch would have another history, and could not be pushed. `or_push` is a hint to fetch
    /// it by pushing; `None` for a command that does not push.
    pub(crate) fn refuse_unseen(&self, or_push: Option<&str>) -> Result<()> {
        // A clone that fetches all branches of the remote would have it.
        if self.repo.shows_branches_of(&self.remote)? {
            return Ok(());
        }
        // Any other clone cannot tell, so the remote is asked.
        if self.repo.is_offline() {
            let message = format!("this clone does not show whether `{}` has `{}`", self.remote, self.short());
            return Err(Failure::new(message).hint("run it without `--offline`, so that the remote is asked"));
        }
        if self.remote_tip()?.is_none() {
            return Ok(());
        }
        let refspec = format!("+{}:{}", self.name, self.tracking());
        let fetch = command("git fetch", [&self.remote, &refspec]);
        let message =
            format!("this clone lacks `{}` of `{}`, and would start a new history", self.short(), self.remote);
        Err(or_push.into_iter().fold(Failure::new(message).hint(fetch), Failure::hint))
    }

    /// Asks the remote for the tip of the branch. `None` if it does not have the branch.
    fn remote_tip(&self) -> Result<Option<String>> {
        let asked = self.repo.branch_at(&self.remote, &self.name);
        asked.map_err(|failure| self.explained(failure, "look for", "at"))
    }

    /// Adds to a failure what could not be done with the branch at the remote, for example `push` it `to` the remote.
    fn explained(&self, failure: Failure, verb: &str, at: &str) -> Failure {
        failure.context(format!("could not {verb} `{}` {at} `{}`", self.short(), self.remote))
    }
}
