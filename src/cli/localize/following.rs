//! In place, on a branch: the repository as a source commit holds it, localized where it stands. The branch follows
//! its source also when nothing remote is left.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::earlier::{self, Recorded};
use super::history::{
    self, Entry, Previous, here, refuse_changed, refuse_edited, refuse_older, source,
};
use super::message::{self, News};
use super::{globs, in_place};
use crate::build_check::{BuildCheck, Checkout};
use crate::cli::LocalizeArgs;
use crate::cli::online::fetcher;
use crate::commit::branch::{self, Branch};
use crate::commit::merged;
use crate::commit::objects::{self, differences};
use crate::commit::tip::{self, InPlaceTip};
use crate::failure::{Failure, Failures, Result};
use crate::fetch::{self, Tip};
use crate::git::{CommitId, LocalRepo};
use crate::mend::{Ground, in_place as mend};
use crate::record::{Digest, LOCK_NAME, Lock, TargetTrailer, Trailers, stored};
use crate::report::{InPlaceReport, LockOutcome, OnBranch};
use crate::tree::objects::{ObjectTree, object_id};
use crate::tree::{Listing, path};
use crate::walk::{Graph, Origin};

pub(super) fn run(args: &LocalizeArgs) -> Result<InPlaceReport, Failures> {
    if let Some(target) = &args.target {
        return Err(Failure::new(format!(
            "`{target}`: on a branch the whole repository is localized in place"
        ))
        .hint("leave TARGET out; or localize it on disk: add `--no-commit`")
        .into());
    }
    let here = here(args, "run it in a repository")?;
    let (source, source_ref) = source(args, &here)?;
    let source_tree = object_id(&source.tree)?;
    let name = branch::choose(args.branch.as_deref(), source_ref.as_deref())?;
    let (branch, worktree) = history::open(args, &here, &name, source_ref.as_deref())?;
    let repository = crate::tree::objects::open(&here.git_dir)?;
    let tip = match &branch.tip {
        Some(tip) => examine(args, &here, &repository, &branch, tip, &source)?,
        None => None,
    };
    let tree = Rc::new(ObjectTree::of_here(here.clone(), source_tree)?);
    let ground = Ground::at(here.clone(), tree.clone())?;
    let held = tip.as_ref().filter(|_| !args.update);
    let held = held.and_then(|tip| Some((tip.tree, tip.lock.clone()?)));
    let previous = match &held {
        Some((tree, lock)) => Some(Tip {
            tree: Rc::new(ObjectTree::of_here(here.clone(), *tree)?),
            directory: String::new(),
            lock: lock.clone(),
        }),
        None => None,
    };
    // What the branch trusts stays trusted, and its charts stay in it.
    let tip_lock = tip.as_ref().and_then(|tip| tip.lock.as_ref());
    let options = || {
        let locks = ground.lock.iter().chain(tip_lock);
        locks.map(|lock| &lock.options)
    };
    let helm = args.fetch.helm(options().any(|options| options.helm));
    let trust_exec: BTreeSet<String> = options()
        .flat_map(|options| &options.trust_exec)
        .chain(&args.trust_exec)
        .cloned()
        .collect();
    let trusted = globs("--trust-exec", &trust_exec)?;
    let locks = ground.lock.iter().cloned();
    let mut fetcher = fetcher(
        Some(&here),
        fetch::Options {
            pin: args.fetch.pin || ground.config.pin,
            allow_private: ground.config.allow_private,
            helm,
            accepted: tip_lock.cloned(),
            locked: args.locked,
            offline: args.offline,
            ..args.fetch.options(&args.output)
        },
        locks.chain(held.map(|(_, lock)| lock)).collect(),
        previous,
    )?;
    let patterns = globs("--leave-missing", &args.leave_missing)?;
    let leave_missing = |path: &str| patterns.is_match(path);
    let request = mend::Request {
        trusted: &|path| trusted.is_match(path),
        trust_exec,
        again_trusting: &super::again_trusting,
        targets: &[],
        load_restrictor: in_place::load_restrictor(args, &ground),
        leave_missing: &leave_missing,
        leave_remote: super::leave_remote(&args.leave, ground.lock.as_deref()),
        helm,
        no_licenses: args.leaves_licenses(ground.lock.iter().chain(tip_lock)),
        overwrite: false,
        trailers: true,
        again: BTreeSet::new(),
    };
    let mut plan = mend::plan(&ground, &request, &mut fetcher)?;
    if args.rev.is_none() {
        refuse_changed(&here, &used(&tree, &plan.before, &ground))?;
    }
    let earlier = match &tip {
        Some(tip) => {
            let recorded = Recorded {
                source: tip.source.as_ref(),
                verified: &tip.verified,
                // Where somebody edited the tip, its record proves nothing of it.
                tree: Some(tip.tree).filter(|_| tip.is_told),
                lock: tip.lock.as_deref(),
            };
            let result = |scratch: &gix::Repository| {
                objects::write_changes(scratch, source_tree, &plan.changes)
            };
            earlier::earlier(
                args,
                &here,
                recorded,
                source_tree,
                &tree.followed(),
                &result,
            )?
        }
        None => None,
    };
    let checkout = Checkout {
        tree: &*tree,
        into: "",
    };
    let proof = in_place::proven(
        args,
        &ground,
        request.load_restrictor,
        &plan,
        Some(checkout),
        &fetcher,
        earlier,
    )?;
    let strict = args.output.strict(&ground.config);
    if let Some(proof) = &proof {
        plan.warnings.extend(super::not_built(args, &strict, proof));
    }
    plan.warnings.extend(merged::warning(
        &here,
        &repository,
        &source.commit,
        ground.lock.as_deref(),
    )?);
    let before = match &tip {
        Some(tip) => tip.lock.as_deref().cloned().unwrap_or_default(),
        // A new branch of a source in which everything is local already brings nothing in: its lock only says that a
        // message tells of it.
        None if plan.changes.iter().all(|change| change.path == LOCK_NAME) => plan.lock.clone(),
        None => Lock::default(),
    };
    let changes = Lock::changes(&before, &plan.lock);
    let differs = proof.as_ref().is_some_and(BuildCheck::differs);
    let outcome = match () {
        () if !differs && plan.warnings.iter().any(|one| strict.takes(one.id)) => {
            Some(LockOutcome::Warned)
        }
        () if args.fetch.dry_run || differs => Some(LockOutcome::DryRun),
        () => None,
    };
    let (outcome, commit) = match outcome {
        Some(outcome) => (outcome, None),
        None => {
            let tree = objects::write_changes(&repository, source_tree, &plan.changes)?;
            let old = tip.as_ref().map_or(source_tree, |tip| tip.tree);
            let subject = match &source_ref {
                Some(name) => format!("Localize {}", short_name(name)),
                None => "Localize the repository in place".to_owned(),
            };
            let text = || {
                let kustomizations = kustomizations(&here, &repository, old, tree)?;
                let news = News {
                    subject: &subject,
                    before: &before,
                    after: &plan.lock,
                    kustomizations: &kustomizations,
                    discarded: tip.as_ref().map_or(&[], |tip| &tip.edited),
                };
                Ok(message::text(&news, |moves| fetcher.histories(moves)))
            };
            let entry = Entry {
                source: &source,
                tip: tip.as_ref().map(|tip| Previous {
                    commit: &tip.commit,
                    tree: tip.tree,
                    source: tip.source.as_ref(),
                    is_told: tip.is_told,
                }),
                tree,
                text: Box::new(text),
                trailers: Trailers {
                    target: TargetTrailer {
                        target: ".".to_owned(),
                        in_place: true,
                        ..TargetTrailer::default()
                    },
                    source: Some(Digest::GitCommit(source.commit.clone())),
                    remotes: plan.lock.remote_trailers(),
                    tree: Digest::GitTree(tree.to_string()),
                    verified: proof.as_ref().map(BuildCheck::verified).unwrap_or_default(),
                    tool: history::tool(),
                },
            };
            let (commit, is_new) = history::commit(args, &here, &branch, worktree.as_ref(), entry)?;
            let outcome = if is_new {
                LockOutcome::Written
            } else {
                LockOutcome::Unchanged
            };
            (outcome, Some(commit))
        }
    };
    Ok(InPlaceReport {
        branch: Some(OnBranch {
            name: branch.name,
            commit,
            source: source.commit,
            worktree: args
                .worktree
                .as_ref()
                .map(|directory| directory.display().to_string()),
        }),
        ..in_place::report(outcome, plan, changes, proof, strict)
    })
}

/// Looks at the tip. `None` when it holds nothing that is not in the source: a new branch.
fn examine(
    args: &LocalizeArgs,
    here: &Rc<LocalRepo>,
    repository: &gix::Repository,
    branch: &Branch,
    tip: &str,
    source: &CommitId,
) -> Result<Option<InPlaceTip>> {
    if here.is_ancestor(tip, &source.commit)? {
        return Ok(None);
    }
    let source_tree = object_id(&source.tree)?;
    let tip = tip::examine_in_place(here, repository, &branch.name, tip, source_tree)?;
    refuse_edited(args, &branch.name, &tip.edited, &tip.edited_by)?;
    refuse_older(args, here, &branch.name, source, tip.source.as_ref())?;
    Ok(Some(tip))
}

/// Returns the files of the source that the result depends on.
fn used(tree: &ObjectTree, graph: &Graph, ground: &Ground) -> BTreeSet<String> {
    let mut used = tree.followed();
    used.extend(graph.files.iter().filter_map(|file| match &file.origin {
        Origin::Tree { source: 0, path } => Some(path.clone()),
        _ => None,
    }));
    if ground.lock.is_some() {
        used.insert(LOCK_NAME.to_owned());
    }
    used
}

/// Returns the kustomizations of the user that are different since the tip, or else since the source.
fn kustomizations(
    here: &Rc<LocalRepo>,
    repository: &gix::Repository,
    before: gix::ObjectId,
    after: gix::ObjectId,
) -> Result<Vec<String>> {
    // Of a directory that is new or gone this names the directory alone.
    let changed = differences(repository, before, after, &BTreeSet::new())?;
    let changed: BTreeSet<&str> = changed.iter().map(String::as_str).collect();
    let is_changed = |place: &String| {
        stored::home(place).is_none() && path::and_above(place).any(|above| changed.contains(above))
    };
    let mut found = BTreeSet::new();
    for tree in [before, after] {
        let tree = ObjectTree::of_here(here.clone(), tree)?;
        found.extend(tree.kustomizations()?.into_iter().filter(is_changed));
    }
    Ok(found.into_iter().collect())
}

/// Returns a ref as people say it.
fn short_name(full: &str) -> &str {
    ["refs/heads/", "refs/tags/", "refs/remotes/"]
        .iter()
        .find_map(|prefix| full.strip_prefix(prefix))
        .unwrap_or(full)
}
