//! One build of one directory, for people to look at.

use std::path::Path;

use super::build::{self, BuildEnv, Git, Network};
use super::program::{self, Search};
use crate::failure::{Failure, Result};
use crate::interrupt::{Scratch, unusable};

/// Builds a directory that lies in `input` with the kustomize of this machine, the user's git, and the network.
///
/// # Errors
/// When there is no kustomize, or it fails.
pub fn build_one(input: &Path, directory: &Path, arguments: &[String]) -> Result<Vec<u8>> {
    let program = match program::find(None)? {
        Search::Found(program) => program,
        Search::Nothing(reason) => {
            return Err(Failure::new(reason)
                .hint("install kustomize, or name it in the environment variable KUSTOMIZE"));
        }
    };
    let private = Scratch::new().map_err(|error| unusable(&error))?;
    let env = BuildEnv {
        git: Git::Real,
        network: Network::Open,
        input,
        variables: &[],
    };
    let built = build::build(
        &program,
        directory.as_os_str(),
        arguments,
        private.path(),
        env,
        super::runner::TIMEOUT,
    )?;
    if built.success {
        return Ok(built.stdout);
    }
    let top = format!("{}/", input.display());
    let said = built.said.replace(&top, "");
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    Err(Failure::new(said.trim_start_matches("Error: ").to_owned()))
}
