//! `update`: what the lock holds, resolved again.

use std::rc::Rc;

use super::fetching::{self, Fetching};
use super::localize::{self, Deployed, Localized, withheld};
use super::{Status, lock};
use crate::config::Leave;
use crate::destination::{Delivery, Destination};
use crate::failure::{Failure, Failures, Location, short};
use crate::fetch::{self, Course, Fetcher, Move, Tip};
use crate::finding::WarningId;
use crate::plan::lock::relock;
use crate::plan::{Options, Patterns, in_place, update};
use crate::record::{LOCK_NAME, Lock, Remote};
use crate::walk::Warning;
use crate::workspace::Workspace;

/// What to resolve again.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// URLs of the lock with or without their refs, or the beginnings of some; all when empty.
    pub urls: Vec<String>,
    /// Accept moved tags, and changed files whose URL names a version.
    pub accept_moved: bool,
    /// How remote references are resolved.
    pub fetch: Fetching,
    /// Write nothing.
    pub dry_run: bool,
    /// The ids of the warnings that are errors, besides those of the configuration.
    pub strict: Vec<String>,
}

/// The result.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// The lock alone was brought up to date.
    Locked(lock::Outcome),
    /// What is localized was brought in again as well.
    Localized(Box<localize::Outcome>),
}

/// Resolves again.
///
/// # Errors
/// When there is no lock, it has no matching entry, something moved that should not, or nothing can be written.
pub fn update(request: &Request) -> Result<Outcome, Failures> {
    let workspace = Workspace::of_working_tree(false)?;
    let before = workspace.lock.clone().ok_or_else(|| {
        Failure::new("there is no lock at the top of this repository")
            .hint("git kustomize-localize lock")
    })?;
    let config = &workspace.config;
    let selected = update::select(&before, &request.urls)?;
    let held = Rc::new(update::without(&before, &selected));
    let mut fetcher = fetching::fetcher(
        workspace.repo(),
        fetch::Options {
            before: Some(before.clone()),
            ..request.fetch.options(config)
        },
        vec![held],
        Some(Tip {
            tree: workspace.tree.clone(),
            directory: String::new(),
            lock: before.clone(),
            has_licenses: false,
        }),
    )?;
    let refuse_moved = |fetcher: &Fetcher, after: &Lock| {
        if request.accept_moved {
            return Ok(());
        }
        let is_tag = |url: &str, reference: &str| fetcher.is_tag(url, reference);
        update::refuse_moved(&before, &Lock::changes(&before, after), &is_tag)
    };
    let again = update::stored(&before, &selected);
    let strict = config.strict.and(&request.strict);
    if again.is_empty() {
        let leave = Leave::new(config, &before.options.leave_remote)?;
        let mut relocked = relock(&workspace, &[], &before, &leave, &mut fetcher)?;
        refuse_moved(&fetcher, &relocked.lock)?;
        let rewritten = rewritten(&fetcher, &before, &relocked.lock);
        relocked.warnings.extend(rewritten);
        let outcome = lock::finish(&workspace, request.dry_run, strict, &before, relocked)?;
        return Ok(Outcome::Locked(outcome));
    }
    let again = in_place::Request {
        again,
        ..in_place::Request::default()
    };
    let options = options(&before)?;
    let mut plan = in_place::plan(&workspace, &again, &options, &mut fetcher)?;
    refuse_moved(&fetcher, &plan.lock)?;
    let rewritten = rewritten(&fetcher, &before, &plan.lock);
    plan.warnings.extend(rewritten);
    if let Some(deployed) = Deployed::of(&workspace, &plan, None)? {
        deployed.refuse_harm(&plan)?;
    }
    let status = match withheld(&plan, &strict, request.dry_run) {
        Some(status) => status,
        None => Status::of(&Destination::WorkingTree.deliver(&Delivery {
            workspace: &workspace,
            plan: &plan,
            builds: None,
            before: &before,
            histories: &|_| Vec::new(),
        })?),
    };
    let changes = Lock::changes(&before, &plan.lock);
    let result = Localized::of(&plan, "", &[], true);
    let outcome = localize::outcome(status, result, plan, changes, strict);
    Ok(Outcome::Localized(Box::new(outcome)))
}

/// Returns the branches that do not contain what was locked, as far as their remotes tell.
fn rewritten(fetcher: &Fetcher, before: &Lock, after: &Lock) -> Vec<Warning> {
    let moved = |old: &Remote| {
        let Remote::Git(old) = old else { return None };
        let reference = old.reference.as_deref();
        let new = after.find_git(&old.url, reference, old.submodules)?;
        let is_tag = reference.is_some_and(|reference| fetcher.is_tag(&old.url, reference));
        (new.commit != old.commit && !is_tag).then(|| Move {
            url: old.url.clone(),
            from: old.reference.clone(),
            to: old.reference.clone(),
            old: old.commit.clone(),
            new: new.commit.clone(),
        })
    };
    let moves: Vec<Move> = before.remotes.iter().filter_map(moved).collect();
    let histories = fetcher.histories(&moves);
    let told = moves.iter().zip(histories).filter_map(|(moved, history)| {
        let was = short(&moved.old);
        let what = match history?.course {
            Course::Forward => return None,
            Course::Back => format!("was set back: it is older than {was}, which was locked"),
            Course::Apart => format!("was rewritten: it does not contain {was}, which was locked"),
        };
        let name = moved.to.as_deref().unwrap_or("HEAD");
        Some(Warning {
            id: WarningId::RewrittenBranch,
            location: Location {
                file: LOCK_NAME.to_owned(),
                ..Location::default()
            },
            message: format!("`{name}` of {} {what}", moved.url),
        })
    });
    told.collect()
}

/// Returns how to bring in again what a lock lists.
fn options(before: &Lock) -> Result<Options, Failures> {
    Ok(Options {
        leave_missing: Patterns::default(),
        trailers: false,
        ..Options::recorded(before)?
    })
}
