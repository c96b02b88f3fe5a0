//! How to localize, wherever the result goes.

use std::collections::BTreeSet;

use globset::{GlobSet, GlobSetBuilder};

use crate::config::path_glob;
use crate::failure::{Failure, Result};
use crate::record::Lock;

/// How to localize, besides what the configuration says.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The local files that may be missing, besides those of the configuration.
    pub leave_missing: Patterns,
    /// The globs of URLs that stay remote, besides those of the configuration.
    pub leave_remote: BTreeSet<String>,
    /// Whether edits in localized files are discarded.
    pub overwrite: bool,
    /// Whether the message of a commit is going to hold the record.
    pub trailers: bool,
}

impl Options {
    /// Returns the options that a lock was made with.
    ///
    /// # Errors
    /// When a pattern of the lock is none.
    pub fn recorded(lock: &Lock) -> Result<Options> {
        let options = &lock.options;
        Ok(Options {
            leave_missing: match lock.target {
                Some(_) => Patterns::new("--leave-missing", &options.leave_missing)?,
                // It changes nothing in place.
                None => Patterns::new("--leave-missing", ["**"])?,
            },
            leave_remote: options.leave_remote.clone(),
            overwrite: false,
            trailers: lock.trailers,
        })
    }
}

/// Globs of paths.
#[derive(Debug, Clone, Default)]
pub struct Patterns {
    texts: BTreeSet<String>,
    globs: GlobSet,
}

impl Patterns {
    /// Reads patterns that were given to an option.
    ///
    /// # Errors
    /// When one of them is none.
    pub fn new(
        option: &str,
        patterns: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<Patterns> {
        let mut texts = BTreeSet::new();
        let mut globs = GlobSetBuilder::new();
        for pattern in patterns {
            let pattern = pattern.as_ref();
            let glob = path_glob(pattern).map_err(|why| {
                Failure::new(format!("`{pattern}` is not a pattern for {option}: {why}")).hint(
                    "write a `[`, `{`, `*` or `?` that is meant literally with `\\` before it",
                )
            })?;
            globs.add(glob);
            texts.insert(pattern.to_owned());
        }
        let globs = globs.build().map_err(|error| {
            Failure::new(format!(
                "the patterns of `{option}` cannot be used: {error}"
            ))
        })?;
        Ok(Patterns { texts, globs })
    }

    /// Returns whether one of them matches.
    #[must_use]
    pub fn is_match(&self, path: &str) -> bool {
        self.globs.is_match(path)
    }

    /// Returns the patterns as they were written.
    #[must_use]
    pub fn texts(&self) -> &BTreeSet<String> {
        &self.texts
    }
}
