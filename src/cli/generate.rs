//! `generate`: manual pages and completions, for packages and for those who install without one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, CommandFactory, Subcommand, ValueHint};

use super::{Cli, output};
use crate::failure::{Failure, Result, shown};
use crate::report::completion::{Shell, completion};
use crate::report::manual;

/// What can be generated.
#[derive(Debug, Clone, Subcommand)]
pub(super) enum GenerateCommand {
    /// Write the manual pages, which `git kustomize-localize --help` opens
    Man(ManArgs),

    /// Write a completion script to standard output
    Completion(CompletionArgs),
}

/// Arguments of `generate man`.
#[derive(Debug, Clone, Args)]
pub(super) struct ManArgs {
    /// Where the pages go; made if it is not there. As ~/.local/share/man/man1
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
        GenerateCommand::Man(args) => pages(&args.directory),
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

/// Writes one page for each command. Returns the text to print.
fn pages(directory: &Path) -> Result<String> {
    let name = shown(&directory.to_string_lossy());
    let failure =
        |error: io::Error| Failure::new(format!("cannot write pages to `{name}`: {error}"));
    fs::create_dir_all(directory).map_err(failure)?;
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let pages = manual::pages(&command).map_err(failure)?;
    for (file, text) in &pages {
        fs::write(directory.join(file), text).map_err(failure)?;
    }
    Ok(format!("wrote {} pages to {name}\n", pages.len()))
}
