//! `hook`: installs and removes hooks, and does the work of a hook that runs.

mod install;
mod pending;

use std::io::{IsTerminal, Read};
use std::path::Path;
use std::rc::Rc;

use clap::{Subcommand, ValueEnum};
use serde::Serialize;

use super::check::formats::human;
use super::lock::LockArgs;
use super::messages;
use super::output::{Done, Outcome, OutputArgs, Shown};
use crate::check::Checked;
use crate::check::gate::check;
use crate::git::{LocalRepo, Snapshot};
use crate::message::failure::{FAILED, Failure, Result, stage};
use crate::message::finding::Rule;
use crate::message::redact::visible;
use crate::record::{LOCK_NAME, Lock};
use crate::tree::disk::DiskTree;
use crate::workspace::{Files, repository_offline};
use pending::PendingCheck;

/// The hooks that can be installed. git runs `pre-merge-commit`, not `pre-commit`, for a merge without conflicts.
/// `pre-push` also sees the commits of rebase, cherry-pick and revert, which run no other hook.
const HOOKS: [&str; 3] = ["pre-commit", "pre-merge-commit", "pre-push"];

/// Commands about hooks.
#[derive(Debug, Clone, Subcommand)]
pub(super) enum HookCommand {
    /// Install git hooks that run `check`
    Install {
        /// The hooks to install
        #[arg(value_name = "HOOK", value_parser = HOOKS, default_values = ["pre-commit", "pre-merge-commit"])]
        hooks: Vec<String>,
    },

    /// Remove what `install` added, and nothing else
    Uninstall {
        /// The hooks to remove [default: all]
        #[arg(value_name = "HOOK", value_parser = HOOKS, hide_default_value = true, default_values = HOOKS)]
        hooks: Vec<String>,
    },

    /// Run a hook; for hooks written by hand or by other programs
    Run {
        /// The caller: `framework` only checks, without a network; `lock` runs `lock` and fails unless the lock is
        /// staged; the others are hooks of git
        #[arg(value_enum, value_name = "HOOK")]
        hook: HookName,

        /// The arguments that git passes to the hook
        #[arg(value_name = "ARG", trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
}

/// The hooks, by the program that calls them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum HookName {
    /// Check what is staged
    PreCommit,
    /// Check what a merge makes
    PreMergeCommit,
    /// Check the commits that are pushed; reads their refs
    PrePush,
    /// On a server: check the commits that were pushed, by the configuration that it has already;
    /// reads their refs
    PreReceive,
    /// Check as a hook of the pre-commit framework
    Framework,
    /// Lock what the files reference; fails unless the lock is staged
    Lock,
}

/// The outcome of a hook.
#[derive(Debug, Serialize)]
struct HookReport {
    checks: Vec<RefReport>,
}

/// The outcome for one commit, or for the index.
#[derive(Debug, Serialize)]
struct RefReport {
    /// The refs that it is about; empty for the index.
    refs: Vec<String>,
    /// The result of the check.
    #[serde(flatten)]
    checked: Checked,
}

impl HookCommand {
    /// Installs or removes hooks, or does the work of one.
    pub(super) fn run(&self, output: &OutputArgs) -> Done {
        let repo = repository_offline()?;
        let hook = match self {
            HookCommand::Install { hooks } => return Ok(Box::new(install::install(&repo, hooks)?)),
            HookCommand::Uninstall { hooks } => return Ok(Box::new(install::uninstall(&repo, hooks)?)),
            HookCommand::Run { hook, .. } => *hook,
        };
        // A server ignores the switch, because there the hook is a gate: only the owner of the server decides about it.
        let pending_checks = match hook {
            hook if hook != HookName::PreReceive && is_off(&repo)? => Vec::new(),
            HookName::Lock => {
                let mut locked = LockArgs::default().update_lock(output)?;
                // The failure stops the commit: git commits the files of the index, whose lock differs.
                if !is_lock_staged(&repo)? {
                    let failure = Failure::new(format!("{LOCK_NAME} on disk is not part of this commit yet"));
                    locked.locking.unmoved.push(failure.hint(stage([LOCK_NAME])));
                }
                return Ok(Box::new(locked));
            }
            HookName::PreCommit | HookName::PreMergeCommit => vec![PendingCheck::index(&repo)?],
            HookName::PrePush => pending::pushed(&repo, &refs()?)?,
            HookName::PreReceive => pending::received(&repo, &refs()?)?,
            HookName::Framework => vec![pending::framework(&repo)?],
        };
        Ok(Box::new(HookReport {
            checks: pending_checks.into_iter().map(|pending| report_of(&repo, pending)).collect(),
        }))
    }
}

/// Checks a snapshot that is about to be committed or pushed, and keeps the findings that concern whoever does it.
fn report_of(repo: &Rc<LocalRepo>, pending: PendingCheck) -> RefReport {
    // A hook must answer for each ref, so a failure is a part of the answer: it must not end the others.
    let checked = check(repo, &pending.snapshot, &[], &pending.base, None);
    let mut checked = checked.unwrap_or_else(|failures| Checked::failed(pending.snapshot.clone(), failures.0));
    // Nothing can have been merged into a new ref.
    checked.findings.retain(|finding| finding.rule != Rule::MergedBack || !pending.is_new);
    if checked.failures.is_empty() {
        match pending.finding_filter(repo, &checked.source) {
            Ok(is_shown) => checked.findings.retain(is_shown),
            Err(failure) => checked.failures.push(failure),
        }
    }
    RefReport { refs: pending.refs, checked }
}

/// Whether the index has the lock that is on disk, also if git ignores it. The lock on disk was just read or written,
/// so one that cannot be read is only in the index, and differs.
fn is_lock_staged(repo: &Rc<LocalRepo>) -> Result<bool> {
    let staged = Files::open(repo, &Snapshot::Index)?.checked_out();
    let on_disk = DiskTree::of_directory(repo.top.as_deref().unwrap_or(Path::new("")))?;
    // Locks are compared, not bytes: a checkout may change the ends of lines.
    Ok(Lock::find(&*staged, LOCK_NAME).ok() == Lock::find(&on_disk, LOCK_NAME).ok())
}

/// Whether the hooks are switched off. Without a setting they are on.
fn is_off(repo: &LocalRepo) -> Result<bool> {
    const KEY: &str = "kustomize-localize.hook";
    Ok(!repo.config_bool(KEY, true)?)
}

/// Reads the lines about refs that git gives to a hook on standard input.
fn refs() -> Result<String> {
    let mut stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Err(Failure::new("this hook expects refs on standard input").hint("git runs it: git push"));
    }
    let mut text = String::new();
    stdin.read_to_string(&mut text).map_err(|error| Failure::new(format!("could not read standard input: {error}")))?;
    Ok(text)
}

impl Outcome for HookReport {
    fn text(&self, _shown: Shown) -> String {
        // The stdout of `git push` is for its own report.
        String::new()
    }

    fn stderr(&self, _output: &OutputArgs) -> String {
        self.checks.iter().map(RefReport::stderr).collect()
    }

    fn status(&self) -> u8 {
        self.checks.iter().map(|check| check.checked.status()).max().unwrap_or_default()
    }
}

impl RefReport {
    /// The text for the terminal, among the messages of git and other hooks; empty without a finding that counts, a
    /// failure, or something new in the configuration or the lock.
    fn stderr(&self) -> String {
        let RefReport { refs, checked } = self;
        let has_finding = checked.findings.iter().any(|finding| finding.allowed.is_none());
        let is_new = !checked.new_config.is_empty() || !checked.new_locked.is_empty();
        if !has_finding && !is_new && checked.status() != FAILED {
            return String::new();
        }
        let refs = if refs.is_empty() { String::new() } else { format!(": {}", visible(&refs.join(", "))) };
        let terminal = console::Term::stderr();
        let width = terminal.size_checked().map(|(_, columns)| columns.into());
        let shown = Shown { color: console::colors_enabled_stderr(), width, ..Shown::default() };
        let failures = messages::failures(&checked.failures);
        format!("git kustomize-localize check{refs}:\n{}{failures}", human(checked, shown))
    }
}
