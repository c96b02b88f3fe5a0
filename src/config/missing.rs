//! Local files that may be missing.

use globset::{Glob, GlobBuilder, GlobMatcher};

use super::Config;

/// The longest glob, in bytes.
const LONGEST: usize = 1000;

/// An entry of `leave-missing`: local files that may be missing, as those that are kept out of git on purpose.
#[derive(Debug, Clone)]
pub struct LeaveMissing {
    /// Which paths, from the top of the repository.
    pub path: GlobMatcher,
    /// Why.
    pub reason: String,
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
    /// Says what it means that there is nothing at a path from the top; `is_left` says whether it is left for this run.
    #[must_use]
    pub fn missing(&self, path: &str, is_left: bool) -> Missing {
        let mut entries = self.leave_missing.iter();
        match (entries.any(|entry| entry.path.is_match(path)), is_left) {
            (true, _) => Missing::Accepted,
            (false, true) => Missing::Left,
            (false, false) => Missing::Wrong,
        }
    }
}
