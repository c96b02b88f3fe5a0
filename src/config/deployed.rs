//! What the configuration says about what is deployed: where no object in the tree says it.

use serde::{Deserialize, Serialize};

use super::read::{directory, words};
use crate::message::position::Position;

/// Who builds what is deployed, by name; what is asked of it: `targets::engine`.
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

    /// Returns its name, as people write it.
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
pub struct Repository {
    /// The URL; `oci://` for what is pushed as an artifact.
    #[serde(deserialize_with = "words")]
    pub url: String,
    /// The directory that is its top there, from the top of the repository; empty for the top.
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
    /// Who builds it.
    pub(crate) engine: EngineName,
    /// The line on which it begins, and the column.
    #[serde(skip)]
    pub place: Position,
}
