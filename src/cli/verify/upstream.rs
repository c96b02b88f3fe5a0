//! `verify --upstream`: sends the requests.

use crate::message::failure::Result;
use crate::fetch::{Options, Upstream};
use crate::git::{LocalRepo, RemoteGit};

/// Sets up asking with the connection settings of this repository.
pub(super) fn asker(here: Option<&LocalRepo>, options: &Options) -> Result<Upstream> {
    let settings = here.map(LocalRepo::connection_config).transpose()?;
    Upstream::new(RemoteGit::new(settings.unwrap_or_default()), options)
}
