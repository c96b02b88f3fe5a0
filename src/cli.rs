//! The command line: arguments to requests, outcomes to reports and exit statuses. One file per command.

mod affected;
mod args;
mod branch;
mod check;
mod copy;
mod explain;
mod generate;
mod help;
mod hook;
mod localize;
mod lock;
mod output;
mod targets;
mod tell;
mod tree;
mod update;
mod vendor;
mod verify;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use crate::commands::meant;
use crate::message::failure::Failure;
use crate::message::redact::{self, visible};

/// Exit status when the work could not be done: usage, git, network, unreadable input.
pub(crate) const FAILED: u8 = 2;

/// Vendor the remote bases of kustomizations, and prove that the build is the same
#[derive(Debug, Parser)]
#[command(
    name = "git-kustomize-localize",
    bin_name = "git kustomize-localize",
    version,
    args_conflicts_with_subcommands = true,
    disable_help_flag = true,
    disable_help_subcommand = true,
    subcommand_negates_reqs = true,
    override_usage = "git kustomize-localize [OPTIONS] <TARGET> [NEW_DIR]\n       git kustomize-localize <COMMAND>",
    after_help = format!("{EXIT_STATUS}\nThe whole page: git kustomize-localize help TARGET")
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    copy: copy::CopyArgs,
    /// Print help; `help COMMAND` is the whole page
    #[arg(short, long, global = true, action = clap::ArgAction::HelpShort)]
    help: Option<bool>,
}

const EXIT_STATUS: &str =
    "Exit status: 0 done; 1 findings that are errors, or the builds differ; 2 could not do the work.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Commit the repository, localized, to a branch
    #[command(after_help = EXIT_STATUS)]
    Branch(Box<branch::BranchArgs>),

    /// Vendor remote references in the working tree
    #[command(after_help = EXIT_STATUS)]
    Vendor(Box<vendor::VendorArgs>),

    /// Bring kustomize-localize.lock up to date with what the working tree references
    Lock(lock::LockArgs),

    /// Resolve again what kustomize-localize.lock holds
    Update(update::UpdateArgs),

    /// Find what a build without a network could not resolve
    #[command(
        after_help = "Exit status: 0 nothing that fails; 1 findings that are errors; 2 something could not be looked at."
    )]
    Check(check::CheckArgs),

    /// Verify a localized commit against its lock and trailers
    #[command(
        after_help = "Exit status: 0 as recorded; 1 something differs; 2 something could not be read, or a server did not answer."
    )]
    Verify(verify::VerifyArgs),

    /// Show the reference tree
    Tree(tree::TreeArgs),

    /// Show what Flux, Argo CD and Fleet deploy from here
    Targets(targets::TargetsArgs),

    /// Name the kustomizations whose build a change can touch
    Affected(affected::AffectedArgs),

    /// Manage git hooks that run `check`
    #[command(subcommand)]
    Hook(hook::HookCommand),

    /// Explain rules
    Explain(explain::ExplainArgs),

    /// Write manual pages and shell completions
    #[command(subcommand, hide = true)]
    Generate(generate::GenerateCommand),

    /// Show the page of a command, or a guide
    Help(help::HelpArgs),
}

/// Returns a failure that the first word is not a command, if the rest shows that one was meant: otherwise it is a
/// TARGET, and clap suggests the options of a copy.
fn misspelled(error: &clap::Error) -> Option<Failure> {
    use clap::error::ErrorKind;
    if !matches!(error.kind(), ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand) {
        return None;
    }
    let mut words = std::env::args_os().skip(1);
    let word = words.find(|word| word != "help")?;
    let word = word.to_str().filter(|word| !word.starts_with('-'))?;
    let meant = meant(word).filter(|name| *name != word)?;
    let here = std::path::Path::new(word).is_dir();
    (!here).then(|| {
        Failure::new(format!("there is no command `{word}`"))
            .hint(format!("did you mean `git kustomize-localize {meant}`?"))
    })
}

/// Names what has an option, where something else does not: clap only tells how to pass it as a value.
fn point_elsewhere(error: &mut clap::Error) {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg) else {
        return;
    };
    if error.kind() != ErrorKind::UnknownArgument {
        return;
    }
    let option = unknown.split('=').next().unwrap_or_default();
    let Some(option) = option.strip_prefix("--") else {
        if std::env::args_os().nth(1).is_some_and(|first| first == "branch") {
            let tip = format!(
                "`branch` localizes the repository; to copy one kustomization: git kustomize-localize {unknown}"
            );
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
        }
        return;
    };
    let command = documented();
    let commands = command.get_subcommands();
    let has = |command: &&clap::Command| {
        let mut options = command.get_arguments().filter_map(clap::Arg::get_long);
        options.any(|one| one == option)
    };
    let mut names: Vec<String> = commands.filter(has).map(|command| format!("`{}`", command.get_name())).collect();
    if has(&&command) {
        names.push("a copy".to_owned());
    }
    let tip = match (option, names.is_empty()) {
        ("in-place", _) => "`branch` commits the repository, localized; `vendor` localizes the working tree".to_owned(),
        (_, true) if error.get(ContextKind::SuggestedArg).is_some() => return,
        (_, true) => match meant(option) {
            Some(command) => format!("it is a command: git kustomize-localize {command}"),
            None => return,
        },
        (_, false) => format!("it is an option of {}", names.join(", ")),
    };
    // One of nearly that name is not meant, nor is its usage.
    if error.remove(ContextKind::SuggestedArg).is_some() {
        error.remove(ContextKind::Usage);
    }
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
}

/// Makes what clap quotes of the arguments safe to show: they may come from outside, and hold a secret.
fn clean(error: &mut clap::Error) {
    use clap::error::{ContextKind, ContextValue};
    let text = |text: &String| redact::text(&visible(text));
    let styled = |styled: &clap::builder::StyledStr| {
        let plain = styled.to_string();
        match text(&plain) {
            same if same == plain => styled.clone(),
            other => other.into(),
        }
    };
    let quoted: Vec<(ContextKind, ContextValue)> = error
        .context()
        .filter(|(kind, _)| *kind != ContextKind::Usage)
        .map(|(kind, value)| {
            let value = match value {
                ContextValue::String(one) => ContextValue::String(text(one)),
                ContextValue::Strings(all) => ContextValue::Strings(all.iter().map(text).collect()),
                ContextValue::StyledStr(one) => ContextValue::StyledStr(styled(one)),
                ContextValue::StyledStrs(all) => ContextValue::StyledStrs(all.iter().map(styled).collect()),
                other => other.clone(),
            };
            (kind, value)
        })
        .collect();
    for (kind, value) in quoted {
        error.insert(kind, value);
    }
}

/// Returns the text of a usage error. git takes `--help` for itself, and looks for a manual page.
fn usage_error(error: &clap::Error) -> String {
    const MORE: &str = "For more information";
    let text = error.render();
    let text = if console::colors_enabled_stderr() { text.ansi().to_string() } else { text.to_string() };
    match text.rsplit_once(MORE) {
        Some((before, after)) => format!("{before}{MORE}{}", after.replace("--help", "-h")),
        None => text,
    }
}

/// Returns the command line, as it is documented.
pub(crate) fn documented() -> clap::Command {
    let mut command = crate::manual::described(Cli::command());
    command.build();
    command
}

/// Reads the arguments of the process and does what they say.
pub(crate) fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(mut error) => {
            if let Some(failure) = misspelled(&error) {
                return output::failed(&failure.into(), false);
            }
            // Help and version are results; everything else is a usage error.
            if error.use_stderr() {
                point_elsewhere(&mut error);
                clean(&mut error);
                output::say(&usage_error(&error));
                return output::ended(ExitCode::from(FAILED));
            }
            if let Err(error) = error.print() {
                output::lost(&error);
            }
            return output::ended(ExitCode::SUCCESS);
        }
    };
    output::ended(match cli.command {
        Some(Command::Check(args)) => check::run(&args),
        Some(Command::Hook(command)) => hook::run(&command),
        Some(Command::Verify(args)) => verify::run(&args),
        Some(Command::Tree(args)) => tree::run(&args),
        Some(Command::Targets(args)) => targets::run(&args),
        Some(Command::Affected(args)) => affected::run(&args),
        Some(Command::Explain(args)) => explain::run(&args),
        Some(Command::Generate(command)) => generate::run(&command),
        Some(Command::Help(args)) => help::run(&args),
        Some(Command::Branch(args)) => branch::run(&args),
        Some(Command::Vendor(args)) => vendor::run(&args),
        Some(Command::Lock(args)) => lock::run(&args),
        Some(Command::Update(args)) => update::run(&args),
        None => copy::run(&cli.copy),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_are_those_that_have_a_name() {
        let command = Cli::command();
        let mut names: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        let mut known: Vec<&str> = crate::commands::names().collect();
        names.sort_unstable();
        known.sort_unstable();
        assert_eq!(names, known);
    }
}
