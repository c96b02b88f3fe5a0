//! `update`: what the lock holds, resolved again.

use std::process::ExitCode;
use std::rc::Rc;

use super::lock;
use super::online::{UpdateArgs, fetcher, tell};
use crate::failure::{Failure, Failures};
use crate::fetch;
use crate::mend::{self, Ground, update};
use crate::record::Lock;
use crate::report::LockReport;

/// Resolves what the arguments name, and says what was done.
pub(super) fn run(args: &UpdateArgs) -> ExitCode {
    tell(&args.output, updated(args))
}

fn updated(args: &UpdateArgs) -> Result<LockReport, Failures> {
    let ground = Ground::find()?;
    let before = ground.lock.clone().ok_or_else(|| {
        Failure::new("there is no lock at the top of this repository")
            .hint("git kustomize-localize lock")
    })?;
    let selected = update::select(&before, &args.url)?;
    let (selected, stored) = update::not_stored(&before, selected);
    if let (Some(first), false) = (stored.first(), args.url.is_empty()) {
        return Err(update::is_stored(&before, first).into());
    }
    let held = Rc::new(update::without(&before, &selected));
    let mut fetcher = fetcher(
        Some(&ground.here),
        fetch::Options {
            pin: args.fetch.pin || ground.config.pin,
            ..args.fetch.options(&args.output)
        },
        vec![held],
        None,
    )?;
    let mut relocked = mend::lock::relock(&ground, &before, &mut fetcher)?;
    if !args.accept_moved {
        let changes = Lock::changes(&before, &relocked.lock);
        let is_tag = |url: &str, reference: &str| fetcher.is_tag(url, reference);
        update::refuse_moved(&before, &changes, &is_tag)?;
    }
    relocked.warnings.extend(update::warning(&stored));
    lock::finish(&ground, args.fetch.dry_run, &before, relocked)
}
