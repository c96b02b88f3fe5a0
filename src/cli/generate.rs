//! `generate`: manual pages and completions, for packages and for those who install without one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, CommandFactory, Subcommand, ValueEnum};

use super::{Cli, output};
use crate::failure::{Failure, Result, shown};

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
    directory: PathBuf,
}

/// Arguments of `generate completion`.
#[derive(Debug, Clone, Args)]
pub(super) struct CompletionArgs {
    /// For which shell
    #[arg(value_enum)]
    shell: Shell,
}

/// A shell that can complete our arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Shell {
    /// Bash, with git's own completion
    Bash,
    /// Zsh
    Zsh,
    /// Fish
    Fish,
}

/// What leads from git's completion to ours. That of zsh finds ours by its name.
const BASH_GLUE: &str = include_str!("generate/git.bash");
const FISH_GLUE: &str = include_str!("generate/git.fish");

/// Generates what the arguments say.
pub(super) fn run(command: &GenerateCommand) -> ExitCode {
    let done = match command {
        GenerateCommand::Man(args) => pages(&args.directory),
        GenerateCommand::Completion(args) => Ok(completion(args.shell)),
    };
    match done {
        Ok(text) => {
            output::print(&text);
            ExitCode::SUCCESS
        }
        Err(failure) => output::failed(&failure.into(), false),
    }
}

/// Writes one page for each command. Returns what is to be said.
fn pages(directory: &Path) -> Result<String> {
    let name = shown(&directory.to_string_lossy());
    let failure =
        |error: io::Error| Failure::new(format!("cannot write pages to `{name}`: {error}"));
    fs::create_dir_all(directory).map_err(failure)?;
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let count = page(&command, directory).map_err(failure)?;
    Ok(format!("wrote {count} pages to {name}\n"))
}

/// Writes the page of a command and those of the commands in it. Returns how many these are.
fn page(command: &clap::Command, directory: &Path) -> io::Result<usize> {
    clap_mangen::Man::new(command.clone()).generate_to(directory)?;
    let mut count = 1;
    for inner in command
        .get_subcommands()
        .filter(|inner| !inner.is_hide_set())
    {
        count += page(inner, directory)?;
    }
    Ok(count)
}

/// Returns a completion script that also works behind `git`.
fn completion(shell: Shell) -> String {
    let command = Cli::command();
    let name = command.get_name().to_owned();
    match shell {
        Shell::Bash => {
            // With dashes in the name, the generator names the commands in it in two ways (4.6.11). What it
            // makes takes the name from its caller, except where it registers itself.
            let plain = name.replace('-', "__");
            let script = script(clap_complete::Shell::Bash, command, &plain);
            script.replace(&format!(" {plain}\n"), &format!(" {name}\n")) + BASH_GLUE
        }
        // With TARGET and NEW_DIR before it, a command would be looked for as the third word.
        Shell::Zsh => script(
            clap_complete::Shell::Zsh,
            without_positionals(&command),
            &name,
        ),
        Shell::Fish => script(clap_complete::Shell::Fish, command, &name) + FISH_GLUE,
    }
}

fn script(shell: clap_complete::Shell, mut command: clap::Command, name: &str) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// Returns the options and the commands of a command alone.
fn without_positionals(command: &clap::Command) -> clap::Command {
    let options = command.get_arguments().filter(|one| !one.is_positional());
    clap::Command::new(env!("CARGO_PKG_NAME"))
        .version(env!("CARGO_PKG_VERSION"))
        .args(options.cloned())
        .subcommands(command.get_subcommands().cloned())
}
