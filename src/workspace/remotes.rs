//! How what a workspace names is fetched.

use std::rc::Rc;

use super::Workspace;
use crate::config::Config;
use crate::fetch::{self, Fetcher, Tip};
use crate::git::{LocalRepo, RemoteGit};
use crate::message::failure::Result;
use crate::record::Lock;

/// Returns how remote references are brought in.
pub(crate) fn fetching(config: &Config, offline: bool, quiet: bool) -> fetch::Options {
    fetch::Options {
        helm: config.helm,
        max_file_size: config.max_file_size,
        offline,
        allow_private: config.allow_private,
        quiet,
        ..fetch::Options::default()
    }
}

/// Sets up fetching with the connection settings of the repository, if there is one. `locks` decide in their order.
pub(crate) fn fetcher(
    repo: Option<&Rc<LocalRepo>>,
    options: fetch::Options,
    locks: Vec<Rc<Lock>>,
    held: Option<Tip>,
) -> Result<Fetcher> {
    Ok(Fetcher::new(remote_git(repo.map(|repo| &**repo))?, options, locks, held))
}

/// Sets up fetching of what the lock of a workspace holds, which the localized branches may have, too.
pub(crate) fn from_lock(
    repo: Option<&Rc<LocalRepo>>,
    workspace: &Workspace,
    offline: bool,
    quiet: bool,
) -> Result<Fetcher> {
    fetcher_of(workspace.lock.as_ref(), repo, &workspace.config, offline, quiet)
}

/// Sets up fetching of what a lock holds.
pub(crate) fn fetcher_of(
    lock: Option<&Rc<Lock>>,
    repo: Option<&Rc<LocalRepo>>,
    config: &Config,
    offline: bool,
    quiet: bool,
) -> Result<Fetcher> {
    let options = fetch::Options { locked: true, ..fetching(config, offline, quiet) };
    Ok(fetcher(repo, options, lock.cloned().into_iter().collect(), None)?.with_branches(repo))
}

/// Returns git for remote repositories, with the connection settings of this one, if there is one.
pub(crate) fn remote_git(repo: Option<&LocalRepo>) -> Result<RemoteGit> {
    let settings = repo.map(LocalRepo::connection_config).transpose()?;
    Ok(RemoteGit::new(settings.unwrap_or_default()))
}
