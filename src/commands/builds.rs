//! How commands build original and result to compare them.

use std::path::PathBuf;

use super::Fetching;
use crate::build::{self, BuildCheck};
use crate::git::LocalRepo;
use crate::graph::Warning;
use crate::message::failure::Location;
use crate::message::finding::Rule;
use crate::record::sha256_hex;

/// How original and result are built.
#[derive(Debug, Clone, Default)]
pub(crate) struct Builds {
    /// Not at all.
    pub skip: bool,
    /// The kustomize that builds; none: one is looked for.
    pub program: Option<PathBuf>,
    /// More arguments for `kustomize build`.
    pub arguments: Vec<String>,
}

impl Builds {
    /// Returns the options of the builds.
    pub(super) fn options(&self, fetch: &Fetching, repo: Option<&LocalRepo>) -> build::Options {
        build::Options {
            program: self.program.clone(),
            arguments: self.arguments.clone(),
            offline: fetch.offline,
            quiet: fetch.quiet,
            outputs: outputs(repo),
        }
    }

    /// Returns that nothing was built, as a warning only if warnings are errors: the report mentions it anyway.
    pub(super) fn warnings(&self, strict: bool, checked: &BuildCheck) -> Vec<Warning> {
        let without = checked.without.iter().filter(|_| strict && !self.skip);
        let without = without.map(|reason| {
            let message = format!("not verified: {reason}");
            Warning::new(Rule::NotBuilt, Location::default(), message)
        });
        without.collect()
    }
}

/// Returns what outputs of a repository that differ are kept under; outside of one, those of the directory at hand.
fn outputs(repo: Option<&LocalRepo>) -> String {
    let place = match repo {
        Some(repo) => repo.git_dir.clone(),
        None => std::env::current_dir().unwrap_or_default(),
    };
    let mut name = sha256_hex(place.as_os_str().as_encoded_bytes());
    name.truncate(12);
    name
}
