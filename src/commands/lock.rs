//! `lock`: the lock at the top, brought up to date with the working tree.

use std::fmt::Write;
use std::rc::Rc;

use clap::{Args, ValueHint};
use serde::Serialize;

use super::allow::{add_allow, say_added};
use super::check::{Base, What, check};
use super::messages::{self, counted, write_accepted, write_changes, write_warnings};
use super::output::{Done, Outcome, OutputArgs, Shown};
use super::{News, Status, fetcher, fetching};
use crate::destination::working;
use crate::graph::Warning;
use crate::message::failure::{self, Failure, Failures, short, stage};
use crate::message::finding::Rule;
use crate::message::redact::visible;
use crate::plan::lock::{Relocked, Unresolved, relock, up_to_date, without_charts};
use crate::plan::{Changes, File};
use crate::record::{self, LOCK_NAME, Left, Lock, Remote};
use crate::workspace::{Workspace, from_top, repository_offline};

/// How many lines of errors are shown as they are.
const SCREEN: usize = 30;
/// How many upstreams with errors, and how many changes, are shown otherwise: with the rest they fit on a screen.
const MOST_UPSTREAMS: usize = 4;
const MOST_CHANGES: usize = 10;

/// Arguments of `lock`.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct LockArgs {
    /// Directories or kustomizations to begin at [default: all]
    ///
    /// Seen from here or, as `:/apps/web`, from the top of the repository.
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    paths: Vec<String>,

    /// Say what would be done; may fetch into the cache, writes nothing else
    #[arg(long)]
    dry_run: bool,

    /// Lock what can be, and write an entry of `allow` for all else that `check` finds
    ///
    /// Each with `reason: TODO`, which is a warning of `check` until somebody says why. None for what does not answer
    /// today.
    #[arg(long, conflicts_with = "dry_run")]
    add_allow: bool,

    /// Use only what lock and cache hold
    #[arg(long)]
    offline: bool,
}

/// The result of `lock`, or of `update`.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Locked {
    /// What happened to the lock.
    #[serde(rename = "outcome")]
    pub status: Status,
    /// What the lock holds.
    pub remotes: Vec<Remote>,
    /// What stays remote.
    pub left: Vec<Left>,
    /// The entries that were added, removed or changed.
    pub changes: Vec<record::Change>,
    /// What works but should be known.
    pub warnings: Vec<Warning>,
    /// What is wrong in the tree itself, so that what is behind it is not known.
    pub unread: Vec<Failure>,
    /// What could not be resolved.
    pub unresolved: Unresolved,
    /// Whether the lock was in conflict, and its two sides were brought together.
    pub merged: bool,
    /// What stays as it was: what both sides of a conflict changed, and not to the same; versions that moved.
    pub kept: Vec<Failure>,
    /// What the authors of what moved wrote.
    #[serde(skip)]
    pub news: News,
    /// The files beside the lock that were edited.
    pub edited: Vec<String>,
    /// Whether there was no lock before.
    #[serde(skip)]
    pub is_first: bool,
    /// Whether a change is a failure: the lock is not part of the commit then.
    #[serde(skip)]
    pub must_be_unchanged: bool,
}

impl LockArgs {
    pub(super) fn run(&self, output: &OutputArgs) -> Done {
        Ok(Box::new(self.locked(output)?))
    }

    /// Brings the lock up to date; again, once exceptions are written.
    pub(super) fn locked(&self, output: &OutputArgs) -> Result<Locked, Failures> {
        let locked = self.lock(output.quiet)?;
        if !self.add_allow {
            return Ok(locked);
        }
        let failures = locked.unresolved.failures.iter();
        let of_lock = add_allow(&failures.filter_map(|one| one.exception.as_deref().cloned()).collect::<Vec<_>>())?;
        // No lock mends the rest. What is not locked by now does not answer today.
        let checked = check(&repository_offline()?, &What::WorkingTree, &self.paths, &Base::Own)?;
        let exceptions = match checked.failures.as_slice() {
            [] => checked.exceptions(|one| one.fails() && one.rule != Rule::RemoteReference),
            _ => Vec::new(),
        };
        if say_added(of_lock + add_allow(&exceptions)?) { self.lock(output.quiet) } else { Ok(locked) }
    }

    fn lock(&self, quiet: bool) -> Result<Locked, Failures> {
        let workspace = Workspace::of_working_tree(true)?;
        let (Some(repo), config) = (workspace.repo(), &workspace.config) else {
            return Err(Failure::new("this is not a git repository").into());
        };
        let paths = self.paths.iter().map(|text| from_top(repo, &*workspace.tree, text));
        let paths = paths.collect::<failure::Result<Vec<String>>>()?;
        let before = workspace.lock.clone().unwrap_or_default();
        let relocked = match up_to_date(&workspace, &paths)? {
            Some(relocked) => relocked,
            None => {
                let held = Rc::new(without_charts(&before, config.helm));
                let options = fetching(config, self.offline, quiet);
                let mut fetcher = fetcher(Some(repo), options, vec![held.clone()], None)?;
                relock(&workspace, &paths, &held, &mut fetcher)?
            }
        };
        finish(&workspace, self.dry_run, Vec::new(), &before, relocked, Changes::new())
    }
}

/// Writes a lock if it is another one.
pub(super) fn finish(
    workspace: &Workspace,
    dry_run: bool,
    warnings: Vec<Warning>,
    before: &Rc<Lock>,
    mut relocked: Relocked,
    mut edits: Changes,
) -> Result<Locked, Failures> {
    relocked.lock.written_after(before);
    let is_same = relocked.lock == **before && !workspace.is_in_conflict();
    let edited = edits.keys().cloned().collect();
    // A first lock that holds nothing tells nothing.
    let is_nothing =
        workspace.lock.is_none() && relocked.lock.remotes.is_empty() && !relocked.unresolved.failures.is_empty();
    let is_same = (is_same || is_nothing) && edits.is_empty();
    let is_refused = warnings.iter().any(Warning::fails);
    let status = match (is_same, dry_run) {
        _ if is_refused => Status::Warned,
        (true, true) => Status::Unchanged,
        (true, false) => {
            working::write(workspace, &Changes::new())?;
            Status::Unchanged
        }
        (false, true) => Status::DryRun,
        (false, false) => {
            edits.insert(LOCK_NAME.to_owned(), Some(File::plain(relocked.lock.render()?.into_bytes())));
            working::write(workspace, &edits)?;
            Status::Written
        }
    };
    Ok(Locked {
        status,
        unread: relocked.unread,
        changes: Lock::changes(before, &relocked.lock),
        remotes: relocked.lock.remotes,
        unresolved: relocked.unresolved,
        left: relocked.lock.left,
        merged: workspace.is_in_conflict(),
        kept: workspace.both.clone(),
        news: News::new(),
        edited,
        warnings,
        is_first: workspace.lock.is_none(),
        must_be_unchanged: false,
    })
}

impl Outcome for Locked {
    fn text(&self, shown: Shown) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = if shown.quiet { Ok(()) } else { self.write(&mut out, shown.verbose) };
        out
    }

    fn said(&self, output: &OutputArgs) -> String {
        let verbose = output.verbose;
        messages::warnings(&self.warnings, verbose) + &messages::failures(&self.failures(verbose))
    }

    fn status(&self) -> u8 {
        let is_done = self.unresolved.failures.is_empty() && self.kept.is_empty();
        let is_refused = self.must_be_unchanged && self.status != Status::Unchanged;
        u8::from(self.status == Status::Warned || !is_done || is_refused)
    }
}

impl Locked {
    /// Returns what could not be done beside all that was, and last what that comes to.
    fn failures(&self, verbose: bool) -> Failures {
        let mut failures = self.kept.clone();
        let all = Failures(self.unresolved.failures.clone());
        let fits = || messages::failures(&all).lines().count() <= SCREEN;
        let (unresolved, hidden) = if verbose || fits() { (all.0, 0) } else { by_upstream(all.0) };
        failures.extend(unresolved);
        if !self.unresolved.failures.is_empty() {
            let count = counted(self.unresolved.count, "remote reference");
            let failure = Failure::new(format!("{count} could not be resolved"));
            failures.push(match hidden {
                0 => failure,
                hidden => failure.hint(format!("{} not shown: `-v` shows all", counted(hidden, "error"))),
            });
        }
        Failures(failures)
    }

    /// Writes how many references were not followed, because something in the tree itself is wrong.
    fn write_unread(&self, out: &mut String, verbose: bool) -> std::fmt::Result {
        if !self.unread.is_empty() {
            let count = counted(self.unread.len(), "reference");
            writeln!(out, "  {count} not followed, which `git kustomize-localize check` explains")?;
        }
        for failure in self.unread.iter().filter(|_| verbose) {
            writeln!(out, "    {}", visible(&failure.to_string()))?;
        }
        Ok(())
    }

    fn write(&self, out: &mut String, verbose: bool) -> std::fmt::Result {
        let count = counted(self.remotes.len(), "remote reference");
        match self.status {
            Status::Unchanged if !self.unresolved.failures.is_empty() && self.is_first => {
                writeln!(out, "{LOCK_NAME} not written: nothing could be resolved")?;
            }
            Status::Unchanged if !self.unresolved.failures.is_empty() => {
                writeln!(out, "{LOCK_NAME} not changed: it holds {count}")?;
            }
            Status::Unchanged if self.remotes.is_empty() => {
                writeln!(out, "nothing to do: nothing remote is referenced")?;
                self.write_unread(out, verbose)?;
                return write_warnings(out, &self.warnings, verbose);
            }
            Status::Unchanged => writeln!(out, "nothing to do: {LOCK_NAME} holds {count}")?,
            Status::Written => writeln!(out, "wrote {LOCK_NAME}: it holds {count}")?,
            Status::DryRun => writeln!(out, "would write {LOCK_NAME}: it would hold {count}")?,
            Status::Warned | Status::Differs => writeln!(out, "{LOCK_NAME} not written")?,
        }
        for path in &self.edited {
            writeln!(out, "  edited {}", visible(path))?;
        }
        if self.merged {
            writeln!(out, "  merged both sides of the conflict")?;
        }
        let most = if verbose { usize::MAX } else { MOST_CHANGES };
        let (changes, more) = self.changes.split_at(most.min(self.changes.len()));
        write_changes(out, changes, &self.news)?;
        if !more.is_empty() {
            let more = counted(more.len(), "more change");
            writeln!(out, "  and {more}: `-v` shows all")?;
        }
        write_accepted(out, &self.left)?;
        write_warnings(out, &self.warnings, verbose)?;
        self.write_unread(out, verbose)?;
        if verbose {
            for remote in &self.remotes {
                let digest = remote.digest();
                writeln!(out, "  holds {} {}", visible(&remote.label()), short(digest.hex()))?;
            }
        }
        if self.status == Status::Written {
            let paths = self.edited.iter().map(String::as_str);
            writeln!(out, "  to stage it: {}", stage(paths.chain([LOCK_NAME])))?;
            if self.is_first {
                writeln!(
                    out,
                    "kustomize, Flux and Argo CD do not read the lock: deploy what `git kustomize-localize branch` makes of it"
                )?;
            }
        }
        Ok(())
    }
}

/// Returns the first error of each of a few upstreams, at all its places, and how many errors are not shown.
fn by_upstream(failures: Vec<Failure>) -> (Vec<Failure>, usize) {
    let count = failures.len();
    let mut first: Vec<(String, String)> = Vec::new();
    let mut is_shown = |failure: &Failure| {
        let upstream = if failure.upstream.is_empty() { failure.message.as_str() } else { &failure.upstream };
        match first.iter().find(|(known, _)| known == upstream) {
            Some((_, message)) => *message == failure.message,
            None if first.len() == MOST_UPSTREAMS => false,
            None => {
                first.push((upstream.to_owned(), failure.message.clone()));
                true
            }
        }
    };
    let shown: Vec<Failure> = failures.into_iter().filter(|failure| is_shown(failure)).collect();
    let hidden = count - shown.len();
    (shown, hidden)
}
