//! The part of the configuration about deployments that no object in the tree describes.

use serde::{Deserialize, Serialize};

use super::read::{directory, words};
use crate::message::position::Position;

/// The name of an engine: the program that builds and deploys. `targets::engine` knows how it does so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum EngineName {
    /// Flux's kustomize-controller.
    Flux,
    /// Argo CD's repo-server.
    ArgoCd,
    /// `kustomize build`, by hand or in a pipeline.
    Kustomize,
}

impl EngineName {
    pub(crate) const ALL: [EngineName; 3] = [EngineName::Flux, EngineName::ArgoCd, EngineName::Kustomize];

    /// The name as people write it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            EngineName::Flux => "Flux",
            EngineName::ArgoCd => "Argo CD",
            EngineName::Kustomize => "kustomize",
        }
    }
}

/// An entry of `repository`: a URL under which this repository is deployed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RepositoryUrl {
    /// The URL; `oci://` if the repository is pushed as an artifact.
    #[serde(deserialize_with = "words")]
    pub url: String,
    /// The directory of this repository that is the top at that URL; empty for the top.
    #[serde(default, deserialize_with = "directory")]
    pub path: String,
}

/// An entry of `targets`: a directory that is deployed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Declared {
    /// The directory, from the top of the repository; empty for the top.
    #[serde(deserialize_with = "directory")]
    pub path: String,
    pub(crate) engine: EngineName,
    /// The position of the entry.
    #[serde(skip)]
    pub position: Position,
}
