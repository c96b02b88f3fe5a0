//! Talks to the configured remotes of this repository.

use std::collections::BTreeSet;

use super::{LocalRepo, stdout_of, text};
use crate::git::not_run;
use crate::message::failure::Result;
use crate::os::failpoint;
use crate::os::process::{self, Terminal};

impl LocalRepo {
    /// The names of the configured remotes.
    pub fn remotes(&self) -> Result<BTreeSet<&str>> {
        // Only `url` makes a remote: the user's configuration may have other settings for remotes of other
        // repositories.
        let settings = self.settings()?.iter();
        Ok(settings.filter_map(|setting| setting.key.strip_prefix("remote.")?.strip_suffix(".url")).collect())
    }

    /// Whether the remote-tracking branches show all branches of a remote, unlike in a shallow or single-branch clone.
    pub fn shows_branches_of(&self, remote: &str) -> Result<bool> {
        let refspec = self.config(&format!("remote.{remote}.fetch"))?;
        let all = format!("+refs/heads/*:refs/remotes/{remote}/*");
        Ok(refspec == Some(all) && !self.is_shallow()?)
    }

    /// Asks a remote for the commit of a branch, by its full name; `None` if it has no such branch.
    pub fn branch_at(&self, remote: &str, branch: &str) -> Result<Option<String>> {
        let lines = text(self.talk(&["ls-remote", "--quiet", "--end-of-options", remote, branch])?)?;
        let mut refs = lines.lines().filter_map(|line| line.split_once('\t'));
        Ok(refs.find_map(|(id, name)| (name == branch).then(|| id.to_owned())))
    }

    /// Fetches one branch of a remote, by its full name, to `tracking`.
    pub fn fetch_branch(&self, remote: &str, branch: &str, tracking: &str) -> Result<()> {
        let refspec = format!("+{branch}:{tracking}");
        let mut args = vec!["fetch", "--quiet", "--no-tags", "--no-recurse-submodules"];
        // A shallow clone would fetch the whole history of a branch that it does not have yet.
        if self.is_shallow()? && self.ref_id(tracking)?.is_none() {
            args.push("--depth=1");
        }
        args.extend(["--end-of-options", remote, &refspec]);
        self.talk(&args).map(drop)
    }

    /// Pushes a commit, without force, to a branch of a remote, by its full name, and updates `tracking`.
    pub fn push(&self, remote: &str, commit: &str, branch: &str, tracking: &str) -> Result<()> {
        failpoint::before("push");
        let refspec = format!("{commit}:{branch}");
        self.talk(&["push", "--quiet", "--end-of-options", remote, &refspec])?;
        // git updates it only in a clone of all branches.
        let old = self.ref_id(tracking)?;
        if old.as_deref() == Some(commit) {
            return Ok(());
        }
        self.update_ref(tracking, commit, old.as_deref(), "update by push")
    }

    /// Talks to a remote as the user would on the same terminal.
    fn talk(&self, args: &[&str]) -> Result<Vec<u8>> {
        let mut command = self.command();
        // git may ask for a password.
        command.env_remove("GIT_TERMINAL_PROMPT").args(args);
        stdout_of(process::run(&mut command, None, None, Terminal::Shared).map_err(not_run)?)
    }
}
