//! `update`: what the lock holds, resolved again.

use std::collections::BTreeSet;
use std::rc::Rc;

use clap::Args;

use super::diff::Diff;
use super::localize::{KustomizeArgs, Localized, deployed, on_disk, write};
use super::lock;
use super::output::{Done, OutputArgs};
use super::{News, fetcher, fetching};
use crate::destination::{ChangedFiles, message};
use crate::fetch::{self, Fetcher, Move, Tip};
use crate::graph::{RemoteRef, Remotes as _};
use crate::message::failure::{Failure, Failures, short};
use crate::message::finding::{Finding, Rule};
use crate::plan::in_place::{self, TurnedBack};
use crate::plan::lock::{Relocked, relock};
use crate::plan::{Changes, File, Options, Plan, changed, update};
use crate::record::{LOCK_NAME, Lock};
use crate::reference::Upstream;
use crate::targets::affected::changes::Changes as Changed;
use crate::tree::SharedTree;
use crate::tree::overlay::OverlayTree;
use crate::workspace::{Workspace, from_top};

/// Arguments of `update`.
#[derive(Debug, Clone, Args)]
pub(super) struct UpdateArgs {
    /// What to resolve again: a URL of the lock with or without its ref, or the beginning of one
    /// [default: all]
    ///
    /// With `--to` also paths: the ref is written in and below them.
    // What is named here may have moved although it is a version.
    url: Vec<String>,

    /// Write this ref into the kustomizations that name the URL (all, or those below a PATH that is named as well), and
    /// lock what it is
    #[arg(long, value_name = "REF", requires = "url")]
    to: Option<String>,

    /// Say what would be done; may fetch into the cache, writes nothing else
    #[arg(long)]
    dry_run: bool,

    /// Show what this changes in what is deployed, as `diff` does
    #[arg(long)]
    diff: bool,
}

impl UpdateArgs {
    pub(super) fn run(&self, output: &OutputArgs) -> Done {
        let mut workspace = Workspace::of_working_tree(false)?;
        let before = workspace.lock.clone().ok_or_else(|| {
            Failure::new("there is no lock at the top of this repository").hint("git kustomize-localize lock")
        })?;
        let (paths, urls) = match &self.to {
            Some(_) => split(&workspace, &self.url)?,
            None => (Vec::new(), self.url.clone()),
        };
        let mut selected = update::select(&before, &urls)?;
        let there = workspace.tree.clone();
        let mut turned = in_place::turned_back(&workspace, &before)?;
        let edits = match &self.to {
            Some(to) => edit(&mut workspace, &mut turned, &urls, &paths, to)?,
            None => Changes::new(),
        };
        let mut kept = Vec::new();
        loop {
            // Where it is named as before, beside the paths, it stays what it is.
            let again = if paths.is_empty() { selected.clone() } else { BTreeSet::new() };
            let options =
                fetch::Options { before: Some(before.clone()), ..fetching(&workspace.config, false, output.quiet) };
            let tip = Tip {
                tree: there.clone(),
                directory: String::new(),
                lock: Rc::new(update::without_files(&before, &again)),
                has_licenses: true,
            };
            let locks = vec![Rc::new(update::without(&before, &again))];
            let mut fetcher = fetcher(workspace.repo(), options, locks, Some(tip))?;
            let is_stored = update::is_stored(&before, &selected);
            if self.to.is_none() && is_stored {
                // What is stored stays as it is where its upstream does not answer.
                let unanswered = unanswered(&mut fetcher, &before, &selected);
                if leave_out(&mut selected, unanswered, &mut kept) {
                    continue;
                }
            }
            let (plan, mut relocked) = if is_stored {
                let request = in_place::Request { again: Some(turned.clone()), ..in_place::Request::default() };
                let plan = in_place::plan(&workspace, request, &Options::default(), &mut fetcher)?;
                let relocked = Relocked { lock: plan.lock.clone(), ..Relocked::default() };
                (Some(plan), relocked)
            } else {
                (None, relock(&workspace, &before, &mut fetcher)?)
            };
            if self.to.is_some() && !relocked.unresolved.is_empty() {
                // A ref that is not there is not to stay.
                relocked.unresolved.iter_mut().for_each(|failure| failure.exception = None);
                return Err(Failures(relocked.unresolved));
            }
            if self.url.is_empty() {
                let changes = Lock::changes(&before, &relocked.lock);
                let is_tag = |url: &str, reference: &str| fetcher.is_tag(url, reference);
                let moved = update::moved_versions(&changes, &is_tag);
                if leave_out(&mut selected, moved, &mut kept) {
                    continue;
                }
            }
            let (rewritten, news) = histories(&fetcher, &before, &relocked.lock);
            let compare = || compared(&workspace, &there, &edits, plan.as_ref(), &relocked.lock, output.quiet);
            let diff = self.diff.then(compare).transpose()?;
            let outcome = self.written(&workspace, &before, relocked, plan, edits, rewritten)?;
            return Ok(Box::new(Localized { news, kept, diff, ..outcome }));
        }
    }

    /// Writes what was resolved: the lock, or with it what is stored and was brought in again.
    fn written(
        &self,
        workspace: &Workspace,
        before: &Lock,
        relocked: Relocked,
        plan: Option<Plan>,
        edits: Changes,
        mut rewritten: Vec<Finding>,
    ) -> Result<Localized, Failures> {
        let Some(mut plan) = plan else {
            workspace.config.judge(&mut rewritten);
            return lock::finish(workspace, self.dry_run, rewritten, before, relocked, edits);
        };
        plan.findings.extend(rewritten);
        plan.changes = edits.into_iter().chain(plan.changes).collect();
        deployed(workspace, &mut plan)?;
        workspace.config.judge(&mut plan.findings);
        let status = write(workspace, &plan.changes, &plan.findings, self.dry_run)?;
        let changes = Lock::changes(before, &plan.lock);
        let files = ChangedFiles::of(&plan.changes);
        Ok(on_disk(status, plan, files, changes))
    }
}

/// Builds what an update touches, before and after.
fn compared(
    workspace: &Workspace,
    there: &SharedTree,
    edits: &Changes,
    plan: Option<&Plan>,
    lock: &Lock,
    quiet: bool,
) -> Result<Diff, Failures> {
    let Some(here) = workspace.repo() else { return Ok(Diff::default()) };
    let mut changes = edits.clone();
    changes.insert(LOCK_NAME.to_owned(), Some(File::plain(lock.render()?.into_bytes())));
    changes.extend(plan.iter().flat_map(|plan| plan.changes.clone()));
    let tree = changed(OverlayTree::new(there.clone()), &changes);
    let (old, new) = (Workspace::of_tree(there.clone())?, Workspace::of_tree(Rc::new(tree))?);
    let changes = Changed::among(old.tree.clone(), new.tree.clone(), changes.into_keys())?;
    Diff::between(here, [&old, &new], &changes, &[], &KustomizeArgs::default(), false, quiet)
}

/// Takes the words of the command line apart: what is there in the working tree is a path, everything else a URL.
fn split(workspace: &Workspace, words: &[String]) -> Result<(Vec<String>, Vec<String>), Failures> {
    let (mut paths, mut urls) = (Vec::new(), Vec::new());
    for word in words {
        let path = workspace.repo().and_then(|repo| from_top(repo, &*workspace.tree, word).ok());
        match path {
            Some(path) if !word.contains("://") && workspace.tree.entry(&path)?.is_some() => paths.push(path),
            _ => urls.push(word.clone()),
        }
    }
    if urls.is_empty() {
        return Err(Failure::new("`--to` needs the URL of which another ref is written")
            .hint("name it before the paths: git kustomize-localize update URL --to REF PATH")
            .into());
    }
    Ok((paths, urls))
}

/// Writes another ref into the references to what is selected, below some paths or everywhere, in the tree of the
/// workspace.
fn edit(
    workspace: &mut Workspace,
    turned: &mut TurnedBack,
    urls: &[String],
    paths: &[String],
    to: &str,
) -> Result<Changes, Failures> {
    workspace.tree = turned.tree.clone();
    let names: Vec<update::Name> = urls.iter().map(|url| update::Name::of(url)).collect();
    let mut changes = update::retargeted(workspace, &names, paths, to)?;
    turned.tree = Rc::new(changed(OverlayTree::new(turned.tree.clone()), &changes));
    workspace.tree = turned.tree.clone();
    // What localized files are named by is written with them.
    let edited: Vec<String> = changes.keys().cloned().collect();
    changes.retain(|path, _| !turned.files.contains(path));
    turned.files.extend(edited);
    Ok(changes)
}

/// Takes entries out of those that are resolved again; returns whether there were any.
fn leave_out(selected: &mut BTreeSet<Upstream>, out: Vec<(Upstream, Failure)>, kept: &mut Vec<Failure>) -> bool {
    selected.retain(|source| !out.iter().any(|(other, _)| other == source));
    let is_any = !out.is_empty();
    kept.extend(out.into_iter().map(|(_, failure)| failure));
    is_any
}

/// Returns the sources of those that the user's files name that cannot be resolved now. Of others only a walk tells who
/// names them, and so who may be asked with which login.
fn unanswered(fetcher: &mut Fetcher, before: &Lock, selected: &BTreeSet<Upstream>) -> Vec<(Upstream, Failure)> {
    let behind: BTreeSet<Upstream> = before.named().map(Upstream::source).collect();
    let own = selected.iter().filter(|source| !behind.contains(source));
    let wanted = own.filter_map(|source| Some((source.clone(), Rc::new(update::wanted(source)?))));
    let (sources, wanted): (Vec<Upstream>, Vec<Rc<RemoteRef>>) = wanted.unzip();
    let answers = fetcher.resolve(&wanted).into_iter().zip(sources);
    answers.filter_map(|(answer, source)| Some((source, answer.err()?))).collect()
}

/// Returns the branches that do not contain what was locked, and what the authors of each repository that moved wrote, as
/// far as the remotes tell.
fn histories(fetcher: &Fetcher, before: &Lock, after: &Lock) -> (Vec<Finding>, News) {
    let moves = message::moves(before, after);
    let (mut findings, mut news) = (Vec::new(), News::new());
    for (Move { old, new: (new, _) }, history) in moves.iter().zip(fetcher.histories(&moves)) {
        let Some(history) = history else { continue };
        news.insert((*new).clone(), message::subjects(&history));
        let name = new.reference().unwrap_or("HEAD");
        if !history.is_forward && old.0 == *new && !fetcher.is_tag(new.url(), name) {
            let message = format!(
                "`{name}` of {} was rewritten or set back: it does not contain {}, which was locked",
                new.url(),
                short(old.1)
            );
            findings.push(Finding::new(Rule::RewrittenBranch, LOCK_NAME, message, Vec::new()));
        }
    }
    (findings, news)
}
