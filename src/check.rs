//! `check`: what in a repository's kustomizations a hermetic build could not resolve, found without
//! a network. One file per rule.

use crate::failure::Failure;
use crate::finding::{Finding, Severity};

/// What was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Checking {
    /// The index: what would be committed.
    Index,
    /// The working tree.
    WorkingTree,
    /// A commit.
    Commit {
        /// As it was named.
        rev: String,
        /// Its full id.
        commit: String,
    },
}

/// What came of a check.
#[derive(Debug, Clone)]
pub struct Checked {
    /// What was checked.
    pub source: Checking,
    /// The number of kustomizations that were read.
    pub kustomizations: usize,
    /// The number of references in them.
    pub references: usize,
    /// The number of kustomizations that are not the same in the working tree, so that a mend may
    /// be there but not staged. Only for the index.
    pub differing: usize,
    /// What was found, by path and place; what is allowed too.
    pub findings: Vec<Finding>,
    /// The number of findings that are left out because the base has them too, and the base.
    pub known: Option<(usize, String)>,
    /// What could not be looked at. Everything else was.
    pub failures: Vec<Failure>,
}

impl Checked {
    /// Returns how many findings of this severity count.
    #[must_use]
    pub fn count(&self, severity: Severity) -> usize {
        self.findings
            .iter()
            .filter(|finding| finding.severity == severity && finding.allowed.is_none())
            .count()
    }

    /// Returns the exit status: 0 clean, 1 findings that fail, 2 something could not be looked at.
    #[must_use]
    pub fn status(&self) -> u8 {
        match self.failures.is_empty() {
            false => 2,
            true => u8::from(self.findings.iter().any(Finding::fails)),
        }
    }
}
