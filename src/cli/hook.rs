//! `hook`: puts hooks in and takes them out, and is what they run.

use std::io::{IsTerminal, Read};
use std::path::Path;
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};

use super::check::{self, Base, Policy, Request, What};
use super::{FAILED, output};
use crate::failure::{Failure, Failures, Result};
use crate::git::LocalRepo;
use crate::hook::{self, Change, Configuration, Done, Framework, Hook, Judged};
use crate::report::visible;

/// Commands about hooks.
#[derive(Debug, Clone, Subcommand)]
pub(super) enum HookCommand {
    /// Manage git hooks that run `check`
    Install(InstallArgs),

    /// Take out what `install` put in, and nothing else
    Uninstall(UninstallArgs),

    /// Do what a hook does; for hooks that are written by hand or by other programs
    Run(RunArgs),
}

/// Arguments of `hook install`.
#[derive(Debug, Clone, Args)]
pub(super) struct InstallArgs {
    /// The hooks to put in
    #[arg(value_enum, value_name = "HOOK", default_values_t = [Hook::PreCommit, Hook::PreMergeCommit])]
    hooks: Vec<Hook>,

    /// Move a hook aside that the check cannot be added to, and run both
    #[arg(long)]
    force: bool,

    /// Say nothing but errors
    #[arg(short, long)]
    quiet: bool,
}

/// Arguments of `hook uninstall`.
#[derive(Debug, Clone, Args)]
pub(super) struct UninstallArgs {
    /// The hooks to take out [default: all]
    #[arg(value_enum, value_name = "HOOK", hide_default_value = true, default_values_t = Hook::ALL)]
    hooks: Vec<Hook>,

    /// Say nothing but errors
    #[arg(short, long)]
    quiet: bool,
}

/// Arguments of `hook run`.
#[derive(Debug, Clone, Args)]
pub(super) struct RunArgs {
    /// What runs us
    #[arg(value_enum, value_name = "HOOK")]
    hook: Running,

    /// What git gives to that hook
    #[arg(
        value_name = "ARG",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    args: Vec<String>,
}

/// What can run us.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Running {
    /// Check what is staged
    PreCommit,
    /// Check what a merge makes
    PreMergeCommit,
    /// Check the commits that are pushed; reads their refs
    PrePush,
    /// On a server: check the commits that were pushed, by the configuration that it has already;
    /// reads their refs
    PreReceive,
    /// Check what the pre-commit framework runs for
    Framework,
}

/// Does what the arguments say.
pub(super) fn run(command: &HookCommand) -> ExitCode {
    output::Color::Auto.apply();
    let (done, quiet) = match command {
        HookCommand::Install(args) => (install(args), args.quiet),
        HookCommand::Uninstall(args) => (uninstall(args), args.quiet),
        HookCommand::Run(args) => {
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

fn install(args: &InstallArgs) -> Result<String, Failures> {
    let here = check::here()?;
    let changes = hook::install(&here, &args.hooks, args.force)?;
    let mut text = told(&changes);
    let directory = hook::Directory::find(&here)?;
    if directory.in_tree {
        text += "these files are in the working tree: commit them, and every clone that sets `core.hooksPath` has them\n";
    } else if directory.is_shared(&here) {
        text += "all working trees of this repository share them\n";
    }
    if is_off(&here)? {
        text += "but `kustomize-localize.hook` is false: they do nothing until it is unset\n";
    }
    Ok(text)
}

fn uninstall(args: &UninstallArgs) -> Result<String, Failures> {
    let here = check::here()?;
    let mut changes = hook::uninstall(&here, &args.hooks)?;
    changes.retain(|change| change.done != Done::Absent);
    Ok(if changes.is_empty() {
        "there is nothing of ours in the hooks\n".to_owned()
    } else {
        told(&changes)
    })
}

/// Returns what was done, a line for each hook.
fn told(changes: &[Change]) -> String {
    let current = std::env::current_dir().unwrap_or_default();
    let shown = |path: &Path| {
        let path = path.strip_prefix(&current).unwrap_or(path);
        visible(&path.display().to_string())
    };
    let mut text = String::new();
    for Change { path, done } in changes {
        let path = shown(path);
        text += &match done {
            Done::Made => format!("installed {path}\n"),
            Done::Added => format!("added the check to {path}, before what it does already\n"),
            Done::Updated => format!("brought {path} up to date\n"),
            Done::Kept => format!("{path} runs the check already\n"),
            Done::MovedAside(aside) => {
                format!(
                    "installed {path}; it then runs the one that was there, now {}\n",
                    shown(aside)
                )
            }
            Done::Absent => String::new(),
            Done::Removed => format!("removed {path}\n"),
            Done::TakenOut => format!("took the check out of {path}\n"),
            Done::Restored => format!("put {path} back as it was\n"),
        };
    }
    text
}

/// Says whether the hooks are switched off. What is not set is on.
fn is_off(here: &LocalRepo) -> Result<bool> {
    const KEY: &str = "kustomize-localize.hook";
    Ok(here.config(KEY)?.is_some() && !here.config_bool(KEY)?)
}

fn run_hook(args: &RunArgs) -> Result<u8, Failures> {
    let here = check::here()?;
    // Not the one on a server: it is a gate, and what is to be checked there is for its owner to say.
    if args.hook != Running::PreReceive && is_off(&here)? {
        return Ok(0);
    }
    let by_git = std::env::var_os("GIT_INDEX_FILE").is_some();
    let all = match args.hook {
        Running::PreCommit | Running::PreMergeCommit => vec![hook::committed(&here, by_git)?],
        Running::PrePush => hook::pushed(&here, args.args.first().map(String::as_str), &refs()?)?,
        Running::PreReceive => hook::received(&here, &refs()?)?,
        Running::Framework => vec![hook::framework(&here, &variables(), by_git)?],
    };
    let mut status = 0;
    for judged in all {
        // Among what git and other hooks say.
        let heading = || {
            let refs = if judged.refs.is_empty() {
                String::new()
            } else {
                format!(": {}", visible(&judged.refs.join(", ")))
            };
            output::say(&format!("git kustomize-localize check{refs}:\n"));
        };
        let checked = match check::checked(&here, &request(&judged, args.hook)) {
            Ok(checked) => checked,
            Err(failures) => {
                heading();
                output::failures(&failures);
                status = FAILED;
                continue;
            }
        };
        // A hook that has nothing to say says nothing; the framework hides what it does not want.
        let speaks = checked
            .findings
            .iter()
            .any(|finding| finding.allowed.is_none());
        let speaks = speaks || !checked.new_locked.is_empty();
        if speaks || !checked.failures.is_empty() || args.hook == Running::Framework {
            heading();
            output::say(&check::for_hook(&checked));
            output::failures(&Failures(checked.failures.clone()));
        }
        status = status.max(checked.status());
    }
    Ok(status)
}

fn request(judged: &Judged, hook: Running) -> Request {
    Request {
        what: match &judged.commit {
            Some(commit) => What::Commit(commit.clone()),
            None => What::Index,
        },
        paths: Vec::new(),
        config: match &judged.configuration {
            Configuration::Own => Policy::Checked,
            Configuration::Of(commit) => Policy::Commit(commit.clone()),
            Configuration::Default => Policy::Default,
        },
        no_allow: false,
        since: match &judged.configuration {
            Configuration::Of(commit) => Some(commit.clone()),
            Configuration::Own | Configuration::Default => None,
        },
        base: match &judged.old {
            Some(old) => Base::IfConfigured(old.clone()),
            // Where no commit is being made.
            None => Base::NotGiven(match hook {
                Running::Framework => {
                    &["say what is new: pre-commit run --from-ref REV --to-ref REV"]
                }
                _ => &["outside of a commit: git kustomize-localize check --new-only=BASE"],
            }),
        },
    }
}

/// Reads the refs that git names on standard input.
fn refs() -> Result<String> {
    let mut stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Err(
            Failure::new("this hook reads from standard input which refs it is about")
                .hint("git runs it: git push"),
        );
    }
    let mut text = String::new();
    stdin
        .read_to_string(&mut text)
        .map_err(|error| Failure::new(format!("could not read standard input: {error}")))?;
    Ok(text)
}

/// Reads what the pre-commit framework says.
fn variables() -> Framework {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    Framework {
        from: variable("PRE_COMMIT_FROM_REF"),
        to: variable("PRE_COMMIT_TO_REF"),
        branch: variable("PRE_COMMIT_LOCAL_BRANCH"),
        remote: variable("PRE_COMMIT_REMOTE_NAME"),
    }
}
