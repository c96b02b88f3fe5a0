//! One run of a copy, `branch` or `vendor`: from the arguments of the user to the written result.

pub(crate) mod rendered;
pub(crate) mod target;

use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use serde::Serialize;

use crate::build::memory::Memory;
use crate::build::program::Programs;
use crate::build::rendered::{MissingFiles, ProgramOptions};
use crate::build::{self, BuildCheck, PlanBuilds};
use crate::check::build::CheckBuildOptions;
use crate::check::localized::deployed;
use crate::check::{fill_in_lines, gate, unread_reference};
use crate::config::Config;
use crate::destination::{self, BranchOptions, ChangedFiles, Delivered, Destination, Discarded, OnBranch, working};
use crate::fetch::{self, Fetcher, Move, Tip};
use crate::git::LocalRepo;
use crate::message::failure::{Failure, Failures, Result};
use crate::message::finding::{self, Finding, MendedBy, Rule, Severity};
use crate::os::interrupt;
use crate::plan::{self, Changes, Plan, PlanOptions, Rewritten};
use crate::record::{LoadRestrictor, Lock, LockChange, Remotes, serialize_left, serialize_remotes, sha256_hex, stored};
use crate::reference::Upstream;
use crate::targets::Targets;
use crate::targets::generated::ANY_FILE;
use crate::tree::path;
use crate::workspace::{Files, Workspace, changed_meanwhile, fetch_options, fetcher};

use target::LocalizeSource;

/// The outcome for the files that a command was to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum WriteOutcome {
    #[default]
    Written,
    /// The files were as they must be.
    Unchanged,
    /// The files were not written because of `--dry-run`.
    DryRun,
    /// The files were not written because there are errors, or warnings that count as errors.
    Warned,
    /// The files were not written because original and result build to different output.
    Differs,
}

impl WriteOutcome {
    /// The outcome of a run that wrote its changes, or that had none.
    fn of(is_written: bool) -> WriteOutcome {
        if is_written { WriteOutcome::Written } else { WriteOutcome::Unchanged }
    }
}

/// What to localize, how, and the destination.
pub(crate) struct LocalizeRequest<'a> {
    pub mode: LocalizeMode,
    /// The commit to localize. HEAD if `None`.
    pub rev: Option<&'a str>,
    /// The branch to commit to. If `None`, files on disk are localized, and the result is written to disk.
    pub branch: Option<BranchOptions>,
    /// Whether edits by hand are discarded.
    pub overwrite: bool,
    /// Whether the builds of original and result are not compared.
    pub no_verify: bool,
    /// Whether nothing is written.
    pub dry_run: bool,
    /// How to build.
    pub how: ProgramOptions<'a>,
}

/// The mode of localizing.
pub(crate) enum LocalizeMode {
    /// A copy of one target.
    Copy {
        /// A directory or a URL.
        target: String,
        /// The directory for the copy. If `None`, it is named after the target.
        new_dir: Option<String>,
        /// The scope of a local target. If `None`, it is the target itself.
        scope: Option<String>,
    },
    /// The repository in place: these roots, or all if there are none.
    InPlace(Vec<String>),
}

/// The result of localizing or locking.
#[derive(Debug, Default, Serialize)]
pub(crate) struct LocalizeOutcome {
    /// The outcome for the files.
    #[serde(rename = "outcome")]
    pub status: WriteOutcome,
    #[serde(flatten)]
    pub made: ResultKind,
    /// The roots that were named. Empty if all were localized.
    pub targets: Vec<String>,
    /// The written files, by path from the top of a copy, with their sizes in bytes.
    pub files: BTreeMap<String, Option<u64>>,
    /// The removed files.
    pub removed: Vec<String>,
    /// The edits by hand that `--overwrite` discards.
    pub discarded: Discarded,
    /// The paths for `git add`, from the top.
    pub stage: Vec<String>,
    /// The branch that has the result. `None` on disk.
    #[serde(flatten)]
    pub branch: Option<BranchReport>,
    /// The localized upstreams.
    #[serde(serialize_with = "serialize_remotes")]
    pub remotes: Remotes,
    /// The upstreams that stay remote because of an exception.
    #[serde(serialize_with = "serialize_left")]
    pub left: BTreeMap<Upstream, String>,
    /// The upstreams that were localized before, and stay remote now.
    pub now_remote: Vec<NowRemote>,
    /// The upstreams that were added, removed, or moved to another commit.
    pub changes: Vec<LockChange>,
    /// The rewritten references.
    pub rewritten: Vec<Rewritten>,
    /// The findings.
    pub findings: Vec<Finding>,
    /// The result of building. `None` if no build is affected.
    #[serde(rename = "verified")]
    pub builds: Option<BuildCheck>,
    /// The kustomizations of the working tree that differ from HEAD, which is localized.
    pub uncommitted: Vec<String>,
}

/// The kind of the result.
#[derive(Debug, Default, Serialize)]
#[serde(untagged)]
pub(crate) enum ResultKind {
    Copy(Copy),
    /// The repository, localized in place.
    #[default]
    InPlace,
    /// The builds of the repository.
    Rendered {
        /// The number of builds that have a file.
        builds: usize,
        missing: MissingFiles,
        /// Whether that is a failure.
        #[serde(skip)]
        fails: bool,
    },
    /// Only the lock: URLs stay.
    Lock,
    /// Only the lock, which did not exist before.
    FirstLock,
}

#[derive(Debug, Serialize)]
pub(crate) struct Copy {
    /// The target: a path from the top of the repository, or a URL without secrets.
    pub target: String,
    /// The directory of the copy: a path from the top of the repository, or as the user named it.
    pub new_directory: String,
}

/// An upstream that an exception has removed from the lock.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct NowRemote {
    pub url: Upstream,
    /// The exception: an entry of the configuration, such as `.kustomize-localize:4`, or a comment.
    pub allowed_by: String,
}

impl NowRemote {
    /// The upstreams that `old` localizes and that stay remote in `new`, each with the exception that says so.
    pub(crate) fn between(old: &Lock, new: &Lock, config: &Config) -> Vec<NowRemote> {
        let left = Lock::unlocked_between(old, new);
        let now_remote = left.map(|upstream| {
            let entry = config.allowed_by(upstream.rule(), &upstream.subject(), "");
            // If no entry of `allow` covers it, a comment in a file does.
            let line = entry.map(|entry| format!("{}:{}", config.file, config.allow[entry].span.start.line));
            NowRemote { url: upstream.clone(), allowed_by: line.unwrap_or_else(|| "a comment".to_owned()) }
        });
        now_remote.collect()
    }

    /// The line of the report: an upstream that becomes remote must not go unnoticed.
    pub(crate) fn line(&self) -> String {
        format!("now remote: {} (allowed by {})", self.url, self.allowed_by)
    }
}

/// The branch of a result.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct BranchReport {
    /// Its short name.
    #[serde(rename = "branch")]
    pub name: String,
    /// Its tip. `None` if nothing is committed.
    pub commit: Option<String>,
    /// The tree of NEW_DIR on it.
    pub tree: Option<String>,
    /// The source commit.
    pub source: String,
    /// The linked worktree that was updated with it, as it was named.
    pub worktree: Option<String>,
    /// The targets that are deployed from it, in one line. `None` for a copy, or if nothing is deployed from this
    /// repository.
    pub deployed: Option<String>,
    /// The remote that has it.
    pub pushed: Option<String>,
}

impl BranchReport {
    /// Reports the branch of a run. `commit` is its tip, `tree` the tree of NEW_DIR in it: both `None` if nothing is
    /// committed.
    fn of(
        on_branch: &OnBranch,
        commit: Option<String>,
        tree: Option<String>,
        deployed: Option<String>,
    ) -> BranchReport {
        // The remote is mentioned only if this run pushed the commit to it.
        let pushed = on_branch.pushed().filter(|_| commit.is_some());
        let worktree = on_branch.options.worktree.as_ref();
        BranchReport {
            pushed: pushed.map(|published| published.remote().to_owned()),
            commit,
            tree,
            source: on_branch.source.commit.clone(),
            worktree: worktree.map(|directory| directory.display().to_string()),
            deployed,
            name: on_branch.branch.name.clone(),
        }
    }
}

/// The failure of a run whose pushes always came too late.
fn overtaken() -> Failure {
    Failure::new(format!("the remote branch was updated {PUSHES} times during this run"))
        .hint("run the same command again")
}

/// How often the result is delivered if the branch at the remote moves meanwhile.
const PUSHES: usize = 3;

/// A run whose target was found, but whose destination is not opened yet.
pub(crate) struct PreparedRun<'a> {
    request: &'a LocalizeRequest<'a>,
    workspace: Workspace,
    source: LocalizeSource,
    /// NEW_DIR of a copy.
    new_dir: Option<String>,
}

/// A run, with its source and destination.
struct Run<'a> {
    request: &'a LocalizeRequest<'a>,
    workspace: Workspace,
    source: LocalizeSource,
    destination: Destination,
    tip: Option<Tip>,
    fetcher: Fetcher,
}

impl<'a> PreparedRun<'a> {
    /// Finds the target of a request.
    pub(crate) fn of(request: &'a LocalizeRequest<'a>) -> Result<PreparedRun<'a>, Failures> {
        let workspace = request.workspace()?;
        let (source, new_dir) = LocalizeSource::find(&request.mode, &workspace)?;
        Ok(PreparedRun { request, workspace, source, new_dir })
    }

    /// Localizes the target.
    pub(crate) fn localize(self) -> Result<LocalizeOutcome, Failures> {
        Run::open(self)?.localize()
    }
}

impl<'a> Run<'a> {
    /// Opens the destination, and sets up fetching. For a copy, the lock of an earlier copy there decides about refs
    /// that the lock of the source lacks.
    fn open(PreparedRun { request, workspace, source, new_dir }: PreparedRun<'a>) -> Result<Run<'a>, Failures> {
        let destination =
            Destination::open(&workspace, request.branch.as_ref(), new_dir.as_deref(), request.overwrite)?;
        // A new branch must not take the place of one at the remote that was never fetched.
        destination.branch().map_or(Ok(()), OnBranch::refuse_unseen)?;
        let tip = destination.previous_tip(&workspace)?;
        let is_in_place = matches!(source, LocalizeSource::InPlace(_));
        // The lock of the source decides first. A copy resolves the rest, unless the lock of an earlier copy has it. In
        // place, files of the tip are used again, but only the lock of the source decides.
        let tip_lock = tip.as_ref().filter(|_| !is_in_place).map(|tip| tip.lock.clone());
        // The lock decides about a branch in place, so nothing is resolved for it.
        let options = fetch::FetchOptions {
            locked: is_in_place && request.branch.is_some(),
            offline: request.how.offline,
            quiet: request.how.quiet,
            ..fetch_options(&workspace.config)
        };
        let locks = workspace.lock.clone().into_iter().chain(tip_lock).collect();
        let fetcher = fetcher(workspace.repo(), options, locks, tip.clone())?;
        Ok(Run { request, workspace, source, destination, tip, fetcher })
    }

    /// Localizes, unless an earlier run did.
    fn localize(self) -> Result<LocalizeOutcome, Failures> {
        match self.unchanged()? {
            Some(unchanged) => Ok(LocalizeOutcome { uncommitted: self.uncommitted()?, ..unchanged }),
            None => self.check_and_deliver(),
        }
    }

    /// The kustomizations of the source that differ from HEAD, if HEAD is localized.
    fn uncommitted(&self) -> Result<Vec<String>> {
        match &self.source {
            LocalizeSource::InPlace(_) => self.workspace.uncommitted(""),
            LocalizeSource::Local { directory, scope } => {
                self.workspace.uncommitted(scope.as_ref().unwrap_or(directory))
            }
            LocalizeSource::Remote { .. } => Ok(Vec::new()),
        }
    }

    /// Checks, plans, builds and delivers.
    fn check_and_deliver(mut self) -> Result<LocalizeOutcome, Failures> {
        let how = self.check_builds_options();
        // Builds are slow, so `check` first runs without them. A build may show that an error does not apply.
        let mut findings = self.findings(None, None)?;
        if how.is_some() && findings.iter().any(Finding::fails) {
            findings = self.findings(how.as_ref(), None)?;
        }
        let uncommitted = self.uncommitted()?;
        // Nothing is planned while `check` has errors.
        if findings.iter().any(Finding::fails) {
            return self.refused(findings, uncommitted);
        }
        let mut plan = self.plan()?;
        let deployed = self.deployed(&mut plan)?;
        // With a plan, the result itself is built.
        if let Some(how) = how.filter(|how| !how.compares_roots || !deployed.targets.is_empty()) {
            findings = self.findings(Some(&how), Some(&plan))?;
            if findings.iter().any(Finding::fails) {
                return self.refused(findings, uncommitted);
            }
        }
        plan.findings.extend(findings);
        // The builds prove that the result deploys the same.
        let builds = self.check_builds(&plan)?;
        if let Some(builds) = &builds {
            self.add_build_findings(&mut plan, builds)?;
        }
        judge_built(&self.workspace, &mut plan);
        finding::sort(&mut plan.findings);
        fill_in_lines(&*self.workspace.tree, &mut plan.findings);
        let localized = self.finish(plan, builds, &deployed)?;
        Ok(LocalizeOutcome { uncommitted, ..localized })
    }

    /// How `check` builds what engines deploy. It also builds the roots if a rule about builds is an error; otherwise
    /// the comparison of builds, which comes later, finds all errors of roots. `None` if it does not build: files on
    /// disk are checked again when people commit them, so only a branch is built.
    fn check_builds_options(&self) -> Option<CheckBuildOptions<'a>> {
        if self.request.branch.is_none() || self.request.no_verify {
            return None;
        }
        let config = &self.workspace.config;
        let mut rules = [Rule::NotBuilt, Rule::NotObserved].into_iter();
        let checks_roots = rules.any(|rule| config.level(rule, Severity::Warning) == Some(Severity::Error));
        Some(CheckBuildOptions { run: self.request.how, compares_roots: !checks_roots })
    }

    /// The targets that deploy the result. Empty for a copy: it is not deployed yet, and `check` judges it where it is
    /// committed. Findings of the plan that `check` has reported already are dropped.
    fn deployed(&self, plan: &mut Plan) -> Result<Targets> {
        if !matches!(self.source, LocalizeSource::InPlace(_)) {
            return Ok(Targets::default());
        }
        plan.findings.retain(|finding| {
            // `check` reports the functions and charts in the user's own files.
            let is_reported = matches!(finding.rule, Rule::Function | Rule::RemoteChart);
            !(finding.url.is_empty() && is_reported)
        });
        deployed(&self.workspace, plan)
    }

    /// Adds the findings of the builds of original and result. Fails if a branch was to be verified, and no program
    /// builds.
    fn add_build_findings(&self, plan: &mut Plan, builds: &BuildCheck) -> Result<()> {
        match &builds.not_built {
            Some(_) if self.request.no_verify => Ok(()),
            // People look at files on disk before they commit them, but not at a branch.
            Some(reason) if self.request.branch.is_some() => Err(unverified(reason)),
            _ => {
                add_build_findings(plan, builds);
                Ok(())
            }
        }
    }

    /// The result of a run that was stopped by findings.
    fn refused(&self, findings: Vec<Finding>, uncommitted: Vec<String>) -> Result<LocalizeOutcome, Failures> {
        // Another run may be writing the files, so that these findings are about half of its changes.
        if !self.workspace.has_lock_as_read() {
            return Err(changed_meanwhile().into());
        }
        let (status, targets) = (WriteOutcome::Warned, self.source.targets().to_vec());
        let branch = self.branch(None, None, &Targets::default());
        Ok(LocalizeOutcome { status, targets, findings, uncommitted, branch, ..LocalizeOutcome::default() })
    }

    /// The result of an earlier run, if the branch was made from this very source commit, with the same proof. `None`
    /// if the branch must be made again, and for a copy, a push, a worktree and files on disk.
    fn unchanged(&self) -> Result<Option<LocalizeOutcome>> {
        let (Some(on_branch), Some(earlier)) = (self.destination.branch(), &self.tip) else { return Ok(None) };
        // The arguments of the builds that must have proven the commit; `None` if no proof is requested.
        let arguments: &[String] = match self.workspace.config.load_restrictor {
            LoadRestrictor::RootOnly => &[],
            LoadRestrictor::None => &[ANY_FILE.to_owned()],
        };
        let arguments = (!self.request.no_verify).then_some(arguments);
        // Another program or other arguments may give another proof.
        let Programs { kustomize, arguments: more, .. } = self.request.how.programs;
        if kustomize.is_some() || !more.is_empty() || !on_branch.is_made_of_source(arguments)? {
            return Ok(None);
        }
        // Nothing is walked: the tip has the lock of the result.
        let commit = on_branch.tip.as_ref().map(|tip| tip.commit.clone());
        let tree = on_branch.tip.as_ref().map(|tip| tip.tree.to_string());
        Ok(Some(LocalizeOutcome {
            status: WriteOutcome::Unchanged,
            branch: self.branch(commit, tree, &Targets::default()),
            remotes: earlier.lock.remotes.clone(),
            left: earlier.lock.left.clone(),
            ..LocalizeOutcome::default()
        }))
    }

    /// The findings of `check` in a repository that is localized in place, without those that localizing fixes. With
    /// `how` it also builds, from `planned` if there is a plan.
    fn findings(&self, how: Option<&CheckBuildOptions<'_>>, planned: Option<&Plan>) -> Result<Vec<Finding>, Failures> {
        let LocalizeSource::InPlace(targets) = &self.source else {
            return Ok(Vec::new());
        };
        let mut findings = gate::before_localizing(&self.workspace, targets, how, planned)?;
        findings.retain(|finding| !self.fixes(finding));
        Ok(findings)
    }

    /// Whether this run fixes a finding, so that the finding must not stop it. `vendor` resolves references and writes
    /// localized files again; a branch only takes from the lock.
    fn fixes(&self, finding: &Finding) -> bool {
        let is_vendor = self.request.branch.is_none();
        match finding.rule.mended_by() {
            MendedBy::Nothing => false,
            MendedBy::Localizing => true,
            MendedBy::Vendoring => is_vendor && self.vendors(finding),
            MendedBy::Overwriting => is_vendor && self.restores(finding),
        }
    }

    /// Whether `vendor` brings in what a finding is about.
    fn vendors(&self, finding: &Finding) -> bool {
        match finding.rule {
            // A chart that an engine downloads is in no field of a kustomization, and stays as it is. One that
            // kustomize downloads is brought in only with `helm: true`.
            Rule::RemoteChart => self.workspace.config.helm && !finding.field.is_empty(),
            // An absolute path becomes a relative one, or is refused.
            Rule::OutOfScope => path::is_absolute(&finding.reference),
            _ => true,
        }
    }

    /// Whether `vendor` writes the file or directory of a finding again, which is missing or differs from the lock.
    fn restores(&self, finding: &Finding) -> bool {
        let path = match &finding.subject {
            finding::Subject::Path { path } => path,
            _ if finding.rule == Rule::EditedCopy => &finding.path,
            // A chart that lacks its values names no path, and stays.
            _ => return false,
        };
        // A run that was killed may not have written its lock yet. This run completes it.
        if self.workspace.repo().is_some_and(|repo| interrupt::has_directory(&repo.git_dir, interrupt::TEMPORARY)) {
            return stored::localized_dir(path).is_some();
        }
        // The files of a copy are in another lock, and files of others are in none.
        let lock = self.workspace.lock.as_deref().filter(|_| self.request.overwrite);
        lock.is_some_and(|lock| lock.files.iter().any(|file| path::is_in(&file.path, path)))
    }

    /// Plans the files of the result: of a copy, or of the localized repository.
    fn plan(&mut self) -> Result<Plan, Failures> {
        let (workspace, destination, fetcher) = (&self.workspace, &self.destination, &mut self.fetcher);
        let overwrite = self.request.overwrite;
        let trailers = self.request.branch.is_some();
        // With a branch, `--overwrite` is about edits on the branch, and not in the files of the source.
        let options = PlanOptions { overwrite: overwrite && !trailers, trailers };
        let plan = match self.source.copy_source(workspace, fetcher)? {
            Some(target) => {
                // This comes before the walk, which would fetch everything for a directory that cannot be written.
                destination.claim(workspace, &target.name, overwrite)?;
                plan::copy::plan(workspace, target, destination.new_dir().to_owned(), &options, fetcher)?
            }
            None => {
                let targets = self.source.targets().to_vec();
                let request = plan::in_place::InPlaceRequest { targets, updated: None };
                plan::in_place::plan(workspace, request, &options, fetcher)?
            }
        };
        // Only the plan knows which files the result depends on.
        destination::refuse_uncommitted(workspace, &plan.before)?;
        Ok(plan)
    }

    /// Builds original and result. `None` if no root is affected.
    fn check_builds(&self, plan: &Plan) -> Result<Option<BuildCheck>> {
        if plan.affected.is_empty() {
            return Ok(None);
        }
        if self.request.no_verify {
            return Ok(Some(BuildCheck::not_built("--no-verify")));
        }
        // A root that an earlier record still proves is not built again.
        let lock = self.tip.as_ref().map(|tip| &*tip.lock);
        let branch = self.destination.branch();
        let earlier = branch.map_or(Ok(None), |branch| branch.earlier(&self.workspace, lock))?;
        // A commit is built as a checkout writes it; files on disk are a checkout already.
        let is_commit = matches!(self.workspace.files, Files::Commit { .. });
        let checkout = is_commit.then(|| self.workspace.tree.clone());
        // Only a branch has a record, so only its builds are remembered.
        let memory = branch.and_then(|_| Memory::of(self.workspace.repo().map(|repo| &**repo)));
        let options = build_options(&self.workspace, self.request.how, memory);
        build::check_builds(&PlanBuilds { plan, checkout, earlier }, &options).map(Some)
    }

    /// The branch of the result, with its tip and the tree of NEW_DIR on it. `None` on disk.
    fn branch(&self, commit: Option<String>, tree: Option<String>, deployed: &Targets) -> Option<BranchReport> {
        let on_branch = self.destination.branch()?;
        let name = &on_branch.branch.name;
        let deployed = deployed.deployed_from(name, |target| target.name.as_ref() == Some(name));
        Some(BranchReport::of(on_branch, commit, tree, deployed))
    }

    /// Writes the result, unless a difference, a finding or `--dry-run` prevents that.
    fn finish(
        mut self,
        plan: Plan,
        builds: Option<BuildCheck>,
        deployed: &Targets,
    ) -> Result<LocalizeOutcome, Failures> {
        let differs = builds.as_ref().is_some_and(BuildCheck::differs).then_some(WriteOutcome::Differs);
        let (dry_run, is_branch) = (self.request.dry_run, self.request.branch.is_some());
        // Only a comparison with the tip would tell whether a branch changes.
        let may_change = is_branch || !plan.changes.is_empty();
        let withheld = differs.or_else(|| withheld(&plan.findings, dry_run, may_change));
        // A result that is withheld is compared with its destination as well, for the report.
        let (delivered, discarded) = self.deliver(&plan, builds.as_ref(), withheld.is_some())?;
        let status = withheld.unwrap_or(WriteOutcome::of(delivered.is_written));
        let branch = self.branch(delivered.commit, delivered.tree, deployed);
        let old_lock = self.old_lock(&plan);
        let copy = plan.new_dir.is_some().then(|| Copy {
            target: plan.lock.target.clone().unwrap_or_default(),
            new_directory: self.destination.shown().to_owned(),
        });
        let made = copy.map_or(ResultKind::InPlace, ResultKind::Copy);
        let targets = self.source.targets().to_vec();
        let now_remote = NowRemote::between(&old_lock, &plan.lock, &self.workspace.config);
        let outcome = plan_outcome(status, plan, delivered.changed, &old_lock);
        Ok(LocalizeOutcome { made, branch, builds, targets, discarded, now_remote, ..outcome })
    }

    /// Writes the result to its destination, and returns the edits by hand that were discarded there. If `is_withheld`,
    /// it only computes both. Fails if somebody else pushes first [`PUSHES`] times.
    fn deliver(
        &mut self,
        plan: &Plan,
        builds: Option<&BuildCheck>,
        is_withheld: bool,
    ) -> Result<(Delivered, Discarded)> {
        let overwrite = self.request.overwrite;
        for _ in 0..PUSHES {
            let (workspace, destination) = (&self.workspace, &self.destination);
            let discarded = overwrite.then(|| destination.discarded(self.tip.as_ref(), plan));
            let discarded = discarded.transpose()?.unwrap_or_default();
            if is_withheld {
                return Ok((destination.pending(plan)?, discarded));
            }
            let (before, histories) = (self.old_lock(plan), |moves: &[Move<'_>]| self.fetcher.histories(moves));
            if let Some(delivered) = destination.deliver(workspace, plan, builds, &before, &histories)? {
                return Ok((delivered, discarded));
            }
            // Somebody else pushed first. Plan and builds do not depend on the branch, so only that is examined again.
            // A copy is never pushed.
            self.destination = Destination::open(workspace, self.request.branch.as_ref(), None, overwrite)?;
            self.tip = self.destination.previous_tip(&self.workspace)?;
        }
        Err(overtaken())
    }

    /// The lock that the result is compared with, for the changes in the report and in the commit message.
    fn old_lock(&self, plan: &Plan) -> Rc<Lock> {
        // Upstreams that the source has vendored are not new on its branch.
        let vendored = self.workspace.lock.as_ref();
        let vendored = vendored.filter(|lock| plan.new_dir.is_none() && !lock.files.is_empty());
        let tip = self.tip.as_ref().map(|tip| &tip.lock);
        tip.or(vendored).cloned().unwrap_or_default()
    }
}

impl LocalizeRequest<'_> {
    /// Opens the files that the run starts from.
    fn workspace(&self) -> Result<Workspace, Failures> {
        match (&self.branch, &self.mode) {
            (None, LocalizeMode::InPlace(_)) => Workspace::of_working_tree(),
            (None, LocalizeMode::Copy { .. }) => Workspace::of_disk(),
            (Some(_), _) => {
                let repo = if self.how.offline { LocalRepo::discover_offline()? } else { LocalRepo::discover()? };
                let repo = repo.ok_or_else(|| {
                    Failure::new("this is not a git repository, so there is nowhere to commit to")
                        .hint("run it in a repository, or copy a TARGET to plain files: `--no-commit`")
                })?;
                Workspace::of_rev(Rc::new(repo), self.rev)
            }
        }
    }
}

/// The failure if no program can build, so that nothing may be committed.
fn unverified(reason: &str) -> Failure {
    Failure::new(format!("nothing was committed, because builds cannot be compared: {reason}"))
        .hint("install kustomize, or name it: --kustomize FILE, or the variable KUSTOMIZE")
        .hint("to commit without comparing builds: --no-verify")
}

/// Adds to a plan why nothing was built, and each request of its builds that no reference names, at the root that was
/// built.
pub(crate) fn add_build_findings(plan: &mut Plan, builds: &BuildCheck) {
    if let Some(reason) = &builds.not_built {
        let failure = Failure::new(format!("not verified: {reason}"));
        plan.findings.push(Finding::new(Rule::NotBuilt, "", failure));
    }
    for target in &builds.targets {
        if let build::Verdict::Unread { messages } = &target.verdict {
            let file = plan.before.label(plan.before.roots[target.root].file);
            plan.findings.extend(messages.iter().map(|message| unread_reference(&file, message.clone(), &file)));
        }
    }
}

/// Judges the findings of a plan. The report has a line about builds that did not run, so that only an error stays of
/// these.
pub(crate) fn judge_built(workspace: &Workspace, plan: &mut Plan) {
    workspace.config.judge(&mut plan.findings);
    plan.findings.retain(|finding| finding.rule != Rule::NotBuilt || finding.fails());
}

/// Why changes are not written. `None` if they are. `may_change` tells that writing them could change something.
fn withheld(findings: &[Finding], dry_run: bool, may_change: bool) -> Option<WriteOutcome> {
    if findings.iter().any(Finding::fails) {
        return Some(WriteOutcome::Warned);
    }
    dry_run.then_some(if may_change { WriteOutcome::DryRun } else { WriteOutcome::Unchanged })
}

/// Builds original and result of a plan for the working tree, as it is configured. `None` if no root is affected.
pub(crate) fn check_builds_in_place(workspace: &Workspace, plan: &Plan, quiet: bool) -> Result<Option<BuildCheck>> {
    if plan.affected.is_empty() {
        return Ok(None);
    }
    let options = build_options(workspace, ProgramOptions { quiet, ..ProgramOptions::default() }, None);
    build::check_builds(&PlanBuilds { plan, checkout: None, earlier: None }, &options).map(Some)
}

/// The options for the builds of a workspace. `memory` is `None` if builds are not remembered.
fn build_options(workspace: &Workspace, how: ProgramOptions<'_>, memory: Option<Arc<Memory>>) -> build::BuildOptions {
    let directory = match workspace.repo() {
        Some(repo) => repo.git_dir.clone(),
        None => std::env::current_dir().unwrap_or_default(),
    };
    build::BuildOptions {
        program: how.programs.kustomize.map(Path::to_owned),
        arguments: how.programs.arguments.to_vec(),
        config: workspace.config.clone(),
        offline: how.offline,
        quiet: how.quiet,
        memory,
        // Differing outputs are kept by repository. A path has slashes, so its hash is the name.
        outputs: sha256_hex(directory.as_os_str().as_encoded_bytes())[..12].to_owned(),
    }
}

/// Writes changes to the working tree, unless a finding or `--dry-run` prevents that.
pub(crate) fn write(
    workspace: &Workspace,
    changes: &Changes,
    findings: &[Finding],
    dry_run: bool,
) -> Result<WriteOutcome> {
    if let Some(status) = withheld(findings, dry_run, !changes.is_empty()) {
        return Ok(status);
    }
    working::write(workspace, changes)?;
    Ok(WriteOutcome::of(!changes.is_empty()))
}

/// The outcome as far as a plan tells it, without branch and builds. `changed` has the files that the destination
/// changes, `before` is the lock that the plan's is compared with.
pub(crate) fn plan_outcome(
    status: WriteOutcome,
    mut plan: Plan,
    changed: ChangedFiles,
    before: &Lock,
) -> LocalizeOutcome {
    let ChangedFiles { files, removed } = changed.below(plan.new_dir.as_deref().unwrap_or_default());
    // A rewritten reference is reported only if its file was written.
    plan.rewritten.retain(|rewritten| files.contains_key(&rewritten.path));
    LocalizeOutcome {
        status,
        files,
        removed,
        stage: plan.stage,
        changes: Lock::changes(before, &plan.lock),
        remotes: plan.lock.remotes,
        left: plan.lock.left,
        rewritten: plan.rewritten,
        findings: plan.findings,
        ..LocalizeOutcome::default()
    }
}
