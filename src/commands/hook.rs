//! `hook`: puts hooks in and takes them out, and does what one that runs does.

use super::check::{self, What};
use super::lock;
use crate::check::Checked;
use crate::git::LocalRepo;
use crate::hook::{self, Change, Directory, Framework, Hook, Judged, Running};
use crate::message::failure::{Failures, Result};
use crate::workspace::repository_offline;

/// The result of installing hooks.
#[derive(Debug)]
pub(crate) struct Installed {
    /// What was done to each.
    pub changes: Vec<Change>,
    /// Whether their directory lies in the working tree.
    pub in_tree: bool,
    /// Whether other working trees have them, too.
    pub is_shared: bool,
    /// Whether the configuration switches them off.
    pub is_off: bool,
}

/// What a hook found about one thing that it was asked about.
#[derive(Debug)]
pub(crate) struct Judgement {
    /// The refs that it is about; none where no ref is.
    pub refs: Vec<String>,
    /// What was found.
    pub checked: Result<Checked, Failures>,
}

pub(crate) fn install(hooks: &[Hook]) -> Result<Installed, Failures> {
    let here = repository_offline()?;
    let changes = hook::install(&here, hooks)?;
    let directory = Directory::find(&here)?;
    Ok(Installed { changes, in_tree: directory.in_tree, is_shared: directory.is_shared(&here), is_off: is_off(&here)? })
}

/// Uninstalls our hooks, and returns what was done.
pub(crate) fn uninstall(hooks: &[Hook]) -> Result<Vec<Change>, Failures> {
    let here = repository_offline()?;
    hook::uninstall(&here, hooks)
}

/// Does what a hook does. `refs` reads the refs that git names on standard input, `framework` is what that of pre-commit
/// says.
pub(crate) fn run(
    running: Running,
    framework: &Framework,
    refs: impl FnOnce() -> Result<String>,
) -> Result<Vec<Judgement>, Failures> {
    let here = repository_offline()?;
    // Not on a server, where the hook is a gate: only its owner decides what is checked there.
    if running != Running::PreReceive && is_off(&here)? {
        return Ok(Vec::new());
    }
    let all = match running {
        Running::PreCommit | Running::PreMergeCommit => vec![hook::committed()],
        Running::PrePush => hook::pushed(&here, &refs()?)?,
        Running::PreReceive => hook::received(&here, &refs()?)?,
        Running::Framework => vec![hook::framework(&here, framework)?],
        Running::Lock => Vec::new(),
    };
    let judged =
        all.into_iter().map(|judged| Judgement { checked: check::check(&here, &request(&judged)), refs: judged.refs });
    Ok(judged.collect())
}

/// Brings the lock up to date, unless the hooks are switched off.
pub(crate) fn relock() -> Result<Option<lock::Outcome>, Failures> {
    let here = repository_offline()?;
    if is_off(&here)? {
        return Ok(None);
    }
    lock::lock(&lock::Request::default()).map(Some)
}

/// Returns whether the hooks are switched off. What is not set is on.
fn is_off(here: &LocalRepo) -> Result<bool> {
    const KEY: &str = "kustomize-localize.hook";
    Ok(here.config(KEY)?.is_some() && !here.config_bool(KEY)?)
}

fn request(judged: &Judged) -> check::Request {
    check::Request {
        what: match &judged.commit {
            Some(commit) => What::Commit(commit.clone()),
            None => What::Index,
        },
        paths: Vec::new(),
        base: judged.base.clone(),
    }
}
