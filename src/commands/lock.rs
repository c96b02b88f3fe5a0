//! `lock`: the lock at the top, brought up to date with the working tree.

use std::collections::BTreeMap;
use std::rc::Rc;

use clap::Args;
use serde::Serialize;

use super::allow::{add_allow, say_added};
use super::check::{Base, check};
use super::messages::{self, accepted, counted, lines, number_of_warnings};
use super::output::{Done, Outcome, OutputArgs, Shown};
use super::{News, Status, fetcher, fetching};
use crate::check::Checking;
use crate::destination::working;
use crate::graph::Warning;
use crate::message::failure::{Failure, Failures, short, stage};
use crate::message::finding::Rule;
use crate::plan::lock::{Relocked, relock, up_to_date, without_charts};
use crate::plan::{Changes, File};
use crate::record::{self, LOCK_NAME, Left, Lock, Remote};
use crate::workspace::{Workspace, repository_offline};

/// How many lines of errors are shown as they are.
const SCREEN: usize = 30;
/// How many upstreams with errors, and how many changes, are shown otherwise: with the rest they fit on a screen.
const MOST_UPSTREAMS: usize = 4;
const MOST_CHANGES: usize = 10;

/// Arguments of `lock`.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct LockArgs {
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
    pub unresolved: Vec<Failure>,
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
        let failures = locked.unresolved.iter();
        let of_lock = add_allow(&failures.filter_map(|one| one.exception.as_deref().cloned()).collect::<Vec<_>>())?;
        // No lock mends the rest. What is not locked by now does not answer today.
        let checked = check(&repository_offline()?, &Checking::WorkingTree, &[], &Base::Own)?;
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
        let before = workspace.lock.clone().unwrap_or_default();
        let relocked = match up_to_date(&workspace)? {
            Some(relocked) => relocked,
            None => {
                let held = Rc::new(without_charts(&before, config.helm));
                let options = fetching(config, self.offline, quiet);
                let mut fetcher = fetcher(Some(repo), options, vec![held.clone()], None)?;
                relock(&workspace, &held, &mut fetcher)?
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
    let is_first = workspace.lock.is_none();
    let is_same = relocked.lock == **before && workspace.merged.is_none();
    // A first lock that holds nothing tells nothing.
    let is_nothing = is_first && relocked.lock.remotes.is_empty() && !relocked.unresolved.is_empty();
    let edited = edits.keys().cloned().collect();
    let status = if warnings.iter().any(Warning::fails) {
        Status::Warned
    } else if (is_same || is_nothing) && edits.is_empty() {
        Status::Unchanged
    } else if dry_run {
        Status::DryRun
    } else {
        edits.insert(LOCK_NAME.to_owned(), Some(File::plain(relocked.lock.render()?.into_bytes())));
        Status::Written
    };
    match status {
        Status::Written => working::write(workspace, &edits)?,
        Status::Unchanged if !dry_run => working::write(workspace, &Changes::new())?,
        _ => {}
    }
    Ok(Locked {
        status,
        unread: relocked.unread,
        changes: Lock::changes(before, &relocked.lock),
        remotes: relocked.lock.remotes,
        unresolved: relocked.unresolved,
        left: relocked.lock.left,
        merged: workspace.merged.is_some(),
        kept: workspace.merged.clone().unwrap_or_default(),
        news: News::new(),
        edited,
        warnings,
        is_first,
        must_be_unchanged: false,
    })
}

impl Outcome for Locked {
    fn text(&self, shown: Shown) -> String {
        if shown.quiet { String::new() } else { lines(self.told(shown.verbose)) }
    }

    fn said(&self, output: &OutputArgs) -> String {
        let verbose = output.verbose;
        messages::warnings(&self.warnings, verbose) + &messages::failures(&self.failures(verbose))
    }

    fn status(&self) -> u8 {
        let is_done = self.unresolved.is_empty() && self.kept.is_empty();
        let is_refused = self.must_be_unchanged && self.status != Status::Unchanged;
        u8::from(self.status == Status::Warned || !is_done || is_refused)
    }
}

impl Locked {
    /// Returns what could not be done beside all that was, and last what that comes to.
    fn failures(&self, verbose: bool) -> Failures {
        let mut failures = self.kept.clone();
        let all = &self.unresolved;
        let fits = || messages::failures(&Failures(all.clone())).lines().count() <= SCREEN;
        let unresolved = if verbose || fits() { all.clone() } else { by_upstream(all) };
        let hidden = all.len() - unresolved.len();
        failures.extend(unresolved);
        if !all.is_empty() {
            let count = counted(all.len(), "error");
            let failure = Failure::new(format!("not everything could be resolved: {count}"));
            failures.push(match hidden {
                0 => failure,
                hidden => failure.hint(format!("{} not shown: `-v` shows all", counted(hidden, "error"))),
            });
        }
        Failures(failures)
    }

    fn told(&self, verbose: bool) -> Vec<String> {
        let count = counted(self.remotes.len(), "remote reference");
        let is_resolved = self.unresolved.is_empty();
        let is_nothing = is_resolved && self.remotes.is_empty();
        let mut out = vec![match self.status {
            Status::Unchanged if !is_resolved && self.is_first => {
                format!("{LOCK_NAME} not written: nothing could be resolved")
            }
            Status::Unchanged if !is_resolved => format!("{LOCK_NAME} not changed: it holds {count}"),
            Status::Unchanged if is_nothing => "nothing to do: nothing remote is referenced".to_owned(),
            Status::Unchanged => format!("nothing to do: {LOCK_NAME} holds {count}"),
            Status::Written => format!("wrote {LOCK_NAME}: it holds {count}"),
            Status::DryRun => format!("would write {LOCK_NAME}: it would hold {count}"),
            Status::Warned | Status::Differs => format!("{LOCK_NAME} not written"),
        }];
        out.extend(self.edited.iter().map(|path| format!("  edited {path}")));
        if self.merged {
            out.push("  merged both sides of the conflict".to_owned());
        }
        let most = if verbose { usize::MAX } else { MOST_CHANGES };
        let (changes, more) = self.changes.split_at(most.min(self.changes.len()));
        out.extend(messages::changes(changes, &self.news));
        if !more.is_empty() {
            out.push(format!("  and {}: `-v` shows all", counted(more.len(), "more change")));
        }
        out.extend(accepted(&self.left));
        out.extend(number_of_warnings(&self.warnings, verbose));
        // What was not followed, because something in the tree itself is wrong.
        if !self.unread.is_empty() {
            let count = counted(self.unread.len(), "reference");
            out.push(format!("  {count} not followed, which `git kustomize-localize check` explains"));
        }
        if verbose {
            out.extend(self.unread.iter().map(|failure| format!("    {failure}")));
            let held = |remote: &Remote| format!("  holds {} {}", remote.label(), short(remote.digest().hex()));
            out.extend(self.remotes.iter().map(held));
        }
        if self.status == Status::Written {
            let paths = self.edited.iter().map(String::as_str);
            out.push(format!("  to stage it: {}", stage(paths.chain([LOCK_NAME]))));
            if self.is_first {
                out.push("kustomize, Flux and Argo CD do not read the lock: deploy what `git kustomize-localize branch` makes of it".to_owned());
            }
        }
        out
    }
}

/// Returns the first error of each of a few upstreams, at all its places.
fn by_upstream(failures: &[Failure]) -> Vec<Failure> {
    let mut first: BTreeMap<&str, &str> = BTreeMap::new();
    let mut shown = Vec::new();
    for failure in failures {
        let upstream = if failure.upstream.is_empty() { &*failure.message } else { &*failure.upstream };
        if first.len() < MOST_UPSTREAMS {
            first.entry(upstream).or_insert(&failure.message);
        }
        if first.get(upstream) == Some(&&*failure.message) {
            shown.push(failure.clone());
        }
    }
    shown
}
