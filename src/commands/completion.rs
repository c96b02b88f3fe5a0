//! Completion scripts, made from the command line that clap knows.

use clap::ValueEnum;

use crate::commands::COPY;

/// A shell that can complete our arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    /// Bash, with git's own completion
    Bash,
    Zsh,
    Fish,
}

/// What leads from git's completion to ours. That of zsh finds ours by its name.
const BASH_GLUE: &str = include_str!("completion/git.bash");
const FISH_GLUE: &str = include_str!("completion/git.fish");

/// Returns a completion script that also works behind `git`.
pub(crate) fn completion(shell: Shell, command: clap::Command) -> String {
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
            with_targets(&script(clap_complete::Shell::Zsh, options, &name), &command, &name)
        }
        Shell::Fish => script(clap_complete::Shell::Fish, command, &name) + FISH_GLUE,
    }
}

fn script(shell: clap_complete::Shell, mut command: clap::Command, name: &str) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// Lets the script for zsh complete TARGET and NEW_DIR: the first word is a command or a directory, and what follows a
/// word that is not a command is completed as after [`COPY`].
fn with_targets(script: &str, command: &clap::Command, name: &str) -> String {
    let commands: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
    let first = format!(
        "\n(( $+functions[_{name}_first] )) ||\n_{name}_first() {{\n    _alternative 'commands:command:_{name}_commands' \
         'directories:directory:_directories'\n}}\n\nif [ \"$funcstack[1]\""
    );
    let copy = format!(
        "        [[ ' {} ' == *\" $line[1] \"* ]] || line[1]={COPY}\n        case $line[1] in\n",
        commands.join(" ")
    );
    script
        .replacen(&format!("'{COPY}:' \\\n"), "", 1)
        .replacen(&format!("\":: :_{name}_commands\""), &format!("\":: :_{name}_first\""), 1)
        .replacen("        case $line[1] in\n", &copy, 1)
        .replacen("\nif [ \"$funcstack[1]\"", &first, 1)
}

/// Returns the options and the commands of a command, with its positional arguments as those of [`COPY`].
fn without_positionals(command: &clap::Command) -> clap::Command {
    let options = command.get_arguments().filter(|one| !one.is_positional());
    let shown = command.get_arguments().filter(|one| !one.is_hide_set());
    let shown: Vec<clap::Arg> = shown.cloned().collect();
    clap::Command::new(env!("CARGO_PKG_NAME"))
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_flag(true)
        .disable_help_subcommand(true)
        .args(options.cloned())
        .subcommands(command.get_subcommands().cloned())
        .subcommand(clap::Command::new(COPY).args(shown))
}
