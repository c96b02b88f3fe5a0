//! Builds of directories as they are, without another one to compare with.

use std::collections::BTreeMap;
use std::path::Path;

use super::build::{self, Build, BuildEnv, Git, Network};
use super::engine::InPlace;
use super::fake_git::Manifest;
use super::program::{self, Program, Search};
use crate::failure::{Failure, Result};
use crate::interrupt::{Scratch, unusable};
use crate::parallel::{processors, side_by_side};
use crate::targets::generated::Generated;

/// Builds a directory that lies in `input` with the kustomize of this machine, the user's git, and the network.
///
/// # Errors
/// When there is no kustomize, or it fails.
pub fn build_one(input: &Path, directory: &Path, arguments: &[String]) -> Result<Vec<u8>> {
    let program = program()?;
    let private = Scratch::new().map_err(|error| unusable(&error))?;
    let env = BuildEnv {
        git: Git::Real,
        network: Network::Open,
        input,
    };
    let built = build::build(
        &program,
        directory.as_os_str(),
        arguments,
        private.path(),
        env,
        super::runner::TIMEOUT,
    )?;
    output(built, input)
}

/// Builds kustomizations that lie in `input`, or are put there for as long, with the network closed.
///
/// # Errors
/// When there is no kustomize. What fails for one of them is its own result.
pub fn build_all(input: &Path, all: &[&Generated]) -> Result<Vec<Result<Vec<u8>>>> {
    let program = program()?;
    let private = Scratch::new().map_err(|error| unusable(&error))?;
    let nothing = private.path().join("nothing.json");
    Manifest::default().write(&nothing)?;
    let one = |(number, made): (usize, &&Generated)| {
        let _in_place = if made.is_changed {
            Some(InPlace::of(input, made)?)
        } else {
            None
        };
        let env = BuildEnv {
            git: Git::StandIn(&nothing),
            network: Network::Closed,
            input,
        };
        let built = build::build(
            &program,
            input.join(&made.directory).as_os_str(),
            &made.arguments,
            &private.path().join(number.to_string()),
            env,
            super::runner::TIMEOUT,
        )?;
        output(built, input)
    };
    // What stands in another one's place for as long is alone.
    let (alone, together): (Vec<_>, Vec<_>) =
        all.iter().enumerate().partition(|one| one.1.is_changed);
    let together = side_by_side(&together, processors(), |_, job| (job.0, one(*job)));
    let alone = alone.into_iter().map(|job| (job.0, one(job)));
    let outputs: BTreeMap<usize, Result<Vec<u8>>> = together.into_iter().chain(alone).collect();
    Ok(outputs.into_values().collect())
}

fn program() -> Result<Program> {
    match program::find(None, None)? {
        Search::Found(program) => Ok(program),
        Search::Nothing(reason) => Err(Failure::new(reason)
            .hint("install kustomize, or name it in the environment variable KUSTOMIZE")),
    }
}

/// Returns what a build wrote, or why it failed, on one line without the temporary directory.
fn output(built: Build, input: &Path) -> Result<Vec<u8>> {
    if built.success {
        return Ok(built.stdout);
    }
    let top = format!("{}/", input.display());
    let said = built.said.replace(&top, "");
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    Err(Failure::new(said.trim_start_matches("Error: ").to_owned()))
}
