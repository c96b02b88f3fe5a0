//! `generate`: manual pages and completions, for packages and for those who install without one.

use std::fs;
use std::io;
use std::path::PathBuf;

use clap::{Args, CommandFactory, Subcommand, ValueHint};
use clap_complete::Shell;

use super::completion::completion;
use super::output::{Done, Page};
use super::{Cli, documented};
use crate::message::failure::{Failure, shown};

/// The files that can be generated.
#[derive(Debug, Clone, Subcommand)]
pub(super) enum GenerateCommand {
    /// Write the manual pages, which `git kustomize-localize --help` opens
    Man(ManArgs),

    /// Write a completion script to standard output
    Completion(CompletionArgs),
}

#[derive(Debug, Clone, Args)]
pub(super) struct ManArgs {
    /// The directory of manuals, for example ~/.local/share/man: the pages go to man1 in it
    #[arg(value_hint = ValueHint::DirPath)]
    directory: PathBuf,
}

#[derive(Debug, Clone, Args)]
pub(super) struct CompletionArgs {
    /// For which shell
    #[arg(value_enum)]
    shell: Shell,
}

impl GenerateCommand {
    /// Prints a completion script, or writes the manual pages into a directory.
    pub(super) fn run(&self) -> Done {
        let text = match self {
            GenerateCommand::Completion(args) => completion(args.shell, Cli::command()),
            GenerateCommand::Man(ManArgs { directory }) => {
                let name = shown(&directory.to_string_lossy());
                let failure = |error: io::Error| Failure::new(format!("cannot write pages to `{name}`: {error}"));
                let section = directory.join("man1");
                fs::create_dir_all(&section).map_err(failure)?;
                clap_mangen::generate_to(documented(), &section).map_err(failure)?;
                format!("wrote the manual pages to {name}\n")
            }
        };
        Page::of(text)
    }
}
