//! Which warnings are errors.

use std::collections::BTreeSet;

use crate::finding::WarningId;

/// The warnings that are errors: nothing is written where there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Strict {
    /// All of them.
    All,
    /// These.
    Some(BTreeSet<WarningId>),
}

impl Default for Strict {
    fn default() -> Strict {
        Strict::Some(BTreeSet::new())
    }
}

impl Strict {
    /// What stands for all of them on a command line.
    pub const ALL: &str = "all";

    /// Returns whether a warning is an error.
    #[must_use]
    pub fn takes(&self, warning: WarningId) -> bool {
        match self {
            Strict::All => true,
            Strict::Some(some) => some.contains(&warning),
        }
    }

    /// Returns whether one of these warnings is an error.
    #[must_use]
    pub fn refuses(&self, mut warnings: impl Iterator<Item = WarningId>) -> bool {
        warnings.any(|warning| self.takes(warning))
    }

    /// Returns this with what else is an error, by its id or as [`Strict::ALL`]. What has no meaning adds nothing.
    #[must_use]
    pub fn and<'a>(&self, ids: impl IntoIterator<Item = &'a String>) -> Strict {
        let mut strict = self.clone();
        for id in ids {
            match (&mut strict, id.as_str()) {
                (strict, Strict::ALL) => *strict = Strict::All,
                (Strict::All, _) => {}
                (Strict::Some(some), id) => some.extend(WarningId::from_id(id)),
            }
        }
        strict
    }
}
