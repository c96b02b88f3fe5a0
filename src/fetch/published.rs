//! A localized branch at one of the user's own remotes.

use std::cell::RefCell;
use std::rc::Rc;

use crate::git::LocalRepo;
use crate::message::failure::{Failure, Result, command};

/// A branch, and the remote that others see it at.
pub(crate) struct Published {
    here: Rc<LocalRepo>,
    remote: String,
    /// The full name of the branch.
    name: String,
    /// Where the remote had it when it was fetched.
    fetched: RefCell<Option<String>>,
}

impl Published {
    /// Returns the branch `name` (short) at the remote that the user names, or else at that of the branch, of its source,
    /// at `origin`, at the only one; none where there is no remote.
    pub(crate) fn find(
        here: &Rc<LocalRepo>,
        named: Option<&str>,
        name: &str,
        source: Option<&str>,
    ) -> Result<Option<Published>> {
        let remotes = here.remotes()?;
        let of = |branch: &str| here.config(&format!("branch.{branch}.remote"));
        if let Some(named) = named.filter(|named| !remotes.contains(named)) {
            return Err(Failure::new(format!("unknown remote `{named}`")).hint("list them: git remote"));
        }
        let [named, origin] = [named, Some("origin")].map(|name| name.map(str::to_owned));
        let only = remotes.first().filter(|_| remotes.len() == 1).map(|only| (*only).to_owned());
        let likely = [named, of(name)?, source.map(of).transpose()?.flatten(), origin, only];
        let Some(remote) = likely.into_iter().flatten().find(|remote| remotes.contains(&**remote)) else {
            return Ok(None);
        };
        Ok(Some(Published {
            here: here.clone(),
            remote,
            name: format!("refs/heads/{name}"),
            fetched: RefCell::default(),
        }))
    }

    /// Returns the name of the remote.
    pub(crate) fn remote(&self) -> &str {
        &self.remote
    }

    /// Returns its remote-tracking ref.
    pub(crate) fn tracking(&self) -> String {
        format!("refs/remotes/{}/{}", self.remote, self.short())
    }

    fn short(&self) -> &str {
        self.name.trim_start_matches("refs/heads/")
    }

    /// Fetches it, if the remote has it.
    pub(crate) fn fetch(&self) -> Result<()> {
        let id = self.ask()?;
        if id.is_some() {
            let fetched = self.here.fetch_branch(&self.remote, &self.name, &self.tracking());
            fetched.map_err(|failure| self.explained(failure, "fetch", "from"))?;
        }
        self.fetched.replace(id);
        Ok(())
    }

    /// Pushes `commit`, and returns whether that is what the remote has now: not where somebody else was faster.
    pub(crate) fn push(&self, commit: &str) -> Result<bool> {
        if self.fetched.borrow().as_deref() == Some(commit) {
            return Ok(true);
        }
        let Err(failure) = self.here.push(&self.remote, commit, &self.name, &self.tracking()) else {
            return Ok(true);
        };
        match self.ask()? {
            moved if moved != *self.fetched.borrow() => Ok(moved.as_deref() == Some(commit)),
            _ => Err(self.explained(failure, "push", "to")),
        }
    }

    /// Refuses to begin a branch that the remote has and this clone does not show. Asks the remote only if the clone
    /// cannot tell.
    pub(crate) fn refuse_unseen(&self) -> Result<()> {
        if self.here.shows_branches_of(&self.remote)? || self.ask()?.is_none() {
            return Ok(());
        }
        let refspec = format!("+{}:{}", self.name, self.tracking());
        let fetch = command("git fetch", [&self.remote, &refspec]);
        Err(Failure::new(format!(
            "this clone lacks `{}` of `{}`, and would start a new history",
            self.short(),
            self.remote
        ))
        .hint(fetch)
        .hint("fetch, commit and push in one step: git kustomize-localize branch --push"))
    }

    fn ask(&self) -> Result<Option<String>> {
        let asked = self.here.branch_at(&self.remote, &self.name);
        asked.map_err(|failure| self.explained(failure, "look for", "at"))
    }

    fn explained(&self, failure: Failure, verb: &str, at: &str) -> Failure {
        failure.context(format!("could not {verb} `{}` {at} `{}`", self.short(), self.remote))
    }
}
