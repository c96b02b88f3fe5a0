//! `generate`: manual pages and completions, for packages and for those who install without one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, CommandFactory, Subcommand, ValueEnum, ValueHint};

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
            output::print_verbatim(&text);
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
    // What only the short help leaves out would have no description here.
    let mut command = command.clone().mut_args(|one| one.hide_short_help(false));
    // The usage says what belongs together; the generator's own lists every option once more, without values.
    let usage = command.render_usage().to_string();
    command = command.override_usage(usage.trim_start_matches("Usage: ").to_owned());
    let man = clap_mangen::Man::new(command.clone());
    let mut text = Vec::new();
    man.render(&mut text)?;
    fs::write(
        directory.join(man.get_filename()),
        titled(&command, &String::from_utf8_lossy(&text)),
    )?;
    let mut count = 1;
    for inner in command
        .get_subcommands()
        .filter(|inner| !inner.is_hide_set())
    {
        count += page(inner, directory)?;
    }
    Ok(count)
}

/// Gives a page its head and foot: no date, so that a page is the same on every day; and its last section the name that
/// other pages have for that.
fn titled(command: &clap::Command, page: &str) -> String {
    let name = command
        .get_display_name()
        .unwrap_or_else(|| command.get_name());
    let title = format!(
        ".TH {} 1 \"\" \"{} {}\" \"Git Manual\"",
        name.to_uppercase(),
        env!("CARGO_PKG_NAME"),
        env!("CARGO_PKG_VERSION")
    );
    let lines = page.lines().map(|line| match line {
        line if line.starts_with(".TH ") => title.as_str(),
        ".SH EXTRA" => ".SH \"EXIT STATUS\"",
        line => line.strip_prefix("Exit status: ").unwrap_or(line),
    });
    let mut text: String = lines.flat_map(|line| [line.trim_end(), "\n"]).collect();
    // What has no paragraph of its own would stand in the line before.
    text = text.replace(".br\n\n.br\n", ".sp\n");
    text
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
        Shell::Zsh => {
            let options = without_positionals(&command);
            with_targets(
                &script(clap_complete::Shell::Zsh, options, &name),
                &command,
                &name,
            )
        }
        Shell::Fish => script(clap_complete::Shell::Fish, command, &name) + FISH_GLUE,
    }
}

fn script(shell: clap_complete::Shell, mut command: clap::Command, name: &str) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// Lets the script for zsh complete TARGET and NEW_DIR also where `localize` is left out: the first word is a command or
/// a directory, and what follows a word that is no command follows `localize`.
fn with_targets(script: &str, command: &clap::Command, name: &str) -> String {
    let commands: Vec<&str> = command
        .get_subcommands()
        .map(clap::Command::get_name)
        .chain(["help"])
        .collect();
    let first = format!(
        "\n(( $+functions[_{name}_first] )) ||\n_{name}_first() {{\n    _alternative 'commands:command:_{name}_commands' \
         'directories:directory:_directories'\n}}\n\nif [ \"$funcstack[1]\""
    );
    let localize = format!(
        "        [[ ' {} ' == *\" $line[1] \"* ]] || line[1]=localize\n        case $line[1] in\n",
        commands.join(" ")
    );
    script
        .replacen(
            &format!("\":: :_{name}_commands\""),
            &format!("\":: :_{name}_first\""),
            1,
        )
        .replacen("        case $line[1] in\n", &localize, 1)
        .replacen("\nif [ \"$funcstack[1]\"", &first, 1)
}

/// Returns the options and the commands of a command alone.
fn without_positionals(command: &clap::Command) -> clap::Command {
    let options = command.get_arguments().filter(|one| !one.is_positional());
    clap::Command::new(env!("CARGO_PKG_NAME"))
        .version(env!("CARGO_PKG_VERSION"))
        .args(options.cloned())
        .subcommands(command.get_subcommands().cloned())
}
