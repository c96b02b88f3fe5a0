//! Localizing: a kustomization without remote references, as a copy or where it stands, on a branch or on disk. From what the
//! user named to what was written, in one run.

pub(crate) mod target;

use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use serde::Serialize;

use crate::build::memory::Memory;
use crate::build::{self, BuildCheck, Job};
use crate::check::build::How;
use crate::check::localized::deployed;
use crate::check::{fill, gate, unread_reference};
use crate::config::Config;
use crate::destination::{self, BranchOptions, ChangedFiles, Delivered, Destination, Discarded, working};
use crate::fetch::{self, Fetcher, Move, Tip};
use crate::git::LocalRepo;
use crate::message::failure::{Failure, Failures, Result};
use crate::message::finding::{self, Finding, MendedBy, Rule, Severity};
use crate::os::interrupt;
use crate::plan::{self, Changes, Options, Plan, Rewritten};
use crate::record::{Change, LoadRestrictor, Lock, Remotes, serialize_left, serialize_remotes, sha256_hex, stored};
use crate::reference::Upstream;
use crate::targets::Targets;
use crate::targets::generated::ANY_FILE;
use crate::tree::path;
use crate::workspace::{Files, Workspace, changed_meanwhile, fetcher, fetching};

use target::Subject;

/// What happened to the files that a command was to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Status {
    #[default]
    Written,
    /// It was as it must be.
    Unchanged,
    /// It would have been written: `--dry-run`.
    DryRun,
    /// It was left as it was: there are warnings that are errors.
    Warned,
    /// It was left as it was: the result does not build to what the original builds to.
    Differs,
}

/// What to localize, how, and where to.
pub(crate) struct Request<'a> {
    pub what: What,
    /// The commit to localize; none: HEAD.
    pub rev: Option<&'a str>,
    /// The branch to commit to; none: the files on disk are localized, and written there.
    pub branch: Option<BranchOptions>,
    /// Whether edits by hand are discarded.
    pub overwrite: bool,
    /// Whether original and result are not built.
    pub no_verify: bool,
    /// Whether nothing is written.
    pub dry_run: bool,
    /// How to build.
    pub how: How<'a>,
}

/// What is localized.
pub(crate) enum What {
    /// A copy of one target.
    Copy {
        /// A directory, or a URL.
        target: String,
        /// Where the copy goes; none: named after the target.
        new_dir: Option<String>,
        /// What bounds a local target; none: the target itself.
        scope: Option<String>,
    },
    /// The repository where it stands: these roots, or all when there are none.
    InPlace(Vec<String>),
}

/// The result of localizing, or of locking what that would bring in.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Localized {
    /// What happened to the result.
    #[serde(rename = "outcome")]
    pub status: Status,
    #[serde(flatten)]
    pub made: Made,
    /// The roots that were named; all when there are none.
    pub targets: Vec<String>,
    /// The files that were written, from the top of a copy, with the number of their bytes.
    pub files: BTreeMap<String, Option<u64>>,
    /// The files that were removed.
    pub removed: Vec<String>,
    /// The edits by hand that `--overwrite` discards.
    pub discarded: Discarded,
    /// What `git add` has to be given, from the top.
    pub stage: Vec<String>,
    /// The branch that it is on; none on disk.
    #[serde(flatten)]
    pub branch: Option<Branch>,
    /// What was brought in.
    #[serde(serialize_with = "serialize_remotes")]
    pub remotes: Remotes,
    /// What stays remote because of an exception.
    #[serde(serialize_with = "serialize_left")]
    pub left: BTreeMap<Upstream, String>,
    /// What was localized before, and stays remote now.
    pub now_remote: Vec<NowRemote>,
    /// The remotes that were added, removed, or moved to another commit.
    pub changes: Vec<Change>,
    /// The references that were changed.
    pub rewritten: Vec<Rewritten>,
    /// What is wrong, or should be known.
    pub findings: Vec<Finding>,
    /// The result of building; none where no build is affected.
    #[serde(rename = "verified")]
    pub builds: Option<BuildCheck>,
    /// The kustomizations of the working tree that HEAD, which is localized, does not have like that.
    pub uncommitted: Vec<String>,
}

/// What was made.
#[derive(Debug, Default, Serialize)]
#[serde(untagged)]
pub(crate) enum Made {
    Copy(Copy),
    /// The repository, localized where it stands.
    #[default]
    InPlace,
    /// The lock, and nothing else: URLs stay.
    Lock,
    /// The same where there was none before.
    FirstLock,
}

#[derive(Debug, Serialize)]
pub(crate) struct Copy {
    /// What was localized: a path from the top of the repository, or a URL without secrets.
    pub target: String,
    /// Where the copy is: a path from the top of the repository, or as the user named it.
    pub new_directory: String,
}

/// Something that an exception has taken out of the lock.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct NowRemote {
    pub url: Upstream,
    /// What allows it: an entry of the configuration, as `.kustomize-localize:4`, or else a comment.
    pub allowed_by: String,
}

impl NowRemote {
    /// Returns what `old` localizes and `new` leaves remote.
    pub(crate) fn between(old: &Lock, new: &Lock, config: &Config) -> Vec<NowRemote> {
        let left = Lock::unlocked_between(old, new);
        let now_remote = left.map(|upstream| {
            let entry = config.allowed_by(upstream.rule(), &upstream.subject(), "");
            let line = entry.map(|entry| format!("{}:{}", config.file, config.allow[entry].span.start.line));
            NowRemote { url: upstream.clone(), allowed_by: line.unwrap_or_else(|| "a comment".to_owned()) }
        });
        now_remote.collect()
    }

    pub(crate) fn line(&self) -> String {
        format!("now remote: {} (allowed by {})", self.url, self.allowed_by)
    }
}

/// The branch of a result.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Branch {
    /// Its short name.
    #[serde(rename = "branch")]
    pub name: String,
    /// Its tip, unless nothing was or is committed.
    pub commit: Option<String>,
    /// The tree of NEW_DIR there.
    pub tree: Option<String>,
    /// The source commit.
    pub source: String,
    /// The linked worktree that holds it as well, as it was named.
    pub worktree: Option<String>,
    /// What is deployed from it, in one line; none of a copy, and where nothing is deployed from here.
    pub deployed: Option<String>,
    /// The remote that has it as well, by now.
    pub pushed: Option<String>,
}

/// How often to deliver when the branch at the remote has moved meanwhile.
const PUSHES: usize = 3;

/// Where a run starts, found.
pub(crate) struct Found<'a> {
    request: &'a Request<'a>,
    workspace: Workspace,
    subject: Subject,
    /// NEW_DIR of a copy.
    new_dir: Option<String>,
}

/// One run: where it starts and where it ends.
struct Run<'a> {
    request: &'a Request<'a>,
    workspace: Workspace,
    subject: Subject,
    destination: Destination,
    held: Option<Tip>,
    fetcher: Fetcher,
}

impl<'a> Found<'a> {
    /// Finds what is to be localized.
    pub(crate) fn of(request: &'a Request<'a>) -> Result<Found<'a>, Failures> {
        let workspace = request.workspace()?;
        let (subject, new_dir) = Subject::find(&request.what, &workspace)?;
        Ok(Found { request, workspace, subject, new_dir })
    }

    /// Localizes it.
    pub(crate) fn localize(self) -> Result<Localized, Failures> {
        Run::open(self)?.localize()
    }
}

impl<'a> Run<'a> {
    fn open(Found { request, workspace, subject, new_dir }: Found<'a>) -> Result<Run<'a>, Failures> {
        let destination =
            Destination::open(&workspace, request.branch.as_ref(), new_dir.as_deref(), request.overwrite)?;
        let held = destination.previous_tip(&workspace)?;
        let is_in_place = matches!(subject, Subject::InPlace(_));
        // The lock of the source decides; in a copy the rest is resolved, where the lock of what was localized before
        // does not hold it.
        let own = held.as_ref().filter(|_| !is_in_place).map(|held| held.lock.clone());
        let options = fetch::Options {
            locked: is_in_place && request.branch.is_some(),
            ..fetching(&workspace.config, request.how.offline, request.how.quiet)
        };
        let locks = workspace.lock.clone().into_iter().chain(own).collect();
        let fetcher = fetcher(workspace.repo(), options, locks, held.clone())?;
        Ok(Run { request, workspace, subject, destination, held, fetcher })
    }

    /// Plans, builds and delivers.
    fn localize(mut self) -> Result<Localized, Failures> {
        if let Some(unchanged) = self.unchanged()? {
            return Ok(unchanged);
        }
        // Roots that localizing does not change are built then, too; else what changes objects of engines.
        let level = |rule| self.workspace.config.level(rule, Severity::Warning);
        let is_built = [Rule::NotBuilt, Rule::NotObserved].iter().any(|rule| level(*rule) == Some(Severity::Error));
        let how = How { only_objects: !is_built, ..self.request.how };
        let how = (self.request.branch.is_some() && !self.request.no_verify).then_some(&how);
        let mut found = self.findings(None, None)?;
        if how.is_some() && found.iter().any(Finding::fails) {
            // What a build tells may not be wrong.
            found = self.findings(how, None)?;
        }
        let uncommitted = match &self.subject {
            Subject::InPlace(_) => self.workspace.uncommitted("")?,
            Subject::Local { directory, scope } => self.workspace.uncommitted(scope.as_ref().unwrap_or(directory))?,
            Subject::Remote { .. } => Vec::new(),
        };
        if found.iter().any(Finding::fails) {
            return self.refused(found, uncommitted);
        }
        let mut plan = self.plan()?;
        // Nobody deploys a copy yet: `check` judges it where it is committed.
        let deployed = match self.subject {
            Subject::InPlace(_) => {
                // What is wrong with functions and charts in the user's own files it has said.
                let is_said = |one: &Finding| matches!(one.rule, Rule::Function | Rule::RemoteChart);
                plan.findings.retain(|one| !(one.url.is_empty() && is_said(one)));
                deployed(&self.workspace, &mut plan)?
            }
            Subject::Local { .. } | Subject::Remote { .. } => Targets::default(),
        };
        let may_change = deployed.targets.iter().any(|target| target.changed_by.is_some());
        if how.is_some() && (is_built || may_change) {
            found = self.findings(how, Some(&plan))?;
            if found.iter().any(Finding::fails) {
                return self.refused(found, uncommitted);
            }
        }
        plan.findings.extend(found);
        let builds = self.check_builds(&plan)?;
        let without = builds.as_ref().and_then(|builds| builds.without.as_ref());
        if let Some(reason) = without.filter(|_| !self.request.no_verify) {
            // What is on disk, somebody looks at before it is committed.
            if self.request.branch.is_some() {
                return Err(unverified(reason).into());
            }
            let message = format!("not verified: {reason}");
            plan.findings.push(Finding::new(Rule::NotBuilt, "", message, Vec::new()));
        }
        plan.findings.extend(builds.iter().flat_map(|builds| unread_references(&plan, builds)).collect::<Vec<_>>());
        self.workspace.config.judge(&mut plan.findings);
        // The report mentions it anyway.
        plan.findings.retain(|one| one.rule != Rule::NotBuilt || one.fails());
        finding::sort(&mut plan.findings);
        fill(&*self.workspace.tree, &mut plan.findings);
        let localized = self.finish(plan, builds, &deployed)?;
        Ok(Localized { uncommitted, ..localized })
    }

    /// Returns that nothing was begun because of findings.
    fn refused(&self, findings: Vec<Finding>, uncommitted: Vec<String>) -> Result<Localized, Failures> {
        // They may be between what another run has written and what it has not.
        if !self.workspace.has_lock_as_read() {
            return Err(changed_meanwhile().into());
        }
        let (status, targets) = (Status::Warned, self.subject.targets().to_vec());
        let branch = self.branch(None, None, &Targets::default());
        Ok(Localized { status, targets, findings, uncommitted, branch, ..Localized::default() })
    }

    /// Returns what a branch holds that was made of this very source: then no walk tells more.
    fn unchanged(&self) -> Result<Option<Localized>> {
        let (Some(on), Some(held)) = (self.destination.branch(), &self.held) else { return Ok(None) };
        let arguments: &[String] = match self.workspace.config.load_restrictor {
            LoadRestrictor::RootOnly => &[],
            LoadRestrictor::None => &[ANY_FILE.to_owned()],
        };
        let arguments = (!self.request.no_verify).then_some(arguments);
        let How { kustomize, arguments: more, .. } = &self.request.how;
        if kustomize.is_some() || !more.is_empty() || !on.is_made_of_source(arguments)? {
            return Ok(None);
        }
        let commit = on.tip.as_ref().map(|tip| tip.commit.clone());
        let tree = on.tip.as_ref().map(|tip| tip.tree.to_string());
        Ok(Some(Localized {
            status: Status::Unchanged,
            branch: self.branch(commit, tree, &Targets::default()),
            remotes: held.lock.remotes.clone(),
            left: held.lock.left.clone(),
            uncommitted: self.workspace.uncommitted("")?,
            ..Localized::default()
        }))
    }

    /// Returns what `check` finds in what is localized where it stands, but for what localizing mends. It builds if it is said
    /// how, from what is planned.
    fn findings(&self, how: Option<&How<'_>>, planned: Option<&Plan>) -> Result<Vec<Finding>, Failures> {
        let Subject::InPlace(targets) = &self.subject else {
            return Ok(Vec::new());
        };
        // For a branch the lock decides.
        let resolves = self.request.branch.is_none();
        // What a run left that was killed is finished.
        let is_left = |repo: &Rc<LocalRepo>| interrupt::is_left(&repo.git_dir, interrupt::TEMPORARY);
        let brings_back = resolves && (self.request.overwrite || self.workspace.repo().is_some_and(is_left));
        let is_mended = |finding: &Finding| match (finding.rule.mended_by(), finding.rule, &finding.subject) {
            (MendedBy::Nothing, ..) => false,
            (MendedBy::Localizing, ..) => true,
            // What an engine downloads stays as it is.
            (MendedBy::Vendoring, Rule::RemoteChart, _) if finding.field.is_empty() => false,
            (MendedBy::Vendoring, Rule::RemoteChart, _) => resolves && self.workspace.config.helm,
            // It becomes a relative one, or is refused.
            (MendedBy::Vendoring, Rule::OutOfScope, _) => resolves && path::is_absolute(&finding.reference),
            (MendedBy::Vendoring, ..) => resolves,
            // What was brought in.
            (MendedBy::Refreshing, _, finding::Subject::Path { path }) => brings_back && stored::home(path).is_some(),
            (MendedBy::Refreshing, rule, _) => brings_back && rule == Rule::EditedCopy,
        };
        let found = gate::before(&self.workspace, targets, how, planned)?.into_iter();
        Ok(found.filter(|finding| !is_mended(finding)).collect())
    }

    fn plan(&mut self) -> Result<Plan, Failures> {
        let (workspace, destination, fetcher) = (&self.workspace, &self.destination, &mut self.fetcher);
        let overwrite = self.request.overwrite;
        let trailers = self.request.branch.is_some();
        let options = Options { overwrite: overwrite && !trailers, trailers };
        let plan = match self.subject.copied(workspace, fetcher)? {
            Some(target) => {
                destination.claim(workspace, &target.name, overwrite)?;
                plan::copy::plan(workspace, target, destination.new_dir().to_owned(), &options, fetcher)?
            }
            None => {
                let request = plan::in_place::Request { targets: self.subject.targets().to_vec(), again: None };
                plan::in_place::plan(workspace, request, &options, fetcher)?
            }
        };
        destination::refuse_changed(workspace, &plan.before)?;
        Ok(plan)
    }

    /// Builds original and result, unless the build check is off, or an earlier run has done it.
    fn check_builds(&self, plan: &Plan) -> Result<Option<BuildCheck>> {
        if plan.affected.is_empty() {
            return Ok(None);
        }
        let how = &self.request.how;
        if self.request.no_verify {
            return Ok(Some(BuildCheck::without("--no-verify")));
        }
        let held = self.held.as_ref().map(|held| &*held.lock);
        let branch = self.destination.branch();
        let earlier = branch.map_or(Ok(None), |on| on.earlier(&self.workspace, held))?;
        let is_commit = matches!(self.workspace.files, Files::Commit { .. });
        let checkout = is_commit.then(|| self.workspace.tree.clone());
        // What goes to disk is proven where it stands: no commit says what was built when.
        let memory = branch.and_then(|_| Memory::of(self.workspace.repo().map(|here| &**here)));
        let options = build::Options {
            program: how.kustomize.map(Path::to_owned),
            arguments: how.arguments.to_vec(),
            config: self.workspace.config.clone(),
            offline: how.offline,
            quiet: how.quiet,
            memory,
            outputs: self.outputs(),
        };
        build::check_builds(&Job { plan, checkout, earlier }, &options).map(Some)
    }

    /// Returns the branch, with its tip and the tree of NEW_DIR there; none on disk.
    fn branch(&self, commit: Option<String>, tree: Option<String>, deployed: &Targets) -> Option<Branch> {
        let on = self.destination.branch()?;
        let (name, worktree, pushed) = (&on.branch.name, &on.options.worktree, on.pushed.as_ref());
        Some(Branch {
            pushed: pushed.filter(|_| commit.is_some()).map(|one| one.remote().to_owned()),
            commit,
            tree,
            source: on.source.commit.clone(),
            worktree: worktree.as_ref().map(|directory| directory.display().to_string()),
            deployed: deployed.deployed_from(name, |one| one.name.as_ref() == Some(name)),
            name: name.clone(),
        })
    }

    /// Returns what outputs that differ are kept under: a name for the repository, or else for the directory at hand.
    fn outputs(&self) -> String {
        let place = match self.workspace.repo() {
            Some(repo) => repo.git_dir.clone(),
            None => std::env::current_dir().unwrap_or_default(),
        };
        sha256_hex(place.as_os_str().as_encoded_bytes())[..12].to_owned()
    }

    /// Writes the result, unless something stands against it.
    fn finish(mut self, plan: Plan, builds: Option<BuildCheck>, deployed: &Targets) -> Result<Localized, Failures> {
        let differs = builds.as_ref().is_some_and(BuildCheck::differs).then_some(Status::Differs);
        let (dry_run, is_branch) = (self.request.dry_run, self.request.branch.is_some());
        let withheld = differs.or_else(|| withheld(&plan.changes, &plan.findings, dry_run, is_branch));
        let (delivered, discarded) = self.deliver(&plan, builds.as_ref(), withheld.is_some())?;
        let status = withheld.unwrap_or(if delivered.is_new { Status::Written } else { Status::Unchanged });
        let branch = self.branch(delivered.commit, delivered.tree, deployed);
        let before = self.before(&plan);
        let copy = plan.new_dir.is_some().then(|| Copy {
            target: plan.lock.target.clone().unwrap_or_default(),
            new_directory: self.destination.shown().to_owned(),
        });
        let made = copy.map_or(Made::InPlace, Made::Copy);
        let targets = self.subject.targets().to_vec();
        let now_remote = NowRemote::between(&before, &plan.lock, &self.workspace.config);
        let on_disk = on_disk(status, plan, delivered.changed, &before);
        Ok(Localized { made, branch, builds, targets, discarded, now_remote, ..on_disk })
    }

    /// Delivers, again while somebody else pushes first: the plan and its builds do not depend on what the branch holds, so
    /// that only the branch is looked at again.
    fn deliver(
        &mut self,
        plan: &Plan,
        builds: Option<&BuildCheck>,
        is_withheld: bool,
    ) -> Result<(Delivered, Discarded)> {
        let overwrite = self.request.overwrite;
        for _ in 0..PUSHES {
            let (workspace, destination) = (&self.workspace, &self.destination);
            let discarded = overwrite.then(|| destination.discarded(self.held.as_ref(), plan));
            let discarded = discarded.transpose()?.unwrap_or_default();
            if is_withheld {
                return Ok((destination.pending(plan)?, discarded));
            }
            let (before, histories) = (self.before(plan), |moves: &[Move<'_>]| self.fetcher.histories(moves));
            if let Some(delivered) = destination.deliver(workspace, plan, builds, &before, &histories)? {
                return Ok((delivered, discarded));
            }
            // What is pushed is no copy.
            self.destination = Destination::open(workspace, self.request.branch.as_ref(), None, overwrite)?;
            self.held = self.destination.previous_tip(&self.workspace)?;
        }
        let failure = Failure::new(format!("the remote branch was updated {PUSHES} times during this run"));
        Err(failure.hint("run the same command again"))
    }

    /// Returns the lock that the result is compared with.
    fn before(&self, plan: &Plan) -> Rc<Lock> {
        // What the source has vendored is not new on its branch.
        let vendored = self.workspace.lock.as_ref();
        let vendored = vendored.filter(|lock| plan.new_dir.is_none() && !lock.files.is_empty());
        let held = self.held.as_ref().map(|held| &held.lock);
        held.or(vendored).cloned().unwrap_or_default()
    }
}

impl Request<'_> {
    /// Opens what the run starts from.
    fn workspace(&self) -> Result<Workspace, Failures> {
        match (&self.branch, &self.what) {
            (None, What::InPlace(_)) => Workspace::of_working_tree(false),
            (None, What::Copy { .. }) => Workspace::of_disk(),
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

/// Returns why nothing is committed where no program builds.
fn unverified(reason: &str) -> Failure {
    Failure::new(format!("nothing was committed, because builds cannot be compared: {reason}"))
        .hint("install kustomize, or name it: --kustomize FILE, or the variable KUSTOMIZE")
        .hint("to commit without comparing builds: --no-verify")
}

/// Returns what builds ask for and no reference names, at the roots that were built.
fn unread_references<'a>(plan: &'a Plan, builds: &'a BuildCheck) -> impl Iterator<Item = Finding> {
    let graph = &plan.before;
    builds.targets.iter().flat_map(|target| {
        let file = graph.label(graph.roots[target.root].file);
        let messages = match &target.verdict {
            build::Verdict::Unread { messages } => Some(messages),
            _ => None,
        };
        messages.into_iter().flatten().map(move |message| unread_reference(&file, message.clone(), &file))
    })
}

/// Returns why changes are not written; none if they are. What a branch changes only the branch tells.
fn withheld(changes: &Changes, findings: &[Finding], dry_run: bool, is_branch: bool) -> Option<Status> {
    if findings.iter().any(Finding::fails) {
        return Some(Status::Warned);
    }
    let is_nothing = changes.is_empty() && !is_branch;
    dry_run.then_some(if is_nothing { Status::Unchanged } else { Status::DryRun })
}

/// Changes the working tree, unless something stands against it.
pub(crate) fn write(workspace: &Workspace, changes: &Changes, findings: &[Finding], dry_run: bool) -> Result<Status> {
    if let Some(status) = withheld(changes, findings, dry_run, false) {
        return Ok(status);
    }
    working::write(workspace, changes)?;
    Ok(if changes.is_empty() { Status::Unchanged } else { Status::Written })
}

/// Returns the result of a plan on disk, without builds. `before` is the lock that it is compared with.
pub(crate) fn on_disk(status: Status, mut plan: Plan, changed: ChangedFiles, before: &Lock) -> Localized {
    let ChangedFiles { files, removed } = changed.below(plan.new_dir.as_deref().unwrap_or_default());
    plan.rewritten.retain(|one| files.contains_key(&one.path));
    Localized {
        status,
        files,
        removed,
        stage: plan.stage,
        changes: Lock::changes(before, &plan.lock),
        remotes: plan.lock.remotes,
        left: plan.lock.left,
        rewritten: plan.rewritten,
        findings: plan.findings,
        ..Localized::default()
    }
}
