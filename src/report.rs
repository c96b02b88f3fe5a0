//! What is said about a run: for people, and as JSON for machines. What `check` found has a room of its
//! own, [`mod@check`].

mod build_check;
pub mod check;
mod human;
mod in_place;
mod json;
mod left;
mod lock;
pub mod reference_tree;
pub mod verify;

pub use in_place::{InPlaceReport, OnBranch};
pub use json::failures_json;
pub use lock::{LockOutcome, LockReport};

use std::collections::BTreeMap;

use crate::build_check::BuildCheck;
use crate::config::Strict;
use crate::failure::{Failure, Failures};
use crate::localize::Rewritten;
use crate::record::{Change, Left, Remote};
pub use crate::redact::visible;
use crate::walk::Warning;

/// What came of a run, as it can be told.
pub trait Tell {
    /// Returns the summary for people.
    fn human(&self, verbose: bool) -> String;

    /// Returns the report as one JSON object, with a final newline.
    fn json(&self) -> String;

    /// Returns what works but should be known.
    fn warnings(&self) -> &[Warning];

    /// Returns what could not be done beside all that was, and last what that comes to.
    fn failures(&self) -> Failures {
        Failures(Vec::new())
    }

    /// Says whether the command did what it was asked for. What it did not do, the report tells.
    fn is_done(&self) -> bool {
        true
    }

    /// Returns which warnings are errors, where nothing was written because of one.
    fn refused(&self) -> Option<&Strict>;

    /// Returns the error that ends a command which found out that it must not do what it was asked for.
    fn refusal(&self) -> Option<Failure> {
        None
    }
}

impl Tell for Box<dyn Tell> {
    fn human(&self, verbose: bool) -> String {
        (**self).human(verbose)
    }

    fn json(&self) -> String {
        (**self).json()
    }

    fn warnings(&self) -> &[Warning] {
        (**self).warnings()
    }

    fn failures(&self) -> Failures {
        (**self).failures()
    }

    fn is_done(&self) -> bool {
        (**self).is_done()
    }

    fn refused(&self) -> Option<&Strict> {
        (**self).refused()
    }

    fn refusal(&self) -> Option<Failure> {
        (**self).refusal()
    }
}

/// What came of a run of `localize`.
#[derive(Debug, Clone)]
pub struct Report {
    /// What was localized: a path from the top of the repository, or a URL without secrets.
    pub target: String,
    /// Where the result is: a path from the top of the repository, or as given on the command line.
    pub new_dir: String,
    /// What happened.
    pub outcome: Outcome,
    /// What was brought in.
    pub remotes: Vec<Remote>,
    /// What stays remote.
    pub left: Vec<Left>,
    /// What was brought in before and is not any more, was not before, or is another commit now.
    pub changes: Vec<Change>,
    /// The files of the result by path, with the number of their bytes.
    pub files: BTreeMap<String, u64>,
    /// The references that were changed.
    pub rewritten: Vec<Rewritten>,
    /// What works but should be known.
    pub warnings: Vec<Warning>,
    /// Which warnings are errors.
    pub strict: Strict,
    /// What came of building original and result.
    pub proof: BuildCheck,
}

/// What happened to the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It was committed.
    Committed {
        /// The short name of the branch.
        branch: String,
        /// The new commit.
        commit: String,
        /// The tree of NEW_DIR.
        tree: String,
        /// The source commit; none for a branch that begins with a remote target.
        source: String,
    },
    /// The branch holds exactly this already.
    Unchanged {
        /// The short name of the branch.
        branch: String,
        /// Its tip.
        commit: String,
        /// The tree of NEW_DIR.
        tree: String,
        /// The source commit.
        source: String,
    },
    /// It was written to disk.
    Written,
    /// It does not build to what the original builds to, so nothing was written.
    Differs,
    /// Nothing was written: there are warnings that are errors.
    Warned,
    /// Nothing was written: `--dry-run`.
    DryRun {
        /// The branch that would be committed to; none for plain files.
        branch: Option<String>,
    },
}

/// Counts warnings by their ids.
fn by_id(warnings: &[Warning]) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for warning in warnings {
        *counts.entry(warning.id.id()).or_default() += 1;
    }
    counts
}

/// Returns `2 warnings (function 1, remote-chart 1)`.
#[must_use]
pub fn counted_warnings(warnings: &[Warning]) -> String {
    let each: Vec<String> = by_id(warnings)
        .iter()
        .map(|(id, count)| format!("{id} {count}"))
        .collect();
    format!(
        "{} ({})",
        counted(warnings.len(), "warning"),
        each.join(", ")
    )
}

/// Says how many warnings there are, if there are any.
fn write_warnings(out: &mut String, warnings: &[Warning]) -> std::fmt::Result {
    use std::fmt::Write;

    match warnings {
        [] => Ok(()),
        warnings => writeln!(out, "  {}", counted_warnings(warnings)),
    }
}

/// Returns `1 file`, `2 files`.
fn counted(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    }
}
