//! Localizing: a kustomization without remote references, as a copy or where it stands, on a branch or on disk.

mod deployed;
pub(super) mod target;

use std::collections::BTreeMap;
use std::rc::Rc;

use serde::Serialize;

use super::check;
use super::fetching::{self, Fetching};
use super::{Builds, News, Status};
use crate::build::{self, BuildCheck, Job};
use crate::destination::{Delivered, Destination, Held, To};
use crate::fetch::{self, Fetcher, Published};
use crate::git::LocalRepo;
use crate::graph::Warning;
use crate::message::failure::{Failure, Failures, Result};
use crate::message::finding::{self, Finding, Rule, Severity};
use crate::os::interrupt;
use crate::plan::{self, HYDRATOR_METADATA, Options, Plan, Rewritten};
use crate::record::{Change, LOCK_NAME, Left, Lock, Remote, stored};
use crate::tree::path;
use crate::workspace::{Files, Workspace};

pub(super) use deployed::Deployed;
use target::Subject;

/// What to localize, how, and where to.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// What is localized.
    pub what: What,
    /// Where the result goes.
    pub to: To,
    /// The commit to start from; none: HEAD. Without a branch, the files on disk.
    pub rev: Option<String>,
    /// Discard edits by hand.
    pub overwrite: bool,
    /// Write nothing.
    pub dry_run: bool,
    /// How remote references are brought in.
    pub fetch: Fetching,
    /// How the result is compared with the original.
    pub builds: Builds,
    /// Whether warnings are errors.
    pub strict: bool,
}

/// What is localized.
#[derive(Debug, Clone)]
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
    /// The repository where it stands.
    InPlace {
        /// The roots to localize; all when empty.
        targets: Vec<String>,
    },
}

/// The result of localizing.
#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    /// What happened to the result.
    pub status: Status,
    pub result: Localized,
    /// The branch that it is on; none on disk.
    pub branch: Option<BranchOutcome>,
    /// What was brought in.
    pub remotes: Vec<Remote>,
    /// What stays remote.
    pub left: Vec<Left>,
    /// The remotes that were added, removed, or moved to another commit.
    pub changes: Vec<Change>,
    /// What the authors of what moved wrote, where that is asked for.
    pub news: News,
    /// The references that were changed.
    pub rewritten: Vec<Rewritten>,
    /// What works but should be known.
    pub warnings: Vec<Warning>,
    /// The result of building; none where no build is affected.
    pub builds: Option<BuildCheck>,
}

/// What was localized, and the files that were written for it.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub(crate) enum Localized {
    Copy(CopyOutcome),
    /// The repository where it stands.
    InPlace(InPlaceOutcome),
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct CopyOutcome {
    /// What was localized: a path from the top of the repository, or a URL without secrets.
    pub target: String,
    /// Where the copy is: a path from the top of the repository, or as the user named it.
    #[serde(rename = "new_directory")]
    pub new_dir: String,
    /// Its files by path, with the number of their bytes.
    pub files: BTreeMap<String, u64>,
}

/// The repository, localized where it stands.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct InPlaceOutcome {
    /// The roots that were named; all when there are none.
    pub targets: Vec<String>,
    /// Whether what was localized was brought in again, and nothing else.
    pub updated: bool,
    /// The files that were written, with the number of their bytes.
    #[serde(rename = "files")]
    pub written: BTreeMap<String, u64>,
    /// The files that were removed.
    pub removed: Vec<String>,
    /// What `git add` has to be given, from the top.
    pub stage: Vec<String>,
}

/// The branch of a result.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct BranchOutcome {
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

/// How often to begin again when the branch at the remote has moved meanwhile.
const PUSHES: usize = 3;

pub(crate) fn localize(request: &Request) -> Result<Outcome, Failures> {
    for _ in 0..PUSHES {
        let mut run = Run::open(request)?;
        let mut found = run.findings()?;
        for warning in found.iter_mut().filter(|_| request.strict) {
            warning.severity = Severity::Error;
        }
        if found.iter().any(Warning::fails) {
            return Ok(run.refused(found));
        }
        let mut plan = run.plan()?;
        // What is wrong in the user's own files is said once.
        let is_said = |warning: &Warning| {
            let mut found = found.iter();
            found.any(|one| one.rule == warning.rule && one.location == warning.location)
        };
        plan.warnings.retain(|warning| !is_said(warning));
        plan.warnings.extend(found);
        let builds = run.check_builds(&plan)?;
        if let Some(outcome) = run.deliver(plan, builds)? {
            return Ok(outcome);
        }
    }
    Err(Failure::new(format!("the remote branch moved {PUSHES} times while this was made"))
        .hint("run the same command again")
        .into())
}

/// One run: where it starts and where it ends.
struct Run<'a> {
    request: &'a Request,
    workspace: Workspace,
    subject: Subject,
    destination: Destination,
    held: Held,
    options: Options,
    fetcher: Fetcher,
    /// What is deployed, once there is a plan; none outside of a repository.
    deployed: Option<Deployed>,
}

impl<'a> Run<'a> {
    fn open(request: &'a Request) -> Result<Run<'a>, Failures> {
        let workspace = workspace(request)?;
        let subject = Subject::find(&request.what, &workspace)?;
        let (new_dir, overwrite) = (subject.new_dir(), request.overwrite);
        let destination = Destination::open(&workspace, &request.to, new_dir, overwrite)?;
        let held = destination.held(&workspace)?;
        let options = Options {
            overwrite: request.overwrite && destination.branch().is_none(),
            trailers: destination.branch().is_some(),
        };
        let fetcher = fetcher(request, &workspace, &destination, &held)?;
        Ok(Run { deployed: None, request, workspace, subject, destination, held, options, fetcher })
    }

    /// Returns what `check` finds in what is localized where it stands, but for what localizing mends.
    fn findings(&self) -> Result<Vec<Warning>, Failures> {
        let Subject::InPlace { targets } = &self.subject else {
            return Ok(Vec::new());
        };
        let found = check::before(&self.workspace, targets)?;
        // What a run left that was killed is finished.
        let is_left = match &self.workspace.files {
            Files::WorkingTree { repo, .. } => interrupt::is_left(&repo.git_dir, interrupt::TEMPORARY),
            Files::Commit { .. } | Files::Disk { .. } | Files::Tree(_) => false,
        };
        let brings_back = self.options.overwrite || is_left;
        // For a branch the lock decides.
        let resolves = self.destination.branch().is_none();
        let is_mended = |finding: &Finding| match finding.rule {
            Rule::LockedReference | Rule::StaleLock | Rule::DeployedRemote => true,
            Rule::RemoteReference => resolves,
            Rule::RemoteChart => resolves && self.workspace.config.helm,
            Rule::EditedCopy => brings_back,
            // What was brought in, and is brought in again.
            Rule::MissingPath => {
                let path = match &finding.subject {
                    finding::Subject::Path { path } => stored::home(path),
                    _ => None,
                };
                brings_back && path.is_some()
            }
            // It becomes a relative one, or is refused.
            Rule::OutOfScope => path::is_absolute(&finding.reference),
            _ => false,
        };
        let found = found.into_iter().filter(|finding| !is_mended(finding));
        Ok(found.map(Warning::from).collect())
    }

    /// Returns that nothing was done because of what was found.
    fn refused(self, warnings: Vec<Warning>) -> Outcome {
        Outcome {
            status: Status::Warned,
            result: Localized::InPlace(InPlaceOutcome {
                targets: self.subject.targets().to_vec(),
                ..InPlaceOutcome::default()
            }),
            branch: None,
            remotes: Vec::new(),
            left: Vec::new(),
            changes: Vec::new(),
            rewritten: Vec::new(),
            news: News::new(),
            warnings,
            builds: None,
        }
    }

    fn plan(&mut self) -> Result<Plan, Failures> {
        let (workspace, options) = (&self.workspace, &self.options);
        let (destination, fetcher) = (&self.destination, &mut self.fetcher);
        let mut plan = match &self.subject {
            Subject::Copy(copied) => {
                let target = copied.target(workspace, destination, fetcher)?;
                destination.claim(&target.name, self.request.overwrite)?;
                let into = destination.place().to_owned();
                plan::copy::plan(workspace, target, into, options, fetcher)?
            }
            Subject::InPlace { targets } => {
                let request = plan::in_place::Request { targets: targets.clone(), again: None };
                plan::in_place::plan(workspace, request, options, fetcher)?
            }
        };
        if let Some(branch) = destination.branch() {
            branch.refuse_changed(workspace, &plan)?;
        }
        self.deployed = Deployed::of(workspace, &plan)?;
        if let Some(deployed) = &self.deployed {
            let harm = deployed.harm(workspace, &mut plan)?;
            plan.warnings.extend(harm);
        }
        Ok(plan)
    }

    /// Builds original and result, unless the build check is off, or an earlier run has done it.
    fn check_builds(&mut self, plan: &Plan) -> Result<Option<BuildCheck>> {
        if plan.affected.is_empty() {
            return Ok(None);
        }
        let builds = &self.request.builds;
        if builds.skip {
            return Ok(Some(BuildCheck::without("--no-verify")));
        }
        let held = self.held.lock.as_deref();
        let earlier = match self.destination.branch() {
            Some(branch) => branch.earlier(&self.workspace, plan, held)?,
            None => None,
        };
        let is_commit = matches!(self.workspace.files, Files::Commit { .. });
        let checkout = is_commit.then(|| self.workspace.tree.clone());
        let job = Job { plan, checkout, earlier };
        let repo = self.workspace.repo().map(|repo| &**repo);
        let options = builds.options(&self.request.fetch, repo);
        build::check_builds(&job, &options).map(Some)
    }

    /// Writes the result, unless something stands against it. None where the branch at the remote has moved meanwhile.
    fn deliver(self, mut plan: Plan, builds: Option<BuildCheck>) -> Result<Option<Outcome>, Failures> {
        let Run { request, workspace, destination, .. } = &self;
        if let Some(builds) = &builds {
            plan.warnings.extend(request.builds.warnings(request.strict, builds));
        }
        if let Some(branch) = destination.branch() {
            plan.warnings.extend(branch.warning(workspace.lock.as_deref())?);
        }
        Warning::judge(&mut plan.warnings, &workspace.config, request.strict);
        plan.warnings.sort();
        let before = self.before(&plan);
        let delivered = match self.withheld(&plan, builds.as_ref()) {
            Some(status) => Err(status),
            None => {
                let histories = |moves: &[_]| self.fetcher.histories(moves);
                Ok(destination.deliver(workspace, &plan, builds.as_ref(), &before, &histories)?)
            }
        };
        let (status, commit, tree) = match delivered {
            Err(status) => (status, None, None),
            Ok(Delivered::Outrun) => return Ok(None),
            Ok(delivered) => {
                let status = Status::of(&delivered);
                match delivered {
                    Delivered::Committed(committed) => (status, Some(committed.commit), Some(committed.tree)),
                    _ => (status, None, None),
                }
            }
        };
        let branch = destination.branch().map(|branch| BranchOutcome {
            name: branch.branch.name.clone(),
            pushed: branch
                .pushed
                .as_ref()
                .filter(|_| commit.is_some())
                .map(|remote| Published::remote(remote).to_owned()),
            commit,
            tree,
            source: branch.source.commit.clone(),
            worktree: branch.options.worktree.as_ref().map(|directory| directory.display().to_string()),
            deployed: match (&self.subject, &self.deployed) {
                (Subject::InPlace { .. }, Some(deployed)) => deployed.count_from(&branch.branch.name),
                _ => None,
            },
        });
        let changes = Lock::changes(&before, &plan.lock);
        let result = Localized::of(&plan, destination.shown(), self.subject.targets(), false);
        Ok(Some(Outcome { branch, builds, ..outcome(status, result, plan, changes) }))
    }

    /// Returns why a result is not written; none if it is.
    fn withheld(&self, plan: &Plan, builds: Option<&BuildCheck>) -> Option<Status> {
        if builds.is_some_and(BuildCheck::differs) {
            return Some(Status::Differs);
        }
        match withheld(plan, self.request.dry_run) {
            Some(Status::Unchanged) if self.destination.branch().is_some() => Some(Status::DryRun),
            status => status,
        }
    }

    /// Returns the lock that changes are compared with.
    fn before(&self, plan: &Plan) -> Lock {
        if let Some(lock) = &self.held.lock {
            return (**lock).clone();
        }
        // A new branch of a source in which everything is local already brings nothing in: its lock only says that the
        // commit message holds the record.
        let is_new = self.destination.branch().is_some_and(|branch| branch.tip.is_none());
        let is_ours = |path: &String| [LOCK_NAME, HYDRATOR_METADATA].contains(&path.as_str());
        if is_new && plan.new_dir.is_none() && plan.changes.keys().all(is_ours) {
            return plan.lock.clone();
        }
        Lock::default()
    }
}

/// Opens what the run starts from. A word that may be meant as a command is answered first.
fn workspace(request: &Request) -> Result<Workspace, Failures> {
    opened(request).map_err(|failures| match &request.what {
        What::Copy { target, .. } => target::unknown_word(target).map_or(failures, Into::into),
        What::InPlace { .. } => failures,
    })
}

fn opened(request: &Request) -> Result<Workspace, Failures> {
    match (&request.to, &request.what) {
        (To::Branch(_), what) => {
            let repo = if request.fetch.offline { LocalRepo::discover_offline()? } else { LocalRepo::discover()? };
            let Some(repo) = repo else {
                return Err(Failure::new("this is not a git repository, so there is nowhere to commit to")
                    .hint(match what {
                        What::Copy { .. } => "run it in a repository, or write plain files: `--no-commit`",
                        What::InPlace { .. } => "run it in a repository",
                    })
                    .into());
            };
            Workspace::of_rev(Rc::new(repo), request.rev.as_deref())
        }
        (To::Disk, What::InPlace { .. }) => Workspace::of_working_tree(false),
        (To::Disk, What::Copy { .. }) => Workspace::of_disk(),
    }
}

/// Sets up fetching. The lock of the source decides; on disk and in a copy the rest is resolved, where the lock of what
/// was localized before does not hold it.
fn fetcher(request: &Request, workspace: &Workspace, destination: &Destination, held: &Held) -> Result<Fetcher> {
    let files = held.files.clone();
    let is_in_place = matches!(request.what, What::InPlace { .. });
    let own = files.as_ref().filter(|_| !is_in_place);
    let locks = workspace.lock.iter().chain(own.map(|files| &files.lock));
    let locks = locks.cloned();
    fetching::fetcher(
        workspace.repo(),
        fetch::Options {
            locked: is_in_place && destination.branch().is_some(),
            ..request.fetch.options(&workspace.config)
        },
        locks.collect(),
        files,
    )
}

/// Returns why a plan for the working tree is not written; none if it is.
pub(super) fn withheld(plan: &Plan, dry_run: bool) -> Option<Status> {
    let is_nothing = plan.changes.is_empty();
    if plan.warnings.iter().any(Warning::fails) {
        Some(Status::Warned)
    } else if dry_run && is_nothing {
        Some(Status::Unchanged)
    } else {
        dry_run.then_some(Status::DryRun)
    }
}

/// Returns the result of a plan on disk, without builds. `changes` are those of the lock.
pub(super) fn outcome(status: Status, result: Localized, plan: Plan, changes: Vec<Change>) -> Outcome {
    for mut graph in [plan.before, plan.after] {
        // As after a check: the program ends next, and to free many small pieces takes a while.
        graph.sources.clear();
        std::mem::forget(graph);
    }
    Outcome {
        status,
        result,
        branch: None,
        remotes: plan.lock.remotes,
        left: plan.lock.left,
        changes,
        news: News::new(),
        rewritten: plan.rewritten,
        warnings: plan.warnings,
        builds: None,
    }
}

impl Status {
    /// Returns the status of what was delivered.
    pub(super) fn of(delivered: &Delivered) -> Status {
        match delivered {
            Delivered::Written => Status::Written,
            Delivered::Committed(committed) if committed.is_new => Status::Written,
            Delivered::Committed(_) | Delivered::Unchanged | Delivered::Outrun => Status::Unchanged,
        }
    }
}

impl Localized {
    /// Returns what a plan writes. `new_dir` is how messages name that of a copy; `targets` are the roots that were named,
    /// and `updated` is whether something was brought in again, of a repository where it stands.
    pub(super) fn of(plan: &Plan, new_dir: &str, targets: &[String], updated: bool) -> Localized {
        let top = plan.new_dir.as_deref().unwrap_or_default();
        let written = plan
            .changes
            .iter()
            .filter_map(|(path, file)| Some((path::below(path, top)?.to_owned(), file.as_ref()?.bytes.len() as u64)));
        if plan.new_dir.is_some() {
            return Localized::Copy(CopyOutcome {
                target: plan.lock.target.clone().unwrap_or_default(),
                new_dir: new_dir.to_owned(),
                files: written.collect(),
            });
        }
        let removed = plan.changes.iter().filter(|(_, file)| file.is_none());
        Localized::InPlace(InPlaceOutcome {
            targets: targets.to_vec(),
            updated,
            written: written.collect(),
            removed: removed.map(|(path, _)| path.clone()).collect(),
            stage: plan.stage.clone(),
        })
    }
}
