//! The text about localizing and locking.

use super::builds::{differences, proof_lines, refusal};
use super::{LocalizeReport, Locking};
use crate::commands::findings;
use crate::commands::messages::{self, changes, counted, left, lines};
use crate::commands::output::{Outcome, OutputArgs, Shown};
use crate::destination::Discarded;
use crate::localize::{BranchReport, LocalizeOutcome, ResultKind, WriteOutcome};
use crate::message::failure::{Failure, listed as paths_listed, short, stage};
use crate::plan::Rewritten;
use crate::record::LOCK_NAME;
use crate::reference::Upstream;

impl Outcome for LocalizeReport {
    /// The report, then the effects on deployments for `update --diff`; nothing with `--quiet`. If original and result
    /// build differently, only these differences, also with `--quiet`: they are an error.
    fn text(&self, shown: Shown) -> String {
        match (self.localized.status, &self.localized.builds) {
            (WriteOutcome::Differs, Some(builds)) => lines(differences(builds)),
            _ if shown.quiet => String::new(),
            _ => {
                lines(self.report_lines(shown))
                    + &self.locking.effects.as_ref().map_or(String::new(), |diff| diff.text(shown))
            }
        }
    }

    /// The warnings, then the failures that keep a part from being localized or locked, and the notes of `--diff`.
    fn stderr(&self, output: &OutputArgs) -> String {
        // The reason why nothing was written comes last, where people look first.
        let differs = self.localized.builds.as_ref().and_then(refusal);
        let (effects, unmoved, unresolved) = (&self.locking.effects, &self.locking.unmoved, &self.locking.unresolved);
        let failures = unmoved.iter().chain(unresolved).cloned().chain(differs);
        let failures: Vec<Failure> = failures.collect();
        let missing = match &self.localized.made {
            ResultKind::Rendered { missing, .. } => messages::missing(missing, output.quiet),
            _ => String::new(),
        };
        let stderr = missing
            + &self.localized.uncommitted(output.verbose)
            + &findings::of_localizing(&self.localized.findings, self.localized.source(), output.verbose)
            + &messages::first_failures(&failures, output.verbose);
        let stderr = stderr + &effects.as_ref().map_or(String::new(), |effects| effects.stderr(output));
        if unresolved.is_empty() {
            return stderr;
        }
        // The number is the last line, also if the list above was cut.
        let failure = Failure::new(format!("{} could not be locked", counted(unresolved.len(), "reference")));
        stderr + &messages::failures(&[failure])
    }

    fn status(&self) -> u8 {
        // Entries in `held` are held on purpose, and `check` reports the errors in `unread`: neither counts.
        let is_done = self.locking.unmoved.is_empty() && self.locking.unresolved.is_empty();
        let is_missing = matches!(self.localized.made, ResultKind::Rendered { fails: true, .. });
        u8::from(
            matches!(self.localized.status, WriteOutcome::Differs | WriteOutcome::Warned) || !is_done || is_missing,
        )
    }
}

impl LocalizeReport {
    /// The report for people about a result that was written or planned: a headline, then what changed, then the next
    /// step. Empty if findings or differences kept it from being written: they are the whole report.
    fn report_lines(&self, shown: Shown) -> Vec<String> {
        let (LocalizeReport { localized, locking }, verbose) = (self, shown.verbose);
        let Some(headline) = self.headline() else { return Vec::new() };
        let mut out = vec![headline];
        // This comes right after the headline, because it changes how the lock must be reviewed.
        if locking.merged {
            out.push("  merged both sides of the conflict".to_owned());
        }
        // Nothing is discarded or locked by a run that writes nothing.
        if localized.status != WriteOutcome::Unchanged {
            out.extend(localized.discarded());
            out.extend(changes(
                &localized.changes,
                &locking.news,
                |upstream: &Upstream| locking.effects.as_ref()?.effects_of(upstream),
                shown,
            ));
            out.extend(localized.now_remote.iter().map(|upstream| format!("  {}", upstream.line())));
        }
        // The first hint says when it may be locked, or else what to do now.
        out.extend(locking.held.iter().map(|failure: &Failure| {
            let wait = failure.hints.first().map(|hint| format!("; {hint}")).unwrap_or_default();
            format!("  held: {}{wait}", failure.message)
        }));
        out.extend(localized.builds.iter().flat_map(|builds| proof_lines(builds, verbose)));
        out.extend(left(&localized.left, verbose));
        out.extend(findings::warning_count(&localized.findings, verbose));
        // `check` explains each.
        if !locking.unread.is_empty() {
            let count = counted(locking.unread.len(), "reference");
            out.push(format!("  {count} not followed: see `git kustomize-localize check`"));
        }
        if verbose || localized.status == WriteOutcome::DryRun {
            out.extend(self.detail_lines());
        }
        out.extend(localized.next_lines());
        out
    }

    /// The first line of the report; `None` if nothing was written because of findings or differences.
    fn headline(&self) -> Option<String> {
        let localized = &self.localized;
        let [done, planned] = match localized.made {
            ResultKind::Lock | ResultKind::FirstLock => ["wrote", "would write"],
            ResultKind::Rendered { .. } => ["rendered", "would render"],
            ResultKind::Copy(_) | ResultKind::InPlace => ["localized", "would localize"],
        };
        let verb = match localized.status {
            WriteOutcome::Written => done,
            WriteOutcome::DryRun => planned,
            WriteOutcome::Unchanged => return Some(self.unchanged()),
            WriteOutcome::Warned | WriteOutcome::Differs => return None,
        };
        let tail = match localized.made {
            // `update --to` can edit a reference that has no entry.
            ResultKind::Lock if !localized.files.contains_key(LOCK_NAME) => format!("; {LOCK_NAME} is not changed"),
            ResultKind::Lock | ResultKind::FirstLock => {
                format!(": {}", counted(localized.remotes.len(), "remote reference"))
            }
            ResultKind::Rendered { .. } | ResultKind::Copy(_) | ResultKind::InPlace => localized.numbers(),
        };
        Some(format!("{verb} {}{tail}", localized.result_name()))
    }

    /// The line of a run that wrote nothing: the result exists already, or nothing more could be locked. It says
    /// `nothing to do` only if no error about a reference or an entry of the lock follows on stderr.
    fn unchanged(&self) -> String {
        let LocalizeReport { localized, locking: Locking { unresolved, unread, unmoved, .. } } = self;
        if let Some(branch) = &localized.branch {
            let holds = match &localized.made {
                ResultKind::Copy(copy) => format!("{} in {}", copy.target, copy.new_directory),
                ResultKind::Rendered { .. } => format!("what {} is built to", short(&branch.source)),
                _ => format!("{} localized", short(&branch.source)),
            };
            return format!("nothing to do: branch {} ({}) already has {holds}", branch.name, branch.tip());
        }
        let has_none = localized.remotes.is_empty();
        // A first lock is only written if it lists something.
        let lacks_lock = matches!(localized.made, ResultKind::FirstLock) && !unread.is_empty();
        if has_none && (lacks_lock || !unresolved.is_empty()) {
            return "nothing was written".to_owned();
        }
        if has_none && unmoved.is_empty() && unread.is_empty() && localized.left.is_empty() {
            return "nothing to do: no remote references".to_owned();
        }
        let count = counted(localized.remotes.len(), "remote reference");
        if unresolved.is_empty() && unmoved.is_empty() {
            format!("nothing to do: {LOCK_NAME} has {count}")
        } else {
            format!("{LOCK_NAME} not changed: {count}")
        }
    }

    /// The lines of `-v` and `--dry-run`: the references that were not followed, every file, and every reference that
    /// was changed.
    fn detail_lines(&self) -> Vec<String> {
        let LocalizeReport { localized, locking } = self;
        let unread = locking.unread.iter().map(|failure| format!("  not followed: {failure}"));
        let files = localized.files.iter().map(|(path, size)| match size {
            Some(size) => format!("  file {path} ({size})"),
            None => format!("  file {path}"),
        });
        let removed = localized.removed.iter().map(|path| format!("  removed {path}"));
        let rewritten = localized.rewritten.iter().map(|Rewritten { location, from, to, .. }| {
            format!("  rewritten {location}: {}: {from} -> {to}", location.field)
        });
        unread.chain(files).chain(removed).chain(rewritten).collect()
    }
}

impl LocalizeOutcome {
    /// The commit that is localized onto a branch; `None` if the result goes to disk.
    fn source(&self) -> Option<&str> {
        self.branch.as_ref().map(|branch| branch.source.as_str())
    }

    /// The lines about the place of the result, and about what to do with it.
    fn next_lines(&self) -> Vec<String> {
        let is_written = self.status == WriteOutcome::Written;
        let mut out = Vec::new();
        if let Some(branch) = &self.branch {
            out.extend(branch.worktree.iter().map(|directory| format!("  checked out at {directory}")));
            out.extend(branch.pushed.iter().map(|remote| format!("  pushed to {remote}")));
            if is_written {
                out.push(format!("  to look at it: git show --stat {}", branch.tip()));
            }
            out.extend(branch.deployed.clone());
        } else if is_written && !self.stage.is_empty() {
            // Without `-f`, git would not add ignored files.
            out.push(format!("  to stage it: {}", stage(&self.stage)));
        }
        if is_written && matches!(self.made, ResultKind::FirstLock) {
            out.push("kustomize, Flux and Argo CD do not read the lock: deploy the result of `git kustomize-localize branch`".to_owned());
        }
        out
    }

    /// The name of the result in the first line of the report.
    fn result_name(&self) -> String {
        match (&self.made, self.targets.as_slice(), &self.branch) {
            (ResultKind::Lock, ..) if !self.files.contains_key(LOCK_NAME) => counted(self.files.len(), "file"),
            (ResultKind::Lock | ResultKind::FirstLock, ..) => LOCK_NAME.to_owned(),
            (ResultKind::Copy(copy), ..) => format!("{} into {}", copy.target, copy.new_directory),
            (ResultKind::Rendered { builds, .. }, ..) => counted(*builds, "build"),
            (ResultKind::InPlace, [], Some(_)) => "the repository".to_owned(),
            (ResultKind::InPlace, [], None) => "the working tree".to_owned(),
            (ResultKind::InPlace, targets, _) => targets.join(", "),
        }
    }

    /// The branch of the result, if it goes to one, and the numbers of changes.
    fn numbers(&self) -> String {
        let on = self.branch.as_ref().map(|branch| match &branch.commit {
            Some(_) => format!(" on branch {} ({})", branch.name, branch.tip()),
            None => format!(" on branch {}", branch.name),
        });
        let written = counted(self.files.len(), "file");
        let rewritten = match self.made {
            ResultKind::Rendered { .. } => String::new(),
            _ => format!(", {} rewritten", counted(self.rewritten.len(), "reference")),
        };
        let removed = self.removed.len();
        format!("{}: {written} written{rewritten}, {removed} removed", on.unwrap_or_default())
    }

    /// A warning about kustomizations whose edits in the working tree are not localized; empty if there are none.
    fn uncommitted(&self, verbose: bool) -> String {
        if self.uncommitted.is_empty() {
            return String::new();
        }
        let (verb, names) = (if self.uncommitted.len() == 1 { "is" } else { "are" }, &self.uncommitted);
        let count = counted(names.len(), "kustomization");
        let text =
            format!("{count} {verb} not committed, and only HEAD is localized: {}", messages::named(names, verbose));
        messages::warning(&text, Some(&messages::commit_command(names)))
    }

    /// A line about edits by hand that `--overwrite` discards; `None` if there are none.
    fn discarded(&self) -> Option<String> {
        let Discarded { commits, paths } = &self.discarded;
        let discarded = if self.status == WriteOutcome::DryRun { "would discard" } else { "discarded" };
        let by = if commits.is_empty() { String::new() } else { format!(" by {}", commits.join(", ")) };
        (!paths.is_empty()).then(|| format!("  {discarded} edits by hand{by}: {}", paths_listed(paths)))
    }
}

impl BranchReport {
    /// The commit at the tip of the branch, abbreviated.
    fn tip(&self) -> &str {
        short(self.commit.as_deref().unwrap_or_default())
    }
}
