//! What `check` found: for people, as JSON, as SARIF, for GitHub Actions. All of it is pure.

mod excerpt;
mod github;
mod gitlab;
mod human;
mod json;
mod overview;
mod sarif;

pub use github::{github, github_summary};
pub use gitlab::gitlab;
pub use human::{Shown, human};
pub use json::json;
pub use sarif::sarif;

use super::{counted, visible};
use crate::check::{Checked, Checking};
use crate::message::failure::short;
use crate::message::finding::{Finding, Severity};
use crate::message::redact;
use crate::record::{Added, sha256_hex};

impl Checking {
    /// Returns its name, as in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Checking::Index => "index",
            Checking::WorkingTree => "working-tree",
            Checking::Commit { .. } => "commit",
        }
    }

    /// Returns what a person calls it.
    fn described(&self) -> String {
        match self {
            Checking::Index => "the index".to_owned(),
            Checking::WorkingTree => "the working tree".to_owned(),
            Checking::Commit { rev, commit } => match commit.starts_with(rev.as_str()) {
                _ if commit.is_empty() => format!("commit {}", visible(rev)),
                true => format!("commit {}", short(commit)),
                false => format!("commit {} ({})", short(commit), visible(rev)),
            },
        }
    }
}

/// Returns the line that sums up what was checked and what was found.
fn summary(checked: &Checked) -> String {
    let source = checked.source.described();
    let mut line = match (checked.kustomizations, checked.unseen) {
        (0, 0) => format!("no kustomization in {source}"),
        (0, unseen) => {
            format!("no kustomization in {source} ({unseen} untracked or ignored: git add them)")
        }
        (count, _) => format!(
            "checked {} with {} in {source}",
            counted(count, "kustomization"),
            counted(checked.references, "reference"),
        ),
    };
    match checked.differing {
        0 => {}
        1 => line.push_str(" (1 differs in the working tree)"),
        count => line.push_str(&format!(" ({count} differ in the working tree)")),
    }
    let allowed = checked.findings.len() - checked.count(Severity::Error) - checked.count(Severity::Warning);
    let mut parts: Vec<String> = [Severity::Error, Severity::Warning]
        .into_iter()
        .map(|severity| (checked.count(severity), severity))
        .filter(|(count, _)| *count > 0)
        .map(|(count, severity)| counted(count, severity.name()))
        .collect();
    if allowed > 0 {
        parts.push(format!("{allowed} allowed"));
    }
    if let Some((count @ 1.., base)) = &checked.known {
        parts.push(format!("{count} left out that {} has too", visible(base)));
    }
    if !checked.failures.is_empty() {
        parts.push(format!("{} could not be looked at", checked.failures.len()));
    }
    if parts.is_empty() {
        parts.push("nothing found".to_owned());
    }
    let unbuilt = match checked.untold.len() {
        0 => String::new(),
        count => format!("; not looked at: {} that only a build or the cluster knows", counted(count, "target")),
    };
    format!("{line}: {}{unbuilt}", parts.join(", "))
}

/// Returns what a reviewer looks at: what the configuration and the locks say otherwise than those of the base.
fn news(checked: &Checked) -> [(&'static str, Vec<String>); 2] {
    let lines = checked.new_config.iter();
    let locked =
        |added: &Added| format!("{}:{}: {} {}", visible(&added.lock), added.line, visible(&added.remote), added.digest);
    [
        ("new in the configuration", lines.map(|line| visible(&redact::text(line))).collect()),
        ("new in the lock", checked.new_locked.iter().map(locked).collect()),
    ]
}

/// Returns what to know when the index is not what is on disk: what was fixed there may not be staged.
fn not_staged(checked: &Checked) -> Option<String> {
    let found = checked.findings.iter().any(|one| one.allowed.is_none());
    let what = match checked.differing {
        0 => return None,
        1 => "1 kustomization has changes that are not staged".to_owned(),
        count => format!("{count} kustomizations have changes that are not staged"),
    };
    found.then(|| format!("{what}: fixes count after `git add`"))
}

/// Returns what stays the same when lines move.
fn fingerprint(finding: &Finding) -> String {
    let (rule, path, text) = finding.identity();
    sha256_hex(format!("{}\0{path}\0{text}", rule.id()).as_bytes())
}

/// Returns what deploys the build that a finding is in: the first, and how many more there are.
fn deployed(finding: &Finding) -> Option<String> {
    let (first, rest) = finding.deployed.split_first()?;
    Some(match rest.len() {
        0 => format!("deployed by {first}"),
        more => format!("deployed by {first}, and {more} more"),
    })
}

#[cfg(test)]
pub(super) mod tests;
