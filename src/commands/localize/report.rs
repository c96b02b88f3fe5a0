//! What people read of localizing.

use super::builds::{differences, proof};
use super::{Branch, Localized};
use crate::commands::Status;
use crate::commands::messages::{accepted, changes, counted, left, lines, number_of_warnings};
use crate::message::failure::{short, stage};

impl Localized {
    /// Returns the result, as lines.
    pub(super) fn told(&self, verbose: bool) -> String {
        let what = self.what();
        let done = match (self.status, &self.builds) {
            (Status::Differs, Some(builds)) => return lines(differences(builds)),
            (Status::Differs | Status::Warned, _) => return lines(vec![format!("not localized: {what}")]),
            (Status::Unchanged, _) => None,
            (Status::DryRun, _) if self.updated => Some("would update"),
            (Status::DryRun, _) => Some("would localize"),
            (Status::Written, _) if self.updated => Some("updated"),
            (Status::Written, _) => Some("localized"),
        };
        let mut out = vec![match done {
            Some(done) => format!("{done} {what}{}", self.numbers()),
            None => self.unchanged(),
        }];
        let branch = self.branch.as_ref();
        if done.is_none() {
            out.extend(branch.into_iter().flat_map(Branch::places));
        } else {
            out.extend(changes(&self.changes, &self.news));
        }
        // How it was built, what was accepted, and how many warnings there are.
        out.extend(self.builds.iter().flat_map(|builds| proof(builds, verbose)));
        out.extend(accepted(&self.left));
        out.extend(number_of_warnings(&self.warnings, verbose));
        if done.is_some() && (verbose || self.status == Status::DryRun) {
            out.extend(self.each());
        }
        match branch {
            Some(branch) => {
                if self.status == Status::Written {
                    out.extend(branch.places());
                    out.push(format!("  to look at it: git show --stat {}", branch.tip()));
                }
                out.extend(left(&self.left));
                out.extend(branch.deployed.clone());
            }
            // `check` judges what people commit. What is ignored would be left out without `-f`.
            None if self.status == Status::Written && !self.stage.is_empty() => out.extend([
                "  to commit it:".to_owned(),
                format!("    {}", stage(&self.stage)),
                "    git commit".to_owned(),
            ]),
            None => {}
        }
        lines(out)
    }

    fn what(&self) -> String {
        match (&self.copy, self.targets.as_slice(), &self.branch) {
            (Some(copy), _, _) => format!("{} into {}", copy.target, copy.new_directory),
            _ if self.updated => "what is localized".to_owned(),
            (None, [], Some(_)) => "the repository".to_owned(),
            (None, [], None) => "the working tree".to_owned(),
            (None, targets, _) => targets.join(", "),
        }
    }

    /// Returns where it is, and how much has changed.
    fn numbers(&self) -> String {
        let references = counted(self.rewritten.len(), "reference");
        let written = format!(
            ": {} written, {references} rewritten, {} removed",
            counted(self.files.len(), "file"),
            self.removed.len()
        );
        let Some(branch) = &self.branch else { return written };
        let tip = branch.commit.as_ref().map(|_| format!(" ({})", branch.tip())).unwrap_or_default();
        let on = format!(" on branch {}{tip}", branch.name);
        if self.copy.is_some() {
            return on + &written;
        }
        // The commit lists what differs from the tip.
        let files = counted(self.files.len() + self.removed.len(), "file");
        format!("{on}: {references} rewritten, {files} different from {}", short(&branch.source))
    }

    fn unchanged(&self) -> String {
        let held = match (&self.branch, &self.copy) {
            (None, _) if self.updated => return "nothing to do: nothing has moved".to_owned(),
            (None, _) => return "nothing to do: nothing remote is referenced".to_owned(),
            (Some(_), Some(copy)) => format!("{} in {}", copy.target, copy.new_directory),
            (Some(branch), None) => format!("{} localized", short(&branch.source)),
        };
        let (name, tip) = self.branch.as_ref().map(|branch| (branch.name.as_str(), branch.tip())).unwrap_or_default();
        format!("nothing to do: branch {name} ({tip}) holds {held} already")
    }

    /// Returns every file, and every reference that was changed.
    fn each(&self) -> Vec<String> {
        let mut out = vec!["  files:".to_owned()];
        out.extend(self.files.iter().map(|(path, size)| format!("    {path} ({size})")));
        out.extend(self.removed.iter().map(|path| format!("    {path} removed")));
        if !self.rewritten.is_empty() {
            out.push("  rewritten:".to_owned());
        }
        let place = |one: &crate::plan::Rewritten| {
            format!("    {}: {}: {} -> {}", one.location, one.location.field, one.from, one.to)
        };
        out.extend(self.rewritten.iter().map(place));
        out
    }
}

impl Branch {
    /// Returns the abbreviated tip.
    fn tip(&self) -> &str {
        short(self.commit.as_deref().unwrap_or_default())
    }

    /// Returns where the branch is besides.
    fn places(&self) -> Vec<String> {
        let worktree = self.worktree.iter().map(|directory| format!("  checked out at {directory}"));
        worktree.chain(self.pushed.iter().map(|remote| format!("  pushed to {remote}"))).collect()
    }
}
