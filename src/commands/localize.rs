//! Localizing: a kustomization without remote references, as a copy or where it stands, on a branch or on disk.

mod builds;
mod deployed;
mod report;
pub(super) mod target;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use clap::{Args, ValueHint};
use serde::Serialize;

use super::output::{self, Outcome, OutputArgs, Shown};
use super::usage::unknown_word;
use super::{News, Status, check, fetching, messages};
use crate::build::{self, BuildCheck, Job};
use crate::destination::{BranchOptions, Delivered, Destination, Held, To};
use crate::fetch::{self, Fetcher};
use crate::git::LocalRepo;
use crate::graph::Warning;
use crate::message::failure::{Failure, Failures, Location, Result};
use crate::message::finding::{self, Finding, Rule, Severity};
use crate::os::interrupt;
use crate::plan::{self, HYDRATOR_METADATA, Options, Plan, Rewritten};
use crate::record::{Change, LOCK_NAME, Left, Lock, Remote, sha256_hex, stored};
use crate::tree::path;
use crate::workspace::{Files, Workspace};

pub(super) use deployed::Deployed;
use target::Subject;

/// How to localize, wherever the result goes.
#[derive(Debug, Clone, Args)]
pub(super) struct HowArgs {
    /// Discard manual edits to generated files
    #[arg(long, hide_short_help = true)]
    overwrite: bool,

    /// Use only what lock, branch and cache hold
    #[arg(long)]
    offline: bool,

    /// Do not build original and result to compare them
    #[arg(long, hide_short_help = true)]
    no_verify: bool,

    /// The kustomize that builds [default: the environment variable KUSTOMIZE, else `kustomize` on
    /// PATH, else `kubectl`]
    #[arg(long, value_name = "FILE", conflicts_with = "no_verify", hide_short_help = true)]
    kustomize: Option<PathBuf>,

    /// Pass an extra argument to both builds, for example `--build-arg=--enable-helm`; may be given several times
    #[arg(long, value_name = "ARG", allow_hyphen_values = true, conflicts_with = "no_verify", hide_short_help = true)]
    build_arg: Vec<String>,

    /// Say what would be done; may fetch into the cache, writes nothing else
    #[arg(long)]
    dry_run: bool,

    /// Treat warnings as errors: nothing is written, exit status 1
    #[arg(long, hide_short_help = true)]
    strict: bool,
}

/// What is committed, and where.
#[derive(Debug, Clone, Args)]
pub(super) struct CommitArgs {
    /// The branch to commit to [default: localized/SOURCE-BRANCH]
    ///
    /// It must be given when there is no source branch: a detached HEAD, `--rev` with an id.
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,

    /// Also have the branch checked out in a linked worktree at DIR
    ///
    /// It is a new one, or the one that is there, if it has no changes.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, hide_short_help = true)]
    worktree: Option<PathBuf>,

    /// The commit to localize [default: HEAD]
    ///
    /// Works in a bare repository.
    #[arg(long, value_name = "REV", hide_short_help = true)]
    rev: Option<String>,

    /// Subject and body of the commit, as in `git commit`; each further one is a paragraph
    ///
    /// The trailers come below.
    #[arg(short, long, value_name = "TEXT", hide_short_help = true)]
    message: Vec<String>,
}

impl CommitArgs {
    /// Returns where the result goes.
    pub(super) fn to(&self, push: Option<Option<String>>) -> To {
        To::Branch(BranchOptions {
            name: self.branch.clone(),
            worktree: self.worktree.clone(),
            message: self.message.clone(),
            push,
        })
    }

    /// Returns the commit that is named.
    pub(super) fn rev(&self) -> Option<&str> {
        self.rev.as_deref()
    }
}

/// What to localize, how, and where to.
pub(super) struct Request<'a> {
    pub what: What,
    pub to: To,
    /// The commit to start from; none: HEAD. Without a branch, the files on disk.
    pub rev: Option<&'a str>,
    pub how: &'a HowArgs,
    pub quiet: bool,
}

/// What is localized.
pub(super) enum What {
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

/// The result of localizing.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Localized {
    /// What happened to the result.
    #[serde(rename = "outcome")]
    pub status: Status,
    /// What was copied; none of the repository where it stands.
    #[serde(flatten)]
    pub copy: Option<Copy>,
    /// The roots that were named; all when there are none.
    pub targets: Vec<String>,
    /// Whether what was localized was brought in again, and nothing else.
    pub updated: bool,
    /// The files of a copy, or those that were written, with the number of their bytes.
    pub files: BTreeMap<String, u64>,
    /// The files that were removed.
    pub removed: Vec<String>,
    /// What `git add` has to be given, from the top.
    pub stage: Vec<String>,
    /// The branch that it is on; none on disk.
    #[serde(flatten)]
    pub branch: Option<Branch>,
    /// What was brought in.
    pub remotes: Vec<Remote>,
    /// What stays remote.
    pub left: Vec<Left>,
    /// The remotes that were added, removed, or moved to another commit.
    pub changes: Vec<Change>,
    /// What the authors of what moved wrote, where that is asked for.
    #[serde(skip)]
    pub news: News,
    /// The references that were changed.
    pub rewritten: Vec<Rewritten>,
    /// What works but should be known.
    pub warnings: Vec<Warning>,
    /// The result of building; none where no build is affected.
    #[serde(rename = "verified")]
    pub builds: Option<BuildCheck>,
    /// What was not brought in again, and why.
    pub kept: Vec<Failure>,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct Copy {
    /// What was localized: a path from the top of the repository, or a URL without secrets.
    pub target: String,
    /// Where the copy is: a path from the top of the repository, or as the user named it.
    pub new_directory: String,
}

/// The branch of a result.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Branch {
    /// Its short name.
    #[serde(rename = "branch")]
    name: String,
    /// Its tip, unless nothing was or is committed.
    commit: Option<String>,
    /// The tree of NEW_DIR there.
    tree: Option<String>,
    /// The source commit.
    source: String,
    /// The linked worktree that holds it as well, as it was named.
    worktree: Option<String>,
    /// What is deployed from it, in one line; none of a copy, and where nothing is deployed from here.
    deployed: Option<String>,
    /// The remote that has it as well, by now.
    pushed: Option<String>,
}

impl Outcome for Localized {
    fn text(&self, shown: Shown) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        let is_quiet = shown.quiet && self.status != Status::Differs;
        let _ = if is_quiet { Ok(()) } else { self.write(&mut out, shown.verbose) };
        out
    }

    fn said(&self, output: &OutputArgs) -> String {
        let differs = self.builds.as_ref().and_then(builds::refusal);
        let failures = self.kept.iter().cloned().chain(differs).collect();
        messages::warnings(&self.warnings, output.verbose) + &messages::failures(&Failures(failures))
    }

    fn status(&self) -> u8 {
        u8::from(matches!(self.status, Status::Differs | Status::Warned) || !self.kept.is_empty())
    }
}

/// How often to begin again when the branch at the remote has moved meanwhile.
const PUSHES: usize = 3;

pub(super) fn localize(request: &Request<'_>) -> output::Done {
    Ok(Box::new(localized(request)?))
}

fn localized(request: &Request<'_>) -> Result<Localized, Failures> {
    for _ in 0..PUSHES {
        let mut run = Run::open(request)?;
        let mut found = run.findings()?;
        for warning in found.iter_mut().filter(|_| request.how.strict) {
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
    request: &'a Request<'a>,
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
    fn open(request: &'a Request<'a>) -> Result<Run<'a>, Failures> {
        let workspace = workspace(request)?;
        let subject = Subject::find(&request.what, &workspace)?;
        let (new_dir, overwrite) = (subject.new_dir(), request.how.overwrite);
        let destination = Destination::open(&workspace, &request.to, new_dir, overwrite)?;
        let held = destination.held(&workspace)?;
        let options = Options {
            overwrite: request.how.overwrite && destination.branch().is_none(),
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
    fn refused(self, warnings: Vec<Warning>) -> Localized {
        Localized { status: Status::Warned, targets: self.subject.targets().to_vec(), warnings, ..Localized::default() }
    }

    fn plan(&mut self) -> Result<Plan, Failures> {
        let (workspace, options) = (&self.workspace, &self.options);
        let (destination, fetcher) = (&self.destination, &mut self.fetcher);
        let mut plan = match &self.subject {
            Subject::Copy(copied) => {
                let target = copied.target(workspace, destination, fetcher)?;
                destination.claim(&target.name, self.request.how.overwrite)?;
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
        let how = self.request.how;
        if how.no_verify {
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
        let options = build::Options {
            program: how.kustomize.clone(),
            arguments: how.build_arg.clone(),
            offline: how.offline,
            quiet: self.request.quiet,
            outputs: outputs(self.workspace.repo().map(|repo| &**repo)),
        };
        build::check_builds(&job, &options).map(Some)
    }

    /// Writes the result, unless something stands against it. None where the branch at the remote has moved meanwhile.
    fn deliver(self, mut plan: Plan, builds: Option<BuildCheck>) -> Result<Option<Localized>, Failures> {
        let Run { request, workspace, destination, .. } = &self;
        // Only if warnings are errors: the report mentions it anyway.
        let without = builds.iter().filter_map(|builds| builds.without.as_ref());
        plan.warnings.extend(
            without
                .filter(|_| request.how.strict && !request.how.no_verify)
                .map(|reason| Warning::new(Rule::NotBuilt, Location::default(), format!("not verified: {reason}"))),
        );
        if let Some(branch) = destination.branch() {
            plan.warnings.extend(branch.warning(workspace.lock.as_deref())?);
        }
        Warning::judge(&mut plan.warnings, &workspace.config, request.how.strict);
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
        let branch = destination.branch().map(|branch| Branch {
            name: branch.branch.name.clone(),
            pushed: branch.pushed.as_ref().filter(|_| commit.is_some()).map(|remote| remote.remote().to_owned()),
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
        let mut localized =
            Localized { branch, builds, targets: self.subject.targets().to_vec(), ..on_disk(status, plan, changes) };
        if let Some(copy) = &mut localized.copy {
            copy.new_directory = destination.shown().to_owned();
        }
        Ok(Some(localized))
    }

    /// Returns why a result is not written; none if it is.
    fn withheld(&self, plan: &Plan, builds: Option<&BuildCheck>) -> Option<Status> {
        if builds.is_some_and(BuildCheck::differs) {
            return Some(Status::Differs);
        }
        match withheld(plan, self.request.how.dry_run) {
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
fn workspace(request: &Request<'_>) -> Result<Workspace, Failures> {
    opened(request).map_err(|failures| match &request.what {
        What::Copy { target, .. } => unknown_word(target).map_or(failures, Into::into),
        What::InPlace(_) => failures,
    })
}

fn opened(request: &Request<'_>) -> Result<Workspace, Failures> {
    match (&request.to, &request.what) {
        (To::Branch(_), what) => {
            let repo = if request.how.offline { LocalRepo::discover_offline()? } else { LocalRepo::discover()? };
            let Some(repo) = repo else {
                return Err(Failure::new("this is not a git repository, so there is nowhere to commit to")
                    .hint(match what {
                        What::Copy { .. } => "run it in a repository, or write plain files: `--no-commit`",
                        What::InPlace(_) => "run it in a repository",
                    })
                    .into());
            };
            Workspace::of_rev(Rc::new(repo), request.rev)
        }
        (To::Disk, What::InPlace(_)) => Workspace::of_working_tree(false),
        (To::Disk, What::Copy { .. }) => Workspace::of_disk(),
    }
}

/// Sets up fetching. The lock of the source decides; on disk and in a copy the rest is resolved, where the lock of what
/// was localized before does not hold it.
fn fetcher(request: &Request<'_>, workspace: &Workspace, destination: &Destination, held: &Held) -> Result<Fetcher> {
    let files = held.files.clone();
    let is_in_place = matches!(request.what, What::InPlace(_));
    let own = files.as_ref().filter(|_| !is_in_place);
    let locks = workspace.lock.iter().chain(own.map(|files| &files.lock));
    let locks = locks.cloned();
    super::fetcher(
        workspace.repo(),
        fetch::Options {
            locked: is_in_place && destination.branch().is_some(),
            ..fetching(&workspace.config, request.how.offline, request.quiet)
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
pub(super) fn on_disk(status: Status, plan: Plan, changes: Vec<Change>) -> Localized {
    let mut localized = Localized {
        status,
        remotes: plan.lock.remotes,
        left: plan.lock.left,
        changes,
        rewritten: plan.rewritten,
        warnings: plan.warnings,
        ..Localized::default()
    };
    let top = plan.new_dir.as_deref().unwrap_or_default();
    for (path, file) in &plan.changes {
        match (path::below(path, top), file) {
            (Some(path), Some(file)) => drop(localized.files.insert(path.to_owned(), file.bytes.len() as u64)),
            (Some(path), None) => localized.removed.push(path.to_owned()),
            (None, _) => {}
        }
    }
    match plan.new_dir {
        Some(new_directory) => {
            localized.copy = Some(Copy { target: plan.lock.target.unwrap_or_default(), new_directory });
        }
        None => localized.stage = plan.stage,
    }
    for mut graph in [plan.before, plan.after] {
        // As after a check: the program ends next, and to free many small pieces takes a while.
        graph.sources.clear();
        std::mem::forget(graph);
    }
    localized
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

/// Returns what outputs of a repository that differ are kept under; outside of one, those of the directory at hand.
fn outputs(repo: Option<&LocalRepo>) -> String {
    let place = match repo {
        Some(repo) => repo.git_dir.clone(),
        None => std::env::current_dir().unwrap_or_default(),
    };
    let mut name = sha256_hex(place.as_os_str().as_encoded_bytes());
    name.truncate(12);
    name
}

/// Returns a path of the command line as text.
pub(super) fn text(given: &Path, what: &str) -> Result<String> {
    let text = given.to_str().map(str::to_owned);
    text.ok_or_else(|| Failure::new(format!("{what} is not UTF-8, so no reference could name it")))
}
