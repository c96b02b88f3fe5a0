//! `build --output DIR`: one file for each target and each top root.

use std::path::Path;

use serde::Serialize;

use super::BuildArgs;
use crate::build::choice::{Choices, Comparison};
use crate::build::rendered::{MissingFiles, Rendered};
use crate::commands::messages::{self, counted, lines};
use crate::commands::output::{Done, Outcome, OutputArgs, Shown};
use crate::config::FILE_NAME;
use crate::destination::rendered::{listed, write_directory};
use crate::git::LocalRepo;
use crate::message::failure::{Failure, Result};
use crate::tree::path;
use crate::workspace::{Workspace, from_top, repository_offline};

/// The result of a run.
#[derive(Debug, Default, Serialize)]
struct WrittenFiles {
    directory: String,
    /// The paths of the files, from `directory`.
    files: Vec<String>,
    /// The number of files that are new or changed.
    changed: usize,
    /// The files that were deleted.
    removed: Vec<String>,
    missing: MissingFiles,
    #[serde(skip)]
    stopped: Vec<Failure>,
    #[serde(skip)]
    fails: bool,
}

/// Builds the selected targets and roots, and makes `directory` contain exactly their outputs.
pub(super) fn write(args: &BuildArgs, workspace: &Workspace, directory: &Path, output: &OutputArgs) -> Done {
    // A directory of somebody else is refused before anything is built.
    listed(directory)?;
    let repo = workspace.repo().map_or_else(repository_offline, |repo| Ok(repo.clone()))?;
    refuse_in_tree(&repo, workspace, directory)?;
    let choices = match &args.base {
        Some(base) => Comparison::since(&repo, base, workspace)?.choices(&repo, workspace, &args.names)?,
        None => Choices::of_workspace(&repo, workspace, &args.names)?,
    };
    let how = args.with.how(args.offline, output.quiet);
    let rendered = Rendered::of(workspace, choices, how)?;
    let changed = write_directory(&repo, directory, &rendered)?;
    Ok(Box::new(WrittenFiles {
        directory: directory.display().to_string(),
        changed: changed.files.len(),
        removed: changed.removed,
        missing: rendered.missing(),
        files: rendered.files.into_keys().collect(),
        stopped: rendered.stopped,
        fails: rendered.fails,
    }))
}

/// Refuses a directory of the working tree: the next command would take the files for objects that are deployed.
fn refuse_in_tree(repo: &LocalRepo, workspace: &Workspace, directory: &Path) -> Result<()> {
    let shown = directory.display();
    // A path that is not below the top is outside of the repository.
    let Ok(path) = from_top(repo, &*workspace.tree, &directory.to_string_lossy()) else { return Ok(()) };
    // git must ignore the files of builds: a pattern like `.*` ignores only their list.
    if workspace.config.leaves_out(&path) || repo.ignores(&path::join(&path, "roots.yaml"))? {
        return Ok(());
    }
    Err(Failure::new(format!("`{shown}` is in the working tree, so the files would be read as deployed objects"))
        .hint(format!("list it in .gitignore, or below `exclude:` in {FILE_NAME}"))
        .hint("name a directory outside of the repository: --output DIR"))
}

impl Outcome for WrittenFiles {
    fn text(&self, _shown: Shown) -> String {
        let WrittenFiles { directory, files, changed, removed, .. } = self;
        let files = counted(files.len(), "build");
        lines(vec![format!("{directory} has {files}: {changed} written, {} removed", removed.len())])
    }

    fn stderr(&self, output: &OutputArgs) -> String {
        messages::missing(&self.missing, output.quiet)
    }

    fn stopped(&self) -> Vec<Failure> {
        self.stopped.clone()
    }

    fn status(&self) -> u8 {
        u8::from(self.fails)
    }
}
