//! `lock`: the lock at the top, brought up to date with the working tree.

use std::process::ExitCode;
use std::rc::Rc;

use super::check::from_top;
use super::localize::leave_remote;
use super::online::{LockArgs, fetcher, tell};
use crate::config::{Leave, Strict};
use crate::failure::{self, Failures};
use crate::fetch;
use crate::mend::{Ground, lock};
use crate::record::Lock;
use crate::report::{LockOutcome, LockReport};

/// Brings the lock up to date, and says what was done.
pub(super) fn run(args: &LockArgs) -> ExitCode {
    tell(&args.output, lock(args))
}

fn lock(args: &LockArgs) -> Result<LockReport, Failures> {
    let ground = Ground::find_merging()?;
    let paths = args
        .paths
        .iter()
        .map(|text| from_top(&ground.here, &*ground.tree, text))
        .collect::<failure::Result<Vec<String>>>()?;
    let before = ground.lock.clone().unwrap_or_default();
    let leave_remote = leave_remote(&args.leave, Some(&before));
    let leave = Leave::new(&ground.config, &leave_remote)?;
    let dry_run = args.fetch.dry_run;
    let strict = args.output.strict(&ground.config);
    let helm = args.fetch.helm(before.options.helm);
    if let Some(relocked) = lock::up_to_date(&ground, &paths, helm, &leave)? {
        return finish(&ground, dry_run, strict, &before, relocked);
    }
    let mut fetcher = fetcher(
        Some(&ground.here),
        fetch::Options {
            pin: args.fetch.pin || ground.config.pin,
            allow_private: ground.config.allow_private,
            helm,
            offline: args.offline,
            ..args.fetch.options(&args.output)
        },
        Vec::from_iter(ground.lock.clone()),
        None,
    )?;
    let mut held = (*before).clone();
    held.options.helm = helm;
    let relocked = lock::relock(&ground, &paths, &held, &leave, &mut fetcher)?;
    finish(&ground, dry_run, strict, &before, relocked)
}

/// Writes a lock if it is another one, and says what came of it.
pub(super) fn finish(
    ground: &Ground,
    dry_run: bool,
    strict: Strict,
    before: &Rc<Lock>,
    mut relocked: lock::Relocked,
) -> Result<LockReport, Failures> {
    relocked.lock.written_after(before);
    let is_same = relocked.lock == **before && !ground.is_in_conflict();
    let outcome = match (is_same, dry_run) {
        _ if relocked.warnings.iter().any(|one| strict.takes(one.id)) => LockOutcome::Warned,
        (true, true) => LockOutcome::Unchanged,
        (true, false) => {
            ground.apply(&[])?;
            LockOutcome::Unchanged
        }
        (false, true) => LockOutcome::DryRun,
        (false, false) => {
            lock::write(ground, &relocked.lock)?;
            LockOutcome::Written
        }
    };
    Ok(report(outcome, ground, before, relocked, strict))
}

fn report(
    outcome: LockOutcome,
    ground: &Ground,
    before: &Lock,
    relocked: lock::Relocked,
    strict: Strict,
) -> LockReport {
    LockReport {
        outcome,
        strict,
        changes: Lock::changes(before, &relocked.lock),
        remotes: relocked.lock.remotes,
        unresolved: relocked.unresolved,
        left: relocked.lock.left,
        merged: ground.is_in_conflict(),
        both: ground.both.clone(),
        warnings: relocked.warnings,
    }
}
