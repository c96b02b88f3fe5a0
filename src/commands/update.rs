//! `update`: resolves entries of the lock again.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use clap::Args;
use globset::Glob;

use super::diff::Diff;
use super::localize::{LocalizeReport, Locking};
use super::output::{Done, Outcome as _, OutputArgs};
use super::{News, lock};
use crate::build::choice::Choices;
use crate::build::rendered::ProgramOptions;
use crate::check::localized::deployed;
use crate::destination::{ChangedFiles, message};
use crate::fetch::{self, Fetcher, Move, REWRITTEN, RefCommit, Tip};
use crate::graph::{RemoteRef, Remotes as _, Survey};
use crate::localize::{
    LocalizeOutcome, WriteOutcome, add_build_findings, check_builds_in_place, judge_built, plan_outcome, write,
};
use crate::message::failure::{Failure, FailureKind, Failures, command, pathspec, short};
use crate::message::finding::{Finding, Rule};
use crate::plan::in_place::{self, RestoredUrls};
use crate::plan::lock::{Relocked, has_nothing_to_lock, relock};
use crate::plan::update::{self, UrlArgument, Versioned};
use crate::plan::{Changes, Plan, PlanOptions, ResultFile, changed};
use crate::record::{LOCK_NAME, Lock};
use crate::reference::Upstream;
use crate::targets::affected::Sides;
use crate::targets::affected::changes::Changes as Changed;
use crate::tree::overlay::OverlayTree;
use crate::workspace::{Workspace, fetch_options, fetcher, from_top};

/// Arguments of `update`.
#[derive(Debug, Clone, Args)]
pub(super) struct UpdateArgs {
    /// The locked URL to resolve again, with or without its ref, or a prefix of it
    /// [default: all]
    ///
    /// With `--to` also paths: the ref is written in and below them.
    // The user names it, so it may move even if it is a version.
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
    /// Resolves the selected entries again, and writes the lock with the stored files.
    pub(super) fn run(&self, output: &OutputArgs) -> Done {
        let mut update = Update::open(self, output.quiet)?;
        let resolved = update.resolve()?;
        Ok(Box::new(update.finish(resolved)?))
    }
}

/// An update that is under way.
struct Update<'a> {
    args: &'a UpdateArgs,
    quiet: bool,
    /// With `--to`, its tree has URLs in the place of localized paths, with the new ref.
    workspace: Workspace,
    old_lock: Rc<Lock>,
    /// The survey of the files before the edits.
    old_survey: Rc<Survey>,
    restored_urls: RestoredUrls,
    /// The edits of the user's files by `--to`.
    edits: Changes,
    /// Whether `--to` skips references outside of the paths of the command line, so that their entries stay.
    is_partial: bool,
    selection: Selection,
    fetcher: Fetcher,
}

/// The entries of the lock that are resolved again, and why others that were asked for are not.
#[derive(Default)]
struct Selection {
    sources: BTreeSet<Upstream>,
    /// Unanswered, unsigned, or a version that moved.
    unmoved: Vec<Failure>,
    /// Too young; for `--to PATTERN` also other reasons why a newer release may not be locked.
    held: Vec<Failure>,
}

impl Selection {
    /// Deselects entries that stay as they are, and keeps the reasons for the report.
    fn leave_out(&mut self, stays: Vec<Stays>) {
        for (source, failure) in stays {
            self.sources.remove(&source);
            match failure.kind {
                FailureKind::Young => self.held.push(failure),
                _ => self.unmoved.push(failure),
            }
        }
    }

    /// The selected entries that cannot be resolved now. Charts, and entries that other entries reference, are not
    /// asked.
    fn unanswered(&self, old_lock: &Lock, fetcher: &mut Fetcher) -> Vec<Stays> {
        // For entries behind others only a walk finds the reference, and so the login to use.
        let behind: BTreeSet<Upstream> = old_lock.referenced().into_iter().map(Upstream::source).collect();
        let direct = self.sources.iter().filter(|source| !behind.contains(source));
        let wanted = direct.filter_map(|source| Some((source.clone(), Rc::new(update::as_reference(source)?))));
        let (sources, wanted): (Vec<Upstream>, Vec<Rc<RemoteRef>>) = wanted.unzip();
        let answers = fetcher.resolve(&wanted).into_iter().zip(sources);
        answers.filter_map(|(answer, source)| Some((source, answer.err()?))).collect()
    }

    /// The selected entries that failed because they are too young or not signed: they stay, and do not stop the
    /// others.
    fn distrusted(&self, failures: &[Failure]) -> Vec<Stays> {
        failures
            .iter()
            .filter_map(|failure: &Failure| {
                let distrusted = matches!(failure.kind, FailureKind::Young | FailureKind::Unsigned);
                let source = self.sources.get(failure.distrusted.as_deref()?)?;
                distrusted.then(|| (source.clone(), failure.clone()))
            })
            .collect()
    }
}

/// An entry of the lock that stays as it was, and why.
type Stays = (Upstream, Failure);

/// The resolved entries; with a plan if files are stored, which are then written again.
type Resolved = (Option<Plan>, Relocked);

impl<'a> Update<'a> {
    /// Selects the entries to resolve, and with `--to` edits the references in memory.
    fn open(args: &'a UpdateArgs, quiet: bool) -> Result<Update<'a>, Failures> {
        let workspace = Workspace::of_working_tree()?;
        let old_lock = match workspace.lock.clone() {
            Some(lock) => lock,
            // Without remote references there is nothing to update, which is not an error.
            None if has_nothing_to_lock(&workspace)? => Rc::default(),
            None => {
                let failure = Failure::new("there is no lock at the top of this repository");
                return Err(failure.hint("git kustomize-localize lock").into());
            }
        };
        let (paths, urls) = match &args.to {
            Some(to) => paths_and_urls(&workspace, &args.url, to)?,
            None => (Vec::new(), args.url.clone()),
        };
        let selection = Selection { sources: update::select(&old_lock, &urls)?, ..Selection::default() };
        let options = fetch::FetchOptions { before: Some(old_lock.clone()), quiet, ..fetch_options(&workspace.config) };
        let mut update = Update {
            args,
            quiet,
            old_survey: workspace.survey().clone(),
            restored_urls: in_place::restored(&workspace, &old_lock)?,
            edits: Changes::new(),
            is_partial: !paths.is_empty(),
            selection,
            fetcher: fetcher(workspace.repo(), options, vec![old_lock.clone()], None)?,
            old_lock,
            workspace,
        };
        // This is last, because the fetcher chooses the new ref among the tags that the server lists.
        if let Some(to) = &args.to {
            update.write_refs(to, &urls, &paths)?;
        }
        Ok(update)
    }

    /// Does the work of `--to`: writes the ref `to` into the references to `urls`, below `paths` or everywhere. Only
    /// the tree of the workspace is changed, in memory.
    fn write_refs(&mut self, to: &str, urls: &[String], paths: &[String]) -> Result<(), Failures> {
        // A reference to a stored file has no ref: only the tree with its URL has one to replace.
        self.workspace.set_tree(self.restored_urls.tree.clone());
        let names: Vec<UrlArgument> = urls.iter().map(|url| UrlArgument::of(url)).collect();
        let mut changes = if is_pattern(to) {
            self.edits_to_newest(to, &names, paths)?
        } else {
            update::with_new_refs(&self.workspace, &names, paths, &mut |_| Ok(Some(to.to_owned())))?
        };
        let restored_urls = &mut self.restored_urls;
        restored_urls.tree = Rc::new(changed(OverlayTree::new(restored_urls.tree.clone()), &changes));
        self.workspace.set_tree(restored_urls.tree.clone());
        // A file with restored URLs names localized files, so it is written together with them, and not as an edit.
        let edited: Vec<String> = changes.keys().cloned().collect();
        changes.retain(|path, _| !restored_urls.files.contains(path));
        restored_urls.files.extend(edited);
        // A selected file that has the ref already is not written.
        let tree = self.old_survey.tree();
        changes.retain(|path, file| file.as_ref().map(|file| &*file.bytes) != tree.read(path).ok().as_deref());
        self.edits = changes;
        Ok(())
    }

    /// The edits that name the newest release of each repository and chart that matches a pattern and may be locked.
    /// Selects the entries that these replace, and no others.
    fn edits_to_newest(&mut self, pattern: &str, names: &[UrlArgument], paths: &[String]) -> Result<Changes, Failures> {
        let glob = Glob::new(pattern);
        let glob = glob.map_err(|error| Failure::new(format!("`{pattern}` is not a pattern: {}", error.kind())))?;
        let (glob, mut known) = (glob.compile_matcher(), BTreeMap::new());
        let (workspace, selection) = (&self.workspace, &mut self.selection);
        let changes = update::with_new_refs(workspace, names, paths, &mut |versioned| {
            let source = versioned.source();
            // Each repository with its ref, and each chart with its version, is asked once.
            if let Some(known) = known.get(&source) {
                return Ok(Option::clone(known));
            }
            let (newest, mut held) = match versioned {
                Versioned::Repository(spec) => self.fetcher.newest(spec, &glob, &workspace.config)?,
                Versioned::Chart(chart) => self.fetcher.newest_chart(chart, &glob)?,
            };
            // References with different refs to one repository are held up by the same releases.
            held.retain(|failure| !selection.held.contains(failure));
            selection.held.extend(held);
            known.insert(source, newest.clone());
            Ok(newest)
        })?;
        // A repository without a newer release keeps its entry, and one that the lock lacks has no entry to replace.
        known.retain(|source, newest| newest.is_some() && self.old_lock.get(source).is_some());
        selection.sources = known.into_keys().collect();
        Ok(changes)
    }

    /// Resolves the selected entries, and again without those that must stay.
    fn resolve(&mut self) -> Result<Resolved, Failures> {
        loop {
            match self.try_to_resolve()? {
                Ok(resolved) => return Ok(resolved),
                Err(stays) => self.selection.leave_out(stays),
            }
        }
    }

    /// Resolves all selected entries. The inner error has those that must stay as they are, so that the others are to
    /// be resolved without them.
    fn try_to_resolve(&mut self) -> Result<Result<Resolved, Vec<Stays>>, Failures> {
        self.lock_the_rest();
        let is_stored = update::is_stored(&self.old_lock, &self.selection.sources);
        if self.args.to.is_none() && is_stored {
            // A plan fails as a whole, so upstreams that do not respond are found before it: their files stay. Without
            // a plan, `relock` keeps their entries. With `--to` they end the update.
            let unanswered = self.selection.unanswered(&self.old_lock, &mut self.fetcher);
            if !unanswered.is_empty() {
                return Ok(Err(unanswered));
            }
        }
        // Failures about trust only drop their entries; any other failure ends the update.
        let resolved = self.resolve_selected(is_stored);
        let failures = resolved.as_ref().map_or_else(|failures| &failures.0, |(_, relocked)| &relocked.unresolved);
        let distrusted = self.selection.distrusted(failures);
        if !distrusted.is_empty() {
            return Ok(Err(distrusted));
        }
        let (plan, mut relocked) = resolved?;
        if self.args.to.is_some() && !relocked.unresolved.is_empty() {
            // The user asked for this ref, so no exception for a missing one is proposed.
            for failure in &mut relocked.unresolved {
                failure.exception = None;
            }
            return Err(Failures(relocked.unresolved));
        }
        let changes = Lock::changes(&self.old_lock, &relocked.lock);
        let moved: Vec<Stays> =
            update::moved_versions(&changes, |upstream| self.fetcher.is_version(upstream)).collect();
        // A version must not move, unless the user names its entry.
        if self.args.url.is_empty() && !moved.is_empty() {
            return Ok(Err(moved));
        }
        Ok(Ok((plan, relocked)))
    }

    /// Locks everything that is not resolved again to its current entry or its stored files.
    fn lock_the_rest(&mut self) {
        // `--to` below some paths resolves nothing again: references outside of them keep the entries.
        let nothing = BTreeSet::new();
        let resolved_again = if self.is_partial { &nothing } else { &self.selection.sources };
        let tip = Tip {
            tree: self.old_survey.tree(),
            directory: String::new(),
            lock: Rc::new(update::without_files(&self.old_lock, resolved_again)),
            // The working tree counts as complete: licenses that an earlier run did not store are added.
            has_licenses: true,
        };
        self.fetcher.relock(update::without(&self.old_lock, resolved_again), tip);
    }

    /// Resolves the selected entries again. If their files are stored (`is_stored`), these are localized again, which
    /// gives a plan and its lock; otherwise only the lock changes.
    fn resolve_selected(&mut self, is_stored: bool) -> Result<Resolved, Failures> {
        let (workspace, fetcher) = (&self.workspace, &mut self.fetcher);
        if !is_stored {
            return Ok((None, relock(workspace, &self.old_lock, fetcher)?));
        }
        let request = in_place::InPlaceRequest {
            updated: Some(self.restored_urls.clone()),
            ..in_place::InPlaceRequest::default()
        };
        let plan = in_place::plan(workspace, request, &PlanOptions::default(), fetcher)?;
        let relocked = Relocked { lock: plan.lock.clone(), ..Relocked::default() };
        Ok((Some(plan), relocked))
    }

    /// Writes the lock, and with it the stored files, and returns the report with the news of the remotes.
    fn finish(self, (plan, relocked): Resolved) -> Result<LocalizeReport, Failures> {
        // The network may fail, so it is asked before anything is written.
        let (mut rewritten, news) = ask_for_news(&self.fetcher, &self.old_lock, &relocked.lock);
        let diff = self.args.diff.then(|| self.diff(plan.as_ref(), &relocked.lock)).transpose();
        let diff = diff.map_err(|failures| failures.context("nothing was written"))?;
        // The files are written last, after all else that may fail.
        let (workspace, old_lock, dry_run) = (self.workspace, self.old_lock, self.args.dry_run);
        let mut outcome = match plan {
            Some(mut plan) => {
                plan.findings.extend(rewritten);
                plan.changes = self.edits.into_iter().chain(plan.changes).collect();
                // This adds findings about engines to the plan; the targets are only for reports of a branch.
                deployed(&workspace, &mut plan)?;
                let builds = check_builds_in_place(&workspace, &plan, self.quiet)?;
                if let Some(builds) = &builds {
                    add_build_findings(&mut plan, builds);
                }
                judge_built(&workspace, &mut plan);
                let status = match &builds {
                    Some(builds) if builds.differs() => WriteOutcome::Differs,
                    _ => write(&workspace, &plan.changes, &plan.findings, dry_run)?,
                };
                let files = ChangedFiles::of(&plan.changes);
                let localized = LocalizeOutcome { builds, ..plan_outcome(status, plan, files, &old_lock) };
                LocalizeReport { localized, locking: Locking::default() }
            }
            None => {
                workspace.config.judge(&mut rewritten);
                lock::write_lock(&workspace, dry_run, rewritten, &old_lock, relocked, self.edits)?
            }
        };
        let locking = &mut outcome.locking;
        (locking.news, locking.effects) = (news, diff);
        (locking.unmoved, locking.held) = (self.selection.unmoved, self.selection.held);
        Ok(outcome)
    }

    /// Compares the builds that the update touches, for `--diff`.
    fn diff(&self, plan: Option<&Plan>, lock: &Lock) -> Result<Diff, Failures> {
        // An update writes to a working tree, so there is always a repository.
        let Some(repo) = self.workspace.repo() else { return Ok(Diff::default()) };
        // Both sides are trees in memory: the comparison must not depend on the writing.
        let mut changes = self.edits.clone();
        changes.insert(LOCK_NAME.to_owned(), Some(ResultFile::of(lock)?));
        changes.extend(plan.iter().flat_map(|plan| plan.changes.clone()));
        let tree = changed(OverlayTree::new(self.old_survey.tree()), &changes);
        let (old, new) = (Workspace::surveyed(&self.old_survey)?, Workspace::of_tree(Rc::new(tree))?);
        let sides = Sides { old: &old, new: &new };
        let changes = Changed::among(sides.map(|side| side.tree.clone()), changes.into_keys())?;
        let choices = Choices::of_change(repo, &new.config, &changes, sides.map(|side| &**side.survey()), &[])?;
        let how = ProgramOptions { quiet: self.quiet, ..ProgramOptions::default() };
        let diff = Diff::between(repo, sides, &changes, choices, Sides { old: how, new: how })?;
        // A stopped build could hide any difference, so the update fails.
        match diff.stopped().into_iter().next() {
            Some(stopped) => Err(stopped.clone().into()),
            None => Ok(diff),
        }
    }
}

/// Splits the words of the command line: a word that exists in the working tree is a path, every other word a URL.
/// Fails if there is no URL and `to` is one ref.
fn paths_and_urls(workspace: &Workspace, words: &[String], to: &str) -> Result<(Vec<String>, Vec<String>), Failures> {
    let (mut paths, mut urls) = (Vec::new(), Vec::new());
    // A path is tried first: a URL without a scheme looks like one, but does not exist.
    for word in words {
        let path = workspace.repo().and_then(|repo| from_top(repo, &*workspace.tree, word).ok());
        match path {
            Some(path) if !word.contains("://") && workspace.tree.entry(&path)?.is_some() => paths.push(path),
            _ => urls.push(word.clone()),
        }
    }
    // A pattern can match tags of every repository, but one ref or version belongs to one upstream.
    if urls.is_empty() && !is_pattern(to) {
        return Err(missing_url(workspace, &paths, to).into());
    }
    Ok((paths, urls))
}

/// The failure of `--to` without a URL. The hint works as it is: it names a URL of this lock, or, as only some of these
/// are named in and below `paths`, lists those there.
fn missing_url(workspace: &Workspace, paths: &[String], to: &str) -> Failure {
    let locked = workspace.lock.iter().flat_map(|lock| lock.remotes.keys());
    let mut named = locked.filter(|upstream| matches!(upstream, Upstream::Git { .. } | Upstream::Chart { .. }));
    let hint = match named.next().filter(|_| paths.is_empty()) {
        Some(url) => {
            let words = [url.to_string(), "--to".to_owned(), to.to_owned()];
            format!("name it first, for example: {}", command("git kustomize-localize update", words))
        }
        None => {
            let tree = command("git kustomize-localize tree", paths.iter().map(|path| pathspec(path)));
            format!("list the references: {tree}")
        }
    };
    Failure::new("`--to` needs a URL: the repository or chart whose ref or version to change").hint(hint)
}

/// Whether `--to` is a pattern for refs.
fn is_pattern(to: &str) -> bool {
    // git allows no `*` in the name of a ref.
    to.contains('*')
}

/// Asks the remotes about the updated entries. Returns a finding for each branch that no longer contains the locked
/// commit, and the news: the commit subjects of each repository that moved, and the age and signer of each new entry.
fn ask_for_news(fetcher: &Fetcher, before: &Lock, after: &Lock) -> (Vec<Finding>, News) {
    let moves = message::moves(before, after);
    let (mut findings, mut news) = (Vec::new(), News::new());
    for (Move { old, new: RefCommit { upstream: new, .. } }, history) in moves.iter().zip(fetcher.histories(&moves)) {
        // A server that does not answer in time only leaves out the news.
        let Some(history) = history else { continue };
        news.entry((*new).clone()).or_default().commits = message::subjects(&history);
        let name = new.reference().unwrap_or("HEAD");
        // Only a branch must still contain its old commit: another ref need not, and a version is not a branch.
        if !history.is_forward && old.upstream == *new && !fetcher.is_version(new) {
            let failure = Failure::new(format!("`{name}` of {} {REWRITTEN} {}", new.url(), short(old.commit)));
            findings.push(Finding::new(Rule::RewrittenBranch, LOCK_NAME, failure));
        }
    }
    for change in Lock::changes(before, after).into_iter().filter(|change| change.new.is_some()) {
        let provenance = fetcher.provenance(&change.upstream);
        news.entry(change.upstream).or_default().provenance = provenance;
    }
    (findings, news)
}
