//! Sets up fetching for the upstreams of a workspace.

use std::rc::Rc;

use super::Workspace;
use crate::config::Config;
use crate::fetch::{self, Fetcher, Tip};
use crate::git::{LocalRepo, RemoteGit};
use crate::message::failure::Result;
use crate::record::Lock;

/// The options of fetching that the configuration decides. The caller sets those of the command line, such as
/// `offline`.
pub(crate) fn fetch_options(config: &Config) -> fetch::FetchOptions {
    fetch::FetchOptions {
        helm: config.helm,
        max_file_size: config.max_file_size,
        allow_private: config.allow_private,
        ..fetch::FetchOptions::default()
    }
}

/// Sets up fetching with the connection settings of the repository. The first of `locks` that has an upstream decides.
pub(crate) fn fetcher(
    repo: Option<&Rc<LocalRepo>>,
    options: fetch::FetchOptions,
    locks: Vec<Rc<Lock>>,
    tip: Option<Tip>,
) -> Result<Fetcher> {
    Ok(Fetcher::new(remote_git(repo.map(|repo| &**repo))?, options, locks, tip))
}

/// Sets up fetching of the upstreams in the lock of a workspace, and of nothing else.
pub(crate) fn from_lock(
    repo: Option<&Rc<LocalRepo>>,
    workspace: &Workspace,
    offline: bool,
    quiet: bool,
) -> Result<Fetcher> {
    fetcher_of(workspace.lock.as_ref(), repo, &workspace.config, offline, quiet)
}

/// Sets up fetching of the upstreams in a lock, and of nothing else.
pub(crate) fn fetcher_of(
    lock: Option<&Rc<Lock>>,
    repo: Option<&Rc<LocalRepo>>,
    config: &Config,
    offline: bool,
    quiet: bool,
) -> Result<Fetcher> {
    let options = fetch::FetchOptions { locked: true, offline, quiet, ..fetch_options(config) };
    // Localized branches may have the files of upstreams too.
    Ok(fetcher(repo, options, lock.cloned().into_iter().collect(), None)?.with_branches(repo))
}

/// git for remote repositories, with the connection settings of `repo`.
pub(crate) fn remote_git(repo: Option<&LocalRepo>) -> Result<RemoteGit> {
    let settings = repo.map(LocalRepo::connection_config).transpose()?;
    Ok(RemoteGit::new(settings.unwrap_or_default()))
}
