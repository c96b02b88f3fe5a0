//! `update`: what the lock holds, resolved again.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use clap::Args;
use globset::{Glob, GlobMatcher};

use super::diff::Diff;
use super::localize::{KustomizeArgs, Localized, deployed, on_disk, write};
use super::lock;
use super::output::{Done, OutputArgs};
use super::{News, fetcher, fetching};
use crate::config::Config;
use crate::destination::{ChangedFiles, message};
use crate::fetch::{self, Fetcher, Move, Tip};
use crate::graph::{RemoteRef, Remotes as _};
use crate::message::failure::{Failure, FailureKind, Failures, short};
use crate::message::finding::{Finding, Rule};
use crate::plan::in_place::{self, TurnedBack};
use crate::plan::lock::{Relocked, relock};
use crate::plan::update::{self, Name, Retarget};
use crate::plan::{Changes, File, Options, Plan, changed};
use crate::record::{LOCK_NAME, Lock};
use crate::reference::{RepoSpec, Upstream};
use crate::targets::affected::changes::Changes as Changed;
use crate::tree::SharedTree;
use crate::tree::overlay::OverlayTree;
use crate::workspace::{Workspace, from_top};

/// Arguments of `update`.
#[derive(Debug, Clone, Args)]
pub(super) struct UpdateArgs {
    /// The locked URL to resolve again, with or without its ref, or a prefix of it
    /// [default: all]
    ///
    /// With `--to` also paths: the ref is written in and below them.
    // What is named here may have moved although it is a version.
    url: Vec<String>,

    /// Write this ref into the kustomizations that name the URL (all, or only those below a given PATH), and lock it
    ///
    /// A pattern such as `v1.*` or `*` stands for the newest release that it matches and that may be locked.
    #[arg(long, value_name = "REF")]
    to: Option<String>,

    /// Show what would be done; may fetch into the cache, writes nothing else
    #[arg(long)]
    dry_run: bool,

    /// Show how this changes what is deployed, as `diff` does
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
            Some(to) => split(&workspace, &self.url, to)?,
            None => (Vec::new(), self.url.clone()),
        };
        let mut selected = update::select(&before, &urls)?;
        let there = workspace.tree.clone();
        let mut turned = in_place::turned_back(&workspace, &before)?;
        let (mut kept, mut held) = (Vec::new(), Vec::new());
        let edits = match &self.to {
            Some(to) if is_pattern(to) => {
                let mut releases = Releases::of(&workspace, &before, to, output.quiet)?;
                let edits = edit(&mut workspace, &mut turned, &urls, &paths, &mut |spec| releases.newest(spec))?;
                (held, selected) = (releases.held, releases.left);
                edits
            }
            Some(to) => edit(&mut workspace, &mut turned, &urls, &paths, &mut |_| Ok(Some(to.clone())))?,
            None => Changes::new(),
        };
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
            let turned = is_stored.then(|| turned.clone());
            let resolved = resolved(&workspace, &before, turned, &mut fetcher);
            let failures = resolved.as_ref().map_or_else(|failures| &failures.0, |(_, relocked)| &relocked.unresolved);
            let (too_young, unsigned) = distrusted(failures, &selected);
            if leave_out(&mut selected, too_young, &mut held) | leave_out(&mut selected, unsigned, &mut kept) {
                continue;
            }
            let (plan, mut relocked) = resolved?;
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
            return Ok(Box::new(Localized { news, kept, held, diff, ..outcome }));
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

/// Resolves what no lock holds: for the lock alone, or for what is stored, which is brought in again.
fn resolved(
    workspace: &Workspace,
    before: &Lock,
    stored: Option<TurnedBack>,
    fetcher: &mut Fetcher,
) -> Result<(Option<Plan>, Relocked), Failures> {
    let Some(turned) = stored else {
        return Ok((None, relock(workspace, before, fetcher)?));
    };
    let request = in_place::Request { again: Some(turned), ..in_place::Request::default() };
    let plan = in_place::plan(workspace, request, &Options::default(), fetcher)?;
    let relocked = Relocked { lock: plan.lock.clone(), ..Relocked::default() };
    Ok((Some(plan), relocked))
}

/// An entry of the lock that stays as it was, and why.
type Stays = (Upstream, Failure);

/// Returns which of these may not move: what is too young, and what is not signed.
fn distrusted(failures: &[Failure], selected: &BTreeSet<Upstream>) -> (Vec<Stays>, Vec<Stays>) {
    let of = |kind| {
        let failures = failures.iter().filter(move |failure| failure.kind == kind);
        let source = |failure: &Failure| selected.iter().find(|one| *failure.upstream == one.to_string()).cloned();
        failures.filter_map(|failure| Some((source(failure)?, failure.clone()))).collect()
    };
    (of(FailureKind::Young), of(FailureKind::Unsigned))
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
fn split(workspace: &Workspace, words: &[String], to: &str) -> Result<(Vec<String>, Vec<String>), Failures> {
    let (mut paths, mut urls) = (Vec::new(), Vec::new());
    for word in words {
        let path = workspace.repo().and_then(|repo| from_top(repo, &*workspace.tree, word).ok());
        match path {
            Some(path) if !word.contains("://") && workspace.tree.entry(&path)?.is_some() => paths.push(path),
            _ => urls.push(word.clone()),
        }
    }
    if urls.is_empty() && !is_pattern(to) {
        return Err(Failure::new("`--to` needs a URL: the repository whose ref to change")
            .hint("put the URL before the paths: git kustomize-localize update URL --to REF PATH")
            .into());
    }
    Ok((paths, urls))
}

/// Returns whether `--to` names several refs: git allows no `*` in the name of one.
fn is_pattern(to: &str) -> bool {
    to.contains('*')
}

/// The newest release of each repository, as the user's files name it.
struct Releases {
    fetcher: Fetcher,
    config: Config,
    pattern: GlobMatcher,
    before: Rc<Lock>,
    known: BTreeMap<Upstream, Option<String>>,
    /// What is newer, and may not be locked.
    held: Vec<Failure>,
    /// The entries of the lock in whose place a newer release comes.
    left: BTreeSet<Upstream>,
}

impl Releases {
    fn of(workspace: &Workspace, before: &Rc<Lock>, to: &str, quiet: bool) -> Result<Releases, Failures> {
        let pattern =
            Glob::new(to).map_err(|error| Failure::new(format!("`{to}` is not a pattern: {}", error.kind())))?;
        let options = fetching(&workspace.config, false, quiet);
        Ok(Releases {
            fetcher: fetcher(workspace.repo(), options, vec![before.clone()], None)?,
            config: workspace.config.clone(),
            pattern: pattern.compile_matcher(),
            before: before.clone(),
            known: BTreeMap::new(),
            held: Vec::new(),
            left: BTreeSet::new(),
        })
    }

    fn newest(&mut self, spec: &RepoSpec) -> Result<Option<String>, Failure> {
        let source = Upstream::git(spec).source();
        if let Some(known) = self.known.get(&source) {
            return Ok(known.clone());
        }
        let (newest, held) = self.fetcher.newest(spec, &self.pattern, &self.config)?;
        // Several refs of one repository are held up by the same.
        let new: Vec<Failure> = held.into_iter().filter(|one| !self.held.contains(one)).collect();
        self.held.extend(new);
        let is_locked = newest.is_some() && self.before.get(&source).is_some();
        self.left.extend(is_locked.then(|| source.clone()));
        self.known.insert(source, newest.clone());
        Ok(newest)
    }
}

/// Writes another ref into the references to what is selected, below some paths or everywhere, in the tree of the
/// workspace.
fn edit(
    workspace: &mut Workspace,
    turned: &mut TurnedBack,
    urls: &[String],
    paths: &[String],
    to: &mut Retarget<'_>,
) -> Result<Changes, Failures> {
    workspace.tree = turned.tree.clone();
    let names: Vec<Name> = urls.iter().map(|url| Name::of(url)).collect();
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
fn leave_out(selected: &mut BTreeSet<Upstream>, out: Vec<Stays>, kept: &mut Vec<Failure>) -> bool {
    selected.retain(|source| !out.iter().any(|(other, _)| other == source));
    let is_any = !out.is_empty();
    kept.extend(out.into_iter().map(|(_, failure)| failure));
    is_any
}

/// Returns the sources of those that the user's files name that cannot be resolved now. Of others only a walk tells who
/// names them, and so who may be asked with which login.
fn unanswered(fetcher: &mut Fetcher, before: &Lock, selected: &BTreeSet<Upstream>) -> Vec<Stays> {
    let behind: BTreeSet<Upstream> = before.named().map(Upstream::source).collect();
    let own = selected.iter().filter(|source| !behind.contains(source));
    let wanted = own.filter_map(|source| Some((source.clone(), Rc::new(update::wanted(source)?))));
    let (sources, wanted): (Vec<Upstream>, Vec<Rc<RemoteRef>>) = wanted.unzip();
    let answers = fetcher.resolve(&wanted).into_iter().zip(sources);
    answers.filter_map(|(answer, source)| Some((source, answer.err()?))).collect()
}

/// Returns the branches that do not contain what was locked, and of each repository that moved how old it is, who signed it
/// and what its authors wrote, as far as the remotes tell.
fn histories(fetcher: &Fetcher, before: &Lock, after: &Lock) -> (Vec<Finding>, News) {
    let moves = message::moves(before, after);
    let (mut findings, mut news) = (Vec::new(), News::new());
    for (Move { old, new: (new, _) }, history) in moves.iter().zip(fetcher.histories(&moves)) {
        let Some(history) = history else { continue };
        news.insert((*new).clone(), message::subjects(&history));
        let name = new.reference().unwrap_or("HEAD");
        if !history.is_forward && old.0 == *new && !fetcher.is_tag(new.url(), name) {
            let message = format!(
                "`{name}` of {} was rewritten or reset: it no longer contains the locked commit {}",
                new.url(),
                short(old.1)
            );
            findings.push(Finding::new(Rule::RewrittenBranch, LOCK_NAME, message, Vec::new()));
        }
    }
    for change in Lock::changes(before, after).into_iter().filter(|change| change.new.is_some()) {
        let about = fetcher.about(&change.upstream);
        news.entry(change.upstream).or_default().splice(0..0, about);
    }
    (findings, news)
}
