//! `update`: what the lock holds, resolved again.

use std::process::ExitCode;
use std::rc::Rc;

use super::online::{UpdateArgs, fetcher, tell};
use super::{localize, lock};
use crate::config::Leave;
use crate::failure::{Failure, Failures, argument};
use crate::fetch::{self, Fetcher, Tip};
use crate::mend::{self, Ground, in_place, update};
use crate::record::Lock;
use crate::report::{InPlaceReport, Tell};

/// Resolves what the arguments name, and says what was done.
pub(super) fn run(args: &UpdateArgs) -> ExitCode {
    tell(&args.output, updated(args))
}

fn updated(args: &UpdateArgs) -> Result<Box<dyn Tell>, Failures> {
    let ground = Ground::find()?;
    let before = ground.lock.clone().ok_or_else(|| {
        Failure::new("there is no lock at the top of this repository")
            .hint("git kustomize-localize lock")
    })?;
    let helm = args.fetch.helm(before.options.helm);
    let selected = update::select(&before, &args.url)?;
    let held = Rc::new(update::without(&before, &selected));
    let mut fetcher = fetcher(
        Some(&ground.here),
        fetch::Options {
            pin: args.fetch.pin || ground.config.pin,
            allow_private: ground.config.allow_private,
            helm,
            accepted: Some(before.clone()),
            ..args.fetch.options(&args.output)
        },
        vec![held],
        Some(Tip {
            tree: ground.tree.clone(),
            directory: String::new(),
            lock: before.clone(),
        }),
    )?;
    let refuse_moved = |fetcher: &Fetcher, after: &Lock| {
        if args.accept_moved {
            Ok(())
        } else {
            let is_tag = |url: &str, reference: &str| fetcher.is_tag(url, reference);
            update::refuse_moved(&before, &Lock::changes(&before, after), &is_tag)
        }
    };
    let again = update::stored(&before, &selected);
    if again.is_empty() {
        let mut relocked_from = (*before).clone();
        relocked_from.options.helm = helm;
        let leave = Leave::new(&ground.config, &before.options.leave_remote)?;
        let relocked = mend::lock::relock(&ground, &[], &relocked_from, &leave, &mut fetcher)?;
        refuse_moved(&fetcher, &relocked.lock)?;
        let strict = args.output.strict(&ground.config);
        let report = lock::finish(&ground, args.fetch.dry_run, strict, &before, relocked)?;
        return Ok(Box::new(report));
    }
    let trusted = localize::globs("trust-exec", &before.options.trust_exec)?;
    let request = in_place::Request {
        trusted: &|path| trusted.is_match(path),
        trust_exec: before.options.trust_exec.clone(),
        again_trusting: &|pattern| {
            format!(
                "git kustomize-localize --in-place --no-commit --trust-exec {}",
                argument(pattern)
            )
        },
        targets: &[],
        load_restrictor: ground.config.load_restrictor,
        leave_missing: &|_| false,
        leave_remote: before.options.leave_remote.clone(),
        helm,
        no_licenses: before.options.no_licenses,
        overwrite: false,
        trailers: false,
        again,
    };
    let plan = in_place::plan(&ground, &request, &mut fetcher)?;
    refuse_moved(&fetcher, &plan.lock)?;
    let strict = args.output.strict(&ground.config);
    let report = localize::in_place::finish(&ground, args.fetch.dry_run, strict, plan, None)?;
    Ok(Box::new(InPlaceReport {
        updated: true,
        ..report
    }))
}
