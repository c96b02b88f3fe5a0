//! The directory of the hooks, and whether it is one that we may write to.

use std::path::{Path, PathBuf};

use super::Hook;
use crate::git::{Hooks, LocalRepo};
use crate::message::failure::{Failure, Failures, Result, command};

/// Where the hooks of a repository are.
#[derive(Debug)]
pub(crate) struct Directory {
    /// The directory, absolute; it may not be there.
    pub path: PathBuf,
    /// Whether it is in the working tree, so that its files can be committed.
    pub in_tree: bool,
    /// Whether it is this repository's own.
    own: bool,
    /// Whether there is a working tree to commit from.
    working_tree: bool,
    hooks: Hooks,
}

impl Directory {
    /// Asks git for the directory.
    pub(crate) fn find(here: &LocalRepo) -> Result<Directory> {
        let hooks = here.hooks()?;
        // Links are followed: what counts is where a file would be written.
        let path = real(&hooks.directory);
        let own = path.starts_with(real(&hooks.common));
        let in_tree = !own && here.top.as_deref().is_some_and(|top| path.starts_with(real(top)));
        Ok(Directory { path, in_tree, own, working_tree: here.top.is_some(), hooks })
    }

    /// Returns whether other working trees take their hooks from it too.
    pub(crate) fn is_shared(&self, here: &LocalRepo) -> bool {
        let worktrees = std::fs::read_dir(self.hooks.common.join("worktrees"));
        self.own
            && (real(&here.git_dir) != real(&self.hooks.common) || worktrees.is_ok_and(|mut all| all.next().is_some()))
    }

    /// Refuses a directory that hooks of others come from.
    pub(super) fn is_for_us(&self, hooks: &[Hook]) -> Result<(), Failures> {
        if !self.working_tree {
            return Err(Failure::new("this repository has no working tree, so no commits are made here")
                .hint("run it in a working tree of this repository")
                .hint("for a repository that is pushed to, see `hooks/pre-receive` in the source of this program")
                .into());
        }
        let shown = self.path.display();
        if self.path.ends_with(".husky/_") {
            let mut failure = Failure::new(format!("husky writes the hooks in `{shown}`"));
            for hook in hooks {
                let name = hook.name();
                failure =
                    failure.hint(format!("echo 'git kustomize-localize hook run {name} \"$@\"' >> .husky/{name}"));
            }
            return Err(failure.into());
        }
        if self.own || self.in_tree {
            return Ok(());
        }
        let scope = match &self.hooks.configured {
            Some((scope, value)) => format!("`core.hooksPath` ({scope}) is `{value}`"),
            None => format!("the hooks are in `{shown}`"),
        };
        let mut failure =
            Failure::new(format!("{scope}, outside of this repository: a hook there would run for others too"));
        for hook in hooks {
            let name = hook.name();
            failure = failure.hint(format!(
                "if that is what you want, add to `{}`: git kustomize-localize hook run {name} \"$@\" || exit $?",
                self.path.join(name).display(),
            ));
        }
        let own = self.hooks.common.join("hooks");
        Err(failure
            .hint(format!(
                "for hooks of this repository alone: {}",
                command("git config --local core.hooksPath", [real(&own).display().to_string()])
            ))
            .into())
    }
}

/// Returns the path with all links followed, as far as it exists.
fn real(path: &Path) -> PathBuf {
    let mut missing = Vec::new();
    let mut existing = path;
    loop {
        if let Ok(real) = std::fs::canonicalize(existing) {
            return missing.iter().rev().fold(real, |path, name| path.join(name));
        }
        match (existing.parent(), existing.file_name()) {
            (Some(parent), Some(name)) => {
                missing.push(name);
                existing = parent;
            }
            _ => return path.to_owned(),
        }
    }
}
