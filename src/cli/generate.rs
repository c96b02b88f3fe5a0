//! `generate`: manual pages and completions, for packages and for those who install without one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, CommandFactory, Subcommand, ValueHint};

use super::{Cli, output};
use crate::message::failure::{Failure, Result, shown};
use crate::report::completion::{Shell, completion};

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
    /// The directory of manuals, for example ~/.local/share/man: the pages go to man1 in it
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
        GenerateCommand::Man(args) => write(&args.directory),
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

/// Writes a page for each command. Returns the text to print.
fn write(directory: &Path) -> Result<String> {
    let name = shown(&directory.to_string_lossy());
    let failure = |error: io::Error| Failure::new(format!("cannot write pages to `{name}`: {error}"));
    let section = directory.join("man1");
    fs::create_dir_all(&section).map_err(failure)?;
    clap_mangen::generate_to(super::documented(), &section).map_err(failure)?;
    Ok(format!("wrote the manual pages to {name}\n"))
}
