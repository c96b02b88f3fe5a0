//! From a source commit to one commit on a branch.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::earlier::{self, Recorded};
use super::message::{self, News};
use super::{
    Local, copy, fetched_target, fetcher, local_target, lock_at, new_dir, owns, proven,
    remote_target, withheld,
};
use crate::build_check::Checkout;
use crate::cli::LocalizeArgs;
use crate::commit::branch::{self, Branch};
use crate::commit::objects;
use crate::commit::tip::{self, TipState};
use crate::commit::worktree::Linked;
use crate::config::Config;
use crate::failure::{Failure, Failures, Result, short};
use crate::fetch::Tip;
use crate::git::{CommitId, LocalRepo};
use crate::record::{Digest, LOCK_NAME, TargetTrailer, Trailers, render_message};
use crate::report::{Outcome, Report};
use crate::tree::absence::Absences;
use crate::tree::objects::{ObjectTree, object_id};
use crate::tree::{self, path};

/// How many paths an error names before it only counts the rest.
const NAMED: usize = 10;

pub(super) fn run(args: &LocalizeArgs) -> Result<Report, Failures> {
    let here = here(
        args,
        "run it in a repository, or write plain files: `--no-commit`",
    )?;
    let spec = remote_target(args)?;
    let (source, source_ref) = source(args, &here)?;
    let source_tree = object_id(&source.tree)?;
    let branch_name = branch::choose(args.branch.as_deref(), source_ref.as_deref())?;
    let (branch, worktree) = open(args, &here, &branch_name, source_ref.as_deref())?;

    let tree = Rc::new(ObjectTree::of_here(here.clone(), source_tree)?);
    let local = Local {
        lock: lock_at(&*tree, LOCK_NAME)?,
        config: Config::of(&*tree, "")?,
        tree: tree.clone(),
        committed: true,
        prefix: here.prefix.trim_end_matches('/').to_owned(),
        top: Some(String::new()),
    };
    let found = match &spec {
        Some(_) => None,
        None => Some(local_target(args, &local)?),
    };
    let shown = new_dir(
        args,
        spec.as_ref(),
        found.as_ref().and_then(|target| target.base.as_deref()),
    )?;
    let into = into(&local, &shown)?;

    let repository = crate::tree::objects::open(&here.git_dir)?;
    let state = match &branch.tip {
        Some(tip) => examine(args, &here, &repository, &branch, tip, &source, source_tree)?,
        None => None,
    };
    let before = match state.as_ref().and_then(|state| state.new_dirs.get(&into)) {
        Some(before) => Some(before.clone()),
        // The branch may have been merged into the source, which then holds what it held.
        None => tip::new_dir_at(&here, &repository, source_tree, &into)?,
    };
    let previous = match &before {
        // A lock that somebody edited says nothing about what upstream holds.
        _ if state
            .as_ref()
            .is_some_and(|state| state.is_edited(&path::join(&into, LOCK_NAME))) =>
        {
            None
        }
        Some(before) => Some(Tip {
            tree: Rc::new(ObjectTree::of_here(here.clone(), before.tree)?),
            directory: String::new(),
            lock: before.lock.clone(),
        }),
        None => None,
    };
    let before = before
        .map(|before| (*before.lock).clone())
        .unwrap_or_default();

    let mut fetcher = fetcher(
        args,
        Some(&here),
        &local.config,
        local.lock.clone(),
        previous,
    )?;
    let target = match (found, &spec) {
        (Some(target), _) => target,
        (None, Some(spec)) => fetched_target(args, spec, &mut fetcher)?,
        (None, None) => return Err(Failure::new("there is no target").into()),
    };
    tip::claim(
        &here,
        &repository,
        source_tree,
        &into,
        &target.name,
        "the source commit",
    )?;
    if let Some(state) = &state {
        // With `--overwrite` the record is enough: what it describes may have been edited away.
        let made = &state.made;
        let is_recorded = made.into.as_ref() == Some(&into) && made.target == target.name;
        if !(args.overwrite && is_recorded) {
            tip::claim(
                &here,
                &repository,
                state.tree,
                &into,
                &target.name,
                &format!("`{}`", branch.name),
            )?;
        }
        for (directory, other) in state.new_dirs.iter().filter(|(other, _)| **other != into) {
            let owner = other.lock.target.as_deref().unwrap_or_default();
            let whose = "the source commit";
            tip::claim(&here, &repository, source_tree, directory, owner, whose)?;
        }
    }
    let absences = Absences::new(here.clone(), tree.clone(), args.rev.is_none());
    let absence = |path: &str| absences.of(path);
    let owned = |path: &str| owns(local.lock.as_ref(), path);
    let mut copied = copy(
        args,
        &local,
        target,
        &mut fetcher,
        &absence,
        Some(into.clone()),
        &owned,
    )?;
    if args.rev.is_none() {
        let mut used = tree.followed();
        used.extend(copied.localized.local_files.iter().cloned());
        if local.lock.is_some() {
            used.insert(LOCK_NAME.to_owned());
        }
        refuse_changed(&here, &used)?;
    }
    copied.lock.trailers = true;
    let files = copied.files()?;
    let others = state
        .as_ref()
        .map(|state| others(state, &into))
        .unwrap_or_default();
    let earlier = match &state {
        Some(state) => {
            let result = |scratch: &gix::Repository| {
                let written = objects::write(scratch, source_tree, &others, &into, &files)?;
                Ok(written.directory)
            };
            let links = tree.followed();
            match tip::record_of(&here, &state.commit, &into)? {
                Some(record) => {
                    let held = state.new_dirs.get(&into).map(|new_dir| new_dir.tree);
                    let is_told =
                        |tree: &gix::ObjectId| record.tree == Digest::GitTree(tree.to_string());
                    let recorded = Recorded {
                        source: record.source.as_ref(),
                        verified: &record.verified,
                        tree: held.filter(is_told),
                        lock: Some(&before),
                    };
                    earlier::earlier(args, &here, recorded, source_tree, &links, &result)?
                }
                None => None,
            }
        }
        None => None,
    };
    let checkout = Checkout {
        tree: &*tree,
        into: &into,
    };
    let proof = proven(
        args,
        Some(&here),
        &copied,
        Some(checkout),
        &fetcher,
        earlier,
    )?;
    let warnings = copied.warnings(args, &proof);
    if let Some(outcome) = withheld(args, &copied.strict, &proof, &warnings, Some(&branch.name)) {
        return Ok(copied.report(&files, into, &before, outcome, proof, warnings));
    }
    let written = objects::write(&repository, source_tree, &others, &into, &files)?;
    let tree = written.directory.to_string();
    let subject = format!(
        "Localize {} into {into}",
        copied.lock.target.as_deref().unwrap_or_default()
    );
    let discarded = discarded(state.as_ref(), &into);
    let news = News {
        subject: &subject,
        before: &before,
        after: &copied.lock,
        kustomizations: &[],
        discarded: &discarded,
    };
    let entry = Entry {
        source: &source,
        tip: state.as_ref().map(|state| Previous {
            commit: &state.commit,
            tree: state.tree,
            source: state.source.as_ref(),
            is_told: state.is_told,
        }),
        tree: written.tree,
        text: Box::new(|| Ok(message::text(&news, |moves| fetcher.histories(moves)))),
        trailers: Trailers {
            target: TargetTrailer {
                target: copied.lock.target.clone().unwrap_or_default(),
                scope: copied.lock.options.scope.clone(),
                into: Some(into.clone()),
                in_place: false,
            },
            source: Some(Digest::GitCommit(source.commit.clone())),
            remotes: copied.lock.remote_trailers(),
            tree: Digest::GitTree(tree.clone()),
            verified: proof.verified(),
            tool: tool(),
        },
    };
    let (commit, is_new) = commit(args, &here, &branch, worktree.as_ref(), entry)?;
    let (branch, source) = (branch.name, source.commit);
    let outcome = if is_new {
        Outcome::Committed {
            branch,
            commit,
            tree,
            source,
        }
    } else {
        Outcome::Unchanged {
            branch,
            commit,
            tree,
            source,
        }
    };
    Ok(copied.report(&files, into, &before, outcome, proof, warnings))
}

/// Finds the repository to commit to. `hint` is what to do where there is none.
pub(super) fn here(args: &LocalizeArgs, hint: &str) -> Result<Rc<LocalRepo>> {
    let here = if args.offline {
        LocalRepo::discover_offline()?
    } else {
        LocalRepo::discover()?
    };
    here.map(Rc::new).ok_or_else(|| {
        Failure::new("this is not a git repository, so there is nowhere to commit to").hint(hint)
    })
}

/// Returns the source commit, and the full name of the ref that named it.
pub(super) fn source(args: &LocalizeArgs, here: &LocalRepo) -> Result<(CommitId, Option<String>)> {
    let rev = args.rev.as_deref().unwrap_or("HEAD");
    match here.commit(rev)? {
        Some(commit) => Ok((commit, here.ref_of(rev)?)),
        None if args.rev.is_none() => Err(Failure::new("this repository has no commit yet")
            .hint("commit your files first, or write plain files: `--no-commit`")),
        None => Err(
            Failure::new(format!("`{rev}` names no commit of this repository"))
                .hint("see what there is: git log --oneline --all"),
        ),
    }
}

/// Returns NEW_DIR as a path from the top of the repository.
fn into(local: &Local, shown: &str) -> Result<String> {
    match tree::named(&*local.tree, local.top.as_deref(), &local.prefix, shown) {
        None => Err(
            Failure::new(format!("NEW_DIR `{shown}` lies outside of the repository"))
                .hint("choose a directory inside, or write plain files: `--no-commit`"),
        ),
        Some(into) if into.is_empty() => Err(Failure::new("NEW_DIR is the top of the repository")
            .hint("choose a directory below it")),
        Some(into) => {
            for component in path::components(&into) {
                let options = gix::validate::path::component::Options::default();
                if let Err(error) = gix::validate::path::component(component.into(), None, options)
                {
                    return Err(
                        Failure::new(format!("NEW_DIR `{shown}` cannot be used: {error}"))
                            .hint("choose another NEW_DIR"),
                    );
                }
            }
            Ok(into)
        }
    }
}

/// Looks at the tip. `None` when it holds nothing that is not in the source: a new branch.
fn examine(
    args: &LocalizeArgs,
    here: &Rc<LocalRepo>,
    repository: &gix::Repository,
    branch: &Branch,
    tip: &str,
    source: &CommitId,
    source_tree: gix::ObjectId,
) -> Result<Option<TipState>> {
    if here.is_ancestor(tip, &source.commit)? {
        return Ok(None);
    }
    let state = tip::examine(here, repository, &branch.name, tip, source_tree)?;
    refuse_edited(args, &branch.name, &state.edited, &state.edited_by)?;
    refuse_older(args, here, &branch.name, source, state.source.as_ref())?;
    Ok(Some(state))
}

/// Refuses to take the branch back to what came before its source, as a clone that nobody brought up to date would: to go
/// back, the source is named.
pub(super) fn refuse_older(
    args: &LocalizeArgs,
    here: &LocalRepo,
    branch: &str,
    source: &CommitId,
    made_from: Option<&Digest>,
) -> Result<()> {
    let Some(recorded) = made_from.map(Digest::hex) else {
        return Ok(());
    };
    // Where history was not fetched, that cannot be told.
    let is_older = args.rev.is_none()
        && recorded != source.commit
        && here.commit(recorded)?.is_some()
        && here.is_ancestor(&source.commit, recorded)?;
    if is_older {
        Err(Failure::new(format!(
            "`{branch}` holds {} localized, which is newer than HEAD ({})",
            short(recorded),
            short(&source.commit)
        ))
        .hint("bring HEAD up to date: git pull")
        .hint("to go back on the branch, too: --rev HEAD"))
    } else {
        Ok(())
    }
}

/// Refuses to go on from a tip that somebody edited, unless the edits are to be discarded.
pub(super) fn refuse_edited(
    args: &LocalizeArgs,
    branch: &str,
    edited: &[String],
    by: &[String],
) -> Result<()> {
    if edited.is_empty() || args.overwrite {
        return Ok(());
    }
    let by = match by {
        [] => String::new(),
        commits => format!(" by {}", commits.join(", ")),
    };
    Err(Failure::new(format!(
        "`{branch}` was edited by hand{by}: {}",
        named(edited)
    ))
    .hint("what should be deployed belongs in the source; to discard these edits: --overwrite"))
}

pub(super) fn named(paths: &[String]) -> String {
    let mut text = paths
        .iter()
        .take(NAMED)
        .map(|path| format!("`{path}`"))
        .collect::<Vec<_>>()
        .join(", ");
    if paths.len() > NAMED {
        text.push_str(&format!(" and {} more", paths.len() - NAMED));
    }
    text
}

/// Refuses to take what is `used` from the source commit where it looks different on disk or in the index.
pub(super) fn refuse_changed(here: &LocalRepo, used: &BTreeSet<String>) -> Result<()> {
    if here.top.is_none() {
        return Ok(());
    }
    let changed: Vec<String> = here
        .changed_paths()?
        .into_iter()
        .filter(|path| used.contains(path))
        .collect();
    if changed.is_empty() {
        Ok(())
    } else {
        Err(Failure::new(format!(
            "files in use have uncommitted changes: {}",
            named(&changed)
        ))
        .hint("commit or stash them; to take the committed files as they are: --rev HEAD"))
    }
}

/// Returns the other NEW_DIRs of the tip, which stay as they are.
fn others(state: &TipState, into: &str) -> BTreeMap<String, gix::ObjectId> {
    state
        .new_dirs
        .iter()
        .filter(|(directory, _)| *directory != into)
        .map(|(directory, new_dir)| (directory.clone(), new_dir.tree))
        .collect()
}

/// The tip that a commit goes on from.
pub(super) struct Previous<'a> {
    /// Its commit.
    pub(super) commit: &'a str,
    /// The tree of that commit.
    pub(super) tree: gix::ObjectId,
    /// The source commit that its record names.
    pub(super) source: Option<&'a Digest>,
    /// Whether that record tells what it holds.
    pub(super) is_told: bool,
}

/// What goes into a commit on a branch of ours.
pub(super) struct Entry<'a> {
    /// The source commit.
    pub(super) source: &'a CommitId,
    /// The tip to continue from.
    pub(super) tip: Option<Previous<'a>>,
    /// The tree of the commit.
    pub(super) tree: gix::ObjectId,
    /// Words what the message says when the user says nothing.
    pub(super) text: Box<dyn FnOnce() -> Result<String> + 'a>,
    /// The record.
    pub(super) trailers: Trailers,
}

/// Commits to the branch, unless its tip holds just this. Returns the commit, and whether it is a new one.
pub(super) fn commit(
    args: &LocalizeArgs,
    here: &LocalRepo,
    branch: &Branch,
    worktree: Option<&Linked>,
    entry: Entry<'_>,
) -> Result<(String, bool)> {
    let is_contained = match &entry.tip {
        Some(tip) => contains(here, tip, &entry.source.commit)?,
        None => false,
    };
    if let Some(Previous {
        commit: tip,
        tree,
        is_told: true,
        ..
    }) = entry.tip
        && tree == entry.tree
        && is_contained
    {
        if branch.local.is_none() {
            // So that what comes next, as a push, finds the branch whether or not there was news.
            let reason = "kustomize-localize: as it is at the remote";
            move_branch(here, branch, worktree, tip, Some(reason))?;
        } else if worktree.is_some() {
            move_branch(here, branch, worktree, tip, None)?;
        }
        return Ok((tip.to_owned(), false));
    }
    let text = if args.message.is_empty() {
        (entry.text)()?
    } else {
        args.message.join("\n\n")
    };
    let signoff: Vec<String> = if args.signoff {
        vec![format!("Signed-off-by: {}", here.committer()?)]
    } else {
        Vec::new()
    };
    let message = render_message(&text, &signoff, &entry.trailers)?;
    let sign = match &args.gpg_sign {
        _ if args.no_gpg_sign => None,
        Some(key) => Some(format!("-S{key}")),
        None if here.config_bool("commit.gpgsign")? => Some("-S".to_owned()),
        None => None,
    };
    let source = entry.source.commit.clone();
    let parents = match entry.tip {
        None => vec![source],
        Some(tip) if is_contained => vec![tip.commit.to_owned()],
        Some(tip) => vec![tip.commit.to_owned(), source],
    };
    let tree = entry.tree.to_string();
    let commit = here.commit_tree(&tree, &parents, &message, sign.as_deref())?;
    let reason = format!(
        "kustomize-localize: {}",
        message.lines().next().unwrap_or_default()
    );
    move_branch(here, branch, worktree, &commit, Some(&reason))?;
    Ok((commit, true))
}

/// Says whether a tip contains its source. In a shallow clone that cannot be seen from the commits: the record tells.
fn contains(here: &LocalRepo, tip: &Previous<'_>, source: &str) -> Result<bool> {
    if here.is_ancestor(source, tip.commit)? {
        return Ok(true);
    }
    let is_recorded = tip.source.is_some_and(|recorded| recorded.hex() == source);
    Ok(is_recorded && here.is_shallow()?)
}

/// Moves the branch, if there is a reason to, and its worktree with it.
fn move_branch(
    here: &LocalRepo,
    branch: &Branch,
    worktree: Option<&Linked>,
    commit: &str,
    reason: Option<&str>,
) -> Result<()> {
    let name = branch.full_name();
    let moved = || match reason {
        Some(reason) => here.update_ref(&name, commit, branch.local.as_deref(), reason),
        None => Ok(()),
    };
    // Another run may have it checked out somewhere by now.
    let _alone = here.alone()?;
    let Some(worktree) = worktree else {
        branch::refuse_checked_out(here, &branch.name, None)?;
        return moved();
    };
    // Before a file of the worktree changes.
    here.refuse_moved(&name, commit, branch.local.as_deref())?;
    let worktree = worktree.again(here, &name)?;
    branch::refuse_checked_out(here, &branch.name, Some(&worktree))?;
    let before = worktree.put_out(here, commit)?;
    let take_back = |_: &Failure| worktree.take_back(here, &before, commit);
    moved().inspect_err(take_back)?;
    worktree.settle(here, &before, &name)
}

/// Looks at the branch to commit to, and at the worktree that the arguments name.
pub(super) fn open(
    args: &LocalizeArgs,
    here: &LocalRepo,
    name: &str,
    source: Option<&str>,
) -> Result<(Branch, Option<Linked>)> {
    // While another run makes a worktree, nobody can tell what it is.
    let _alone = here.alone()?;
    let find = |directory| Linked::find(here, directory, &format!("refs/heads/{name}"));
    let worktree = args.worktree.as_deref().map(find).transpose()?;
    let branch = branch::open(here, name, source, worktree.as_ref())?;
    Ok((branch, worktree))
}

/// What wrote the commit, as its record says.
pub(super) fn tool() -> String {
    concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION")).to_owned()
}

/// Returns the paths whose edits by hand go away. Those in other NEW_DIRs stay.
fn discarded(state: Option<&TipState>, into: &str) -> Vec<String> {
    let Some(state) = state else {
        return Vec::new();
    };
    let others = others(state, into);
    let is_here = |place: &&String| !others.keys().any(|other| path::is_in(place, other));
    state.edited.iter().filter(is_here).cloned().collect()
}
