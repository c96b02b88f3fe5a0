//! `generate`: manual pages, completions and Markdown, for packages, sites and for those who install without one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, CommandFactory, Subcommand, ValueHint};

use super::{Cli, output};
use crate::failure::{Failure, Result, shown};
use crate::manual;
use crate::report::completion::{Shell, completion};

/// What can be generated.
#[derive(Debug, Clone, Subcommand)]
pub(super) enum GenerateCommand {
    /// Write the manual pages, which `git kustomize-localize --help` opens
    Man(ManArgs),

    /// Write the manual as Markdown, as a site is made of
    Docs(DocsArgs),

    /// Write a completion script to standard output
    Completion(CompletionArgs),
}

/// Arguments of `generate man`.
#[derive(Debug, Clone, Args)]
pub(super) struct ManArgs {
    /// The directory of manuals, as ~/.local/share/man: the pages go to man1 and man7 in it
    #[arg(value_hint = ValueHint::DirPath)]
    directory: PathBuf,
}

/// Arguments of `generate docs`.
#[derive(Debug, Clone, Args)]
pub(super) struct DocsArgs {
    /// Where the files go; made if it is not there
    #[arg(value_hint = ValueHint::DirPath)]
    directory: PathBuf,
}

/// Arguments of `generate completion`.
#[derive(Debug, Clone, Args)]
pub(super) struct CompletionArgs {
    /// For which shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Generates what the arguments say.
pub(super) fn run(command: &GenerateCommand) -> ExitCode {
    let done = match command {
        GenerateCommand::Man(args) => write(
            &args.directory,
            &manual::manuals(&super::documented()),
            "pages",
        ),
        GenerateCommand::Docs(args) => write(
            &args.directory,
            &manual::docs(&super::documented()),
            "files",
        ),
        GenerateCommand::Completion(args) => Ok(completion(args.shell, Cli::command())),
    };
    match done {
        Ok(text) => {
            output::print_verbatim(&text);
            ExitCode::SUCCESS
        }
        Err(failure) => output::failed(&failure.into(), false),
    }
}

/// Writes files below a directory. Returns the text to print.
fn write(directory: &Path, files: &[(PathBuf, String)], what: &str) -> Result<String> {
    let name = shown(&directory.to_string_lossy());
    let failure =
        |error: io::Error| Failure::new(format!("cannot write pages to `{name}`: {error}"));
    for (file, text) in files {
        let file = directory.join(file);
        fs::create_dir_all(file.parent().unwrap_or(directory)).map_err(failure)?;
        fs::write(file, text).map_err(failure)?;
    }
    Ok(format!("wrote {} {what} to {name}\n", files.len()))
}
