//! Where this repository has its hooks.

use std::path::PathBuf;

use super::{LocalRepo, text};
use crate::git::said;
use crate::message::failure::{Failure, Result};

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
    pub fn hooks(&self) -> Result<Hooks> {
        let configured = self
            .settings()?
            .iter()
            .rfind(|one| one.key == "core.hookspath")
            .map(|one| (one.scope.clone(), one.value.clone().unwrap_or_default()));
        if let Some((scope, value)) = &configured
            && value.is_empty()
        {
            return Err(Failure::new("`core.hooksPath` is set to nothing, so that git finds no hooks")
                .hint(format!("git config --{scope} --unset-all core.hooksPath")));
        }
        let output = self.run(&["rev-parse", "--git-path", "hooks", "--git-common-dir"], None)?;
        if !output.status.success() {
            return Err(Failure::new(said(&output)));
        }
        let stdout = text(&output)?;
        let here =
            std::env::current_dir().map_err(|error| Failure::new(format!("the current directory is gone: {error}")))?;
        match stdout.lines().collect::<Vec<_>>()[..] {
            [directory, common] => Ok(Hooks { directory: here.join(directory), common: here.join(common), configured }),
            _ => Err(Failure::new("git named no directory for hooks")),
        }
    }
}
