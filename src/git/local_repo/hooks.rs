//! Where this repository has its hooks.

use std::path::PathBuf;

use super::{LocalRepo, text};
use crate::failure::{Failure, Result};
use crate::git::{is_object_id, said};

/// The directory that git takes hooks from, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hooks {
    /// The directory, absolute; it may not be there.
    pub directory: PathBuf,
    /// The directory that all worktrees of the repository share, absolute.
    pub common: PathBuf,
    /// What `core.hooksPath` says, and where (`local`, `global`, …), if it is set.
    pub configured: Option<(String, String)>,
}

impl LocalRepo {
    /// Returns where this repository has its hooks. Everything but an empty `core.hooksPath` is asked
    /// of git, which then names the current directory.
    ///
    /// # Errors
    /// When git cannot tell, or `core.hooksPath` is set to nothing.
    pub fn hooks(&self) -> Result<Hooks> {
        let configured = self
            .settings()?
            .iter()
            .rfind(|one| one.key == "core.hookspath")
            .map(|one| (one.scope.clone(), one.value.clone().unwrap_or_default()));
        if let Some((scope, value)) = &configured
            && value.is_empty()
        {
            return Err(Failure::new(
                "`core.hooksPath` is set to nothing, so that git finds no hooks",
            )
            .hint(format!("git config --{scope} --unset-all core.hooksPath")));
        }
        let output = self.run(
            &["rev-parse", "--git-path", "hooks", "--git-common-dir"],
            None,
        )?;
        if !output.status.success() {
            return Err(Failure::new(said(&output)));
        }
        let stdout = text(&output)?;
        let here = std::env::current_dir()
            .map_err(|error| Failure::new(format!("the current directory is gone: {error}")))?;
        match stdout.lines().collect::<Vec<_>>()[..] {
            [directory, common] => Ok(Hooks {
                directory: here.join(directory),
                common: here.join(common),
                configured,
            }),
            _ => Err(Failure::new("git named no directory for hooks")),
        }
    }
}

/// What a hook has to know of the history.
impl LocalRepo {
    /// Returns the commits that are being merged into HEAD. git writes them to a file, but for a merge without
    /// conflicts only to the environment of `pre-merge-commit`.
    #[must_use]
    pub fn merged(&self) -> Vec<String> {
        let file = std::fs::read_to_string(self.git_dir.join("MERGE_HEAD")).unwrap_or_default();
        let variables = std::env::vars_os().filter_map(|(name, _)| {
            let name = name.into_string().ok()?;
            Some(name.strip_prefix("GITHEAD_")?.to_owned())
        });
        let mut commits: Vec<String> = file
            .lines()
            .map(str::to_owned)
            .chain(variables)
            .filter(|id| is_object_id(id))
            .collect();
        commits.sort();
        commits.dedup();
        commits
    }

    /// Returns whether a commit would hold what HEAD holds.
    ///
    /// # Errors
    /// When git cannot compare them.
    pub fn nothing_staged(&self) -> Result<bool> {
        let output = self.run(&["diff", "--cached", "--quiet", "--no-ext-diff"], None)?;
        match output.status.code() {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            _ => Err(Failure::new(said(&output))),
        }
    }

    /// Returns the type of the object that `id` (a full object id) is, or leads to if it is a tag.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn kind(&self, id: &str) -> Result<String> {
        let output = self.run(&["cat-file", "-t", &format!("{id}^{{}}")], None)?;
        if output.status.success() {
            Ok(text(&output)?.trim_end().to_owned())
        } else {
            Err(Failure::new(format!(
                "git cannot read object {id}: {}",
                said(&output)
            )))
        }
    }

    /// Returns where the history of the commit `tip` meets what is known already: `old`, and the refs
    /// of `known` (an option of `git rev-list`, as `--all`). Empty when all of it is new; `tip` itself
    /// when none of it is.
    ///
    /// # Errors
    /// When git cannot read the history.
    pub fn known_below(
        &self,
        tip: &str,
        old: Option<&str>,
        known: Option<&str>,
    ) -> Result<Vec<String>> {
        let mut args = vec!["rev-list", "--boundary", tip, "--not"];
        args.extend(old);
        args.extend(known);
        let output = self.run(&args, None)?;
        if !output.status.success() {
            return Err(Failure::new(format!(
                "git cannot read the history of {tip}: {}",
                said(&output)
            )));
        }
        let stdout = text(&output)?;
        if stdout.is_empty() {
            return Ok(vec![tip.to_owned()]);
        }
        let mut commits: Vec<String> = stdout
            .lines()
            .filter_map(|line| line.strip_prefix('-'))
            .chain(old)
            .map(str::to_owned)
            .collect();
        commits.sort();
        commits.dedup();
        Ok(commits)
    }
}
