//! `build --output DIR`: one file for each target and each top root.

use std::path::Path;

use serde::Serialize;

use super::BuildArgs;
use crate::build::choice::{Choices, Comparison};
use crate::build::rendered::{Missing, Rendered};
use crate::commands::messages::{self, counted, lines};
use crate::commands::output::{Done, Outcome, OutputArgs, Shown};
use crate::destination::rendered::{listed, write_directory};
use crate::message::failure::Failure;
use crate::workspace::{Workspace, repository_offline};

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
    missing: Missing,
    #[serde(skip)]
    stopped: Vec<Failure>,
    #[serde(skip)]
    fails: bool,
}

/// Builds the selected targets and roots, and makes `directory` contain exactly their outputs.
pub(super) fn write(args: &BuildArgs, workspace: &Workspace, directory: &Path, output: &OutputArgs) -> Done {
    // A directory of somebody else is refused before anything is built.
    let before = listed(directory)?;
    let repo = workspace.repo().map_or_else(repository_offline, |repo| Ok(repo.clone()))?;
    let choices = match &args.base {
        Some(base) => Comparison::since(&repo, base, workspace)?.choices(&repo, workspace, &args.what)?,
        None => Choices::all(&repo, workspace, &args.what)?,
    };
    let how = args.with.how(args.offline, output.quiet);
    let rendered = Rendered::of(workspace, choices, how)?;
    let changed = write_directory(&repo, directory, &before, &rendered)?;
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
