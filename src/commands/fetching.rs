//! How commands bring in what is remote.

use std::rc::Rc;

use crate::config::Config;
use crate::fetch::{self, Fetcher, Tip};
use crate::git::{LocalRepo, RemoteGit};
use crate::message::failure::Result;
use crate::record::Lock;

/// How remote references are brought in.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fetching {
    /// Use only what locks, the tip and the cache hold.
    pub offline: bool,
    /// Show no progress.
    pub quiet: bool,
}

impl Fetching {
    /// Returns what the fetcher is to do.
    pub(super) fn options(&self, config: &Config) -> fetch::Options {
        fetch::Options {
            helm: config.helm,
            max_file_size: config.max_file_size,
            offline: self.offline,
            allow_private: config.allow_private,
            quiet: self.quiet,
            ..fetch::Options::default()
        }
    }
}

/// Sets up fetching with the connection settings of the repository, if there is one. `locks` decide in their order.
pub(super) fn fetcher(
    repo: Option<&Rc<LocalRepo>>,
    options: fetch::Options,
    locks: Vec<Rc<Lock>>,
    held: Option<Tip>,
) -> Result<Fetcher> {
    let settings = match repo {
        Some(repo) => repo.connection_config()?,
        None => Vec::new(),
    };
    let cache = fetch::Cache::of_user();
    Fetcher::new(RemoteGit::new(settings), cache, options, locks, held)
}
