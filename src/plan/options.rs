//! How to localize, wherever the result goes.

use std::collections::BTreeSet;

use globset::{GlobSet, GlobSetBuilder};

use crate::config::path_glob;
use crate::failure::{Failure, Result, command};
use crate::record::{LoadRestrictor, Lock};

/// How to localize.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Where files that a kustomization names may lie.
    pub load_restrictor: LoadRestrictor,
    /// The local files that may be missing, besides those of the configuration.
    pub leave_missing: Patterns,
    /// The globs of URLs that stay remote, besides those of the configuration.
    pub leave_remote: BTreeSet<String>,
    /// The programs from elsewhere that stay executable.
    pub trust_exec: Patterns,
    /// Whether the licences of what is brought in are left out.
    pub no_licenses: bool,
    /// Whether a branch that is localized in place gets a `hydrator.metadata`.
    pub hydrator_metadata: bool,
    /// Whether charts are brought in.
    pub helm: bool,
    /// Whether edits in localized files are discarded.
    pub overwrite: bool,
    /// Whether the message of a commit is going to hold the record.
    pub trailers: bool,
    /// The arguments of the command line that asks for this, without secrets: for the commands that warnings name.
    pub arguments: Vec<String>,
}

impl Options {
    /// Returns the options that a lock was made with.
    ///
    /// # Errors
    /// When a pattern of the lock is none.
    pub fn recorded(lock: &Lock) -> Result<Options> {
        let options = &lock.options;
        let is_copy = lock.target.is_some();
        Ok(Options {
            load_restrictor: if is_copy {
                options.load_restrictor
            } else {
                // What these two allow changes nothing in place.
                LoadRestrictor::None
            },
            leave_missing: if is_copy {
                Patterns::new("--leave-missing", &options.leave_missing)?
            } else {
                Patterns::new("--leave-missing", ["**"])?
            },
            leave_remote: options.leave_remote.clone(),
            trust_exec: Patterns::new("--trust-exec", &options.trust_exec)?,
            no_licenses: options.no_licenses,
            hydrator_metadata: options.hydrator_metadata,
            helm: options.helm,
            overwrite: false,
            trailers: lock.trailers,
            arguments: Vec::new(),
        })
    }

    /// Returns the same command line, which then trusts what a pattern matches.
    pub(super) fn command_trusting(&self, pattern: &str) -> String {
        let mut given = self.arguments.iter().peekable();
        let mut words: Vec<&str> = Vec::new();
        words.extend(
            given
                .next_if(|given| ["branch", "vendor"].contains(&given.as_str()))
                .map(String::as_str),
        );
        words.extend(["--trust-exec", pattern]);
        words.extend(given.map(String::as_str));
        command("git kustomize-localize", words)
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
