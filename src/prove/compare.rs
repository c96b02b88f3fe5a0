//! What two outputs have in common.

use crate::walk::Graph;

/// Which annotations a kustomization asks for that name where objects come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Metadata {}

impl Metadata {
    /// Returns what the kustomizations of a graph ask for.
    #[must_use]
    pub fn asked(_graph: &Graph) -> Metadata {
        Metadata {}
    }
}

/// What comparing says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Byte for byte the same.
    Identical,
    /// Not the same.
    Differs(String),
    /// The original differs from itself.
    Unsteady(String),
    /// The original does not build.
    NotBuilt {
        /// Why.
        reason: String,
    },
}

impl Verdict {
    /// Says whether the result is as good as the original.
    #[must_use]
    pub fn is_same(&self) -> bool {
        *self == Verdict::Identical
    }
}

/// Compares what the original and the result build to.
#[must_use]
pub fn compare(original: &[u8], localized: &[u8], _asked: Metadata) -> Verdict {
    match original == localized {
        true => Verdict::Identical,
        false => Verdict::Differs("the outputs differ".to_owned()),
    }
}

/// Returns the verdict on a result that does not build, though its original does.
#[must_use]
pub fn does_not_build(said: &str) -> Verdict {
    Verdict::Differs(format!("the result does not build: {said}"))
}
