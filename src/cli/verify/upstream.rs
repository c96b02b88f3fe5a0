//! `verify --upstream`: who asks.

use crate::failure::Result;
use crate::fetch::{Options, Upstream};
use crate::git::{Foreign, Here};

/// Sets up asking with the connection settings of the repository at hand.
pub(super) fn asker(here: &Here, options: &Options) -> Result<Upstream> {
    Upstream::new(Foreign::new(here.connection_config()?), options)
}
