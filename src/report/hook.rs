//! The report about hooks that were installed or uninstalled, and the output of a running one.

use std::path::Path;

use super::check::{self, Shown};
use super::{messages, visible};
use crate::commands::hook::{Installed, Judgement};
use crate::hook::{Change, Done, Running};
use crate::message::failure::Failures;

/// Returns what putting hooks in came to.
pub(crate) fn installed(installed: &Installed) -> String {
    let mut text = told(&installed.changes);
    if installed.in_tree {
        text +=
            "these files are in the working tree: commit them, and every clone that sets `core.hooksPath` has them\n";
    } else if installed.is_shared {
        text += "all working trees of this repository share them\n";
    }
    if installed.is_off {
        text += "but `kustomize-localize.hook` is false: they do nothing until it is unset\n";
    }
    text
}

/// Returns what taking hooks out came to.
pub(crate) fn uninstalled(changes: &[Change]) -> String {
    if changes.is_empty() { "there is nothing to remove\n".to_owned() } else { told(changes) }
}

/// Returns what a hook found; nothing where it has nothing to say. The framework hides what it does not want.
pub(crate) fn judged(judgement: &Judgement, hook: Running, shown: Shown) -> String {
    // Among what git and other hooks say.
    let refs =
        if judgement.refs.is_empty() { String::new() } else { format!(": {}", visible(&judgement.refs.join(", "))) };
    let heading = format!("git kustomize-localize check{refs}:\n");
    let checked = match &judgement.checked {
        Ok(checked) => checked,
        Err(failures) => return heading + &messages::failures(failures),
    };
    let mut findings = checked.findings.iter();
    let speaks = findings.any(|finding| finding.allowed.is_none())
        || !checked.new_config.is_empty()
        || !checked.new_locked.is_empty()
        || !checked.failures.is_empty();
    if !speaks && hook != Running::Framework {
        return String::new();
    }
    let failures = Failures(checked.failures.clone());
    heading + &check::human(checked, shown) + &messages::failures(&failures)
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
            Done::Written => format!("installed {path}\n"),
            Done::Kept => format!("{path} runs the check already\n"),
            Done::Removed => format!("removed {path}\n"),
        };
    }
    text
}
