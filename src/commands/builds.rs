//! How commands build original and result to compare them.

use std::path::PathBuf;

use super::Fetching;
use crate::build_check::{self, BuildCheck};
use crate::config::Strict;
use crate::failure::Location;
use crate::finding::WarningId;
use crate::git::LocalRepo;
use crate::record::sha256_hex;
use crate::walk::Warning;

/// How original and result are built.
#[derive(Debug, Clone, Default)]
pub struct Builds {
    /// Not at all.
    pub skip: bool,
    /// The kustomize that builds; none: one is looked for.
    pub program: Option<PathBuf>,
    /// More arguments for `kustomize build`.
    pub arguments: Vec<String>,
}

impl Builds {
    /// Returns the options of the builds.
    pub(super) fn options(
        &self,
        fetch: &Fetching,
        repo: Option<&LocalRepo>,
    ) -> build_check::Options {
        build_check::Options {
            program: self.program.clone(),
            arguments: self.arguments.clone(),
            offline: fetch.offline,
            quiet: fetch.quiet,
            outputs: outputs(repo),
        }
    }

    /// Returns that nothing was built, as a warning only if warnings are errors: the report mentions it anyway. What did
    /// not build before either is no warning.
    pub(super) fn warnings(&self, strict: &Strict, checked: &BuildCheck) -> Vec<Warning> {
        let is_strict = strict.takes(WarningId::NotBuilt) && !self.skip;
        let without = checked.without.iter().filter(|_| is_strict);
        let without = without.map(|reason| Warning {
            id: WarningId::NotBuilt,
            location: Location::default(),
            message: format!("the result is not verified by a build: {reason}"),
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
