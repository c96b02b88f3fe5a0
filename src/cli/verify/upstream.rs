//! `verify --upstream`: who asks.

use crate::failure::Result;
use crate::fetch::{Options, Upstream};
use crate::git::{Foreign, Here};

/// Sets up asking with the connection settings of the repository at hand.
pub(super) fn asker(here: Option<&Here>, options: &Options) -> Result<Upstream> {
    let settings = here.map(Here::connection_config).transpose()?;
    Upstream::new(Foreign::new(settings.unwrap_or_default()), options)
}
