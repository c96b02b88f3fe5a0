//! Completion scripts, made from the command line that clap knows.

use clap_complete::Shell;

/// Connects git's completion for bash with ours. zsh finds ours by its name.
const BASH_GLUE: &str = include_str!("completion/git.bash");
const FISH_GLUE: &str = include_str!("completion/git.fish");

/// A completion script for a shell, which also completes after `git`: the generated ones know only the name of the
/// program.
pub(crate) fn completion(shell: Shell, command: clap::Command) -> String {
    let name = command.get_name().to_owned();
    match shell {
        Shell::Bash => {
            // If the name has dashes, the generator uses two spellings for its commands (4.6.11). Its script gets the
            // name from the caller, except for the registration.
            let plain = name.replace('-', "__");
            let script = script(Shell::Bash, command, &plain);
            script.replace(&format!(" {plain}\n"), &format!(" {name}\n")) + BASH_GLUE
        }
        // The generated script would complete a command only as the third word, after TARGET and NEW_DIR.
        Shell::Zsh => script(Shell::Zsh, without_positionals(&command), &name),
        Shell::Fish => script(Shell::Fish, command, &name) + FISH_GLUE,
        _ => script(shell, command, &name),
    }
}

/// The script that clap generates for a command called `name`.
fn script(shell: Shell, mut command: clap::Command, name: &str) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// A copy of a command without its positional arguments.
fn without_positionals(command: &clap::Command) -> clap::Command {
    let options = command.get_arguments().filter(|argument| !argument.is_positional());
    clap::Command::new(env!("CARGO_PKG_NAME"))
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_flag(true)
        .disable_help_subcommand(true)
        .args(options.cloned())
        .subcommands(command.get_subcommands().cloned())
}
