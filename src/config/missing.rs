//! Local files that may be missing.

use globset::{Glob, GlobBuilder, GlobMatcher};

use super::leave::quoted;
use super::{Config, PLACEHOLDER, is_placeholder};
use crate::finding::Span;

/// The longest glob, in bytes.
const LONGEST: usize = 1000;

/// An entry of `leave-missing`: local files that may be missing, as those that are kept out of git on purpose.
#[derive(Debug, Clone)]
pub struct LeaveMissing {
    /// Which paths, from the top of the repository.
    pub path: GlobMatcher,
    /// Why.
    pub reason: String,
    /// Where it stands.
    pub span: Span,
    /// The line on which it begins.
    pub line_text: String,
}

/// What it means that a local file is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// It should be there.
    Wrong,
    /// It may be missing for this run: that is a warning.
    Left,
    /// It may be missing, as the configuration says.
    Accepted,
}

/// Reads a glob of paths, as of `--leave-missing`: `*` stays within one name, `**` as a name stands for any number of
/// them.
///
/// # Errors
/// With what is wrong.
pub fn path_glob(text: &str) -> Result<Glob, String> {
    if text.is_empty() {
        return Err("is empty".to_owned());
    }
    if text.len() > LONGEST {
        return Err(format!("is longer than {LONGEST} bytes"));
    }
    GlobBuilder::new(text)
        .literal_separator(true)
        .backslash_escape(true)
        .build()
        .map_err(|error| error.kind().to_string())
}

impl LeaveMissing {
    /// Reads the glob of an entry, which must be able to match a path from the top.
    pub(super) fn path(text: &str) -> Result<GlobMatcher, String> {
        if text.starts_with('/') || text.ends_with('/') {
            return Err("begins or ends with a slash".to_owned());
        }
        if text.split('/').any(|name| matches!(name, "" | "." | "..")) {
            return Err("holds an empty name, `.` or `..`".to_owned());
        }
        Ok(path_glob(text)?.compile_matcher())
    }
}

impl Config {
    /// Returns the index of the first entry of `leave-missing` that lets a path from the top be missing.
    #[must_use]
    pub fn may_be_missing(&self, path: &str) -> Option<usize> {
        let mut entries = self.leave_missing.iter();
        entries.position(|entry| entry.path.is_match(path) && !is_placeholder(&entry.reason))
    }

    /// Returns an entry of `leave-missing` that allows a path from the top to be missing, as YAML.
    #[must_use]
    pub fn entry_missing(path: &str) -> String {
        let path = Config::path_entry(path);
        format!("- {{path: {path}, reason: {PLACEHOLDER}}}")
    }

    /// Returns the glob that matches one path alone, as YAML.
    #[must_use]
    pub fn path_entry(path: &str) -> String {
        quoted(&globset::escape(path))
    }

    /// Returns what a missing path from the top means; `is_left` is whether it may be missing in this run.
    #[must_use]
    pub fn missing(&self, path: &str, is_left: bool) -> Missing {
        match (self.may_be_missing(path), is_left) {
            (Some(_), _) => Missing::Accepted,
            (None, true) => Missing::Left,
            (None, false) => Missing::Wrong,
        }
    }
}
