//! `hook`: puts hooks in and takes them out, and is what they run.

use std::io::{IsTerminal, Read};
use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::args::OutputArgs;
use super::output::{Color, Format};
use super::tell::tell;
use super::{FAILED, check, output};
use crate::commands::Status;
use crate::commands::hook;
use crate::hook::{Framework, Hook, Running};
use crate::message::failure::{Failure, Failures, Result};
use crate::report::hook as report;

/// Commands about hooks.
#[derive(Debug, Clone, Subcommand)]
pub(super) enum HookCommand {
    /// Install git hooks that run `check`
    Install(InstallArgs),

    /// Remove what `install` added, and nothing else
    Uninstall(UninstallArgs),

    /// Do what a hook does; for hooks that are written by hand or by other programs
    Run(RunArgs),
}

/// Arguments of `hook install`.
#[derive(Debug, Clone, Args)]
pub(super) struct InstallArgs {
    /// The hooks to install
    #[arg(value_enum, value_name = "HOOK", default_values_t = [Hook::PreCommit, Hook::PreMergeCommit])]
    hooks: Vec<Hook>,

    /// Say nothing but errors
    #[arg(short, long)]
    quiet: bool,
}

/// Arguments of `hook uninstall`.
#[derive(Debug, Clone, Args)]
pub(super) struct UninstallArgs {
    /// The hooks to remove [default: all]
    #[arg(value_enum, value_name = "HOOK", hide_default_value = true, default_values_t = Hook::ALL)]
    hooks: Vec<Hook>,

    /// Say nothing but errors
    #[arg(short, long)]
    quiet: bool,
}

/// Arguments of `hook run`.
#[derive(Debug, Clone, Args)]
pub(super) struct RunArgs {
    /// What runs us: `framework` checks, never reaches the network and is for everywhere; `lock` runs `lock`, fails when
    /// that changed the lock, and is for where people edit URLs; the others are hooks of git
    #[arg(value_enum, value_name = "HOOK")]
    hook: Running,

    /// What git gives to that hook
    #[arg(value_name = "ARG", trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
}

/// Does what the arguments say.
pub(super) fn run(command: &HookCommand) -> ExitCode {
    output::Color::Auto.apply();
    let (done, quiet) = match command {
        HookCommand::Install(args) => {
            let installed = hook::install(&args.hooks);
            (installed.map(|done| report::installed(&done)), args.quiet)
        }
        HookCommand::Uninstall(args) => {
            let changes = hook::uninstall(&args.hooks);
            (changes.map(|done| report::uninstalled(&done)), args.quiet)
        }
        HookCommand::Run(args) => {
            if args.hook == Running::Lock {
                return relock();
            }
            return match run_hook(args) {
                Ok(status) => ExitCode::from(status),
                Err(failures) => output::failed(&failures, false),
            };
        }
    };
    match done {
        Ok(_) if quiet => ExitCode::SUCCESS,
        Ok(text) => {
            output::print(&text);
            ExitCode::SUCCESS
        }
        Err(failures) => output::failed(&failures, false),
    }
}

fn run_hook(args: &RunArgs) -> Result<u8, Failures> {
    let mut status = 0;
    for judgement in hook::run(args.hook, &variables(), refs)? {
        output::say(&report::judged(&judgement, args.hook, check::shown_by_hook()));
        status = status.max(match &judgement.checked {
            Ok(checked) => checked.status(),
            Err(_) => FAILED,
        });
    }
    Ok(status)
}

/// Brings the lock up to date, and fails when that changed it: it is not part of the commit then.
fn relock() -> ExitCode {
    let args = OutputArgs { format: Format::Human, strict: false, quiet: false, verbose: false, color: Color::Auto };
    let Some(outcome) = hook::relock().transpose() else {
        return ExitCode::SUCCESS;
    };
    let is_changed = matches!(&outcome, Ok(outcome) if outcome.status != Status::Unchanged);
    let code = tell(&args, outcome);
    if is_changed { ExitCode::FAILURE } else { code }
}

/// Reads the refs that git names on standard input.
fn refs() -> Result<String> {
    let mut stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Err(
            Failure::new("this hook reads from standard input which refs it is about").hint("git runs it: git push")
        );
    }
    let mut text = String::new();
    stdin.read_to_string(&mut text).map_err(|error| Failure::new(format!("could not read standard input: {error}")))?;
    Ok(text)
}

/// Reads what the pre-commit framework says.
fn variables() -> Framework {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    Framework {
        to: variable("PRE_COMMIT_TO_REF"),
        branch: variable("PRE_COMMIT_LOCAL_BRANCH"),
        remote: variable("PRE_COMMIT_REMOTE_NAME"),
    }
}
